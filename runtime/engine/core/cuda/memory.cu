// SPDX-License-Identifier: Apache-2.0
//
// memory.cu - buffers, pools, advice and copies between devices.
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

static yt_status release(yt_device *d, const char *what, const yt_pool *only, yt_buf_id id, yt_stream *order, yt_error *err)
{
	yt_slot *b = yt_table_get(&d->table, id, YT_SLOT_BUFFER);
	cudaError_t e = cudaSuccess;
	uint32_t mode;
	void *base;

	if (b == NULL || (only != NULL && b->pool != only))
		return yt_fail(err, YT_E_INVALID, "%s: %#llx is not a buffer%s, or was freed", what, (unsigned long long)id,
			       only != NULL ? " of this pool" : "");
	mode = b->mode;
	base = b->base;
	if (d->dead.code == YT_OK) {
		yt_status rc = yt_enter(d, err);
		if (rc != YT_OK)
			return rc;
		if (b->held != 0)
			return yt_fail(err, YT_E_BUSY, "%s: a graph uses the buffer", what);
		for (yt_stream *s = d->streams; s != NULL && b->uses != 0; s = s->next) {
			e = yt_drain(s);
			if (e != cudaSuccess && e != cudaErrorNotReady)
				return yt_fail_cuda(d, err, e, "buf_free: submitted work");
		}
		if (b->uses != 0 && order != NULL) {
			// Only work of `order` may still run.
			uint32_t of_order = 0;

			for (uint32_t i = 0; i < order->pending_n; i++)
				of_order += order->pending[i] == id;
			if (of_order != b->uses)
				return yt_fail(err, YT_E_BUSY, "%s: work of another stream uses the buffer", what);
		} else if (b->uses != 0) {
			return yt_fail(err, YT_E_BUSY, "%s: submitted work uses the buffer; poll its stream first", what);
		}
	}
	// On a lost device only the id remains: its memory was freed with the context.
	if (b->pool != NULL) {
		b->pool->buffers--;
		yt_pool_return(&b->pool->blocks, (yt_block *)b->block, order != NULL && d->dead.code == YT_OK ? &order->done : NULL,
			       order != NULL ? order->submitted : 0);
		yt_table_remove(&d->table, b);
		return yt_ok(err);
	}
	yt_count_free(&d->stats, mode, b->bytes);
	yt_table_remove(&d->table, b);
	if (d->dead.code == YT_OK)
		e = mode == YT_MEM_REGISTERED ? cudaHostUnregister(base) : give(mode, base);
	return e != cudaSuccess ? yt_fail_cuda(d, err, e, what) : yt_ok(err);
}

yt_status cuda_buf_free(yt_device *d, yt_buf_id id, yt_error *err)
{
	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "buf_free: no device");
	locked hold(d);
	return release(d, "buf_free", NULL, id, NULL, err);
}

// ---- pools -----------------------------------------------------------------

// Both require the lock, and the device current unless it is lost.
static int slab_take(void *ctx, uint64_t bytes, uint64_t *base, void **handle)
{
	yt_pool *p = (yt_pool *)ctx;

	if (bytes > SIZE_MAX / 2 || take(p->mode, bytes, handle) != cudaSuccess)
		return -1;
	*base = (uint64_t)(uintptr_t)*handle;
	yt_count_alloc(&p->dev->stats, p->mode, bytes);
	return 0;
}

static void slab_give(void *ctx, uint64_t base, uint64_t bytes, void *handle)
{
	yt_pool *p = (yt_pool *)ctx;

	(void)base;
	yt_count_free(&p->dev->stats, p->mode, bytes);
	// Nothing of the slab is in use. An error of cudaFree is an earlier fault, which the next
	// call reports.
	if (p->dev->dead.code == YT_OK)
		give(p->mode, handle);
}

yt_status cuda_pool_create(yt_device *d, const yt_pool_options *opt, yt_pool **out, yt_error *err)
{
	yt_pool_options o = {};
	yt_pool *p;

	if (d == NULL || out == NULL || opt == NULL || opt->size < sizeof opt->size)
		return yt_fail(err, YT_E_INVALID, "pool_create: device, options.size and out are required");
	*out = NULL;
	memcpy(&o, opt, opt->size < sizeof o ? opt->size : sizeof o);
	if (o.mode > YT_MEM_MANAGED || (o.flags & ~(uint32_t)YT_POOL_NO_COALESCE) != 0 || o.slab > 1ull << 40)
		return yt_fail(err, YT_E_INVALID, "pool_create: invalid mode %u, flags %#x or slab size of %llu bytes", o.mode, o.flags,
			       (unsigned long long)o.slab);
	locked hold(d);
	yt_status rc = choose(d, o.mode, &o.mode, err);
	if (rc != YT_OK)
		return rc;
	p = (yt_pool *)calloc(1, sizeof *p);
	if (p == NULL)
		return yt_fail(err, YT_E_OOM, "pool_create: no memory for the pool");
	p->dev = d;
	p->mode = o.mode;
	p->blocks.max = o.max;
	p->blocks.slab_bytes = ((o.slab != 0 ? o.slab : YT_POOL_SLAB) + YT_ALIGN_MIN - 1) / YT_ALIGN_MIN * YT_ALIGN_MIN;
	p->blocks.flags = o.flags;
	p->blocks.source.ctx = p;
	p->blocks.source.take = slab_take;
	p->blocks.source.give = slab_give;
	p->next = d->pools;
	d->pools = p;
	*out = p;
	return yt_ok(err);
}

// Releases what streams that are idle have freed in order.
static void refresh(yt_device *d)
{
	for (yt_stream *s = d->streams; s != NULL; s = s->next)
		if (s->done != s->submitted)
			yt_drain(s);
}

yt_status cuda_pool_alloc(yt_pool *p, uint64_t bytes, uint64_t align, yt_buffer *out, yt_error *err)
{
	yt_slot s = {};
	yt_block *b;
	cudaError_t e;

	if (p == NULL || out == NULL || out->size < sizeof *out)
		return yt_fail(err, YT_E_INVALID, "pool_alloc: pool, out and out.size are required");
	yt_status rc = yt_check_alloc("pool_alloc", bytes, &align, err);
	if (rc != YT_OK)
		return rc;
	yt_device *d = p->dev;
	locked hold(d);
	rc = yt_enter(d, err);
	if (rc == YT_OK)
		rc = yt_fault_alloc(d, bytes, "pool_alloc", err);
	if (rc != YT_OK)
		return rc;
	if (p->blocks.deferred != NULL)
		refresh(d);
	b = yt_pool_take(&p->blocks, (bytes + YT_ALIGN_MIN - 1) / YT_ALIGN_MIN * YT_ALIGN_MIN, align);
	if (b == NULL) {
		yt_pool_stats st = yt_pool_read(&p->blocks);

		return yt_fail(err, YT_E_OOM, "pool_alloc: %llu bytes: %llu in use, %llu reserved, limit %llu, largest free piece %llu",
			       (unsigned long long)bytes, (unsigned long long)st.used, (unsigned long long)st.reserved,
			       (unsigned long long)st.max, (unsigned long long)st.largest_free);
	}
	s.kind = YT_SLOT_BUFFER;
	s.bytes = bytes;
	s.pool = p;
	s.block = b;
	e = address(d, p->mode, (void *)(uintptr_t)b->at, &s);
	rc = e == cudaSuccess ? publish(d, "pool_alloc", &s, out, err)
			      : yt_fail_cuda(d, err, e, "pool_alloc: device address of host memory");
	if (rc != YT_OK) {
		yt_pool_return(&p->blocks, b, NULL, 0);
		return rc;
	}
	p->buffers++;
	return yt_ok(err);
}

yt_status cuda_pool_free(yt_pool *p, yt_buf_id id, yt_stream *order, yt_error *err)
{
	if (p == NULL || (order != NULL && order->dev != p->dev))
		return yt_fail(err, YT_E_INVALID, "pool_free: a pool, and a stream of its device, are required");
	locked hold(p->dev);
	return release(p->dev, "pool_free", p, id, order, err);
}

yt_status cuda_pool_stats(yt_pool *p, yt_pool_stats *out, yt_error *err)
{
	yt_pool_stats full;

	if (p == NULL || out == NULL || out->size < sizeof out->size)
		return yt_fail(err, YT_E_INVALID, "pool_stats: pool, out and out.size are required");
	locked hold(p->dev);
	full = yt_pool_read(&p->blocks);
	full.mode = p->mode;
	full.size = out->size < sizeof full ? out->size : (uint32_t)sizeof full;
	memcpy(out, &full, full.size);
	return yt_ok(err);
}

yt_status cuda_pool_trim(yt_pool *p, uint64_t keep, yt_error *err)
{
	if (p == NULL)
		return yt_fail(err, YT_E_INVALID, "pool_trim: no pool");
	locked hold(p->dev);
	yt_status rc = yt_enter(p->dev, err);
	if (rc != YT_OK)
		return rc;
	refresh(p->dev);
	yt_pool_shrink(&p->blocks, keep);
	return yt_ok(err);
}

yt_status cuda_pool_destroy(yt_pool *p, yt_error *err)
{
	if (p == NULL)
		return yt_fail(err, YT_E_INVALID, "pool_destroy: no pool");
	yt_device *d = p->dev;
	{
		locked hold(d);

		if (d->dead.code == YT_OK) {
			yt_status rc = yt_enter(d, err);
			if (rc != YT_OK)
				return rc;
			refresh(d);
		}
		yt_pool_collect(&p->blocks, NULL);
		for (yt_stream *s = d->streams; s != NULL && d->dead.code != YT_OK; s = s->next)
			yt_pool_collect(&p->blocks, &s->done); // nothing runs any more
		if (p->buffers != 0 || p->blocks.deferred != NULL)
			return yt_fail(err, YT_E_BUSY, "pool_destroy: %u buffers exist or are still used by streams", p->buffers);
		for (yt_pool **at = &d->pools; *at != NULL; at = &(*at)->next) {
			if (*at == p) {
				*at = p->next;
				break;
			}
		}
		yt_pool_end(&p->blocks);
	}
	free(p);
	return yt_ok(err);
}

// ---- advice, choice, statistics --------------------------------------------

static yt_slot *find(yt_device *d, const char *what, const yt_range *r, yt_error *err)
{
	yt_slot *b = yt_table_get(&d->table, r->buf, YT_SLOT_BUFFER);

	if (b == NULL) {
		yt_fail(err, YT_E_INVALID, "%s: %#llx is not a buffer, or was freed", what, (unsigned long long)r->buf);
		return NULL;
	}
	if (r->len > b->bytes || r->off > b->bytes - r->len) {
		yt_fail(err, YT_E_INVALID, "%s: bytes %llu to %llu are outside a buffer of %llu bytes", what, (unsigned long long)r->off,
			(unsigned long long)(r->off + r->len), (unsigned long long)b->bytes);
		return NULL;
	}
	return b;
}

// Reason why a hint about the buffer would do nothing; YT_WHY_ASKED if it can be given.
static uint32_t hintless(const yt_device *d, const yt_slot *b)
{
	if (b->mode != YT_MEM_MANAGED)
		return YT_WHY_NOT_MANAGED;
	return d->info.concurrent_managed ? YT_WHY_ASKED : YT_WHY_NO_CONCURRENT;
}

#if CUDART_VERSION >= 13000 // locations are no longer integers
static cudaMemLocation place(const yt_device *d, bool host)
{
	cudaMemLocation l = {};

	l.type = host ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
	l.id = host ? 0 : d->index;
	return l;
}
#else
static int place(const yt_device *d, bool host)
{
	return host ? cudaCpuDeviceId : d->index;
}
#endif

yt_status cuda_buf_prefetch(yt_device *d, yt_range r, uint32_t to, yt_stream *s, uint32_t *why, yt_error *err)
{
	cudaStream_t stream;
	cudaError_t e;

	if (d == NULL || why == NULL || to > YT_TO_HOST || (s != NULL && s->dev != d))
		return yt_fail(err, YT_E_INVALID, "buf_prefetch: device, its stream, direction and why are required");
	locked hold(d);
	yt_status rc = yt_enter(d, err);
	if (rc != YT_OK)
		return rc;
	yt_slot *b = find(d, "buf_prefetch", &r, err);
	if (b == NULL)
		return YT_E_INVALID;
	*why = hintless(d, b);
	if (*why != YT_WHY_ASKED || r.len == 0)
		return yt_ok(err);
	stream = s != NULL ? s->handle : cudaStreamPerThread;
#if CUDART_VERSION >= 13000
	e = cudaMemPrefetchAsync((uint8_t *)b->device + r.off, r.len, place(d, to == YT_TO_HOST), 0, stream);
#else
	e = cudaMemPrefetchAsync((uint8_t *)b->device + r.off, r.len, place(d, to == YT_TO_HOST), stream);
#endif
	return e != cudaSuccess ? yt_fail_cuda(d, err, e, "buf_prefetch") : yt_ok(err);
}

yt_status cuda_buf_advise(yt_device *d, yt_range r, uint32_t advice, uint32_t *why, yt_error *err)
{
	static const cudaMemoryAdvise reset[] = {cudaMemAdviseUnsetReadMostly, cudaMemAdviseUnsetPreferredLocation};
	cudaError_t e = cudaSuccess;

	if (d == NULL || why == NULL || advice < YT_ADVISE_READ_MOSTLY || advice > YT_ADVISE_NORMAL)
		return yt_fail(err, YT_E_INVALID, "buf_advise: device, known advice and why are required");
	locked hold(d);
	yt_status rc = yt_enter(d, err);
	if (rc != YT_OK)
		return rc;
	yt_slot *b = find(d, "buf_advise", &r, err);
	if (b == NULL)
		return YT_E_INVALID;
	*why = hintless(d, b);
	if (*why != YT_WHY_ASKED || r.len == 0)
		return yt_ok(err);
	void *at = (uint8_t *)b->device + r.off;
	if (advice == YT_ADVISE_NORMAL) {
		for (cudaMemoryAdvise a : reset)
			if (e == cudaSuccess)
				e = cudaMemAdvise(at, r.len, a, place(d, false));
	} else {
		e = cudaMemAdvise(at, r.len,
				  advice == YT_ADVISE_READ_MOSTLY ? cudaMemAdviseSetReadMostly : cudaMemAdviseSetPreferredLocation,
				  place(d, advice == YT_ADVISE_PREFER_HOST));
	}
	return e != cudaSuccess ? yt_fail_cuda(d, err, e, "buf_advise") : yt_ok(err);
}

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

// ---- peers -----------------------------------------------------------------

// Locks two devices in a fixed order.
struct both {
	yt_device *a, *b;
	both(yt_device *x, yt_device *y) : a(x < y ? x : y), b(x < y ? y : x)
	{
		pthread_mutex_lock(&a->lock);
		pthread_mutex_lock(&b->lock);
	}
	~both()
	{
		pthread_mutex_unlock(&b->lock);
		pthread_mutex_unlock(&a->lock);
	}
	both(const both &) = delete;
	both &operator=(const both &) = delete;
};

static const size_t pattern_bytes = 65536;

// Copies a pattern from one device to the other by peer access and back through pinned memory.
// cudaDeviceCanAccessPeer is not sufficient: an IOMMU may corrupt the data.
static cudaError_t try_pattern(yt_device *from, yt_device *to, uint8_t *host, bool *same)
{
	uint8_t *a = NULL, *b = NULL;
	cudaError_t e;

	*same = false;
	for (size_t i = 0; i < pattern_bytes; i++)
		host[i] = (uint8_t)(i * 167 + (i >> 8) * 13);
	e = cudaSetDevice(from->index);
	if (e == cudaSuccess)
		e = cudaMalloc((void **)&a, pattern_bytes);
	if (e == cudaSuccess)
		e = cudaMemcpy(a, host, pattern_bytes, cudaMemcpyHostToDevice);
	if (e == cudaSuccess)
		e = cudaSetDevice(to->index);
	if (e == cudaSuccess)
		e = cudaMalloc((void **)&b, pattern_bytes);
	if (e == cudaSuccess)
		e = cudaMemset(b, 0, pattern_bytes);
	if (e == cudaSuccess)
		e = cudaMemcpyPeer(b, to->index, a, from->index, pattern_bytes);
	if (e == cudaSuccess) {
		memset(host, 0, pattern_bytes);
		e = cudaMemcpy(host, b, pattern_bytes, cudaMemcpyDeviceToHost);
	}
	for (size_t i = 0; e == cudaSuccess && i < pattern_bytes; i++) {
		*same = host[i] == (uint8_t)(i * 167 + (i >> 8) * 13);
		if (!*same)
			break;
	}
	if (b != NULL)
		cudaFree(b);
	if (a != NULL)
		cudaFree(a);
	return e;
}

yt_status cuda_peer_query(yt_device *from, yt_device *to, uint32_t *caps, yt_error *err)
{
	uint8_t *host = NULL;
	bool same = false;
	int can = 0;
	cudaError_t e;

	if (from == NULL || to == NULL || caps == NULL)
		return yt_fail(err, YT_E_INVALID, "peer_query: two devices and caps are required");
	*caps = YT_PEER_STAGED;
	if (from->index == to->index || from->index > 63) {
		if (from->index == to->index)
			*caps |= YT_PEER_SAME;
		return yt_ok(err);
	}
	both hold(from, to);
	uint64_t bit = 1ull << from->index;
	yt_status rc = yt_enter(from, err);
	if (rc == YT_OK)
		rc = yt_enter(to, err);
	if (rc != YT_OK)
		return rc;
	if ((to->peer_known & bit) == 0) {
		e = cudaDeviceCanAccessPeer(&can, to->index, from->index);
		if (e == cudaSuccess && can) {
			e = cudaDeviceEnablePeerAccess(from->index, 0);
			if (e == cudaErrorPeerAccessAlreadyEnabled) {
				cudaGetLastError();
				e = cudaSuccess;
			}
			if (e == cudaSuccess)
				e = cudaHostAlloc((void **)&host, pattern_bytes, cudaHostAllocPortable);
			if (e == cudaSuccess)
				e = try_pattern(from, to, host, &same);
			if (host != NULL)
				cudaFreeHost(host);
		}
		if (e != cudaSuccess)
			return yt_fail_cuda(to, err, e, "peer_query");
		to->peer_known |= bit;
		to->peer_direct |= can ? bit : 0;
		to->peer_checked |= same ? bit : 0;
	}
	if ((to->peer_direct & bit) != 0)
		*caps |= YT_PEER_DIRECT;
	if ((to->peer_checked & bit) != 0)
		*caps |= YT_PEER_CHECKED;
	return yt_ok(err);
}

yt_status cuda_peer_copy(yt_stream *s, yt_range dst, yt_device *from, yt_range src, uint32_t *how, yt_error *err)
{
	const uint32_t direct = YT_PEER_DIRECT | YT_PEER_CHECKED;
	const uint64_t piece = 4u << 20;
	uint8_t *host = NULL;
	uint32_t caps = 0;
	cudaError_t e;

	if (s == NULL || from == NULL || how == NULL || dst.len != src.len || s->dev == from)
		return yt_fail(err, YT_E_INVALID, "peer_copy: a stream, another device, how, and equal lengths are required");
	yt_device *to = s->dev;
	yt_status rc = cuda_peer_query(from, to, &caps, err);
	if (rc != YT_OK)
		return rc;
	both hold(from, to);
	yt_slot *a = find(from, "peer_copy: source", &src, err);
	yt_slot *b = a != NULL ? find(to, "peer_copy: destination", &dst, err) : NULL;
	if (b == NULL)
		return YT_E_INVALID;
	rc = yt_enter(from, err);
	if (rc == YT_OK)
		rc = yt_enter(to, err);
	if (rc != YT_OK)
		return rc;
	if (s->recording != NULL || yt_drain(s) == cudaErrorNotReady)
		return yt_fail(err, YT_E_BUSY, "peer_copy: the stream has work; poll it first");
	uint8_t *to_at = (uint8_t *)b->device + dst.off, *from_at = (uint8_t *)a->device + src.off;
	*how = (caps & direct) == direct ? YT_PEER_DIRECT : YT_PEER_STAGED;
	to->stats.p2p += dst.len;
	if (*how == YT_PEER_DIRECT) {
		e = cudaMemcpyPeerAsync(to_at, to->index, from_at, from->index, dst.len, s->handle);
		s->submitted++;
		return e != cudaSuccess ? yt_fail_cuda(to, err, e, "peer_copy") : yt_ok(err);
	}
	e = cudaHostAlloc((void **)&host, piece < dst.len ? piece : dst.len + 1, cudaHostAllocPortable);
	for (uint64_t at = 0; e == cudaSuccess && at < dst.len; at += piece) {
		uint64_t n = dst.len - at < piece ? dst.len - at : piece;

		e = cudaSetDevice(from->index);
		if (e == cudaSuccess)
			e = cudaMemcpy(host, from_at + at, n, cudaMemcpyDefault);
		if (e == cudaSuccess)
			e = cudaSetDevice(to->index);
		if (e == cudaSuccess)
			e = cudaMemcpy(to_at + at, host, n, cudaMemcpyDefault);
	}
	if (host != NULL)
		cudaFreeHost(host);
	return e != cudaSuccess ? yt_fail_cuda(to, err, e, "peer_copy: through host memory") : yt_ok(err);
}
