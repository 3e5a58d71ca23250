/* SPDX-License-Identifier: Apache-2.0
 *
 * Demonstrates the compute core in C: a list of work, timed by events and submitted again
 * with other values. See ../README.md.
 *
 *   main            the built-in CPU backend
 *   main LIBRARY    a backend library, such as libyoctune_cuda.so
 */
#include "yt_cpu.h"
#include "yt_load.h"

#include <stdio.h>
#include <string.h>

#define N 1000000u

static yt_api api;
static yt_error err;

static int failed(const char *what)
{
	fprintf(stderr, "error: %s: %s%s\n", what, err.msg, err.sticky ? " (the device is unusable until this process exits)" : "");
	return 1;
}

static yt_range all(const yt_buffer *b)
{
	yt_range r = {b->id, 0, b->bytes};

	return r;
}

static int run(yt_device *dev)
{
	yt_buffer values = {.size = sizeof values}, sum = {.size = sizeof sum}, up = {.size = sizeof up}, down = {.size = sizeof down};
	yt_stream_options options = {.size = sizeof options, .name = "example"};
	yt_stream *stream = NULL;
	const uint64_t second = 1000000000u;
	uint64_t start = 0, end = 0, ns = 0;
	yt_cmd work[5] = {{0}};
	float *in, out;
	uint32_t i, v;

	/* Pinned host memory, which a GPU copies without staging, and device memory. */
	if (api.buf_alloc(dev, YT_MEM_PINNED, 4 * N, 0, &up, &err) != YT_OK ||
	    api.buf_alloc(dev, YT_MEM_DEVICE, 4 * N, 0, &values, &err) != YT_OK ||
	    api.buf_alloc(dev, YT_MEM_DEVICE, 4, 0, &sum, &err) != YT_OK ||
	    api.buf_alloc(dev, YT_MEM_PINNED, 4, 0, &down, &err) != YT_OK)
		return failed("allocate");
	if (api.stream_open(dev, &options, &stream, &err) != YT_OK || api.event_create(dev, &start, &err) != YT_OK ||
	    api.event_create(dev, &end, &err) != YT_OK)
		return failed("create stream and events");

	work[0].op = work[4].op = YT_OP_RECORD;
	work[0].event = start;
	work[1].op = YT_OP_COPY;
	work[1].dst = all(&values);
	work[1].src[0] = all(&up);
	work[2].op = YT_OP_REDUCE;
	work[2].value = YT_REDUCE_SUM;
	work[2].dst = all(&sum);
	work[2].src[0] = all(&values);
	work[3].op = YT_OP_COPY;
	work[3].dst = all(&down);
	work[3].src[0] = all(&sum);
	work[4].event = end;

	/* A list is one call. It runs in order. */
	in = up.host;
	for (v = 1; v <= 2; v++) {
		for (i = 0; i < N; i++)
			in[i] = (float)v;
		if (api.submit(stream, work, 5, &err) != YT_OK || api.stream_poll(stream, 5 * second, &err) != YT_OK)
			return failed("run");
		memcpy(&out, down.host, sizeof out);
		printf("sum of %u times %u: %.0f\n", N, v, (double)out);
	}
	if (api.event_elapsed(dev, start, end, &ns, &err) != YT_OK)
		return failed("time");
	fprintf(stderr, "the device took %llu ns\n", (unsigned long long)ns);

	if (api.event_destroy(dev, start, &err) != YT_OK || api.event_destroy(dev, end, &err) != YT_OK ||
	    api.stream_destroy(stream, &err) != YT_OK || api.buf_free(dev, up.id, &err) != YT_OK ||
	    api.buf_free(dev, values.id, &err) != YT_OK || api.buf_free(dev, sum.id, &err) != YT_OK ||
	    api.buf_free(dev, down.id, &err) != YT_OK)
		return failed("release");
	return 0;
}

int main(int argc, char **argv)
{
	yt_device *dev = NULL;
	yt_status rc = argc > 1 ? yt_load(argv[1], &api, &err) : yt_cpu_get_api(YT_ABI_MAJOR, &api, sizeof api, &err);
	int bad;

	if (rc != YT_OK)
		return failed("open backend");
	if (api.device_open(0, NULL, &dev, &err) != YT_OK)
		return failed("open device");
	printf("%s: %s\n", api.name, api.build_id);
	bad = run(dev);
	/* After a failure objects remain; closing the device reports them. */
	if (api.device_close(dev, &err) != YT_OK && !bad)
		return failed("close device");
	return bad;
}
