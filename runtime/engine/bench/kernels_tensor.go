package bench

import (
	"errors"
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/schema/fuse"
)

func productKernels(r *rig) []benchmark {
	n := 384
	if !r.onCPU() {
		n = 2048
	}
	var list []benchmark
	for _, t := range []core.Type{core.F16, core.I8} {
		list = append(list, r.product(t, n, n, n))
	}
	return list
}

func rowKernels(r *rig) []benchmark {
	n, cols := 512, 1000
	if !r.onCPU() {
		n = 65536
	}
	x := ramp(n * cols)
	shape := []int64{int64(n), int64(cols)}
	src := r.tensor(bytesOf(x))
	dst := r.alloc(4*n*cols, core.MemAuto)
	y := make([]float32, n*cols)
	args := core.RowsArgs{Rows: uint32(n), Cols: uint32(cols)}
	softmax := benchmark{
		kernel: "K4", name: fmt.Sprintf("softmax %dx%d f32", n, cols), bytes: count(8 * n * cols),
		run: r.time(func(l *core.List) { l.Softmax(dst.All(), src.All(), args) }),
	}
	g := &graph{}
	g.node("Softmax", []string{"x"}, []string{"y"}, "axis", int64(1))
	softmax.reference = r.networkReference("Softmax", g, shape, x, r.plainReference("plain C with expf of libm", func() { refSoftmax(x, y, n, cols) }))
	const k = 5
	args.K = k
	top := benchmark{
		kernel: "K5", name: fmt.Sprintf("top %d of %dx%d f32", k, n, cols), bytes: count(4*n*cols + 8*n*k),
		run: r.time(func(l *core.List) { l.TopK(dst.At(0, 8*n*k), src.All(), args) }),
	}
	g = &graph{}
	g.ints("k", k)
	g.node("TopK", []string{"x", "k"}, []string{"y", "at"})
	top.reference = r.networkReference("TopK", g, shape, x, r.plainReference("plain C, insertion", func() { refTopK(x, y, n, cols, k) }))
	return []benchmark{softmax, top}
}

func reductionKernels(r *rig) []benchmark {
	n := 4 << 20
	if !r.onCPU() {
		n = 256 << 20
	}
	x := ramp(n)
	values := r.tensor(bytesOf(x))
	result := r.alloc(4, core.MemAuto)
	var list []benchmark
	for _, v := range []struct {
		name, onnx string
		op         core.Reduction
		ref        func([]float32) float32
	}{{"sum", "ReduceSum", core.Sum, refSum}, {"minimum", "ReduceMin", core.Min, refMin}, {"maximum", "ReduceMax", core.Max, refMax}} {
		b := benchmark{
			kernel: "K7", name: fmt.Sprintf("%s of %d Mi f32", v.name, n>>20), bytes: count(4 * n),
			run: r.time(func(l *core.List) { l.Reduce(result.All(), values.All(), v.op) }),
		}
		otherwise := r.plainReference("plain C loop", func() { v.ref(x) })
		if v.op == core.Sum && r.libraries.blas != nil {
			otherwise = r.foreignReference("cblas_sasum of "+r.libraries.blas.name(), func() { r.libraries.blas.sum(x) })
		}
		g := &graph{}
		g.node(v.onnx, []string{"x"}, []string{"y"}, "keepdims", int64(1))
		b.reference = r.networkReference(v.onnx, g, []int64{int64(n)}, x, otherwise)
		list = append(list, b)
	}
	return list
}

func mapKernels(r *rig) []benchmark {
	n := 4 << 20
	if !r.onCPU() {
		n = 64 << 20
	}
	x, y := ramp(n), make([]float32, n)
	src := r.tensor(bytesOf(x))
	dst := r.alloc(4*n, core.MemAuto)
	var list []benchmark
	for _, v := range []struct {
		kernel, name string
		steps        int
	}{{"K8", "scale, bias, ReLU", 2}, {"K9", "chain of 4 maps", 4}} {
		chain, err := fuse.Parse(fuse.F32, fuse.F32, []string{"x * 1.5 + 0.25", "relu(x)", "x * 0.5 - 1", "clamp(x, -0.5, 0.5)"}[:v.steps]...)
		r.check(err)
		f, err := r.d.Fuse(chain, nil)
		if errors.Is(err, core.ErrNotSupported) { // a GPU without NVRTC
			return nil
		}
		r.check(err)
		r.cleanup = append(r.cleanup, f.Release)
		b := benchmark{
			kernel: v.kernel, name: fmt.Sprintf("%s, %d Mi f32", v.name, n>>20), bytes: count(8 * n), flops: count((3 * v.steps / 2) * n), numbers: "f32",
			run: r.time(func(l *core.List) { l.Fused(f, dst.All(), src.All(), core.Channels{}) }),
		}
		g := &graph{}
		for name, c := range map[string]float32{"a": 1.5, "b": 0.25, "c": 0.5, "d": 1, "low": -0.5, "high": 0.5} {
			g.floats(name, nil, c)
		}
		g.node("Mul", []string{"x", "a"}, []string{"x1"})
		g.node("Add", []string{"x1", "b"}, []string{"x2"})
		last, ops := "y", "Mul, Add, Relu"
		if v.steps == 4 {
			last, ops = "x3", "Mul, Add, Relu, Mul, Sub, Clip"
		}
		g.node("Relu", []string{"x2"}, []string{last})
		if v.steps == 4 {
			g.node("Mul", []string{"x3", "c"}, []string{"x4"})
			g.node("Sub", []string{"x4", "d"}, []string{"x5"})
			g.node("Clip", []string{"x5", "low", "high"}, []string{"y"})
		}
		b.reference = r.networkReference(ops, g, []int64{int64(n)}, x, r.plainReference("plain C, a pass each", func() { refChain(x, y, v.steps) }))
		list = append(list, b)
	}
	return list
}

func layoutKernels(r *rig) []benchmark {
	const side, channels = 640, 3
	batch := 1
	if !r.onCPU() {
		batch = 32
	}
	n := batch * side * side * channels
	x, y := ramp(n), make([]float32, n)
	src := r.tensor(bytesOf(x))
	dst := r.alloc(4*n, core.MemAuto)
	args := core.ConvertArgs{N: uint32(batch), C: channels, H: side, W: side, Scale: 1, InLayout: uint8(core.NHWC)}
	turn := benchmark{
		kernel: "K10", name: fmt.Sprintf("NHWC to NCHW, %dx%dx%dx%d f32", batch, side, side, channels), bytes: count(8 * n),
		run: r.time(func(l *core.List) { l.Convert(dst.All(), src.All(), core.Region{}, args) }),
	}
	g := &graph{}
	g.node("Transpose", []string{"x"}, []string{"y"}, "perm", []int64{0, 3, 1, 2})
	shape := []int64{int64(batch), side, side, channels}
	turn.reference = r.networkReference("Transpose", g, shape, x, r.plainReference("plain C", func() { refToPlanes(x, y, side*side, channels) }))
	const scale = 1.0 / 127
	small := r.alloc(n, core.MemAuto)
	down := core.ConvertArgs{N: uint32(batch), C: channels, H: side, W: side, Scale: scale, Out: uint8(core.I8)}
	up := core.ConvertArgs{N: uint32(batch), C: channels, H: side, W: side, Scale: scale, In: uint8(core.I8)}
	quantise := benchmark{
		kernel: "K10", name: fmt.Sprintf("quantise to i8 and back, %dx%dx%dx%d", batch, side, side, channels), bytes: count(10 * n),
		run: r.time(func(l *core.List) {
			l.Convert(small.All(), src.All(), core.Region{}, down).Convert(dst.All(), small.All(), core.Region{}, up)
		}),
	}
	g = &graph{}
	g.floats("scale", nil, scale)
	g.bytes("zero", nil, 0)
	g.node("QuantizeLinear", []string{"x", "scale", "zero"}, []string{"q"})
	g.node("DequantizeLinear", []string{"q", "scale", "zero"}, []string{"y"})
	q := make([]byte, n)
	otherwise := r.plainReference("plain C", func() { refQuantise(x, q, y, scale) })
	quantise.reference = r.networkReference("QuantizeLinear, DequantizeLinear", g, shape, x, otherwise)
	half := core.ConvertArgs{N: uint32(batch), C: channels, H: side, W: side, Scale: 1, Out: uint8(core.F16)}
	back := core.ConvertArgs{N: uint32(batch), C: channels, H: side, W: side, Scale: 1, In: uint8(core.F16)}
	halves := r.alloc(2*n, core.MemAuto)
	cast := benchmark{
		kernel: "K10", name: fmt.Sprintf("f32 to f16 and back, %dx%dx%dx%d", batch, side, side, channels), bytes: count(12 * n),
		run: r.time(func(l *core.List) {
			l.Convert(halves.All(), src.All(), core.Region{}, half).Convert(dst.All(), halves.All(), core.Region{}, back)
		}),
	}
	g = &graph{}
	g.node("Cast", []string{"x"}, []string{"h"}, "to", onnxHalf)
	g.node("Cast", []string{"h"}, []string{"y"}, "to", onnxFloat)
	cast.reference = r.networkReference("Cast, Cast", g, shape, x, nil)
	return []benchmark{turn, quantise, cast}
}
