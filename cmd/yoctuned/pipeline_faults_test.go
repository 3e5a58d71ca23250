package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/jpeg"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// yoctuned returns a command that runs the program as users start it: a process of its own.
func yoctuned(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// testscript.Main runs the program under this name; a link by name would not be the program that it starts itself.
	program := filepath.Join(t.TempDir(), "yoctuned")
	if err := os.Link(self, program); err != nil {
		b, err := os.ReadFile(self)
		if err == nil {
			err = os.WriteFile(program, b, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, args...)
	cmd.Env = os.Environ()
	return cmd
}

// runProgram runs a pipeline to its end and returns the lines of its output.
func runProgram(t *testing.T, p plan.Pipeline, args ...string) (code int, out []pipelineLine, stderr string) {
	t.Helper()
	path := pipelinePlan(t, map[string]plan.Pipeline{"p": p})
	cmd := yoctuned(t, append([]string{"pipeline", "run", path, "--format", "json"}, args...)...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for l := range strings.Lines(o.String()) {
		var v pipelineLine
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatalf("%v in %q", err, l)
		}
		out = append(out, v)
	}
	return cmd.ProcessState.ExitCode(), out, e.String()
}

// numbers lists the frames with results, and returns the summary.
func numbers(t *testing.T, out []pipelineLine) (frames []uint64, sum pipelineLine) {
	t.Helper()
	for _, l := range out {
		switch l.Type {
		case "result":
			frames = append(frames, l.Frame)
		case "summary":
			sum = l
		}
	}
	return frames, sum
}

// One damaged image costs one frame: damage of the header does not stay in the decoder, and a
// header that is cut does not hide the next image. Also where the damaged image is the first one.
func TestADamagedImageCostsOneFrame(t *testing.T) {
	stream, err := os.ReadFile("../../runtime/engine/jpeg/testdata/labels444.mjpeg")
	if err != nil {
		t.Fatal(err)
	}
	m, err := jpeg.NewMotion(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	good, err := m.Next()
	if err != nil {
		t.Fatal(err)
	}
	good = bytes.Clone(good)
	tables := bytes.Index(good, []byte{0xff, 0xdb})
	damaged := bytes.Clone(good)
	damaged[tables+4] = 0x7f // a table with a number that does not exist
	for name, bad := range map[string][]byte{"damaged": damaged, "cut in a table": good[:tables+20], "cut in a length": good[:tables+3]} {
		for at, want := range map[int][]uint64{0: {1, 2, 3}, 1: {0, 2, 3}} {
			images := slices.Insert([][]byte{good, good, good}, at, bad)
			clip := filepath.Join(t.TempDir(), "clip.mjpeg")
			if err := os.WriteFile(clip, bytes.Join(images, nil), 0o644); err != nil {
				t.Fatal(err)
			}
			p := dumpPipeline()
			p.Source = plan.PipelineSource{Kind: "file", Path: clip, Format: "mjpeg"}
			code, out, stderr := runProgram(t, p)
			got, sum := numbers(t, out)
			if code != 1 || !slices.Equal(got, want) || sum.Frames.Failed != 1 {
				t.Errorf("%s image %d: exit %d, results of frames %v, want %v, %+v, %s", name, at, code, got, want, sum.Frames, stderr)
			}
		}
	}
}

// A stage's program that sends signals to its parent, and labels and results that JSON cannot hold, are answers
// with a reason, and not the end of the pipeline.
func TestAStageCannotEndThePipeline(t *testing.T) {
	p := dumpPipeline()
	p.Stages = []plan.PipelineStage{{ID: "own", Kind: "custom", Input: "source", Custom: &plan.Custom{Exec: []string{"/bin/sh", "-c", "kill -9 $PPID; exit 3"}}}}
	code, _, stderr := runProgram(t, p, "--frames", "1")
	if code != 1 || !strings.Contains(stderr, "sh: the program exited: exit status 3") || !strings.Contains(stderr, "ermission") && !strings.Contains(stderr, "permitted") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

func TestLabelsAreUTF8(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "labels.txt"), []byte("one\nzw\xf6lf\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	model := fixedModel(onnxOutput{"y", []int64{1, 2}, []float32{0, 1}})
	if err := os.WriteFile(filepath.Join(dir, "m.onnx"), model, 0o644); err != nil {
		t.Fatal(err)
	}
	p := modelPipeline(plan.Post{Kind: "argmax", Labels: "labels.txt"})
	code, _, stderr := runProgram(t, p, "--frames", "1", "--models", dir, "--library", models.Library(t))
	if code != 1 || !strings.Contains(stderr, "line 2 of labels") || !strings.Contains(stderr, "not UTF-8") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// onnxOutput is an output whose values do not depend on the input.
type onnxOutput struct {
	name   string
	shape  []int64
	values []float32
}

// fixedModel returns a model with one input [1 3 4 4] and constant outputs.
func fixedModel(outputs ...onnxOutput) []byte {
	g := onnx.Graph{
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 1, 3, 4, 4)},
		Weights: []onnx.Weight{{Name: "zero", Dims: []int64{1}, Data: []float32{0}}},
		Nodes: []onnx.Node{
			{Op: "ReduceMean", In: []string{"x"}, Out: []string{"mean"}, Attributes: map[string]any{"keepdims": int64(0)}},
			{Op: "Mul", In: []string{"mean", "zero"}, Out: []string{"nothing"}},
		},
	}
	for _, o := range outputs {
		g.Weights = append(g.Weights, onnx.Weight{Name: "w" + o.name, Dims: o.shape, Data: o.values})
		g.Nodes = append(g.Nodes, onnx.Node{Op: "Add", In: []string{"w" + o.name, "nothing"}, Out: []string{o.name}})
		g.Outputs = append(g.Outputs, onnx.Tensor(o.name, onnx.Float32, o.shape...))
	}
	return g.Encode()
}

// modelPipeline decodes the output of m.onnx on frames of 8x4 pixels, which fill the middle of a letterbox of 4x4.
func modelPipeline(post plan.Post) plan.Pipeline {
	p := dumpPipeline()
	p.Stages = []plan.PipelineStage{
		{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 4, Height: 4, Fit: "letterbox"}},
		{ID: "m", Kind: "model", Input: "pre", Model: &plan.Model{Path: "m.onnx", Threads: 1}},
		{ID: "post", Kind: "postprocess", Input: "m", Post: &post},
	}
	return p
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// boxesOutput is a model of boxes for modelPipeline: three of them are in the border of the
// letterbox, and one has an infinite score. Each has more values, which differ.
func boxesOutput(more int) onnxOutput {
	inf := float32(math.Inf(1))
	rows := [][]float32{ // centre, size, score: the picture is rows 1 to 3 of the tensor
		{2, 0.3, 1, 0.4, 0.99}, {3, 3.8, 0.5, 0.2, 0.98}, {1, 0.2, 1, 0.2, 0.97},
		{2, 1, 4, 2, 0.9},     // half of it is border
		{2, 1.6, 4, 0.8, 0.8}, // once cut it would be most of what is left of the box before
		{2, 2, 1, 1, inf},
	}
	for len(rows) < max(12, 6+more) {
		rows = append(rows, make([]float32, 5))
	}
	values := make([]float32, (5+more)*len(rows))
	for a, r := range rows {
		for c, v := range r {
			values[c*len(rows)+a] = v
		}
		for c := range more {
			values[(5+c)*len(rows)+a] = float32(a) + float32(c)/16
		}
	}
	return onnxOutput{"y", []int64{1, int64(5 + more), int64(len(rows))}, values}
}

// The border of a letterbox is not the picture: boxes there are not results, and do not take the place of those that are.
// Boxes that overlap in the model's tensor suppress each other before they are cut at the edge.
func TestTheBestBoxesAreInThePicture(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"m.onnx": string(fixedModel(boxesOutput(0)))})
	p := modelPipeline(plan.Post{Kind: "detect", Top: 2})
	code, out, stderr := runProgram(t, p, "--frames", "1", "--models", dir, "--library", models.Library(t))
	if code != 0 || len(out) == 0 {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	var got []float64
	for _, r := range out[0].Results {
		got = append(got, math.Round(100*r.Score)/100)
	}
	if !slices.Equal(got, []float64{0.9, 0.8}) {
		t.Errorf("scores %v", got)
	}
}

// The ids of tracks in a recording do not depend on when its frames are read, also where its rate is not known.
func TestTracksOfARecordingDoNotDependOnItsReader(t *testing.T) {
	dir := t.TempDir()
	box := []float32{2, 2, 2, 2, 0.9}
	values := make([]float32, 5*6)
	for c, v := range box {
		values[6*c] = v
	}
	if err := os.WriteFile(filepath.Join(dir, "m.onnx"), fixedModel(onnxOutput{"y", []int64{1, 5, 6}, values}), 0o644); err != nil {
		t.Fatal(err)
	}
	p := modelPipeline(plan.Post{Kind: "detect"})
	p.Source = plan.PipelineSource{Kind: "command", Format: "nv12", Width: 8, Height: 4, Exec: []string{"sh", "-c", "head -c 48 /dev/zero; sleep 0.4; head -c 96 /dev/zero"}}
	p.Stages = append(p.Stages, plan.PipelineStage{ID: "follow", Kind: "track", Input: "post", Track: &plan.Track{Hits: 1, MaxLost: int64(200 * time.Millisecond)}})
	code, out, stderr := runProgram(t, p, "--models", dir, "--library", models.Library(t))
	frames, _ := numbers(t, out)
	if code != 0 || len(frames) != 3 {
		t.Fatalf("exit %d, %v, %s", code, frames, stderr)
	}
	for _, l := range out[:3] {
		if len(l.Results) != 1 || l.Results[0].ID != 1 {
			t.Errorf("frame %d: %+v", l.Frame, l.Results)
		}
	}
}

// A file of frames may have any size, as one with a header may.
func TestFramesOfOddSizesAreRead(t *testing.T) {
	for format, bytes := range map[string]int{"nv12": 5*3 + 2*3*2, "i420": 5*3 + 2*3*2, "grey": 15, "rgb": 45, "yuyv": 12 * 3} {
		clip := filepath.Join(t.TempDir(), "clip")
		if err := os.WriteFile(clip, make([]byte, 2*bytes), 0o644); err != nil {
			t.Fatal(err)
		}
		p := dumpPipeline()
		p.Source = plan.PipelineSource{Kind: "file", Path: clip, Format: format, Width: 5, Height: 3}
		code, out, stderr := runProgram(t, p)
		if frames, _ := numbers(t, out); code != 0 || len(frames) != 2 {
			t.Errorf("%s: exit %d, %v, %s", format, code, frames, stderr)
		}
	}
}

// A program that ends well and has not read its results has lost them.
func TestASinkThatReadsNothingIsAnError(t *testing.T) {
	for script, want := range map[string]string{"sleep 0.05; exit 0": "unread", "read line; sleep 0.05; exit 0": "unread", "cat >/dev/null": ""} {
		p := dumpPipeline()
		p.Sink = plan.PipelineSink{Kind: "command", Exec: []string{"sh", "-c", script}}
		// The last result comes after the program has ended.
		p.Source = plan.PipelineSource{Kind: "command", Format: "nv12", Width: 8, Height: 4, Exec: []string{"sh", "-c", "head -c 96 /dev/zero; sleep 0.1; head -c 48 /dev/zero"}}
		code, _, stderr := runProgram(t, p)
		if (code != 0) != (want != "") || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %s", script, code, stderr)
		}
	}
}

// slowModel returns a model that takes minutes, in many short steps.
func slowModel() []byte {
	const side = 1024
	g := onnx.Graph{
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 1, 3, 4, 4)},
		Weights: []onnx.Weight{{Name: "w", Dims: []int64{side, side}, Data: make([]float32, side*side)}},
		Nodes: []onnx.Node{
			{Op: "ReduceMean", In: []string{"x"}, Out: []string{"mean"}, Attributes: map[string]any{"keepdims": int64(0)}},
			{Op: "Add", In: []string{"w", "mean"}, Out: []string{"y0"}},
		},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, side, side)},
	}
	const steps = 400
	for n := range steps {
		out := fmt.Sprint("y", n+1)
		if n == steps-1 {
			out = "y"
		}
		g.Nodes = append(g.Nodes, onnx.Node{Op: "MatMul", In: []string{fmt.Sprint("y", n), "w"}, Out: []string{out}})
	}
	return g.Encode()
}

// A model that does not end its first run is stopped by SIGTERM.
func TestTheFirstRunOfAModelCanBeStopped(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.onnx"), slowModel(), 0o644); err != nil {
		t.Fatal(err)
	}
	p := modelPipeline(plan.Post{Kind: "raw"})
	path := pipelinePlan(t, map[string]plan.Pipeline{"p": p})
	cmd := yoctuned(t, "pipeline", "run", path, "--models", dir, "--library", models.Library(t))
	var e bytes.Buffer
	cmd.Stderr = &e
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // it loads, or runs: a stop takes effect in both
	began := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || time.Since(began) > 10*time.Second || !strings.Contains(e.String(), "stopped before it began") {
		t.Errorf("%v after %v: %s", err, time.Since(began), e.String())
	}
}
