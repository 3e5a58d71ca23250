//go:build cgo

#include "plugin.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The host's metric: kept until the run is over, so that nothing calls into Go. */
static void keep(void *context, const char *name, double value, int counter)
{
	plugin *p = context;
	if (!name || p->count == PLUGIN_METRICS)
		return;
	plugin_metric *m = &p->metrics[p->count++];
	snprintf(m->name, sizeof m->name, "%s", name);
	m->value = value;
	m->counter = counter;
}

static int64_t now(void *context)
{
	struct timespec t;
	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void keep_event(plugin *p, const char *name, int span, int64_t start, int64_t end, double value)
{
	if (!name || p->event_count == PLUGIN_EVENTS)
		return;
	plugin_event *e = &p->events[p->event_count++];
	snprintf(e->name, sizeof e->name, "%s", name);
	e->span = span;
	e->start = start;
	e->end = end;
	e->value = value;
}

static void event(void *context, const char *name, double value)
{
	int64_t t = now(context);
	keep_event(context, name, 0, t, t, value);
}

static void span(void *context, const char *name, int64_t start, int64_t end)
{
	keep_event(context, name, 1, start, end, 0);
}

int plugin_load(plugin *p, const char *path)
{
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!so) {
		snprintf(p->error, sizeof p->error, "%s", dlerror());
		return -1;
	}
	const yoctune_stage *(*entry)(uint32_t);
	*(void **)&entry = dlsym(so, "yoctune_stage_entry");
	if (!entry) {
		snprintf(p->error, sizeof p->error, "it has no yoctune_stage_entry");
		return -1;
	}
	const uint32_t *flags = dlsym(so, "yoctune_stage_flags");
	p->flags = flags ? *flags : 0;
	p->stage = entry(YOCTUNE_STAGE_ABI);
	if (!p->stage) {
		snprintf(p->error, sizeof p->error, "it is for another version than %u", YOCTUNE_STAGE_ABI);
		return -1;
	}
	if (p->stage->abi != YOCTUNE_STAGE_ABI || p->stage->size < sizeof(yoctune_stage)) {
		snprintf(p->error, sizeof p->error, "it is of version %u, this program of %u", p->stage->abi, YOCTUNE_STAGE_ABI);
		return -1;
	}
	if (!p->stage->open || !p->stage->run) {
		snprintf(p->error, sizeof p->error, "it lacks open or run");
		return -1;
	}
	return 0;
}

int plugin_open(plugin *p, const yoctune_port *in, const yoctune_port *out, const char *options)
{
	p->host = (yoctune_host){ .size = sizeof p->host, .abi = YOCTUNE_STAGE_ABI, .context = p, .metric = keep, .now = now, .event = event, .span = span };
	p->error[0] = 0;
	if ((in->dtype || out->dtype) && !(p->flags & YOCTUNE_ANY_DTYPE)) {
		snprintf(p->error, sizeof p->error, "the plug-in takes and gives float32 tensors only: its yoctune_stage_flags lack YOCTUNE_ANY_DTYPE");
		return -1;
	}
	return p->stage->open(&p->state, in, out, options, &p->host, p->error, sizeof p->error);
}

int plugin_run(plugin *p, uint64_t frame, int64_t capture, const void *in, uint64_t in_bytes, int in_fd, void *out, uint64_t *bytes)
{
	yoctune_item item = { .size = sizeof item, .frame = frame, .capture_ns = capture, .in = in, .out = out, .in_bytes = in_bytes, .in_fd = in_fd };
	p->error[0] = 0;
	p->count = 0;
	p->event_count = 0;
	int code = p->stage->run(p->state, &item, p->error, sizeof p->error);
	*bytes = item.out_bytes;
	p->error[sizeof p->error - 1] = 0;
	return code;
}

void plugin_close(plugin *p)
{
	if (p->stage && p->stage->close && p->state)
		p->stage->close(p->state);
	p->state = NULL;
}

int plugin_die_plainly(void)
{
	const int all[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (signal(all[i], SIG_DFL) == SIG_ERR)
			return -1;
	return 0;
}
