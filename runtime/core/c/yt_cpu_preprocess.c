/* SPDX-License-Identifier: Apache-2.0
 *
 * One frame to one tensor, in one pass over the output. From NV12 and I420 to three
 * channels by row tables, else pixel by pixel; other types and layouts than float32
 * NCHW by way of one row of floats.
 *
 * Column positions are computed once per call. A row is then two loops: one
 * that gathers the source bytes of each column, which no vector unit does well,
 * and one of pure arithmetic over those bytes, which the compiler vectorises.
 *
 * Per output pixel: reads 4 luma and 2 chroma bytes (8 bilinear), writes 12;
 * about 35 flops. 1080p to 640x640: 3.1 MB of frame at most, 4.9 MB of tensor.
 */
#include "yt_cpu.h"
#include "yt_clones.h"
#include "yt_ops.h"

#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "pairs of samples are loaded as little-endian 16-bit words"
#endif

/* Column tables and row buffers, each of the inner width. */
typedef struct work {
	uint32_t *luma;      /* first of two neighbouring luma samples */
	float *luma_w;       /* weight of the second */
	uint32_t *c0, *c1;   /* chroma samples, in bytes */
	float *chroma_w;
	uint16_t *top, *bottom; /* gathered luma pairs */
	float *u, *v;           /* chroma of this row */
} work;

static int work_init(work *k, uint32_t w, yt_cpu_scratch *s)
{
	size_t stride = ((size_t)w * 4 + 63) / 64 * 64;
	char *p = yt_cpu_room(s, 8 * stride);

	if (p == NULL)
		return -1;
	k->luma = (uint32_t *)(void *)p;
	k->luma_w = (float *)(void *)(p + stride);
	k->c0 = (uint32_t *)(void *)(p + 2 * stride);
	k->c1 = (uint32_t *)(void *)(p + 3 * stride);
	k->chroma_w = (float *)(void *)(p + 4 * stride);
	k->u = (float *)(void *)(p + 5 * stride);
	k->v = (float *)(void *)(p + 6 * stride);
	k->top = (uint16_t *)(void *)(p + 7 * stride);
	k->bottom = (uint16_t *)(void *)(p + 7 * stride + stride / 2);
	return 0;
}

static void columns(const yt_pre_plan *k, work *wk, uint32_t step)
{
	uint32_t last = k->x.start + k->x.in - 1, i;

	for (i = 0; i < k->x.out; i++) {
		yt_tap t = yt_axis_linear(k->x, i);

		/* A pair must lie inside the crop. At its end take the pair before
		 * and all of its second sample, which is the same value exactly. */
		if (t.i0 == last && k->x.in > 1) {
			t.i0--;
			t.w = 1.0f;
		}
		wk->luma[i] = t.i0;
		wk->luma_w[i] = t.w;
		if (k->chroma == YT_CHROMA_NEAREST) {
			wk->c0[i] = yt_axis_chroma_nearest(k->x, i) * step;
		} else {
			t = yt_axis_chroma_linear(k->x, i);
			wk->c0[i] = t.i0 * step;
			wk->c1[i] = t.i1 * step;
			wk->chroma_w[i] = t.w;
		}
	}
}

static void gather_luma(const work *wk, uint32_t n, const uint8_t *r0, const uint8_t *r1)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		memcpy(&wk->top[i], r0 + wk->luma[i], 2);
		memcpy(&wk->bottom[i], r1 + wk->luma[i], 2);
	}
}

/* A crop one sample wide has no pairs. */
static void gather_luma_single(const work *wk, uint32_t n, const uint8_t *r0, const uint8_t *r1)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		wk->top[i] = (uint16_t)(r0[wk->luma[i]] * 0x101);
		wk->bottom[i] = (uint16_t)(r1[wk->luma[i]] * 0x101);
	}
}

/* U in the low byte, V in the high one, to be widened with vectors. */
static void gather_pairs(const work *wk, uint32_t n, const uint8_t *uv)
{
	uint16_t *out = (uint16_t *)(void *)wk->u;
	uint32_t i;

	for (i = 0; i < n; i++)
		memcpy(&out[i], uv + wk->c0[i], 2);
}

static void gather_chroma(const work *wk, uint32_t n, const uint8_t *u, const uint8_t *v)
{
	uint16_t *out = (uint16_t *)(void *)wk->u;
	uint32_t i;

	for (i = 0; i < n; i++)
		out[i] = (uint16_t)(u[wk->c0[i]] | v[wk->c0[i]] << 8);
}

static void blend_chroma(const work *wk, uint32_t n, const uint8_t *r0, const uint8_t *r1, float w, float *out)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint32_t a = wk->c0[i], b = wk->c1[i];
		float cw = wk->chroma_w[i];

		out[i] = yt_lerp(yt_lerp((float)r0[a], (float)r0[b], cw), yt_lerp((float)r1[a], (float)r1[b], cw), w);
	}
}

/* What stays the same from row to row. */
typedef struct row_args {
	yt_matrix matrix;
	float scale[3], bias[3]; /* of r, g, b */
	uint32_t n;
} row_args;

/* Seven streams: parameters, since that is where restrict counts. */
YT_CLONES
static void row_math(const row_args *a, float row_w, const uint16_t *restrict top, const uint16_t *restrict bottom,
		     const float *restrict luma_w, const float *restrict u, const float *restrict v, float *restrict r,
		     float *restrict g, float *restrict b)
{
	const float s0 = a->scale[0], s1 = a->scale[1], s2 = a->scale[2];
	const float b0 = a->bias[0], b1 = a->bias[1], b2 = a->bias[2];
	const yt_matrix m = a->matrix;
	uint32_t i, n = a->n;

	for (i = 0; i < n; i++) {
		float p = (float)(top[i] & 255), q = (float)(top[i] >> 8);
		float s = (float)(bottom[i] & 255), t = (float)(bottom[i] >> 8);
		float y = yt_lerp(yt_lerp(p, q, luma_w[i]), yt_lerp(s, t, luma_w[i]), row_w);
		yt_rgb c = yt_to_rgb(m, y, u[i], v[i]);

		r[i] = c.r * s0 + b0;
		g[i] = c.g * s1 + b1;
		b[i] = c.b * s2 + b2;
	}
}

/* The same with chroma as pairs of bytes. */
YT_CLONES
static void row_math_pairs(const row_args *a, float row_w, const uint16_t *restrict top, const uint16_t *restrict bottom,
		     const float *restrict luma_w, const uint16_t *restrict uv, float *restrict r,
		     float *restrict g, float *restrict b)
{
	const float s0 = a->scale[0], s1 = a->scale[1], s2 = a->scale[2];
	const float b0 = a->bias[0], b1 = a->bias[1], b2 = a->bias[2];
	const yt_matrix m = a->matrix;
	uint32_t i, n = a->n;

	for (i = 0; i < n; i++) {
		float p = (float)(top[i] & 255), q = (float)(top[i] >> 8);
		float s = (float)(bottom[i] & 255), t = (float)(bottom[i] >> 8);
		float y = yt_lerp(yt_lerp(p, q, luma_w[i]), yt_lerp(s, t, luma_w[i]), row_w);
		yt_rgb c = yt_to_rgb(m, y, (float)(uv[i] & 255), (float)(uv[i] >> 8));

		r[i] = c.r * s0 + b0;
		g[i] = c.g * s1 + b1;
		b[i] = c.b * s2 + b2;
	}
}

static void fill(float *p, uint64_t n, float v)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		p[i] = v;
}

static void border(const yt_pre_plan *k, float *out)
{
	uint64_t plane = (uint64_t)k->out_w * k->out_h;
	uint32_t right = k->in_x + k->x.out, below = k->in_y + k->y.out, c, y;

	for (c = 0; c < 3; c++) {
		float *p = out + c * plane;

		fill(p, (uint64_t)k->in_y * k->out_w, k->border[c]);
		if (k->x.out < k->out_w)
			for (y = k->in_y; y < below; y++) {
				fill(p + (uint64_t)y * k->out_w, k->in_x, k->border[c]);
				fill(p + (uint64_t)y * k->out_w + right, k->out_w - right, k->border[c]);
			}
		fill(p + (uint64_t)below * k->out_w, (uint64_t)(k->out_h - below) * k->out_w, k->border[c]);
	}
}

/* What the fast path needs for all rows. */
typedef struct rows {
	const yt_pre_plan *k;
	const uint8_t *const *plane;
	const uint8_t *pu, *pv;
	uint64_t pitch_u, pitch_v;
	row_args a;
	work wk;
} rows;

static int rows_init(rows *s, const yt_pre_plan *k, const uint8_t *const plane[3], yt_cpu_scratch *scratch)
{
	uint32_t step = k->format == YT_FORMAT_NV12 ? 2 : 1, channel[3] = {k->plane_of_r, 1, k->plane_of_b}, c;

	s->k = k;
	s->plane = plane;
	s->pu = plane[1];
	s->pv = step == 2 ? plane[1] + 1 : plane[2];
	s->pitch_u = k->pitch[1];
	s->pitch_v = step == 2 ? k->pitch[1] : k->pitch[2];
	if (work_init(&s->wk, k->x.out, scratch) != 0)
		return -1;
	columns(k, &s->wk, step);
	s->a.matrix = k->matrix;
	s->a.n = k->x.out;
	for (c = 0; c < 3; c++) {
		s->a.scale[c] = k->scale[channel[c]];
		s->a.bias[c] = k->bias[channel[c]];
	}
	return 0;
}

/* Row iy of the inner rectangle, normalised. */
static void row_fast(const rows *s, uint32_t iy, float *r, float *g, float *b)
{
	const yt_pre_plan *k = s->k;
	const work *wk = &s->wk;
	yt_tap ty = yt_axis_linear(k->y, iy);
	const uint8_t *r0 = s->plane[0] + ty.i0 * k->pitch[0], *r1 = s->plane[0] + ty.i1 * k->pitch[0];

	if (k->x.in > 1)
		gather_luma(wk, s->a.n, r0, r1);
	else
		gather_luma_single(wk, s->a.n, r0, r1);
	if (k->chroma == YT_CHROMA_NEAREST) {
		uint32_t cy = yt_axis_chroma_nearest(k->y, iy);

		if (k->format == YT_FORMAT_NV12)
			gather_pairs(wk, s->a.n, s->pu + cy * s->pitch_u);
		else
			gather_chroma(wk, s->a.n, s->pu + cy * s->pitch_u, s->pv + cy * s->pitch_v);
		row_math_pairs(&s->a, ty.w, wk->top, wk->bottom, wk->luma_w, (const uint16_t *)(const void *)wk->u, r, g, b);
	} else {
		yt_tap cy = yt_axis_chroma_linear(k->y, iy);

		blend_chroma(wk, s->a.n, s->pu + cy.i0 * s->pitch_u, s->pu + cy.i1 * s->pitch_u, cy.w, wk->u);
		blend_chroma(wk, s->a.n, s->pv + cy.i0 * s->pitch_v, s->pv + cy.i1 * s->pitch_v, cy.w, wk->v);
		row_math(&s->a, ty.w, wk->top, wk->bottom, wk->luma_w, wk->u, wk->v, r, g, b);
	}
}

static void row_slow(const yt_pre_plan *k, const uint8_t *const plane[3], uint32_t iy, float *const line[3])
{
	uint32_t i, r = k->plane_of_r, b = k->plane_of_b;

	for (i = 0; i < k->x.out; i++) {
		yt_rgb c = yt_pre_pixel(k, plane[0], plane[1], plane[2], i, iy);

		line[r][i] = c.r * k->scale[r] + k->bias[r];
		if (k->channels == 1)
			continue;
		line[1][i] = c.g * k->scale[1] + k->bias[1];
		line[b][i] = c.b * k->scale[b] + k->bias[b];
	}
}

/* One row of a tensor of any type and layout. */
YT_CLONES
static void store_row(const yt_pre_plan *k, void *out, uint32_t y, float *const line[3])
{
	uint64_t plane = (uint64_t)k->out_w * k->out_h, at = (uint64_t)y * k->out_w;
	uint32_t n = k->channels, type = k->type, c, x;

	for (c = 0; c < n; c++) {
		const float *from = line[c];
		uint64_t first = k->layout == YT_LAYOUT_NHWC ? at * n + c : c * plane + at, step = k->layout == YT_LAYOUT_NHWC ? n : 1;

		if (type == YT_F16)
			for (x = 0; x < k->out_w; x++)
				((uint16_t *)out)[first + x * step] = yt_half_of(from[x]);
		else
			for (x = 0; x < k->out_w; x++)
				yt_store(type, out, first + x * step, from[x]);
	}
}

static int any_tensor(const yt_pre_plan *k, const uint8_t *const plane[3], void *out, int fast, rows *s, yt_cpu_scratch *scratch)
{
	size_t stride = ((size_t)k->out_w * 4 + 63) / 64 * 64;
	float *line[3], *inner[3];
	uint32_t y, c;
	char *p;

	if (fast) { /* behind the tables */
		p = (char *)s->wk.luma + 8 * (((size_t)k->x.out * 4 + 63) / 64 * 64);
	} else {
		p = yt_cpu_room(scratch, 3 * stride);
		if (p == NULL)
			return -1;
	}
	for (c = 0; c < 3; c++) {
		line[c] = (float *)(void *)(p + c * stride);
		inner[c] = line[c] + k->in_x;
		fill(line[c], k->out_w, k->border[c]);
	}
	for (y = 0; y < k->out_h; y++) {
		uint32_t iy = y - k->in_y; /* wraps above the frame */

		if (iy < k->y.out) {
			if (fast)
				row_fast(s, iy, inner[k->plane_of_r], inner[1], inner[k->plane_of_b]);
			else
				row_slow(k, plane, iy, inner);
		} else if (iy == k->y.out) {
			for (c = 0; c < k->channels; c++)
				fill(inner[c], k->x.out, k->border[c]);
		}
		store_row(k, out, y, line);
	}
	return 0;
}

int yt_cpu_preprocess(const yt_pre_plan *k, const uint8_t *const plane[3], void *out, yt_cpu_scratch *scratch)
{
	int fast = k->format <= YT_FORMAT_I420 && k->channels == 3 && k->x.out != 0;
	uint64_t n = (uint64_t)k->out_w * k->out_h;
	uint32_t iy;
	rows s;

	if (fast && (yt_cpu_room(scratch, 8 * (((size_t)k->x.out * 4 + 63) / 64 * 64) + 3 * (((size_t)k->out_w * 4 + 63) / 64 * 64)) == NULL ||
		     rows_init(&s, k, plane, scratch) != 0))
		return -1;
	if (!fast || k->type != YT_F32 || k->layout != YT_LAYOUT_NCHW)
		return any_tensor(k, plane, out, fast, &s, scratch);
	border(k, out);
	for (iy = 0; iy < k->y.out; iy++) {
		float *row = (float *)out + (uint64_t)(k->in_y + iy) * k->out_w + k->in_x;

		row_fast(&s, iy, row + k->plane_of_r * n, row + n, row + k->plane_of_b * n);
	}
	return 0;
}

/* The tensors of a list of boxes; those beyond its count are 0. */
int yt_cpu_roi(const yt_roi *r, const yt_boxes *boxes, const uint8_t *const plane[3], void *out, yt_cpu_scratch *scratch)
{
	const yt_box *box = (const yt_box *)(const void *)(boxes + 1);
	uint32_t size = r->type == YT_F32 ? 4 : r->type <= YT_BF16 ? 2 : 1, i, count = boxes->count < r->max ? boxes->count : r->max;
	uint64_t bytes = (uint64_t)size * (r->color == YT_COLOR_GRAY ? 1 : 3) * r->out_w * r->out_h;

	for (i = 0; i < count; i++) {
		yt_pre_plan k = yt_plan_roi(r, &box[i]);

		if (yt_cpu_preprocess(&k, plane, (char *)out + i * bytes, scratch) != 0)
			return -1;
	}
	memset((char *)out + count * bytes, 0, (size_t)((r->max - count) * bytes));
	return 0;
}
