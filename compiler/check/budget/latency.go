package budget

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Latency is the longest delay of a frame's result, computed from the times in the plan.
type Latency struct {
	Own     time.Duration // of a frame that never waits: the sum of the longest times
	Worst   time.Duration // of a frame that finds all queues full
	Parts   []Part        // of Worst, in the order in which a frame passes them
	Missing []string      // stages without a declared time; neither sum includes them

	Pace    time.Duration // shortest time between two results
	Slowest string        // the stage that limits Pace
}

// Part is one stage's share of the worst case.
type Part struct {
	Name  string
	Ahead int           // frames that are processed first
	Wait  time.Duration // for those frames
	Batch time.Duration // for a fuller batch
	Own   time.Duration
}

// String shows the sum: "read 80ms behind 4 frames + 20ms".
func (p Part) String() string {
	var all []string
	if p.Wait > 0 {
		all = append(all, fmt.Sprintf("%v behind %d frames", p.Wait, p.Ahead))
	}
	if p.Batch > 0 {
		all = append(all, fmt.Sprintf("batch %v", p.Batch))
	}
	return p.Name + " " + strings.Join(append(all, p.Own.String()), " + ")
}

// Breakdown formats the terms of Worst.
func (l Latency) Breakdown() string {
	var all []string
	for _, p := range l.Parts {
		if p.Own > 0 || p.Wait > 0 {
			all = append(all, p.String())
		}
	}
	return strings.Join(all, ", ")
}

// place is one stage, or the sink, with the queue before it.
type place struct {
	name     string
	time     time.Duration // of one run, 0: unknown
	workers  int
	batch    int // frames of a run
	capacity int // of the queue before it
	blocks   bool
	delay    time.Duration
}

// pace returns the time between two frames that leave a place which is never idle.
func (p place) pace() time.Duration { return p.time / time.Duration(p.workers*p.batch) }

// ComputeLatency computes the latency from the declared times. With bounds, a deadline
// replaces an undeclared time: a longer run gives no result.
//
// A frame that enters a queue waits for the run in progress and for the frames ahead of it.
// The queue bounds their number. If every stage keeps up with the rate of the source, the
// number is also bounded by the frames that can arrive within the jitter of one frame. In a
// queue that blocks, frames move at the pace of the slowest later place.
func ComputeLatency(p plan.Pipeline, bounds bool) Latency {
	var l Latency
	if t := time.Duration(p.Source.Time); p.Source.Live && t > 0 {
		l.add(Part{Name: "source", Own: t})
	} else if p.Source.Live && p.Source.Format == pipeline.MJPEG {
		l.Missing = append(l.Missing, "the source, which decodes")
	}
	places := listPlaces(p, bounds)
	l.addPace(p, places)
	complete := !slices.ContainsFunc(places, func(pl place) bool { return pl.time == 0 })
	l.addWaits(p, places)
	if age := time.Duration(p.Queue.MaxAge); age > 0 {
		// An older frame is dropped before the sink. That bounds the unknown times, too.
		last := places[len(places)-1]
		if most := age + last.time; most < l.Worst || bounds && !complete {
			l.Worst = most
			l.Parts = []Part{{Name: "maxAge", Own: age}, {Name: last.name, Own: last.time}}
			l.Missing = nil
			if last.time == 0 {
				l.Missing = []string{last.name}
			}
		}
	}
	return l
}

// addPace finds the place that bounds the throughput, and the places without a time.
func (l *Latency) addPace(p plan.Pipeline, places []place) {
	whole := time.Duration(0)
	for _, pl := range places {
		whole += pl.time
		if pl.time == 0 {
			l.Missing = append(l.Missing, pl.name)
		}
		if pl.pace() > l.Pace {
			l.Pace, l.Slowest = pl.pace(), pl.name
		}
	}
	if credits := p.Queue.InFlight; credits > 0 && whole/time.Duration(credits) > l.Pace {
		l.Pace, l.Slowest = whole/time.Duration(credits), fmt.Sprintf("inFlight %d", credits)
	}
}

// blockingPaces returns, for each place, the slowest pace that can hold up its frames: its
// own, and where its queue blocks also that of the places behind it.
func blockingPaces(places []place) []time.Duration {
	behind := make([]time.Duration, len(places))
	slowest := time.Duration(0)
	for k, pl := range slices.Backward(places) {
		slowest = max(slowest, pl.pace())
		if behind[k] = pl.pace(); pl.blocks {
			behind[k] = slowest
		}
	}
	return behind
}

// addWaits adds the longest wait at each place and the time that it takes.
func (l *Latency) addWaits(p plan.Pipeline, places []place) {
	period := time.Duration(0)
	if s := p.Source; s.Live && s.FPSNum > 0 && s.FPSDen > 0 {
		period = time.Duration(int64(time.Second) * int64(s.FPSDen) / int64(s.FPSNum))
	}
	// Places without a time count as fast enough: the sum covers the others.
	steady := period > 0 && l.Pace <= period
	behind := blockingPaces(places)
	outside := 1 // the source holds one frame
	for k, pl := range places {
		ahead := pl.capacity - 1 + pl.workers*pl.batch // in the queue and in progress
		if pl.blocks {
			ahead += outside // and those that wait for room in the queue
		}
		if outside = pl.batch; pl.workers > 1 {
			outside = 2 * pl.workers * pl.batch // and those that wait for their turn: order is kept
		}
		if steady {
			ahead = min(ahead, int(l.Worst/period))
		}
		if credits := p.Queue.InFlight; credits > 0 && k > 0 {
			ahead = min(ahead, credits-1)
		}
		round := max(pl.time, behind[k]*time.Duration(pl.workers*pl.batch))
		if p.Queue.InFlight > 0 && k == 0 {
			// The frame waits until one in progress is done.
			round = max(round, l.Pace*time.Duration(pl.workers*pl.batch))
		}
		rounds := (ahead + pl.workers*pl.batch - 1) / (pl.workers * pl.batch)
		l.add(Part{Name: pl.name, Ahead: ahead, Wait: round * time.Duration(rounds), Batch: pl.delay, Own: pl.time})
	}
}

func (l *Latency) add(p Part) {
	l.Parts = append(l.Parts, p)
	l.Own += p.Own
	l.Worst += p.Wait + p.Batch + p.Own
}

func listPlaces(p plan.Pipeline, bounds bool) []place {
	var all []place
	for i := range p.Stages {
		s := &p.Stages[i]
		pl := place{
			name: s.ID, time: time.Duration(s.Time), workers: pipeline.Instances(&p, s), batch: pipeline.LargestBatch(p.Stages, i),
			capacity: max(p.Queue.Capacity, 1), blocks: p.Queue.Policy == pipeline.Block,
		}
		if s.Model != nil && s.Model.Batch != nil {
			pl.delay = time.Duration(s.Model.Batch.Delay)
		}
		// The fallback to the CPU after the GPU's deadline has no bound.
		if limit := time.Duration(s.Deadline); bounds && limit > 0 && (pl.time == 0 || limit < pl.time) && (!pipeline.RunsOnGPU(s) || s.Fallback == pipeline.FallbackDrop) {
			pl.time = limit
		}
		all = append(all, pl)
	}
	sink := place{name: "the sink", time: time.Duration(p.Sink.Time), workers: 1, batch: 1, capacity: max(p.Queue.Capacity, 1), blocks: p.Queue.Policy == pipeline.Block}
	if p.Sink.Capacity > 0 {
		sink.capacity = p.Sink.Capacity
	}
	if p.Sink.Policy != "" {
		sink.blocks = p.Sink.Policy == pipeline.Block
	}
	if bounds && sink.time == 0 {
		sink.time = pipeline.SinkTimeout(&p.Sink)
	}
	return append(all, sink)
}
