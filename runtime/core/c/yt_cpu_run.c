/* SPDX-License-Identifier: Apache-2.0
 *
 * One operation on the CPU. To add one: its bit in yt_cpu_ops, its case below,
 * its kernel in a file of its own.
 */
#define _GNU_SOURCE /* syscall */

#include "yt_cpu.h"
#include "yt_check.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const uint64_t yt_cpu_ops = 1ull << YT_OP_COPY | 1ull << YT_OP_MEMSET | 1ull << YT_OP_PREPROCESS | 1ull << YT_OP_REDUCE |
			    1ull << YT_OP_RECORD | 1ull << YT_OP_WAIT | 1ull << YT_OP_SIGNAL;

static yt_status preprocess(const yt_cmd *c, uint32_t at, uint8_t *const p[], yt_cpu_scratch *scratch, yt_error *err)
{
	yt_pre_plan plan = yt_plan_preprocess(&c->pre);
	const uint8_t *plane[3] = {p[1], p[2], c->pre.format == YT_FORMAT_I420 ? p[3] : NULL};

	if (yt_cpu_preprocess(&plan, plane, (float *)(void *)p[0], scratch) != 0)
		return yt_fail(err, YT_E_OOM, "command %u: preprocess: no memory for row tables", at);
	return YT_OK;
}

static void reduce(const yt_cmd *c, uint8_t *const p[])
{
	uint64_t n = c->src[0].len / 4;
	float value = yt_cpu_reduce(c->value == YT_REDUCE_MEAN ? YT_REDUCE_SUM : c->value, (const float *)(const void *)p[1], n);

	if (c->value == YT_REDUCE_MEAN)
		value /= (float)n;
	memcpy(p[0], &value, sizeof value);
}

yt_status yt_cpu_run(const yt_cmd *c, uint32_t at, uint8_t *const p[], yt_cpu_scratch *scratch, yt_error *err)
{
	switch (c->op) {
	case YT_OP_COPY:
		if (c->dst.len != 0)
			memcpy(p[0], p[1], (size_t)c->dst.len);
		return YT_OK;
	case YT_OP_MEMSET:
		if (c->dst.len != 0)
			memset(p[0], (int)c->value, (size_t)c->dst.len);
		return YT_OK;
	case YT_OP_PREPROCESS:
		return preprocess(c, at, p, scratch, err);
	case YT_OP_REDUCE:
		reduce(c, p);
		return YT_OK;
	case YT_OP_SIGNAL:
		__atomic_store_n((uint32_t *)(void *)p[0], c->value, __ATOMIC_RELEASE);
		/* Another process may wait: not FUTEX_PRIVATE. Nobody waiting is no error. */
		syscall(SYS_futex, p[0], FUTEX_WAKE, 0x7fffffff, NULL, NULL, 0);
		return YT_OK;
	default:
		return yt_fail(err, YT_E_INTERNAL, "command %u: operation %u was let through", at, c->op);
	}
}
