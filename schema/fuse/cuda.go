package fuse

import (
	"fmt"
	"math"
	"strings"
)

// KernelName is the name of the kernel in Source and in Image.
const KernelName = "chain"

// Threads is the block size of the kernel. Each thread processes four elements at a time in
// a grid-stride loop.
const Threads = 256

var formats = [...]string{ // read-only
	opAdd: "%s + %s", opSub: "%s - %s", opMul: "%s * %s", opDiv: "%s / %s", opMin: "yt_reduce_min(%s, %s)",
	opMax: "yt_reduce_max(%s, %s)", opLeaky: "yt_chain_leaky(%s, %s)", opNeg: "-%s", opAbs: "yt_abs(%s)", opSqrt: "YT_SQRT(%s)",
	opExp: "yt_exp(%s)", opLog: "yt_log(%s)", opSigmoid: "yt_sigmoid(%s)", opTanh: "yt_tanh(%s)", opGelu: "yt_gelu(%s)",
	opSilu: "yt_silu(%s)", opRelu: "yt_chain_relu(%s)", opRound: "yt_round(%s)", opF16: "yt_chain_f16(%s)",
	opBF16: "yt_chain_bf16(%s)", opI8: "yt_chain_i8(%s)", opU8: "yt_chain_u8(%s)",
}

// Source returns the chain as CUDA C++. It must be compiled with the core's headers and
// without contraction (--fmad=false). The arguments of its kernel "chain" are dst, src, the
// operands, n, inner and channels.
func (c *Chain) Source() string {
	var b strings.Builder
	arg := [1 + maxOperands]string{"x", "a", "b"}
	b.WriteString("#include \"yt_chain.h\"\n#include \"ops.h\"\n\nYT_FN float chain_of(float x, float a, float b)\n{\n\t(void)a, (void)b;\n")
	for i, s := range c.steps {
		text := func(v value) string {
			if v.step < 0 {
				return fmt.Sprintf("yt_from_bits(0x%08xu)", math.Float32bits(v.number))
			}
			return fmt.Sprintf("v%d", v.step)
		}
		fmt.Fprintf(&b, "\tfloat v%d = ", i)
		switch {
		case s.op == opLoad:
			b.WriteString(arg[s.x.step])
		case s.op.binary():
			fmt.Fprintf(&b, formats[s.op], text(s.x), text(s.y))
		default:
			fmt.Fprintf(&b, formats[s.op], text(s.x))
		}
		b.WriteString(";\n")
	}
	fmt.Fprintf(&b, "\treturn v%d;\n}\n\n", c.result)

	names := [maxOperands]string{"first", "second"}
	var params, wide strings.Builder
	for slot, i := range c.operands {
		if operandNames[i].channel {
			fmt.Fprintf(&params, ", const float *%s", names[slot])
			continue
		}
		fmt.Fprintf(&params, ", const void *%s", names[slot])
		fmt.Fprintf(&wide, " && yt_wide(%d, %s)", c.in, names[slot])
	}
	fmt.Fprintf(&b, "// Elements i to i + 3.\nYT_FN void chain_body(void *dst, const void *src%s, uint64_t n, uint64_t inner, uint64_t channels, uint64_t i, bool wide)\n{\n", params.String())
	b.WriteString("\tbool whole = wide && i + 4 <= n;\n")
	fmt.Fprintf(&b, "\tyt_f4 x = yt_load4(%d, src, i, n, whole), a = {{0, 0, 0, 0}}, b = {{0, 0, 0, 0}};\n\n\t(void)inner, (void)channels;\n", c.in)
	for slot, i := range c.operands {
		if operandNames[i].channel {
			fmt.Fprintf(&b, "\tYT_UNROLL\n\tfor (uint32_t j = 0; j < 4; j++)\n\t\t%s.v[j] = %s[(i + j) / inner %% channels];\n", arg[1+slot], names[slot])
		} else {
			fmt.Fprintf(&b, "\t%s = yt_load4(%d, %s, i, n, whole);\n", arg[1+slot], c.in, names[slot])
		}
	}
	b.WriteString("\tYT_UNROLL\n\tfor (uint32_t j = 0; j < 4; j++)\n\t\tx.v[j] = chain_of(x.v[j], a.v[j], b.v[j]);\n")
	fmt.Fprintf(&b, "\tyt_store4(%d, dst, i, n, whole, x);\n}\n\n", c.out)

	args := ""
	for slot := range c.operands {
		args += ", " + names[slot]
	}
	fmt.Fprintf(&b, `#if defined(__CUDACC__)
extern "C" __global__ void __launch_bounds__(%d)
	%s(void *dst, const void *src%s, uint64_t n, uint64_t inner, uint64_t channels)
{
	uint64_t step = 4 * (uint64_t)gridDim.x * blockDim.x;
	bool wide = yt_wide(%d, src) && yt_wide(%d, dst)%s;

	for (uint64_t i = 4 * ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x); i < n; i += step)
		chain_body(dst, src%s, n, inner, channels, i, wide);
}
#endif
`, Threads, KernelName, params.String(), c.in, c.out, wide.String(), args)
	return b.String()
}
