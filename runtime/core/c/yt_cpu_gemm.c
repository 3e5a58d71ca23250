/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of matrices. A block of B is brought to one type, row by row, and stays in
 * the second-level cache while every row of A runs over it. 2 m n k operations.
 */
#include "yt_cpu.h"
#include "yt_clones.h"
#include "yt_ops.h"

#include <string.h>

#define MR 4u
#define MAX_DEPTH 256u

/* The block of B that stays in the cache: depth rows of width elements. */
typedef struct cut {
	uint32_t depth, width;
} cut;

typedef struct matrix {
	const void *p;
	uint64_t row, col; /* elements from one to the next */
	uint32_t type;
} matrix;

static float at(const matrix *m, uint64_t r, uint64_t c)
{
	return yt_load(m->type, m->p, r * m->row + c * m->col);
}

static int32_t at8(const matrix *m, uint64_t r, uint64_t c)
{
	return ((const int8_t *)m->p)[r * m->row + c * m->col];
}

/* acc[r][j] += sum over p of a[r][p] * b[p][j], for MR rows. */
YT_CLONES
static void inner_float(float *restrict acc, const float *restrict a, const float *restrict b, cut k, uint32_t kc)
{
	const size_t n = k.width & ~31u;
	uint32_t p;
	size_t j;

	for (p = 0; p < kc; p++) {
		const float *row = b + p * n;
		float a0 = a[p], a1 = a[k.depth + p], a2 = a[2 * k.depth + p], a3 = a[3 * k.depth + p];

		for (j = 0; j < n; j++) {
			acc[j] += a0 * row[j];
			acc[n + j] += a1 * row[j];
			acc[2 * n + j] += a2 * row[j];
			acc[3 * n + j] += a3 * row[j];
		}
	}
}

/* Sums wrap as two's complement does, beyond 133 000 products of extremes. */
YT_CLONES
static void inner_int(uint32_t *restrict acc, const int32_t *restrict a, const int32_t *restrict b, cut k, uint32_t kc)
{
	const size_t n = k.width & ~31u;
	uint32_t p, r;
	size_t j;

	for (p = 0; p < kc; p++)
		for (r = 0; r < MR; r++) {
			int32_t v = a[r * k.depth + p];

			for (j = 0; j < n; j++)
				acc[r * n + j] += (uint32_t)(v * b[p * n + j]);
		}
}

/* One row of results. */
static void finish(const yt_gemm *g, const void *acc, const float *bias, void *c, uint64_t first, uint32_t j0, uint32_t n)
{
	uint32_t j;

	for (j = 0; j < n; j++) {
		if (g->out == YT_I32 && bias == NULL && g->act == YT_ACT_NONE) {
			((int32_t *)c)[first + j] = ((const int32_t *)acc)[j];
			continue;
		}
		float v = g->type == YT_I8 ? (float)((const int32_t *)acc)[j] : g->alpha * ((const float *)acc)[j];

		if (g->beta != 0.0f)
			v += g->beta * yt_load(g->out, c, first + j);
		if (bias != NULL)
			v += bias[j0 + j];
		v = yt_act(g->act, v);
		if (g->out == YT_I32)
			((int32_t *)c)[first + j] = yt_quantise(v, 1.0f, 0, INT32_MIN, INT32_MAX);
		else
			yt_store(g->out, c, first + j, v);
	}
}

/* acc: m rows of k.width sums of this block of columns. */
static void columns(const yt_gemm *g, const matrix *a, const matrix *b, const float *bias, void *c, uint64_t ldc, cut k, uint32_t j0,
		    uint32_t n, float *block, float *acc)
{
	float strip[MR * MAX_DEPTH];
	uint32_t k0, i, r, p, j;

	memset(acc, 0, (size_t)(g->m + MR) * k.width * sizeof *acc);
	memset(block, 0, (size_t)k.depth * k.width * sizeof *block);
	for (k0 = 0; k0 < g->k; k0 += k.depth) {
		uint32_t kc = g->k - k0 < k.depth ? g->k - k0 : k.depth;

		for (p = 0; p < kc; p++)
			for (j = 0; j < n; j++) {
				if (g->type == YT_I8)
					((int32_t *)(void *)block)[(size_t)p * k.width + j] = at8(b, k0 + p, j0 + j);
				else
					block[(size_t)p * k.width + j] = at(b, k0 + p, j0 + j);
			}
		for (i = 0; i < g->m; i += MR) {
			memset(strip, 0, sizeof strip);
			for (r = 0; r < MR && i + r < g->m; r++)
				for (p = 0; p < kc; p++) {
					if (g->type == YT_I8)
						((int32_t *)(void *)strip)[r * k.depth + p] = at8(a, i + r, k0 + p);
					else
						strip[r * k.depth + p] = at(a, i + r, k0 + p);
				}
			if (g->type == YT_I8)
				inner_int((uint32_t *)(void *)(acc + (size_t)i * k.width), (const int32_t *)(const void *)strip,
					  (const int32_t *)(const void *)block, k, kc);
			else
				inner_float(acc + (size_t)i * k.width, strip, block, k, kc);
		}
	}
	for (i = 0; i < g->m; i++)
		finish(g, acc + (size_t)i * k.width, bias, c, i * ldc + j0, j0, n);
}

int yt_cpu_gemm(const yt_gemm *g, const void *a, const void *b, const float *bias, void *c, uint32_t depth, uint32_t width,
		yt_cpu_scratch *scratch)
{
	/* Not wider and deeper than the matrix: what lies beyond would be computed for nobody. */
	const uint32_t wide = (g->n + 31) / 32 * 32;
	const cut k = {depth < MAX_DEPTH ? depth : MAX_DEPTH, width < wide ? width : wide};
	uint32_t batch = g->batch != 0 ? g->batch : 1, in = g->type == YT_F32 ? 4 : g->type == YT_I8 ? 1 : 2, i, j0;
	uint32_t out = g->out == YT_F32 || g->out == YT_I32 ? 4 : 2;
	int ta = (g->flags & YT_GEMM_TRANS_A) != 0, tb = (g->flags & YT_GEMM_TRANS_B) != 0;
	uint64_t lda = g->lda != 0 ? g->lda : ta ? g->m : g->k, ldb = g->ldb != 0 ? g->ldb : tb ? g->k : g->n;
	uint64_t ldc = g->ldc != 0 ? g->ldc : g->n;
	size_t block = (size_t)k.depth * k.width * sizeof(float);
	char *p = yt_cpu_room(scratch, block + (size_t)(g->m + MR) * k.width * sizeof(float));

	if (p == NULL)
		return -1;
	for (i = 0; i < batch; i++) {
		matrix ma = {(const char *)a + i * g->stride_a * in, ta ? 1 : lda, ta ? lda : 1, g->type};
		matrix mb = {(const char *)b + i * g->stride_b * in, tb ? 1 : ldb, tb ? ldb : 1, g->type};

		for (j0 = 0; j0 < g->n; j0 += k.width)
			columns(g, &ma, &mb, bias, (char *)c + i * g->stride_c * out, ldc, k, j0, g->n - j0 < k.width ? g->n - j0 : k.width,
				(float *)(void *)p, (float *)(void *)(p + block));
	}
	return 0;
}
