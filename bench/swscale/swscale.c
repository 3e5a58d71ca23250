/* SPDX-License-Identifier: Apache-2.0
 *
 * The core's fused preprocess beside libswscale, both in this process, on one frame:
 * NV12 1920x1080, letterbox into 640x640, float32 NCHW in 0..1. swscale makes RGB24 of
 * 640x360, which a loop compiled with the same options then brings into the tensor.
 *
 * Filters: the core takes 2 by 2 samples. So does SWS_FAST_BILINEAR; SWS_BILINEAR
 * widens its filter when it makes pictures smaller, and so does more work.
 *
 * Prints, of ROUNDS turns: what, CPU time in ns of the fastest turn and the median, and
 * the mean difference of the tensor's inside from the core's, in 8-bit steps.
 */
#define _GNU_SOURCE

#include "yt_cpu.h"
#include "yt_clones.h"

#include <libswscale/swscale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { W = 1920, H = 1080, SIDE = 640, IN_H = 360, TOP = 140, ROUNDS = 41 };

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

YT_CLONES
static void row_to_tensor(const uint8_t *restrict rgb, float *restrict r, float *restrict g, float *restrict b, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		r[i] = (float)rgb[3 * i] * (1 / 255.0f);
		g[i] = (float)rgb[3 * i + 1] * (1 / 255.0f);
		b[i] = (float)rgb[3 * i + 2] * (1 / 255.0f);
	}
}

static void with_swscale(struct SwsContext *sws, const uint8_t *frame, uint8_t *rgb, float *out)
{
	const uint8_t *src[4] = {frame, frame + W * H, NULL, NULL};
	int src_pitch[4] = {W, W, 0, 0}, rgb_pitch[4] = {3 * SIDE, 0, 0, 0}, y, i;
	uint8_t *dst[4] = {rgb, NULL, NULL, NULL};

	sws_scale(sws, src, src_pitch, 0, H, dst, rgb_pitch);
	for (i = 0; i < 3; i++)
		for (y = 0; y < SIDE; y++)
			if (y < TOP || y >= TOP + IN_H) {
				float *row = out + (size_t)(i * SIDE + y) * SIDE;
				int x;

				for (x = 0; x < SIDE; x++)
					row[x] = 114 / 255.0f;
			}
	for (y = 0; y < IN_H; y++) {
		float *row = out + (size_t)(TOP + y) * SIDE;

		row_to_tensor(rgb + 3 * SIDE * y, row, row + SIDE * SIDE, row + 2 * SIDE * SIDE, SIDE);
	}
}

static int by_size(const void *a, const void *b)
{
	uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;

	return p < q ? -1 : p > q;
}

int main(void)
{
	static const char *const name[4] = {"core nearest", "core bilinear", "swscale fast_bilinear", "swscale bilinear"};
	static uint64_t took[4][ROUNDS];
	float *out[4];
	uint8_t *frame = malloc(W * H * 3 / 2), *rgb = malloc(3 * SIDE * IN_H + 64);
	struct SwsContext *sws[2];
	yt_cpu_scratch scratch = {0};
	yt_preprocess p = {0};
	uint64_t state = 1;
	int i, k, turn;

	p.format = YT_FORMAT_NV12;
	p.fit = YT_FIT_LETTERBOX;
	p.width = W;
	p.height = H;
	p.out_w = p.out_h = SIDE;
	p.pad = 114;
	p.std[0] = p.std[1] = p.std[2] = 1;
	sws[0] = sws_getContext(W, H, AV_PIX_FMT_NV12, SIDE, IN_H, AV_PIX_FMT_RGB24, SWS_FAST_BILINEAR, NULL, NULL, NULL);
	sws[1] = sws_getContext(W, H, AV_PIX_FMT_NV12, SIDE, IN_H, AV_PIX_FMT_RGB24, SWS_BILINEAR, NULL, NULL, NULL);
	if (frame == NULL || rgb == NULL || sws[0] == NULL || sws[1] == NULL)
		return 2;
	for (k = 0; k < 4; k++)
		if ((out[k] = aligned_alloc(YT_ALIGN_MIN, 3 * SIDE * SIDE * sizeof(float))) == NULL) /* as buffers are */
			return 2;
	/* A smooth picture with a little noise, as cameras give. */
	for (i = 0; i < W * H * 3 / 2; i++) {
		int x = i % W, y = i / W;

		state = state * 6364136223846793005u + 1442695040888963407u;
		frame[i] = (uint8_t)((y < H ? 40 + 160 * x / W : 110 + 30 * (y - H) / (H / 2)) + (int)(state >> 62));
	}
	for (turn = -2; turn < ROUNDS; turn++)
		for (k = 0; k < 4; k++) {
			uint64_t start = cpu_ns();

			if (k < 2) {
				const uint8_t *plane[3] = {frame, frame + W * H, NULL};
				yt_pre_plan plan;

				p.chroma = k == 0 ? YT_CHROMA_NEAREST : YT_CHROMA_BILINEAR;
				plan = yt_plan_preprocess(&p);
				if (yt_cpu_preprocess(&plan, plane, out[k], &scratch) != 0)
					return 2;
			} else {
				with_swscale(sws[k - 2], frame, rgb, out[k]);
			}
			if (turn >= 0)
				took[k][turn] = cpu_ns() - start;
		}
	for (k = 0; k < 4; k++) {
		double difference = 0;

		for (i = TOP * SIDE; i < (TOP + IN_H) * SIDE; i++)
			difference += fabs((double)out[k][i] - (double)out[1][i]) * 255;
		qsort(took[k], ROUNDS, sizeof took[k][0], by_size);
		printf("%s\t%llu\t%llu\t%.2f\n", name[k], (unsigned long long)took[k][0], (unsigned long long)took[k][ROUNDS / 2],
		       difference / (IN_H * SIDE));
	}
	return 0;
}
