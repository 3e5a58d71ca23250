/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE

#include "foreign.h"
#include "clones.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ISO C has no cast from object to function. */
static int symbol(void *lib, const char *name, void *out)
{
	void *p = dlsym(lib, name);

	memcpy(out, &p, sizeof p);
	return p != NULL;
}

/* The processor for which OpenBLAS chose its kernels. */
static const char *core_name(void *lib)
{
	char *(*name)(void) = NULL;

	return lib != NULL && symbol(lib, "openblas_get_corename", &name) ? name() : "";
}

/* OpenBLAS knows processors by their model, and takes kernels without AVX for one that it does
 * not know. The type of a model with the same instructions then gives it the right ones. */
static void *open_blas(void)
{
	static const char library[] = "libopenblas.so.0", variable[] = "OPENBLAS_CORETYPE";
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
#ifdef __x86_64__
	static const char *const old[] = { "Prescott", "Core2", "Nehalem", "Northwood", "Katmai", "Generic" };
	size_t i;

	for (i = 0; i < sizeof old / sizeof *old && getenv(variable) == NULL; i++) {
		if (strcmp(core_name(lib), old[i]) != 0 || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
			continue;
		dlclose(lib);
		setenv(variable, __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512dq") ? "SkylakeX" : "Haswell", 0);
		lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
		unsetenv(variable);
		break;
	}
#endif
	return lib;
}

int foreign_blas_open(foreign_blas *b)
{
	void *lib = open_blas();
	void (*threads)(int) = NULL;
	const char *(*config)(void) = NULL;

	memset(b, 0, sizeof *b);
	if (lib == NULL || !symbol(lib, "cblas_sgemm", &b->sgemm) || !symbol(lib, "cblas_sasum", &b->sasum) ||
	    !symbol(lib, "cblas_isamax", &b->isamax) || !symbol(lib, "openblas_set_num_threads", &threads))
		return -1;
	threads(1);
	if (symbol(lib, "openblas_get_config", &config)) {
		const char *core = core_name(lib), *text = config(), *end = strchr(text, ' ');

		/* The first two words of "OpenBLAS 0.3.21 ... Haswell MAX_THREADS=64". */
		end = end == NULL ? text + strlen(text) : end + 1 + strcspn(end + 1, " ");
		snprintf(b->version, sizeof b->version, "%.*s%s%s", (int)(end - text), text, *core ? ", kernels for " : "", core);
	} else {
		snprintf(b->version, sizeof b->version, "OpenBLAS");
	}
	return 0;
}

void foreign_sgemm(const foreign_blas *b, const float *a, const float *x, float *c, int m, int n, int k)
{
	enum { ROW_MAJOR = 101, NO_TRANS = 111 };

	b->sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, m, n, k, 1.0f, a, k, x, n, 0.0f, c, n);
}

float foreign_sasum(const foreign_blas *b, const float *x, int n)
{
	return b->sasum(n, x, 1);
}

size_t foreign_isamax(const foreign_blas *b, const float *x, int n)
{
	return b->isamax(n, x, 1);
}

/* Opens the newest installed version of a library whose functions used here are the same in
 * all versions. */
static void *newest(const char *name, int from, int to)
{
	char file[64];
	void *lib = NULL;

	for (; lib == NULL && from >= to; from--) {
		snprintf(file, sizeof file, "%s.so.%d", name, from);
		lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	}
	return lib;
}

int foreign_sws_open(foreign_sws *s)
{
	void *sws = newest("libswscale", 9, 5), *util = newest("libavutil", 60, 56);
	int (*(*pixels)(int, int, int, void *))(const uint8_t *, ptrdiff_t, const uint8_t *, ptrdiff_t) = NULL;
	unsigned (*version)(void) = NULL;

	memset(s, 0, sizeof *s);
	if (sws == NULL || util == NULL || !symbol(sws, "sws_getContext", &s->get) || !symbol(sws, "sws_scale", &s->scale) ||
	    !symbol(sws, "sws_freeContext", &s->release) || !symbol(util, "av_get_pix_fmt", &s->format) ||
	    !symbol(sws, "swscale_version", &version))
		return -1;
	snprintf(s->version, sizeof s->version, "libswscale %u.%u.%u", version() >> 16, version() >> 8 & 255, version() & 255);
	if (symbol(util, "av_pixelutils_get_sad_fn", &pixels))
		s->sad = pixels(5, 5, 0, NULL);
	return 0;
}

void *foreign_scaler(const foreign_sws *s, const char *format, int w, int h, int ow, int oh)
{
	enum { FAST_BILINEAR = 1 };
	int from = s->format(format), to = s->format("rgb24");

	if (from < 0 || to < 0)
		return NULL;
	return s->get(w, h, from, ow, oh, to, FAST_BILINEAR, NULL, NULL, NULL);
}

void foreign_scaler_free(const foreign_sws *s, void *scaler)
{
	s->release(scaler);
}

CLONES
static void to_planes(const uint8_t *restrict rgb, float *restrict r, float *restrict g, float *restrict b, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		r[i] = (float)rgb[3 * i] * (1 / 255.0f);
		g[i] = (float)rgb[3 * i + 1] * (1 / 255.0f);
		b[i] = (float)rgb[3 * i + 2] * (1 / 255.0f);
	}
}

void foreign_tensor(const foreign_sws *s, void *scaler, const foreign_frame *f, uint8_t *rgb, int iw, int ih, float *out, int ow, int oh,
		    float pad)
{
	int rgb_pitch[4] = {3 * iw, 0, 0, 0}, left = (ow - iw) / 2, top = (oh - ih) / 2, c, x, y;
	uint8_t *dst[4] = {rgb, NULL, NULL, NULL};
	size_t plane = (size_t)ow * (size_t)oh;

	s->scale(scaler, f->plane, f->pitch, 0, f->h, dst, rgb_pitch);
	for (c = 0; c < 3; c++)
		for (y = 0; y < oh; y++) {
			float *row = out + c * plane + (size_t)y * (size_t)ow;
			int inside = y >= top && y < top + ih;

			for (x = 0; x < (inside ? left : ow); x++)
				row[x] = pad;
			for (x = left + iw; inside && x < ow; x++)
				row[x] = pad;
		}
	for (y = 0; y < ih; y++) {
		float *row = out + (size_t)(top + y) * (size_t)ow + left;

		to_planes(rgb + (size_t)3 * (size_t)iw * (size_t)y, row, row + plane, row + 2 * plane, iw);
	}
}

uint64_t foreign_sad(const foreign_sws *s, const uint8_t *a, const uint8_t *b, int w, int h)
{
	uint64_t sum = 0;
	int x, y;

	for (y = 0; y + 32 <= h; y += 32)
		for (x = 0; x + 32 <= w; x += 32)
			sum += (uint64_t)s->sad(a + (size_t)y * (size_t)w + x, w, b + (size_t)y * (size_t)w + x, w);
	return sum;
}
