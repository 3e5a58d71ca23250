package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// The device of a stage that the plan leaves open is measured once. It is the CPU, and measured again the
// next time, where the GPU cannot be used.
func TestTheFasterDeviceIsMeasuredOnce(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	writeFiles(t, dir, map[string]string{"m.onnx": string(fixedModel(boxesOutput(0)))})
	open := func(p *plan.Pipeline) {
		p.Stages[1].Device, p.Stages[2].Device = "auto", "auto"
	}
	run := func(change func(*plan.Pipeline), args ...string) (pipelineLine, []string, string) {
		t.Helper()
		p := modelPipeline(plan.Post{Kind: "detect"})
		open(&p)
		if change != nil {
			change(&p)
		}
		args = append(args, "--root", root, "--frames", "4", "--models", dir, "--library", models.Library(t))
		code, out, stderr := runProgram(t, p, args...)
		if code != 0 {
			t.Fatalf("exit %d, %s", code, stderr)
		}
		results, sum := 0, pipelineLine{}
		for _, l := range out {
			switch l.Type {
			case "result":
				results++
			case "summary":
				sum = l
			}
		}
		if results != 4 || sum.Runtime.Devices == nil {
			t.Fatalf("%d results, %+v", results, sum.Runtime.Devices)
		}
		var words []string
		for _, e := range sum.Events {
			if e.Kind == pipeline.EventDevice {
				words = append(words, e.Why)
			}
		}
		return sum, words, stderr
	}
	// A GPU that takes 20 ms for each frame.
	first, why, _ := run(nil, "--gpu-backend", "strict", "--gpu-faults", "launch:hang=20ms@kernel=nms")
	d := first.Runtime.Devices
	if !d.Measured || d.Devices["post"] != "cpu" || len(d.Rates) != 4 || d.Rates["m cpu, post cpu"] < 2*d.Rates["m cpu, post gpu"] {
		t.Errorf("%+v", d)
	}
	if len(why) != 1 || !strings.Contains(why[0], "post on the CPU") || !strings.Contains(why[0], "measured now: m cpu, post cpu: ") {
		t.Errorf("events %q", why)
	}
	again, why, _ := run(nil, "--gpu-backend", "strict")
	if d := again.Runtime.Devices; d.Measured || d.Devices["post"] != "cpu" || len(why) != 1 || !strings.Contains(why[0], "measured earlier") {
		t.Errorf("again %+v, %q", d, why)
	}
	// Another plan, and another model.
	if d, _, _ := run(func(p *plan.Pipeline) { p.Stages[0].Preprocess.Pad = 3 }, "--gpu-backend", "strict"); !d.Runtime.Devices.Measured {
		t.Errorf("another plan %+v", d.Runtime.Devices)
	}
	writeFiles(t, dir, map[string]string{"m.onnx": string(fixedModel(boxesOutput(2)))})
	if d, _, _ := run(nil, "--gpu-backend", "strict"); !d.Runtime.Devices.Measured {
		t.Errorf("another model %+v", d.Runtime.Devices)
	}

	root = t.TempDir()
	for range 2 { // without a GPU
		sum, _, stderr := run(nil, "--gpu-library", filepath.Join(dir, "none.so"))
		if d := sum.Runtime.Devices; !d.Measured || d.Devices["m"] != "cpu" || d.Devices["post"] != "cpu" || len(d.Rates) != 1 || !strings.Contains(stderr, "measuring devices") {
			t.Errorf("without a GPU %+v, %s", d, stderr)
		}
	}
	if files, err := os.ReadDir(filepath.Join(root, "var/lib/yoctune/kernels")); err == nil && len(files) != 0 {
		t.Errorf("a measurement without a GPU is remembered: %v", files)
	}
}
