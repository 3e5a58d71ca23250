// SPDX-License-Identifier: Apache-2.0
//
// reduce.cu - sum, minimum or maximum of n values in the tree of yt_math.h.
//
// Reads 4n bytes, n operations; each level after the first has 1/16384 of the elements.
// Deterministic: n determines the tree, there are no atomics, and the launch configuration does
// not change a bit. A block reduces one chunk, so n up to 2^31 chunks (2^45 values) is one launch
// per level.
#include "bodies.h"
#include "kernels.h"

template <uint32_t op>
static __global__ void __launch_bounds__(YT_REDUCE_THREADS) reduce_kernel(const float *x, uint64_t n, float *out, bool wide)
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
		out[blockIdx.x] = lanes[0];
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

cudaError_t yt_launch_reduce(uint32_t op, const float *x, uint64_t n, float *out, float *scratch, cudaStream_t stream)
{
	for (;;) {
		uint64_t blocks = chunks(n);
		float *to = blocks == 1 ? out : scratch;
		bool wide = yt_aligned16(x);

		if (blocks > 0x7fffffff)
			return cudaErrorInvalidValue;
		if (op == YT_REDUCE_SUM)
			reduce_kernel<YT_REDUCE_SUM><<<(unsigned)blocks, YT_REDUCE_THREADS, 0, stream>>>(x, n, to, wide);
		else if (op == YT_REDUCE_MIN)
			reduce_kernel<YT_REDUCE_MIN><<<(unsigned)blocks, YT_REDUCE_THREADS, 0, stream>>>(x, n, to, wide);
		else
			reduce_kernel<YT_REDUCE_MAX><<<(unsigned)blocks, YT_REDUCE_THREADS, 0, stream>>>(x, n, to, wide);
		cudaError_t rc = cudaGetLastError();
		if (rc != cudaSuccess || blocks == 1)
			return rc;
		x = scratch;
		n = blocks;
		scratch += (blocks + 3) / 4 * 4;
	}
}
