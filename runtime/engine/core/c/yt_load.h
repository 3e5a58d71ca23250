/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_load.h - opening a backend library.
 */
#ifndef YT_LOAD_H
#define YT_LOAD_H

#include "yt_backend.h"

/* Opens the library at path and gets its table. The library is never closed, even if it
 * is refused, because a GPU driver may have started threads in it. */
yt_status yt_load(const char *path, yt_api *out, yt_error *err);

#endif /* YT_LOAD_H */
