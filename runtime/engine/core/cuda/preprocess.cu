// SPDX-License-Identifier: Apache-2.0
//
// preprocess.cu - one YUV frame to one NCHW float32 tensor, in one pass.
//
// Reads the cropped frame at most once (1.5 bytes per luma sample; neighbouring threads share
// samples through L1) and writes 12 bytes per tensor pixel; about 35 flops per pixel. 1080p to
// 640x640 letterbox: at most 3.1 MB read, 4.9 MB written, 8 Mflop. Bound by memory bandwidth on
// every supported device.
#include "bodies.h"
#include "kernels.h"

static __global__ void __launch_bounds__(256)
	preprocess_kernel(yt_pre_plan plan, yt_planes in, float *out, bool wide)
{
	uint32_t x = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
	uint32_t y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < plan.out_w && y < plan.out_h)
		yt_preprocess_body(plan, in, out, x, y, wide);
}

cudaError_t yt_launch_preprocess(const yt_pre_plan &plan, const uint8_t *const plane[3], float *out, uint32_t threads,
				 cudaStream_t stream)
{
	dim3 block(32, threads / 32);
	dim3 grid((plan.out_w + 4 * block.x - 1) / (4 * block.x), (plan.out_h + block.y - 1) / block.y);
	yt_planes in = {plane[0], plane[1], plane[2]};
	bool wide = plan.out_w % 4 == 0 && yt_aligned16(out);

	preprocess_kernel<<<grid, block, 0, stream>>>(plan, in, out, wide);
	return cudaGetLastError();
}
