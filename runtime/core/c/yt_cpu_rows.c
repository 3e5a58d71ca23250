/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax, argmax and top-k of rows. Softmax reads a row three times, which is
 * from the cache for rows that fit it.
 */
#include "yt_cpu.h"
#include "yt_clones.h"
#include "yt_ops.h"

/* Adds exp(x - top) to the lanes and keeps it in e. */
YT_CLONES
static void exp_row(float *restrict lane, float *restrict e, float top, uint32_t n)
{
	uint32_t j;

	for (j = 0; j < n; j++) {
		e[j] = yt_exp(e[j] - top);
		lane[j] += e[j];
	}
}

YT_CLONES
static void load_row(uint32_t type, const void *src, uint64_t first, float *restrict out, uint32_t n)
{
	uint32_t j;

	for (j = 0; j < n; j++)
		out[j] = yt_load(type, src, first + j);
}

YT_CLONES
static void max_row(float *restrict lane, const float *restrict x, uint32_t n)
{
	uint32_t j;

	for (j = 0; j < n; j++)
		lane[j] = yt_reduce_max(lane[j], x[j]);
}

static float fold(uint32_t op, float *lane)
{
	uint32_t half, j;

	for (half = YT_ROW_LANES / 2; half > 0; half /= 2)
		for (j = 0; j < half; j++)
			lane[j] = yt_reduce_combine(op, lane[j], lane[j + half]);
	return lane[0];
}

static void softmax_row(const yt_rows *r, const void *src, void *dst, uint64_t first)
{
	float lane[YT_ROW_LANES], x[YT_ROW_LANES], top, sum;
	uint32_t at, j;

	for (j = 0; j < YT_ROW_LANES; j++)
		lane[j] = yt_reduce_identity(YT_REDUCE_MAX);
	for (at = 0; at < r->cols; at += YT_ROW_LANES) {
		uint32_t n = r->cols - at < YT_ROW_LANES ? r->cols - at : YT_ROW_LANES;

		load_row(r->in, src, first + at, x, n);
		max_row(lane, x, n);
	}
	top = fold(YT_REDUCE_MAX, lane);
	for (j = 0; j < YT_ROW_LANES; j++)
		lane[j] = 0.0f;
	for (at = 0; at < r->cols; at += YT_ROW_LANES) {
		uint32_t n = r->cols - at < YT_ROW_LANES ? r->cols - at : YT_ROW_LANES;

		load_row(r->in, src, first + at, x, n);
		exp_row(lane, x, top, n);
		if (r->out == YT_F32) /* kept for the last pass */
			for (j = 0; j < n; j++)
				((float *)dst)[first + at + j] = x[j];
	}
	sum = fold(YT_REDUCE_SUM, lane);
	for (at = 0; at < r->cols; at++) {
		float e = r->out == YT_F32 ? ((float *)dst)[first + at] : yt_exp(yt_load(r->in, src, first + at) - top);

		yt_store(r->out, dst, first + at, e / sum);
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
	uint64_t stride = stride_of(r);
	uint32_t i, j;

	for (i = 0; i < r->rows; i++) {
		uint64_t best = 0;

		for (j = 0; j < r->cols; j++) {
			uint64_t key = yt_rank_key(yt_load(r->in, src, i * stride + j), j);

			best = key > best ? key : best;
		}
		dst[i] = (int32_t)yt_rank_index(best);
	}
}

void yt_cpu_topk(const yt_rows *r, const void *src, yt_ranked *dst)
{
	uint64_t stride = stride_of(r), top[32];
	uint32_t i, j, n, at;

	for (i = 0; i < r->rows; i++, dst += r->k) {
		n = 0;
		for (j = 0; j < r->cols; j++) {
			uint64_t key = yt_rank_key(yt_load(r->in, src, i * stride + j), j);

			if (n == r->k && key < top[n - 1])
				continue;
			for (at = n < r->k ? n++ : n - 1; at > 0 && top[at - 1] < key; at--)
				top[at] = top[at - 1];
			top[at] = key;
		}
		for (j = 0; j < r->k; j++) {
			uint32_t index = yt_rank_index(top[j]);

			dst[j].value = yt_load(r->in, src, i * stride + index);
			dst[j].index = (int32_t)index;
		}
	}
}
