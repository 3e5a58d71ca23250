// SPDX-License-Identifier: Apache-2.0
//
// Compares matrix products of lt.cu with a fake library (fake_lt.cc) to the CPU backend: any
// size, transposes, strides, batches, bias and activation. Products that the library does not
// support must not be modified.
//
//   lt_check FAKE_LIBRARY [SEED] [ROUNDS]
#include "check.h"
#include "lt.h"
#include "ops.h"
#include "yt_check.h"

extern "C" {
#include "yt_cpu.h"
}

#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

static void one(yt_lt *lt, int *taken)
{
	static const uint8_t types[] = {YT_F32, YT_F16, YT_BF16, YT_I8};
	yt_cpu_scratch scratch = {};
	yt_gemm g = {};

	g.m = 1 + below(20);
	g.n = 1 + below(20);
	g.k = 1 + below(20);
	g.type = types[below(4)];
	bool whole = g.type == YT_I8;
	if (whole && below(2)) {
		g.m = g.m / 4 * 4 + 4;
		g.n = g.n / 4 * 4 + 4;
		g.k = g.k / 4 * 4 + 4;
	}
	g.out = whole ? (below(4) ? (uint8_t)YT_I32 : (uint8_t)YT_F32) : (uint8_t)below(3);
	g.act = (uint8_t)(below(3) ? below(2) : below(4));
	g.flags = whole && below(2) ? (uint32_t)YT_GEMM_TRANS_B : below(4) | (below(10) == 0 ? (uint32_t)YT_GEMM_OWN : 0u);
	g.alpha = whole ? 1.0f : 0.5f;
	g.beta = whole || below(2) ? 0.0f : 0.25f;
	g.batch = below(4);
	uint32_t batch = g.batch != 0 ? g.batch : 1, gap = whole ? 4 * below(2) : below(3);
	uint32_t ar = g.flags & YT_GEMM_TRANS_A ? g.k : g.m, ac = g.flags & YT_GEMM_TRANS_A ? g.m : g.k;
	uint32_t br = g.flags & YT_GEMM_TRANS_B ? g.n : g.k, bc = g.flags & YT_GEMM_TRANS_B ? g.k : g.n;
	if (gap != 0) {
		g.lda = ac + gap;
		g.ldb = bc + gap;
		g.ldc = g.n + gap;
	}
	g.stride_a = (uint64_t)ar * (g.lda ? g.lda : ac);
	g.stride_b = (uint64_t)br * (g.ldb ? g.ldb : bc);
	g.stride_c = (uint64_t)g.m * (g.ldc ? g.ldc : g.n);
	size_t in = yt_type_bytes(g.type), out = yt_type_bytes(g.out), total = batch * g.stride_c;
	exact<uint8_t> a(batch * g.stride_a * in, 0), b(batch * g.stride_b * in, 0), want(total * out, 0), got(total * out, 0), room(64, 0);
	exact<float> bias(g.n, 0);
	bool with_bias = below(2) != 0;

	for (size_t i = 0; i < batch * g.stride_a; i++)
		yt_store(g.type, a.p, i, whole ? (float)below(256) - 128 : ((float)below(200) - 100) / 64);
	for (size_t i = 0; i < batch * g.stride_b; i++)
		yt_store(g.type, b.p, i, whole ? (float)below(256) - 128 : ((float)below(200) - 100) / 64);
	for (uint32_t i = 0; i < g.n; i++)
		bias.p[i] = (float)below(20) - 10;
	for (size_t i = 0; i < total; i++) // must not be read if beta is 0
		if (g.out == YT_I32)
			((int32_t *)want.p)[i] = ((int32_t *)got.p)[i] = 0x7fffffff;
		else {
			float v = g.beta != 0 ? (float)below(9) : yt_from_bits(0x7fc00000u);
			yt_store(g.out, want.p, i, v);
			yt_store(g.out, got.p, i, v);
		}
	std::vector<uint8_t> before(got.p, got.p + total * out);
	if (!yt_lt_gemm(lt, g, a.p, b.p, with_bias ? bias.p : nullptr, got.p, room.p, nullptr)) {
		if (memcmp(before.data(), got.p, total * out) != 0)
			fail("a product that was not taken was written");
		bool plain = g.act <= YT_ACT_RELU && (g.flags & YT_GEMM_OWN) == 0 && !whole;
		if (plain)
			fail("a product that the library does was not taken");
		return;
	}
	++*taken;
	if (g.act > YT_ACT_RELU || (g.flags & YT_GEMM_OWN) != 0)
		fail("a product was taken that the library does otherwise");
	yt_cpu_config built_in = yt_cpu_built_in(YT_OP_GEMM);
	if (yt_cpu_gemm(&g, a.p, b.p, with_bias ? bias.p : nullptr, want.p, built_in.block, built_in.tile, &scratch) != 0)
		fail("no memory");
	free(scratch.mem);
	for (uint32_t p = 0; p < batch; p++)
		for (uint32_t row = 0; row < g.m; row++)
			for (uint32_t col = 0; col < g.n; col++) {
				size_t at = p * g.stride_c + row * (g.ldc ? g.ldc : g.n) + col;

				if (g.out == YT_I32 ? ((int32_t *)want.p)[at] != ((int32_t *)got.p)[at]
						    : !(fabsf(yt_load(g.out, want.p, at) - yt_load(g.out, got.p, at)) <=
							1e-4f + fabsf(yt_load(g.out, want.p, at)) * (g.out == YT_F32 ? 1e-5f : 1.6e-2f))) {
					fail("a product by cuBLASLt's ways differs from the CPU backend");
					return;
				}
			}
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	state = argc > 2 ? strtoull(argv[2], nullptr, 10) : 1;
	int rounds = argc > 3 ? atoi(argv[3]) : 2000, taken = 0;
	void *lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (lib == nullptr) {
		fprintf(stderr, "error: %s\n", dlerror());
		return 1;
	}
	uint64_t *products = (uint64_t *)dlsym(lib, "fake_lt_products"), *choices = (uint64_t *)dlsym(lib, "fake_lt_choices");
	uint64_t *open = (uint64_t *)dlsym(lib, "fake_lt_open");
	int *refuses = (int *)dlsym(lib, "fake_lt_refuses");

	yt_lt none = {}, closed = {}, lt = {};
	if (yt_lt_there(&none, "/nonexistent/libcublasLt.so.13") || yt_lt_there(&none, argv[1]))
		fail("a library that was not there is there");
	*refuses = 1;
	if (yt_lt_there(&closed, argv[1]))
		fail("a library without a handle is there");
	*refuses = 0;
	if (!yt_lt_there(&lt, argv[1]))
		fail("the library is not there");
	for (int i = 0; i < rounds; i++)
		one(&lt, &taken);
	if ((uint64_t)taken != *products || taken < rounds / 4 || taken == rounds)
		fail("the products are one-sided, or were not the library's");

	// The same product does not query the heuristic again.
	yt_gemm g = {};
	float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[4], room[4];
	g.m = g.n = g.k = 2;
	g.alpha = 1;
	uint64_t before = *choices;
	for (int i = 0; i < 5; i++)
		if (!yt_lt_gemm(&lt, g, a, b, nullptr, c, room, nullptr) || c[0] != 19 || c[1] != 22 || c[2] != 43 || c[3] != 50)
			fail("a product of two by two is wrong");
	if (*choices != before + 1)
		fail("a kernel was asked for again");
	yt_lt_close(&lt);
	if (*open != 0)
		fail("descriptions were not given back");
	printf("cuBLASLt: %d of %d products went to the library of the tests\n", taken, rounds);
	return failures != 0;
}
