/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a backend library as yoctuned does and counts its devices. Exits with 0 if there
 * are devices, or if the machine has no driver and the library returns YT_E_NO_BACKEND with
 * a message.
 */
#include "yt_backend.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	yt_get_api_fn get;
	yt_error err = {0};
	yt_api api = {0};
	yt_status rc;
	uint32_t n = 0;
	void *lib, *symbol;

	if (argc != 2) {
		fprintf(stderr, "usage: open LIBRARY\n");
		return 2;
	}
	lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL) {
		fprintf(stderr, "error: %s\n", dlerror());
		return 1;
	}
	symbol = dlsym(lib, YT_GET_API_SYMBOL);
	if (symbol == NULL) {
		fprintf(stderr, "error: %s has no %s\n", argv[1], YT_GET_API_SYMBOL);
		return 1;
	}
	memcpy(&get, &symbol, sizeof get);
	if (get(YT_ABI_MAJOR + 1, &api, sizeof api, &err) != YT_E_ABI) {
		fprintf(stderr, "error: an ABI that does not exist was not refused\n");
		return 1;
	}
	rc = get(YT_ABI_MAJOR, &api, sizeof api, &err);
	if (rc != YT_OK || api.struct_size != sizeof api) {
		fprintf(stderr, "error: status %d, table of %u bytes: %s\n", rc, api.struct_size, err.msg);
		return 1;
	}
	printf("%s: ABI %u.%u, %s\n", api.name, api.abi_major, api.abi_minor, api.build_id);
	rc = api.device_count(&n, &err);
	if (rc == YT_E_NO_BACKEND && err.msg[0] != '\0') {
		printf("no device: %s\n", err.msg);
		return 0;
	}
	if (rc != YT_OK || n == 0) {
		fprintf(stderr, "error: status %d, %u devices: %s\n", rc, n, err.msg);
		return 1;
	}
	printf("%u device(s)\n", n);
	return 0;
}
