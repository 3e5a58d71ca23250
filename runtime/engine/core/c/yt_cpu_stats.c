/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of a picture's brightness. Reads each row once from memory: the three rows of a
 * Laplacian stay in the cache. Packed formats are first taken apart, row by row.
 */
#include "yt_clones.h"
#include "yt_cpu.h"
#include "yt_ops.h"

#include <string.h>

#define PIECE 2048u /* squares of so many Laplacians fit 32 bits: each is at most 1020 */

typedef struct figures {
	uint32_t sum, low, high, squares;
	int32_t laplace;
} figures;

/* n pixels of the row `at`, between those above and below; at[-1] and at[n] are pixels too. */
YT_CLONES
static figures figures_of(const uint8_t *restrict up, const uint8_t *restrict at, const uint8_t *restrict down, uint32_t n, int32_t low,
			  int32_t high)
{
	figures f = {0};
	uint32_t i;

	for (i = 0; i < n; i++) {
		int32_t v = at[i], l = up[i] + down[i] + at[(size_t)i - 1] + at[(size_t)i + 1] - 4 * v;

		f.sum += (uint32_t)v;
		f.low += v <= low;
		f.high += v >= high;
		f.laplace += l;
		f.squares += (uint32_t)(l * l);
	}
	return f;
}

YT_CLONES
static void take_row(uint32_t format, const uint8_t *restrict row, uint8_t *restrict out, uint32_t n)
{
	uint32_t x;

	if (format == YT_FORMAT_YUYV)
		for (x = 0; x < n; x++)
			out[x] = (uint8_t)yt_brightness(YT_FORMAT_YUYV, row, x);
	else if (format == YT_FORMAT_UYVY)
		for (x = 0; x < n; x++)
			out[x] = (uint8_t)yt_brightness(YT_FORMAT_UYVY, row, x);
	else
		for (x = 0; x < n; x++)
			out[x] = (uint8_t)yt_brightness(format, row, x);
}

/* Row y with a mirrored pixel before its first and after its last. The last four rows are kept. */
static const uint8_t *row_at(const yt_plane_stats *s, const uint8_t *plane, uint8_t *room, uint32_t y)
{
	uint8_t *to = room + (size_t)(y % 4) * (s->width + 2) + 1;
	const uint8_t *from = plane + y * yt_stats_pitch(s);

	if (s->format <= YT_FORMAT_I420 || s->format == YT_FORMAT_GRAY)
		memcpy(to, from, s->width);
	else
		take_row(s->format, from, to, s->width);
	to[-1] = to[yt_before(0, s->width)];
	to[s->width] = to[yt_after(s->width - 1, s->width)];
	return to;
}

int yt_cpu_stats(const yt_plane_stats *s, const uint8_t *plane, yt_stats *out, yt_cpu_scratch *scratch)
{
	uint8_t *room = yt_cpu_room(scratch, 4 * ((size_t)s->width + 2));
	const uint8_t *up, *at, *down;
	uint32_t x, y;

	if (room == NULL)
		return -1;
	memset(out, 0, sizeof *out);
	at = row_at(s, plane, room, 0);
	up = s->height > 1 ? row_at(s, plane, room, 1) : at;
	for (y = 0; y < s->height; y++, up = at, at = down) {
		down = y == 0 ? up : y + 1 < s->height ? row_at(s, plane, room, y + 1) : s->height > 1 ? up : at;
		for (x = 0; x < s->width; x += PIECE) {
			uint32_t n = s->width - x < PIECE ? s->width - x : PIECE;
			figures f = figures_of(up + x, at + x, down + x, n, (int32_t)s->low, (int32_t)s->high);

			out->sum += f.sum;
			out->low += f.low;
			out->high += f.high;
			out->laplace += f.laplace;
			out->squares += f.squares;
		}
	}
	return 0;
}
