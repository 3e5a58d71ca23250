package pipeline

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/jpeg"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/v4l2"
	"github.com/yoctune/yoctune/runtime/engine/v4l2/v4l2test"
	"github.com/yoctune/yoctune/schema/plan"
)

// records is a sink that keeps the mean of each tensor, which identifies the frame.
type records struct {
	values []float32
	total  []int64
	each   func(n int)
}

func (r *records) Write(rec *result.Record) error {
	r.values = append(r.values, rec.Results[0].Values[0])
	r.total = append(r.total, rec.Latency.Total)
	if r.each != nil {
		r.each(len(r.values))
	}
	return nil
}

func (*records) Close() error { return nil }

// cameraPlan is a pipeline without a model: frames of a camera become tensors that
// are written as they are.
func cameraPlan(format string) plan.Pipeline {
	return plan.Pipeline{
		Source: plan.PipelineSource{Kind: "v4l2", Path: "/dev/video0", Format: format, Width: 64, Height: 32, FPSNum: 30, FPSDen: 1, Live: true, Timeout: int64(50 * time.Millisecond)},
		Queue:  plan.PipelineQueue{Policy: "block"}, // a test counts every frame
		Stages: []plan.PipelineStage{
			{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 4, Height: 2, Fit: "stretch"}},
			{ID: "dump", Kind: "postprocess", Input: "pre", Post: &plan.Post{Kind: "raw"}},
		},
	}
}

func greyCamera() *v4l2test.Camera {
	return &v4l2test.Camera{Formats: []v4l2test.Format{{Pixels: "GREY", Width: 64, Height: 32, Size: 64 * 32}}}
}

func runCamera(t *testing.T, c *v4l2test.Camera, pl plan.Pipeline, frames uint64) (*Summary, *records, error) {
	t.Helper()
	seen := &records{}
	p, err := New(Options{Name: "cam", Plan: pl, Frames: frames, Sink: seen, system: c, GPU: core.Options{Backend: core.Strict}})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := p.Run(context.Background())
	if cerr := p.Close(); cerr != nil {
		t.Error(cerr)
	}
	if n := c.Mapped(); n != 0 {
		t.Errorf("%d buffers are still mapped", n)
	}
	if f := sum.Frames; f.Read != f.Done+f.Dropped+f.Failed {
		t.Errorf("unaccounted: %+v", f)
	}
	return sum, seen, err
}

func joinEvents(s *Summary) string {
	var all []string
	for _, e := range s.Events {
		all = append(all, e.Kind+": "+e.Why)
	}
	return strings.Join(all, "\n")
}

// If rows are not padded, the preprocess stage reads the driver's memory. Otherwise each frame
// is copied once.
func TestCameraFramesAreCopiedOnlyIfNecessary(t *testing.T) {
	for _, c := range []struct {
		name, format string
		camera       *v4l2test.Camera
		copies       uint64
	}{
		{"grey", "grey", &v4l2test.Camera{Formats: []v4l2test.Format{{Pixels: "GREY", Width: 64, Height: 32, Size: 2048}}}, 0},
		{"nv12", "nv12", &v4l2test.Camera{Formats: []v4l2test.Format{{Pixels: "NV12", Width: 64, Height: 32, Size: 3072}}}, 0},
		{"multi-planar", "nv12", &v4l2test.Camera{Multi: true, Formats: []v4l2test.Format{{Pixels: "NV12", Width: 64, Height: 32, Size: 3072}}}, 0},
		{"planes apart", "nv12", &v4l2test.Camera{Multi: true, Formats: []v4l2test.Format{{Pixels: "NM12", Width: 64, Height: 32, Memories: 2, Size: 4096}}}, 20},
		{"padded rows", "yuyv", &v4l2test.Camera{Formats: []v4l2test.Format{{Pixels: "YUYV", Width: 64, Height: 32, Pitch: 192, Size: 192 * 32}}}, 20},
		{"planar, padded rows", "i420", &v4l2test.Camera{Formats: []v4l2test.Format{{Pixels: "YU12", Width: 64, Height: 32, Pitch: 96, Size: 96 * 48}}}, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.camera.Fill = func(n, _ int, b []byte) {
				for i := range b {
					b[i] = byte(100 + 2*n)
				}
			}
			sum, seen, err := runCamera(t, c.camera, cameraPlan(c.format), 20)
			if err != nil {
				t.Fatal(err)
			}
			if sum.Frames.Done != 20 || sum.Copies[copyRead] != c.copies {
				t.Errorf("%+v, copies %v, %s", sum.Frames, sum.Copies, joinEvents(sum))
			}
			if seen.values[19] == seen.values[0] {
				t.Errorf("frames are all the same: %v", seen.values)
			}
		})
	}
}

// The driver captures into the memory that the GPU's process reads, if it can use the memory of programs.
// Otherwise each frame is copied once, and an event has the reason.
func TestCameraFramesReachTheGPUWithoutACopy(t *testing.T) {
	nv12 := v4l2test.Format{Pixels: "NV12", Width: 64, Height: 32, Size: 3072}
	for _, c := range []struct {
		name   string
		camera *v4l2test.Camera
		copies uint64
		event  string
	}{
		{"into the program's memory", &v4l2test.Camera{Foreign: 1 << 20, Formats: []v4l2test.Format{nv12}}, 0, ""},
		{"multi-planar", &v4l2test.Camera{Foreign: 1 << 20, Multi: true, Formats: []v4l2test.Format{nv12}}, 0, ""},
		{"only the driver's", &v4l2test.Camera{Formats: []v4l2test.Format{nv12}}, 20, "does not capture into the memory of programs"},
		{"memory in one piece", &v4l2test.Camera{Foreign: 16, Formats: []v4l2test.Format{nv12}}, 20, "bad address"},
		{"planes apart", &v4l2test.Camera{Foreign: 1 << 20, Multi: true, Formats: []v4l2test.Format{{Pixels: "NM12", Width: 64, Height: 32, Memories: 2, Size: 4096}}}, 20, ""},
		{"padded rows", &v4l2test.Camera{Foreign: 1 << 20, Formats: []v4l2test.Format{{Pixels: "NV12", Width: 64, Height: 32, Pitch: 96, Size: 96 * 48}}}, 20, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			pl := cameraPlan("nv12")
			pl.Stages[0].Device = "gpu"
			c.camera.Fill = func(n, _ int, b []byte) {
				for i := range b {
					b[i] = byte(100 + 2*n)
				}
			}
			sum, seen, err := runCamera(t, c.camera, pl, 20)
			if err != nil {
				t.Fatal(err)
			}
			if events := joinEvents(sum); sum.Frames.Done != 20 || sum.Copies[copyRead] != c.copies || sum.Fallbacks["pre"] != 0 || !strings.Contains(events, c.event) {
				t.Errorf("%+v, copies %v, fallbacks %v, %s", sum.Frames, sum.Copies, sum.Fallbacks, events)
			}
			for n := range seen.values[1:] {
				if !(seen.values[n+1] > seen.values[n]) {
					t.Fatalf("frame %d is not brighter than the one before: %v", n+1, seen.values)
				}
			}
		})
	}
	// The memory is used again only when no frame of the time before is in work.
	cam := &v4l2test.Camera{Foreign: 1 << 20, Formats: []v4l2test.Format{nv12}, Absent: 1, Script: func(_, n int) v4l2test.Fault {
		if n == 10 {
			return v4l2test.Gone
		}
		return v4l2test.None
	}}
	pl := cameraPlan("nv12")
	pl.Stages[0].Device = "gpu"
	if sum, _, err := runCamera(t, cam, pl, 30); err != nil || sum.Frames.Done != 30 || sum.Copies[copyRead] != 0 || !strings.Contains(joinEvents(sum), "is back after") {
		t.Errorf("%v, %+v, %s", err, sum.Frames, joinEvents(sum))
	}
}

// Every pixel arrives at its place with any row padding of the driver.
func TestPaddedRowsArePacked(t *testing.T) {
	pl := cameraPlan("grey")
	pl.Source.Height = 16
	pl.Stages[0].Preprocess.Width, pl.Stages[0].Preprocess.Height = 64, 16
	for _, pitch := range []int{64, 100} {
		cam := &v4l2test.Camera{
			Formats: []v4l2test.Format{{Pixels: "GREY", Width: 64, Height: 16, Pitch: pitch, Size: pitch * 16}},
			Fill: func(_, _ int, b []byte) {
				for i := range b {
					b[i] = 0xff // the padding between rows
					if x, y := i%pitch, i/pitch; x < 64 {
						b[i] = byte(x + 2*y)
					}
				}
			},
		}
		var got []float32
		p, err := New(Options{Name: "cam", Plan: pl, Frames: 1, system: cam, Sink: sinkFunc(func(r *result.Record) error {
			got = append(got, r.Results[0].Values...)
			return nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Run(context.Background())
		if err = errors.Join(err, p.Close()); err != nil {
			t.Fatal(err)
		}
		for y := range 16 {
			for x := range 64 {
				if v := got[y*64+x] * 255; v < float32(x+2*y)-0.01 || v > float32(x+2*y)+0.01 {
					t.Fatalf("pitch %d: pixel %d,%d is %v", pitch, x, y, v)
				}
			}
		}
	}
}

// The camera is unplugged during the run and absent for two attempts. The run continues and
// reports the length of the gap.
func TestAnUnpluggedCameraIsReopenedByItsPort(t *testing.T) {
	cam := greyCamera()
	cam.Absent = 2
	cam.Script = func(_, n int) v4l2test.Fault {
		if n == 10 {
			return v4l2test.Gone
		}
		return v4l2test.None
	}
	sum, _, err := runCamera(t, cam, cameraPlan("grey"), 30)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Frames.Done != 30 {
		t.Errorf("%+v", sum.Frames)
	}
	events := joinEvents(sum)
	for _, s := range []string{"the camera is gone", "reopening it", "is back after"} {
		if !strings.Contains(events, s) {
			t.Errorf("no %q in %s", s, events)
		}
	}
	paths := cam.Opened()
	if len(paths) != 4 || paths[0] != "/dev/video0" || paths[3] != "/dev/v4l/by-path/platform-test-video-index0" {
		t.Errorf("opened %v", paths)
	}
}

// A camera that hangs reports no error; it is detected by its timeout.
func TestAStalledCameraIsReopened(t *testing.T) {
	cam := greyCamera()
	cam.Script = func(stream, n int) v4l2test.Fault {
		if n == 5 && stream == 0 {
			return v4l2test.Stall
		}
		return v4l2test.None
	}
	sum, _, err := runCamera(t, cam, cameraPlan("grey"), 20)
	if err != nil {
		t.Fatal(err)
	}
	if events := joinEvents(sum); sum.Frames.Done != 20 || !strings.Contains(events, "the camera delivers no frames within 50ms") {
		t.Errorf("%+v %s", sum.Frames, events)
	}
}

// An HDMI input continues after its source was off for a while.
func TestACameraWaitsForALostSignal(t *testing.T) {
	cam := greyCamera()
	cam.HDMI = &v4l2test.HDMI{Lost: 2}
	cam.Script = changesAt(10)
	sum, _, err := runCamera(t, cam, cameraPlan("grey"), 30)
	if err != nil {
		t.Fatal(err)
	}
	events := joinEvents(sum)
	if sum.Frames.Done != 30 || strings.Count(events, "nothing is connected to Test Camera, or it is off") != 1 ||
		!strings.Contains(events, "the signal of the input has changed") || !strings.Contains(events, "is back after") {
		t.Errorf("%+v\n%s", sum.Frames, events)
	}
}

func changesAt(frame int) func(_, n int) v4l2test.Fault {
	return func(_, n int) v4l2test.Fault {
		if n == frame {
			return v4l2test.Changed
		}
		return v4l2test.None
	}
}

// The tensors do not fit a signal of another size. Earlier frames are kept, and the error
// describes what to do.
func TestASignalOfAnotherSizeEndsTheRun(t *testing.T) {
	cam := greyCamera()
	cam.HDMI = &v4l2test.HDMI{Then: []v4l2test.Format{{Pixels: "GREY", Width: 128, Height: 64, Size: 128 * 64}}}
	cam.Script = changesAt(10)
	sum, _, err := runCamera(t, cam, cameraPlan("grey"), 30)
	if !errors.Is(err, frame.ErrFormat) || !strings.Contains(err.Error(), "now delivers frames of 128x64, not 64x32") || !strings.Contains(err.Error(), "restart it") {
		t.Errorf("%v", err)
	}
	if sum.Frames.Done != 10 || sum.Ended != reasonError {
		t.Errorf("%+v %s", sum.Frames, sum.Ended)
	}
}

func TestACameraIsNotReopenedIfThePlanForbidsIt(t *testing.T) {
	cam := greyCamera()
	cam.Script = func(_, n int) v4l2test.Fault {
		if n == 5 {
			return v4l2test.Gone
		}
		return v4l2test.None
	}
	pl := cameraPlan("grey")
	pl.Source.Restart = "never"
	sum, _, err := runCamera(t, cam, pl, 20)
	if !errors.Is(err, v4l2.ErrGone) || sum.Frames.Done != 5 || sum.Ended != reasonError {
		t.Errorf("%+v %s: %v", sum.Frames, sum.Ended, err)
	}
}

// A damaged frame fails alone, and frames that the driver lost are counted.
func TestDamagedAndLostFramesAreCounted(t *testing.T) {
	cam := greyCamera()
	cam.Script = func(_, n int) v4l2test.Fault {
		return map[int]v4l2test.Fault{3: v4l2test.Flagged, 5: v4l2test.Short, 7: v4l2test.EIO, 9: v4l2test.Skip, 12: v4l2test.Skip}[n]
	}
	sum, _, err := runCamera(t, cam, cameraPlan("grey"), 30)
	if !errors.Is(err, ErrFrames) {
		t.Errorf("%v", err)
	}
	if f := sum.Frames; f.Read != 30 || f.Failed != 3 || sum.Failures[idSource] != 3 || sum.Drops[reasonLost] != 4 || f.Done != 23 {
		t.Errorf("%+v %v %v", f, sum.Drops, sum.Failures)
	}
}

// Latency must remain what a user would observe.
func TestImplausibleTimestampsAreIgnored(t *testing.T) {
	for fault, wantText := range map[v4l2test.Fault]string{
		v4l2test.Future:  "in the future: timestamps are ignored, and latency counts from the arrival of frames",
		v4l2test.NoClock: "does not stamp frames with the monotonic clock: timestamps are ignored, and latency counts from the arrival of frames",
	} {
		cam := greyCamera()
		cam.Script = func(_, n int) v4l2test.Fault {
			if n >= 5 {
				return fault
			}
			return v4l2test.None
		}
		sum, seen, err := runCamera(t, cam, cameraPlan("grey"), 20)
		if err != nil {
			t.Fatal(err)
		}
		if events := joinEvents(sum); strings.Count(events, wantText) != 1 {
			t.Errorf("%s", events)
		}
		for n, ns := range seen.total {
			if ns < 0 || ns > int64(time.Minute) {
				t.Errorf("frame %d took %v", n, time.Duration(ns))
			}
		}
	}
}

func TestAdjustedCameraFormatsAreReported(t *testing.T) {
	cam := &v4l2test.Camera{Num: 15, Formats: []v4l2test.Format{{Pixels: "GREY", Width: 32, Height: 16, Size: 512}}}
	sum, _, err := runCamera(t, cam, cameraPlan("grey"), 3)
	if err != nil {
		t.Fatal(err)
	}
	events := joinEvents(sum)
	if !strings.Contains(events, "requested frames of 64x32, Test Camera delivers 32x16; it offers 32x16") ||
		!strings.Contains(events, "requested 30 frames per second, Test Camera delivers 15") {
		t.Error(events)
	}
}

// With the default policy of a live camera, a slow sink drops frames but results stay fresh.
func TestALiveCameraDropsTheOldest(t *testing.T) {
	cam := greyCamera()
	pl := cameraPlan("grey")
	pl.Queue = plan.PipelineQueue{}
	p, err := New(Options{Name: "cam", Plan: pl, Frames: 5000, system: cam, Sink: &records{each: func(n int) {
		if n < 20 {
			time.Sleep(time.Millisecond) // it is slow
		}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := p.Run(context.Background())
	if err = errors.Join(err, p.Close()); err != nil {
		t.Fatal(err)
	}
	if sum.Frames.Done == 0 || sum.Frames.Done == 5000 {
		t.Errorf("%+v", sum.Frames)
	}
}

func TestAStopEndsTheWaitForACamera(t *testing.T) {
	for _, fault := range []v4l2test.Fault{v4l2test.Stall, v4l2test.Gone} {
		cam := greyCamera()
		cam.Absent = 1 << 30
		cam.Script = func(_, n int) v4l2test.Fault {
			if n >= 3 {
				return fault
			}
			return v4l2test.None
		}
		pl := cameraPlan("grey")
		pl.Source.Timeout = int64(time.Hour)
		ctx, cancel := context.WithCancel(context.Background())
		p, err := New(Options{Name: "cam", Plan: pl, system: cam, Sink: &records{each: func(n int) {
			if n == 3 {
				cancel()
			}
		}}})
		if err != nil {
			t.Fatal(err)
		}
		sum, err := p.Run(ctx)
		if err = errors.Join(err, p.Close()); err != nil || sum.Ended != reasonStopped {
			t.Errorf("fault %d: %s %v", fault, sum.Ended, err)
		}
	}
}

// Most webcams deliver Motion JPEG at full size. A damaged image fails alone.
func TestACameraOfMotionJPEGIsDecoded(t *testing.T) {
	_, err := jpeg.Open("")
	needs(t, err)
	clip, err := os.ReadFile("../jpeg/testdata/labels422.avi")
	if err != nil {
		t.Fatal(err)
	}
	m, err := jpeg.NewMotion(bytes.NewReader(clip))
	if err != nil {
		t.Fatal(err)
	}
	image, err := m.Next()
	if err != nil {
		t.Fatal(err)
	}
	cam := &v4l2test.Camera{
		Formats: []v4l2test.Format{{Pixels: "MJPG", Width: 192, Height: 48, Size: 1 << 16}},
		Fill: func(n, _ int, b []byte) {
			clear(b)
			copy(b, image)
			switch n {
			case 4:
				clear(b[len(image)/2:])
			case 6: // a table with a number that does not exist
				b[bytes.Index(image, []byte{0xff, 0xdb})+4] = 0x7f
			}
		},
	}
	pl := cameraPlan("mjpeg")
	pl.Source.Width, pl.Source.Height = 192, 48
	sum, _, err := runCamera(t, cam, pl, 10)
	if !errors.Is(err, ErrFrames) || sum.Frames.Done != 8 || sum.Failures[idSource] != 2 || sum.Copies[copyRead] != 0 {
		t.Errorf("%+v %v %v", sum.Frames, sum.Copies, err)
	}
}
