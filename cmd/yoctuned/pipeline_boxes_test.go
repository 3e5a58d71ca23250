package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// A pipeline runs on the GPU from the upload of a frame to its results, with the strict device in its
// place: they are those of the CPU, and nothing else comes back. When the GPU is lost between two
// stages, the CPU makes again what only the GPU had.
func TestAPipelineRunsOnTheGPUToItsResults(t *testing.T) {
	const (
		pixels = 8 * 4 * 3 / 2
		rank   = 8
		points = 3 * 3
	)
	// The best two boxes, and because one of them is in the border those of all candidates.
	boxes := func(anchors int) uint64 { return uint64(core.BoxesBytes(2) + core.BoxesBytes(anchors)) }
	nan := float32(math.NaN())
	prototypes := make([]float32, 4*8*8)
	for i := range prototypes {
		prototypes[i] = float32(i%7) - 2.5
	}
	for _, c := range []struct {
		post plan.Post
		outs []onnxOutput // of the model
		back uint64       // bytes of one frame
		up   uint64       // beside the pixels
		kept string       // of the kernels, one that fails
	}{
		{plan.Post{Kind: "detect", Top: 2}, []onnxOutput{boxesOutput(0)}, boxes(12), 0, "nms"},
		// Their points follow the best two, and those chosen among all are sent for theirs.
		{plan.Post{Kind: "keypoints", Classes: 1, Top: 2}, []onnxOutput{boxesOutput(points)}, boxes(6+points) + 2*2*4*points, uint64(core.BoxesBytes(2)), "gather"},
		// So are the places of their masks, of which each has 16 bits.
		{plan.Post{Kind: "segment", Prototypes: "p", Top: 2}, []onnxOutput{boxesOutput(4), {"p", []int64{1, 4, 8, 8}, prototypes}}, boxes(12) + 2*4,
			uint64(core.BoxesBytes(2) + 2*core.GridBytes), "masks"},
		{plan.Post{Kind: "argmax", Top: 3}, []onnxOutput{{"y", []int64{1, 5}, []float32{1, 4, -2, 4, 3}}}, 8 + 2*3*rank, 0, "softmax"},
		{plan.Post{Kind: "argmax", Top: 2}, []onnxOutput{{"y", []int64{1, 4}, []float32{0.25, 0, 0.625, 0.125}}}, 8 + 2*2*rank, 0, "topk"},
		{plan.Post{Kind: "ctc", Labels: "labels.txt"}, []onnxOutput{{"y", []int64{1, 5, 4}, []float32{
			0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, nan, 0, 0, 0.5, 0, 0, 0, 0, 0.75,
		}}}, 5 * rank, 0, "topk"},
	} {
		t.Run(c.post.Kind, func(t *testing.T) {
			dir := t.TempDir()
			writeFiles(t, dir, map[string]string{"m.onnx": string(fixedModel(c.outs...)), "labels.txt": "a\nb\nc\n"})
			run := func(device string, frames int, args ...string) (results []string, sum pipelineLine) {
				p := modelPipeline(c.post)
				for i := range p.Stages {
					p.Stages[i].Device = device
				}
				args = append(args, "--frames", fmt.Sprint(frames), "--models", dir, "--library", models.Library(t), "--gpu-backend", "strict")
				code, out, stderr := runProgram(t, p, args...)
				if code != 0 {
					t.Fatalf("exit %d, %s", code, stderr)
				}
				for _, l := range out {
					if l.Type == "result" {
						b, err := json.Marshal(l.Results)
						if err != nil {
							t.Fatal(err)
						}
						results = append(results, string(b))
					}
				}
				_, sum = numbers(t, out)
				return results, sum
			}
			want, _ := run("", 8)
			if len(want) != 8 || want[0] == "[]" {
				t.Fatalf("on the CPU %v", want)
			}
			got, more := run("gpu", 8)
			if !slices.Equal(got, want) {
				t.Errorf("on the GPU %v, on the CPU %v", got, want)
			}
			_, some := run("gpu", 4)
			a, b := some.Runtime.Worker.Copied, more.Runtime.Worker.Copied
			four := worker.Copied{ToDevice: b.ToDevice - a.ToDevice, ToHost: b.ToHost - a.ToHost, OnDevice: b.OnDevice - a.OnDevice}
			if want := (worker.Copied{ToDevice: 4 * (pixels + c.up), ToHost: 4 * c.back, OnDevice: four.OnDevice}); four != want {
				t.Errorf("four frames copy %+v, want %+v", four, want)
			}
			for _, fault := range []string{"launch:fault@kernel=" + c.kept + "@n=5", "launch:fault@kernel=pre@n=4", "device:lost@n=30"} {
				got, sum := run("gpu", 8, "--gpu-faults", fault)
				f := sum.Fallbacks
				if !slices.Equal(got, want) || len(sum.Runtime.Worker.Losses) == 0 || f["pre"]+f["m"]+f["post"] == 0 {
					t.Errorf("%s: %v, losses %v, fallbacks %v", fault, got, sum.Runtime.Worker.Losses, f)
				}
			}
		})
	}
}
