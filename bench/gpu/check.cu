// SPDX-License-Identifier: Apache-2.0
//
// check.cu - runs every kernel on odd shapes under compute-sanitizer. Each buffer is a
// separate allocation of exactly the bytes that the kernel may access, so that every
// out-of-bounds access is detected. With "occupancy" it prints the driver's occupancy of
// various kernels, one per line, for `yoctuned occupancy --recorded`.
#include "kernels.h"
#include "yt_check.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static int failures;

static void ok(cudaError_t e, const char *what)
{
	if (e != cudaSuccess) {
		fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
		failures++;
	}
}

static uint64_t state = 1;

static uint32_t next()
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

// Device memory of exactly n bytes, random below `most` a byte.
static uint8_t *device(uint64_t n, uint32_t most = 256)
{
	std::vector<uint8_t> host(n);
	void *p = nullptr;

	for (auto &b : host)
		b = (uint8_t)(next() % most);
	ok(cudaMalloc(&p, n), "cudaMalloc");
	ok(cudaMemcpy(p, host.data(), n, cudaMemcpyHostToDevice), "cudaMemcpy");
	return (uint8_t *)p;
}

static uint8_t *floats(uint64_t n)
{
	std::vector<float> host(n);
	void *p = nullptr;

	for (auto &v : host)
		v = (float)(next() % 2000) / 1000 - 1;
	ok(cudaMalloc(&p, 4 * n), "cudaMalloc");
	ok(cudaMemcpy(p, host.data(), 4 * n, cudaMemcpyHostToDevice), "cudaMemcpy");
	return (uint8_t *)p;
}

static void done(const char *what)
{
	ok(cudaDeviceSynchronize(), what);
	printf("%s\n", what);
}

static void frames()
{
	for (uint32_t format = YT_FORMAT_NV12; format <= YT_FORMAT_GRAY; format++)
		for (uint32_t type : {YT_F32, YT_F16, YT_U8}) {
			const uint32_t w = 51, h = 37, cw = (w + 1) / 2, ch = (h + 1) / 2;
			yt_preprocess p = {};
			const uint8_t *plane[3] = {};
			uint64_t one = format == YT_FORMAT_YUYV || format == YT_FORMAT_UYVY ? 4ull * cw * h
				       : format == YT_FORMAT_RGB || format == YT_FORMAT_BGR ? 3ull * w * h : (uint64_t)w * h;

			p.format = format;
			p.fit = YT_FIT_LETTERBOX;
			p.color = format == YT_FORMAT_GRAY ? (uint32_t)YT_COLOR_GRAY : (uint32_t)YT_COLOR_RGB;
			p.chroma = YT_CHROMA_BILINEAR;
			p.width = w;
			p.height = h;
			p.out_w = 29;
			p.out_h = 31;
			p.std[0] = p.std[1] = p.std[2] = 1;
			p.type = (uint8_t)type;
			plane[0] = device(one);
			if (format == YT_FORMAT_NV12)
				plane[1] = device(2ull * cw * ch);
			if (format == YT_FORMAT_I420) {
				plane[1] = device((uint64_t)cw * ch);
				plane[2] = device((uint64_t)cw * ch);
			}
			yt_pre_plan plan = yt_plan_preprocess(&p);
			uint64_t elements = (uint64_t)plan.channels * p.out_w * p.out_h;
			uint8_t *out = device(elements * yt_type_bytes(type));

			if (format <= YT_FORMAT_I420 && type == YT_F32)
				ok(yt_launch_preprocess(plan, plane, (float *)out, 64, 0), "preprocess");
			ok(yt_launch_tensor(plan, plane, out, 96, 0), "tensor");
		}
	done("preprocess");
}

static void boxes()
{
	const uint32_t n = 131, most = 57, anchors = 333, classes = 7;
	yt_decode d = {YT_HEAD_PLANES, YT_F32, anchors, classes, most, 1, 0.2f, 1, 1, 0, 0, 1000, 1000};
	yt_nms a = {0, most, n, 1, 0.5f};
	uint8_t *found = device(YT_BOXES_BYTES(most)), *kept = device(YT_BOXES_BYTES(n));

	ok(yt_launch_decode(d, floats((uint64_t)(4 + classes) * anchors), found, device(yt_decode_scratch(d) + 1), 0), "decode");
	done("decode");
	ok(yt_launch_nms(a, found, kept, device(yt_nms_scratch(a) + 1), 0), "nms");
	done("nms");

	yt_roi r = {};
	const uint8_t *plane[3] = {device(64 * 48), device(2 * 32 * 24), nullptr};

	r.format = YT_FORMAT_NV12;
	r.width = 64;
	r.height = 48;
	r.out_w = 13;
	r.out_h = 11;
	r.max = 5;
	r.std[0] = r.std[1] = r.std[2] = 1;
	ok(yt_launch_roi(r, found, plane, device(5ull * 3 * 13 * 11 * 4), 64, 0), "roi");
	done("roi");

	yt_diff f = {61, 43, {0, 0}, 16, 16};

	ok(yt_launch_diff(f, device(61 * 43), device(61 * 43), device(sizeof(yt_motion) + 4 * 4 * 3), 0), "diff");
	done("diff");

	yt_plane_stats g = {YT_FORMAT_RGB, 61, 43, 0, 5, 250};

	ok(yt_launch_stats(g, device(3 * 61 * 43), device(sizeof(yt_stats)), 0), "stats");
	done("stats");
}

static void rows()
{
	for (uint32_t cols : {1u, 31u, 333u, 1000u}) {
		const uint32_t n = 7;
		yt_rows r = {YT_F32, YT_F32, n, cols, 0, cols < 5 ? cols : 5};

		ok(yt_launch_softmax(r, floats((uint64_t)n * cols), floats((uint64_t)n * cols), 0), "softmax");
		ok(yt_launch_topk(r, floats((uint64_t)n * cols), device(8ull * n * r.k), 0), "topk");
	}
	done("rows");
	for (uint64_t n : {1ull, 1000ull, 16385ull, 100003ull}) {
		for (uint32_t op : {YT_REDUCE_SUM, YT_REDUCE_MIN, YT_REDUCE_MAX}) {
			ok(yt_launch_reduce(op, (const float *)floats(n), n, (float *)device(4), (float *)device(yt_reduce_scratch(n) + 1), 0), "reduce");
		}
		uint8_t *from = device(n), *to = device(n);
		if (yt_copy_fits(to, from))
			ok(yt_launch_copy(to, from, n, 96, 0), "copy");
	}
	done("reduce, copy");

	yt_convert v = {};

	v.in_layout = YT_LAYOUT_NHWC;
	v.n = 2;
	v.c = 3;
	v.h = 17;
	v.w = 19;
	v.scale = 0.1f;
	for (uint32_t out : {YT_F32, YT_F16, YT_I8}) {
		v.out = (uint8_t)out;
		ok(yt_launch_convert(v, floats(2 * 3 * 17 * 19), nullptr, device(2ull * 3 * 17 * 19 * yt_type_bytes(out)), 64, 0), "convert");
	}
	done("convert");
}

static void products(int major)
{
	const uint32_t shapes[][3] = {{1, 1, 1}, {33, 65, 17}, {128, 128, 64}, {130, 70, 129}};

	for (auto &s : shapes)
		for (uint32_t type : {YT_F32, YT_F16, YT_BF16, YT_I8}) {
			uint32_t out = type == YT_I8 ? (uint32_t)YT_I32 : type, in = yt_type_bytes(type);
			yt_gemm g = {};

			g.m = s[0];
			g.n = s[1];
			g.k = s[2];
			g.type = (uint8_t)type;
			g.out = (uint8_t)out;
			g.alpha = 1;
			ok(yt_launch_gemm(g, device((uint64_t)g.m * g.k * in, 60), device((uint64_t)g.k * g.n * in, 60), nullptr,
					  device((uint64_t)g.m * g.n * yt_type_bytes(out)), major, 0), "gemm");
		}
	done("gemm");
}

template <int SHARED, int VALUES, int THREADS> static __global__ void __launch_bounds__(THREADS) needy(float *p)
{
	__shared__ float s[SHARED / 4 + 1];
	float v[VALUES];

	for (int i = 0; i < VALUES; i++)
		v[i] = p[i * blockDim.x + threadIdx.x];
	s[threadIdx.x % (SHARED / 4 + 1)] = v[0];
	__syncthreads();
	for (int r = 0; r < 3; r++)
		for (int i = 0; i < VALUES; i++)
			v[i] = v[i] * v[(i + 1) % VALUES] + s[i % (SHARED / 4 + 1)];
	for (int i = 0; i < VALUES; i++)
		p[i * blockDim.x + threadIdx.x] = v[i];
}

template <int SHARED, int VALUES, int THREADS> static void ask(const cudaDeviceProp &d)
{
	auto f = needy<SHARED, VALUES, THREADS>;
	cudaFuncAttributes a;

	ok(cudaFuncGetAttributes(&a, f), "attributes");
	for (int block = 32; block <= 1024; block += 32)
		for (int dynamic : {0, 1000, 20000, 40000, 60000, 100000}) {
			int blocks = -1, allowed = -1;

			if (dynamic + SHARED > 48 << 10) {
				allowed = (int)d.sharedMemPerBlockOptin - (int)a.sharedSizeBytes;
				if (cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, allowed) != cudaSuccess)
					continue;
			}
			// Once allowed it stays so.
			cudaFuncGetAttributes(&a, f);
			ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, block, (size_t)dynamic), "occupancy");
			printf("{\"sm\": %d, \"registers\": %d, \"shared\": %d, \"max_threads\": %d, \"max_dynamic\": %d, \"block\": %d, \"dynamic\": %d, "
			       "\"blocks\": %d}\n",
			       10 * d.major + d.minor, a.numRegs, (int)a.sharedSizeBytes, a.maxThreadsPerBlock, (int)a.maxDynamicSharedSizeBytes, block,
			       dynamic, blocks);
		}
}

int main(int argc, char **argv)
{
	cudaDeviceProp d;

	ok(cudaGetDeviceProperties(&d, 0), "device");
	if (failures != 0)
		return 2;
	if (argc > 1 && strcmp(argv[1], "occupancy") == 0) {
		ask<16, 4, 1024>(d);
		ask<1000, 24, 1024>(d);
		ask<4096, 40, 512>(d);
		ask<12000, 80, 512>(d);
		ask<30000, 16, 256>(d);
		ask<16, 140, 256>(d);
		return failures != 0;
	}
	frames();
	boxes();
	rows();
	products(d.major);
	return failures != 0;
}
