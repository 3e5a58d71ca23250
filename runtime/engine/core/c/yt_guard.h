/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_guard.h - saying "I am using this" at no cost on the hot path.
 *
 * One thread publishes a word and then reads; another withdraws what is read and
 * then looks at the word. Each needs a full barrier between its two steps. The
 * first happens for every list, the second when something is freed, so the
 * second pays for both: membarrier(2) has every thread of the process execute a
 * barrier. Where the kernel (4.14) has no such call, both sides use fences.
 */
#ifndef YT_GUARD_H
#define YT_GUARD_H

#include <stdint.h>

/* 0: not asked yet, 1: membarrier, 2: fences. Written once, by yt_guard_init. */
extern int yt_guard_mode;

/* Called before threads may meet; may be called again. */
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
