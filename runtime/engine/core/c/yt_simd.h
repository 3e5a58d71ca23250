/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_simd.h - eight floats at a time: AVX2 where the processor supports it, NEON on
 * arm64. It contains only operations that compilers do not vectorise themselves: bytes
 * from any position in a window, stores that bypass the cache, and float16. Each operation
 * rounds once, as the scalar one does, so results do not depend on it.
 */
#ifndef YT_SIMD_H
#define YT_SIMD_H

#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define YT_SIMD 1
#define YT_SIMD_FN __attribute__((target("avx2,f16c")))
#define YT_SIMD_INLINE static inline __attribute__((always_inline, target("avx2,f16c")))

typedef __m256 yt_v8;
typedef __m256i yt_pick8; /* for each float: which byte of its window; 0xff in the other three */

static inline int yt_simd_here(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
}

YT_SIMD_INLINE yt_v8 yt_v8_all(float v) { return _mm256_set1_ps(v); }
YT_SIMD_INLINE yt_v8 yt_v8_load(const float *p) { return _mm256_loadu_ps(p); }
YT_SIMD_INLINE void yt_v8_store(float *p, yt_v8 v) { _mm256_storeu_ps(p, v); }
YT_SIMD_INLINE void yt_v8_stream(float *p, yt_v8 v) { _mm256_stream_ps(p, v); }
YT_SIMD_INLINE void yt_v8_streamed(void) { _mm_sfence(); }
YT_SIMD_INLINE yt_v8 yt_v8_add(yt_v8 a, yt_v8 b) { return _mm256_add_ps(a, b); }
YT_SIMD_INLINE yt_v8 yt_v8_sub(yt_v8 a, yt_v8 b) { return _mm256_sub_ps(a, b); }
YT_SIMD_INLINE yt_v8 yt_v8_mul(yt_v8 a, yt_v8 b) { return _mm256_mul_ps(a, b); }
/* v < low ? low : v, then v > high ? high : v */
YT_SIMD_INLINE yt_v8 yt_v8_clamp(yt_v8 v, yt_v8 low, yt_v8 high) { return _mm256_min_ps(high, _mm256_max_ps(low, v)); }

YT_SIMD_INLINE yt_v8 yt_v8_load_halves(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p)); }

/* As yt_half_of: of a NaN only the sign is left. */
YT_SIMD_INLINE void yt_v8_store_halves(uint16_t *p, yt_v8 v)
{
	__m256 nan = _mm256_or_ps(_mm256_and_ps(v, _mm256_set1_ps(-0.0f)), _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)));

	v = _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
	_mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

YT_SIMD_INLINE yt_pick8 yt_pick8_load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }

/* The same picks `step` bytes further on. */
YT_SIMD_INLINE yt_pick8 yt_pick8_next(yt_pick8 p, uint32_t step) { return _mm256_add_epi32(p, _mm256_set1_epi32((int)step)); }

YT_SIMD_INLINE __m256i yt_two_windows(const uint8_t *a, const uint8_t *b)
{
	return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)a)),
				       _mm_loadu_si128((const __m128i *)(const void *)b), 1);
}

/* Four bytes of each window, of 16 bytes or, if `wide`, of 32. */
typedef struct yt_windows {
	__m256i near, far;
} yt_windows;

YT_SIMD_INLINE yt_windows yt_windows_load(const uint8_t *a, const uint8_t *b, int wide)
{
	yt_windows w = {yt_two_windows(a, b), _mm256_setzero_si256()};

	if (wide)
		w.far = yt_two_windows(a + 16, b + 16);
	return w;
}

YT_SIMD_INLINE yt_v8 yt_windows_pick(yt_windows w, yt_pick8 pick, int wide)
{
	__m256i bytes;

	if (wide) /* the shuffle gives 0 where bit 7 of the pick is set */
		bytes = _mm256_or_si256(_mm256_shuffle_epi8(w.near, _mm256_adds_epu8(pick, _mm256_set1_epi8(0x70))),
					_mm256_shuffle_epi8(w.far, _mm256_sub_epi8(pick, _mm256_set1_epi8(16))));
	else
		bytes = _mm256_shuffle_epi8(w.near, pick);
	return _mm256_cvtepi32_ps(bytes);
}

#elif defined(__aarch64__) && defined(__ARM_NEON)

#include <arm_neon.h>

#define YT_SIMD 1
#define YT_SIMD_FN
#define YT_SIMD_INLINE static inline __attribute__((always_inline))

typedef struct yt_v8 {
	float32x4_t a, b;
} yt_v8;
typedef struct yt_pick8 {
	uint8x16_t a, b;
} yt_pick8;
typedef struct yt_windows {
	uint8x16x2_t a, b;
} yt_windows;

static inline int yt_simd_here(void)
{
	return 1;
}

YT_SIMD_INLINE yt_v8 yt_v8_all(float v) { return (yt_v8){vdupq_n_f32(v), vdupq_n_f32(v)}; }
YT_SIMD_INLINE yt_v8 yt_v8_load(const float *p) { return (yt_v8){vld1q_f32(p), vld1q_f32(p + 4)}; }
YT_SIMD_INLINE void yt_v8_store(float *p, yt_v8 v) { vst1q_f32(p, v.a), vst1q_f32(p + 4, v.b); }
YT_SIMD_INLINE void yt_v8_stream(float *p, yt_v8 v) { yt_v8_store(p, v); } /* compilers have no such store */
YT_SIMD_INLINE void yt_v8_streamed(void) {}
YT_SIMD_INLINE yt_v8 yt_v8_add(yt_v8 x, yt_v8 y) { return (yt_v8){vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b)}; }
YT_SIMD_INLINE yt_v8 yt_v8_sub(yt_v8 x, yt_v8 y) { return (yt_v8){vsubq_f32(x.a, y.a), vsubq_f32(x.b, y.b)}; }
YT_SIMD_INLINE yt_v8 yt_v8_mul(yt_v8 x, yt_v8 y) { return (yt_v8){vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b)}; }
YT_SIMD_INLINE yt_v8 yt_v8_clamp(yt_v8 v, yt_v8 low, yt_v8 high)
{
	return (yt_v8){vminq_f32(high.a, vmaxq_f32(low.a, v.a)), vminq_f32(high.b, vmaxq_f32(low.b, v.b))};
}

YT_SIMD_INLINE yt_v8 yt_v8_load_halves(const uint16_t *p)
{
	float16x8_t h = vreinterpretq_f16_u16(vld1q_u16(p));

	return (yt_v8){vcvt_f32_f16(vget_low_f16(h)), vcvt_high_f32_f16(h)};
}

/* As yt_half_of: of a NaN only the sign is left. */
YT_SIMD_INLINE float32x4_t yt_one_nan(float32x4_t v)
{
	uint32x4_t sign = vandq_u32(vreinterpretq_u32_f32(v), vdupq_n_u32(0x80000000u));

	return vbslq_f32(vceqq_f32(v, v), v, vreinterpretq_f32_u32(vorrq_u32(sign, vdupq_n_u32(0x7fc00000u))));
}

YT_SIMD_INLINE void yt_v8_store_halves(uint16_t *p, yt_v8 v)
{
	vst1q_u16(p, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(yt_one_nan(v.a)), yt_one_nan(v.b))));
}

YT_SIMD_INLINE yt_pick8 yt_pick8_load(const uint8_t *p) { return (yt_pick8){vld1q_u8(p), vld1q_u8(p + 16)}; }

YT_SIMD_INLINE yt_pick8 yt_pick8_next(yt_pick8 p, uint32_t step)
{
	uint32x4_t add = vdupq_n_u32(step);

	return (yt_pick8){vreinterpretq_u8_u32(vaddq_u32(vreinterpretq_u32_u8(p.a), add)),
			  vreinterpretq_u8_u32(vaddq_u32(vreinterpretq_u32_u8(p.b), add))};
}

YT_SIMD_INLINE yt_windows yt_windows_load(const uint8_t *a, const uint8_t *b, int wide)
{
	uint8x16_t none = vdupq_n_u8(0);

	return (yt_windows){{{vld1q_u8(a), wide ? vld1q_u8(a + 16) : none}}, {{vld1q_u8(b), wide ? vld1q_u8(b + 16) : none}}};
}

YT_SIMD_INLINE yt_v8 yt_windows_pick(yt_windows w, yt_pick8 pick, int wide)
{
	uint8x16_t a, b;

	if (wide) {
		a = vqtbl2q_u8(w.a, pick.a);
		b = vqtbl2q_u8(w.b, pick.b);
	} else {
		a = vqtbl1q_u8(w.a.val[0], pick.a);
		b = vqtbl1q_u8(w.b.val[0], pick.b);
	}
	return (yt_v8){vcvtq_f32_u32(vreinterpretq_u32_u8(a)), vcvtq_f32_u32(vreinterpretq_u32_u8(b))};
}

#endif

#endif /* YT_SIMD_H */
