package models

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/internal/onnx"
	testmodels "github.com/yoctune/yoctune/tests/models"
)

// set writes a calibration set of one float32 tensor.
func set(t *testing.T, name string, shape []int64, value func(i int) float32) string {
	t.Helper()
	n := 1
	for _, d := range shape {
		n *= int(d)
	}
	header, err := json.Marshal(map[string]any{"x": map[string]any{"dtype": "F32", "shape": shape, "data_offsets": []int{0, 4 * n}}})
	if err != nil {
		t.Fatal(err)
	}
	data := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	for i := range n {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(value(i)))
	}
	return write(t, name, data)
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// product is x [n 4] times a matrix of one value, which a name of a node may be given to.
func product(value float32) []byte {
	w := make([]float32, 16)
	for i := range w {
		w[i] = value
	}
	g := onnx.Graph{
		Opsets:  map[string]int64{"": 17},
		Weights: []onnx.Weight{{Name: "w", Dims: []int64{4, 4}, Data: w}},
		Nodes:   []onnx.Node{{Op: "MatMul", In: []string{"x", "w"}, Out: []string{"h"}}, {Op: "Relu", In: []string{"h"}, Out: []string{"y"}}},
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 0, 4)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 0, 4)},
	}
	return g.Encode()
}

// Each candidate is made or refused with a reason; nothing is written for one that is refused.
func TestCandidatesAreMadeOrRefusedWithAReason(t *testing.T) {
	env := FindEnvironment(filepath.Join(testmodels.Python(t), "yoctune"))
	good, huge := product(0.5), product(60000)
	custom := onnx.Graph{Nodes: []onnx.Node{{Op: "Frobnicate", In: []string{"x"}, Out: []string{"y"}}},
		Inputs: []onnx.Value{onnx.Tensor("x", onnx.Float32, 0, 4)}, Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 0, 4)}}
	parts := onnx.Graph{Weights: []onnx.Weight{{Name: "w", Dims: []int64{4, 4}, Data: onnx.External("/etc/passwd")}},
		Nodes:  []onnx.Node{{Op: "MatMul", In: []string{"x", "w"}, Out: []string{"y"}}},
		Inputs: []onnx.Value{onnx.Tensor("x", onnx.Float32, 0, 4)}, Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 0, 4)}}
	ramp := func(i int) float32 { return float32(i%7) - 3 }
	fits := set(t, "fits", []int64{8, 4}, ramp)
	for _, c := range []struct {
		name    string
		model   []byte
		options map[string]any
		want    string // of the error; "": made
		note    [2]string
	}{
		{"graph", good, map[string]any{"kind": "graph"}, "", [2]string{"nodes", "2, "}},
		{"slim", good, map[string]any{"kind": "slim"}, "", [2]string{"nodes", "2, "}},
		{"half", good, map[string]any{"kind": "fp16", "examples": fits}, "", [2]string{"casts", "2"}},
		{"half that overflows", huge, map[string]any{"kind": "fp16", "examples": fits}, "", [2]string{"overflow", "MatMul"}},
		{"8 bits", good, map[string]any{"kind": "int8", "calibration": fits, "method": "minmax"}, "", [2]string{"examples", "8"}},
		{"8 bits by entropy", good, map[string]any{"kind": "int8", "calibration": fits, "method": "entropy", "perChannel": true}, "", [2]string{"examples", "8"}},
		{"8 bits of weights", good, map[string]any{"kind": "int8-dynamic"}, "", [2]string{"quantised", "1"}},
		{"zeros", good, map[string]any{"kind": "prune", "pattern": "2:4"}, "", [2]string{"zeros", "0.5"}},
		{"channels", good, map[string]any{"kind": "prune", "pattern": "channel", "amount": 0.5}, "no convolution has channels to remove", [2]string{}},
		{"an unknown node", good, map[string]any{"kind": "int8", "calibration": fits, "exclude": []string{"/model.22/Concat"}}, "exclude: no node of the model is called /model.22/Concat", [2]string{}},
		{"an unknown node of half", good, map[string]any{"kind": "fp16", "keep": []string{"head"}}, "keep: no node of the model is called head", [2]string{}},
		{"an empty set", good, map[string]any{"kind": "int8", "calibration": write(t, "empty", nil)}, "not a safetensors file", [2]string{}},
		{"a set of nothing", good, map[string]any{"kind": "int8", "calibration": write(t, "none", append(binary.LittleEndian.AppendUint64(nil, 2), "{}"...))}, "no tensor for the input x", [2]string{}},
		{"a set of another shape", good, map[string]any{"kind": "int8", "calibration": set(t, "other", []int64{8, 5}, ramp)}, "gives [8, 5] for the input x, and the model takes [0, 4]", [2]string{}},
		{"a truncated set", good, map[string]any{"kind": "int8", "calibration": write(t, "short", readFile(t, fits)[:100])}, "truncated", [2]string{}},
		{"a truncated model", good[:len(good)/2], map[string]any{"kind": "graph"}, "rror", [2]string{}},
		{"a custom operator", custom.Encode(), map[string]any{"kind": "graph"}, "ONNX Runtime does not load the model", [2]string{}},
		{"weights elsewhere", parts.Encode(), map[string]any{"kind": "graph"}, "parts of the model are in other files", [2]string{}},
		{"bfloat16 without a kernel", good, map[string]any{"kind": "bf16"}, "", [2]string{}}, // made where the runtime has one
	} {
		out := filepath.Join(t.TempDir(), "out.onnx")
		c.options["model"], c.options["output"] = write(t, "model.onnx", c.model), out
		notes, err := env.make(t.Context(), c.options, 2*time.Minute, func(string) {})
		if c.name == "bfloat16 without a kernel" {
			if err != nil && !strings.Contains(err.Error(), "does not load the candidate") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		case c.want == "" && !strings.Contains(notes[c.note[0]], c.note[1]):
			t.Errorf("%s: notes %v, want %v", c.name, notes, c.note)
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheEnvironmentMustBeSetUp(t *testing.T) {
	env := FindEnvironment(t.TempDir())
	if _, err := env.make(context.Background(), nil, time.Second, nil); !errors.Is(err, ErrNoEnvironment) {
		t.Error(err)
	}
}
