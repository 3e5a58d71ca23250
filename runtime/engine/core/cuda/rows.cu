// SPDX-License-Identifier: Apache-2.0
//
// rows.cu - softmax, top-k and conversions. A block processes a row; passes after the first hit
// the cache. Conversions read and write memory once: bound by memory bandwidth.
#include "kernels.h"
#include "ops.h"

static __device__ uint64_t row_start(const yt_rows &r, uint64_t row)
{
	return row * (r.stride != 0 ? r.stride : r.cols);
}

static __device__ float fold(uint32_t op, float v, float *lane, uint32_t t)
{
	__syncthreads(); // until the previous result was read
	lane[t] = v;
	for (uint32_t half = YT_ROW_LANES / 2; half > 0; half /= 2) {
		__syncthreads();
		if (t < half)
			lane[t] = yt_reduce_combine(op, lane[t], lane[t + half]);
	}
	__syncthreads();
	return lane[0];
}

static __global__ void __launch_bounds__(YT_ROW_LANES) softmax_kernel(yt_rows r, const void *src, void *dst)
{
	__shared__ float lane[YT_ROW_LANES];
	uint32_t t = threadIdx.x;

	for (uint64_t row = blockIdx.x; row < r.rows; row += gridDim.x) {
		uint64_t first = row_start(r, row);
		float top = fold(YT_REDUCE_MAX, yt_row_max(r.in, src, first, r.cols, t), lane, t);
		float sum = fold(YT_REDUCE_SUM, yt_row_sum(r.in, src, first, r.cols, top, t), lane, t);

		yt_row_softmax(r, src, dst, first, top, sum, t);
	}
}

static __global__ void __launch_bounds__(YT_ROW_LANES) topk_kernel(yt_rows r, const void *src, yt_ranked *ranked)
{
	__shared__ uint64_t lane[YT_ROW_LANES];
	uint32_t t = threadIdx.x;

	for (uint64_t row = blockIdx.x; row < r.rows; row += gridDim.x) {
		uint64_t first = row_start(r, row), most = ~0ull;

		for (uint32_t i = 0; i < r.k; i++) {
			__syncthreads();
			lane[t] = yt_row_best(r.in, src, first, r.cols, most, t);
			for (uint32_t half = YT_ROW_LANES / 2; half > 0; half /= 2) {
				__syncthreads();
				if (t < half && lane[t + half] > lane[t])
					lane[t] = lane[t + half];
			}
			__syncthreads();
			uint64_t best = lane[0];
			most = best - 1;
			if (t != 0)
				continue;
			uint32_t at = yt_rank_index(best);
			ranked[row * r.k + i] = {yt_load(r.in, src, first + at), (int32_t)at};
		}
	}
}

static uint32_t row_blocks(const yt_rows &r)
{
	return r.rows < 1u << 20 ? r.rows : 1u << 20;
}

cudaError_t yt_launch_softmax(const yt_rows &r, const void *src, void *dst, cudaStream_t stream)
{
	softmax_kernel<<<row_blocks(r), YT_ROW_LANES, 0, stream>>>(r, src, dst);
	return cudaGetLastError();
}

cudaError_t yt_launch_topk(const yt_rows &r, const void *src, void *ranked, cudaStream_t stream)
{
	topk_kernel<<<row_blocks(r), YT_ROW_LANES, 0, stream>>>(r, src, (yt_ranked *)ranked);
	return cudaGetLastError();
}

static uint32_t element_blocks(uint64_t n, uint32_t block)
{
	uint64_t blocks = (n + 4 * (uint64_t)block - 1) / (4 * (uint64_t)block);

	return blocks < 1u << 20 ? (uint32_t)blocks : 1u << 20;
}

static __global__ void __launch_bounds__(256)
	convert_kernel(yt_convert v, uint64_t n, const void *src, const float *scales, void *dst, bool wide)
{
	uint64_t step = 4 * (uint64_t)gridDim.x * blockDim.x;

	for (uint64_t i = 4 * ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x); i < n; i += step)
		yt_convert_body(v, n, src, scales, dst, i, wide);
}

cudaError_t yt_launch_convert(const yt_convert &v, const void *src, const float *scales, void *dst, uint32_t block, cudaStream_t stream)
{
	uint64_t n = (uint64_t)v.n * v.c * v.h * v.w;

	convert_kernel<<<element_blocks(n, block), block, 0, stream>>>(v, n, src, scales, dst, yt_wide(v.in, src) && yt_wide(v.out, dst));
	return cudaGetLastError();
}
