/* A stage of a yoctune pipeline as a plug-in in C. SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in is a shared library that has one function, yoctune_stage_entry. It is
 * loaded into a process of its own, which is ended when the stage is past its
 * deadline and started again when it dies; with "inside: true" into the pipeline
 * itself, which it then can take along.
 *
 * Rules: sizes come first, so that either side may be newer. Nothing that is passed
 * in may be kept after the call, but the host. All calls for one state come from one
 * thread at a time. Errors are a return value other than 0 and a text.
 *
 *	cc -shared -fPIC -O2 -o libdarkest.so darkest.c
 */
#ifndef YOCTUNE_STAGE_H
#define YOCTUNE_STAGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define YOCTUNE_STAGE_ABI 1u

enum { /* yoctune_port.kind */
	YOCTUNE_FRAME = 1,   /* pixels, planes one after another, rows without padding */
	YOCTUNE_TENSOR = 2,  /* float, row-major */
	YOCTUNE_RESULTS = 3, /* a JSON array in UTF-8, without a zero at its end */
};

enum { /* yoctune_port.format */
	YOCTUNE_NV12 = 0, YOCTUNE_I420 = 1, YOCTUNE_YUYV = 2, YOCTUNE_UYVY = 3,
	YOCTUNE_RGB = 4, YOCTUNE_BGR = 5, YOCTUNE_GREY = 6,
};

/* What a stage takes or gives. */
typedef struct yoctune_port {
	uint32_t kind;
	uint32_t format, width, height; /* of frames */
	uint32_t rank;                  /* of tensors, at most 8 */
	uint32_t reserved;
	int64_t shape[8];
	uint64_t bytes; /* of one; of results: room for one */
} yoctune_port;

/* One frame's turn. */
typedef struct yoctune_item {
	uint32_t size; /* of this structure */
	uint32_t reserved;
	uint64_t frame;     /* its number; gaps are frames that were dropped */
	int64_t capture_ns; /* CLOCK_MONOTONIC */
	const void *in;     /* of bytes as the port says; not to be written */
	void *out;
	uint64_t out_bytes; /* set by the stage, for results: bytes of the JSON */
	uint64_t in_bytes;  /* of in; of results as many as there are */
	int32_t in_fd;      /* in as a DMA buffer, for other drivers; -1: it is none */
	uint32_t reserved2;
} yoctune_item;

/* What the host offers, for as long as the state lives. */
typedef struct yoctune_host {
	uint32_t size, abi;
	void *context;
	/* A number of the stage's own, shown by `yoctuned pipeline top` and to
	 * Prometheus: value is added to a counter, and is that of a gauge. Names are
	 * lower-case letters, digits and underscores. From the thread of run only. */
	void (*metric)(void *context, const char *name, double value, int counter);
} yoctune_host;

typedef struct yoctune_stage {
	uint32_t size, abi; /* sizeof(yoctune_stage), YOCTUNE_STAGE_ABI */
	const char *name;
	/* options is the plan's text, "" without. */
	int (*open)(void **state, const yoctune_port *in, const yoctune_port *out, const char *options,
		    const yoctune_host *host, char *error, size_t room);
	int (*run)(void *state, yoctune_item *item, char *error, size_t room);
	void (*close)(void *state);
} yoctune_stage;

/* Returns the stage, or NULL when it cannot be one of a host of that ABI. */
const yoctune_stage *yoctune_stage_entry(uint32_t host_abi);

#ifdef __cplusplus
}
#endif
#endif
