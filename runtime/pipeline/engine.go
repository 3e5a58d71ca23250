package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// step is one stage between source and sink. run works on the frame in place and
// returns early, with any error, when ctx ends.
type step struct {
	id  string
	run func(ctx context.Context, f *frame) error
}

// Ids of the two ends, which no stage may have.
const (
	idSource = "source"
	idSink   = "sink"
)

// engine moves frames through steps.
type engine struct {
	name   string
	source source
	steps  []step
	sink   Sink
	frames []frame // see framesFor

	capacity int // of each queue
	policy   policy
	live     bool          // the source is paced by its rate
	limit    uint64        // frames to read, 0: all
	drain    time.Duration // time for frames in flight after a stop
	abort    func()        // makes work in progress return, nil where nothing can

	clock  clock
	ledger *ledger
	free   chan int
	queues []queue // before each step, and before the sink

	waits    []histogram // by step, then the sink
	services []histogram
	reads    histogram
	totals   histogram

	mu     sync.Mutex
	reason string // why the source ended
	errs   []error
	first  int64 // capture of the first frame, ns
	last   int64 // end of the last frame done, ns
}

// framesFor is the number of frames that keeps every queue full and every
// goroutine at work, and one for the source to fill meanwhile.
func framesFor(steps, capacity int) int {
	queues, workers := steps+1, steps+2
	return queues*capacity + workers + 1
}

// grace is how long work gets to return after it was aborted.
const grace = time.Second

// run moves every frame of the source, or those until ctx ends. The summary is
// complete either way; the error says what failed, not that ctx ended. With
// stuck set a stage did not return, and its memory must stay.
func (e *engine) run(ctx context.Context) (sum *Summary, stuck bool, err error) {
	if e.clock, err = newClock(); err != nil {
		return nil, false, err
	}
	n := len(e.steps) + 1
	e.ledger = newLedger()
	e.waits, e.services = make([]histogram, n), make([]histogram, n)
	e.queues = make([]queue, n)
	for i := range e.queues {
		e.queues[i] = newQueue(e.capacity, e.policy)
	}
	e.free = make(chan int, len(e.frames))
	for i := range e.frames {
		e.free <- i
	}

	// Two stops: the soft one ends the source, and what is in flight drains by
	// itself as each goroutine closes the queue behind it. The hard one ends
	// everything.
	soft, stop := context.WithCancel(ctx)
	defer stop()
	hard, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()

	start := e.clock.now()
	var wg sync.WaitGroup
	wg.Go(func() { e.runSource(soft, hard) })
	for k := range e.steps {
		wg.Go(func() { e.runStep(hard, k) })
	}
	wg.Go(func() { e.runSink(hard, stop) })
	finished := make(chan struct{})
	go func() { wg.Wait(); close(finished) }()

	select {
	case <-finished:
	case <-soft.Done():
		if !wait(finished, e.drain) {
			kill()
			if e.abort != nil {
				e.abort()
			}
			stuck = !wait(finished, grace)
		}
	}
	e.ledger.close()
	return e.summary(e.clock.now() - start), stuck, e.err(stuck)
}

func wait(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}

// runSource fills free frames until there are no more, soft ends, or reading
// fails.
func (e *engine) runSource(soft, hard context.Context) {
	defer close(e.queues[0].c)
	defer context.AfterFunc(soft, e.source.interrupt)()
	pace := pacer{period: e.source.format().rate.period(), clock: e.clock}
	for n := uint64(0); e.limit == 0 || n < e.limit; n++ {
		var due int64
		if e.live {
			var ok bool
			if due, ok = pace.wait(soft); !ok {
				e.ended(reasonStopped)
				return
			}
		}
		var i int
		select {
		case i = <-e.free:
		case <-soft.Done():
			e.ended(reasonStopped)
			return
		}
		f := &e.frames[i]
		began := e.clock.now()
		err := e.source.read(f.pixels)
		now := e.clock.now()
		switch {
		case errors.Is(err, io.EOF):
			e.free <- i
			e.ended(reasonEnd)
			return
		case err != nil && soft.Err() != nil:
			e.free <- i
			e.ended(reasonStopped)
			return
		case err != nil:
			e.free <- i
			e.ledger.read()
			e.ledger.failed(n, idSource, err)
			e.fail(fmt.Errorf("source, frame %d: %w", n, err))
			e.ended(reasonError)
			return
		}
		e.ledger.read()
		e.reads.add(now - began)
		if !e.live {
			due = now
		}
		f.id, f.capture, f.entered = n, due, due
		if n == 0 {
			e.mu.Lock()
			e.first = due
			e.mu.Unlock()
		}
		e.hand(hard, 0, i)
	}
	e.ended(reasonLimit)
}

// runStep applies step k to each frame of its queue.
func (e *engine) runStep(hard context.Context, k int) {
	defer close(e.queues[k+1].c)
	s := e.steps[k]
	for i := range e.queues[k].c {
		f := &e.frames[i]
		if hard.Err() != nil {
			e.drop(i, reasonShutdown)
			continue
		}
		began := e.clock.now()
		err := s.run(hard, f)
		e.spend(f, k, began, e.clock.now())
		switch {
		case err == nil:
			e.hand(hard, k+1, i)
		case hard.Err() != nil:
			e.drop(i, reasonShutdown)
		default:
			e.ledger.failed(f.id, s.id, err)
			e.free <- i
		}
	}
}

// runSink gives each frame's results to the sink. A sink that fails once is not
// tried again: the rest of the frames fail with it, and the source is stopped.
func (e *engine) runSink(hard context.Context, stop func()) {
	k := len(e.steps)
	rec := Record{Pipeline: e.name}
	rec.Latency.Stages = make([]StageLatency, k+1)
	for n, s := range e.steps {
		rec.Latency.Stages[n].ID = s.id
	}
	rec.Latency.Stages[k].ID = idSink
	var broken error
	for i := range e.queues[k].c {
		f := &e.frames[i]
		switch {
		case hard.Err() != nil:
			e.drop(i, reasonShutdown)
			continue
		case broken != nil:
			e.ledger.failed(f.id, idSink, broken)
			e.free <- i
			continue
		}
		began := e.clock.now()
		rec.Frame, rec.Capture, rec.Results = f.id, f.capture, f.results
		rec.Latency.Total = began - f.capture
		f.spent[k] = span{queue: began - f.entered}
		for n, s := range f.spent {
			rec.Latency.Stages[n].Queue, rec.Latency.Stages[n].Service = s.queue, s.service
		}
		err := e.sink.Write(&rec)
		end := e.clock.now()
		e.spend(f, k, began, end)
		if err != nil {
			broken = fmt.Errorf("%w: %w", ErrSink, err)
			e.fail(broken)
			e.ledger.failed(f.id, idSink, broken)
			stop()
		} else {
			e.totals.add(end - f.capture)
			e.mu.Lock()
			e.last = end
			e.mu.Unlock()
			e.ledger.done()
		}
		e.free <- i
	}
}

// spend books the time frame f spent waiting for stage k and in it.
func (e *engine) spend(f *frame, k int, began, end int64) {
	f.spent[k] = span{queue: began - f.entered, service: end - began}
	f.entered = end
	e.waits[k].add(f.spent[k].queue)
	e.services[k].add(f.spent[k].service)
}

// hand puts frame i in queue k, and settles the frame that has to go for it.
func (e *engine) hand(hard context.Context, k, i int) {
	gone, err := e.queues[k].push(hard, i)
	if err != nil {
		e.drop(i, reasonShutdown)
	} else if gone != none {
		next := idSink
		if k < len(e.steps) {
			next = e.steps[k].id
		}
		e.drop(gone, "queue-full:"+next)
	}
}

func (e *engine) drop(i int, reason string) {
	e.ledger.dropped(reason)
	e.free <- i
}

func (e *engine) ended(reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.errs) > 0 {
		reason = reasonError
	}
	e.reason = reason
}

func (e *engine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.errs = append(e.errs, err)
}

// err is what made the run a failure, nil when every frame was done or dropped.
func (e *engine) err(stuck bool) error {
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

// pacer releases a frame each period, as a camera does.
type pacer struct {
	period time.Duration
	clock  clock
	next   int64
}

// wait returns the time the frame was due. A source that has fallen behind by a
// whole period starts counting anew: a camera does not deliver late frames in a
// burst.
func (p *pacer) wait(ctx context.Context) (due int64, ok bool) {
	now := p.clock.now()
	if p.next == 0 || now-p.next > int64(p.period) {
		p.next = now
	}
	due = p.next
	p.next += int64(p.period)
	if d := time.Duration(due - now); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return 0, false
		}
	}
	return due, ctx.Err() == nil
}
