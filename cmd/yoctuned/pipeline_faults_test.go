package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/jpeg"
	"github.com/yoctune/yoctune/schema/plan"
)

// yoctuned returns a command that runs the program as users start it: a process of its own.
func yoctuned(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// testscript.Main runs the program under this name.
	program := filepath.Join(t.TempDir(), "yoctuned")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = os.Environ()
	return cmd
}

// runProgram runs a pipeline to its end and returns the lines of its output.
func runProgram(t *testing.T, p plan.Pipeline, args ...string) (code int, out []pipelineLine, stderr string) {
	t.Helper()
	path := pipelinePlan(t, map[string]plan.Pipeline{"p": p})
	cmd := yoctuned(t, append([]string{"pipeline", "run", path, "--format", "json"}, args...)...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for l := range strings.Lines(o.String()) {
		var v pipelineLine
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatalf("%v in %q", err, l)
		}
		out = append(out, v)
	}
	return cmd.ProcessState.ExitCode(), out, e.String()
}

// numbers lists the frames with results, and returns the summary.
func numbers(t *testing.T, out []pipelineLine) (frames []uint64, sum pipelineLine) {
	t.Helper()
	for _, l := range out {
		switch l.Type {
		case "result":
			frames = append(frames, l.Frame)
		case "summary":
			sum = l
		}
	}
	return frames, sum
}

// One damaged image costs one frame: damage of the header does not stay in the decoder, and a
// header that is cut does not hide the next image. Also where the damaged image is the first one.
func TestADamagedImageCostsOneFrame(t *testing.T) {
	stream, err := os.ReadFile("../../runtime/engine/jpeg/testdata/labels444.mjpeg")
	if err != nil {
		t.Fatal(err)
	}
	m, err := jpeg.NewMotion(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	good, err := m.Next()
	if err != nil {
		t.Fatal(err)
	}
	good = bytes.Clone(good)
	tables := bytes.Index(good, []byte{0xff, 0xdb})
	damaged := bytes.Clone(good)
	damaged[tables+4] = 0x7f // a table with a number that does not exist
	for name, bad := range map[string][]byte{"damaged": damaged, "cut in a table": good[:tables+20], "cut in a length": good[:tables+3]} {
		for at, want := range map[int][]uint64{0: {1, 2, 3}, 1: {0, 2, 3}} {
			images := slices.Insert([][]byte{good, good, good}, at, bad)
			clip := filepath.Join(t.TempDir(), "clip.mjpeg")
			if err := os.WriteFile(clip, bytes.Join(images, nil), 0o644); err != nil {
				t.Fatal(err)
			}
			p := dumpPipeline()
			p.Source = plan.PipelineSource{Kind: "file", Path: clip, Format: "mjpeg"}
			code, out, stderr := runProgram(t, p)
			got, sum := numbers(t, out)
			if code != 1 || !slices.Equal(got, want) || sum.Frames.Failed != 1 {
				t.Errorf("%s image %d: exit %d, results of frames %v, want %v, %+v, %s", name, at, code, got, want, sum.Frames, stderr)
			}
		}
	}
}
