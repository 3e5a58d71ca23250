// Package onnx reads what a model says of itself - inputs, outputs, how much its
// weights take - and writes small ones. It knows the format (protocol buffers, with
// the fields of onnx.proto) and nothing of operators: running a model is ONNX
// Runtime's.
//
// Reading passes over weights without loading them, so a model of gigabytes costs a
// few reads.
package onnx

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// ErrFormat is in the error for what is no ONNX model.
var ErrFormat = errors.New("not an ONNX model")

// Type is a type of elements, numbered as ONNX does.
type Type int

// Types of elements that are named in this program.
const (
	Float32 Type = 1
	Int32   Type = 6
	Int64   Type = 7
	Float16 Type = 10
)

var types = [...]struct {
	name string
	bits int64
}{
	1: {"float32", 32}, {"uint8", 8}, {"int8", 8}, {"uint16", 16}, {"int16", 16}, {"int32", 32}, {"int64", 64}, {"string", 0},
	{"bool", 8}, {"float16", 16}, {"float64", 64}, {"uint32", 32}, {"uint64", 64}, {"complex64", 64}, {"complex128", 128},
	{"bfloat16", 16}, {"float8e4m3fn", 8}, {"float8e4m3fnuz", 8}, {"float8e5m2", 8}, {"float8e5m2fnuz", 8}, {"uint4", 4}, {"int4", 4}, {"float4e2m1", 4},
}

func (t Type) String() string {
	if t > 0 && int(t) < len(types) {
		return types[t].name
	}
	return "type " + strconv.Itoa(int(t))
}

// Dim is one dimension: a size, or the name of an axis that is free. A zero Dim is
// free without a name.
type Dim struct {
	Size int64
	Axis string
}

// Free reports whether the size is decided at run time.
func (d Dim) Free() bool { return d.Size <= 0 }

func (d Dim) String() string {
	switch {
	case !d.Free():
		return strconv.FormatInt(d.Size, 10)
	case d.Axis != "":
		return d.Axis
	}
	return "?"
}

// Value is an input or an output.
type Value struct {
	Name   string
	Type   Type
	Shape  []Dim
	Ranked bool // the number of dimensions is known
}

// Dims is the shape as people write it, "[1 3 height width]".
func (v Value) Dims() string {
	if !v.Ranked {
		return "[…]"
	}
	s := make([]string, len(v.Shape))
	for i, d := range v.Shape {
		s[i] = d.String()
	}
	return "[" + strings.Join(s, " ") + "]"
}

func (v Value) String() string { return fmt.Sprintf("%q %s %s", v.Name, v.Type, v.Dims()) }

// Model is what a model says of itself.
type Model struct {
	IR       int64            // version of the format
	Opsets   map[string]int64 // by domain, "" is ONNX's own
	Inputs   []Value          // what is fed; not the weights
	Outputs  []Value
	Nodes    int
	Ops      map[string]int // nodes by operator
	Weights  int64          // bytes of the weights
	External bool           // some of them are in other files
}

// ReadFile reads the model in a file. The error wraps [ErrFormat] or what opening
// the file gave.
func ReadFile(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is not a regular file", ErrFormat)
	}
	return Read(f, st.Size())
}

// Read reads a model of size bytes.
func Read(r io.ReaderAt, size int64) (*Model, error) {
	m := &Model{Opsets: map[string]int64{}, Ops: map[string]int{}}
	weights := map[string]bool{}
	d := &decoder{r: r, end: size}
	graph := false
	err := d.each(func(f field) error {
		switch f.number {
		case 1:
			m.IR = int64(f.varint)
		case 7:
			graph = true
			return m.graph(d, f, weights)
		case 8:
			return m.opset(d, f)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	case !graph || m.IR == 0:
		return nil, fmt.Errorf("%w: it has no graph", ErrFormat)
	}
	// Before version 4 weights were inputs too.
	fed := m.Inputs[:0]
	for _, v := range m.Inputs {
		if !weights[v.Name] {
			fed = append(fed, v)
		}
	}
	m.Inputs = fed
	return m, nil
}

func (m *Model) opset(d *decoder, f field) error {
	var domain string
	var version int64
	err := d.within(f, func(f field) error {
		switch f.number {
		case 1:
			return d.text(f, &domain)
		case 2:
			version = int64(f.varint)
		}
		return nil
	})
	m.Opsets[domain] = version
	return err
}

func (m *Model) graph(d *decoder, f field, weights map[string]bool) error {
	return d.within(f, func(f field) error {
		switch f.number {
		case 1:
			m.Nodes++
			return d.within(f, func(f field) error { return m.node(d, f, weights) })
		case 5:
			return m.weight(d, f, weights)
		case 11, 12:
			v, err := value(d, f)
			if f.number == 11 {
				m.Inputs = append(m.Inputs, v)
			} else {
				m.Outputs = append(m.Outputs, v)
			}
			return err
		}
		return nil
	})
}

// node notes a node's operator, and the weights that some exporters put in nodes of
// their own.
func (m *Model) node(d *decoder, f field, weights map[string]bool) error {
	switch f.number {
	case 4:
		var op string
		err := d.text(f, &op)
		m.Ops[op]++
		return err
	case 5:
		return d.within(f, func(f field) error {
			if f.number == 5 {
				return m.weight(d, f, weights)
			}
			return nil
		})
	}
	return nil
}

// weight notes an initialiser, a TensorProto, without what it holds.
func (m *Model) weight(d *decoder, f field, names map[string]bool) error {
	elements, kind := int64(1), int64(0)
	var name string
	dim := func(v uint64) error {
		if v > 0 && elements > maxElements/int64(min(v, maxElements)) {
			return errors.New("a weight is too large to be true")
		}
		elements *= int64(v)
		return nil
	}
	err := d.within(f, func(f field) error {
		switch f.number {
		case 1:
			if f.wire == 0 {
				return dim(f.varint)
			}
			return d.packed(f, dim)
		case 2:
			kind = int64(f.varint)
		case 8:
			return d.text(f, &name)
		case 14:
			m.External = m.External || f.varint == 1
		}
		return nil
	})
	if name != "" {
		names[name] = true
	}
	if kind > 0 && int(kind) < len(types) {
		m.Weights += (elements*types[kind].bits + 7) / 8
	}
	if err == nil && m.Weights > 16*maxElements {
		err = errors.New("the weights are too large to be true")
	}
	return err
}

// value reads a ValueInfoProto.
func value(d *decoder, f field) (Value, error) {
	var v Value
	err := d.within(f, func(f field) error {
		switch f.number {
		case 1:
			return d.text(f, &v.Name)
		case 2: // TypeProto
			return d.within(f, func(f field) error {
				if f.number != 1 { // tensors only
					return nil
				}
				return d.within(f, func(f field) error {
					switch f.number {
					case 1:
						v.Type = Type(f.varint)
					case 2:
						v.Ranked = true
						return d.within(f, func(f field) error { return v.dim(d, f) })
					}
					return nil
				})
			})
		}
		return nil
	})
	return v, err
}

func (v *Value) dim(d *decoder, f field) error {
	if f.number != 1 {
		return nil
	}
	var dim Dim
	err := d.within(f, func(f field) error {
		switch f.number {
		case 1:
			dim.Size = int64(f.varint)
		case 2:
			return d.text(f, &dim.Axis)
		}
		return nil
	})
	v.Shape = append(v.Shape, dim)
	return err
}

// decoder walks over a protocol buffer through a window of it.
type decoder struct {
	r      io.ReaderAt
	at     int64 // of the next byte
	end    int64 // of the message being read
	window [4096]byte
	from   int64
	have   int
	depth  int
}

// field is one of a message; for wire type 2 its content is between at and end.
type field struct {
	number, wire int
	varint       uint64
	at, end      int64
}

var errCut = errors.New("it ends in the middle")

// Bounds of what is read.
const (
	maxText     = 64 << 10
	maxDepth    = 16
	maxElements = 1 << 50
)

func (d *decoder) byte() (byte, error) {
	if d.at >= d.end {
		return 0, errCut
	}
	if d.at < d.from || d.at >= d.from+int64(d.have) {
		n, err := d.r.ReadAt(d.window[:], d.at)
		if n == 0 {
			if err == nil || errors.Is(err, io.EOF) {
				err = errCut
			}
			return 0, err
		}
		d.from, d.have = d.at, n
	}
	b := d.window[d.at-d.from]
	d.at++
	return b, nil
}

func (d *decoder) number() (uint64, error) {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		b, err := d.byte()
		if err != nil {
			return 0, err
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, errors.New("a number is too long")
}

// each calls f with every field up to the end of the message.
func (d *decoder) each(f func(field) error) error {
	for d.at < d.end {
		key, err := d.number()
		if err != nil {
			return err
		}
		x := field{number: int(key >> 3 & 0x1fffffff), wire: int(key & 7)}
		switch x.wire {
		case 0:
			if x.varint, err = d.number(); err != nil {
				return err
			}
		case 1, 5:
			n := int64(8)
			if x.wire == 5 {
				n = 4
			}
			if d.end-d.at < n {
				return errCut
			}
			d.at += n
		case 2:
			n, err := d.number()
			if err != nil {
				return err
			}
			if n > uint64(d.end-d.at) {
				return errCut
			}
			x.at, x.end = d.at, d.at+int64(n)
		default:
			return fmt.Errorf("field %d has the unknown wire type %d", x.number, x.wire)
		}
		if x.number == 0 {
			return errors.New("a field has number 0")
		}
		if err := f(x); err != nil {
			return err
		}
		if x.wire == 2 {
			d.at = x.end
		}
	}
	return nil
}

// within reads the message in a field.
func (d *decoder) within(x field, f func(field) error) error {
	if x.wire != 2 {
		return fmt.Errorf("field %d is no message", x.number)
	}
	if d.depth == maxDepth {
		return errors.New("messages are nested too deep")
	}
	end := d.end
	d.at, d.end = x.at, x.end
	d.depth++
	err := d.each(f)
	d.depth--
	d.at, d.end = x.end, end
	return err
}

// packed calls f with each number in a field.
func (d *decoder) packed(x field, f func(uint64) error) error {
	end := d.end
	d.at, d.end = x.at, x.end
	defer func() { d.end = end }()
	for d.at < d.end {
		v, err := d.number()
		if err != nil {
			return err
		}
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) text(x field, to *string) error {
	n := x.end - x.at
	if x.wire != 2 || n > maxText {
		return fmt.Errorf("field %d is no text, or one of %d bytes", x.number, n)
	}
	b := make([]byte, n)
	if n, err := d.r.ReadAt(b, x.at); n < len(b) {
		return fmt.Errorf("%w: %w", errCut, err)
	}
	*to = strings.ToValidUTF8(string(b), "?")
	return nil
}
