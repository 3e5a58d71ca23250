package pipeline

import (
	"context"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/degrade"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
)

func TestBatchesFollowUtilisationExceptWhileDegraded(t *testing.T) {
	idle := func(context.Context, int, []*frame.Frame) error { return nil }
	e := newEngine(&counted{n: 1}, &kept{}, 8, block, step{id: "m", batch: idle, buckets: []int{1, 2, 4, 8}, instances: 2})
	e.prepare()
	in := newInstance(e, context.Background(), 0, 0, nil)
	if in.batchLimit() != 8 {
		t.Fatalf("without a target at most %d", in.batchLimit())
	}
	e.use = &degrade.Utilisation{Target: 0.9, Max: 8}
	const window = degrade.Interval
	step := func(busy float64) int {
		e.busy[0].Store(int64(busy * float64(window) * 2)) // of two instances
		e.adjustBatches(0, window)
		return in.batchLimit()
	}
	n := 0
	for range 10 {
		n = step(0.1)
	}
	if n != 1 {
		t.Errorf("hardly busy for five seconds: still %d at once", n)
	}
	e.level.Store(1)
	for range 20 {
		if got := step(1); got != n {
			t.Fatalf("degraded, and it went from %d to %d", n, got)
		}
	}
	e.level.Store(0)
	for range 60 {
		n = step(1)
	}
	if n != 8 {
		t.Errorf("busy all the time for thirty seconds: %d at once", n)
	}
	if len(e.events) < 2 || e.events[0].Kind != EventBatch || e.events[0].Stage != "m" {
		t.Errorf("%+v", e.events)
	}
	in.limit = 2 // as after memory ran out
	if in.batchLimit() != 2 {
		t.Errorf("at most %d of the 2 that fit", in.batchLimit())
	}
}

// A run that takes longer than a window counts in each window that it is part of, and as its part only.
func TestALongRunIsBookedInEachWindow(t *testing.T) {
	window := int64(degrade.Interval)
	idle := func(context.Context, int, []*frame.Frame) error { return nil }
	e := newEngine(&counted{n: 1}, &kept{}, 8, block, step{id: "m", batch: idle, buckets: []int{1, 2, 4, 8}})
	e.prepare()
	e.use = &degrade.Utilisation{Target: 0.9, Max: 8}
	in := newInstance(e, context.Background(), 0, 0, nil)
	e.workers = append(e.workers, in)
	in.began, in.booked = window/2, window/2 // a run that begins in the first window and does not end
	for n, want := range []int64{window / 2, window, window, window} {
		in.bookBusy(int64(n+1) * window)
		if got := e.busy[0].Swap(0); got != want {
			t.Errorf("window %d: busy for %d of %d ns, want %d", n, got, window, want)
		}
	}
}

// Without batches, a live source skips frames evenly.
func TestALiveSourceSkipsFramesForTheUtilisation(t *testing.T) {
	e := newEngine(&counted{n: 1}, &kept{}, 8, block, step{id: "m"})
	e.live, e.use = true, &degrade.Utilisation{Target: 0.6, Max: 1}
	e.prepare()
	r := feeder{e: e}
	kept := func() (n int) {
		for range 100 {
			if !r.aboveShare() {
				n++
			}
		}
		return n
	}
	if n := kept(); n != 100 {
		t.Fatalf("%d of 100 frames are kept before the first window", n)
	}
	// The stage is busy with every frame that it gets: all of them would take 1.5 of its time.
	n := 100
	for range 40 {
		e.busy[0].Store(int64(min(1.5*float64(n)/100, 1) * float64(degrade.Interval)))
		e.adjustBatches(1, degrade.Interval)
		n = kept()
	}
	if n < 35 || n > 42 {
		t.Errorf("%d of 100 frames are kept, and 40 take 0.6 of the time", n)
	}
	if len(e.events) != 1 || e.events[0].Kind != EventRate || e.events[0].From != 100 {
		t.Errorf("%+v", e.events)
	}
}
