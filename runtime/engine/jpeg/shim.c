//go:build cgo

#include "shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* enum TJSAMP, with the size of an MCU in pixels. */
enum { GRAY = 3, SAMPLINGS = 6 };
static const int mcu_width[SAMPLINGS] = { 8, 16, 16, 8, 8, 32 };
static const int mcu_height[SAMPLINGS] = { 8, 8, 16, 8, 16, 8 };

int jpeg_load(jpeg_library *lib, const char *path, char *msg, size_t size)
{
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!so) {
		snprintf(msg, size, "%s", dlerror());
		return JPEG_FAILED;
	}
	const struct { const char *name; void **to; } functions[] = {
		{ "tjInitDecompress", (void **)&lib->init },
		{ "tjDestroy", (void **)&lib->destroy },
		{ "tjDecompressHeader3", (void **)&lib->header },
		{ "tjDecompressToYUVPlanes", (void **)&lib->planes },
		{ "tjGetErrorStr", (void **)&lib->error },
	};
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (!(*functions[i].to = dlsym(so, functions[i].name))) {
			snprintf(msg, size, "%s has no %s", path, functions[i].name);
			return JPEG_FAILED;
		}
	return JPEG_OK;
}

int jpeg_start(jpeg_decoder *d, const jpeg_library *lib)
{
	d->lib = lib;
	d->handle = lib->init();
	return d->handle ? JPEG_OK : JPEG_FAILED;
}

void jpeg_stop(jpeg_decoder *d)
{
	if (d->handle)
		d->lib->destroy(d->handle);
	free(d->scratch);
	memset(d, 0, sizeof *d);
}

static int damaged(jpeg_decoder *d, const char *what)
{
	snprintf(d->msg, sizeof d->msg, "%s", what);
	return JPEG_DAMAGED;
}

/* An error of the library, which leaves its handle inside the image: a header that fails is not
 * aborted, and the next image would be one inside it. */
static int refused(jpeg_decoder *d)
{
	damaged(d, d->lib->error());
	d->lib->destroy(d->handle);
	d->handle = d->lib->init();
	return JPEG_DAMAGED;
}

static int header(jpeg_decoder *d, const unsigned char *data, size_t length, int *width, int *height, int *sampling)
{
	int space = 0;
	*width = *height = 0;
	*sampling = -1;
	if (!d->handle && !(d->handle = d->lib->init()))
		return damaged(d, "there is no memory for it");
	if (d->lib->header(d->handle, data, length, width, height, sampling, &space) != 0 && *width <= 0)
		return refused(d);
	if (*sampling < 0 || *sampling >= SAMPLINGS)
		return damaged(d, "its colour is sampled in a way that is not read");
	return JPEG_OK;
}

int jpeg_size(jpeg_decoder *d, const unsigned char *data, size_t length, int *width, int *height)
{
	int sampling;
	return header(d, data, length, width, height, &sampling);
}

/* Averages the pixels of src that each pixel of dst covers. Both dimensions of src are one to
 * four times those of dst, up to rounding, or half of them (4:1:1). */
static void resample(unsigned char *dst, int dw, int dh, const unsigned char *src, int sw, int sh, int pitch)
{
	if (sw == dw && sh >= 2 * dh - 1) { /* 4:2:2, the usual format of cameras: simple enough to vectorise */
		for (int y = 0; y < dh; y++, dst += dw) {
			const unsigned char *a = src + (size_t)(2 * y) * pitch;
			const unsigned char *b = 2 * y + 1 < sh ? a + pitch : a;
			for (int x = 0; x < dw; x++)
				dst[x] = (unsigned char)((a[x] + b[x] + 1) >> 1);
		}
		return;
	}
	for (int y = 0; y < dh; y++)
		for (int x = 0; x < dw; x++) {
			int x0 = (int)((long)x * sw / dw), x1 = (int)((long)(x + 1) * sw / dw);
			int y0 = (int)((long)y * sh / dh), y1 = (int)((long)(y + 1) * sh / dh);
			int sum = 0, n = 0;
			for (int v = y0; v < (y1 > y0 ? y1 : y0 + 1) && v < sh; v++)
				for (int u = x0; u < (x1 > x0 ? x1 : x0 + 1) && u < sw; u++, n++)
					sum += src[(size_t)v * pitch + u];
			dst[(size_t)y * dw + x] = (unsigned char)((sum + n / 2) / n);
		}
}

int jpeg_decode(jpeg_decoder *d, const unsigned char *data, size_t length, unsigned char *out, int width, int height, int shrink)
{
	int w, h, sampling;
	int code = header(d, data, length, &w, &h, &sampling);
	if (code)
		return code;
	if (w != width * shrink || h != height * shrink) {
		snprintf(d->msg, sizeof d->msg, "it is %dx%d", w, h);
		return JPEG_FAILED;
	}
	w = width, h = height;
	/* The library writes whole MCUs of luma, and chroma at its own sampling. */
	int mw = mcu_width[sampling] / 8, mh = mcu_height[sampling] / 8;
	int lw = (w + mw - 1) / mw * mw, lh = (h + mh - 1) / mh * mh;
	int sw = lw / mw, sh = lh / mh;
	int cw = (w + 1) / 2, ch = (h + 1) / 2;
	int direct_luma = lw == w && lh == h;
	int direct_chroma = sampling != GRAY && sw == cw && sh == ch;
	size_t luma = (size_t)w * h, chroma = (size_t)cw * ch;
	size_t need = (size_t)lw * lh + 2 * (size_t)sw * sh;
	if (!(direct_luma && direct_chroma) && d->size < need) {
		free(d->scratch);
		d->size = 0;
		if (!(d->scratch = malloc(need)))
			return damaged(d, "there is no memory for it");
		d->size = need;
	}
	unsigned char *planes[3] = { out, out + luma, out + luma + chroma };
	int strides[3] = { w, cw, cw };
	if (!direct_luma) {
		planes[0] = d->scratch;
		strides[0] = lw;
	}
	if (!direct_chroma) {
		planes[1] = d->scratch + (size_t)lw * lh;
		planes[2] = planes[1] + (size_t)sw * sh;
		strides[1] = strides[2] = sw;
	}
	int failed = d->lib->planes(d->handle, data, length, planes, w, strides, h, 0);
	/* Some cameras insert an extra byte before a marker. Any other warning means that part
	 * of the picture is damaged. */
	if (failed && !strstr(d->lib->error(), "extraneous bytes before marker"))
		return refused(d);
	if (!direct_luma)
		for (int y = 0; y < h; y++)
			memcpy(out + (size_t)y * w, d->scratch + (size_t)y * lw, w);
	if (sampling == GRAY)
		memset(out + luma, 128, 2 * chroma);
	else if (!direct_chroma)
		for (int n = 1; n < 3; n++)
			resample(out + luma + (n - 1) * chroma, cw, ch, planes[n], sw, sh, sw);
	return JPEG_OK;
}
