package v4l2_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/v4l2"
)

// Recordings of real drivers, single- and multi-planar: the same calls return the same
// frames, timestamps and end.
func TestRecordedDriversDeliverTheirFrames(t *testing.T) {
	files, err := filepath.Glob("testdata/*.ioctls")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".ioctls")
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := v4l2.Want{Formats: []v4l2.FourCC{v4l2.NV12, v4l2.NV12M}, Width: 320, Height: 180, Num: 30, Den: 1}
			ends := v4l2.ErrStalled
			switch _, what, _ := strings.Cut(name, "-"); what {
			case "unplugged":
				ends = v4l2.ErrGone
			case "changed":
				want.Formats, want.Num, want.Den = []v4l2.FourCC{v4l2.YUYV}, 0, 0
				ends = v4l2.ErrChanged
			default:
				want.Formats = []v4l2.FourCC{v4l2.FourCC(uint32(what[0]) | uint32(what[1])<<8 | uint32(what[2])<<16 | uint32(what[3])<<24)}
			}
			frames, end := replay(t, bytes.NewReader(b), want, ends)
			if !errors.Is(end, ends) {
				t.Errorf("%d frames, then %v", len(frames), end)
			}
			if len(frames) < 4 {
				t.Errorf("%d frames", len(frames))
			}
			for n := 1; n < len(frames); n++ {
				gap := time.Duration(frames[n].Captured - frames[n-1].Captured)
				if frames[n].Sequence != frames[n-1].Sequence+1+frames[n].Lost || gap < 10*time.Millisecond {
					t.Errorf("frame %d: %+v after %+v", n, frames[n], frames[n-1])
				}
			}
		})
	}
}

// replay captures frames until the recording ends. It makes the same calls as the tests that
// recorded it.
func replay(t *testing.T, r io.Reader, want v4l2.Want, ends error) (frames []v4l2.Frame, end error) {
	t.Helper()
	p, err := newReplayer(r)
	if err != nil {
		t.Fatal(err)
	}
	d, err := v4l2.Open(p, "/dev/video0", want)
	if err != nil {
		t.Fatal(err, p.err())
	}
	if err := errors.Join(d.Allocate(4), d.Start()); err != nil {
		t.Fatal(err, p.err())
	}
	for len(frames) < 100 {
		f, err := d.Next(0)
		if err != nil {
			end = err
			break
		}
		frames = append(frames, f)
		if n := len(frames); n == 4 && errors.Is(ends, v4l2.ErrStalled) {
			if _, err := d.Export(f.Index); err != nil {
				t.Fatal(err, p.err())
			}
		}
		if p.left() > 0 && !(errors.Is(ends, v4l2.ErrGone) && len(frames) == 5) {
			if err := d.Queue(f.Index); err != nil {
				t.Fatal(err, p.err())
			}
		}
	}
	if err := errors.Join(d.Close(), p.err()); err != nil {
		t.Error(err)
	}
	return frames, end
}
