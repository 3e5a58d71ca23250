package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/nvtx"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/trace"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// step is one stage between source and sink. It works on frames in place, and returns early
// with any error when ctx ends.
type step struct {
	id    string
	run   func(ctx context.Context, f *frame.Frame) error
	batch func(ctx context.Context, instance int, f []*frame.Frame) error // instead of run

	instances int           // in parallel, 0: 1
	buckets   []int         // accepted batch sizes, ascending from 1; nil: 1
	delay     time.Duration // longest wait for a fuller batch
	deadline  time.Duration // of one run, 0: none
	limit     time.Duration // of one run on the GPU
	cancel    func(instance int)
	resume    func(instance int) // reverts cancel
	backend   string             // backend name, for traces
	aside     bool               // the work is in another process and may hang
	bypassed  bool               // by frames that repeat results
	model     bool               // it runs models
	marks     *nvtx.Range        // of each run, for NVIDIA's profilers; nil: none
	locks     []sync.Mutex       // of each instance on the CPU instead of the GPU: the next stage may need it as well, on any level
}

// interrupt interrupts the work of an instance, if it can be interrupted.
func (s *step) interrupt(instance int) {
	if s.cancel != nil {
		s.cancel(instance)
	}
}

func (s *step) workers() int { return max(s.instances, 1) }

// size returns the number of frames that the step holds.
func (s *step) size() registry.Workers {
	return registry.Workers{Instances: s.workers(), Batch: s.largest()}
}

func (s *step) largest() int {
	if len(s.buckets) == 0 {
		return 1
	}
	return s.buckets[len(s.buckets)-1]
}

// errNoMemory is wrapped by the error of a batch that ran out of memory; the batch is run again
// in parts.
var errNoMemory = errors.New("not enough memory")

// memoryRest is how long batches stay small after an out-of-memory error.
const memoryRest = 60 * time.Second

// instance is one worker of a stage.
type instance struct {
	e     *engine
	s     *step
	k, n  int
	hard  context.Context
	order *order // nil with one instance
	timer *time.Timer
	track *trace.Track

	ids    []int
	frames []*frame.Frame
	ticket uint64
	from   int // the stage whose goroutine runs this instance, see continuesDirectly

	limit int   // batch size that fits in memory
	until int64 // time of the next attempt with a larger batch

	mu      sync.Mutex     // guards what the watchdog reads
	began   int64          // start of the current work in ns, 0: idle
	booked  int64          // time up to which the current work is in the engine's busy time
	held    []*frame.Frame // frames in work
	first   uint64         // ticket of the first of them
	overdue bool           // the watchdog has settled them
	gaveUp  bool
}

func newInstance(e *engine, hard context.Context, k, n int, o *order) *instance {
	s := &e.steps[k]
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &instance{
		e: e, s: s, k: k, n: n, hard: hard, order: o, timer: t,
		ids: make([]int, s.largest()), frames: make([]*frame.Frame, s.largest()), limit: s.largest(),
		track: e.trace.Track(s.id, n, s.backend),
	}
}

// batchLimit returns the largest batch that memory and the utilisation target allow now.
func (in *instance) batchLimit() int {
	if n := int(in.e.portion.Load()); n > 0 {
		return min(in.limit, bucketFor(in.s.buckets, n))
	}
	return in.limit
}

// choose takes the largest full bucket. A smaller one waits for more frames while the stage's
// delay and the deadline of the oldest frame allow: a run expected to take s must start s
// before the deadline.
func (in *instance) choose(q *queue) (take int, wait time.Duration) {
	e := in.e
	limit := in.batchLimit()
	n := in.available(q, limit)
	if n <= 0 {
		return 0, 0
	}
	take = bucketFor(in.s.buckets, n)
	full := take == limit || n < q.n || in.bypasses(&e.frames[q.frameAt(0)])
	if !full && !q.closed && in.s.delay > 0 && e.hard.Err() == nil {
		oldest := &e.frames[q.frameAt(0)]
		start := oldest.Entered + int64(in.s.delay)
		if e.target > 0 {
			start = min(start, oldest.Capture+e.target-e.cost[in.k].predict(take))
		}
		if d := time.Duration(start - e.clock.Now()); d > 0 {
			return 0, d
		}
	}
	if in.k == 0 {
		e.inflight.Add(int64(take))
		for m := range take {
			e.frames[q.frameAt(m)].Admitted = true
		}
	}
	if in.order != nil {
		in.ticket = in.order.issueTickets(take)
	}
	return take, 0
}

// available returns how many of the oldest waiting frames can form one batch. They must be of
// one level, either all new or all skipped, and limit, the credits and the free places of the order bound their number.
func (in *instance) available(q *queue, limit int) int {
	e := in.e
	n := min(q.n, limit)
	if e.hard.Err() != nil {
		n = min(q.n, len(in.ids))
	} else if in.k == 0 && e.credits > 0 {
		// Settling a frame signals the first queue.
		n = min(n, e.credits-int(e.inflight.Load()))
	}
	if in.order != nil {
		n = min(n, in.order.countFree())
	}
	for m := 1; m < n; m++ {
		if a, b := &e.frames[q.frameAt(m)], &e.frames[q.frameAt(0)]; a.Level != b.Level || a.Skip != b.Skip {
			return m
		}
	}
	return n
}

// bucketFor returns the largest batch size of at most n frames.
func bucketFor(buckets []int, n int) int {
	at, _ := slices.BinarySearch(buckets, n+1)
	if at == 0 {
		return 1
	}
	return buckets[at-1]
}

// work processes frames until its queue is closed and empty.
func (in *instance) work() {
	q := in.e.queues[in.k]
	if in.order != nil {
		defer in.order.removeWorker()
	} else {
		defer in.e.queues[in.k+1].close()
	}
	for {
		got := q.pop(in, in.ids, in.timer, in.hard.Done())
		if got == 0 {
			return
		}
		in.from = in.k
		in.runFrames(got)
		q.finish()
		if in.order != nil {
			signal(q.ready)
		}
	}
}

// takeFrame processes a frame in the goroutine of another stage.
func (in *instance) takeFrame(i, from int) {
	in.ids[0], in.from = i, from
	if in.k == 0 {
		in.e.inflight.Add(1)
		in.e.frames[i].Admitted = true
	}
	in.runFrames(1)
}

// runFrames processes the frames taken from the queue.
func (in *instance) runFrames(got int) {
	e := in.e
	began := e.clock.Now()
	fresh := 0
	for _, i := range in.ids[:got] {
		f := &e.frames[i]
		switch {
		case in.hard.Err() != nil:
			e.drop(i, e.shutdown)
		case e.maxAge > 0 && began-f.Capture > e.maxAge:
			e.recent.addLost(1)
			e.drop(i, e.reasons[in.k].old)
		case f.Reply != nil && f.Reply.Unwanted(began) != nil:
			e.dropUnwanted(i, f.Reply.Unwanted(began))
		default:
			// Tickets follow frames in order. Those of the lost frames come last.
			in.ids[fresh], in.frames[fresh] = i, f
			fresh++
			continue
		}
	}
	if in.order != nil {
		for n := fresh; n < got; n++ {
			in.order.resolve(in.ticket+uint64(n), none)
		}
	}
	if fresh > 0 && in.bypasses(in.frames[0]) {
		in.passOn(fresh, began)
		return
	}
	// The number of frames left after a drop need not be a bucket.
	for done := 0; done < fresh; {
		size := bucketFor(in.s.buckets, min(fresh-done, in.limit))
		in.runBatch(done, size)
		done += size
	}
}

// dropUnwanted settles a frame whose caller does not wait for it.
func (e *engine) dropUnwanted(i int, why error) {
	f := &e.frames[i]
	f.Reply.Fail(why)
	f.Reply = nil
	e.drop(i, e.unwanted)
}

// bypasses reports whether a frame needs no work of the stage.
func (in *instance) bypasses(f *frame.Frame) bool {
	return in.s.bypassed && f.Skip == frame.Repeated
}

// passOn hands n frames over that bypass the stage.
func (in *instance) passOn(n int, now int64) {
	for m, i := range in.ids[:n] {
		f := in.frames[m]
		f.Spent[in.k] = frame.Span{Queue: now - f.Entered}
		f.Entered = now
		in.deliver(m, i)
	}
}

// deliver hands frame i over, the n-th of those taken, or none in its place.
func (in *instance) deliver(n, i int) {
	switch {
	case in.order != nil:
		in.order.resolve(in.ticket+uint64(n), i)
	case i != none:
		in.e.handOver(in.hard, in.k+1, i, in.from)
	}
}

// runBatch runs the stage on frames from..from+size of those taken.
func (in *instance) runBatch(from, size int) {
	e, s := in.e, in.s
	ids, frames := in.ids[from:from+size], in.frames[from:from+size]
	began := e.clock.Now()
	in.mu.Lock()
	in.began, in.booked, in.held, in.overdue = began, began, frames, false
	in.first = in.ticket + uint64(from)
	in.mu.Unlock()
	mark := s.marks.Start()
	err := in.runStage(frames)
	s.marks.End(mark)
	end := e.clock.Now()

	in.mu.Lock()
	late := in.overdue
	e.busy[in.k].Add(end - in.booked)
	in.began, in.held = 0, nil
	if late && s.resume != nil && in.hard.Err() == nil {
		s.resume(in.n)
	}
	in.mu.Unlock()
	in.restoreBatchLimit(end)
	if err == nil && !late {
		e.cost[in.k].add(size, end-began)
		if r := frames[0].Reply; r != nil && s.model {
			r.Ran(size, end-began)
		}
	}
	for n, i := range ids {
		f := frames[n]
		wait := began - f.Entered
		e.recordTime(f, in.k, began, end)
		in.track.Span(f.ID, began, end, wait, n > 0)
		next := none
		switch {
		case late:
			e.release(i)
		case err == nil && f.Skip == frame.Skipped:
			e.skip(i)
		case err == nil:
			next = i
		default:
			in.settleFailed(i, err)
		}
		if in.order == nil || !late { // the watchdog has resolved the ticket
			in.deliver(from+n, next)
		}
	}
}

// bookBusy adds the part of the current work until now to the busy time, so that a long run counts in each window that it
// is part of.
func (in *instance) bookBusy(now int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.began != 0 && now > in.booked {
		in.e.busy[in.k].Add(now - in.booked)
		in.booked = now
	}
}

// settleFailed settles frame i, for which the stage's work returned err.
func (in *instance) settleFailed(i int, err error) {
	e, reasons := in.e, &in.e.reasons[in.k]
	why := dropReason{}
	switch {
	case in.hard.Err() != nil:
		e.drop(i, e.shutdown)
		return
	case errors.Is(err, errLate):
		why = reasons.late
	case errors.Is(err, errNoDevice):
		why = reasons.device
	case errors.Is(err, custom.ErrDown):
		why = reasons.down
	case errors.Is(err, errNoMemory):
		why = reasons.memory
	default:
		f := &e.frames[i]
		if f.Reply != nil {
			f.Reply.Fail(fmt.Errorf("stage %s: %w", in.s.id, err))
		}
		e.recordFate(f, trace.Failed, reasons.failed.n)
		e.ledger.addFailed(f.ID, in.s.id, err)
		e.release(i)
		return
	}
	e.recent.addLost(1)
	e.drop(i, why)
}

// runStage runs the stage. A batch that does not fit in memory is halved until it does, and
// batches stay that small for a while.
func (in *instance) runStage(frames []*frame.Frame) error {
	s := in.s
	if s.batch == nil {
		for _, f := range frames {
			if err := s.run(in.hard, f); err != nil {
				return err
			}
		}
		return nil
	}
	err := s.batch(in.hard, in.n, frames)
	if len(frames) == 1 || !errors.Is(err, errNoMemory) {
		return err
	}
	half := bucketFor(s.buckets, len(frames)/2)
	in.limit = half
	in.until = in.e.clock.Now() + int64(memoryRest)
	in.e.event(Event{Kind: EventBatch, Stage: s.id, To: half, Why: "memory ran out"})
	for len(frames) > 0 {
		n := bucketFor(s.buckets, min(in.limit, len(frames)))
		if err := in.runStage(frames[:n]); err != nil {
			return err
		}
		frames = frames[n:]
	}
	return nil
}

// restoreBatchLimit allows larger batches again after a rest.
func (in *instance) restoreBatchLimit(now int64) {
	if in.limit < in.s.largest() && now > in.until {
		in.limit = in.s.largest()
	}
}

// checkDeadline settles frames that a stage holds past its deadline and cancels its work. It
// returns an error if the stage does not stop.
func (in *instance) checkDeadline(now int64) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.began == 0 || now-in.began < int64(in.s.deadline) {
		return nil
	}
	if !in.overdue {
		in.overdue = true
		for n, f := range in.held {
			late := in.e.reasons[in.k].late
			if f.Reply != nil {
				f.Reply.Drop(late.text, true)
			}
			in.e.recent.addLost(1)
			in.e.recordFate(f, trace.Dropped, late.n)
			in.e.ledger.addDropped(late.text)
			if in.order != nil {
				in.order.resolve(in.first+uint64(n), none)
			}
		}
		in.s.interrupt(in.n)
		return nil
	}
	if now-in.began < int64(in.s.deadline+grace) || in.gaveUp {
		return nil
	}
	in.gaveUp = true
	return fmt.Errorf("%w: stage %s did not return %v after its deadline of %v", ErrFrames, in.s.id, grace, in.s.deadline)
}

// cost predicts the duration of a run by batch size: the mean plus twice the mean deviation,
// both over about ten runs.
type cost struct {
	mu    sync.Mutex
	sizes []int
	mean  []float64
	dev   []float64
}

func newCost(buckets []int) *cost {
	if len(buckets) == 0 {
		buckets = []int{1}
	}
	return &cost{sizes: buckets, mean: make([]float64, len(buckets)), dev: make([]float64, len(buckets))}
}

func (c *cost) add(size int, ns int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := slices.Index(c.sizes, size)
	if n < 0 {
		return
	}
	took := float64(max(ns, 1))
	if c.mean[n] == 0 {
		c.mean[n] = took
		return
	}
	d := took - c.mean[n]
	c.mean[n] += d / 8
	c.dev[n] += (math.Abs(d) - c.dev[n]) / 8
}

// predict returns 0 for a batch size that has not run.
func (c *cost) predict(size int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := slices.Index(c.sizes, size); n >= 0 {
		return int64(c.mean[n] + 2*c.dev[n])
	}
	return 0
}

// perFrame returns the least mean time per frame of all batch sizes in ns, 0 before the first
// run.
func (c *cost) perFrame() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	least := int64(0)
	for n, s := range c.sizes {
		if per := int64(c.mean[n]) / int64(s); per > 0 && (least == 0 || per < least) {
			least = per
		}
	}
	return least
}

// reset discards measurements of another level.
func (c *cost) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.mean)
	clear(c.dev)
}
