// SPDX-License-Identifier: Apache-2.0
//
// kernels.h - launch functions for the host side. Each kernel has its own file; its body is in
// bodies.h, which also compiles for a CPU.
//
// Every function queues on the stream and returns the error of the launch. Arguments were
// validated (yt_check.h): pointers cover the accessed memory.
#ifndef YT_KERNELS_H
#define YT_KERNELS_H

#include "yt_math.h"

#include <cuda_runtime_api.h>

// Indexed kernel arguments stay in constant memory; old devices copy them.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#define YT_GRID_CONSTANT
#else
#define YT_GRID_CONSTANT __grid_constant__
#endif

// `block`: threads per block, from kernel_config.
cudaError_t yt_launch_copy(void *dst, const void *src, uint64_t n, uint32_t block, cudaStream_t stream);

// True when yt_launch_copy can move dst and src in 16-byte words.
bool yt_copy_fits(const void *dst, const void *src);

cudaError_t yt_launch_preprocess(const yt_pre_plan &plan, const uint8_t *const plane[3], float *out, uint32_t block,
				 cudaStream_t stream);

// Any type, layout and number of channels.
cudaError_t yt_launch_tensor(const yt_pre_plan &plan, const uint8_t *const plane[3], void *out, uint32_t block, cudaStream_t stream);
// n frames of the table, with tensors of one size, in one kernel.
struct yt_batch;
cudaError_t yt_launch_batch(const yt_batch &b, uint32_t n, uint32_t block, cudaStream_t stream);
cudaError_t yt_launch_roi(const yt_roi &r, const void *boxes, const uint8_t *const plane[3], void *out, uint32_t block,
			  cudaStream_t stream);
cudaError_t yt_launch_diff(const yt_diff &d, const uint8_t *a, const uint8_t *b, void *out, cudaStream_t stream);
cudaError_t yt_launch_stats(const yt_plane_stats &s, const uint8_t *plane, void *out, cudaStream_t stream);

// Bytes of device memory that the launches below use as `scratch`.
uint64_t yt_decode_scratch(const yt_decode &d);
uint64_t yt_nms_scratch(const yt_nms &n);
cudaError_t yt_launch_decode(const yt_decode &d, const void *src, void *dst, void *scratch, cudaStream_t stream);
cudaError_t yt_launch_nms(const yt_nms &n, const void *src, void *dst, void *scratch, cudaStream_t stream);

cudaError_t yt_launch_gather(const yt_gather &g, const void *output, const void *boxes, float *dst, cudaStream_t stream);

cudaError_t yt_launch_masks(const yt_masks &m, const void *prototypes, const float *rows, const void *grids, void *dst, uint64_t bytes,
			    cudaStream_t stream);

cudaError_t yt_launch_softmax(const yt_rows &r, const void *src, void *dst, cudaStream_t stream);
cudaError_t yt_launch_topk(const yt_rows &r, const void *src, void *ranked, cudaStream_t stream);
cudaError_t yt_launch_convert(const yt_convert &v, const void *src, const float *scales, void *dst, uint32_t block, cudaStream_t stream);
cudaError_t yt_launch_gemm(const yt_gemm &g, const void *a, const void *b, const float *bias, void *c, int cc_major, cudaStream_t stream);

// Bytes of device memory that yt_launch_reduce uses for n values.
uint64_t yt_reduce_scratch(uint64_t n);

cudaError_t yt_launch_reduce(uint32_t op, const float *x, uint64_t n, float *out, float *scratch, cudaStream_t stream);

#endif // YT_KERNELS_H
