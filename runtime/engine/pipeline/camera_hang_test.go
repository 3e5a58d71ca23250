package pipeline

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/v4l2"
	"github.com/yoctune/yoctune/runtime/engine/v4l2/v4l2test"
	"github.com/yoctune/yoctune/schema/plan"
)

// hanging is a grey camera whose driver does not return from the nth call of a name until it is
// released.
func hanging(call string, nth int) (c *v4l2test.Camera, release func()) {
	c, free := greyCamera(), make(chan struct{})
	var mu sync.Mutex
	seen := 0
	c.Hang = func(name string) {
		mu.Lock()
		if name == call {
			seen++
		}
		hangs := name == call && seen == nth
		mu.Unlock()
		if hangs {
			<-free
		}
	}
	return c, sync.OnceFunc(func() { close(free) })
}

// runHanging runs a pipeline with a camera and returns how it ended. stop is called with each number of
// frames that are done.
func runHanging(t *testing.T, c *v4l2test.Camera, pl plan.Pipeline, frames uint64, each func(done int)) (*Summary, error) {
	t.Helper()
	p, err := New(Options{Name: "cam", Plan: pl, Frames: frames, Sink: &records{each: each}, system: c})
	if err != nil {
		return nil, err
	}
	sum, err := p.Run(t.Context())
	err = errors.Join(err, p.Close())
	if f := sum.Frames; f.Read != f.Done+f.Dropped+f.Failed {
		t.Errorf("unaccounted: %+v", f)
	}
	return sum, err
}

// A driver that does not return from a call is reported. Its frames go on once it returns.
func TestACameraWhoseDriverHangsIsReopenedWhenItReturns(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"DQBUF", "QBUF"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			c, release := hanging(call, 12)
			defer release()
			p, err := New(Options{Name: "cam", Plan: cameraPlan("grey"), Frames: 40, Sink: &records{}, system: c, Tell: func(e Event) {
				if strings.Contains(e.Why, "earlier call") { // a later attempt does not call the driver again
					release()
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			sum, err := p.Run(t.Context())
			if err := errors.Join(err, p.Close()); err != nil {
				t.Fatal(err)
			}
			all := joinEvents(sum)
			if sum.Frames.Done != 40 || !strings.Contains(all, v4l2.ErrHung.Error()) || !strings.Contains(all, "is back") {
				t.Errorf("%+v\n%s", sum.Frames, all)
			}
			if n := c.Mapped(); n != 0 {
				t.Errorf("%d buffers are still mapped", n)
			}
		})
	}
}

// Where a source is not restarted, a hang ends the run with an error.
func TestADriverThatHangsEndsARunWithoutRestarts(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"DQBUF", "STREAMON"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			c, release := hanging(call, 1)
			defer release()
			pl := cameraPlan("grey")
			pl.Source.Restart = "never"
			began := time.Now()
			_, err := runHanging(t, c, pl, 0, nil)
			if !errors.Is(err, v4l2.ErrHung) || !strings.Contains(err.Error(), "VIDIOC_"+call) {
				t.Errorf("%v", err)
			}
			if d := time.Since(began); d > 30*time.Second {
				t.Errorf("it took %v", d)
			}
		})
	}
}

// A camera that cannot be opened, because its driver hangs, refuses the start.
func TestADriverThatHangsAtTheStartIsAnError(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"open", "QUERYCAP"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			c, release := hanging(call, 1)
			defer release()
			if _, err := runHanging(t, c, cameraPlan("grey"), 1, nil); !errors.Is(err, v4l2.ErrHung) {
				t.Errorf("%v", err)
			}
		})
	}
}

// The end of a run does not wait for a driver that hangs.
func TestADriverThatHangsAtTheEndIsAnError(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"STREAMOFF", "close", "DQBUF"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			nth := 1
			if call == "DQBUF" {
				nth = 5
			}
			c, release := hanging(call, nth)
			defer release()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p, err := New(Options{Name: "cam", Plan: cameraPlan("grey"), Sink: &records{each: func(n int) {
				if n == 4 {
					cancel()
				}
			}}, system: c})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Run(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, v4l2.ErrHung) {
				t.Error(err)
			}
			if err := p.Close(); call != "DQBUF" && !errors.Is(err, v4l2.ErrHung) {
				t.Errorf("%v", err)
			}
		})
	}
}
