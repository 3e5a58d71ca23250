/* SPDX-License-Identifier: Apache-2.0 */
#include "reference.h"
#include "clones.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The core rounds after each operation, to give the same results on every machine. The
 * reference uses whatever the machine does fastest. */
#if defined(__GNUC__) && !defined(__clang__)
#define FUSED __attribute__((optimize("fp-contract=fast")))
#else
#define FUSED
#endif

struct box {
	int x, y, w, h;
};

static struct box letterbox(int w, int h, int ow, int oh)
{
	struct box b = {0, 0, ow, oh};

	if ((long)w * oh >= (long)h * ow)
		b.h = (int)((2L * h * ow + w) / (2L * w));
	else
		b.w = (int)((2L * w * oh + h) / (2L * h));
	b.x = (ow - b.w) / 2;
	b.y = (oh - b.h) / 2;
	return b;
}

static float clampf(float v, float lo, float hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

static uint8_t clamp8(int v)
{
	return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* 8-bit conversion in 16.16 fixed point, as libraries do. */
CLONES
static void to_rgb(const uint8_t *nv12, int w, int h, uint8_t *rgb)
{
	const uint8_t *uv = nv12 + (size_t)w * h;
	int x, y;

	for (y = 0; y < h; y++) {
		const uint8_t *l = nv12 + (size_t)y * w, *c = uv + (size_t)(y / 2) * w;
		uint8_t *o = rgb + (size_t)y * w * 3;

		for (x = 0; x < w; x++) {
			int yy = (l[x] - 16) * 76309 + 32768;
			int u = c[x / 2 * 2] - 128, v = c[x / 2 * 2 + 1] - 128;

			o[3 * x] = clamp8((yy + 104597 * v) >> 16);
			o[3 * x + 1] = clamp8((yy - 25675 * u - 53279 * v) >> 16);
			o[3 * x + 2] = clamp8((yy + 132201 * u) >> 16);
		}
	}
}

#define MAX_COLUMNS 4096

CLONES
void ref_two_pass(const uint8_t *nv12, int w, int h, uint8_t *rgb, float *out, int ow, int oh, float pad)
{
	struct box b = letterbox(w, h, ow, oh);
	size_t plane = (size_t)ow * oh, i;
	int left[MAX_COLUMNS], right[MAX_COLUMNS];
	float weight[MAX_COLUMNS];
	int x, y, c;

	if (b.w > MAX_COLUMNS)
		return;
	to_rgb(nv12, w, h, rgb);
	for (x = 0; x < b.w; x++) {
		float sx = clampf((x + 0.5f) * w / b.w - 0.5f, 0, (float)(w - 1));

		left[x] = 3 * (int)sx;
		right[x] = (int)sx + 1 < w ? left[x] + 3 : left[x];
		weight[x] = sx - (int)sx;
	}
	for (i = 0; i < 3 * plane; i++)
		out[i] = pad;
	for (y = 0; y < b.h; y++) {
		float sy = clampf((y + 0.5f) * h / b.h - 0.5f, 0, (float)(h - 1)), fy = sy - (int)sy;
		const uint8_t *r0 = rgb + (size_t)(int)sy * w * 3;
		const uint8_t *r1 = (int)sy + 1 < h ? r0 + (size_t)w * 3 : r0;

		for (c = 0; c < 3; c++) {
			float *o = out + c * plane + (size_t)(y + b.y) * ow + b.x;

			for (x = 0; x < b.w; x++) {
				float p = r0[left[x] + c], q = r0[right[x] + c], s = r1[left[x] + c], t = r1[right[x] + c];
				float top = p + (q - p) * weight[x], bottom = s + (t - s) * weight[x];

				o[x] = (top + (bottom - top) * fy) * (1 / 255.0f);
			}
		}
	}
}

CLONES
float ref_sum(const float *x, size_t n)
{
	float s = 0;
	size_t i;

	for (i = 0; i < n; i++)
		s += x[i];
	return s;
}

CLONES
float ref_min(const float *x, size_t n)
{
	float s = n > 0 ? x[0] : 0;
	size_t i;

	for (i = 1; i < n; i++)
		s = x[i] < s ? x[i] : s;
	return s;
}

CLONES
float ref_max(const float *x, size_t n)
{
	float s = n > 0 ? x[0] : 0;
	size_t i;

	for (i = 1; i < n; i++)
		s = x[i] > s ? x[i] : s;
	return s;
}

/* Independent multiply-add chains, more than the pipeline depth: the peak rate of the vector
 * units. 2 * 64 operations per round. */
CLONES FUSED
float ref_flops(uint64_t rounds)
{
	float x[64], s = 0;
	uint64_t r;
	int i;

	for (i = 0; i < 64; i++)
		x[i] = (float)i;
	for (r = 0; r < rounds; r++)
		for (i = 0; i < 64; i++)
			x[i] = x[i] * 0.999f + 0.001f;
	for (i = 0; i < 64; i++)
		s += x[i];
	return s;
}

CLONES
void ref_gemm(const float *a, const float *b, float *c, int m, int n, int k)
{
	int i, j, p;

	memset(c, 0, (size_t)m * (size_t)n * sizeof *c);
	for (i = 0; i < m; i++)
		for (p = 0; p < k; p++) {
			float v = a[(size_t)i * (size_t)k + (size_t)p];

			for (j = 0; j < n; j++)
				c[(size_t)i * (size_t)n + (size_t)j] += v * b[(size_t)p * (size_t)n + (size_t)j];
		}
}

void ref_softmax(const float *x, float *y, int rows, int cols)
{
	int r, c;

	for (r = 0; r < rows; r++, x += cols, y += cols) {
		float most = x[0], sum = 0;

		for (c = 1; c < cols; c++)
			most = x[c] > most ? x[c] : most;
		for (c = 0; c < cols; c++)
			sum += y[c] = expf(x[c] - most);
		for (c = 0; c < cols; c++)
			y[c] /= sum;
	}
}

void ref_topk(const float *x, float *y, int rows, int cols, int k)
{
	int r, c, i;

	for (r = 0; r < rows; r++, x += cols, y += k) {
		int n = 0;

		for (c = 0; c < cols; c++) {
			if (n == k && !(x[c] > y[k - 1]))
				continue;
			for (i = n < k ? n++ : k - 1; i > 0 && x[c] > y[i - 1]; i--)
				y[i] = y[i - 1];
			y[i] = x[c];
		}
	}
}

CLONES
void ref_chain(const float *x, float *y, size_t n, int steps)
{
	size_t i;

	for (i = 0; i < n; i++)
		y[i] = x[i] * 1.5f + 0.25f;
	for (i = 0; i < n; i++)
		y[i] = y[i] > 0 ? y[i] : 0;
	if (steps < 4)
		return;
	for (i = 0; i < n; i++)
		y[i] = y[i] * 0.5f - 1.0f;
	for (i = 0; i < n; i++)
		y[i] = y[i] < -0.5f ? -0.5f : y[i] > 0.5f ? 0.5f : y[i];
}

void ref_to_planes(const float *x, float *y, int pixels, int channels)
{
	int i, c;

	for (c = 0; c < channels; c++)
		for (i = 0; i < pixels; i++)
			y[(size_t)c * (size_t)pixels + (size_t)i] = x[(size_t)i * (size_t)channels + (size_t)c];
}

CLONES
void ref_quantise(const float *x, int8_t *q, float *y, size_t n, float scale)
{
	size_t i;

	for (i = 0; i < n; i++) {
		float v = x[i] / scale;

		q[i] = (int8_t)(v < -128 ? -128 : v > 127 ? 127 : rintf(v));
	}
	for (i = 0; i < n; i++)
		y[i] = (float)q[i] * scale;
}

int ref_decode(const float *x, float *out, int anchors, int classes, float threshold, int most)
{
	int i, c, n = 0;

	for (i = 0; i < anchors && n < most; i++) {
		float best = 0;
		int cls = 0;

		for (c = 0; c < classes; c++) {
			float v = x[(size_t)(4 + c) * (size_t)anchors + (size_t)i];

			if (v > best) {
				best = v;
				cls = c;
			}
		}
		if (best < threshold)
			continue;
		for (c = 0; c < 4; c++)
			out[6 * n + c] = x[(size_t)c * (size_t)anchors + (size_t)i];
		out[6 * n + 4] = best;
		out[6 * n++ + 5] = (float)cls;
	}
	return n;
}

static float overlap(const float *a, const float *b)
{
	float w = fminf(a[2], b[2]) - fmaxf(a[0], b[0]), h = fminf(a[3], b[3]) - fmaxf(a[1], b[1]), both;

	if (w <= 0 || h <= 0)
		return 0;
	both = w * h;
	return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both);
}

static int better(const void *a, const void *b)
{
	float p = *(const float *)a, q = *(const float *)b;

	return p > q ? -1 : p < q;
}

/* boxes: score and four edges each; rank: scratch of the same number. */
int ref_nms(const float *boxes, int n, float iou, float *rank)
{
	int i, j, kept = 0;

	memcpy(rank, boxes, (size_t)n * 5 * sizeof *rank);
	qsort(rank, (size_t)n, 5 * sizeof *rank, better);
	for (i = 0; i < n; i++) {
		for (j = 0; j < kept; j++)
			if (overlap(rank + 5 * i + 1, rank + 5 * j + 1) > iou)
				break;
		if (j == kept)
			memmove(rank + 5 * kept++, rank + 5 * i, 5 * sizeof *rank);
	}
	return kept;
}

CLONES
uint64_t ref_diff(const uint8_t *a, const uint8_t *b, size_t n)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += (uint64_t)(a[i] > b[i] ? a[i] - b[i] : b[i] - a[i]);
	return sum;
}
