/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_table.h - ids for buffers, events and kernels.
 *
 * An id is (generation << 32) | (index + 1). Freeing a slot advances its
 * generation, so an id that outlived its object names nothing.
 *
 * Adding and removing needs the owner's lock. Looking up does not: slots never
 * move, and a slot's id is published last and withdrawn first. A lookup without the
 * lock must keep the slot from being removed (yt_guard.h).
 */
#ifndef YT_TABLE_H
#define YT_TABLE_H

#include "yt_check.h"

#include <stdlib.h>
#include <string.h>

enum { YT_SLOT_FREE = 0, YT_SLOT_BUFFER = 1, YT_SLOT_EVENT = 2, YT_SLOT_KERNEL = 3 };

typedef struct yt_slot {
	uint64_t id; /* 0: free */
	uint32_t kind, generation;
	uint32_t mode;
	uint32_t uses;  /* commands submitted and not finished that name it */
	uint64_t bytes;
	uint64_t stamp; /* event: a time in ns, 0 not passed */
	void *host;     /* buffer: address for the CPU, or NULL; else backend's own */
	void *device;   /* buffer: address for the kernels */
	void *base;     /* buffer: what the allocator returned */
	uint64_t above; /* buffer: the program's address is this far above the kernels' (yt_hidden.h) */
	uint64_t submitted, passed; /* event: records */
	uint32_t next_free;         /* index + 1 */
} yt_slot;

#define YT_TABLE_FIRST 64u
#define YT_TABLE_CHUNKS 20u /* of 64, 128, 256 ... slots */

typedef struct yt_table {
	yt_slot *chunk[YT_TABLE_CHUNKS];
	uint32_t cap, live, free_head;
} yt_table;

static inline yt_slot *yt_table_at(const yt_table *t, uint32_t index)
{
	uint32_t k = 31u - (uint32_t)__builtin_clz(index / YT_TABLE_FIRST + 1);

	return &t->chunk[k][index - YT_TABLE_FIRST * ((1u << k) - 1)];
}

/* Returns the id, or 0 without memory. */
static inline uint64_t yt_table_add(yt_table *t, const yt_slot *value)
{
	uint32_t k, i, n, generation;
	yt_slot *s;

	if (t->free_head == 0) {
		k = 31u - (uint32_t)__builtin_clz(t->cap / YT_TABLE_FIRST + 1);
		if (k >= YT_TABLE_CHUNKS)
			return 0;
		n = YT_TABLE_FIRST << k;
		s = (yt_slot *)calloc(n, sizeof *s);
		if (s == NULL)
			return 0;
		for (i = 0; i < n; i++)
			s[i].next_free = i + 1 < n ? t->cap + i + 2 : 0;
		t->chunk[k] = s;
		t->free_head = t->cap + 1;
		__atomic_store_n(&t->cap, t->cap + n, __ATOMIC_RELEASE);
	}
	i = t->free_head - 1;
	s = yt_table_at(t, i);
	t->free_head = s->next_free;
	generation = s->generation;
	*s = *value;
	s->generation = generation;
	t->live++;
	__atomic_store_n(&s->id, (uint64_t)generation << 32 | (i + 1), __ATOMIC_RELEASE);
	return s->id;
}

static inline yt_slot *yt_table_get(const yt_table *t, uint64_t id, uint32_t kind)
{
	uint32_t index = (uint32_t)id;
	yt_slot *s;

	if (index == 0 || index > __atomic_load_n(&t->cap, __ATOMIC_ACQUIRE))
		return NULL;
	s = yt_table_at(t, index - 1);
	return __atomic_load_n(&s->id, __ATOMIC_ACQUIRE) == id && s->kind == kind ? s : NULL;
}

static inline void yt_table_remove(yt_table *t, yt_slot *s)
{
	uint32_t generation = s->generation + 1, index = (uint32_t)s->id;

	__atomic_store_n(&s->id, 0, __ATOMIC_RELEASE);
	memset(s, 0, sizeof *s);
	s->generation = generation;
	s->next_free = t->free_head;
	t->free_head = index;
	t->live--;
}

static inline void yt_table_destroy(yt_table *t)
{
	uint32_t k;

	for (k = 0; k < YT_TABLE_CHUNKS; k++)
		free(t->chunk[k]);
}

#endif /* YT_TABLE_H */
