/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and top-k of rows. Softmax reads a row three times, from the cache if the
 * row fits.
 */
#include "yt_cpu.h"
#include "yt_clones.h"
#include "yt_ops.h"

#include <string.h>

#define GROUP 64u /* elements compared at once by top-k */
#define TOP_LANES 64u /* four vectors, because the next maximum of a lane waits for the last */

/* Parts of yt_cpu_softmax. */
#define PART static inline __attribute__((always_inline))

/* most[j] is the largest of its elements; a NaN may be skipped. */
PART void top_row(float *restrict most, const float *restrict x, uint32_t n)
{
	size_t j, at; /* 32 bits could wrap, and then the compiler loads one by one */

	for (at = 0; at + TOP_LANES <= n; at += TOP_LANES)
		for (j = 0; j < TOP_LANES; j++)
			most[j] = most[j] > x[at + j] ? most[j] : x[at + j];
	for (j = 0; at + j < n; j++)
		most[j] = most[j] > x[at + j] ? most[j] : x[at + j];
}

/* e[j] = exp(x[j] - top), which is added to sum[j]. x and e may be the same. */
PART void exp_row(const float *x, float top, float *e, float *restrict sum, uint32_t n)
{
	uint32_t j;

#pragma GCC ivdep
	for (j = 0; j < n; j++) {
		float v = yt_exp_below(x[j] - top);

		e[j] = v;
		sum[j] += v;
	}
}

PART void scale_row(float *x, float by, uint32_t n)
{
	uint32_t j;

	for (j = 0; j < n; j++)
		x[j] = yt_softmax_of(x[j], by);
}

/* Halves whose size the compiler knows become vectors. */
#define LARGER(half) \
	for (j = 0; j < half; j++) \
		most[j] = most[j] > most[j + half] ? most[j] : most[j + half]
#define ADD(half) \
	for (j = 0; j < half; j++) \
		sum[j] += sum[j + half]

PART float top_of(float *most)
{
	uint32_t j;

	_Static_assert(TOP_LANES == 64, "the halves");
	LARGER(32);
	LARGER(16);
	LARGER(8);
	LARGER(4);
	LARGER(2);
	LARGER(1);
	return most[0];
}

PART float sum_of(float *sum)
{
	uint32_t j;

	_Static_assert(YT_ROW_LANES == 256, "the halves");
	ADD(128);
	ADD(64);
	ADD(32);
	ADD(16);
	ADD(8);
	ADD(4);
	ADD(2);
	ADD(1);
	return sum[0];
}

static uint32_t piece(const yt_rows *r, uint32_t at)
{
	return r->cols - at < YT_ROW_LANES ? r->cols - at : YT_ROW_LANES;
}

static uint64_t stride_of(const yt_rows *r)
{
	return r->stride != 0 ? r->stride : r->cols;
}

/* The largest element of a row that starts at element `first`; a NaN may be skipped. */
PART float row_top(const yt_rows *r, const void *src, uint64_t first)
{
	float most[TOP_LANES], x[YT_ROW_LANES];
	uint32_t at, j;

	for (j = 0; j < TOP_LANES; j++)
		most[j] = yt_reduce_identity(YT_REDUCE_MAX);
	if (r->in == YT_F32)
		top_row(most, (const float *)src + first, r->cols);
	else
		for (at = 0; at < r->cols; at += YT_ROW_LANES)
			top_row(most, yt_cpu_floats(r->in, src, first + at, x, piece(r, at)), piece(r, at));
	return top_of(most);
}

/* Starts loading n floats. */
PART void fetch(const float *x, uint32_t n)
{
	uint32_t j;

	for (j = 0; j < n; j += 16)
		__builtin_prefetch(x + j);
}

/* The next row's maximum is sought before a row's sum is used, which is ready only some time after
 * the last addition. */
YT_CLONES
void yt_cpu_softmax(const yt_rows *r, const void *src, void *dst)
{
	float sum[YT_ROW_LANES], x[YT_ROW_LANES], top = row_top(r, src, 0), by, next = 0.0f;
	uint64_t stride = stride_of(r), first = 0;
	uint32_t i, at, j;

	for (i = 0; i < r->rows; i++, first += stride, top = next) {
		int more = i + 1 < r->rows;

		for (j = 0; j < YT_ROW_LANES; j++)
			sum[j] = 0.0f;
		for (at = 0; at < r->cols; at += YT_ROW_LANES) {
			if (more && r->in == YT_F32)
				fetch((const float *)src + first + stride + at, piece(r, at));
			exp_row(yt_cpu_floats(r->in, src, first + at, x, piece(r, at)), top,
				r->out == YT_F32 ? (float *)dst + first + at : x /* not kept */, sum, piece(r, at));
		}
		if (more)
			next = row_top(r, src, first + stride);
		by = yt_softmax_scale(sum_of(sum));
		if (r->out == YT_F32) {
			scale_row((float *)dst + first, by, r->cols);
			continue;
		}
		for (at = 0; at < r->cols; at += YT_ROW_LANES) {
			exp_row(yt_cpu_floats(r->in, src, first + at, x, piece(r, at)), top, x, sum, piece(r, at));
			scale_row(x, by, piece(r, at));
			yt_cpu_narrow(r->out, x, dst, first + at, piece(r, at));
		}
	}
}

/* Bit j: element j of a group is above floor, or one of them is NaN. */
YT_CLONES
static uint64_t above(const float *x, float floor)
{
	uint8_t flag[GROUP];
	uint64_t word, all = 0;
	uint32_t j;

	for (j = 0; j < GROUP; j++)
		flag[j] = !(x[j] <= floor);
	for (j = 0; j < GROUP; j += 8) {
		memcpy(&word, flag + j, sizeof word);
		all |= (word * 0x0102040810204080u) >> 56 << j; /* the first byte is the lowest: little endian */
	}
	return all;
}

/* The k largest keys so far, in falling order; 0 is below all. */
typedef struct leaders {
	uint64_t key[32];
	uint32_t k;
	float floor; /* no element up to this one gets in; NaN before there are k */
} leaders;

/* Equal keys do not occur: the earlier of equal elements has the larger key. Where it goes cannot
 * be predicted, so there is no branch. */
static void insert(leaders *l, float x, uint32_t index)
{
	uint64_t key = yt_rank_key(x, index);
	uint32_t i;

	for (i = 0; i < l->k; i++) {
		uint64_t here = l->key[i];

		l->key[i] = here > key ? here : key;
		key = here > key ? key : here;
	}
	l->floor = yt_rank_value(l->key[l->k - 1]);
}

void yt_cpu_topk(const yt_rows *r, const void *src, yt_ranked *dst)
{
	float x[YT_ROW_LANES];
	uint32_t i, at, from, j;
	leaders l;

	l.k = r->k;
	for (i = 0; i < r->rows; i++, dst += r->k) {
		uint64_t row = i * stride_of(r), mask;

		memset(l.key, 0, sizeof l.key);
		l.floor = yt_rank_value(0);
		for (at = 0; at < r->cols; at += YT_ROW_LANES) {
			const float *v = yt_cpu_floats(r->in, src, row + at, x, piece(r, at));
			uint32_t n = piece(r, at);

			for (from = 0; from + GROUP <= n; from += GROUP)
				for (mask = above(v + from, l.floor); mask != 0; mask &= mask - 1) {
					j = from + (uint32_t)__builtin_ctzll(mask);
					insert(&l, v[j], at + j);
				}
			for (; from < n; from++)
				if (!(v[from] <= l.floor))
					insert(&l, v[from], at + from);
		}
		for (j = 0; j < r->k; j++) {
			uint32_t index = yt_rank_index(l.key[j]);

			dst[j].value = yt_load(r->in, src, row + index);
			dst[j].index = (int32_t)index;
		}
	}
}
