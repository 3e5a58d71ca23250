package core

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
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

// What MapStep.Op can be: x is the value, a and b the step's numbers.
const (
	MapAdd     = 1 + iota // x + a
	MapMul                // x · a
	MapScale              // x · a + b
	MapClamp              // to a … b
	MapRelu               // x < 0: 0
	MapLeaky              // x < 0: x · a
	MapAbs                //
	MapNeg                //
	MapSqrt               //
	MapExp                //
	MapLog                //
	MapSigmoid            //
	MapTanh               //
	MapGelu               // x · Φ(x)
	MapSilu               // x · sigmoid(x)
	MapChMul              // x · scale of the channel, in b
	MapChAdd              // x + bias of the channel, in bias
	MapAddSrc             // x + element of b
	MapMulSrc             // x · element of b
)

// Detector heads that DecodeArgs.Head names. Each anchor has centre x, centre y,
// width and height in tensor pixels, then the scores.
const (
	HeadPlanes     = iota // [4 + classes][anchors]: YOLOv8 and newer
	HeadRows              // [anchors][4 + classes]
	HeadObjectness        // [anchors][5 + classes]: YOLOv5
)

// Activations of GemmArgs.Act.
const (
	ActNone = iota
	ActRelu
	ActGelu
	ActSilu
)

// Bits of GemmArgs.Flags, NMSArgs.Flags and ConvertArgs.Flags.
const (
	GemmTransA = 1 << iota // the memory of A holds its transpose, k by m
	GemmTransB
	GemmOwn // not a vendor's library

	NMSAgnostic         = 1 // classes suppress each other
	ConvertChannelScale = 1 // a float32 scale for each channel
)

// Box is one detection: pixel edges in the frame (a pixel is [i, i+1)), best first.
type Box struct {
	X0, Y0, X1, Y1 float32
	Score          float32
	Class          int32
	Anchor         int32 // index in the detector's output
}

// AppendBoxes appends the boxes of a list to those that are there.
func AppendBoxes(boxes []Box, b []byte) ([]Box, error) {
	if len(b) < BoxesBytes(0) {
		return boxes, fmt.Errorf("boxes: %d bytes are no list of boxes: %w", len(b), ErrInvalid)
	}
	n := int(binary.NativeEndian.Uint32(b))
	if n > MaxBoxes || BoxesBytes(n) > len(b) {
		return boxes, fmt.Errorf("boxes: %d boxes in %d bytes: %w", n, len(b), ErrInvalid)
	}
	boxes = slices.Grow(boxes, n)
	for i := range n {
		at := b[BoxesBytes(i):]
		f := func(k int) float32 { return math.Float32frombits(binary.NativeEndian.Uint32(at[4*k:])) }
		boxes = append(boxes, Box{
			X0: f(0), Y0: f(1), X1: f(2), Y1: f(3), Score: f(4),
			Class: int32(binary.NativeEndian.Uint32(at[20:])), Anchor: int32(binary.NativeEndian.Uint32(at[24:])),
		})
	}
	return boxes, nil
}

// PutBoxes writes a list of boxes to dst, which has BoxesBytes(len(boxes)) or more.
func PutBoxes(dst []byte, boxes []Box) error {
	if len(boxes) > MaxBoxes || len(dst) < BoxesBytes(len(boxes)) {
		return fmt.Errorf("boxes: %d boxes into %d bytes: %w", len(boxes), len(dst), ErrInvalid)
	}
	clear(dst[:BoxesBytes(len(boxes))])
	binary.NativeEndian.PutUint32(dst, uint32(len(boxes)))
	binary.NativeEndian.PutUint32(dst[4:], uint32(len(boxes)))
	for i, v := range boxes {
		at := dst[BoxesBytes(i):]
		for k, f := range [...]float32{v.X0, v.Y0, v.X1, v.Y1, v.Score} {
			binary.NativeEndian.PutUint32(at[4*k:], math.Float32bits(f))
		}
		binary.NativeEndian.PutUint32(at[20:], uint32(v.Class))
		binary.NativeEndian.PutUint32(at[24:], uint32(v.Anchor))
	}
	return nil
}

// MaxBoxes is the largest list of boxes.
const MaxBoxes = c.MaxBoxes

// MaxSteps is the longest chain of Map.
const MaxSteps = c.MaxSteps

// BoxesBytes is the size of a list of boxes with room for limit of them.
func BoxesBytes(limit int) int { return 32 + 32*limit }

// Decode makes boxes of a detector's output in src, F32 or F16: those whose best
// class scores a.Threshold or more, the a.Max best, brought to the frame by scale,
// shift and limit (see Geometry). dst has BoxesBytes(a.Max) for each of a.Batch
// images.
func (l *List) Decode(dst, src Region, a DecodeArgs) *List {
	return add(l, "decode", c.OpDecode, a, dst, src)
}

// NMS keeps of src, BoxesBytes(a.InMax) an image in any order, the boxes whose
// intersection over union with every better kept one of their class is at most
// a.IoU, and writes them best first to dst, BoxesBytes(a.Max) an image.
func (l *List) NMS(dst, src Region, a NMSArgs) *List { return add(l, "nms", c.OpNMS, a, dst, src) }

// Softmax of each of a.Rows rows of a.Cols elements, a.Stride elements apart (0:
// a.Cols), from type a.In to a.Out: F32, F16 or BF16.
func (l *List) Softmax(dst, src Region, a RowsArgs) *List {
	return add(l, "softmax", c.OpSoftmax, a, dst, src)
}

// Argmax writes the index of each row's largest value, an int32 a row; the lowest of
// equals, NaN above all numbers.
func (l *List) Argmax(dst, src Region, a RowsArgs) *List {
	return add(l, "argmax", c.OpArgmax, a, dst, src)
}

// TopK writes the a.K (1 to 32) largest of each row, largest first, as pairs of a
// float32 and its int32 index; equals by rising index, NaN above all numbers.
func (l *List) TopK(dst, src Region, a RowsArgs) *List {
	return add(l, "topk", c.OpTopK, a, dst, src)
}

// Map runs a chain of steps (MapAdd …) in float32 on each element of src, reading and
// writing memory once. dst may be src when their types have one size. b has a float32
// a channel for MapChMul, or an element of type a.In for each of src's; bias a float32
// a channel for MapChAdd; else they are zero regions. The channel of element i is
// i/a.Inner mod a.Channels.
func (l *List) Map(dst, src, b, bias Region, a MapArgs) *List {
	return add(l, "map", c.OpMap, a, dst, src, b, bias)
}

// Convert changes type or layout of an a.N·a.C·a.H·a.W tensor. From floats to
// integers: round(x/Scale) + Zero, saturating, NaN to 0; back: (q - Zero)·Scale.
// scales is a zero region unless a.Flags has ConvertChannelScale.
func (l *List) Convert(dst, src, scales Region, a ConvertArgs) *List {
	return add(l, "convert", c.OpConvert, a, dst, src, scales)
}

// Gemm computes dst = act(Alpha·x·y + Beta·dst + bias), row-major, x of M×K, y of
// K×N and dst of M×N elements with LDA, LDB, LDC a row (0: tight). x and y are F32,
// F16, BF16 or I8; sums are float32, of I8 int32. bias has N float32 or is a zero
// region.
func (l *List) Gemm(dst, x, y, bias Region, a GemmArgs) *List {
	return add(l, "gemm", c.OpGemm, a, dst, x, y, bias)
}

// Diff compares two planes of a.Width·a.Height bytes: the sum of absolute differences
// (uint64), how many exceed a.Threshold and the largest (uint32 each), then, with
// a.Block, a uint32 sum for each block of that side, row by row.
func (l *List) Diff(dst, x, y Region, a DiffArgs) *List {
	return add(l, "diff", c.OpDiff, a, dst, x, y)
}

// ROI makes a tensor of each of the first limit boxes of a frame, clamped to it and
// widened to whole pixels; those beyond the list's count are 0, boxes without area the
// border. Format, sizes, pitches, fit, colour, normalisation, type and layout are p's;
// Planes, Out and Crop are not used.
func (l *List) ROI(dst Region, planes [3]Region, boxes Region, limit int, p *Preprocess) *List {
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
		Type: a.Type, Layout: a.Layout, Pad: uint8(a.Pad), Width: a.Width, Height: a.Height, Pitch: a.Pitch,
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
