/* SPDX-License-Identifier: Apache-2.0
 *
 * foreign.h - third-party libraries, opened if installed, for comparison with the core. They
 * are optional and have no other use. Each open function returns 0, or -1 if the library is
 * missing.
 */
#ifndef YT_BENCH_FOREIGN_H
#define YT_BENCH_FOREIGN_H

#include <stddef.h>
#include <stdint.h>

typedef struct foreign_blas {
	char version[64];
	void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
	float (*sasum)(int, const float *, int);
	size_t (*isamax)(int, const float *, int);
} foreign_blas;

/* OpenBLAS, on one thread like the core's lists. */
int foreign_blas_open(foreign_blas *b);
/* c <- a b, row-major, m by k and k by n. */
void foreign_sgemm(const foreign_blas *b, const float *a, const float *x, float *c, int m, int n, int k);
float foreign_sasum(const foreign_blas *b, const float *x, int n);
size_t foreign_isamax(const foreign_blas *b, const float *x, int n);

typedef struct foreign_sws {
	char version[64];
	void *(*get)(int, int, int, int, int, int, int, void *, void *, const double *);
	int (*scale)(void *, const uint8_t *const *, const int *, int, int, uint8_t *const *, const int *);
	void (*release)(void *);
	int (*format)(const char *);
	int (*sad)(const uint8_t *, ptrdiff_t, const uint8_t *, ptrdiff_t); /* of 32 by 32 bytes; NULL: not available */
} foreign_sws;

int foreign_sws_open(foreign_sws *s);

/* A frame of at most three planes to 8-bit RGB; the format has FFmpeg's name. */
typedef struct foreign_frame {
	const uint8_t *plane[4];
	int pitch[4];
	int w, h;
} foreign_frame;

/* NULL if the library does not support the format. Bilinear over 2 by 2 samples, like the
 * core's filter. */
void *foreign_scaler(const foreign_sws *s, const char *format, int w, int h, int ow, int oh);
void foreign_scaler_free(const foreign_sws *s, void *scaler);

/* Scales the frame into the middle of an ow by oh float32 NCHW tensor in 0..1; rgb is scratch
 * of 3 * iw * ih + 64 bytes for the scaler's output. */
void foreign_tensor(const foreign_sws *s, void *scaler, const foreign_frame *f, uint8_t *rgb, int iw, int ih, float *out, int ow, int oh,
		    float pad);

/* Sum of absolute differences of two planes, whole blocks of 32 only. */
uint64_t foreign_sad(const foreign_sws *s, const uint8_t *a, const uint8_t *b, int w, int h);

#endif /* YT_BENCH_FOREIGN_H */
