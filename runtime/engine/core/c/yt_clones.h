/* SPDX-License-Identifier: Apache-2.0
 *
 * YT_CLONES compiles a loop for AVX-512 and AVX2 as well and picks at load time. The plain
 * version is for any x86-64; arm64 always has NEON. Results do not differ:
 * contraction is off (yt_math.h). Sanitizers do without: the dynamic linker
 * picks before they are initialised.
 */
#ifndef YT_CLONES_H
#define YT_CLONES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
	!defined(__SANITIZE_THREAD__)
#define YT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define YT_CLONES
#endif

#endif /* YT_CLONES_H */
