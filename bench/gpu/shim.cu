// SPDX-License-Identifier: Apache-2.0
//
// shim.cu - C functions that launch the kernels on raw device pointers. compare.py calls them
// with the memory and stream of another library.
#include "kernels.h"
#include "ops.h"
#include "yt_check.h"

#define EXPORT extern "C" __attribute__((visibility("default"))) int

static yt_preprocess frame_of(uint32_t w, uint32_t h, uint32_t side)
{
	yt_preprocess p = {};

	p.format = YT_FORMAT_NV12;
	p.fit = YT_FIT_LETTERBOX;
	p.width = w;
	p.height = h;
	p.out_w = p.out_h = side;
	p.pad = 114;
	p.matrix = YT_MATRIX_BT709_LIMITED;
	p.chroma = YT_CHROMA_BILINEAR;
	p.std[0] = p.std[1] = p.std[2] = 1;
	return p;
}

// Frames are consecutive and tightly packed. Several frames are one launch, as in a list.
EXPORT shim_preprocess(const uint8_t *frames, void *out, uint32_t n, uint32_t w, uint32_t h, uint32_t side, uint32_t type, cudaStream_t s)
{
	yt_preprocess p = frame_of(w, h, side);
	uint64_t bytes = (uint64_t)w * h + 2ull * ((w + 1) / 2) * ((h + 1) / 2);

	p.type = (uint8_t)type;
	yt_pre_plan plan = yt_plan_preprocess(&p);
	if (n == 1 && type == YT_F32) {
		const uint8_t *plane[3] = {frames, frames + (uint64_t)w * h, nullptr};

		return yt_launch_preprocess(plan, plane, (float *)out, 256, s);
	}
	for (uint32_t first = 0; first < n; first += YT_BATCH_FRAMES) {
		uint32_t count = n - first < YT_BATCH_FRAMES ? n - first : YT_BATCH_FRAMES;
		yt_batch b = {};

		for (uint32_t i = 0; i < count; i++) {
			const uint8_t *f = frames + (first + i) * bytes;

			b.plan[i] = plan;
			b.in[i] = {f, f + (uint64_t)w * h, nullptr};
			b.out[i] = (uint8_t *)out + (uint64_t)(first + i) * 3 * side * side * yt_type_bytes(type);
		}
		cudaError_t e = yt_launch_batch(b, count, 256, s);
		if (e != cudaSuccess)
			return e;
	}
	return 0;
}

EXPORT shim_copy(void *dst, const void *src, uint64_t n, cudaStream_t s)
{
	return yt_launch_copy(dst, src, n, 256, s);
}

EXPORT shim_memcpy(void *dst, const void *src, uint64_t n, cudaStream_t s)
{
	return cudaMemcpyAsync(dst, src, n, cudaMemcpyDeviceToDevice, s);
}

EXPORT shim_sum(const void *x, uint64_t n, float *out, float *scratch, cudaStream_t s)
{
	return yt_launch_reduce(YT_REDUCE_SUM, (const float *)x, n, out, scratch, s);
}

EXPORT shim_scratch(uint64_t n)
{
	return (int)yt_reduce_scratch(n);
}

EXPORT shim_softmax(const void *x, void *y, uint32_t rows, uint32_t cols, uint32_t type, cudaStream_t s)
{
	yt_rows r = {type, type, rows, cols, 0, 0};

	return yt_launch_softmax(r, x, y, s);
}

EXPORT shim_reduce(uint32_t op, const void *x, uint64_t n, float *out, float *scratch, cudaStream_t s)
{
	return yt_launch_reduce(op, (const float *)x, n, out, scratch, s);
}

// n images of h by w pixels of c floats, NHWC, to NCHW of type out.
EXPORT shim_convert(const void *x, void *y, uint32_t n, uint32_t c, uint32_t h, uint32_t w, uint32_t turn, uint32_t out, float scale, cudaStream_t s)
{
	yt_convert v = {};

	v.out = (uint8_t)out;
	v.in_layout = turn ? YT_LAYOUT_NHWC : YT_LAYOUT_NCHW;
	v.n = n;
	v.c = c;
	v.h = h;
	v.w = w;
	v.scale = scale;
	return yt_launch_convert(v, x, nullptr, y, 256, s);
}

// Boxes of an RGB frame, 3 bytes per pixel; each becomes 3 by side by side floats.
EXPORT shim_roi(const uint8_t *frame, const void *boxes, void *out, uint32_t n, uint32_t w, uint32_t h, uint32_t side, cudaStream_t s)
{
	yt_roi r = {};
	const uint8_t *plane[3] = {frame, nullptr, nullptr};

	r.format = YT_FORMAT_RGB;
	r.width = w;
	r.height = h;
	r.out_w = r.out_h = side;
	r.max = n;
	r.std[0] = r.std[1] = r.std[2] = 1;
	return yt_launch_roi(r, boxes, plane, out, 256, s);
}

EXPORT shim_diff(const uint8_t *a, const uint8_t *b, void *out, uint32_t w, uint32_t h, cudaStream_t s)
{
	yt_diff d = {w, h, {0, 0}, 16, 0};

	return yt_launch_diff(d, a, b, out, s);
}

EXPORT shim_stats(const uint8_t *frame, void *out, uint32_t w, uint32_t h, cudaStream_t s)
{
	yt_plane_stats a = {YT_FORMAT_GRAY, w, h, 0, 0, 255};

	return yt_launch_stats(a, frame, out, s);
}

EXPORT shim_topk(const void *x, void *y, uint32_t rows, uint32_t cols, uint32_t k, cudaStream_t s)
{
	yt_rows r = {YT_F32, YT_F32, rows, cols, 0, k};

	return yt_launch_topk(r, x, y, s);
}

EXPORT shim_nms(const void *boxes, void *out, void *scratch, uint32_t n, float iou, cudaStream_t s)
{
	yt_nms a = {YT_NMS_AGNOSTIC, n, n, 1, iou};

	return scratch == nullptr ? (int)yt_nms_scratch(a) : (int)yt_launch_nms(a, boxes, out, scratch, s);
}

EXPORT shim_decode(const void *x, void *out, void *scratch, uint32_t anchors, uint32_t classes, uint32_t max, float threshold, cudaStream_t s)
{
	yt_decode d = {YT_HEAD_PLANES, YT_F32, anchors, classes, max, 1, threshold, 1, 1, 0, 0, 1e6f, 1e6f};

	return scratch == nullptr ? (int)yt_decode_scratch(d) : (int)yt_launch_decode(d, x, out, scratch, s);
}

EXPORT shim_gemm(const void *a, const void *b, void *c, uint32_t m, uint32_t n, uint32_t k, uint32_t type, uint32_t out, int cc, cudaStream_t s)
{
	yt_gemm g = {};

	g.m = m;
	g.n = n;
	g.k = k;
	g.type = (uint8_t)type;
	g.out = (uint8_t)out;
	g.alpha = 1;
	return yt_launch_gemm(g, a, b, nullptr, c, cc, s);
}
