/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU backend: devices, buffers, pools, and the table of functions. Streams
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

static yt_status cpu_device_start(uint32_t index, const yt_open_options *opt, yt_device **out, yt_error *err)
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
	d->index = index;
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

static yt_status cpu_device_open(uint32_t index, yt_device **out, yt_error *err)
{
	return cpu_device_start(index, NULL, out, err);
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
	uint32_t objects, streams, graphs, pools;

	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "device_close: no device");
	pthread_mutex_lock(&d->lock);
	objects = d->table.live;
	streams = d->stream_count;
	graphs = d->graphs;
	pools = d->pools != NULL;
	pthread_mutex_unlock(&d->lock);
	if (objects != 0 || streams != 0 || graphs != 0 || pools)
		return yt_fail(err, YT_E_BUSY, "device_close: %u buffers, events or kernels, %u streams and %u graphs are open%s", objects,
			       streams, graphs, pools ? ", and pools" : "");
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
	__atomic_store_n(&d->config[op].stages, cfg->stages, __ATOMIC_RELAXED);
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

/* Frees a buffer of any origin. order: see pool_free. */
static yt_status release(yt_device *d, const char *what, const yt_pool *only, yt_buf_id id, const yt_stream *order,
			 yt_error *err)
{
	void *memory = NULL;
	uint64_t hidden = 0;
	yt_status rc = YT_OK;
	yt_slot *s;

	pthread_mutex_lock(&d->lock);
	s = yt_table_get(&d->table, id, YT_SLOT_BUFFER);
	if (s == NULL || (only != NULL && s->pool != only)) {
		rc = yt_fail(err, YT_E_INVALID, "%s: %#llx is not a buffer%s, or was freed", what, (unsigned long long)id,
			     only != NULL ? " of this pool" : "");
	} else if (s->held != 0 || (s->uses != 0 && (order == NULL || cpu_named_elsewhere(d, id, order)))) {
		rc = yt_fail(err, YT_E_BUSY, "%s: %s uses the buffer", what, s->held != 0 ? "a graph" : "submitted work");
	} else if (!cpu_slot_unused(d, id)) {
		rc = yt_fail(err, YT_E_BUSY, "%s: a running list uses the buffer", what);
	} else {
		if (s->pool != NULL) {
			s->pool->buffers--;
			yt_pool_return(&s->pool->blocks, s->block, order != NULL ? &order->done : NULL,
				       order != NULL ? order->submitted : 0);
		} else {
			yt_count_free(&d->stats, s->mode, s->bytes);
			memory = s->base;
			hidden = s->above;
		}
		yt_table_remove(&d->table, s);
	}
	pthread_mutex_unlock(&d->lock);
	give(memory, hidden);
	return rc != YT_OK ? rc : yt_ok(err);
}

static yt_status cpu_buf_free(yt_device *d, yt_buf_id id, yt_error *err)
{
	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "buf_free: no device");
	return release(d, "buf_free", NULL, id, NULL, err);
}

/* ---- pools -------------------------------------------------------------- */

static int slab_take(void *ctx, uint64_t bytes, uint64_t *base, void **handle)
{
	yt_pool *p = ctx;

	if (bytes > SIZE_MAX / 2 || take(p->dev, p->mode, bytes, 4096, handle) != 0)
		return -1;
	*base = (uint64_t)(uintptr_t)*handle;
	yt_count_alloc(&p->dev->stats, p->mode, bytes);
	return 0;
}

static void slab_give(void *ctx, uint64_t base, uint64_t bytes, void *handle)
{
	yt_pool *p = ctx;

	(void)base;
	yt_count_free(&p->dev->stats, p->mode, bytes);
	give(handle, is_hidden(p->dev, p->mode) ? yt_hidden_size(bytes) : 0);
}

static yt_status cpu_pool_create(yt_device *d, const yt_pool_options *opt, yt_pool **out, yt_error *err)
{
	yt_pool_options o = {0};
	yt_status rc;
	yt_pool *p;

	if (d == NULL || out == NULL || opt == NULL || opt->size < sizeof opt->size)
		return yt_fail(err, YT_E_INVALID, "pool_create: device, options.size and out are required");
	*out = NULL;
	memcpy(&o, opt, opt->size < sizeof o ? opt->size : sizeof o);
	if (o.mode > YT_MEM_MANAGED || (o.flags & ~(uint32_t)YT_POOL_NO_COALESCE) != 0 || o.slab > 1ull << 40)
		return yt_fail(err, YT_E_INVALID, "pool_create: invalid mode %u, flags %#x or slab size of %llu bytes", o.mode, o.flags,
			       (unsigned long long)o.slab);
	rc = supports(d, o.mode, err);
	if (rc != YT_OK)
		return rc;
	p = calloc(1, sizeof *p);
	if (p == NULL)
		return yt_fail(err, YT_E_OOM, "pool_create: no memory for the pool");
	p->dev = d;
	p->mode = mode_for(d, o.mode);
	p->blocks.max = o.max;
	p->blocks.slab_bytes = ((o.slab != 0 ? o.slab : YT_POOL_SLAB) + YT_ALIGN_MIN - 1) / YT_ALIGN_MIN * YT_ALIGN_MIN;
	p->blocks.flags = o.flags;
	p->blocks.source.ctx = p;
	p->blocks.source.take = slab_take;
	p->blocks.source.give = slab_give;
	pthread_mutex_lock(&d->lock);
	p->next = d->pools;
	d->pools = p;
	pthread_mutex_unlock(&d->lock);
	*out = p;
	return yt_ok(err);
}

static yt_status cpu_pool_alloc(yt_pool *p, uint64_t bytes, uint64_t align, yt_buffer *out, yt_error *err)
{
	yt_slot s = {0};
	yt_block *b = NULL;
	yt_device *d;
	yt_status rc;

	if (p == NULL || out == NULL || out->size < sizeof *out)
		return yt_fail(err, YT_E_INVALID, "pool_alloc: pool, out and out.size are required");
	rc = yt_check_alloc("pool_alloc", bytes, &align, err);
	if (rc != YT_OK)
		return rc;
	d = p->dev;
	pthread_mutex_lock(&d->lock);
	rc = may_alloc(d, "pool_alloc", bytes, err);
	if (rc == YT_OK) {
		b = yt_pool_take(&p->blocks, (bytes + YT_ALIGN_MIN - 1) / YT_ALIGN_MIN * YT_ALIGN_MIN, align);
		if (b == NULL) {
			yt_pool_stats st = yt_pool_read(&p->blocks);

			rc = yt_fail(err, YT_E_OOM,
				     "pool_alloc: %llu bytes: %llu in use, %llu reserved, limit %llu, largest free piece %llu",
				     (unsigned long long)bytes, (unsigned long long)st.used, (unsigned long long)st.reserved,
				     (unsigned long long)st.max, (unsigned long long)st.largest_free);
		}
	}
	if (rc == YT_OK) {
		s.kind = YT_SLOT_BUFFER;
		s.mode = p->mode;
		s.bytes = bytes;
		s.device = (void *)(uintptr_t)b->at;
		s.above = is_hidden(d, s.mode) ? yt_hidden_size(b->slab->size) : 0;
		s.host = s.mode == YT_MEM_DEVICE ? NULL : s.device;
		s.pool = p;
		s.block = b;
		rc = publish(d, "pool_alloc", &s, out, err);
		if (rc != YT_OK)
			yt_pool_return(&p->blocks, b, NULL, 0);
		else
			p->buffers++;
	}
	pthread_mutex_unlock(&d->lock);
	return rc != YT_OK ? rc : yt_ok(err);
}

static yt_status cpu_pool_free(yt_pool *p, yt_buf_id id, yt_stream *order, yt_error *err)
{
	if (p == NULL || (order != NULL && order->dev != p->dev))
		return yt_fail(err, YT_E_INVALID, "pool_free: a pool, and a stream of its device, are required");
	return release(p->dev, "pool_free", p, id, order, err);
}

static yt_status cpu_pool_stats(yt_pool *p, yt_pool_stats *out, yt_error *err)
{
	yt_pool_stats full;
	uint32_t size;

	if (p == NULL || out == NULL || out->size < sizeof out->size)
		return yt_fail(err, YT_E_INVALID, "pool_stats: pool, out and out.size are required");
	pthread_mutex_lock(&p->dev->lock);
	full = yt_pool_read(&p->blocks);
	pthread_mutex_unlock(&p->dev->lock);
	full.mode = p->mode;
	size = out->size < sizeof full ? out->size : (uint32_t)sizeof full;
	full.size = size;
	memcpy(out, &full, size);
	return yt_ok(err);
}

static yt_status cpu_pool_trim(yt_pool *p, uint64_t keep, yt_error *err)
{
	if (p == NULL)
		return yt_fail(err, YT_E_INVALID, "pool_trim: no pool");
	pthread_mutex_lock(&p->dev->lock);
	yt_pool_shrink(&p->blocks, keep);
	pthread_mutex_unlock(&p->dev->lock);
	return yt_ok(err);
}

static yt_status cpu_pool_destroy(yt_pool *p, yt_error *err)
{
	yt_device *d;
	yt_pool **at;

	if (p == NULL)
		return yt_fail(err, YT_E_INVALID, "pool_destroy: no pool");
	d = p->dev;
	pthread_mutex_lock(&d->lock);
	yt_pool_collect(&p->blocks, NULL);
	if (p->buffers != 0 || p->blocks.deferred != NULL) {
		pthread_mutex_unlock(&d->lock);
		return yt_fail(err, YT_E_BUSY, "pool_destroy: %u buffers exist or are still used by streams", p->buffers);
	}
	for (at = &d->pools; *at != p; at = &(*at)->next)
		;
	*at = p->next;
	yt_pool_end(&p->blocks);
	pthread_mutex_unlock(&d->lock);
	free(p);
	return yt_ok(err);
}

/* ---- advice, choice, statistics ----------------------------------------- */

static yt_status check_range(yt_device *d, const char *what, const yt_range *r, yt_error *err)
{
	yt_status rc = YT_OK;
	yt_slot *s;

	pthread_mutex_lock(&d->lock);
	s = yt_table_get(&d->table, r->buf, YT_SLOT_BUFFER);
	if (s == NULL)
		rc = yt_fail(err, YT_E_INVALID, "%s: %#llx is not a buffer, or was freed", what, (unsigned long long)r->buf);
	else if (r->len > s->bytes || r->off > s->bytes - r->len)
		rc = yt_fail(err, YT_E_INVALID, "%s: bytes %llu to %llu are outside a buffer of %llu bytes", what, (unsigned long long)r->off,
			     (unsigned long long)(r->off + r->len), (unsigned long long)s->bytes);
	pthread_mutex_unlock(&d->lock);
	return rc;
}

static yt_status cpu_buf_prefetch(yt_device *d, yt_range r, uint32_t to, yt_stream *s, uint32_t *why, yt_error *err)
{
	yt_status rc;

	if (d == NULL || why == NULL || to > YT_TO_HOST || (s != NULL && s->dev != d))
		return yt_fail(err, YT_E_INVALID, "buf_prefetch: device, its stream, direction and why are required");
	rc = check_range(d, "buf_prefetch", &r, err);
	if (rc != YT_OK)
		return rc;
	*why = YT_WHY_HOST;
	return yt_ok(err);
}

static yt_status cpu_buf_advise(yt_device *d, yt_range r, uint32_t advice, uint32_t *why, yt_error *err)
{
	yt_status rc;

	if (d == NULL || why == NULL || advice < YT_ADVISE_READ_MOSTLY || advice > YT_ADVISE_NORMAL)
		return yt_fail(err, YT_E_INVALID, "buf_advise: device, known advice and why are required");
	rc = check_range(d, "buf_advise", &r, err);
	if (rc != YT_OK)
		return rc;
	*why = YT_WHY_HOST;
	return yt_ok(err);
}

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

/* ---- peers -------------------------------------------------------------- */

/* Copies between peers, with the faults of the receiving device. */
static void peer_move(yt_device *to, uint8_t *dst, const uint8_t *src, uint64_t n, int staged)
{
	yt_fault *f = NULL;

	memcpy(dst, src, (size_t)n);
	pthread_mutex_lock(&to->lock);
	/* The path through host memory is not affected by faults of the link. */
	if (!staged && to->faults.n != 0 && n != 0)
		f = yt_faults_due(&to->faults, YT_FAULT_CORRUPT, n, cpu_now(), "copy", "");
	if (f != NULL) {
		yt_fault_random(f);
		dst[f->random % n] ^= (uint8_t)(1u << (f->random >> 60 & 7));
	}
	to->stats.p2p += n;
	pthread_mutex_unlock(&to->lock);
}

static yt_status cpu_peer_query(yt_device *from, yt_device *to, uint32_t *caps, yt_error *err)
{
	enum { SIZE = 65536 };
	uint8_t *a, *b;
	uint32_t known, i;

	if (from == NULL || to == NULL || caps == NULL)
		return yt_fail(err, YT_E_INVALID, "peer_query: two devices and caps are required");
	if (from == to) {
		*caps = YT_PEER_SAME | YT_PEER_STAGED;
		return yt_ok(err);
	}
	pthread_mutex_lock(&to->lock);
	known = to->peer[from->index];
	pthread_mutex_unlock(&to->lock);
	if (known == 0) {
		a = malloc(SIZE);
		b = calloc(1, SIZE);
		if (a == NULL || b == NULL) {
			free(a);
			free(b);
			return yt_fail(err, YT_E_OOM, "peer_query: no memory for the pattern");
		}
		for (i = 0; i < SIZE; i++)
			a[i] = (uint8_t)(i * 167 + (i >> 8) * 13);
		peer_move(to, b, a, SIZE, 0);
		known = YT_PEER_STAGED | YT_PEER_DIRECT | (memcmp(a, b, SIZE) == 0 ? YT_PEER_CHECKED : 0u);
		free(a);
		free(b);
		pthread_mutex_lock(&to->lock);
		to->peer[from->index] = known;
		pthread_mutex_unlock(&to->lock);
	}
	*caps = known;
	return yt_ok(err);
}

/* Returns the address of a range and keeps its buffer in use until it is released. */
static yt_status hold(yt_device *d, const char *what, const yt_range *r, uint8_t **out, yt_error *err)
{
	yt_status rc = check_range(d, what, r, err);
	yt_slot *s;

	if (rc != YT_OK)
		return rc;
	pthread_mutex_lock(&d->lock);
	s = yt_table_get(&d->table, r->buf, YT_SLOT_BUFFER);
	if (s != NULL) {
		s->uses++;
		*out = (uint8_t *)s->device + r->off;
	}
	pthread_mutex_unlock(&d->lock);
	return s != NULL ? YT_OK : yt_fail(err, YT_E_INVALID, "%s: the buffer was freed", what);
}

static void let_go(yt_device *d, yt_buf_id id)
{
	yt_slot *s;

	pthread_mutex_lock(&d->lock);
	s = yt_table_get(&d->table, id, YT_SLOT_BUFFER);
	if (s != NULL)
		s->uses--;
	pthread_mutex_unlock(&d->lock);
}

static yt_status cpu_peer_copy(yt_stream *s, yt_range dst, yt_device *from, yt_range src, uint32_t *how, yt_error *err)
{
	const uint32_t direct = YT_PEER_DIRECT | YT_PEER_CHECKED;
	uint8_t *to = NULL, *of = NULL;
	uint32_t caps = 0;
	yt_device *d;
	yt_status rc;

	if (s == NULL || from == NULL || how == NULL || dst.len != src.len)
		return yt_fail(err, YT_E_INVALID, "peer_copy: a stream, a device, how, and equal lengths are required");
	d = s->dev;
	if (s->submitted != __atomic_load_n(&s->done, __ATOMIC_ACQUIRE))
		return yt_fail(err, YT_E_BUSY, "peer_copy: the stream has work; poll it first");
	rc = cpu_alive(d, err);
	if (rc == YT_OK)
		rc = cpu_alive(from, err);
	if (rc == YT_OK)
		rc = cpu_peer_query(from, d, &caps, err);
	if (rc == YT_OK)
		rc = hold(d, "peer_copy: destination", &dst, &to, err);
	if (rc != YT_OK)
		return rc;
	rc = hold(from, "peer_copy: source", &src, &of, err);
	if (rc == YT_OK && to < of + src.len && of < to + dst.len && dst.len != 0)
		rc = yt_fail(err, YT_E_INVALID, "peer_copy: source and destination overlap");
	if (rc == YT_OK) {
		*how = (caps & direct) == direct || (caps & YT_PEER_SAME) != 0 ? YT_PEER_DIRECT : YT_PEER_STAGED;
		peer_move(d, to, of, dst.len, *how == YT_PEER_STAGED);
	}
	if (of != NULL)
		let_go(from, src.buf);
	let_go(d, dst.buf);
	return rc != YT_OK ? rc : yt_ok(err);
}

/* ---- not supported by CPUs ----------------------------------------------- */

static yt_status cpu_occupancy(yt_device *d, uint64_t kernel, uint32_t block, uint64_t shared, uint32_t *blocks, yt_error *err)
{
	(void)d;
	(void)kernel;
	(void)block;
	(void)shared;
	(void)blocks;
	return yt_fail(err, YT_E_NOT_SUPPORTED, "occupancy: a CPU has no multiprocessors");
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
		.stream_create = cpu_stream_create,
		.stream_destroy = cpu_stream_destroy,
		.submit = cpu_submit,
		.stream_poll = cpu_stream_poll,
		.event_create = cpu_event_create,
		.event_destroy = cpu_event_destroy,
		.event_elapsed = cpu_event_elapsed,
		.ops = yt_cpu_ops,
		.stream_open = cpu_stream_open,
		.event_poll = cpu_event_poll,
		.graph_begin = cpu_graph_begin,
		.graph_end = cpu_graph_end,
		.graph_launch = cpu_graph_launch,
		.graph_destroy = cpu_graph_destroy,
		.pool_create = cpu_pool_create,
		.pool_stats = cpu_pool_stats,
		.pool_trim = cpu_pool_trim,
		.pool_destroy = cpu_pool_destroy,
		.pool_alloc = cpu_pool_alloc,
		.pool_free = cpu_pool_free,
		.buf_register = cpu_buf_register,
		.buf_prefetch = cpu_buf_prefetch,
		.buf_advise = cpu_buf_advise,
		.mem_choose = cpu_mem_choose,
		.mem_stats = cpu_mem_stats,
		.module_load = cpu_module_load,
		.module_image = cpu_module_image,
		.module_unload = cpu_module_unload,
		.kernel_get = cpu_kernel_get,
		.occupancy = cpu_occupancy,
		.kernel_config = cpu_kernel_config,
		.peer_query = cpu_peer_query,
		.peer_copy = cpu_peer_copy,
		.fault_inject = cpu_fault_inject,
		.device_start = cpu_device_start,
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
