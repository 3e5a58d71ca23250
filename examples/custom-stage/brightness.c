/* A stage that computes the brightness of each frame: a plug-in for a yoctune pipeline.
 *
 *	yoctuned pipeline header >yoctune_stage.h
 *	cc -std=c11 -shared -fPIC -O2 -Wall -o brightness.so brightness.c
 */
#include "yoctune_stage.h"

#include <stdio.h>
#include <stdlib.h>

struct state {
	const yoctune_host *host;
	yoctune_port in;
	size_t luma; /* size of the luma plane in bytes */
	long dark;   /* a frame with a lower mean counts as dark */
};

static int open_stage(void **state, const yoctune_port *in, const yoctune_port *out, const char *options,
		      const yoctune_host *host, char *error, size_t room)
{
	if (in->kind != YOCTUNE_FRAME || (in->format != YOCTUNE_NV12 && in->format != YOCTUNE_I420 && in->format != YOCTUNE_GREY)) {
		snprintf(error, room, "it takes frames of nv12, i420 or grey");
		return 1;
	}
	if (out->kind != YOCTUNE_RESULTS) {
		snprintf(error, room, "it gives results: leave shape out");
		return 1;
	}
	struct state *s = calloc(1, sizeof *s);
	if (!s) {
		snprintf(error, room, "out of memory");
		return 1;
	}
	s->host = host;
	s->in = *in;
	s->luma = (size_t)in->width * in->height;
	s->dark = *options ? strtol(options, NULL, 10) : 40;
	*state = s;
	return 0;
}

static int run_stage(void *state, yoctune_item *item, char *error, size_t room)
{
	struct state *s = state;
	const unsigned char *luma = item->in;
	unsigned long long sum = 0;
	{
		YOCTUNE_SCOPE(s->host, "sum"); /* the time of this block, in traces */
		for (size_t i = 0; i < s->luma; i++)
			sum += luma[i];
	}
	long mean = (long)(sum / s->luma);
	YOCTUNE_EVENT(s->host, "brightness", mean); /* a value in traces */
	s->host->metric(s->host->context, "brightness", (double)mean, 0);
	if (mean < s->dark)
		s->host->metric(s->host->context, "dark_frames", 1, 1);
	/* The results buffer has 256 KiB. */
	item->out_bytes = (uint64_t)sprintf(item->out, "[{\"brightness\":%ld,\"dark\":%s}]", mean, mean < s->dark ? "true" : "false");
	(void)error;
	(void)room;
	return 0;
}

static void close_stage(void *state) { free(state); }

const yoctune_stage *yoctune_stage_entry(uint32_t host_abi)
{
	static const yoctune_stage stage = { sizeof stage, YOCTUNE_STAGE_ABI, "brightness", open_stage, run_stage, close_stage };
	return host_abi == YOCTUNE_STAGE_ABI ? &stage : NULL;
}
