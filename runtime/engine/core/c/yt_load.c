/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE

#include "yt_load.h"
#include "yt_check.h"

#include <dlfcn.h>
#include <string.h>

yt_status yt_load(const char *path, yt_api *out, yt_error *err)
{
	yt_get_api_fn get;
	const char *why;
	void *lib, *symbol;
	yt_status rc;

	memset(out, 0, sizeof *out);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL) {
		why = dlerror();
		return yt_fail(err, YT_E_NO_BACKEND, "%s", why != NULL ? why : path);
	}
	symbol = dlsym(lib, YT_GET_API_SYMBOL);
	if (symbol == NULL)
		return yt_fail(err, YT_E_ABI, "%s is not a yoctune backend: symbol %s is missing", path, YT_GET_API_SYMBOL);
	memcpy(&get, &symbol, sizeof get); /* ISO C has no cast from object to function */
	rc = get(YT_ABI_MAJOR, out, sizeof *out, err);
	if (rc != YT_OK)
		return rc;
	if (out->abi_major != YT_ABI_MAJOR || out->struct_size < offsetof(yt_api, ops))
		return yt_fail(err, YT_E_ABI,
			       "%s has ABI %u.%u with a table of %u bytes; this program needs %u.%u with at least %u: install the library "
			       "built with it",
			       path, out->abi_major, out->abi_minor, out->struct_size, YT_ABI_MAJOR, YT_ABI_MINOR,
			       (unsigned)offsetof(yt_api, ops));
	return yt_ok(err);
}
