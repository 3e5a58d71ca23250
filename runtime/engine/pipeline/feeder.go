package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/yoctune/yoctune/internal/backoff"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/source"
	"github.com/yoctune/yoctune/runtime/engine/trace"
)

// feeder fills free frames from the source.
type feeder struct {
	e       *engine
	camera  source.SelfPaced // the source, if it sets its own pace; else nil
	pace    *pacer
	track   *trace.Track
	skipped dropReason // the level has a lower rate
	short   dropReason // too little memory is free
	busy    dropReason // the busiest stage is above the utilisation target
	credit  int32      // thousandths of a frame that may be kept
	n       uint64     // number of the frame
	begun   bool       // a frame was read
	kept    int64      // capture of the last frame that was not skipped, ns
}

// runSource fills free frames until the source ends, soft ends, or reading fails.
func (e *engine) runSource(soft, hard context.Context) {
	defer e.queues[0].close()
	defer context.AfterFunc(soft, e.source.Interrupt)()
	r := feeder{
		e: e, pace: newPacer(e.source.Format().Rate.Period(), e.clock), track: e.trace.Track(idSource, 0, ""),
		skipped: e.reasonFor(reasonLevel), short: e.reasonFor(reasonReserve), busy: e.reasonFor(reasonBusy), kept: -1 << 62,
	}
	r.camera, _ = e.source.(source.SelfPaced)
	for ; e.limit == 0 || r.n < e.limit; r.n++ {
		if reason := r.feed(soft, hard); reason != "" {
			e.setEndReason(reason)
			return
		}
	}
	e.setEndReason(reasonLimit)
}

// feed reads one frame and hands it over. It returns why the source ended, or "" if it did not.
func (r *feeder) feed(soft, hard context.Context) (ended string) {
	e := r.e
	i, due := r.waitForFrame(soft)
	if i == none {
		return reasonStopped
	}
	f := &e.frames[i]
	began, err := r.read(f)
	now := e.clock.Now()
	if err != nil {
		e.free <- i
		return r.recordError(err, soft.Err() != nil)
	}
	e.ledger.addRead()
	e.reads.add(now - began)
	e.reading.add(1, now-began)
	e.filled.Add(uint64(f.Copies))
	switch {
	case r.camera != nil:
		due = f.Capture
	case !e.live:
		due = now
	}
	f.ID, f.Capture, f.Entered = r.n, due, due
	f.Moment = r.momentOf(due)
	f.Level, f.Admitted = e.level.Load(), false
	f.Skip, f.Lost, f.LumaOn, f.PixelsOn, f.Measured = frame.NotSkipped, nil, 0, 0, false
	if !r.begun {
		r.begun = true
		e.mu.Lock()
		e.first = due
		e.mu.Unlock()
	}
	r.track.Span(r.n, began, now, 0, false)
	switch {
	case r.aboveRate(f):
		e.drop(i, r.skipped)
	case e.live && e.belowReserve() && int(f.Level) >= len(e.levels)-1:
		e.drop(i, r.short)
	case r.aboveShare():
		e.drop(i, r.busy)
	default:
		r.kept = due
		e.handOver(hard, 0, i, fromSource)
	}
	return ""
}

// unknownPeriod is the time between the frames of a recording whose rate is not known.
const unknownPeriod = int64(time.Second) / 30

// momentOf returns when the picture of the current frame was taken: for a recording the time of its rate, which does
// not depend on when its frames are read.
func (r *feeder) momentOf(due int64) int64 {
	if r.e.live || r.camera != nil {
		return due
	}
	period := cmp.Or(int64(r.pace.period), unknownPeriod)
	if r.n >= math.MaxInt64/uint64(period) {
		return math.MaxInt64
	}
	return int64(r.n) * period
}

// waitForFrame waits until a frame is due and one of the pool is free, and returns its
// index and the time it was due, in ns. The index is none if soft ends first.
func (r *feeder) waitForFrame(soft context.Context) (i int, due int64) {
	e := r.e
	if e.live && r.camera == nil {
		var ok bool
		if due, ok = r.pace.wait(soft); !ok {
			return none, 0
		}
	}
	if soft.Err() != nil {
		return none, 0
	}
	select {
	case i = <-e.free:
	case <-soft.Done():
		return none, 0
	}
	if !e.live && !e.waitForReserve(soft) {
		e.free <- i
		return none, 0
	}
	return i, due
}

// read reads the next frame into f, and counts those that a camera's driver lost before
// it. It returns when reading began, in ns.
func (r *feeder) read(f *frame.Frame) (began int64, err error) {
	e := r.e
	if r.camera == nil {
		began = e.clock.Now()
		return began, source.ReadInto(e.source, f)
	}
	lost, err := r.camera.Capture(f)
	if lost > 0 {
		gone := uint64(min(lost, math.MaxInt32)) // more is a source that cannot count
		if e.limit > 0 {
			gone = min(gone, e.limit-r.n-1)
		}
		e.ledger.addLost(gone)
		e.recent.addLost(int(gone))
		r.n += gone
	}
	return f.Arrived, err // the wait for a frame is not part of reading it
}

// recordError records a failed read. It returns why the source ended, or "" if only one frame
// was lost.
func (r *feeder) recordError(err error, stopped bool) (ended string) {
	switch {
	case errors.Is(err, io.EOF):
		return reasonEnd
	case stopped:
		return reasonStopped
	}
	r.e.ledger.addRead()
	r.e.ledger.addFailed(r.n, idSource, err)
	if errors.Is(err, frame.ErrLost) {
		return ""
	}
	r.e.addError(fmt.Errorf("source, frame %d: %w", r.n, err))
	return reasonError
}

// aboveRate reports whether f must be skipped, because its level has a lower rate than the
// source.
func (r *feeder) aboveRate(f *frame.Frame) bool {
	if len(r.e.levels) == 0 {
		return false
	}
	p := int64(r.e.levels[f.Level].Period)
	return p > 0 && f.Capture-r.kept < p-int64(r.pace.period)/2
}

// aboveShare reports whether the current frame must be skipped to keep the utilisation target. The skipped frames are
// spread evenly.
func (r *feeder) aboveShare() bool {
	share := r.e.share.Load()
	if share == 0 || share >= 1000 {
		return false
	}
	if r.credit += share; r.credit < 1000 {
		return true
	}
	r.credit -= 1000
	return false
}

// belowReserve reports whether less memory is free than the budget keeps.
func (e *engine) belowReserve() bool { return e.reserve != nil && e.reserve() != "" }

// waitForReserve waits for enough free memory. It returns false when soft ends first.
func (e *engine) waitForReserve(soft context.Context) bool {
	for e.belowReserve() {
		if backoff.WaitClosed(soft.Done(), 50*time.Millisecond) {
			return false
		}
	}
	return true
}

// pacer releases one frame per period, as a camera does.
type pacer struct {
	period time.Duration
	clock  frame.Clock
	next   int64
	timer  *time.Timer
}

func newPacer(period time.Duration, c frame.Clock) *pacer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &pacer{period: period, clock: c, timer: t}
}

// wait returns the time at which the frame was due. A source that is late by a whole period
// restarts the count, because a camera does not deliver late frames in a burst.
func (p *pacer) wait(ctx context.Context) (due int64, ok bool) {
	now := p.clock.Now()
	if p.next == 0 || now-p.next > int64(p.period) {
		p.next = now
	}
	due = p.next
	p.next += int64(p.period)
	if d := time.Duration(due - now); d > 0 {
		p.timer.Reset(d)
		select {
		case <-p.timer.C:
		case <-ctx.Done():
			p.timer.Stop()
			return 0, false
		}
	}
	return due, ctx.Err() == nil
}
