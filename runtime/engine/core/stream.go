package core

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core/c"
)

// Event is a mark in a stream.
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
	if err := backendError("create event", f); err != nil {
		return nil, err
	}
	e := &Event{d: d, id: id}
	d.adopt(e)
	return e, nil
}

// Since returns the device time from start to e. It returns ErrNotReady until both have
// passed.
func (e *Event) Since(start *Event) (time.Duration, error) {
	if err := e.d.enter("read event time"); err != nil {
		return 0, err
	}
	defer e.d.gate.RUnlock()
	if start == nil || start.d != e.d {
		return 0, fmt.Errorf("read event time: start is nil or belongs to another device: %w", ErrInvalid)
	}
	ns, f := e.d.api.EventElapsed(e.d.dev, start.id, e.id)
	return time.Duration(ns), backendError("read event time", f)
}

// Release frees the event.
func (e *Event) Release() error { return e.d.releaseChild("release event", e) }

func (e *Event) release() error {
	return backendError("release event", e.d.api.EventDestroy(e.d.dev, e.id))
}

func (e *Event) rank() int { return rankBuffer }

// closeWait limits how long Stream.Release waits for unfinished work.
const closeWait = 2 * time.Second

// Stream is an order of execution. Only one goroutine may use it at a time.
//
// On the CPU a list runs in the goroutine that submits it. Threads of the device run it if
// the stream is queued or has work waiting. On a GPU all work is queued.
type Stream struct {
	d *Device
	s c.Stream

	lists uint64 // numbers given to lists
}

// StreamOptions describe a stream.
type StreamOptions struct {
	Queued bool   // never run lists in the calling goroutine, even on the CPU
	Name   string // at most 15 bytes; matched by "stage=" of injected faults
}

// NewStream creates a stream.
func (d *Device) NewStream() (*Stream, error) { return d.OpenStream(StreamOptions{}) }

// OpenStream creates a stream with options.
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
	h, f := d.api.StreamOpen(d.dev, flags, o.Name)
	if err := backendError("open stream", f); err != nil {
		return nil, err
	}
	s := &Stream{d: d, s: h}
	runtime.AddCleanup(s, c.Stream.Free, h)
	d.adopt(s)
	return s, nil
}

// Wait returns when all submitted work has finished, with its error if it failed. If ctx
// ends first it returns ErrTimeout or ErrCancelled; the work may then still be running and
// its buffers are still in use.
func (s *Stream) Wait(ctx context.Context) error {
	code := s.s.Poll(0)
	runtime.KeepAlive(s)
	if code == 0 {
		return nil
	}
	return pollUntilDone(ctx, "wait", s.poll)
}

func (s *Stream) poll(ns uint64) error {
	code := s.s.Poll(ns)
	if code == 0 {
		return nil
	}
	return backendError("wait", s.s.Why(code))
}

// pollUntilDone polls until the work is done or ctx ends. The backend sleeps for at most
// one slice, after which cancellation of ctx is noticed.
func pollUntilDone(ctx context.Context, op string, poll func(ns uint64) error) error {
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
		if err := contextError(ctx, op); err != nil {
			return err
		}
	}
}

// contextError returns ErrTimeout or ErrCancelled if ctx has ended, otherwise nil.
func contextError(ctx context.Context, op string) error {
	err := ctx.Err()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w: %w", op, ErrTimeout, err)
	}
	return fmt.Errorf("%s: %w: %w", op, ErrCancelled, err)
}

// Release waits for up to two seconds for the stream's work and destroys the stream. If the
// work does not end, Release returns ErrTimeout and the stream stays open.
func (s *Stream) Release() error { return s.d.releaseChild("release stream", s) }

func (s *Stream) release() error {
	until := time.Now().Add(closeWait)
	for {
		err := backendError("release stream", s.d.api.StreamClose(s.s, uint64(max(time.Until(until), 0))))
		if !errors.Is(err, ErrBusy) {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("%w: the work did not end within %v: %w", ErrTimeout, closeWait, err)
		}
		time.Sleep(time.Millisecond) // a lost device needs a moment to drop its queue
	}
}

func (s *Stream) rank() int { return rankStream }
