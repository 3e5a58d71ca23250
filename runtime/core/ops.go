package core

import (
	"fmt"
	"math"

	"github.com/yoctune/yoctune/runtime/core/c"
)

// The operations of lists beside copies, preprocessing and reductions. What their
// numbers mean is said in c/yt_backend.h; which of them a backend has, Device.Has
// tells, and Submit refuses the others with ErrNotSupported.

// Type is the type of a tensor's elements.
type Type uint8

const (
	F32 Type = iota
	F16
	BF16
	I8
	U8
	I32
)

// Bytes returns the size of an element.
func (t Type) Bytes() int {
	switch t {
	case F32, I32:
		return 4
	case F16, BF16:
		return 2
	}
	return 1
}

// Layout is the order of a tensor's dimensions.
type Layout uint8

const (
	NCHW Layout = iota
	NHWC
)

// Has reports whether the backend has an operation of a list, by its name: "copy",
// "preprocess", "reduce", "decode", "nms", "softmax", "argmax", "topk", "map",
// "convert", "gemm", "roi", "diff", "launch".
func (d *Device) Has(op string) bool {
	names := map[string]int{
		"copy": c.OpCopy, "memset": c.OpMemset, "preprocess": c.OpPreprocess, "reduce": c.OpReduce, "launch": c.OpLaunch,
		"decode": c.OpDecode, "nms": c.OpNMS, "softmax": c.OpSoftmax, "argmax": c.OpArgmax, "topk": c.OpTopK, "map": c.OpMap,
		"convert": c.OpConvert, "gemm": c.OpGemm, "roi": c.OpROI, "diff": c.OpDiff,
	}
	bit, ok := names[op]
	return ok && d.api.Ops()>>bit&1 != 0
}

// Arguments of operations, as the ABI has them.
type (
	DecodeArgs  = c.Decode
	NMSArgs     = c.NMS
	RowsArgs    = c.Rows
	MapArgs     = c.Map
	MapStep     = c.Step
	ConvertArgs = c.Convert
	GemmArgs    = c.Gemm
	DiffArgs    = c.Diff
)

// BoxesBytes is the size of a list of boxes with room for limit of them.
func BoxesBytes(limit int) int { return 32 + 32*limit }

// Decode makes boxes of a detector's output, best first.
func (l *List) Decode(dst, src Region, a DecodeArgs) *List {
	return add(l, "decode", c.OpDecode, a, dst, src)
}

// NMS drops boxes that overlap better ones.
func (l *List) NMS(dst, src Region, a NMSArgs) *List { return add(l, "nms", c.OpNMS, a, dst, src) }

// Softmax of each row.
func (l *List) Softmax(dst, src Region, a RowsArgs) *List {
	return add(l, "softmax", c.OpSoftmax, a, dst, src)
}

// Argmax writes the index of each row's largest value, an int32 a row.
func (l *List) Argmax(dst, src Region, a RowsArgs) *List {
	return add(l, "argmax", c.OpArgmax, a, dst, src)
}

// TopK writes the k largest of each row with their indices.
func (l *List) TopK(dst, src Region, a RowsArgs) *List {
	return add(l, "topk", c.OpTopK, a, dst, src)
}

// Map runs a chain of steps on each element; b and bias may be zero regions, see
// YT_MAP_*.
func (l *List) Map(dst, src, b, bias Region, a MapArgs) *List {
	return add(l, "map", c.OpMap, a, dst, src, b, bias)
}

// Convert changes type or layout; scales is a zero region unless a.Flags asks for
// one scale a channel.
func (l *List) Convert(dst, src, scales Region, a ConvertArgs) *List {
	return add(l, "convert", c.OpConvert, a, dst, src, scales)
}

// Gemm multiplies matrices; bias may be a zero region.
func (l *List) Gemm(dst, x, y, bias Region, a GemmArgs) *List {
	return add(l, "gemm", c.OpGemm, a, dst, x, y, bias)
}

// Diff compares two planes of bytes.
func (l *List) Diff(dst, x, y Region, a DiffArgs) *List {
	return add(l, "diff", c.OpDiff, a, dst, x, y)
}

// ROI makes a tensor of each of the first limit boxes of a frame. Format, sizes,
// pitches, fit, colour and normalisation are p's; Planes, Out and Crop are not used.
func (l *List) ROI(dst Region, planes [3]Region, boxes Region, limit int, p *Preprocess, t Type, layout Layout) *List {
	a, err := p.args()
	if err != nil {
		return l.fail(err)
	}
	if limit < 1 || limit > c.MaxBoxes {
		return l.fail(fmt.Errorf("roi: %d boxes: 1 to %d: %w", limit, c.MaxBoxes, ErrInvalid))
	}
	if a.Format|a.Fit|a.Color|a.Chroma|a.Matrix > math.MaxUint8 {
		return l.fail(fmt.Errorf("roi: an option is unknown: %w", ErrInvalid))
	}
	cmd := c.Cmd{Op: c.OpROI, Dst: l.place("roi: destination", dst)}
	for i := range p.planes() {
		cmd.Src[i] = l.place("roi: plane", planes[i])
	}
	c.Put(&cmd, c.ROI{
		Boxes:  l.place("roi: boxes", boxes),
		Format: uint8(a.Format), Fit: uint8(a.Fit), Color: uint8(a.Color), Chroma: uint8(a.Chroma), Matrix: uint8(a.Matrix),
		Type: uint8(t), Layout: uint8(layout), Pad: uint8(a.Pad), Width: a.Width, Height: a.Height, Pitch: a.Pitch,
		OutW: a.OutW, OutH: a.OutH, Max: uint32(limit), Mean: a.Mean, Std: a.Std,
	})
	return l.add(cmd)
}

// add appends an operation whose optional sources are zero regions.
func add[T c.Arguments](l *List, name string, op uint32, args T, dst Region, src ...Region) *List {
	cmd := c.Cmd{Op: op, Dst: l.place(name+": destination", dst)}
	for i, r := range src {
		if i > 0 && r == (Region{}) {
			continue
		}
		cmd.Src[i] = l.place(name+": source", r)
	}
	c.Put(&cmd, args)
	return l.add(cmd)
}
