package main

import (
	"encoding/binary"
	"math"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/tests/models"
)

// Each script measures models that "classifiers DIR" writes.
func TestBenchModelScripts(t *testing.T) {
	library := models.Library(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/bench",
		Setup: func(env *testscript.Env) error {
			env.Setenv("YOCTUNE_ORT_LIBRARY", library)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits,
			"classifiers": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.MkdirAll(ts.MkAbs(args[0]), 0o755))
				for name, data := range classifiers() {
					ts.Check(os.WriteFile(ts.MkAbs(args[0]+"/"+name), data, 0o644))
				}
			},
		},
	})
}

// classifiers returns a classifier of two classes, the larger of two numbers, with a labelled set,
// and what may become of a model.
func classifiers() map[string][]byte {
	in, out := onnx.Tensor("x", onnx.Float32, 0, 2), onnx.Tensor("y", onnx.Float32, 0, 2)
	identity := []onnx.Weight{{Name: "w", Dims: []int64{2, 2}, Data: []float32{1, 0, 0, 1}}}
	swapped := []onnx.Weight{{Name: "w", Dims: []int64{2, 2}, Data: []float32{0, 1, 1, 0}}}
	product := onnx.Node{Op: "MatMul", In: []string{"x", "w"}, Out: []string{"y"}}
	model := func(in, out onnx.Value, weights []onnx.Weight, nodes ...onnx.Node) []byte {
		g := onnx.Graph{Nodes: nodes, Weights: weights, Inputs: []onnx.Value{in}, Outputs: []onnx.Value{out}}
		return g.Encode()
	}
	files := map[string][]byte{
		"full.onnx":    model(in, out, identity, product),
		"same.onnx":    model(in, out, identity, onnx.Node{Op: "Identity", In: []string{"x"}, Out: []string{"z"}}, onnx.Node{Op: "MatMul", In: []string{"z", "w"}, Out: []string{"y"}}),
		"swapped.onnx": model(in, out, swapped, product),
		// The sum over the batch is the example itself only while it is alone.
		"batch.onnx": model(in, out, identity,
			onnx.Node{Op: "ReduceMean", In: []string{"x"}, Out: []string{"m"}, Attributes: map[string]any{"axes": []int64{0}, "keepdims": int64(1)}},
			onnx.Node{Op: "Sub", In: []string{"x", "m"}, Out: []string{"d"}},
			onnx.Node{Op: "Sub", In: []string{"m", "d"}, Out: []string{"s"}},
			onnx.Node{Op: "MatMul", In: []string{"s", "w"}, Out: []string{"y"}}),
		"fixed.onnx":  model(onnx.Tensor("x", onnx.Float32, 1, 2), onnx.Tensor("y", onnx.Float32, 1, 2), identity, product),
		"custom.onnx": model(in, out, nil, onnx.Node{Op: "Frobnicate", In: []string{"x"}, Out: []string{"y"}}),
		"cycle.onnx":  model(in, out, nil, onnx.Node{Op: "Add", In: []string{"x", "b"}, Out: []string{"a"}}, onnx.Node{Op: "Neg", In: []string{"a"}, Out: []string{"b"}}, onnx.Node{Op: "Neg", In: []string{"b"}, Out: []string{"y"}}),
		"parts.onnx":  model(in, out, []onnx.Weight{{Name: "w", Dims: []int64{2, 2}, Data: onnx.External("/etc/passwd")}}, product),
		"huge.onnx": model(in, out, []onnx.Weight{{Name: "s", Dims: []int64{2}, Data: []int64{1 << 20, 1 << 20}}},
			onnx.Node{Op: "ConstantOfShape", In: []string{"s"}, Out: []string{"h"}}, onnx.Node{Op: "ReduceSum", In: []string{"h"}, Out: []string{"r"}}, onnx.Node{Op: "Add", In: []string{"x", "r"}, Out: []string{"y"}}),
		"overflow.onnx": model(in, out, []onnx.Weight{{Name: "w", Dims: []int64{2, 2}, Data: []float32{3e38, 3e38, 3e38, 3e38}}}, product),
		"pointer.onnx":  []byte("version https://git-lfs.github.com/spec/v1\n"),
	}
	files["half.onnx"] = files["full.onnx"][:len(files["full.onnx"])/2]
	var numbers []byte
	for _, v := range []float32{2, 1, 1, 2, 3, 1, 1, 3, 5, 1} { // classes 0 1 0 1 0
		numbers = binary.LittleEndian.AppendUint32(numbers, math.Float32bits(v))
	}
	set := func(header string, data ...byte) []byte {
		return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), data...)
	}
	files["set.safetensors"] = set(`{"x":{"dtype":"F32","shape":[5,2],"data_offsets":[0,40]},"label":{"dtype":"U8","shape":[5],"data_offsets":[40,45]}}`, append(numbers, 0, 1, 0, 1, 0)...)
	files["classes.safetensors"] = set(`{"x":{"dtype":"F32","shape":[5,2],"data_offsets":[0,40]},"label":{"dtype":"U8","shape":[5],"data_offsets":[40,45]}}`, append(numbers, 0, 1, 0, 1, 9)...)
	files["three.safetensors"] = set(`{"x":{"dtype":"F32","shape":[3,3],"data_offsets":[0,36]}}`, numbers[:36]...)
	files["ints.safetensors"] = set(`{"x":{"dtype":"I32","shape":[5,2],"data_offsets":[0,40]}}`, numbers...)
	files["other.safetensors"] = set(`{"z":{"dtype":"F32","shape":[5,2],"data_offsets":[0,40]}}`, numbers...)
	return files
}
