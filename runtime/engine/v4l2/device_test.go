package v4l2_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/v4l2"
	"github.com/yoctune/yoctune/runtime/engine/v4l2/v4l2test"
)

// long is for waits that end by themselves in a test that passes.
const long = 30 * time.Second

func newNV12Format(width, height, pitch, memories int) v4l2test.Format {
	f := v4l2test.Format{Pixels: "NV12", Width: width, Height: height, Pitch: pitch, Memories: memories}
	if memories > 1 {
		f.Pixels = "NM12"
	}
	f.Size = max(pitch, width) * height * 3 / 2
	if memories > 1 {
		f.Size = 2 * max(pitch, width) * height
	}
	return f
}

func newWant(width, height int) v4l2.Want {
	return v4l2.Want{Formats: []v4l2.FourCC{v4l2.NV12, v4l2.NV12M}, Width: width, Height: height, Num: 30, Den: 1}
}

func open(t *testing.T, c *v4l2test.Camera, w v4l2.Want) *v4l2.Device {
	t.Helper()
	d, err := v4l2.Open(c, "/dev/video9", w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if n := c.Mapped(); n != 0 {
			t.Errorf("%d buffers are still mapped", n)
		}
	})
	return d
}

func startCamera(t *testing.T, c *v4l2test.Camera) *v4l2.Device {
	t.Helper()
	d := open(t, c, newWant(64, 32))
	if err := errors.Join(d.Allocate(4), d.Start()); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestFramesComeInOrderWithTheirPlanes(t *testing.T) {
	for _, c := range []struct {
		name  string
		multi bool
		f     v4l2test.Format
	}{
		{"one memory", false, newNV12Format(64, 32, 0, 1)},
		{"padded rows", false, newNV12Format(64, 32, 80, 1)},
		{"multi-planar, one memory", true, newNV12Format(64, 32, 0, 1)},
		{"multi-planar, two memories", true, newNV12Format(64, 32, 128, 2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := startCamera(t, &v4l2test.Camera{Multi: c.multi, Formats: []v4l2test.Format{c.f}})
			format := d.Format()
			if len(format.Adjusted) > 0 || format.Num != 30 || format.Den != 1 {
				t.Errorf("%+v", format)
			}
			for n := range 10 {
				f, err := d.Next(long)
				if err != nil {
					t.Fatal(err)
				}
				planes, pitch, err := format.Image(&f)
				if err != nil {
					t.Fatal(err)
				}
				wide := max(c.f.Pitch, 64)
				if pitch != [3]int{wide, wide} || len(planes[0]) != wide*31+64 || len(planes[1]) != wide*15+64 {
					t.Errorf("pitch %v, planes of %d and %d bytes", pitch, len(planes[0]), len(planes[1]))
				}
				for _, p := range planes[:2] {
					if p[0] != byte(n) || p[len(p)-1] != byte(n) {
						t.Errorf("frame %d has %d", n, p[0])
					}
				}
				if f.Captured == 0 || f.Lost != 0 || int(f.Sequence) != n {
					t.Errorf("%d: %+v", n, f)
				}
				if err := d.Queue(f.Index); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Next and Queue are on the path of every frame.
func TestAFrameAllocatesNothing(t *testing.T) {
	d := startCamera(t, &v4l2test.Camera{Formats: []v4l2test.Format{newNV12Format(64, 32, 0, 1)}})
	if n := testing.AllocsPerRun(100, func() {
		f, err := d.Next(long)
		if err == nil {
			err = d.Queue(f.Index)
		}
		if err != nil {
			t.Fatal(err)
		}
	}); n > 2 { // the camera's own: what it polls and its list of buffers
		t.Errorf("%.0f allocations", n)
	}
}

func TestAdjustmentsOfTheDriverAreReported(t *testing.T) {
	c := &v4l2test.Camera{Num: 15, Formats: []v4l2test.Format{newNV12Format(320, 240, 0, 1), newNV12Format(640, 480, 0, 1)}}
	d := open(t, c, newWant(1920, 1080))
	f := d.Format()
	adjusted := strings.Join(f.Adjusted, "\n")
	for _, s := range []string{"requested frames of 1920x1080, Test Camera delivers 640x480; it offers 320x240, 640x480", "requested 30 frames per second, Test Camera delivers 15"} {
		if !strings.Contains(adjusted, s) {
			t.Errorf("no %q in %q", s, adjusted)
		}
	}
	if f.Width != 640 || f.Height != 480 || f.Num != 15 {
		t.Errorf("%+v", f)
	}
}

func TestAnUnsupportedFormatIsReportedWithTheOfferedOnes(t *testing.T) {
	c := &v4l2test.Camera{Formats: []v4l2test.Format{{Pixels: "YUYV", Width: 64, Height: 32, Pitch: 128, Size: 4096}, {Pixels: "MJPG", Width: 64, Height: 32, Size: 4096}}}
	_, err := v4l2.Open(c, "/dev/video9", newWant(64, 32))
	if !errors.Is(err, v4l2.ErrFormat) || !strings.Contains(err.Error(), "NV12, NM12; Test Camera offers YUYV, MJPG") {
		t.Errorf("%v", err)
	}
}

// A driver that reports less memory than its frames need is refused.
func TestInconsistentDriversAreRefused(t *testing.T) {
	for name, f := range map[string]v4l2test.Format{
		"memory too small": {Pixels: "NV12", Width: 64, Height: 32, Size: 64*32*3/2 - 1},
		"rows too short":   {Pixels: "NV12", Width: 64, Height: 32, Pitch: 63, Size: 1 << 20},
		"no size":          {Pixels: "NV12", Width: 0, Height: 32, Size: 1 << 20},
	} {
		if _, err := v4l2.Open(&v4l2test.Camera{Formats: []v4l2test.Format{f}}, "/dev/video9", newWant(64, 32)); !errors.Is(err, v4l2.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFailuresAreReportedAndTemporaryOnesSurvived(t *testing.T) {
	for _, c := range []struct {
		fault v4l2test.Fault
		want  error
		goes  bool // on, with the next frame
	}{
		{v4l2test.EIO, v4l2.ErrFrame, true},
		{v4l2test.Flagged, v4l2.ErrFrame, true},
		{v4l2test.Short, v4l2.ErrFrame, true},
		{v4l2test.Stall, v4l2.ErrStalled, false},
		{v4l2test.Gone, v4l2.ErrGone, false},
	} {
		d := startCamera(t, &v4l2test.Camera{Formats: []v4l2test.Format{newNV12Format(64, 32, 0, 1)}, Script: func(_, n int) v4l2test.Fault {
			if n == 3 {
				return c.fault
			}
			return v4l2test.None
		}})
		for n := range 5 {
			wait := long
			if c.fault == v4l2test.Stall && n == 3 {
				wait = 10 * time.Millisecond
			}
			f, err := d.Next(wait)
			if n == 3 {
				if !errors.Is(err, c.want) {
					t.Errorf("fault %d: %v", c.fault, err)
				}
				if !c.goes {
					break
				}
				continue
			}
			if err != nil {
				t.Fatalf("fault %d, frame %d: %v", c.fault, n, err)
			}
			if err := d.Queue(f.Index); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestConsecutiveInputErrorsMeanThatTheCameraIsGone(t *testing.T) {
	d := startCamera(t, &v4l2test.Camera{Formats: []v4l2test.Format{newNV12Format(64, 32, 0, 1)}, Script: func(_, _ int) v4l2test.Fault { return v4l2test.EIO }})
	var errs []error
	for range 3 {
		_, err := d.Next(long)
		errs = append(errs, err)
	}
	if !errors.Is(errs[0], v4l2.ErrFrame) || !errors.Is(errs[2], v4l2.ErrGone) || !errors.Is(errs[2], unix.EIO) {
		t.Errorf("%v", errs)
	}
}

func TestDroppedFramesAreCounted(t *testing.T) {
	d := startCamera(t, &v4l2test.Camera{Formats: []v4l2test.Format{newNV12Format(64, 32, 0, 1)}, Script: func(_, n int) v4l2test.Fault {
		if n == 0 || n == 2 {
			return v4l2test.Skip
		}
		return v4l2test.None
	}})
	var lost []uint32
	for range 4 {
		f, err := d.Next(long)
		if err != nil {
			t.Fatal(err)
		}
		lost = append(lost, f.Lost)
		if err := d.Queue(f.Index); err != nil {
			t.Fatal(err)
		}
	}
	// Frames lost before the first one cannot be counted.
	if !slices.Equal(lost, []uint32{0, 0, 2, 0}) {
		t.Errorf("%v", lost)
	}
}

// After the signal is lost or its size changes, no mixed frames are returned. The error
// requires reopening the device.
func TestSignalChangesAreReported(t *testing.T) {
	c := &v4l2test.Camera{
		Formats: []v4l2test.Format{newNV12Format(64, 32, 0, 1)}, HDMI: &v4l2test.HDMI{Lost: 1, Then: []v4l2test.Format{newNV12Format(128, 64, 0, 1)}},
		Script: func(_, n int) v4l2test.Fault {
			if n == 2 {
				return v4l2test.Changed
			}
			return v4l2test.None
		},
	}
	d := startCamera(t, c)
	for range 2 {
		f, err := d.Next(long)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Queue(f.Index); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Next(long); !errors.Is(err, v4l2.ErrChanged) {
		t.Fatalf("%v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := v4l2.Open(c, "/dev/video9", newWant(64, 32)); !errors.Is(err, v4l2.ErrNoSignal) || !strings.Contains(err.Error(), "nothing is connected to Test Camera, or it is off") {
		t.Errorf("%v", err)
	}
	again := open(t, c, newWant(64, 32))
	if f := again.Format(); f.Width != 128 || f.Height != 64 {
		t.Errorf("%+v", f)
	}
}

func TestTimestampsOfOtherClocksAreIgnored(t *testing.T) {
	d := startCamera(t, &v4l2test.Camera{Formats: []v4l2test.Format{newNV12Format(64, 32, 0, 1)}, Script: func(_, _ int) v4l2test.Fault { return v4l2test.NoClock }})
	if f, err := d.Next(long); err != nil || f.Captured != 0 {
		t.Errorf("%v %d", err, f.Captured)
	}
}

func TestInterruptEndsTheWait(t *testing.T) {
	d := startCamera(t, &v4l2test.Camera{Formats: []v4l2test.Format{newNV12Format(64, 32, 0, 1)}, Script: func(_, _ int) v4l2test.Fault { return v4l2test.Stall }})
	got := make(chan error)
	go func() { _, err := d.Next(long); got <- err }()
	d.Interrupt()
	if err := <-got; !errors.Is(err, v4l2.ErrInterrupted) {
		t.Error(err)
	}
}

func TestBuffersAreExportedOnce(t *testing.T) {
	d := startCamera(t, &v4l2test.Camera{Multi: true, Formats: []v4l2test.Format{newNV12Format(64, 32, 0, 2)}})
	a, err := d.Export(1)
	if err != nil || len(a) != 2 {
		t.Fatalf("%v %v", a, err)
	}
	if b, err := d.Export(1); err != nil || !slices.Equal(a, b) {
		t.Errorf("%v %v", b, err)
	}
	if _, err := d.Export(99); err == nil {
		t.Error("a buffer that is not there was exported")
	}
}

func TestOtherDevicesAreRefused(t *testing.T) {
	for path, want := range map[string]error{"/dev/null": v4l2.ErrNotCamera, "/dev/video-absent": v4l2.ErrGone} {
		if _, err := v4l2.Open(v4l2.Kernel{}, path, v4l2.Want{}); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
