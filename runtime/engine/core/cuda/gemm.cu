// SPDX-License-Identifier: Apache-2.0
//
// gemm.cu - matrix products of any size, 2 m n k operations.
//
// With tensor cores (wmma; float16 from 7.0, int8 from 7.2 to 9.x, bfloat16 from 8.0), a block
// of 256 threads computes 128 by 128 results, each warp 64 by 32 of them. Shared memory holds
// two stages of A and B; the next stage is loaded into registers while one is computed.
// Otherwise (float32; bfloat16 before 8.0; all types before 7.0; int8 from 10.0, which dropped
// these instructions) a block computes 64 by 64 results, each thread 4 by 4.
#include "kernels.h"
#include "ops.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

// ---- any type ----------------------------------------------------------------

static __global__ void __launch_bounds__(YT_GEMM_THREADS)
	gemm_kernel(yt_gemm g, const void *a, const void *b, const float *bias, void *c, uint32_t first)
{
	__shared__ alignas(16) float shared[YT_GEMM_SIDE * (YT_GEMM_SIDE + 1)];
	float *as = shared, *bs = shared + YT_GEMM_STEP * (YT_GEMM_SIDE + 4);
	yt_gemm_view v = yt_gemm_product(g, a, b, bias, c, first + blockIdx.z);
	uint32_t t = threadIdx.x, row0 = blockIdx.x * YT_GEMM_SIDE, col0 = blockIdx.y * YT_GEMM_SIDE;
	float sum[16] = {};

	for (uint32_t k0 = 0; k0 < g.k; k0 += YT_GEMM_STEP) {
		yt_gemm_fetch(g, v, row0, col0, k0, t, as, bs);
		__syncthreads();
		yt_gemm_step(t, as, bs, sum);
		__syncthreads();
	}
#pragma unroll
	for (uint32_t i = 0; i < 16; i++)
		shared[(t / 16 * 4 + i / 4) * (YT_GEMM_SIDE + 1) + t % 16 * 4 + i % 4] = sum[i];
	__syncthreads();
	for (uint32_t e = t; e < YT_GEMM_SIDE * YT_GEMM_SIDE; e += YT_GEMM_THREADS) {
		uint32_t row = e / YT_GEMM_SIDE, col = e % YT_GEMM_SIDE;

		yt_gemm_finish(g, v, row0 + row, col0 + col, shared[row * (YT_GEMM_SIDE + 1) + col], 0);
	}
}

static __global__ void __launch_bounds__(YT_GEMM_THREADS)
	gemm_int8_kernel(yt_gemm g, const void *a, const void *b, const float *bias, void *c, uint32_t first)
{
	__shared__ alignas(16) uint32_t as[YT_GEMM_WORDS * YT_GEMM_SIDE], bs[YT_GEMM_WORDS * YT_GEMM_SIDE];
	yt_gemm_view v = yt_gemm_product(g, a, b, bias, c, first + blockIdx.z);
	uint32_t t = threadIdx.x, row0 = blockIdx.x * YT_GEMM_SIDE, col0 = blockIdx.y * YT_GEMM_SIDE;
	int32_t sum[16] = {};

	for (uint32_t k0 = 0; k0 < g.k; k0 += YT_GEMM_STEP) {
		yt_gemm_fetch8(g, v, row0, col0, k0, t, as, bs);
		__syncthreads();
		yt_gemm_step8(t, as, bs, sum);
		__syncthreads();
	}
#pragma unroll
	for (uint32_t i = 0; i < 16; i++)
		yt_gemm_finish(g, v, row0 + t / 16 * 4 + i / 4, col0 + t % 16 * 4 + i % 4, 0, sum[i]);
}

// ---- tensor cores ------------------------------------------------------------


#define SIDE 128u // results of a block, in both dimensions
#define WIDE 16u  // bytes of one access

// A stage of A or B: slices of 16 columns (of k for A, of n for B), with each row of a slice
// contiguous. This aligns fragments to 256 bits and avoids bank conflicts.
template <typename T> struct tiles {
	static const uint32_t step = sizeof(T) == 1 ? 64 : 32; // of k
	static const uint32_t each = WIDE / sizeof(T);         // elements per access
	static const uint32_t pieces = SIDE * step / each / 256; // accesses per thread
	alignas(32) T a[step / 16][SIDE][16];
	alignas(32) T b[SIDE / 16][step][16];
};

struct piece {
	uint4 v;
};

// One access to a row-major matrix, element by element at its edges or if unaligned. col_step:
// elements from one column to the next.
template <typename T>
static __device__ piece fetch(const T *p, uint64_t row_step, uint64_t col_step, uint32_t row, uint32_t col, uint32_t rows, uint32_t cols,
			      bool wide)
{
	const uint32_t each = WIDE / sizeof(T);
	piece out = {{0, 0, 0, 0}};

	if (row >= rows || col >= cols)
		return out;
	const T *from = p + row * row_step + col * col_step;
	if (wide && col + each <= cols) {
		out.v = *(const uint4 *)from;
		return out;
	}
	// Word by word, so that the piece stays in registers.
	uint32_t word[4] = {0, 0, 0, 0};
#pragma unroll
	for (uint32_t j = 0; j < each; j++) {
		uint32_t bits = 0;

		if (col + j < cols) {
			if (sizeof(T) == 1)
				bits = *(const uint8_t *)(from + j * col_step);
			else
				bits = *(const uint16_t *)(from + j * col_step);
		}
		word[j * sizeof(T) / 4] |= bits << (j * sizeof(T) % 4 * 8);
	}
	out.v = {word[0], word[1], word[2], word[3]};
	return out;
}

// Without tensor cores the header defines no fragments; this kernel is not launched then.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
template <typename T, typename Sum>
static __global__ void gemm_tensor_kernel(yt_gemm, const void *, const void *, const float *, void *, uint32_t, bool, bool)
{
}
#else
namespace wm = nvcuda::wmma;

template <typename T, typename Sum>
static __global__ void __launch_bounds__(256)
	gemm_tensor_kernel(yt_gemm g, const void *a, const void *b, const float *bias, void *c, uint32_t first, bool wide_a, bool wide_b)
{
	const uint32_t step = tiles<T>::step, each = tiles<T>::each, pieces = tiles<T>::pieces;
	extern __shared__ __align__(32) unsigned char shared[];
	tiles<T> *stage = (tiles<T> *)shared;
	yt_gemm_view v = yt_gemm_product(g, a, b, bias, c, first + blockIdx.z);
	uint32_t t = threadIdx.x, warp = t / 32, row0 = blockIdx.x * SIDE, col0 = blockIdx.y * SIDE;
	uint32_t wr = warp / 4 * 64, wc = warp % 4 * 32;
	piece pa[pieces], pb[pieces];
	wm::fragment<wm::accumulator, 16, 16, 16, Sum> sum[4][2];

#pragma unroll
	for (uint32_t i = 0; i < 4; i++)
#pragma unroll
		for (uint32_t j = 0; j < 2; j++)
			wm::fill_fragment(sum[i][j], (Sum)0);
	auto load = [&](uint32_t k0) {
#pragma unroll
		for (uint32_t i = 0; i < pieces; i++) {
			uint32_t e = (t + 256 * i) * each, r = e / step, k = e % step, q = e / SIDE, n = e % SIDE;

			pa[i] = fetch((const T *)v.a, v.a_row, v.a_col, row0 + r, k0 + k, g.m, g.k, wide_a);
			pb[i] = fetch((const T *)v.b, v.b_row, v.b_col, k0 + q, col0 + n, g.k, g.n, wide_b);
		}
	};
	auto save = [&](tiles<T> &to) {
#pragma unroll
		for (uint32_t i = 0; i < pieces; i++) {
			uint32_t e = (t + 256 * i) * each, r = e / step, k = e % step, q = e / SIDE, n = e % SIDE;

			*(uint4 *)&to.a[k / 16][r][k % 16] = pa[i].v;
			*(uint4 *)&to.b[n / 16][q][n % 16] = pb[i].v;
		}
	};

	load(0);
	save(stage[0]);
	__syncthreads();
	for (uint32_t k0 = 0, s = 0; k0 < g.k; k0 += step, s ^= 1) {
		bool more = g.k - k0 > step;

		if (more)
			load(k0 + step);
#pragma unroll
		for (uint32_t k = 0; k < step / 16; k++) {
			wm::fragment<wm::matrix_a, 16, 16, 16, T, wm::row_major> fa[4];
			wm::fragment<wm::matrix_b, 16, 16, 16, T, wm::row_major> fb[2];

#pragma unroll
			for (uint32_t i = 0; i < 4; i++)
				wm::load_matrix_sync(fa[i], &stage[s].a[k][wr + 16 * i][0], 16);
#pragma unroll
			for (uint32_t j = 0; j < 2; j++)
				wm::load_matrix_sync(fb[j], &stage[s].b[wc / 16 + j][16 * k][0], 16);
#pragma unroll
			for (uint32_t i = 0; i < 4; i++)
#pragma unroll
				for (uint32_t j = 0; j < 2; j++)
					wm::mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);
		}
		if (more)
			save(stage[s ^ 1]);
		__syncthreads();
	}

	// Results go through shared memory, 16 by 16 per warp at a time.
	Sum *patch = (Sum *)shared + warp * 256;
#pragma unroll
	for (uint32_t i = 0; i < 4; i++)
#pragma unroll
		for (uint32_t j = 0; j < 2; j++) {
			wm::store_matrix_sync(patch, sum[i][j], 16, wm::mem_row_major);
			__syncwarp();
			for (uint32_t e = t % 32; e < 256; e += 32)
				yt_gemm_finish(g, v, row0 + wr + 16 * i + e / 16, col0 + wc + 16 * j + e % 16, (float)patch[e], (int32_t)patch[e]);
			__syncwarp();
		}
}

#endif

// The launch code selects the kernel by compute capability.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700 && __CUDA_ARCH__ < 800
template <>
__global__ void gemm_tensor_kernel<__nv_bfloat16, float>(yt_gemm, const void *, const void *, const float *, void *, uint32_t, bool, bool)
{
}
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
template <>
__global__ void gemm_tensor_kernel<signed char, int>(yt_gemm, const void *, const void *, const float *, void *, uint32_t, bool, bool)
{
}
#endif

template <typename T, typename Sum>
static cudaError_t launch_tensor(const yt_gemm &g, const void *a, const void *b, const float *bias, void *c, uint32_t first, uint32_t batch,
				 cudaStream_t stream)
{
	yt_gemm_view v = yt_gemm_product(g, a, b, bias, c, 0);
	uint32_t each = WIDE / sizeof(T);
	bool wide_a = v.a_col == 1 && v.a_row % each == 0 && g.stride_a % each == 0 && yt_aligned16(a);
	bool wide_b = v.b_col == 1 && v.b_row % each == 0 && g.stride_b % each == 0 && yt_aligned16(b);
	dim3 grid((g.m + SIDE - 1) / SIDE, (g.n + SIDE - 1) / SIDE, batch);

	gemm_tensor_kernel<T, Sum><<<grid, 256, 2 * sizeof(tiles<T>), stream>>>(g, a, b, bias, c, first, wide_a, wide_b);
	return cudaGetLastError();
}

cudaError_t yt_launch_gemm(const yt_gemm &g, const void *a, const void *b, const float *bias, void *c, int cc_major, cudaStream_t stream)
{
	uint32_t batch = g.batch != 0 ? g.batch : 1;
	dim3 grid((g.m + YT_GEMM_SIDE - 1) / YT_GEMM_SIDE, (g.n + YT_GEMM_SIDE - 1) / YT_GEMM_SIDE);
	cudaError_t e = cudaSuccess;

	if ((g.n + YT_GEMM_SIDE - 1) / YT_GEMM_SIDE > 65535)
		return cudaErrorInvalidValue;
	for (uint32_t first = 0; first < batch && e == cudaSuccess; first += 65535) {
		uint32_t n = batch - first < 65535 ? batch - first : 65535;

		grid.z = n;
		if (g.type == YT_F16 && cc_major >= 7) {
			e = launch_tensor<__half, float>(g, a, b, bias, c, first, n, stream);
		} else if (g.type == YT_BF16 && cc_major >= 8) {
			e = launch_tensor<__nv_bfloat16, float>(g, a, b, bias, c, first, n, stream);
		} else if (g.type == YT_I8 && cc_major >= 7 && cc_major < 10) {
			e = launch_tensor<signed char, int>(g, a, b, bias, c, first, n, stream);
		} else if (g.type == YT_I8) {
			gemm_int8_kernel<<<grid, YT_GEMM_THREADS, 0, stream>>>(g, a, b, bias, c, first);
			e = cudaGetLastError();
		} else {
			gemm_kernel<<<grid, YT_GEMM_THREADS, 0, stream>>>(g, a, b, bias, c, first);
			e = cudaGetLastError();
		}
	}
	return e;
}
