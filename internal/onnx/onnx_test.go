package onnx_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
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
		IR: 8, Opsets: map[string]int64{"": 13, "com.example": 1},
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
