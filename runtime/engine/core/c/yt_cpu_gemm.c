/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products. A block of B is converted to one type, packed in panels of NR columns, and
 * stays in the L2 cache while every row of A is multiplied with it: MR by NR sums at a time,
 * in registers. 2 m n k operations.
 *
 * With fewer rows than MR, B is read only once and not packed: such products are limited by
 * memory bandwidth.
 */
#include "yt_cpu.h"
#include "yt_clones.h"
#include "yt_ops.h"

#include <string.h>

#define MR 4u
#define NR 16u
#define MAX_DEPTH 256u

/* The block of B that stays in the cache: depth rows of width elements. */
typedef struct cut {
	uint32_t depth, width;
} cut;

typedef struct matrix {
	const void *p;
	uint64_t row, col; /* stride in elements */
	uint32_t type;
} matrix;

/* Accumulator: float32, or int32 stored as uint32, which wraps in two's complement beyond 133
 * 000 products of extreme values. */
typedef union number {
	float f;
	uint32_t u;
} number;

/* GNU vector extensions: compilers keep them in registers of any width. */
typedef float eight_f __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint32_t eight_u __attribute__((vector_size(32), aligned(4), may_alias));

/* sums[r][j] += sum over p of a[r][p] * b[p][j], in ascending order of p. */
#define PANEL(name, eight, type) \
	YT_CLONES \
	static void name(type *sums, size_t row, const type *a, size_t depth, const type *b, uint32_t kc) \
	{ \
		eight *s0 = (eight *)sums, *s1 = (eight *)(sums + row), *s2 = (eight *)(sums + 2 * row), *s3 = (eight *)(sums + 3 * row); \
		eight c00 = s0[0], c01 = s0[1], c10 = s1[0], c11 = s1[1], c20 = s2[0], c21 = s2[1], c30 = s3[0], c31 = s3[1]; \
		uint32_t p; \
\
		for (p = 0; p < kc; p++, b += NR) { \
			const eight b0 = ((const eight *)b)[0], b1 = ((const eight *)b)[1]; \
\
			c00 += a[p] * b0, c01 += a[p] * b1; \
			c10 += a[depth + p] * b0, c11 += a[depth + p] * b1; \
			c20 += a[2 * depth + p] * b0, c21 += a[2 * depth + p] * b1; \
			c30 += a[3 * depth + p] * b0, c31 += a[3 * depth + p] * b1; \
		} \
		s0[0] = c00, s0[1] = c01, s1[0] = c10, s1[1] = c11, s2[0] = c20, s2[1] = c21, s3[0] = c30, s3[1] = c31; \
	}

PANEL(panel_float, eight_f, float)
PANEL(panel_int, eight_u, uint32_t)

/* sums[j] += sum over p of a[p] * b[p][j], in ascending order of p. There are 4 rows, fewer at
 * the end. */
YT_CLONES
static void add_rows(float *restrict sums, const float *restrict a, const float *const b[4], uint32_t kc, uint32_t n)
{
	const float *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
	uint32_t p, j;

	if (kc == 4) {
		for (j = 0; j < n; j++)
			sums[j] = (((sums[j] + a[0] * b0[j]) + a[1] * b1[j]) + a[2] * b2[j]) + a[3] * b3[j];
		return;
	}
	for (p = 0; p < kc; p++)
		for (j = 0; j < n; j++)
			sums[j] += a[p] * b[p][j];
}

YT_CLONES
static void int8_row(const int8_t *restrict q, number *restrict x, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		x[i].u = (uint32_t)q[i];
}

/* n contiguous elements of row r from column c on, in the type of the accumulators. */
static void row_of(const matrix *m, uint64_t r, uint64_t c, number *x, uint32_t n)
{
	uint64_t first = r * m->row + c;

	if (m->type == YT_I8)
		int8_row((const int8_t *)m->p + first, x, n);
	else
		yt_cpu_widen(m->type, m->p, first, &x->f, n);
}

static matrix transposed(const matrix *m)
{
	matrix t = {m->p, m->col, m->row, m->type};

	return t;
}

/* Packs kc rows and n columns of B into panels, the last padded with 0. line: scratch for a
 * row. */
static void pack(const matrix *b, uint32_t k0, uint32_t kc, uint32_t j0, uint32_t n, cut k, number *block, number *line)
{
	const matrix t = transposed(b);
	uint32_t p, j;

	memset(line, 0, k.width * sizeof *line);
	if (b->col == 1) {
		for (p = 0; p < kc; p++) {
			row_of(b, k0 + p, j0, line, n);
			for (j = 0; j < n; j += NR)
				memcpy(block + (size_t)j * k.depth + p * NR, line + j, NR * sizeof *line);
		}
		return;
	}
	for (j = 0; j < (n + NR - 1) / NR * NR; j++) {
		if (j < n)
			row_of(&t, j0 + j, k0, line, kc);
		for (p = 0; p < kc; p++)
			block[(size_t)(j / NR * NR) * k.depth + p * NR + j % NR].u = j < n ? line[p].u : 0;
	}
}

/* Packs rows i to i + rows of A from column k0 on. */
static void strip_of(const matrix *a, uint32_t i, uint32_t rows, uint32_t k0, uint32_t kc, uint32_t depth, number *strip)
{
	const matrix t = transposed(a);
	number four[MR];
	uint32_t r, p;

	for (r = 0; r < rows && a->col == 1; r++)
		row_of(a, i + r, k0, strip + r * depth, kc);
	for (p = 0; p < kc && a->col != 1; p++) {
		row_of(&t, k0 + p, i, four, rows);
		for (r = 0; r < rows; r++)
			strip[r * depth + p] = four[r];
	}
}

/* Writes one row of results. */
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

/* acc: m rows of k.width accumulators of this block of columns. line: scratch for a row of B. */
static void columns(const yt_gemm *g, const matrix *a, const matrix *b, cut k, uint32_t j0, uint32_t n, number *block, number *line, number *acc)
{
	number strip[MR * MAX_DEPTH];
	uint32_t k0, i, j;

	memset(strip, 0, sizeof strip);
	for (k0 = 0; k0 < g->k; k0 += k.depth) {
		uint32_t kc = g->k - k0 < k.depth ? g->k - k0 : k.depth;

		pack(b, k0, kc, j0, n, k, block, line);
		for (i = 0; i < g->m; i += MR) {
			strip_of(a, i, g->m - i < MR ? g->m - i : MR, k0, kc, k.depth, strip);
			for (j = 0; j < n; j += NR) {
				number *sums = acc + (size_t)i * k.width + j, *panel = block + (size_t)j * k.depth;

				if (g->type == YT_I8)
					panel_int(&sums->u, k.width, &strip->u, k.depth, &panel->u, kc);
				else
					panel_float(&sums->f, k.width, &strip->f, k.depth, &panel->f, kc);
			}
		}
	}
}

/* The same for few rows, float32 and B not transposed. line: scratch for four rows of B. */
static void few_rows(const yt_gemm *g, const matrix *a, const matrix *b, cut k, uint32_t j0, uint32_t n, number *line, number *acc)
{
	number strip[MR * 4];
	uint32_t p, q, i;

	for (p = 0; p < g->k; p += 4) {
		uint32_t kc = g->k - p < 4 ? g->k - p : 4;
		const float *row[4] = {NULL};

		strip_of(a, 0, g->m, p, kc, 4, strip);
		for (q = 0; q < kc; q++) {
			row[q] = (const float *)b->p + (p + q) * b->row + j0;
			if (b->type != YT_F32) {
				row[q] = &line[q * k.width].f;
				row_of(b, p + q, j0, line + q * k.width, n);
			}
		}
		for (i = 0; i < g->m; i++)
			add_rows(&acc[i * k.width].f, &strip[4 * i].f, row, kc, n);
	}
}

int yt_cpu_gemm(const yt_gemm *g, const void *a, const void *b, const float *bias, void *c, uint32_t depth, uint32_t width,
		yt_cpu_scratch *scratch)
{
	/* No larger than the matrix: elements beyond it would be computed in vain. */
	const uint32_t wide = (g->n + 31) / 32 * 32;
	const cut k = {depth < MAX_DEPTH ? depth : MAX_DEPTH, (width < wide ? width : wide) & ~(NR - 1)};
	uint32_t batch = g->batch != 0 ? g->batch : 1, in = g->type == YT_F32 ? 4 : g->type == YT_I8 ? 1 : 2, i, j0, r;
	uint32_t out = g->out == YT_F32 || g->out == YT_I32 ? 4 : 2;
	int ta = (g->flags & YT_GEMM_TRANS_A) != 0, tb = (g->flags & YT_GEMM_TRANS_B) != 0;
	uint64_t lda = g->lda != 0 ? g->lda : ta ? g->m : g->k, ldb = g->ldb != 0 ? g->ldb : tb ? g->k : g->n;
	uint64_t ldc = g->ldc != 0 ? g->ldc : g->n;
	/* A block of B, a row of it, which has at least MAX_DEPTH, and the accumulators. */
	size_t block = (size_t)k.depth * k.width, line = k.width < MAX_DEPTH ? MAX_DEPTH : k.width, sums = (size_t)(g->m + MR) * k.width;
	number *p = yt_cpu_room(scratch, (block + 4 * line + sums) * sizeof *p), *acc = p + block + 4 * line;

	if (p == NULL)
		return -1;
	for (i = 0; i < batch; i++) {
		matrix ma = {(const char *)a + i * g->stride_a * in, ta ? 1 : lda, ta ? lda : 1, g->type};
		matrix mb = {(const char *)b + i * g->stride_b * in, tb ? 1 : ldb, tb ? ldb : 1, g->type};

		for (j0 = 0; j0 < g->n; j0 += k.width) {
			uint32_t n = g->n - j0 < k.width ? g->n - j0 : k.width;

			memset(acc, 0, sums * sizeof *acc);
			if (g->m < MR && !tb && g->type != YT_I8)
				few_rows(g, &ma, &mb, k, j0, n, p + block, acc);
			else
				columns(g, &ma, &mb, k, j0, n, p, p + block, acc);
			for (r = 0; r < g->m; r++)
				finish(g, acc + (size_t)r * k.width, bias, (char *)c + i * g->stride_c * out, r * ldc + j0, j0, n);
		}
	}
	return 0;
}
