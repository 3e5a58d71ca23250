package bench

import (
	"fmt"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/ort"
)

// graph is a model for ONNX Runtime with the float32 input "x" and the float32 output "y".
// ONNX Runtime is the reference for most operations of the core.
type graph struct{ g onnx.Graph }

// Element types of Cast, numbered as in ONNX.
const (
	onnxFloat = int64(onnx.Float32)
	onnxHalf  = int64(onnx.Float16)
	onnxInt8  = int64(3)
)

// node adds an operator. attributes alternates names and values.
func (g *graph) node(op string, in, out []string, attributes ...any) {
	n := onnx.Node{Op: op, In: in, Out: out, Attributes: map[string]any{}}
	for i := 0; i+1 < len(attributes); i += 2 {
		n.Attributes[attributes[i].(string)] = attributes[i+1]
	}
	g.g.Nodes = append(g.g.Nodes, n)
}

// floats adds a float32 constant.
func (g *graph) floats(name string, shape []int64, x ...float32) {
	g.g.Weights = append(g.g.Weights, onnx.Weight{Name: name, Dims: shape, Data: x})
}

// ints adds a one-dimensional int64 constant.
func (g *graph) ints(name string, x ...int64) {
	g.g.Weights = append(g.g.Weights, onnx.Weight{Name: name, Dims: []int64{int64(len(x))}, Data: x})
}

// bytes adds an int8 constant, as a cast that the runtime folds when it loads the model.
func (g *graph) bytes(name string, shape []int64, x ...float32) {
	g.floats(name+" as float32", shape, x...)
	g.node("Cast", []string{name + " as float32"}, []string{name}, "to", onnxInt8)
}

// encode returns the model as bytes. shape is the shape of x; the runtime infers that of y.
func (g *graph) encode(shape []int64) []byte {
	g.g.Inputs = []onnx.Value{onnx.Tensor("x", onnx.Float32, shape...)}
	g.g.Outputs = []onnx.Value{{Name: "y", Type: onnx.Float32}}
	return g.g.Encode()
}

// network is a session bound to its input and output tensors.
type network struct {
	s       *ort.Session
	in, out *ort.Tensor
	bound   *ort.Binding
}

// newNetwork loads a graph for one thread and runs it once on x.
func (o *libraries) newNetwork(g *graph, shape []int64, x []float32) (*network, error) {
	s, err := o.ort.NewSessionFromBytes(g.encode(shape), ort.Options{Threads: 1})
	if err != nil {
		return nil, err
	}
	n := &network{s: s}
	if n.in, err = o.ort.NewTensor(ort.Float32, shape); err == nil {
		if len(x) != len(n.in.Data()) {
			err = fmt.Errorf("%d values for a tensor of %v", len(x), shape)
		} else {
			copy(n.in.Data(), x)
			err = n.bind(o.ort)
		}
	}
	if err != nil {
		n.release()
		return nil, err
	}
	return n, nil
}

// bind allocates the output and binds the session.
func (n *network) bind(rt *ort.Runtime) error {
	made, err := n.s.Probe(n.in)
	if err != nil {
		return err
	}
	if n.out, err = rt.NewTensor(ort.Float32, made[0].Shape); err != nil {
		return err
	}
	n.bound, err = n.s.Bind([]*ort.Tensor{n.in}, n.out)
	return err
}

func (n *network) run() error { return n.bound.Run() }

func (n *network) release() {
	if n.bound != nil {
		n.bound.Close()
	}
	for _, t := range []*ort.Tensor{n.in, n.out} {
		if t != nil {
			t.Close()
		}
	}
	n.s.Close()
}
