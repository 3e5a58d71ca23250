/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU backend: devices, buffers, and the table of functions. Streams
 * are in yt_cpu_stream.c, operations in yt_cpu_run.c.
 */
#define _GNU_SOURCE /* sysconf names of glibc, secure_getenv */

#include "yt_cpu_dev.h"
#include "yt_hidden.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

/* ---- devices ------------------------------------------------------------ */

/* Virtual devices share the machine. They are for testing programs with several devices. */
static yt_status cpu_device_count(uint32_t *n, yt_error *err)
{
	const char *asked = secure_getenv("YT_CPU_DEVICES");
	char *end;
	unsigned long v;

	if (n == NULL)
		return yt_fail(err, YT_E_INVALID, "device_count: n is required");
	*n = 1;
	if (asked == NULL || *asked == '\0')
		return yt_ok(err);
	v = strtoul(asked, &end, 10);
	if (*asked < '0' || *asked > '9' || *end != '\0' || v < 1 || v > YT_MAX_VIRTUAL)
		return yt_fail(err, YT_E_INVALID, "device_count: YT_CPU_DEVICES is \"%.20s\"; it must be 1 to %u", asked, YT_MAX_VIRTUAL);
	*n = (uint32_t)v;
	return yt_ok(err);
}

static yt_status set_up(yt_device *d, uint32_t threads, yt_error *err)
{
	pthread_condattr_t monotonic;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int rc = pthread_mutex_init(&d->lock, NULL);

	if (rc != 0)
		return yt_report(err, YT_E_IO, rc, 0, "device_open: mutex: %s", strerror(rc));
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	rc = pthread_cond_init(&d->work, NULL);
	if (rc == 0)
		rc = pthread_cond_init(&d->done, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (rc != 0)
		return yt_report(err, YT_E_IO, rc, 0, "device_open: condition: %s", strerror(rc));
	d->threads_max = threads != 0 ? threads : cores > 0 ? (uint32_t)cores : 1;
	return YT_OK;
}

static yt_status cpu_device_open(uint32_t index, const yt_open_options *opt, yt_device **out, yt_error *err)
{
	yt_open_options o = {0};
	yt_faults faults;
	yt_device *d;
	yt_status rc;
	uint32_t i;

	if (out == NULL || (opt != NULL && opt->size < sizeof opt->size))
		return yt_fail(err, YT_E_INVALID, "device_open: options.size and out are required");
	*out = NULL;
	if (opt != NULL)
		memcpy(&o, opt, opt->size < sizeof o ? opt->size : sizeof o);
	if (index >= YT_MAX_VIRTUAL)
		return yt_fail(err, YT_E_INVALID, "device_open: index %u; the CPU backend has at most %u devices", index,
			       YT_MAX_VIRTUAL);
	if ((o.flags & ~(uint32_t)YT_OPEN_STRICT) != 0)
		return yt_fail(err, YT_E_INVALID, "device_open: unknown flags %#x", o.flags);
	if (o.threads > 1024)
		return yt_fail(err, YT_E_INVALID, "device_open: %u threads; at most 1024", o.threads);
	rc = yt_faults_parse(o.faults != NULL ? o.faults : "", cpu_now(), &faults, err);
	if (rc != YT_OK)
		return rc;
	if (yt_faults_due(&faults, YT_FAULT_INIT, 0, cpu_now(), "", "") != NULL)
		return yt_fail(err, YT_E_NO_BACKEND, "device_open: injected fault: the device does not open");
	yt_guard_init();
	d = calloc(1, sizeof *d);
	if (d == NULL)
		return yt_fail(err, YT_E_OOM, "device_open: no memory for the device");
	rc = set_up(d, o.threads, err);
	if (rc != YT_OK) {
		free(d);
		return rc;
	}
	d->strict = o.flags & YT_OPEN_STRICT;
	d->faults = faults;
	d->trouble = faults.n != 0;
	for (i = 0; i <= YT_OP_LAST; i++) {
		yt_cpu_config built_in = yt_cpu_built_in(i);

		d->config[i].block = built_in.block;
		d->config[i].tile = built_in.tile;
	}
	*out = d;
	return yt_ok(err);
}

static void cpu_name(char *out, size_t n)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256], *colon;

	snprintf(out, n, "cpu");
	if (f == NULL)
		return;
	/* x86 kernels print "model name"; arm64 kernels print only "cpu". */
	while (fgets(line, sizeof line, f) != NULL) {
		if (strncmp(line, "model name", 10) != 0 || (colon = strchr(line, ':')) == NULL)
			continue;
		colon += 1 + strspn(colon + 1, " ");
		colon[strcspn(colon, "\n")] = '\0';
		snprintf(out, n, "%.*s", (int)n - 1, colon);
		break;
	}
	fclose(f);
}

static yt_status cpu_device_info(yt_device *d, yt_device_info *info, yt_error *err)
{
	yt_device_info full = {0};
	long cores = sysconf(_SC_NPROCESSORS_ONLN), page = sysconf(_SC_PAGESIZE);
	long total = sysconf(_SC_PHYS_PAGES), avail = sysconf(_SC_AVPHYS_PAGES), l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);

	if (d == NULL || info == NULL || info->size < sizeof info->size)
		return yt_fail(err, YT_E_INVALID, "device_info: device, info and info.size are required");
	full.size = info->size < sizeof full ? info->size : (uint32_t)sizeof full;
	full.host_register = full.unified_addressing = full.map_host = full.mempools = 1;
	full.integrated = full.concurrent_managed = full.managed = full.pageable_access = full.direct_managed = !d->strict;
	full.sm_count = cores > 0 ? (uint32_t)cores : 0;
	full.mem_total = total > 0 && page > 0 ? (uint64_t)total * (uint64_t)page : 0;
	full.mem_free = avail > 0 && page > 0 ? (uint64_t)avail * (uint64_t)page : 0;
	full.l2 = l3 > 0 ? (uint64_t)l3 : 0;
	cpu_name(full.name, sizeof full.name);
	memcpy(info, &full, full.size);
	return yt_ok(err);
}

static yt_status cpu_device_health(yt_device *d, yt_error *err)
{
	yt_status rc;

	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "device_health: no device");
	rc = cpu_alive(d, err);
	return rc != YT_OK ? rc : yt_ok(err);
}

static yt_status cpu_device_close(yt_device *d, yt_error *err)
{
	uint32_t objects, streams;

	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "device_close: no device");
	pthread_mutex_lock(&d->lock);
	objects = d->table.live;
	streams = d->stream_count;
	pthread_mutex_unlock(&d->lock);
	if (objects != 0 || streams != 0)
		return yt_fail(err, YT_E_BUSY, "device_close: %u buffers, events or kernels and %u streams are open", objects, streams);
	cpu_stop_threads(d);
	pthread_cond_destroy(&d->work);
	pthread_cond_destroy(&d->done);
	pthread_mutex_destroy(&d->lock);
	yt_table_destroy(&d->table);
	free(d);
	return yt_ok(err);
}

static yt_status cpu_fault_inject(yt_device *d, const char *spec, yt_error *err)
{
	yt_faults faults;
	yt_status rc;

	if (d == NULL || spec == NULL)
		return yt_fail(err, YT_E_INVALID, "fault_inject: device and specification are required");
	rc = yt_faults_parse(spec, cpu_now(), &faults, err);
	if (rc != YT_OK)
		return rc;
	pthread_mutex_lock(&d->lock);
	d->faults = faults;
	d->faults_generation++;
	__atomic_store_n(&d->trouble, faults.n != 0 || d->dead.code != YT_OK, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&d->done); /* ends a delay in progress */
	pthread_mutex_unlock(&d->lock);
	return yt_ok(err);
}

static yt_status cpu_kernel_config(yt_device *d, const char *kernel, const yt_kernel_config *cfg, yt_error *err)
{
	uint32_t op = 0, block = 0, tile = 0;
	yt_cpu_config built_in;
	yt_status rc;

	if (d == NULL || kernel == NULL || cfg == NULL || cfg->size < sizeof *cfg)
		return yt_fail(err, YT_E_INVALID, "kernel_config: device, kernel and config.size are required");
	rc = yt_check_config(kernel, cfg, &op, &block, &tile, err);
	if (rc != YT_OK)
		return rc;
	built_in = yt_cpu_built_in(op);
	__atomic_store_n(&d->config[op].block, cfg->block != 0 ? block : built_in.block, __ATOMIC_RELAXED);
	__atomic_store_n(&d->config[op].tile, cfg->tile != 0 ? tile : built_in.tile, __ATOMIC_RELAXED);
	return yt_ok(err);
}

/* ---- memory ------------------------------------------------------------- */

static uint32_t mode_for(const yt_device *d, uint32_t mode)
{
	return mode != YT_MEM_AUTO ? mode : d->strict ? YT_MEM_DEVICE : YT_MEM_MAPPED;
}

/* Whether the program must not access memory of a mode. */
static int is_hidden(const yt_device *d, uint32_t mode)
{
	return d->strict && mode == YT_MEM_DEVICE;
}

/* A strict device supports the modes that a card does. */
static yt_status supports(yt_device *d, uint32_t mode, yt_error *err)
{
	yt_device_info info = {.size = sizeof info};
	yt_mem_choice choice;
	yt_status rc;

	if (!d->strict)
		return YT_OK;
	rc = cpu_device_info(d, &info, err);
	return rc != YT_OK ? rc : yt_choose(&info, mode, YT_CPU_NEVER, &choice, err);
}

/* Lock held. Fails if the device is lost or a fault was injected. */
static yt_status may_alloc(yt_device *d, const char *what, uint64_t bytes, yt_error *err)
{
	yt_status rc;

	if (d->trouble == 0)
		return YT_OK;
	rc = cpu_alive_locked(d, err);
	if (rc == YT_OK && yt_faults_due(&d->faults, YT_FAULT_OOM, bytes, cpu_now(), "", "") != NULL)
		rc = yt_fail(err, YT_E_OOM, "%s: injected fault: no memory for %llu bytes", what, (unsigned long long)bytes);
	return rc;
}

static void describe(const yt_slot *s, uint64_t id, yt_buffer *out)
{
	uint32_t size = out->size;

	memset(out, 0, sizeof *out);
	out->size = size;
	out->mode = s->mode;
	out->id = id;
	out->host = s->host;
	out->device = (uint64_t)(uintptr_t)s->device + s->above;
	out->bytes = s->bytes;
}

/* Lock held. */
static yt_status publish(yt_device *d, const char *what, const yt_slot *s, yt_buffer *out, yt_error *err)
{
	uint64_t id = yt_table_add(&d->table, s);

	if (id == 0)
		return yt_fail(err, YT_E_OOM, "%s: no memory for the table of buffers", what);
	describe(s, id, out);
	return YT_OK;
}

/* Returns 0 or an errno. */
static int take(const yt_device *d, uint32_t mode, uint64_t bytes, uint64_t align, void **base)
{
	if (!is_hidden(d, mode))
		return posix_memalign(base, (size_t)align, (size_t)bytes);
	*base = yt_hidden_map(bytes, align);
	return *base == NULL ? ENOMEM : 0;
}

/* hidden: yt_hidden_size of the memory, or 0 for memory that is not hidden. */
static void give(void *base, uint64_t hidden)
{
	if (hidden != 0)
		yt_hidden_unmap(base, hidden);
	else
		free(base);
}

static yt_status cpu_buf_alloc(yt_device *d, uint32_t mode, uint64_t bytes, uint64_t align, yt_buffer *out, yt_error *err)
{
	yt_slot s = {0};
	yt_status rc;
	int e;

	if (d == NULL || out == NULL || out->size < sizeof *out)
		return yt_fail(err, YT_E_INVALID, "buf_alloc: device, out and out.size are required");
	if (mode > YT_MEM_MANAGED)
		return yt_fail(err, YT_E_INVALID, "buf_alloc: memory mode %u is unknown or cannot be allocated", mode);
	rc = yt_check_alloc("buf_alloc", bytes, &align, err);
	if (rc == YT_OK)
		rc = supports(d, mode, err);
	if (rc != YT_OK)
		return rc;
	s.mode = mode_for(d, mode);
	e = take(d, s.mode, bytes, align, &s.base);
	if (e != 0)
		return yt_report(err, YT_E_OOM, e, 0, "buf_alloc: %llu bytes of host memory: %s", (unsigned long long)bytes,
				 strerror(e));
	s.device = s.base;
	s.above = is_hidden(d, s.mode) ? yt_hidden_size(bytes) : 0;
	s.kind = YT_SLOT_BUFFER;
	s.bytes = bytes;
	s.host = s.mode == YT_MEM_DEVICE ? NULL : s.device;
	pthread_mutex_lock(&d->lock);
	rc = may_alloc(d, "buf_alloc", bytes, err);
	if (rc == YT_OK)
		rc = publish(d, "buf_alloc", &s, out, err);
	if (rc == YT_OK)
		yt_count_alloc(&d->stats, s.mode, bytes);
	pthread_mutex_unlock(&d->lock);
	if (rc != YT_OK)
		give(s.base, s.above);
	return rc != YT_OK ? rc : yt_ok(err);
}

static yt_status cpu_buf_address(yt_device *d, yt_buf_id id, uint64_t *address, yt_error *err)
{
	yt_slot *s;

	if (d == NULL || address == NULL)
		return yt_fail(err, YT_E_INVALID, "buf_address: device and address are required");
	pthread_mutex_lock(&d->lock);
	s = yt_table_get(&d->table, id, YT_SLOT_BUFFER);
	*address = s != NULL ? (uint64_t)(uintptr_t)s->device : 0;
	pthread_mutex_unlock(&d->lock);
	if (s == NULL)
		return yt_fail(err, YT_E_INVALID, "buf_address: %#llx is not a buffer, or was freed", (unsigned long long)id);
	return yt_ok(err);
}

static yt_status cpu_buf_register(yt_device *d, void *host, uint64_t bytes, yt_buffer *out, yt_error *err)
{
	yt_slot s = {0};
	yt_status rc;

	if (d == NULL || host == NULL || bytes == 0 || out == NULL || out->size < sizeof *out ||
	    bytes > UINTPTR_MAX - (uintptr_t)host)
		return yt_fail(err, YT_E_INVALID, "buf_register: device, memory, out and out.size are required");
	if ((uintptr_t)host % YT_ALIGN_MIN != 0)
		return yt_fail(err, YT_E_INVALID, "buf_register: address %p is not aligned to %u bytes", host, YT_ALIGN_MIN);
	s.kind = YT_SLOT_BUFFER;
	s.mode = YT_MEM_REGISTERED;
	s.bytes = bytes;
	s.host = s.device = host;
	pthread_mutex_lock(&d->lock);
	rc = cpu_alive_locked(d, err);
	if (rc == YT_OK)
		rc = publish(d, "buf_register", &s, out, err);
	if (rc == YT_OK)
		yt_count_alloc(&d->stats, s.mode, bytes);
	pthread_mutex_unlock(&d->lock);
	return rc != YT_OK ? rc : yt_ok(err);
}

int cpu_slot_unused(yt_device *d, uint64_t id)
{
	yt_slot *slot = yt_table_at(&d->table, (uint32_t)id - 1);
	yt_stream *s;
	uint32_t i, n;
	int unused = 1;

	__atomic_store_n(&slot->id, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&d->removals, d->removals + 1, __ATOMIC_RELEASE);
	yt_guard_heavy();
	for (s = d->streams; s != NULL; s = s->next) {
		uint64_t active;

		while ((active = __atomic_load_n(&s->active, __ATOMIC_ACQUIRE)) == CHECKING)
			sched_yield(); /* the check is short */
		/* If the names belong to another list by now, the earlier list has ended and
		 * the new one was checked without the id. */
		n = active == CHECKED ? __atomic_load_n(&s->names, __ATOMIC_RELAXED) : 0;
		for (i = 0; i < n; i++)
			unused &= __atomic_load_n(&s->name_of[i], __ATOMIC_RELAXED) != id;
	}
	__atomic_store_n(&slot->id, id, __ATOMIC_RELEASE);
	return unused;
}

static yt_status cpu_buf_free(yt_device *d, yt_buf_id id, yt_error *err)
{
	void *memory = NULL;
	uint64_t hidden = 0;
	yt_status rc = YT_OK;
	yt_slot *s;

	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "buf_free: no device");
	pthread_mutex_lock(&d->lock);
	s = yt_table_get(&d->table, id, YT_SLOT_BUFFER);
	if (s == NULL) {
		rc = yt_fail(err, YT_E_INVALID, "buf_free: %#llx is not a buffer, or was freed", (unsigned long long)id);
	} else if (s->uses != 0) {
		rc = yt_fail(err, YT_E_BUSY, "buf_free: submitted work uses the buffer");
	} else if (!cpu_slot_unused(d, id)) {
		rc = yt_fail(err, YT_E_BUSY, "buf_free: a running list uses the buffer");
	} else {
		yt_count_free(&d->stats, s->mode, s->bytes);
		memory = s->base;
		hidden = s->above;
		yt_table_remove(&d->table, s);
	}
	pthread_mutex_unlock(&d->lock);
	give(memory, hidden);
	return rc != YT_OK ? rc : yt_ok(err);
}

/* ---- choice, statistics ------------------------------------------------- */

static yt_status cpu_mem_choose(yt_device *d, uint32_t mode, uint32_t cpu, yt_mem_choice *out, yt_error *err)
{
	yt_mem_choice full = {0};

	if (d == NULL || mode > YT_MEM_REGISTERED || cpu > YT_CPU_BOTH || out == NULL || out->size < sizeof out->size)
		return yt_fail(err, YT_E_INVALID, "mem_choose: device, known mode and use, out and out.size are required");
	full.size = out->size < sizeof full ? out->size : (uint32_t)sizeof full;
	if (d->strict) {
		yt_device_info info = {.size = sizeof info};
		uint32_t size = full.size;
		yt_status rc = cpu_device_info(d, &info, err);

		if (rc == YT_OK)
			rc = yt_choose(&info, mode, cpu, &full, err);
		full.size = size;
		memcpy(out, &full, size);
		return rc;
	}
	full.mode = mode_for(d, mode);
	full.why = mode == YT_MEM_AUTO ? YT_WHY_HOST : YT_WHY_ASKED;
	full.allowed = (1u << (YT_MEM_REGISTERED + 1)) - 2;
	snprintf(full.text, sizeof full.text, "%s",
		 mode == YT_MEM_AUTO ? "the CPU backend has one memory: every mode is host memory"
				     : "as requested; on the CPU every mode is host memory");
	memcpy(out, &full, full.size);
	return yt_ok(err);
}

static yt_status cpu_mem_stats(yt_device *d, yt_mem_stats *out, yt_error *err)
{
	yt_mem_stats full;
	uint32_t size;

	if (d == NULL || out == NULL || out->size < sizeof out->size)
		return yt_fail(err, YT_E_INVALID, "mem_stats: device, out and out.size are required");
	pthread_mutex_lock(&d->lock);
	full = d->stats;
	full.h2d = __atomic_load_n(&d->stats.h2d, __ATOMIC_RELAXED);
	full.d2h = __atomic_load_n(&d->stats.d2h, __ATOMIC_RELAXED);
	full.d2d = __atomic_load_n(&d->stats.d2d, __ATOMIC_RELAXED);
	full.h2h = __atomic_load_n(&d->stats.h2h, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&d->lock);
	size = out->size < sizeof full ? out->size : (uint32_t)sizeof full;
	full.size = size;
	memcpy(out, &full, size);
	return yt_ok(err);
}

/* ---- the table ---------------------------------------------------------- */

#if defined(__x86_64__)
#define YT_ARCH "x86_64"
#elif defined(__aarch64__)
#define YT_ARCH "aarch64"
#else
#define YT_ARCH "unknown architecture"
#endif

yt_status yt_cpu_get_api(uint32_t want_major, yt_api *out, uint32_t out_size, yt_error *err)
{
	yt_api api = {
		.struct_size = sizeof(yt_api),
		.abi_major = YT_ABI_MAJOR,
		.abi_minor = YT_ABI_MINOR,
		.caps = YT_CAP_HOST_RANGES | YT_CAP_SYNCHRONOUS | YT_CAP_FAULTS | YT_CAP_VIRTUAL | YT_CAP_CHAINS,
		.name = "cpu",
		.build_id = "cpu backend, compiler " __VERSION__ ", " YT_ARCH,
		.device_count = cpu_device_count,
		.device_open = cpu_device_open,
		.device_info = cpu_device_info,
		.device_health = cpu_device_health,
		.device_close = cpu_device_close,
		.buf_alloc = cpu_buf_alloc,
		.buf_free = cpu_buf_free,
		.stream_open = cpu_stream_open,
		.stream_destroy = cpu_stream_destroy,
		.submit = cpu_submit,
		.stream_poll = cpu_stream_poll,
		.event_create = cpu_event_create,
		.event_destroy = cpu_event_destroy,
		.event_elapsed = cpu_event_elapsed,
		.ops = yt_cpu_ops,
		.buf_register = cpu_buf_register,
		.mem_choose = cpu_mem_choose,
		.mem_stats = cpu_mem_stats,
		.module_load = cpu_module_load,
		.module_unload = cpu_module_unload,
		.kernel_get = cpu_kernel_get,
		.kernel_config = cpu_kernel_config,
		.fault_inject = cpu_fault_inject,
		.buf_address = cpu_buf_address,
		.submit_known = cpu_submit_known,
	};
	uint32_t size = out_size < sizeof api ? out_size : (uint32_t)sizeof api;

	if (out == NULL || out_size < offsetof(yt_api, name))
		return yt_fail(err, YT_E_INVALID, "get_api: out is required");
	if (want_major != YT_ABI_MAJOR)
		return yt_fail(err, YT_E_ABI, "get_api: ABI %u was requested, the CPU backend has %u.%u", want_major, YT_ABI_MAJOR,
			       YT_ABI_MINOR);
	memcpy(out, &api, size);
	out->struct_size = size;
	return yt_ok(err);
}
