package bench

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// computeSuite measures matrix products of all types: a large square one, one whose sides
// are not multiples of a tile, and a single row as in the last layer of a model.
func computeSuite(r *rig) []benchmark {
	shapes := [][3]int{{512, 512, 512}, {250, 251, 253}, {1, 1024, 1024}}
	if !r.onCPU() {
		shapes = [][3]int{{4096, 4096, 4096}, {1000, 1003, 999}, {16, 4096, 4096}}
	}
	var list []benchmark
	for _, t := range []core.Type{core.F32, core.F16, core.BF16, core.I8} {
		for _, s := range shapes {
			list = append(list, r.product(t, s[0], s[1], s[2]))
		}
	}
	return list
}

func typeName(t core.Type) string {
	return map[core.Type]string{core.F32: "f32", core.F16: "f16", core.BF16: "bf16", core.I8: "i8", core.U8: "u8", core.I32: "i32"}[t]
}

// product multiplies an m×k by a k×n matrix.
func (r *rig) product(t core.Type, m, n, k int) benchmark {
	x, y := ramp(m*k), ramp(k*n)
	out := t
	if t == core.I8 {
		out = core.I32
	}
	a := r.tensor(encode(t, x))
	b := r.tensor(encode(t, y))
	c := r.alloc(m*n*out.Bytes(), core.MemAuto)
	args := core.GemmArgs{M: uint32(m), N: uint32(n), K: uint32(k), Type: uint8(t), Out: uint8(out), Alpha: 1}
	result := benchmark{
		kernel: "K11", name: fmt.Sprintf("matrix product %s %dx%dx%d", typeName(t), m, n, k), numbers: typeName(t),
		bytes: count(t.Bytes()*(m*k+k*n) + out.Bytes()*m*n), flops: count(2 * m * n * k),
		run: r.time(func(l *core.List) { l.Gemm(c.All(), a.All(), b.All(), core.Region{}, args) }),
	}
	if t == core.I8 {
		result.kernel = "K12"
	}
	if !r.onCPU() {
		return result
	}
	z := make([]float32, m*n)
	switch {
	case t == core.I8:
		g := &graph{}
		g.node("Cast", []string{"x"}, []string{"a"}, "to", onnxInt8)
		g.bytes("b", []int64{int64(k), int64(n)}, signed(encode(t, y))...)
		g.node("MatMulInteger", []string{"a", "b"}, []string{"p"})
		g.node("Cast", []string{"p"}, []string{"y"}, "to", onnxFloat)
		otherwise := r.plainReference("float32 product in plain C", func() { refGemm(x, y, z, m, n, k) })
		result.reference = r.networkReference("Cast, MatMulInteger, Cast", g, []int64{int64(m), int64(k)}, signed(encode(t, x)), otherwise)
		return result
	case r.libraries.blas != nil:
		name := "cblas_sgemm of " + r.libraries.blas.name()
		if t != core.F32 {
			name += ", in float32"
		}
		result.reference = r.foreignReference(name, func() { r.libraries.blas.gemm(x, y, z, m, n, k) })
	default:
		result.reference = r.plainReference("float32 product in plain C", func() { refGemm(x, y, z, m, n, k) })
	}
	result.numbers = "f32"
	return result
}

// signed returns bytes as the int8 values that they represent.
func signed(x []byte) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(int8(v))
	}
	return out
}

// encode converts values from 0 to 1 to elements of a type; integers become 0 to 127.
func encode(t core.Type, x []float32) []byte {
	out := make([]byte, 0, len(x)*t.Bytes())
	for _, v := range x {
		switch t {
		case core.F32:
			out = binary.NativeEndian.AppendUint32(out, math.Float32bits(v))
		case core.F16:
			out = binary.NativeEndian.AppendUint16(out, toFloat16(v))
		case core.BF16:
			out = binary.NativeEndian.AppendUint16(out, uint16(math.Float32bits(v)>>16))
		default:
			out = append(out, byte(v*127))
		}
	}
	return out
}

// toFloat16 converts a value from 0 to 1 to float16, truncating.
func toFloat16(v float32) uint16 {
	bits := math.Float32bits(v)
	exponent := int(bits>>23) - 127 + 15
	if exponent <= 0 {
		return 0
	}
	return uint16(exponent<<10 | int(bits>>13&0x3ff))
}
