/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_names.h - the names of operations, for messages, faults and kernel_config, and the
 * valid launch configurations of kernels.
 */
#ifndef YT_NAMES_H
#define YT_NAMES_H

#include "yt_check.h"

#include <string.h>

/* block_min 0: the operation has no kernel of its own. */
typedef struct yt_kernel_limits {
	const char *name;
	uint32_t block, block_min, block_max, block_step; /* threads              */
	uint32_t tile, tile_min, tile_max;                /* 0: has no tile       */
} yt_kernel_limits;

/* Indexed by YT_OP_*. The reduction's tree is its block: no choice. A kernel's
 * launch bounds in runtime/engine/core/cuda are its block_max. */
static inline const yt_kernel_limits *yt_kernel_of(uint32_t op)
{
	static const yt_kernel_limits limits[YT_OP_LAST + 1] = {
		{"", 0, 0, 0, 0, 0, 0, 0},
		{"copy", 256, 32, 256, 32, 0, 0, 0},
		{"preprocess", 256, 32, 256, 32, 0, 0, 0},
		{"reduce", 256, 256, 256, 256, 0, 0, 0},
		{"record", 0, 0, 0, 0, 0, 0, 0},
		{"launch", 0, 0, 0, 0, 0, 0, 0},
		{"decode", 256, 256, 256, 256, 0, 0, 0},
		{"nms", 256, 256, 256, 256, 0, 0, 0},
		{"softmax", 256, 256, 256, 256, 0, 0, 0},
		{"topk", 256, 256, 256, 256, 0, 0, 0},
		{"convert", 256, 32, 256, 32, 0, 0, 0},
		{"gemm", 256, 64, 256, 64, 128, 32, 256},
		{"roi", 256, 32, 256, 32, 0, 0, 0},
		{"diff", 256, 256, 256, 256, 0, 0, 0},
		{"gather", 256, 256, 256, 256, 0, 0, 0},
		{"masks", 256, 256, 256, 256, 0, 0, 0},
		{"stats", 256, 256, 256, 256, 0, 0, 0},
	};

	return &limits[op <= YT_OP_LAST ? op : 0];
}

static inline const char *yt_op_name(uint32_t op)
{
	return yt_kernel_of(op)->name;
}

/* Checks cfg and gives the operation it is for; blocks in *block, *tile are never 0
 * for a kernel that has them. */
static inline yt_status yt_check_config(const char *kernel, const yt_kernel_config *cfg, uint32_t *op, uint32_t *block,
					uint32_t *tile, yt_error *err)
{
	const yt_kernel_limits *l;
	uint32_t i;

	for (i = 1; i <= YT_OP_LAST; i++)
		if (strcmp(yt_op_name(i), kernel) == 0)
			break;
	if (i > YT_OP_LAST || yt_kernel_of(i)->block == 0)
		return yt_fail(err, YT_E_INVALID,
			       "kernel_config: no built-in kernel \"%.32s\"; use copy, preprocess, reduce, decode, nms, softmax, "
			       "topk, convert, gemm, roi, diff, gather, masks or stats",
			       kernel);
	l = yt_kernel_of(i);
	*op = i;
	*block = cfg->block != 0 ? cfg->block : l->block;
	*tile = cfg->tile != 0 ? cfg->tile : l->tile;
	if (*block < l->block_min || *block > l->block_max || *block % l->block_step != 0)
		return yt_fail(err, YT_E_INVALID, "kernel_config: %s: block of %u threads; need %u to %u in steps of %u", l->name,
			       *block, l->block_min, l->block_max, l->block_step);
	if (cfg->tile != 0 && l->tile == 0)
		return yt_fail(err, YT_E_INVALID, "kernel_config: %s has no tile size; got %u", l->name, cfg->tile);
	if (cfg->tile != 0 && (cfg->tile < l->tile_min || cfg->tile > l->tile_max || (cfg->tile & (cfg->tile - 1)) != 0))
		return yt_fail(err, YT_E_INVALID, "kernel_config: %s: tile of %u; need a power of two from %u to %u", l->name,
			       cfg->tile, l->tile_min, l->tile_max);
	return YT_OK;
}

/* Reports whether `value` of a command may be a YT_CONFIG. */
static inline int yt_configures(uint32_t op)
{
	return op != YT_OP_REDUCE && yt_kernel_of(op)->block != 0;
}

/* The configuration of a command: its own, or else the device's. */
static inline uint32_t yt_block_of(const yt_cmd *c, uint32_t device)
{
	return yt_configures(c->op) && (c->value & 0xffff) != 0 ? c->value & 0xffff : device;
}

static inline uint32_t yt_tile_of(const yt_cmd *c, uint32_t device)
{
	return yt_configures(c->op) && c->value >> 16 != 0 ? c->value >> 16 : device;
}

/* After yt_check_cmd. */
static inline yt_status yt_check_own_config(const yt_cmd *c, yt_error *err)
{
	yt_kernel_config own = {sizeof own, c->value & 0xffff, c->value >> 16};
	uint32_t op, block, tile;

	if (!yt_configures(c->op) || c->value == 0)
		return YT_OK;
	return yt_check_config(yt_op_name(c->op), &own, &op, &block, &tile, err);
}

#endif /* YT_NAMES_H */
