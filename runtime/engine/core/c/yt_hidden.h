/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_hidden.h - device memory that the program cannot access by mistake, for YT_OPEN_STRICT.
 *
 * Two mappings of one memory lie side by side. The kernels use the first. The second, at
 * `size` bytes above, allows no access: its address is the one that the program gets.
 */
#ifndef YT_HIDDEN_H
#define YT_HIDDEN_H

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whole pages. */
static inline uint64_t yt_hidden_size(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* align is a power of two. Returns NULL without memory; errno has the cause. */
static inline void *yt_hidden_map(uint64_t bytes, uint64_t align)
{
	uint64_t size = yt_hidden_size(bytes), room;
	uint8_t *all, *base;
	int fd;

	align = yt_hidden_size(align);
	if (__builtin_mul_overflow(size, 2, &room) || __builtin_add_overflow(room, align, &room) || room > SIZE_MAX / 2)
		return NULL;
	fd = memfd_create("yoctune-device", MFD_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (ftruncate(fd, (off_t)size) != 0) {
		close(fd);
		return NULL;
	}
	all = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED) {
		close(fd);
		return NULL;
	}
	base = (uint8_t *)(((uintptr_t)all + align - 1) / align * align);
	if (mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(base + size, size, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		munmap(all, room);
		close(fd);
		return NULL;
	}
	close(fd);
	if (base > all)
		munmap(all, (size_t)(base - all));
	if (base + 2 * size < all + room)
		munmap(base + 2 * size, (size_t)(all + room - (base + 2 * size)));
	return base;
}

static inline void yt_hidden_unmap(void *base, uint64_t bytes)
{
	munmap(base, 2 * yt_hidden_size(bytes));
}

#endif /* YT_HIDDEN_H */
