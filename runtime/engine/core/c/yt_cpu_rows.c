/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax, argmax and top-k of rows. Softmax reads a row three times, from the cache if the
 * row fits.
 */
#include "yt_cpu.h"
#include "yt_clones.h"
#include "yt_ops.h"

/* x and e are either the same or do not overlap. */
YT_CLONES
static void exp_row(const float *x, float top, float *e, uint32_t n)
{
	uint32_t j;

	for (j = 0; j < n; j++)
		e[j] = yt_exp(x[j] - top);
}

YT_CLONES
static void divide_row(float *x, float by, uint32_t n)
{
	uint32_t j;

	for (j = 0; j < n; j++)
		x[j] /= by;
}

/* The sort key of each of n elements, and the largest key. */
YT_CLONES
static uint32_t order_row(const float *restrict x, uint32_t *restrict order, uint32_t n)
{
	uint32_t top = 0, j;

	for (j = 0; j < n; j++)
		order[j] = yt_rank_order(x[j]);
	for (j = 0; j < n; j++)
		top = order[j] > top ? order[j] : top;
	return top;
}

static float fold(void combine(float *restrict, const float *restrict, uint32_t), float *lane)
{
	uint32_t half;

	for (half = YT_ROW_LANES / 2; half > 0; half /= 2)
		combine(lane, lane + half, half);
	return lane[0];
}

static uint32_t piece(const yt_rows *r, uint32_t at)
{
	return r->cols - at < YT_ROW_LANES ? r->cols - at : YT_ROW_LANES;
}

/* A piece of a row as floats, converted in `room` if it has another type. */
static const float *floats(const yt_rows *r, const void *src, uint64_t first, float *room, uint32_t n)
{
	if (r->in == YT_F32)
		return (const float *)src + first;
	yt_cpu_widen(r->in, src, first, room, n);
	return room;
}

static void softmax_row(const yt_rows *r, const void *src, void *dst, uint64_t first)
{
	float lane[YT_ROW_LANES], x[YT_ROW_LANES], top, sum;
	uint32_t at, j;

	for (j = 0; j < YT_ROW_LANES; j++)
		lane[j] = yt_reduce_identity(YT_REDUCE_MAX);
	for (at = 0; at < r->cols; at += YT_ROW_LANES)
		yt_cpu_max_row(lane, floats(r, src, first + at, x, piece(r, at)), piece(r, at));
	top = fold(yt_cpu_max_row, lane);
	for (j = 0; j < YT_ROW_LANES; j++)
		lane[j] = 0.0f;
	for (at = 0; at < r->cols; at += YT_ROW_LANES) {
		float *e = r->out == YT_F32 ? (float *)dst + first + at : x; /* kept for the last pass */

		exp_row(floats(r, src, first + at, x, piece(r, at)), top, e, piece(r, at));
		yt_cpu_add_row(lane, e, piece(r, at));
	}
	sum = fold(yt_cpu_add_row, lane);
	if (r->out == YT_F32) {
		divide_row((float *)dst + first, sum, r->cols);
		return;
	}
	for (at = 0; at < r->cols; at += YT_ROW_LANES) {
		exp_row(floats(r, src, first + at, x, piece(r, at)), top, x, piece(r, at));
		divide_row(x, sum, piece(r, at));
		yt_cpu_narrow(r->out, x, dst, first + at, piece(r, at));
	}
}

static uint64_t stride_of(const yt_rows *r)
{
	return r->stride != 0 ? r->stride : r->cols;
}

void yt_cpu_softmax(const yt_rows *r, const void *src, void *dst)
{
	uint64_t stride = stride_of(r);
	uint32_t i;

	for (i = 0; i < r->rows; i++)
		softmax_row(r, src, dst, i * stride);
}

void yt_cpu_argmax(const yt_rows *r, const void *src, int32_t *dst)
{
	float x[YT_ROW_LANES];
	uint32_t order[YT_ROW_LANES], i, at, j, top, best;

	for (i = 0; i < r->rows; i++) {
		best = 0; /* below the key of any element */
		for (at = 0; at < r->cols; at += YT_ROW_LANES) {
			top = order_row(floats(r, src, i * stride_of(r) + at, x, piece(r, at)), order, piece(r, at));
			if (top <= best)
				continue;
			best = top;
			for (j = 0; order[j] != top; j++)
				;
			dst[i] = (int32_t)(at + j);
		}
	}
}

/* Inserts key into the n largest of at most k; returns the new n. */
static uint32_t insert(uint64_t *top, uint32_t n, uint32_t k, uint64_t key)
{
	uint32_t at;

	if (n == k && key < top[n - 1])
		return n;
	for (at = n < k ? n++ : n - 1; at > 0 && top[at - 1] < key; at--)
		top[at] = top[at - 1];
	top[at] = key;
	return n;
}

void yt_cpu_topk(const yt_rows *r, const void *src, yt_ranked *dst)
{
	float x[YT_ROW_LANES];
	uint32_t order[YT_ROW_LANES], i, at, j, n;
	uint64_t top[32];

	for (i = 0; i < r->rows; i++, dst += r->k) {
		uint64_t row = i * stride_of(r);

		n = 0;
		for (at = 0; at < r->cols; at += YT_ROW_LANES) {
			/* On equal keys the earlier element wins. */
			if (order_row(floats(r, src, row + at, x, piece(r, at)), order, piece(r, at)) <= (n == r->k ? (uint32_t)(top[n - 1] >> 32) : 0))
				continue;
			for (j = 0; j < piece(r, at); j++)
				n = insert(top, n, r->k, yt_rank_of(order[j], at + j));
		}
		for (j = 0; j < r->k; j++) {
			uint32_t index = yt_rank_index(top[j]);

			dst[j].value = yt_load(r->in, src, row + index);
			dst[j].index = (int32_t)index;
		}
	}
}
