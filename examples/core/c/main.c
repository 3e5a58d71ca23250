/* SPDX-License-Identifier: Apache-2.0
 *
 * Demonstrates the compute core in C: ordered work on two streams, then the same work
 * as a graph. See ../README.md.
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
	yt_stream *copies = NULL, *kernels = NULL;
	yt_cmd upload[2] = {{0}}, work[3] = {{0}};
	const uint64_t second = 1000000000u;
	yt_graph *graph = NULL;
	uint64_t ready = 0;
	float *in, out;
	uint32_t i;

	/* Pinned host memory, which a GPU copies without staging, and device memory. */
	if (api.buf_alloc(dev, YT_MEM_PINNED, 4 * N, 0, &up, &err) != YT_OK ||
	    api.buf_alloc(dev, YT_MEM_DEVICE, 4 * N, 0, &values, &err) != YT_OK ||
	    api.buf_alloc(dev, YT_MEM_DEVICE, 4, 0, &sum, &err) != YT_OK ||
	    api.buf_alloc(dev, YT_MEM_PINNED, 4, 0, &down, &err) != YT_OK)
		return failed("allocate");
	if (api.stream_create(dev, 0, &copies, &err) != YT_OK || api.stream_create(dev, -1, &kernels, &err) != YT_OK ||
	    api.event_create(dev, &ready, &err) != YT_OK)
		return failed("create streams");

	in = up.host;
	for (i = 0; i < N; i++)
		in[i] = 1.0f;
	upload[0].op = YT_OP_COPY;
	upload[0].dst = all(&values);
	upload[0].src[0] = all(&up);
	upload[1].op = YT_OP_RECORD;
	upload[1].event = ready;
	work[0].op = YT_OP_WAIT;
	work[0].event = ready;
	work[1].op = YT_OP_REDUCE;
	work[1].value = YT_REDUCE_SUM;
	work[1].dst = all(&sum);
	work[1].src[0] = all(&values);
	work[2].op = YT_OP_COPY;
	work[2].dst = all(&down);
	work[2].src[0] = all(&sum);

	/* Each list is one call. The second stream starts when the first has copied. */
	if (api.submit(copies, upload, 2, &err) != YT_OK || api.submit(kernels, work, 3, &err) != YT_OK ||
	    api.stream_poll(kernels, 5 * second, &err) != YT_OK)
		return failed("first run");
	memcpy(&out, down.host, sizeof out);
	printf("sum of %u ones: %.0f\n", N, (double)out);

	/* The graph is checked once and replayed with other values. */
	if (api.graph_begin(kernels, &err) != YT_OK || api.submit(kernels, upload, 1, &err) != YT_OK ||
	    api.submit(kernels, work + 1, 2, &err) != YT_OK || api.graph_end(kernels, &graph, &err) != YT_OK)
		return failed("record graph");
	for (i = 0; i < N; i++)
		in[i] = 2.0f;
	if (api.graph_launch(graph, kernels, &err) != YT_OK || api.stream_poll(kernels, 5 * second, &err) != YT_OK)
		return failed("launch graph");
	memcpy(&out, down.host, sizeof out);
	printf("sum of %u twos, by the graph: %.0f\n", N, (double)out);

	if (api.graph_destroy(graph, &err) != YT_OK || api.event_destroy(dev, ready, &err) != YT_OK ||
	    api.stream_poll(copies, second, &err) != YT_OK || api.stream_destroy(copies, &err) != YT_OK ||
	    api.stream_destroy(kernels, &err) != YT_OK || api.buf_free(dev, up.id, &err) != YT_OK ||
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
	if (api.device_open(0, &dev, &err) != YT_OK)
		return failed("open device");
	printf("%s: %s\n", api.name, api.build_id);
	bad = run(dev);
	/* After a failure objects remain; closing the device reports them. */
	if (api.device_close(dev, &err) != YT_OK && !bad)
		return failed("close device");
	return bad;
}
