/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one operation on the CPU. To add an operation, add its bit to yt_cpu_ops, its case
 * below, and its kernel in a file of its own.
 */
#include "yt_cpu.h"
#include "yt_names.h"

#include <stdlib.h>
#include <string.h>

/* All operations. */
const uint64_t yt_cpu_ops = (2ull << YT_OP_LAST) - 2;

void *yt_cpu_room(yt_cpu_scratch *s, size_t bytes)
{
	if (s->bytes < bytes + 64) {
		free(s->mem);
		s->bytes = 0;
		s->mem = malloc(bytes + 64);
		if (s->mem == NULL)
			return NULL;
		s->bytes = bytes + 64;
	}
	return (void *)(((uintptr_t)s->mem + 63) / 64 * 64);
}

static yt_status room(int rc, uint32_t at, const char *op, yt_error *err)
{
	return rc == 0 ? YT_OK : yt_fail(err, YT_E_OOM, "command %u: %s: no memory for temporary data", at, op);
}

static const void *as_boxes(const uint8_t *p)
{
	return p; /* its alignment was checked */
}

yt_cpu_config yt_cpu_built_in(uint32_t op)
{
	/* A block of 128 KiB is half of the smallest L2 cache. */
	static const yt_cpu_config gemm = {128, 256};
	yt_cpu_config other = {yt_kernel_of(op)->block, yt_kernel_of(op)->tile};

	return op == YT_OP_GEMM ? gemm : other;
}

/* Those that need more than a call are functions of their own, so that the others pay nothing
 * for them. */
#define OWN static __attribute__((noinline)) yt_status

OWN reduce(const yt_cmd *c, uint8_t *const p[])
{
	float value = yt_cpu_reduce(c->value, (const float *)(const void *)p[1], c->src[0].len / sizeof value);

	memcpy(p[0], &value, sizeof value);
	return YT_OK;
}

OWN preprocess(const yt_cmd *c, uint32_t at, uint8_t *const p[], yt_cpu_scratch *scratch, yt_error *err)
{
	uint32_t n = yt_format_planes(c->pre.format);
	const uint8_t *planes[3] = {p[1], n > 1 ? p[2] : NULL, n > 2 ? p[3] : NULL};
	yt_pre_plan plan = yt_plan_preprocess(&c->pre);

	return room(yt_cpu_preprocess(&plan, planes, p[0], scratch), at, "preprocess", err);
}

OWN roi(const yt_cmd *c, uint32_t at, uint8_t *const p[], yt_cpu_scratch *scratch, yt_error *err)
{
	uint32_t n = yt_format_planes(c->roi.format);
	const uint8_t *planes[3] = {p[1], n > 1 ? p[2] : NULL, n > 2 ? p[3] : NULL};

	return room(yt_cpu_roi(&c->roi, as_boxes(p[1 + n]), planes, p[0], scratch), at, "roi", err);
}

OWN decode(const yt_cmd *c, uint32_t at, uint8_t *const p[], yt_cpu_scratch *scratch, yt_error *err)
{
	return room(yt_cpu_decode(&c->decode, p[1], p[0], scratch), at, "decode", err);
}

OWN nms(const yt_cmd *c, uint32_t at, uint8_t *const p[], yt_cpu_scratch *scratch, yt_error *err)
{
	return room(yt_cpu_nms(&c->nms, p[1], p[0], scratch), at, "nms", err);
}

OWN gemm(const yt_cmd *c, uint32_t at, uint8_t *const p[], const yt_cpu_config *config, yt_cpu_scratch *scratch, yt_error *err)
{
	const yt_cpu_config cut = config != NULL ? *config : yt_cpu_built_in(c->op);
	const float *bias = c->src[2].len != 0 ? (const float *)(const void *)p[3] : NULL;

	return room(yt_cpu_gemm(&c->gemm, p[1], p[2], bias, p[0], cut.block, cut.tile, scratch), at, "gemm", err);
}

OWN unknown(const yt_cmd *c, uint32_t at, yt_error *err)
{
	return yt_fail(err, YT_E_INTERNAL, "command %u: operation %u passed the checks but is not implemented", at, c->op);
}

yt_status yt_cpu_run(const yt_cmd *c, uint32_t at, uint8_t *const p[], const yt_cpu_config *config, yt_cpu_scratch *scratch,
		     yt_error *err)
{
	switch (c->op) {
	case YT_OP_COPY:
		if (c->dst.len != 0)
			memcpy(p[0], p[1], (size_t)c->dst.len);
		return YT_OK;
	case YT_OP_PREPROCESS:
		return preprocess(c, at, p, scratch, err);
	case YT_OP_ROI:
		return roi(c, at, p, scratch, err);
	case YT_OP_REDUCE:
		return reduce(c, p);
	case YT_OP_DECODE:
		return decode(c, at, p, scratch, err);
	case YT_OP_NMS:
		return nms(c, at, p, scratch, err);
	case YT_OP_SOFTMAX:
		yt_cpu_softmax(&c->rows, p[1], p[0]);
		return YT_OK;
	case YT_OP_TOPK:
		yt_cpu_topk(&c->rows, p[1], (yt_ranked *)(void *)p[0]);
		return YT_OK;
	case YT_OP_LAUNCH:
		yt_cpu_chain((const yt_chain *)(const void *)p[YT_CPU_KERNEL], c, p);
		return YT_OK;
	case YT_OP_CONVERT:
		yt_cpu_convert(&c->convert, p[1], (c->convert.flags & YT_CONVERT_CHANNEL_SCALE) != 0 ? (const float *)(const void *)p[2] : NULL,
			       p[0]);
		return YT_OK;
	case YT_OP_GEMM:
		return gemm(c, at, p, config, scratch, err);
	case YT_OP_DIFF:
		yt_cpu_diff(&c->diff, p[1], p[2], p[0]);
		return YT_OK;
	case YT_OP_GATHER:
		yt_cpu_gather(&c->gather, p[1], as_boxes(p[2]), (float *)(void *)p[0]);
		return YT_OK;
	case YT_OP_MASKS:
		return room(yt_cpu_masks(&c->masks, p[1], (const float *)(const void *)p[2], as_boxes(p[3]), p[0], c->dst.len, scratch), at,
			    "masks", err);
	case YT_OP_STATS:
		return room(yt_cpu_stats(&c->stats, p[1], (yt_stats *)(void *)p[0], scratch), at, "stats", err);
	default:
		return unknown(c, at, err);
	}
}
