// SPDX-License-Identifier: Apache-2.0
//
// boxes.cu - decodes the output of detectors to boxes, and NMS, entirely on the device: no
// count is copied to the host. Boxes are ranked by counting instead of sorting: n boxes take n
// * n comparisons, 1 M for 1024, in one launch without barriers.
//
// Decode reads every score once (8400 x 84 float32: 2.8 MB). NMS of n boxes computes n * n / 2
// overlaps, then processes 64 boxes per step.
#include "kernels.h"
#include "ops.h"

#define THREADS 256u

// ---- decode: keys of candidates; selection of the best; their boxes ---------

struct decode_scratch {
	uint32_t *found, *chosen_n; // per image
	uint64_t *keys, *chosen;
};

static __host__ __device__ uint64_t decode_bytes(const yt_decode &d)
{
	return 16 + 8 * ((uint64_t)d.anchors + d.max);
}

static __device__ decode_scratch decode_part(const yt_decode &d, uint8_t *scratch, uint32_t slot)
{
	uint8_t *p = scratch + slot * decode_bytes(d);

	return {(uint32_t *)p, (uint32_t *)p + 1, (uint64_t *)(p + 16), (uint64_t *)(p + 16) + d.anchors};
}

static __global__ void decode_begin(yt_decode d, uint8_t *scratch, uint32_t images)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < images)
		*decode_part(d, scratch, i).found = 0;
}

static __global__ void __launch_bounds__(THREADS) decode_scan(yt_decode d, const uint8_t *src, uint64_t image, uint8_t *scratch)
{
	uint32_t anchor = blockIdx.x * THREADS + threadIdx.x;
	decode_scratch s = decode_part(d, scratch, blockIdx.y);

	if (anchor >= d.anchors)
		return;
	uint64_t key = yt_decode_key(d, src + blockIdx.y * image, anchor);
	if (key != 0)
		s.keys[atomicAdd(s.found, 1u)] = key;
}

static __global__ void __launch_bounds__(THREADS) decode_select(yt_decode d, uint8_t *scratch)
{
	__shared__ uint32_t histogram[256], want, chosen;
	__shared__ uint64_t limit;
	decode_scratch s = decode_part(d, scratch, blockIdx.x);
	uint32_t t = threadIdx.x, n = *s.found, digit;

	if (t == 0) {
		want = d.max;
		chosen = 0;
		limit = 0;
	}
	if (n > d.max)
		for (int shift = 56; shift >= 0; shift -= 8) {
			histogram[t] = 0;
			__syncthreads();
			for (uint32_t i = t; i < n; i += THREADS)
				if (yt_select_digit(s.keys[i], limit, (uint32_t)shift, &digit))
					atomicAdd(&histogram[digit], 1u);
			__syncthreads();
			if (t == 0)
				limit = yt_select_next(histogram, limit, (uint32_t)shift, &want);
			__syncthreads();
		}
	__syncthreads();
	for (uint32_t i = t; i < n; i += THREADS)
		if (s.keys[i] >= limit)
			s.chosen[atomicAdd(&chosen, 1u)] = s.keys[i];
	__syncthreads();
	if (t == 0)
		*s.chosen_n = chosen;
}

static __global__ void __launch_bounds__(THREADS) decode_write(yt_decode d, const uint8_t *src, uint64_t image, uint8_t *scratch, uint8_t *dst)
{
	decode_scratch s = decode_part(d, scratch, blockIdx.y);
	yt_boxes *out = (yt_boxes *)(dst + blockIdx.y * YT_BOXES_BYTES(d.max));
	uint32_t i = blockIdx.x * THREADS + threadIdx.x, n = *s.chosen_n;

	if (i == 0) {
		*out = {};
		out->count = n;
		out->found = *s.found;
	}
	if (i < n)
		yt_decode_write(d, src + blockIdx.y * image, s.chosen, n, i, (yt_box *)(out + 1));
}

static __global__ void __launch_bounds__(THREADS) gather_kernel(yt_gather g, const void *output, const yt_boxes *boxes, float *dst)
{
	uint32_t i = blockIdx.x * THREADS + threadIdx.x;

	if (i < g.max * g.count)
		yt_gather_body(&g, output, boxes, dst, i);
}

cudaError_t yt_launch_gather(const yt_gather &g, const void *output, const void *boxes, float *dst, cudaStream_t stream)
{
	gather_kernel<<<(g.max * g.count + THREADS - 1) / THREADS, THREADS, 0, stream>>>(g, output, (const yt_boxes *)boxes, dst);
	return cudaGetLastError();
}

// A block draws some words of a grid; consecutive threads read neighbouring prototype pixels.
static __global__ void __launch_bounds__(THREADS)
	masks_kernel(yt_masks m, const void *prototypes, const float *rows, const yt_grid *grids, uint8_t *dst, uint64_t bytes)
{
	for (uint32_t i = blockIdx.y; i < m.count; i += gridDim.y) {
		yt_grid g = grids[i];

		if (!yt_grid_fits(&m, &g, bytes))
			continue;
		for (uint64_t word = (uint64_t)blockIdx.x * THREADS + threadIdx.x; word < yt_grid_words(&g); word += (uint64_t)gridDim.x * THREADS)
			((uint32_t *)(dst + g.at))[word] = yt_mask_word(&m, prototypes, rows, &g, word);
	}
}

cudaError_t yt_launch_masks(const yt_masks &m, const void *prototypes, const float *rows, const void *grids, void *dst, uint64_t bytes,
			    cudaStream_t stream)
{
	cudaError_t e = cudaMemsetAsync(dst, 0, bytes, stream);

	if (e != cudaSuccess)
		return e;
	masks_kernel<<<dim3(16, m.count < 4096 ? m.count : 4096), THREADS, 0, stream>>>(m, prototypes, rows, (const yt_grid *)grids, (uint8_t *)dst,
											bytes);
	return cudaGetLastError();
}

// Images per launch: as many as fit 64 MiB, at least one.
static uint32_t together(uint64_t bytes, uint32_t batch)
{
	uint64_t n = bytes == 0 ? batch : (64ull << 20) / bytes;

	n = n < 1 ? 1 : n > 4096 ? 4096 : n;
	return n < batch ? (uint32_t)n : batch;
}

uint64_t yt_decode_scratch(const yt_decode &d)
{
	return together(decode_bytes(d), d.batch) * decode_bytes(d);
}

cudaError_t yt_launch_decode(const yt_decode &d, const void *src, void *dst, void *scratch, cudaStream_t stream)
{
	uint64_t image = yt_decode_values(&d) * d.anchors * (d.type == YT_F32 ? 4 : 2);
	uint32_t step = together(decode_bytes(d), d.batch);
	uint8_t *room = (uint8_t *)scratch;

	for (uint32_t i = 0; i < d.batch; i += step) {
		uint32_t n = d.batch - i < step ? d.batch - i : step;
		const uint8_t *from = (const uint8_t *)src + i * image;
		uint8_t *to = (uint8_t *)dst + i * YT_BOXES_BYTES(d.max);

		decode_begin<<<(n + THREADS - 1) / THREADS, THREADS, 0, stream>>>(d, room, n);
		decode_scan<<<dim3((d.anchors + THREADS - 1) / THREADS, n), THREADS, 0, stream>>>(d, from, image, room);
		decode_select<<<n, THREADS, 0, stream>>>(d, room);
		decode_write<<<dim3((d.max + THREADS - 1) / THREADS, n), THREADS, 0, stream>>>(d, from, image, room, to);
		cudaError_t e = cudaGetLastError();
		if (e != cudaSuccess)
			return e;
	}
	return cudaSuccess;
}

// ---- nms: order, overlaps, sweep ---------------------------------------------

static __host__ __device__ uint32_t nms_words(const yt_nms &n)
{
	return (n.in_max + 63) / 64;
}

static __host__ __device__ uint64_t nms_bytes(const yt_nms &n)
{
	return (uint64_t)n.in_max * (sizeof(yt_box) + 8 * (uint64_t)nms_words(n));
}

static __device__ uint32_t nms_count(const yt_nms &n, const yt_boxes *in)
{
	return in->count < n.in_max ? in->count : n.in_max;
}

static __global__ void __launch_bounds__(THREADS) nms_sort(yt_nms n, const uint8_t *src, uint8_t *scratch)
{
	const yt_boxes *in = (const yt_boxes *)(src + blockIdx.y * YT_BOXES_BYTES(n.in_max));
	uint32_t i = blockIdx.x * THREADS + threadIdx.x, count = nms_count(n, in);

	if (i < count)
		yt_nms_order((const yt_box *)(in + 1), count, i, (yt_box *)(scratch + blockIdx.y * nms_bytes(n)));
}

// Compares 64 boxes with 64 boxes of the same or lower rank.
static __global__ void __launch_bounds__(64) nms_overlaps(yt_nms n, const uint8_t *src, uint8_t *scratch)
{
	__shared__ yt_box cols[64];
	const yt_boxes *in = (const yt_boxes *)(src + blockIdx.z * YT_BOXES_BYTES(n.in_max));
	yt_box *sorted = (yt_box *)(scratch + blockIdx.z * nms_bytes(n));
	uint64_t *mask = (uint64_t *)(sorted + n.in_max);
	uint32_t count = nms_count(n, in), column = blockIdx.x, row = 64 * blockIdx.y + threadIdx.x;

	if (column < blockIdx.y || 64 * column >= count || 64 * blockIdx.y >= count)
		return;
	if (64 * column + threadIdx.x < count)
		cols[threadIdx.x] = sorted[64 * column + threadIdx.x];
	__syncthreads();
	if (row < count)
		mask[(uint64_t)row * nms_words(n) + column] = yt_nms_word(n, cols, column, count, sorted[row], row);
}

static __global__ void __launch_bounds__(THREADS) nms_sweep(yt_nms n, const uint8_t *src, const uint8_t *scratch, uint8_t *dst)
{
	__shared__ uint64_t dropped[YT_MAX_BOXES / 64], among[64], kept;
	const yt_boxes *in = (const yt_boxes *)(src + blockIdx.x * YT_BOXES_BYTES(n.in_max));
	yt_boxes *out = (yt_boxes *)(dst + blockIdx.x * YT_BOXES_BYTES(n.max));
	const yt_box *sorted = (const yt_box *)(scratch + blockIdx.x * nms_bytes(n));
	const uint64_t *mask = (const uint64_t *)(sorted + n.in_max);
	uint32_t t = threadIdx.x, count = nms_count(n, in), words = nms_words(n), found = 0;

	for (uint32_t w = t; w < words; w += THREADS)
		dropped[w] = 0;
	for (uint32_t w = 0; 64 * w < count; w++) {
		uint32_t boxes = count - 64 * w < 64 ? count - 64 * w : 64;

		if (t < boxes)
			among[t] = mask[(uint64_t)(64 * w + t) * words + w];
		__syncthreads();
		if (t == 0)
			kept = yt_nms_keep(dropped[w], among, boxes);
		__syncthreads();
		uint64_t keep = kept;
		if (t < boxes && (keep >> t & 1) != 0) {
			uint32_t place = found + yt_popcount(keep & ((1ull << t) - 1));

			if (place < n.max)
				((yt_box *)(out + 1))[place] = sorted[64 * w + t];
		}
		found += yt_popcount(keep);
		for (uint32_t c = w + 1 + t; 64 * c < count; c += THREADS) {
			uint64_t drop = 0;

			for (uint32_t j = 0; j < boxes; j++)
				if ((keep >> j & 1) != 0)
					drop |= mask[(uint64_t)(64 * w + j) * words + c];
			dropped[c] |= drop;
		}
		__syncthreads();
	}
	if (t == 0) {
		*out = {};
		out->found = found;
		out->count = found < n.max ? found : n.max;
	}
}

uint64_t yt_nms_scratch(const yt_nms &n)
{
	return together(nms_bytes(n), n.batch) * nms_bytes(n);
}

cudaError_t yt_launch_nms(const yt_nms &n, const void *src, void *dst, void *scratch, cudaStream_t stream)
{
	uint32_t step = together(nms_bytes(n), n.batch), words = nms_words(n);
	uint8_t *room = (uint8_t *)scratch;

	for (uint32_t i = 0; i < n.batch; i += step) {
		uint32_t m = n.batch - i < step ? n.batch - i : step;
		const uint8_t *from = (const uint8_t *)src + i * YT_BOXES_BYTES(n.in_max);

		nms_sort<<<dim3((n.in_max + THREADS - 1) / THREADS, m), THREADS, 0, stream>>>(n, from, room);
		nms_overlaps<<<dim3(words, words, m), 64, 0, stream>>>(n, from, room);
		nms_sweep<<<m, THREADS, 0, stream>>>(n, from, room, (uint8_t *)dst + i * YT_BOXES_BYTES(n.max));
		cudaError_t e = cudaGetLastError();
		if (e != cudaSuccess)
			return e;
	}
	return cudaSuccess;
}
