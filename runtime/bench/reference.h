/* SPDX-License-Identifier: Apache-2.0
 *
 * reference.h - other ways to what the core computes, to measure it against.
 * Straightforward code, compiled with the same options as the core.
 */
#ifndef YT_BENCH_REFERENCE_H
#define YT_BENCH_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

/* One output pixel at a time, positions in floating point, no vectors. */
void ref_scalar(const uint8_t *nv12, int w, int h, float *out, int ow, int oh, float pad);

/* The usual chain of image libraries: the whole frame to 8-bit RGB, then a
 * bilinear resize into the tensor. rgb has room for w * h * 3 bytes. */
void ref_two_pass(const uint8_t *nv12, int w, int h, uint8_t *rgb, float *out, int ow, int oh, float pad);

float ref_sum(const float *x, size_t n);
float ref_min(const float *x, size_t n);
float ref_max(const float *x, size_t n);

#endif /* YT_BENCH_REFERENCE_H */
