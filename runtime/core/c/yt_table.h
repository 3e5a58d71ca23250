/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_table.h - ids for buffers and events.
 *
 * An id is (generation << 32) | (index + 1). Freeing a slot advances its
 * generation, so an id that outlived its object names nothing. Not locked: the
 * owner holds its device's lock.
 */
#ifndef YT_TABLE_H
#define YT_TABLE_H

#include "yt_check.h"

#include <stdlib.h>
#include <string.h>

enum { YT_SLOT_FREE = 0, YT_SLOT_BUFFER = 1, YT_SLOT_EVENT = 2 };

typedef struct yt_slot {
	uint32_t kind, generation;
	uint32_t mode;
	uint32_t uses;  /* commands submitted and not finished that name it */
	uint64_t bytes;
	uint64_t stamp; /* event: a time in ns, 0 not passed */
	void *host;     /* buffer: address for the CPU, or NULL; event: backend's own */
	void *device;   /* buffer: address for the kernels */
	void *base;     /* buffer: what the allocator returned */
} yt_slot;

typedef struct yt_table {
	yt_slot *slots;
	uint32_t cap, live;
} yt_table;

/* Returns the id, or 0 without memory. */
static inline uint64_t yt_table_add(yt_table *t, const yt_slot *value)
{
	uint32_t i, cap, generation;
	yt_slot *grown;

	for (i = 0; i < t->cap && t->slots[i].kind != YT_SLOT_FREE; i++)
		;
	if (i == t->cap) {
		cap = t->cap == 0 ? 64 : 2 * t->cap;
		if (cap < t->cap)
			return 0;
		grown = (yt_slot *)realloc(t->slots, (size_t)cap * sizeof *grown);
		if (grown == NULL)
			return 0;
		memset(grown + t->cap, 0, (size_t)(cap - t->cap) * sizeof *grown);
		t->slots = grown;
		t->cap = cap;
	}
	generation = t->slots[i].generation;
	t->slots[i] = *value;
	t->slots[i].generation = generation;
	t->live++;
	return (uint64_t)generation << 32 | (i + 1);
}

static inline yt_slot *yt_table_get(yt_table *t, uint64_t id, uint32_t kind)
{
	uint64_t index = (id & 0xffffffffu);

	if (index == 0 || index > t->cap)
		return NULL;
	if (t->slots[index - 1].kind != kind || t->slots[index - 1].generation != id >> 32)
		return NULL;
	return &t->slots[index - 1];
}

static inline void yt_table_remove(yt_table *t, yt_slot *s)
{
	uint32_t generation = s->generation + 1;

	memset(s, 0, sizeof *s);
	s->generation = generation;
	t->live--;
}

#endif /* YT_TABLE_H */
