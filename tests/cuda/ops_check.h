// SPDX-License-Identifier: Apache-2.0
//
// ops_check.h - part of core_check.cc: the launches of image.cu, boxes.cu, rows.cu,
// reduce.cu and gemm.cu, thread by thread, against the CPU backend. Every range ends
// with the last byte of its memory, every destination is full of NaN before.
#ifndef YT_OPS_CHECK_H
#define YT_OPS_CHECK_H

#include "check.h"
#include "ops.h"
#include "yt_chain.h"
#include "yt_check.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

namespace {

// A command with memory of its own for each operand, twice for the destination.
struct trial {
	yt_cmd c = {};
	std::vector<exact<uint8_t>> mem;
	uint8_t *want[YT_MAX_OPERANDS] = {}, *got[YT_MAX_OPERANDS] = {};

	uint8_t *room(uint64_t n, uint32_t align)
	{
		mem.emplace_back((size_t)n, (size_t)align * below(16 / align));
		return mem.back().p;
	}
	void dst(uint64_t n, uint32_t align)
	{
		c.dst.len = n;
		want[0] = room(n, align);
		got[0] = room(n, align);
		memset(want[0], 0xff, n);
		memset(got[0], 0xff, n);
	}
	uint8_t *src(uint32_t i, uint64_t n, uint32_t align)
	{
		uint8_t *p = room(n, align);

		c.src[i].len = n;
		want[1 + i] = got[1 + i] = p;
		for (uint64_t b = 0; b < n; b++)
			p[b] = (uint8_t)next();
		return p;
	}
	// Floats of a type, mostly of moderate size, some equal.
	uint8_t *numbers(uint32_t i, uint64_t n, uint32_t type)
	{
		uint8_t *p = src(i, n * yt_type_bytes(type), yt_type_bytes(type));

		for (uint64_t k = 0; k < n; k++)
			yt_store(type, p, k, below(50) == 0 ? yt_from_bits(next() << 1) : ((float)below(4000) - 2000) / (float)(1 + below(200)));
		return p;
	}
	// Runs the CPU backend, then the kernel, and compares.
	bool same(const char *what, yt_cpu_scratch *scratch, const std::function<void(uint8_t *const p[])> &kernel, bool to_the_bit = true)
	{
		yt_error err;

		if (yt_check_cmd(&c, 0, &err) != YT_OK || yt_cpu_run(&c, 0, want, nullptr, scratch, &err) != YT_OK) {
			fail(err.msg);
			return false;
		}
		kernel(got);
		if (to_the_bit && memcmp(want[0], got[0], c.dst.len) != 0) {
			fail(what);
			return false;
		}
		return true;
	}
};

uint32_t order(bool backwards, uint32_t i, uint32_t n)
{
	return backwards ? n - 1 - i : i;
}

void random_frame(trial &t, uint32_t format, uint32_t width, uint32_t height, uint32_t pitch[3])
{
	uint32_t cw = (width + 1) / 2, ch = (height + 1) / 2;
	uint32_t row[3] = {format == YT_FORMAT_YUYV || format == YT_FORMAT_UYVY ? 4 * cw
			   : format == YT_FORMAT_RGB || format == YT_FORMAT_BGR ? 3 * width
										 : width,
			   format == YT_FORMAT_NV12 ? 2 * cw : cw, cw};

	for (uint32_t i = 0; i < yt_format_planes(format); i++) {
		pitch[i] = row[i] + (below(2) ? below(9) : 0);
		t.src(i, yt_plane_bytes(pitch[i], row[i], i == 0 ? height : ch), 1);
	}
}

void emulate_tensor(yt_cpu_scratch *scratch, bool backwards)
{
	trial t;
	yt_preprocess &p = t.c.pre;

	t.c.op = YT_OP_PREPROCESS;
	p.width = 1 + below(60);
	p.height = 1 + below(40);
	p.out_w = 1 + below(50);
	p.out_h = 1 + below(30);
	p.format = below(7);
	p.fit = below(2);
	p.color = below(3);
	p.chroma = below(2);
	p.matrix = below(3);
	p.pad = below(256);
	p.type = (uint8_t)below(5);
	p.layout = (uint8_t)below(2);
	for (int k = 0; k < 3; k++) {
		p.mean[k] = (float)below(100) / 100;
		p.std[k] = (float)(1 + below(100)) / (below(2) ? 100.0f : 25500.0f);
	}
	if (below(2)) {
		p.crop_x = below(p.width);
		p.crop_y = below(p.height);
		p.crop_w = 1 + below(p.width - p.crop_x);
		p.crop_h = 1 + below(p.height - p.crop_y);
	}
	random_frame(t, p.format, p.width, p.height, p.pitch);
	t.dst((uint64_t)yt_type_bytes(p.type) * (p.color == YT_COLOR_GRAY ? 1 : 3) * p.out_w * p.out_h, yt_type_bytes(p.type));
	t.same("tensor kernel: differs from the CPU backend", scratch, [&](uint8_t *const q[]) {
		yt_pre_plan plan = yt_plan_preprocess(&p);
		yt_planes in = {q[1], q[2], q[3]};
		uint32_t w = (plan.out_w + 127) / 128 * 32, h = (plan.out_h + 7) / 8 * 8;

		for (uint32_t i = 0; i < w * h; i++) {
			uint32_t id = order(backwards, i, w * h), x = 4 * (id % w), y = id / w;

			if (x < plan.out_w && y < plan.out_h)
				yt_tensor_body(plan, in, q[0], x, y, yt_tensor_wide(plan, q[0]));
		}
	});
}

void random_boxes(uint8_t *p, uint32_t count, uint32_t room)
{
	yt_boxes *head = (yt_boxes *)p;
	yt_box *box = (yt_box *)(head + 1);

	memset(p, 0, YT_BOXES_BYTES(room));
	head->count = count;
	for (uint32_t i = 0; i < count && i < room; i++) {
		float x = (float)below(80) - 10, y = (float)below(60) - 10;

		box[i] = {x, y, x + (float)below(400) / 10, y + (float)below(400) / 10, (float)below(20) / 20, (int32_t)below(3), (int32_t)i, 0};
		if (below(40) == 0)
			(&box[i].x0)[below(5)] = yt_from_bits(below(2) ? 0x7fc00000u : 0x7f800000u | next() << 31); // NaN, or an infinity
	}
}

void emulate_roi(yt_cpu_scratch *scratch)
{
	trial t;
	yt_roi &r = t.c.roi;

	t.c.op = YT_OP_ROI;
	r.width = 1 + below(60);
	r.height = 1 + below(40);
	r.out_w = 1 + below(20);
	r.out_h = 1 + below(20);
	r.format = (uint8_t)below(7);
	r.fit = (uint8_t)below(2);
	r.color = (uint8_t)below(3);
	r.chroma = (uint8_t)below(2);
	r.type = (uint8_t)below(5);
	r.layout = (uint8_t)below(2);
	r.pad = 99;
	r.max = 1 + below(6);
	for (int k = 0; k < 3; k++)
		r.std[k] = 0.01f;
	random_frame(t, r.format, r.width, r.height, r.pitch);
	uint32_t at = 1 + yt_format_planes(r.format);
	r.boxes.len = YT_BOXES_BYTES(r.max);
	t.want[at] = t.got[at] = t.room(r.boxes.len, 8);
	random_boxes(t.got[at], below(r.max + 2), r.max);
	t.dst(r.max * yt_roi_bytes(r), yt_type_bytes(r.type));
	t.same("roi kernel: differs from the CPU backend", scratch, [&](uint8_t *const q[]) {
		const yt_boxes *boxes = (const yt_boxes *)q[at];
		yt_planes in = {q[1], q[2], q[3]};

		for (uint32_t i = 0; i < r.max; i++) {
			uint8_t *tensor = q[0] + i * yt_roi_bytes(r);

			if (i >= boxes->count) {
				memset(tensor, 0, yt_roi_bytes(r)); // the kernel's loop over bytes
				continue;
			}
			yt_pre_plan plan = yt_plan_roi(&r, (const yt_box *)(boxes + 1) + i);
			for (uint32_t y = 0; y < r.out_h; y++)
				for (uint32_t x = 0; x < r.out_w; x += 4)
					yt_tensor_body(plan, in, tensor, x, y, yt_tensor_wide(plan, tensor));
		}
	});
}

void emulate_decode(yt_cpu_scratch *scratch, bool backwards)
{
	trial t;
	yt_decode &d = t.c.decode;

	t.c.op = YT_OP_DECODE;
	d.head = below(3);
	d.type = below(2);
	d.anchors = 1 + below(900);
	d.classes = 1 + below(6);
	d.max = 1 + below(below(2) ? 20 : 1000);
	d.batch = 1;
	d.threshold = (float)below(40) / 10 - 2;
	d.scale_x = d.scale_y = 1.5f;
	d.shift_x = d.shift_y = -1;
	d.limit_x = d.limit_y = below(2) ? 30 : 0;
	d.after = below(2) ? below(9) : 0;
	t.numbers(0, d.anchors * yt_decode_values(&d), d.type);
	t.dst(YT_BOXES_BYTES(d.max), 8);
	t.same("decode kernels: differ from the CPU backend", scratch, [&](uint8_t *const q[]) {
		std::vector<uint64_t> keys, chosen;
		uint64_t limit = 0;
		uint32_t want = d.max, digit;
		yt_boxes *out = (yt_boxes *)q[0];

		for (uint32_t i = 0; i < d.anchors; i++) {
			uint64_t key = yt_decode_key(d, q[1], order(backwards, i, d.anchors));

			if (key != 0)
				keys.push_back(key);
		}
		if (keys.size() > d.max)
			for (int shift = 56; shift >= 0; shift -= 8) {
				uint32_t histogram[256] = {};

				for (uint64_t key : keys)
					if (yt_select_digit(key, limit, (uint32_t)shift, &digit))
						histogram[digit]++;
				limit = yt_select_next(histogram, limit, (uint32_t)shift, &want);
			}
		for (uint64_t key : keys)
			if (key >= limit)
				chosen.push_back(key);
		*out = {};
		out->count = (uint32_t)chosen.size();
		out->found = (uint32_t)keys.size();
		if (chosen.size() > d.max)
			fail("decode kernels: chose too many");
		else
			for (uint32_t i = 0; i < chosen.size(); i++)
				yt_decode_write(d, q[1], chosen.data(), out->count, i, (yt_box *)(out + 1));
	});
}

void emulate_gather(yt_cpu_scratch *scratch, bool backwards)
{
	trial t;
	yt_gather &g = t.c.gather;

	t.c.op = YT_OP_GATHER;
	g.head = below(3);
	g.type = below(2);
	g.anchors = 1 + below(60);
	g.values = 1 + below(60);
	g.first = below(g.values);
	g.count = 1 + below(g.values - g.first);
	g.max = 1 + below(40);
	t.numbers(0, (uint64_t)g.anchors * g.values, g.type);
	random_boxes(t.src(1, YT_BOXES_BYTES(g.max), 8), below(g.max + 3), g.max);
	t.dst(4ull * g.max * g.count, 4);
	t.same("gather kernel: differs from the CPU backend", scratch, [&](uint8_t *const q[]) {
		for (uint32_t i = 0; i < g.max * g.count; i++)
			yt_gather_body(&g, q[1], (const yt_boxes *)q[2], (float *)q[0], order(backwards, i, g.max * g.count));
	});
}

void emulate_masks(yt_cpu_scratch *scratch, bool backwards)
{
	trial t;
	yt_masks &m = t.c.masks;
	uint32_t at = 0;

	t.c.op = YT_OP_MASKS;
	m.type = below(2);
	m.values = 1 + below(9);
	m.width = 1 + below(24);
	m.height = 1 + below(24);
	m.rows = 1 + below(5);
	m.count = 1 + below(5);
	m.scale_x = m.scale_y = 0.25f;
	m.shift_x = m.shift_y = -0.5f;
	t.numbers(0, (uint64_t)m.values * m.width * m.height, m.type);
	t.numbers(1, (uint64_t)m.rows * m.values, YT_F32);
	yt_grid *g = (yt_grid *)t.src(2, m.count * sizeof(yt_grid), 4);
	for (uint32_t i = 0; i < m.count; i++) {
		g[i] = {(int32_t)below(60) - 10, (int32_t)below(60) - 10, 1 + below(3), below(40), below(40), below(m.rows + 1), at, 0};
		at += 4 * (uint32_t)yt_grid_words(&g[i]) + 4 * below(3);
	}
	t.dst(at < 4 ? 4 : at - below(2) * 4 + 4, 4);
	t.same("masks kernel: differs from the CPU backend", scratch, [&](uint8_t *const q[]) {
		memset(q[0], 0, t.c.dst.len);
		for (uint32_t i = 0; i < m.count; i++) {
			const yt_grid *grid = (const yt_grid *)q[3] + order(backwards, i, m.count);

			if (!yt_grid_fits(&m, grid, t.c.dst.len))
				continue;
			for (uint64_t w = 0; w < yt_grid_words(grid); w++)
				((uint32_t *)(q[0] + grid->at))[w] = yt_mask_word(&m, q[1], (const float *)q[2], grid, w);
		}
	});
}

void emulate_nms(yt_cpu_scratch *scratch)
{
	trial t;
	yt_nms &n = t.c.nms;

	t.c.op = YT_OP_NMS;
	n.flags = below(2);
	n.in_max = 1 + below(300);
	n.max = 1 + below(below(2) ? 10 : 300);
	n.batch = 1;
	n.iou = (float)below(11) / 10;
	random_boxes(t.src(0, YT_BOXES_BYTES(n.in_max), 8), below(n.in_max + 3), n.in_max);
	t.dst(YT_BOXES_BYTES(n.max), 8);
	t.same("nms kernels: differ from the CPU backend", scratch, [&](uint8_t *const q[]) {
		const yt_boxes *in = (const yt_boxes *)q[1];
		yt_boxes *out = (yt_boxes *)q[0];
		uint32_t count = in->count < n.in_max ? in->count : n.in_max, words = (n.in_max + 63) / 64, found = 0;
		std::vector<yt_box> sorted(count);
		std::vector<uint64_t> mask((size_t)count * words, ~0ull), dropped(words);

		for (uint32_t i = 0; i < count; i++)
			yt_nms_order((const yt_box *)(in + 1), count, i, sorted.data());
		for (uint32_t c = 0; 64 * c < count; c++) {
			yt_box cols[64] = {};

			for (uint32_t j = 0; j < 64 && 64 * c + j < count; j++)
				cols[j] = sorted[64 * c + j];
			for (uint32_t row = 0; row < count && row / 64 <= c; row++)
				mask[(size_t)row * words + c] = yt_nms_word(n, cols, c, count, sorted[row], row);
		}
		for (uint32_t w = 0; 64 * w < count; w++) {
			uint32_t boxes = count - 64 * w < 64 ? count - 64 * w : 64;
			uint64_t among[64] = {};

			for (uint32_t j = 0; j < boxes; j++)
				among[j] = mask[(size_t)(64 * w + j) * words + w];
			uint64_t keep = yt_nms_keep(dropped[w], among, boxes);
			for (uint32_t j = 0; j < boxes; j++) {
				uint32_t place = found + yt_popcount(keep & ((1ull << j) - 1));

				if ((keep >> j & 1) == 0)
					continue;
				if (place < n.max)
					((yt_box *)(out + 1))[place] = sorted[64 * w + j];
				for (uint32_t c = w + 1; 64 * c < count; c++)
					dropped[c] |= mask[(size_t)(64 * w + j) * words + c];
			}
			found += yt_popcount(keep);
		}
		*out = {};
		out->found = found;
		out->count = found < n.max ? found : n.max;
	});
}

template <typename V, typename F> V fold_lanes(V *lane, F f)
{
	for (uint32_t half = YT_ROW_LANES / 2; half > 0; half /= 2)
		for (uint32_t j = 0; j < half; j++)
			lane[j] = f(lane[j], lane[j + half]);
	return lane[0];
}

void emulate_rows(yt_cpu_scratch *scratch)
{
	trial t;
	yt_rows &r = t.c.rows;

	t.c.op = YT_OP_SOFTMAX + below(2);
	r.in = below(3);
	r.out = below(3);
	r.rows = 1 + below(4);
	r.cols = 1 + below(below(2) ? 12 : 700);
	r.stride = below(2) ? 0 : r.cols + below(4);
	r.k = 1 + below(r.cols < 32 ? r.cols : 32);
	uint64_t stride = r.stride != 0 ? r.stride : r.cols, n = (r.rows - 1) * stride + r.cols;
	t.numbers(0, n, r.in);
	if (t.c.op == YT_OP_SOFTMAX)
		t.dst(n * yt_type_bytes(r.out), yt_type_bytes(r.out));
	else
		t.dst(8ull * r.k * r.rows, 4);
	t.same("kernels of rows: differ from the CPU backend", scratch, [&](uint8_t *const q[]) {
		for (uint32_t row = 0; row < r.rows; row++) {
			uint64_t first = row * stride, keys[YT_ROW_LANES], most = ~0ull;
			float lane[YT_ROW_LANES];

			if (t.c.op == YT_OP_SOFTMAX) {
				for (uint32_t j = 0; j < YT_ROW_LANES; j++)
					lane[j] = yt_row_max(r.in, q[1], first, r.cols, j);
				float top = fold_lanes(lane, [](float a, float b) { return yt_reduce_max(a, b); });
				for (uint32_t j = 0; j < YT_ROW_LANES; j++)
					lane[j] = yt_row_sum(r.in, q[1], first, r.cols, top, j);
				float sum = fold_lanes(lane, [](float a, float b) { return a + b; });
				for (uint32_t j = 0; j < YT_ROW_LANES; j++)
					yt_row_softmax(r, q[1], q[0], first, top, sum, j);
				continue;
			}
			for (uint32_t i = 0; i < r.k; i++) {
				for (uint32_t j = 0; j < YT_ROW_LANES; j++)
					keys[j] = yt_row_best(r.in, q[1], first, r.cols, most, j);
				uint64_t best = fold_lanes(keys, [](uint64_t a, uint64_t b) { return a > b ? a : b; });
				uint32_t at = yt_rank_index(best);

				most = best - 1;
				((yt_ranked *)q[0])[row * r.k + i] = {yt_load(r.in, q[1], first + at), (int32_t)at};
			}
		}
	});
}

void emulate_convert(yt_cpu_scratch *scratch)
{
	trial t;
	yt_convert &v = t.c.convert;

	t.c.op = YT_OP_CONVERT;
	v.in = (uint8_t)below(6);
	v.out = (uint8_t)(v.in <= YT_BF16 ? below(6) : below(2) ? v.in : below(3));
	v.in_layout = (uint8_t)below(2);
	v.out_layout = (uint8_t)below(2);
	v.flags = below(3) == 0;
	v.n = 1 + below(3);
	v.c = 1 + below(20);
	v.h = 1 + below(6);
	v.w = 1 + below(9);
	v.scale = (float)(1 + below(100)) / 50;
	v.zero = (int32_t)below(300) - 150;
	uint64_t n = (uint64_t)v.n * v.c * v.h * v.w;
	if (v.in <= YT_BF16)
		t.numbers(0, n, v.in);
	else
		t.src(0, n * yt_type_bytes(v.in), yt_type_bytes(v.in));
	t.numbers(1, v.c, YT_F32);
	t.dst(n * yt_type_bytes(v.out), yt_type_bytes(v.out));
	t.same("convert kernel: differs from the CPU backend", scratch, [&](uint8_t *const q[]) {
		const float *scales = v.flags != 0 ? (const float *)q[2] : nullptr;

		for (uint64_t i = 0; i < n; i += 4)
			yt_convert_body(v, n, q[1], scales, q[0], i, yt_wide(v.in, q[1]) && yt_wide(v.out, q[0]));
	});
}

void emulate_gemm(yt_cpu_scratch *scratch)
{
	trial t;
	yt_gemm &g = t.c.gemm;

	t.c.op = YT_OP_GEMM;
	g.m = 1 + below(90);
	g.n = 1 + below(90);
	g.k = 1 + below(70);
	g.type = (uint8_t)below(3);
	g.out = (uint8_t)below(3);
	g.act = (uint8_t)below(4);
	g.flags = below(8);
	g.alpha = 0.5f;
	g.batch = below(3);
	uint32_t batch = g.batch != 0 ? g.batch : 1, gap = below(3);
	uint32_t ar = g.flags & YT_GEMM_TRANS_A ? g.k : g.m, ac = g.flags & YT_GEMM_TRANS_A ? g.m : g.k;
	uint32_t br = g.flags & YT_GEMM_TRANS_B ? g.n : g.k, bc = g.flags & YT_GEMM_TRANS_B ? g.k : g.n;
	g.lda = ac + gap;
	g.ldb = bc + gap;
	g.stride_a = (uint64_t)ar * g.lda;
	g.stride_b = (uint64_t)br * g.ldb;
	g.stride_c = (uint64_t)g.m * g.n;
	t.src(0, batch * g.stride_a * yt_type_bytes(g.type), yt_type_bytes(g.type));
	t.src(1, batch * g.stride_b * yt_type_bytes(g.type), yt_type_bytes(g.type));
	for (uint64_t i = 0; i < batch * g.stride_a; i++)
		yt_store(g.type, t.got[1], i, ((float)below(200) - 100) / 64);
	for (uint64_t i = 0; i < batch * g.stride_b; i++)
		yt_store(g.type, t.got[2], i, ((float)below(200) - 100) / 64);
	t.src(2, 4 * g.n, 4);
	for (uint64_t i = 0; i < g.n; i++)
		yt_store(YT_F32, t.got[3], i, (float)below(10));
	t.dst(batch * g.stride_c * yt_type_bytes(g.out), yt_type_bytes(g.out));
	if (!t.same(
		    "", scratch,
		    [&](uint8_t *const q[]) {
			    const uint32_t stage = YT_GEMM_STEP * (YT_GEMM_SIDE + 4);
			    alignas(16) float as[stage], bs[stage];

			    for (uint32_t p = 0; p < batch; p++)
				    for (uint32_t row0 = 0; row0 < g.m; row0 += YT_GEMM_SIDE)
					    for (uint32_t col0 = 0; col0 < g.n; col0 += YT_GEMM_SIDE) {
						    yt_gemm_view v = yt_gemm_product(g, q[1], q[2], (const float *)q[3], q[0], p);
						    float sum[YT_GEMM_THREADS][16] = {};

						    for (uint32_t k0 = 0; k0 < g.k; k0 += YT_GEMM_STEP) {
							    for (uint32_t i = 0; i < YT_GEMM_THREADS; i++)
								    yt_gemm_fetch(g, v, row0, col0, k0, i, as, bs);
							    for (uint32_t i = 0; i < YT_GEMM_THREADS; i++)
								    yt_gemm_step(i, as, bs, sum[i]);
						    }
						    for (uint32_t i = 0; i < YT_GEMM_THREADS; i++)
							    for (uint32_t e = 0; e < 16; e++)
								    yt_gemm_finish(g, v, row0 + i / 16 * 4 + e / 4, col0 + i % 16 * 4 + e % 4, sum[i][e],
										   0);
					    }
		    },
		    false))
		return;
	for (uint64_t i = 0; i < batch * g.stride_c; i++) {
		float want = yt_load(g.out, t.want[0], i), got = yt_load(g.out, t.got[0], i);

		if (!(fabsf(want - got) <= 1e-3f + fabsf(want) * (g.out == YT_F32 ? 1e-5f : g.out == YT_F16 ? 2e-3f : 1.6e-2f))) {
			fail("gemm kernel: differs from the CPU backend");
			return;
		}
	}
}

// For devices whose tensor cores do not support int8.
void emulate_gemm8(yt_cpu_scratch *scratch)
{
	trial t;
	yt_gemm &g = t.c.gemm;

	t.c.op = YT_OP_GEMM;
	g.m = 1 + below(90);
	g.n = 1 + below(90);
	g.k = 1 + below(70);
	g.type = YT_I8;
	g.out = below(2) ? (uint8_t)YT_I32 : (uint8_t)YT_F32;
	g.act = (uint8_t)below(2);
	g.flags = below(4);
	g.alpha = 1;
	t.src(0, (uint64_t)g.m * g.k, 1);
	t.src(1, (uint64_t)g.k * g.n, 1);
	t.numbers(2, g.n, YT_F32);
	if (below(2))
		t.c.src[2].len = 0;
	t.dst((uint64_t)g.m * g.n * 4, 4);
	t.same("gemm kernel of int8: differs from the CPU backend", scratch, [&](uint8_t *const q[]) {
		alignas(16) uint32_t as[YT_GEMM_WORDS * YT_GEMM_SIDE], bs[YT_GEMM_WORDS * YT_GEMM_SIDE];
		yt_gemm_view v = yt_gemm_product(g, q[1], q[2], t.c.src[2].len != 0 ? (const float *)q[3] : nullptr, q[0], 0);

		for (uint32_t row0 = 0; row0 < g.m; row0 += YT_GEMM_SIDE)
			for (uint32_t col0 = 0; col0 < g.n; col0 += YT_GEMM_SIDE) {
				int32_t sum[YT_GEMM_THREADS][16] = {};

				for (uint32_t k0 = 0; k0 < g.k; k0 += YT_GEMM_STEP) {
					for (uint32_t i = 0; i < YT_GEMM_THREADS; i++)
						yt_gemm_fetch8(g, v, row0, col0, k0, i, as, bs);
					for (uint32_t i = 0; i < YT_GEMM_THREADS; i++)
						yt_gemm_step8(i, as, bs, sum[i]);
				}
				for (uint32_t i = 0; i < YT_GEMM_THREADS; i++)
					for (uint32_t e = 0; e < 16; e++)
						yt_gemm_finish(g, v, row0 + i / 16 * 4 + e / 4, col0 + i % 16 * 4 + e % 4, 0, sum[i][e]);
			}
	});
}

void emulate_diff(yt_cpu_scratch *scratch)
{
	static const uint32_t blocks[] = {0, 4, 7, 32, 256};
	trial t;
	yt_diff &d = t.c.diff;

	t.c.op = YT_OP_DIFF;
	d.width = 1 + below(300);
	d.height = 1 + below(70);
	d.pitch[0] = d.width + below(4);
	d.threshold = below(256);
	d.block = blocks[below(5)];
	uint32_t w = d.block != 0 ? d.block : 128, h = d.block != 0 ? d.block : 32;
	uint32_t across = (d.width + w - 1) / w, down = (d.height + h - 1) / h;
	t.src(0, yt_plane_bytes(d.pitch[0], d.width, d.height), 1);
	t.src(1, (uint64_t)d.width * d.height, 1);
	t.dst(sizeof(yt_motion) + (d.block != 0 ? 4ull * across * down : 0), 8);
	t.same("diff kernel: differs from the CPU backend", scratch, [&](uint8_t *const q[]) {
		yt_motion *m = (yt_motion *)q[0];

		*m = {};
		for (uint32_t tile = 0; tile < across * down; tile++) {
			uint32_t sum = 0;

			for (uint32_t i = 0; i < 256; i++) {
				yt_seen s = yt_diff_body(d, q[1], q[2], tile % across * w, tile / across * h, w, h, i, 256);

				sum += s.sum;
				m->changed += s.changed;
				m->peak = s.peak > m->peak ? s.peak : m->peak;
			}
			m->sum += sum;
			if (d.block != 0)
				((uint32_t *)(m + 1))[tile] = sum;
		}
	});
}

void emulate_stats(yt_cpu_scratch *scratch, bool backwards)
{
	trial t;
	yt_plane_stats &s = t.c.stats;
	uint32_t pitch[3];

	t.c.op = YT_OP_STATS;
	s.format = below(7);
	s.width = below(20) == 0 ? 2040 + below(20) : 1 + below(300);
	s.height = 1 + below(80);
	s.low = below(256);
	s.high = below(256);
	random_frame(t, s.format, s.width, s.height, pitch);
	s.pitch = pitch[0];
	t.dst(sizeof(yt_stats), 8);
	t.same("stats kernel: differs from the CPU backend", scratch, [&](uint8_t *const q[]) {
		yt_stats *m = (yt_stats *)q[0];
		uint32_t across = (s.width + 127) / 128, tiles = across * ((s.height + 31) / 32);

		*m = {};
		for (uint32_t tile = 0; tile < tiles; tile++) {
			yt_pixels sum = {};

			for (uint32_t i = 0; i < 256; i++)
				yt_add_pixels(sum, yt_stats_body(s, q[1], tile % across * 128, tile / across * 32, 128, 32, order(backwards, i, 256), 256));
			m->sum += sum.sum;
			m->low += sum.low;
			m->high += sum.high;
			m->laplace += sum.laplace;
			m->squares += (uint64_t)sum.squares_high << 32 | sum.squares_low;
		}
	});
}

// Tensors so large that the CPU backend writes them past the cache: the bits are those
// of the plain loops, whether rows fill whole lines or not.
void large_tensors(yt_cpu_scratch *scratch)
{
	static const uint32_t widths[] = {448, 440};

	for (uint32_t w : widths)
		for (uint32_t fit = 0; fit < 2; fit++) {
			yt_preprocess p = {};
			exact<uint8_t> frame(200 * 120 * 3 / 2, 0);

			for (uint32_t i = 0; i < 200 * 120 * 3 / 2; i++)
				frame.p[i] = (uint8_t)next();
			p.format = YT_FORMAT_NV12;
			p.fit = fit;
			p.chroma = below(2);
			p.width = 200;
			p.height = 120;
			p.out_w = p.out_h = w;
			p.std[0] = p.std[1] = p.std[2] = 0.25f;
			yt_pre_plan plan = yt_plan_preprocess(&p);
			const uint8_t *in[3] = {frame.p, frame.p + 200 * 120, nullptr};
			size_t bytes = (size_t)12 * w * w;
			void *room[2] = {aligned_alloc(YT_ALIGN_MIN, bytes), aligned_alloc(YT_ALIGN_MIN, bytes)};
			for (int plain = 0; plain < 2; plain++) {
				memset(room[plain], 0xff, bytes);
				scratch->plain = plain;
				if (yt_cpu_preprocess(&plan, in, room[plain], scratch) != 0)
					fail("no memory");
			}
			if (memcmp(room[0], room[1], bytes) != 0)
				fail("preprocess: vectors differ from the plain loops");
			free(room[0]);
			free(room[1]);
		}
}

// Random chain images: each is refused, or runs within its ranges.
void hostile_chains(int rounds)
{
	int ran = 0;

	for (int round = 0; round < rounds; round++) {
		struct {
			yt_chain head;
			yt_chain_step step[6];
		} image = {};
		yt_chain *chain;
		yt_error err;
		trial t;
		yt_launch &l = t.c.launch;
		uint64_t n = below(1200);

		image.head = {YT_CHAIN_MAGIC, (uint16_t)(1 + below(6)), (uint8_t)below(3), (uint8_t)below(5), (uint8_t)below(3),
			      {(uint8_t)(1 + below(2)), (uint8_t)(1 + below(2))}, (uint8_t)below(3)};
		for (yt_chain_step &s : image.step) {
			s.op = (uint8_t)(&s == image.step ? 0 : below(YT_CHAIN_LAST + 1));
			s.to = (uint8_t)below(3);
			s.x = (uint8_t)(s.op != 0 && below(4) == 0 ? YT_CHAIN_NUMBER : below(3));
			s.y = (uint8_t)(below(3) == 0 ? YT_CHAIN_NUMBER : below(3));
			s.number = (float)below(100) / 8 - 6;
		}
		size_t bytes = sizeof image.head + image.head.steps * sizeof image.step[0];
		if (below(8) == 0) // any value
			((uint8_t *)&image)[below((uint32_t)bytes)] = (uint8_t)next();
		if (below(20) == 0)
			bytes = below((uint32_t)sizeof image);
		if (yt_cpu_chain_load(&image, bytes, &chain, &err) != YT_OK)
			continue;
		t.c.op = YT_OP_LAUNCH;
		l.kernel = 1;
		l.grid[0] = l.grid[1] = l.grid[2] = l.block[0] = l.block[1] = l.block[2] = 1;
		l.ranges = (uint16_t)(2 + chain->operands);
		l.params = 3;
		l.param[0] = n;
		l.param[1] = 1 + below(9);
		l.param[2] = 1 + below(5);
		t.numbers(0, n, chain->in);
		for (uint32_t i = 0; i < chain->operands; i++)
			t.numbers(1 + i, chain->kind[i] == YT_CHAIN_CHANNEL ? l.param[2] : n, chain->kind[i] == YT_CHAIN_CHANNEL ? (uint32_t)YT_F32 : chain->in);
		t.dst(n * yt_type_bytes(chain->out), yt_type_bytes(chain->out));
		t.want[YT_CPU_KERNEL] = (uint8_t *)chain;
		if (yt_cpu_chain_check(chain, &t.c, 0, &err) != YT_OK)
			fail(err.msg);
		else
			yt_cpu_chain(chain, &t.c, t.want);
		l.param[below(3)] = 1ull << (32 + below(31));
		bool by_channel = (chain->operands > 0 && chain->kind[0] == YT_CHAIN_CHANNEL) || (chain->operands > 1 && chain->kind[1] == YT_CHAIN_CHANNEL);
		if (l.param[0] != n || (l.param[2] > 9 && by_channel)) {
			if (yt_cpu_chain_check(chain, &t.c, 0, &err) == YT_OK)
				fail("a chain outside its ranges was accepted");
		}
		free(chain);
		ran++;
	}
	printf("chains: %d of %d images ran\n", ran, rounds);
	if (ran < rounds / 50 || ran == rounds)
		fail("the random chains are one-sided");
}

// Frames of many sizes and formats as one launch: the table, with the grid of the first.
void emulate_batch(yt_cpu_scratch *scratch)
{
	std::vector<trial> frames(2 + below(YT_BATCH_FRAMES - 1));
	static const uint8_t types[] = {YT_F32, YT_F16, YT_BF16, YT_I8, YT_U8};
	uint32_t w = 1 + below(40), h = 1 + below(20), color = below(3);
	uint8_t type = types[below(5)], layout = (uint8_t)below(2);
	yt_batch b = {};

	for (uint32_t i = 0; i < frames.size(); i++) {
		trial &t = frames[i];
		yt_preprocess &p = t.c.pre;
		yt_error err;

		t.c.op = YT_OP_PREPROCESS;
		p.format = below(7);
		p.width = 1 + below(60);
		p.height = 1 + below(40);
		p.fit = below(2);
		p.color = color == YT_COLOR_GRAY ? color : below(2);
		p.chroma = below(2);
		p.matrix = below(3);
		p.pad = below(256);
		p.out_w = w;
		p.out_h = h;
		p.type = type;
		p.layout = layout;
		p.std[0] = p.std[1] = p.std[2] = type >= YT_I8 ? 0.01f : 0.5f;
		uint32_t cw = (p.width + 1) / 2, ch = (p.height + 1) / 2;
		t.src(0, (uint64_t)(p.format >= YT_FORMAT_RGB && p.format <= YT_FORMAT_BGR ? 3 * p.width
				    : p.format == YT_FORMAT_YUYV || p.format == YT_FORMAT_UYVY ? 4 * cw
												: p.width) * p.height, 1);
		if (p.format <= YT_FORMAT_I420)
			t.src(1, (uint64_t)(p.format == YT_FORMAT_NV12 ? 2 : 1) * cw * ch, 1);
		if (p.format == YT_FORMAT_I420)
			t.src(2, (uint64_t)cw * ch, 1);
		t.dst((uint64_t)w * h * (color == YT_COLOR_GRAY ? 1 : 3) * yt_type_bytes(type), yt_type_bytes(type));
		if (yt_check_cmd(&t.c, 0, &err) != YT_OK || yt_cpu_run(&t.c, 0, t.want, nullptr, scratch, &err) != YT_OK) {
			fail(err.msg);
			return;
		}
		b.plan[i] = yt_plan_preprocess(&p);
		b.in[i] = {t.got[1], t.got[2], t.got[3]};
		b.out[i] = t.got[0];
	}
	for (uint32_t z = 0; z < frames.size(); z++)
		for (uint32_t y = 0; y < (h + 7) / 8 * 8; y++)
			for (uint32_t x = 0; x < (w + 127) / 128 * 128; x += 4)
				if (x < b.plan[z].out_w && y < b.plan[z].out_h)
					yt_tensor_body(b.plan[z], b.in[z], b.out[z], x, y, yt_tensor_wide(b.plan[z], b.out[z]));
	for (const trial &t : frames)
		if (memcmp(t.want[0], t.got[0], t.c.dst.len) != 0) {
			fail("batch kernel: differs from the CPU backend, frame by frame");
			return;
		}
}

void emulate_operations(int rounds)
{
	yt_cpu_scratch scratch = {};

	for (int i = 0; i < rounds; i++) {
		bool backwards = i % 2 != 0;

		scratch.plain = i / 2 % 2; // with and without vectors
		emulate_tensor(&scratch, backwards);
		emulate_batch(&scratch);
		emulate_roi(&scratch);
		emulate_decode(&scratch, backwards);
		emulate_nms(&scratch);
		emulate_gather(&scratch, backwards);
		emulate_masks(&scratch, backwards);
		emulate_rows(&scratch);
		emulate_convert(&scratch);
		emulate_diff(&scratch);
		emulate_stats(&scratch, backwards);
		if (i % 4 == 0) {
			emulate_gemm(&scratch);
			emulate_gemm8(&scratch);
		}
	}
	large_tensors(&scratch);
	hostile_chains(10 * rounds);
	free(scratch.mem);
}

} // namespace

#endif // YT_OPS_CHECK_H
