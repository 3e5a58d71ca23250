/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_check.h - what a caller may get wrong, checked once for every backend.
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

static inline uint32_t yt_plane_count(const yt_cmd *c)
{
	return c->op == YT_OP_PREPROCESS ? (c->pre.format == YT_FORMAT_I420 ? 3u : 2u)
	       : c->op == YT_OP_COPY || c->op == YT_OP_REDUCE ? 1u
							      : 0u;
}

static inline yt_status yt_check_preprocess(const yt_cmd *c, uint32_t at, yt_error *err)
{
	const yt_preprocess *p = &c->pre;
	uint32_t cw = (p->width + 1) / 2, ch = (p->height + 1) / 2, i;
	uint32_t nv12 = p->format == YT_FORMAT_NV12;
	uint32_t row[3], rows[3];
	uint64_t need;

	if (p->format > YT_FORMAT_I420 || p->fit > YT_FIT_LETTERBOX || p->color > YT_COLOR_BGR ||
	    p->chroma > YT_CHROMA_BILINEAR || p->matrix > YT_MATRIX_BT601_FULL)
		return yt_fail(err, YT_E_INVALID,
			       "command %u: preprocess: unknown option: format %u, fit %u, color %u, chroma %u, matrix %u", at,
			       p->format, p->fit, p->color, p->chroma, p->matrix);
	if (p->width < 1 || p->height < 1 || p->width > YT_MAX_SIDE || p->height > YT_MAX_SIDE)
		return yt_fail(err, YT_E_INVALID, "command %u: preprocess: frame of %ux%u pixels; each side must be 1 to %u", at,
			       p->width, p->height, YT_MAX_SIDE);
	if (p->out_w < 1 || p->out_h < 1 || p->out_w > YT_MAX_SIDE || p->out_h > YT_MAX_SIDE)
		return yt_fail(err, YT_E_INVALID, "command %u: preprocess: tensor of %ux%u pixels; each side must be 1 to %u", at,
			       p->out_w, p->out_h, YT_MAX_SIDE);
	if ((p->crop_x | p->crop_y | p->crop_w | p->crop_h) != 0 &&
	    (p->crop_w < 1 || p->crop_h < 1 || p->crop_x >= p->width || p->crop_y >= p->height ||
	     p->crop_w > p->width - p->crop_x || p->crop_h > p->height - p->crop_y))
		return yt_fail(err, YT_E_INVALID, "command %u: preprocess: crop %ux%u at (%u, %u) is not inside the %ux%u frame",
			       at, p->crop_w, p->crop_h, p->crop_x, p->crop_y, p->width, p->height);
	if (p->pad > 255)
		return yt_fail(err, YT_E_INVALID, "command %u: preprocess: pad is %u; it must be 0 to 255", at, p->pad);
	for (i = 0; i < 3; i++) {
		float scale = 1.0f / (255.0f * p->std[i]);

		if (!yt_finite(p->mean[i]) || !yt_finite(p->std[i]) || p->std[i] == 0.0f || !yt_finite(scale))
			return yt_fail(err, YT_E_INVALID,
				       "command %u: preprocess: channel %u: mean %g, std %g; both must be finite and std not 0", at,
				       i, (double)p->mean[i], (double)p->std[i]);
	}
	row[0] = p->width;
	rows[0] = p->height;
	row[1] = nv12 ? 2 * cw : cw;
	row[2] = cw;
	rows[1] = rows[2] = ch;
	for (i = 0; i < yt_plane_count(c); i++) {
		uint64_t pitch = p->pitch[i] ? p->pitch[i] : row[i];

		if (pitch < row[i])
			return yt_fail(err, YT_E_INVALID,
				       "command %u: preprocess: plane %u: a pitch of %u bytes is shorter than its row of %u", at, i,
				       p->pitch[i], row[i]);
		need = yt_plane_bytes(pitch, row[i], rows[i]);
		if (c->src[i].len < need)
			return yt_fail(err, YT_E_INVALID, "command %u: preprocess: plane %u has %llu bytes, needs %llu", at, i,
				       (unsigned long long)c->src[i].len, (unsigned long long)need);
	}
	need = (uint64_t)12 * p->out_w * p->out_h;
	if (c->dst.len < need)
		return yt_fail(err, YT_E_INVALID, "command %u: preprocess: a %ux%u tensor has %llu bytes, the destination %llu", at,
			       p->out_w, p->out_h, (unsigned long long)need, (unsigned long long)c->dst.len);
	if (c->dst.off % 4 != 0)
		return yt_fail(err, YT_E_INVALID, "command %u: preprocess: the destination is not aligned to 4 bytes", at);
	return YT_OK;
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
	case YT_OP_MEMSET:
		if (c->value > 255)
			return yt_fail(err, YT_E_INVALID, "command %u: memset: value %u is not a byte", at, c->value);
		return YT_OK;
	case YT_OP_PREPROCESS:
		return yt_check_preprocess(c, at, err);
	case YT_OP_REDUCE:
		if (c->value > YT_REDUCE_MAX)
			return yt_fail(err, YT_E_INVALID, "command %u: reduce: operation %u is unknown", at, c->value);
		if (c->src[0].len % 4 != 0 || c->src[0].off % 4 != 0 || c->dst.off % 4 != 0)
			return yt_fail(err, YT_E_INVALID, "command %u: reduce: ranges must be whole, aligned floats", at);
		if (c->dst.len < 4)
			return yt_fail(err, YT_E_INVALID, "command %u: reduce: the destination has %llu bytes, needs 4", at,
				       (unsigned long long)c->dst.len);
		return YT_OK;
	case YT_OP_RECORD:
		return YT_OK;
	default:
		return yt_fail(err, YT_E_INVALID, "command %u: operation %u is unknown to ABI %u.%u", at, c->op, YT_ABI_MAJOR,
			       YT_ABI_MINOR);
	}
}

/* After resolution: what a command writes must not be what it reads. */
static inline yt_status yt_check_overlap(const yt_cmd *c, uint32_t at, uintptr_t dst, const uintptr_t src[3], yt_error *err)
{
	uint32_t i;

	for (i = 0; i < yt_plane_count(c); i++)
		if (c->dst.len != 0 && c->src[i].len != 0 && dst < src[i] + c->src[i].len && src[i] < dst + c->dst.len)
			return yt_fail(err, YT_E_INVALID, "command %u: source %u and destination overlap", at, i);
	return YT_OK;
}

#endif /* YT_CHECK_H */
