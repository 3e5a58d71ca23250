package onnx_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/tests/models"
)

func small() *onnx.Graph {
	return &onnx.Graph{
		Opsets:  map[string]int64{"": 13, "com.example": 1},
		Weights: []onnx.Weight{{Name: "w", Dims: []int64{2, 3}, Data: make([]float32, 6)}},
		Nodes:   []onnx.Node{{Op: "MatMul", In: []string{"x", "w"}, Out: []string{"y"}}},
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 0, 2), onnx.Tensor("w", onnx.Float32, 2, 3)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 0, 3)},
	}
}

func TestWrittenEntriesAreRead(t *testing.T) {
	b := small().Encode()
	m, err := onnx.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	want := &onnx.Model{
		IR: 8, Producer: "yoctune", Opsets: map[string]int64{"": 13, "com.example": 1},
		Inputs: []onnx.Value{onnx.Tensor("x", onnx.Float32, 0, 2)}, Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 0, 3)},
		Nodes: 1, Ops: map[string]int{"MatMul": 1}, Weights: 24,
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got  %+v\nwant %+v", m, want)
	}
	if s := m.Inputs[0].String(); s != `"x" float32 [n 2]` {
		t.Errorf("%s", s)
	}
}

// The parser reports the same inputs and outputs of trained models as ONNX Runtime.
func TestTrainedModelsMatchONNXRuntime(t *testing.T) {
	rt, err := ort.Open(models.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	for _, name := range []string{models.Recogniser, models.TextDetector, models.Layout, models.Orientation} {
		path := filepath.Join(models.Dir(t), name)
		m, err := onnx.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := rt.NewSession(path, ort.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			mine   []onnx.Value
			theirs []ort.Info
		}{{m.Inputs, s.Inputs()}, {m.Outputs, s.Outputs()}} {
			if len(c.mine) != len(c.theirs) {
				t.Errorf("%s: %v, ONNX Runtime has %v", name, c.mine, c.theirs)
				continue
			}
			for i, v := range c.mine {
				if w := c.theirs[i]; v.Name != w.Name || int(v.Type) != int(w.DType) || len(v.Shape) != len(w.Shape) {
					t.Errorf("%s: %v, ONNX Runtime has %v", name, v, w)
				}
				for k, d := range v.Shape {
					if w := c.theirs[i].Shape[k]; d.Free() != (w < 0) || !d.Free() && d.Size != w || d.Axis != c.theirs[i].Axes[k] {
						t.Errorf("%s: %v, ONNX Runtime has %v", name, v, c.theirs[i])
					}
				}
			}
		}
		s.Close()
		if m.Weights < 100<<10 || m.Nodes < 10 || m.Opsets[""] == 0 {
			t.Errorf("%s: %d nodes, %d bytes of weights, opset %v", name, m.Nodes, m.Weights, m.Opsets)
		}
	}
}

func TestInvalidModelsAreRefused(t *testing.T) {
	whole := small().Encode()
	for name, b := range map[string][]byte{
		"empty": nil, "text": []byte("this is no model at all"), "half": whole[:len(whole)/2], "zeros": make([]byte, 100),
		"a field of 4 GiB": {0x3a, 0xff, 0xff, 0xff, 0xff, 0x0f}, "an endless number": bytes.Repeat([]byte{0xff}, 40),
		"nested too deep": []byte(strings.Repeat("\x3a\x7f", 200)),
	} {
		if m, err := onnx.Read(bytes.NewReader(b), int64(len(b))); !errors.Is(err, onnx.ErrFormat) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	if _, err := onnx.ReadFile(t.TempDir()); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a folder: %v", err)
	}
}

// External weights are found wherever a runtime would read them.
func TestExternalWeightsAreFoundEverywhere(t *testing.T) {
	field := func(n int, b ...[]byte) []byte {
		all := bytes.Join(b, nil)
		return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n)<<3|2), uint64(len(all))), all...)
	}
	number := func(n int, v uint64) []byte { return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n)<<3), v) }
	weight := append(field(13, field(1, []byte("location")), field(2, []byte("w.bin"))), number(14, 1)...)
	attribute := func(b []byte) []byte { return field(1, field(5, b)) } // of a node of a graph
	inside := field(7, attribute(field(6, attribute(field(5, weight)))))
	for name, model := range map[string][]byte{
		"a weight of the graph":           field(7, field(5, weight)),
		"an attribute":                    field(7, attribute(field(5, weight))),
		"a list in an attribute":          field(7, attribute(field(10, weight))),
		"the body of a loop":              field(7, attribute(field(6, field(5, weight)))),
		"a node of the body of a branch":  inside,
		"one of several bodies":           field(7, attribute(field(11, field(5, weight)))),
		"a sparse weight":                 field(7, field(15, field(1, weight))),
		"the indices of a sparse weight":  field(7, field(15, field(2, weight))),
		"a sparse attribute":              field(7, attribute(field(22, field(1, weight)))),
		"a function":                      append(field(25, field(7, field(5, field(5, weight)))), field(7)...),
		"an engine in a file":             field(7, field(1, field(5, field(1, []byte("embed_mode")), number(3, 0)))),
		"an engine in a file, as nothing": field(7, field(1, field(5, field(1, []byte("embed_mode"))))),
	} {
		model = append(number(1, 8), model...)
		m, err := onnx.Read(bytes.NewReader(model), int64(len(model)))
		if err != nil || !errors.Is(m.CheckComplete(), onnx.ErrExternal) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		if err == nil && !strings.HasPrefix(name, "an engine") && !slices.Equal(m.Files, []string{"w.bin"}) {
			t.Errorf("%s: files %v", name, m.Files)
		}
	}
	embedded := append(number(1, 8), field(7, field(1, field(5, field(1, []byte("embed_mode")), number(3, 1))))...)
	if m, err := onnx.Read(bytes.NewReader(embedded), int64(len(embedded))); err != nil || m.CheckComplete() != nil {
		t.Errorf("an embedded engine: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(small().Encode())
	f.Add([]byte{0x08, 0x08, 0x3a, 0x02, 0x0a, 0x00})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := onnx.Read(bytes.NewReader(b), int64(len(b)))
		if (m == nil) != (err != nil) || err != nil && !errors.Is(err, onnx.ErrFormat) {
			t.Errorf("%v, %v", m, err)
		}
		if m != nil && m.Weights < 0 {
			t.Errorf("%d bytes of weights", m.Weights)
		}
	})
}
