/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_nvrtc.h - NVRTC, NVIDIA's run-time compiler, if it is installed. It is opened
 * with dlopen and never closed. The declarations match those of versions 11 to 13.
 */
#ifndef YT_NVRTC_H
#define YT_NVRTC_H

#include "yt_backend.h"

/* The result of yt_nvrtc_compile, allocated with malloc. */
typedef struct yt_nvrtc_result {
	char *image; /* cubin or PTX text */
	size_t bytes;
	char *log; /* of the compiler, or NULL */
	int32_t major, minor;
} yt_nvrtc_result;

/* Compiles source, with headers of these names, to a cubin (`cubin` 1) or PTX. library:
 * a path, or "" for the usual names. YT_E_NOT_SUPPORTED without the library,
 * YT_E_INVALID if the source or an option is wrong; out->log then has the reason. */
yt_status yt_nvrtc_compile(const char *library, const char *source, uint32_t headers, const char *const *names, const char *const *texts,
			   uint32_t options, const char *const *option, int cubin, yt_nvrtc_result *out, yt_error *err);

#endif /* YT_NVRTC_H */
