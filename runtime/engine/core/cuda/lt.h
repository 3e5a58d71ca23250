// SPDX-License-Identifier: Apache-2.0
//
// lt.h - products of matrices by NVIDIA's cuBLASLt, where it is installed.
//
// The library is opened with dlopen, versions 13, 12 and 11, and never closed. The needed part
// of its header is declared here (tests/cuda/lt_header.cc compares the two). It runs only
// operations that it defines exactly as our kernels do. GELU, which it approximates by tanh,
// SiLU, and anything its heuristic has no kernel for run in our kernels. This file does not use
// CUDA, so that tests can run it with a fake library.
#ifndef YT_LT_H
#define YT_LT_H

#include "yt_backend.h"

// As cublasLt.h has them.
typedef int yt_lt_status; // 0: success, 15: not supported
struct yt_lt_algo {
	uint64_t data[8];
};
struct yt_lt_heuristic {
	yt_lt_algo algo;
	size_t workspace;
	yt_lt_status state;
	float waves;
	int reserved[4];
};

struct yt_lt_api {
	yt_lt_status (*create)(void **);
	yt_lt_status (*destroy)(void *);
	size_t (*version)(void);
	yt_lt_status (*desc_create)(void **, int compute, int scale);
	yt_lt_status (*desc_destroy)(void *);
	yt_lt_status (*desc_set)(void *, int attribute, const void *, size_t);
	yt_lt_status (*layout_create)(void **, int type, uint64_t rows, uint64_t cols, int64_t ld);
	yt_lt_status (*layout_destroy)(void *);
	yt_lt_status (*layout_set)(void *, int attribute, const void *, size_t);
	yt_lt_status (*preference_create)(void **);
	yt_lt_status (*preference_destroy)(void *);
	yt_lt_status (*preference_set)(void *, int attribute, const void *, size_t);
	yt_lt_status (*heuristic)(void *, void *, void *, void *, void *, void *, void *, int, yt_lt_heuristic *, int *);
	yt_lt_status (*matmul)(void *, void *, const void *alpha, const void *, void *, const void *, void *, const void *beta, const void *, void *,
			       void *, void *, const yt_lt_algo *, void *workspace, size_t, void *stream);
};

enum {
	YT_LT_TRANSA = 3, YT_LT_TRANSB = 4, YT_LT_EPILOGUE = 7, YT_LT_BIAS = 8, YT_LT_BIAS_TYPE = 26, // of a product
	YT_LT_BATCH = 5, YT_LT_STRIDE = 6,                                                          // of a layout
	YT_LT_WORKSPACE = 1, YT_LT_ALIGN_A = 5, YT_LT_ALIGN_D = 8,                                   // of a preference
	YT_LT_DEFAULT = 1, YT_LT_RELU = 2, YT_LT_ADD_BIAS = 4,                                       // epilogues
	YT_LT_COMPUTE_F32 = 68, YT_LT_COMPUTE_I32 = 72,
	YT_LT_R_32F = 0, YT_LT_R_16F = 2, YT_LT_R_8I = 3, YT_LT_R_32I = 10, YT_LT_R_16BF = 14
};

// Workspace of products, in bytes.
#define YT_LT_ROOM (4u << 20)

// A cached product: its descriptors and the selected kernel.
struct yt_lt_plan {
	yt_gemm g;
	uint32_t align[4]; // of B, A, C and D, which the library calls A, B, C and D
	bool bias, taken;  // taken: the library has a kernel
	void *desc, *layout[3];
	yt_lt_algo algo;
	uint64_t used;
};
#define YT_LT_PLANS 16

// A device's cuBLASLt. Zero-initialised; the device's lock guards it.
struct yt_lt {
	yt_lt_api api;
	void *handle;
	int state; // 0: not tried, 1: loaded, -1: unavailable
	uint64_t clock;
	yt_lt_plan plan[YT_LT_PLANS];
};

// Whether products of this device may use cuBLASLt. The device is current. library: NULL for
// the usual names.
bool yt_lt_there(yt_lt *lt, const char *library);

// Queues the product if the library supports it. False: not supported or failed, and nothing
// was queued. workspace has YT_LT_ROOM bytes.
bool yt_lt_gemm(yt_lt *lt, const yt_gemm &g, const void *a, const void *b, const float *bias, void *c, void *workspace, void *stream);

void yt_lt_close(yt_lt *lt);

#endif // YT_LT_H
