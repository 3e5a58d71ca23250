// SPDX-License-Identifier: Apache-2.0
//
// Runs the C of the core under the sanitizers (tests/cuda/asan.sh):
//
//   hostile    the CPU backend with random, mostly invalid command lists: each is
//              refused or runs, and no access is outside a buffer
//   emulation  the bodies of the CUDA kernels, thread by thread, on buffers that
//              end with their last byte: their results must equal the CPU
//              backend's bit for bit, in two orders of threads, and with
//              unaligned pointers
//
//   streams    queued streams, events and injected faults from several threads; the same program built with ThreadSanitizer runs
//              this part alone
//   faults     random fault specifications, complete and truncated
//
//   ops        emulation of the operations of ops.h
//
//   core_check [SEED] [ROUNDS] [streams]
#include "bodies.h"
#include "check.h"
#include "yt_faults.h"
#include "yt_table.h"

#include <cinttypes>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "yt_cpu.h"
}
#include "ops_check.h"

namespace {

// A number that is plausible half of the time and otherwise an edge case.
uint64_t hostile(uint64_t plausible)
{
	static const uint64_t edges[] = {0, 1, 2, 3, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 1ull << 62, ~0ull, ~0ull - 3};

	return below(4) != 0 ? below((uint32_t)plausible + 2) : edges[below(sizeof edges / sizeof edges[0])];
}

yt_status open_stream(const yt_api &api, yt_device *dev, yt_stream **out, yt_error *err)
{
	yt_stream_options o = {};

	o.size = sizeof o;
	return api.stream_open(dev, &o, out, err);
}

void hostile_lists(int rounds)
{
	yt_api api;
	yt_error err;
	yt_device *dev;
	yt_stream *stream;
	uint64_t event;
	uint64_t ids[6], sizes[6];
	int ran = 0, refused = 0;

	if (yt_cpu_get_api(YT_ABI_MAJOR, &api, sizeof api, &err) != YT_OK || api.device_open(0, nullptr, &dev, &err) != YT_OK ||
	    open_stream(api, dev, &stream, &err) != YT_OK || api.event_create(dev, &event, &err) != YT_OK) {
		fail(err.msg);
		return;
	}
	for (int i = 0; i < 6; i++) {
		yt_buffer b = {};

		b.size = sizeof b;
		if (api.buf_alloc(dev, YT_MEM_HOST, 1 + below(i % 2 ? 6000 : 300), 0, &b, &err) != YT_OK) {
			fail(err.msg);
			return;
		}
		memset(b.host, (int)below(256), b.bytes);
		ids[i] = b.id;
		sizes[i] = b.bytes;
	}
	if (api.buf_free(dev, ids[5], &err) != YT_OK) // a stale id, for below
		fail(err.msg);
	for (int round = 0; round < rounds; round++) {
		yt_cmd list[3];
		uint32_t n = 1 + below(3);

		memset(list, 0, sizeof list);
		for (uint32_t i = 0; i < n; i++) {
			yt_cmd &c = list[i];
			yt_range *ranges[] = {&c.dst, &c.src[0], &c.src[1], &c.src[2]};
			uint32_t side = 1 + below(40);

			c.op = (uint32_t)(below(20) == 0 ? hostile(8) : 1 + below(4));
			c.value = (uint32_t)hostile(c.op == YT_OP_REDUCE ? 2 : 255);
			c.event = below(2) ? event : hostile(9);
			for (yt_range *r : ranges) {
				uint32_t k = below(below(8) ? 5 : 6);

				// The backend cannot check host ranges, so never generate one.
				r->buf = below(20) == 0 ? hostile(9) | 1ull << 40 : ids[k];
				r->off = below(4) ? 0 : below(4) ? 4 * below(8) : hostile(64);
				// Mostly all there is, so that one byte too many is outside.
				r->len = below(8) ? sizes[k] - r->off : hostile(6000);
			}
			if (c.op == YT_OP_COPY && below(2))
				c.src[0].len = c.dst.len;
			yt_preprocess &p = c.pre;
			uint32_t *numbers[] = {&p.width, &p.height, &p.out_w, &p.out_h, &p.crop_x, &p.crop_y, &p.crop_w, &p.crop_h,
					       &p.pitch[0], &p.pitch[1], &p.pitch[2]};
			for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
				*numbers[k] = k < 4 ? 1 + below(side) : 0;
			if (below(2))
				for (int k = 4; k < 8; k++)
					*numbers[k] = below(p.width + 1);
			if (below(4) == 0)
				*numbers[8 + below(3)] = below(2 * side);
			if (below(5) == 0)
				*numbers[below(11)] = (uint32_t)hostile(40);
			p.format = below(2);
			p.fit = below(2);
			p.color = below(2);
			p.chroma = below(2);
			p.matrix = below(3);
			if (below(30) == 0)
				p.format = p.fit = (uint32_t)hostile(3);
			p.pad = below(256);
			for (int k = 0; k < 3; k++) {
				p.mean[k] = (float)below(100) / 50;
				p.std[k] = below(50) == 0 ? 0.0f : (float)(1 + below(100)) / 50;
			}
		}
		// The arguments of other operations: small numbers, some wild.
		for (uint32_t i = 0; i < n && below(3) == 0; i++) {
			list[i].op = YT_OP_LAUNCH + below(YT_OP_LAST - YT_OP_LAUNCH + 1);
			for (size_t k = 0; k < sizeof list[i].args; k += 4) {
				uint32_t word = below(10) == 0 ? (uint32_t)hostile(300) : below(k < 24 ? 6 : 2);

				memcpy(list[i].args + k, &word, sizeof word);
			}
		}
		if (api.submit(stream, list, n, &err) == YT_OK) {
			ran++;
		} else {
			refused++;
			if ((err.code != YT_E_INVALID && err.code != YT_E_NOT_SUPPORTED) || err.msg[0] == '\0' || strlen(err.msg) >= sizeof err.msg)
				fail("refused without a reason");
		}
	}
	for (int i = 0; i < 5; i++)
		if (api.buf_free(dev, ids[i], &err) != YT_OK)
			fail(err.msg);
	if (api.device_close(dev, &err) != YT_E_BUSY)
		fail("closed a device with a stream");
	if (api.event_destroy(dev, event, &err) != YT_OK || api.stream_destroy(stream, &err) != YT_OK ||
	    api.device_close(dev, &err) != YT_OK)
		fail(err.msg);
	printf("hostile: %d lists ran, %d were refused\n", ran, refused);
	if (ran < rounds / 50 || refused < rounds / 50)
		fail("the random lists are one-sided");
}

void emulate_copy()
{
	for (int round = 0; round < 300; round++) {
		uint64_t n = below(400), skew = below(16), threads = 1 + below(40);
		exact<uint8_t> src(n, skew), dst(n, skew);

		for (uint64_t i = 0; i < n; i++) {
			src.p[i] = (uint8_t)next();
			dst.p[i] = (uint8_t)~src.p[i];
		}
		for (uint64_t t = 0; t < threads; t++)
			yt_copy_body(dst.p, src.p, n, round % 2 ? t : threads - 1 - t, threads);
		if (n != 0 && memcmp(dst.p, src.p, n) != 0)
			fail("copy kernel: bytes differ");
	}
}

void emulate_preprocess(int rounds)
{
	yt_cpu_scratch scratch = {};

	for (int round = 0; round < rounds; round++) {
		yt_cmd c = {};
		yt_preprocess &p = c.pre;
		yt_error err;

		c.op = YT_OP_PREPROCESS;
		p.width = 1 + below(90);
		p.height = 1 + below(60);
		p.out_w = 1 + below(70);
		p.out_h = 1 + below(40);
		p.format = below(2);
		p.fit = below(2);
		p.color = below(2);
		p.chroma = below(2);
		p.matrix = below(3);
		p.pad = below(256);
		for (int k = 0; k < 3; k++) {
			p.mean[k] = (float)below(100) / 100;
			p.std[k] = (float)(1 + below(100)) / 100;
		}
		if (below(2)) {
			p.crop_x = below(p.width);
			p.crop_y = below(p.height);
			p.crop_w = 1 + below(p.width - p.crop_x);
			p.crop_h = 1 + below(p.height - p.crop_y);
		}
		uint32_t cw = (p.width + 1) / 2, ch = (p.height + 1) / 2;
		uint32_t rows[3] = {p.height, ch, ch}, row[3] = {p.width, p.format == YT_FORMAT_NV12 ? 2 * cw : cw, cw};
		std::vector<exact<uint8_t>> planes;

		for (int k = 0; k < 3; k++) {
			uint32_t pitch = row[k] + (below(2) ? below(9) : 0);

			p.pitch[k] = pitch;
			size_t bytes = (size_t)pitch * (rows[k] - 1) + row[k];
			planes.emplace_back(bytes, below(16));
			for (size_t i = 0; i < bytes; i++)
				planes[k].p[i] = (uint8_t)next();
			c.src[k].len = bytes;
		}
		size_t n = (size_t)3 * p.out_w * p.out_h, skew = 4 * below(4);
		exact<float> want(n, 0), got(n, skew);
		c.dst.len = 4 * n;
		memset(want.p, 0xff, 4 * n); // NaN
		memset(got.p, 0xff, 4 * n);
		if (yt_check_cmd(&c, 0, &err) != YT_OK) {
			fail(err.msg);
			continue;
		}
		yt_pre_plan plan = yt_plan_preprocess(&p);
		scratch.plain = round / 2 % 2; // with and without vectors
		const uint8_t *in[3] = {planes[0].p, planes[1].p, planes[2].p};
		if (yt_cpu_preprocess(&plan, in, want.p, &scratch) != 0) {
			fail("no memory");
			continue;
		}
		// The launch of preprocess.cu, with its overhanging threads.
		yt_planes view = {in[0], in[1], p.format == YT_FORMAT_NV12 ? nullptr : in[2]};
		bool wide = plan.out_w % 4 == 0 && yt_aligned16(got.p);
		uint32_t w = (plan.out_w + 127) / 128 * 32, h = (plan.out_h + 7) / 8 * 8;
		for (uint32_t t = 0; t < w * h; t++) {
			uint32_t id = round % 2 ? t : w * h - 1 - t, x = 4 * (id % w), y = id / w;

			if (x < plan.out_w && y < plan.out_h)
				yt_preprocess_body(plan, view, got.p, x, y, wide);
		}
		if (memcmp(want.p, got.p, 4 * n) != 0)
			fail("preprocess kernel: differs from the CPU backend");
		for (size_t i = 0; i < n; i++)
			if (want.p[i] != want.p[i]) {
				fail("preprocess: a value was not written");
				break;
			}
	}
	free(scratch.mem);
}

// The launches of reduce.cu: levels, blocks, threads, with every barrier a loop.
float emulate_reduce(uint32_t op, const float *x, uint64_t n, bool backwards)
{
	alignas(16) float lanes[YT_REDUCE_LANES];
	std::vector<float> level;

	for (;;) {
		uint64_t blocks = n == 0 ? 1 : (n + YT_REDUCE_CHUNK - 1) / YT_REDUCE_CHUNK;
		std::vector<float> out(blocks);
		auto each = [&](auto f) {
			for (uint32_t t = 0; t < YT_REDUCE_THREADS; t++)
				f(backwards ? YT_REDUCE_THREADS - 1 - t : t);
		};

		for (uint64_t b = 0; b < blocks; b++) {
			memset(lanes, 0xff, sizeof lanes);
			each([&](uint32_t t) { yt_reduce_gather(op, x, n, b, t, yt_aligned16(x), lanes); });
			for (uint32_t half = YT_REDUCE_LANES / 2; half > 0; half /= 2)
				each([&](uint32_t t) { yt_reduce_fold(op, half, t, lanes); });
			out[b] = lanes[0];
		}
		if (blocks == 1)
			return out[0];
		level.swap(out);
		x = level.data();
		n = blocks;
	}
}

void emulate_reductions()
{
	static const uint64_t lengths[] = {0, 1, 3, 4, 5, 1023, 1024, 1025, 16383, 16384, 16385, 40000, 16384 * 70 + 3};

	for (uint64_t n : lengths) {
		for (size_t skew = 0; skew < 16; skew += 4) {
			exact<float> x(n, skew);

			for (uint64_t i = 0; i < n; i++)
				x.p[i] = (float)(int32_t)next() / 65536;
			for (uint32_t op = 0; op < 3; op++) {
				float want = yt_cpu_reduce(op, x.p, n);

				for (bool backwards : {false, true}) {
					float got = emulate_reduce(op, x.p, n, backwards);

					if (memcmp(&want, &got, sizeof got) != 0)
						fail("reduce kernel: differs from the CPU backend");
				}
			}
		}
	}
}

// One thread on a shared device, with its own buffers, stream and event.
void live(const yt_api &api, yt_device *dev, uint64_t event, uint32_t self, int rounds)
{
	yt_stream_options opt = {};
	yt_stream *s = nullptr;
	yt_error err;

	state = self + 1;
	opt.size = sizeof opt;
	opt.flags = self % 2 ? YT_STREAM_QUEUED : 0;
	snprintf(opt.name, sizeof opt.name, "s%u", self);
	if (api.stream_open(dev, &opt, &s, &err) != YT_OK) {
		fail(err.msg);
		return;
	}
	for (int i = 0; i < rounds; i++) {
		yt_buffer a = {}, b = {};
		yt_cmd list[3] = {};
		uint32_t n = 1 + below(6000), value = below(256);
		uint64_t ns;

		a.size = b.size = sizeof a;
		if (api.buf_alloc(dev, YT_MEM_PINNED, n, 0, &a, &err) != YT_OK || api.buf_alloc(dev, YT_MEM_MAPPED, n, 0, &b, &err) != YT_OK) {
			fail(err.msg);
			return;
		}
		memset(a.host, (int)value, n);
		list[0].op = list[2].op = YT_OP_RECORD;
		list[0].event = list[2].event = event;
		list[1].op = YT_OP_COPY;
		list[1].dst = {b.id, 0, n};
		list[1].src[0] = {a.id, 0, n};
		if (api.submit(s, list, 3, &err) != YT_OK)
			fail(err.msg);
		yt_status rc = api.buf_free(dev, a.id, &err); // it may be in use
		if (rc != YT_OK && rc != YT_E_BUSY)
			fail(err.msg);
		if (api.stream_poll(s, 10000000000u, &err) != YT_OK || api.event_elapsed(dev, event, event, &ns, &err) != YT_OK)
			fail(err.msg);
		if (((uint8_t *)b.host)[n - 1] != value)
			fail("streams: the last byte is not what was written");
		if ((rc == YT_E_BUSY && api.buf_free(dev, a.id, &err) != YT_OK) || api.buf_free(dev, b.id, &err) != YT_OK)
			fail(err.msg);
	}
	if (api.stream_destroy(s, &err) != YT_OK)
		fail(err.msg);
}

void streams(int rounds)
{
	yt_api api;
	yt_error err;

	if (yt_cpu_get_api(YT_ABI_MAJOR, &api, sizeof api, &err) != YT_OK) {
		fail(err.msg);
		return;
	}
	for (const char *faults : {"", "slow:x1.5@n=3,launch:hang=1ms@p=0.01"}) {
		yt_open_options opt = {sizeof opt, 3, faults, 0, 0};
		yt_device *dev = nullptr;
		std::vector<uint64_t> events(5);
		std::vector<std::thread> threads;

		if (api.device_open(0, &opt, &dev, &err) != YT_OK) {
			fail(err.msg);
			return;
		}
		for (uint64_t &e : events)
			if (api.event_create(dev, &e, &err) != YT_OK)
				fail(err.msg);
		for (uint32_t i = 0; i < events.size(); i++)
			threads.emplace_back([&, i] { live(api, dev, events[i], i, rounds); });
		for (std::thread &t : threads)
			t.join();
		for (uint64_t e : events)
			if (api.event_destroy(dev, e, &err) != YT_OK)
				fail(err.msg);
		if (api.device_close(dev, &err) != YT_OK)
			fail(err.msg);
	}
	// A device that is lost with queued work releases everything.
	yt_open_options opt = {sizeof opt, 1, "launch:fault@n=3", 0, 0};
	yt_device *dev = nullptr;
	yt_stream *s = nullptr;
	yt_buffer b = {};
	yt_cmd c = {};

	b.size = sizeof b;
	if (api.device_open(0, &opt, &dev, &err) != YT_OK || open_stream(api, dev, &s, &err) != YT_OK ||
	    api.buf_alloc(dev, YT_MEM_HOST, 64, 0, &b, &err) != YT_OK) {
		fail(err.msg);
		return;
	}
	c.op = YT_OP_COPY;
	c.dst = {b.id, 0, 32};
	c.src[0] = {b.id, 32, 32};
	yt_status rc = YT_OK;
	for (int i = 0; i < 100 && rc == YT_OK; i++)
		rc = api.submit(s, &c, 1, &err);
	rc = api.stream_poll(s, 10000000000u, &err);
	if (rc != YT_E_KERNEL_FAULT || err.sticky != 1)
		fail("a fault is not sticky");
	for (int i = 0; i < 10000 && (rc = api.stream_destroy(s, &err)) == YT_E_BUSY; i++)
		std::this_thread::yield();
	if (rc != YT_OK || api.buf_free(dev, b.id, &err) != YT_OK || api.device_close(dev, &err) != YT_OK)
		fail(err.msg);
	printf("streams: threads, events and faults\n");
}

void fault_specs(int rounds)
{
	static const char *const parts[] = {"alloc:oom", "launch:hang=", "launch:fault", "copy:corrupt", "device:lost", "init:fail", "slow:x",
					    "@", ",", "n=", "bytes>", "p=", "t=", "kernel=", "stage=", "1", "0", "2.5", "1e-4", "9e99",
					    "ms", "s", "M", "G", "x", "-1", "nan", "kernel", "@@", ""};
	yt_faults f;
	yt_error err;
	int right = 0;

	for (int i = 0; i < rounds; i++) {
		std::string spec;

		for (uint32_t n = below(8); n > 0; n--)
			spec += parts[below(sizeof parts / sizeof parts[0])];
		std::unique_ptr<char[]> exactly(new char[spec.size() + 1]); // ends where the text does
		memcpy(exactly.get(), spec.c_str(), spec.size() + 1);
		if (yt_faults_parse(exactly.get(), 0, &f, &err) == YT_OK) {
			right++;
			for (uint32_t what = 1; what <= YT_FAULT_SLOW; what++)
				yt_faults_due(&f, what, 1 << 20, 1000000000u, "preprocess", "infer");
		} else if (err.code != YT_E_INVALID || err.msg[0] == '\0') {
			fail("faults: refused without a reason");
		}
	}
	printf("faults: %d of %d specifications were right\n", right, rounds);
}

} // namespace

int main(int argc, char **argv)
{
	state = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
	int rounds = argc > 2 ? atoi(argv[2]) : 20000;

	if (argc > 3 && strcmp(argv[3], "streams") == 0) {
		streams(rounds);
		return failures != 0;
	}
	hostile_lists(rounds);
	fault_specs(rounds);
	streams(rounds / 100);
	emulate_copy();
	emulate_preprocess(rounds / 20);
	emulate_reductions();
	emulate_operations(rounds / 40);
	if (failures != 0) {
		fprintf(stderr, "%d checks failed\n", (int)failures);
		return 1;
	}
	printf("emulation: all kernels equal the CPU backend bit for bit; products of floats to rounding\n");
	return 0;
}
