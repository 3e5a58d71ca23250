/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_memory.h - what both backends do alike for memory: the check of a size, the counters, and
 * the choice of a memory mode on a device, with its reason. The choice depends only on the
 * attributes of the device, so it can be evaluated on any machine.
 */
#ifndef YT_MEMORY_H
#define YT_MEMORY_H

#include "yt_check.h"

#include <string.h>

/* Raises *align to YT_ALIGN_MIN. what names the call in errors. */
static inline yt_status yt_check_alloc(const char *what, uint64_t bytes, uint64_t *align, yt_error *err)
{
	if (bytes == 0 || (*align & (*align - 1)) != 0 || *align > YT_ALIGN_MAX)
		return yt_fail(err, YT_E_INVALID, "%s: %llu bytes aligned to %llu; need at least 1 byte and a power of two up to %u", what,
			       (unsigned long long)bytes, (unsigned long long)*align, YT_ALIGN_MAX);
	if (bytes > SIZE_MAX / 2)
		return yt_fail(err, YT_E_OOM, "%s: %llu bytes exceed the address space", what, (unsigned long long)bytes);
	if (*align < YT_ALIGN_MIN)
		*align = YT_ALIGN_MIN;
	return YT_OK;
}

static inline void yt_count_alloc(yt_mem_stats *m, uint32_t mode, uint64_t bytes)
{
	m->bytes[mode] += bytes;
	m->allocs[mode]++;
	m->total += bytes;
	m->peak[mode] = m->bytes[mode] > m->peak[mode] ? m->bytes[mode] : m->peak[mode];
	m->total_peak = m->total > m->total_peak ? m->total : m->total_peak;
}

static inline void yt_count_free(yt_mem_stats *m, uint32_t mode, uint64_t bytes)
{
	m->bytes[mode] -= bytes;
	m->total -= bytes;
}

static inline void yt_explain_choice(yt_mem_choice *out, uint32_t mode, uint32_t why, const char *text)
{
	out->mode = mode;
	out->why = why;
	snprintf(out->text, sizeof out->text, "%s", text);
}

/* info describes a GPU. An unsupported mode is YT_E_NOT_SUPPORTED, with the reason in
 * *out as well. Managed memory requires concurrent access: on other devices the CPU must
 * not access any managed memory while a kernel runs. */
static inline yt_status yt_choose(const yt_device_info *info, uint32_t mode, uint32_t cpu, yt_mem_choice *out, yt_error *err)
{
	uint32_t allowed = 1u << YT_MEM_DEVICE | 1u << YT_MEM_PINNED;

	if (info->map_host)
		allowed |= 1u << YT_MEM_MAPPED;
	if (info->managed && info->concurrent_managed)
		allowed |= 1u << YT_MEM_MANAGED;
	if (info->host_register)
		allowed |= 1u << YT_MEM_REGISTERED;
	out->allowed = allowed;
	if (mode == YT_MEM_AUTO) {
		if (cpu == YT_CPU_NEVER)
			yt_explain_choice(out, YT_MEM_DEVICE, YT_WHY_CPU_NEVER,
				      "device memory: the CPU never accesses it, and kernels read it fastest");
		else if (info->integrated && info->map_host)
			yt_explain_choice(out, YT_MEM_MAPPED, YT_WHY_INTEGRATED,
				      "mapped: CPU and GPU share one memory, so no copy is needed; CPU accesses are cached");
		else if (info->integrated)
			yt_explain_choice(out, YT_MEM_DEVICE, YT_WHY_NO_MAP,
				      "device memory with copies: the memory is shared, but this device cannot map host memory");
		else
			yt_explain_choice(out, YT_MEM_DEVICE, YT_WHY_DISCRETE,
				      "device memory with copies through pinned memory: the bus is slower than the GPU's memory");
		return yt_ok(err);
	}
	if (mode == YT_MEM_HOST) {
		yt_explain_choice(out, YT_MEM_HOST, YT_WHY_STAGING,
			      "pageable memory is not supported: the driver copies from it synchronously; use pinned or mapped");
	} else if (mode == YT_MEM_MANAGED && !info->managed) {
		yt_explain_choice(out, mode, YT_WHY_NO_MANAGED, "managed memory is not supported by this device");
	} else if (mode == YT_MEM_MANAGED && !info->concurrent_managed) {
		yt_explain_choice(out, mode, YT_WHY_NO_CONCURRENT,
			      "managed memory is not supported: concurrentManagedAccess is 0, so CPU accesses fault while a kernel "
			      "runs; use mapped");
	} else if (mode == YT_MEM_MAPPED && !info->map_host) {
		yt_explain_choice(out, mode, YT_WHY_NO_MAP, "mapped memory is not supported: this device cannot map host memory");
	} else if (mode == YT_MEM_REGISTERED && !info->host_register) {
		yt_explain_choice(out, mode, YT_WHY_NO_REGISTER,
			      "host pages cannot be registered: hostRegisterSupported is 0; copy them to pinned or mapped memory");
	} else {
		static const char *const words[] = {
			"", "device memory: the program copies in both directions, the CPU cannot access it",
			"pinned host memory: the copy engine reads and writes it without staging",
			"mapped: one memory with a host and a device address, no copies", "",
			"managed memory: the driver migrates pages",
			"registered host pages (cameras, shared memory), used in place"
		};

		yt_explain_choice(out, mode, YT_WHY_ASKED, mode < sizeof words / sizeof *words ? words[mode] : "as requested");
		return yt_ok(err);
	}
	return yt_fail(err, YT_E_NOT_SUPPORTED, "%s", out->text);
}

#endif /* YT_MEMORY_H */
