package ort_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/tests/models"
)

func open(t testing.TB) *ort.Runtime {
	t.Helper()
	rt, err := ort.Open(models.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rt.Close)
	return rt
}

// abs gives the absolute value of x, [n 3].
func abs() []byte {
	return model("Abs", onnx.Tensor("y", onnx.Float32, 0, 3), onnx.Tensor("x", onnx.Float32, 0, 3))
}

// model has one node that takes all inputs and gives y.
func model(op string, output onnx.Value, inputs ...onnx.Value) []byte {
	n := onnx.Node{Op: op, Out: []string{"y"}}
	for _, in := range inputs {
		n.In = append(n.In, in.Name)
	}
	g := onnx.Graph{Nodes: []onnx.Node{n}, Inputs: inputs, Outputs: []onnx.Value{output}}
	return g.Encode()
}

// bind binds a session to in and to a new tensor for its output.
func bind(t testing.TB, rt *ort.Runtime, s *ort.Session, in *ort.Tensor) (*ort.Tensor, *ort.Binding) {
	t.Helper()
	made, err := s.Probe(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := rt.NewTensor(ort.Float32, made[0].Shape)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Bind([]*ort.Tensor{in}, out)
	if err != nil {
		t.Fatal(err)
	}
	return out, b
}

func TestRunWritesIntoFixedTensors(t *testing.T) {
	rt := open(t)
	s, err := rt.NewSessionFromBytes(abs(), ort.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Inputs()[0].String(); got != `"x" float32 [n 3]` {
		t.Errorf("input is %s", got)
	}
	in, err := rt.NewTensor(ort.Float32, []int64{2, 3})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, bound := bind(t, rt, s, in)
	defer out.Close()
	defer bound.Close()
	data := out.Data()
	for round := range 3 {
		for i := range in.Data() {
			in.Data()[i] = float32(-i * (round + 1))
		}
		if err := bound.Run(); err != nil {
			t.Fatal(err)
		}
		for i, v := range data {
			if v != float32(i*(round+1)) {
				t.Fatalf("round %d: |%v| = %v", round, in.Data()[i], v)
			}
		}
	}
	if !slices.Equal(out.Shape(), []int64{2, 3}) {
		t.Errorf("output shape %v", out.Shape())
	}
	if n := testing.AllocsPerRun(100, func() { _ = bound.Run() }); n != 0 {
		t.Errorf("a run allocates %v times", n)
	}
}

// The indices of elements that are not 0 are as many as there are such elements.
func TestAShapeThatDependsOnDataIsExplained(t *testing.T) {
	rt := open(t)
	g := onnx.Graph{
		Nodes:  []onnx.Node{{Op: "NonZero", In: []string{"x"}, Out: []string{"at"}}, {Op: "Cast", In: []string{"at"}, Out: []string{"y"}, Attributes: map[string]any{"to": int64(1)}}},
		Inputs: []onnx.Value{onnx.Tensor("x", onnx.Float32, 4)}, Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 1, 0)},
	}
	s, err := rt.NewSessionFromBytes(g.Encode(), ort.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := rt.NewTensor(ort.Float32, []int64{4})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	copy(in.Data(), []float32{1, 2, 3, 4})
	out, bound := bind(t, rt, s, in)
	defer out.Close()
	defer bound.Close()
	if err := bound.Run(); err != nil {
		t.Fatal(err)
	}
	in.Data()[2] = 0
	if err := bound.Run(); !errors.Is(err, ort.ErrDynamic) || !strings.Contains(err.Error(), "depend") {
		t.Errorf("%v", err)
	}
}

func TestShapeErrorHasTheExpectedShape(t *testing.T) {
	rt := open(t)
	s, err := rt.NewSessionFromBytes(abs(), ort.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, shape := range [][]int64{{2, 4}, {3}, {1, 2, 3}} {
		in, err := rt.NewTensor(ort.Float32, shape)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		_, err = s.Probe(in)
		if !errors.Is(err, ort.ErrShape) || !strings.Contains(err.Error(), `"x" expects [n 3], got [`) {
			t.Errorf("%v: %v", shape, err)
		}
	}
}

func TestUnusableModelsAreRefused(t *testing.T) {
	rt := open(t)
	whole, err := os.ReadFile(filepath.Join(models.Dir(t), models.Recogniser))
	if err != nil {
		t.Fatal(err)
	}
	three := func(name string) onnx.Value { return onnx.Tensor(name, onnx.Float32, 3) }
	for _, c := range []struct {
		name     string
		model    []byte
		opt      ort.Options
		want     error
		wantText string
	}{
		{"empty", nil, ort.Options{}, ort.ErrModel, "empty"},
		{"noise", []byte("this is no model at all"), ort.Options{}, ort.ErrModel, "protobuf"},
		{"half a model", whole[:len(whole)/2], ort.Options{}, ort.ErrModel, "protobuf"},
		{"unknown operator", model("Frobnicate", three("y"), three("x")), ort.Options{}, ort.ErrModel, "Frobnicate"},
		{"two inputs", model("Add", three("y"), three("a"), three("b")), ort.Options{}, ort.ErrUnsupported, "2 inputs"},
		{"no such output", abs(), ort.Options{Output: "z"}, ort.ErrModel, `no output named "z"; the model has "y"`},
		{"no such input", abs(), ort.Options{Inputs: []string{"z"}}, ort.ErrModel, `no input named "z"; the model has "x"`},
		{"refused by the check", abs(), ort.Options{Check: func([]byte) error { return os.ErrPermission }}, os.ErrPermission, ""},
	} {
		s, err := rt.NewSessionFromBytes(c.model, c.opt)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// The oldest and the current library refuse the same models, and the reason is in words:
// weights are read from no other file, wherever that is.
func TestUnsupportedModelsAreRefused(t *testing.T) {
	libraries := []string{models.OldLibrary(t), models.Library(t)}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("weights.bin", make([]byte, 12), 0o600); err != nil {
		t.Fatal(err)
	}
	three := func(name string) onnx.Value { return onnx.Tensor(name, onnx.Float32, 3) }
	one := func(op string, in ...string) onnx.Graph {
		return onnx.Graph{Nodes: []onnx.Node{{Op: op, In: in, Out: []string{"y"}}}, Inputs: []onnx.Value{three("x")}, Outputs: []onnx.Value{three("y")}}
	}
	for _, path := range libraries {
		rt, err := ort.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		refused := func(name string, g onnx.Graph, want error, wantText string) {
			s, err := rt.NewSessionFromBytes(g.Encode(), ort.Options{})
			if err == nil {
				s.Close()
			}
			if !errors.Is(err, want) || !strings.Contains(err.Error(), wantText) {
				t.Errorf("%s, %s: %v", rt.Version(), name, err)
			}
		}
		for _, opset := range []int64{1, 999} {
			g := one("Abs", "x")
			g.Opsets = map[string]int64{"": opset}
			refused("opset", g, ort.ErrModel, fmt.Sprintf("the model has IR version 8 and opset %d", opset))
		}
		g := one("Abs", "x")
		g.IR = 99
		refused("IR", g, ort.ErrModel, "the model has IR version 99")
		g = one("Add", "x", "w")
		g.Weights = []onnx.Weight{{Name: "w", Dims: []int64{300}, Data: []float32{1}}}
		refused("weights that are not there", g, ort.ErrModel, "Incompatible dimensions")
		for _, file := range []string{"weights.bin", "absent.bin", "../../../../../../etc/passwd", "/etc/passwd"} {
			g.Weights = []onnx.Weight{{Name: "w", Dims: []int64{3}, Data: onnx.External(file)}}
			refused(file, g, ort.ErrUnsupported, "in other files ("+file+"), which the model's digest does not cover: save it as one file")
		}
		rt.Close()
	}
}

// A tensor whose elements have another type than the model's is refused where it is bound (microsoft/onnxruntime#10299).
func TestElementsOfAnotherTypeAreNotBound(t *testing.T) {
	rt := open(t)
	tensor := func(dtype ort.DType) *ort.Tensor {
		x, err := rt.NewTensor(dtype, []int64{4})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(x.Close)
		return x
	}
	types := []ort.DType{onnx.Float32, onnx.Float16, onnx.BFloat16, onnx.Int8, onnx.Uint8, onnx.Int32, onnx.Int64, onnx.Bool}
	for _, own := range types {
		s, err := rt.NewSessionFromBytes(model("Identity", onnx.Tensor("y", own, 4), onnx.Tensor("x", own, 4)), ort.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, other := range types {
			in, out := tensor(other), tensor(other)
			copy(in.Bytes(), []byte{1, 0, 1})
			_, err := s.Probe(in)
			_, bindErr := s.Bind([]*ort.Tensor{tensor(own)}, out)
			if other != own {
				for _, err := range []error{err, bindErr} {
					if !errors.Is(err, ort.ErrShape) || !strings.Contains(err.Error(), own.String()) || !strings.Contains(err.Error(), other.String()) {
						t.Errorf("%s bound to %s: %v", own, other, err)
					}
				}
				continue
			}
			b, berr := s.Bind([]*ort.Tensor{in}, out)
			if err := errors.Join(err, bindErr, berr); err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			if err := b.Run(); err != nil || !slices.Equal(out.Bytes(), in.Bytes()) {
				t.Errorf("%s: %v became %v, %v", own, in.Bytes(), out.Bytes(), err)
			}
		}
	}
}

func TestTerminatedSessionDoesNotRun(t *testing.T) {
	rt := open(t)
	s, err := rt.NewSessionFromBytes(abs(), ort.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := rt.NewTensor(ort.Float32, []int64{1, 3})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, bound := bind(t, rt, s, in)
	defer out.Close()
	defer bound.Close()
	s.Terminate()
	if err := bound.Run(); !errors.Is(err, ort.ErrTerminated) {
		t.Errorf("%v", err)
	}
}

func TestHostileShapesAreRefused(t *testing.T) {
	rt := open(t)
	for _, shape := range [][]int64{{0}, {-1}, {1 << 31}, {1 << 20, 1 << 20}, {1 << 62, 4}} {
		if _, err := rt.NewTensor(ort.Float32, shape); !errors.Is(err, ort.ErrShape) {
			t.Errorf("%v: %v", shape, err)
		}
	}
}

func TestInvalidLibrariesAreRefused(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "libonnxruntime.so.1.2.3")
	if err := os.WriteFile(text, []byte("not a library"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{text, filepath.Join(dir, "absent.so"), "libm.so.6"} {
		if _, err := ort.Open(path); !errors.Is(err, ort.ErrNoLibrary) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestFindLibrary(t *testing.T) {
	t.Setenv(ort.EnvLibrary, "")
	dir, empty := t.TempDir(), t.TempDir()
	for _, name := range []string{"libonnxruntime.so.1.9.0", "libonnxruntime.so.1.22.2", "libonnxruntime.so.1.10.0", "libonnxruntime_providers_shared.so"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := ort.Find("", empty, dir); err != nil || filepath.Base(got) != "libonnxruntime.so.1.22.2" {
		t.Errorf("the newest is %s, %v", got, err)
	}
	if _, err := ort.Find("", empty); !errors.Is(err, ort.ErrNoLibrary) || !strings.Contains(err.Error(), empty) || !strings.Contains(err.Error(), "--library") {
		t.Errorf("nothing there: %v", err)
	}
	named := filepath.Join(dir, "libonnxruntime.so.1.9.0")
	if got, err := ort.Find(named, empty); err != nil || got != named {
		t.Errorf("given: %s, %v", got, err)
	}
	if _, err := ort.Find(filepath.Join(empty, "x.so"), dir); !errors.Is(err, ort.ErrNoLibrary) {
		t.Errorf("given and absent: %v", err)
	}
	t.Setenv(ort.EnvLibrary, named)
	if got, err := ort.Find("", empty); err != nil || got != named {
		t.Errorf("from the environment: %s, %v", got, err)
	}
}

func BenchmarkRunOverhead(b *testing.B) {
	rt := open(b)
	s, err := rt.NewSessionFromBytes(abs(), ort.Options{Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	in, err := rt.NewTensor(ort.Float32, []int64{1, 3})
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	out, bound := bind(b, rt, s, in)
	defer out.Close()
	defer bound.Close()
	b.ReportAllocs()
	for b.Loop() {
		if err := bound.Run(); err != nil {
			b.Fatal(err)
		}
	}
}
