/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU backend: devices, buffers and command lists. A list runs in the
 * calling thread and has finished when submit returns.
 */
#define _GNU_SOURCE /* sysconf names of glibc */

#include "yt_cpu.h"
#include "yt_table.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

struct yt_device {
	pthread_mutex_t lock; /* guards table and streams */
	yt_table table;
	uint32_t streams;
};

struct yt_stream {
	yt_device *dev;
	yt_cpu_scratch scratch;
};

/* The addresses of a command whose ranges were found. */
typedef struct resolved {
	uint8_t *p[YT_MAX_OPERANDS]; /* as yt_operands: destination, sources */
} resolved;

#define CPU_OPS                                                                                                              \
	(1ull << YT_OP_COPY | 1ull << YT_OP_MEMSET | 1ull << YT_OP_PREPROCESS | 1ull << YT_OP_REDUCE | 1ull << YT_OP_RECORD)

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- devices ------------------------------------------------------------ */

static yt_status cpu_device_count(uint32_t *n, yt_error *err)
{
	if (n == NULL)
		return yt_fail(err, YT_E_INVALID, "device_count: no place for the result");
	*n = 1;
	return yt_ok(err);
}

static yt_status cpu_device_open(uint32_t index, yt_device **out, yt_error *err)
{
	yt_device *d;
	int rc;

	if (out == NULL)
		return yt_fail(err, YT_E_INVALID, "device_open: no place for the result");
	*out = NULL;
	if (index != 0)
		return yt_fail(err, YT_E_INVALID, "device_open: index %u: the CPU backend has one device, 0", index);
	d = calloc(1, sizeof *d);
	if (d == NULL)
		return yt_fail(err, YT_E_OOM, "device_open: no memory for the device");
	rc = pthread_mutex_init(&d->lock, NULL);
	if (rc != 0) {
		free(d);
		return yt_report(err, YT_E_IO, rc, 0, "device_open: mutex: %s", strerror(rc));
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
	/* x86 has "model name"; arm64 kernels have no such line and keep "cpu". */
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
	full.integrated = 1;
	full.host_register = 1;
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
	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "device_health: no device");
	return yt_ok(err);
}

static yt_status cpu_device_close(yt_device *d, yt_error *err)
{
	uint32_t objects, streams;

	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "device_close: no device");
	pthread_mutex_lock(&d->lock);
	objects = d->table.live;
	streams = d->streams;
	pthread_mutex_unlock(&d->lock);
	if (objects != 0 || streams != 0)
		return yt_fail(err, YT_E_BUSY, "device_close: %u buffers or events and %u streams are open", objects, streams);
	pthread_mutex_destroy(&d->lock);
	free(d->table.slots);
	free(d);
	return yt_ok(err);
}

/* ---- buffers ------------------------------------------------------------ */

static yt_status cpu_buf_alloc(yt_device *d, uint32_t mode, uint64_t bytes, uint64_t align, yt_buffer *out, yt_error *err)
{
	yt_slot s = {0};
	uint64_t id;
	uint32_t size;
	int rc;

	if (d == NULL || out == NULL || out->size < sizeof *out)
		return yt_fail(err, YT_E_INVALID, "buf_alloc: device, out and out.size are required");
	if (mode > YT_MEM_HOST)
		return yt_fail(err, YT_E_INVALID, "buf_alloc: memory mode %u is unknown", mode);
	if (bytes == 0 || (align & (align - 1)) != 0 || align > YT_ALIGN_MAX)
		return yt_fail(err, YT_E_INVALID,
			       "buf_alloc: %llu bytes aligned to %llu: at least 1 byte, and a power of two up to %u",
			       (unsigned long long)bytes, (unsigned long long)align, YT_ALIGN_MAX);
	if (align < YT_ALIGN_MIN)
		align = YT_ALIGN_MIN;
	if (bytes > SIZE_MAX / 2)
		return yt_fail(err, YT_E_OOM, "buf_alloc: %llu bytes cannot be addressed", (unsigned long long)bytes);
	rc = posix_memalign(&s.base, (size_t)align, (size_t)bytes);
	if (rc != 0)
		return yt_report(err, YT_E_OOM, rc, 0, "buf_alloc: %llu bytes of host memory: %s", (unsigned long long)bytes,
				 strerror(rc));
	s.device = s.base;
	s.kind = YT_SLOT_BUFFER;
	s.mode = mode == YT_MEM_AUTO ? YT_MEM_MAPPED : mode;
	s.bytes = bytes;
	s.host = s.mode == YT_MEM_DEVICE ? NULL : s.device;
	pthread_mutex_lock(&d->lock);
	id = yt_table_add(&d->table, &s);
	pthread_mutex_unlock(&d->lock);
	if (id == 0) {
		free(s.base);
		return yt_fail(err, YT_E_OOM, "buf_alloc: no memory for the table of buffers");
	}
	size = out->size;
	memset(out, 0, sizeof *out);
	out->size = size;
	out->mode = s.mode;
	out->id = id;
	out->host = s.host;
	out->device = (uint64_t)(uintptr_t)s.device;
	out->bytes = bytes;
	return yt_ok(err);
}

static yt_status cpu_buf_free(yt_device *d, yt_buf_id id, yt_error *err)
{
	void *memory = NULL;
	yt_slot *s;
	yt_status rc;

	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "buf_free: no device");
	pthread_mutex_lock(&d->lock);
	s = yt_table_get(&d->table, id, YT_SLOT_BUFFER);
	if (s == NULL) {
		rc = yt_fail(err, YT_E_INVALID, "buf_free: %#llx is not a buffer, or was freed", (unsigned long long)id);
	} else if (s->uses != 0) {
		rc = yt_fail(err, YT_E_BUSY, "buf_free: a running list uses the buffer");
	} else {
		memory = s->base;
		yt_table_remove(&d->table, s);
		rc = yt_ok(err);
	}
	pthread_mutex_unlock(&d->lock);
	free(memory);
	return rc;
}

/* ---- streams and lists -------------------------------------------------- */

static yt_status cpu_stream_create(yt_device *d, int32_t priority, yt_stream **out, yt_error *err)
{
	yt_stream *s;

	(void)priority; /* clamped to what there is: one */
	if (d == NULL || out == NULL)
		return yt_fail(err, YT_E_INVALID, "stream_create: device and out are required");
	*out = NULL;
	s = calloc(1, sizeof *s);
	if (s == NULL)
		return yt_fail(err, YT_E_OOM, "stream_create: no memory for the stream");
	s->dev = d;
	pthread_mutex_lock(&d->lock);
	d->streams++;
	pthread_mutex_unlock(&d->lock);
	*out = s;
	return yt_ok(err);
}

static yt_status cpu_stream_destroy(yt_stream *s, yt_error *err)
{
	if (s == NULL)
		return yt_fail(err, YT_E_INVALID, "stream_destroy: no stream");
	pthread_mutex_lock(&s->dev->lock);
	s->dev->streams--;
	pthread_mutex_unlock(&s->dev->lock);
	free(s->scratch.mem);
	free(s);
	return yt_ok(err);
}

/* Called with the device locked. */
static yt_status resolve(yt_device *d, const yt_range *r, uint32_t at, const char *what, uint8_t **out, yt_error *err)
{
	yt_slot *s;

	if (r->buf == 0) {
		if (r->len != 0 && (r->off == 0 || r->off + r->len < r->off || r->off > UINTPTR_MAX))
			return yt_fail(err, YT_E_INVALID, "command %u: %s: %llu bytes at %#llx is not host memory", at, what,
				       (unsigned long long)r->len, (unsigned long long)r->off);
		*out = (uint8_t *)(uintptr_t)r->off;
		return YT_OK;
	}
	s = yt_table_get(&d->table, r->buf, YT_SLOT_BUFFER);
	if (s == NULL)
		return yt_fail(err, YT_E_INVALID, "command %u: %s: %#llx is not a buffer, or was freed", at, what,
			       (unsigned long long)r->buf);
	if (r->len > s->bytes || r->off > s->bytes - r->len)
		return yt_fail(err, YT_E_INVALID, "command %u: %s: bytes %llu to %llu of a buffer of %llu", at, what,
			       (unsigned long long)r->off, (unsigned long long)(r->off + r->len),
			       (unsigned long long)s->bytes);
	*out = (uint8_t *)s->device + r->off;
	return YT_OK;
}

/* Adds delta to the uses of every buffer the command names. */
static void count_uses(yt_device *d, const yt_cmd *c, int delta)
{
	yt_operands o = yt_operands_of(c);
	uint32_t i;
	yt_slot *s;

	for (i = 0; i < o.n; i++) {
		s = yt_table_get(&d->table, o.range[i]->buf, YT_SLOT_BUFFER);
		if (s != NULL)
			s->uses += (uint32_t)delta;
	}
}

static yt_status check(yt_device *d, const yt_cmd *c, uint32_t at, resolved *r, yt_error *err)
{
	yt_operands o;
	uint32_t i;
	yt_status rc = yt_check_cmd(c, at, err);

	if (rc == YT_OK)
		rc = yt_check_there(c, at, CPU_OPS, "CPU", err);
	if (rc != YT_OK)
		return rc;
	if (c->op == YT_OP_RECORD) {
		if (yt_table_get(&d->table, c->event, YT_SLOT_EVENT) == NULL)
			return yt_fail(err, YT_E_INVALID, "command %u: record: %#llx is not an event, or was destroyed", at,
				       (unsigned long long)c->event);
		return YT_OK;
	}
	o = yt_operands_of(c);
	for (i = 0; rc == YT_OK && i < o.n; i++)
		rc = resolve(d, o.range[i], at, i == 0 ? "destination" : "source", &r->p[i], err);
	return rc != YT_OK ? rc : yt_check_overlap(c, at, &o, r->p, err);
}

static yt_status run(yt_stream *s, const yt_cmd *c, uint32_t at, const resolved *r, yt_error *err)
{
	yt_pre_plan plan;
	yt_slot *event;
	float value;

	switch (c->op) {
	case YT_OP_COPY:
		if (c->dst.len != 0)
			memcpy(r->p[0], r->p[1], (size_t)c->dst.len);
		return YT_OK;
	case YT_OP_MEMSET:
		if (c->dst.len != 0)
			memset(r->p[0], (int)c->value, (size_t)c->dst.len);
		return YT_OK;
	case YT_OP_PREPROCESS:
		plan = yt_plan_preprocess(&c->pre);
		if (yt_cpu_preprocess(&plan, (const uint8_t *const *)&r->p[1], (float *)(void *)r->p[0], &s->scratch) != 0)
			return yt_fail(err, YT_E_OOM, "command %u: preprocess: no memory for row tables", at);
		return YT_OK;
	case YT_OP_REDUCE:
		value = yt_cpu_reduce(c->value == YT_REDUCE_MEAN ? YT_REDUCE_SUM : c->value, (const float *)(const void *)r->p[1], c->src[0].len / 4);
		if (c->value == YT_REDUCE_MEAN)
			value /= (float)(c->src[0].len / 4);
		memcpy(r->p[0], &value, sizeof value);
		return YT_OK;
	default: /* YT_OP_RECORD; check() let no other pass */
		pthread_mutex_lock(&s->dev->lock);
		event = yt_table_get(&s->dev->table, c->event, YT_SLOT_EVENT);
		if (event != NULL)
			event->stamp = now_ns();
		pthread_mutex_unlock(&s->dev->lock);
		return YT_OK;
	}
}

static yt_status cpu_submit(yt_stream *s, const yt_cmd *cmds, uint32_t n, yt_error *err)
{
	resolved where[YT_MAX_CMDS];
	yt_status rc = YT_OK;
	uint32_t i;

	if (s == NULL || (cmds == NULL && n != 0))
		return yt_fail(err, YT_E_INVALID, "submit: stream and commands are required");
	if (n > YT_MAX_CMDS)
		return yt_fail(err, YT_E_INVALID, "submit: %u commands; a list has at most %u", n, YT_MAX_CMDS);
	pthread_mutex_lock(&s->dev->lock);
	for (i = 0; i < n && rc == YT_OK; i++)
		rc = check(s->dev, &cmds[i], i, &where[i], err);
	for (i = 0; i < n && rc == YT_OK; i++)
		count_uses(s->dev, &cmds[i], 1);
	pthread_mutex_unlock(&s->dev->lock);
	if (rc != YT_OK)
		return rc;

	for (i = 0; i < n && rc == YT_OK; i++)
		rc = run(s, &cmds[i], i, &where[i], err);

	pthread_mutex_lock(&s->dev->lock);
	for (i = 0; i < n; i++)
		count_uses(s->dev, &cmds[i], -1);
	pthread_mutex_unlock(&s->dev->lock);
	return rc != YT_OK ? rc : yt_ok(err);
}

static yt_status cpu_stream_poll(yt_stream *s, uint64_t timeout_ns, yt_error *err)
{
	(void)timeout_ns; /* nothing is ever left to wait for */
	if (s == NULL)
		return yt_fail(err, YT_E_INVALID, "stream_poll: no stream");
	return yt_ok(err);
}

/* ---- events ------------------------------------------------------------- */

static yt_status cpu_event_create(yt_device *d, uint64_t *event, yt_error *err)
{
	yt_slot s = {0};

	if (d == NULL || event == NULL)
		return yt_fail(err, YT_E_INVALID, "event_create: device and event are required");
	s.kind = YT_SLOT_EVENT;
	pthread_mutex_lock(&d->lock);
	*event = yt_table_add(&d->table, &s);
	pthread_mutex_unlock(&d->lock);
	return *event == 0 ? yt_fail(err, YT_E_OOM, "event_create: no memory for the table of events") : yt_ok(err);
}

static yt_status cpu_event_destroy(yt_device *d, uint64_t event, yt_error *err)
{
	yt_slot *s;

	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "event_destroy: no device");
	pthread_mutex_lock(&d->lock);
	s = yt_table_get(&d->table, event, YT_SLOT_EVENT);
	if (s != NULL)
		yt_table_remove(&d->table, s);
	pthread_mutex_unlock(&d->lock);
	return s == NULL ? yt_fail(err, YT_E_INVALID, "event_destroy: %#llx is not an event, or was destroyed",
				   (unsigned long long)event)
			 : yt_ok(err);
}

static yt_status cpu_event_elapsed(yt_device *d, uint64_t a, uint64_t b, uint64_t *ns, yt_error *err)
{
	const yt_slot *from, *to;
	yt_status rc;

	if (d == NULL || ns == NULL)
		return yt_fail(err, YT_E_INVALID, "event_elapsed: device and ns are required");
	pthread_mutex_lock(&d->lock);
	from = yt_table_get(&d->table, a, YT_SLOT_EVENT);
	to = yt_table_get(&d->table, b, YT_SLOT_EVENT);
	if (from == NULL || to == NULL) {
		rc = yt_fail(err, YT_E_INVALID, "event_elapsed: not an event, or destroyed");
	} else if (from->stamp == 0 || to->stamp == 0) {
		rc = yt_fail(err, YT_E_NOT_READY, "event_elapsed: an event was not recorded yet");
	} else if (to->stamp < from->stamp) {
		rc = yt_fail(err, YT_E_INVALID, "event_elapsed: the first event is the later one");
	} else {
		*ns = to->stamp - from->stamp;
		rc = yt_ok(err);
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
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
	static const yt_api api = {
		.struct_size = sizeof(yt_api),
		.abi_major = YT_ABI_MAJOR,
		.abi_minor = YT_ABI_MINOR,
		.caps = YT_CAP_HOST_RANGES | YT_CAP_SYNCHRONOUS,
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
		.ops = CPU_OPS,
	};
	uint32_t size = out_size < sizeof api ? out_size : (uint32_t)sizeof api;

	if (out == NULL || out_size < offsetof(yt_api, name))
		return yt_fail(err, YT_E_INVALID, "get_api: no place for the table");
	if (want_major != YT_ABI_MAJOR)
		return yt_fail(err, YT_E_ABI, "get_api: ABI %u is wanted, the CPU backend has %u.%u", want_major, YT_ABI_MAJOR,
			       YT_ABI_MINOR);
	memcpy(out, &api, size);
	out->struct_size = size;
	return yt_ok(err);
}
