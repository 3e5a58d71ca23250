package pipeline

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
)

// timed is a source whose frames take a while to read.
type timed struct {
	counted
	each time.Duration
}

func (s *timed) ReadFrame(b []byte) error {
	time.Sleep(s.each)
	return s.counted.ReadFrame(b)
}

// If reading takes no time, reading ahead gains nothing: frames are read as late as possible,
// and no goroutine is woken for them.
func TestQuickFramesAreReadOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &kept{}
		e := newEngine(&counted{n: 200}, sink, 4, block,
			step{id: "m", run: takes(10 * time.Millisecond)}, step{id: "post", run: nothing})
		s, _, err := e.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, s)
		if len(sink.ids) != 200 || time.Duration(s.Duration) != 2*time.Second {
			t.Errorf("%d frames in %v", len(sink.ids), time.Duration(s.Duration))
		}
		// The first ones find out how long everything takes.
		if p50 := time.Duration(s.Latency.Total.P50); p50 > 11*time.Millisecond {
			t.Errorf("half of the frames are older than %v when they are done; the stage takes 10 ms", p50)
		}
	})
}

func TestSlowFramesAreReadAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &timed{counted{n: 100}, 10 * time.Millisecond}
		e := newEngine(src, &kept{slow: func() { time.Sleep(10 * time.Millisecond) }}, 2, block,
			step{id: "m", run: takes(10 * time.Millisecond)})
		s, _, err := e.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, s)
		// One frame through all three, then one each 10 ms, then the end of the source.
		if d := time.Duration(s.Duration); d > 1050*time.Millisecond {
			t.Errorf("100 frames took %v: reading, work and writing were not side by side", d)
		}
	})
}

// A quick stage becomes the slowest one, and quick again.
func TestHandOverFollowsMeasuredCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(from, to uint64) func(context.Context, *frame.Frame) error {
			return func(ctx context.Context, f *frame.Frame) error {
				if f.ID >= from && f.ID < to {
					return takes(10*time.Millisecond)(ctx, f)
				}
				return nil
			}
		}
		e := newEngine(&counted{n: 400}, &kept{}, 2, block,
			step{id: "a", run: slow(100, 300)}, step{id: "b", run: slow(200, 400)})
		s, _, err := e.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, s)
		// a alone, both side by side, b alone; and some until the change is seen.
		if d := time.Duration(s.Duration); s.Frames.Done != 400 || d > 3150*time.Millisecond {
			t.Errorf("%+v in %v", s.Frames, d)
		}
	})
}

// Results of a camera stay fresh although the sink hangs for a second.
func TestALiveStageDoesNotWaitForASinkThatBecameSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		sink := sinkFunc(func(*result.Record) error {
			if n++; n == 50 {
				time.Sleep(time.Second)
			}
			return nil
		})
		worked := 0
		e := newEngine(&counted{n: 300, rate: frame.Rate{Num: 100, Den: 1}}, sink, 1, dropOldest, step{id: "m", run: func(ctx context.Context, f *frame.Frame) error {
			worked++
			return takes(5*time.Millisecond)(ctx, f)
		}})
		e.live = true
		s, _, err := e.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, s)
		if worked != 300 || s.Drops["queue-full:sink"] == 0 || s.Drops["queue-full:m"] != 0 {
			t.Errorf("the stage worked on %d of 300 frames: %v", worked, s.Drops)
		}
	})
}

// A stage that runs in the source's goroutine is stopped like any other.
func TestStopAbortsWorkInTheSourcesGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		e := newEngine(&counted{n: 1 << 30}, &kept{}, 2, block, step{id: "m", run: func(ctx context.Context, f *frame.Frame) error {
			if f.ID < 100 {
				return takes(time.Millisecond)(ctx, f)
			}
			return takes(time.Hour)(ctx, f)
		}})
		time.AfterFunc(time.Second, stop)
		s, stuck, err := e.run(ctx)
		if err != nil || stuck {
			t.Fatalf("error %v, stuck %t", err, stuck)
		}
		balanced(t, s)
		if s.Frames.Done != 100 || s.Drops[reasonShutdown] == 0 || s.Ended != reasonStopped {
			t.Errorf("%+v %v, ended %s", s.Frames, s.Drops, s.Ended)
		}
	})
}

// Failed frames are settled once, whichever stage fails and whichever goroutine runs it.
func TestFailuresAreSettledInAnyGoroutine(t *testing.T) {
	bad := errors.New("bad")
	e := newEngine(&counted{n: 3000, fail: io.EOF}, &kept{}, 2, block,
		step{id: "a", run: func(_ context.Context, f *frame.Frame) error {
			if f.ID%3 == 0 {
				return bad
			}
			return nil
		}},
		step{id: "b", instances: 2, run: nothing},
		step{id: "c", run: func(_ context.Context, f *frame.Frame) error {
			if f.ID%3 == 1 {
				return bad
			}
			return nil
		}})
	s, _, err := e.run(t.Context())
	if !errors.Is(err, bad) {
		t.Fatal(err)
	}
	balanced(t, s)
	if s.Frames.Done != 1000 || s.Failures["a"] != 1000 || s.Failures["c"] != 1000 || len(e.free) != len(e.frames) {
		t.Errorf("%+v %v, %d of %d slots came back", s.Frames, s.Failures, len(e.free), len(e.frames))
	}
}
