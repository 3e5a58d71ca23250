/* SPDX-License-Identifier: Apache-2.0
 *
 * reference.h - other implementations of what the core computes, for comparison.
 * Straightforward code, compiled with the same options as the core.
 */
#ifndef YT_BENCH_REFERENCE_H
#define YT_BENCH_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

/* The usual steps of image libraries: convert the whole frame to 8-bit RGB, then resize it
 * bilinearly into the tensor. rgb is scratch of w * h * 3 bytes. */
void ref_two_pass(const uint8_t *nv12, int w, int h, uint8_t *rgb, float *out, int ow, int oh, float pad);

float ref_sum(const float *x, size_t n);
float ref_min(const float *x, size_t n);
float ref_max(const float *x, size_t n);

/* 128 operations per round. */
float ref_flops(uint64_t rounds);
void ref_gemm(const float *a, const float *b, float *c, int m, int n, int k);
void ref_softmax(const float *x, float *y, int rows, int cols);
void ref_topk(const float *x, float *y, int rows, int cols, int k);
/* Scale and ReLU; with 4 steps also scale and clamp, one pass each. */
void ref_chain(const float *x, float *y, size_t n, int steps);
void ref_to_planes(const float *x, float *y, int pixels, int channels);
void ref_quantise(const float *x, int8_t *q, float *y, size_t n, float scale);
int ref_decode(const float *x, float *out, int anchors, int classes, float threshold, int most);
int ref_nms(const float *boxes, int n, float iou, float *rank);
uint64_t ref_diff(const uint8_t *a, const uint8_t *b, size_t n);

#endif /* YT_BENCH_REFERENCE_H */
