package compiler

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/formats/evidence"
	"github.com/yoctune/yoctune/schema/formats/measurement"
	"github.com/yoctune/yoctune/schema/plan"
)

const optimised = `package box
layer: {name: "box", maintainer: "M <m@example.com>"}
targets: cam: {
	board: "orin-nano-8gb"
	release: "scarthgap"
	models: way: {
		source: "models/way.onnx"
		optimise: [{kind: "fp16"}, {kind: "prune", pattern: "unstructured", amount: 0.25}]
		accept: {examples: "models/set.safetensors", metric: "top-1"}
	}
	pipelines: p: {
		source: {kind: "file", path: "/data/x.y4m", format: "y4m"}
		stages: {
			f: {kind: "preprocess", input: "source", width: 64, height: 64}
			m: {kind: "model", input: "f", model: "way", batch: buckets: [1, 4]}
			b: {kind: "postprocess", input: "m", decode: "argmax"}
		}
	}
}
`

func smallModel(op string) []byte {
	g := onnx.Graph{
		Nodes:   []onnx.Node{{Op: op, In: []string{"x"}, Out: []string{"y"}}},
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 0, 3, 64, 64)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 0, 10)},
	}
	return g.Encode()
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// judged returns the evidence that the configuration asks for, whose fp16 candidate was accepted.
func judged() *evidence.Evidence {
	original := evidence.File{Name: "original", File: "way.onnx", SHA256: hexSum(smallModel("Sin")), Bytes: 1}
	half := evidence.File{Name: "fp16", File: "way.cam.fp16.onnx", SHA256: hexSum(smallModel("Cos")), Bytes: 1}
	return &evidence.Evidence{
		Schema: evidence.Schema, Model: "way", Target: "cam", Source: original, Count: 100,
		Device:  measurement.Device{Identities: []string{"nvidia,p3768-0000+p3767-0003", "nvidia,p3767-0003", "nvidia,tegra234"}},
		Runtime: measurement.Runtime{ONNXRuntime: "1.30.0", Providers: []string{"cpu"}},
		Accept:  evidence.NewAccept("top-1", 0.01, 1, 0, []int{1, 4}),
		Candidates: []evidence.Candidate{
			{File: original, Accepted: true, Batches: []evidence.Batch{}}, {File: half, Accepted: true, Batches: []evidence.Batch{}},
			{File: evidence.File{Name: "prune-unstructured-0-25"}, Batches: []evidence.Batch{}},
		},
		Chosen: &half,
	}
}

func openJudged(t *testing.T, e *evidence.Evidence) *Project {
	t.Helper()
	files := map[string][]byte{"config.cue": []byte(optimised), "models/way.onnx": smallModel("Sin"), "models/way.cam.fp16.onnx": smallModel("Cos")}
	if e != nil {
		data, err := plan.Canonical(e)
		if err != nil {
			t.Fatal(err)
		}
		files["models/way.cam.evidence.json"] = data
	}
	return OpenFiles(files)
}

func TestTheAcceptedCandidateIsInThePlanWithItsEvidence(t *testing.T) {
	e := judged()
	p := openJudged(t, e)
	if p.Report.Failed() {
		t.Fatal(p.Report.All())
	}
	data, err := plan.Canonical(e)
	if err != nil {
		t.Fatal(err)
	}
	m := p.Targets[0].Plan.Pipelines["p"].Stages[1].Model
	if m.Path != "models/way.cam.fp16.onnx" || m.SHA256 != e.Chosen.SHA256 || m.Evidence != hexSum(data) {
		t.Errorf("%+v", m)
	}
	if len(p.Targets[0].Files) != 1 || p.Targets[0].Files[0].Path != "models/way.cam.fp16.onnx" {
		t.Errorf("the layer carries %d files", len(p.Targets[0].Files))
	}

	e.Candidates[1].Accepted, e.Chosen = false, nil
	p = openJudged(t, e)
	m = p.Targets[0].Plan.Pipelines["p"].Stages[1].Model
	if p.Report.Failed() || m.Path != "models/way.onnx" || m.Evidence == "" {
		t.Errorf("%+v %v", m, p.Report.All())
	}
}

func TestEvidenceOfSomethingElseIsRefusedAtItsLine(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(e *evidence.Evidence)
		want   string
	}{
		{"another device", func(e *evidence.Evidence) { e.Device.Identities = []string{"nvidia,p3701-0000", "nvidia,tegra234"} }, "it is of another device"},
		{"an unknown device", func(e *evidence.Evidence) { e.Device.Identities = []string{} }, "the device is not identified"},
		{"another runtime", func(e *evidence.Evidence) { e.Runtime.ONNXRuntime = "1.14.0" }, "it was measured with ONNX Runtime 1.14.0, and the image has 1.30.0"},
		{"another provider", func(e *evidence.Evidence) { e.Runtime.Providers = []string{"tensorrt", "cpu"} }, "it was measured with tensorrt, cpu, and stage m runs on cpu"},
		{"another original", func(e *evidence.Evidence) {
			e.Source.SHA256 = strings.Repeat("0", 64)
			e.Candidates[0].SHA256 = e.Source.SHA256
		}, "it is of another model"},
		{"another name", func(e *evidence.Evidence) { e.Model = "reader" }, `it is of model "reader"`},
		{"another target", func(e *evidence.Evidence) { e.Target = "other" }, `it is of target "other"`},
		{"other conditions", func(e *evidence.Evidence) { e.Accept.MaxLoss = "0.0200" }, "the conditions of accept"},
		{"other batches", func(e *evidence.Evidence) { e.Accept.Batches = []int{1} }, "the batch sizes of the stages"},
		{"fewer candidates", func(e *evidence.Evidence) { e.Candidates = e.Candidates[:2] }, "candidate prune-unstructured-0-25 was not judged"},
		{"another file", func(e *evidence.Evidence) {
			e.Candidates[1].SHA256 = strings.Repeat("1", 64)
			e.Chosen.SHA256 = e.Candidates[1].SHA256
		}, "the sha256 of models/way.cam.fp16.onnx is"},
		{"a file elsewhere", func(e *evidence.Evidence) {
			e.Candidates[1].File.File = "../way.onnx"
			e.Chosen.File = "../way.onnx"
		}, "is not the name of a file beside it"},
		{"what was rejected", func(e *evidence.Evidence) { e.Candidates[1].Accepted = false }, "what it chooses was not accepted"},
		{"another format", func(e *evidence.Evidence) { e.Schema = "yoctune.evidence/2" }, "yoctune.evidence/2"},
	} {
		e := judged()
		c.change(e)
		checkRefused(t, c.name, openJudged(t, e), c.want)
	}
	checkRefused(t, "none", openJudged(t, nil), "models/way.cam.evidence.json")
}

func checkRefused(t *testing.T, name string, p *Project, want string) {
	t.Helper()
	for _, d := range p.Report.All() {
		if d.ID == "model-evidence" && d.Pos.Line == 8 && strings.Contains(d.Message, want) {
			return
		}
	}
	t.Errorf("%s: %v, want a model-evidence with %q at line 8", name, p.Report.All(), want)
}
