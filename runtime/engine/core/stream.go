package core

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// Event marks a point of a stream.
type Event struct {
	d  *Device
	id uint64
}

// NewEvent creates an event.
func (d *Device) NewEvent() (*Event, error) {
	if err := d.enter("create event"); err != nil {
		return nil, err
	}
	defer d.gate.RUnlock()
	id, f := d.api.EventCreate(d.dev)
	if err := failed("create event", f); err != nil {
		return nil, err
	}
	e := &Event{d: d, id: id}
	d.adopt(e)
	return e, nil
}

// Since returns the device's time from start to e, ErrNotReady until both have
// passed.
func (e *Event) Since(start *Event) (time.Duration, error) {
	if err := e.d.enter("event time"); err != nil {
		return 0, err
	}
	defer e.d.gate.RUnlock()
	if start == nil || start.d != e.d {
		return 0, fmt.Errorf("event time: start is nil or of another device: %w", ErrInvalid)
	}
	ns, f := e.d.api.EventElapsed(e.d.dev, start.id, e.id)
	return time.Duration(ns), failed("event time", f)
}

// Release frees the event.
func (e *Event) Release() error { return e.d.releaseChild("release event", e) }

func (e *Event) release() error {
	return failed("release event", e.d.api.EventDestroy(e.d.dev, e.id))
}

func (e *Event) rank() int { return rankBuffer }

// Wait returns when the event's last record has passed, or with ErrTimeout or
// ErrCancelled when ctx ends first. An event that was never recorded is
// ErrInvalid.
func (e *Event) Wait(ctx context.Context) error {
	if err := e.d.enter("wait for event"); err != nil {
		return err
	}
	defer e.d.gate.RUnlock()
	return waitSlices(ctx, "wait for event", func(ns uint64) error {
		return failed("wait for event", e.d.api.EventPoll(e.d.dev, e.id, ns))
	})
}

// Passed reports, without waiting, whether the event's last record has passed.
func (e *Event) Passed() (bool, error) {
	if err := e.d.enter("ask event"); err != nil {
		return false, err
	}
	defer e.d.gate.RUnlock()
	err := failed("ask event", e.d.api.EventPoll(e.d.dev, e.id, 0))
	if errors.Is(err, ErrNotReady) {
		return false, nil
	}
	return err == nil, err
}

// closeWait bounds how long releasing a stream waits for its last work.
const closeWait = 2 * time.Second

// Stream is an order of execution. It belongs to one goroutine at a time.
//
// A list on the CPU runs in the goroutine that submits it, unless the stream is
// queued, has work waiting, or the list waits for an event that has not passed:
// then threads of the device run it. On a GPU all work is queued.
type Stream struct {
	d *Device
	s c.Stream

	mirrors   map[*Mirror]struct{} // that work in progress is about
	recording bool
}

// StreamOptions describe a stream.
type StreamOptions struct {
	Priority int    // 0 is normal, lower runs first
	Queued   bool   // never run in the caller, also on the CPU
	Name     string // at most 15 bytes; faults name it as the stage
}

// NewStream creates a stream. Priority 0 is normal, lower runs first.
func (d *Device) NewStream(priority int) (*Stream, error) {
	return d.OpenStream(StreamOptions{Priority: priority})
}

// OpenStream creates a stream.
func (d *Device) OpenStream(o StreamOptions) (*Stream, error) {
	if len(o.Name) > 15 {
		return nil, fmt.Errorf("open stream: name %q is longer than 15 bytes: %w", o.Name, ErrInvalid)
	}
	if err := d.enter("open stream"); err != nil {
		return nil, err
	}
	defer d.gate.RUnlock()
	return d.newStream(o)
}

func (d *Device) newStream(o StreamOptions) (*Stream, error) {
	flags := uint32(0)
	if o.Queued {
		flags |= c.StreamQueued
	}
	h, f := d.api.StreamOpen(d.dev, int32(min(max(o.Priority, -1000), 1000)), flags, o.Name)
	if err := failed("open stream", f); err != nil {
		return nil, err
	}
	s := &Stream{d: d, s: h}
	runtime.AddCleanup(s, c.Stream.Free, h)
	d.adopt(s)
	return s, nil
}

// Wait returns when all that was submitted has run, or with ErrTimeout or
// ErrCancelled when ctx ends first: the work may then still be running, and the
// buffers it names are still in use. A failure of that work is returned here.
func (s *Stream) Wait(ctx context.Context) error {
	code := s.s.Poll(0)
	runtime.KeepAlive(s)
	var err error
	if code != 0 {
		err = waitSlices(ctx, "wait", s.poll)
	}
	if len(s.mirrors) > 0 && !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrCancelled) {
		s.settle(err == nil)
	}
	return err
}

func (s *Stream) poll(ns uint64) error {
	code := s.s.Poll(ns)
	if code == 0 {
		return nil
	}
	return failed("wait", s.s.Why(code))
}

// waitSlices polls until it is done or ctx ends. Short slices, so that a cancelled
// context is seen; the backend sleeps within a slice.
func waitSlices(ctx context.Context, op string, poll func(ns uint64) error) error {
	const slice = 5 * time.Millisecond
	for {
		ns := slice
		if deadline, ok := ctx.Deadline(); ok {
			ns = min(slice, max(time.Until(deadline), 0))
		}
		err := poll(uint64(ns))
		if !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrNotReady) {
			return err
		}
		if err := ended(ctx, op); err != nil {
			return err
		}
	}
}

// ended tells a deadline from a cancellation, as errors of this package.
func ended(ctx context.Context, op string) error {
	err := ctx.Err()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w: %w", op, ErrTimeout, err)
	}
	return fmt.Errorf("%s: %w: %w", op, ErrCancelled, err)
}

// Release waits up to two seconds for the stream's work and destroys it. A
// stream whose work does not end stays open and Release returns ErrTimeout.
func (s *Stream) Release() error { return s.d.releaseChild("release stream", s) }

func (s *Stream) release() error {
	until := time.Now().Add(closeWait)
	for {
		err := failed("release stream", s.d.api.StreamClose(s.s, uint64(max(time.Until(until), 0))))
		if !errors.Is(err, ErrBusy) {
			if err == nil {
				s.settle(false) // what its work came to, nobody asked
			}
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("%w: its work did not end in %v: %w", ErrTimeout, closeWait, err)
		}
		time.Sleep(time.Millisecond) // a device that died needs a moment to drop its queue
	}
}

func (s *Stream) rank() int { return rankStream }

// Graph is work that was checked and recorded once. It keeps its buffers and
// events in use until it is released. It belongs to one goroutine at a time.
type Graph struct {
	d      *Device
	g      c.Graph
	closed bool
}

// Record calls f and returns the lists it submitted to s as a graph. They do not
// run. Nothing else may use s meanwhile.
func (s *Stream) Record(f func() error) (*Graph, error) {
	if err := s.d.enter("record graph"); err != nil {
		return nil, err
	}
	defer s.d.gate.RUnlock()
	if err := failed("record graph", s.d.api.GraphBegin(s.s)); err != nil {
		return nil, err
	}
	s.recording = true
	err := f()
	s.recording = false
	h, fail := s.d.api.GraphEnd(s.s)
	if fail.Code != 0 {
		return nil, errors.Join(err, failed("record graph", fail))
	}
	if err != nil {
		return nil, errors.Join(err, failed("record graph", s.d.api.GraphDestroy(h)))
	}
	g := &Graph{d: s.d, g: h}
	s.d.adopt(g)
	return g, nil
}

// Launch queues the graph's work on a stream of its device.
func (g *Graph) Launch(s *Stream) error {
	if s == nil || s.d != g.d {
		return fmt.Errorf("launch graph: stream is nil or of another device: %w", ErrInvalid)
	}
	if g.closed {
		return fmt.Errorf("launch graph: %w", ErrClosed)
	}
	// A device that closes takes its streams first.
	if code := s.s.Launch(g.g); code != 0 {
		return failed("launch graph", s.s.Why(code))
	}
	runtime.KeepAlive(s)
	return nil
}

// Release frees the graph. It fails with ErrBusy while it runs.
func (g *Graph) Release() error { return g.d.releaseChild("release graph", g) }

func (g *Graph) release() error {
	err := failed("release graph", g.d.api.GraphDestroy(g.g))
	g.closed = err == nil
	return err
}

func (g *Graph) rank() int { return rankGraph }
