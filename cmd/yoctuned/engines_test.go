package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// orin is the root of a machine with TensorRT, whose trtexec is a stand-in.
func orin(t *testing.T, trtexec string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"proc/device-tree/compatible":  "nvidia,p3767-0005\x00nvidia,tegra234",
		"usr/lib/libnvinfer.so.10.3.0": "",
		"usr/src/tensorrt/bin/trtexec": "#!/bin/sh\nfor a; do case $a in --saveEngine=*) out=${a#--saveEngine=};; esac; done\n" + trtexec,
		"usr/lib/yoctune/placeholder":  "",
		"var/lib/yoctune/.placeholder": "",
		"proc/sys/kernel/osrelease":    "5.15.148-tegra\n",
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// sign gives the sign of each element, which argmax then reads.
func enginesPlan(t *testing.T, providers ...string) (path, dir string) {
	t.Helper()
	g := onnx.Graph{
		Nodes: []onnx.Node{
			{Op: "GlobalAveragePool", In: []string{"x"}, Out: []string{"mean"}},
			{Op: "Flatten", In: []string{"mean"}, Out: []string{"y"}},
		},
		Inputs:  []onnx.Value{{Name: "x", Type: onnx.Float32, Ranked: true, Shape: []onnx.Dim{{Axis: "n"}, {Size: 3}, {Axis: "h"}, {Axis: "w"}}}},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 0, 3)},
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.onnx"), g.Encode(), 0o644); err != nil {
		t.Fatal(err)
	}
	path = pipelinePlan(t, map[string]plan.Pipeline{"door": {
		Source: plan.PipelineSource{Kind: "synthetic", Format: "nv12", Width: 64, Height: 32, FPSNum: 30, FPSDen: 1},
		Stages: []plan.PipelineStage{
			{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 32, Height: 16}},
			{ID: "net", Kind: "model", Input: "pre", Model: &plan.Model{Path: "m.onnx", Providers: providers, Precision: "fp16", Batch: &plan.ModelBatch{Buckets: []int{1, 4}}}},
			{ID: "class", Kind: "postprocess", Input: "net", Post: &plan.Post{Kind: "argmax"}},
		},
	}})
	return path, dir
}

type engineAnswer struct {
	Type, State, Line, Why, ID string
	States                     map[string]int
	Exit                       int
}

func enginesRun(t *testing.T, args ...string) (int, []engineAnswer, string) {
	t.Helper()
	var o, e bytes.Buffer
	code := run(context.Background(), append(append([]string{"engines"}, args...), "--format", "json"), &o, &e)
	var all []engineAnswer
	for l := range strings.Lines(o.String()) {
		var a engineAnswer
		if err := json.Unmarshal([]byte(l), &a); err != nil {
			t.Fatalf("%v in %q", err, l)
		}
		all = append(all, a)
	}
	return code, all, e.String()
}

// TensorRT is missing here: the builder is a script, and the test covers the job around it.
func TestEnginesAreBuiltListedUsedAndPruned(t *testing.T) {
	root := orin(t, "echo \"[I] shapes $*\"\nprintf ENGINE > \"$out\"\n")
	path, dir := enginesPlan(t, "tensorrt", "cpu")
	code, all, stderr := enginesRun(t, "build", path, "--root", root, "--models", dir)
	if code != 0 || len(all) != 3 || all[0].Type != "progress" || !strings.Contains(all[0].Line, "--minShapes=x:1x3x16x32 --optShapes=x:4x3x16x32 --maxShapes=x:4x3x16x32") || all[1].State != "built" || all[2].States["built"] != 1 {
		t.Fatalf("exit %d, %+v, %s", code, all, stderr)
	}
	id := all[1].ID
	if _, err := os.Stat(filepath.Join(root, "var/lib/yoctune/engines", id, "engine.onnx")); err != nil {
		t.Error(err)
	}
	if code, all, _ = enginesRun(t, "build", path, "--root", root, "--models", dir); code != 0 || all[0].State != "present" {
		t.Errorf("again: exit %d, %+v", code, all)
	}
	if code, all, _ = enginesRun(t, "list", "--root", root, "--check"); code != 0 || len(all) != 2 || all[0].ID != id {
		t.Errorf("list: exit %d, %+v", code, all)
	}

	// The pipeline tries the engine, reports that ONNX Runtime has no TensorRT, and
	// continues.
	var o, e bytes.Buffer
	code = run(context.Background(), []string{"pipeline", "run", path, "--root", root, "--models", dir, "--library", models.Library(t), "--frames", "3", "--format", "json"}, &o, &e)
	lines := strings.Split(strings.TrimSpace(o.String()), "\n")
	if last := lines[len(lines)-1]; code != 0 || !strings.Contains(last, `"provider":"cpu"`) || !strings.Contains(last, `"missing":[{"provider":"tensorrt","why":"onnx runtime: `) {
		t.Errorf("exit %d, %s, %s", code, last, e.String())
	}

	// TensorRT is updated: the old engine is of no use.
	if err := os.Rename(filepath.Join(root, "usr/lib/libnvinfer.so.10.3.0"), filepath.Join(root, "usr/lib/libnvinfer.so.10.7.0")); err != nil {
		t.Fatal(err)
	}
	if code, all, _ = enginesRun(t, "prune", path, "--root", root, "--models", dir); code != 0 || len(all) != 2 || all[0].ID != id {
		t.Errorf("prune: exit %d, %+v", code, all)
	}
}

func TestEnginesBuildRefusals(t *testing.T) {
	broken := orin(t, "printf HALF > \"$out\"\necho '[E] out of memory'\nexit 1\n")
	bare := t.TempDir()
	for _, c := range []struct {
		name      string
		root      string
		providers []string
		exit      int
		state     string
		why       string
	}{
		{"builder fails", broken, []string{"tensorrt", "cpu"}, 1, "failed", "out of memory"},
		{"no TensorRT, something else", bare, []string{"tensorrt", "cpu"}, 0, "skipped", "no NVIDIA GPU"},
		{"no TensorRT, nothing else", bare, []string{"tensorrt"}, 1, "skipped", "no NVIDIA GPU"},
		{"none wanted", bare, []string{"cpu"}, 0, "", ""},
	} {
		path, dir := enginesPlan(t, c.providers...)
		code, all, stderr := enginesRun(t, "build", path, "--root", c.root, "--models", dir)
		state, why := "", ""
		for _, a := range all {
			if a.Type == "engine" {
				state, why = a.State, a.Why
			}
		}
		if code != c.exit || state != c.state || !strings.Contains(why, c.why) {
			t.Errorf("%s: exit %d, %+v, %s", c.name, code, all, stderr)
		}
	}
	path, dir := enginesPlan(t, "tensorrt")
	if code, _, stderr := enginesRun(t, "prune", path, "--root", bare, "--models", dir); code != 1 || !strings.Contains(stderr, "none is removed") {
		t.Errorf("prune without TensorRT: exit %d, %s", code, stderr)
	}
	// What the plan allows is not there, and the pipeline does not start.
	var o, e bytes.Buffer
	code := run(context.Background(), []string{"pipeline", "run", path, "--root", bare, "--models", dir, "--library", models.Library(t), "--frames", "3"}, &o, &e)
	if code != 1 || !strings.Contains(e.String(), "none of the allowed execution providers is available: tensorrt: no TensorRT engine") {
		t.Errorf("exit %d, %s", code, e.String())
	}
}
