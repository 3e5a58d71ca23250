// SPDX-License-Identifier: Apache-2.0
//
// lt.cu - see lt.h. The library is column-major, so C = A B is computed as C' = B' A': a
// row-major matrix has the memory layout of its transpose.
#include "lt.h"

#include <dlfcn.h>

#include <cstring>

template <typename F> static bool symbol(void *lib, const char *name, F *out)
{
	void *p = dlsym(lib, name);

	memcpy(out, &p, sizeof p); // ISO C++ has no cast from object to function
	return p != NULL;
}

static bool find_all(void *lib, yt_lt_api *f)
{
	return symbol(lib, "cublasLtCreate", &f->create) && symbol(lib, "cublasLtDestroy", &f->destroy) &&
	       symbol(lib, "cublasLtGetVersion", &f->version) && symbol(lib, "cublasLtMatmulDescCreate", &f->desc_create) &&
	       symbol(lib, "cublasLtMatmulDescDestroy", &f->desc_destroy) &&
	       symbol(lib, "cublasLtMatmulDescSetAttribute", &f->desc_set) &&
	       symbol(lib, "cublasLtMatrixLayoutCreate", &f->layout_create) &&
	       symbol(lib, "cublasLtMatrixLayoutDestroy", &f->layout_destroy) &&
	       symbol(lib, "cublasLtMatrixLayoutSetAttribute", &f->layout_set) &&
	       symbol(lib, "cublasLtMatmulPreferenceCreate", &f->preference_create) &&
	       symbol(lib, "cublasLtMatmulPreferenceDestroy", &f->preference_destroy) &&
	       symbol(lib, "cublasLtMatmulPreferenceSetAttribute", &f->preference_set) &&
	       symbol(lib, "cublasLtMatmulAlgoGetHeuristic", &f->heuristic) && symbol(lib, "cublasLtMatmul", &f->matmul);
}

bool yt_lt_there(yt_lt *lt, const char *library)
{
	static const char *const usual[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"};
	void *lib = NULL;

	if (lt->state != 0)
		return lt->state > 0;
	lt->state = -1;
	if (library != NULL)
		lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; library == NULL && lib == NULL && i < sizeof usual / sizeof usual[0]; i++)
		lib = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
	if (lib != NULL && find_all(lib, &lt->api) && lt->api.create(&lt->handle) == 0)
		lt->state = 1;
	return lt->state > 0;
}

static int type_of(uint32_t type)
{
	return type == YT_F32 ? YT_LT_R_32F : type == YT_F16 ? YT_LT_R_16F : type == YT_BF16 ? YT_LT_R_16BF : type == YT_I8 ? YT_LT_R_8I : YT_LT_R_32I;
}

// The alignment of an address in bytes, at most 256.
static uint32_t alignment(const void *p)
{
	uintptr_t v = (uintptr_t)p | 256;

	return (uint32_t)(v & -v);
}

static void drop(const yt_lt_api *f, yt_lt_plan *p)
{
	for (void *l : p->layout)
		if (l != NULL)
			f->layout_destroy(l);
	if (p->desc != NULL)
		f->desc_destroy(p->desc);
	*p = yt_lt_plan();
}

// A layout of rows by cols with ld elements from column to column.
static bool describe(const yt_lt_api *f, void **out, uint32_t type, uint64_t rows, uint64_t cols, uint64_t ld, uint32_t batch, uint64_t stride)
{
	int32_t count = (int32_t)batch;
	int64_t apart = (int64_t)stride;

	if (f->layout_create(out, type_of(type), rows, cols, (int64_t)ld) != 0)
		return false;
	return batch <= 1 || (f->layout_set(*out, YT_LT_BATCH, &count, sizeof count) == 0 && f->layout_set(*out, YT_LT_STRIDE, &apart, sizeof apart) == 0);
}

// Fills the plan's descriptors and requests the best kernel.
static bool choose(yt_lt *lt, yt_lt_plan *p)
{
	const yt_lt_api *f = &lt->api;
	const yt_gemm &g = p->g;
	bool ta = (g.flags & YT_GEMM_TRANS_A) != 0, tb = (g.flags & YT_GEMM_TRANS_B) != 0;
	uint64_t lda = g.lda != 0 ? g.lda : ta ? g.m : g.k, ldb = g.ldb != 0 ? g.ldb : tb ? g.k : g.n, ldc = g.ldc != 0 ? g.ldc : g.n;
	int32_t op_a = tb, op_b = ta, bias_type = YT_LT_R_32F;
	uint32_t epilogue = (g.act == YT_ACT_RELU ? (uint32_t)YT_LT_RELU : 0u) | (p->bias ? (uint32_t)YT_LT_ADD_BIAS : 0u);
	size_t room = YT_LT_ROOM;
	bool whole = g.type == YT_I8;
	void *preference = NULL;
	yt_lt_heuristic found = {};
	int n = 0;

	epilogue = epilogue == 0 ? (uint32_t)YT_LT_DEFAULT : epilogue;
	bool ok = f->desc_create(&p->desc, whole ? YT_LT_COMPUTE_I32 : YT_LT_COMPUTE_F32, whole ? YT_LT_R_32I : YT_LT_R_32F) == 0 &&
		  f->desc_set(p->desc, YT_LT_TRANSA, &op_a, sizeof op_a) == 0 && f->desc_set(p->desc, YT_LT_TRANSB, &op_b, sizeof op_b) == 0 &&
		  f->desc_set(p->desc, YT_LT_EPILOGUE, &epilogue, sizeof epilogue) == 0 &&
		  (!p->bias || f->desc_set(p->desc, YT_LT_BIAS_TYPE, &bias_type, sizeof bias_type) == 0) &&
		  describe(f, &p->layout[0], g.type, tb ? g.k : g.n, tb ? g.n : g.k, ldb, g.batch, g.stride_b) &&
		  describe(f, &p->layout[1], g.type, ta ? g.m : g.k, ta ? g.k : g.m, lda, g.batch, g.stride_a) &&
		  describe(f, &p->layout[2], g.out, g.n, g.m, ldc, g.batch, g.stride_c) && f->preference_create(&preference) == 0 &&
		  f->preference_set(preference, YT_LT_WORKSPACE, &room, sizeof room) == 0;
	for (int i = 0; ok && i < 4; i++)
		ok = f->preference_set(preference, YT_LT_ALIGN_A + i, &p->align[i], sizeof p->align[i]) == 0;
	ok = ok && f->heuristic(lt->handle, p->desc, p->layout[0], p->layout[1], p->layout[2], p->layout[2], preference, 1, &found, &n) == 0 &&
	     n == 1 && found.state == 0 && found.workspace <= room;
	if (preference != NULL)
		f->preference_destroy(preference);
	p->algo = found.algo;
	return ok;
}

static yt_lt_plan *plan_of(yt_lt *lt, const yt_gemm &g, const uint32_t align[4], bool bias)
{
	yt_lt_plan *oldest = &lt->plan[0];

	lt->clock++;
	for (yt_lt_plan &p : lt->plan) {
		if (p.used != 0 && p.bias == bias && memcmp(&p.g, &g, sizeof g) == 0 && memcmp(p.align, align, sizeof p.align) == 0) {
			p.used = lt->clock;
			return &p;
		}
		oldest = p.used < oldest->used ? &p : oldest;
	}
	drop(&lt->api, oldest);
	oldest->g = g;
	memcpy(oldest->align, align, sizeof oldest->align);
	oldest->bias = bias;
	oldest->used = lt->clock;
	oldest->taken = choose(lt, oldest);
	return oldest;
}

bool yt_lt_gemm(yt_lt *lt, const yt_gemm &g, const void *a, const void *b, const float *bias, void *c, void *workspace, void *stream)
{
	const uint32_t align[4] = {alignment(b), alignment(a), alignment(c), alignment(c)};
	const int32_t one = 1, none = 0;
	bool whole = g.type == YT_I8;

	if ((g.flags & YT_GEMM_OWN) != 0 || g.act > YT_ACT_RELU || (whole && (g.out != YT_I32 || bias != NULL || g.act != YT_ACT_NONE)) ||
	    (!whole && g.out > YT_BF16))
		return false;
	yt_lt_plan *p = plan_of(lt, g, align, bias != NULL);
	if (!p->taken || (bias != NULL && lt->api.desc_set(p->desc, YT_LT_BIAS, &bias, sizeof bias) != 0))
		return false;
	return lt->api.matmul(lt->handle, p->desc, whole ? (const void *)&one : &g.alpha, b, p->layout[0], a, p->layout[1],
			      whole ? (const void *)&none : &g.beta, c, p->layout[2], c, p->layout[2], &p->algo, workspace, YT_LT_ROOM, stream) == 0;
}

void yt_lt_close(yt_lt *lt)
{
	if (lt->state <= 0)
		return;
	for (yt_lt_plan &p : lt->plan)
		drop(&lt->api, &p);
	lt->api.destroy(lt->handle);
	lt->state = -1;
}
