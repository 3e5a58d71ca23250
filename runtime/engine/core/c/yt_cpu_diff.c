/* SPDX-License-Identifier: Apache-2.0
 *
 * Difference of two pictures. Reads both planes once, in strips that stay in the L1 cache,
 * with a separate loop for each figure, which compilers can vectorise.
 */
#include "yt_cpu.h"
#include "yt_clones.h"
#include "yt_ops.h"

#include <stdlib.h>
#include <string.h>

#define STRIP 4096u /* the largest count that fits 16 bits */

/* Adds the sums of each `side` samples to `block`; the last may have fewer. */
YT_CLONES
static uint32_t sums(const uint8_t *restrict a, const uint8_t *restrict b, uint32_t n, uint32_t side, uint32_t *restrict block)
{
	uint32_t all = 0, at, i;

	for (at = 0; at < n; at += side) {
		uint32_t end = n - at < side ? n : at + side;
		int sum = 0;

		for (i = at; i < end; i++)
			sum += abs(a[i] - b[i]);
		all += (uint32_t)sum;
		if (block != NULL)
			*block++ += (uint32_t)sum;
	}
	return all;
}

static inline uint8_t apart(uint8_t a, uint8_t b)
{
	return (uint8_t)(a > b ? a - b : b - a);
}

YT_CLONES
static uint8_t furthest(const uint8_t *restrict a, const uint8_t *restrict b, uint32_t n)
{
	uint8_t peak = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint8_t d = apart(a[i], b[i]);

		peak = d > peak ? d : peak;
	}
	return peak;
}

YT_CLONES
static uint16_t beyond(const uint8_t *restrict a, const uint8_t *restrict b, uint32_t n, uint8_t threshold)
{
	uint16_t count = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		count = (uint16_t)(count + (apart(a[i], b[i]) > threshold));
	return count;
}

void yt_cpu_diff(const yt_diff *d, const uint8_t *a, const uint8_t *b, uint8_t *dst)
{
	yt_motion *m = (yt_motion *)(void *)dst;
	uint32_t *block = (uint32_t *)(void *)(m + 1);
	uint64_t pa = d->pitch[0] != 0 ? d->pitch[0] : d->width, pb = d->pitch[1] != 0 ? d->pitch[1] : d->width;
	uint32_t side = d->block != 0 ? d->block : d->width, across = (d->width + side - 1) / side, x, y;

	memset(m, 0, sizeof *m);
	if (d->block != 0)
		memset(block, 0, (size_t)across * ((d->height + side - 1) / side) * sizeof *block);
	for (y = 0; y < d->height; y++, a += pa, b += pb) {
		m->sum += sums(a, b, d->width, side, d->block != 0 ? block + (y / side) * across : NULL);
		for (x = 0; x < d->width; x += STRIP) {
			uint32_t n = d->width - x < STRIP ? d->width - x : STRIP;
			uint8_t peak = furthest(a + x, b + x, n);

			m->peak = peak > m->peak ? peak : m->peak;
			if (peak > d->threshold)
				m->changed += beyond(a + x, b + x, n, (uint8_t)d->threshold);
		}
	}
}
