package pipeline

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/sink"
	"github.com/yoctune/yoctune/schema/plan"
)

// /dev/full is a full disk.
func TestAFullDiskDegradesThePipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := sink.OpenNDJSON("/dev/full", plan.Rotate{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		e := newEngine(&counted{n: 20, rate: frame.Rate{Num: 10, Den: 1}}, s, 2, block, step{id: "a", run: nothing})
		e.live = true
		sum, _, err := e.run(t.Context())
		if !errors.Is(err, sink.ErrFailed) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("%v", err)
		}
		balanced(t, sum)
		if sum.Drops[reasonSinkDown] != 20 || len(sum.Events) != 1 || !strings.Contains(sum.Events[0].Why, "no space left") {
			t.Errorf("%v %+v", sum.Drops, sum.Events)
		}
	})
}

// A slow sink drops frames by its own policy, and memory does not grow.
func TestSlowSinkDropsByItsOwnPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		slow := sinkFunc(func(*result.Record) error { n++; time.Sleep(50 * time.Millisecond); return nil })
		e := newEngine(&counted{n: 200}, slow, 2, block, step{id: "a", run: takes(10 * time.Millisecond)})
		e.sinkPolicy, e.sinkCapacity = dropOldest, 1
		s, _, err := e.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, s)
		if s.Drops["queue-full:sink"] != s.Frames.Dropped || s.Frames.Dropped < 150 || time.Duration(s.Duration) > 2200*time.Millisecond {
			t.Errorf("%+v %v in %v", s.Frames, s.Drops, time.Duration(s.Duration))
		}
	})
}

// If the reader of standard output stops reading, a live pipeline drops frames by the queue's
// policy. Memory does not grow, and a stop does not wait.
func TestAStalledReaderDoesNotBlockThePipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		e := newEngine(&counted{n: 1 << 30, rate: frame.Rate{Num: 100, Den: 1}}, sink.NewNDJSON(w), 1, dropOldest, step{id: "a", run: nothing})
		e.live = true
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		began := time.Now()
		sum, stuck, err := e.run(ctx)
		if took := time.Since(began); !stuck || !errors.Is(err, ErrFrames) || took > 10*time.Second+e.drain+grace+time.Second {
			t.Errorf("stuck %v after %v: %v", stuck, took, err)
		}
		balanced(t, sum)
		if sum.Frames.Done != 0 || sum.Drops["queue-full:sink"]+sum.Drops["queue-full:a"] < 900 {
			t.Errorf("%+v %v", sum.Frames, sum.Drops)
		}
		_ = r.Close() // lets the writer go
	})
}
