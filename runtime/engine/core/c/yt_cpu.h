/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_cpu.h - the CPU backend, inside yoctuned.
 *
 *   yt_cpu.c         devices, buffers, the table
 *   yt_cpu_stream.c  streams, lists, events, threads
 *   yt_cpu_run.c     one operation: where a new kernel is added
 *   yt_cpu_*.c       the kernels
 */
#ifndef YT_CPU_H
#define YT_CPU_H

#include "yt_math.h"

typedef struct yt_chain yt_chain; /* yt_chain.h */

yt_status yt_cpu_get_api(uint32_t want_major, yt_api *out, uint32_t out_size, yt_error *err);

/* Working memory of one preprocess call, kept by a stream between calls. */
typedef struct yt_cpu_scratch {
	void *mem;
	size_t bytes;
	int plain; /* 1: without yt_simd.h, for tests */
} yt_cpu_scratch;

/* The supported operations, as yt_api.ops. */
extern const uint64_t yt_cpu_ops;

/* The block sizes of an operation, see yt_kernel_config. Only gemm has any. */
typedef struct yt_cpu_config {
	uint32_t block, tile;
} yt_cpu_config;
yt_cpu_config yt_cpu_built_in(uint32_t op);

/* Runs one checked command that computes; p are its operands' addresses in the
 * order of yt_operands; for a launch, p[YT_CPU_KERNEL] is the chain. A NULL config selects
 * the built-in one. Streams handle RECORD. */
#define YT_CPU_KERNEL 4u
yt_status yt_cpu_run(const yt_cmd *c, uint32_t at, uint8_t *const p[], const yt_cpu_config *config, yt_cpu_scratch *scratch,
		     yt_error *err);

/* At least `bytes` of working memory, aligned to 64, or NULL. The content is lost if it
 * grows. */
void *yt_cpu_room(yt_cpu_scratch *s, size_t bytes);

/* The planes and the output must have the sizes yt_check_preprocess() proved.
 * Those that return int return 0, or -1 without memory. */
int yt_cpu_preprocess(const yt_pre_plan *k, const uint8_t *const plane[3], void *out, yt_cpu_scratch *scratch);
int yt_cpu_roi(const yt_roi *r, const yt_boxes *boxes, const uint8_t *const plane[3], void *out, yt_cpu_scratch *scratch);

float yt_cpu_reduce(uint32_t op, const float *x, uint64_t n);

int yt_cpu_decode(const yt_decode *d, const void *src, uint8_t *dst, yt_cpu_scratch *scratch);
int yt_cpu_nms(const yt_nms *n, const uint8_t *src, uint8_t *dst, yt_cpu_scratch *scratch);
void yt_cpu_softmax(const yt_rows *r, const void *src, void *dst);
void yt_cpu_gather(const yt_gather *g, const void *output, const void *boxes, float *dst);
int yt_cpu_masks(const yt_masks *m, const void *prototypes, const float *rows, const yt_grid *grids, uint8_t *dst, uint64_t bytes,
		 yt_cpu_scratch *scratch);
void yt_cpu_topk(const yt_rows *r, const void *src, yt_ranked *dst);
void yt_cpu_widen(uint32_t type, const void *src, uint64_t first, float *x, uint32_t n);
/* Elements of a float type as floats: where they are, or converted in `room`. */
static inline const float *yt_cpu_floats(uint32_t type, const void *src, uint64_t first, float *room, uint32_t n)
{
	if (type == YT_F32)
		return (const float *)src + first;
	yt_cpu_widen(type, src, first, room, n);
	return room;
}

void yt_cpu_narrow(uint32_t type, const float *x, void *dst, uint64_t first, uint32_t n); /* any type but I32 */

/* Checks a chain and copies it; the copy must be freed with free. */
yt_status yt_cpu_chain_load(const void *image, uint64_t n, yt_chain **out, yt_error *err);

/* Whether a launch of the chain stays in its ranges. */
yt_status yt_cpu_chain_check(const yt_chain *c, const yt_cmd *cmd, uint32_t at, yt_error *err);
void yt_cpu_chain(const yt_chain *c, const yt_cmd *cmd, uint8_t *const p[]);

void yt_cpu_convert(const yt_convert *v, const void *src, const float *scales, void *dst);
/* depth and width: of the block of B that stays in the cache; width a multiple of 32.
 * Results do not depend on them. */
int yt_cpu_gemm(const yt_gemm *g, const void *a, const void *b, const float *bias, void *c, uint32_t depth, uint32_t width,
		yt_cpu_scratch *scratch);
void yt_cpu_diff(const yt_diff *d, const uint8_t *a, const uint8_t *b, uint8_t *dst);
int yt_cpu_stats(const yt_plane_stats *s, const uint8_t *plane, yt_stats *out, yt_cpu_scratch *scratch);

#endif /* YT_CPU_H */
