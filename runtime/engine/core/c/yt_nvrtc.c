/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE

#include "yt_nvrtc.h"
#include "yt_check.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef void *program;

/* nvrtcResult is an enum, stored as int: 0 is success, 6 a compilation error, 5 an unknown
 * option. */
typedef struct nvrtc {
	int (*version)(int *, int *);
	const char *(*text)(int);
	int (*create)(program *, const char *, const char *, int, const char *const *, const char *const *);
	int (*destroy)(program *);
	int (*compile)(program, int, const char *const *);
	int (*log_size)(program, size_t *);
	int (*log)(program, char *);
	int (*ptx_size)(program, size_t *);
	int (*ptx)(program, char *);
	int (*cubin_size)(program, size_t *);
	int (*cubin)(program, char *);
} nvrtc;

static int find(void *lib, const char *name, void *out)
{
	void *p = dlsym(lib, name);

	memcpy(out, &p, sizeof p); /* ISO C has no cast from object to function */
	return p != NULL;
}

static yt_status open_library(const char *library, nvrtc *n, yt_error *err)
{
	static const char *const usual[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
	void *lib = NULL;
	size_t i;

	if (library[0] != '\0') {
		lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
		if (lib == NULL)
			return yt_fail(err, YT_E_NOT_SUPPORTED, "compile: %s", dlerror());
	}
	for (i = 0; lib == NULL && i < sizeof usual / sizeof usual[0]; i++)
		lib = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL)
		return yt_fail(err, YT_E_NOT_SUPPORTED,
			       "compile: NVRTC is not installed (libnvrtc.so.13, .12 or .11.2); install cuda-nvrtc");
	if (find(lib, "nvrtcVersion", &n->version) && find(lib, "nvrtcGetErrorString", &n->text) &&
	    find(lib, "nvrtcCreateProgram", &n->create) && find(lib, "nvrtcDestroyProgram", &n->destroy) &&
	    find(lib, "nvrtcCompileProgram", &n->compile) && find(lib, "nvrtcGetProgramLogSize", &n->log_size) &&
	    find(lib, "nvrtcGetProgramLog", &n->log) && find(lib, "nvrtcGetPTXSize", &n->ptx_size) && find(lib, "nvrtcGetPTX", &n->ptx) &&
	    find(lib, "nvrtcGetCUBINSize", &n->cubin_size) && find(lib, "nvrtcGetCUBIN", &n->cubin))
		return YT_OK;
	return yt_fail(err, YT_E_NOT_SUPPORTED, "compile: NVRTC is older than CUDA 11.2");
}

/* NVRTC opens its builtins library by file name only. If NVRTC was given by path, open the
 * builtins next to it first, so that the dynamic linker finds it loaded. */
static void open_second(const char *library, int major, int minor)
{
	const char *slash = strrchr(library, '/');
	char path[4096];
	int n;

	if (slash == NULL)
		return;
	n = snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - library), library, major, minor);
	if (n > 0 && (size_t)n < sizeof path && dlopen(path, RTLD_NOW | RTLD_LOCAL) == NULL)
		dlerror(); /* NVRTC reports it better */
}

/* Gets a size, then that many bytes. */
static int take(program p, int (*size)(program, size_t *), int (*get)(program, char *), char **out, size_t *bytes)
{
	int rc = size(p, bytes);

	if (rc != 0)
		return rc;
	*out = malloc(*bytes + 1);
	if (*out == NULL)
		return 1; /* NVRTC_ERROR_OUT_OF_MEMORY */
	(*out)[*bytes] = '\0';
	return get(p, *out);
}

yt_status yt_nvrtc_compile(const char *library, const char *source, uint32_t headers, const char *const *names, const char *const *texts,
			   uint32_t options, const char *const *option, int cubin, yt_nvrtc_result *out, yt_error *err)
{
	program p = NULL;
	size_t log_bytes = 0;
	nvrtc n;
	yt_status rc;
	int e, major = 0, minor = 0;

	memset(out, 0, sizeof *out);
	memset(&n, 0, sizeof n);
	rc = open_library(library, &n, err);
	if (rc != YT_OK)
		return rc;
	e = n.version(&major, &minor);
	open_second(library, major, minor);
	if (e == 0)
		e = n.create(&p, source, "chain.cu", (int)headers, texts, names);
	if (e == 0) {
		e = n.compile(p, (int)options, option);
		if (take(p, n.log_size, n.log, &out->log, &log_bytes) != 0) {
			free(out->log);
			out->log = NULL;
		}
	}
	if (e == 0)
		e = cubin ? take(p, n.cubin_size, n.cubin, &out->image, &out->bytes) : take(p, n.ptx_size, n.ptx, &out->image, &out->bytes);
	if (p != NULL)
		n.destroy(&p);
	out->major = major;
	out->minor = minor;
	if (e == 0)
		return yt_ok(err);
	free(out->image);
	out->image = NULL;
	return yt_report(err, e == 1 ? YT_E_OOM : YT_E_INVALID, e, 0, "compile: NVRTC %d.%d: %s: %.150s", major, minor, n.text(e),
			 out->log != NULL ? out->log : "");
}
