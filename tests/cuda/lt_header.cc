// SPDX-License-Identifier: Apache-2.0
//
// Compares lt.h with NVIDIA's header at compile time, and with the library at run time,
// without a GPU: values that are set can be read back.
//
//   lt_header LIBRARY
#include "lt.h"

#include <cublasLt.h>

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <type_traits>

static_assert(YT_LT_TRANSA == CUBLASLT_MATMUL_DESC_TRANSA && YT_LT_TRANSB == CUBLASLT_MATMUL_DESC_TRANSB &&
		      YT_LT_EPILOGUE == CUBLASLT_MATMUL_DESC_EPILOGUE && YT_LT_BIAS == CUBLASLT_MATMUL_DESC_BIAS_POINTER &&
		      YT_LT_BIAS_TYPE == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
	      "attributes of a product");
static_assert(YT_LT_BATCH == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && YT_LT_STRIDE == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
	      "attributes of a layout");
static_assert(YT_LT_WORKSPACE == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && YT_LT_ALIGN_A == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
		      YT_LT_ALIGN_D == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES && YT_LT_ALIGN_D == YT_LT_ALIGN_A + 3,
	      "attributes of a preference");
static_assert(YT_LT_DEFAULT == CUBLASLT_EPILOGUE_DEFAULT && YT_LT_RELU == CUBLASLT_EPILOGUE_RELU && YT_LT_ADD_BIAS == CUBLASLT_EPILOGUE_BIAS &&
		      (YT_LT_RELU | YT_LT_ADD_BIAS) == CUBLASLT_EPILOGUE_RELU_BIAS,
	      "epilogues");
static_assert(YT_LT_COMPUTE_F32 == CUBLAS_COMPUTE_32F && YT_LT_COMPUTE_I32 == CUBLAS_COMPUTE_32I, "compute types");
static_assert(YT_LT_R_32F == CUDA_R_32F && YT_LT_R_16F == CUDA_R_16F && YT_LT_R_8I == CUDA_R_8I && YT_LT_R_32I == CUDA_R_32I &&
		      YT_LT_R_16BF == CUDA_R_16BF,
	      "element types");
static_assert(CUBLAS_STATUS_SUCCESS == 0 && sizeof(cublasStatus_t) == sizeof(yt_lt_status) && CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1, "answers");
static_assert(sizeof(yt_lt_algo) == sizeof(cublasLtMatmulAlgo_t) && sizeof(yt_lt_heuristic) == sizeof(cublasLtMatmulHeuristicResult_t) &&
		      offsetof(yt_lt_heuristic, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) &&
		      offsetof(yt_lt_heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state),
	      "results of the heuristic");

// Two functions have the same calling convention if each parameter is passed in the same
// place: all pointers are equal, integers and enums are compared by size.
template <typename T> struct kind {
	static const int value = std::is_pointer<T>::value ? 1 : 2 * (int)sizeof(T);
};
template <typename... A> struct same;
template <typename R, typename... P, typename S, typename... Q> struct same<R (*)(P...), S (*)(Q...)> {
	static constexpr bool value()
	{
		if (sizeof...(P) != sizeof...(Q) || kind<R>::value != kind<S>::value)
			return false;
		const int a[] = {kind<P>::value..., 0}, b[] = {kind<Q>::value..., 0};
		for (size_t i = 0; i < sizeof...(P); i++)
			if (a[i] != b[i])
				return false;
		return true;
	}
};
#define SAME(field, function) static_assert(same<decltype(yt_lt_api::field), decltype(&function)>::value(), #function)
SAME(create, cublasLtCreate);
SAME(destroy, cublasLtDestroy);
SAME(version, cublasLtGetVersion);
SAME(desc_create, cublasLtMatmulDescCreate);
SAME(desc_destroy, cublasLtMatmulDescDestroy);
SAME(desc_set, cublasLtMatmulDescSetAttribute);
SAME(layout_create, cublasLtMatrixLayoutCreate);
SAME(layout_destroy, cublasLtMatrixLayoutDestroy);
SAME(layout_set, cublasLtMatrixLayoutSetAttribute);
SAME(preference_create, cublasLtMatmulPreferenceCreate);
SAME(preference_destroy, cublasLtMatmulPreferenceDestroy);
SAME(preference_set, cublasLtMatmulPreferenceSetAttribute);
SAME(heuristic, cublasLtMatmulAlgoGetHeuristic);
SAME(matmul, cublasLtMatmul);

static int failed;

template <typename V, typename Set, typename Get> static void keeps(const char *what, Set set, Get get, void *of, int attribute, V v)
{
	V back = V();
	size_t n = 0;

	if (set(of, attribute, &v, sizeof v) != 0 || get(of, attribute, &back, sizeof back, &n) != 0 || n != sizeof v || memcmp(&v, &back, sizeof v) != 0) {
		fprintf(stderr, "error: %s: attribute %d of %zu bytes is not kept\n", what, attribute, sizeof v);
		failed = 1;
	}
}

int main(int argc, char **argv)
{
	typedef int (*getter)(void *, int, void *, size_t, size_t *);
	void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL, *desc = NULL, *layout = NULL, *preference = NULL;
	yt_lt lt = {};

	if (lib == NULL) {
		fprintf(stderr, "error: %s\n", argc > 1 ? dlerror() : "usage: lt_header LIBRARY");
		return 1;
	}
	// Without a driver there is no handle and thus no product, which is not a failure.
	bool there = yt_lt_there(&lt, argv[1]);
	yt_lt_api &f = lt.api;
	if (f.matmul == NULL || f.version == NULL) {
		fprintf(stderr, "error: a function is missing\n");
		return 1;
	}
	if (f.desc_create(&desc, YT_LT_COMPUTE_F32, YT_LT_R_32F) != 0 || f.layout_create(&layout, YT_LT_R_16F, 8, 4, 8) != 0 ||
	    f.preference_create(&preference) != 0) {
		fprintf(stderr, "error: descriptions are not made\n");
		return 1;
	}
	getter of_desc = (getter)dlsym(lib, "cublasLtMatmulDescGetAttribute"), of_layout = (getter)dlsym(lib, "cublasLtMatrixLayoutGetAttribute");
	getter of_preference = (getter)dlsym(lib, "cublasLtMatmulPreferenceGetAttribute");
	keeps("product", f.desc_set, of_desc, desc, YT_LT_TRANSA, (int32_t)1);
	keeps("product", f.desc_set, of_desc, desc, YT_LT_TRANSB, (int32_t)1);
	keeps("product", f.desc_set, of_desc, desc, YT_LT_EPILOGUE, (uint32_t)(YT_LT_RELU | YT_LT_ADD_BIAS));
	keeps("product", f.desc_set, of_desc, desc, YT_LT_BIAS_TYPE, (int32_t)YT_LT_R_32F);
	keeps("product", f.desc_set, of_desc, desc, YT_LT_BIAS, (const float *)desc);
	keeps("layout", f.layout_set, of_layout, layout, YT_LT_BATCH, (int32_t)3);
	keeps("layout", f.layout_set, of_layout, layout, YT_LT_STRIDE, (int64_t)64);
	keeps("preference", f.preference_set, of_preference, preference, YT_LT_WORKSPACE, (size_t)YT_LT_ROOM);
	for (int i = YT_LT_ALIGN_A; i <= YT_LT_ALIGN_D; i++)
		keeps("preference", f.preference_set, of_preference, preference, i, (uint32_t)16);
	f.preference_destroy(preference);
	f.layout_destroy(layout);
	f.desc_destroy(desc);
	printf("cuBLASLt %zu: header and library agree with lt.h; %s\n", f.version(), there ? "a device is there" : "no device: no product was computed");
	return failed;
}
