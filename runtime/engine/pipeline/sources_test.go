package pipeline

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/jpeg"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/ring"
	"github.com/yoctune/yoctune/schema/plan"
)

// needs skips a test whose outside program or library is absent, unless everything
// has to be there.
func needs(t *testing.T, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("YOCTUNE_REQUIRE_SOURCES") != "":
		t.Fatal(err)
	default:
		t.Skipf("%v: this source is not tested here", err)
	}
}

// dump is a pipeline that writes its tensors.
func dump(s plan.PipelineSource) plan.Pipeline {
	p := cameraPlan("grey")
	p.Source = s
	return p
}

func runDump(t *testing.T, pl plan.Pipeline, frames uint64) (*Summary, *records, error) {
	t.Helper()
	seen := &records{}
	p, err := New(Options{Name: "dump", Plan: pl, Frames: frames, Sink: seen})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := p.Run(context.Background())
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if f := sum.Frames; f.Read != f.Done+f.Dropped+f.Failed {
		t.Errorf("unaccounted: %+v", f)
	}
	return sum, seen, err
}

// A frame is decoded no larger than the largest tensor of any level needs, if sizes and crops
// remain whole.
func TestFramesAreDecodedAtTheSizeThatTensorsNeed(t *testing.T) {
	to := func(w, h int, fit string, crop *plan.Crop) plan.Pipeline {
		return plan.Pipeline{Stages: []plan.PipelineStage{{ID: "pre", Kind: "preprocess", Preprocess: &plan.Preprocess{Width: w, Height: h, Fit: fit, Crop: crop}}}}
	}
	ladder := to(640, 640, "letterbox", nil)
	ladder.Source.Live, ladder.Degrade = true, &plan.PipelineDegrade{Ladder: []plan.DegradeStep{{Sizes: []plan.StageSize{{Stage: "pre", Width: 320, Height: 320}}}}}
	own := plan.Pipeline{Stages: []plan.PipelineStage{{ID: "own", Kind: "custom", Custom: &plan.Custom{}}}}
	for _, c := range []struct {
		name          string
		p             plan.Pipeline
		width, height int
		want          int
	}{
		{"nothing to spare", to(1920, 1080, "stretch", nil), 1920, 1080, 1},
		{"not quite half", to(961, 540, "stretch", nil), 1920, 1080, 1},
		{"a third", to(640, 640, "letterbox", nil), 1920, 1080, 2},
		{"one side is nearly whole", to(640, 1080, "stretch", nil), 1920, 1080, 1},
		{"an eighth", to(224, 128, "stretch", nil), 1920, 1080, 8},
		{"an eighth that does not come out even", to(10, 10, "stretch", nil), 1284, 724, 4},
		{"an odd size", to(10, 10, "stretch", nil), 1281, 721, 1},
		{"a crop", to(100, 100, "stretch", &plan.Crop{X: 8, Y: 8, Width: 400, Height: 400}), 1920, 1080, 4},
		{"a crop at odd pixels", to(100, 100, "stretch", &plan.Crop{X: 9, Y: 8, Width: 400, Height: 400}), 1920, 1080, 1},
		{"the larger level decides", ladder, 1920, 1080, 2},
		{"a stage that takes frames", own, 1920, 1080, 1},
		{"no stage", plan.Pipeline{}, 1920, 1080, 1},
		{"a crop outside", to(10, 10, "stretch", &plan.Crop{Width: 4000, Height: 10}), 1920, 1080, 1},
	} {
		if got := shrinkFor(c.p, c.width, c.height); got != c.want {
			t.Errorf("%s: %d, not %d", c.name, got, c.want)
		}
	}
}

// One or several decoders deliver the same frames in the same order.
func TestMotionJPEGIsDecodedAheadInOrder(t *testing.T) {
	_, err := jpeg.Open("")
	needs(t, err)
	long := filepath.Join(t.TempDir(), "long.mjpeg")
	clip, err := os.ReadFile("../jpeg/testdata/labels444.mjpeg")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(long, bytes.Repeat(clip, 10), 0o600); err != nil {
		t.Fatal(err)
	}
	var want []float32
	for _, decoders := range []int{0, 1, 4} {
		sum, seen, err := runDump(t, dump(plan.PipelineSource{Kind: "file", Path: long, Format: "mjpeg", FPSNum: 30, Decoders: decoders}), 0)
		if err != nil {
			t.Fatal(err)
		}
		if sum.Frames.Done != 30 || sum.Copies[copyRead] != 0 {
			t.Errorf("%d decoders: %+v, copies %v", decoders, sum.Frames, sum.Copies)
		}
		if want == nil {
			want = seen.values
		}
		if !slices.Equal(seen.values, want) {
			t.Errorf("%d decoders see %v, one sees %v", decoders, seen.values, want)
		}
	}
	sum, _, err := runDump(t, dump(plan.PipelineSource{Kind: "file", Path: "../jpeg/testdata/labels422.avi", Format: "mjpeg"}), 0)
	if err != nil || sum.Frames.Done != 3 {
		t.Errorf("AVI: %+v %v", sum.Frames, err)
	}
}

// A damaged frame fails alone. A file that ends inside a frame ends the run; earlier frames
// are kept.
func TestDamagedVideoLosesOnlyDamagedFrames(t *testing.T) {
	_, err := jpeg.Open("")
	needs(t, err)
	clip, err := os.ReadFile("../jpeg/testdata/labels444.mjpeg")
	if err != nil {
		t.Fatal(err)
	}
	m, err := jpeg.NewMotion(bytes.NewReader(clip))
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for f, err := m.Next(); !errors.Is(err, io.EOF); f, err = m.Next() {
		all = append(all, bytes.Clone(f))
	}
	bad := bytes.Clone(all[1])
	for i := len(bad) / 2; i < len(bad)/2+60; i++ {
		bad[i] ^= 0x5a
	}
	file := filepath.Join(t.TempDir(), "bad.mjpeg")
	write := func(parts ...[]byte) {
		if err := os.WriteFile(file, bytes.Join(parts, nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src := plan.PipelineSource{Kind: "file", Path: file, Format: "mjpeg", FPSNum: 30, Decoders: 2}
	write(all[0], bad, all[1][:len(all[1])/3], all[2])
	sum, _, err := runDump(t, dump(src), 0)
	if !errors.Is(err, ErrFrames) || sum.Frames.Done != 2 || sum.Failures[idSource] != 2 || sum.Ended != reasonEnd {
		t.Errorf("damaged: %+v %s %v", sum.Frames, sum.Ended, err)
	}
	write(all[0], all[1][:len(all[1])/3])
	sum, _, err = runDump(t, dump(src), 0)
	if !errors.Is(err, frame.ErrTruncated) || sum.Frames.Done != 1 {
		t.Errorf("truncated: %+v %v", sum.Frames, err)
	}
}

// A program that exits or hangs is restarted, and the event has the reason.
func TestALiveProgramIsRestarted(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	frame := strings.Repeat("a", 64*32)
	for name, c := range map[string]struct {
		script, wantText string
		timeout          time.Duration
	}{
		"ends":  {"printf " + frame + frame + "; echo no signal >&2; exit 3", "no signal; restarting it", 30 * time.Second},
		"hangs": {"if [ -e " + mark + " ]; then while :; do printf " + frame + "; done; fi; : >" + mark + "; printf " + frame + "; exec sleep 1000", "no frame for 200ms; restarting it", 200 * time.Millisecond},
	} {
		src := plan.PipelineSource{
			Kind: "command", Exec: []string{"sh", "-c", c.script}, Format: "grey", Width: 64, Height: 32, FPSNum: 30, Live: true,
			Timeout: int64(c.timeout),
		}
		sum, _, err := runDump(t, dump(src), 6)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if events := joinEvents(sum); sum.Frames.Done != 6 || !strings.Contains(events, c.wantText) {
			t.Errorf("%s: %+v %s", name, sum.Frames, events)
		}
	}
}

func TestAProgramIsNotRestartedIfThePlanForbidsIt(t *testing.T) {
	frame := strings.Repeat("a", 64*32)
	src := plan.PipelineSource{Kind: "command", Format: "grey", Width: 64, Height: 32, FPSNum: 30, Live: true}
	for _, c := range []struct {
		restart, script string
		fails           bool
	}{
		{"never", "printf " + frame, false},
		{"never", "printf " + frame + "; exit 3", true},
		{"on-failure", "printf " + frame, false},
	} {
		src.Restart, src.Exec = c.restart, []string{"sh", "-c", c.script}
		sum, _, err := runDump(t, dump(src), 0)
		if (err != nil) != c.fails || sum.Frames.Done != 1 {
			t.Errorf("%s, %s: %+v %v", c.restart, c.script[2048:], sum.Frames, err)
		}
	}
}

func TestAStopEndsTheWaitForAProgram(t *testing.T) {
	frame := strings.Repeat("a", 64*32)
	src := plan.PipelineSource{
		Kind: "command", Exec: []string{"sh", "-c", "printf " + frame + "; exec sleep 1000"}, Format: "grey", Width: 64, Height: 32, FPSNum: 30, Live: true,
		Timeout: int64(time.Hour),
	}
	ctx, cancel := context.WithCancel(context.Background())
	p, err := New(Options{Name: "dump", Plan: dump(src), Sink: &records{each: func(int) { cancel() }}})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := p.Run(ctx)
	if err = errors.Join(err, p.Close()); err != nil || sum.Ended != reasonStopped {
		t.Errorf("%s %v", sum.Ended, err)
	}
}

// GStreamer runs without a shell.
func TestGStreamerIsASource(t *testing.T) {
	_, err := exec.LookPath("gst-launch-1.0")
	needs(t, err)
	for _, c := range []struct{ format, caps string }{{"nv12", "NV12"}, {"yuyv", "YUY2"}, {"grey", "GRAY8"}} {
		src := plan.PipelineSource{
			Kind: "command", Format: c.format, Width: 64, Height: 32, FPSNum: 30,
			Exec: strings.Fields("gst-launch-1.0 -q videotestsrc pattern=white num-buffers=5 ! video/x-raw,format=" + c.caps + ",width=64,height=32 ! fdsink"),
		}
		sum, seen, err := runDump(t, dump(src), 0)
		if err != nil {
			t.Fatal(err)
		}
		if sum.Frames.Done != 5 || seen.values[0] < 0.9 {
			t.Errorf("%s: %+v, white is %v", c.format, sum.Frames, seen.values)
		}
	}
}

// newRingWriter is another program's half of a ring of frames.
func newRingWriter(t *testing.T, path string, slots, size int) *ring.Writer {
	t.Helper()
	w, err := ring.Create(path, slots, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// Overwritten frames are counted, and the ring of a restarted writer is opened.
func TestARingInSharedMemoryIsASource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "frames")
	w := newRingWriter(t, path, 4, 64*32)
	src := plan.PipelineSource{Kind: "shm", Path: path, Format: "grey", Width: 64, Height: 32, FPSNum: 30, Live: true, Timeout: int64(20 * time.Millisecond)}
	filled := func(v byte) []byte { return bytes.Repeat([]byte{v}, 64*32) }
	seen := &records{}
	seen.each = func(n int) {
		if n != 4 {
			return
		}
		w := newRingWriter(t, path, 4, 64*32)
		var writing sync.WaitGroup
		t.Cleanup(writing.Wait) // before the ring goes
		writing.Go(func() {
			// The source begins with what comes after it looked.
			for v := byte(100); t.Context().Err() == nil; v++ {
				_ = w.Put(filled(v))
				time.Sleep(time.Millisecond)
			}
		})
	}
	p, err := New(Options{Name: "ring", Plan: dump(src), Frames: 12, Sink: seen})
	if err != nil {
		t.Fatal(err)
	}
	for v := byte(1); v <= 8; v++ { // into 4 slots: the first 4 are overwritten
		_ = w.Put(filled(v))
	}
	sum, err := p.Run(context.Background())
	if err = errors.Join(err, p.Close()); err != nil {
		t.Fatal(err)
	}
	if sum.Drops[reasonLost] < 4 || sum.Frames.Done+sum.Drops[reasonLost] != 12 || !strings.Contains(joinEvents(sum), "reopening it") {
		t.Errorf("%+v %v %s", sum.Frames, sum.Drops, joinEvents(sum))
	}
	if _, err := New(Options{Name: "ring", Plan: dump(plan.PipelineSource{Kind: "shm", Path: path, Format: "rgb", Width: 64, Height: 32, FPSNum: 30}), Sink: seen}); !errors.Is(err, frame.ErrFormat) {
		t.Errorf("slots that are too small: %v", err)
	}
}

// A ring may hold records of numbers, of which each is one tensor.
func TestARingGivesTensors(t *testing.T) {
	for dtype, bytes := range map[string][]byte{
		"i32": {0xfd, 0xff, 0xff, 0xff, 7, 0, 0, 0}, // -3, 7
		"i64": {0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 7, 0, 0, 0, 0, 0, 0, 0},
		"i8":  {0xfd, 7}, "f16": {0x00, 0xc2, 0x00, 0x47}, "bf16": {0x40, 0xc0, 0xe0, 0x40},
	} {
		path := filepath.Join(t.TempDir(), "records")
		w := newRingWriter(t, path, 4, len(bytes))
		var lines []string
		p, err := New(Options{Name: "ring", Frames: 3, Plan: plan.Pipeline{
			Source: plan.PipelineSource{Kind: "shm", Path: path, Format: "tensor", DType: dtype, Shape: []int64{1, 2}, FPSNum: 30, Live: true},
			Stages: []plan.PipelineStage{{ID: "out", Kind: "postprocess", Input: "source", Post: &plan.Post{Kind: "raw"}}},
		}, Sink: sinkFunc(func(r *result.Record) error {
			lines = append(lines, string(result.AppendResults(nil, r.Results)))
			return nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := w.Put(bytes); err != nil {
				t.Fatal(err)
			}
		}
		_, err = p.Run(context.Background())
		if err = errors.Join(err, p.Close()); err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			if l != `{"shape":[1,2],"values":[-3,7]}` {
				t.Errorf("%s: %s", dtype, l)
			}
		}
		if len(lines) == 0 {
			t.Errorf("%s: no record", dtype)
		}
	}
}

func TestInvalidSourcesAreRefused(t *testing.T) {
	for _, c := range []struct {
		name     string
		s        plan.PipelineSource
		wantText string
	}{
		{"restart", plan.PipelineSource{Kind: "synthetic", Restart: "perhaps"}, `restart "perhaps"`},
		{"timeout", plan.PipelineSource{Kind: "synthetic", Timeout: -1}, "timeout of -1ns"},
		{"a camera of y4m", plan.PipelineSource{Kind: "v4l2", Path: "/dev/video0", Format: "y4m"}, "does not support format y4m"},
		{"a ring of JPEG", plan.PipelineSource{Kind: "shm", Path: "/dev/shm/x", Format: "mjpeg"}, "does not support format mjpeg"},
		{"decoders", plan.PipelineSource{Kind: "file", Path: "../jpeg/testdata/labels422.avi", Format: "mjpeg", Decoders: 99}, "1 to 16"},
		{"not JPEG", plan.PipelineSource{Kind: "file", Path: "sources_test.go", Format: "mjpeg"}, "neither an AVI file nor a JPEG"},
	} {
		if c.s.Format == "mjpeg" && c.s.Kind == "file" {
			if _, err := jpeg.Open(""); err != nil {
				continue
			}
		}
		_, err := New(Options{Name: "bad", Plan: dump(c.s), Sink: &records{}})
		if err == nil || !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
