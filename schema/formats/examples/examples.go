// Package examples reads labelled sets: the inputs of a model for many examples, and what they
// show. A set is a safetensors file with
//
//	NAME         an input of the model, [examples, ...]: the first axis is the batch
//	fixed.NAME   an input that is the same for every run, as the model takes it
//	label        for top-1 [examples] classes; for f1 [examples] or [examples, labels] of 0 and 1;
//	             for cer [examples, characters] classes of characters, filled up with -1; integers
//	boxes        for map, float32 [objects, 6]: example, class, left, top, right, bottom in pixels of the input
package examples

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/formats/measurement"
	"github.com/yoctune/yoctune/schema/formats/safetensors"
)

// ErrFormat is wrapped by the errors of files that are not labelled sets.
var ErrFormat = errors.New("not a labelled set")

// Names of tensors that are not inputs.
const (
	Label       = "label"
	Boxes       = "boxes"
	fixedPrefix = "fixed."
)

// dtypes are the element types of inputs, as safetensors and as ONNX name them.
var dtypes = map[string]struct {
	bytes int64
	onnx  int
}{"F32": {4, 1}, "U8": {1, 2}, "I8": {1, 3}, "I32": {4, 6}, "I64": {8, 7}, "BOOL": {1, 9}, "F16": {2, 10}, "BF16": {2, 16}}

// Tensor is a tensor of a set.
type Tensor struct {
	Name  string
	DType string
	ONNX  int // element type as ONNX numbers it
	Shape []int64
	Fixed bool // the same for every run
	at    int64
	each  int64 // bytes of an example; of the whole, if it is fixed
}

// Set is a labelled set. Examples are read from the file when they are needed.
type Set struct {
	Count  int
	Inputs []Tensor // by name
	label  *Tensor
	boxes  *Tensor
	file   io.ReaderAt
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// Open reads the header of a set of size bytes. The error wraps [ErrFormat], or is one of r.
func Open(r io.ReaderAt, size int64) (*Set, error) {
	h, err := safetensors.ReadHeader(io.NewSectionReader(r, 0, size), size)
	if errors.Is(err, safetensors.ErrFormat) {
		return nil, invalid("%v", err)
	} else if err != nil {
		return nil, err
	}
	s := &Set{file: r}
	for name, t := range h.Tensors {
		if err := s.add(name, t, h.Size, size); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(s.Inputs, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	return s, s.check()
}

// add adds a tensor, whose bytes must lie in the file.
func (s *Set) add(name string, t safetensors.Tensor, begin, size int64) error {
	kind, known := dtypes[t.DType]
	if !known {
		return invalid("tensor %.60q has elements of type %.20q, and F32, F16, BF16, I8, U8, I32, I64 and BOOL are read", name, t.DType)
	}
	elements := int64(1)
	for _, d := range t.Shape {
		if d < 1 || elements > (1<<40)/d {
			return invalid("tensor %.60q has the shape %v", name, t.Shape)
		}
		elements *= d
	}
	bytes := elements * kind.bytes
	if len(t.Offsets) != 2 || t.Offsets[0] < 0 || t.Offsets[1] > size-begin || t.Offsets[1]-t.Offsets[0] != bytes {
		return invalid("tensor %.60q %v takes %d bytes, and lies at %v of %d: the file is truncated or damaged", name, t.Shape, bytes, t.Offsets, size-begin)
	}
	out := Tensor{Name: name, DType: t.DType, ONNX: kind.onnx, Shape: t.Shape, at: begin + t.Offsets[0], each: bytes}
	if plain, fixed := strings.CutPrefix(name, fixedPrefix); fixed {
		out.Name, out.Fixed = plain, true
		s.Inputs = append(s.Inputs, out)
		return nil
	}
	if len(t.Shape) == 0 {
		return invalid("tensor %.60q has no axis of examples; one that is the same for every run is called %s%.60s", name, fixedPrefix, name)
	}
	out.each = bytes / t.Shape[0]
	switch name {
	case Label:
		s.label = &out
	case Boxes:
		s.boxes = &out
	default:
		s.Inputs = append(s.Inputs, out)
	}
	return nil
}

func (s *Set) check() error {
	for _, t := range s.Inputs {
		if t.Fixed {
			continue
		}
		if s.Count == 0 {
			s.Count = int(min(t.Shape[0], measurement.MaxExamples+1))
		}
		if t.Shape[0] != int64(s.Count) {
			return invalid("input %.60q has %d examples, and another input has %d; at most %d are read", t.Name, t.Shape[0], s.Count, measurement.MaxExamples)
		}
	}
	switch {
	case s.Count == 0:
		return invalid("it has no examples: no tensor is an input with an axis of examples")
	case s.Count > measurement.MaxExamples:
		return invalid("it has more than %d examples", measurement.MaxExamples)
	case s.label != nil && s.label.Shape[0] != int64(s.Count):
		return invalid("it has %d labels for %d examples", s.label.Shape[0], s.Count)
	case s.label != nil && !slices.Contains([]string{"I64", "I32", "I8", "U8", "BOOL"}, s.label.DType):
		return invalid("labels are integers, and these are %s", s.label.DType)
	case s.boxes != nil && (s.boxes.DType != "F32" || len(s.boxes.Shape) != 2 || s.boxes.Shape[1] != 6):
		return invalid("boxes is %s %v, and F32 [objects 6] is needed", s.boxes.DType, s.boxes.Shape)
	case s.boxes != nil && s.boxes.Shape[0] > 100*measurement.MaxExamples:
		return invalid("it has %d boxes", s.boxes.Shape[0])
	}
	return nil
}

// BatchShape is the shape of an input with a number of examples.
func (t *Tensor) BatchShape(batch int) []int64 {
	if t.Fixed {
		return t.Shape
	}
	return append([]int64{int64(batch)}, t.Shape[1:]...)
}

// Fill reads examples, by number, into the bytes of an input. A fixed input is read once.
func (s *Set) Fill(t *Tensor, examples []int, into []byte) error {
	if t.Fixed {
		_, err := s.file.ReadAt(into[:t.each], t.at)
		return err
	}
	for k, i := range examples {
		if _, err := s.file.ReadAt(into[int64(k)*t.each:int64(k+1)*t.each], t.at+int64(i)*t.each); err != nil {
			return err
		}
	}
	return nil
}

// HasLabels reports whether the set has what a metric compares with.
func (s *Set) HasLabels(m measurement.Metric) bool {
	switch m.Labels {
	case Label:
		return s.label != nil
	case Boxes:
		return s.boxes != nil
	}
	return true
}

// Width is the number of labels of an example, 1 for one class.
func (s *Set) Width() int { return int(s.label.each / dtypes[s.label.DType].bytes) }

// LabelsOf reads the labels of an example.
func (s *Set) LabelsOf(example int) ([]int64, error) {
	raw := make([]byte, s.label.each)
	if _, err := s.file.ReadAt(raw, s.label.at+int64(example)*s.label.each); err != nil {
		return nil, err
	}
	out := make([]int64, s.Width())
	for i := range out {
		switch s.label.DType {
		case "I64":
			out[i] = int64(binary.LittleEndian.Uint64(raw[8*i:]))
		case "I32":
			out[i] = int64(int32(binary.LittleEndian.Uint32(raw[4*i:])))
		case "I8":
			out[i] = int64(int8(raw[i]))
		default:
			out[i] = int64(raw[i])
		}
	}
	return out, nil
}

// Box is a labelled object, in pixels of the input.
type Box struct {
	Class                    int64
	Left, Top, Right, Bottom float64
}

// ReadBoxes reads the boxes of every example.
func (s *Set) ReadBoxes() (map[int][]Box, error) {
	raw := make([]byte, s.boxes.each*s.boxes.Shape[0])
	if _, err := s.file.ReadAt(raw, s.boxes.at); err != nil {
		return nil, err
	}
	out := map[int][]Box{}
	for i := range int(s.boxes.Shape[0]) {
		var v [6]float64
		for k := range v {
			v[k] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[24*i+4*k:])))
			if math.IsNaN(v[k]) || math.Abs(v[k]) > 1e6 {
				return nil, invalid("box %d is %v", i, v)
			}
		}
		example, class := int(v[0]), int64(v[1])
		if float64(example) != v[0] || example < 0 || example >= s.Count || float64(class) != v[1] || class < 0 || v[4] <= v[2] || v[5] <= v[3] {
			return nil, invalid("box %d is of example %g, class %g, %g %g %g %g: examples and classes are whole numbers, and right and bottom come after left and top", i, v[0], v[1], v[2], v[3], v[4], v[5])
		}
		out[example] = append(out[example], Box{class, v[2], v[3], v[4], v[5]})
	}
	return out, nil
}
