package onnx

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// Graph is a model to write.
type Graph struct {
	IR      int64            // version of the format; 0: 8
	Opsets  map[string]int64 // by domain; nil: version 13 of ONNX's own
	Nodes   []Node
	Weights []Weight
	Inputs  []Value
	Outputs []Value
}

// Node is one operator. Attributes are int64, []int64, float32 or string.
type Node struct {
	Op, Domain string
	In, Out    []string
	Attributes map[string]any
}

// External is the location of a weight's data in another file.
type External string

// Weight is an initialiser. Data is []float32, []int64 or External.
type Weight struct {
	Name string
	Dims []int64
	Data any
}

// Tensor returns a Value with the given dimensions. A dimension of 0 is a dynamic axis named
// "n".
func Tensor(name string, t Type, dims ...int64) Value {
	v := Value{Name: name, Type: t, Ranked: true}
	for _, d := range dims {
		if d == 0 {
			v.Shape = append(v.Shape, Dim{Axis: "n"})
			continue
		}
		v.Shape = append(v.Shape, Dim{Size: d})
	}
	return v
}

// Encode returns the model as a protocol buffer.
func (g *Graph) Encode() []byte {
	var graph message
	for _, n := range g.Nodes {
		graph = graph.appendBytes(1, n.encode())
	}
	graph = graph.appendText(2, "graph")
	for _, w := range g.Weights {
		graph = graph.appendBytes(5, w.encode())
	}
	for _, v := range g.Inputs {
		graph = graph.appendBytes(11, v.encode())
	}
	for _, v := range g.Outputs {
		graph = graph.appendBytes(12, v.encode())
	}
	opsets := g.Opsets
	if opsets == nil {
		opsets = map[string]int64{"": 13}
	}
	m := message{}.appendNumber(1, uint64(cmp.Or(g.IR, 8))).appendText(2, "yoctune")
	for _, domain := range slices.Sorted(maps.Keys(opsets)) {
		m = m.appendBytes(8, message{}.appendText(1, domain).appendNumber(2, uint64(opsets[domain])))
	}
	return m.appendBytes(7, graph)
}

// Values of AttributeProto.type.
const (
	attributeFloat  = 1
	attributeInt    = 2
	attributeString = 3
	attributeInts   = 7
)

func (n *Node) encode() message {
	var m message
	for _, s := range n.In {
		m = m.appendText(1, s)
	}
	for _, s := range n.Out {
		m = m.appendText(2, s)
	}
	m = m.appendText(4, n.Op)
	for _, name := range slices.Sorted(maps.Keys(n.Attributes)) {
		a := message{}.appendText(1, name)
		switch v := n.Attributes[name].(type) {
		case float32:
			a = a.appendFixed32(2, math.Float32bits(v)).appendNumber(20, attributeFloat)
		case int64:
			a = a.appendNumber(3, uint64(v)).appendNumber(20, attributeInt)
		case string:
			a = a.appendText(4, v).appendNumber(20, attributeString)
		case []int64:
			for _, x := range v {
				a = a.appendNumber(8, uint64(x))
			}
			a = a.appendNumber(20, attributeInts)
		}
		m = m.appendBytes(5, a)
	}
	if n.Domain != "" {
		m = m.appendText(7, n.Domain)
	}
	return m
}

func (w *Weight) encode() message {
	var m message
	for _, d := range w.Dims {
		m = m.appendNumber(1, uint64(d))
	}
	var raw []byte
	kind := Float32
	switch v := w.Data.(type) {
	case []float32:
		for _, x := range v {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
	case []int64:
		kind = Int64
		for _, x := range v {
			raw = binary.LittleEndian.AppendUint64(raw, uint64(x))
		}
	case External:
		entry := message{}.appendText(1, "location").appendText(2, string(v))
		return m.appendNumber(2, uint64(kind)).appendText(8, w.Name).appendBytes(13, entry).appendNumber(14, 1)
	}
	return m.appendNumber(2, uint64(kind)).appendText(8, w.Name).appendBytes(9, raw)
}

func (v *Value) encode() message {
	var dims message
	for _, d := range v.Shape {
		if d.Free() {
			dims = dims.appendBytes(1, message{}.appendText(2, d.Axis))
		} else {
			dims = dims.appendBytes(1, message{}.appendNumber(1, uint64(d.Size)))
		}
	}
	tensor := message{}.appendNumber(1, uint64(v.Type))
	if v.Ranked {
		tensor = tensor.appendBytes(2, dims)
	}
	return message{}.appendText(1, v.Name).appendBytes(2, message{}.appendBytes(1, tensor))
}

// message is a protocol buffer being written.
type message []byte

func (m message) appendVarint(v uint64) message { return binary.AppendUvarint(m, v) }

func (m message) appendNumber(field int, v uint64) message {
	return m.appendVarint(uint64(field) << 3).appendVarint(v)
}

func (m message) appendFixed32(field int, v uint32) message {
	return binary.LittleEndian.AppendUint32(m.appendVarint(uint64(field)<<3|5), v)
}

func (m message) appendBytes(field int, b []byte) message {
	return append(m.appendVarint(uint64(field)<<3|2).appendVarint(uint64(len(b))), b...)
}

func (m message) appendText(field int, s string) message { return m.appendBytes(field, []byte(s)) }
