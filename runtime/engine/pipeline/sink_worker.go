package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/sink"
	"github.com/yoctune/yoctune/runtime/engine/trace"
)

// sinkWorker passes the results of each frame to the sink. After a permanent error of the sink
// the remaining frames fail and the source is stopped. A temporary error costs only that frame.
type sinkWorker struct {
	e        *engine
	k        int // of its queue
	hard     context.Context
	stop     func()
	rec      result.Record
	track    *trace.Track
	degraded dropReason

	broken, trouble error
}

func newSinkWorker(e *engine, hard context.Context, stop func()) *sinkWorker {
	k := len(e.steps)
	o := &sinkWorker{
		e: e, k: k, hard: hard, stop: stop, rec: result.Record{Pipeline: e.name},
		track: e.trace.Track(idSink, 0, ""), degraded: e.reasonFor(reasonSinkDown),
	}
	o.rec.Latency.Stages = make([]result.StageLatency, k+1)
	for n := range o.rec.Latency.Stages {
		o.rec.Latency.Stages[n].ID = e.stepID(n)
	}
	e.takers[k] = o
	return o
}

// oneByOne takes the oldest frame.
type oneByOne struct{}

func (oneByOne) choose(*queue) (int, time.Duration) { return 1, 0 }

// work processes frames until its queue is closed and empty.
func (o *sinkWorker) work() {
	e, q := o.e, o.e.queues[o.k]
	var id [1]int
	for q.pop(oneByOne{}, id[:], nil, nil) > 0 {
		o.takeFrame(id[0], o.k)
		q.finish()
	}
	if o.broken == nil && o.trouble != nil && o.hard.Err() == nil {
		e.addError(fmt.Errorf("%w: the sink did not recover: %w", sink.ErrFailed, o.trouble))
	}
}

func (o *sinkWorker) takeFrame(i, _ int) {
	e, k := o.e, o.k
	f := &e.frames[i]
	began := e.clock.Now()
	switch {
	case o.hard.Err() != nil:
		e.drop(i, e.shutdown)
		return
	case o.broken != nil:
		o.failFrame(i)
		return
	case e.maxAge > 0 && began-f.Capture > e.maxAge:
		e.drop(i, e.reasons[k].old)
		return
	case f.Reply != nil && f.Reply.Unwanted(began) != nil:
		e.dropUnwanted(i, f.Reply.Unwanted(began))
		return
	}
	rec, waited := &o.rec, began-f.Entered
	rec.Frame, rec.Capture, rec.Results = f.ID, f.Capture, f.Results
	rec.Repeated, rec.Age = f.Skip == frame.Repeated, f.Age
	if rec.Stats = nil; f.Measured {
		rec.Stats = &f.Stats
	}
	rec.Latency.Total = began - f.Capture
	f.Spent[k] = frame.Span{Queue: waited}
	for n, s := range f.Spent {
		rec.Latency.Stages[n].Queue, rec.Latency.Stages[n].Service = s.Queue, s.Service
	}
	var err error
	if f.Reply != nil {
		err = f.Reply.Answer(f)
	} else {
		err = e.sink.Write(rec)
	}
	end := e.clock.Now()
	e.recordTime(f, k, began, end)
	e.cost[k].add(1, end-began)
	o.track.Span(f.ID, began, end, waited, false)
	switch {
	case err == nil:
		if o.trouble != nil {
			o.trouble = nil
			e.event(Event{Kind: EventSink, Stage: idSink, Why: "results are written again"})
		}
		if f.Skip != frame.NotSkipped {
			e.skip(i)
			return
		}
		e.totals.add(end - f.Capture)
		e.recent.latency.add(end - f.Capture)
		e.mu.Lock()
		e.last = end
		e.mu.Unlock()
		e.recordFate(f, trace.Done, 0)
		e.ledger.addDone()
		e.release(i)
	case errors.Is(err, sink.ErrDegraded):
		if o.trouble == nil {
			o.trouble = err
			e.event(Event{Kind: EventSink, Stage: idSink, Why: err.Error()})
		}
		e.drop(i, o.degraded)
	default:
		o.broken = fmt.Errorf("%w: %w", sink.ErrFailed, err)
		e.addError(o.broken)
		o.failFrame(i)
		o.stop()
	}
}

// failFrame records and releases a frame that the sink could not accept.
func (o *sinkWorker) failFrame(i int) {
	e, f := o.e, &o.e.frames[i]
	if f.Reply != nil {
		f.Reply.Fail(o.broken)
	}
	e.recordFate(f, trace.Failed, e.reasons[o.k].failed.n)
	e.ledger.addFailed(f.ID, idSink, o.broken)
	e.release(i)
}
