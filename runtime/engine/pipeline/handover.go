package pipeline

import (
	"context"
	"time"
)

// fromSource stands for the source where the stage is named whose goroutine works.
const fromSource = -1

// What it costs to give a frame to another goroutine, as measured (bench/results).
// Where one side has so much more to do that the other one sleeps meanwhile, its
// processor has to wake, looks for more before it sleeps again, and slows down the one
// it shares memory with.
const (
	wakes = int64(50 * time.Microsecond)
	awake = int64(5 * time.Microsecond)

	// uneven is how many times less the one side then takes.
	uneven = 4
)

// frameTaker processes a frame in the goroutine of stage from.
type frameTaker interface{ takeFrame(i, from int) }

// continuesDirectly reports whether the goroutine of stage from is to go on with a frame that
// queue k is next for, since one of the sides takes less than giving it to another one,
// and whether it waits until it can. A source that cannot wait never goes on, and where
// frames may be lost nothing that can hang is done by somebody else.
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
	case lesser == 0 || lesser >= min(wakes, max(awake, greater/uneven)): // 0: not known
		return false, false
	case e.pull:
		return true, from == fromSource && so == lesser
	}
	return k > 0 && k < len(e.steps) && !e.steps[k].aside && next == lesser, false
}

// handOver gives frame i to whoever works on queue k, or goes on with it, and settles the
// frame that has to go for it. It runs in the goroutine of stage from.
func (e *engine) handOver(hard context.Context, k, i, from int) {
	if direct, wait := e.continuesDirectly(k, from); direct && e.queues[k].claim(hard, wait) {
		e.takers[k].takeFrame(i, from)
		e.queues[k].done()
		return
	}
	gone, err := e.queues[k].push(hard, i)
	if err != nil {
		e.drop(i, e.shutdown)
	} else if gone != none {
		e.recent.lost()
		e.drop(gone, e.reasons[k].full)
	}
}
