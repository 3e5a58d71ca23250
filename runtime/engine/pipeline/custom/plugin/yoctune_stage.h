/* A stage of a yoctune pipeline as a plug-in in C. SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in is a shared library that exports one function, yoctune_stage_entry. It runs
 * in a child process, which is killed when the stage exceeds its deadline and restarted
 * when it crashes. With "inside: true" it runs in the pipeline's process, and a crash
 * ends the pipeline.
 *
 * Structures begin with their size, so that either side may be newer. A plug-in must not
 * keep pointers after a call, except host. Calls for one state never overlap. A function
 * that fails returns a value other than 0 and writes a text to error.
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
	YOCTUNE_TENSOR = 2,  /* dense, row-major */
	YOCTUNE_RESULTS = 3, /* a JSON array in UTF-8, without a zero at its end */
};

enum { /* yoctune_port.format */
	YOCTUNE_NV12 = 0, YOCTUNE_I420 = 1, YOCTUNE_YUYV = 2, YOCTUNE_UYVY = 3,
	YOCTUNE_RGB = 4, YOCTUNE_BGR = 5, YOCTUNE_GREY = 6,
};

enum { /* yoctune_port.dtype */
	YOCTUNE_F32 = 0, YOCTUNE_F16 = 1, YOCTUNE_BF16 = 2, YOCTUNE_I8 = 3,
	YOCTUNE_U8 = 4, YOCTUNE_I32 = 5, YOCTUNE_I64 = 6, YOCTUNE_BOOL = 7, /* one byte */
};

enum { /* yoctune_stage_flags */
	YOCTUNE_ANY_DTYPE = 1, /* the stage reads yoctune_port.dtype; others get float tensors only */
};

/* The input or output of a stage. */
typedef struct yoctune_port {
	uint32_t kind;
	uint32_t format, width, height; /* of frames */
	uint32_t rank;                  /* of tensors, at most 8 */
	uint32_t dtype;                 /* of tensors; 0 without YOCTUNE_ANY_DTYPE */
	int64_t shape[8];
	uint64_t bytes; /* size; for results the maximum */
} yoctune_port;

/* The input and output of one call of run. */
typedef struct yoctune_item {
	uint32_t size; /* of this structure */
	uint32_t reserved;
	uint64_t frame;     /* number; gaps are dropped frames */
	int64_t capture_ns; /* CLOCK_MONOTONIC */
	const void *in;     /* input as described by the port; read-only */
	void *out;
	uint64_t out_bytes; /* set by the stage, for results: bytes of the JSON */
	uint64_t in_bytes;  /* actual size of in */
	int32_t in_fd;      /* in as a DMA buffer, for other drivers; -1: none */
	uint32_t reserved2;
} yoctune_item;

/* Functions of the host, valid until close. */
typedef struct yoctune_host {
	uint32_t size, abi;
	void *context;
	/* Sets a metric, which `yoctuned pipeline top` and Prometheus show: adds value to a
	 * counter, or sets a gauge. Names consist of lower-case letters, digits and
	 * underscores. It may be called only during run. */
	void (*metric)(void *context, const char *name, double value, int counter);
	/* For traces, since 0.2: a host of 0.1 ends before these, see YOCTUNE_HOST_TRACES. They may be
	 * called only during run, by its thread; 64 events of a run are kept. */
	int64_t (*now)(void *context);                                      /* ns, CLOCK_MONOTONIC */
	void (*event)(void *context, const char *name, double value);       /* a value at this moment */
	void (*span)(void *context, const char *name, int64_t start_ns, int64_t end_ns);
} yoctune_host;

#define YOCTUNE_HOST_TRACES(host) ((host)->size >= offsetof(yoctune_host, span) + sizeof((host)->span))

/* YOCTUNE_EVENT(host, "faces", 3) records a value at this moment. */
#define YOCTUNE_EVENT(h, name, value)                                               \
	do {                                                                        \
		const yoctune_host *yoctune_h = (h);                                \
		if (YOCTUNE_HOST_TRACES(yoctune_h))                                 \
			yoctune_h->event(yoctune_h->context, (name), (double)(value)); \
	} while (0)

/* A span that has begun. */
typedef struct yoctune_scope {
	const yoctune_host *host;
	const char *name;
	int64_t start_ns;
} yoctune_scope;

static inline yoctune_scope yoctune_scope_begin(const yoctune_host *host, const char *name)
{
	yoctune_scope s = { host, name, 0 };
	if (YOCTUNE_HOST_TRACES(host))
		s.start_ns = host->now(host->context);
	return s;
}

static inline void yoctune_scope_end(yoctune_scope *s)
{
	if (YOCTUNE_HOST_TRACES(s->host))
		s->host->span(s->host->context, s->name, s->start_ns, s->host->now(s->host->context));
}

/* YOCTUNE_SCOPE(host, "sum"); records the time from here to the end of the block. */
#if defined(__GNUC__)
#define YOCTUNE_JOIN2(a, b) a##b
#define YOCTUNE_JOIN(a, b) YOCTUNE_JOIN2(a, b)
#define YOCTUNE_SCOPE(host, name)                                                             \
	__attribute__((cleanup(yoctune_scope_end), unused)) yoctune_scope YOCTUNE_JOIN(       \
		yoctune_scope_, __LINE__) = yoctune_scope_begin((host), (name))
#endif

typedef struct yoctune_stage {
	uint32_t size, abi; /* sizeof(yoctune_stage), YOCTUNE_STAGE_ABI */
	const char *name;
	/* options is the text in the plan, "" if there is none. */
	int (*open)(void **state, const yoctune_port *in, const yoctune_port *out, const char *options,
		    const yoctune_host *host, char *error, size_t room);
	int (*run)(void *state, yoctune_item *item, char *error, size_t room);
	void (*close)(void *state);
} yoctune_stage;

/* Returns the stage, or NULL if it does not support the host's ABI version. */
const yoctune_stage *yoctune_stage_entry(uint32_t host_abi);

/* What the stage supports, for example YOCTUNE_ANY_DTYPE. A plug-in need not define it. */
extern const uint32_t yoctune_stage_flags;

#ifdef __cplusplus
}
#endif
#endif
