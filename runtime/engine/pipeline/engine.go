package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yoctune/yoctune/internal/backoff"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/degrade"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/sink"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/source"
	"github.com/yoctune/yoctune/runtime/engine/trace"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Ids of source and sink, which no stage may use.
const (
	idSource = registry.SourceID
	idSink   = registry.SinkID
)

// engine moves frames through steps.
type engine struct {
	name   string
	source source.Source
	steps  []step
	sink   sink.Sink
	frames []frame.Frame // see framesFor
	spares int           // frames at the end of the pool that are never filled

	capacity     int // of each queue
	policy       policy
	sinkCapacity int           // of the queue before the sink, 0: like the other queues
	sinkPolicy   policy        // "": like the other queues
	maxAge       int64         // ns since capture after which a frame is dropped, 0: no limit
	credits      int           // frames in flight at once, 0: the whole pool
	live         bool          // the source is paced by its rate
	served       bool          // callers wait for the frames
	limit        uint64        // frames to read, 0: all
	drain        time.Duration // time for frames in flight after a stop
	abort        func()        // interrupts work in progress; may be nil
	target       int64         // wanted latency from capture to sink in ns, 0: none
	levels       []degrade.Level
	ladder       *degrade.Controller  // nil: always level 0
	use          *degrade.Utilisation // nil: a batch takes all waiting frames
	hot          func() string        // reason why the device must do less, "" for none; nil: not checked
	reserve      func() string        // reason why reserved memory is short, "" for none; nil: not checked
	trace        *trace.Recorder      // nil: none
	breach       func(now int64)      // called when a window misses the target
	tell         func(Event)          // called for each event; may be nil
	ready        func()               // called once before the first frame; may be nil
	gate         string               // id of the stage that skips frames, "": none
	repeat       *repeater            // nil: skipped frames have no results

	clock      frame.Clock
	hard       context.Context
	ledger     *ledger
	free       chan int
	queues     []*queue // before each step, and before the sink
	reasons    []reasons
	shutdown   dropReason
	skipped    dropReason // of the gate
	unwanted   dropReason
	workers    []*instance
	takers     []frameTaker // by step, then the sink, see continuesDirectly; nil: frames always go through queues
	pull       bool         // no frame may be lost, so that the reader of a frame may process it further
	reading    *cost        // of reading a frame from the source
	cost       []*cost      // by step, then the sink
	inflight   atomic.Int64
	copies     atomic.Uint64
	filled     atomic.Uint64          // frames copied by the source
	references atomic.Uint64          // frames copied by a gate
	crops      map[string]*cropCounts // by roi stage
	others     []atomic.Uint64        // frames that the CPU processed instead of the GPU, by step
	level      atomic.Int32
	portion    atomic.Int32   // largest batch allowed by the utilisation target, 0: no limit
	share      atomic.Int32   // frames of 1000 of a live source that the utilisation target allows, 0: all
	busy       []atomic.Int64 // ns of work by step since the last utilisation check
	waits      []durations    // by step, then the sink
	services   []durations
	reads      durations
	totals     durations
	recent     window

	mu     sync.Mutex
	reason string // why the source ended
	errs   []error
	events []Event
	first  int64 // capture of the first frame, ns
	last   int64 // end of the last frame done, ns
}

// dropReason is the reason for dropping a frame, with its number in the trace.
type dropReason struct {
	text string
	n    uint16
}

// reasons that belong to one queue and the stage behind it.
type reasons struct{ full, old, late, device, memory, down, failed dropReason }

// Reasons that belong to no queue.
const (
	reasonShutdown = "shutdown"       // a stop left no time for the frame
	reasonLost     = "lost-by-source" // the driver had no free buffer for it
	reasonLevel    = "degraded:fps"   // the current level has a lower rate
	reasonSinkDown = "sink-degraded"  // results cannot be written at the moment
	reasonReserve  = "keep-free"      // reserved memory is short
	reasonBusy     = "utilisation"    // the busiest stage is above the target
	reasonUnwanted = "not-wanted"     // its caller has gone, or was too long in the queue
)

// framesFor is the number of frames in the pool, see [registry.PoolFrames].
func framesFor(steps []step, capacity, sinkCapacity int) int {
	all := make([]registry.Workers, len(steps))
	for i := range steps {
		all[i] = steps[i].size()
	}
	return registry.PoolFrames(all, capacity, sinkCapacity)
}

// grace is the time that work has to return after an abort.
const grace = time.Second

// run moves all frames of the source, or those until ctx ends. The summary is complete either
// way; the error is set if frames failed, not because ctx ended. If stuck is set, a stage did
// not return and its memory must not be freed.
func (e *engine) run(ctx context.Context) (sum *Summary, stuck bool, err error) {
	if e.clock, err = frame.NewClock(); err != nil {
		return nil, false, err
	}
	e.prepare()
	callIfSet(e.ready)

	// There are two stops. The soft one ends the source; frames in flight drain as each
	// goroutine closes the queue behind it. The hard one ends everything.
	soft, stop := context.WithCancel(ctx)
	defer stop()
	hard, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	e.hard = hard

	start := e.clock.Now()
	var wg sync.WaitGroup
	out := newSinkWorker(e, hard, stop)
	for k := range e.steps {
		e.startStep(&wg, hard, k)
	}
	wg.Go(out.work)
	wg.Go(func() { e.runSource(soft, hard) })
	finished := make(chan struct{})
	go func() { wg.Wait(); close(finished) }()
	var aside sync.WaitGroup
	aside.Go(func() { e.watch(finished, hard, stop) })
	aside.Go(func() { e.control(finished, hard) })

	select {
	case <-finished:
	case <-soft.Done():
		if !backoff.WaitClosed(finished, e.drain) {
			kill()
			callIfSet(e.abort)
			stuck = !backoff.WaitClosed(finished, grace)
		}
	}
	e.ledger.close()
	sum, err = e.summary(e.clock.Now()-start), e.joinErrors(stuck)
	kill()
	aside.Wait()
	return sum, stuck, err
}

// prepare allocates everything that a run needs, so that frames allocate nothing.
func (e *engine) prepare() {
	n := len(e.steps) + 1
	e.ledger = newLedger()
	e.waits, e.services = make([]durations, n), make([]durations, n)
	e.busy = make([]atomic.Int64, n)
	e.queues, e.reasons, e.cost = make([]*queue, n), make([]reasons, n), make([]*cost, n)
	e.takers, e.reading = make([]frameTaker, n), newCost(nil)
	_, camera := e.source.(source.SelfPaced)
	e.pull = !e.live && (e.served || !camera) && e.credits == 0 && e.policy == block && (e.sinkPolicy == "" || e.sinkPolicy == block)
	for k := range e.queues {
		id, c, p := e.stepID(k), e.capacity, e.policy
		var buckets []int
		switch {
		case k < len(e.steps):
			buckets = e.steps[k].buckets
		case e.sinkCapacity > 0:
			c = e.sinkCapacity
		}
		if k == len(e.steps) && e.sinkPolicy != "" {
			p = e.sinkPolicy
		}
		e.cost[k] = newCost(buckets)
		e.queues[k] = newQueue(c, p)
		e.reasons[k] = reasons{
			full: e.reasonFor("queue-full:" + id), old: e.reasonFor("too-old:" + id), late: e.reasonFor("deadline:" + id),
			failed: e.reasonFor("failed:" + id), device: e.reasonFor("no-device:" + id), memory: e.reasonFor("no-memory:" + id),
			down: e.reasonFor("restarting:" + id),
		}
	}
	e.shutdown = e.reasonFor(reasonShutdown)
	if e.served {
		e.unwanted = e.reasonFor(reasonUnwanted)
	}
	if e.gate != "" {
		e.skipped = e.reasonFor("skipped:" + e.gate)
	}
	e.free = make(chan int, len(e.frames))
	for i := range len(e.frames) - e.spares {
		e.free <- i
	}
}

// stepID returns the name of step k, or of the sink after the last step.
func (e *engine) stepID(k int) string {
	if k < len(e.steps) {
		return e.steps[k].id
	}
	return idSink
}

func (e *engine) reasonFor(text string) dropReason {
	return dropReason{text, e.trace.Reason(text)}
}

// startStep starts the workers of step k and the goroutine that restores the order of their
// frames.
func (e *engine) startStep(wg *sync.WaitGroup, hard context.Context, k int) {
	s := &e.steps[k]
	var o *order
	if s.workers() > 1 {
		o = newOrder(s.size().UnsettledFrames(), s.workers())
		wg.Go(func() {
			defer e.queues[k+1].close()
			for {
				i, ok := o.next()
				if !ok {
					return
				}
				if i != none {
					e.handOver(hard, k+1, i, k)
				}
				signal(e.queues[k].ready)
			}
		})
	}
	for n := range s.workers() {
		in := newInstance(e, hard, k, n, o)
		e.workers = append(e.workers, in)
		if o == nil && s.largest() == 1 {
			e.takers[k] = in
		}
		wg.Go(in.work)
	}
}

// watch drops frames that are too old from the queues, and settles frames that a stage holds
// past its deadline, even if its workers hang.
func (e *engine) watch(finished <-chan struct{}, hard context.Context, stop func()) {
	period := e.watchPeriod()
	if period == 0 {
		return
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	old := make([]int, 16)
	for e.nextTick(tick, finished, hard) {
		now := e.clock.Now()
		if e.maxAge > 0 {
			e.dropOld(now, old)
		}
		for _, in := range e.workers {
			if in.s.deadline == 0 {
				continue
			}
			if err := in.checkDeadline(now); err != nil {
				e.addError(err)
				stop()
			}
		}
	}
}

// watchPeriod returns the period of watch: an eighth of the shortest limit, 0 without one.
func (e *engine) watchPeriod() time.Duration {
	shortest := time.Duration(e.maxAge)
	for k := range e.steps {
		if d := e.steps[k].deadline; d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	if shortest == 0 {
		return 0
	}
	return min(max(shortest/8, time.Millisecond), 50*time.Millisecond)
}

// nextTick waits for the tick. It returns false when the run is over.
func (e *engine) nextTick(tick *time.Ticker, finished <-chan struct{}, hard context.Context) bool {
	select {
	case <-finished:
		return false
	case <-hard.Done():
		return false
	case <-tick.C:
		return true
	}
}

// dropOld drops the waiting frames that are older than the maximum age. It takes as many
// at once as old has room for.
func (e *engine) dropOld(now int64, old []int) {
	for k, q := range e.queues {
		for n := len(old); n == len(old); {
			n = q.expire(old, func(i int) bool { return now-e.frames[i].Capture > e.maxAge })
			for _, i := range old[:n] {
				e.drop(i, e.reasons[k].old)
			}
		}
	}
}

// windowControl controls level and batch size at the end of each window of a run.
type windowControl struct {
	e        *engine
	start    int64 // ns
	adjusted int64 // time of the last adjustment of the batch size, ns
	levels   *trace.Counter
	depth    []*trace.Counter // by queue
}

// control evaluates each window of the run until it ends.
func (e *engine) control(finished <-chan struct{}, hard context.Context) {
	if e.ladder == nil && e.use == nil && (e.breach == nil || e.target == 0) {
		return
	}
	tick := time.NewTicker(degrade.Window)
	defer tick.Stop()
	c := windowControl{e: e, levels: e.trace.Counter("degrade level"), depth: make([]*trace.Counter, len(e.queues))}
	for k := range c.depth {
		c.depth[k] = e.trace.Counter("queue " + e.stepID(k))
	}
	c.start = e.clock.Now()
	c.adjusted = c.start
	c.levels.Set(c.start, 0)
	for e.nextTick(tick, finished, hard) {
		c.endWindow(e.clock.Now())
	}
}

// endWindow saves the trace of a window that missed the target, and adjusts batch size and
// level.
func (c *windowControl) endWindow(now int64) {
	e := c.e
	for k, q := range e.queues {
		c.depth[k].Set(now, int64(q.len()))
	}
	in := e.recent.reset()
	if e.hot != nil {
		in.Hot = e.hot()
	}
	if in.Hot == "" && e.reserve != nil {
		in.Hot = e.reserve()
	}
	if e.breach != nil && e.target > 0 && in.Done > 0 && int64(in.P95) > e.target {
		e.breach(now)
	}
	if e.use != nil && now-c.adjusted >= int64(degrade.Interval) {
		e.adjustBatches(now, time.Duration(now-c.adjusted))
		c.adjusted = now
	}
	if e.ladder != nil {
		c.moveLevel(now, in)
	}
}

// moveLevel moves along the ladder if the window calls for it.
func (c *windowControl) moveLevel(now int64, in degrade.Input) {
	e := c.e
	for k := range e.steps {
		in.Bottleneck = max(in.Bottleneck, time.Duration(e.cost[k].perFrame()))
	}
	was := e.level.Load()
	d := e.ladder.Step(time.Duration(now-c.start), in)
	if !d.Moved {
		return
	}
	e.level.Store(int32(d.Level))
	for k := range e.steps {
		e.cost[k].reset()
	}
	c.levels.Set(now, int64(d.Level))
	e.event(Event{At: now, Kind: EventLevel, From: int(was), To: d.Level, Why: d.Why})
}

// adjustBatches sets the batch size by the utilisation of the busiest stage, and for a live source the share of frames
// that it keeps. It does nothing while the ladder is in use, because two control loops on one pipeline oscillate.
func (e *engine) adjustBatches(now int64, window time.Duration) {
	for _, in := range e.workers {
		in.bookBusy(now)
	}
	most, which := 0.0, 0
	for k := range e.steps {
		part := float64(e.busy[k].Swap(0)) / float64(window) / float64(e.steps[k].workers())
		if part > most {
			most, which = part, k
		}
	}
	degraded := e.level.Load() > 0
	why := fmt.Sprintf("busy for %.0f %% of the time", 100*min(most, 1))
	n := e.use.Step(min(most, 1), degraded)
	was := int(e.portion.Swap(int32(n)))
	if was != n && was != 0 {
		e.event(Event{At: now, Kind: EventBatch, Stage: e.steps[which].id, From: was, To: n, Why: why})
	}
	if !e.live {
		return
	}
	share := int32(1000 * e.use.Share(min(most, 1), n, degraded))
	if before := cmp.Or(e.share.Swap(share), 1000); (before < 1000) != (share < 1000) {
		e.event(Event{At: now, Kind: EventRate, Stage: e.steps[which].id, From: int(before / 10), To: int(share / 10), Why: why})
	}
}

// recordTime records how long frame f waited for stage k and how long the stage took.
func (e *engine) recordTime(f *frame.Frame, k int, began, end int64) {
	f.Spent[k] = frame.Span{Queue: began - f.Entered, Service: end - began}
	f.Entered = end
	e.waits[k].add(f.Spent[k].Queue)
	e.services[k].add(f.Spent[k].Service)
}

// drop settles frame i as dropped and returns it to the pool.
func (e *engine) drop(i int, why dropReason) {
	if r := e.frames[i].Reply; r != nil {
		r.Drop(why.text, false)
	}
	e.recordFate(&e.frames[i], trace.Dropped, why.n)
	e.ledger.addDropped(why.text)
	e.release(i)
}

// skip settles frame i as skipped and returns it to the pool.
func (e *engine) skip(i int) {
	e.mu.Lock()
	e.last = e.clock.Now()
	e.mu.Unlock()
	e.recordFate(&e.frames[i], trace.Skipped, e.skipped.n)
	e.ledger.addSkipped(e.skipped.text)
	e.release(i)
}

// recordFate records the end of a frame in the trace.
func (e *engine) recordFate(f *frame.Frame, fate trace.Fate, reason uint16) {
	if f.Lost != nil && (fate == trace.Dropped || fate == trace.Failed) {
		f.Lost.Store(true)
	}
	e.trace.Frame(f.ID, f.Capture, e.clock.Now(), fate, reason)
}

// release returns a settled frame to the source.
func (e *engine) release(i int) {
	if f := &e.frames[i]; f.Admitted {
		f.Admitted = false
		e.inflight.Add(-1)
		if e.credits > 0 {
			signal(e.queues[0].ready)
		}
	}
	if l := e.frames[i].Loan; l != nil {
		l.Settle()
	}
	e.frames[i].Reply = nil
	e.free <- i
}

// setEndReason records why the source ended. Earlier errors have precedence.
func (e *engine) setEndReason(reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.errs) > 0 {
		reason = reasonError
	}
	e.reason = reason
}

// addError records an error that fails the run.
func (e *engine) addError(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.errs = append(e.errs, err)
}

// keptEvents limits the events of a summary: the first half are the earliest, the second half
// the latest.
const keptEvents = 256

// event records a change in how the pipeline works.
func (e *engine) event(v Event) {
	if v.At == 0 {
		v.At = e.clock.Now()
	}
	e.trace.Instant(v.At, v.Kind, v.Why)
	if e.tell != nil {
		e.tell(v)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.events) == keptEvents {
		e.events = slices.Delete(e.events, keptEvents/2, keptEvents/2+1)
	}
	e.events = append(e.events, v)
}

// joinErrors returns the errors of the run, or those of failed frames; nil if every frame was
// done or dropped.
func (e *engine) joinErrors(stuck bool) error {
	e.mu.Lock()
	errs := e.errs
	e.mu.Unlock()
	if stuck {
		errs = append(errs, fmt.Errorf("%w: a stage did not return within %v of being stopped", ErrFrames, e.drain+grace))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if n := e.ledger.fates.Failed; n > 0 {
		first := e.ledger.errors[0]
		return fmt.Errorf("%w: %d of %d; the first is frame %d, stage %s: %w",
			ErrFrames, n, e.ledger.fates.Read, first.Frame, first.Stage, first.Err)
	}
	return nil
}
