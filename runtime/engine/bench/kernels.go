package bench

import (
	"errors"
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// kernels is every kernel of the core, on what a detector's pipeline gives it. The
// flops of preprocess are counted in yt_math.h, those of maps are the steps.
func kernels(r *rig) ([]benchmark, error) {
	var list []benchmark
	for _, part := range []func(*rig) ([]benchmark, error){
		frames, detector, rows, reductions, maps, layouts, products, regions, motion,
	} {
		more, err := part(r)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	b, err := r.copying("within the device", uncached, core.MemAuto, core.MemAuto)
	b.kernel = "K13"
	return append(list, b), err
}

func products(r *rig) ([]benchmark, error) {
	n := 384
	if !r.onCPU() {
		n = 2048
	}
	var list []benchmark
	for _, t := range []core.Type{core.F16, core.I8} {
		b, err := r.product(t, n, n, n)
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

// The usual first stage of a detector: a 1080p camera, a square model.
func preprocess1080(chroma core.Chroma) *core.Preprocess {
	return &core.Preprocess{
		Format: core.NV12, Width: 1920, Height: 1080, OutW: 640, OutH: 640,
		Fit: core.Letterbox, Pad: 114, Chroma: chroma,
	}
}

// picture is a smooth frame with a little noise. On pure noise every clamp of the
// references would be a mispredicted branch, and they would look ten times slower than
// on what cameras see.
func picture(f core.Format, w, h int) []byte {
	frame := make([]byte, core.FrameBytes(f, w, h))
	state := uint64(1)
	row := max(len(frame)/h, 1)
	for i := range frame {
		state = state*6364136223846793005 + 1442695040888963407
		noise := int(state >> 62)
		if planar := f == core.NV12 || f == core.I420; !planar {
			frame[i] = byte(40 + 160*(i%row)/row + noise)
		} else if y := i / w; y < h {
			frame[i] = byte(40 + 160*(i%w)/w + noise)
		} else {
			frame[i] = byte(110 + 30*(y-h)/(h/2) + noise)
		}
	}
	return frame
}

// planePitch is the bytes of a row of plane i of a tight frame, and of one sample.
func planePitch(f core.Format, width, i int) (pitch, step int) {
	switch f {
	case core.NV12:
		if i == 1 {
			return 2 * ((width + 1) / 2), 2
		}
	case core.I420:
		if i > 0 {
			return (width + 1) / 2, 1
		}
	case core.YUYV, core.UYVY:
		return 4 * ((width + 1) / 2), 2
	case core.RGB24, core.BGR24:
		return 3 * width, 3
	}
	return width, 1
}

// frame uploads a picture for p, each plane into a buffer.
func (r *rig) frame(p *core.Preprocess) (planes [3]*core.Buffer, pixels []byte, err error) {
	pixels = picture(p.Format, p.Width, p.Height)
	parts, err := core.SplitPlanes(p.Format, p.Width, p.Height, pixels)
	for i, part := range parts {
		if len(part) == 0 || err != nil {
			break
		}
		planes[i], err = r.tensor(part)
	}
	return planes, pixels, err
}

func regionsOf(planes [3]*core.Buffer) (out [3]core.Region) {
	for i, b := range planes {
		if b != nil {
			out[i] = b.All()
		}
	}
	return out
}

func frames(r *rig) ([]benchmark, error) {
	type variant struct {
		kernel, name, ffmpeg string // FFmpeg's name of the format
		set                  func(*core.Preprocess)
	}
	hd := func(f core.Format) func(*core.Preprocess) {
		return func(p *core.Preprocess) { p.Format = f }
	}
	var list []benchmark
	for _, v := range []variant{
		{"K1", "NV12 1920x1080 to 640x640 f32, nearest chroma", "nv12", func(*core.Preprocess) {}},
		{"K1", "NV12 1920x1080 to 640x640 f32, bilinear chroma", "nv12", func(p *core.Preprocess) { p.Chroma = core.ChromaBilinear }},
		{"K1h", "NV12 1920x1080 to 640x640 f16", "nv12", func(p *core.Preprocess) { p.Type = core.F16 }},
		{"K2", "I420 1920x1080 to 640x640 f32", "yuv420p", hd(core.I420)},
		{"K2", "YUYV 1920x1080 to 640x640 f32", "yuyv422", hd(core.YUYV)},
		{"K2", "RGB 1920x1080 to 640x640 f32", "rgb24", hd(core.RGB24)},
		{"K2", "gray 1920x1080 to 640x640 f32", "gray", func(p *core.Preprocess) { p.Format, p.Color = core.Gray8, core.Gray }},
		{"K2", "NV12 3840x2160 to 640x640 f16", "nv12", func(p *core.Preprocess) { p.Width, p.Height, p.Type = 3840, 2160, core.F16 }},
	} {
		p := preprocess1080(core.ChromaNearest)
		v.set(p)
		b, err := r.preprocess(v.kernel, v.name, v.ffmpeg, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		list = append(list, b)
	}
	b, err := r.batch()
	return append(list, b), err
}

func (r *rig) preprocess(kernel, name, ffmpeg string, p *core.Preprocess) (benchmark, error) {
	planes, pixels, err := r.frame(p)
	if err != nil {
		return benchmark{}, err
	}
	g, err := p.Geometry()
	if err != nil {
		return benchmark{}, err
	}
	bytes := p.OutLen() * p.Type.Bytes()
	out, err := r.alloc(bytes, core.MemAuto)
	if err != nil {
		return benchmark{}, err
	}
	perPixel := 35
	switch {
	case p.Chroma == core.ChromaBilinear:
		perPixel = 53
	case p.Format == core.Gray8:
		perPixel = 12
	}
	b := benchmark{
		kernel: kernel, name: "preprocess " + name, numbers: "f32",
		// Every frame byte is near some tap; the tensor is written in full.
		bytes: count(len(pixels) + bytes), flops: count(perPixel * g.Inner.Width * g.Inner.Height),
		run: r.timed(func(l *core.List) { l.Preprocess(out.All(), regionsOf(planes), p) }),
	}
	if !r.onCPU() {
		return b, nil
	}
	tensor := make([]float32, 3*p.OutW*p.OutH)
	if r.others.sws != nil {
		if s := r.others.sws.scaler(ffmpeg, p, planes); s != nil {
			r.cleanup = append(r.cleanup, s.release)
			b.reference = r.foreign(r.others.sws.name()+" fast_bilinear to RGB24, then a loop to float32 planes", func() { s.tensor(tensor) })
			return b, nil
		}
	}
	if p.Format == core.NV12 {
		rgb := make([]byte, 3*p.Width*p.Height) // between its passes
		b.reference = r.plain("plain C, two passes: to RGB, then resize", func() { refTwoPass(p, pixels, rgb, tensor) })
	}
	return b, nil
}

// batch is frames of several sizes into one tensor, in one list. The reference is the
// same, frame by frame.
func (r *rig) batch() (benchmark, error) {
	n := 4
	if !r.onCPU() {
		n = 32
	}
	var args []*core.Preprocess
	var planes [][3]*core.Buffer
	total := 0
	for i := range n {
		p := preprocess1080(core.ChromaNearest)
		p.Type = core.F16
		if i%2 == 1 {
			p.Width, p.Height = 1280, 720
		}
		frame, pixels, err := r.frame(p)
		if err != nil {
			return benchmark{}, err
		}
		args, planes, total = append(args, p), append(planes, frame), total+len(pixels)
	}
	each := args[0].OutLen() * 2
	out, err := r.alloc(n*each, core.MemAuto)
	if err != nil {
		return benchmark{}, err
	}
	all := r.timed(func(l *core.List) {
		for i, p := range args {
			l.Preprocess(out.At(i*each, each), regionsOf(planes[i]), p)
		}
	})
	return benchmark{
		kernel: "K1b", name: fmt.Sprintf("preprocess a batch of %d, 1080p and 720p, to 640x640 f16", n),
		bytes: count(total + n*each), run: all,
	}, nil
}

// detector is the output of YOLOv8: 8400 anchors, 80 classes.
func detector(r *rig) ([]benchmark, error) {
	const anchors, classes, most = 8400, 80, 1024
	x := ramp((4 + classes) * anchors)
	for i := range x {
		if i < 4*anchors {
			x[i] *= 600 // centres and sides in pixels
		} else {
			x[i] *= x[i] * x[i] // most scores are small
		}
	}
	const threshold = 0.95
	src, err := r.tensor(bytesOf(x))
	if err != nil {
		return nil, err
	}
	dst, err := r.alloc(core.BoxesBytes(most), core.MemAuto)
	if err != nil {
		return nil, err
	}
	args := core.DecodeArgs{
		Anchors: anchors, Classes: classes, Max: most, Batch: 1, Threshold: threshold,
		ScaleX: 1, ScaleY: 1, LimitX: 640, LimitY: 640,
	}
	b := benchmark{
		kernel: "K3", name: fmt.Sprintf("YOLO decode of %d anchors, %d classes", anchors, classes), bytes: count(4*len(x) + core.BoxesBytes(most)),
		run: r.timed(func(l *core.List) { l.Decode(dst.All(), src.All(), args) }),
	}
	found := make([]float32, 6*most)
	g := &graph{}
	g.ints("zero", 0)
	g.ints("four", 4)
	g.ints("end", 4+classes)
	g.ints("k", most)
	g.node("Slice", []string{"x", "four", "end", "zero"}, []string{"scores"})
	g.node("Slice", []string{"x", "zero", "four", "zero"}, []string{"boxes"})
	g.node("ReduceMax", []string{"scores"}, []string{"best"}, "axes", []int64{0}, "keepdims", int64(0))
	g.node("ArgMax", []string{"scores"}, []string{"cls"}, "axis", int64(0), "keepdims", int64(0))
	g.node("TopK", []string{"best", "k"}, []string{"top", "at"})
	g.node("Gather", []string{"boxes", "at"}, []string{"kept"}, "axis", int64(1))
	g.node("Gather", []string{"cls", "at"}, []string{"which"})
	g.node("Cast", []string{"which"}, []string{"class"}, "to", onnxFloat)
	g.node("Unsqueeze", []string{"top", "zero"}, []string{"top2"})
	g.node("Unsqueeze", []string{"class", "zero"}, []string{"class2"})
	g.node("Concat", []string{"kept", "top2", "class2"}, []string{"y"}, "axis", int64(0))
	otherwise := r.plain("plain C, one pass, not ranked", func() { refDecode(x, found, anchors, classes, threshold, most) })
	if b.reference, err = r.network("ReduceMax, ArgMax, TopK, Gather", g, []int64{4 + classes, anchors}, x, otherwise); err != nil {
		return nil, err
	}
	list := []benchmark{b}
	for _, n := range []int{1000, anchors} {
		b, err := r.nms(n)
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

func (r *rig) nms(n int) (benchmark, error) {
	const iou = 0.5
	random := ramp(5 * n)
	boxes, flat := make([]core.Box, n), make([]float32, 0, 5*n)
	for i := range boxes {
		v := random[5*i:]
		x, y := 600*v[0], 600*v[1]
		boxes[i] = core.Box{X0: x, Y0: y, X1: x + 5 + 80*v[2], Y1: y + 5 + 80*v[3], Score: v[4], Anchor: int32(i)}
		flat = append(flat, boxes[i].Score, boxes[i].X0, boxes[i].Y0, boxes[i].X1, boxes[i].Y1)
	}
	packed := make([]byte, core.BoxesBytes(n))
	if err := core.PutBoxes(packed, boxes); err != nil {
		return benchmark{}, err
	}
	src, err := r.tensor(packed)
	if err != nil {
		return benchmark{}, err
	}
	dst, err := r.alloc(core.BoxesBytes(n), core.MemAuto)
	if err != nil {
		return benchmark{}, err
	}
	args := core.NMSArgs{InMax: uint32(n), Max: uint32(n), Batch: 1, IoU: iou}
	b := benchmark{
		kernel: "K6", name: fmt.Sprintf("NMS of %d boxes", n), bytes: count(2 * len(packed)),
		run: r.timed(func(l *core.List) { l.NMS(dst.All(), src.All(), args) }),
	}
	// In ONNX a box is y0, x0, y1, x1; a row of x is one coordinate, the last the score.
	columns := make([]float32, 5*n)
	for i, v := range boxes {
		for k, f := range [...]float32{v.Y0, v.X0, v.Y1, v.X1, v.Score} {
			columns[k*n+i] = f
		}
	}
	g := &graph{}
	g.ints("zero", 0)
	g.ints("one", 1)
	g.ints("four", 4)
	g.ints("five", 5)
	g.ints("most", int64(n))
	g.floats("iou", []int64{1}, iou)
	g.node("Slice", []string{"x", "zero", "four", "zero"}, []string{"edges"})
	g.node("Transpose", []string{"edges"}, []string{"rows"}, "perm", []int64{1, 0})
	g.node("Unsqueeze", []string{"rows", "zero"}, []string{"boxes"})
	g.node("Slice", []string{"x", "four", "five", "zero"}, []string{"score"})
	g.node("Unsqueeze", []string{"score", "zero"}, []string{"scores"})
	g.node("NonMaxSuppression", []string{"boxes", "scores", "most", "iou"}, []string{"kept"})
	g.node("Cast", []string{"kept"}, []string{"y"}, "to", onnxFloat)
	rank := make([]float32, len(flat))
	otherwise := r.plain("plain C: qsort, then every pair", func() { refNMS(flat, iou, rank) })
	b.reference, err = r.network("NonMaxSuppression", g, []int64{5, int64(n)}, columns, otherwise)
	return b, err
}

func rows(r *rig) ([]benchmark, error) {
	n, cols := 512, 1000
	if !r.onCPU() {
		n = 65536
	}
	x := ramp(n * cols)
	shape := []int64{int64(n), int64(cols)}
	src, err := r.tensor(bytesOf(x))
	if err != nil {
		return nil, err
	}
	dst, err := r.alloc(4*n*cols, core.MemAuto)
	if err != nil {
		return nil, err
	}
	y := make([]float32, n*cols)
	args := core.RowsArgs{Rows: uint32(n), Cols: uint32(cols)}
	softmax := benchmark{
		kernel: "K4", name: fmt.Sprintf("softmax %dx%d f32", n, cols), bytes: count(8 * n * cols),
		run: r.timed(func(l *core.List) { l.Softmax(dst.All(), src.All(), args) }),
	}
	g := &graph{}
	g.node("Softmax", []string{"x"}, []string{"y"}, "axis", int64(1))
	softmax.reference, err = r.network("Softmax", g, shape, x, r.plain("plain C with expf of libm", func() { refSoftmax(x, y, n, cols) }))
	if err != nil {
		return nil, err
	}
	argmax := benchmark{
		kernel: "K5", name: fmt.Sprintf("argmax %dx%d f32", n, cols), bytes: count(4 * n * cols),
		run: r.timed(func(l *core.List) { l.Argmax(dst.At(0, 4*n), src.All(), args) }),
	}
	g = &graph{}
	g.node("ArgMax", []string{"x"}, []string{"at"}, "axis", int64(1))
	g.node("Cast", []string{"at"}, []string{"y"}, "to", onnxFloat)
	argmax.reference, err = r.network("ArgMax", g, shape, x, r.plain("plain C", func() { refTopK(x, y, n, cols, 1) }))
	if err != nil {
		return nil, err
	}
	const k = 5
	args.K = k
	top := benchmark{
		kernel: "K5", name: fmt.Sprintf("top %d of %dx%d f32", k, n, cols), bytes: count(4*n*cols + 8*n*k),
		run: r.timed(func(l *core.List) { l.TopK(dst.At(0, 8*n*k), src.All(), args) }),
	}
	g = &graph{}
	g.ints("k", k)
	g.node("TopK", []string{"x", "k"}, []string{"y", "at"})
	top.reference, err = r.network("TopK", g, shape, x, r.plain("plain C, insertion", func() { refTopK(x, y, n, cols, k) }))
	return []benchmark{softmax, argmax, top}, err
}

func reductions(r *rig) ([]benchmark, error) {
	n := 4 << 20
	if !r.onCPU() {
		n = 256 << 20
	}
	x := ramp(n)
	values, err := r.tensor(bytesOf(x))
	if err != nil {
		return nil, err
	}
	result, err := r.alloc(4, core.MemAuto)
	if err != nil {
		return nil, err
	}
	var list []benchmark
	for _, v := range []struct {
		name, onnx string
		op         core.Reduction
		ref        func([]float32) float32
	}{{"sum", "ReduceSum", core.Sum, refSum}, {"minimum", "ReduceMin", core.Min, refMin}, {"maximum", "ReduceMax", core.Max, refMax}} {
		b := benchmark{
			kernel: "K7", name: fmt.Sprintf("%s of %d Mi f32", v.name, n>>20), bytes: count(4 * n),
			run: r.timed(func(l *core.List) { l.Reduce(result.All(), values.All(), v.op) }),
		}
		otherwise := r.plain("plain C loop", func() { v.ref(x) })
		if v.op == core.Sum && r.others.blas != nil {
			otherwise = r.foreign("cblas_sasum of "+r.others.blas.name(), func() { r.others.blas.sum(x) })
		}
		g := &graph{}
		g.node(v.onnx, []string{"x"}, []string{"y"}, "keepdims", int64(1))
		if b.reference, err = r.network(v.onnx, g, []int64{int64(n)}, x, otherwise); err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

func maps(r *rig) ([]benchmark, error) {
	n := 4 << 20
	if !r.onCPU() {
		n = 64 << 20
	}
	x, y := ramp(n), make([]float32, n)
	src, err := r.tensor(bytesOf(x))
	if err != nil {
		return nil, err
	}
	dst, err := r.alloc(4*n, core.MemAuto)
	if err != nil {
		return nil, err
	}
	chain := []core.MapStep{
		{Op: core.MapScale, A: 1.5, B: 0.25}, {Op: core.MapRelu},
		{Op: core.MapScale, A: 0.5, B: -1}, {Op: core.MapClamp, A: -0.5, B: 0.5},
	}
	var list []benchmark
	for _, v := range []struct {
		kernel, name string
		steps        int
	}{{"K8", "scale, bias, ReLU", 2}, {"K9", "chain of 4 maps", 4}} {
		args := core.MapArgs{Steps: uint32(v.steps)}
		copy(args.Step[:], chain[:v.steps])
		b := benchmark{
			kernel: v.kernel, name: fmt.Sprintf("%s, %d Mi f32", v.name, n>>20), bytes: count(8 * n), flops: count((3 * v.steps / 2) * n), numbers: "f32",
			run: r.timed(func(l *core.List) { l.Map(dst.All(), src.All(), core.Region{}, core.Region{}, args) }),
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
		if b.reference, err = r.network(ops, g, []int64{int64(n)}, x, r.plain("plain C, a pass each", func() { refChain(x, y, v.steps) })); err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

func layouts(r *rig) ([]benchmark, error) {
	const side, channels = 640, 3
	batch := 1
	if !r.onCPU() {
		batch = 32
	}
	n := batch * side * side * channels
	x, y := ramp(n), make([]float32, n)
	src, err := r.tensor(bytesOf(x))
	if err != nil {
		return nil, err
	}
	dst, err := r.alloc(4*n, core.MemAuto)
	if err != nil {
		return nil, err
	}
	args := core.ConvertArgs{N: uint32(batch), C: channels, H: side, W: side, Scale: 1, InLayout: uint8(core.NHWC)}
	turn := benchmark{
		kernel: "K10", name: fmt.Sprintf("NHWC to NCHW, %dx%dx%dx%d f32", batch, side, side, channels), bytes: count(8 * n),
		run: r.timed(func(l *core.List) { l.Convert(dst.All(), src.All(), core.Region{}, args) }),
	}
	g := &graph{}
	g.node("Transpose", []string{"x"}, []string{"y"}, "perm", []int64{0, 3, 1, 2})
	shape := []int64{int64(batch), side, side, channels}
	turn.reference, err = r.network("Transpose", g, shape, x, r.plain("plain C", func() { refToPlanes(x, y, side*side, channels) }))
	if err != nil {
		return nil, err
	}
	const scale = 1.0 / 127
	small, err := r.alloc(n, core.MemAuto)
	if err != nil {
		return nil, err
	}
	down := core.ConvertArgs{N: uint32(batch), C: channels, H: side, W: side, Scale: scale, Out: uint8(core.I8)}
	up := core.ConvertArgs{N: uint32(batch), C: channels, H: side, W: side, Scale: scale, In: uint8(core.I8)}
	quantise := benchmark{
		kernel: "K10", name: fmt.Sprintf("quantise to i8 and back, %dx%dx%dx%d", batch, side, side, channels), bytes: count(10 * n),
		run: r.timed(func(l *core.List) {
			l.Convert(small.All(), src.All(), core.Region{}, down).Convert(dst.All(), small.All(), core.Region{}, up)
		}),
	}
	g = &graph{}
	g.floats("scale", nil, scale)
	g.bytes("zero", nil, 0)
	g.node("QuantizeLinear", []string{"x", "scale", "zero"}, []string{"q"})
	g.node("DequantizeLinear", []string{"q", "scale", "zero"}, []string{"y"})
	q := make([]byte, n)
	otherwise := r.plain("plain C", func() { refQuantise(x, q, y, scale) })
	if quantise.reference, err = r.network("QuantizeLinear, DequantizeLinear", g, shape, x, otherwise); err != nil {
		return nil, err
	}
	half := core.ConvertArgs{N: uint32(batch), C: channels, H: side, W: side, Scale: 1, Out: uint8(core.F16)}
	back := core.ConvertArgs{N: uint32(batch), C: channels, H: side, W: side, Scale: 1, In: uint8(core.F16)}
	halves, err := r.alloc(2*n, core.MemAuto)
	if err != nil {
		return nil, err
	}
	cast := benchmark{
		kernel: "K10", name: fmt.Sprintf("f32 to f16 and back, %dx%dx%dx%d", batch, side, side, channels), bytes: count(12 * n),
		run: r.timed(func(l *core.List) {
			l.Convert(halves.All(), src.All(), core.Region{}, half).Convert(dst.All(), halves.All(), core.Region{}, back)
		}),
	}
	g = &graph{}
	g.node("Cast", []string{"x"}, []string{"h"}, "to", onnxHalf)
	g.node("Cast", []string{"h"}, []string{"y"}, "to", onnxFloat)
	cast.reference, err = r.network("Cast, Cast", g, shape, x, nil)
	return []benchmark{turn, quantise, cast}, err
}

// regions is the second stage of a pipeline: 16 boxes of a 1080p frame, for a
// classifier. The reference scales one after another.
func regions(r *rig) ([]benchmark, error) {
	const n, side = 16, 112
	p := preprocess1080(core.ChromaNearest)
	p.OutW, p.OutH, p.Fit = side, side, core.Stretch
	planes, _, err := r.frame(p)
	if err != nil {
		return nil, err
	}
	boxes := make([]core.Box, n)
	for i := range boxes {
		x, y := float32(80*i), float32(40*i)
		boxes[i] = core.Box{X0: x, Y0: y, X1: x + 200, Y1: y + 240, Score: 1, Anchor: int32(i)}
	}
	packed := make([]byte, core.BoxesBytes(n))
	if err := core.PutBoxes(packed, boxes); err != nil {
		return nil, err
	}
	list, err := r.tensor(packed)
	if err != nil {
		return nil, err
	}
	dst, err := r.alloc(4*n*p.OutLen(), core.MemAuto)
	if err != nil {
		return nil, err
	}
	b := benchmark{
		kernel: "K14", name: fmt.Sprintf("%d regions of NV12 1920x1080 to %dx%d f32", n, side, side), numbers: "f32",
		bytes: count(n * (200*240*3/2 + 4*p.OutLen())), flops: count(35 * n * side * side),
		run: r.timed(func(l *core.List) { l.ROI(dst.All(), regionsOf(planes), list.All(), n, p) }),
	}
	if r.onCPU() && r.others.sws != nil {
		var all []*scaler
		for _, box := range boxes {
			part := *p
			part.Crop = core.Rect{X: int(box.X0), Y: int(box.Y0), Width: 200, Height: 240}
			s := r.others.sws.scaler("nv12", &part, planes)
			if s == nil {
				return nil, errors.New("libswscale refuses a region of NV12")
			}
			r.cleanup = append(r.cleanup, s.release)
			all = append(all, s)
		}
		out := make([]float32, 3*side*side)
		b.reference = r.foreign(r.others.sws.name()+" fast_bilinear, region by region", func() {
			for _, s := range all {
				s.tensor(out)
			}
		})
	}
	return []benchmark{b}, nil
}

func motion(r *rig) ([]benchmark, error) {
	const w, h = 1920, 1088 // whole blocks of 32
	x, y := picture(core.Gray8, w, h), noise(w*h)
	a, err := r.tensor(x)
	if err != nil {
		return nil, err
	}
	b, err := r.tensor(y)
	if err != nil {
		return nil, err
	}
	const block = 64
	bytes := 16 + 4*(w/block)*(h/block)
	out, err := r.alloc(bytes, core.MemAuto)
	if err != nil {
		return nil, err
	}
	args := core.DiffArgs{Width: w, Height: h, Threshold: 16, Block: block}
	m := benchmark{
		kernel: "K15", name: fmt.Sprintf("difference of two frames of %dx%d", w, h), bytes: count(2*w*h + bytes),
		run:       r.timed(func(l *core.List) { l.Diff(out.All(), a.All(), b.All(), args) }),
		reference: r.plain("plain C, the sum alone", func() { refDiff(x, y) }),
	}
	if s := r.others.sws; s != nil && s.hasSAD() {
		m.reference = r.foreign("av_pixelutils SAD of libavutil, the sum alone", func() { s.sad(x, y, w, h) })
	}
	return []benchmark{m}, nil
}
