/* SPDX-License-Identifier: Apache-2.0
 *
 * Post-processing of detectors: decoding their output, and removing overlapping boxes.
 *
 * Decode reads each score once and keeps the best `max` in a heap. NMS compares each box, best
 * first, with those kept so far, 64 at a time.
 */
#include "yt_cpu.h"
#include "yt_clones.h"
#include "yt_ops.h"

#include <stdlib.h>
#include <string.h>

#define TILE 512u /* anchors whose scores are examined together */

static void sift(uint64_t *heap, uint32_t n, uint32_t i)
{
	for (;;) { /* sift down: the smallest is on top */
		uint32_t child = 2 * i + 1;
		uint64_t v;

		if (child >= n)
			return;
		if (child + 1 < n && heap[child + 1] < heap[child])
			child++;
		if (heap[i] <= heap[child])
			return;
		v = heap[i];
		heap[i] = heap[child];
		heap[child] = v;
		i = child;
	}
}

/* Best score and class of anchors whose scores are in planes. */
YT_CLONES
static void best_of_planes(const yt_decode *d, const void *image, uint32_t first, uint32_t n, float *restrict score,
			   int32_t *restrict cls)
{
	uint32_t c, i;

	for (i = 0; i < n; i++) {
		score[i] = yt_from_bits(0xff800000u);
		cls[i] = 0;
	}
	for (c = 0; c < d->classes; c++) {
		uint64_t at = (uint64_t)(4 + c) * d->anchors + first;

		if (d->type == YT_F32) {
			const float *restrict s = (const float *)image + at;

			for (i = 0; i < n; i++) {
				cls[i] = s[i] > score[i] ? (int32_t)c : cls[i];
				score[i] = s[i] > score[i] ? s[i] : score[i];
			}
		} else {
			const uint16_t *restrict h = (const uint16_t *)image + at;

			for (i = 0; i < n; i++) {
				float s = yt_half_to_float(h[i]);

				cls[i] = s > score[i] ? (int32_t)c : cls[i];
				score[i] = s > score[i] ? s : score[i];
			}
		}
	}
}

static void decode_image(const yt_decode *d, const void *image, uint8_t *dst, uint64_t *heap)
{
	float score[TILE];
	int32_t cls[TILE];
	yt_boxes *head = (yt_boxes *)(void *)dst;
	yt_box *box = (yt_box *)(void *)(head + 1);
	uint32_t kept = 0, found = 0, first, i;

	for (first = 0; first < d->anchors; first += TILE) {
		uint32_t n = d->anchors - first < TILE ? d->anchors - first : TILE;

		if (d->head == YT_HEAD_PLANES) {
			best_of_planes(d, image, first, n, score, cls);
		} else {
			for (i = 0; i < n; i++)
				score[i] = yt_decode_best(d, image, first + i).score;
		}
		for (i = 0; i < n; i++) {
			uint64_t key;

			if (!(score[i] >= d->threshold))
				continue;
			found++;
			key = (uint64_t)yt_ordered(score[i]) << 32 | (0xffffffffu - (first + i));
			if (kept < d->max) {
				heap[kept++] = key;
				if (kept == d->max) {
					uint32_t j;

					for (j = kept / 2; j-- > 0;)
						sift(heap, kept, j);
				}
			} else if (key > heap[0]) {
				heap[0] = key;
				sift(heap, kept, 0);
			}
		}
	}
	for (i = kept / 2; i-- > 0;)
		sift(heap, kept, i);
	memset(head, 0, sizeof *head);
	head->count = kept;
	head->found = found;
	while (kept > 0) { /* worst first, filled from the back */
		uint32_t anchor = 0xffffffffu - (uint32_t)heap[0];

		heap[0] = heap[--kept];
		sift(heap, kept, 0);
		box[kept] = yt_decode_box(d, image, anchor, yt_decode_best(d, image, anchor));
	}
}

int yt_cpu_decode(const yt_decode *d, const void *src, uint8_t *dst, yt_cpu_scratch *scratch)
{
	uint64_t image = yt_decode_values(d) * d->anchors * (d->type == YT_F32 ? 4 : 2);
	uint64_t *heap = yt_cpu_room(scratch, (size_t)d->max * sizeof *heap);
	uint32_t b;

	if (heap == NULL)
		return -1;
	for (b = 0; b < d->batch; b++)
		decode_image(d, (const char *)src + b * image, dst + b * YT_BOXES_BYTES(d->max), heap);
	return 0;
}

void yt_cpu_gather(const yt_gather *g, const void *output, const void *boxes, float *dst)
{
	uint32_t i, n = g->max * g->count;

	for (i = 0; i < n; i++)
		yt_gather_body(g, output, boxes, dst, i);
}

/* Sums of the prototypes below a grid: n pixels of a row from x on. */
YT_CLONES
static void add_row(const yt_masks *m, const void *prototypes, const float *row, uint32_t x, uint32_t y, uint32_t n, float *restrict sum)
{
	uint64_t at = (uint64_t)y * m->width + x, plane = (uint64_t)m->width * m->height;
	uint32_t k, i;

	for (i = 0; i < n; i++)
		sum[i] = 0.0f;
	for (k = 0; k < m->values; k++, at += plane) {
		if (m->type == YT_F32) {
			const float *restrict p = (const float *)prototypes + at;

			for (i = 0; i < n; i++)
				sum[i] += row[k] * p[i];
		} else {
			for (i = 0; i < n; i++)
				sum[i] += row[k] * yt_load(m->type, prototypes, at + i);
		}
	}
}

static void draw_mask(const yt_masks *m, const void *prototypes, const float *row, const yt_grid *g, float *sum, uint32_t *bits)
{
	yt_between x0 = yt_mask_place(g->x, g->step, 0, m->scale_x, m->shift_x, m->width);
	yt_between x1 = yt_mask_place(g->x, g->step, g->width - 1, m->scale_x, m->shift_x, m->width);
	yt_between y0 = yt_mask_place(g->y, g->step, 0, m->scale_y, m->shift_y, m->height);
	yt_between y1 = yt_mask_place(g->y, g->step, g->height - 1, m->scale_y, m->shift_y, m->height);
	uint32_t left = x0.from < x1.from ? x0.from : x1.from, right = x0.to > x1.to ? x0.to : x1.to;
	uint32_t upper = y0.from < y1.from ? y0.from : y1.from, lower = y0.to > y1.to ? y0.to : y1.to;
	uint32_t x, y;
	uint64_t i = 0;

	for (y = upper; y <= lower; y++)
		add_row(m, prototypes, row, left, y, right - left + 1, sum + (size_t)y * m->width + left);
	for (y = 0; y < g->height; y++) {
		yt_between at = yt_mask_place(g->y, g->step, y, m->scale_y, m->shift_y, m->height);
		const float *a = sum + (size_t)at.from * m->width, *b = sum + (size_t)at.to * m->width;

		for (x = 0; x < g->width; x++, i++) {
			yt_between in = yt_mask_place(g->x, g->step, x, m->scale_x, m->shift_x, m->width);

			if (yt_mask_inside(in, at, a[in.from], a[in.to], b[in.from], b[in.to]))
				bits[i / 32] |= 1u << i % 32;
		}
	}
}

int yt_cpu_masks(const yt_masks *m, const void *prototypes, const float *rows, const yt_grid *grids, uint8_t *dst, uint64_t bytes,
		 yt_cpu_scratch *scratch)
{
	float *sum = yt_cpu_room(scratch, (size_t)m->width * m->height * sizeof *sum);
	uint32_t i;

	if (sum == NULL)
		return -1;
	memset(dst, 0, (size_t)bytes);
	for (i = 0; i < m->count; i++)
		if (yt_grid_words(&grids[i]) != 0 && yt_grid_fits(m, &grids[i], bytes))
			draw_mask(m, prototypes, rows + (size_t)grids[i].row * m->values, &grids[i], sum, (uint32_t *)(void *)(dst + grids[i].at));
	return 0;
}

typedef struct ranked {
	uint64_t key;
	uint32_t place;
} ranked;

static int by_rank(const void *a, const void *b)
{
	const ranked *p = a, *q = b;

	if (p->key != q->key)
		return p->key > q->key ? -1 : 1;
	return p->place < q->place ? -1 : 1;
}

/* The kept boxes as one array per coordinate, so that a vector holds several boxes. */
typedef struct column {
	float *x0, *y0, *x1, *y1, *area;
	int32_t *cls;
} column;

#define COLUMNS 6u

static column columns_of(float *p, uint32_t most)
{
	column k = {p, p + most, p + 2 * (size_t)most, p + 3 * (size_t)most, p + 4 * (size_t)most, (int32_t *)(void *)(p + 5 * (size_t)most)};

	return k;
}

/* Whether one of the kept boxes `from` to `to` suppresses b, as in yt_suppressed. */
YT_CLONES
static int suppressed(const yt_nms *n, const column *k, uint32_t from, uint32_t to, const yt_box *b)
{
	const float *restrict kx0 = k->x0, *restrict ky0 = k->y0, *restrict kx1 = k->x1, *restrict ky1 = k->y1, *restrict ka = k->area;
	const int32_t *restrict cls = k->cls;
	const float bx0 = b->x0, by0 = b->y0, bx1 = b->x1, by1 = b->y1, iou = n->iou, area = yt_extent(bx0, bx1) * yt_extent(by0, by1);
	const int32_t all = (n->flags & YT_NMS_AGNOSTIC) != 0, own = b->cls;
	int32_t hit = 0;
	uint32_t j;

	for (j = from; j < to; j++) {
		float x0 = kx0[j] > bx0 ? kx0[j] : bx0, y0 = ky0[j] > by0 ? ky0[j] : by0;
		float x1 = kx1[j] < bx1 ? kx1[j] : bx1, y1 = ky1[j] < by1 ? ky1[j] : by1;
		float inter = yt_extent(x0, x1) * yt_extent(y0, y1);

		hit |= ((cls[j] == own) | all) & (inter > iou * (ka[j] + area - inter));
	}
	return hit;
}

int yt_cpu_nms(const yt_nms *n, const uint8_t *src, uint8_t *dst, yt_cpu_scratch *scratch)
{
	size_t order_bytes = ((size_t)n->in_max * sizeof(ranked) + 63) / 64 * 64;
	char *p = yt_cpu_room(scratch, order_bytes + (size_t)n->in_max * COLUMNS * sizeof(float));
	ranked *order = (ranked *)(void *)p;
	column kept;
	uint32_t b, i, j;

	if (p == NULL)
		return -1;
	kept = columns_of((float *)(void *)(p + order_bytes), n->in_max);
	for (b = 0; b < n->batch; b++) {
		const yt_boxes *in = (const yt_boxes *)(const void *)(src + b * YT_BOXES_BYTES(n->in_max));
		const yt_box *box = (const yt_box *)(const void *)(in + 1);
		yt_boxes *out = (yt_boxes *)(void *)(dst + b * YT_BOXES_BYTES(n->max));
		yt_box *best = (yt_box *)(void *)(out + 1);
		uint32_t count = in->count < n->in_max ? in->count : n->in_max, m = 0;

		for (i = 0; i < count; i++) {
			order[i].key = yt_box_key(&box[i]);
			order[i].place = i;
		}
		qsort(order, count, sizeof *order, by_rank);
		for (i = 0; i < count; i++) {
			const yt_box *c = &box[order[i].place];

			for (j = 0; j < m && !suppressed(n, &kept, j, j + 64 < m ? j + 64 : m, c); j += 64)
				;
			if (j < m)
				continue;
			{
				const yt_box nowhere = {0}, *place = yt_is_far(c) ? &nowhere : c; /* overlaps none */

				kept.x0[m] = place->x0;
				kept.y0[m] = place->y0;
				kept.x1[m] = place->x1;
				kept.y1[m] = place->y1;
				kept.area[m] = yt_extent(place->x0, place->x1) * yt_extent(place->y0, place->y1);
			}
			kept.cls[m] = c->cls;
			if (m < n->max)
				best[m] = *c;
			m++;
		}
		memset(out, 0, sizeof *out);
		out->found = m;
		out->count = m < n->max ? m : n->max;
	}
	return 0;
}
