// SPDX-License-Identifier: Apache-2.0
//
// A fake cuBLASLt that computes on the CPU according to cublasLt.h: column-major, op(A) op(B),
// C is read only if beta is not 0, bias per row of D. lt_check.cc opens it. Like the real
// library on most devices, it supports int8 only as transposed by plain, with sizes that are
// multiples of four.
#include "lt.h"
#include "yt_ops.h"

#include <cstdlib>
#include <cstring>

namespace {

struct product {
	int compute, scale;
	int32_t ta, tb, bias_type;
	uint32_t epilogue;
	const float *bias;
};
struct layout {
	int type;
	uint64_t rows, cols;
	int64_t ld, stride;
	int32_t batch;
};
struct preference {
	size_t room;
	uint32_t align[4];
};

uint32_t type_of(int t)
{
	return t == YT_LT_R_32F ? YT_F32 : t == YT_LT_R_16F ? YT_F16 : t == YT_LT_R_16BF ? YT_BF16 : t == YT_LT_R_8I ? YT_I8 : YT_I32;
}

template <typename V> int put(V *to, const void *from, size_t n)
{
	if (n != sizeof *to)
		return 7; // invalid value
	memcpy(to, from, n);
	return 0;
}

const uint64_t mark = 0x5961; // content of a selected algorithm
} // namespace

extern "C" {
// The last requests, for the test.
uint64_t fake_lt_products, fake_lt_choices, fake_lt_open;
int fake_lt_refuses; // 1: no handle

int cublasLtCreate(void **h)
{
	if (fake_lt_refuses)
		return 1;
	*h = &fake_lt_products;
	return 0;
}
int cublasLtDestroy(void *h) { return h == &fake_lt_products ? 0 : 7; }
size_t cublasLtGetVersion(void) { return 120000; }
int cublasLtMatmulDescCreate(void **d, int compute, int scale)
{
	fake_lt_open++;
	product *p = (product *)calloc(1, sizeof *p);
	p->compute = compute;
	p->scale = scale;
	p->epilogue = YT_LT_DEFAULT;
	p->bias_type = -1;
	*d = p;
	return 0;
}
int cublasLtMatmulDescDestroy(void *d)
{
	fake_lt_open--;
	free(d);
	return 0;
}
int cublasLtMatmulDescSetAttribute(void *d, int what, const void *v, size_t n)
{
	product *p = (product *)d;

	switch (what) {
	case YT_LT_TRANSA: return put(&p->ta, v, n);
	case YT_LT_TRANSB: return put(&p->tb, v, n);
	case YT_LT_EPILOGUE: return put(&p->epilogue, v, n);
	case YT_LT_BIAS: return put(&p->bias, v, n);
	case YT_LT_BIAS_TYPE: return put(&p->bias_type, v, n);
	}
	return 7;
}
int cublasLtMatrixLayoutCreate(void **l, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
	fake_lt_open++;
	layout *p = (layout *)calloc(1, sizeof *p);
	*p = {type, rows, cols, ld, 0, 1};
	*l = p;
	return 0;
}
int cublasLtMatrixLayoutDestroy(void *l)
{
	fake_lt_open--;
	free(l);
	return 0;
}
int cublasLtMatrixLayoutSetAttribute(void *l, int what, const void *v, size_t n)
{
	layout *p = (layout *)l;

	return what == YT_LT_BATCH ? put(&p->batch, v, n) : what == YT_LT_STRIDE ? put(&p->stride, v, n) : 7;
}
int cublasLtMatmulPreferenceCreate(void **p)
{
	fake_lt_open++;
	*p = calloc(1, sizeof(preference));
	return 0;
}
int cublasLtMatmulPreferenceDestroy(void *p)
{
	fake_lt_open--;
	free(p);
	return 0;
}
int cublasLtMatmulPreferenceSetAttribute(void *p, int what, const void *v, size_t n)
{
	preference *q = (preference *)p;

	return what == YT_LT_WORKSPACE ? put(&q->room, v, n) : what >= YT_LT_ALIGN_A && what <= YT_LT_ALIGN_D ? put(&q->align[what - YT_LT_ALIGN_A], v, n) : 7;
}
int cublasLtMatmulAlgoGetHeuristic(void *h, void *desc, void *la, void *lb, void *lc, void *ld, void *pref, int want, yt_lt_heuristic *out, int *n)
{
	const product *d = (const product *)desc;
	const layout *a = (const layout *)la, *b = (const layout *)lb, *c = (const layout *)lc;
	const preference *p = (const preference *)pref;

	fake_lt_choices++;
	*n = 0;
	if (h != &fake_lt_products || lc != ld || want < 1 || p->room == 0)
		return 7;
	for (uint32_t each : p->align)
		if (each == 0 || (each & (each - 1)) != 0)
			return 7;
	uint64_t m = d->ta ? a->cols : a->rows, k = d->ta ? a->rows : a->cols, width = d->tb ? b->rows : b->cols;
	if (c->rows != m || c->cols != width || (d->tb ? b->cols : b->rows) != k || a->type != b->type || a->batch != c->batch || b->batch != c->batch ||
	    a->ld < (int64_t)a->rows || b->ld < (int64_t)b->rows || c->ld < (int64_t)c->rows)
		return 7;
	if (a->type == YT_LT_R_8I && (!d->ta || d->tb || m % 4 != 0 || k % 4 != 0 || width % 4 != 0 || a->ld % 4 != 0 || b->ld % 4 != 0 || p->align[0] < 4))
		return 15;
	*n = 1;
	*out = yt_lt_heuristic();
	out->algo.data[0] = mark;
	return 0;
}
int cublasLtMatmul(void *h, void *desc, const void *alpha, const void *pa, void *la, const void *pb, void *lb, const void *beta, const void *pc, void *lc,
		   void *pd, void *ld, const yt_lt_algo *algo, void *room, size_t bytes, void *)
{
	const product *d = (const product *)desc;
	const layout *a = (const layout *)la, *b = (const layout *)lb, *c = (const layout *)lc;
	bool whole = d->compute == YT_LT_COMPUTE_I32;
	uint64_t k = d->ta ? a->rows : a->cols;

	if (h != &fake_lt_products || algo->data[0] != mark || room == nullptr || bytes == 0 || pc != pd || lc != ld ||
	    d->scale != (whole ? YT_LT_R_32I : YT_LT_R_32F))
		return 7;
	fake_lt_products++;
	for (int32_t i = 0; i < c->batch; i++)
		for (uint64_t col = 0; col < c->cols; col++)
			for (uint64_t row = 0; row < c->rows; row++) {
				uint64_t at = i * c->stride + col * c->ld + row;
				float sum = 0;
				int32_t ints = 0;

				for (uint64_t p = 0; p < k; p++) {
					uint64_t x = i * a->stride + (d->ta ? row * a->ld + p : p * a->ld + row);
					uint64_t y = i * b->stride + (d->tb ? p * b->ld + col : col * b->ld + p);

					if (whole)
						ints += (int32_t)((const int8_t *)pa)[x] * ((const int8_t *)pb)[y];
					else
						sum += yt_load(type_of(a->type), pa, x) * yt_load(type_of(b->type), pb, y);
				}
				if (whole) {
					((int32_t *)pd)[at] = *(const int32_t *)alpha * ints;
					continue;
				}
				sum *= *(const float *)alpha;
				if (*(const float *)beta != 0)
					sum += *(const float *)beta * yt_load(type_of(c->type), pd, at);
				if ((d->epilogue & YT_LT_ADD_BIAS) != 0)
					sum += d->bias_type == YT_LT_R_32F ? d->bias[row] : yt_from_bits(0x7fc00000u);
				if ((d->epilogue & YT_LT_RELU) != 0)
					sum = sum < 0 ? 0 : sum;
				yt_store(type_of(c->type), pd, at, sum);
			}
	return 0;
}
}
