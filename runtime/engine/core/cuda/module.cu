// SPDX-License-Identifier: Apache-2.0
//
// module.cu - modules and kernels compiled outside the backend, with the driver API.
//
// libcuda is opened at run time and not linked, because the library must load on machines
// without it. Versioned names (_v2) select the functions whose arguments are declared here.
#include "device.h"

#include <cuda.h>

#include <dlfcn.h>

struct driver {
	CUresult (*link_create)(unsigned, CUjit_option *, void **, CUlinkState *);
	CUresult (*link_add)(CUlinkState, CUjitInputType, void *, size_t, const char *, unsigned, CUjit_option *, void **);
	CUresult (*link_complete)(CUlinkState, void **, size_t *);
	CUresult (*link_destroy)(CUlinkState);
	CUresult (*load)(CUmodule *, const void *);
	CUresult (*unload)(CUmodule);
	CUresult (*get)(CUfunction *, CUmodule, const char *);
	CUresult (*attribute)(int *, CUfunction_attribute, CUfunction);
	CUresult (*set_attribute)(CUfunction, CUfunction_attribute, int);
	CUresult (*occupancy)(int *, CUfunction, int, size_t);
	CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,
			   void **);
	CUresult (*text)(CUresult, const char **);
};

struct yt_module {
	yt_device *dev;
	CUmodule handle;
	void *image; // the linked cubin
	uint64_t image_bytes;
};

// A kernel returned by kernel_get; its id is the driver's handle.
struct yt_kernel {
	yt_kernel *next;
	yt_module *module;
	CUfunction f;
};

// The kernel of an id, or NULL: an invalid id must not reach the driver.
static yt_kernel *find_kernel(yt_device *d, uint64_t id)
{
	yt_kernel *k = d->kernels;

	while (k != NULL && (uint64_t)(uintptr_t)k->f != id)
		k = k->next;
	return k;
}

// ISO C++ has no cast from object to function.
template <typename F> static bool symbol(void *lib, const char *name, F *out)
{
	void *p = dlsym(lib, name);

	memcpy(out, &p, sizeof p);
	return p != NULL;
}

static yt_status driver_api(driver *d, yt_error *err)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); // the library that the runtime uses; never closed

	if (lib == NULL)
		return yt_fail(err, YT_E_NO_BACKEND, "module: no NVIDIA driver on this machine");
	if (symbol(lib, "cuLinkCreate_v2", &d->link_create) && symbol(lib, "cuLinkAddData_v2", &d->link_add) &&
	    symbol(lib, "cuLinkComplete", &d->link_complete) && symbol(lib, "cuLinkDestroy", &d->link_destroy) &&
	    symbol(lib, "cuModuleLoadData", &d->load) && symbol(lib, "cuModuleUnload", &d->unload) &&
	    symbol(lib, "cuModuleGetFunction", &d->get) && symbol(lib, "cuFuncGetAttribute", &d->attribute) &&
	    symbol(lib, "cuFuncSetAttribute", &d->set_attribute) &&
	    symbol(lib, "cuOccupancyMaxActiveBlocksPerMultiprocessor", &d->occupancy) &&
	    symbol(lib, "cuLaunchKernel", &d->launch) && symbol(lib, "cuGetErrorString", &d->text))
		return YT_OK;
	return yt_fail(err, YT_E_NOT_SUPPORTED, "module: the NVIDIA driver is too old: a function is missing");
}

// The runtime's error numbers equal the driver's (CUDA 10.1 and newer).
static yt_status fail_driver(yt_device *d, const driver *api, yt_error *err, CUresult r, const char *what, const char *log)
{
	const char *text = NULL;
	yt_status rc = yt_fail_cuda(d, err, (cudaError_t)r, what);

	if (r == CUDA_ERROR_INVALID_PTX || r == CUDA_ERROR_INVALID_IMAGE || r == CUDA_ERROR_INVALID_SOURCE ||
	    r == CUDA_ERROR_NO_BINARY_FOR_GPU || r == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || r == CUDA_ERROR_NOT_FOUND ||
	    r == CUDA_ERROR_INVALID_VALUE) {
		api->text(r, &text);
		rc = yt_report(err, YT_E_INVALID, (int32_t)r, 0, "%s: %s%s%.120s", what, text != NULL ? text : "unknown error",
			       log[0] != '\0' ? ": " : "", log);
	}
	return rc;
}

// Converts "name=value,..." to linker options. Returns their number, or -1.
static int link_options(const char *opts, CUjit_option *names, void **values, int room)
{
	int n = 0;

	while (*opts != '\0') {
		char *end;
		unsigned long v;
		bool registers = strncmp(opts, "max_registers=", 14) == 0, level = strncmp(opts, "opt_level=", 10) == 0;

		if ((!registers && !level) || n == room)
			return -1;
		opts += registers ? 14 : 10;
		v = strtoul(opts, &end, 10);
		if (end == opts || *opts < '0' || *opts > '9' || v > 255 || (level && v > 4) || (*end != '\0' && *end != ','))
			return -1;
		names[n] = registers ? CU_JIT_MAX_REGISTERS : CU_JIT_OPTIMIZATION_LEVEL;
		values[n++] = (void *)(uintptr_t)v;
		opts = *end == ',' ? end + 1 : end;
	}
	return n;
}

// Links PTX or a cubin to a cubin, and stores a copy in *out.
static yt_status link_image(yt_device *d, const driver *api, const void *image, uint64_t n, const char *opts, void **out,
			    uint64_t *bytes, yt_error *err)
{
	char log[512] = "";
	CUjit_option names[4] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[4] = {log, (void *)(uintptr_t)(sizeof log - 1)};
	CUlinkState link = NULL;
	void *cubin = NULL;
	size_t size = 0;
	bool elf = n >= 4 && memcmp(image, "\177ELF", 4) == 0;
	int more = link_options(opts, names + 2, values + 2, 2);

	if (more < 0)
		return yt_fail(err, YT_E_INVALID, "module_load: invalid options \"%.60s\"; use max_registers=0..255 or opt_level=0..4", opts);
	CUresult r = api->link_create((unsigned)(2 + more), names, values, &link);
	if (r == CUDA_SUCCESS)
		r = api->link_add(link, elf ? CU_JIT_INPUT_CUBIN : CU_JIT_INPUT_PTX, (void *)(uintptr_t)image, n, "module", 0, NULL, NULL);
	if (r == CUDA_SUCCESS)
		r = api->link_complete(link, &cubin, &size);
	yt_status rc = YT_OK;
	if (r != CUDA_SUCCESS) {
		rc = fail_driver(d, api, err, r, "module_load", log);
	} else {
		*out = malloc(size);
		*bytes = size;
		if (*out == NULL)
			rc = yt_fail(err, YT_E_OOM, "module_load: no memory for an image of %llu bytes", (unsigned long long)size);
		else
			memcpy(*out, cubin, size); // cuLinkDestroy frees the linker's copy
	}
	if (link != NULL)
		api->link_destroy(link);
	return rc;
}

yt_status cuda_module_load(yt_device *d, const void *image, uint64_t n, const char *opts, yt_module **out, yt_error *err)
{
	driver api;
	yt_module *m;

	if (d == NULL || image == NULL || n < 4 || out == NULL || opts == NULL)
		return yt_fail(err, YT_E_INVALID, "module_load: device, image, options and out are required");
	*out = NULL;
	bool elf = memcmp(image, "\177ELF", 4) == 0;
	if (!elf && memchr(image, 0, n) == NULL)
		return yt_fail(err, YT_E_INVALID, "module_load: PTX must end with a NUL");
	yt_status rc = driver_api(&api, err);
	if (rc != YT_OK)
		return rc;
	locked hold(d);
	rc = yt_enter(d, err);
	if (rc != YT_OK)
		return rc;
	m = (yt_module *)calloc(1, sizeof *m);
	if (m == NULL)
		return yt_fail(err, YT_E_OOM, "module_load: no memory for the module");
	m->dev = d;
	rc = link_image(d, &api, image, n, opts, &m->image, &m->image_bytes, err);
	if (rc == YT_OK) {
		CUresult r = api.load(&m->handle, m->image);

		if (r != CUDA_SUCCESS)
			rc = fail_driver(d, &api, err, r, "module_load", "");
	}
	if (rc != YT_OK) {
		free(m->image);
		free(m);
		return rc;
	}
	d->modules++;
	*out = m;
	return yt_ok(err);
}

yt_status cuda_module_image(yt_module *m, void *out, uint64_t *n, yt_error *err)
{
	if (m == NULL || n == NULL)
		return yt_fail(err, YT_E_INVALID, "module_image: module and n are required");
	if (out != NULL && *n < m->image_bytes)
		return yt_fail(err, YT_E_INVALID, "module_image: capacity is %llu bytes, the image has %llu", (unsigned long long)*n,
			       (unsigned long long)m->image_bytes);
	if (out != NULL)
		memcpy(out, m->image, m->image_bytes);
	*n = m->image_bytes;
	return yt_ok(err);
}

yt_status cuda_module_unload(yt_module *m, yt_error *err)
{
	driver api;
	CUresult r = CUDA_SUCCESS;

	if (m == NULL)
		return yt_fail(err, YT_E_INVALID, "module_unload: no module");
	yt_device *d = m->dev;
	yt_status rc = driver_api(&api, err);
	if (rc != YT_OK)
		return rc;
	locked hold(d);
	if (d->dead.code == YT_OK) {
		rc = yt_enter(d, err);
		if (rc != YT_OK)
			return rc;
		r = api.unload(m->handle);
	}
	for (yt_kernel **at = &d->kernels; *at != NULL;) {
		yt_kernel *k = *at;

		if (k->module != m) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		free(k);
	}
	d->modules--;
	free(m->image);
	free(m);
	return r == CUDA_SUCCESS ? yt_ok(err) : fail_driver(d, &api, err, r, "module_unload", "");
}

yt_status cuda_kernel_get(yt_module *m, const char *name, uint64_t *kernel, yt_kernel_info *info, yt_error *err)
{
	yt_kernel_info full = {};
	CUfunction f = NULL;
	driver api;

	if (m == NULL || name == NULL || kernel == NULL || (info != NULL && info->size < sizeof info->size))
		return yt_fail(err, YT_E_INVALID, "kernel_get: module, name, kernel and info.size are required");
	yt_device *d = m->dev;
	yt_status rc = driver_api(&api, err);
	if (rc != YT_OK)
		return rc;
	locked hold(d);
	rc = yt_enter(d, err);
	if (rc != YT_OK)
		return rc;
	CUresult r = api.get(&f, m->handle, name);
	if (r != CUDA_SUCCESS)
		return fail_driver(d, &api, err, r, "kernel_get", name);
	if (find_kernel(d, (uint64_t)(uintptr_t)f) == NULL) {
		yt_kernel *k = (yt_kernel *)calloc(1, sizeof *k);

		if (k == NULL)
			return yt_fail(err, YT_E_OOM, "kernel_get: no memory for the kernel");
		k->module = m;
		k->f = f;
		k->next = d->kernels;
		d->kernels = k;
	}
	*kernel = (uint64_t)(uintptr_t)f;
	if (info == NULL)
		return yt_ok(err);
	const struct {
		CUfunction_attribute what;
		uint32_t *narrow;
		uint64_t *wide;
	} ask[] = {
		{CU_FUNC_ATTRIBUTE_NUM_REGS, &full.registers, NULL},
		{CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &full.max_threads, NULL},
		{CU_FUNC_ATTRIBUTE_BINARY_VERSION, &full.binary_version, NULL},
		{CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, NULL, &full.shared},
		{CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, NULL, &full.local},
		{CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, NULL, &full.constant},
	};
	for (const auto &a : ask) {
		int v = 0;

		r = api.attribute(&v, a.what, f);
		if (r != CUDA_SUCCESS)
			return fail_driver(d, &api, err, r, "kernel_get: attribute", "");
		if (a.narrow != NULL)
			*a.narrow = (uint32_t)v;
		else
			*a.wide = (uint64_t)v;
	}
	full.size = info->size < sizeof full ? info->size : (uint32_t)sizeof full;
	memcpy(info, &full, full.size);
	return yt_ok(err);
}

yt_status cuda_occupancy(yt_device *d, uint64_t kernel, uint32_t block, uint64_t shared, uint32_t *blocks, yt_error *err)
{
	driver api;
	int n = 0;

	if (d == NULL || kernel == 0 || blocks == NULL || block < 1 || block > 1024)
		return yt_fail(err, YT_E_INVALID, "occupancy: device, kernel, blocks, and 1 to 1024 threads are required");
	yt_status rc = driver_api(&api, err);
	if (rc != YT_OK)
		return rc;
	locked hold(d);
	rc = yt_enter(d, err);
	if (rc != YT_OK)
		return rc;
	if (find_kernel(d, kernel) == NULL)
		return yt_fail(err, YT_E_INVALID, "occupancy: %#llx is not a kernel, or its module was unloaded", (unsigned long long)kernel);
	CUresult r = api.occupancy(&n, (CUfunction)(uintptr_t)kernel, (int)block, shared);
	if (r != CUDA_SUCCESS)
		return fail_driver(d, &api, err, r, "occupancy", "");
	*blocks = (uint32_t)n;
	return yt_ok(err);
}

yt_status yt_module_check(yt_device *d, const yt_launch *l, uint32_t at, yt_error *err)
{
	if (find_kernel(d, l->kernel) == NULL)
		return yt_fail(err, YT_E_INVALID, "command %u: launch: %#llx is not a kernel, or its module was unloaded", at,
			       (unsigned long long)l->kernel);
	return YT_OK;
}

yt_status yt_module_launch(yt_stream *s, const yt_launch *l, uint8_t *const p[], uint32_t at, yt_error *err)
{
	// More dynamic shared memory than this must be enabled explicitly.
	const uint32_t default_shared = 48u << 10;
	CUfunction f = (CUfunction)(uintptr_t)l->kernel;
	void *address[4], *params[10];
	char what[48];
	uint32_t n = 0;
	driver api;

	yt_status rc = driver_api(&api, err);
	if (rc != YT_OK)
		return rc;
	snprintf(what, sizeof what, "submit: command %u: launch", at);
	for (uint32_t i = 0; i < l->ranges; i++) {
		address[i] = p[i];
		params[n++] = &address[i];
	}
	for (uint32_t i = 0; i < l->params; i++)
		params[n++] = (void *)(uintptr_t)&l->param[i];
	CUresult r = CUDA_SUCCESS;
	if (l->shared > default_shared)
		r = api.set_attribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)l->shared);
	if (r == CUDA_SUCCESS)
		r = api.launch(f, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], l->shared, s->handle,
			       params, NULL);
	return r == CUDA_SUCCESS ? YT_OK : fail_driver(s->dev, &api, err, r, what, "");
}
