/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_gate.h - Go's handle of a stream. Closing it waits for the call in progress,
 * without cost to the calls (yt_guard.h). The gate outlives the stream, so that a call
 * after closing fails and does not crash. It also holds the error, because clearing a
 * new one for each call would write 256 bytes.
 */
#ifndef YT_GATE_H
#define YT_GATE_H

#include "yt_backend.h"
#include "yt_guard.h"

#include <sched.h>
#include <stdlib.h>

#define YT_GATE_CLOSED (-1)

struct yt_gate {
	const yt_api *api;
	yt_status (*submit_known)(yt_stream *, const yt_cmd *, uint32_t, uint64_t, yt_error *); /* or NULL */
	yt_stream *s;
	uint64_t active;
	uint32_t closed;
	yt_status rc; /* of the last call */
	yt_error err;
};

static inline struct yt_gate *yt_gate_new(const yt_api *api, yt_stream *s)
{
	struct yt_gate *g = (struct yt_gate *)calloc(1, sizeof *g);

	yt_guard_init();
	if (g != NULL) {
		g->api = api;
		g->submit_known = api->struct_size > offsetof(yt_api, submit_known) ? api->submit_known : NULL;
		g->s = s;
	}
	return g;
}

static inline int yt_gate_enter(struct yt_gate *g)
{
	yt_guard_enter(&g->active, 1);
	if (!__atomic_load_n(&g->closed, __ATOMIC_ACQUIRE))
		return 1;
	g->rc = YT_GATE_CLOSED;
	yt_guard_leave(&g->active);
	return 0;
}

/* known: see yt_api.submit_known */
static inline void yt_gate_submit(struct yt_gate *g, const yt_cmd *cmds, uint32_t n, uint64_t known)
{
	if (!yt_gate_enter(g))
		return;
	g->rc = g->submit_known != NULL ? g->submit_known(g->s, cmds, n, known, &g->err) : g->api->submit(g->s, cmds, n, &g->err);
	yt_guard_leave(&g->active);
}

static inline void yt_gate_poll(struct yt_gate *g, uint64_t ns)
{
	if (!yt_gate_enter(g))
		return;
	g->rc = g->api->stream_poll(g->s, ns, &g->err);
	yt_guard_leave(&g->active);
}

/* Waits for the call in progress; later calls fail. */
static inline void yt_gate_close(struct yt_gate *g)
{
	__atomic_store_n(&g->closed, 1, __ATOMIC_RELEASE);
	yt_guard_heavy();
	while (__atomic_load_n(&g->active, __ATOMIC_ACQUIRE) != 0)
		sched_yield();
}

static inline void yt_gate_reopen(struct yt_gate *g)
{
	__atomic_store_n(&g->closed, 0, __ATOMIC_RELEASE);
}

#endif /* YT_GATE_H */
