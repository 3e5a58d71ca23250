// SPDX-License-Identifier: Apache-2.0
//
// backend.cu - the CUDA backend behind yt_backend.h: devices and the table.
//
// Rules of the backend:
//   - no call waits for the device without a deadline: cudaStreamQuery and
//     cudaEventQuery are polled, cudaStreamSynchronize is not used;
//   - no copy from or to pageable memory, because the driver would stage it and the
//     copy would not be asynchronous (use PINNED and MAPPED);
//   - managed memory only with concurrentManagedAccess, which Jetsons before Thor lack;
//   - an error that destroys the context is stored and returned by every later call,
//     since the driver would return the same or a misleading one.
#include "device.h"

#include <dlfcn.h>

#define YT_STR2(x) #x
#define YT_STR(x) YT_STR2(x)
#ifndef YT_CUDA_ARCHS
#define YT_CUDA_ARCHS "unknown"
#endif

uint64_t yt_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

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

// Reports e, and stores it if it is sticky. The lock is held.
yt_status yt_fail_cuda(yt_device *d, yt_error *err, cudaError_t e, const char *what)
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
yt_status yt_enter(yt_device *d, yt_error *err)
{
	cudaError_t e;

	if (d->dead.code != YT_OK) {
		if (err != NULL)
			*err = d->dead;
		return d->dead.code;
	}
	e = cudaSetDevice(d->index);
	return e == cudaSuccess ? YT_OK : yt_fail_cuda(d, err, e, "select device");
}

// ---- devices ---------------------------------------------------------------

// The runtime's message for a missing driver blames its version, so use our own.
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
		return yt_fail(err, YT_E_INVALID, "device_count: n is required");
	*n = 0;
	rc = driver_there(err);
	if (rc != YT_OK)
		return rc;
	e = cudaGetDeviceCount(&count);
	if (e != cudaSuccess)
		return yt_fail_cuda(NULL, err, e, "device_count");
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

static uint32_t known(int device, cudaDeviceAttr what)
{
	int v = attribute(device, what);

	return v > 0 ? (uint32_t)v : 0;
}

// No lock: the device is not shared yet.
static cudaError_t describe(yt_device *d)
{
	const int i = d->index;
	yt_device_info *f = &d->info;
	cudaDeviceProp prop;
	cudaError_t e = cudaGetDeviceProperties(&prop, i);

	if (e == cudaSuccess)
		e = cudaDriverGetVersion(&f->driver_version);
	if (e != cudaSuccess)
		return e;
	f->cc_major = prop.major;
	f->cc_minor = prop.minor;
	f->mem_total = prop.totalGlobalMem;
	f->l2 = prop.l2CacheSize > 0 ? (uint64_t)prop.l2CacheSize : 0;
	snprintf(f->name, sizeof f->name, "%.63s", prop.name);
	memcpy(f->uuid, prop.uuid.bytes, sizeof f->uuid);
	f->sm_count = known(i, cudaDevAttrMultiProcessorCount);
	f->integrated = known(i, cudaDevAttrIntegrated) != 0;
	f->concurrent_managed = known(i, cudaDevAttrConcurrentManagedAccess) != 0;
	f->host_register = known(i, cudaDevAttrHostRegisterSupported) != 0;
	f->unified_addressing = known(i, cudaDevAttrUnifiedAddressing) != 0;
	f->managed = known(i, cudaDevAttrManagedMemory) != 0;
	f->pageable_access = known(i, cudaDevAttrPageableMemoryAccess) != 0;
	f->map_host = known(i, cudaDevAttrCanMapHostMemory) != 0;
	f->mempools = known(i, cudaDevAttrMemoryPoolsSupported) != 0;
	f->direct_managed = known(i, cudaDevAttrDirectManagedMemAccessFromHost) != 0;
	f->copy_engines = known(i, cudaDevAttrAsyncEngineCount);
	f->warp = known(i, cudaDevAttrWarpSize);
	f->max_threads_per_block = known(i, cudaDevAttrMaxThreadsPerBlock);
	f->threads_per_sm = known(i, cudaDevAttrMaxThreadsPerMultiProcessor);
	f->blocks_per_sm = known(i, cudaDevAttrMaxBlocksPerMultiprocessor);
	f->regs_per_sm = known(i, cudaDevAttrMaxRegistersPerMultiprocessor);
	f->regs_per_block = known(i, cudaDevAttrMaxRegistersPerBlock);
	f->smem_per_sm = known(i, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
	f->smem_per_block = known(i, cudaDevAttrMaxSharedMemoryPerBlock);
	f->smem_per_block_optin = known(i, cudaDevAttrMaxSharedMemoryPerBlockOptin);
	f->smem_reserved = known(i, cudaDevAttrReservedSharedMemoryPerBlock);
	f->clock_khz = known(i, cudaDevAttrClockRate);
	f->mem_clock_khz = known(i, cudaDevAttrMemoryClockRate);
	f->mem_bus_bits = known(i, cudaDevAttrGlobalMemoryBusWidth);
	f->pci_domain = known(i, cudaDevAttrPciDomainId);
	f->pci_bus = known(i, cudaDevAttrPciBusId);
	f->pci_device = known(i, cudaDevAttrPciDeviceId);
	return cudaSuccess;
}

static yt_status cuda_device_open(uint32_t index, const yt_open_options *opt, yt_device **out, yt_error *err)
{
	yt_open_options o = {};
	uint32_t n = 0;
	yt_status rc;
	cudaError_t e;
	yt_device *d;
	int mutex;

	if (out == NULL)
		return yt_fail(err, YT_E_INVALID, "device_open: out is required");
	*out = NULL;
	if (opt != NULL && opt->size < sizeof opt->size)
		return yt_fail(err, YT_E_INVALID, "device_open: options.size is required");
	if (opt != NULL)
		memcpy(&o, opt, opt->size < sizeof o ? opt->size : sizeof o);
	if (o.flags != 0)
		return yt_fail(err, YT_E_NOT_SUPPORTED, "device_open: flags %#x are the CPU backend's", o.flags);
#ifndef YT_FAULTS
	if (o.faults != NULL && o.faults[0] != '\0')
		return yt_fail(err, YT_E_NOT_SUPPORTED, "device_open: this library was built without fault injection (YT_FAULTS)");
#endif
	rc = cuda_device_count(&n, err);
	if (rc != YT_OK)
		return rc;
	if (index >= n)
		return yt_fail(err, YT_E_INVALID, "device_open: index %u; there are %u devices", index, n);
	e = cudaSetDevice((int)index);
	if (e == cudaSuccess)
		e = cudaFree(NULL); // creates the context here, not in the first frame
	if (e != cudaSuccess)
		return yt_fail_cuda(NULL, err, e, "device_open: create context");
	d = (yt_device *)calloc(1, sizeof *d);
	if (d == NULL)
		return yt_fail(err, YT_E_OOM, "device_open: no memory for the device");
	mutex = pthread_mutex_init(&d->lock, NULL);
	if (mutex != 0) {
		free(d);
		return yt_report(err, YT_E_IO, mutex, 0, "device_open: mutex: %s", strerror(mutex));
	}
	d->index = (int)index;
	for (uint32_t i = 0; i <= YT_OP_LAST; i++)
		d->block[i] = yt_kernel_of(i)->block;
	e = describe(d);
	rc = e == cudaSuccess ? YT_OK : yt_fail_cuda(NULL, err, e, "device_open: describe");
#ifdef YT_FAULTS
	if (rc == YT_OK && o.faults != NULL)
		rc = cuda_fault_inject(d, o.faults, err);
	if (rc == YT_OK && yt_faults_due(&d->faults, YT_FAULT_INIT, 0, yt_now_ns(), "", "") != NULL)
		rc = yt_fail(err, YT_E_NO_BACKEND, "device_open: injected fault: the device does not open");
#endif
	if (rc != YT_OK) {
		yt_fault_end(d);
		pthread_mutex_destroy(&d->lock);
		free(d);
		return rc;
	}
	*out = d;
	return yt_ok(err);
}

static yt_status cuda_device_info(yt_device *d, yt_device_info *info, yt_error *err)
{
	yt_device_info full;
	size_t available = 0, total = 0;
	cudaError_t e;

	if (d == NULL || info == NULL || info->size < sizeof info->size)
		return yt_fail(err, YT_E_INVALID, "device_info: device, info and info.size are required");
	locked hold(d);
	yt_status rc = yt_enter(d, err);
	if (rc != YT_OK)
		return rc;
	e = cudaMemGetInfo(&available, &total);
	if (e != cudaSuccess)
		return yt_fail_cuda(d, err, e, "device_info: memory");
	full = d->info;
	full.size = info->size < sizeof full ? info->size : (uint32_t)sizeof full;
	full.mem_total = total;
	full.mem_free = available;
	memcpy(info, &full, full.size);
	return yt_ok(err);
}

static yt_status cuda_device_health(yt_device *d, yt_error *err)
{
	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "device_health: no device");
	locked hold(d);
	yt_status rc = yt_enter(d, err);
	return rc != YT_OK ? rc : yt_ok(err);
}

static yt_status cuda_device_close(yt_device *d, yt_error *err)
{
	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "device_close: no device");
	{
		locked hold(d);

		if (d->table.live != 0 || d->streams != NULL || d->modules != 0)
			return yt_fail(err, YT_E_BUSY, "device_close: %u buffers or events and %u modules%s are open", d->table.live, d->modules,
				       d->streams != NULL ? ", streams" : "");
	}
	yt_fault_end(d);
	if (d->dead.code == YT_OK)
		yt_lt_close(&d->lt);
	pthread_mutex_destroy(&d->lock);
	yt_table_destroy(&d->table);
	free(d);
	return yt_ok(err);
}

static yt_status cuda_kernel_config(yt_device *d, const char *kernel, const yt_kernel_config *cfg, yt_error *err)
{
	uint32_t op = 0, block = 0, tile = 0;

	if (d == NULL || kernel == NULL || cfg == NULL || cfg->size < sizeof *cfg)
		return yt_fail(err, YT_E_INVALID, "kernel_config: device, kernel and config.size are required");
	yt_status rc = yt_check_config(kernel, cfg, &op, &block, &tile, err);
	if (rc != YT_OK)
		return rc;
	locked hold(d);
	d->block[op] = block;
	return yt_ok(err);
}


// ---- the table -------------------------------------------------------------

extern "C" __attribute__((visibility("default"))) yt_status yt_get_api(uint32_t want_major, yt_api *out,
									uint32_t out_size, yt_error *err)
{
	yt_api api = {};
	uint32_t size = out_size < sizeof api ? out_size : (uint32_t)sizeof api;

	if (out == NULL || out_size < offsetof(yt_api, name))
		return yt_fail(err, YT_E_INVALID, "get_api: out is required");
	if (want_major != YT_ABI_MAJOR)
		return yt_fail(err, YT_E_ABI, "get_api: ABI %u was requested, the CUDA backend has %u.%u", want_major, YT_ABI_MAJOR,
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
	api.stream_open = cuda_stream_open;
	api.stream_destroy = cuda_stream_destroy;
	api.submit = cuda_submit;
	api.stream_poll = cuda_stream_poll;
	api.event_create = cuda_event_create;
	api.event_destroy = cuda_event_destroy;
	api.event_elapsed = cuda_event_elapsed;
	api.ops = yt_cuda_ops;
	api.caps = YT_CAP_MODULES;
	api.buf_register = cuda_buf_register;
	api.mem_choose = cuda_mem_choose;
	api.mem_stats = cuda_mem_stats;
	api.module_load = cuda_module_load;
	api.module_unload = cuda_module_unload;
	api.kernel_get = cuda_kernel_get;
	api.kernel_config = cuda_kernel_config;
	api.buf_address = cuda_buf_address;
#ifdef YT_FAULTS
	api.caps |= YT_CAP_FAULTS;
	api.fault_inject = cuda_fault_inject;
#endif
	memcpy(out, &api, size);
	return yt_ok(err);
}
