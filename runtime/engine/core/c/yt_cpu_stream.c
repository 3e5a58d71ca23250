/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams of the CPU backend: lists, events, and the threads for work that does not
 * run in the caller's thread. See yt_cpu_dev.h.
 */
#define _GNU_SOURCE

#include "yt_cpu_dev.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>

/* Kept out of the way of a list that was checked before and runs here. */
#define RARE __attribute__((noinline))

/* ---- waiting ------------------------------------------------------------ */

static struct timespec deadline_after(uint64_t ns)
{
	const uint64_t most = 10ull * 365 * 24 * 3600 * 1000000000u;
	uint64_t at = cpu_now() + (ns < most ? ns : most);
	struct timespec t = {(time_t)(at / 1000000000u), (long)(at % 1000000000u)};

	return t;
}

/* Lock held. A delay by an injected fault; ends early when the faults are cleared or the
 * device closes. */
static void injected_delay(yt_device *d, uint64_t ns)
{
	struct timespec until = deadline_after(ns);
	uint64_t generation = d->faults_generation;

	while (!d->stop && d->faults_generation == generation &&
	       pthread_cond_timedwait(&d->done, &d->lock, &until) != ETIMEDOUT)
		;
}

/* ---- checking ----------------------------------------------------------- */

/* Atomic, because a thread that frees an object may read the names at any time. */
static void name(yt_stream *s, uint64_t id)
{
	__atomic_store_n(&s->name_of[s->names], id, __ATOMIC_RELAXED);
	__atomic_store_n(&s->names, s->names + 1, __ATOMIC_RELAXED);
}

static yt_status resolve(yt_stream *stream, const yt_range *r, uint32_t at, uint32_t i, resolved *out, yt_error *err)
{
	const char *what = i == 0 ? "destination" : "source";
	yt_slot *s;

	if (r->buf == 0) {
		if (r->len != 0 && (r->off == 0 || r->off + r->len < r->off || r->off > UINTPTR_MAX))
			return yt_fail(err, YT_E_INVALID, "command %u: %s: %llu bytes at %#llx is not host memory", at, what,
				       (unsigned long long)r->len, (unsigned long long)r->off);
		if (stream->dev->strict && r->len != 0)
			return yt_fail(err, YT_E_INVALID, "command %u: %s: pageable memory, which no card copies from without waiting; "
				       "use pinned, mapped or registered memory", at, what);
		out->p[i] = (uint8_t *)(uintptr_t)r->off;
		out->pageable |= 1u << i;
		return YT_OK;
	}
	s = yt_table_get(&stream->dev->table, r->buf, YT_SLOT_BUFFER);
	if (s == NULL)
		return yt_fail(err, YT_E_INVALID, "command %u: %s: %#llx is not a buffer, or was freed", at, what,
			       (unsigned long long)r->buf);
	if (r->len > s->bytes || r->off > s->bytes - r->len)
		return yt_fail(err, YT_E_INVALID, "command %u: %s: bytes %llu to %llu are outside a buffer of %llu bytes", at, what,
			       (unsigned long long)r->off, (unsigned long long)(r->off + r->len),
			       (unsigned long long)s->bytes);
	out->p[i] = (uint8_t *)s->device + r->off;
	out->pageable |= (uint32_t)(s->mode == YT_MEM_HOST) << i;
	out->device_side |= (uint32_t)(s->mode == YT_MEM_DEVICE) << i;
	name(stream, r->buf);
	return YT_OK;
}

static yt_status check(yt_stream *s, const yt_cmd *c, uint32_t at, resolved *r, yt_error *err)
{
	const yt_table *table = &s->dev->table;
	yt_operands o;
	uint32_t i;
	yt_status rc = yt_check_cmd(c, at, err);

	if (rc == YT_OK)
		rc = yt_check_there(c, at, yt_cpu_ops, "CPU", err);
	if (rc == YT_OK)
		rc = yt_check_own_config(c, err);
	if (rc != YT_OK)
		return rc;
	r->pageable = r->device_side = 0;
	r->event = r->kernel = NULL;
	if (c->op == YT_OP_RECORD) {
		r->event = yt_table_get(table, c->event, YT_SLOT_EVENT);
		if (r->event == NULL)
			return yt_fail(err, YT_E_INVALID, "command %u: record: %#llx is not an event, or was destroyed", at,
				       (unsigned long long)c->event);
		name(s, c->event);
		return YT_OK;
	}
	o = yt_operands_of(c);
	for (i = 0; rc == YT_OK && i < o.n; i++)
		rc = resolve(s, o.range[i], at, i, r, err);
	if (rc == YT_OK && c->op == YT_OP_LAUNCH) {
		r->kernel = yt_table_get(table, c->launch.kernel, YT_SLOT_KERNEL);
		if (r->kernel == NULL)
			return yt_fail(err, YT_E_INVALID, "command %u: launch: %#llx is not a kernel, or was unloaded", at,
				       (unsigned long long)c->launch.kernel);
		name(s, c->launch.kernel);
		r->p[YT_CPU_KERNEL] = (uint8_t *)r->kernel->host;
		rc = yt_cpu_chain_check((const yt_chain *)r->kernel->host, c, at, err);
	}
	return rc != YT_OK ? rc : yt_check_overlap(c, at, &o, r->p, err);
}

/* Lock held, or the slot is protected by a running list. */
static void count_uses(yt_device *d, const yt_cmd *c, const resolved *r, int delta)
{
	yt_operands o;
	uint32_t i;

	if (r->event != NULL) {
		r->event->uses += (uint32_t)delta;
		return;
	}
	if (r->kernel != NULL)
		r->kernel->uses += (uint32_t)delta;
	o = yt_operands_of(c);
	for (i = 0; i < o.n; i++) {
		yt_slot *s = yt_table_get(&d->table, o.range[i]->buf, YT_SLOT_BUFFER); /* or host memory */

		if (s != NULL)
			s->uses += (uint32_t)delta;
	}
}

/* A submitted record of the event has not been reached. */
static int is_pending(const yt_slot *event)
{
	return event->passed < event->submitted;
}

/* ---- running ------------------------------------------------------------ */

void cpu_count_copy(yt_device *d, const resolved *r, uint64_t bytes)
{
	uint32_t to = r->device_side & 1, from = r->device_side >> 1 & 1;
	uint64_t *counter = to ? (from ? &d->stats.d2d : &d->stats.h2d) : (from ? &d->stats.d2h : &d->stats.h2h);

	__atomic_fetch_add(counter, bytes, __ATOMIC_RELAXED);
	if (to != from && (r->pageable & 3) != 0) {
		__atomic_fetch_add(&d->stats.pageable_copies, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&d->stats.pageable_bytes, bytes, __ATOMIC_RELAXED);
	}
}

/* Lock held. */
static void record(yt_slot *event, uint64_t target)
{
	event->stamp = cpu_now();
	if (event->passed < target)
		event->passed = target;
}

RARE static void record_here(yt_device *d, yt_slot *event)
{
	pthread_mutex_lock(&d->lock);
	event->submitted++;
	record(event, event->submitted);
	pthread_mutex_unlock(&d->lock);
}

static inline __attribute__((always_inline)) yt_status run_command(yt_stream *s, const yt_cmd *c, uint32_t at, uint8_t *const p[], yt_error *err)
{
	yt_cpu_config config;

	if (c->op != YT_OP_GEMM) /* the only one with a choice */
		return yt_cpu_run(c, at, p, NULL, &s->scratch, err);
	config = cpu_config_of(s->dev, c);
	return yt_cpu_run(c, at, p, &config, &s->scratch, err);
}

static inline __attribute__((always_inline)) yt_status run_here(yt_stream *s, const yt_cmd *cmds, const resolved *where, uint32_t n, yt_error *err)
{
	yt_device *d = s->dev;
	yt_status rc = YT_OK;
	uint32_t i;

	for (i = 0; i < n && rc == YT_OK; i++) {
		const yt_cmd *c = &cmds[i];

		if (c->op == YT_OP_RECORD) {
			record_here(d, where[i].event);
			continue;
		}
		if (c->op == YT_OP_COPY)
			cpu_count_copy(d, &where[i], c->dst.len);
		rc = run_command(s, c, i, where[i].p, err);
	}
	return rc;
}

/* Lock held. The device is lost: waiting work will never run. */
static void die(yt_device *d, yt_status code, const char *why)
{
	if (d->dead.code != YT_OK)
		return;
	yt_report(&d->dead, code, 0, 1, "%s", why);
	__atomic_store_n(&d->trouble, 1, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&d->work);
	pthread_cond_broadcast(&d->done);
}

yt_status cpu_alive_locked(yt_device *d, yt_error *err)
{
	if (d->faults.n != 0 && yt_faults_due(&d->faults, YT_FAULT_LOST, 0, cpu_now(), "", "") != NULL)
		die(d, YT_E_DEVICE_LOST, "injected fault: the device is lost");
	if (d->dead.code != YT_OK && err != NULL)
		*err = d->dead;
	return d->dead.code;
}

yt_status cpu_alive(yt_device *d, yt_error *err)
{
	yt_status rc;

	if (__atomic_load_n(&d->trouble, __ATOMIC_ACQUIRE) == 0)
		return YT_OK;
	pthread_mutex_lock(&d->lock);
	rc = cpu_alive_locked(d, err);
	pthread_mutex_unlock(&d->lock);
	return rc;
}

/* Lock held, and released during computation. Runs one command with the faults that are due. */
static void run_job_command(yt_stream *s, const job *j, uint32_t i)
{
	yt_device *d = s->dev;
	const yt_cmd *c = &j->cmds[i];
	const char *name = yt_op_name(c->op);
	uint64_t start = cpu_now(), bytes = c->op == YT_OP_COPY ? c->dst.len : 0, ns, random = 0;
	yt_fault *f;
	yt_error err;
	yt_status rc;
	double slow = 1;
	int corrupt = 0;

	if (d->faults.n != 0) {
		if (cpu_alive_locked(d, NULL) != YT_OK)
			return;
		f = yt_faults_due(&d->faults, YT_FAULT_HANG, 0, start, name, s->name);
		if (f != NULL)
			injected_delay(d, f->hang_ns);
		f = yt_faults_due(&d->faults, YT_FAULT_LAUNCH, 0, start, name, s->name);
		if (f != NULL) {
			die(d, YT_E_KERNEL_FAULT, "injected fault: illegal address");
			return;
		}
		f = yt_faults_due(&d->faults, YT_FAULT_SLOW, 0, start, name, s->name);
		slow = f != NULL ? f->factor : 1;
		if (c->op == YT_OP_COPY && c->dst.len != 0) {
			f = yt_faults_due(&d->faults, YT_FAULT_CORRUPT, bytes, start, name, s->name);
			corrupt = f != NULL;
			random = f != NULL ? (yt_fault_random(f), f->random) : 0;
		}
	}
	pthread_mutex_unlock(&d->lock);
	start = cpu_now();
	if (c->op == YT_OP_COPY)
		cpu_count_copy(d, &j->where[i], bytes);
	rc = run_command(s, c, i, j->where[i].p, &err);
	if (corrupt)
		j->where[i].p[0][random % bytes] ^= (uint8_t)(1u << (random >> 60 & 7));
	ns = cpu_now() - start;
	pthread_mutex_lock(&d->lock);
	if (slow > 1)
		injected_delay(d, (uint64_t)((slow - 1) * (double)ns));
	if (rc != YT_OK && s->failed.code == YT_OK) {
		s->failed = err;
		__atomic_store_n(&s->has_failed, 1, __ATOMIC_RELEASE);
	}
}

/* Lock held. */
static void make_ready(yt_stream *s)
{
	yt_device *d = s->dev;
	yt_stream **at = &d->ready;

	s->state = READY;
	while (*at != NULL)
		at = &(*at)->next_ready;
	s->next_ready = NULL;
	*at = s;
	pthread_cond_signal(&d->work);
}

/* Lock held. Runs the stream's first job. */
static void run_job(yt_stream *s)
{
	yt_device *d = s->dev;
	job *j = s->head;
	uint32_t i;

	s->state = RUNNING;
	for (i = 0; i < j->n && d->dead.code == YT_OK; i++) {
		if (j->cmds[i].op == YT_OP_RECORD)
			record(j->where[i].event, j->target[i]);
		else
			run_job_command(s, j, i);
	}
	for (i = 0; i < j->n; i++)
		count_uses(d, &j->cmds[i], &j->where[i], -1);
	s->head = j->next;
	if (s->head == NULL)
		s->tail = NULL;
	if (s->spare == NULL || s->spare->room < j->room) {
		free(s->spare);
		s->spare = j;
	} else {
		free(j);
	}
	s->state = IDLE;
	if (s->head != NULL)
		make_ready(s);
	__atomic_store_n(&s->done, s->done + 1, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&d->done);
}

static void *worker(void *arg)
{
	yt_device *d = arg;
	yt_stream *s;

	pthread_mutex_lock(&d->lock);
	while (!d->stop) {
		if (d->ready == NULL) {
			d->threads_idle++;
			pthread_cond_wait(&d->work, &d->lock);
			d->threads_idle--;
			continue;
		}
		s = d->ready;
		d->ready = s->next_ready;
		run_job(s);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

/* Lock held. Starts a thread if none is free. Failure is an error only if there are no
 * threads. */
static yt_status ensure_thread(yt_device *d, yt_error *err)
{
	sigset_t all, old;
	int rc;

	if (d->threads_idle > 0 || d->threads == d->threads_max)
		return YT_OK;
	if (d->thread == NULL) {
		d->thread = calloc(d->threads_max, sizeof *d->thread);
		if (d->thread == NULL)
			return yt_fail(err, YT_E_OOM, "submit: no memory for threads");
	}
	/* Signals belong to the program's own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&d->thread[d->threads], NULL, worker, d);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0)
		d->threads++;
	return rc == 0 || d->threads > 0 ? YT_OK
					 : yt_report(err, YT_E_IO, rc, 0, "submit: thread: %s", strerror(rc));
}

void cpu_stop_threads(yt_device *d)
{
	uint32_t i;

	pthread_mutex_lock(&d->lock);
	d->stop = 1;
	pthread_cond_broadcast(&d->work);
	pthread_cond_broadcast(&d->done);
	pthread_mutex_unlock(&d->lock);
	for (i = 0; i < d->threads; i++)
		pthread_join(d->thread[i], NULL);
	free(d->thread);
}

/* ---- submitting --------------------------------------------------------- */

/* Makes a job from a list and queues it. The caller protects the objects that the list refers to
 * until this returns. */
RARE static yt_status enqueue(yt_stream *s, const yt_cmd *cmds, const resolved *where, uint32_t n, yt_error *err)
{
	yt_device *d = s->dev;
	size_t cmd_bytes = n * sizeof *cmds, where_bytes = n * sizeof *where;
	size_t room = sizeof(job) + n * sizeof(uint64_t) + cmd_bytes + where_bytes;
	job *j = NULL;
	char *p;
	uint32_t i;
	yt_status rc;

	pthread_mutex_lock(&d->lock);
	rc = cpu_alive_locked(d, err);
	if (rc == YT_OK && s->submitted - s->done >= YT_MAX_QUEUED)
		rc = yt_fail(err, YT_E_BUSY, "submit: %u lists are queued in the stream already; poll it first", YT_MAX_QUEUED);
	if (rc == YT_OK)
		rc = ensure_thread(d, err);
	if (rc == YT_OK && s->spare != NULL && s->spare->room >= room) {
		j = s->spare;
		s->spare = NULL;
		room = j->room;
	} else if (rc == YT_OK) {
		j = malloc(room);
		if (j == NULL)
			rc = yt_fail(err, YT_E_OOM, "submit: no memory to queue %u commands", n);
	}
	if (rc != YT_OK) {
		pthread_mutex_unlock(&d->lock);
		return rc;
	}
	p = (char *)(j + 1);
	j->next = NULL;
	j->n = n;
	j->room = room;
	j->target = (uint64_t *)(void *)p;
	p += n * sizeof(uint64_t);
	if (n != 0) {
		memcpy(p, cmds, cmd_bytes);
		cmds = (const yt_cmd *)(void *)p;
		p += cmd_bytes;
		memcpy(p, where, where_bytes);
		where = (const resolved *)(void *)p;
	}
	j->cmds = cmds;
	j->where = where;
	for (i = 0; i < n; i++) {
		count_uses(d, &cmds[i], &where[i], 1);
		if (where[i].event != NULL)
			j->target[i] = ++where[i].event->submitted;
	}
	if (s->tail != NULL)
		s->tail->next = j;
	else
		s->head = j;
	s->tail = j;
	s->submitted++;
	if (s->state == IDLE)
		make_ready(s);
	pthread_mutex_unlock(&d->lock);
	return YT_OK;
}

/* Whether the stream's next list may run in the caller's thread. */
static int runs_here(const yt_stream *s)
{
	return (s->flags & YT_STREAM_QUEUED) == 0 && s->submitted == __atomic_load_n(&s->done, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&s->dev->trouble, __ATOMIC_ACQUIRE) == 0;
}

/* Resolves a list and names its objects. */
RARE static yt_status check_list(yt_stream *s, const yt_cmd *cmds, uint32_t n, yt_error *err)
{
	yt_status rc = YT_OK;
	uint32_t i;

	__atomic_store_n(&s->names, 0, __ATOMIC_RELAXED);
	for (i = 0; i < n && rc == YT_OK; i++)
		rc = check(s, &cmds[i], i, &s->where[i], err);
	return rc;
}

yt_status cpu_submit_known(yt_stream *s, const yt_cmd *cmds, uint32_t n, uint64_t known, yt_error *err)
{
	yt_status rc = YT_OK;
	uint32_t here;
	uint64_t removals;

	if (s == NULL || (cmds == NULL && n != 0))
		return yt_fail(err, YT_E_INVALID, "submit: stream and commands are required");
	if (n > YT_MAX_CMDS)
		return yt_fail(err, YT_E_INVALID, "submit: %u commands; a list has at most %u", n, YT_MAX_CMDS);
	here = runs_here(s);
	yt_guard_enter(&s->active, CHECKING);
	removals = __atomic_load_n(&s->dev->removals, __ATOMIC_ACQUIRE);
	if (known == 0 || known != s->known || n != s->known_n || removals != s->removals) {
		rc = check_list(s, cmds, n, err);
		s->known = rc == YT_OK ? known : 0;
		s->known_n = n;
		s->removals = removals;
	}
	/* CHECKED promises less than CHECKING, so no barrier is needed. This must come before
	 * any lock: a thread that frees an object holds the lock and waits for the check to
	 * end. */
	__atomic_store_n(&s->active, CHECKED, __ATOMIC_RELEASE);
	if (rc == YT_OK)
		rc = here ? run_here(s, cmds, s->where, n, err) : enqueue(s, cmds, s->where, n, err);
	yt_guard_leave(&s->active);
	return rc != YT_OK ? rc : yt_ok(err);
}

yt_status cpu_submit(yt_stream *s, const yt_cmd *cmds, uint32_t n, yt_error *err)
{
	return cpu_submit_known(s, cmds, n, 0, err);
}

/* ---- streams ------------------------------------------------------------ */

yt_status cpu_stream_open(yt_device *d, const yt_stream_options *opt, yt_stream **out, yt_error *err)
{
	yt_stream *s;

	if (d == NULL || out == NULL || opt == NULL || opt->size < sizeof *opt)
		return yt_fail(err, YT_E_INVALID, "stream_open: device, options.size and out are required");
	*out = NULL;
	if ((opt->flags & ~(uint32_t)YT_STREAM_QUEUED) != 0 || memchr(opt->name, 0, sizeof opt->name) == NULL)
		return yt_fail(err, YT_E_INVALID, "stream_open: invalid flags %#x, or the name is not NUL-terminated", opt->flags);
	s = calloc(1, sizeof *s);
	if (s == NULL)
		return yt_fail(err, YT_E_OOM, "stream_open: no memory for the stream");
	s->dev = d;
	s->flags = opt->flags;
	memcpy(s->name, opt->name, sizeof s->name);
	pthread_mutex_lock(&d->lock);
	s->next = d->streams;
	d->streams = s;
	d->stream_count++;
	pthread_mutex_unlock(&d->lock);
	*out = s;
	return yt_ok(err);
}

yt_status cpu_stream_destroy(yt_stream *s, yt_error *err)
{
	yt_stream **at;

	if (s == NULL)
		return yt_fail(err, YT_E_INVALID, "stream_destroy: no stream");
	pthread_mutex_lock(&s->dev->lock);
	if (s->head != NULL) {
		pthread_mutex_unlock(&s->dev->lock);
		return yt_fail(err, YT_E_BUSY, "stream_destroy: work is running; poll the stream first");
	}
	for (at = &s->dev->streams; *at != s; at = &(*at)->next)
		;
	*at = s->next;
	s->dev->stream_count--;
	pthread_mutex_unlock(&s->dev->lock);
	free(s->scratch.mem);
	free(s->spare);
	free(s);
	return yt_ok(err);
}

yt_status cpu_stream_poll(yt_stream *s, uint64_t timeout_ns, yt_error *err)
{
	struct timespec until;
	yt_device *d;
	yt_status rc;

	if (s == NULL)
		return yt_fail(err, YT_E_INVALID, "stream_poll: no stream");
	d = s->dev;
	if (s->submitted == __atomic_load_n(&s->done, __ATOMIC_ACQUIRE) &&
	    __atomic_load_n(&s->has_failed, __ATOMIC_ACQUIRE) == 0 && __atomic_load_n(&d->trouble, __ATOMIC_ACQUIRE) == 0)
		return yt_ok(err);
	if (timeout_ns != 0)
		until = deadline_after(timeout_ns);
	pthread_mutex_lock(&d->lock);
	for (;;) {
		rc = cpu_alive_locked(d, err);
		if (rc != YT_OK)
			break;
		if (s->submitted == s->done) {
			rc = s->failed.code;
			if (rc != YT_OK && err != NULL)
				*err = s->failed;
			else if (rc == YT_OK)
				yt_ok(err);
			memset(&s->failed, 0, sizeof s->failed);
			__atomic_store_n(&s->has_failed, 0, __ATOMIC_RELEASE);
			break;
		}
		if (timeout_ns == 0) {
			rc = yt_fail(err, YT_E_NOT_READY, "stream_poll: work is running");
			break;
		}
		if (pthread_cond_timedwait(&d->done, &d->lock, &until) == ETIMEDOUT && s->submitted != s->done) {
			rc = yt_fail(err, YT_E_TIMEOUT, "stream_poll: work is still running after %llu ns",
				     (unsigned long long)timeout_ns);
			break;
		}
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
}

/* ---- events ------------------------------------------------------------- */

yt_status cpu_event_create(yt_device *d, uint64_t *event, yt_error *err)
{
	yt_slot s = {0};

	if (d == NULL || event == NULL)
		return yt_fail(err, YT_E_INVALID, "event_create: device and event are required");
	s.kind = YT_SLOT_EVENT;
	pthread_mutex_lock(&d->lock);
	*event = yt_table_add(&d->table, &s);
	pthread_mutex_unlock(&d->lock);
	return *event == 0 ? yt_fail(err, YT_E_OOM, "event_create: no memory for the table of events") : yt_ok(err);
}

yt_status cpu_event_destroy(yt_device *d, uint64_t event, yt_error *err)
{
	yt_status rc;
	yt_slot *s;

	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "event_destroy: no device");
	pthread_mutex_lock(&d->lock);
	s = yt_table_get(&d->table, event, YT_SLOT_EVENT);
	if (s == NULL) {
		rc = yt_fail(err, YT_E_INVALID, "event_destroy: %#llx is not an event, or was destroyed", (unsigned long long)event);
	} else if (s->uses != 0 || !cpu_slot_unused(d, event)) {
		rc = yt_fail(err, YT_E_BUSY, "event_destroy: submitted work uses the event");
	} else {
		yt_table_remove(&d->table, s);
		rc = yt_ok(err);
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
}

yt_status cpu_event_elapsed(yt_device *d, uint64_t a, uint64_t b, uint64_t *ns, yt_error *err)
{
	const yt_slot *from, *to;
	yt_status rc;

	if (d == NULL || ns == NULL)
		return yt_fail(err, YT_E_INVALID, "event_elapsed: device and ns are required");
	pthread_mutex_lock(&d->lock);
	from = yt_table_get(&d->table, a, YT_SLOT_EVENT);
	to = yt_table_get(&d->table, b, YT_SLOT_EVENT);
	if (from == NULL || to == NULL) {
		rc = yt_fail(err, YT_E_INVALID, "event_elapsed: a or b is not an event, or was destroyed");
	} else if (from->submitted == 0 || to->submitted == 0) {
		rc = yt_fail(err, YT_E_NOT_READY, "event_elapsed: an event was not recorded");
	} else if (is_pending(from) || is_pending(to)) {
		rc = yt_fail(err, YT_E_NOT_READY, "event_elapsed: an event has not passed yet");
	} else if (to->stamp < from->stamp) {
		rc = yt_fail(err, YT_E_INVALID, "event_elapsed: event a is later than event b");
	} else {
		*ns = to->stamp - from->stamp;
		rc = yt_ok(err);
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
}
