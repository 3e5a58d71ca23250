package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/engine/pipeline"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

const labelsPlan = "../../runtime/engine/pipeline/testdata/labels.plan.json"

// ownSocket keeps a test's pipelines apart from those of the same name that run on this
// machine.
func ownSocket(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "socket") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("RUNTIME_DIRECTORY", dir)
}

// pipelinePlan writes a plan of synthetic pipelines.
func pipelinePlan(t *testing.T, pipelines map[string]plan.Pipeline) string {
	t.Helper()
	ownSocket(t)
	p := plan.Plan{Layer: "test", Target: "t", Board: "orin-nano-8gb", Release: "scarthgap", Pipelines: pipelines}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// dumpPipeline writes small synthetic tensors as they are.
func dumpPipeline() plan.Pipeline {
	return plan.Pipeline{
		Source: plan.PipelineSource{Kind: "synthetic", Format: "nv12", Width: 8, Height: 4},
		Stages: []plan.PipelineStage{
			{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 2, Height: 1}},
			{ID: "dump", Kind: "postprocess", Input: "pre", Post: &plan.Post{Kind: "raw"}},
		},
	}
}

type pipelineLine struct {
	Type    string
	Command string
	Exit    int
	Message string
	Frame   uint64
	Results []struct {
		Text  string
		Score float64
		ID    uint64
		Class int
		Box   [4]float64

		Points [][3]float64
		Mask   json.RawMessage
	}
	Frames    struct{ Read, Done, Dropped, Failed uint64 }
	Errors    []struct{ Error string }
	Fallbacks map[string]uint64
	Events    []pipeline.Event
	Runtime   struct {
		Worker  worker.Status
		Devices *pipeline.DeviceChoice
		Tensors []pipeline.TensorInfo
	}
}

func runPipelineJSON(t *testing.T, args ...string) (code int, out []pipelineLine, stderr string) {
	t.Helper()
	ownSocket(t)
	var o, e bytes.Buffer
	code = run(context.Background(), append(args, "--format", "json"), &o, &e)
	for _, l := range strings.Split(strings.TrimSpace(o.String()), "\n") {
		var v pipelineLine
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatalf("%v in %q", err, l)
		}
		out = append(out, v)
	}
	return code, out, e.String()
}

func TestPipelineRunPrintsTheModelsResults(t *testing.T) {
	code, out, stderr := runPipelineJSON(t, "pipeline", "run", labelsPlan, "labels",
		"--models", models.Dir(t), "--library", models.Library(t), "--frames", "3")
	if code != cli.ExitDone || stderr != "" || len(out) != 4 {
		t.Fatalf("exit %d, %d lines, %s", code, len(out), stderr)
	}
	for n, want := range []string{"YT-48207", "YT-48213", "BX-90154"} {
		l := out[n]
		if l.Type != "result" || l.Frame != uint64(n) || len(l.Results) != 1 || l.Results[0].Text != want {
			t.Errorf("line %d: %+v, want %s", n, l, want)
		}
	}
	if s := out[3]; s.Type != "summary" || s.Frames.Done != 3 || s.Command != "pipeline run" || s.Exit != 0 {
		t.Errorf("%+v", s)
	}
}

func TestPipelineRunPrintsTheSummaryWhenFramesFail(t *testing.T) {
	clip := filepath.Join(t.TempDir(), "short.nv12")
	if err := os.WriteFile(clip, make([]byte, 8*4*3/2+5), 0o644); err != nil {
		t.Fatal(err)
	}
	path := pipelinePlan(t, map[string]plan.Pipeline{"dump": dumpPipeline()})
	code, out, stderr := runPipelineJSON(t, "pipeline", "run", path, "--source", clip)
	if code != cli.ExitFailed || !strings.Contains(stderr, "frame 1: video ends inside a frame") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if len(out) != 3 || out[0].Type != "result" || out[1].Type != "error" || out[2].Type != "summary" {
		t.Fatalf("%+v", out)
	}
	if s := out[2]; s.Exit != 1 || s.Frames.Done != 1 || s.Frames.Failed != 1 || len(s.Errors) != 1 {
		t.Errorf("%+v", s)
	}
}

func TestPipelineRunRefusals(t *testing.T) {
	one := pipelinePlan(t, map[string]plan.Pipeline{"dump": dumpPipeline()})
	two := pipelinePlan(t, map[string]plan.Pipeline{"a": dumpPipeline(), "b": dumpPipeline()})
	none := pipelinePlan(t, nil)
	edited := filepath.Join(t.TempDir(), "edited.json")
	b, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(edited, bytes.Replace(b, []byte(`"width": 8`), []byte(`"width": 9`), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		args     []string
		code     int
		wantText string
	}{
		{"no plan", nil, cli.ExitUsage, "missing argument: PLAN"},
		{"absent plan", []string{"absent.json"}, cli.ExitFailed, "absent.json"},
		{"edited plan", []string{edited}, cli.ExitFailed, "digest"},
		{"no pipelines", []string{none}, cli.ExitFailed, "no pipelines"},
		{"which one", []string{two}, cli.ExitFailed, "choose one of a, b"},
		{"unknown name", []string{one, "door\x1b[2J"}, cli.ExitFailed, `no pipeline "door\x1b[2J"; it has dump`},
		{"absent source", []string{one, "--source", "absent.nv12"}, cli.ExitFailed, "absent.nv12"},
		{"negative frames", []string{one, "--frames", "-1"}, cli.ExitUsage, "write a whole number that is not negative"},
		{"a trace without a folder", []string{one, "--trace", "/absent/t.json"}, cli.ExitFailed, "write trace: open /absent/"},
		{"a trace in place of a device", []string{one, "--trace", os.DevNull}, cli.ExitFailed, "is not a regular file"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(context.Background(), append([]string{"pipeline", "run"}, c.args...), &stdout, &stderr)
		if code != c.code || !strings.Contains(stderr.String(), c.wantText) {
			t.Errorf("%s: exit %d, %s", c.name, code, stderr.String())
		}
	}
}

// A run without frames has no latency: it is not the best of all.
func TestARunWithoutFramesHasNoLatency(t *testing.T) {
	pl := dumpPipeline()
	pl.Source.Kind, pl.Source.Exec = "command", []string{"true"}
	pl.SLO = &plan.PipelineSLO{LatencyP95: 1e9}
	path := pipelinePlan(t, map[string]plan.Pipeline{"dump": pl})
	var stdout, stderr bytes.Buffer
	args := []string{"pipeline", "run", path, "--check"}
	if code := run(context.Background(), append(args, "--format", "json"), &stdout, &stderr); code != cli.ExitNo || stderr.String() != "" {
		t.Errorf("exit %d, %s", code, stderr.String())
	}
	if out := stdout.String(); !strings.Contains(out, `"latency_ns":{"total":null,`) || !strings.Contains(out, `"found":null,"met":false`) {
		t.Errorf("%s", out)
	}
	stdout.Reset()
	if code := run(context.Background(), args, &stdout, &stderr); code != cli.ExitNo || !strings.Contains(stdout.String(), "slo latency p95: missed, 1000.00 ms wanted, no frame was done") {
		t.Errorf("exit %d, %s", code, stdout.String())
	}
}

func TestPipelineRunText(t *testing.T) {
	pl := dumpPipeline()
	pl.SLO = &plan.PipelineSLO{LatencyP95: 1}
	path := pipelinePlan(t, map[string]plan.Pipeline{"dump": pl})
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), []string{"pipeline", "run", path, "--frames", "4", "--check"}, &stdout, &stderr)
	if code != cli.ExitNo || stderr.String() != "" {
		t.Errorf("exit %d, %s", code, stderr.String())
	}
	for _, want := range []string{"frame 3 ", "4 frames read: 4 done, 0 dropped, 0 failed", "end to end", "slo latency p95: missed"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, stdout.String())
		}
	}
}
