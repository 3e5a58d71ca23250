package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// typedRun is a run of the built program.
type typedRun struct {
	exit   int
	frames []typedFrame
	sum    pipelineLine
	stderr string
}

type typedFrame struct {
	results string // JSON
	shape   []int64
	values  []float64 // of a result of decode raw
}

// runTyped runs a pipeline whose models are in dir.
func runTyped(t *testing.T, dir string, p plan.Pipeline, args ...string) (r typedRun) {
	t.Helper()
	path := pipelinePlan(t, map[string]plan.Pipeline{"p": p})
	cmd := yoctuned(t, append([]string{"pipeline", "run", path, "--format", "json", "--models", dir, "--library", models.Library(t), "--gpu-backend", "strict"}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output() // the exit code is in the state
	for l := range strings.Lines(string(out)) {
		var line struct {
			Type    string
			Results json.RawMessage
		}
		if err := json.Unmarshal([]byte(l), &line); err != nil {
			t.Fatalf("%v in %q", err, l)
		}
		switch line.Type {
		case "summary":
			if err := json.Unmarshal([]byte(l), &r.sum); err != nil {
				t.Fatal(err)
			}
		case "result":
			f := typedFrame{results: string(line.Results)}
			var raw []struct {
				Shape  []int64
				Values []float64
			}
			if json.Unmarshal(line.Results, &raw) == nil && len(raw) > 0 {
				f.shape, f.values = raw[0].Shape, raw[0].Values
			}
			r.frames = append(r.frames, f)
		}
	}
	r.exit, r.stderr = cmd.ProcessState.ExitCode(), stderr.String()
	return r
}

// mustRun is runTyped for a run that ends well.
func mustRun(t *testing.T, dir string, p plan.Pipeline, args ...string) typedRun {
	t.Helper()
	r := runTyped(t, dir, p, args...)
	if r.exit != 0 || len(r.frames) == 0 {
		t.Fatalf("exit %d, %d frames, %s", r.exit, len(r.frames), r.stderr)
	}
	return r
}

func writeModel(t *testing.T, dir, name string, g onnx.Graph) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), g.Encode(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func cast(in, out string, to onnx.Type) onnx.Node {
	return onnx.Node{Op: "Cast", In: []string{in}, Out: []string{out}, Attributes: map[string]any{"to": int64(to)}}
}

// castModel gives its input in another type.
func castModel(from, to onnx.Type, shape ...int64) onnx.Graph {
	return onnx.Graph{
		Nodes:  []onnx.Node{cast("x", "y", to)},
		Inputs: []onnx.Value{onnx.Tensor("x", from, shape...)}, Outputs: []onnx.Value{onnx.Tensor("y", to, shape...)},
	}
}

// typedPipeline gives what a preprocess stage makes of a frame through m.onnx as it is.
func typedPipeline(pre plan.Preprocess) plan.Pipeline {
	p := modelPipeline(plan.Post{Kind: "raw"})
	pre.Width, pre.Height = 4, 2
	p.Stages[0].Preprocess = &pre
	return p
}

// half is the value of a float32 rounded to float16, of the range of the tests.
func half(v float64) float64 {
	if v == 0 {
		return 0
	}
	_, e := math.Frexp(v)
	step := math.Ldexp(1, e-11)
	return math.RoundToEven(v/step) * step
}

// A tensor of each type and layout holds what its definition says, on the CPU and where the GPU
// makes it and runs the model.
func TestPreprocessWritesEachTypeAndLayout(t *testing.T) {
	dir := t.TempDir()
	mean, std := []string{"0.25", "0.5", "0.125"}, []string{"0.5", "0.25", "2"}
	writeModel(t, dir, "m.onnx", castModel(onnx.Float32, onnx.Float32, 1, 3, 2, 4))
	want := mustRun(t, dir, typedPipeline(plan.Preprocess{Mean: mean, Std: std}), "--frames", "3")
	plain := mustRun(t, dir, typedPipeline(plan.Preprocess{}), "--frames", "3")
	quantised := func(scale float64, zero, low, high int) func(x, _ float64) float64 {
		return func(x, _ float64) float64 {
			q := min(max(math.RoundToEven(x/scale)+float64(zero), float64(low)), float64(high))
			return q
		}
	}
	for _, c := range []struct {
		pre  plan.Preprocess
		from onnx.Type
		want func(x, plain float64) float64 // of a value of the float32 tensor, and of the one without mean and std
	}{
		{plan.Preprocess{Mean: mean, Std: std}, onnx.Float32, func(x, _ float64) float64 { return x }},
		{plan.Preprocess{Mean: mean, Std: std, DType: "f16"}, onnx.Float16, func(x, _ float64) float64 { return half(x) }},
		{plan.Preprocess{DType: "u8"}, onnx.Uint8, func(_, plain float64) float64 { return math.Round(255 * plain) }},
		{plan.Preprocess{Mean: mean, Std: std, DType: "i8", Scale: "0.015625", Zero: -3}, onnx.Int8, quantised(0.015625, -3, -128, 127)},
		{plan.Preprocess{Mean: mean, Std: std, DType: "u8", Scale: "0.03125", Zero: 100}, onnx.Uint8, quantised(0.03125, 100, 0, 255)},
	} {
		for _, layout := range []string{"nchw", "nhwc"} {
			for _, device := range []string{"", "gpu"} {
				shape := []int64{1, 3, 2, 4}
				if layout == "nhwc" {
					shape = []int64{1, 2, 4, 3}
				}
				writeModel(t, dir, "m.onnx", castModel(c.from, onnx.Float32, shape...))
				c.pre.Layout = layout
				p := typedPipeline(c.pre)
				p.Stages[0].Device, p.Stages[1].Device = device, device
				got := mustRun(t, dir, p, "--frames", "3")
				for n, f := range got.frames {
					if !slices.Equal(f.shape, shape) {
						t.Fatalf("%s %s: shape %v", c.from, layout, f.shape)
					}
					for i, v := range f.values {
						at := i
						if layout == "nhwc" {
							at = i%3*8 + i/3
						}
						exact := c.want(want.frames[n].values[at], plain.frames[n].values[at])
						near := 1e-5 // results have six digits
						if c.from == onnx.Int8 || c.from == onnx.Uint8 && c.pre.Scale != "" {
							near = 1 // a value between two steps, whose float32 the program has not rounded
						}
						if math.Abs(v-exact) > near {
							t.Fatalf("%s %s on %q: frame %d has %v at %d, want %v", c.from, layout, device, n, v, i, exact)
						}
					}
				}
				if device != "" && got.sum.Runtime.Worker.Starts != 1 {
					t.Errorf("worker %+v", got.sum.Runtime.Worker)
				}
				for stage, n := range got.sum.Fallbacks {
					if n > 0 {
						t.Errorf("%s %s: the CPU did %d frames of %s", c.from, layout, n, stage)
					}
				}
			}
		}
	}
}

// The outputs of a model are read in every type, in batches and from the GPU.
func TestOutputsOfEachTypeAreRead(t *testing.T) {
	dir := t.TempDir()
	writeModel(t, dir, "m.onnx", castModel(onnx.Uint8, onnx.Float32, 0, 3, 2, 4))
	want := mustRun(t, dir, typedPipeline(plan.Preprocess{DType: "u8"}), "--frames", "4")
	for _, to := range []onnx.Type{onnx.Float16, onnx.BFloat16, onnx.Int8, onnx.Uint8, onnx.Int32, onnx.Int64, onnx.Bool} {
		writeModel(t, dir, "m.onnx", castModel(onnx.Uint8, to, 0, 3, 2, 4))
		for _, device := range []string{"", "gpu"} {
			for _, buckets := range [][]int{nil, {1, 2}} {
				p := typedPipeline(plan.Preprocess{DType: "u8"})
				p.Stages[0].Device, p.Stages[1].Device = device, device
				if buckets != nil {
					p.Stages[1].Model.Batch = &plan.ModelBatch{Buckets: buckets, Delay: int64(time.Second)}
				}
				got := mustRun(t, dir, p, "--frames", "4")
				for n, f := range got.frames {
					for i, v := range f.values {
						exact := want.frames[n].values[i]
						switch {
						case to == onnx.Bool && exact != 0:
							exact = 1
						case to == onnx.Int8:
							exact = float64(int8(uint8(exact)))
						case to == onnx.BFloat16 && math.Abs(v-exact) <= 1:
							continue // eight bits of precision
						}
						if v != exact {
							t.Fatalf("%s on %q in batches of %v: frame %d has %v at %d, want %v", to, device, buckets, n, v, i, exact)
						}
					}
				}
			}
		}
	}
	// The scale of a quantised output.
	writeModel(t, dir, "m.onnx", castModel(onnx.Uint8, onnx.Uint8, 1, 3, 2, 4))
	p := typedPipeline(plan.Preprocess{DType: "u8"})
	p.Stages[2].Post.Scale, p.Stages[2].Post.Zero = "0.5", 10
	got := mustRun(t, dir, p, "--frames", "1")
	for i, v := range got.frames[0].values {
		if exact := (want.frames[0].values[i] - 10) / 2; v != exact {
			t.Errorf("scaled %v at %d, want %v", v, i, exact)
		}
	}
}

// Inputs of a model come from values, from a part of the source's record, from an earlier stage and
// from the frame before.
func TestAModelHasSeveralInputs(t *testing.T) {
	dir := t.TempDir()
	for _, device := range []string{"", "gpu"} {
		// y = x * factor + offset
		writeModel(t, dir, "m.onnx", onnx.Graph{
			Nodes: []onnx.Node{
				cast("factor", "f", onnx.Float32), {Op: "Mul", In: []string{"x", "f"}, Out: []string{"scaled"}}, {Op: "Add", In: []string{"scaled", "offset"}, Out: []string{"y"}},
			},
			Inputs:  []onnx.Value{onnx.Tensor("factor", onnx.Int64, 1), onnx.Tensor("x", onnx.Float32, 1, 3, 2, 4), onnx.Tensor("offset", onnx.Float32, 4)},
			Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 1, 3, 2, 4)},
		})
		p := typedPipeline(plan.Preprocess{})
		p.Stages[0].Device, p.Stages[1].Device = device, device
		p.Stages[1].Model.Inputs = []plan.ModelInput{
			{Name: "factor", DType: "i64", Values: []string{"-3"}}, {Name: "offset", Values: []string{"0", "1", "2", "-4.5"}},
		}
		got := mustRun(t, dir, p, "--frames", "3")
		writeModel(t, dir, "m.onnx", castModel(onnx.Float32, onnx.Float32, 1, 3, 2, 4))
		want := mustRun(t, dir, typedPipeline(plan.Preprocess{}), "--frames", "3")
		for n, f := range got.frames {
			for i, v := range f.values {
				if exact := want.frames[n].values[i]*-3 + []float64{0, 1, 2, -4.5}[i%4]; math.Abs(v-exact) > 1e-5 {
					t.Fatalf("on %q: frame %d has %v at %d, want %v", device, n, v, i, exact)
				}
			}
		}
		if device == "" {
			continue
		}
		few := mustRun(t, dir, withInputs(p, dir, t), "--frames", "2")
		more := mustRun(t, dir, withInputs(p, dir, t), "--frames", "4")
		a, b := few.sum.Runtime.Worker.Copied, more.sum.Runtime.Worker.Copied
		const pixels, output = 8 * 4 * 3 / 2, 4 * 24
		if up, down := b.ToDevice-a.ToDevice, b.ToHost-a.ToHost; up != 2*pixels || down != 2*output {
			t.Errorf("two frames copy %d bytes to the device and %d back, want %d and %d", up, down, 2*pixels, 2*output)
		}
	}
}

// withInputs writes the model of TestAModelHasSeveralInputs again.
func withInputs(p plan.Pipeline, dir string, t *testing.T) plan.Pipeline {
	writeModel(t, dir, "m.onnx", onnx.Graph{
		Nodes: []onnx.Node{
			cast("factor", "f", onnx.Float32), {Op: "Mul", In: []string{"x", "f"}, Out: []string{"scaled"}}, {Op: "Add", In: []string{"scaled", "offset"}, Out: []string{"y"}},
		},
		Inputs:  []onnx.Value{onnx.Tensor("factor", onnx.Int64, 1), onnx.Tensor("x", onnx.Float32, 1, 3, 2, 4), onnx.Tensor("offset", onnx.Float32, 4)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 1, 3, 2, 4)},
	})
	return p
}

// A matcher compares a frame with the one before, and the first with itself; a later model reads
// the tensor of an earlier stage beside that of its input.
func TestAModelReadsEarlierTensors(t *testing.T) {
	dir := t.TempDir()
	difference := func(a, b string) onnx.Graph {
		return onnx.Graph{
			Nodes:   []onnx.Node{{Op: "Sub", In: []string{a, b}, Out: []string{"y"}}},
			Inputs:  []onnx.Value{onnx.Tensor(a, onnx.Float32, 1, 3, 2, 4), onnx.Tensor(b, onnx.Float32, 1, 3, 2, 4)},
			Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 1, 3, 2, 4)},
		}
	}
	writeModel(t, dir, "m.onnx", castModel(onnx.Float32, onnx.Float32, 1, 3, 2, 4))
	plain := mustRun(t, dir, typedPipeline(plan.Preprocess{}), "--frames", "5")
	writeModel(t, dir, "m.onnx", difference("now", "before"))
	p := typedPipeline(plan.Preprocess{})
	p.Stages[1].Model.Inputs = []plan.ModelInput{{Name: "before", Previous: true}}
	for n, f := range mustRun(t, dir, p, "--frames", "5").frames {
		for i, v := range f.values {
			if exact := plain.frames[n].values[i] - plain.frames[max(n-1, 0)].values[i]; math.Abs(v-exact) > 1e-6 {
				t.Fatalf("frame %d has %v at %d, want %v", n, v, i, exact)
			}
		}
	}
	// twice = 2x; y = twice - x of the preprocess stage
	writeModel(t, dir, "twice.onnx", onnx.Graph{
		Nodes:  []onnx.Node{{Op: "Add", In: []string{"x", "x"}, Out: []string{"y"}}},
		Inputs: []onnx.Value{onnx.Tensor("x", onnx.Float32, 1, 3, 2, 4)}, Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 1, 3, 2, 4)},
	})
	writeModel(t, dir, "m.onnx", difference("b", "a"))
	for _, devices := range [][3]string{{}, {"gpu", "gpu", "gpu"}, {"gpu", "gpu", ""}, {"", "", "gpu"}, {"gpu", "", "gpu"}} {
		p := typedPipeline(plan.Preprocess{})
		twice := plan.PipelineStage{ID: "twice", Kind: "model", Input: "pre", Model: &plan.Model{Path: "twice.onnx", Threads: 1}}
		p.Stages = slices.Insert(p.Stages, 1, twice)
		p.Stages[2].Input = "twice"
		p.Stages[2].Model.Inputs = []plan.ModelInput{{Name: "a", From: "pre"}}
		for i, d := range devices {
			p.Stages[i].Device = d
		}
		for n, f := range mustRun(t, dir, p, "--frames", "3").frames {
			for i, v := range f.values {
				if exact := plain.frames[n].values[i]; math.Abs(v-exact) > 1e-6 {
					t.Fatalf("on %v: frame %d has %v at %d, want %v", devices, n, v, i, exact)
				}
			}
		}
	}
}

// fixedOutputs is a model with constant outputs of several types.
func fixedOutputs(types map[string]onnx.Type, outputs ...onnxOutput) onnx.Graph {
	g := onnx.Graph{
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 1, 3, 4, 4)},
		Weights: []onnx.Weight{{Name: "zero", Dims: []int64{1}, Data: []float32{0}}},
		Nodes: []onnx.Node{
			{Op: "ReduceMean", In: []string{"x"}, Out: []string{"mean"}, Attributes: map[string]any{"keepdims": int64(0)}},
			{Op: "Mul", In: []string{"mean", "zero"}, Out: []string{"nothing"}},
		},
	}
	for _, o := range outputs {
		to := types[o.name]
		if to == 0 {
			to = onnx.Float32
		}
		g.Weights = append(g.Weights, onnx.Weight{Name: "w" + o.name, Dims: o.shape, Data: o.values})
		g.Nodes = append(g.Nodes, onnx.Node{Op: "Add", In: []string{"w" + o.name, "nothing"}, Out: []string{"f" + o.name}}, cast("f"+o.name, o.name, to))
		g.Outputs = append(g.Outputs, onnx.Tensor(o.name, to, o.shape...))
	}
	return g
}

// The boxes of detectors with several outputs are in pixels of the frame, best first: those of
// EfficientNMS up to their count, those of an SSD after suppression, those of a DETR after softmax.
// NaN, infinite and negative values are no boxes.
func TestDetectorsWithSeveralOutputs(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	type box struct {
		Class int
		Label string
		Score float64
		Box   [4]float64
	}
	// A frame of 8x4 fills the rows 1 to 3 of a tensor of 4x4: twice the size.
	whole := [4]float64{0, 0, 8, 4}
	for _, c := range []struct {
		name    string
		post    plan.Post
		types   map[string]onnx.Type
		outputs []onnxOutput
		want    []box
	}{
		{
			"EfficientNMS", plan.Post{Head: "efficient-nms"},
			map[string]onnx.Type{"num_dets": onnx.Int32, "det_classes": onnx.Int32, "det_boxes": onnx.Float16},
			[]onnxOutput{
				{"num_dets", []int64{1, 1}, []float32{5}},
				{"det_boxes", []int64{1, 6, 4}, []float32{1, 1, 2, 2, 0, 0, 4, 4, nan, 1, 2, 2, 0, 0, 1, 0.5, 1, 2, 3, 3, 0, 0, 4, 4}},
				{"det_scores", []int64{1, 6}, []float32{0.5, 0.75, nan, 0.9, inf, 0.99}},
				{"det_classes", []int64{1, 6}, []float32{1, 0, 0, 1, 1, 1}},
			},
			[]box{{0, "a", 0.75, whole}, {1, "b", 0.5, [4]float64{2, 0, 4, 2}}},
		},
		{
			"EfficientNMS by other names and types", plan.Post{Head: "efficient-nms", Outputs: &plan.DetectorOutputs{Boxes: "p", Scores: "q", Classes: "r", Count: "s"}},
			map[string]onnx.Type{"s": onnx.Int64, "r": onnx.Int64, "q": onnx.BFloat16},
			[]onnxOutput{{"s", []int64{1}, []float32{1}}, {"r", []int64{1, 2}, []float32{1, 1}}, {"q", []int64{1, 2}, []float32{0.5, 0.75}}, {"p", []int64{1, 2, 4}, []float32{1, 1, 2, 2, 0, 0, 4, 4}}},
			[]box{{1, "b", 0.5, [4]float64{2, 0, 4, 2}}},
		},
		{
			"SSD", plan.Post{Head: "ssd"}, nil,
			[]onnxOutput{
				{"scores", []int64{1, 4, 3}, []float32{0.25, 0.625, 0.125, 0.375, 0.5, 0.125, 0.125, 0.125, 0.75, 1, 0, 0}},
				{"boxes", []int64{1, 4, 4}, []float32{0, 0, 1, 1, 0, 0, 1, 0.9, 0.25, 0.25, 0.5, 0.5, 0, 0, 1, 1}},
			},
			[]box{{1, "b", 0.75, [4]float64{2, 0, 4, 2}}, {0, "a", 0.625, whole}},
		},
		{
			"DETR", plan.Post{Head: "detr"}, nil,
			[]onnxOutput{
				{"logits", []int64{1, 3, 3}, []float32{0, 0, 9, float32(math.Log(6)), 0, 0, nan, nan, nan}},
				{"pred_boxes", []int64{1, 3, 4}, []float32{0.5, 0.5, 1, 1, 0.375, 0.375, 0.25, 0.25, 0.5, 0.5, 1, 1}},
			},
			[]box{{0, "a", 0.75, [4]float64{2, 0, 4, 2}}},
		},
		{
			"RT-DETR", plan.Post{Head: "rt-detr"}, nil,
			[]onnxOutput{
				{"pred_logits", []int64{1, 2, 2}, []float32{-9, 0, float32(math.Log(3)), 0}},
				{"pred_boxes", []int64{1, 2, 4}, []float32{0.5, 0.5, 1, 1, 0.375, 0.375, 0.25, 0.25}},
			},
			[]box{{0, "a", 0.75, [4]float64{2, 0, 4, 2}}, {1, "b", 0.5, whole}},
		},
	} {
		dir := t.TempDir()
		writeModel(t, dir, "m.onnx", fixedOutputs(c.types, c.outputs...))
		if err := os.WriteFile(filepath.Join(dir, "labels.txt"), []byte("a\nb\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		c.post.Kind, c.post.Labels = "detect", "labels.txt"
		for _, device := range []string{"", "gpu"} {
			p := modelPipeline(c.post)
			p.Stages[0].Device, p.Stages[1].Device = device, device
			r := mustRun(t, dir, p, "--frames", "2")
			for _, f := range r.frames {
				var got []box
				if err := json.Unmarshal([]byte(f.results), &got); err != nil {
					t.Fatal(err)
				}
				for i := range got {
					got[i].Score = math.Round(got[i].Score*1e4) / 1e4
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("%s on %q: %+v, want %+v", c.name, device, got, c.want)
				}
			}
		}
	}
}

// A detector with float16 outputs runs on the GPU to its boxes, which are those of the CPU.
func TestADetectorOfFloat16RunsOnTheGPUToItsBoxes(t *testing.T) {
	dir := t.TempDir()
	values := make([]float32, 5*12)
	for c, v := range []float32{2, 2, 2, 1, 0.9} {
		values[12*c], values[12*c+1] = v, v/2
	}
	writeModel(t, dir, "m.onnx", fixedOutputs(map[string]onnx.Type{"y": onnx.Float16}, onnxOutput{"y", []int64{1, 5, 12}, values}))
	var want string
	for _, device := range []string{"", "gpu"} {
		memory := map[string]string{"": "host memory", "gpu": "GPU memory"}[device]
		p := modelPipeline(plan.Post{Kind: "detect"})
		for i := range p.Stages {
			p.Stages[i].Device = device
		}
		r := mustRun(t, dir, p, "--frames", "3")
		if want == "" {
			want = r.frames[0].results
		}
		if r.frames[2].results != want || !strings.Contains(want, "0.8999") {
			t.Errorf("on %q %s, on the CPU %s", device, r.frames[2].results, want)
		}
		tensors := []pipeline.TensorInfo{
			{Stage: "pre", DType: "f32", Shape: []int64{1, 3, 4, 4}, Memory: memory}, {Stage: "m", Name: "y", DType: "f16", Shape: []int64{1, 5, 12}, Memory: memory},
		}
		if got := r.sum.Runtime.Tensors; !reflect.DeepEqual(got, tensors) {
			t.Errorf("tensors %+v, want %+v", got, tensors)
		}
		for stage, n := range r.sum.Fallbacks {
			if n > 0 {
				t.Errorf("the CPU did %d frames of %s", n, stage)
			}
		}
	}
}

// A record of numbers from a command feeds a sentence model, which has three int64 inputs: its
// embeddings are those of ONNX Runtime alone.
func TestASentenceModelRunsFromACommand(t *testing.T) {
	for _, length := range []int64{8, 7} {
		t.Run(strconv.FormatInt(length, 10), func(t *testing.T) { runSentences(t, length) })
	}
}

// runSentences runs sentences of so many word pieces. Parts of 7 do not begin at multiples of 64 bytes: they
// are copied on the CPU, and refused on the GPU.
func runSentences(t *testing.T, length int64) {
	t.Helper()
	dir, library := filepath.Dir(models.Sentences(t)), models.Library(t)
	sentences := [][]int64{ // word pieces of "hello world", "good morning everyone" and "a red car", between [CLS] and [SEP]
		{101, 7592, 2088, 102}, {101, 2204, 2851, 3071, 102}, {101, 1037, 2417, 2482, 102},
	}
	var records []byte
	for _, s := range sentences {
		for part := range 3 {
			for i := range length {
				v := int64(0)
				switch {
				case part == 0 && int(i) < len(s):
					v = s[i]
				case part == 1 && int(i) < len(s):
					v = 1
				}
				records = binary.NativeEndian.AppendUint64(records, uint64(v))
			}
		}
	}
	file := filepath.Join(t.TempDir(), "records")
	if err := os.WriteFile(file, records, 0o644); err != nil {
		t.Fatal(err)
	}
	part := func(name string, n int) plan.ModelInput { return plan.ModelInput{Name: name, Part: &n} }
	p := plan.Pipeline{
		Source: plan.PipelineSource{Kind: "command", Format: "tensor", DType: "i64", Shape: []int64{3, 1, length}, Exec: []string{"cat", file}},
		Stages: []plan.PipelineStage{
			{ID: "embed", Kind: "model", Input: "source", Model: &plan.Model{Path: filepath.Base(models.Sentences(t)), Threads: 1, Inputs: []plan.ModelInput{
				part("attention_mask", 1), part("input_ids", 0), part("token_type_ids", 2),
			}}},
			{ID: "out", Kind: "postprocess", Input: "embed", Post: &plan.Post{Kind: "raw"}},
		},
	}
	want := embed(t, library, records, len(sentences), length)
	for _, device := range []string{"", "gpu"} {
		p.Stages[0].Device = device
		if device == "gpu" && length%8 != 0 {
			if faults := registry.Check(&p); len(faults) == 0 || !strings.Contains(faults[0].Reason, "takes a part that begins at byte 56") {
				t.Errorf("on the GPU: %v", faults)
			}
			continue
		}
		r := mustRun(t, dir, p)
		if len(r.frames) != len(sentences) {
			t.Fatalf("on %q %d results", device, len(r.frames))
		}
		for n, f := range r.frames {
			for i, v := range f.values {
				if math.Abs(v-float64(want[n][i])) > 1e-5 {
					t.Fatalf("on %q: sentence %d has %v at %d, ONNX Runtime %v", device, n, v, i, want[n][i])
				}
			}
		}
	}
	p.Stages[0].Device = ""
	p.Source = plan.PipelineSource{Kind: "file", Path: file, Format: "tensor", DType: "i64", Shape: []int64{3, 1, length}}
	if r := mustRun(t, dir, p); len(r.frames) != len(sentences) {
		t.Errorf("from a file %d results", len(r.frames))
	}
}

// embed runs the sentence model without a pipeline.
func embed(t *testing.T, library string, records []byte, n int, length int64) [][]float32 {
	t.Helper()
	rt, err := ort.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	s, err := rt.NewSession(models.Sentences(t), ort.Options{Threads: 1, Inputs: []string{"input_ids", "attention_mask", "token_type_ids"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var ins []*ort.Tensor
	for range 3 {
		in, err := rt.NewTensor(onnx.Int64, []int64{1, length})
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		ins = append(ins, in)
	}
	made, err := s.Probe(ins...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := rt.NewTensor(made[0].DType, made[0].Shape)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	b, err := s.Bind(ins, out)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var all [][]float32
	for range n {
		for _, in := range ins {
			records = records[copy(in.Bytes(), records):]
		}
		if err := b.Run(); err != nil {
			t.Fatal(err)
		}
		all = append(all, slices.Clone(out.Data()))
	}
	return all
}

// What the declaration of a model and the model's file do not have in common is an error before
// the first frame, in words that name both.
func TestTypesThatDifferAreRefused(t *testing.T) {
	dir := t.TempDir()
	writeModel(t, dir, "f16.onnx", castModel(onnx.Float16, onnx.Float32, 1, 3, 2, 4))
	writeModel(t, dir, "i64.onnx", castModel(onnx.Int64, onnx.Float32, 1, 3, 2, 4))
	writeModel(t, dir, "nhwc.onnx", castModel(onnx.Uint8, onnx.Float32, 1, 2, 4, 3))
	writeModel(t, dir, "f32.onnx", castModel(onnx.Float32, onnx.Float32, 1, 3, 2, 4))
	writeModel(t, dir, "double.onnx", castModel(onnx.Float32, 11, 1, 3, 2, 4))
	writeModel(t, dir, "detections.onnx", fixedOutputs(nil, onnxOutput{"boxes", []int64{1, 2, 4}, make([]float32, 8)}, onnxOutput{"scores", []int64{1, 3}, make([]float32, 3)}))
	five := 5
	for _, c := range []struct {
		name, model string
		change      func(p *plan.Pipeline)
		want        []string
	}{
		{"float32 for float16", "f16.onnx", func(p *plan.Pipeline) {}, []string{"f16.onnx", `"x" float16`, "receives float32"}},
		{"float16 for float32", "f32.onnx", func(p *plan.Pipeline) { p.Stages[0].Preprocess.DType = "f16" }, []string{`"x" float32`, "receives float16"}},
		{"pixels for int64", "i64.onnx", func(p *plan.Pipeline) { p.Stages[0].Preprocess.DType = "u8" }, []string{`"x" int64`, "receives uint8"}},
		{"the other layout", "nhwc.onnx", func(p *plan.Pipeline) { p.Stages[0].Preprocess.DType = "u8" }, []string{"expects [1 2 4 3]", "[1 3 2 4]"}},
		{"outputs of float64", "double.onnx", func(p *plan.Pipeline) {}, []string{"float64", "no stage reads"}},
		{"a name that is not there", "f32.onnx", func(p *plan.Pipeline) {
			p.Stages[1].Model.Inputs = []plan.ModelInput{{Name: "z", Values: []string{"1"}}}
		}, []string{"1 inputs", "2 are given"}},
		{"a value of another type", "f32.onnx", func(p *plan.Pipeline) {
			p.Stages[1].Model.Inputs = []plan.ModelInput{{Name: "z", DType: "u8", Values: []string{"256"}}}
		}, []string{"input z", `"256" is not an integer from 0 to 255`}},
		{"a part that is not there", "f32.onnx", func(p *plan.Pipeline) {
			p.Stages[1].Model.Inputs = []plan.ModelInput{{Name: "x", Part: &five}}
		}, []string{"takes part 5 of a tensor [1 3 2 4]"}},
		{"a stage that is not before", "f32.onnx", func(p *plan.Pipeline) {
			p.Stages[1].Model.Inputs = []plan.ModelInput{{Name: "x", From: "post"}}
		}, []string{"takes a tensor from post, which is not before it"}},
		{"the frame before on the GPU", "f32.onnx", func(p *plan.Pipeline) {
			p.Stages[1].Device, p.Stages[1].Model.Inputs = "gpu", []plan.ModelInput{{Name: "x", Previous: true}}
		}, []string{"keeps the tensor of the previous frame, which the CPU does"}},
		{"batches of several inputs on the GPU", "f32.onnx", func(p *plan.Pipeline) {
			p.Stages[1].Device = "gpu"
			p.Stages[1].Model.Inputs = []plan.ModelInput{{Name: "z", Values: []string{"1"}}}
			p.Stages[1].Model.Batch = &plan.ModelBatch{Buckets: []int{1, 2}}
		}, []string{"with device gpu frames are batched for models with one input"}},
		{"quantised float32", "f32.onnx", func(p *plan.Pipeline) { p.Stages[0].Preprocess.Scale = "0.5" }, []string{"f32 elements are not quantised"}},
		{"int8 without a scale", "f32.onnx", func(p *plan.Pipeline) { p.Stages[0].Preprocess.DType = "i8" }, []string{"i8 elements need a scale"}},
		{"normalised pixels without a scale", "f32.onnx", func(p *plan.Pipeline) {
			p.Stages[0].Preprocess.DType, p.Stages[0].Preprocess.Mean = "u8", []string{"0.5", "0.5", "0.5"}
		}, []string{"u8 elements without a scale are the pixels themselves"}},
		{"votes of float16", "f32.onnx", func(p *plan.Pipeline) {
			p.Stages[1].Model.Path = "votes.onnx"
			p.Stages[1].Model.Ensemble = &plan.Ensemble{Models: []plan.StageModel{{Stage: "other", Path: "votes.onnx"}}}
		}, []string{"ensemble", "votes are counted of f32 elements"}},
		{"scores of other boxes", "detections.onnx", func(p *plan.Pipeline) {
			p.Stages[0].Preprocess.Height, p.Stages[2].Post = 4, &plan.Post{Kind: "detect", Head: "ssd"}
		}, []string{"ssd head reads scores [1 boxes classes]"}},
		{"an unknown count", "detections.onnx", func(p *plan.Pipeline) {
			p.Stages[0].Preprocess.Height, p.Stages[2].Post = 4, &plan.Post{Kind: "detect", Head: "efficient-nms"}
		}, []string{"which output has the classes", "boxes, scores"}},
		{"boxes of tensors", "f32.onnx", func(p *plan.Pipeline) {
			p.Source = plan.PipelineSource{Kind: "file", Path: "x", Format: "tensor", Shape: []int64{1, 3, 2, 4}}
			p.Stages = p.Stages[1:]
			p.Stages[0].Input, p.Stages[1].Post = "source", &plan.Post{Kind: "detect"}
		}, []string{"gives places in a picture, and the source gives tensors"}},
		{"a picture of tensors", "f32.onnx", func(p *plan.Pipeline) {
			p.Source = plan.PipelineSource{Kind: "file", Path: "x", Format: "tensor", Shape: []int64{1, 3, 2, 4}}
		}, []string{"takes frames, and the source gives tensors"}},
		{"tensors without a shape", "f32.onnx", func(p *plan.Pipeline) {
			p.Source = plan.PipelineSource{Kind: "file", Path: "x", Format: "tensor"}
		}, []string{"declare the shape of a record"}},
	} {
		writeModel(t, dir, "votes.onnx", castModel(onnx.Float32, onnx.Float16, 1, 3, 2, 4))
		p := typedPipeline(plan.Preprocess{})
		p.Stages[1].Model.Path = c.model
		c.change(&p)
		r := runTyped(t, dir, p, "--frames", "1")
		if r.exit != 1 || len(r.frames) > 0 {
			t.Errorf("%s: exit %d, %d frames", c.name, r.exit, len(r.frames))
		}
		for _, text := range c.want {
			if !strings.Contains(r.stderr, text) {
				t.Errorf("%s: %q is not in %s", c.name, text, r.stderr)
			}
		}
	}
}

// A record that ends early ends the run with an error; what came before is kept.
func TestATruncatedRecordIsAnError(t *testing.T) {
	dir := t.TempDir()
	writeModel(t, dir, "m.onnx", castModel(onnx.Float32, onnx.Float32, 1, 4))
	p := plan.Pipeline{
		Source: plan.PipelineSource{Kind: "command", Format: "tensor", Shape: []int64{1, 4}, Exec: []string{"head", "-c", fmt.Sprint(16 + 5), "/dev/zero"}},
		Stages: []plan.PipelineStage{
			{ID: "m", Kind: "model", Input: "source", Model: &plan.Model{Path: "m.onnx", Threads: 1}},
			{ID: "out", Kind: "postprocess", Input: "m", Post: &plan.Post{Kind: "raw"}},
		},
	}
	r := runTyped(t, dir, p)
	if r.exit != 1 || len(r.frames) != 1 || !strings.Contains(r.stderr, "5 of 16 bytes") {
		t.Errorf("exit %d, %d frames, %s", r.exit, len(r.frames), r.stderr)
	}
}
