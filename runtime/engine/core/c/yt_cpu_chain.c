/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains (yt_chain.h) are validated once when loaded, then run one step at a time over rows of
 * elements in the L1 cache. Memory is read and written once.
 */
#include "yt_cpu.h"
#include "yt_chain.h"
#include "yt_check.h"
#include "yt_clones.h"

#include <stdlib.h>
#include <string.h>

#define PIECE 512u

static int takes_two(uint32_t op)
{
	return op >= YT_CHAIN_ADD && op <= YT_CHAIN_LEAKY;
}

yt_status yt_cpu_chain_load(const void *image, uint64_t n, yt_chain **out, yt_error *err)
{
	const yt_chain_step *step;
	uint32_t i, written = 0;
	yt_chain head, *c;
	yt_status rc;

	*out = NULL;
	if (n < sizeof head)
		return yt_fail(err, YT_E_INVALID, "module_load: %llu bytes are not a chain", (unsigned long long)n);
	memcpy(&head, image, sizeof head);
	if (head.magic != YT_CHAIN_MAGIC || head.steps == 0 || head.steps > YT_CHAIN_STEPS || head.in > YT_BF16 || head.out > YT_U8 ||
	    head.operands > YT_CHAIN_OPERANDS || head.result >= YT_CHAIN_ROWS || n != sizeof head + head.steps * sizeof *step)
		return yt_fail(err, YT_E_INVALID, "module_load: invalid header of the chain");
	for (i = 0; i < head.operands; i++)
		if (head.kind[i] != YT_CHAIN_ELEMENT && head.kind[i] != YT_CHAIN_CHANNEL)
			return yt_fail(err, YT_E_INVALID, "module_load: operand %u of the chain has the unknown kind %u", i, head.kind[i]);
	c = malloc((size_t)n);
	if (c == NULL)
		return yt_fail(err, YT_E_OOM, "module_load: no memory for a chain of %u steps", head.steps);
	memcpy(c, image, (size_t)n);
	step = (const yt_chain_step *)(const void *)(c + 1);
	for (i = 0; i < head.steps; i++) {
		const yt_chain_step *s = &step[i];
		int right = s->op <= YT_CHAIN_LAST && s->to < YT_CHAIN_ROWS;

		if (s->op == YT_CHAIN_LOAD) {
			right = right && s->x <= head.operands;
		} else {
			right = right && (s->x == YT_CHAIN_NUMBER || (s->x < YT_CHAIN_ROWS && (written >> s->x & 1) != 0));
			if (takes_two(s->op))
				right = right && (s->y == YT_CHAIN_NUMBER || (s->y < YT_CHAIN_ROWS && (written >> s->y & 1) != 0)) &&
					(s->x != YT_CHAIN_NUMBER || s->y != YT_CHAIN_NUMBER);
		}
		if (!right) {
			rc = yt_fail(err, YT_E_INVALID, "module_load: invalid step %u of the chain: operation %u to row %u from %u and %u", i, s->op, s->to,
				     s->x, s->y);
			free(c);
			return rc;
		}
		written |= 1u << s->to;
	}
	if ((written >> head.result & 1) == 0) {
		free(c);
		return yt_fail(err, YT_E_INVALID, "module_load: row %u, the result of the chain, is never written", head.result);
	}
	*out = c;
	return YT_OK;
}

yt_status yt_cpu_chain_check(const yt_chain *c, const yt_cmd *cmd, uint32_t at, yt_error *err)
{
	const yt_launch *l = &cmd->launch;
	uint64_t n = l->param[0], in = yt_type_bytes(c->in);
	uint32_t i;

	if (l->ranges != 2u + c->operands || l->params != 3)
		return yt_fail(err, YT_E_INVALID, "command %u: chain: %u ranges and %u params; need %u and 3", at, l->ranges, l->params,
			       2u + c->operands);
	if (cmd->dst.len != yt_mul(n, yt_type_bytes(c->out)) || cmd->src[0].len != yt_mul(n, in))
		return yt_fail(err, YT_E_INVALID, "command %u: chain: %llu elements of %u bytes in %llu bytes, of %u in %llu", at,
			       (unsigned long long)n, (unsigned)in, (unsigned long long)cmd->src[0].len, (unsigned)yt_type_bytes(c->out),
			       (unsigned long long)cmd->dst.len);
	for (i = 0; i < c->operands; i++) {
		if (c->kind[i] == YT_CHAIN_CHANNEL && (l->param[1] == 0 || l->param[2] == 0 || l->param[2] > UINT32_MAX))
			return yt_fail(err, YT_E_INVALID, "command %u: chain: %llu channels, %llu elements from one to the next: at least 1",
				       at, (unsigned long long)l->param[2], (unsigned long long)l->param[1]);
		if (cmd->src[1 + i].len != (c->kind[i] == YT_CHAIN_CHANNEL ? 4 * l->param[2] : yt_mul(n, in)))
			return yt_fail(err, YT_E_INVALID, "command %u: chain: operand %u has %llu bytes", at, 1 + i,
				       (unsigned long long)cmd->src[1 + i].len);
	}
	return YT_OK;
}

#define ONE(name, value) \
	YT_CLONES static void row_##name(float *restrict to, const float *restrict a, uint32_t n) \
	{ \
		for (uint32_t i = 0; i < n; i++) { \
			float x = a[i]; \
			to[i] = (value); \
		} \
	}
/* Operands: two rows; a row and a number; a number and a row. */
#define TWO(name, value) \
	YT_CLONES static void row_##name(float *restrict to, const float *restrict a, const float *restrict b, float number, uint32_t n) \
	{ \
		if (a == NULL) \
			for (uint32_t i = 0; i < n; i++) { \
				float x = number, y = b[i]; \
				to[i] = (value); \
			} \
		else if (b == NULL) \
			for (uint32_t i = 0; i < n; i++) { \
				float x = a[i], y = number; \
				to[i] = (value); \
			} \
		else \
			for (uint32_t i = 0; i < n; i++) { \
				float x = a[i], y = b[i]; \
				to[i] = (value); \
			} \
	}

TWO(add, x + y)
TWO(sub, x - y)
TWO(mul, x *y)
TWO(div, x / y)
TWO(min, yt_reduce_min(x, y))
TWO(max, yt_reduce_max(x, y))
TWO(leaky, yt_chain_leaky(x, y))
ONE(neg, -x)
ONE(abs, yt_abs(x))
ONE(sqrt, YT_SQRT(x))
ONE(exp, yt_exp(x))
ONE(log, yt_log(x))
ONE(sigmoid, yt_sigmoid(x))
ONE(tanh, yt_tanh(x))
ONE(gelu, yt_gelu(x))
ONE(silu, yt_silu(x))
ONE(relu, yt_chain_relu(x))
ONE(round, yt_round(x))
ONE(f16, yt_chain_f16(x))
ONE(bf16, yt_chain_bf16(x))
ONE(i8, yt_chain_i8(x))
ONE(u8, yt_chain_u8(x))

static void load(uint32_t type, const void *src, uint64_t first, float *to, uint32_t n)
{
	if (type == YT_F32)
		memcpy(to, (const float *)src + first, n * sizeof *to);
	else
		yt_cpu_widen(type, src, first, to, n);
}

/* The per-channel numbers of n elements from `first` on. */
static void spread(const float *by, uint64_t inner, uint64_t channels, uint64_t first, float *to, uint32_t n)
{
	uint64_t channel = first / inner % channels, left = inner - first % inner;
	uint32_t i;

	for (i = 0; i < n; i++) {
		to[i] = by[channel];
		if (--left == 0) {
			left = inner;
			channel = channel + 1 == channels ? 0 : channel + 1;
		}
	}
}

static void step(const yt_chain_step *s, float *to, const float *x, const float *y, uint32_t n)
{
	static void (*const one[])(float *restrict, const float *restrict, uint32_t) = {
		row_neg, row_abs, row_sqrt, row_exp, row_log, row_sigmoid, row_tanh, row_gelu, row_silu, row_relu, row_round, row_f16, row_bf16,
		row_i8, row_u8};
	static void (*const two[])(float *restrict, const float *restrict, const float *restrict, float, uint32_t) = {
		row_add, row_sub, row_mul, row_div, row_min, row_max, row_leaky};
	float number[PIECE];
	uint32_t i;

	if (takes_two(s->op)) {
		two[s->op - YT_CHAIN_ADD](to, x, y, s->number, n);
		return;
	}
	if (x == NULL) { /* operand is a number: rare, so it has no variant of its own */
		for (i = 0; i < n; i++)
			number[i] = s->number;
		x = number;
	}
	one[s->op - YT_CHAIN_NEG](to, x, n);
}

void yt_cpu_chain(const yt_chain *c, const yt_cmd *cmd, uint8_t *const p[])
{
	const yt_chain_step *steps = (const yt_chain_step *)(const void *)(c + 1);
	float row[YT_CHAIN_ROWS + 1][PIECE]; /* one more, because a step may write a row that it reads */
	uint64_t n = cmd->launch.param[0], inner = cmd->launch.param[1], channels = cmd->launch.param[2], at;
	uint32_t place[YT_CHAIN_ROWS], spare, i;

	for (at = 0; at < n; at += PIECE) {
		uint32_t m = n - at < PIECE ? (uint32_t)(n - at) : PIECE, old;

		for (i = 0; i < YT_CHAIN_ROWS; i++)
			place[i] = i;
		spare = YT_CHAIN_ROWS;
		for (i = 0; i < c->steps; i++) {
			const yt_chain_step *s = &steps[i];
			float *to = row[spare];

			if (s->op != YT_CHAIN_LOAD)
				step(s, to, s->x != YT_CHAIN_NUMBER ? row[place[s->x]] : NULL,
				     s->y < YT_CHAIN_ROWS ? row[place[s->y]] : NULL, m);
			else if (s->x == 0 || c->kind[s->x - 1] == YT_CHAIN_ELEMENT)
				load(c->in, p[1 + s->x], at, to, m);
			else
				spread((const float *)(const void *)p[1 + s->x], inner, channels, at, to, m);
			old = place[s->to];
			place[s->to] = spare;
			spare = old;
		}
		yt_cpu_narrow(c->out, row[place[c->result]], p[0], at, m);
	}
}
