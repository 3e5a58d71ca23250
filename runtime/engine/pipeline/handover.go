package pipeline

import (
	"context"
	"time"
)

// fromSource is the source's number where the stage of a goroutine is named.
const fromSource = -1

// Measured costs of handing a frame to another goroutine (bench/results). When one side has so
// much more to do that the other sleeps meanwhile, the sleeper's processor has to wake, polls
// before it sleeps again, and slows down the processor it shares memory with.
const (
	wakes = int64(50 * time.Microsecond)
	awake = int64(5 * time.Microsecond)

	// uneven is how many times cheaper the smaller side then is.
	uneven = 4
)

// frameTaker processes a frame in the goroutine of stage from.
type frameTaker interface{ takeFrame(i, from int) }

// continuesDirectly reports whether the goroutine of stage from should itself process a frame
// that queue k is next for, because one of the two sides costs less than a hand-over, and
// whether it should wait for its turn. A source that cannot wait never continues directly.
// Where frames may be lost, a goroutine runs no work of another stage that can hang.
func (e *engine) continuesDirectly(k, from int) (direct, wait bool) {
	if e.takers[k] == nil {
		return false, false
	}
	next, so := e.cost[k].perFrame(), int64(0)
	if from == fromSource {
		so = e.reading.perFrame()
	}
	for n := max(from, 0); n < k; n++ {
		so += e.cost[n].perFrame()
	}
	lesser, greater := min(so, next), max(so, next)
	switch {
	case lesser == 0 || lesser >= min(wakes, max(awake, greater/uneven)): // 0: not measured
		return false, false
	case e.pull:
		return true, from == fromSource && so == lesser
	}
	return k > 0 && k < len(e.steps) && !e.steps[k].aside && next == lesser, false
}

// handOver passes frame i to the workers of queue k or processes it here, and settles the frame
// that it displaces. It runs in the goroutine of stage from.
func (e *engine) handOver(hard context.Context, k, i, from int) {
	if e.repeat != nil && k == e.repeat.at {
		e.repeat.visit(&e.frames[i])
	}
	if direct, wait := e.continuesDirectly(k, from); direct && e.queues[k].claim(hard, wait) {
		e.takers[k].takeFrame(i, from)
		e.queues[k].finish()
		return
	}
	gone, err := e.queues[k].push(hard, i)
	if err != nil {
		e.drop(i, e.shutdown)
	} else if gone != none {
		e.recent.addLost(1)
		e.drop(gone, e.reasons[k].full)
	}
}
