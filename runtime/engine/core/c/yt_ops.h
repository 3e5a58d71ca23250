/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_ops.h - the arithmetic of the operations beside preprocess and reduce, one
 * element, row or box at a time, for every backend. As in yt_math.h all floating
 * point is float32 in a fixed order, and functions like exp are written here, so
 * that backends agree bit for bit. GEMM is the exception: its order is free.
 *
 * Both alternatives of a choice are computed before one is selected, so that compilers can
 * vectorise the loop. An early return would prevent that.
 */
#ifndef YT_OPS_H
#define YT_OPS_H

#include "yt_math.h"

/* ---- numbers ------------------------------------------------------------ */

YT_FN uint32_t yt_bits(float f)
{
	union {
		float f;
		uint32_t u;
	} v;

	v.f = f;
	return v.u;
}

YT_FN float yt_from_bits(uint32_t u)
{
	union {
		float f;
		uint32_t u;
	} v;

	v.u = u;
	return v.f;
}

YT_FN float yt_abs(float x)
{
	return yt_from_bits(yt_bits(x) & 0x7fffffffu);
}

YT_FN float yt_half_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000u) << 16, m = h & 0x7fffu;
	/* The same digits with an exponent that is 112 too small. */
	uint32_t number = yt_bits(yt_from_bits(m << 13) * 5192296858534827628530496329220096.0f);

	uint32_t other = (m > 0x7c00u ? 0x7fc00000u : 0x7f800000u) | (m & 0x3ffu) << 13; /* a NaN is a quiet one, as processors' is */

	return yt_from_bits(sign | (m < 0x7c00u ? number : other));
}

YT_FN uint16_t yt_half_of(float f)
{
	uint32_t x = yt_bits(f), sign = x >> 16 & 0x8000u, a = x & 0x7fffffffu;
	uint32_t small = yt_bits(yt_from_bits(a) + 0.5f) - 0x3f000000u; /* steps of 2^-24, those of floats from 0.5 */
	uint32_t b = a < 0x47800000u ? a : 0x47800000u, h;              /* 65536 and more are infinity, as is 65520 rounded */

	h = (b + 0xfffu + (b >> 13 & 1u) - 0x38000000u) >> 13;
	h = a < 0x38800000u ? small : h; /* below 2^-14 */
	return (uint16_t)(sign | (a > 0x7f800000u ? 0x7e00u : h));
}

YT_FN float yt_bf16_to_float(uint16_t h)
{
	return yt_from_bits((uint32_t)h << 16);
}

YT_FN uint16_t yt_bf16_of(float f)
{
	uint32_t x = yt_bits(f);

	if ((x & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)((x >> 16 & 0x8000u) | 0x7fc0u);
	return (uint16_t)((x + 0x7fffu + (x >> 16 & 1u)) >> 16);
}

/* To the nearest integer, ties to even. */
YT_FN float yt_round(float x)
{
	float a = yt_abs(x), r = (a + 8388608.0f) - 8388608.0f;

	r = yt_from_bits(yt_bits(r) | (yt_bits(x) & 0x80000000u));
	return a < 8388608.0f ? r : x; /* else it has no fraction, or is not a number */
}

YT_FN int32_t yt_saturate(float x, float low, float high)
{
	float c = x > low ? (x < high ? x : high) : low;

	return (int32_t)(x == x ? yt_round(c) : 0.0f);
}

/* Elements of the float types. */
YT_FN float yt_load(uint32_t type, const void *p, uint64_t i)
{
	if (type == YT_F32)
		return ((const float *)p)[i];
	return type == YT_F16 ? yt_half_to_float(((const uint16_t *)p)[i]) : yt_bf16_to_float(((const uint16_t *)p)[i]);
}

/* Any type but I32; integers are rounded and saturate. */
YT_FN void yt_store(uint32_t type, void *p, uint64_t i, float v)
{
	switch (type) {
	case YT_F32:
		((float *)p)[i] = v;
		break;
	case YT_F16:
		((uint16_t *)p)[i] = yt_half_of(v);
		break;
	case YT_BF16:
		((uint16_t *)p)[i] = yt_bf16_of(v);
		break;
	case YT_I8:
		((int8_t *)p)[i] = (int8_t)yt_saturate(v, -128.0f, 127.0f);
		break;
	default:
		((uint8_t *)p)[i] = (uint8_t)yt_saturate(v, 0.0f, 255.0f);
	}
}

/* Orders floats as unsigned numbers; -0 equals 0. */
YT_FN uint32_t yt_ordered(float x)
{
	uint32_t u = yt_bits(x == 0.0f ? 0.0f : x);

	return (u & 0x80000000u) != 0 ? ~u : u | 0x80000000u;
}

/* ---- functions ---------------------------------------------------------- */

/* Relative error below 2e-7: x = n ln 2 + r with |r| <= ln 2 / 2, then Taylor. */
YT_FN float yt_exp(float x)
{
	float c = x > -104.0f ? (x < 88.8f ? x : 88.8f) : -104.0f, n, r, p;
	int32_t k, half;

	n = (c * 1.44269504f + 12582912.0f) - 12582912.0f; /* rounded: 1.5 * 2^23 has no room for a fraction */
	r = (c - n * 0.693359375f) + n * 2.12194440e-4f; /* ln 2 in two parts, the first exact */
	p = 1.0f / 5040.0f;
	p = p * r + 1.0f / 720.0f;
	p = p * r + 1.0f / 120.0f;
	p = p * r + 1.0f / 24.0f;
	p = p * r + 1.0f / 6.0f;
	p = p * r + 0.5f;
	p = (p * r) * r + r;
	p = p + 1.0f;
	k = (int32_t)n;
	half = k / 2; /* 2^k may need two factors */
	p *= yt_from_bits((uint32_t)(half + 127) << 23);
	p *= yt_from_bits((uint32_t)(k - half + 127) << 23);
	p = x > 88.8f ? yt_from_bits(0x7f800000u) : p;
	p = x < -104.0f ? 0.0f : p;
	return x == x ? p : x;
}

/* exp of the difference from a row's largest element, thus of no positive number. Relative error
 * below 2e-7 + 9e-8 |x|, and absolute below 2e-7: what it saves over yt_exp does not show in a sum
 * that is at least 1. 0 below -124 ln 2, where results near the smallest floats would be slow. */
YT_FN float yt_exp_below(float x)
{
	float m = x * 1.44269504f, t = m + 12583039.0f, f, p; /* 1.5 * 2^23 + 127: the last bits of t are those of the exponent */

	f = m - (t - 12583039.0f);
	p = 1.326465849e-03f; /* minimax of 2^f, with 1 for f = 0 */
	p = p * f + 9.671565843e-03f;
	p = p * f + 5.550734388e-02f;
	p = p * f + 2.402224127e-01f;
	p = p * f + 6.931469770e-01f;
	p = p * f + 1.0f;
	p *= yt_from_bits(yt_bits(t) << 23);
	return m < -124.0f ? 0.0f : p;
}

/* x = 2^e m with m from sqrt(1/2) to sqrt(2); log m = 2 artanh((m-1)/(m+1)). */
YT_FN float yt_log(float x)
{
	int small = x < 1.17549435e-38f, large;
	uint32_t u = yt_bits(small ? x * 16777216.0f : x);
	int32_t e = (int32_t)(u >> 23) - (small ? 151 : 127);
	float m = yt_from_bits((u & 0x7fffffu) | 0x3f800000u), s, t, p;

	large = m > 1.41421356f;
	m = large ? m * 0.5f : m;
	e += large;
	s = (m - 1.0f) / (m + 1.0f);
	t = s * s;
	p = 1.0f / 9.0f;
	p = p * t + 1.0f / 7.0f;
	p = p * t + 1.0f / 5.0f;
	p = p * t + 1.0f / 3.0f;
	p = p * t;
	s = 2.0f * s;
	p = (float)e * 0.693359375f + ((s + s * p) - (float)e * 2.12194440e-4f);
	p = yt_bits(x) == 0x7f800000u ? x : p;
	p = x == 0.0f ? yt_from_bits(0xff800000u) : p;
	return x >= 0.0f ? p : yt_from_bits(0x7fc00000u);
}

YT_FN float yt_sigmoid(float x)
{
	float e = yt_exp(-yt_abs(x));

	return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

YT_FN float yt_tanh(float x)
{
	float a = yt_abs(x), t = x * x, e = yt_exp(-2.0f * a), small;

	small = x * (1.0f + t * (-1.0f / 3.0f + t * (2.0f / 15.0f + t * (-17.0f / 315.0f + t * (62.0f / 2835.0f)))));
	e = (1.0f - e) / (1.0f + e);
	e = x < 0.0f ? -e : e;
	return a < 0.2f ? small : e;
}

/* Abramowitz and Stegun 7.1.26: absolute error of erf below 2e-7. */
YT_FN float yt_gelu(float x)
{
	float z = yt_abs(x) * 0.707106781f, t = 1.0f / (1.0f + 0.3275911f * z), q;

	q = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
	q = 0.5f * (q * yt_exp(-z * z)); /* half of 1 - erf(z) */
	q = x * (x < 0.0f ? q : 1.0f - q);
	return yt_bits(yt_abs(x)) == 0x7f800000u ? (x < 0.0f ? 0.0f : x) : q;
}

YT_FN float yt_silu(float x)
{
	float v = x * yt_sigmoid(x);

	return yt_bits(x) == 0xff800000u ? 0.0f : v;
}

#if defined(__CUDA_ARCH__)
#define YT_SQRT(x) __fsqrt_rn(x)
#else
#define YT_SQRT(x) __builtin_sqrtf(x)
#endif

YT_FN float yt_act(uint32_t act, float x)
{
	return act == YT_ACT_RELU ? (x < 0.0f ? 0.0f : x) : act == YT_ACT_GELU ? yt_gelu(x) : act == YT_ACT_SILU ? yt_silu(x) : x;
}

/* ---- statistics --------------------------------------------------------- */

/* The brightness of pixel x of a row. */
YT_FN int32_t yt_brightness(uint32_t format, const uint8_t *row, uint32_t x)
{
	switch (format) {
	case YT_FORMAT_YUYV:
		return row[2 * (uint64_t)x];
	case YT_FORMAT_UYVY:
		return row[2 * (uint64_t)x + 1];
	case YT_FORMAT_RGB:
	case YT_FORMAT_BGR:
		row += 3 * (uint64_t)x;
		return (int32_t)((9798u * row[format == YT_FORMAT_RGB ? 0 : 2] + 19235u * row[1] +
				  3735u * row[format == YT_FORMAT_RGB ? 2 : 0] + 16384u) >> 15);
	default:
		return row[x];
	}
}

/* The pixel before or after i of n, mirrored at the last one. */
YT_FN uint32_t yt_before(uint32_t i, uint32_t n)
{
	return i > 0 ? i - 1 : n > 1 ? 1 : 0;
}

YT_FN uint32_t yt_after(uint32_t i, uint32_t n)
{
	return i + 1 < n ? i + 1 : n > 1 ? n - 2 : 0;
}

YT_FN uint64_t yt_stats_pitch(const yt_plane_stats *s)
{
	return s->pitch != 0 ? s->pitch
	       : s->format == YT_FORMAT_YUYV || s->format == YT_FORMAT_UYVY ? 4 * (uint64_t)((s->width + 1) / 2)
	       : s->format == YT_FORMAT_RGB || s->format == YT_FORMAT_BGR ? 3 * (uint64_t)s->width
									   : s->width;
}

/* ---- convert ------------------------------------------------------------ */

YT_FN int32_t yt_quantise(float x, float scale, int32_t zero, int64_t low, int64_t high)
{
	float r = yt_round(x / scale);
	int64_t q;

	if (r != r)
		return 0;
	r = r < -8.0e9f ? -8.0e9f : r > 8.0e9f ? 8.0e9f : r;
	q = (int64_t)r + zero;
	return (int32_t)(q < low ? low : q > high ? high : q);
}

/* Element j of the destination from element i of the source. */
YT_FN void yt_convert_one(const yt_convert *v, const void *src, uint64_t i, void *dst, uint64_t j, float scale)
{
	float x;

	if (v->in == v->out) {
		if (v->in == YT_F32 || v->in == YT_I32)
			((uint32_t *)dst)[j] = ((const uint32_t *)src)[i];
		else if (v->in == YT_F16 || v->in == YT_BF16)
			((uint16_t *)dst)[j] = ((const uint16_t *)src)[i];
		else
			((uint8_t *)dst)[j] = ((const uint8_t *)src)[i];
		return;
	}
	if (v->in > YT_BF16) { /* from an integer to a float */
		int64_t q = v->in == YT_I8 ? ((const int8_t *)src)[i] : v->in == YT_U8 ? ((const uint8_t *)src)[i] : ((const int32_t *)src)[i];

		yt_store(v->out, dst, j, (float)(q - v->zero) * scale);
		return;
	}
	x = yt_load(v->in, src, i);
	switch (v->out) {
	case YT_I8:
		((int8_t *)dst)[j] = (int8_t)yt_quantise(x, scale, v->zero, -128, 127);
		break;
	case YT_U8:
		((uint8_t *)dst)[j] = (uint8_t)yt_quantise(x, scale, v->zero, 0, 255);
		break;
	case YT_I32:
		((int32_t *)dst)[j] = yt_quantise(x, scale, v->zero, INT32_MIN, INT32_MAX);
		break;
	default:
		yt_store(v->out, dst, j, x);
	}
}

/* Where element j of the destination is in the source, and its channel. */
YT_FN uint64_t yt_convert_from(const yt_convert *v, uint64_t j, uint32_t *channel)
{
	uint64_t hw = (uint64_t)v->h * v->w, image = j / (hw * v->c), rest = j % (hw * v->c), c, at;

	if (v->out_layout == YT_LAYOUT_NCHW) {
		c = rest / hw;
		at = rest % hw;
	} else {
		at = rest / v->c;
		c = rest % v->c;
	}
	*channel = (uint32_t)c;
	return image * hw * v->c + (v->in_layout == YT_LAYOUT_NCHW ? c * hw + at : at * v->c + c);
}

/* ---- rows --------------------------------------------------------------- */

/* Element j of a row belongs to lane j % YT_ROW_LANES; a lane adds its elements in
 * rising order, lanes are folded in halves. */
#define YT_ROW_LANES 256u

/* What turns a row's exponentials into their softmax, from their sum; all of a row with a NaN, or
 * with infinity as its largest, become this NaN. */
YT_FN float yt_softmax_scale(float sum)
{
	return sum == sum ? 1.0f / sum : yt_from_bits(0x7fc00000u);
}

YT_FN float yt_softmax_of(float e, float scale)
{
	return scale == scale ? e * scale : scale;
}

/* Larger is better: NaN above all numbers, then the value, then the lower index. */
YT_FN uint32_t yt_rank_order(float x)
{
	return x == x ? yt_ordered(x) : 0xffffffffu; /* never 0 */
}

YT_FN uint64_t yt_rank_of(uint32_t order, uint32_t index)
{
	return (uint64_t)order << 32 | (0xffffffffu - index);
}

YT_FN uint64_t yt_rank_key(float x, uint32_t index)
{
	return yt_rank_of(yt_rank_order(x), index);
}

/* The element with the key; of zeros 0, of NaNs and of key 0 any NaN. */
YT_FN float yt_rank_value(uint64_t key)
{
	uint32_t u = (uint32_t)(key >> 32);

	return yt_from_bits((u & 0x80000000u) != 0 ? u & 0x7fffffffu : ~u);
}

YT_FN uint32_t yt_rank_index(uint64_t key)
{
	return 0xffffffffu - (uint32_t)key;
}

/* ---- boxes -------------------------------------------------------------- */

YT_FN float yt_decode_at(const yt_decode *d, const void *image, uint32_t anchor, uint32_t value)
{
	return yt_load(d->type, image, d->head == YT_HEAD_PLANES ? (uint64_t)value * d->anchors + anchor : anchor * yt_decode_values(d) + value);
}

typedef struct yt_best {
	float score;
	int32_t cls;
} yt_best;

YT_FN yt_best yt_decode_best(const yt_decode *d, const void *image, uint32_t anchor)
{
	float object = d->head == YT_HEAD_OBJECTNESS ? yt_decode_at(d, image, anchor, 4) : 1.0f;
	uint32_t first = d->head == YT_HEAD_OBJECTNESS ? 5 : 4, c;
	yt_best best;

	best.score = yt_from_bits(0xff800000u);
	best.cls = 0;
	for (c = 0; c < d->classes; c++) {
		float s = object * yt_decode_at(d, image, anchor, first + c);

		if (s > best.score) {
			best.score = s;
			best.cls = (int32_t)c;
		}
	}
	return best;
}

YT_FN float yt_limit(float v, float limit)
{
	return v > 0.0f ? (v < limit ? v : limit) : 0.0f; /* NaN: 0 */
}

/* An edge of a box, see yt_decode. */
YT_FN float yt_edge(float v, float limit)
{
	return limit != 0.0f || v != v ? yt_limit(v, limit) : v > -YT_FAR ? (v < YT_FAR ? v : YT_FAR) : -YT_FAR;
}

YT_FN yt_box yt_decode_box(const yt_decode *d, const void *image, uint32_t anchor, yt_best best)
{
	float cx = yt_decode_at(d, image, anchor, 0), cy = yt_decode_at(d, image, anchor, 1);
	float w = yt_decode_at(d, image, anchor, 2) * 0.5f, h = yt_decode_at(d, image, anchor, 3) * 0.5f;
	yt_box b;

	b.x0 = yt_edge((cx - w) * d->scale_x + d->shift_x, d->limit_x);
	b.y0 = yt_edge((cy - h) * d->scale_y + d->shift_y, d->limit_y);
	b.x1 = yt_edge((cx + w) * d->scale_x + d->shift_x, d->limit_x);
	b.y1 = yt_edge((cy + h) * d->scale_y + d->shift_y, d->limit_y);
	b.score = best.score;
	b.cls = best.cls;
	b.anchor = (int32_t)anchor;
	b.reserved = 0;
	return b;
}

/* Float i of the destination of a gather. */
YT_FN void yt_gather_body(const yt_gather *g, const void *output, const yt_boxes *boxes, float *dst, uint32_t i)
{
	uint32_t box = i / g->count, value = g->first + i % g->count;
	int32_t anchor = box < boxes->count ? ((const yt_box *)(boxes + 1))[box].anchor : -1;

	if (anchor < 0 || (uint32_t)anchor >= g->anchors)
		dst[i] = 0.0f;
	else
		dst[i] = yt_load(g->type, output, g->head == YT_HEAD_PLANES ? (uint64_t)value * g->anchors + (uint32_t)anchor
									     : (uint64_t)anchor * g->values + value);
}

/* Where a cell of a grid lies between the pixels of an axis of prototypes. */
typedef struct yt_between {
	uint32_t from, to;
	float part; /* of `to` */
} yt_between;

YT_FN yt_between yt_mask_place(int32_t first, uint32_t step, uint32_t cell, float scale, float shift, uint32_t n)
{
	float v = ((float)first + (float)step * ((float)cell + 0.5f)) * scale + shift;
	yt_between b;

	v = yt_limit(v, (float)(n - 1));
	b.from = (uint32_t)v;
	b.to = b.from + 1 < n ? b.from + 1 : b.from;
	b.part = v - (float)b.from;
	return b;
}

YT_FN uint64_t yt_grid_words(const yt_grid *g)
{
	return ((uint64_t)g->width * g->height + 31) / 32;
}

/* Whether a grid is drawn; `bytes`: of dst. */
YT_FN int yt_grid_fits(const yt_masks *m, const yt_grid *g, uint64_t bytes)
{
	return g->step >= 1 && g->step <= YT_MAX_SIDE && g->width <= YT_MAX_SIDE && g->height <= YT_MAX_SIDE && g->row < m->rows &&
	       g->at % 4 == 0 && g->at + 4 * yt_grid_words(g) <= bytes;
}

/* Whether a cell is inside, from the sums at the four pixels around it. */
YT_FN int yt_mask_inside(yt_between x, yt_between y, float s00, float s01, float s10, float s11)
{
	float top = s00 * (1.0f - x.part) + s01 * x.part, low = s10 * (1.0f - x.part) + s11 * x.part;

	return top * (1.0f - y.part) + low * y.part > 0.0f;
}

YT_FN float yt_mask_sum(const yt_masks *m, const void *prototypes, const float *row, uint32_t x, uint32_t y)
{
	uint64_t at = (uint64_t)y * m->width + x, plane = (uint64_t)m->width * m->height;
	float sum = 0.0f;
	uint32_t k;

	for (k = 0; k < m->values; k++)
		sum += row[k] * yt_load(m->type, prototypes, k * plane + at);
	return sum;
}

/* Word `word` of a grid. */
YT_FN uint32_t yt_mask_word(const yt_masks *m, const void *prototypes, const float *rows, const yt_grid *g, uint64_t word)
{
	const float *row = rows + (uint64_t)g->row * m->values;
	uint64_t cells = (uint64_t)g->width * g->height, first = 32 * word;
	uint32_t bits = 0, i;

	for (i = 0; i < 32 && first + i < cells; i++) {
		yt_between x = yt_mask_place(g->x, g->step, (uint32_t)((first + i) % g->width), m->scale_x, m->shift_x, m->width);
		yt_between y = yt_mask_place(g->y, g->step, (uint32_t)((first + i) / g->width), m->scale_y, m->shift_y, m->height);

		if (yt_mask_inside(x, y, yt_mask_sum(m, prototypes, row, x.from, y.from), yt_mask_sum(m, prototypes, row, x.to, y.from),
				   yt_mask_sum(m, prototypes, row, x.from, y.to), yt_mask_sum(m, prototypes, row, x.to, y.to)))
			bits |= 1u << i;
	}
	return bits;
}

/* The rank of boxes: score, then lower anchor; NaN is the lowest score. */
YT_FN uint64_t yt_box_key(const yt_box *b)
{
	uint32_t high = b->score != b->score ? 0u : yt_ordered(b->score);

	return (uint64_t)high << 32 | (0x7fffffffu - (uint32_t)b->anchor);
}

YT_FN float yt_extent(float from, float to)
{
	return to > from ? to - from : 0.0f; /* NaN: 0 */
}

/* A box that is no place in a picture: an edge is infinite or as far as YT_FAR, or its score is infinite. */
YT_FN int yt_is_far(const yt_box *b)
{
	const float edge[4] = {b->x0, b->y0, b->x1, b->y1};
	int far = (yt_bits(b->score) << 1) == 0xff000000u, i;

	for (i = 0; i < 4; i++)
		far |= edge[i] <= -YT_FAR || edge[i] >= YT_FAR;
	return far;
}

/* Whether b overlaps the better box a too much. */
YT_FN int yt_suppressed(const yt_nms *n, const yt_box *a, const yt_box *b)
{
	float x0 = a->x0 > b->x0 ? a->x0 : b->x0, y0 = a->y0 > b->y0 ? a->y0 : b->y0;
	float x1 = a->x1 < b->x1 ? a->x1 : b->x1, y1 = a->y1 < b->y1 ? a->y1 : b->y1;
	float inter = yt_extent(x0, x1) * yt_extent(y0, y1);
	float area_a = yt_extent(a->x0, a->x1) * yt_extent(a->y0, a->y1);
	float area_b = yt_extent(b->x0, b->x1) * yt_extent(b->y0, b->y1);

	if ((a->cls != b->cls && (n->flags & YT_NMS_AGNOSTIC) == 0) || yt_is_far(a))
		return 0;
	return inter > n->iou * (area_a + area_b - inter);
}

/* ---- regions ------------------------------------------------------------ */

/* The plan for one box: the whole pixels it touches, within the frame. */
YT_FN yt_pre_plan yt_plan_roi(const yt_roi *r, const yt_box *b)
{
	yt_preprocess p;
	float x0 = yt_limit(b->x0, (float)r->width), x1 = yt_limit(b->x1, (float)r->width);
	float y0 = yt_limit(b->y0, (float)r->height), y1 = yt_limit(b->y1, (float)r->height);
	uint32_t i, left = (uint32_t)x0, top = (uint32_t)y0, right = (uint32_t)x1, bottom = (uint32_t)y1;
	int empty = !(b->x1 > b->x0 && b->y1 > b->y0 && x1 > x0 && y1 > y0);
	yt_pre_plan k;

	right += (float)right < x1;
	bottom += (float)bottom < y1;
	p.format = r->format;
	p.fit = r->fit;
	p.color = r->color;
	p.chroma = r->chroma;
	p.matrix = r->matrix;
	p.width = r->width;
	p.height = r->height;
	p.crop_x = empty ? 0 : left;
	p.crop_y = empty ? 0 : top;
	p.crop_w = empty ? 0 : right - left;
	p.crop_h = empty ? 0 : bottom - top;
	p.out_w = r->out_w;
	p.out_h = r->out_h;
	p.pad = r->pad;
	for (i = 0; i < 3; i++) {
		p.pitch[i] = r->pitch[i];
		p.mean[i] = r->mean[i];
		p.std[i] = r->std[i];
	}
	p.type = r->type;
	p.layout = r->layout;
	p.reserved = 0;
	k = yt_plan_preprocess(&p);
	if (empty)
		k.x.out = k.y.out = 0;
	return k;
}

#endif /* YT_OPS_H */
