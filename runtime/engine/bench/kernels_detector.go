package bench

import (
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// detectorKernels measures decoding and NMS of the output of YOLOv8: 8400 anchors, 80
// classes.
func detectorKernels(r *rig) []benchmark {
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
	src := r.tensor(bytesOf(x))
	dst := r.alloc(core.BoxesBytes(most), core.MemAuto)
	args := core.DecodeArgs{
		Anchors: anchors, Classes: classes, Max: most, Batch: 1, Threshold: threshold,
		ScaleX: 1, ScaleY: 1, LimitX: 640, LimitY: 640,
	}
	b := benchmark{
		kernel: "K3", name: fmt.Sprintf("YOLO decode of %d anchors, %d classes", anchors, classes), bytes: count(4*len(x) + core.BoxesBytes(most)),
		run: r.time(func(l *core.List) { l.Decode(dst.All(), src.All(), args) }),
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
	otherwise := r.plainReference("plain C, one pass, not ranked", func() { refDecode(x, found, anchors, classes, threshold, most) })
	b.reference = r.networkReference("ReduceMax, ArgMax, TopK, Gather", g, []int64{4 + classes, anchors}, x, otherwise)
	list := []benchmark{b}
	for _, n := range []int{1000, anchors} {
		b := r.nms(n)
		list = append(list, b)
	}
	return list
}

func (r *rig) nms(n int) benchmark {
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
	r.check(core.PutBoxes(packed, boxes))
	src := r.tensor(packed)
	dst := r.alloc(core.BoxesBytes(n), core.MemAuto)
	args := core.NMSArgs{InMax: uint32(n), Max: uint32(n), Batch: 1, IoU: iou}
	b := benchmark{
		kernel: "K6", name: fmt.Sprintf("NMS of %d boxes", n), bytes: count(2 * len(packed)),
		run: r.time(func(l *core.List) { l.NMS(dst.All(), src.All(), args) }),
	}
	// ONNX orders the edges of a box y0, x0, y1, x1. Each row of x is one coordinate of all
	// boxes; the last row is the score.
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
	otherwise := r.plainReference("plain C: qsort, then every pair", func() { refNMS(flat, iou, rank) })
	b.reference = r.networkReference("NonMaxSuppression", g, []int64{5, int64(n)}, columns, otherwise)
	return b
}
