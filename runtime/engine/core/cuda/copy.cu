// SPDX-License-Identifier: Apache-2.0
//
// copy.cu - device to device, 16 bytes per thread and step.
//
// n bytes are read and n written; no flops. Bound by memory bandwidth.
#include "bodies.h"
#include "kernels.h"

static __global__ void __launch_bounds__(256) copy_kernel(uint8_t *dst, const uint8_t *src, uint64_t n)
{
	yt_copy_body(dst, src, n, (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, (uint64_t)gridDim.x * blockDim.x);
}

bool yt_copy_fits(const void *dst, const void *src)
{
	return (((uintptr_t)dst ^ (uintptr_t)src) & 15) == 0;
}

cudaError_t yt_launch_copy(void *dst, const void *src, uint64_t n, uint32_t block, cudaStream_t stream)
{
	// Four words per thread amortise the index arithmetic; the loop handles the rest.
	uint64_t blocks = (n / 16 + block * 4 - 1) / (block * 4);

	blocks = blocks < 1 ? 1 : blocks > 65536 ? 65536 : blocks;
	copy_kernel<<<(unsigned)blocks, block, 0, stream>>>((uint8_t *)dst, (const uint8_t *)src, n);
	return cudaGetLastError();
}
