// SPDX-License-Identifier: Apache-2.0
//
// reduce.cu - sum, mean, minimum or maximum of n values in the tree of yt_math.h.
//
// Reads 4n bytes (2n for 16-bit types), n operations; each level after the first has 1/16384 of
// the elements. Deterministic: n determines the tree, there are no atomics, and the launch
// configuration does not change a bit. YT_REDUCE_FAST is the last part of this file. A block
// reduces one chunk, so n up to 2^31 chunks (2^45 values) is one launch per level.
#include "kernels.h"
#include "ops.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

template <uint32_t op>
static __global__ void __launch_bounds__(YT_REDUCE_THREADS)
	reduce_kernel(const float *x, uint64_t n, float *out, bool wide, float divide)
{
	__shared__ alignas(16) float lanes[YT_REDUCE_LANES];
	uint32_t t = threadIdx.x;

	yt_reduce_gather(op, x, n, blockIdx.x, t, wide, lanes);
#pragma unroll
	for (uint32_t half = YT_REDUCE_LANES / 2; half > 0; half /= 2) {
		__syncthreads();
		yt_reduce_fold(op, half, t, lanes);
	}
	if (t == 0) // which wrote lanes[0] itself, in the last fold
		out[blockIdx.x] = divide != 0 ? lanes[0] / divide : lanes[0];
}

// The first level of 16-bit values.
static __global__ void __launch_bounds__(YT_REDUCE_THREADS)
	reduce_half_kernel(uint32_t op, uint32_t type, const void *x, uint64_t n, float *out, bool wide, float divide)
{
	__shared__ alignas(16) float lanes[YT_REDUCE_LANES];
	uint32_t t = threadIdx.x;

	yt_reduce_gather_any(op, type, x, n, blockIdx.x, t, wide, lanes);
#pragma unroll
	for (uint32_t half = YT_REDUCE_LANES / 2; half > 0; half /= 2) {
		__syncthreads();
		yt_reduce_fold(op, half, t, lanes);
	}
	if (t == 0)
		out[blockIdx.x] = divide != 0 ? lanes[0] / divide : lanes[0];
}

static uint64_t chunks(uint64_t n)
{
	return n == 0 ? 1 : (n + YT_REDUCE_CHUNK - 1) / YT_REDUCE_CHUNK;
}

uint64_t yt_reduce_scratch(uint64_t n)
{
	uint64_t total = 0;

	while ((n = chunks(n)) > 1)
		total += (n + 3) / 4 * 4; // levels are aligned to 16 bytes
	return 4 * total;
}

cudaError_t yt_launch_reduce(uint32_t op, const void *values, uint32_t type, uint64_t n, float *out, float *scratch,
			     cudaStream_t stream)
{
	const float *x = (const float *)values;
	float total = (float)n;

	for (;;) {
		uint64_t blocks = chunks(n);
		float *to = blocks == 1 ? out : scratch;
		bool wide = yt_aligned16(x);
		float divide = op == YT_REDUCE_MEAN && blocks == 1 ? total : 0;

		if (blocks > 0x7fffffff)
			return cudaErrorInvalidValue;
		if (type != YT_F32)
			reduce_half_kernel<<<(unsigned)blocks, YT_REDUCE_THREADS, 0, stream>>>(
				op == YT_REDUCE_MEAN ? (uint32_t)YT_REDUCE_SUM : op, type, x, n, to, yt_wide(type, x), divide);
		else if (op == YT_REDUCE_SUM || op == YT_REDUCE_MEAN)
			reduce_kernel<YT_REDUCE_SUM>
				<<<(unsigned)blocks, YT_REDUCE_THREADS, 0, stream>>>(x, n, to, wide, divide);
		else if (op == YT_REDUCE_MIN)
			reduce_kernel<YT_REDUCE_MIN>
				<<<(unsigned)blocks, YT_REDUCE_THREADS, 0, stream>>>(x, n, to, wide, divide);
		else
			reduce_kernel<YT_REDUCE_MAX>
				<<<(unsigned)blocks, YT_REDUCE_THREADS, 0, stream>>>(x, n, to, wide, divide);
		cudaError_t rc = cudaGetLastError();
		if (rc != cudaSuccess || blocks == 1)
			return rc;
		x = scratch;
		type = YT_F32;
		n = blocks;
		scratch += (blocks + 3) / 4 * 4;
	}
}

// ---- any order -------------------------------------------------------------

#define FAST_BLOCKS 1024u

static __device__ float reduce_warp(uint32_t op, const cg::thread_block_tile<32> &warp, float v)
{
#pragma unroll
	for (uint32_t half = 16; half > 0; half /= 2)
		v = yt_reduce_combine(op, v, warp.shfl_down(v, half));
	return v;
}

// Reduces a block; thread 0 has the result.
static __device__ float reduce_block(uint32_t op, const cg::thread_block &block, float v, float *lane)
{
	cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);

	v = reduce_warp(op, warp, v);
	if (warp.thread_rank() == 0)
		lane[warp.meta_group_rank()] = v;
	block.sync();
	v = warp.thread_rank() < warp.meta_group_size() ? lane[warp.thread_rank()] : yt_reduce_identity(op);
	return reduce_warp(op, warp, v); // every warp computes it; the first one's result is used
}

// Each block stores its partial result; the last block to finish combines all of them.
static __global__ void __launch_bounds__(YT_REDUCE_THREADS)
	reduce_fast_kernel(uint32_t op, uint32_t type, const void *x, uint64_t n, float *part, uint32_t *done, float *out, bool wide, float divide)
{
	__shared__ float lane[32];
	__shared__ bool last;
	cg::thread_block block = cg::this_thread_block();
	uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
	float v = reduce_block(op, block, yt_reduce_part(op, type, x, n, i, (uint64_t)gridDim.x * blockDim.x, wide), lane);

	if (block.thread_rank() == 0) {
		part[blockIdx.x] = v;
		__threadfence(); // publish the partial result before the count
		last = atomicAdd(done, 1) == gridDim.x - 1;
	}
	block.sync();
	if (!last)
		return;
	__threadfence();
	v = yt_reduce_identity(op);
	for (uint32_t b = block.thread_rank(); b < gridDim.x; b += blockDim.x)
		v = yt_reduce_combine(op, v, ((volatile float *)part)[b]);
	v = reduce_block(op, block, v, lane);
	if (block.thread_rank() == 0)
		*out = divide != 0 ? v / divide : v;
}

uint64_t yt_reduce_fast_scratch(void)
{
	return 4 * (FAST_BLOCKS + 4);
}

cudaError_t yt_launch_reduce_fast(uint32_t op, const void *x, uint32_t type, uint64_t n, float *out, float *scratch, cudaStream_t stream)
{
	uint64_t blocks = (n + 16 * YT_REDUCE_THREADS - 1) / (16 * YT_REDUCE_THREADS);
	uint32_t *done = (uint32_t *)(scratch + FAST_BLOCKS);
	cudaError_t e = cudaMemsetAsync(done, 0, sizeof *done, stream);

	if (e != cudaSuccess)
		return e;
	blocks = blocks == 0 ? 1 : blocks > FAST_BLOCKS ? FAST_BLOCKS : blocks;
	reduce_fast_kernel<<<(unsigned)blocks, YT_REDUCE_THREADS, 0, stream>>>(op == YT_REDUCE_MEAN ? (uint32_t)YT_REDUCE_SUM : op, type, x, n, scratch,
										done, out, yt_wide(type, x), op == YT_REDUCE_MEAN ? (float)n : 0);
	return cudaGetLastError();
}
