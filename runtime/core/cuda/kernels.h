// SPDX-License-Identifier: Apache-2.0
//
// kernels.h - what the host side launches. Each kernel is in its own file; its
// body is in bodies.h, where it also compiles for a CPU.
//
// Every function queues on the stream and returns the launch's error. Arguments
// were checked before (yt_check.h): pointers cover what the kernels touch.
#ifndef YT_KERNELS_H
#define YT_KERNELS_H

#include "yt_math.h"

#include <cuda_runtime_api.h>

// `block`: threads a block, from kernel_config.
cudaError_t yt_launch_copy(void *dst, const void *src, uint64_t n, uint32_t block, cudaStream_t stream);

// True when yt_launch_copy can move dst and src in 16-byte words.
bool yt_copy_fits(const void *dst, const void *src);

cudaError_t yt_launch_preprocess(const yt_pre_plan &plan, const uint8_t *const plane[3], float *out, uint32_t block,
				 cudaStream_t stream);

cudaError_t yt_launch_signal(uint32_t *word, uint32_t value, cudaStream_t stream);

// Bytes of device memory that yt_launch_reduce uses for n values.
uint64_t yt_reduce_scratch(uint64_t n);

cudaError_t yt_launch_reduce(uint32_t op, const float *x, uint64_t n, float *out, float *scratch,
			     cudaStream_t stream);

#endif // YT_KERNELS_H
