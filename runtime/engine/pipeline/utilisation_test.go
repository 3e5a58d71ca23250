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
