/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_load.h - opening a backend library.
 */
#ifndef YT_LOAD_H
#define YT_LOAD_H

#include "yt_backend.h"

/* Opens the library at path and asks it for its table. The library stays open
 * for the life of the process, also when it is refused: a GPU driver may have
 * started threads in it. */
yt_status yt_load(const char *path, yt_api *out, yt_error *err);

#endif /* YT_LOAD_H */
