// SPDX-License-Identifier: Apache-2.0
//
// ops.h - bodies.h, continued: the operations beside copy, preprocess and reduce.
#ifndef YT_OPS_BODIES_H
#define YT_OPS_BODIES_H

#include "bodies.h"
#include "yt_ops.h"

// One 64-bit access.
struct alignas(8) yt_h4 {
	uint16_t v[4];
};

YT_FN bool yt_aligned(const void *p, uint32_t bytes)
{
	return ((uintptr_t)p & (bytes - 1)) == 0;
}

// Elements i to i + 3 of a float type. `wide`: all four exist and are aligned.
YT_FN yt_f4 yt_load4(uint32_t type, const void *p, uint64_t i, uint64_t n, bool wide)
{
	yt_f4 x = {{0, 0, 0, 0}};

	if (wide && type == YT_F32)
		return *(const yt_f4 *)((const float *)p + i);
	if (wide) {
		yt_h4 h = *(const yt_h4 *)((const uint16_t *)p + i);

		YT_UNROLL
		for (uint32_t j = 0; j < 4; j++)
			x.v[j] = type == YT_F16 ? yt_half_to_float(h.v[j]) : yt_bf16_to_float(h.v[j]);
		return x;
	}
	YT_UNROLL
	for (uint32_t j = 0; j < 4; j++)
		if (i + j < n)
			x.v[j] = yt_load(type, p, i + j);
	return x;
}

// Any type but I32.
YT_FN void yt_store4(uint32_t type, void *p, uint64_t i, uint64_t n, bool wide, const yt_f4 &x)
{
	if (wide && type == YT_F32) {
		*(yt_f4 *)((float *)p + i) = x;
		return;
	}
	if (wide && type <= YT_BF16) {
		yt_h4 h;

		YT_UNROLL
		for (uint32_t j = 0; j < 4; j++)
			h.v[j] = type == YT_F16 ? yt_half_of(x.v[j]) : yt_bf16_of(x.v[j]);
		*(yt_h4 *)((uint16_t *)p + i) = h;
		return;
	}
	if (wide) {
		uint32_t word = 0;

		YT_UNROLL
		for (uint32_t j = 0; j < 4; j++) {
			int32_t q = type == YT_I8 ? yt_saturate(x.v[j], -128.0f, 127.0f) : yt_saturate(x.v[j], 0.0f, 255.0f);

			word |= ((uint32_t)q & 255u) << 8 * j;
		}
		*(uint32_t *)((uint8_t *)p + i) = word;
		return;
	}
	YT_UNROLL
	for (uint32_t j = 0; j < 4; j++)
		if (i + j < n)
			yt_store(type, p, i + j, x.v[j]);
}

// Whether four elements from each multiple of four are one aligned access.
YT_FN bool yt_wide(uint32_t type, const void *p)
{
	return yt_aligned(p, type == YT_F32 || type == YT_I32 ? 16 : type == YT_F16 || type == YT_BF16 ? 8 : 4);
}

// ---- preprocess to any tensor, regions -------------------------------------

// As yt_preprocess_body, for any type, layout and number of channels. `wide`: rows
// hold a multiple of four and planes start on aligned accesses.
YT_FN void yt_tensor_body(const yt_pre_plan &k, const yt_planes &in, void *out, uint32_t x, uint32_t y, bool wide)
{
	uint64_t plane = (uint64_t)k.out_w * k.out_h, at = (uint64_t)y * k.out_w + x;
	uint32_t n = k.out_w - x < 4 ? k.out_w - x : 4;
	yt_f4 c[3];

	yt_four_pixels(k, in, x, y, n, c);
	YT_UNROLL
	for (uint32_t ch = 0; ch < 3; ch++) {
		if (ch >= k.channels)
			break;
		if (k.layout == YT_LAYOUT_NCHW) {
			yt_store4(k.type, out, ch * plane + at, ch * plane + at + n, wide, c[ch]);
			continue;
		}
		YT_UNROLL
		for (uint32_t j = 0; j < 4; j++)
			if (j < n)
				yt_store(k.type, out, (at + j) * k.channels + ch, c[ch].v[j]);
	}
}

YT_FN bool yt_tensor_wide(const yt_pre_plan &k, const void *out)
{
	return k.layout == YT_LAYOUT_NCHW && k.out_w % 4 == 0 && yt_wide(k.type, out);
}

YT_FN uint64_t yt_roi_bytes(const yt_roi &r)
{
	uint32_t size = r.type == YT_F32 ? 4 : r.type <= YT_BF16 ? 2 : 1;

	return (uint64_t)size * (r.color == YT_COLOR_GRAY ? 1 : 3) * r.out_w * r.out_h;
}

// ---- batches of preprocess -------------------------------------------------

// Frames of one launch, each its own size and format; as many as a kernel's arguments
// hold (4096 bytes), so that nothing is uploaded.
#define YT_BATCH_FRAMES 16u

struct yt_batch {
	yt_pre_plan plan[YT_BATCH_FRAMES];
	yt_planes in[YT_BATCH_FRAMES];
	void *out[YT_BATCH_FRAMES];
};

// ---- decode ----------------------------------------------------------------

// The key of an anchor whose score is above the threshold, else 0. Larger is better; keys are
// unique.
YT_FN uint64_t yt_decode_key(const yt_decode &d, const void *image, uint32_t anchor)
{
	float score = yt_decode_best(&d, image, anchor).score;

	return score >= d.threshold ? (uint64_t)yt_ordered(score) << 32 | (0xffffffffu - anchor) : 0;
}

// Of the keys with the digits of `prefix` above `shift` + 8, counts the next digit.
YT_FN bool yt_select_digit(uint64_t key, uint64_t prefix, uint32_t shift, uint32_t *digit)
{
	*digit = (uint32_t)(key >> shift) & 255u;
	return shift == 56 || key >> (shift + 8) == prefix >> (shift + 8);
}

// One thread, between barriers: finds the digit of the want-th largest key. `want` becomes its
// rank among the keys with that digit.
YT_FN uint64_t yt_select_next(const uint32_t *histogram, uint64_t prefix, uint32_t shift, uint32_t *want)
{
	uint32_t digit = 255;

	while (digit > 0 && histogram[digit] < *want)
		*want -= histogram[digit--];
	return prefix | (uint64_t)digit << shift;
}

// Writes the box of one chosen key at its rank.
YT_FN void yt_decode_write(const yt_decode &d, const void *image, const uint64_t *chosen, uint32_t count, uint32_t i, yt_box *out)
{
	uint64_t key = chosen[i];
	uint32_t rank = 0, anchor = 0xffffffffu - (uint32_t)key;

	for (uint32_t j = 0; j < count; j++)
		rank += chosen[j] > key;
	out[rank] = yt_decode_box(&d, image, anchor, yt_decode_best(&d, image, anchor));
}

// ---- nms -------------------------------------------------------------------

// Writes box i at its rank.
YT_FN void yt_nms_order(const yt_box *box, uint32_t count, uint32_t i, yt_box *sorted)
{
	uint64_t key = yt_box_key(&box[i]);
	uint32_t rank = 0;

	for (uint32_t j = 0; j < count; j++) {
		uint64_t other = yt_box_key(&box[j]);

		rank += other > key || (other == key && j < i);
	}
	sorted[rank] = box[i];
}

// Bit j: box 64 * column + j, ranked below box i, overlaps it too much. `cols` are those 64
// boxes.
YT_FN uint64_t yt_nms_word(const yt_nms &n, const yt_box *cols, uint32_t column, uint32_t count, const yt_box &b, uint32_t i)
{
	uint64_t word = 0;

	for (uint32_t j = 0; j < 64; j++) {
		uint32_t other = 64 * column + j;

		if (other < count && other > i && yt_suppressed(&n, &b, &cols[j]))
			word |= 1ull << j;
	}
	return word;
}

// One thread: selects which of 64 boxes are kept, given those already suppressed by better
// boxes and the overlaps among them.
YT_FN uint64_t yt_nms_keep(uint64_t dropped, const uint64_t *among, uint32_t boxes)
{
	uint64_t kept = 0;

	for (uint32_t j = 0; j < boxes; j++)
		if ((dropped >> j & 1) == 0) {
			kept |= 1ull << j;
			dropped |= among[j];
		}
	return kept;
}

YT_FN uint32_t yt_popcount(uint64_t v)
{
#if defined(__CUDA_ARCH__)
	return (uint32_t)__popcll(v);
#else
	return (uint32_t)__builtin_popcountll(v);
#endif
}

// ---- rows ------------------------------------------------------------------

// Thread t of YT_ROW_LANES, before the first barrier.
YT_FN float yt_row_max(uint32_t type, const void *src, uint64_t first, uint32_t cols, uint32_t t)
{
	float m = yt_reduce_identity(YT_REDUCE_MAX);

	for (uint64_t j = t; j < cols; j += YT_ROW_LANES)
		m = yt_reduce_max(m, yt_load(type, src, first + j));
	return m;
}

YT_FN float yt_row_sum(uint32_t type, const void *src, uint64_t first, uint32_t cols, float top, uint32_t t)
{
	float s = 0;

	for (uint64_t j = t; j < cols; j += YT_ROW_LANES)
		s += yt_exp_below(yt_load(type, src, first + j) - top);
	return s;
}

YT_FN void yt_row_softmax(const yt_rows &r, const void *src, void *dst, uint64_t first, float top, float sum, uint32_t t)
{
	float scale = yt_softmax_scale(sum);

	for (uint64_t j = t; j < r.cols; j += YT_ROW_LANES)
		yt_store(r.out, dst, first + j, yt_softmax_of(yt_exp_below(yt_load(r.in, src, first + j) - top), scale));
}

// The best key not above `most`.
YT_FN uint64_t yt_row_best(uint32_t type, const void *src, uint64_t first, uint32_t cols, uint64_t most, uint32_t t)
{
	uint64_t best = 0;

	for (uint64_t j = t; j < cols; j += YT_ROW_LANES) {
		uint64_t key = yt_rank_key(yt_load(type, src, first + j), (uint32_t)j);

		best = key <= most && key > best ? key : best;
	}
	return best;
}

// ---- convert ---------------------------------------------------------------

// Elements i to i + 3 if layouts agree and there is one scale, from float to float; otherwise
// one by one.
YT_FN void yt_convert_body(const yt_convert &v, uint64_t n, const void *src, const float *scales, void *dst, uint64_t i, bool wide)
{
	if (wide && v.in_layout == v.out_layout && v.in <= YT_BF16 && v.out <= YT_BF16 && v.in != v.out) {
		bool whole = i + 4 <= n;

		yt_store4(v.out, dst, i, n, whole, yt_load4(v.in, src, i, n, whole));
		return;
	}
	for (uint64_t j = i; j < i + 4 && j < n; j++) {
		uint32_t channel = 0;
		uint64_t from = v.in_layout == v.out_layout && scales == NULL ? j : yt_convert_from(&v, j, &channel);

		yt_convert_one(&v, src, from, dst, j, scales != NULL ? scales[channel] : v.scale);
	}
}

// ---- gemm, for any type and shape ------------------------------------------

#define YT_GEMM_SIDE 64u
#define YT_GEMM_STEP 16u
#define YT_GEMM_THREADS 256u

struct yt_gemm_view {
	const void *a, *b;
	void *c;
	const float *bias;
	uint64_t a_row, a_col, b_row, b_col, ldc; // elements
};

YT_FN yt_gemm_view yt_gemm_product(const yt_gemm &g, const void *a, const void *b, const float *bias, void *c, uint32_t i)
{
	uint32_t in = g.type == YT_F32 ? 4 : g.type == YT_I8 ? 1 : 2, out = g.out == YT_F32 || g.out == YT_I32 ? 4 : 2;
	bool ta = (g.flags & YT_GEMM_TRANS_A) != 0, tb = (g.flags & YT_GEMM_TRANS_B) != 0;
	uint64_t lda = g.lda != 0 ? g.lda : ta ? g.m : g.k, ldb = g.ldb != 0 ? g.ldb : tb ? g.k : g.n;
	yt_gemm_view v;

	v.a = (const char *)a + i * g.stride_a * in;
	v.b = (const char *)b + i * g.stride_b * in;
	v.c = (char *)c + i * g.stride_c * out;
	v.bias = bias;
	v.a_row = ta ? 1 : lda;
	v.a_col = ta ? lda : 1;
	v.b_row = tb ? 1 : ldb;
	v.b_col = tb ? ldb : 1;
	v.ldc = g.ldc != 0 ? g.ldc : g.n;
	return v;
}

// int8 is exact as a float, and so are sums below 2^24, such as those of one step.
YT_FN float yt_gemm_value(uint32_t type, const void *p, uint64_t i)
{
	return type == YT_I8 ? (float)((const int8_t *)p)[i] : yt_load(type, p, i);
}

// Before a barrier: thread t loads its part of one step of A and B.
YT_FN void yt_gemm_fetch(const yt_gemm &g, const yt_gemm_view &v, uint32_t row0, uint32_t col0, uint32_t k0, uint32_t t, float *as,
			 float *bs)
{
	for (uint32_t e = t; e < YT_GEMM_SIDE * YT_GEMM_STEP; e += YT_GEMM_THREADS) {
		uint32_t r = v.a_col == 1 ? e / YT_GEMM_STEP : e % YT_GEMM_SIDE, p = v.a_col == 1 ? e % YT_GEMM_STEP : e / YT_GEMM_SIDE;
		uint32_t c = v.b_col == 1 ? e % YT_GEMM_SIDE : e / YT_GEMM_STEP, q = v.b_col == 1 ? e / YT_GEMM_SIDE : e % YT_GEMM_STEP;

		as[p * (YT_GEMM_SIDE + 4) + r] =
			row0 + r < g.m && k0 + p < g.k ? yt_gemm_value(g.type, v.a, (row0 + r) * v.a_row + (k0 + p) * v.a_col) : 0.0f;
		bs[q * (YT_GEMM_SIDE + 4) + c] =
			k0 + q < g.k && col0 + c < g.n ? yt_gemm_value(g.type, v.b, (k0 + q) * v.b_row + (col0 + c) * v.b_col) : 0.0f;
	}
}

// Between barriers: thread t adds the products of one step to its 4 by 4 sums.
YT_FN void yt_gemm_step(uint32_t t, const float *as, const float *bs, float sum[16])
{
	uint32_t ty = t / 16 * 4, tx = t % 16 * 4;

	YT_UNROLL
	for (uint32_t p = 0; p < YT_GEMM_STEP; p++) {
		yt_f4 a = *(const yt_f4 *)(as + p * (YT_GEMM_SIDE + 4) + ty), b = *(const yt_f4 *)(bs + p * (YT_GEMM_SIDE + 4) + tx);

		YT_UNROLL
		for (uint32_t i = 0; i < 4; i++)
			YT_UNROLL
			for (uint32_t j = 0; j < 4; j++)
#if defined(__CUDA_ARCH__)
				sum[4 * i + j] = __fmaf_rn(a.v[i], b.v[j], sum[4 * i + j]);
#else
				sum[4 * i + j] += a.v[i] * b.v[j];
#endif
	}
}

// int8 products without tensor cores: four per word.
#define YT_GEMM_WORDS (YT_GEMM_STEP / 4)

YT_FN void yt_gemm_fetch8(const yt_gemm &g, const yt_gemm_view &v, uint32_t row0, uint32_t col0, uint32_t k0, uint32_t t, uint32_t *as,
			  uint32_t *bs)
{
	uint32_t i = t % YT_GEMM_SIDE, k = k0 + 4 * (t / YT_GEMM_SIDE), a = 0, b = 0;

	YT_UNROLL
	for (uint32_t j = 0; j < 4; j++) {
		if (row0 + i < g.m && k + j < g.k)
			a |= (uint32_t)((const uint8_t *)v.a)[(row0 + i) * v.a_row + (k + j) * v.a_col] << 8 * j;
		if (col0 + i < g.n && k + j < g.k)
			b |= (uint32_t)((const uint8_t *)v.b)[(k + j) * v.b_row + (col0 + i) * v.b_col] << 8 * j;
	}
	as[t] = a;
	bs[t] = b;
}

YT_FN int32_t yt_dot4(uint32_t a, uint32_t b, int32_t sum)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 610
	return __dp4a((int)a, (int)b, sum);
#else
	uint32_t s = (uint32_t)sum; // wraps

	for (uint32_t j = 0; j < 4; j++)
		s += (uint32_t)((int32_t)(int8_t)(a >> 8 * j) * (int8_t)(b >> 8 * j));
	return (int32_t)s;
#endif
}

YT_FN void yt_gemm_step8(uint32_t t, const uint32_t *as, const uint32_t *bs, int32_t sum[16])
{
	uint32_t ty = t / 16 * 4, tx = t % 16 * 4;

	YT_UNROLL
	for (uint32_t q = 0; q < YT_GEMM_WORDS; q++) {
		yt_u4 a = *(const yt_u4 *)(as + q * YT_GEMM_SIDE + ty), b = *(const yt_u4 *)(bs + q * YT_GEMM_SIDE + tx);

		YT_UNROLL
		for (uint32_t i = 0; i < 4; i++)
			YT_UNROLL
			for (uint32_t j = 0; j < 4; j++)
				sum[4 * i + j] = yt_dot4(a.v[i], b.v[j], sum[4 * i + j]);
	}
}

// One result from its sum; for int8 the sum is in `whole`.
YT_FN void yt_gemm_finish(const yt_gemm &g, const yt_gemm_view &v, uint32_t row, uint32_t col, float sum, int32_t whole)
{
	uint64_t at = row * v.ldc + col;

	if (row >= g.m || col >= g.n)
		return;
	if (g.out == YT_I32 && v.bias == NULL && g.act == YT_ACT_NONE) {
		((int32_t *)v.c)[at] = whole;
		return;
	}
	float x = g.type == YT_I8 ? (float)whole : g.alpha * sum;

	if (g.beta != 0.0f)
		x += g.beta * yt_load(g.out, v.c, at);
	if (v.bias != NULL)
		x += v.bias[col];
	x = yt_act(g.act, x);
	if (g.out == YT_I32)
		((int32_t *)v.c)[at] = yt_quantise(x, 1.0f, 0, INT32_MIN, INT32_MAX);
	else
		yt_store(g.out, v.c, at, x);
}

// ---- difference ------------------------------------------------------------

// Partial result of thread t of `threads` for a tile.
struct yt_seen {
	uint32_t sum, changed, peak;
};

YT_FN yt_seen yt_diff_body(const yt_diff &d, const uint8_t *a, const uint8_t *b, uint32_t x0, uint32_t y0, uint32_t w, uint32_t h,
			   uint32_t t, uint32_t threads)
{
	uint64_t pa = d.pitch[0] != 0 ? d.pitch[0] : d.width, pb = d.pitch[1] != 0 ? d.pitch[1] : d.width;
	yt_seen s = {0, 0, 0};

	for (uint32_t i = t; i < w * h; i += threads) {
		uint32_t x = x0 + i % w, y = y0 + i / w;

		if (x >= d.width || y >= d.height)
			continue;
		int32_t p = a[y * pa + x], q = b[y * pb + x];
		uint32_t v = (uint32_t)(p > q ? p - q : q - p);

		s.sum += v;
		s.changed += v > d.threshold;
		s.peak = v > s.peak ? v : s.peak;
	}
	return s;
}

// ---- statistics ------------------------------------------------------------

// Partial result of thread t of `threads` for a tile of at most 4096 pixels.
struct yt_pixels {
	uint32_t sum, low, high;
	int32_t laplace;
	uint32_t squares_low, squares_high; // a 64-bit sum in two words, for the shared memory's banks
};

YT_FN void yt_add_pixels(yt_pixels &a, const yt_pixels &b)
{
	uint64_t squares = ((uint64_t)a.squares_high << 32 | a.squares_low) + ((uint64_t)b.squares_high << 32 | b.squares_low);

	a.sum += b.sum;
	a.low += b.low;
	a.high += b.high;
	a.laplace += b.laplace;
	a.squares_low = (uint32_t)squares;
	a.squares_high = (uint32_t)(squares >> 32);
}

YT_FN yt_pixels yt_stats_body(const yt_plane_stats &s, const uint8_t *plane, uint32_t x0, uint32_t y0, uint32_t w, uint32_t h, uint32_t t,
			      uint32_t threads)
{
	uint64_t pitch = yt_stats_pitch(&s), squares = 0;
	yt_pixels p = {0, 0, 0, 0, 0, 0};

	for (uint32_t i = t; i < w * h; i += threads) {
		uint32_t x = x0 + i % w, y = y0 + i / w;

		if (x >= s.width || y >= s.height)
			continue;
		const uint8_t *row = plane + y * pitch;
		int32_t v = yt_brightness(s.format, row, x);
		int32_t l = yt_brightness(s.format, plane + yt_before(y, s.height) * pitch, x) +
			    yt_brightness(s.format, plane + yt_after(y, s.height) * pitch, x) +
			    yt_brightness(s.format, row, yt_before(x, s.width)) + yt_brightness(s.format, row, yt_after(x, s.width)) - 4 * v;

		p.sum += (uint32_t)v;
		p.low += v <= (int32_t)s.low;
		p.high += v >= (int32_t)s.high;
		p.laplace += l;
		squares += (uint32_t)(l * l);
	}
	p.squares_low = (uint32_t)squares;
	p.squares_high = (uint32_t)(squares >> 32);
	return p;
}

#endif // YT_OPS_BODIES_H
