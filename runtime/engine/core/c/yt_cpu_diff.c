/* SPDX-License-Identifier: Apache-2.0
 *
 * Difference of two pictures. Reads both planes once, block by block: the rows of a block are
 * as many streams of memory, and a block's sums are added up once.
 */
#include "yt_cpu.h"
#include "yt_ops.h"
#include "yt_simd.h"

#include <string.h>

#define BAND 8u /* rows that are read side by side */

/* Figures of samples. */
typedef struct figures {
	uint32_t sum, changed;
	uint8_t peak;
} figures;

#if defined(YT_SIMD)

#if defined(__x86_64__)

#define WIDTH 32u

typedef __m256i bytes;
typedef __m256i sums; /* four of 64 bits, of which 32 are used */

YT_SIMD_INLINE bytes all(uint8_t v) { return _mm256_set1_epi8((char)v); }
YT_SIMD_INLINE bytes load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
YT_SIMD_INLINE void store(uint8_t *p, bytes v) { _mm256_storeu_si256((__m256i *)(void *)p, v); }
YT_SIMD_INLINE bytes apart(bytes a, bytes b) { return _mm256_or_si256(_mm256_subs_epu8(a, b), _mm256_subs_epu8(b, a)); }
YT_SIMD_INLINE bytes larger(bytes a, bytes b) { return _mm256_max_epu8(a, b); }
/* n, plus 1 where v is at most `limit` */
YT_SIMD_INLINE bytes count_within(bytes n, bytes v, bytes limit)
{
	return _mm256_sub_epi8(n, _mm256_cmpeq_epi8(_mm256_subs_epu8(v, limit), _mm256_setzero_si256()));
}
YT_SIMD_INLINE sums none(void) { return _mm256_setzero_si256(); }
YT_SIMD_INLINE sums add(sums s, bytes v) { return _mm256_add_epi32(s, _mm256_sad_epu8(v, _mm256_setzero_si256())); }
YT_SIMD_INLINE uint32_t total(sums s)
{
	__m128i half = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));

	return (uint32_t)_mm_cvtsi128_si32(_mm_add_epi32(half, _mm_srli_si128(half, 8)));
}

#else

#define WIDTH 16u

typedef uint8x16_t bytes;
typedef uint16x8_t sums;

YT_SIMD_INLINE bytes all(uint8_t v) { return vdupq_n_u8(v); }
YT_SIMD_INLINE bytes load(const uint8_t *p) { return vld1q_u8(p); }
YT_SIMD_INLINE void store(uint8_t *p, bytes v) { vst1q_u8(p, v); }
YT_SIMD_INLINE bytes apart(bytes a, bytes b) { return vabdq_u8(a, b); }
YT_SIMD_INLINE bytes larger(bytes a, bytes b) { return vmaxq_u8(a, b); }
YT_SIMD_INLINE bytes count_within(bytes n, bytes v, bytes limit) { return vsubq_u8(n, vcleq_u8(v, limit)); }
YT_SIMD_INLINE sums none(void) { return vdupq_n_u16(0); }
YT_SIMD_INLINE sums add(sums s, bytes v) { return vpadalq_u8(s, v); }
YT_SIMD_INLINE uint32_t total(sums s) { return vaddlvq_u16(s); }

#endif

#define STEPS 112u /* after so many there is room for a row more: 16 in sums of 16 bits and counts of 8 */

/* Adds h rows of w samples, a multiple of WIDTH and at most 256. */
YT_SIMD_FN static void groups(const uint8_t *a, uint64_t pa, const uint8_t *b, uint64_t pb, uint32_t w, uint32_t h, uint8_t threshold, figures *f)
{
	const bytes limit = all(threshold);
	bytes peak = all(0), within = peak;
	sums sum = none();
	uint32_t steps = 0, i, y;
	uint8_t each[WIDTH];

	for (y = 0; y < h; y++, a += pa, b += pb) {
#pragma GCC unroll 4
		for (i = 0; i < w; i += WIDTH) {
			bytes d = apart(load(a + i), load(b + i));

			sum = add(sum, d);
			peak = larger(peak, d);
			within = count_within(within, d, limit);
		}
		for (i = 0; i < w; i += 64) { /* of the next block but one */
			__builtin_prefetch(a + w + 64 + i);
			__builtin_prefetch(b + w + 64 + i);
		}
		steps += w / WIDTH;
		if (steps > STEPS || y + 1 == h) {
			f->sum += total(sum);
			f->changed += WIDTH * steps - total(add(none(), within));
			sum = none();
			within = all(0);
			steps = 0;
		}
	}
	store(each, peak);
	for (i = 0; i < sizeof each; i++)
		f->peak = each[i] > f->peak ? each[i] : f->peak;
}

static uint32_t whole(uint32_t w)
{
	return yt_simd_here() ? w / WIDTH * WIDTH : 0;
}

#else

static uint32_t whole(uint32_t w)
{
	(void)w;
	return 0;
}

static void groups(const uint8_t *a, uint64_t pa, const uint8_t *b, uint64_t pb, uint32_t w, uint32_t h, uint8_t threshold, figures *f)
{
	(void)a, (void)pa, (void)b, (void)pb, (void)w, (void)h, (void)threshold, (void)f;
}

#endif

static figures figures_of(const uint8_t *a, uint64_t pa, const uint8_t *b, uint64_t pb, uint32_t w, uint32_t h, uint8_t threshold)
{
	figures f = {0};
	uint32_t from = whole(w), i, y;

	if (from != 0)
		groups(a, pa, b, pb, from, h, threshold, &f);
	for (y = 0; y < h && from != w; y++, a += pa, b += pb)
		for (i = from; i < w; i++) {
			uint8_t d = (uint8_t)(a[i] > b[i] ? a[i] - b[i] : b[i] - a[i]);

			f.sum += d;
			f.changed += d > threshold;
			f.peak = d > f.peak ? d : f.peak;
		}
	return f;
}

void yt_cpu_diff(const yt_diff *d, const uint8_t *a, const uint8_t *b, uint8_t *dst)
{
	yt_motion *m = (yt_motion *)(void *)dst;
	uint32_t *block = (uint32_t *)(void *)(m + 1);
	uint64_t pa = d->pitch[0] != 0 ? d->pitch[0] : d->width, pb = d->pitch[1] != 0 ? d->pitch[1] : d->width;
	uint32_t side = d->block != 0 ? d->block : 256, across = (d->width + side - 1) / side, x, y, h;

	memset(m, 0, sizeof *m);
	if (d->block != 0)
		memset(block, 0, (size_t)across * ((d->height + side - 1) / side) * sizeof *block);
	for (y = 0; y < d->height; y += h, a += h * pa, b += h * pb) {
		h = d->height - y < BAND ? d->height - y : BAND;
		h = side - y % side < h ? side - y % side : h;
		for (x = 0; x < d->width; x += side) {
			uint32_t w = d->width - x < side ? d->width - x : side;
			figures f = figures_of(a + x, pa, b + x, pb, w, h, (uint8_t)d->threshold);

			m->sum += f.sum;
			m->changed += f.changed;
			m->peak = f.peak > m->peak ? f.peak : m->peak;
			if (d->block != 0)
				block[y / side * across + x / side] += f.sum;
		}
	}
}
