/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_cpu_dev.h - internal declarations of the CPU backend.
 *
 * A list runs in the calling thread if possible, without taking a lock (yt_guard.h).
 * Otherwise it becomes a job of its stream, and a thread of the device runs it. A thread takes
 * the stream that has been ready for longest, runs one job, and gives the stream back.
 */
#ifndef YT_CPU_DEV_H
#define YT_CPU_DEV_H

#include "yt_cpu.h"
#include "yt_faults.h"
#include "yt_guard.h"
#include "yt_memory.h"
#include "yt_names.h"
#include "yt_table.h"

#include <pthread.h>
#include <time.h>

/* The addresses of a checked command. */
typedef struct resolved {
	uint8_t *p[YT_MAX_OPERANDS]; /* as yt_operands: destination, sources */
	yt_slot *event;
	yt_slot *kernel; /* of a launch */
	uint32_t device_side, pageable; /* bit i: operand i is */
} resolved;

typedef struct job {
	struct job *next;
	const yt_cmd *cmds;
	const resolved *where;
	uint64_t *target; /* of RECORD */
	uint32_t n;
	size_t room; /* bytes of the allocation */
} job;

enum { IDLE, READY, RUNNING };

struct yt_stream {
	yt_device *dev;
	yt_cpu_scratch scratch;
	uint32_t flags;
	char name[16];

	/* The list that runs in the caller's thread, and the ids it names. Afterwards they are
	 * those of the last list, whose number and length are `known` and `known_n`. It needs no
	 * check as long as `removals` is the device's. */
	uint64_t active;
	uint64_t known, removals;
	uint32_t known_n;
	uint32_t names;
	uint64_t name_of[YT_MAX_CMDS * YT_MAX_OPERANDS];
	resolved where[YT_MAX_CMDS];

	uint64_t submitted, done; /* jobs; done is read without the lock */

	/* Guarded by the device's lock. */
	yt_stream *next, *next_ready;
	job *head, *tail, *spare;
	uint32_t state;
	yt_error failed; /* of work that has run; reported once */
	uint32_t has_failed; /* read without the lock */
};

enum { NO_LIST, CHECKING, CHECKED }; /* of active */

struct yt_module {
	yt_device *dev;
	uint64_t kernel; /* its slot has the chain */
};

struct yt_device {
	pthread_mutex_t lock; /* guards what follows, unless noted */
	pthread_cond_t work;  /* for the threads: a stream is ready, or stop */
	pthread_cond_t done;  /* for pollers and injected delays */
	uint32_t trouble;     /* dead or with faults; read without the lock */
	uint32_t strict;      /* YT_OPEN_STRICT; constant */
	uint64_t removals;    /* of objects, and attempts; read without the lock */
	yt_table table;
	yt_stream *streams, *ready;
	uint32_t stream_count;
	uint32_t threads_max, threads, threads_idle, stop;
	pthread_t *thread;
	yt_error dead; /* code 0: alive */
	yt_faults faults;
	uint64_t faults_generation;
	yt_mem_stats stats; /* copies are counted without the lock */
	struct {
		uint32_t block, tile; /* read without the lock */
	} config[YT_OP_LAST + 1];
};

static inline uint64_t cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The device answers with what killed it, or is alive. Locks when in doubt. */
yt_status cpu_alive(yt_device *d, yt_error *err);
yt_status cpu_alive_locked(yt_device *d, yt_error *err);

/* Locked: whether no list that runs in a caller's thread names the slot. The
 * slot's id is withdrawn; the caller restores it when the answer is no. */
int cpu_slot_unused(yt_device *d, uint64_t id);

/* The launch configuration of a command: its own, else that of its device. */
static inline yt_cpu_config cpu_config_of(const yt_device *d, const yt_cmd *c)
{
	yt_cpu_config config = {
		yt_block_of(c, __atomic_load_n(&d->config[c->op].block, __ATOMIC_RELAXED)),
		yt_tile_of(c, __atomic_load_n(&d->config[c->op].tile, __ATOMIC_RELAXED)),
	};

	return config;
}

void cpu_count_copy(yt_device *d, const resolved *r, uint64_t bytes);

yt_status cpu_stream_open(yt_device *, const yt_stream_options *, yt_stream **, yt_error *);
yt_status cpu_stream_destroy(yt_stream *, yt_error *);
yt_status cpu_submit(yt_stream *, const yt_cmd *, uint32_t, yt_error *);
yt_status cpu_submit_known(yt_stream *, const yt_cmd *, uint32_t, uint64_t, yt_error *);
yt_status cpu_stream_poll(yt_stream *, uint64_t, yt_error *);
yt_status cpu_module_load(yt_device *, const void *, uint64_t, yt_module **, yt_error *);
yt_status cpu_module_unload(yt_module *, yt_error *);
yt_status cpu_kernel_get(yt_module *, const char *, uint64_t *, yt_error *);
yt_status cpu_event_create(yt_device *, uint64_t *, yt_error *);
yt_status cpu_event_destroy(yt_device *, uint64_t, yt_error *);
yt_status cpu_event_elapsed(yt_device *, uint64_t, uint64_t, uint64_t *, yt_error *);
void cpu_stop_threads(yt_device *);

#endif /* YT_CPU_DEV_H */
