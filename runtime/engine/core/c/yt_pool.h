/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_pool.h - an allocator that cuts buffers from large allocations, for any backend.
 *
 * The allocator works on addresses and never touches the memory, which may be a
 * device's. Blocks of a slab are linked in address order, so a freed block joins
 * its free neighbours at once: when all is freed, a slab is one block. Free
 * blocks are binned by the power of two of their size; within the first bin the
 * best fit is taken, of larger bins the first. Not locked.
 */
#ifndef YT_POOL_H
#define YT_POOL_H

#include "yt_check.h"

#include <stdlib.h>
#include <string.h>

#define YT_POOL_SLAB (32u << 20)
#define YT_POOL_BINS 64

typedef struct yt_block {
	uint64_t at, size;
	struct yt_block *prev, *next;         /* neighbours in the slab          */
	struct yt_block *bin_prev, *bin_next; /* other free blocks of like size  */
	struct yt_slab *slab;
	uint32_t free;
	/* Freed, but work of a stream may still use it: until *done reaches ticket. */
	const uint64_t *done;
	uint64_t ticket;
	struct yt_block *deferred_next;
} yt_block;

typedef struct yt_slab {
	struct yt_slab *next;
	uint64_t base, size;
	void *handle; /* of `take` */
	yt_block *first;
} yt_slab;

/* Where slabs come from. take returns 0, or not 0 without memory. */
typedef struct yt_pool_source {
	void *ctx;
	int (*take)(void *ctx, uint64_t bytes, uint64_t *base, void **handle);
	void (*give)(void *ctx, uint64_t base, uint64_t bytes, void *handle);
} yt_pool_source;

typedef struct yt_blocks {
	yt_pool_source source;
	uint64_t max, slab_bytes;
	uint32_t flags;
	yt_slab *slabs;
	yt_block *bin[YT_POOL_BINS];
	yt_block *deferred, *spare;
	yt_pool_stats stats;
} yt_blocks;

static inline uint32_t yt_pool_bin(uint64_t size)
{
	return 63u - (uint32_t)__builtin_clzll(size);
}

static inline yt_block *yt_pool_node(yt_blocks *b)
{
	yt_block *n = b->spare;

	if (n != NULL)
		b->spare = n->next;
	else
		n = (yt_block *)malloc(sizeof *n);
	if (n != NULL)
		memset(n, 0, sizeof *n);
	return n;
}

static inline void yt_pool_drop_node(yt_blocks *b, yt_block *n)
{
	n->next = b->spare;
	b->spare = n;
}

static inline void yt_pool_bin_add(yt_blocks *b, yt_block *n)
{
	uint32_t i = yt_pool_bin(n->size);

	n->free = 1;
	n->bin_prev = NULL;
	n->bin_next = b->bin[i];
	if (n->bin_next != NULL)
		n->bin_next->bin_prev = n;
	b->bin[i] = n;
	b->stats.blocks_free++;
}

static inline void yt_pool_bin_remove(yt_blocks *b, yt_block *n)
{
	n->free = 0;
	if (n->bin_prev != NULL)
		n->bin_prev->bin_next = n->bin_next;
	else
		b->bin[yt_pool_bin(n->size)] = n->bin_next;
	if (n->bin_next != NULL)
		n->bin_next->bin_prev = n->bin_prev;
	b->stats.blocks_free--;
}

/* Cuts n after its first `size` bytes; the rest is returned, or NULL without
 * memory for the node. Neither is in a bin. */
static inline yt_block *yt_pool_split(yt_blocks *b, yt_block *n, uint64_t size)
{
	yt_block *rest = yt_pool_node(b);

	if (rest == NULL)
		return NULL;
	rest->at = n->at + size;
	rest->size = n->size - size;
	rest->slab = n->slab;
	rest->prev = n;
	rest->next = n->next;
	if (n->next != NULL)
		n->next->prev = rest;
	n->next = rest;
	n->size = size;
	return rest;
}

static inline void yt_pool_join(yt_blocks *b, yt_block *n, yt_block *gone)
{
	n->size += gone->size;
	n->next = gone->next;
	if (gone->next != NULL)
		gone->next->prev = n;
	yt_pool_drop_node(b, gone);
}

static inline void yt_pool_put_back(yt_blocks *b, yt_block *n)
{
	if ((b->flags & YT_POOL_NO_COALESCE) == 0) {
		if (n->next != NULL && n->next->free) {
			yt_pool_bin_remove(b, n->next);
			yt_pool_join(b, n, n->next);
		}
		if (n->prev != NULL && n->prev->free) {
			yt_block *before = n->prev;

			yt_pool_bin_remove(b, before);
			yt_pool_join(b, before, n);
			n = before;
		}
	}
	yt_pool_bin_add(b, n);
}

/* Takes back what streams have finished with. With `of` only blocks of that
 * stream, and those unconditionally. */
static inline void yt_pool_collect(yt_blocks *b, const uint64_t *of)
{
	yt_block **at = &b->deferred;

	while (*at != NULL) {
		yt_block *n = *at;

		if (of != NULL ? n->done == of : __atomic_load_n(n->done, __ATOMIC_ACQUIRE) >= n->ticket) {
			*at = n->deferred_next;
			n->done = NULL;
			b->stats.deferred -= n->size;
			yt_pool_put_back(b, n);
		} else {
			at = &n->deferred_next;
		}
	}
}

static inline yt_block *yt_pool_find(yt_blocks *b, uint64_t size, uint64_t align)
{
	uint32_t i, first = yt_pool_bin(size);
	yt_block *best = NULL, *n;

	for (i = first; i < YT_POOL_BINS && best == NULL; i++) {
		for (n = b->bin[i]; n != NULL; n = n->bin_next) {
			uint64_t skip = ((n->at + align - 1) & ~(align - 1)) - n->at;

			if (n->size < size || n->size - size < skip || (best != NULL && best->size <= n->size))
				continue;
			best = n;
			if (i > first) /* any will do: it is split anyway */
				break;
		}
	}
	return best;
}

static inline yt_block *yt_pool_grow(yt_blocks *b, uint64_t size, uint64_t align)
{
	uint64_t room = align > YT_ALIGN_MIN ? size + align : size;
	uint64_t bytes = room > b->slab_bytes ? room : b->slab_bytes;
	yt_slab *slab;

	if (b->max != 0 && bytes > b->max - (b->stats.reserved < b->max ? b->stats.reserved : b->max))
		bytes = room; /* a smaller slab may still fit below the limit */
	if (room < size || (b->max != 0 && (b->stats.reserved > b->max || bytes > b->max - b->stats.reserved)))
		return NULL;
	slab = (yt_slab *)calloc(1, sizeof *slab);
	if (slab == NULL)
		return NULL;
	slab->first = yt_pool_node(b);
	slab->size = bytes;
	if (slab->first == NULL || b->source.take(b->source.ctx, bytes, &slab->base, &slab->handle) != 0) {
		if (slab->first != NULL)
			yt_pool_drop_node(b, slab->first);
		free(slab);
		return NULL;
	}
	slab->first->at = slab->base;
	slab->first->size = bytes;
	slab->first->slab = slab;
	slab->next = b->slabs;
	b->slabs = slab;
	b->stats.reserved += bytes;
	b->stats.slabs++;
	yt_pool_bin_add(b, slab->first);
	return slab->first;
}

/* size is a multiple of YT_ALIGN_MIN and not 0, align a power of two of at least
 * that. NULL without memory. */
static inline yt_block *yt_pool_take(yt_blocks *b, uint64_t size, uint64_t align)
{
	yt_block *n, *rest;
	uint64_t skip;

	yt_pool_collect(b, NULL);
	n = yt_pool_find(b, size, align);
	if (n == NULL)
		n = yt_pool_grow(b, size, align);
	if (n == NULL)
		return NULL;
	yt_pool_bin_remove(b, n);
	skip = ((n->at + align - 1) & ~(align - 1)) - n->at;
	if (skip != 0) {
		rest = yt_pool_split(b, n, skip);
		yt_pool_bin_add(b, n);
		if (rest == NULL)
			return NULL;
		n = rest;
	}
	if (n->size > size) {
		rest = yt_pool_split(b, n, size);
		if (rest != NULL) /* without a node the block is merely larger */
			yt_pool_bin_add(b, rest);
	}
	b->stats.used += n->size;
	b->stats.peak = b->stats.used > b->stats.peak ? b->stats.used : b->stats.peak;
	b->stats.allocs++;
	return n;
}

static inline void yt_pool_return(yt_blocks *b, yt_block *n, const uint64_t *done, uint64_t ticket)
{
	b->stats.used -= n->size;
	b->stats.frees++;
	if (done == NULL || __atomic_load_n(done, __ATOMIC_ACQUIRE) >= ticket) {
		yt_pool_put_back(b, n);
		return;
	}
	n->done = done;
	n->ticket = ticket;
	n->deferred_next = b->deferred;
	b->deferred = n;
	b->stats.deferred += n->size;
}

static inline void yt_pool_shrink(yt_blocks *b, uint64_t keep)
{
	yt_slab **at = &b->slabs;

	yt_pool_collect(b, NULL);
	while (*at != NULL && b->stats.reserved > keep) {
		yt_slab *s = *at;
		yt_block *n = s->first, *next;
		uint32_t busy = 0;

		for (; n != NULL; n = n->next)
			busy |= !n->free;
		if (busy) {
			at = &s->next;
			continue;
		}
		for (n = s->first; n != NULL; n = next) {
			next = n->next;
			yt_pool_bin_remove(b, n);
			yt_pool_drop_node(b, n);
		}
		*at = s->next;
		b->stats.reserved -= s->size;
		b->stats.slabs--;
		b->source.give(b->source.ctx, s->base, s->size, s->handle);
		free(s);
	}
}

static inline yt_pool_stats yt_pool_read(yt_blocks *b)
{
	yt_pool_stats s;
	yt_block *n;
	uint32_t i;

	yt_pool_collect(b, NULL);
	s = b->stats;
	s.max = b->max;
	for (i = YT_POOL_BINS; i-- > 0 && s.largest_free == 0;)
		for (n = b->bin[i]; n != NULL; n = n->bin_next)
			s.largest_free = n->size > s.largest_free ? n->size : s.largest_free;
	return s;
}

/* All blocks must be back. */
static inline void yt_pool_end(yt_blocks *b)
{
	yt_block *n;

	yt_pool_shrink(b, 0);
	while ((n = b->spare) != NULL) {
		b->spare = n->next;
		free(n);
	}
}

#endif /* YT_POOL_H */
