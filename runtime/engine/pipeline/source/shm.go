package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/ring"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Bounds of a ring of frames, larger than those of a ring of results.
const (
	maxFrameSlot = 1 << 30
	maxFrameRing = 2 << 30
)

// ringPoll is how often a ring is looked at while it has nothing new. Its writer
// rings no bell: 0.5 ms of 33.
const ringPoll = 500 * time.Microsecond

// ringSource reads frames that another program puts in a ring in shared memory, of
// the kind that sinks write (see ring.go), each record a frame. What was overwritten
// before it could be read is lost, and counted.
type ringSource struct {
	path  string
	at    frame.Format
	after revival
	clock frame.Clock
	ring  *ring.Reader
	stop  chan struct{}
	once  sync.Once
}

func openRingSource(path string, f frame.Format, after revival) (Source, error) {
	if err := frame.CheckSize(f.Width, f.Height); err != nil {
		return nil, fmt.Errorf("%w: %w; a ring says nothing of its frames, so the plan must", registry.ErrPlan, err)
	}
	k, err := frame.NewClock()
	if err != nil {
		return nil, err
	}
	s := &ringSource{path: path, at: f, after: after, clock: k, stop: make(chan struct{})}
	return s, s.open()
}

func (s *ringSource) open() error {
	r, err := ring.OpenLimited(s.path, maxFrameSlot, maxFrameRing)
	if err != nil {
		return err
	}
	if r.Size < uint64(s.at.Bytes()) {
		return errors.Join(fmt.Errorf("%w: a slot of %s has %d bytes, a frame %d", frame.ErrFormat, s.path, r.Size, s.at.Bytes()), r.Close())
	}
	s.ring = r
	return nil
}

func (s *ringSource) Format() frame.Format         { return s.at }
func (s *ringSource) Lend(int, bool) (bool, error) { return false, nil }
func (s *ringSource) ReadFrame([]byte) error       { return errors.ErrUnsupported }
func (s *ringSource) Interrupt()                   { s.once.Do(func() { close(s.stop) }) }

func (s *ringSource) Capture(f *frame.Frame) (int, error) {
	t := time.NewTimer(0)
	defer t.Stop()
	began, said := time.Now(), false
	since := began // when the ring was opened, if that is later
	for {
		select {
		case <-t.C:
		case <-s.stop:
			return 0, context.Canceled
		}
		got, lost, ok := s.ring.Next(f.Pixels[:0])
		if ok {
			f.Arrived = s.clock.Now()
			f.Capture, f.Copies = f.Arrived, 1
			if len(got) != len(f.Pixels) {
				return int(lost), fmt.Errorf("%w: it has %d of %d bytes", frame.ErrLost, len(got), len(f.Pixels))
			}
			if said {
				s.after.event("frames come again after %v", time.Since(began).Round(time.Millisecond))
			}
			return int(lost), nil
		}
		t.Reset(ringPoll)
		if time.Since(since) < s.after.timeout {
			continue
		}
		if !said {
			said = true
			if s.after.restart == restartNever {
				return 0, fmt.Errorf("%w: %s: no frame for %v", frame.ErrFormat, s.path, s.after.timeout)
			}
			s.after.event("%s: no frame for %v; it is opened again", s.path, s.after.timeout)
		}
		// A writer that was started anew made another ring of this name.
		old := s.ring
		if err := s.open(); err != nil {
			s.ring = old
			t.Reset(s.after.pause.Next())
			continue
		}
		s.after.pause = 0
		_ = old.Close()
		t.Reset(ringPoll)
		since = time.Now()
	}
}

func (s *ringSource) Close() error { return s.ring.Close() }
