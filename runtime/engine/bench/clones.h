/* SPDX-License-Identifier: Apache-2.0
 *
 * CLONES also compiles a loop for AVX2 and selects a version at load time, as libraries do.
 */
#ifndef YT_BENCH_CLONES_H
#define YT_BENCH_CLONES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

#endif /* YT_BENCH_CLONES_H */
