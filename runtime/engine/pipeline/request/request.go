// Package request connects callers to a pipeline: each row of a call becomes a frame, and what the
// stages make of the frames becomes the answer of the call.
//
// A call waits in the port until the pipeline has a free frame for its next row, so that the order of
// calls can change until then: the most urgent first, and those whose callers have gone are removed.
// The number of calls is bounded, and another is refused at once.
package request

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Errors of calls.
var (
	ErrFull     = errors.New("too many requests are waiting")
	ErrExpired  = errors.New("the time of the request is over")
	ErrCanceled = errors.New("the caller has gone")
	ErrClosed   = errors.New("the pipeline has ended")
	ErrDropped  = errors.New("the pipeline has dropped the request")
)

// Priorities of calls: the first of them is served first.
const (
	FirstPriority   = 1
	LastPriority    = 9
	DefaultPriority = 5
)

// Call is a request in the pipeline. The fields that its caller sets must not change until Do returns.
type Call struct {
	Rows     int           // at least 1
	Inputs   [][]byte      // by input of the port: its rows one after another
	Priority int           // 0: DefaultPriority
	Timeout  time.Duration // 0: that of the port

	Outputs [][]byte // by output of the port: its rows one after another; nil for results
	Texts   [][]byte // results of each row in JSON, if the pipeline gives results
	Times   Times

	arrived int64 // CLOCK_MONOTONIC in ns, like the others
	until   int64
	next    int // row that becomes a frame next
	left    atomic.Int32
	failed  atomic.Pointer[error]
	gone    atomic.Pointer[error] // the caller does not wait any longer
	done    chan struct{}
	port    *Port
	reading sync.Mutex // held while Inputs are copied
}

// Times are durations of a call in ns.
type Times struct {
	Total   int64 // from Do to the answer
	Compute int64 // in stages, of the row that was answered last
	Input   int64 // copying rows into frames
	Output  int64 // copying answers out of them
}

// Port is where calls enter a pipeline.
type Port struct {
	inputs  []registry.Sent
	limit   int
	rows    int
	timeout time.Duration
	clock   frame.Clock
	outputs []registry.Tensor // nil: results
	answers func(f *frame.Frame) []frame.Tensor
	ready   chan struct{} // a call arrived, or the port was closed

	mu      sync.Mutex
	waiting [LastPriority + 1][]*Call
	queued  int // of waiting
	active  int // calls that have not returned
	closed  error
	counts  Counts
	runs    map[int]*Runs
}

// Runs are the runs of models with a batch of one size.
type Runs struct {
	Count   uint64
	Compute int64 // ns
}

// Counts are the calls since the start by outcome, and those that have none yet.
type Counts struct {
	Done, Full, Expired, Canceled, Dropped, Failed uint64
	Active, Waiting                                int
}

// NewPort returns the port of a source of requests. rows is the largest number of rows of a call.
func NewPort(inputs []registry.Sent, limit, rows int, timeout time.Duration) (*Port, error) {
	clock, err := frame.NewClock()
	if err != nil {
		return nil, err
	}
	return &Port{inputs: inputs, limit: limit, rows: rows, timeout: timeout, clock: clock, ready: make(chan struct{}, 1), runs: map[int]*Runs{}}, nil
}

// Inputs lists the inputs: one row of each.
func (p *Port) Inputs() []registry.Sent { return p.inputs }

// Outputs lists the outputs: one row of each; nil where the pipeline gives results as JSON.
func (p *Port) Outputs() []registry.Tensor { return p.outputs }

// Rows is the largest number of rows of a call.
func (p *Port) Rows() int { return p.rows }

// Limit is the number of calls at once.
func (p *Port) Limit() int { return p.limit }

// Timeout is the time of calls that set none.
func (p *Port) Timeout() time.Duration { return p.timeout }

// Answers sets what the pipeline gives: the outputs of a row, and where they are in a frame. Without
// outputs it gives results. It is called before the first call.
func (p *Port) Answers(outputs []registry.Tensor, of func(f *frame.Frame) []frame.Tensor) {
	p.outputs, p.answers = outputs, of
}

// Full reports whether another call would be refused now.
func (p *Port) Full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.active >= p.limit
}

// Err returns why the port takes no calls, nil while it does.
func (p *Port) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// Counts returns the calls by outcome.
func (p *Port) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts
	c.Active, c.Waiting = p.active, p.queued
	return c
}

// Runs returns the runs of models by the size of the batch.
func (p *Port) Runs() map[int]Runs {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[int]Runs, len(p.runs))
	for size, r := range p.runs {
		all[size] = *r
	}
	return all
}

// Do runs a call. It takes a place for the call first, and then calls fill, which sets Rows and Inputs: what
// costs time is only done for calls that are taken, and no longer than their time. fill may be nil. Do returns when the
// call is answered, or as soon as its time is over or ctx ends. The error wraps one of this package, or is that of fill
// or of the stage that failed.
func (p *Port) Do(ctx context.Context, c *Call, fill func() error) error {
	if err := p.take(c); err != nil {
		return err
	}
	if fill != nil {
		if err := fill(); err != nil {
			p.release()
			return err
		}
	}
	if err := p.prepare(c); err != nil {
		p.release()
		return err
	}
	if err := p.enter(c); err != nil {
		p.release()
		return err
	}
	timer := time.NewTimer(time.Duration(c.until - p.clock.Now()))
	defer timer.Stop()
	var err error
	select {
	case <-c.done:
	case <-timer.C:
		err = fmt.Errorf("%w: %v have passed", ErrExpired, time.Duration(c.until-c.arrived))
	case <-ctx.Done():
		err = fmt.Errorf("%w: %w", ErrCanceled, context.Cause(ctx))
	}
	p.leave(c, err)
	if err == nil {
		if failed := c.failed.Load(); failed != nil {
			err = *failed
		}
	}
	p.count(err)
	c.Times.Total = p.clock.Now() - c.arrived
	return err
}

// prepare checks a call and allocates its answer. Sizes are those of the caller: rows of another size
// would move the values of one row, or of one caller, to another.
func (p *Port) prepare(c *Call) error {
	if c.Rows < 1 || c.Rows > p.rows || len(c.Inputs) != len(p.inputs) {
		return fmt.Errorf("request of %d rows and %d inputs: the pipeline takes up to %d rows of %d", c.Rows, len(c.Inputs), p.rows, len(p.inputs))
	}
	for n := range p.inputs {
		if want := c.Rows * int(p.inputs[n].Bytes()); len(c.Inputs[n]) != want {
			return fmt.Errorf("input %s of the request has %d bytes, and %d rows have %d", p.inputs[n].Name, len(c.Inputs[n]), c.Rows, want)
		}
	}
	if p.outputs == nil {
		c.Texts = make([][]byte, c.Rows)
	}
	c.Outputs = make([][]byte, len(p.outputs))
	for n, t := range p.outputs {
		c.Outputs[n] = make([]byte, c.Rows*int(t.Bytes()))
	}
	c.port, c.done = p, make(chan struct{})
	c.left.Store(int32(c.Rows))
	return nil
}

// take takes a place for a call, whose time begins.
func (p *Port) take(c *Call) error {
	if c.Priority == 0 {
		c.Priority = DefaultPriority
	}
	c.Priority = min(max(c.Priority, FirstPriority), LastPriority)
	if c.Timeout <= 0 {
		c.Timeout = p.timeout
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed != nil:
		return p.closed
	case p.active >= p.limit:
		p.counts.Full++
		return fmt.Errorf("%w: %d, and no more are taken", ErrFull, p.active)
	}
	c.arrived = p.clock.Now()
	c.until = c.arrived + int64(c.Timeout)
	p.active++
	return nil
}

// release gives back the place of a call that did not enter.
func (p *Port) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active--
}

// enter adds a call that has a place to those that wait.
func (p *Port) enter(c *Call) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		return p.closed
	}
	p.queued++
	p.waiting[c.Priority] = append(p.waiting[c.Priority], c)
	signal(p.ready)
	return nil
}

// leave ends the wait of a caller; err is the reason, nil if it was answered.
func (p *Port) leave(c *Call, err error) {
	if err != nil {
		// The inputs may be the caller's memory, which it frees next.
		c.reading.Lock()
		c.gone.Store(&err)
		c.reading.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active--
	p.remove(c)
}

// remove removes a call from those that wait. The lock must be held.
func (p *Port) remove(c *Call) {
	list := p.waiting[c.Priority]
	if n := slices.Index(list, c); n >= 0 {
		p.waiting[c.Priority] = slices.Delete(list, n, n+1)
		p.queued--
	}
}

// count counts a call by its outcome.
func (p *Port) count(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.counts.Done++
	case errors.Is(err, ErrExpired):
		p.counts.Expired++
	case errors.Is(err, ErrCanceled):
		p.counts.Canceled++
	case errors.Is(err, ErrDropped), errors.Is(err, ErrClosed):
		p.counts.Dropped++
	default:
		p.counts.Failed++
	}
}

// Close refuses further calls and fails those that wait.
func (p *Port) Close(err error) {
	p.mu.Lock()
	if p.closed == nil {
		p.closed = err
	}
	var all []*Call
	for n := range p.waiting {
		all = append(all, p.waiting[n]...)
		p.waiting[n] = nil
	}
	p.queued = 0
	p.mu.Unlock()
	signal(p.ready)
	for _, c := range all {
		for range c.Rows - c.next {
			c.settle(err)
		}
	}
}

// Next waits for the next row, until stop is closed or the port is.
func (p *Port) Next(stop <-chan struct{}) (c *Call, row int, ok bool) {
	for {
		p.mu.Lock()
		c, row = p.nextRow()
		closed := p.closed != nil
		p.mu.Unlock()
		switch {
		case c != nil:
			return c, row, true
		case closed:
			return nil, 0, false
		}
		select {
		case <-p.ready:
		case <-stop:
			return nil, 0, false
		}
	}
}

// nextRow returns the next row of the most urgent call. The lock must be held.
func (p *Port) nextRow() (*Call, int) {
	for _, list := range p.waiting {
		if len(list) == 0 {
			continue
		}
		c := list[0]
		row := c.next
		if c.next++; c.next == c.Rows {
			p.remove(c)
		}
		return c, row
	}
	return nil, 0
}

// Fill copies a row to a frame.
func (c *Call) Fill(f *frame.Frame, row int) {
	began, off := c.port.clock.Now(), 0
	c.reading.Lock()
	defer c.reading.Unlock()
	f.Capture, f.Arrived, f.Copies = c.arrived, began, 1
	f.Reply, f.Row = c, row
	if c.gone.Load() != nil {
		return // the first stage drops the frame
	}
	for n := range c.port.inputs {
		size := int(c.port.inputs[n].Bytes())
		copy(f.Pixels[off:off+size], c.Inputs[n][row*size:])
		off += int(registry.TensorStride(c.port.inputs[n].Tensor))
	}
	atomic.AddInt64(&c.Times.Input, c.port.clock.Now()-began)
}

// Unwanted returns why a frame of the call need not be processed at a time, nil if its caller waits.
func (c *Call) Unwanted(now int64) error {
	if gone := c.gone.Load(); gone != nil {
		return *gone
	}
	if failed := c.failed.Load(); failed != nil {
		return *failed // of another row
	}
	if now > c.until {
		return ErrExpired
	}
	return nil
}

// Answer copies what the stages made of a frame.
func (c *Call) Answer(f *frame.Frame) error {
	p := c.port
	began := p.clock.Now()
	if p.outputs == nil {
		c.Texts[f.Row] = append(result.AppendResults([]byte{'['}, f.Results), ']')
	} else {
		for n, t := range p.answers(f) {
			from := t.Bytes()
			copy(c.Outputs[n][f.Row*len(from):][:len(from)], from)
		}
	}
	compute := int64(0)
	for _, s := range f.Spent {
		compute += s.Service
	}
	atomic.StoreInt64(&c.Times.Compute, compute)
	atomic.AddInt64(&c.Times.Output, p.clock.Now()-began)
	c.settle(nil)
	return nil
}

// Ran counts a run of a model with a batch.
func (c *Call) Ran(size int, ns int64) {
	p := c.port
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.runs[size]
	if r == nil {
		r = &Runs{}
		p.runs[size] = r
	}
	r.Count++
	r.Compute += ns
}

// Drop ends a frame of the call that is not answered.
func (c *Call) Drop(reason string, late bool) {
	switch {
	case late:
		c.settle(fmt.Errorf("%w: %s", ErrExpired, reason))
	default:
		c.settle(fmt.Errorf("%w: %s", ErrDropped, reason))
	}
}

// Fail ends a frame of the call with the error of a stage.
func (c *Call) Fail(err error) { c.settle(err) }

// settle ends one frame of the call.
func (c *Call) settle(err error) {
	if err != nil {
		c.failed.CompareAndSwap(nil, &err)
	}
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
