/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_math.h - arithmetic shared by all backends: the position of a tensor's pixel in
 * the frame, the conversion of YUV to RGB, and the tree of a reduction.
 *
 * Positions are exact integers and all floating point is float32 add and
 * multiply, never contracted to fused multiply-add (-std=c11 for gcc, the
 * pragma for clang, --fmad=false for nvcc). Therefore backends agree bit for
 * bit, and tests may compare them with memcmp.
 */
#ifndef YT_MATH_H
#define YT_MATH_H

#include "yt_backend.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__) && !defined(__CUDACC__)
/* The code uses neither floating-point exceptions nor errno. Without these options the
 * compiler turns selections into branches and square roots into calls. */
#pragma GCC optimize("no-trapping-math", "no-math-errno")
#endif

#if defined(__CUDACC__)
#define YT_FN static __host__ __device__ __forceinline__
#else
#define YT_FN static inline
#endif

#if defined(__CUDA_ARCH__)
#define YT_UNROLL _Pragma("unroll")
#else
#define YT_UNROLL
#endif

/* ---- detectors ---------------------------------------------------------- */

/* Values of an anchor. */
YT_FN uint64_t yt_decode_values(const yt_decode *d)
{
	return (uint64_t)(d->head == YT_HEAD_OBJECTNESS ? 5 : 4) + d->classes + d->after;
}

/* ---- geometry ----------------------------------------------------------- */

/* One axis of the mapping: `in` samples from `start`, stretched over `out`
 * output positions. Both are at most YT_MAX_SIDE, so (2*out + 1) * in fits. */
typedef struct yt_axis {
	uint32_t start, in, out;
} yt_axis;

/* Two neighbouring samples and the weight of the second. */
typedef struct yt_tap {
	uint32_t i0, i1;
	float w;
} yt_tap;

/* The position of output i, doubled and in units of 1/out luma samples, is
 * (2i + 1) * in, measured from the crop's left edge. */
YT_FN yt_tap yt_axis_linear(yt_axis a, uint32_t i)
{
	uint32_t num = (2 * i + 1) * a.in; /* 2 * out * (position + 1/2) */
	uint32_t den = 2 * a.out;
	yt_tap t;

	if (num <= a.out) { /* before the first sample's centre */
		t.i0 = t.i1 = a.start;
		t.w = 0.0f;
		return t;
	}
	num -= a.out;
	t.i0 = num / den;
	t.w = (float)(num - t.i0 * den) / (float)den;
	t.i1 = t.i0 + 1;
	if (t.i1 >= a.in) { /* past the last sample's centre */
		t.i0 = t.i1 = a.in - 1;
		t.w = 0.0f;
	}
	t.i0 += a.start;
	t.i1 += a.start;
	return t;
}

/* The chroma sample over which the centre of output i lies. */
YT_FN uint32_t yt_axis_chroma_nearest(yt_axis a, uint32_t i)
{
	return (a.start + (2 * i + 1) * a.in / (2 * a.out)) / 2;
}

/* Bilinear chroma: luma position p lies at (p - 1/2) / 2 in chroma samples.
 * Clamped to the chroma samples that the crop's luma touches. */
YT_FN yt_tap yt_axis_chroma_linear(yt_axis a, uint32_t i)
{
	uint32_t lo = a.start / 2, hi = (a.start + a.in - 1) / 2;
	/* (start + p + 1/2) = num / (2*out); chroma = num / (4*out) - 1/2.
	 * num < 2*out*(in + start) <= 2^30. */
	uint32_t num = (2 * i + 1) * a.in + 2 * a.out * a.start;
	uint32_t den = 4 * a.out, half = 2 * a.out;
	yt_tap t;

	if (num < half) {
		t.i0 = t.i1 = lo;
		t.w = 0.0f;
		return t;
	}
	num -= half;
	t.i0 = num / den;
	t.w = (float)(num - t.i0 * den) / (float)den;
	t.i1 = t.i0 + 1;
	if (t.i0 < lo) {
		t.i0 = t.i1 = lo;
		t.w = 0.0f;
	} else if (t.i1 > hi) {
		t.i0 = t.i1 = hi;
		t.w = 0.0f;
	}
	return t;
}

YT_FN float yt_lerp(float a, float b, float w)
{
	return a + (b - a) * w;
}

/* ---- colour ------------------------------------------------------------- */

/* rgb = yk * (Y - y0) + { rv*(V-128), gu*(U-128) + gv*(V-128), bu*(U-128) }
 *
 * From Kr and Kb of ITU-R BT.601 (0.299, 0.114) and BT.709 (0.2126, 0.0722):
 * rv = 2(1-Kr)*s, bu = 2(1-Kb)*s, gv = -rv*Kr/Kg, gu = -bu*Kb/Kg, with
 * s = 255/224 and yk = 255/219 for limited range, 1 for full. */
typedef struct yt_matrix {
	float y0, yk, rv, gu, gv, bu;
} yt_matrix;

YT_FN yt_matrix yt_matrix_of(uint32_t id)
{
	yt_matrix m = {16.0f, 1.16438356f, 1.59602679f, -0.39176229f, -0.81296765f, 2.01723214f};

	if (id == YT_MATRIX_BT709_LIMITED) {
		m.rv = 1.79274107f;
		m.gu = -0.21324861f;
		m.gv = -0.53290933f;
		m.bu = 2.11240179f;
	} else if (id == YT_MATRIX_BT601_FULL) {
		m.y0 = 0.0f;
		m.yk = 1.0f;
		m.rv = 1.402f;
		m.gu = -0.34413629f;
		m.gv = -0.71413629f;
		m.bu = 1.772f;
	}
	return m;
}

YT_FN float yt_clamp255(float v)
{
	v = v < 0.0f ? 0.0f : v;
	return v > 255.0f ? 255.0f : v;
}

typedef struct yt_rgb {
	float r, g, b;
} yt_rgb;

YT_FN yt_rgb yt_to_rgb(yt_matrix m, float y, float u, float v)
{
	float l = (y - m.y0) * m.yk;
	yt_rgb c;

	u -= 128.0f;
	v -= 128.0f;
	c.r = yt_clamp255(l + m.rv * v);
	c.g = yt_clamp255(l + (m.gu * u + m.gv * v));
	c.b = yt_clamp255(l + m.bu * u);
	return c;
}

/* ---- a checked preprocess, ready to run --------------------------------- */

/* The arguments of the kernels, computed by yt_plan_preprocess(). */
typedef struct yt_pre_plan {
	yt_axis x, y;
	uint32_t format, chroma;
	uint32_t type, layout, channels;
	uint32_t out_w, out_h;
	uint32_t in_x, in_y; /* where the frame lands in the tensor; size x.out, y.out */
	uint64_t pitch[3];
	yt_matrix matrix;
	uint32_t plane_of_r, plane_of_b; /* 0 and 2, or 2 and 0 */
	float scale[3], bias[3];         /* out = v * scale + bias, per tensor channel */
	float border[3];
} yt_pre_plan;

/* Letterbox sizes round to nearest and keep at least one pixel. */
YT_FN yt_pre_plan yt_plan_preprocess(const yt_preprocess *p)
{
	yt_pre_plan k;
	uint32_t cx = p->crop_x, cy = p->crop_y, cw = p->crop_w, ch = p->crop_h;
	uint32_t w = p->out_w, h = p->out_h, c;
	uint32_t chroma_w = (p->width + 1) / 2;

	if ((cx | cy | cw | ch) == 0) {
		cw = p->width;
		ch = p->height;
	}
	if (p->fit == YT_FIT_LETTERBOX) {
		if (cw * p->out_h >= ch * p->out_w)
			h = (2 * ch * p->out_w + cw) / (2 * cw);
		else
			w = (2 * cw * p->out_h + ch) / (2 * ch);
		w = w == 0 ? 1 : w;
		h = h == 0 ? 1 : h;
	}
	k.x.start = cx;
	k.x.in = cw;
	k.x.out = w;
	k.y.start = cy;
	k.y.in = ch;
	k.y.out = h;
	k.format = p->format;
	k.chroma = p->chroma;
	k.type = p->type;
	k.layout = p->layout;
	k.channels = p->color == YT_COLOR_GRAY ? 1 : 3;
	k.out_w = p->out_w;
	k.out_h = p->out_h;
	k.in_x = (p->out_w - w) / 2;
	k.in_y = (p->out_h - h) / 2;
	k.pitch[0] = p->pitch[0]                                                         ? p->pitch[0]
		     : p->format == YT_FORMAT_YUYV || p->format == YT_FORMAT_UYVY ? 4 * chroma_w
		     : p->format == YT_FORMAT_RGB || p->format == YT_FORMAT_BGR   ? 3 * p->width
										  : p->width;
	k.pitch[1] = p->pitch[1] ? p->pitch[1] : p->format == YT_FORMAT_NV12 ? 2 * chroma_w : chroma_w;
	k.pitch[2] = p->pitch[2] ? p->pitch[2] : chroma_w;
	k.matrix = yt_matrix_of(p->matrix);
	k.plane_of_r = p->color == YT_COLOR_BGR ? 2 : 0;
	k.plane_of_b = 2 - k.plane_of_r;
	for (c = 0; c < 3; c++) {
		k.scale[c] = 1.0f / (255.0f * p->std[c]);
		k.bias[c] = -p->mean[c] / p->std[c];
		k.border[c] = (float)p->pad * k.scale[c] + k.bias[c];
	}
	return k;
}

/* Bytes `off + step * i` of rows ty, interpolated both ways. */
YT_FN float yt_bilinear(const uint8_t *p, uint64_t pitch, yt_tap tx, yt_tap ty, uint32_t step, uint32_t off)
{
	const uint8_t *r0 = p + ty.i0 * pitch + off, *r1 = p + ty.i1 * pitch + off;
	uint32_t a = tx.i0 * step, b = tx.i1 * step;

	return yt_lerp(yt_lerp((float)r0[a], (float)r0[b], tx.w), yt_lerp((float)r1[a], (float)r1[b], tx.w), ty.w);
}

YT_FN float yt_pre_luma(const yt_pre_plan *k, float y)
{
	return yt_clamp255((y - k->matrix.y0) * k->matrix.yk);
}

YT_FN yt_rgb yt_gray(float v)
{
	yt_rgb c;

	c.r = c.g = c.b = v;
	return c;
}

/* The colour of one pixel of the inner rectangle; of one channel, in all three.
 * The CPU backend computes the usual cases from row tables, to the same bits. */
YT_FN yt_rgb yt_pre_pixel(const yt_pre_plan *k, const uint8_t *p0, const uint8_t *p1, const uint8_t *p2, uint32_t ix,
			  uint32_t iy)
{
	yt_tap tx = yt_axis_linear(k->x, ix), ty = yt_axis_linear(k->y, iy), cx, cy;
	uint32_t format = k->format, step;
	uint64_t pitch_u = k->pitch[1], pitch_v = k->pitch[2];
	const uint8_t *pu = p1, *pv = p2;
	float y, u, v;

	if (format == YT_FORMAT_GRAY)
		return yt_gray(yt_bilinear(p0, k->pitch[0], tx, ty, 1, 0));
	if (format == YT_FORMAT_RGB || format == YT_FORMAT_BGR) {
		uint32_t red = format == YT_FORMAT_RGB ? 0 : 2;
		yt_rgb c;

		c.r = yt_bilinear(p0, k->pitch[0], tx, ty, 3, red);
		c.g = yt_bilinear(p0, k->pitch[0], tx, ty, 3, 1);
		c.b = yt_bilinear(p0, k->pitch[0], tx, ty, 3, 2 - red);
		return k->channels == 1 ? yt_gray(0.299f * c.r + 0.587f * c.g + 0.114f * c.b) : c;
	}
	if (format == YT_FORMAT_YUYV || format == YT_FORMAT_UYVY) {
		uint32_t luma = format == YT_FORMAT_YUYV ? 0 : 1;

		y = yt_bilinear(p0, k->pitch[0], tx, ty, 2, luma);
		step = 4;
		pu = p0 + 1 - luma;
		pv = pu + 2;
		pitch_u = pitch_v = k->pitch[0];
		cy = ty; /* as many rows of chroma as of luma */
		if (k->chroma == YT_CHROMA_NEAREST) {
			cy.i0 = cy.i1 = k->y.start + (2 * iy + 1) * k->y.in / (2 * k->y.out);
			cy.w = 0.0f;
		}
	} else {
		y = yt_bilinear(p0, k->pitch[0], tx, ty, 1, 0);
		step = format == YT_FORMAT_NV12 ? 2 : 1;
		if (step == 2) {
			pv = p1 + 1;
			pitch_v = pitch_u;
		}
		if (k->chroma == YT_CHROMA_NEAREST) {
			cy.i0 = cy.i1 = yt_axis_chroma_nearest(k->y, iy);
			cy.w = 0.0f;
		} else {
			cy = yt_axis_chroma_linear(k->y, iy);
		}
	}
	if (k->channels == 1)
		return yt_gray(yt_pre_luma(k, y));
	if (k->chroma == YT_CHROMA_NEAREST) {
		uint32_t at = yt_axis_chroma_nearest(k->x, ix) * step;

		u = (float)pu[cy.i0 * pitch_u + at];
		v = (float)pv[cy.i0 * pitch_v + at];
	} else {
		cx = yt_axis_chroma_linear(k->x, ix);
		u = yt_bilinear(pu, pitch_u, cx, cy, step, 0);
		v = yt_bilinear(pv, pitch_v, cx, cy, step, 0);
	}
	return yt_to_rgb(k->matrix, y, u, v);
}

/* ---- reduction tree ----------------------------------------------------- */

/* Element i of a level belongs to chunk i / YT_REDUCE_CHUNK and, within it, to
 * lane i % YT_REDUCE_LANES. A lane combines its elements in rising order; the
 * lanes of a chunk are then folded in halves (lane j with lane j + half). The
 * chunk results are the elements of the next level, until one is left.
 *
 * Rounding error of a sum grows with ROWS + log2(LANES) per level, not with n.
 */
#define YT_REDUCE_LANES 1024u
#define YT_REDUCE_ROWS 16u
#define YT_REDUCE_CHUNK (YT_REDUCE_LANES * YT_REDUCE_ROWS)

YT_FN float yt_reduce_identity(uint32_t op)
{
	union {
		uint32_t u;
		float f;
	} inf;

	inf.u = op == YT_REDUCE_MIN ? 0x7f800000u : op == YT_REDUCE_MAX ? 0xff800000u : 0u;
	return inf.f;
}

YT_FN float yt_reduce_min(float a, float b)
{
	return (a < b || a != a) ? a : b;
}

YT_FN float yt_reduce_max(float a, float b)
{
	return (a > b || a != a) ? a : b;
}

YT_FN float yt_reduce_combine(uint32_t op, float a, float b)
{
	return op == YT_REDUCE_SUM ? a + b : op == YT_REDUCE_MIN ? yt_reduce_min(a, b) : yt_reduce_max(a, b);
}

#endif /* YT_MATH_H */
