package units_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/units"
	"github.com/yoctune/yoctune/schema/plan"
)

// Engines are built before the pipelines that use them, and only for those.
func TestEnginesAreBuiltBeforeThePipelinesThatWantThem(t *testing.T) {
	for _, wants := range []bool{false, true} {
		l := emittest.Vision(t)
		p := plan.Pipeline{Stages: []plan.PipelineStage{{ID: "m", Kind: "model", Model: &plan.Model{Path: "m.onnx"}}}}
		if wants {
			p.Stages[0].Device = "gpu"
			p.Memory = &plan.PipelineMemory{Lock: true}
		}
		l.Targets[0].Plan.Pipelines = map[string]plan.Pipeline{"gate": p}
		files, err := units.Emit(l)
		if err != nil {
			t.Fatal(err)
		}
		unit, dropin := "", ""
		for _, f := range files {
			switch {
			case strings.HasSuffix(f.Path, "/yoctuned-engines.service"):
				unit = string(f.Data)
			case strings.Contains(f.Path, "yoctuned-pipeline@gate.service.d"):
				dropin = string(f.Data)
			}
		}
		if !wants {
			if unit != "" || dropin != "" {
				t.Errorf("without TensorRT there are\n%s\n%s", unit, dropin)
			}
			continue
		}
		if !strings.Contains(unit, "ExecStart=/usr/bin/yoctuned engines build /usr/lib/yoctune/plan.json\n") {
			t.Errorf("unit:\n%s", unit)
		}
		if !strings.Contains(dropin, "Wants=yoctuned-engines.service\nAfter=yoctuned-engines.service\n") || !strings.Contains(dropin, "LimitMEMLOCK=infinity\n") {
			t.Errorf("drop-in:\n%s", dropin)
		}
	}
}

// A pipeline's unit has its place among the others, and the bounds that the kernel keeps.
func TestPipelineUnitHasOrderAndLimits(t *testing.T) {
	nice := -5
	memory := func(b plan.PipelineBudget) plan.Pipeline { return plan.Pipeline{Budget: &b} }
	file := memory(plan.PipelineBudget{DiskRead: 40e6, DiskWrite: 2e6})
	file.Source.Path, file.Sink.Path = "clip.nv12", "/var/log/labels/results.ndjson"
	ring := memory(plan.PipelineBudget{DiskRead: 40e6, DiskWrite: 2e6, NetOut: 1, FreeMemory: 1})
	ring.Source.Path, ring.Sink.Path = "/dev/shm/frames", "/run/results"
	for _, c := range []struct {
		pipeline plan.Pipeline
		want     string // "": no drop-in
	}{
		{plan.Pipeline{Scheduling: "fifo", Priority: 20}, "[Service]\nCPUSchedulingPolicy=fifo\nCPUSchedulingPriority=20\n"},
		{plan.Pipeline{CPUs: "4-5", Nice: &nice}, "[Service]\nCPUAffinity=4-5\nAllowedCPUs=4-5\nNice=-5\n"},
		{memory(plan.PipelineBudget{Memory: 1 << 30}), "[Service]\n# Memory of the GPU driver is not accounted here.\nMemoryMax=1073741824\n"},
		{file, "[Service]\nIOReadBandwidthMax=/usr/lib/yoctune 40000000\nIOWriteBandwidthMax=/var/log/labels 2000000\n"},
		{ring, ""},
	} {
		l := emittest.Vision(t)
		l.Targets[0].Plan.Pipelines = map[string]plan.Pipeline{"gate": c.pipeline}
		files, err := units.Emit(l)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range files {
			if strings.Contains(f.Path, "yoctuned-pipeline@gate.service.d") {
				_, section, _ := strings.Cut(string(f.Data), "[Service]")
				got = "[Service]" + section
			}
		}
		if got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}
