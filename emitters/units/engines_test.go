package units_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/units"
	"github.com/yoctune/yoctune/schema/plan"
)

// Engines are built before the pipelines that want them, and for nobody else.
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
