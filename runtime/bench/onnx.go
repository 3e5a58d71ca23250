package bench

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/yoctune/yoctune/runtime/ort"
)

// Models for ONNX Runtime, which computes most of what the core does and which nobody
// here wrote. ONNX is a protocol buffer; field numbers are those of onnx.proto.

type proto []byte

func (m proto) varint(v uint64) proto { return binary.AppendUvarint(m, v) }

func (m proto) number(field int, v uint64) proto { return m.varint(uint64(field) << 3).varint(v) }

func (m proto) bytes(field int, b []byte) proto {
	return append(m.varint(uint64(field)<<3|2).varint(uint64(len(b))), b...)
}

func (m proto) text(field int, s string) proto { return m.bytes(field, []byte(s)) }

// Element types of ONNX.
const (
	onnxFloat = 1
	onnxInt8  = 3
	onnxInt64 = 7
	onnxHalf  = 10
)

// graph is a model with the float32 input "x" and the float32 output "y".
type graph struct{ nodes, constants, output proto }

// node adds an operator. Attributes are an int, a []int64 or a float32.
func (g *graph) node(op string, in, out []string, attributes ...any) {
	var n proto
	for _, s := range in {
		n = n.text(1, s)
	}
	for _, s := range out {
		n = n.text(2, s)
	}
	n = n.text(4, op)
	for i := 0; i+1 < len(attributes); i += 2 {
		a := proto{}.text(1, attributes[i].(string))
		switch v := attributes[i+1].(type) {
		case int:
			a = a.number(3, uint64(v)).number(20, 2)
		case []int64:
			for _, x := range v {
				a = a.number(8, uint64(x))
			}
			a = a.number(20, 7)
		case float32:
			a = binary.LittleEndian.AppendUint32(a.varint(2<<3|5), math.Float32bits(v))
			a = a.number(20, 1)
		}
		n = n.bytes(5, a)
	}
	g.nodes = g.nodes.bytes(1, n)
}

// floats adds a constant.
func (g *graph) floats(name string, shape []int64, x ...float32) {
	raw := make([]byte, 0, 4*len(x))
	for _, v := range x {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	g.constant(name, onnxFloat, shape, raw)
}

func (g *graph) ints(name string, x ...int64) {
	raw := make([]byte, 0, 8*len(x))
	for _, v := range x {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	g.constant(name, onnxInt64, []int64{int64(len(x))}, raw)
}

func (g *graph) constant(name string, kind uint64, shape []int64, raw []byte) {
	var t proto
	for _, d := range shape {
		t = t.number(1, uint64(d))
	}
	g.constants = g.constants.bytes(5, t.number(2, kind).text(8, name).bytes(9, raw))
}

// model is the bytes of the graph; shape is of x. What y has the runtime works out.
func (g *graph) model(shape []int64) []byte {
	var dims proto
	for _, d := range shape {
		dims = dims.bytes(1, proto{}.number(1, uint64(d)))
	}
	tensor := func(name string, of proto) proto {
		return proto{}.text(1, name).bytes(2, proto{}.bytes(1, of))
	}
	all := append(proto{}, g.nodes...).text(2, "bench")
	all = append(all, g.constants...)
	all = all.bytes(11, tensor("x", proto{}.number(1, onnxFloat).bytes(2, dims)))
	all = all.bytes(12, tensor("y", proto{}.number(1, onnxFloat)))
	return proto{}.number(1, 8).bytes(8, proto{}.text(1, "").number(2, 13)).bytes(7, all)
}

// network is a session with its tensors.
type network struct {
	s       *ort.Session
	in, out *ort.Tensor
}

// network loads a graph on one thread and runs it once on x.
func (o *others) network(g *graph, shape []int64, x []float32) (*network, error) {
	s, err := o.ort.NewSessionFromBytes(g.model(shape), ort.Options{Threads: 1})
	if err != nil {
		return nil, err
	}
	n := &network{s: s}
	if n.in, err = o.ort.NewTensor(shape); err == nil {
		if len(x) != len(n.in.Data()) {
			err = fmt.Errorf("%d values for a tensor of %v", len(x), shape)
		} else {
			copy(n.in.Data(), x)
			n.out, err = s.NewOutput(n.in)
		}
	}
	if err != nil {
		n.release()
		return nil, err
	}
	return n, nil
}

func (n *network) run() error { return n.s.Run(n.in, n.out) }

func (n *network) release() {
	for _, t := range []*ort.Tensor{n.in, n.out} {
		if t != nil {
			t.Close()
		}
	}
	n.s.Close()
}
