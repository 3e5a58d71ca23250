package ort_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/tests/models"
)

// runWithBoth runs f with the oldest and the newest supported ONNX Runtime.
func runWithBoth(t *testing.T, f func(t *testing.T, rt *ort.Runtime)) {
	for _, path := range []string{models.OldLibrary(t), models.Library(t)} {
		rt, err := ort.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(rt.Version(), func(t *testing.T) { f(t, rt) })
		rt.Close()
	}
}

// halves cuts x, [n 4], into a and b.
func halves() []byte {
	g := onnx.Graph{
		Weights: []onnx.Weight{{Name: "at", Dims: []int64{2}, Data: []int64{1, 3}}},
		Nodes:   []onnx.Node{{Op: "Split", In: []string{"x", "at"}, Out: []string{"a", "b"}, Attributes: map[string]any{"axis": int64(1)}}},
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 0, 4)},
		Outputs: []onnx.Value{onnx.Tensor("a", onnx.Float32, 0, 1), onnx.Tensor("b", onnx.Float32, 0, 3)},
	}
	return g.Encode()
}

func TestBindingUsesFixedMemory(t *testing.T) {
	runWithBoth(t, func(t *testing.T, rt *ort.Runtime) {
		tensor := func(shape ...int64) *ort.Tensor {
			x, err := rt.NewTensor(ort.Float32, shape)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(x.Close)
			return x
		}
		s, err := rt.NewSessionFromBytes(halves(), ort.Options{Threads: 1, Output: "b", More: []string{""}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		in := tensor(2, 4)
		made, err := s.Probe(in)
		if err != nil || !slices.Equal(made[0].Shape, []int64{2, 3}) || !slices.Equal(made[1].Shape, []int64{2, 1}) {
			t.Fatalf("%v, %v", made, err)
		}
		b, a := tensor(2, 3), tensor(2, 1)
		if _, err := s.Bind([]*ort.Tensor{in}, b); !errors.Is(err, ort.ErrShape) {
			t.Errorf("one tensor for two outputs: %v", err)
		}
		bound, err := s.Bind([]*ort.Tensor{in}, b, a)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(bound.Close)
		for round := float32(0); round < 3; round++ {
			for i := range in.Data() {
				in.Data()[i] = float32(i) + 100*round
			}
			if err := bound.Run(); err != nil {
				t.Fatal(err)
			}
			if a.Data()[1] != 4+100*round || b.Data()[5] != 7+100*round {
				t.Errorf("round %v: %v and %v", round, a.Data(), b.Data())
			}
		}
		if n := testing.AllocsPerRun(100, func() { _ = bound.Run() }); n != 0 {
			t.Errorf("a run allocates %v times", n)
		}
		s.Terminate()
		if err := bound.Run(); !errors.Is(err, ort.ErrTerminated) {
			t.Errorf("%v", err)
		}
		s.Resume()
		if err := bound.Run(); err != nil {
			t.Errorf("%v", err)
		}
	})
}

// The test libraries list providers that they do not have, so a provider must be tried.
func TestMissingProviderIsSkippedWithItsReason(t *testing.T) {
	runWithBoth(t, func(t *testing.T, rt *ort.Runtime) {
		engine := func() (string, error) { return "", errors.New("no engine for this board") }
		s, err := rt.NewSessionFromBytes(abs(), ort.Options{Threads: 1, Providers: []string{ort.TensorRT, ort.CUDA, ort.CPU}, Engine: engine})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		missing := s.Missing()
		if s.Provider() != ort.CPU || len(missing) != 2 || missing[0].Why != "no engine for this board" || missing[1].Provider != ort.CUDA || !strings.Contains(missing[1].Why, "onnx runtime: ") {
			t.Errorf("on %s without %+v", s.Provider(), missing)
		}
		_, err = rt.NewSessionFromBytes(abs(), ort.Options{Threads: 1, Providers: []string{ort.CUDA}})
		if !errors.Is(err, ort.ErrProvider) || !strings.Contains(err.Error(), "cuda: ") {
			t.Errorf("%v", err)
		}
		if _, err = rt.NewSessionFromBytes(abs(), ort.Options{Providers: []string{"abacus"}}); !errors.Is(err, ort.ErrProvider) || !strings.Contains(err.Error(), `unknown execution provider "abacus"`) {
			t.Errorf("%v", err)
		}
	})
}

func TestSessionOptionsDoNotChangeResults(t *testing.T) {
	runWithBoth(t, func(t *testing.T, rt *ort.Runtime) {
		var want []float32
		for _, o := range []ort.Options{{Threads: 1}, {Threads: 1, NoArena: true, Spinning: true}} {
			s, err := rt.NewSession(models.Dir(t)+"/"+models.Orientation, o)
			if err != nil {
				t.Fatal(err)
			}
			in, err := rt.NewTensor(ort.Float32, []int64{1, 3, 224, 224})
			if err != nil {
				t.Fatal(err)
			}
			for i := range in.Data() {
				in.Data()[i] = float32(i%255)/128 - 1
			}
			out, bound := bind(t, rt, s, in)
			if err := bound.Run(); err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = slices.Clone(out.Data())
			} else if !slices.Equal(want, out.Data()) {
				t.Errorf("%v, then %v", want, out.Data())
			}
			bound.Close()
			out.Close()
			in.Close()
			s.Close()
		}
	})
}
