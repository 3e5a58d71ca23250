/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_guard.h - protection of objects in use, without cost on the hot path.
 *
 * A reader publishes a word and then reads an object. A remover withdraws the object
 * and then checks the word. Both need a full barrier between their two steps. Readers
 * run for every list, removers only when something is freed. Therefore the remover
 * pays for both: membarrier(2) makes every thread of the process execute a barrier.
 * Without membarrier (before Linux 4.14) both sides use fences.
 */
#ifndef YT_GUARD_H
#define YT_GUARD_H

#include <stdint.h>

/* 0: not initialised, 1: membarrier, 2: fences. Written once, by yt_guard_init. */
extern int yt_guard_mode;

/* Must be called before threads share objects; may be called again. */
void yt_guard_init(void);

/* The rare side, between withdrawing and looking. */
void yt_guard_heavy(void);

static inline void yt_guard_enter(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
	if (yt_guard_mode == 1)
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	else
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void yt_guard_leave(uint64_t *word)
{
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
}

#endif /* YT_GUARD_H */
