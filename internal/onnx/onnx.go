// Package onnx reads the metadata of ONNX models, such as inputs, outputs and the size of
// the weights, and writes small models. It implements the file format (protocol buffers with
// the fields of onnx.proto) and no operators.
//
// The reader skips weights without loading them, so that reading a model of gigabytes costs
// only a few small reads. It accepts hostile input.
package onnx

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/internal/infile"
)

// ErrFormat means that a file is not an ONNX model.
var ErrFormat = errors.New("not an ONNX model")

// Type is an element type, numbered as in ONNX.
type Type int

// Element types that this program uses.
const (
	Float32  Type = 1
	Uint8    Type = 2
	Int8     Type = 3
	Int32    Type = 6
	Int64    Type = 7
	Bool     Type = 9
	Float16  Type = 10
	BFloat16 Type = 16
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

// Dim is one dimension: a fixed size, or a dynamic axis with an optional name.
type Dim struct {
	Size int64
	Axis string
}

// Free reports whether the dimension is dynamic.
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

// Value describes an input or an output.
type Value struct {
	Name   string
	Type   Type
	Shape  []Dim
	Ranked bool // the number of dimensions is known
}

// Dims returns the shape as text, such as "[1 3 height width]".
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

// Model is the metadata of a model.
type Model struct {
	IR       int64            // version of the format
	Producer string           // program that wrote the file, "" if it is not named
	Opsets   map[string]int64 // by domain, "" is ONNX's own
	Inputs   []Value          // without weights
	Outputs  []Value
	Nodes    int
	Ops      map[string]int // nodes by operator
	Weights  int64          // bytes of the weights
	Half     bool           // some of them are float16
	External bool           // some of them are in other files
	Files    []string       // names of these files, as far as they are given
}

// ErrExternal means that a model is not complete in its file.
var ErrExternal = errors.New("parts of the model are in other files")

// CheckComplete returns [ErrExternal] for a model whose weights, or whose engine, are in other files: no
// digest of the model covers these, and a runtime may read any path that the model gives.
func (m *Model) CheckComplete() error {
	if !m.External {
		return nil
	}
	files := ""
	if len(m.Files) > 0 {
		files = fmt.Sprintf(" (%.80s)", strings.Join(m.Files, ", "))
	}
	return fmt.Errorf("%w%s, which the model's digest does not cover: save it as one file: python3 -c 'import onnx; onnx.save(onnx.load(\"MODEL.onnx\"), \"whole.onnx\")'", ErrExternal, files)
}

// ReadFile reads the model in a file. The error wraps [ErrFormat] or that of reading the
// file.
func ReadFile(path string) (*Model, error) {
	f, err := infile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: not a regular file", ErrFormat)
	}
	return Read(f, st.Size())
}

// Read reads a model of size bytes.
func Read(r io.ReaderAt, size int64) (*Model, error) {
	m := &Model{Opsets: map[string]int64{}, Ops: map[string]int{}}
	weights := map[string]bool{}
	d := &decoder{r: r, end: size}
	graph := false
	err := d.forEachField(func(f field) error {
		switch f.number {
		case 1:
			m.IR = int64(f.varint)
		case 2:
			return d.text(f, &m.Producer)
		case 7:
			graph = true
			return m.readGraph(d, f, weights)
		case 8:
			return m.readOpset(d, f)
		case 25: // FunctionProto
			return d.forEachSubfield(f, func(f field) error {
				if f.number != 7 {
					return nil
				}
				return m.readBodyNode(d, f)
			})
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	case !graph || m.IR == 0:
		return nil, fmt.Errorf("%w: it has no graph", ErrFormat)
	}
	// Before IR version 4 weights were also inputs.
	m.Inputs = slices.DeleteFunc(m.Inputs, func(v Value) bool { return weights[v.Name] })
	return m, nil
}

// readOpset reads an OperatorSetIdProto.
func (m *Model) readOpset(d *decoder, f field) error {
	var domain string
	var version int64
	err := d.forEachSubfield(f, func(f field) error {
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

// readGraph reads a GraphProto and collects the names of its weights.
func (m *Model) readGraph(d *decoder, f field, weights map[string]bool) error {
	return d.forEachSubfield(f, func(f field) error {
		switch f.number {
		case 1:
			m.Nodes++
			return d.forEachSubfield(f, func(f field) error { return m.readNode(d, f, weights) })
		case 5:
			return m.readWeight(d, f, weights)
		case 15:
			return m.readSparse(d, f)
		case 11, 12:
			v, err := readValue(d, f)
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

// readNode reads a field of a NodeProto: the operator, and the attributes, where some exporters
// store weights.
func (m *Model) readNode(d *decoder, f field, weights map[string]bool) error {
	switch f.number {
	case 4:
		var op string
		err := d.text(f, &op)
		m.Ops[op]++
		return err
	case 5:
		return m.readAttribute(d, f, weights)
	}
	return nil
}

// readAttribute reads an AttributeProto. A graph of an attribute is the body of a loop or a branch,
// which has weights of its own.
func (m *Model) readAttribute(d *decoder, f field, weights map[string]bool) error {
	var name string
	number := uint64(0)
	err := d.forEachSubfield(f, func(f field) error {
		switch f.number {
		case 1:
			return d.text(f, &name)
		case 3:
			number = f.varint
		case 5, 10:
			return m.readWeight(d, f, weights)
		case 6, 11:
			return m.readBody(d, f)
		case 22, 23:
			return m.readSparse(d, f)
		}
		return nil
	})
	// The engine of an EPContext node is a file, unless it is embedded.
	m.External = m.External || name == "embed_mode" && number == 0
	return err
}

// readBody reads the GraphProto of an attribute. Its nodes are not counted.
func (m *Model) readBody(d *decoder, f field) error {
	return d.forEachSubfield(f, func(f field) error {
		switch f.number {
		case 1:
			return m.readBodyNode(d, f)
		case 5:
			return m.readWeight(d, f, map[string]bool{})
		case 15:
			return m.readSparse(d, f)
		}
		return nil
	})
}

func (m *Model) readBodyNode(d *decoder, f field) error {
	return d.forEachSubfield(f, func(f field) error {
		if f.number != 5 {
			return nil
		}
		return m.readAttribute(d, f, map[string]bool{})
	})
}

// readSparse reads a SparseTensorProto: values and indices.
func (m *Model) readSparse(d *decoder, f field) error {
	return d.forEachSubfield(f, func(f field) error {
		if f.number > 2 {
			return nil
		}
		return m.readWeight(d, f, map[string]bool{})
	})
}

// readWeight reads a TensorProto without its data.
func (m *Model) readWeight(d *decoder, f field, names map[string]bool) error {
	elements, kind := int64(1), int64(0)
	var name string
	dim := func(v uint64) error {
		if v > 0 && elements > maxElements/int64(min(v, maxElements)) {
			return errors.New("implausible size of a weight")
		}
		elements *= int64(v)
		return nil
	}
	err := d.forEachSubfield(f, func(f field) error {
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
		case 13:
			return m.readLocation(d, f)
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
		m.Half = m.Half || Type(kind) == Float16
	}
	if err == nil && m.Weights > 16*maxElements {
		err = errors.New("declared weight size is implausible")
	}
	return err
}

// maxFiles limits the files that are listed.
const maxFiles = 4

// readLocation reads an entry of a weight's external data.
func (m *Model) readLocation(d *decoder, f field) error {
	var key, value string
	err := d.forEachSubfield(f, func(f field) error {
		switch f.number {
		case 1:
			return d.text(f, &key)
		case 2:
			return d.text(f, &value)
		}
		return nil
	})
	if key == "location" && len(m.Files) < maxFiles && !slices.Contains(m.Files, value) {
		m.Files = append(m.Files, value)
	}
	return err
}

// readValue reads a ValueInfoProto.
func readValue(d *decoder, f field) (Value, error) {
	var v Value
	err := d.forEachSubfield(f, func(f field) error {
		switch f.number {
		case 1:
			return d.text(f, &v.Name)
		case 2: // TypeProto
			return d.forEachSubfield(f, func(f field) error {
				if f.number != 1 { // tensors only
					return nil
				}
				return d.forEachSubfield(f, func(f field) error {
					switch f.number {
					case 1:
						v.Type = Type(f.varint)
					case 2:
						v.Ranked = true
						return d.forEachSubfield(f, func(f field) error { return v.readDim(d, f) })
					}
					return nil
				})
			})
		}
		return nil
	})
	return v, err
}

// readDim reads a dimension of a TensorShapeProto.
func (v *Value) readDim(d *decoder, f field) error {
	if f.number != 1 {
		return nil
	}
	var dim Dim
	err := d.forEachSubfield(f, func(f field) error {
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

// decoder reads a protocol buffer through a small window.
type decoder struct {
	r      io.ReaderAt
	at     int64 // offset of the next byte
	end    int64 // end of the current message
	window [4096]byte
	from   int64
	have   int
	depth  int
}

// field is a field of a message. With wire type 2 its content lies between at and end.
type field struct {
	number, wire int
	varint       uint64
	at, end      int64
}

var errCut = errors.New("unexpected end of data")

// Limits for hostile input. A longer text is cut: a model with such a name runs, and is not refused.
// Protocol buffers may be nested 100 deep, and no deeper in ONNX Runtime either.
const (
	maxText     = 64 << 10
	maxDepth    = 100
	maxElements = 1 << 50
)

func (d *decoder) readByte() (byte, error) {
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

// readVarint reads a base-128 varint.
func (d *decoder) readVarint() (uint64, error) {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		b, err := d.readByte()
		if err != nil {
			return 0, err
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, errors.New("varint is too long")
}

// forEachField calls f for every field of the message.
func (d *decoder) forEachField(f func(field) error) error {
	for d.at < d.end {
		key, err := d.readVarint()
		if err != nil {
			return err
		}
		x := field{number: int(key >> 3 & 0x1fffffff), wire: int(key & 7)}
		switch x.wire {
		case 0:
			if x.varint, err = d.readVarint(); err != nil {
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
			n, err := d.readVarint()
			if err != nil {
				return err
			}
			if n > uint64(d.end-d.at) {
				return errCut
			}
			x.at, x.end = d.at, d.at+int64(n)
		default:
			return fmt.Errorf("field %d has unknown wire type %d", x.number, x.wire)
		}
		if x.number == 0 {
			return errors.New("invalid field number 0")
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

// forEachSubfield calls f for every field of the message in field x.
func (d *decoder) forEachSubfield(x field, f func(field) error) error {
	if x.wire != 2 {
		return fmt.Errorf("field %d is not a message", x.number)
	}
	if d.depth == maxDepth {
		return errors.New("messages are nested too deeply")
	}
	end := d.end
	d.at, d.end = x.at, x.end
	d.depth++
	err := d.forEachField(f)
	d.depth--
	d.at, d.end = x.end, end
	return err
}

// packed calls f for each varint in a packed field.
func (d *decoder) packed(x field, f func(uint64) error) error {
	end := d.end
	d.at, d.end = x.at, x.end
	defer func() { d.end = end }()
	for d.at < d.end {
		v, err := d.readVarint()
		if err != nil {
			return err
		}
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// text reads a string field, up to maxText.
func (d *decoder) text(x field, to *string) error {
	if x.wire != 2 {
		return fmt.Errorf("field %d is not a string", x.number)
	}
	b := make([]byte, min(x.end-x.at, maxText))
	if n, err := d.r.ReadAt(b, x.at); n < len(b) {
		return fmt.Errorf("%w: %w", errCut, err)
	}
	*to = strings.ToValidUTF8(string(b), "?")
	return nil
}
