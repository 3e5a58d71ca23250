/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversion of type and layout, over pieces of the tensor that stay in the L1 cache.
 */
#include "yt_cpu.h"
#include "yt_check.h"
#include "yt_clones.h"
#include "yt_ops.h"
#include "yt_simd.h"

#include <string.h>

#define PIECE 1024u

#if defined(YT_SIMD)

YT_SIMD_FN static uint32_t widen_halves(const uint16_t *h, float *x, uint32_t n)
{
	uint32_t i;

	for (i = 0; i + 8 <= n; i += 8)
		yt_v8_store(x + i, yt_v8_load_halves(h + i));
	return i;
}

YT_SIMD_FN static uint32_t narrow_halves(const float *x, uint16_t *h, uint32_t n)
{
	uint32_t i;

	for (i = 0; i + 8 <= n; i += 8)
		yt_v8_store_halves(h + i, yt_v8_load(x + i));
	return i;
}

#endif

/* Elements `from` to n, for CPUs without float16 instructions and for the remainder. */
YT_CLONES
static void widen_each(uint32_t type, const uint16_t *restrict h, float *restrict x, uint32_t from, uint32_t n)
{
	uint32_t i;

	if (type == YT_F16)
		for (i = from; i < n; i++)
			x[i] = yt_half_to_float(h[i]);
	else
		for (i = from; i < n; i++)
			x[i] = yt_bf16_to_float(h[i]);
}

void yt_cpu_widen(uint32_t type, const void *src, uint64_t first, float *restrict x, uint32_t n)
{
	const uint16_t *h = (const uint16_t *)src + first;
	uint32_t done = 0;

	if (type == YT_F32) {
		memcpy(x, (const float *)src + first, n * sizeof *x);
		return;
	}
#if defined(YT_SIMD)
	if (type == YT_F16 && yt_simd_here())
		done = widen_halves(h, x, n);
#endif
	widen_each(type, h, x, done, n);
}

YT_CLONES
static void narrow_each(uint32_t type, const float *restrict x, void *dst, uint64_t first, uint32_t from, uint32_t n)
{
	uint16_t *h = (uint16_t *)dst + first;
	uint8_t *u = (uint8_t *)dst + first;
	int8_t *s = (int8_t *)dst + first;
	uint32_t i;

	if (type == YT_F16)
		for (i = from; i < n; i++)
			h[i] = yt_half_of(x[i]);
	else if (type == YT_BF16)
		for (i = from; i < n; i++)
			h[i] = yt_bf16_of(x[i]);
	else if (type == YT_I8)
		for (i = from; i < n; i++)
			s[i] = (int8_t)yt_saturate(x[i], -128.0f, 127.0f);
	else
		for (i = from; i < n; i++)
			u[i] = (uint8_t)yt_saturate(x[i], 0.0f, 255.0f);
}

void yt_cpu_narrow(uint32_t type, const float *restrict x, void *dst, uint64_t first, uint32_t n)
{
	uint32_t done = 0;

	if (type == YT_F32) {
		memcpy((float *)dst + first, x, n * sizeof *x);
		return;
	}
#if defined(YT_SIMD)
	if (type == YT_F16 && yt_simd_here())
		done = narrow_halves(x, (uint16_t *)dst + first, n);
#endif
	narrow_each(type, x, dst, first, done, n);
}

/* The values of elements `first` to first + n, whose channel changes every `inner` elements. */
static void by_channel(float *y, const float *by, uint64_t first, uint32_t n, uint64_t inner, uint32_t channels)
{
	uint32_t channel = (uint32_t)(first / inner % channels), i;
	uint64_t left = inner - first % inner;

	for (i = 0; i < n; i++) {
		y[i] = by[channel];
		if (--left == 0) {
			left = inner;
			channel = channel + 1 == channels ? 0 : channel + 1;
		}
	}
}

/* ---- conversion ---------------------------------------------------------- */

/* With a zero point up to this, all of yt_quantise is exact in float32 and int32. */
#define NEAR_ZERO (1 << 21)

/* yt_quantise in 32 bits, and its lowest byte, which is that of both types in two's complement.
 * A value is clamped first: in that range the sum with 1.5 * 2^23 rounds to an integer, which
 * its last bits hold. `each` is 1 if every element has a scale of its own, else 0. */
static inline __attribute__((always_inline)) void quantise_with(const float *restrict x, const float *restrict scale, uint32_t each,
								int32_t zero, int32_t low, uint8_t *restrict out, uint32_t n)
{
	const float least = (float)(low - zero), most = (float)(low + 255 - zero);
	uint32_t i;

	for (i = 0; i < n; i++) {
		float r = x[i] / scale[i * each], c = r > least ? (r < most ? r : most) : least;
		uint32_t v = yt_bits(c + 12582912.0f) - (0x4b400000u - (uint32_t)zero);

		out[i] = (uint8_t)(r == r ? v : 0);
	}
}

YT_CLONES
static void quantise(const float *x, const float *scale, uint32_t each, int32_t zero, int32_t low, uint8_t *out, uint32_t n)
{
	if (each)
		quantise_with(x, scale, 1, zero, low, out, n);
	else
		quantise_with(x, scale, 0, zero, low, out, n);
}

YT_CLONES
static void dequantise(int sign, const uint8_t *restrict q, const float *restrict scale, uint32_t each, int32_t zero, float *restrict x,
		       uint32_t n)
{
	uint32_t i;

	if (sign && !each)
		for (i = 0; i < n; i++)
			x[i] = (float)((int8_t)q[i] - zero) * scale[0];
	else if (sign)
		for (i = 0; i < n; i++)
			x[i] = (float)((int8_t)q[i] - zero) * scale[i];
	else
		for (i = 0; i < n; i++)
			x[i] = (float)(q[i] - zero) * scale[i * each];
}

/* At most PIECE elements that are contiguous on both sides. scale: one, or if `each` is 1 one per
 * element. */
static void convert_piece(const yt_convert *v, const void *src, uint64_t from, void *dst, uint64_t to, const float *scale, uint32_t each,
			  uint32_t n)
{
	int near = v->zero >= -NEAR_ZERO && v->zero <= NEAR_ZERO;
	float room[PIECE];
	uint32_t i;

	if (v->in == v->out) {
		uint32_t size = yt_type_bytes(v->in);

		memcpy((char *)dst + to * size, (const char *)src + from * size, (size_t)n * size);
	} else if (v->in <= YT_BF16 && v->out <= YT_BF16) {
		if (v->out == YT_F32)
			yt_cpu_widen(v->in, src, from, (float *)dst + to, n);
		else
			yt_cpu_narrow(v->out, yt_cpu_floats(v->in, src, from, room, n), dst, to, n);
	} else if (near && v->in <= YT_BF16 && v->out != YT_I32) {
		quantise(yt_cpu_floats(v->in, src, from, room, n), scale, each, v->zero, v->out == YT_I8 ? -128 : 0, (uint8_t *)dst + to, n);
	} else if (near && v->out <= YT_BF16 && v->in != YT_I32) {
		float *x = v->out == YT_F32 ? (float *)dst + to : room;

		dequantise(v->in == YT_I8, (const uint8_t *)src + from, scale, each, v->zero, x, n);
		if (x == room)
			yt_cpu_narrow(v->out, x, dst, to, n);
	} else {
		for (i = 0; i < n; i++)
			yt_convert_one(v, src, from + i, dst, to + i, scale[i * each]);
	}
}

#define APART(type) \
	{ \
		const type *s = src; \
		type *a = dst, *b = a + row, *c = b + row, *d = c + row; \
\
		if (rows == 3) { \
			_Pragma("GCC ivdep") for (i = 0; i < n; i++) \
			{ \
				a[i] = s[3 * i]; \
				b[i] = s[3 * i + 1]; \
				c[i] = s[3 * i + 2]; \
			} \
		} else { \
			_Pragma("GCC ivdep") for (i = 0; i < n; i++) \
			{ \
				a[i] = s[4 * i]; \
				b[i] = s[4 * i + 1]; \
				c[i] = s[4 * i + 2]; \
				d[i] = s[4 * i + 3]; \
			} \
		} \
	}

/* n pixels of three or four channels to planes, `row` elements apart. */
YT_CLONES
static void apart(uint32_t size, const void *src, void *dst, uint64_t row, uint32_t n, uint32_t rows)
{
	size_t i; /* 3 * i could wrap in 32 bits, and then the compiler loads one by one */

	if (size == 4)
		APART(uint32_t)
	else if (size == 2)
		APART(uint16_t)
	else
		APART(uint8_t)
}

#define TOGETHER(type) \
	{ \
		const type *a = src, *b = a + row, *c = b + row, *d = c + row; \
		type *t = dst; \
\
		if (rows == 3) { \
			_Pragma("GCC ivdep") for (i = 0; i < n; i++) \
			{ \
				t[3 * i] = a[i]; \
				t[3 * i + 1] = b[i]; \
				t[3 * i + 2] = c[i]; \
			} \
		} else { \
			_Pragma("GCC ivdep") for (i = 0; i < n; i++) \
			{ \
				t[4 * i] = a[i]; \
				t[4 * i + 1] = b[i]; \
				t[4 * i + 2] = c[i]; \
				t[4 * i + 3] = d[i]; \
			} \
		} \
	}

/* The other way. */
YT_CLONES
static void together(uint32_t size, const void *src, uint64_t row, void *dst, uint32_t n, uint32_t rows)
{
	size_t i;

	if (size == 4)
		TOGETHER(uint32_t)
	else if (size == 2)
		TOGETHER(uint16_t)
	else
		TOGETHER(uint8_t)
}

#define SPREAD(type) \
	for (j = 0; j < rows; j++) \
		for (i = 0; i < n; i++) \
			((type *)dst)[i * to_step + j * to_row] = ((const type *)src)[i * from_step + j * from_row]

/* dst[i * to_step + j * to_row] = src[i * from_step + j * from_row] for i < n, j < rows, in elements. */
static void spread(uint32_t size, const void *src, uint64_t from_step, uint64_t from_row, void *dst, uint64_t to_step, uint64_t to_row,
		   uint32_t n, uint32_t rows)
{
	uint32_t i, j;

	if ((rows == 3 || rows == 4) && from_step == rows && to_step == 1)
		apart(size, src, dst, to_row, n, rows);
	else if ((rows == 3 || rows == 4) && to_step == rows && from_step == 1)
		together(size, src, from_row, dst, n, rows);
	else if (size == 4)
		SPREAD(uint32_t);
	else if (size == 2)
		SPREAD(uint16_t);
	else
		SPREAD(uint8_t);
}

/* Converts one image from one layout to the other in blocks of at most PIECE elements: `deep`
 * channels of `wide` pixels. Where the type stays, blocks lie in the source. */
static void relayout(const yt_convert *v, const void *src, uint64_t first, const float *scales, char *dst)
{
	const uint32_t size = yt_type_bytes(v->out), deep = v->c < 64 ? v->c : 64, pixels = PIECE / deep;
	const uint32_t wide = pixels > 64 ? pixels / 64 * 64 : pixels; /* whole vectors */
	const uint64_t hw = (uint64_t)v->h * v->w;
	uint32_t block[PIECE], c, i, pixel_major = v->in_layout == YT_LAYOUT_NHWC;
	float scale[PIECE];
	uint64_t p;

	scale[0] = v->scale;
	for (c = 0; c < v->c; c += deep) {
		uint32_t d = v->c - c < deep ? v->c - c : deep, together = d == v->c ? wide : 1; /* pixels in one piece */

		if (scales != NULL && pixel_major)
			by_channel(scale, scales + c, 0, d * together, 1, d);
		for (p = 0; p < hw; p += wide) {
			uint32_t w = hw - p < wide ? (uint32_t)(hw - p) : wide;
			uint64_t at = first + (pixel_major ? p * v->c + c : c * hw + p), from_step = pixel_major ? d : 1, from_row = pixel_major ? 1 : w;
			const void *from = block;

			if (v->in == v->out) {
				from = (const char *)src + at * size;
				from_step = pixel_major ? v->c : 1;
				from_row = pixel_major ? 1 : hw;
			} else if (pixel_major) {
				for (i = 0; i < w; i += together)
					convert_piece(v, src, at + (uint64_t)i * v->c, block, (uint64_t)i * d, scale, scales != NULL,
						      d * (together < w ? together : w));
			} else {
				for (i = 0; i < d; i++)
					convert_piece(v, src, at + i * hw, block, (uint64_t)i * w, scales != NULL ? &scales[c + i] : scale, 0, w);
			}
			if (pixel_major)
				spread(size, from, from_step, from_row, dst + (c * hw + p) * size, 1, hw, w, d);
			else
				spread(size, from, from_step, from_row, dst + (p * v->c + c) * size, v->c, 1, w, d);
		}
	}
}

void yt_cpu_convert(const yt_convert *v, const void *src, const float *scales, void *dst)
{
	uint64_t hw = (uint64_t)v->h * v->w, image = hw * v->c, at;
	float scale[PIECE];
	uint32_t i;

	if (v->in_layout != v->out_layout && v->c != 1 && hw != 1) {
		for (i = 0; i < v->n; i++)
			relayout(v, src, i * image, scales, (char *)dst + i * image * yt_type_bytes(v->out));
		return;
	}
	scale[0] = v->scale;
	for (at = 0; at < v->n * image; at += PIECE) {
		uint32_t n = v->n * image - at < PIECE ? (uint32_t)(v->n * image - at) : PIECE;

		if (scales != NULL)
			by_channel(scale, scales, at, n, v->in_layout == YT_LAYOUT_NCHW ? hw : 1, v->c);
		convert_piece(v, src, at, dst, at, scale, scales != NULL, n);
	}
}
