// SPDX-License-Identifier: Apache-2.0
//
// memory.cu - buffers.
#include "device.h"

// The actual mode of memory. The allocation flags do not determine CPU access.
static yt_status choose(yt_device *d, uint32_t mode, uint32_t *out, yt_error *err)
{
	yt_mem_choice c = {};
	yt_status rc = yt_choose(&d->info, mode, YT_CPU_BOTH, &c, err);

	*out = c.mode;
	return rc;
}

// Allocates memory of the mode from the driver. The lock is held and the device current.
static cudaError_t take(uint32_t mode, uint64_t bytes, void **base)
{
	cudaError_t e;

	if (mode == YT_MEM_DEVICE)
		e = cudaMalloc(base, bytes);
	else if (mode == YT_MEM_MANAGED)
		e = cudaMallocManaged(base, bytes, cudaMemAttachGlobal);
	else
		e = cudaHostAlloc(base, bytes, mode == YT_MEM_MAPPED ? cudaHostAllocPortable | cudaHostAllocMapped : cudaHostAllocPortable);
	if (e != cudaSuccess)
		cudaGetLastError(); // an allocation failure is not sticky: clear it
	return e;
}

static cudaError_t give(uint32_t mode, void *base)
{
	return mode == YT_MEM_DEVICE || mode == YT_MEM_MANAGED ? cudaFree(base) : cudaFreeHost(base);
}

// Both addresses of memory of the mode, which starts at base.
static cudaError_t address(yt_device *d, uint32_t mode, void *base, yt_slot *s)
{
	s->mode = mode;
	s->host = mode == YT_MEM_DEVICE ? NULL : base;
	s->device = base;
	if (mode == YT_MEM_DEVICE || mode == YT_MEM_MANAGED)
		return cudaSuccess;
	// With unified addressing, pinned memory has one address for both.
	if (mode == YT_MEM_PINNED && (d->info.unified_addressing || !d->info.map_host))
		return cudaSuccess;
	return cudaHostGetDevicePointer(&s->device, base, 0);
}

static yt_status publish(yt_device *d, const char *what, const yt_slot *s, yt_buffer *out, yt_error *err)
{
	uint64_t id = yt_table_add(&d->table, s);
	uint32_t size = out->size;

	if (id == 0)
		return yt_fail(err, YT_E_OOM, "%s: no memory for the table of buffers", what);
	memset(out, 0, sizeof *out);
	out->size = size;
	out->mode = s->mode;
	out->id = id;
	out->host = s->host;
	out->device = (uint64_t)(uintptr_t)s->device;
	out->bytes = s->bytes;
	return YT_OK;
}

yt_status cuda_buf_alloc(yt_device *d, uint32_t mode, uint64_t bytes, uint64_t align, yt_buffer *out, yt_error *err)
{
	yt_slot s = {};
	cudaError_t e;

	if (d == NULL || out == NULL || out->size < sizeof *out)
		return yt_fail(err, YT_E_INVALID, "buf_alloc: device, out and out.size are required");
	if (mode > YT_MEM_MANAGED)
		return yt_fail(err, YT_E_INVALID, "buf_alloc: memory mode %u is unknown or cannot be allocated", mode);
	yt_status rc = yt_check_alloc("buf_alloc", bytes, &align, err);
	if (rc != YT_OK)
		return rc;
	locked hold(d);
	rc = yt_enter(d, err);
	if (rc == YT_OK)
		rc = choose(d, mode, &mode, err);
	if (rc == YT_OK)
		rc = yt_fault_alloc(d, bytes, "buf_alloc", err);
	if (rc != YT_OK)
		return rc;
	// The driver aligns to at least 256; allocate more only beyond that.
	e = take(mode, align > YT_ALIGN_MIN ? bytes + align : bytes, &s.base);
	if (e != cudaSuccess)
		return yt_fail_cuda(d, err, e, mode == YT_MEM_DEVICE ? "buf_alloc: device memory" : "buf_alloc: host memory");
	s.kind = YT_SLOT_BUFFER;
	s.bytes = bytes;
	e = address(d, mode, (void *)(((uintptr_t)s.base + align - 1) & ~(uintptr_t)(align - 1)), &s);
	if (e != cudaSuccess) {
		give(mode, s.base);
		return yt_fail_cuda(d, err, e, "buf_alloc: device address of host memory");
	}
	rc = publish(d, "buf_alloc", &s, out, err);
	if (rc != YT_OK) {
		give(mode, s.base);
		return rc;
	}
	yt_count_alloc(&d->stats, mode, bytes);
	return yt_ok(err);
}

yt_status cuda_buf_address(yt_device *d, yt_buf_id id, uint64_t *address, yt_error *err)
{
	yt_slot *b;

	if (d == NULL || address == NULL)
		return yt_fail(err, YT_E_INVALID, "buf_address: device and address are required");
	pthread_mutex_lock(&d->lock);
	b = yt_table_get(&d->table, id, YT_SLOT_BUFFER);
	*address = b != NULL ? (uint64_t)(uintptr_t)b->device : 0;
	pthread_mutex_unlock(&d->lock);
	if (b == NULL)
		return yt_fail(err, YT_E_INVALID, "buf_address: %#llx is not a buffer, or was freed", (unsigned long long)id);
	return yt_ok(err);
}

yt_status cuda_buf_register(yt_device *d, void *host, uint64_t bytes, yt_buffer *out, yt_error *err)
{
	yt_slot s = {};
	cudaError_t e;

	if (d == NULL || host == NULL || bytes == 0 || out == NULL || out->size < sizeof *out ||
	    bytes > UINTPTR_MAX - (uintptr_t)host)
		return yt_fail(err, YT_E_INVALID, "buf_register: device, memory, out and out.size are required");
	if ((uintptr_t)host % YT_ALIGN_MIN != 0)
		return yt_fail(err, YT_E_INVALID, "buf_register: address %p is not aligned to %u bytes", host, YT_ALIGN_MIN);
	locked hold(d);
	yt_status rc = yt_enter(d, err);
	if (rc != YT_OK)
		return rc;
	if (!d->info.host_register)
		return yt_fail(err, YT_E_NOT_SUPPORTED,
			       "buf_register: the device cannot register host pages; copy them to a pinned or mapped buffer");
	e = cudaHostRegister(host, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
	if (e != cudaSuccess) {
		cudaGetLastError(); // memory of another driver, I/O pages: not sticky
		if (e == cudaErrorInvalidValue || e == cudaErrorHostMemoryAlreadyRegistered)
			return yt_report(err, YT_E_NOT_SUPPORTED, (int32_t)e, 0, "buf_register: the driver cannot register these pages: %s",
					 cudaGetErrorString(e));
		return yt_fail_cuda(d, err, e, "buf_register");
	}
	s.kind = YT_SLOT_BUFFER;
	s.bytes = bytes;
	s.mode = YT_MEM_REGISTERED;
	s.host = s.base = host;
	e = cudaHostGetDevicePointer(&s.device, host, 0);
	if (e != cudaSuccess) {
		cudaHostUnregister(host);
		return yt_fail_cuda(d, err, e, "buf_register: device address");
	}
	rc = publish(d, "buf_register", &s, out, err);
	if (rc != YT_OK) {
		cudaHostUnregister(host);
		return rc;
	}
	yt_count_alloc(&d->stats, s.mode, bytes);
	return yt_ok(err);
}

yt_status cuda_buf_free(yt_device *d, yt_buf_id id, yt_error *err)
{
	cudaError_t e = cudaSuccess;

	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "buf_free: no device");
	locked hold(d);
	yt_slot *b = yt_table_get(&d->table, id, YT_SLOT_BUFFER);
	if (b == NULL)
		return yt_fail(err, YT_E_INVALID, "buf_free: %#llx is not a buffer, or was freed", (unsigned long long)id);
	uint32_t mode = b->mode;
	void *base = b->base;
	if (d->dead.code == YT_OK) {
		yt_status rc = yt_enter(d, err);
		if (rc != YT_OK)
			return rc;
		for (yt_stream *s = d->streams; s != NULL && b->uses != 0; s = s->next) {
			e = yt_drain(s);
			if (e != cudaSuccess && e != cudaErrorNotReady)
				return yt_fail_cuda(d, err, e, "buf_free: submitted work");
		}
		if (b->uses != 0)
			return yt_fail(err, YT_E_BUSY, "buf_free: submitted work uses the buffer; poll its stream first");
		e = cudaSuccess;
	}
	// On a lost device only the id remains: its memory was freed with the context.
	yt_count_free(&d->stats, mode, b->bytes);
	yt_table_remove(&d->table, b);
	if (d->dead.code == YT_OK)
		e = mode == YT_MEM_REGISTERED ? cudaHostUnregister(base) : give(mode, base);
	return e != cudaSuccess ? yt_fail_cuda(d, err, e, "buf_free") : yt_ok(err);
}

// ---- choice, statistics ------------------------------------------------------

yt_status cuda_mem_choose(yt_device *d, uint32_t mode, uint32_t cpu, yt_mem_choice *out, yt_error *err)
{
	yt_mem_choice full = {};

	if (d == NULL || mode > YT_MEM_REGISTERED || cpu > YT_CPU_BOTH || out == NULL || out->size < sizeof out->size)
		return yt_fail(err, YT_E_INVALID, "mem_choose: device, known mode and use, out and out.size are required");
	yt_status rc = yt_choose(&d->info, mode, cpu, &full, err);
	full.size = out->size < sizeof full ? out->size : (uint32_t)sizeof full;
	memcpy(out, &full, full.size);
	return rc;
}

yt_status cuda_mem_stats(yt_device *d, yt_mem_stats *out, yt_error *err)
{
	yt_mem_stats full;

	if (d == NULL || out == NULL || out->size < sizeof out->size)
		return yt_fail(err, YT_E_INVALID, "mem_stats: device, out and out.size are required");
	locked hold(d);
	full = d->stats;
	full.size = out->size < sizeof full ? out->size : (uint32_t)sizeof full;
	memcpy(out, &full, full.size);
	return yt_ok(err);
}
