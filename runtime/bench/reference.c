/* SPDX-License-Identifier: Apache-2.0 */
#include "reference.h"

#if defined(__GNUC__) && !defined(__clang__)
#define SCALAR __attribute__((optimize("no-tree-vectorize", "no-tree-slp-vectorize")))
#else
#define SCALAR
#endif

/* What libraries do as well: AVX2 where the processor has it. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define CLONES
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

SCALAR
void ref_scalar(const uint8_t *nv12, int w, int h, float *out, int ow, int oh, float pad)
{
	struct box b = letterbox(w, h, ow, oh);
	const uint8_t *uv = nv12 + (size_t)w * h;
	size_t plane = (size_t)ow * oh;
	int x, y;

	for (y = 0; y < oh; y++) {
		for (x = 0; x < ow; x++) {
			float *o = out + (size_t)y * ow + x;
			float sx, sy, fx, fy, l, u, v;
			int x0, y0, x1, y1;
			const uint8_t *c;

			if (x < b.x || x >= b.x + b.w || y < b.y || y >= b.y + b.h) {
				o[0] = o[plane] = o[2 * plane] = pad;
				continue;
			}
			sx = clampf((x - b.x + 0.5f) * w / b.w - 0.5f, 0, (float)(w - 1));
			sy = clampf((y - b.y + 0.5f) * h / b.h - 0.5f, 0, (float)(h - 1));
			x0 = (int)sx;
			y0 = (int)sy;
			fx = sx - x0;
			fy = sy - y0;
			x1 = x0 + 1 < w ? x0 + 1 : x0;
			y1 = y0 + 1 < h ? y0 + 1 : y0;
			l = (nv12[(size_t)y0 * w + x0] * (1 - fx) + nv12[(size_t)y0 * w + x1] * fx) * (1 - fy) +
			    (nv12[(size_t)y1 * w + x0] * (1 - fx) + nv12[(size_t)y1 * w + x1] * fx) * fy;
			c = uv + (size_t)((int)(sy + 0.5f) / 2) * w + ((int)(sx + 0.5f) / 2) * 2;
			l = (l - 16) * 1.164383f;
			u = c[0] - 128.0f;
			v = c[1] - 128.0f;
			o[0] = clampf(l + 1.596027f * v, 0, 255) / 255;
			o[plane] = clampf(l - 0.391762f * u - 0.812968f * v, 0, 255) / 255;
			o[2 * plane] = clampf(l + 2.017232f * u, 0, 255) / 255;
		}
	}
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
