// SPDX-License-Identifier: Apache-2.0
//
// image.cu - tensors of any type and layout from any frame, tensors of a list of boxes, and the
// difference of two planes. Each reads its samples once and writes its result once: bound by
// memory bandwidth.
#include "kernels.h"
#include "ops.h"

static __global__ void __launch_bounds__(256) tensor_kernel(yt_pre_plan plan, yt_planes in, void *out, bool wide)
{
	uint32_t x = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
	uint32_t y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < plan.out_w && y < plan.out_h)
		yt_tensor_body(plan, in, out, x, y, wide);
}

cudaError_t yt_launch_tensor(const yt_pre_plan &plan, const uint8_t *const plane[3], void *out, uint32_t threads, cudaStream_t stream)
{
	dim3 block(32, threads / 32);
	dim3 grid((plan.out_w + 4 * block.x - 1) / (4 * block.x), (plan.out_h + block.y - 1) / block.y);
	yt_planes in = {plane[0], plane[1], plane[2]};

	tensor_kernel<<<grid, block, 0, stream>>>(plan, in, out, yt_tensor_wide(plan, out));
	return cudaGetLastError();
}

static_assert(sizeof(yt_batch) <= 4000, "the arguments of a kernel");

// Like tensor_kernel, with one frame of the table per z.
static __global__ void __launch_bounds__(256) batch_kernel(const YT_GRID_CONSTANT yt_batch b)
{
	const yt_pre_plan &plan = b.plan[blockIdx.z];
	uint32_t x = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
	uint32_t y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < plan.out_w && y < plan.out_h)
		yt_tensor_body(plan, b.in[blockIdx.z], b.out[blockIdx.z], x, y, yt_tensor_wide(plan, b.out[blockIdx.z]));
}

cudaError_t yt_launch_batch(const yt_batch &b, uint32_t n, uint32_t threads, cudaStream_t stream)
{
	dim3 block(32, threads / 32);
	dim3 grid((b.plan[0].out_w + 4 * block.x - 1) / (4 * block.x), (b.plan[0].out_h + block.y - 1) / block.y, n);

	batch_kernel<<<grid, block, 0, stream>>>(b);
	return cudaGetLastError();
}

// A block computes rows of one box's tensor. Tensors beyond the list are 0.
static __global__ void __launch_bounds__(256) roi_kernel(yt_roi r, const yt_boxes *boxes, yt_planes in, uint8_t *out)
{
	__shared__ yt_pre_plan plan;
	uint32_t x = 4 * (blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y * blockDim.y + threadIdx.y;

	for (uint32_t i = blockIdx.z; i < r.max; i += gridDim.z) {
		uint8_t *tensor = out + i * yt_roi_bytes(r);
		bool there = i < boxes->count;

		__syncthreads();
		if (threadIdx.x == 0 && threadIdx.y == 0 && there)
			plan = yt_plan_roi(&r, (const yt_box *)(boxes + 1) + i);
		__syncthreads();
		if (x >= r.out_w || y >= r.out_h)
			continue;
		if (there) {
			yt_tensor_body(plan, in, tensor, x, y, yt_tensor_wide(plan, tensor));
			continue;
		}
		uint64_t row = yt_roi_bytes(r) / r.out_h, bytes = row / r.out_w; // bytes of a row, and of a pixel in all channels
		uint64_t to = y * row + (x + 4 < r.out_w ? x + 4 : r.out_w) * bytes;

		for (uint64_t b = y * row + x * bytes; b < to; b++)
			tensor[b] = 0;
	}
}

cudaError_t yt_launch_roi(const yt_roi &r, const void *boxes, const uint8_t *const plane[3], void *out, uint32_t threads,
			  cudaStream_t stream)
{
	dim3 block(32, threads / 32);
	dim3 grid((r.out_w + 4 * block.x - 1) / (4 * block.x), (r.out_h + block.y - 1) / block.y, r.max < 4096 ? r.max : 4096);
	yt_planes in = {plane[0], plane[1], plane[2]};

	roi_kernel<<<grid, block, 0, stream>>>(r, (const yt_boxes *)boxes, in, (uint8_t *)out);
	return cudaGetLastError();
}

// One tile per block; integer sums, so the order of additions does not matter.
static __global__ void __launch_bounds__(256)
	diff_kernel(yt_diff d, const uint8_t *a, const uint8_t *b, yt_motion *out, uint32_t w, uint32_t h)
{
	__shared__ yt_seen seen[256];
	uint32_t t = threadIdx.x;

	seen[t] = yt_diff_body(d, a, b, blockIdx.x * w, blockIdx.y * h, w, h, t, 256);
	for (uint32_t half = 128; half > 0; half /= 2) {
		__syncthreads();
		if (t < half) {
			seen[t].sum += seen[t + half].sum;
			seen[t].changed += seen[t + half].changed;
			seen[t].peak = seen[t + half].peak > seen[t].peak ? seen[t + half].peak : seen[t].peak;
		}
	}
	if (t != 0)
		return;
	atomicAdd((unsigned long long *)&out->sum, (unsigned long long)seen[0].sum);
	atomicAdd(&out->changed, seen[0].changed);
	atomicMax(&out->peak, seen[0].peak);
	if (d.block != 0)
		((uint32_t *)(out + 1))[blockIdx.y * gridDim.x + blockIdx.x] = seen[0].sum;
}

cudaError_t yt_launch_diff(const yt_diff &d, const uint8_t *a, const uint8_t *b, void *out, cudaStream_t stream)
{
	uint32_t w = d.block != 0 ? d.block : 128, h = d.block != 0 ? d.block : 32;
	dim3 grid((d.width + w - 1) / w, (d.height + h - 1) / h);
	cudaError_t e = cudaMemsetAsync(out, 0, sizeof(yt_motion), stream);

	if (e != cudaSuccess)
		return e;
	diff_kernel<<<grid, 256, 0, stream>>>(d, a, b, (yt_motion *)out, w, h);
	return cudaGetLastError();
}

static __global__ void __launch_bounds__(256) stats_kernel(yt_plane_stats s, const uint8_t *plane, yt_stats *out)
{
	__shared__ yt_pixels seen[256];
	uint32_t t = threadIdx.x;

	seen[t] = yt_stats_body(s, plane, blockIdx.x * 128, blockIdx.y * 32, 128, 32, t, 256);
	for (uint32_t half = 128; half > 0; half /= 2) {
		__syncthreads();
		if (t < half)
			yt_add_pixels(seen[t], seen[t + half]);
	}
	if (t != 0)
		return;
	atomicAdd((unsigned long long *)&out->sum, (unsigned long long)seen[0].sum);
	atomicAdd(&out->low, seen[0].low);
	atomicAdd(&out->high, seen[0].high);
	atomicAdd((unsigned long long *)&out->laplace, (unsigned long long)(long long)seen[0].laplace); // two's complement
	atomicAdd((unsigned long long *)&out->squares, (unsigned long long)seen[0].squares_high << 32 | seen[0].squares_low);
}

cudaError_t yt_launch_stats(const yt_plane_stats &s, const uint8_t *plane, void *out, cudaStream_t stream)
{
	dim3 grid((s.width + 127) / 128, (s.height + 31) / 32);
	cudaError_t e = cudaMemsetAsync(out, 0, sizeof(yt_stats), stream);

	if (e != cudaSuccess)
		return e;
	stats_kernel<<<grid, 256, 0, stream>>>(s, plane, (yt_stats *)out);
	return cudaGetLastError();
}
