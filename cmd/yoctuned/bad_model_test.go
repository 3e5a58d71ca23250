package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// A model that cannot be run is an answer before the first frame: exit code 1, and
// words that name the stage, the file and what is wrong.
func TestBadModelsAreRefusedBeforeTheFirstFrame(t *testing.T) {
	dir := t.TempDir()
	whole, err := os.ReadFile(filepath.Join(models.Dir(t), models.Orientation))
	if err != nil {
		t.Fatal(err)
	}
	two := onnx.Graph{
		Nodes:   []onnx.Node{{Op: "Add", In: []string{"a", "b"}, Out: []string{"y"}}},
		Inputs:  []onnx.Value{onnx.Tensor("a", onnx.Float32, 1, 3, 224, 224), onnx.Tensor("b", onnx.Float32, 1)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 1, 3, 224, 224)},
	}
	odd := onnx.Graph{
		Nodes:   []onnx.Node{{Op: "Frobnicate", In: []string{"x"}, Out: []string{"y"}}},
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 1, 3, 224, 224)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 1, 4)},
	}
	parts := onnx.Graph{
		Weights: []onnx.Weight{{Name: "w", Dims: []int64{1}, Data: onnx.External("weights.bin")}},
		Nodes:   []onnx.Node{{Op: "Add", In: []string{"x", "w"}, Out: []string{"y"}}},
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 1, 3, 224, 224)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 1, 3, 224, 224)},
	}
	for name, b := range map[string][]byte{
		"parts.onnx": parts.Encode(), "weights.bin": make([]byte, 4),
		"whole.onnx": whole, "half.onnx": whole[:len(whole)/2], "empty.onnx": nil, "pointer.onnx": []byte("version https://git-lfs.github.com/spec/v1\n"),
		"two.onnx": two.Encode(), "odd.onnx": odd.Encode(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.onnx"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		change   func(p *plan.Pipeline)
		wantText []string
	}{
		{"half a model", func(p *plan.Pipeline) { p.Stages[1].Model.Path = "half.onnx" }, []string{"stage way", "half.onnx", "cannot be loaded"}},
		{"an empty file", func(p *plan.Pipeline) { p.Stages[1].Model.Path = "empty.onnx" }, []string{"empty.onnx", "the file is empty"}},
		{"a pointer of a large file store", func(p *plan.Pipeline) { p.Stages[1].Model.Path = "pointer.onnx" }, []string{"pointer.onnx"}},
		{"a folder", func(p *plan.Pipeline) { p.Stages[1].Model.Path = "folder.onnx" }, []string{"folder.onnx", "is a directory"}},
		{"no file", func(p *plan.Pipeline) { p.Stages[1].Model.Path = "absent.onnx" }, []string{"absent.onnx", "--models"}},
		{"another digest", func(p *plan.Pipeline) { p.Stages[1].Model.SHA256 = strings.Repeat("0", 64) }, []string{"damaged or a different model"}},
		{"two inputs", func(p *plan.Pipeline) { p.Stages[1].Model.Path = "two.onnx" }, []string{"2 inputs"}},
		{"an unknown operator", func(p *plan.Pipeline) { p.Stages[1].Model.Path = "odd.onnx" }, []string{"Frobnicate"}},
		{"weights in another file", func(p *plan.Pipeline) { p.Stages[1].Model.Path = "parts.onnx" }, []string{"stage way", "parts.onnx", "weights.bin", "save it as one file"}},
		{"a wrong shape", func(p *plan.Pipeline) { p.Stages[0].Preprocess.Width = 320 }, []string{"stage way", "expects", "[1 3 224 320]"}},
		{"a wrong decode", func(p *plan.Pipeline) { p.Stages[2].Post.Kind = "detect" }, []string{"stage class", "[1 4]"}},
		{"no such output", func(p *plan.Pipeline) { p.Stages[1].Model.Output = "logits" }, []string{`no output named "logits"`}},
		{"a provider that is not there", func(p *plan.Pipeline) { p.Stages[1].Model.Providers = []string{"cuda"} }, []string{"none of the allowed execution providers is available", "cuda: "}},
		{"an unknown provider", func(p *plan.Pipeline) { p.Stages[1].Model.Providers = []string{"abacus"} }, []string{`unknown execution provider "abacus"`}},
		{"a vote of different models", func(p *plan.Pipeline) {
			p.Stages[1].Model.Ensemble = &plan.Ensemble{Models: []plan.StageModel{{Stage: "x", Path: "odd.onnx"}}, Vote: "mean"}
		}, []string{"Frobnicate"}},
		{"an unknown vote", func(p *plan.Pipeline) { p.Stages[1].Model.Ensemble = &plan.Ensemble{Vote: "loudest"} }, []string{"loudest"}},
		{"a utilisation without batches", func(p *plan.Pipeline) { p.Utilisation = "0.9" }, []string{"batch.buckets"}},
		{"two trackers of one stage", func(p *plan.Pipeline) {
			p.Stages = append(p.Stages, plan.PipelineStage{ID: "t", Kind: "track", Input: "class", Instances: 2, Track: &plan.Track{}})
		}, []string{"a track stage sees every frame"}},
	} {
		p := plan.Pipeline{
			Source: plan.PipelineSource{Kind: "synthetic", Format: "nv12", Width: 64, Height: 32, FPSNum: 30, FPSDen: 1},
			Stages: []plan.PipelineStage{
				{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 224, Height: 224}},
				{ID: "way", Kind: "model", Input: "pre", Model: &plan.Model{Path: "whole.onnx", Threads: 1}},
				{ID: "class", Kind: "postprocess", Input: "way", Post: &plan.Post{Kind: "argmax"}},
			},
		}
		c.change(&p)
		path := pipelinePlan(t, map[string]plan.Pipeline{"p": p})
		var o, e bytes.Buffer
		code := run(context.Background(), []string{"pipeline", "run", path, "--models", dir, "--library", models.Library(t), "--frames", "1"}, &o, &e)
		if code != cli.ExitFailed || strings.Contains(o.String(), "frame 0") {
			t.Errorf("%s: exit %d, %s", c.name, code, o.String())
		}
		for _, s := range c.wantText {
			if !strings.Contains(e.String(), s) {
				t.Errorf("%s: %q is not in %s", c.name, s, e.String())
			}
		}
	}
}
