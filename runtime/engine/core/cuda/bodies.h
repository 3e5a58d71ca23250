// SPDX-License-Identifier: Apache-2.0
//
// bodies.h - the work of one thread of each kernel, in plain C++ without CUDA.
//
// A kernel computes its thread index and calls a body. A test does the same in loops on
// the CPU under AddressSanitizer. The code between two barriers is one function.
#ifndef YT_BODIES_H
#define YT_BODIES_H

#include "yt_math.h"

// One 128-bit access.
struct alignas(16) yt_f4 {
	float v[4];
};
struct alignas(16) yt_u4 {
	uint32_t v[4];
};

YT_FN bool yt_aligned16(const void *p)
{
	return ((uintptr_t)p & 15) == 0;
}

// ---- copy ------------------------------------------------------------------

// Thread i of `threads` copies every threads-th 16-byte word; dst and src have
// the same remainder modulo 16. Thread 0 takes the bytes before the first and
// after the last whole word.
YT_FN void yt_copy_body(uint8_t *dst, const uint8_t *src, uint64_t n, uint64_t i, uint64_t threads)
{
	uint64_t head = (16 - ((uintptr_t)dst & 15)) & 15;

	head = head < n ? head : n;
	uint64_t words = (n - head) / 16, tail = head + 16 * words;
	yt_u4 *d = (yt_u4 *)(dst + head);
	const yt_u4 *s = (const yt_u4 *)(src + head);

	for (uint64_t w = i; w < words; w += threads)
		d[w] = s[w];
	if (i == 0) {
		for (uint64_t b = 0; b < head; b++)
			dst[b] = src[b];
		for (uint64_t b = tail; b < n; b++)
			dst[b] = src[b];
	}
}

// ---- preprocess ------------------------------------------------------------

struct yt_planes {
	const uint8_t *p0, *p1, *p2;
};

// Computes the three channels of the n <= 4 tensor pixels of row y from column x.
YT_FN void yt_four_pixels(const yt_pre_plan &k, const yt_planes &in, uint32_t x, uint32_t y, uint32_t n, yt_f4 *c)
{
	YT_UNROLL // c lives in registers only if j is a constant
	for (uint32_t j = 0; j < 4; j++) {
		uint32_t ix = x + j - k.in_x, iy = y - k.in_y; // wraps outside the frame

		if (j >= n || ix >= k.x.out || iy >= k.y.out) {
			c[0].v[j] = k.border[0];
			c[1].v[j] = k.border[1];
			c[2].v[j] = k.border[2];
			continue;
		}
		yt_rgb p = yt_pre_pixel(&k, in.p0, in.p1, in.p2, ix, iy);
		bool swap = k.plane_of_r != 0;

		c[0].v[j] = (swap ? p.b : p.r) * k.scale[0] + k.bias[0];
		c[1].v[j] = p.g * k.scale[1] + k.bias[1];
		c[2].v[j] = (swap ? p.r : p.b) * k.scale[2] + k.bias[2];
	}
}

// Four neighbouring tensor pixels of row y, from column x, in all three planes.
// `wide`: the tensor's rows start on 16 bytes and hold a multiple of four.
YT_FN void yt_preprocess_body(const yt_pre_plan &k, const yt_planes &in, float *out, uint32_t x, uint32_t y,
			      bool wide)
{
	uint64_t plane = (uint64_t)k.out_w * k.out_h, at = (uint64_t)y * k.out_w + x;
	uint32_t n = k.out_w - x < 4 ? k.out_w - x : 4;
	yt_f4 c[3];

	yt_four_pixels(k, in, x, y, n, c);
	if (wide) {
		*(yt_f4 *)(out + at) = c[0];
		*(yt_f4 *)(out + plane + at) = c[1];
		*(yt_f4 *)(out + 2 * plane + at) = c[2];
		return;
	}
	YT_UNROLL
	for (uint32_t j = 0; j < 4; j++) {
		if (j >= n)
			break;
		out[at + j] = c[0].v[j];
		out[plane + at + j] = c[1].v[j];
		out[2 * plane + at + j] = c[2].v[j];
	}
}

// ---- reduce ----------------------------------------------------------------

#define YT_REDUCE_THREADS (YT_REDUCE_LANES / 4) // four lanes a thread

// Before the first barrier: thread t combines its lanes' elements of one chunk
// into lanes[4t .. 4t+3]. `wide`: x is aligned to 16 bytes.
YT_FN void yt_reduce_gather(uint32_t op, const float *x, uint64_t n, uint64_t chunk, uint32_t t, bool wide,
			    float *lanes)
{
	float identity = yt_reduce_identity(op);
	yt_f4 acc = {{identity, identity, identity, identity}};

	for (uint32_t row = 0; row < YT_REDUCE_ROWS; row++) {
		uint64_t at = chunk * YT_REDUCE_CHUNK + row * YT_REDUCE_LANES + 4 * t;

		if (wide && at + 4 <= n) {
			yt_f4 v = *(const yt_f4 *)(x + at);

			YT_UNROLL
			for (uint32_t j = 0; j < 4; j++)
				acc.v[j] = yt_reduce_combine(op, acc.v[j], v.v[j]);
		} else {
			YT_UNROLL
			for (uint32_t j = 0; j < 4; j++)
				if (at + j < n)
					acc.v[j] = yt_reduce_combine(op, acc.v[j], x[at + j]);
		}
	}
	*(yt_f4 *)(lanes + 4 * t) = acc;
}

// Between barriers, for half = LANES/2, LANES/4, ... 1.
YT_FN void yt_reduce_fold(uint32_t op, uint32_t half, uint32_t t, float *lanes)
{
	for (uint32_t j = t; j < half; j += YT_REDUCE_THREADS)
		lanes[j] = yt_reduce_combine(op, lanes[j], lanes[j + half]);
}

#endif // YT_BODIES_H
