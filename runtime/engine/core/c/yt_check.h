/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_check.h - checks of commands, shared by all backends.
 *
 * A command that passes yt_check_cmd() and whose ranges lie in their buffers
 * cannot make a kernel read or write outside them.
 */
#ifndef YT_CHECK_H
#define YT_CHECK_H

#include "yt_math.h"

#include <stdarg.h>
#include <stdio.h>

#if defined(__GNUC__)
#define YT_PRINTF __attribute__((format(printf, 5, 6)))
#else
#define YT_PRINTF
#endif

#define YT_MAX_OPERANDS 5 /* destination, three sources, boxes */

YT_PRINTF
static inline yt_status yt_report(yt_error *err, yt_status code, int32_t native, uint32_t sticky, const char *fmt, ...)
{
	va_list ap;

	if (err != NULL) {
		err->code = code;
		err->sticky = sticky;
		err->native = native;
		va_start(ap, fmt);
		vsnprintf(err->msg, sizeof err->msg, fmt, ap);
		va_end(ap);
	}
	return code;
}

#define yt_fail(err, code, ...) yt_report((err), (code), 0, 0, __VA_ARGS__)

static inline yt_status yt_ok(yt_error *err)
{
	if (err != NULL) {
		err->code = YT_OK;
		err->sticky = 0;
		err->native = 0;
		err->msg[0] = '\0';
	}
	return YT_OK;
}

static inline int yt_finite(float v)
{
	return v - v == 0.0f;
}

/* Bytes a plane must have: full rows but for the last, which may be tight. */
static inline uint64_t yt_plane_bytes(uint64_t pitch, uint32_t row, uint32_t rows)
{
	return pitch * (rows - 1) + row;
}

/* What a command reads and writes: the destination first, then the sources. */
typedef struct yt_operands {
	const yt_range *range[YT_MAX_OPERANDS];
	uint32_t n; /* 0: the command touches no buffer */
} yt_operands;

static inline uint32_t yt_format_planes(uint32_t format)
{
	return format == YT_FORMAT_I420 ? 3u : format == YT_FORMAT_NV12 ? 2u : 1u;
}

/* For a command that yt_check_cmd() accepted or will refuse: any op is safe. */
static inline yt_operands yt_operands_of(const yt_cmd *c)
{
	yt_operands o;
	uint32_t sources = 0, i;

	o.range[0] = &c->dst;
	switch (c->op) {
	case YT_OP_COPY:
	case YT_OP_REDUCE:
	case YT_OP_DECODE:
	case YT_OP_NMS:
	case YT_OP_SOFTMAX:
	case YT_OP_TOPK:
	case YT_OP_STATS:
		sources = 1;
		break;
	case YT_OP_PREPROCESS:
		sources = yt_format_planes(c->pre.format);
		break;
	case YT_OP_CONVERT:
		sources = (c->convert.flags & YT_CONVERT_CHANNEL_SCALE) != 0 ? 2 : 1;
		break;
	case YT_OP_MASKS:
	case YT_OP_GEMM:
		sources = 3;
		break;
	case YT_OP_DIFF:
	case YT_OP_GATHER:
		sources = 2;
		break;
	case YT_OP_LAUNCH:
		if (c->launch.ranges == 0) {
			o.n = 0;
			return o;
		}
		sources = c->launch.ranges > 4 ? 3 : c->launch.ranges - 1u;
		break;
	case YT_OP_ROI:
		sources = yt_format_planes(c->roi.format);
		break;
	default:
		o.n = 0;
		return o;
	}
	for (i = 0; i < sources; i++)
		o.range[1 + i] = &c->src[i];
	o.n = 1 + sources;
	if (c->op == YT_OP_ROI)
		o.range[o.n++] = &c->roi.boxes;
	return o;
}

/* Products of sizes stop at the largest number, which no buffer has. */
static inline uint64_t yt_mul(uint64_t a, uint64_t b)
{
	return a != 0 && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

static inline uint32_t yt_type_bytes(uint32_t type)
{
	return type == YT_F32 || type == YT_I32 ? 4u : type == YT_F16 || type == YT_BF16 ? 2u : 1u;
}

static inline int yt_is_float(uint32_t type)
{
	return type <= YT_BF16;
}

/* Room and alignment of one range. */
static inline yt_status yt_check_room(const yt_range *r, uint64_t need, uint32_t align, uint32_t at, const char *op,
				      const char *what, yt_error *err)
{
	if (r->len < need)
		return yt_fail(err, YT_E_INVALID, "command %u: %s: %s has %llu bytes, needs %llu", at, op, what,
			       (unsigned long long)r->len, (unsigned long long)need);
	if (r->off % align != 0)
		return yt_fail(err, YT_E_INVALID, "command %u: %s: %s is not aligned to %u bytes", at, op, what, align);
	return YT_OK;
}

/* What PREPROCESS and ROI have in common: the frame. pitch and planes are out. */
static inline yt_status yt_check_frame(const yt_cmd *c, uint32_t at, const char *op, uint32_t format, uint32_t width,
				       uint32_t height, const uint32_t pitch[3], yt_error *err)
{
	uint32_t cw, ch, i;
	uint32_t row[3], rows[3];

	if (width < 1 || height < 1 || width > YT_MAX_SIDE || height > YT_MAX_SIDE)
		return yt_fail(err, YT_E_INVALID, "command %u: %s: frame of %ux%u pixels; each side must be 1 to %u", at, op, width,
			       height, YT_MAX_SIDE);
	cw = (width + 1) / 2;
	ch = (height + 1) / 2;
	row[0] = format == YT_FORMAT_YUYV || format == YT_FORMAT_UYVY ? 4 * cw
		 : format == YT_FORMAT_RGB || format == YT_FORMAT_BGR ? 3 * width
								      : width;
	rows[0] = height;
	row[1] = format == YT_FORMAT_NV12 ? 2 * cw : cw;
	row[2] = cw;
	rows[1] = rows[2] = ch;
	for (i = 0; i < yt_format_planes(format); i++) {
		uint64_t step = pitch[i] ? pitch[i] : row[i], need;

		if (step < row[i])
			return yt_fail(err, YT_E_INVALID,
				       "command %u: %s: plane %u: a pitch of %u bytes is shorter than its row of %u bytes", at, op, i,
				       pitch[i], row[i]);
		need = yt_plane_bytes(step, row[i], rows[i]);
		if (c->src[i].len < need)
			return yt_fail(err, YT_E_INVALID, "command %u: %s: plane %u has %llu bytes, needs %llu", at, op, i,
				       (unsigned long long)c->src[i].len, (unsigned long long)need);
	}
	return YT_OK;
}

static inline yt_status yt_check_normalise(const float mean[3], const float std[3], uint32_t at, const char *op,
					   yt_error *err)
{
	uint32_t i;

	for (i = 0; i < 3; i++) {
		float scale = 1.0f / (255.0f * std[i]);

		if (!yt_finite(mean[i]) || !yt_finite(std[i]) || std[i] == 0.0f || !yt_finite(scale))
			return yt_fail(err, YT_E_INVALID,
				       "command %u: %s: channel %u: mean %g, std %g; both must be finite and std not 0", at, op, i,
				       (double)mean[i], (double)std[i]);
	}
	return YT_OK;
}

static inline yt_status yt_check_out(uint32_t w, uint32_t h, uint32_t at, const char *op, yt_error *err)
{
	if (w < 1 || h < 1 || w > YT_MAX_SIDE || h > YT_MAX_SIDE)
		return yt_fail(err, YT_E_INVALID, "command %u: %s: tensor of %ux%u pixels; each side must be 1 to %u", at, op, w, h,
			       YT_MAX_SIDE);
	return YT_OK;
}

static inline yt_status yt_check_preprocess(const yt_cmd *c, uint32_t at, yt_error *err)
{
	const yt_preprocess *p = &c->pre;
	uint32_t size = yt_type_bytes(p->type);
	uint64_t need;
	yt_status rc;

	if (p->format > YT_FORMAT_GRAY || p->fit > YT_FIT_LETTERBOX || p->color > YT_COLOR_GRAY ||
	    p->chroma > YT_CHROMA_BILINEAR || p->matrix > YT_MATRIX_BT601_FULL || p->type > YT_U8 ||
	    p->layout > YT_LAYOUT_NHWC || p->reserved != 0)
		return yt_fail(err, YT_E_INVALID,
			       "command %u: preprocess: unknown option: format %u, fit %u, color %u, chroma %u, matrix %u, type %u, "
			       "layout %u",
			       at, p->format, p->fit, p->color, p->chroma, p->matrix, p->type, p->layout);
	rc = yt_check_frame(c, at, "preprocess", p->format, p->width, p->height, p->pitch, err);
	if (rc == YT_OK)
		rc = yt_check_out(p->out_w, p->out_h, at, "preprocess", err);
	if (rc != YT_OK)
		return rc;
	if ((p->crop_x | p->crop_y | p->crop_w | p->crop_h) != 0 &&
	    (p->crop_w < 1 || p->crop_h < 1 || p->crop_x >= p->width || p->crop_y >= p->height ||
	     p->crop_w > p->width - p->crop_x || p->crop_h > p->height - p->crop_y))
		return yt_fail(err, YT_E_INVALID, "command %u: preprocess: crop %ux%u at (%u, %u) is not inside the %ux%u frame",
			       at, p->crop_w, p->crop_h, p->crop_x, p->crop_y, p->width, p->height);
	if (p->pad > 255)
		return yt_fail(err, YT_E_INVALID, "command %u: preprocess: pad is %u; it must be 0 to 255", at, p->pad);
	rc = yt_check_normalise(p->mean, p->std, at, "preprocess", err);
	if (rc != YT_OK)
		return rc;
	need = (uint64_t)size * (p->color == YT_COLOR_GRAY ? 1 : 3) * p->out_w * p->out_h;
	if (c->dst.len < need)
		return yt_fail(err, YT_E_INVALID, "command %u: preprocess: a %ux%u tensor has %llu bytes, the destination %llu", at,
			       p->out_w, p->out_h, (unsigned long long)need, (unsigned long long)c->dst.len);
	if (c->dst.off % size != 0)
		return yt_fail(err, YT_E_INVALID, "command %u: preprocess: the destination is not aligned to %u bytes", at, size);
	return YT_OK;
}

static inline yt_status yt_check_roi(const yt_cmd *c, uint32_t at, yt_error *err)
{
	const yt_roi *p = &c->roi;
	uint32_t size = yt_type_bytes(p->type);
	uint64_t need;
	yt_status rc;

	if (p->format > YT_FORMAT_GRAY || p->fit > YT_FIT_LETTERBOX || p->color > YT_COLOR_GRAY ||
	    p->chroma > YT_CHROMA_BILINEAR || p->matrix > YT_MATRIX_BT601_FULL || p->type > YT_U8 ||
	    p->layout > YT_LAYOUT_NHWC || p->max < 1 || p->max > YT_MAX_BOXES)
		return yt_fail(err, YT_E_INVALID,
			       "command %u: roi: unknown option: format %u, fit %u, color %u, chroma %u, matrix %u, type %u, layout %u, "
			       "or max %u is not 1 to %u",
			       at, p->format, p->fit, p->color, p->chroma, p->matrix, p->type, p->layout, p->max, YT_MAX_BOXES);
	rc = yt_check_frame(c, at, "roi", p->format, p->width, p->height, p->pitch, err);
	if (rc == YT_OK)
		rc = yt_check_out(p->out_w, p->out_h, at, "roi", err);
	if (rc == YT_OK)
		rc = yt_check_normalise(p->mean, p->std, at, "roi", err);
	if (rc == YT_OK)
		rc = yt_check_room(&p->boxes, YT_BOXES_BYTES(p->max), 8, at, "roi", "the range of boxes", err);
	need = yt_mul(p->max, (uint64_t)size * (p->color == YT_COLOR_GRAY ? 1 : 3) * p->out_w * p->out_h);
	return rc != YT_OK ? rc : yt_check_room(&c->dst, need, size, at, "roi", "the destination", err);
}

static inline yt_status yt_check_reduce(const yt_cmd *c, uint32_t at, yt_error *err)
{
	if (c->value > YT_REDUCE_MAX)
		return yt_fail(err, YT_E_INVALID, "command %u: reduce: unknown operation %u", at, c->value);
	if (c->src[0].len % 4 != 0 || c->src[0].off % 4 != 0 || c->dst.off % 4 != 0)
		return yt_fail(err, YT_E_INVALID, "command %u: reduce: ranges must hold whole, aligned elements", at);
	if (c->dst.len < 4)
		return yt_fail(err, YT_E_INVALID, "command %u: reduce: the destination has %llu bytes, needs 4", at,
			       (unsigned long long)c->dst.len);
	return YT_OK;
}

static inline yt_status yt_check_launch(const yt_cmd *c, uint32_t at, yt_error *err)
{
	const yt_launch *l = &c->launch;
	uint64_t threads = yt_mul(yt_mul(l->block[0], l->block[1]), l->block[2]);

	if (l->kernel == 0 || l->ranges > 4 || l->params > 6 || threads == 0 || threads > 1024 || l->grid[0] == 0 ||
	    l->grid[1] == 0 || l->grid[2] == 0)
		return yt_fail(err, YT_E_INVALID,
			       "command %u: launch: invalid configuration of kernel %#llx: grid %ux%ux%u, block %ux%ux%u, %u ranges, %u params; "
			       "need sizes of at least 1 and at most 1024 threads, 4 ranges and 6 params",
			       at, (unsigned long long)l->kernel, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
			       l->block[2], l->ranges, l->params);
	return YT_OK;
}

static inline yt_status yt_check_decode(const yt_cmd *c, uint32_t at, yt_error *err)
{
	const yt_decode *d = &c->decode;
	uint32_t size = yt_type_bytes(d->type);
	yt_status rc;

	if (d->head > YT_HEAD_OBJECTNESS || d->type > YT_F16 || d->anchors < 1 || d->anchors > 1u << 24 || d->classes < 1 ||
	    d->classes > 1u << 16 || d->after > 1u << 16 || d->max < 1 || d->max > YT_MAX_BOXES || d->batch < 1 || d->batch > 1u << 16)
		return yt_fail(err, YT_E_INVALID,
			       "command %u: decode: head %u, type %u, %u anchors, %u classes, max %u, batch %u: out of range", at,
			       d->head, d->type, d->anchors, d->classes, d->max, d->batch);
	if (!yt_finite(d->threshold) || !yt_finite(d->scale_x) || !yt_finite(d->scale_y) || !yt_finite(d->shift_x) ||
	    !yt_finite(d->shift_y) || !yt_finite(d->limit_x) || !yt_finite(d->limit_y))
		return yt_fail(err, YT_E_INVALID, "command %u: decode: threshold, scale, shift and limit must be finite", at);
	rc = yt_check_room(&c->src[0], yt_mul(d->batch, yt_mul(d->anchors, yt_decode_values(d) * size)), size, at, "decode", "the source", err);
	return rc != YT_OK ? rc
			   : yt_check_room(&c->dst, yt_mul(d->batch, YT_BOXES_BYTES(d->max)), 8, at, "decode",
					   "the destination", err);
}

static inline yt_status yt_check_gather(const yt_cmd *c, uint32_t at, yt_error *err)
{
	const yt_gather *g = &c->gather;
	uint32_t size = yt_type_bytes(g->type);
	yt_status rc;

	if (g->head > YT_HEAD_OBJECTNESS || g->type > YT_F16 || g->anchors < 1 || g->anchors > 1u << 24 || g->values < 1 ||
	    g->values > 1u << 17 || g->count < 1 || g->count > g->values || g->first > g->values - g->count || g->max < 1 ||
	    g->max > YT_MAX_BOXES)
		return yt_fail(err, YT_E_INVALID,
			       "command %u: gather: head %u, type %u, %u anchors of %u values, values %u and %u more, max %u: out of range", at,
			       g->head, g->type, g->anchors, g->values, g->first, g->count, g->max);
	rc = yt_check_room(&c->src[0], yt_mul(g->anchors, (uint64_t)g->values * size), size, at, "gather", "the output", err);
	if (rc == YT_OK)
		rc = yt_check_room(&c->src[1], YT_BOXES_BYTES(g->max), 8, at, "gather", "the boxes", err);
	return rc != YT_OK ? rc : yt_check_room(&c->dst, (uint64_t)4 * g->max * g->count, 4, at, "gather", "the destination", err);
}

static inline yt_status yt_check_masks(const yt_cmd *c, uint32_t at, yt_error *err)
{
	const yt_masks *m = &c->masks;
	uint32_t size = yt_type_bytes(m->type);
	yt_status rc;

	if (m->type > YT_F16 || m->values < 1 || m->values > 1u << 12 || m->width < 1 || m->width > YT_MAX_SIDE || m->height < 1 ||
	    m->height > YT_MAX_SIDE || m->rows < 1 || m->rows > YT_MAX_BOXES || m->count < 1 || m->count > YT_MAX_BOXES)
		return yt_fail(err, YT_E_INVALID,
			       "command %u: masks: type %u, %u prototypes of %ux%u, %u rows, %u grids: out of range", at, m->type,
			       m->values, m->width, m->height, m->rows, m->count);
	if (!yt_finite(m->scale_x) || !yt_finite(m->scale_y) || !yt_finite(m->shift_x) || !yt_finite(m->shift_y))
		return yt_fail(err, YT_E_INVALID, "command %u: masks: scale and shift must be finite", at);
	rc = yt_check_room(&c->src[0], yt_mul((uint64_t)m->values * size, (uint64_t)m->width * m->height), size, at, "masks",
			   "the prototypes", err);
	if (rc == YT_OK)
		rc = yt_check_room(&c->src[1], (uint64_t)4 * m->rows * m->values, 4, at, "masks", "the rows", err);
	if (rc == YT_OK)
		rc = yt_check_room(&c->src[2], m->count * sizeof(yt_grid), 4, at, "masks", "the grids", err);
	return rc != YT_OK ? rc : yt_check_room(&c->dst, 4, 4, at, "masks", "the destination", err);
}

static inline yt_status yt_check_nms(const yt_cmd *c, uint32_t at, yt_error *err)
{
	const yt_nms *n = &c->nms;
	yt_status rc;

	if ((n->flags & ~(uint32_t)YT_NMS_AGNOSTIC) != 0 || n->in_max < 1 || n->in_max > YT_MAX_BOXES || n->max < 1 ||
	    n->max > YT_MAX_BOXES || n->batch < 1 || n->batch > 1u << 16 || !(n->iou >= 0.0f && n->iou <= 1.0f))
		return yt_fail(err, YT_E_INVALID, "command %u: nms: flags %u, in_max %u, max %u, batch %u, iou %g: out of range", at,
			       n->flags, n->in_max, n->max, n->batch, (double)n->iou);
	rc = yt_check_room(&c->src[0], yt_mul(n->batch, YT_BOXES_BYTES(n->in_max)), 8, at, "nms", "the source", err);
	return rc != YT_OK
		       ? rc
		       : yt_check_room(&c->dst, yt_mul(n->batch, YT_BOXES_BYTES(n->max)), 8, at, "nms", "the destination", err);
}

static inline yt_status yt_check_rows(const yt_cmd *c, uint32_t at, yt_error *err)
{
	const yt_rows *r = &c->rows;
	const char *op = c->op == YT_OP_SOFTMAX ? "softmax" : "topk";
	uint64_t stride = r->stride != 0 ? r->stride : r->cols, elements, need;
	uint32_t in = yt_type_bytes(r->in), out = yt_type_bytes(r->out);
	yt_status rc;

	if (r->in > YT_BF16 || r->out > YT_BF16 || r->rows < 1 || r->cols < 1 || r->cols > 1u << 30 || stride < r->cols ||
	    (c->op == YT_OP_TOPK && (r->k < 1 || r->k > 32 || r->k > r->cols)))
		return yt_fail(err, YT_E_INVALID,
			       "command %u: %s: types %u and %u, %u rows of %u with stride %u, k %u: out of range", at, op, r->in,
			       r->out, r->rows, r->cols, r->stride, r->k);
	elements = yt_mul(r->rows - 1u, stride) + r->cols;
	rc = yt_check_room(&c->src[0], yt_mul(elements, in), in, at, op, "the source", err);
	if (rc != YT_OK)
		return rc;
	need = c->op == YT_OP_SOFTMAX ? yt_mul(elements, out) : (uint64_t)sizeof(yt_ranked) * r->k * r->rows;
	return yt_check_room(&c->dst, need, c->op == YT_OP_SOFTMAX ? out : 4, at, op, "the destination", err);
}

static inline yt_status yt_check_convert(const yt_cmd *c, uint32_t at, yt_error *err)
{
	const yt_convert *v = &c->convert;
	uint32_t in = yt_type_bytes(v->in), out = yt_type_bytes(v->out), by = v->flags & YT_CONVERT_CHANNEL_SCALE;
	uint64_t n = yt_mul(yt_mul(v->n, v->c), yt_mul(v->h, v->w));
	yt_status rc;

	if (v->in > YT_I32 || v->out > YT_I32 || v->in_layout > YT_LAYOUT_NHWC || v->out_layout > YT_LAYOUT_NHWC ||
	    (v->flags & ~(uint32_t)YT_CONVERT_CHANNEL_SCALE) != 0 || n == 0)
		return yt_fail(err, YT_E_INVALID,
			       "command %u: convert: types %u and %u, layouts %u and %u, flags %u, %ux%ux%ux%u elements: out of range",
			       at, v->in, v->out, v->in_layout, v->out_layout, v->flags, v->n, v->c, v->h, v->w);
	if (!yt_is_float(v->in) && !yt_is_float(v->out) && v->in != v->out)
		return yt_fail(err, YT_E_INVALID, "command %u: convert: no conversion between integer types; convert to a float type first", at);
	if (!by && (!yt_finite(v->scale) || v->scale == 0.0f))
		return yt_fail(err, YT_E_INVALID, "command %u: convert: scale %g must be finite and not 0", at, (double)v->scale);
	rc = yt_check_room(&c->src[0], yt_mul(n, in), in, at, "convert", "the source", err);
	if (rc == YT_OK && by)
		rc = yt_check_room(&c->src[1], (uint64_t)4 * v->c, 4, at, "convert", "the scales", err);
	return rc != YT_OK ? rc : yt_check_room(&c->dst, yt_mul(n, out), out, at, "convert", "the destination", err);
}

/* Elements of a matrix with rows of ld, `batch` times. */
static inline uint64_t yt_matrix_elements(uint32_t rows, uint32_t cols, uint32_t ld, uint32_t batch, uint64_t stride)
{
	uint64_t one = (uint64_t)(rows - 1) * (ld != 0 ? ld : cols) + cols, before = yt_mul(batch - 1u, stride);

	return before > UINT64_MAX - one ? UINT64_MAX : before + one;
}

static inline yt_status yt_check_gemm(const yt_cmd *c, uint32_t at, yt_error *err)
{
	const yt_gemm *g = &c->gemm;
	uint32_t batch = g->batch != 0 ? g->batch : 1, in = yt_type_bytes(g->type), out = yt_type_bytes(g->out);
	uint32_t ta = g->flags & YT_GEMM_TRANS_A, tb = g->flags & YT_GEMM_TRANS_B;
	uint32_t ac = ta ? g->m : g->k, bc = tb ? g->k : g->n;
	yt_status rc;

	if (g->m < 1 || g->n < 1 || g->k < 1 || g->m > 1u << 24 || g->n > 1u << 24 || g->k > 1u << 24 || g->type > YT_I8 ||
	    (g->out > YT_BF16 && g->out != YT_I32) || g->act > YT_ACT_SILU || g->reserved != 0 ||
	    (g->flags & ~(uint32_t)(YT_GEMM_TRANS_A | YT_GEMM_TRANS_B | YT_GEMM_OWN)) != 0)
		return yt_fail(err, YT_E_INVALID,
			       "command %u: gemm: %ux%ux%u of type %u to %u, activation %u, flags %u: out of range", at, g->m, g->n,
			       g->k, g->type, g->out, g->act, g->flags);
	if (g->type != YT_I8 && g->out == YT_I32)
		return yt_fail(err, YT_E_INVALID, "command %u: gemm: only I8 products can be stored as I32", at);
	if (g->type == YT_I8 && (g->out == YT_F16 || g->out == YT_BF16 || g->alpha != 1.0f || g->beta != 0.0f))
		return yt_fail(err, YT_E_INVALID, "command %u: gemm: I8 products need alpha 1, beta 0, and F32 or I32 output", at);
	if (!yt_finite(g->alpha) || !yt_finite(g->beta))
		return yt_fail(err, YT_E_INVALID, "command %u: gemm: alpha and beta must be finite", at);
	if ((g->lda != 0 && g->lda < ac) || (g->ldb != 0 && g->ldb < bc) || (g->ldc != 0 && g->ldc < g->n))
		return yt_fail(err, YT_E_INVALID, "command %u: gemm: rows of %u, %u and %u elements exceed lda %u, ldb %u or ldc %u", at, ac, bc, g->n,
			       g->lda, g->ldb, g->ldc);
	if (batch > 1 && g->stride_c < yt_matrix_elements(g->m, g->n, g->ldc, 1, 0))
		return yt_fail(err, YT_E_INVALID, "command %u: gemm: stride_c is too small: products of the batch overlap", at);
	rc = yt_check_room(&c->src[0], yt_mul(in, yt_matrix_elements(ta ? g->k : g->m, ac, g->lda, batch, g->stride_a)), in, at,
			   "gemm", "source 0", err);
	if (rc == YT_OK)
		rc = yt_check_room(&c->src[1], yt_mul(in, yt_matrix_elements(tb ? g->n : g->k, bc, g->ldb, batch, g->stride_b)),
				   in, at, "gemm", "source 1", err);
	if (rc == YT_OK && c->src[2].len != 0)
		rc = yt_check_room(&c->src[2], (uint64_t)4 * g->n, 4, at, "gemm", "the bias", err);
	return rc != YT_OK ? rc
			   : yt_check_room(&c->dst, yt_mul(out, yt_matrix_elements(g->m, g->n, g->ldc, batch, g->stride_c)),
					   out, at, "gemm", "the destination", err);
}

static inline yt_status yt_check_diff(const yt_cmd *c, uint32_t at, yt_error *err)
{
	const yt_diff *d = &c->diff;
	uint64_t blocks = 0;
	uint32_t i;
	yt_status rc;

	if (d->width < 1 || d->height < 1 || d->width > YT_MAX_SIDE || d->height > YT_MAX_SIDE || d->threshold > 255 ||
	    (d->block != 0 && (d->block < 4 || d->block > 256)) || (d->pitch[0] != 0 && d->pitch[0] < d->width) ||
	    (d->pitch[1] != 0 && d->pitch[1] < d->width))
		return yt_fail(err, YT_E_INVALID,
			       "command %u: diff: planes of %ux%u, pitches %u and %u, threshold %u, block %u: out of range", at,
			       d->width, d->height, d->pitch[0], d->pitch[1], d->threshold, d->block);
	for (i = 0; i < 2; i++) {
		rc = yt_check_room(&c->src[i], yt_plane_bytes(d->pitch[i] ? d->pitch[i] : d->width, d->width, d->height), 1, at,
				   "diff", i == 0 ? "source 0" : "source 1", err);
		if (rc != YT_OK)
			return rc;
	}
	if (d->block != 0)
		blocks = (uint64_t)((d->width + d->block - 1) / d->block) * ((d->height + d->block - 1) / d->block);
	return yt_check_room(&c->dst, sizeof(yt_motion) + 4 * blocks, 8, at, "diff", "the destination", err);
}

static inline yt_status yt_check_stats(const yt_cmd *c, uint32_t at, yt_error *err)
{
	const yt_plane_stats *s = &c->stats;
	const uint32_t pitch[3] = {s->pitch, 0, 0};
	yt_status rc;

	if (s->format > YT_FORMAT_GRAY || s->low > 255 || s->high > 255)
		return yt_fail(err, YT_E_INVALID, "command %u: stats: format %u, low %u, high %u: out of range", at, s->format, s->low,
			       s->high);
	/* Only the first plane is read. */
	rc = yt_check_frame(c, at, "stats", s->format <= YT_FORMAT_I420 ? (uint32_t)YT_FORMAT_GRAY : s->format, s->width, s->height, pitch,
			    err);
	return rc != YT_OK ? rc : yt_check_room(&c->dst, sizeof(yt_stats), 8, at, "stats", "the destination", err);
}

/* Everything about a command except where its ranges lie. */
static inline yt_status yt_check_cmd(const yt_cmd *c, uint32_t at, yt_error *err)
{
	switch (c->op) {
	case YT_OP_COPY:
		if (c->dst.len != c->src[0].len)
			return yt_fail(err, YT_E_INVALID, "command %u: copy: source has %llu bytes, destination %llu", at,
				       (unsigned long long)c->src[0].len, (unsigned long long)c->dst.len);
		return YT_OK;
	case YT_OP_PREPROCESS:
		return yt_check_preprocess(c, at, err);
	case YT_OP_REDUCE:
		return yt_check_reduce(c, at, err);
	case YT_OP_RECORD:
		return YT_OK;
	case YT_OP_LAUNCH:
		return yt_check_launch(c, at, err);
	case YT_OP_DECODE:
		return yt_check_decode(c, at, err);
	case YT_OP_NMS:
		return yt_check_nms(c, at, err);
	case YT_OP_SOFTMAX:
	case YT_OP_TOPK:
		return yt_check_rows(c, at, err);
	case YT_OP_CONVERT:
		return yt_check_convert(c, at, err);
	case YT_OP_GEMM:
		return yt_check_gemm(c, at, err);
	case YT_OP_ROI:
		return yt_check_roi(c, at, err);
	case YT_OP_DIFF:
		return yt_check_diff(c, at, err);
	case YT_OP_GATHER:
		return yt_check_gather(c, at, err);
	case YT_OP_MASKS:
		return yt_check_masks(c, at, err);
	case YT_OP_STATS:
		return yt_check_stats(c, at, err);
	default:
		return yt_fail(err, YT_E_INVALID, "command %u: unknown operation %u in ABI %u.%u", at, c->op, YT_ABI_MAJOR,
			       YT_ABI_MINOR);
	}
}

/* Refuses well-formed commands that this backend lacks: `ops` is its yt_api.ops. */
static inline yt_status yt_check_there(const yt_cmd *c, uint32_t at, uint64_t ops, const char *backend, yt_error *err)
{
	if ((ops >> (c->op & 63) & 1) == 0)
		return yt_fail(err, YT_E_NOT_SUPPORTED, "command %u: the %s backend does not support operation %u", at, backend, c->op);
	return YT_OK;
}

/* After resolution: what a command writes must not be what it reads. */
static inline yt_status yt_check_overlap(const yt_cmd *c, uint32_t at, const yt_operands *o, uint8_t *const p[], yt_error *err)
{
	uintptr_t dst = (uintptr_t)p[0];
	uint32_t i;

	for (i = 1; i < o->n; i++) {
		uintptr_t src = (uintptr_t)p[i];

		if (c->dst.len == 0 || o->range[i]->len == 0 || dst >= src + o->range[i]->len || src >= dst + c->dst.len)
			continue;
		return yt_fail(err, YT_E_INVALID, "command %u: source %u and destination overlap", at, i - 1);
	}
	return YT_OK;
}

#endif /* YT_CHECK_H */
