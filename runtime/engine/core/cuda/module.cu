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
	CUresult (*load)(CUmodule *, const void *);
	CUresult (*unload)(CUmodule);
	CUresult (*get)(CUfunction *, CUmodule, const char *);
	CUresult (*set_attribute)(CUfunction, CUfunction_attribute, int);
	CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,
			   void **);
	CUresult (*text)(CUresult, const char **);
};

struct yt_module {
	yt_device *dev;
	CUmodule handle;
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
	if (symbol(lib, "cuModuleLoadData", &d->load) && symbol(lib, "cuModuleUnload", &d->unload) &&
	    symbol(lib, "cuModuleGetFunction", &d->get) && symbol(lib, "cuFuncSetAttribute", &d->set_attribute) &&
	    symbol(lib, "cuLaunchKernel", &d->launch) && symbol(lib, "cuGetErrorString", &d->text))
		return YT_OK;
	return yt_fail(err, YT_E_NOT_SUPPORTED, "module: the NVIDIA driver is too old: a function is missing");
}

// The runtime's error numbers equal the driver's (CUDA 10.1 and newer).
static yt_status fail_driver(yt_device *d, const driver *api, yt_error *err, CUresult r, const char *what, const char *detail)
{
	const char *text = NULL;
	yt_status rc = yt_fail_cuda(d, err, (cudaError_t)r, what);

	if (r == CUDA_ERROR_INVALID_PTX || r == CUDA_ERROR_INVALID_IMAGE || r == CUDA_ERROR_INVALID_SOURCE ||
	    r == CUDA_ERROR_NO_BINARY_FOR_GPU || r == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || r == CUDA_ERROR_NOT_FOUND ||
	    r == CUDA_ERROR_INVALID_VALUE) {
		api->text(r, &text);
		rc = yt_report(err, YT_E_INVALID, (int32_t)r, 0, "%s: %s%s%.120s", what, text != NULL ? text : "unknown error",
			       detail[0] != '\0' ? ": " : "", detail);
	}
	return rc;
}

yt_status cuda_module_load(yt_device *d, const void *image, uint64_t n, yt_module **out, yt_error *err)
{
	driver api;
	yt_module *m;

	if (d == NULL || image == NULL || n < 4 || out == NULL)
		return yt_fail(err, YT_E_INVALID, "module_load: device, image and out are required");
	*out = NULL;
	if (memcmp(image, "\177ELF", 4) != 0)
		return yt_fail(err, YT_E_INVALID, "module_load: the image is not a cubin");
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
	CUresult r = api.load(&m->handle, image);
	if (r != CUDA_SUCCESS) {
		free(m);
		return fail_driver(d, &api, err, r, "module_load", "");
	}
	d->modules++;
	*out = m;
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
	free(m);
	return r == CUDA_SUCCESS ? yt_ok(err) : fail_driver(d, &api, err, r, "module_unload", "");
}

yt_status cuda_kernel_get(yt_module *m, const char *name, uint64_t *kernel, yt_error *err)
{
	CUfunction f = NULL;
	driver api;

	if (m == NULL || name == NULL || kernel == NULL)
		return yt_fail(err, YT_E_INVALID, "kernel_get: module, name and kernel are required");
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
