package core

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// This file has the operations of lists other than copies, preprocessing and reductions.
// c/yt_backend.h defines their arguments. Submit returns ErrNotSupported for those that a
// backend lacks.

// Type is the element type of a tensor.
type Type uint8

const (
	F32 Type = iota
	F16
	BF16
	I8
	U8
	I32
)

// Bytes returns the size of an element in bytes.
func (t Type) Bytes() int {
	switch t {
	case F32, I32:
		return 4
	case F16, BF16:
		return 2
	}
	return 1
}

// Layout is the order of the dimensions of a tensor.
type Layout uint8

const (
	NCHW Layout = iota
	NHWC
)

// Arguments of operations, as defined by the ABI.
type (
	DecodeArgs  = c.Decode
	NMSArgs     = c.NMS
	RowsArgs    = c.Rows
	ConvertArgs = c.Convert
	GemmArgs    = c.Gemm
	DiffArgs    = c.Diff
	GatherArgs  = c.Gather
	MasksArgs   = c.Masks
	MaskGrid    = c.Grid
	StatsArgs   = c.Stats
)

// Values of DecodeArgs.Head, the layout of a detector's output. Each anchor has centre x,
// centre y, width and height in tensor pixels, then the class scores, then DecodeArgs.After values.
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
	GemmTransB             // the memory of B holds its transpose, n by k
	GemmOwn                // use no vendor library

	NMSAgnostic         = 1 // boxes of different classes suppress each other
	ConvertChannelScale = 1 // one float32 scale per channel
)

// Box is one detection. Its edges are in pixels of the frame; pixel i covers [i, i+1).
type Box struct {
	X0, Y0, X1, Y1 float32
	Score          float32
	Class          int32
	Anchor         int32 // index in the detector's output
}

// AppendBoxes appends the boxes of an encoded list to boxes.
func AppendBoxes(boxes []Box, b []byte) ([]Box, error) {
	if len(b) < BoxesBytes(0) {
		return boxes, fmt.Errorf("decode boxes: %d bytes are too short: %w", len(b), ErrInvalid)
	}
	n := int(binary.NativeEndian.Uint32(b))
	if n > MaxBoxes || BoxesBytes(n) > len(b) {
		return boxes, fmt.Errorf("decode boxes: %d boxes do not fit %d bytes: %w", n, len(b), ErrInvalid)
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

// PutBoxes encodes a list of boxes in dst, which needs BoxesBytes(len(boxes)) bytes.
func PutBoxes(dst []byte, boxes []Box) error {
	if len(boxes) > MaxBoxes || len(dst) < BoxesBytes(len(boxes)) {
		return fmt.Errorf("encode boxes: %d boxes do not fit %d bytes: %w", len(boxes), len(dst), ErrInvalid)
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

// MaxBoxes is the largest number of boxes in a list.
const MaxBoxes = c.MaxBoxes

// BoxesBytes returns the size in bytes of a list with capacity for limit boxes.
func BoxesBytes(limit int) int { return 32 + 32*limit }

// Decode converts a detector's output in src (F32 or F16) to boxes. It keeps the a.Max best
// boxes whose best class scores at least a.Threshold, and maps them to the frame by scale,
// shift and limit (see Geometry). dst has BoxesBytes(a.Max) bytes per image.
func (l *List) Decode(dst, src Region, a DecodeArgs) *List {
	return addOperation(l, "decode", c.OpDecode, a, dst, [3]Region{src})
}

// Gather reads a.Count values, from a.First on, of the anchor of each of the boxes in boxes (at most
// a.Max) from a detector's output in src, a.Anchors·a.Values elements of F32 or F16. dst has a.Count
// float32 per box; they are 0 beyond the number of boxes.
func (l *List) Gather(dst, src, boxes Region, a GatherArgs) *List {
	return addOperation(l, "gather", c.OpGather, a, dst, [3]Region{src, boxes})
}

// Masks draws the masks of the a.Count boxes in grids ([PutGrids]) from prototypes: in dst a bit is
// set where the prototypes, weighted by the grid's row of rows, are above 0. Each grid has a row of
// a.Values float32, and a word of 32 bits for each 32 cells.
func (l *List) Masks(dst, prototypes, rows, grids Region, a MasksArgs) *List {
	return addOperation(l, "masks", c.OpMasks, a, dst, [3]Region{prototypes, rows, grids})
}

// GridBytes is the size of an encoded grid in bytes.
const GridBytes = 32

// PutGrids encodes grids in dst, which needs GridBytes for each.
func PutGrids(dst []byte, grids []MaskGrid) error {
	if len(dst) < GridBytes*len(grids) {
		return fmt.Errorf("encode grids: %d do not fit %d bytes: %w", len(grids), len(dst), ErrInvalid)
	}
	for i, g := range grids {
		at := dst[GridBytes*i:]
		for k, v := range [...]uint32{uint32(g.X), uint32(g.Y), g.Step, g.Width, g.Height, g.Row, g.At, 0} {
			binary.NativeEndian.PutUint32(at[4*k:], v)
		}
	}
	return nil
}

// NMS suppresses overlapping boxes. It keeps a box if its intersection over union with
// every better kept box of its class is at most a.IoU. src has BoxesBytes(a.InMax) bytes
// per image, in any order; dst has BoxesBytes(a.Max), best first.
func (l *List) NMS(dst, src Region, a NMSArgs) *List {
	return addOperation(l, "nms", c.OpNMS, a, dst, [3]Region{src})
}

// Softmax computes the softmax of each of a.Rows rows of a.Cols elements, a.Stride elements
// apart (0: a.Cols). a.In and a.Out are F32, F16 or BF16.
func (l *List) Softmax(dst, src Region, a RowsArgs) *List {
	return addOperation(l, "softmax", c.OpSoftmax, a, dst, [3]Region{src})
}

// TopK writes the a.K (1 to 32) largest values of each row in descending order, as pairs of
// a float32 and its int32 index. Equals are in ascending order of index; NaN is above all
// numbers.
func (l *List) TopK(dst, src Region, a RowsArgs) *List {
	return addOperation(l, "topk", c.OpTopK, a, dst, [3]Region{src})
}

// Convert changes the type or layout of an a.N·a.C·a.H·a.W tensor. From floats to integers
// it computes round(x/Scale) + Zero, saturating, NaN to 0; back, (q - Zero)·Scale. scales
// is a zero region unless a.Flags has ConvertChannelScale.
func (l *List) Convert(dst, src, scales Region, a ConvertArgs) *List {
	return addOperation(l, "convert", c.OpConvert, a, dst, [3]Region{src, scales})
}

// Gemm computes dst = act(Alpha·x·y + Beta·dst + bias). x is M×K, y is K×N and dst is M×N,
// row-major with LDA, LDB and LDC elements per row (0: tight). x and y are F32, F16, BF16 or
// I8. Sums are float32, for I8 int32. bias has N float32 values or is a zero region.
func (l *List) Gemm(dst, x, y, bias Region, a GemmArgs) *List {
	return addOperation(l, "gemm", c.OpGemm, a, dst, [3]Region{x, y, bias})
}

// Diff compares two planes of a.Width·a.Height bytes. It writes the sum of absolute
// differences (uint64), the number that exceed a.Threshold and the largest (uint32 each).
// If a.Block is not 0, a uint32 sum per block of that side length follows, row by row.
func (l *List) Diff(dst, x, y Region, a DiffArgs) *List {
	return addOperation(l, "diff", c.OpDiff, a, dst, [3]Region{x, y})
}

// Stats computes the statistics of the picture whose first plane is src: the sum of the brightness of
// its pixels (uint64), the number of pixels of at most a.Low and of at least a.High (uint32 each), the sum
// of the Laplacian (int64) and of its squares (uint64). a.Format is a Format.
func (l *List) Stats(dst, src Region, a StatsArgs) *List {
	return addOperation(l, "stats", c.OpStats, a, dst, [3]Region{src})
}

// ROI makes one tensor from each of the first limit boxes of a frame, clamped to the frame
// and extended to whole pixels. Tensors beyond the number of boxes are 0; boxes without
// area give the border value. p defines format, sizes, pitches, fit, colour, normalisation,
// type and layout; its Planes, Out and Crop are not used.
func (l *List) ROI(dst Region, planes [3]Region, boxes Region, limit int, p *Preprocess) *List {
	a, err := p.args()
	if err != nil {
		return l.fail(err)
	}
	if limit < 1 || limit > c.MaxBoxes {
		return l.fail(fmt.Errorf("roi: limit of %d boxes must be 1 to %d: %w", limit, c.MaxBoxes, ErrInvalid))
	}
	if a.Format|a.Fit|a.Color|a.Chroma|a.Matrix > math.MaxUint8 {
		return l.fail(fmt.Errorf("roi: unknown format, fit, color, chroma or matrix: %w", ErrInvalid))
	}
	cmd := c.Cmd{Op: c.OpROI, Dst: l.resolve("roi", "destination", dst)}
	for i := range p.planes() {
		cmd.Src[i] = l.resolve("roi", "plane", planes[i])
	}
	c.Put(&cmd, c.ROI{
		Boxes:  l.resolve("roi", "boxes", boxes),
		Format: uint8(a.Format), Fit: uint8(a.Fit), Color: uint8(a.Color), Chroma: uint8(a.Chroma), Matrix: uint8(a.Matrix),
		Type: a.Type, Layout: a.Layout, Pad: uint8(a.Pad), Width: a.Width, Height: a.Height, Pitch: a.Pitch,
		OutW: a.OutW, OutH: a.OutH, Max: uint32(limit), Mean: a.Mean, Std: a.Std,
	})
	return l.add(cmd)
}

// addOperation appends an operation. A source other than the first is omitted if it is a
// zero region.
func addOperation[T c.Arguments](l *List, name string, op uint32, args T, dst Region, src [3]Region) *List {
	cmd := c.Cmd{Op: op, Dst: l.resolve(name, "destination", dst)}
	for i, r := range src {
		if i > 0 && r == (Region{}) {
			continue
		}
		cmd.Src[i] = l.resolve(name, "source", r)
	}
	c.Put(&cmd, args)
	return l.add(cmd)
}
