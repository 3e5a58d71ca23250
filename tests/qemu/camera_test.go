package qemu

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom/plugin"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed camera.sh
var cameraScript []byte

// TestCamerasOfARealDriver boots a kernel with the vivid driver, runs the tests of
// package v4l2 that need a camera, and a pipeline whose camera is unplugged.
// YOCTUNE_CAMERA_RECORD names a folder for recordings of the driver's answers.
func TestCamerasOfARealDriver(t *testing.T) {
	cache := guestKernel(t)
	if os.Getenv("YOCTUNE_QEMU_CAMERA") == "" {
		t.Skip("YOCTUNE_QEMU_CAMERA is not set; scripts/prove.sh camera sets it. runtime/engine/v4l2 replays recordings of the driver")
	}
	if found, _ := filepath.Glob(filepath.Join(cache, "lib/modules/*/kernel/drivers/media/test-drivers/vivid/vivid.ko*")); len(found) == 0 {
		t.Skip("the kernel was fetched without its camera driver; scripts/setup.sh kernel fetches it")
	}
	dir := t.TempDir()
	archive := newGuest(t, cache, cameraScript)
	archive.addSymlink("bin/ln", "busybox")
	for name, host := range buildBinary(t, dir) {
		archive.addHostFile(name, host)
	}
	tests := filepath.Join(dir, "v4l2.test")
	build := exec.Command("go", "test", "-c", "-o", tests, "github.com/yoctune/yoctune/runtime/engine/v4l2")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	archive.addHostFile("bin/v4l2.test", tests)
	bars := func(path, format string, width, height int) plan.Pipeline {
		return plan.Pipeline{
			Source: plan.PipelineSource{Kind: "v4l2", Path: path, Format: format, Width: width, Height: height, FPSNum: 30, FPSDen: 1, Live: true},
			Stages: []plan.PipelineStage{
				{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 8, Height: 1, Fit: "stretch", Crop: &plan.Crop{Y: 2 * height / 3, Width: width, Height: height / 3}}},
				{ID: "dump", Kind: "postprocess", Input: "pre", Post: &plan.Post{Kind: "raw"}},
			},
		}
	}
	// A plug-in in a separate process, which receives the driver's memory.
	own := bars("/dev/video1", "nv12", 320, 180)
	own.Stages = []plan.PipelineStage{{ID: "light", Kind: "custom", Input: "source", Custom: &plan.Custom{Plugin: "/lib/brightness.so", Options: "1"}}}
	header := filepath.Join(dir, "yoctune_stage.h")
	if err := os.WriteFile(header, []byte(plugin.Header), 0o644); err != nil {
		t.Fatal(err)
	}
	so := filepath.Join(dir, "brightness.so")
	if out, err := exec.Command("gcc", "-std=c11", "-shared", "-fPIC", "-O2", "-I", dir, "-o", so, "../../examples/custom-stage/brightness.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	archive.addHostFile("lib/brightness.so", so)
	p := &plan.Plan{Layer: "qemu", Target: "camera", Board: "generic", Pipelines: map[string]plan.Pipeline{
		"bars": bars("/dev/video0", "nv12", 320, 180), "hdmi": bars("/dev/video2", "yuyv", 1280, 720), "own": own,
	}}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	archive.addFile("camera.json", 0o644, b)
	console := archive.boot(t, cache, "")
	for line := range strings.Lines(console) {
		if strings.HasPrefix(line, "CAMERA") || strings.HasPrefix(line, "SUMMARY") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if to := os.Getenv("YOCTUNE_CAMERA_RECORD"); to != "" {
		saveConsole(t, to, console)
	}
	report(t, console, 40)
}

// saveConsole writes the recordings that the guest printed to files in dir.
func saveConsole(t *testing.T, dir, console string) {
	t.Helper()
	files := map[string]string{}
	for line := range strings.Lines(console) {
		if rest, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "RECORDED "); ok {
			name, text, _ := strings.Cut(rest, " ")
			files[filepath.Base(name)] += text + "\n"
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
