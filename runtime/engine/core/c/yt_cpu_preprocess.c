/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts one frame to one tensor, in one pass over the output. Column positions are computed
 * once per call. A row of the tensor is then made in two steps that stay in the L1 cache: each
 * component (Y, U, V or a colour) is resampled to a row of floats, and these are converted to
 * the rows of the channels. Tensors of other types and layouts than float32 NCHW need one more
 * row.
 *
 * Resampling loads windows of 16 or 32 bytes, each covering the samples of four columns, and
 * shuffles them (yt_simd.h). Where the samples do not fit a window, it loads them one by one.
 *
 * Per output pixel of NV12: reads 4 luma and 2 chroma bytes (8 bilinear), writes 12;
 * about 35 flops. 1080p to 640x640: 3.1 MB of frame at most, 4.9 MB of tensor.
 */
#include "yt_cpu.h"
#include "yt_clones.h"
#include "yt_ops.h"
#include "yt_simd.h"

#include <string.h>

#define GROUP 4u    /* columns of one window */
#define VECTOR 8u   /* columns of one step */
#define ROW_BYTES(n) (((size_t)(n) * 4 + 63) / 64 * 64) /* of 4-byte elements, whole vectors */

/* Tensors larger than the L2 cache are written with streaming stores, since a normal store
 * would first read each line. By the next frame other data has evicted them anyway. */
#define STREAM_BYTES (2u << 20)

/* Source positions of the columns of one component. */
typedef struct taps {
	uint32_t *at;   /* byte offset of the first sample in the row */
	float *w;       /* weight of the second sample; NULL: nearest */
	uint32_t *base; /* per group: first byte of its window */
	uint8_t *pick;  /* per column: its byte in the window, and three of 0xff */
	uint32_t next;  /* bytes from the first sample to the second */
	uint32_t window; /* bytes; 0: no window covers all samples of a group */
	uint32_t n;
} taps;

#define TAPS_BYTES(n) (3 * ROW_BYTES(n) + ROW_BYTES(((n) + VECTOR) / GROUP))

static char *taps_room(taps *t, uint32_t n, char *p)
{
	size_t row = ROW_BYTES(n);

	t->n = n;
	t->at = (uint32_t *)(void *)p;
	t->w = (float *)(void *)(p + row);
	t->pick = (uint8_t *)(p + 2 * row);
	t->base = (uint32_t *)(void *)(p + 3 * row);
	return p + TAPS_BYTES(n);
}

/* Windows over the bytes of a row from `low` to `end`. */
static int windows(taps *t, uint32_t low, uint32_t end, uint32_t window)
{
	uint32_t n = (t->n + VECTOR - 1) / VECTOR * VECTOR, i, j;

	if (end - low < window)
		return 0;
	for (i = 0; i < n; i += GROUP) {
		uint32_t first = t->at[i < t->n ? i : t->n - 1], base = first < end - window ? first : end - window;

		t->base[i / GROUP] = base;
		for (j = i; j < i + GROUP; j++) {
			uint32_t at = t->at[j < t->n ? j : t->n - 1] - base;

			if (at + t->next >= window)
				return 0;
			memset(t->pick + 4 * j, 0xff, 4);
			t->pick[4 * j] = (uint8_t)at;
		}
	}
	return 1;
}

/* For samples `step` bytes apart, from sample lo to hi. `off` bytes may be added to a row's
 * address to select another component of the same pixels. */
static void taps_ready(taps *t, uint32_t lo, uint32_t hi, uint32_t step, uint32_t off)
{
	uint32_t i;

	t->next = t->w != NULL && hi > lo ? step : 0;
	for (i = 0; i < t->n; i++) {
		/* The second sample must exist. At the end use the previous pair with full
		 * weight on its second sample, which gives exactly the same value. */
		if (t->next != 0 && t->at[i] == hi) {
			t->at[i]--;
			t->w[i] = 1.0f;
		}
		t->at[i] *= step;
	}
	t->window = windows(t, lo * step, (hi + 1) * step - off, 16)   ? 16
		    : windows(t, lo * step, (hi + 1) * step - off, 32) ? 32
								       : 0;
}

static void taps_linear(taps *t, const yt_axis *x, uint32_t step, uint32_t off)
{
	uint32_t i;

	for (i = 0; i < t->n; i++) {
		yt_tap p = yt_axis_linear(*x, i);

		t->at[i] = p.i0;
		t->w[i] = p.w;
	}
	taps_ready(t, x->start, x->start + x->in - 1, step, off);
}

static void taps_chroma(taps *t, const yt_axis *x, uint32_t chroma, uint32_t step, uint32_t off)
{
	uint32_t i;

	for (i = 0; i < t->n; i++) {
		yt_tap p = yt_axis_chroma_linear(*x, i);

		t->at[i] = chroma == YT_CHROMA_NEAREST ? yt_axis_chroma_nearest(*x, i) : p.i0;
		t->w[i] = p.w;
	}
	if (chroma == YT_CHROMA_NEAREST)
		t->w = NULL;
	taps_ready(t, x->start / 2, (x->start + x->in - 1) / 2, step, off);
}

/* State that is constant for all rows. */
typedef struct rows {
	const yt_pre_plan *k;
	taps luma, chroma; /* luma: also gray, or each colour */
	const uint8_t *p0, *pu, *pv;
	uint64_t pitch_u, pitch_v;
	float *y, *u, *v; /* a row of each component */
	int vectors;
} rows;

/* ---- resampling ---------------------------------------------------------- */

static void sample_each(const taps *t, const uint8_t *r0, const uint8_t *r1, float w, float *restrict out)
{
	uint32_t i;

	for (i = 0; i < t->n; i++) {
		uint32_t a = t->at[i], b = a + t->next;

		out[i] = t->w == NULL ? (float)r0[a]
				      : yt_lerp(yt_lerp((float)r0[a], (float)r0[b], t->w[i]), yt_lerp((float)r1[a], (float)r1[b], t->w[i]), w);
	}
}

#if defined(YT_SIMD)

YT_SIMD_INLINE yt_v8 lerp8(yt_v8 a, yt_v8 b, yt_v8 w)
{
	return yt_v8_add(a, yt_v8_mul(yt_v8_sub(b, a), w));
}

YT_SIMD_INLINE yt_v8 across(const uint8_t *row, const uint32_t *base, yt_pick8 first, yt_pick8 second, yt_v8 w, int wide)
{
	yt_windows s = yt_windows_load(row + base[0], row + base[1], wide);

	return lerp8(yt_windows_pick(s, first, wide), yt_windows_pick(s, second, wide), w);
}

YT_SIMD_INLINE void sample_wide(const taps *t, const uint8_t *r0, const uint8_t *r1, float w, ptrdiff_t ahead, float *restrict out, int wide)
{
	const uint32_t *base = t->base;
	const uint8_t *pick = t->pick;
	const float *right = t->w;
	float *end = out + t->n;
	yt_v8 down = yt_v8_all(w);

	if (right == NULL) {
		for (; out < end; out += VECTOR, base += VECTOR / GROUP, pick += 4 * VECTOR) {
			__builtin_prefetch(r0 + base[0] + ahead);
			yt_v8_store(out, yt_windows_pick(yt_windows_load(r0 + base[0], r0 + base[1], wide), yt_pick8_load(pick), wide));
		}
		return;
	}
	for (; out < end; out += VECTOR, base += VECTOR / GROUP, pick += 4 * VECTOR, right += VECTOR) {
		yt_pick8 first = yt_pick8_load(pick), second = yt_pick8_next(first, t->next);
		yt_v8 u = yt_v8_load(right), v = across(r0, base, first, second, u, wide);

		__builtin_prefetch(r0 + base[0] + ahead);
		if (w != 0.0f) { /* x + (y - x) * 0 is x */
			__builtin_prefetch(r1 + base[0] + ahead);
			v = lerp8(v, across(r1, base, first, second, u, wide), down);
		}
		yt_v8_store(out, v);
	}
}

YT_SIMD_FN static void sample_16(const taps *t, const uint8_t *r0, const uint8_t *r1, float w, ptrdiff_t ahead, float *out)
{
	sample_wide(t, r0, r1, w, ahead, out, 0);
}

YT_SIMD_FN static void sample_32(const taps *t, const uint8_t *r0, const uint8_t *r1, float w, ptrdiff_t ahead, float *out)
{
	sample_wide(t, r0, r1, w, ahead, out, 1);
}

#endif

/* One row of a component, from rows r0 and r1 with weight w for the second. `ahead` is the
 * distance to the next row, which is too far for the hardware prefetcher. */
static void sample(const rows *s, const taps *t, const uint8_t *r0, const uint8_t *r1, float w, ptrdiff_t ahead, float *out)
{
#if defined(YT_SIMD)
	if (s->vectors && t->window == 16) {
		sample_16(t, r0, r1, w, ahead, out);
		return;
	}
	if (s->vectors && t->window == 32) {
		sample_32(t, r0, r1, w, ahead, out);
		return;
	}
#else
	(void)s, (void)ahead;
#endif
	sample_each(t, r0, r1, w, out);
}

/* ---- rows of channels ---------------------------------------------------- */

YT_CLONES
static void scale_row(const float *restrict in, float scale, float bias, float *restrict out, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		out[i] = in[i] * scale + bias;
}

YT_CLONES
static void luma_row(const yt_pre_plan *k, float *restrict y, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		y[i] = yt_pre_luma(k, y[i]);
}

YT_CLONES
static void gray_row(float *restrict r, const float *restrict g, const float *restrict b, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		r[i] = 0.299f * r[i] + 0.587f * g[i] + 0.114f * b[i];
}

YT_CLONES
static void colour_each(const yt_pre_plan *k, const float *restrict y, const float *restrict u, const float *restrict v,
			float *restrict r, float *restrict g, float *restrict b, uint32_t n)
{
	const float s0 = k->scale[k->plane_of_r], s1 = k->scale[1], s2 = k->scale[k->plane_of_b];
	const float b0 = k->bias[k->plane_of_r], b1 = k->bias[1], b2 = k->bias[k->plane_of_b];
	const yt_matrix m = k->matrix;
	uint32_t i;

	for (i = 0; i < n; i++) {
		yt_rgb c = yt_to_rgb(m, y[i], u[i], v[i]);

		r[i] = c.r * s0 + b0;
		g[i] = c.g * s1 + b1;
		b[i] = c.b * s2 + b2;
	}
}

#if defined(YT_SIMD)

/* colour_each for whole vectors; r, g and b are aligned. */
YT_SIMD_FN static void colour_stream(const yt_pre_plan *k, const float *y, const float *u, const float *v, float *r, float *g, float *b,
				     uint32_t n)
{
	const yt_v8 s0 = yt_v8_all(k->scale[k->plane_of_r]), s1 = yt_v8_all(k->scale[1]), s2 = yt_v8_all(k->scale[k->plane_of_b]);
	const yt_v8 b0 = yt_v8_all(k->bias[k->plane_of_r]), b1 = yt_v8_all(k->bias[1]), b2 = yt_v8_all(k->bias[k->plane_of_b]);
	const yt_v8 y0 = yt_v8_all(k->matrix.y0), yk = yt_v8_all(k->matrix.yk), rv = yt_v8_all(k->matrix.rv);
	const yt_v8 gu = yt_v8_all(k->matrix.gu), gv = yt_v8_all(k->matrix.gv), bu = yt_v8_all(k->matrix.bu);
	const yt_v8 zero = yt_v8_all(0.0f), full = yt_v8_all(255.0f), half = yt_v8_all(128.0f);
	uint32_t i;

	for (i = 0; i < n; i += VECTOR) {
		yt_v8 l = yt_v8_mul(yt_v8_sub(yt_v8_load(y + i), y0), yk);
		yt_v8 cu = yt_v8_sub(yt_v8_load(u + i), half), cv = yt_v8_sub(yt_v8_load(v + i), half);
		yt_v8 red = yt_v8_clamp(yt_v8_add(l, yt_v8_mul(rv, cv)), zero, full);
		yt_v8 green = yt_v8_clamp(yt_v8_add(l, yt_v8_add(yt_v8_mul(gu, cu), yt_v8_mul(gv, cv))), zero, full);
		yt_v8 blue = yt_v8_clamp(yt_v8_add(l, yt_v8_mul(bu, cu)), zero, full);

		yt_v8_stream(r + i, yt_v8_add(yt_v8_mul(red, s0), b0));
		yt_v8_stream(g + i, yt_v8_add(yt_v8_mul(green, s1), b1));
		yt_v8_stream(b + i, yt_v8_add(yt_v8_mul(blue, s2), b2));
	}
}

YT_SIMD_FN static void fill_stream(float *p, uint64_t n, float v)
{
	yt_v8 all = yt_v8_all(v);
	uint64_t i = 0;

	for (; i < n && ((uintptr_t)(p + i) & 63) != 0; i++)
		p[i] = v;
	for (; i + VECTOR <= n; i += VECTOR)
		yt_v8_stream(p + i, all);
	for (; i < n; i++)
		p[i] = v;
}

YT_SIMD_FN static void streamed(void)
{
	yt_v8_streamed();
}

#endif

static void fill(float *p, uint64_t n, float v, int stream)
{
	uint64_t i;

#if defined(YT_SIMD)
	if (stream) {
		fill_stream(p, n, v);
		return;
	}
#else
	(void)stream;
#endif
	for (i = 0; i < n; i++)
		p[i] = v;
}

static void colour(const rows *s, float *r, float *g, float *b, int stream)
{
	uint32_t n = s->k->x.out;

#if defined(YT_SIMD)
	/* Whole cache lines only: a partial line would stall. */
	if (stream && n % 16 == 0 && (((uintptr_t)r | (uintptr_t)g | (uintptr_t)b) & 63) == 0) {
		colour_stream(s->k, s->y, s->u, s->v, r, g, b, n);
		return;
	}
#else
	(void)stream;
#endif
	colour_each(s->k, s->y, s->u, s->v, r, g, b, n);
}

static void rows_init(rows *s, const yt_pre_plan *k, const uint8_t *const plane[3], char *room, int plain)
{
	uint32_t f = k->format, n = k->x.out;
	size_t row = ROW_BYTES(n);

	s->k = k;
#if defined(YT_SIMD)
	s->vectors = !plain && yt_simd_here();
#else
	(void)plain;
	s->vectors = 0;
#endif
	s->p0 = s->pu = s->pv = plane[0];
	s->pitch_u = s->pitch_v = k->pitch[0];
	room = taps_room(&s->chroma, n, taps_room(&s->luma, n, room));
	s->y = (float *)(void *)room;
	s->u = (float *)(void *)(room + row);
	s->v = (float *)(void *)(room + 2 * row);
	switch (f) {
	case YT_FORMAT_GRAY:
		taps_linear(&s->luma, &k->x, 1, 0);
		break;
	case YT_FORMAT_RGB:
	case YT_FORMAT_BGR:
		taps_linear(&s->luma, &k->x, 3, 2);
		break;
	case YT_FORMAT_YUYV:
	case YT_FORMAT_UYVY:
		s->p0 += f == YT_FORMAT_UYVY;
		s->pu += f == YT_FORMAT_YUYV;
		s->pv = s->pu + 2;
		taps_linear(&s->luma, &k->x, 2, f == YT_FORMAT_UYVY);
		taps_chroma(&s->chroma, &k->x, k->chroma, 4, f == YT_FORMAT_YUYV ? 3 : 2);
		break;
	case YT_FORMAT_NV12:
		s->pu = plane[1];
		s->pv = plane[1] + 1;
		s->pitch_u = s->pitch_v = k->pitch[1];
		taps_linear(&s->luma, &k->x, 1, 0);
		taps_chroma(&s->chroma, &k->x, k->chroma, 2, 1);
		break;
	default:
		s->pu = plane[1];
		s->pv = plane[2];
		s->pitch_u = k->pitch[1];
		s->pitch_v = k->pitch[2];
		taps_linear(&s->luma, &k->x, 1, 0);
		taps_chroma(&s->chroma, &k->x, k->chroma, 1, 0);
	}
}

/* The chroma rows for row iy. */
static yt_tap chroma_rows(const yt_pre_plan *k, uint32_t iy)
{
	int packed = k->format == YT_FORMAT_YUYV || k->format == YT_FORMAT_UYVY; /* as many rows as luma */
	yt_tap t = packed ? yt_axis_linear(k->y, iy) : yt_axis_chroma_linear(k->y, iy);

	if (k->chroma == YT_CHROMA_NEAREST) {
		t.i0 = t.i1 = packed ? k->y.start + (2 * iy + 1) * k->y.in / (2 * k->y.out) : yt_axis_chroma_nearest(k->y, iy);
		t.w = 0.0f;
	}
	return t;
}

/* Row iy of the inner rectangle, normalised, to the rows of the channels. */
static void row(const rows *s, uint32_t iy, float *const line[3], int stream)
{
	const yt_pre_plan *k = s->k;
	yt_tap t = yt_axis_linear(k->y, iy), c;
	const uint8_t *r0 = s->p0 + t.i0 * k->pitch[0], *r1 = s->p0 + t.i1 * k->pitch[0];
	uint32_t n = k->x.out, i, next = iy + 1 < k->y.out ? iy + 1 : iy;
	ptrdiff_t ahead = (ptrdiff_t)((yt_axis_linear(k->y, next).i0 - t.i0) * k->pitch[0]), ahead_u, ahead_v;
	const float *colours[3];

	if (k->format == YT_FORMAT_RGB || k->format == YT_FORMAT_BGR) {
		float *first = k->format == YT_FORMAT_RGB ? s->y : s->v, *last = k->format == YT_FORMAT_RGB ? s->v : s->y;

		sample(s, &s->luma, r0, r1, t.w, ahead, first);
		sample(s, &s->luma, r0 + 1, r1 + 1, t.w, ahead, s->u);
		sample(s, &s->luma, r0 + 2, r1 + 2, t.w, ahead, last);
		if (k->channels == 1)
			gray_row(s->y, s->u, s->v, n);
		colours[k->plane_of_r] = s->y;
		colours[1] = s->u;
		colours[k->plane_of_b] = s->v;
	} else {
		sample(s, &s->luma, r0, r1, t.w, ahead, s->y);
		if (k->format != YT_FORMAT_GRAY && k->channels == 3) {
			c = chroma_rows(k, iy);
			ahead_u = (ptrdiff_t)((chroma_rows(k, next).i0 - c.i0) * s->pitch_u);
			ahead_v = (ptrdiff_t)((chroma_rows(k, next).i0 - c.i0) * s->pitch_v);
			sample(s, &s->chroma, s->pu + c.i0 * s->pitch_u, s->pu + c.i1 * s->pitch_u, c.w, ahead_u, s->u);
			sample(s, &s->chroma, s->pv + c.i0 * s->pitch_v, s->pv + c.i1 * s->pitch_v, c.w, ahead_v, s->v);
			colour(s, line[k->plane_of_r], line[1], line[k->plane_of_b], stream);
			return;
		}
		if (k->format != YT_FORMAT_GRAY)
			luma_row(k, s->y, n);
		colours[0] = colours[1] = colours[2] = s->y;
	}
	for (i = 0; i < k->channels; i++)
		scale_row(colours[i], k->scale[i], k->bias[i], line[i], n);
}

/* ---- tensors ------------------------------------------------------------- */

/* float32 NCHW: rows are written in place. */
static void planes_tensor(const yt_pre_plan *k, const rows *s, float *out)
{
	uint64_t plane = (uint64_t)k->out_w * k->out_h;
	uint32_t right = k->in_x + k->x.out, below = k->in_y + k->y.out, c, y;
	int stream = s->vectors && 4 * plane * k->channels >= STREAM_BYTES;

	for (c = 0; c < k->channels; c++) {
		float *p = out + c * plane;

		fill(p, (uint64_t)k->in_y * k->out_w, k->border[c], stream);
		fill(p + (uint64_t)below * k->out_w, (uint64_t)(k->out_h - below) * k->out_w, k->border[c], stream);
	}
	for (y = k->in_y; y < below; y++) {
		float *line[3] = {out, out, out};

		for (c = 0; c < k->channels; c++) {
			float *p = out + c * plane + (uint64_t)y * k->out_w;

			line[c] = p + k->in_x;
			if (k->x.out < k->out_w) {
				fill(p, k->in_x, k->border[c], 0);
				fill(p + right, k->out_w - right, k->border[c], 0);
			}
		}
		row(s, y - k->in_y, line, stream);
	}
#if defined(YT_SIMD)
	if (stream)
		streamed();
#endif
}

/* One row of a tensor of any type and layout. mixed: scratch for the row as floats. */
static void store_row(const yt_pre_plan *k, void *out, uint32_t y, float *const line[3], float *restrict mixed)
{
	uint64_t plane = (uint64_t)k->out_w * k->out_h, at = (uint64_t)y * k->out_w;
	uint32_t n = k->channels, c, x;

	if (k->layout == YT_LAYOUT_NCHW || n == 1) {
		for (c = 0; c < n; c++)
			yt_cpu_narrow(k->type, line[c], out, c * plane + at, k->out_w);
		return;
	}
	for (x = 0; x < k->out_w; x++) {
		mixed[3 * x] = line[0][x];
		mixed[3 * x + 1] = line[1][x];
		mixed[3 * x + 2] = line[2][x];
	}
	yt_cpu_narrow(k->type, mixed, out, 3 * at, 3 * k->out_w);
}

/* room: scratch for six rows of the tensor. */
static void any_tensor(const yt_pre_plan *k, const rows *s, void *out, char *room)
{
	float *line[3], *inner[3];
	uint32_t y, c;

	for (c = 0; c < 3; c++) {
		line[c] = (float *)(void *)(room + c * ROW_BYTES(k->out_w));
		inner[c] = line[c] + k->in_x;
		fill(line[c], k->out_w, k->border[c], 0);
	}
	for (y = 0; y < k->out_h; y++) {
		uint32_t iy = y - k->in_y; /* wraps above the frame */

		if (iy < k->y.out)
			row(s, iy, inner, 0);
		else if (iy == k->y.out)
			for (c = 0; c < k->channels; c++)
				fill(inner[c], k->x.out, k->border[c], 0);
		store_row(k, out, y, line, (float *)(void *)(room + 3 * ROW_BYTES(k->out_w)));
	}
}

int yt_cpu_preprocess(const yt_pre_plan *k, const uint8_t *const plane[3], void *out, yt_cpu_scratch *scratch)
{
	size_t frame = 2 * TAPS_BYTES(k->x.out) + 3 * ROW_BYTES(k->x.out);
	char *room = yt_cpu_room(scratch, frame + 6 * ROW_BYTES(k->out_w));
	rows s;

	if (room == NULL)
		return -1;
	memset(&s, 0, sizeof s);
	if (k->x.out != 0)
		rows_init(&s, k, plane, room, scratch->plain);
	if (k->type == YT_F32 && k->layout == YT_LAYOUT_NCHW)
		planes_tensor(k, &s, out);
	else
		any_tensor(k, &s, out, room + frame);
	return 0;
}

/* The tensors of a list of boxes; those beyond the number of boxes are set to 0. */
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
