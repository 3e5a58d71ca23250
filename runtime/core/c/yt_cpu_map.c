/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of steps on elements, and conversion of type and layout. A chain runs
 * over a piece of the tensor that stays in the first-level cache: memory is read
 * and written once, however many steps there are.
 */
#include "yt_cpu.h"
#include "yt_clones.h"
#include "yt_ops.h"

#define PIECE 1024u

#define EACH(op) \
	case op: \
		for (i = 0; i < n; i++) \
			x[i] = yt_map_one(op, x[i], a, b, 0.0f); \
		break

YT_CLONES
static void step_alone(uint32_t op, float a, float b, float *restrict x, uint32_t n)
{
	uint32_t i;

	switch (op) {
		EACH(YT_MAP_ADD);
		EACH(YT_MAP_MUL);
		EACH(YT_MAP_SCALE);
		EACH(YT_MAP_CLAMP);
		EACH(YT_MAP_RELU);
		EACH(YT_MAP_LEAKY);
		EACH(YT_MAP_ABS);
		EACH(YT_MAP_NEG);
		EACH(YT_MAP_SQRT);
		EACH(YT_MAP_EXP);
		EACH(YT_MAP_LOG);
		EACH(YT_MAP_SIGMOID);
		EACH(YT_MAP_TANH);
		EACH(YT_MAP_GELU);
	default:
		for (i = 0; i < n; i++)
			x[i] = yt_map_one(YT_MAP_SILU, x[i], a, b, 0.0f);
	}
}

YT_CLONES
void yt_cpu_widen(uint32_t type, const void *src, uint64_t first, float *restrict x, uint32_t n)
{
	const uint16_t *h = (const uint16_t *)src + first;
	const float *f = (const float *)src + first;
	uint32_t i;

	if (type == YT_F32)
		for (i = 0; i < n; i++)
			x[i] = f[i];
	else if (type == YT_F16)
		for (i = 0; i < n; i++)
			x[i] = yt_half_to_float(h[i]);
	else
		for (i = 0; i < n; i++)
			x[i] = yt_bf16_to_float(h[i]);
}

YT_CLONES
void yt_cpu_narrow(uint32_t type, const float *restrict x, void *dst, uint64_t first, uint32_t n)
{
	uint16_t *h = (uint16_t *)dst + first;
	float *f = (float *)dst + first;
	uint32_t i;

	if (type == YT_F32)
		for (i = 0; i < n; i++)
			f[i] = x[i];
	else if (type == YT_F16)
		for (i = 0; i < n; i++)
			h[i] = yt_half_of(x[i]);
	else if (type == YT_BF16)
		for (i = 0; i < n; i++)
			h[i] = yt_bf16_of(x[i]);
	else
		for (i = 0; i < n; i++)
			yt_store(type, dst, first + i, x[i]);
}

void yt_cpu_map(const yt_map *m, uint64_t n, const void *src, const void *with, const float *bias, void *dst)
{
	float x[PIECE], y[PIECE];
	uint64_t at;
	uint32_t s, i;

	for (at = 0; at < n; at += PIECE) {
		uint32_t k = n - at < PIECE ? (uint32_t)(n - at) : PIECE;

		yt_cpu_widen(m->in, src, at, x, k);
		for (s = 0; s < m->steps; s++) {
			const yt_step *step = &m->step[s];

			if (step->op < YT_MAP_CH_MUL) {
				step_alone(step->op, step->a, step->b, x, k);
				continue;
			}
			if (step->op >= YT_MAP_ADD_SRC) {
				yt_cpu_widen(m->in, with, at, y, k);
			} else {
				const float *by = step->op == YT_MAP_CH_MUL ? (const float *)with : bias;

				for (i = 0; i < k; i++)
					y[i] = by[(at + i) / m->inner % m->channels];
			}
			for (i = 0; i < k; i++)
				x[i] = yt_map_one(step->op, x[i], step->a, step->b, y[i]);
		}
		yt_cpu_narrow(m->out, x, dst, at, k);
	}
}

void yt_cpu_convert(const yt_convert *v, const void *src, const float *scales, void *dst)
{
	uint64_t n = (uint64_t)v->n * v->c * v->h * v->w, j;

	if (v->in_layout == v->out_layout && scales == NULL) {
		for (j = 0; j < n; j++)
			yt_convert_one(v, src, j, dst, j, v->scale);
		return;
	}
	for (j = 0; j < n; j++) {
		uint32_t channel;
		uint64_t i = yt_convert_from(v, j, &channel);

		yt_convert_one(v, src, i, dst, j, scales != NULL ? scales[channel] : v->scale);
	}
}
