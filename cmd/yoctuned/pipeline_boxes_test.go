package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// A detector runs on the GPU from the upload of a frame to its boxes, with the strict device in its
// place: the boxes are those of the CPU, and nothing else comes back. When the GPU is lost between
// two stages, the CPU makes again what only the GPU had.
func TestADetectorRunsOnTheGPUToItsBoxes(t *testing.T) {
	dir := t.TempDir()
	writeBoxes(t, dir)
	detect := func(device string, frames int, args ...string) (boxes []string, sum pipelineLine) {
		p := modelPipeline(plan.Post{Kind: "detect", Top: 2})
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
				boxes = append(boxes, string(b))
			}
		}
		_, sum = numbers(t, out)
		return boxes, sum
	}
	want, _ := detect("", 8)
	if len(want) != 8 || want[0] == "[]" {
		t.Fatalf("on the CPU %v", want)
	}
	got, more := detect("gpu", 8)
	if !slices.Equal(got, want) {
		t.Errorf("on the GPU %v, on the CPU %v", got, want)
	}
	_, some := detect("gpu", 4)
	a, b := some.Runtime.Worker.Copied, more.Runtime.Worker.Copied
	const pixels = 8 * 4 * 3 / 2
	// The best two boxes, and because one of them is in the border those of all candidates.
	boxes := uint64(core.BoxesBytes(2) + core.BoxesBytes(12))
	got4 := worker.Copied{ToDevice: b.ToDevice - a.ToDevice, ToHost: b.ToHost - a.ToHost, OnDevice: b.OnDevice - a.OnDevice}
	if want := (worker.Copied{ToDevice: 4 * pixels, ToHost: 4 * boxes, OnDevice: 4 * boxes}); got4 != want {
		t.Errorf("four frames copy %+v, want %+v", got4, want)
	}
	for _, fault := range []string{"launch:fault@kernel=nms@n=5", "launch:fault@kernel=decode@n=3", "launch:fault@kernel=pre@n=4", "device:lost@n=30"} {
		got, sum := detect("gpu", 8, "--gpu-faults", fault)
		f := sum.Fallbacks
		if !slices.Equal(got, want) || len(sum.Runtime.Worker.Losses) == 0 || f["pre"]+f["m"]+f["post"] == 0 {
			t.Errorf("%s: %v, losses %v, fallbacks %v", fault, got, sum.Runtime.Worker.Losses, f)
		}
	}
}
