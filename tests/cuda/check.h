// SPDX-License-Identifier: Apache-2.0
//
// check.h - random numbers and memory for core_check.cc and its parts.
#ifndef YT_CHECK_RANDOM_H
#define YT_CHECK_RANDOM_H

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>

namespace {

thread_local uint64_t state;
std::atomic<int> failures;

uint32_t next()
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

uint32_t below(uint32_t n)
{
	return next() % n;
}

void fail(const char *what)
{
	fprintf(stderr, "error: %s\n", what);
	failures++;
}

// Memory whose last byte is the last of its allocation, shifted by `skew` from
// 16-byte alignment.
template <typename T> struct exact {
	std::unique_ptr<uint8_t[]> mem;
	T *p;
	exact(size_t n, size_t skew) : mem(new uint8_t[n * sizeof(T) + skew]), p((T *)(mem.get() + skew)) {}
};

} // namespace

#endif // YT_CHECK_RANDOM_H
