// SPDX-License-Identifier: Apache-2.0
//
// stream.cu - streams, lists and events.
#include "device.h"
#include "ops.h"

// All operations.
const uint64_t yt_cuda_ops = (2ull << YT_OP_LAST) - 2;

// ---- finished work ---------------------------------------------------------

cudaError_t yt_drain(yt_stream *s)
{
	cudaError_t e;

	e = cudaStreamQuery(s->handle);
	if (e == cudaErrorNotReady) {
		cudaGetLastError(); // clear "not ready", which is not an error
		return e;
	}
	for (uint32_t i = 0; i < s->pending_n; i++) {
		yt_slot *b = yt_table_get(&s->dev->table, s->pending[i], YT_SLOT_BUFFER);

		if (b != NULL && b->uses > 0)
			b->uses--;
	}
	s->pending_n = 0;
	return e;
}

// ---- streams and lists -----------------------------------------------------

yt_status cuda_stream_open(yt_device *d, const yt_stream_options *opt, yt_stream **out, yt_error *err)
{
	yt_stream *s;
	cudaError_t e;

	if (d == NULL || out == NULL || opt == NULL || opt->size < sizeof *opt)
		return yt_fail(err, YT_E_INVALID, "stream_open: device, options.size and out are required");
	*out = NULL;
	if ((opt->flags & ~(uint32_t)YT_STREAM_QUEUED) != 0 || memchr(opt->name, 0, sizeof opt->name) == NULL)
		return yt_fail(err, YT_E_INVALID, "stream_open: invalid flags %#x, or the name is not NUL-terminated", opt->flags);
	locked hold(d);
	yt_status rc = yt_enter(d, err);
	if (rc != YT_OK)
		return rc;
	s = (yt_stream *)calloc(1, sizeof *s);
	if (s == NULL)
		return yt_fail(err, YT_E_OOM, "stream_open: no memory for the stream");
	e = cudaStreamCreateWithFlags(&s->handle, cudaStreamNonBlocking);
	if (e != cudaSuccess) {
		free(s);
		return yt_fail_cuda(d, err, e, "stream_open");
	}
	s->dev = d;
	memcpy(s->name, opt->name, sizeof s->name);
	s->next = d->streams;
	d->streams = s;
	*out = s;
	return yt_ok(err);
}

yt_status cuda_stream_destroy(yt_stream *s, yt_error *err)
{
	yt_device *d;
	cudaError_t e = cudaSuccess;

	if (s == NULL)
		return yt_fail(err, YT_E_INVALID, "stream_destroy: no stream");
	d = s->dev;
	locked hold(d);
	if (d->dead.code == YT_OK) {
		yt_status rc = yt_enter(d, err);
		if (rc != YT_OK)
			return rc;
		e = yt_drain(s);
		if (e == cudaErrorNotReady)
			return yt_fail(err, YT_E_BUSY, "stream_destroy: work is running; poll the stream first");
		if (e == cudaSuccess && s->scratch != NULL)
			e = cudaFree(s->scratch);
		if (e == cudaSuccess)
			e = cudaStreamDestroy(s->handle);
	}
	for (yt_stream **p = &d->streams; *p != NULL; p = &(*p)->next) {
		if (*p == s) {
			*p = s->next;
			break;
		}
	}
	free(s->pending);
	free(s);
	return e != cudaSuccess ? yt_fail_cuda(d, err, e, "stream_destroy") : yt_ok(err);
}

struct resolved {
	uint8_t *p[YT_MAX_OPERANDS]; // as in yt_operands: destination, sources
	uint32_t device_side;        // bit i: operand i is device memory
	yt_slot *event;
};

static yt_status resolve(yt_device *d, const yt_range *r, uint32_t at, uint32_t i, resolved *out, yt_error *err)
{
	const char *what = i == 0 ? "destination" : "source";
	yt_slot *b;

	if (r->buf == 0 && r->len == 0) {
		out->p[i] = NULL;
		return YT_OK;
	}
	if (r->buf == 0)
		return yt_fail(err, YT_E_NOT_SUPPORTED,
			       "command %u: %s: host memory without a buffer; the CUDA backend needs a pinned or mapped buffer", at,
			       what);
	b = yt_table_get(&d->table, r->buf, YT_SLOT_BUFFER);
	if (b == NULL)
		return yt_fail(err, YT_E_INVALID, "command %u: %s: %#llx is not a buffer, or was freed", at, what,
			       (unsigned long long)r->buf);
	if (r->len > b->bytes || r->off > b->bytes - r->len)
		return yt_fail(err, YT_E_INVALID, "command %u: %s: bytes %llu to %llu are outside a buffer of %llu bytes", at, what,
			       (unsigned long long)r->off, (unsigned long long)(r->off + r->len),
			       (unsigned long long)b->bytes);
	out->p[i] = (uint8_t *)b->device + r->off;
	out->device_side |= (uint32_t)(b->mode == YT_MEM_DEVICE) << i;
	return YT_OK;
}

static yt_status check(yt_device *d, const yt_cmd *c, uint32_t at, resolved *r, yt_error *err)
{
	yt_status rc = yt_check_cmd(c, at, err);

	*r = {};
	if (rc == YT_OK)
		rc = yt_check_there(c, at, yt_cuda_ops, "CUDA", err);
	if (rc == YT_OK)
		rc = yt_check_own_config(c, err);
	if (rc != YT_OK)
		return rc;
	if (c->op == YT_OP_RECORD) {
		r->event = yt_table_get(&d->table, c->event, YT_SLOT_EVENT);
		if (r->event == NULL)
			return yt_fail(err, YT_E_INVALID, "command %u: record: %#llx is not an event, or was destroyed", at,
				       (unsigned long long)c->event);
		return YT_OK;
	}
	if (c->op == YT_OP_LAUNCH)
		rc = yt_module_check(d, &c->launch, at, err);
	yt_operands o = yt_operands_of(c);
	for (uint32_t i = 0; rc == YT_OK && i < o.n; i++)
		rc = resolve(d, o.range[i], at, i, r, err);
	return rc != YT_OK ? rc : yt_check_overlap(c, at, &o, r->p, err);
}

// Allocates scratch for the largest reduction of the list. The old scratch may be in use: it is
// freed only when the stream is idle; until then the caller polls and retries.
static yt_status grow_scratch(yt_stream *s, const yt_cmd *cmds, uint32_t n, yt_error *err)
{
	uint64_t need = 0;
	cudaError_t e;

	for (uint32_t i = 0; i < n; i++) {
		const yt_cmd *c = &cmds[i];
		uint64_t bytes = c->op == YT_OP_REDUCE ? yt_reduce_scratch(c->src[0].len / 4)
				 : c->op == YT_OP_DECODE ? yt_decode_scratch(c->decode)
				 : c->op == YT_OP_NMS	 ? yt_nms_scratch(c->nms)
				 : c->op == YT_OP_GEMM && (c->gemm.flags & YT_GEMM_OWN) == 0 && yt_lt_there(&s->dev->lt, NULL) ? YT_LT_ROOM
															      : 0;

		need = bytes > need ? bytes : need;
	}
	if (need <= s->scratch_bytes)
		return YT_OK;
	if (s->scratch != NULL) {
		e = yt_drain(s);
		if (e == cudaErrorNotReady)
			return yt_fail(err, YT_E_BUSY, "submit: more scratch memory for a reduction needs an idle stream; poll it first");
		if (e == cudaSuccess)
			e = cudaFree(s->scratch);
		s->scratch = NULL;
		s->scratch_bytes = 0;
		if (e != cudaSuccess)
			return yt_fail_cuda(s->dev, err, e, "submit: give back scratch");
	}
	e = cudaMalloc((void **)&s->scratch, need);
	if (e != cudaSuccess) {
		cudaGetLastError();
		s->scratch = NULL;
		return yt_fail_cuda(s->dev, err, e, "submit: scratch for reduction");
	}
	s->scratch_bytes = need;
	return YT_OK;
}

static uint64_t *room(uint64_t *ids, uint32_t *cap, uint32_t need)
{
	uint32_t n = *cap;

	if (need <= n)
		return ids;
	while (n < need)
		n = n == 0 ? 256 : 2 * n;
	ids = (uint64_t *)realloc(ids, (size_t)n * sizeof *ids);
	if (ids != NULL)
		*cap = n;
	return ids;
}

// Counts the buffers of the list as used by the stream's work. Allocates first, so that it either
// counts all or none. The runtime keeps events of running work.
static yt_status hold_operands(yt_stream *s, const yt_cmd *cmds, const resolved *where, uint32_t n, yt_error *err)
{
	uint64_t *grown = room(s->pending, &s->pending_cap, s->pending_n + YT_MAX_OPERANDS * n + 1);

	if (grown == NULL)
		return yt_fail(err, YT_E_OOM, "submit: no memory for the list of buffers in use");
	s->pending = grown;
	for (uint32_t i = 0; i < n; i++) {
		if (where[i].event != NULL)
			continue;
		yt_operands o = yt_operands_of(&cmds[i]);

		for (uint32_t j = 0; j < o.n; j++) {
			yt_slot *b = yt_table_get(&s->dev->table, o.range[j]->buf, YT_SLOT_BUFFER);

			if (b != NULL) {
				b->uses++;
				grown[s->pending_n++] = b->id;
			}
		}
	}
	return YT_OK;
}

static void count_copy(yt_device *d, const resolved *r, uint64_t bytes)
{
	bool to = (r->device_side & 1) != 0, from = (r->device_side & 2) != 0;

	*(to ? (from ? &d->stats.d2d : &d->stats.h2d) : (from ? &d->stats.d2h : &d->stats.h2h)) += bytes;
}

static cudaError_t run(yt_stream *s, const yt_cmd *c, const resolved *r)
{
	const yt_device *d = s->dev;

	switch (c->op) {
	case YT_OP_COPY:
		if (c->dst.len == 0)
			return cudaSuccess;
		// Our kernel between device memories; the copy engine across the bus.
		if ((r->device_side & 3) == 3 && yt_copy_fits(r->p[0], r->p[1]))
			return yt_launch_copy(r->p[0], r->p[1], c->dst.len, yt_block_of(c, d->block[YT_OP_COPY]), s->handle);
		return cudaMemcpyAsync(r->p[0], r->p[1], c->dst.len, cudaMemcpyDefault, s->handle);
	case YT_OP_PREPROCESS: {
		const uint8_t *plane[3] = {r->p[1], r->p[2], r->p[3]};
		yt_pre_plan plan = yt_plan_preprocess(&c->pre);

		// The most common case has a specialised kernel.
		if (c->pre.format <= YT_FORMAT_I420 && plan.channels == 3 && plan.type == YT_F32 && plan.layout == YT_LAYOUT_NCHW)
			return yt_launch_preprocess(plan, plane, (float *)r->p[0], yt_block_of(c, d->block[YT_OP_PREPROCESS]), s->handle);
		return yt_launch_tensor(plan, plane, r->p[0], yt_block_of(c, d->block[YT_OP_PREPROCESS]), s->handle);
	}
	case YT_OP_ROI: {
		const uint8_t *plane[3] = {r->p[1], r->p[2], r->p[3]};

		return yt_launch_roi(c->roi, r->p[1 + yt_format_planes(c->roi.format)], plane, r->p[0], yt_block_of(c, d->block[YT_OP_ROI]), s->handle);
	}
	case YT_OP_REDUCE:
		return yt_launch_reduce(c->value, (const float *)r->p[1], c->src[0].len / 4, (float *)r->p[0], s->scratch, s->handle);
	case YT_OP_DECODE:
		return yt_launch_decode(c->decode, r->p[1], r->p[0], s->scratch, s->handle);
	case YT_OP_NMS:
		return yt_launch_nms(c->nms, r->p[1], r->p[0], s->scratch, s->handle);
	case YT_OP_SOFTMAX:
		return yt_launch_softmax(c->rows, r->p[1], r->p[0], s->handle);
	case YT_OP_TOPK:
		return yt_launch_topk(c->rows, r->p[1], r->p[0], s->handle);
	case YT_OP_CONVERT:
		return yt_launch_convert(c->convert, r->p[1],
					 (c->convert.flags & YT_CONVERT_CHANNEL_SCALE) != 0 ? (const float *)r->p[2] : NULL, r->p[0],
					 yt_block_of(c, d->block[YT_OP_CONVERT]), s->handle);
	case YT_OP_GEMM:
		if (s->dev->lt.state > 0 && yt_lt_gemm(&s->dev->lt, c->gemm, r->p[1], r->p[2], c->src[2].len != 0 ? (const float *)r->p[3] : NULL,
						       r->p[0], s->scratch, s->handle))
			return cudaGetLastError();
		return yt_launch_gemm(c->gemm, r->p[1], r->p[2], c->src[2].len != 0 ? (const float *)r->p[3] : NULL, r->p[0], d->info.cc_major,
				      s->handle);
	case YT_OP_DIFF:
		return yt_launch_diff(c->diff, r->p[1], r->p[2], r->p[0], s->handle);
	case YT_OP_GATHER:
		return yt_launch_gather(c->gather, r->p[1], r->p[2], (float *)r->p[0], s->handle);
	case YT_OP_MASKS:
		return yt_launch_masks(c->masks, r->p[1], (const float *)r->p[2], r->p[3], r->p[0], c->dst.len, s->handle);
	case YT_OP_STATS:
		return yt_launch_stats(c->stats, r->p[1], r->p[0], s->handle);
	default: // YT_OP_RECORD; check() rejects all others
		return cudaEventRecord((cudaEvent_t)r->event->host, s->handle);
	}
}

// Whether two ranges of device memory overlap.
static bool meet(const uint8_t *a, uint64_t n, const uint8_t *b, uint64_t m)
{
	return n != 0 && m != 0 && (uintptr_t)a < (uintptr_t)b + m && (uintptr_t)b < (uintptr_t)a + n;
}

// The number of preprocess commands from this one on that one kernel can run: they have the
// same kind of tensor, and none writes what another reads or writes.
static uint32_t frames_of(const yt_cmd *cmds, const resolved *where, uint32_t n)
{
	const yt_preprocess *first = &cmds[0].pre;
	uint32_t k = 1;

	if (cmds[0].op != YT_OP_PREPROCESS)
		return 0;
	for (; k < n && k < YT_BATCH_FRAMES; k++) {
		const yt_preprocess *p = &cmds[k].pre;

		if (cmds[k].op != YT_OP_PREPROCESS || p->out_w != first->out_w || p->out_h != first->out_h || p->type != first->type ||
		    p->layout != first->layout || (p->color == YT_COLOR_GRAY) != (first->color == YT_COLOR_GRAY))
			return k;
		for (uint32_t j = 0; j < k; j++) {
			if (meet(where[k].p[0], cmds[k].dst.len, where[j].p[0], cmds[j].dst.len))
				return k;
			for (uint32_t i = 0; i < 3; i++)
				if (meet(where[k].p[0], cmds[k].dst.len, where[j].p[1 + i], cmds[j].src[i].len) ||
				    meet(where[j].p[0], cmds[j].dst.len, where[k].p[1 + i], cmds[k].src[i].len))
					return k;
		}
	}
	return k;
}

static cudaError_t run_batch(yt_stream *s, const yt_cmd *cmds, const resolved *where, uint32_t n)
{
	yt_batch b = {};

	for (uint32_t i = 0; i < n; i++) {
		b.plan[i] = yt_plan_preprocess(&cmds[i].pre);
		b.in[i] = {where[i].p[1], where[i].p[2], where[i].p[3]};
		b.out[i] = where[i].p[0];
	}
	return yt_launch_batch(b, n, s->dev->block[YT_OP_PREPROCESS], s->handle);
}

yt_status cuda_submit(yt_stream *s, const yt_cmd *cmds, uint32_t n, yt_error *err)
{
	resolved where[YT_MAX_CMDS];
	char what[48];

	if (s == NULL || (cmds == NULL && n != 0))
		return yt_fail(err, YT_E_INVALID, "submit: stream and commands are required");
	if (n > YT_MAX_CMDS)
		return yt_fail(err, YT_E_INVALID, "submit: %u commands; a list has at most %u", n, YT_MAX_CMDS);
	locked hold(s->dev);
	yt_status rc = yt_enter(s->dev, err);
	for (uint32_t i = 0; i < n && rc == YT_OK; i++)
		rc = check(s->dev, &cmds[i], i, &where[i], err);
	if (rc == YT_OK)
		rc = grow_scratch(s, cmds, n, err);
	if (rc == YT_OK)
		rc = hold_operands(s, cmds, where, n, err);
	if (rc != YT_OK)
		return rc;
	for (uint32_t i = 0; i < n; i++) {
		// Faults apply to single commands.
		uint32_t frames = s->dev->faults.n == 0 ? frames_of(&cmds[i], &where[i], n - i) : 0;

		if (frames > 1) {
			cudaError_t e = run_batch(s, &cmds[i], &where[i], frames);

			if (e != cudaSuccess) {
				snprintf(what, sizeof what, "submit: command %u", i);
				return yt_fail_cuda(s->dev, err, e, what);
			}
			i += frames - 1;
			continue;
		}
		rc = yt_fault_before(s, &cmds[i], err);
		if (rc != YT_OK)
			return rc;
		if (cmds[i].op == YT_OP_COPY)
			count_copy(s->dev, &where[i], cmds[i].dst.len);
		if (cmds[i].op == YT_OP_LAUNCH) {
			rc = yt_module_launch(s, &cmds[i].launch, where[i].p, i, err);
			if (rc != YT_OK)
				return rc;
			continue;
		}
		cudaError_t e = run(s, &cmds[i], &where[i]);

		if (e != cudaSuccess) {
			snprintf(what, sizeof what, "submit: command %u", i);
			return yt_fail_cuda(s->dev, err, e, what);
		}
		if (cmds[i].op == YT_OP_RECORD)
			where[i].event->stamp = 1;
		rc = yt_fault_after(s, &cmds[i], where[i].p[0], err);
		if (rc != YT_OK)
			return rc;
	}
	return yt_ok(err);
}

yt_status cuda_stream_poll(yt_stream *s, uint64_t timeout_ns, yt_error *err)
{
	if (s == NULL)
		return yt_fail(err, YT_E_INVALID, "stream_poll: no stream");
	return yt_wait(timeout_ns, "stream_poll", err, [s, err]() -> yt_status {
		locked hold(s->dev);
		yt_status rc = yt_enter(s->dev, err);

		if (rc != YT_OK)
			return rc;
		cudaError_t e = yt_drain(s);
		if (e == cudaErrorNotReady)
			return YT_E_NOT_READY;
		return e == cudaSuccess ? yt_ok(err) : yt_fail_cuda(s->dev, err, e, "stream_poll: submitted work");
	});
}

// ---- events ----------------------------------------------------------------

yt_status cuda_event_create(yt_device *d, uint64_t *event, yt_error *err)
{
	yt_slot s = {};
	cudaEvent_t handle;
	cudaError_t e;

	if (d == NULL || event == NULL)
		return yt_fail(err, YT_E_INVALID, "event_create: device and event are required");
	locked hold(d);
	yt_status rc = yt_enter(d, err);
	if (rc != YT_OK)
		return rc;
	e = cudaEventCreateWithFlags(&handle, cudaEventDefault);
	if (e != cudaSuccess)
		return yt_fail_cuda(d, err, e, "event_create");
	s.kind = YT_SLOT_EVENT;
	s.host = handle;
	*event = yt_table_add(&d->table, &s);
	if (*event == 0) {
		e = cudaEventDestroy(handle);
		return e != cudaSuccess ? yt_fail_cuda(d, err, e, "event_create: give back")
					: yt_fail(err, YT_E_OOM, "event_create: no memory for the table of events");
	}
	return yt_ok(err);
}

yt_status cuda_event_destroy(yt_device *d, uint64_t event, yt_error *err)
{
	cudaError_t e = cudaSuccess;
	yt_slot *s;

	if (d == NULL)
		return yt_fail(err, YT_E_INVALID, "event_destroy: no device");
	locked hold(d);
	s = yt_table_get(&d->table, event, YT_SLOT_EVENT);
	if (s == NULL)
		return yt_fail(err, YT_E_INVALID, "event_destroy: %#llx is not an event, or was destroyed",
			       (unsigned long long)event);
	if (d->dead.code == YT_OK)
		e = cudaEventDestroy((cudaEvent_t)s->host); // the runtime keeps it for running work
	yt_table_remove(&d->table, s);
	return e != cudaSuccess ? yt_fail_cuda(d, err, e, "event_destroy") : yt_ok(err);
}

yt_status cuda_event_elapsed(yt_device *d, uint64_t a, uint64_t b, uint64_t *ns, yt_error *err)
{
	const yt_slot *from, *to;
	float ms = 0;
	cudaError_t e;

	if (d == NULL || ns == NULL)
		return yt_fail(err, YT_E_INVALID, "event_elapsed: device and ns are required");
	locked hold(d);
	yt_status rc = yt_enter(d, err);
	if (rc != YT_OK)
		return rc;
	from = yt_table_get(&d->table, a, YT_SLOT_EVENT);
	to = yt_table_get(&d->table, b, YT_SLOT_EVENT);
	if (from == NULL || to == NULL)
		return yt_fail(err, YT_E_INVALID, "event_elapsed: a or b is not an event, or was destroyed");
	if (from->stamp == 0 || to->stamp == 0)
		return yt_fail(err, YT_E_NOT_READY, "event_elapsed: an event was not recorded");
	e = cudaEventElapsedTime(&ms, (cudaEvent_t)from->host, (cudaEvent_t)to->host);
	if (e == cudaErrorNotReady) {
		cudaGetLastError();
		return yt_fail(err, YT_E_NOT_READY, "event_elapsed: an event has not passed yet");
	}
	if (e != cudaSuccess)
		return yt_fail_cuda(d, err, e, "event_elapsed");
	if (ms < 0)
		return yt_fail(err, YT_E_INVALID, "event_elapsed: event a is later than event b");
	*ns = (uint64_t)((double)ms * 1e6);
	return yt_ok(err);
}
