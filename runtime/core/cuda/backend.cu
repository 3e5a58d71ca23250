// SPDX-License-Identifier: Apache-2.0
//
// backend.cu - the CUDA backend behind yt_backend.h: devices, buffers, streams
// and lists. No kernel is in this file.
//
// Rules it keeps:
//   - no call waits for the device without a deadline: cudaStreamQuery is
//     polled, cudaStreamSynchronize is not used;
//   - no copy from or to pageable memory: the driver would stage it and the
//     copy would not be asynchronous (PINNED and MAPPED exist for that);
//   - no managed memory, prefetch or advice: devices without
//     concurrentManagedAccess, all Jetsons before Thor, refuse them;
//   - an error that leaves the context dead is remembered and returned by every
//     later call, since the driver would answer the same or worse.
#include "kernels.h"
#include "yt_table.h"

#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#define YT_STR2(x) #x
#define YT_STR(x) YT_STR2(x)
#ifndef YT_CUDA_ARCHS
#define YT_CUDA_ARCHS "unknown"
#endif

struct yt_device {
	pthread_mutex_t lock; // guards all below
	yt_table table;
	yt_stream *streams; // list
	yt_error dead;      // sticky error; code 0: alive
	int index;
	bool integrated;
};

struct yt_stream {
	yt_device *dev;
	yt_stream *next;
	cudaStream_t handle;
	uint64_t *pending; // buffers named by work that may still run
	uint32_t pending_n, pending_cap;
	float *scratch; // partial results of reductions
	uint64_t scratch_bytes;
};

static const uint64_t cuda_ops =
	1ull << YT_OP_COPY | 1ull << YT_OP_MEMSET | 1ull << YT_OP_PREPROCESS | 1ull << YT_OP_REDUCE | 1ull << YT_OP_RECORD;

struct resolved {
	uint8_t *p[YT_MAX_OPERANDS]; // as yt_operands: destination, sources
	cudaEvent_t event;
};

struct locked {
	pthread_mutex_t *m;
	explicit locked(yt_device *d) : m(&d->lock) { pthread_mutex_lock(m); }
	~locked() { pthread_mutex_unlock(m); }
	locked(const locked &) = delete;
	locked &operator=(const locked &) = delete;
};

// ---- errors ----------------------------------------------------------------

static yt_status classify(cudaError_t e, uint32_t *sticky)
{
	*sticky = 0;
	switch (e) {
	case cudaSuccess:
		return YT_OK;
	case cudaErrorNotReady:
		return YT_E_NOT_READY;
	case cudaErrorMemoryAllocation:
		return YT_E_OOM;
	case cudaErrorNotSupported:
		return YT_E_NOT_SUPPORTED;
	case cudaErrorNoDevice:
	case cudaErrorInsufficientDriver:
	case cudaErrorInvalidDevice:
	case cudaErrorNoKernelImageForDevice:
		return YT_E_NO_BACKEND;
	case cudaErrorIllegalAddress:
	case cudaErrorMisalignedAddress:
	case cudaErrorInvalidAddressSpace:
	case cudaErrorInvalidPc:
	case cudaErrorIllegalInstruction:
	case cudaErrorHardwareStackError:
	case cudaErrorAssert:
	case cudaErrorLaunchTimeout:
	case cudaErrorLaunchFailure:
		*sticky = 1;
		return YT_E_KERNEL_FAULT;
	case cudaErrorECCUncorrectable:
	case cudaErrorNvlinkUncorrectable:
	case cudaErrorDevicesUnavailable:
		*sticky = 1;
		return YT_E_DEVICE_LOST;
	default:
		return YT_E_INTERNAL;
	}
}

// Reports e, and remembers it when it is sticky. The lock is held.
static yt_status fail_cuda(yt_device *d, yt_error *err, cudaError_t e, const char *what)
{
	uint32_t sticky;
	yt_status code = classify(e, &sticky);
	const char *help = code == YT_E_NO_BACKEND && e == cudaErrorNoKernelImageForDevice
				   ? "; this library has kernels for " YT_CUDA_ARCHS
				   : "";

	if (sticky && d != NULL && d->dead.code == YT_OK)
		yt_report(&d->dead, code, (int32_t)e, 1, "%s: %s (%s)", what, cudaGetErrorString(e), cudaGetErrorName(e));
	return yt_report(err, code, (int32_t)e, sticky, "%s: %s (%s)%s", what, cudaGetErrorString(e), cudaGetErrorName(e),
			 help);
}

// Makes the device current for this thread. The lock is held.
static yt_status enter(yt_device *d, yt_error *err)
{
	cudaError_t e;

	if (d->dead.code != YT_OK) {
		if (err != NULL)
			*err = d->dead;
		return d->dead.code;
	}
	e = cudaSetDevice(d->index);
	return e == cudaSuccess ? YT_OK : fail_cuda(d, err, e, "select device");
}

// ---- devices ---------------------------------------------------------------

// The runtime's own words for a missing driver blame its version; say what is.
static yt_status driver_there(yt_error *err)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (lib == NULL) {
		const char *why = dlerror();

		return yt_fail(err, YT_E_NO_BACKEND, "no NVIDIA driver on this machine: %s",
			       why != NULL ? why : "libcuda.so.1 cannot be opened");
	}
	return YT_OK; // never closed
}

static yt_status cuda_device_count(uint32_t *n, yt_error *err)
{
	int count = 0;
	cudaError_t e;
	yt_status rc;

	if (n == NULL)
		return yt_fail(err, YT_E_INVALID, "device_count: no place for the result");
	*n = 0;
	rc = driver_there(err);
	if (rc != YT_OK)
		return rc;
	e = cudaGetDeviceCount(&count);
	if (e != cudaSuccess)
		return fail_cuda(NULL, err, e, "device_count");
	if (count < 1)
		return yt_fail(err, YT_E_NO_BACKEND, "device_count: the driver lists no device");
	*n = (uint32_t)count;
	return yt_ok(err);
}

static int attribute(int device, cudaDeviceAttr what)
{
	int v = 0;

	return cudaDeviceGetAttribute(&v, what, device) == cudaSuccess ? v : 0;
}

static yt_status cuda_device_open(uint32_t index, yt_device **out, yt_error *err)
{
	uint32_t n = 0;
	yt_status rc;
	cudaError_t e;
	yt_device *d;
	int mutex;

	if (out == NULL)
		return yt_fail(err, YT_E_INVALID, "device_open: no place for the result");
	*out = NULL;
	rc = cuda_device_count(&n, err);
	if (rc != YT_OK)
		return rc;
	if (index >= n)
		return yt_fail(err, YT_E_INVALID, "device_open: device %u: there are %u", index, n);
	e = cudaSetDevice((int)index);
	if (e == cudaSuccess)
		e = cudaFree(NULL); // creates the context here, not in the first frame
	if (e != cudaSuccess)
		return fail_cuda(NULL, err, e, "device_open: create context");
	d = (yt_device *)calloc(1, sizeof *d);
	if (d == NULL)
		return yt_fail(err, YT_E_OOM, "device_open: no memory for the device");
	mutex = pthread_mutex_init(&d->lock, NULL);
	if (mutex != 0) {
		free(d);
		return yt_report(err, YT_E_IO, mutex, 0, "device_open: mutex: %s", strerror(mutex));
	}
	d->index = (int)index;
	d->integrated = attribute(d->index, cudaDevAttrIntegrated) != 0;
	*out = d;
	return yt_ok(err);
}

static yt_status cuda_device_info(yt_device *d, yt_device_info *info, yt_error *err)
{
	yt_device_info full = {};
	cudaDeviceProp prop;
	size_t available = 0, total = 0;
	int driver = 0;
	cudaError_t e;

	if (d == NULL || info == NULL || info->size < sizeof info->size)
		return yt_fail(err, YT_E_INVALID, "device_info: device, info and info.size are required");
	locked hold(d);
	yt_status rc = enter(d, err);
	if (rc != YT_OK)
		return rc;
	e = cudaGetDeviceProperties(&prop, d->index);
	if (e != cudaSuccess)
		return fail_cuda(d, err, e, "device_info: properties");
	e = cudaMemGetInfo(&available, &total);
	if (e != cudaSuccess)
		return fail_cuda(d, err, e, "device_info: memory");
	e = cudaDriverGetVersion(&driver);
	if (e != cudaSuccess)
		return fail_cuda(d, err, e, "device_info: driver version");
	full.size = info->size < sizeof full ? info->size : (uint32_t)sizeof full;
	full.cc_major = prop.major;
	full.cc_minor = prop.minor;
	full.sm_count = (uint32_t)prop.multiProcessorCount;
	full.integrated = d->integrated;
	full.concurrent_managed = prop.concurrentManagedAccess != 0;
	full.host_register = prop.hostRegisterSupported != 0;
	full.driver_version = driver;
	full.mem_total = total;
	full.mem_free = available;
	full.l2 = prop.l2CacheSize > 0 ? (uint64_t)prop.l2CacheSize : 0;
	snprintf(full.name, sizeof full.name, "%.63s", prop.name);
	memcpy(info, &full, full.size);
	return yt_ok(err);
}

static yt_status cuda_device_health(yt_device *d, yt_error *err)
{
	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "device_health: no device");
	locked hold(d);
	yt_status rc = enter(d, err);
	return rc != YT_OK ? rc : yt_ok(err);
}

static yt_status cuda_device_close(yt_device *d, yt_error *err)
{
	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "device_close: no device");
	{
		locked hold(d);

		if (d->table.live != 0 || d->streams != NULL)
			return yt_fail(err, YT_E_BUSY, "device_close: %u buffers or events%s are open", d->table.live,
				       d->streams != NULL ? " and streams" : "");
	}
	pthread_mutex_destroy(&d->lock);
	free(d->table.slots);
	free(d);
	return yt_ok(err);
}

// ---- buffers ---------------------------------------------------------------

static yt_status cuda_buf_alloc(yt_device *d, uint32_t mode, uint64_t bytes, uint64_t align, yt_buffer *out,
				yt_error *err)
{
	yt_slot s = {};
	uint64_t padded, id;
	uint32_t size;
	cudaError_t e;

	if (d == NULL || out == NULL || out->size < sizeof *out)
		return yt_fail(err, YT_E_INVALID, "buf_alloc: device, out and out.size are required");
	if (mode > YT_MEM_HOST)
		return yt_fail(err, YT_E_INVALID, "buf_alloc: memory mode %u is unknown", mode);
	if (mode == YT_MEM_HOST)
		return yt_fail(err, YT_E_NOT_SUPPORTED,
			       "buf_alloc: a copy from ordinary host memory is not asynchronous: use pinned or mapped memory");
	if (bytes == 0 || (align & (align - 1)) != 0 || align > YT_ALIGN_MAX)
		return yt_fail(err, YT_E_INVALID,
			       "buf_alloc: %llu bytes aligned to %llu: at least 1 byte, and a power of two up to %u",
			       (unsigned long long)bytes, (unsigned long long)align, YT_ALIGN_MAX);
	if (bytes > SIZE_MAX / 2)
		return yt_fail(err, YT_E_OOM, "buf_alloc: %llu bytes cannot be addressed", (unsigned long long)bytes);
	if (align < YT_ALIGN_MIN)
		align = YT_ALIGN_MIN;
	// cudaMalloc aligns to 256 at least, cudaHostAlloc to a page; ask for room
	// only beyond what both promise.
	padded = align > YT_ALIGN_MIN ? bytes + align : bytes;

	locked hold(d);
	yt_status rc = enter(d, err);
	if (rc != YT_OK)
		return rc;
	if (mode == YT_MEM_AUTO)
		mode = d->integrated ? YT_MEM_MAPPED : YT_MEM_DEVICE;
	if (mode == YT_MEM_DEVICE)
		e = cudaMalloc(&s.base, padded);
	else
		e = cudaHostAlloc(&s.base, padded, cudaHostAllocPortable | cudaHostAllocMapped);
	if (e != cudaSuccess) {
		cudaGetLastError(); // an allocation failure is not sticky: forget it
		return fail_cuda(d, err, e, mode == YT_MEM_DEVICE ? "buf_alloc: device memory" : "buf_alloc: pinned memory");
	}
	uintptr_t start = ((uintptr_t)s.base + align - 1) & ~(uintptr_t)(align - 1);
	s.kind = YT_SLOT_BUFFER;
	s.mode = mode;
	s.bytes = bytes;
	if (mode == YT_MEM_DEVICE) {
		s.device = (void *)start;
	} else {
		s.host = (void *)start;
		e = cudaHostGetDevicePointer(&s.device, s.host, 0);
		if (e != cudaSuccess) {
			cudaFreeHost(s.base);
			return fail_cuda(d, err, e, "buf_alloc: device address of pinned memory");
		}
	}
	id = yt_table_add(&d->table, &s);
	if (id == 0) {
		e = mode == YT_MEM_DEVICE ? cudaFree(s.base) : cudaFreeHost(s.base);
		return e != cudaSuccess ? fail_cuda(d, err, e, "buf_alloc: give back")
					: yt_fail(err, YT_E_OOM, "buf_alloc: no memory for the table of buffers");
	}
	size = out->size;
	memset(out, 0, sizeof *out);
	out->size = size;
	out->mode = mode;
	out->id = id;
	out->host = s.host;
	out->device = (uint64_t)(uintptr_t)s.device;
	out->bytes = bytes;
	return yt_ok(err);
}

// Forgets the buffers of finished work. The lock is held. Returns the query's
// answer: cudaSuccess, cudaErrorNotReady or a fault.
static cudaError_t drain(yt_stream *s)
{
	cudaError_t e = cudaStreamQuery(s->handle);

	if (e == cudaErrorNotReady) {
		cudaGetLastError(); // "not ready" is an answer, not an error to keep
		return e;
	}
	for (uint32_t i = 0; i < s->pending_n; i++) {
		yt_slot *b = yt_table_get(&s->dev->table, s->pending[i], YT_SLOT_BUFFER);

		if (b != NULL && b->uses > 0)
			b->uses--;
	}
	s->pending_n = 0;
	return e;
}

static yt_status cuda_buf_free(yt_device *d, yt_buf_id id, yt_error *err)
{
	yt_slot *b;
	cudaError_t e;
	bool device_memory;
	void *base;

	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "buf_free: no device");
	locked hold(d);
	b = yt_table_get(&d->table, id, YT_SLOT_BUFFER);
	if (b == NULL)
		return yt_fail(err, YT_E_INVALID, "buf_free: %#llx is not a buffer, or was freed", (unsigned long long)id);
	if (d->dead.code != YT_OK) {
		// The context is gone and its memory with it; only the name is left.
		yt_table_remove(&d->table, b);
		return yt_ok(err);
	}
	yt_status rc = enter(d, err);
	if (rc != YT_OK)
		return rc;
	for (yt_stream *s = d->streams; s != NULL && b->uses != 0; s = s->next) {
		e = drain(s);
		if (e != cudaSuccess && e != cudaErrorNotReady)
			return fail_cuda(d, err, e, "buf_free: submitted work");
	}
	if (b->uses != 0)
		return yt_fail(err, YT_E_BUSY, "buf_free: submitted work uses the buffer; poll its stream first");
	device_memory = b->mode == YT_MEM_DEVICE;
	base = b->base;
	yt_table_remove(&d->table, b);
	e = device_memory ? cudaFree(base) : cudaFreeHost(base);
	return e != cudaSuccess ? fail_cuda(d, err, e, "buf_free") : yt_ok(err);
}

// ---- streams and lists -----------------------------------------------------

static yt_status cuda_stream_create(yt_device *d, int32_t priority, yt_stream **out, yt_error *err)
{
	int least = 0, greatest = 0; // greatest is the smaller number
	yt_stream *s;
	cudaError_t e;

	if (d == NULL || out == NULL)
		return yt_fail(err, YT_E_INVALID, "stream_create: device and out are required");
	*out = NULL;
	locked hold(d);
	yt_status rc = enter(d, err);
	if (rc != YT_OK)
		return rc;
	e = cudaDeviceGetStreamPriorityRange(&least, &greatest);
	if (e != cudaSuccess)
		return fail_cuda(d, err, e, "stream_create: priorities");
	priority = priority < greatest ? greatest : priority > least ? least : priority;
	s = (yt_stream *)calloc(1, sizeof *s);
	if (s == NULL)
		return yt_fail(err, YT_E_OOM, "stream_create: no memory for the stream");
	e = cudaStreamCreateWithPriority(&s->handle, cudaStreamNonBlocking, priority);
	if (e != cudaSuccess) {
		free(s);
		return fail_cuda(d, err, e, "stream_create");
	}
	s->dev = d;
	s->next = d->streams;
	d->streams = s;
	*out = s;
	return yt_ok(err);
}

static yt_status cuda_stream_destroy(yt_stream *s, yt_error *err)
{
	yt_device *d;
	cudaError_t e = cudaSuccess;

	if (s == NULL)
		return yt_fail(err, YT_E_INVALID, "stream_destroy: no stream");
	d = s->dev;
	locked hold(d);
	if (d->dead.code == YT_OK) {
		yt_status rc = enter(d, err);
		if (rc != YT_OK)
			return rc;
		e = drain(s);
		if (e == cudaErrorNotReady)
			return yt_fail(err, YT_E_BUSY, "stream_destroy: work is running; poll the stream first");
		if (e == cudaSuccess && s->scratch != NULL)
			e = cudaFree(s->scratch);
		if (e == cudaSuccess)
			e = cudaStreamDestroy(s->handle);
	}
	for (yt_stream **p = &d->streams; *p != NULL; p = &(*p)->next) {
		if (*p == s) {
			*p = s->next;
			break;
		}
	}
	free(s->pending);
	free(s);
	return e != cudaSuccess ? fail_cuda(d, err, e, "stream_destroy") : yt_ok(err);
}

static yt_status resolve(yt_device *d, const yt_range *r, uint32_t at, const char *what, uint8_t **out, yt_error *err)
{
	yt_slot *b;

	if (r->buf == 0 && r->len == 0) {
		*out = NULL;
		return YT_OK;
	}
	if (r->buf == 0)
		return yt_fail(err, YT_E_NOT_SUPPORTED,
			       "command %u: %s: host memory without a buffer: the CUDA backend takes pinned or mapped buffers", at,
			       what);
	b = yt_table_get(&d->table, r->buf, YT_SLOT_BUFFER);
	if (b == NULL)
		return yt_fail(err, YT_E_INVALID, "command %u: %s: %#llx is not a buffer, or was freed", at, what,
			       (unsigned long long)r->buf);
	if (r->len > b->bytes || r->off > b->bytes - r->len)
		return yt_fail(err, YT_E_INVALID, "command %u: %s: bytes %llu to %llu of a buffer of %llu", at, what,
			       (unsigned long long)r->off, (unsigned long long)(r->off + r->len),
			       (unsigned long long)b->bytes);
	*out = (uint8_t *)b->device + r->off;
	return YT_OK;
}

static yt_status check(yt_device *d, const yt_cmd *c, uint32_t at, resolved *r, yt_error *err)
{
	yt_slot *event;
	yt_status rc = yt_check_cmd(c, at, err);

	*r = {};
	if (rc == YT_OK)
		rc = yt_check_there(c, at, cuda_ops, "CUDA", err);
	if (rc != YT_OK)
		return rc;
	if (c->op == YT_OP_RECORD) {
		event = yt_table_get(&d->table, c->event, YT_SLOT_EVENT);
		if (event == NULL)
			return yt_fail(err, YT_E_INVALID, "command %u: record: %#llx is not an event, or was destroyed", at,
				       (unsigned long long)c->event);
		r->event = (cudaEvent_t)event->host;
		return YT_OK;
	}
	yt_operands o = yt_operands_of(c);
	for (uint32_t i = 0; rc == YT_OK && i < o.n; i++)
		rc = resolve(d, o.range[i], at, i == 0 ? "destination" : "source", &r->p[i], err);
	return rc != YT_OK ? rc : yt_check_overlap(c, at, &o, r->p, err);
}

// Room for the partial results of the largest reduction of the list. The old
// room may be in use: it is given back only when the stream is idle, otherwise
// the caller polls and asks again.
static yt_status grow_scratch(yt_stream *s, const yt_cmd *cmds, uint32_t n, yt_error *err)
{
	uint64_t need = 0;
	cudaError_t e;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t bytes = cmds[i].op == YT_OP_REDUCE ? yt_reduce_scratch(cmds[i].src[0].len / 4) : 0;

		need = bytes > need ? bytes : need;
	}
	if (need <= s->scratch_bytes)
		return YT_OK;
	if (s->scratch != NULL) {
		e = drain(s);
		if (e == cudaErrorNotReady)
			return yt_fail(err, YT_E_BUSY, "submit: a larger reduction than before needs an idle stream; poll it first");
		if (e == cudaSuccess)
			e = cudaFree(s->scratch);
		s->scratch = NULL;
		s->scratch_bytes = 0;
		if (e != cudaSuccess)
			return fail_cuda(s->dev, err, e, "submit: give back scratch");
	}
	e = cudaMalloc((void **)&s->scratch, need);
	if (e != cudaSuccess) {
		cudaGetLastError();
		s->scratch = NULL;
		return fail_cuda(s->dev, err, e, "submit: scratch for reduction");
	}
	s->scratch_bytes = need;
	return YT_OK;
}

// Counts the buffers the list names as in use. Allocates before it counts, so
// that it does all or nothing.
static yt_status hold_buffers(yt_stream *s, const yt_cmd *cmds, uint32_t n, yt_error *err)
{
	uint32_t need = s->pending_n + YT_MAX_OPERANDS * n, cap = s->pending_cap;

	if (need > cap) {
		while (cap < need)
			cap = cap == 0 ? 256 : 2 * cap;
		uint64_t *grown = (uint64_t *)realloc(s->pending, (size_t)cap * sizeof *grown);
		if (grown == NULL)
			return yt_fail(err, YT_E_OOM, "submit: no memory to note the buffers in use");
		s->pending = grown;
		s->pending_cap = cap;
	}
	for (uint32_t i = 0; i < n; i++) {
		yt_operands o = yt_operands_of(&cmds[i]);

		for (uint32_t j = 0; j < o.n; j++) {
			uint64_t id = o.range[j]->buf;
			yt_slot *b = yt_table_get(&s->dev->table, id, YT_SLOT_BUFFER);

			if (b != NULL) {
				b->uses++;
				s->pending[s->pending_n++] = id;
			}
		}
	}
	return YT_OK;
}

static cudaError_t run(yt_stream *s, const yt_cmd *c, const resolved *r)
{
	cudaError_t e;

	switch (c->op) {
	case YT_OP_COPY: {
		cudaPointerAttributes a, b;

		if (c->dst.len == 0)
			return cudaSuccess;
		// Between device memories our kernel; across the bus the copy engine.
		e = cudaPointerGetAttributes(&a, r->p[0]);
		if (e == cudaSuccess)
			e = cudaPointerGetAttributes(&b, r->p[1]);
		if (e != cudaSuccess)
			return e;
		if (a.type == cudaMemoryTypeDevice && b.type == cudaMemoryTypeDevice && yt_copy_fits(r->p[0], r->p[1]))
			return yt_launch_copy(r->p[0], r->p[1], c->dst.len, s->handle);
		return cudaMemcpyAsync(r->p[0], r->p[1], c->dst.len, cudaMemcpyDefault, s->handle);
	}
	case YT_OP_MEMSET:
		return c->dst.len == 0 ? cudaSuccess : cudaMemsetAsync(r->p[0], (int)c->value, c->dst.len, s->handle);
	case YT_OP_PREPROCESS:
		return yt_launch_preprocess(yt_plan_preprocess(&c->pre), (const uint8_t *const *)&r->p[1], (float *)r->p[0], s->handle);
	case YT_OP_REDUCE:
		return yt_launch_reduce(c->value, (const float *)r->p[1], c->src[0].len / 4, (float *)r->p[0], s->scratch,
					s->handle);
	default: // YT_OP_RECORD; check() let no other pass
		return cudaEventRecord(r->event, s->handle);
	}
}

static yt_status cuda_submit(yt_stream *s, const yt_cmd *cmds, uint32_t n, yt_error *err)
{
	resolved where[YT_MAX_CMDS];
	char what[48];

	if (s == NULL || (cmds == NULL && n != 0))
		return yt_fail(err, YT_E_INVALID, "submit: stream and commands are required");
	if (n > YT_MAX_CMDS)
		return yt_fail(err, YT_E_INVALID, "submit: %u commands; a list has at most %u", n, YT_MAX_CMDS);
	locked hold(s->dev);
	yt_status rc = enter(s->dev, err);
	for (uint32_t i = 0; i < n && rc == YT_OK; i++)
		rc = check(s->dev, &cmds[i], i, &where[i], err);
	if (rc == YT_OK)
		rc = grow_scratch(s, cmds, n, err);
	if (rc == YT_OK)
		rc = hold_buffers(s, cmds, n, err);
	if (rc != YT_OK)
		return rc;
	for (uint32_t i = 0; i < n; i++) {
		cudaError_t e = run(s, &cmds[i], &where[i]);

		if (e != cudaSuccess) {
			snprintf(what, sizeof what, "submit: command %u", i);
			return fail_cuda(s->dev, err, e, what);
		}
		if (cmds[i].op == YT_OP_RECORD)
			yt_table_get(&s->dev->table, cmds[i].event, YT_SLOT_EVENT)->stamp = 1;
	}
	return yt_ok(err);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static yt_status cuda_stream_poll(yt_stream *s, uint64_t timeout_ns, yt_error *err)
{
	const uint64_t spin_ns = 20000; // most lists end sooner than a sleep would
	const struct timespec nap = {0, 50000};
	uint64_t start = now_ns(), spent;

	if (s == NULL)
		return yt_fail(err, YT_E_INVALID, "stream_poll: no stream");
	for (;;) {
		{
			locked hold(s->dev);
			yt_status rc = enter(s->dev, err);

			if (rc != YT_OK)
				return rc;
			cudaError_t e = drain(s);
			if (e == cudaSuccess)
				return yt_ok(err);
			if (e != cudaErrorNotReady)
				return fail_cuda(s->dev, err, e, "stream_poll: submitted work");
		}
		spent = now_ns() - start;
		if (timeout_ns == 0)
			return yt_fail(err, YT_E_NOT_READY, "stream_poll: work is running");
		if (spent >= timeout_ns)
			return yt_fail(err, YT_E_TIMEOUT, "stream_poll: work is still running after %llu ns",
				       (unsigned long long)spent);
		if (spent >= spin_ns)
			nanosleep(&nap, NULL);
	}
}

// ---- events ----------------------------------------------------------------

static yt_status cuda_event_create(yt_device *d, uint64_t *event, yt_error *err)
{
	yt_slot s = {};
	cudaEvent_t handle;
	cudaError_t e;

	if (d == NULL || event == NULL)
		return yt_fail(err, YT_E_INVALID, "event_create: device and event are required");
	locked hold(d);
	yt_status rc = enter(d, err);
	if (rc != YT_OK)
		return rc;
	e = cudaEventCreateWithFlags(&handle, cudaEventDefault);
	if (e != cudaSuccess)
		return fail_cuda(d, err, e, "event_create");
	s.kind = YT_SLOT_EVENT;
	s.host = handle;
	*event = yt_table_add(&d->table, &s);
	if (*event == 0) {
		e = cudaEventDestroy(handle);
		return e != cudaSuccess ? fail_cuda(d, err, e, "event_create: give back")
					: yt_fail(err, YT_E_OOM, "event_create: no memory for the table of events");
	}
	return yt_ok(err);
}

static yt_status cuda_event_destroy(yt_device *d, uint64_t event, yt_error *err)
{
	cudaError_t e = cudaSuccess;
	yt_slot *s;

	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "event_destroy: no device");
	locked hold(d);
	s = yt_table_get(&d->table, event, YT_SLOT_EVENT);
	if (s == NULL)
		return yt_fail(err, YT_E_INVALID, "event_destroy: %#llx is not an event, or was destroyed",
			       (unsigned long long)event);
	if (d->dead.code == YT_OK)
		e = cudaEventDestroy((cudaEvent_t)s->host); // running work keeps it
	yt_table_remove(&d->table, s);
	return e != cudaSuccess ? fail_cuda(d, err, e, "event_destroy") : yt_ok(err);
}

static yt_status cuda_event_elapsed(yt_device *d, uint64_t a, uint64_t b, uint64_t *ns, yt_error *err)
{
	const yt_slot *from, *to;
	float ms = 0;
	cudaError_t e;

	if (d == NULL || ns == NULL)
		return yt_fail(err, YT_E_INVALID, "event_elapsed: device and ns are required");
	locked hold(d);
	yt_status rc = enter(d, err);
	if (rc != YT_OK)
		return rc;
	from = yt_table_get(&d->table, a, YT_SLOT_EVENT);
	to = yt_table_get(&d->table, b, YT_SLOT_EVENT);
	if (from == NULL || to == NULL)
		return yt_fail(err, YT_E_INVALID, "event_elapsed: not an event, or destroyed");
	if (from->stamp == 0 || to->stamp == 0)
		return yt_fail(err, YT_E_NOT_READY, "event_elapsed: an event was not recorded yet");
	e = cudaEventElapsedTime(&ms, (cudaEvent_t)from->host, (cudaEvent_t)to->host);
	if (e == cudaErrorNotReady) {
		cudaGetLastError();
		return yt_fail(err, YT_E_NOT_READY, "event_elapsed: an event has not passed yet");
	}
	if (e != cudaSuccess)
		return fail_cuda(d, err, e, "event_elapsed");
	if (ms < 0)
		return yt_fail(err, YT_E_INVALID, "event_elapsed: the first event is the later one");
	*ns = (uint64_t)((double)ms * 1e6);
	return yt_ok(err);
}

// ---- the table -------------------------------------------------------------

extern "C" __attribute__((visibility("default"))) yt_status yt_get_api(uint32_t want_major, yt_api *out,
									uint32_t out_size, yt_error *err)
{
	yt_api api = {};
	uint32_t size = out_size < sizeof api ? out_size : (uint32_t)sizeof api;

	if (out == NULL || out_size < offsetof(yt_api, name))
		return yt_fail(err, YT_E_INVALID, "get_api: no place for the table");
	if (want_major != YT_ABI_MAJOR)
		return yt_fail(err, YT_E_ABI, "get_api: ABI %u is wanted, the CUDA backend has %u.%u", want_major, YT_ABI_MAJOR,
			       YT_ABI_MINOR);
	api.struct_size = size;
	api.abi_major = YT_ABI_MAJOR;
	api.abi_minor = YT_ABI_MINOR;
	api.name = "cuda";
	api.build_id = "cuda backend, nvcc " YT_STR(__CUDACC_VER_MAJOR__) "." YT_STR(__CUDACC_VER_MINOR__) "." YT_STR(
		__CUDACC_VER_BUILD__) ", kernels for " YT_CUDA_ARCHS;
	api.device_count = cuda_device_count;
	api.device_open = cuda_device_open;
	api.device_info = cuda_device_info;
	api.device_health = cuda_device_health;
	api.device_close = cuda_device_close;
	api.buf_alloc = cuda_buf_alloc;
	api.buf_free = cuda_buf_free;
	api.stream_create = cuda_stream_create;
	api.stream_destroy = cuda_stream_destroy;
	api.submit = cuda_submit;
	api.stream_poll = cuda_stream_poll;
	api.event_create = cuda_event_create;
	api.event_destroy = cuda_event_destroy;
	api.event_elapsed = cuda_event_elapsed;
	api.ops = cuda_ops;
	memcpy(out, &api, size);
	return yt_ok(err);
}
