/* SPDX-License-Identifier: Apache-2.0
 *
 * Reduction in the tree of yt_math.h. Reads 4n bytes once; n operations. Compilers vectorise
 * over the lanes, which are independent: no reassociation is needed, and the result is the
 * same on every processor.
 */
#include "yt_cpu.h"
#include "yt_clones.h"
#include "yt_ops.h"

/* 14 bits per upper level: enough for any length in bytes that fits 64 bits. */
#define UPPER_LEVELS 5

typedef struct level {
	float lane[YT_REDUCE_LANES];
	uint32_t fill; /* elements of the open chunk */
	uint64_t total;
} level;

static float fold(uint32_t op, float *lane)
{
	uint32_t half, j;

	for (half = YT_REDUCE_LANES / 2; half > 0; half /= 2)
		for (j = 0; j < half; j++)
			lane[j] = yt_reduce_combine(op, lane[j], lane[j + half]);
	return lane[0];
}

YT_CLONES
static void add_row_sum(float *restrict lane, const float *restrict x, uint32_t n)
{
	uint32_t j;

	for (j = 0; j < n; j++)
		lane[j] += x[j];
}

YT_CLONES
static void add_row_min(float *restrict lane, const float *restrict x, uint32_t n)
{
	uint32_t j;

	for (j = 0; j < n; j++)
		lane[j] = yt_reduce_min(lane[j], x[j]);
}

YT_CLONES
static void add_row_max(float *restrict lane, const float *restrict x, uint32_t n)
{
	uint32_t j;

	for (j = 0; j < n; j++)
		lane[j] = yt_reduce_max(lane[j], x[j]);
}

static void clear(uint32_t op, float *lane)
{
	float identity = yt_reduce_identity(op);
	uint32_t j;

	for (j = 0; j < YT_REDUCE_LANES; j++)
		lane[j] = identity;
}

static float chunk(uint32_t op, float *lane, const float *x, uint64_t n)
{
	uint64_t at;

	clear(op, lane);
	for (at = 0; at < n; at += YT_REDUCE_LANES) {
		uint32_t m = n - at < YT_REDUCE_LANES ? (uint32_t)(n - at) : YT_REDUCE_LANES;

		if (op == YT_REDUCE_SUM)
			add_row_sum(lane, x + at, m);
		else if (op == YT_REDUCE_MIN)
			add_row_min(lane, x + at, m);
		else
			add_row_max(lane, x + at, m);
	}
	return fold(op, lane);
}

static void push(uint32_t op, level *l, float v)
{
	for (;;) {
		uint32_t j = l->fill % YT_REDUCE_LANES;

		if (l->fill == 0)
			clear(op, l->lane);
		l->lane[j] = yt_reduce_combine(op, l->lane[j], v);
		l->total++;
		if (++l->fill < YT_REDUCE_CHUNK)
			return;
		l->fill = 0;
		v = fold(op, l->lane);
		l++;
	}
}

float yt_cpu_reduce(uint32_t op, const float *x, uint64_t n)
{
	float lane[YT_REDUCE_LANES];
	level upper[UPPER_LEVELS];
	uint64_t at;
	uint32_t i;

	if (n == 0)
		return yt_reduce_identity(op);
	if (n <= YT_REDUCE_CHUNK)
		return chunk(op, lane, x, n);
	for (i = 0; i < UPPER_LEVELS; i++) {
		upper[i].fill = 0;
		upper[i].total = 0;
	}
	for (at = 0; at < n; at += YT_REDUCE_CHUNK)
		push(op, upper, chunk(op, lane, x + at, n - at < YT_REDUCE_CHUNK ? n - at : YT_REDUCE_CHUNK));
	for (i = 0; i + 1 < UPPER_LEVELS; i++) {
		if (upper[i].total == 1) /* the remaining one */
			return upper[i].lane[0];
		if (upper[i].fill > 0) {
			upper[i].fill = 0;
			push(op, &upper[i + 1], fold(op, upper[i].lane));
		}
	}
	return upper[i].lane[0];
}
