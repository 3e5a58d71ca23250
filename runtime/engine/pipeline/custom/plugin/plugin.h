#ifndef YOCTUNE_PLUGIN_H
#define YOCTUNE_PLUGIN_H

#include "yoctune_stage.h"

#define PLUGIN_METRICS 32
#define PLUGIN_EVENTS 64

typedef struct plugin_metric {
	char name[72];
	double value;
	int counter;
} plugin_metric;

typedef struct plugin_event {
	char name[72];
	int span;
	int64_t start, end; /* ns, CLOCK_MONOTONIC */
	double value;
} plugin_event;

typedef struct plugin {
	const yoctune_stage *stage;
	uint32_t flags;
	void *state;
	yoctune_host host;
	plugin_metric metrics[PLUGIN_METRICS]; /* of the last run */
	int count;
	plugin_event events[PLUGIN_EVENTS]; /* of the last run */
	int event_count;
	char error[512];
} plugin;

int plugin_load(plugin *p, const char *path);
int plugin_open(plugin *p, const yoctune_port *in, const yoctune_port *out, const char *options);
int plugin_run(plugin *p, uint64_t frame, int64_t capture, const void *in, uint64_t in_bytes, int in_fd, void *out, uint64_t *bytes);
void plugin_close(plugin *p);
/* Lets a crash of the plug-in end the process by its signal. Go's stack trace would hide the
 * last output of the plug-in. */
int plugin_die_plainly(void);

#endif
