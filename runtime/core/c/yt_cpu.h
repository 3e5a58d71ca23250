/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_cpu.h - the CPU backend, inside yoctuned.
 *
 *   yt_cpu.c         devices, buffers, pools, the table
 *   yt_cpu_stream.c  streams, lists, events, graphs, threads
 *   yt_cpu_run.c     one operation: where a new kernel is added
 *   yt_cpu_*.c       the kernels
 */
#ifndef YT_CPU_H
#define YT_CPU_H

#include "yt_math.h"

yt_status yt_cpu_get_api(uint32_t want_major, yt_api *out, uint32_t out_size, yt_error *err);

/* Working memory of one preprocess call, kept by a stream between calls. */
typedef struct yt_cpu_scratch {
	void *mem;
	size_t bytes;
} yt_cpu_scratch;

/* The operations this backend has, as yt_api.ops. */
extern const uint64_t yt_cpu_ops;

/* Runs one checked command that computes; p are its operands' addresses in the
 * order of yt_operands. Not for RECORD and WAIT, which are the stream's. */
yt_status yt_cpu_run(const yt_cmd *c, uint32_t at, uint8_t *const p[], yt_cpu_scratch *scratch, yt_error *err);

/* The planes and the output must have the sizes yt_check_preprocess() proved.
 * Returns 0, or -1 without memory. */
int yt_cpu_preprocess(const yt_pre_plan *k, const uint8_t *const plane[3], float *out, yt_cpu_scratch *scratch);

float yt_cpu_reduce(uint32_t op, const float *x, uint64_t n);

#endif /* YT_CPU_H */
