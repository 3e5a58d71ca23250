/* SPDX-License-Identifier: Apache-2.0
 *
 * How much a picture changed: reads both planes once.
 */
#include "yt_cpu.h"
#include "yt_clones.h"
#include "yt_ops.h"

#include <string.h>

/* At most 256 samples, so that 16 bits hold no sum but 32 do easily. */
YT_CLONES
static void strip(const uint8_t *restrict a, const uint8_t *restrict b, uint32_t n, uint32_t threshold, uint32_t *sum,
		  uint32_t *changed, uint32_t *peak)
{
	uint32_t s = 0, c = 0, p = 0, i;

	for (i = 0; i < n; i++) {
		uint32_t d = a[i] > b[i] ? (uint32_t)(a[i] - b[i]) : (uint32_t)(b[i] - a[i]);

		s += d;
		c += d > threshold;
		p = d > p ? d : p;
	}
	*sum = s;
	*changed += c;
	*peak = p > *peak ? p : *peak;
}

void yt_cpu_diff(const yt_diff *d, const uint8_t *a, const uint8_t *b, uint8_t *dst)
{
	yt_motion *m = (yt_motion *)(void *)dst;
	uint32_t *block = (uint32_t *)(void *)(m + 1);
	uint64_t pa = d->pitch[0] != 0 ? d->pitch[0] : d->width, pb = d->pitch[1] != 0 ? d->pitch[1] : d->width;
	uint32_t side = d->block != 0 ? d->block : 256, across = (d->width + side - 1) / side, x, y;

	memset(m, 0, sizeof *m);
	if (d->block != 0)
		memset(block, 0, (size_t)across * ((d->height + side - 1) / side) * sizeof *block);
	for (y = 0; y < d->height; y++)
		for (x = 0; x < d->width; x += side) {
			uint32_t sum, n = d->width - x < side ? d->width - x : side;

			strip(a + y * pa + x, b + y * pb + x, n, d->threshold, &sum, &m->changed, &m->peak);
			m->sum += sum;
			if (d->block != 0)
				block[(y / side) * across + x / side] += sum;
		}
}
