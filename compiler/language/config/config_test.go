package config_test

import (
	"testing"

	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/language/sandbox"
	"github.com/yoctune/yoctune/schema/plan"
)

// decodeTarget decodes a target that begins on line 1 of config.cue.
func decodeTarget(t *testing.T, text string) *config.Target {
	t.Helper()
	cfg, report := load.Files(map[string][]byte{"config.cue": []byte(text)}, sandbox.FrontEnd{})
	if report.Failed() {
		t.Fatal(report.All())
	}
	return config.DecodeTarget(`targets."line-camera"`, cfg.Root)
}

func TestFieldsKeepTheirPlace(t *testing.T) {
	target := decodeTarget(t, "cpu: {\n\tgovernor: \"performance\"\n\tisolate: [4, 5]\n}\nservices: \"a.service\": nice: -5\n")
	for _, c := range []struct {
		part     config.Part
		pos      plan.Position
		path, id string
	}{
		{target.CPU.Governor, plan.Position{File: "config.cue", Line: 2, Column: 12}, `targets."line-camera".cpu.governor`, "cpu.governor"},
		{target.CPU.Isolate.Items[1], plan.Position{File: "config.cue", Line: 3, Column: 15}, `targets."line-camera".cpu.isolate`, "cpu.isolate"},
		{target.Services.Get("a.service").Nice, plan.Position{File: "config.cue", Line: 5, Column: 30}, `targets."line-camera".services."a.service".nice`, "services.a.service.nice"},
		// An absent field has the position of the part around it.
		{target.CPU.Min, plan.Position{File: "config.cue", Line: 1, Column: 6}, `targets."line-camera".cpu.min`, "cpu.min"},
		{target.Services.Get("b.service").Nice, plan.Position{File: "config.cue", Line: 5, Column: 11}, `targets."line-camera".services."b.service".nice`, "services.b.service.nice"},
	} {
		at := c.part.Where()
		if at.Pos() != c.pos || at.FullPath() != c.path || at.ID() != c.id {
			t.Errorf("%s %s at %+v, want %s %s at %+v", at.FullPath(), at.ID(), at.Pos(), c.path, c.id, c.pos)
		}
	}
	if pos, want := target.Services.Get("a.service").KeyPos(), (plan.Position{File: "config.cue", Line: 5, Column: 11}); pos != want {
		t.Errorf("the name of the service is at %+v, want %+v", pos, want)
	}
	if at := target.Below("services", "a.service", "nice"); !at.Equal(target.Services.Get("a.service").Nice.Place) || at.Pos().Line != 5 {
		t.Errorf("a path leads to %s at %+v", at.FullPath(), at.Pos())
	}
}

func TestAbsentFieldsHaveDefaults(t *testing.T) {
	target := decodeTarget(t, "kernel: preempt: \"\"\nservices: \"a.service\": enable: false")
	svc := target.Services.Get("a.service")
	if svc.Enable.Or(true) || !svc.Hardening.Or(true) {
		t.Error("enable: false was written, and hardening is absent")
	}
	if target.Kernel.Preempt.Or("full") != "" || svc.Type.Or("simple") != "simple" || svc.CPUWeight.Or(100) != 100 {
		t.Error("an empty text is a value; an absent one has the default")
	}
}

func TestScalarOrStruct(t *testing.T) {
	short := decodeTarget(t, `memory: zram: "2GiB"`).Memory.ZRAM
	if short.Scalar.Text != "2GiB" || short.Struct.IsSet() {
		t.Errorf("%+v", short)
	}
	long := decodeTarget(t, `memory: zram: {size: "2GiB", algorithm: "zstd"}`).Memory.ZRAM
	if long.Scalar.IsSet() || long.Struct.Size.Text != "2GiB" || long.Struct.Algorithm.Text != "zstd" {
		t.Errorf("%+v", long)
	}
}

func TestOversizedEntriesAreEmpty(t *testing.T) {
	target := decodeTarget(t, `cpu: {isolate: "all", governor: 5}, services: [1], power: "x", memory: mglru: 3`)
	if len(target.CPU.Isolate.Items) > 0 || target.CPU.Governor.Text != "" || len(target.Services.Entries) > 0 || target.Power.Default.IsSet() || target.Memory.MGLRU.On {
		t.Errorf("%+v", target)
	}
}
