/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_chain.h - a chain: one function of each element, compiled by the caller from
 * expressions (schema/fuse). The CPU backend loads it as a module and runs it
 * over pieces of the tensor that stay in the cache; for a GPU the caller writes it out
 * as CUDA. Both compute each step with the functions of yt_ops.h, so bits are equal.
 *
 * An image is a yt_chain, then its steps. The module has one kernel, "chain". It is
 * launched with dst, the elements of src and the chain's other operands as ranges, and
 * three params: n elements, and for operands by channel `inner` and `channels`: the
 * channel of element i is i / inner % channels.
 */
#ifndef YT_CHAIN_H
#define YT_CHAIN_H

#include "yt_ops.h"

#define YT_CHAIN_MAGIC 0x31435459u /* "YTC1" */
#define YT_CHAIN_STEPS 256u
#define YT_CHAIN_ROWS 16u /* values alive at one time */
#define YT_CHAIN_OPERANDS 2u
#define YT_CHAIN_NUMBER 255u /* instead of a row: the step's number */

enum { YT_CHAIN_ELEMENT = 1, YT_CHAIN_CHANNEL = 2 }; /* kinds of operands */

/* x and y are the step's two values; those of one value take x. */
enum {
	YT_CHAIN_LOAD = 0,  /* operand x: 0 the element of src, 1.. the others     */
	YT_CHAIN_ADD, YT_CHAIN_SUB, YT_CHAIN_MUL, YT_CHAIN_DIV,
	YT_CHAIN_MIN,       /* x < y or x NaN: x, else y                           */
	YT_CHAIN_MAX,
	YT_CHAIN_LEAKY,     /* x < 0 ? x * y : x                                   */
	YT_CHAIN_NEG, YT_CHAIN_ABS, YT_CHAIN_SQRT, YT_CHAIN_EXP, YT_CHAIN_LOG, YT_CHAIN_SIGMOID, YT_CHAIN_TANH,
	YT_CHAIN_GELU, YT_CHAIN_SILU, YT_CHAIN_RELU,
	YT_CHAIN_ROUND,     /* to nearest even                                     */
	YT_CHAIN_F16, YT_CHAIN_BF16, YT_CHAIN_I8, YT_CHAIN_U8 /* through that type and back */
};
#define YT_CHAIN_LAST YT_CHAIN_U8

typedef struct yt_chain_step {
	uint8_t op, to, x, y; /* rows, or YT_CHAIN_NUMBER for one of x and y       */
	float number;
} yt_chain_step;

typedef struct yt_chain {
	uint32_t magic;
	uint16_t steps;
	uint8_t in, out;      /* of src and its element operands: F32, F16, BF16; of dst: any but I32 */
	uint8_t operands;     /* beside src                                        */
	uint8_t kind[YT_CHAIN_OPERANDS];
	uint8_t result;       /* row                                               */
} yt_chain;

YT_FN float yt_chain_leaky(float x, float y)
{
	return x < 0.0f ? x * y : x;
}

YT_FN float yt_chain_relu(float x)
{
	return x < 0.0f ? 0.0f : x;
}

YT_FN float yt_chain_f16(float x)
{
	return yt_half_to_float(yt_half_of(x));
}

YT_FN float yt_chain_bf16(float x)
{
	return yt_bf16_to_float(yt_bf16_of(x));
}

YT_FN float yt_chain_i8(float x)
{
	return (float)yt_saturate(x, -128.0f, 127.0f);
}

YT_FN float yt_chain_u8(float x)
{
	return (float)yt_saturate(x, 0.0f, 255.0f);
}

#endif /* YT_CHAIN_H */
