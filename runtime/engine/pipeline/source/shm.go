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

// Limits of a ring of frames, larger than those of a ring of results.
const (
	maxFrameSlot = 1 << 30
	maxFrameRing = 2 << 30
)

// ringPoll is the polling interval of an idle ring. The writer sends no notification; at 30
// frames/s this adds at most 0.5 ms of 33 ms.
const ringPoll = 500 * time.Microsecond

// ringSource reads frames from a ring in shared memory that another program writes, in the
// format of package ring, one frame per record. Records overwritten before they were read are
// counted as lost.
type ringSource struct {
	path  string
	at    frame.Format
	after restartPolicy
	clock frame.Clock
	ring  *ring.Reader
	stop  chan struct{}
	once  sync.Once
}

func openRingSource(path string, f frame.Format, after restartPolicy) (Source, error) {
	if err := f.CheckSize(); err != nil {
		return nil, fmt.Errorf("%w: %w; the plan must describe the frames of a ring", registry.ErrPlan, err)
	}
	k, err := frame.NewClock()
	if err != nil {
		return nil, err
	}
	s := &ringSource{path: path, at: f, after: after, clock: k, stop: make(chan struct{})}
	return s, s.open()
}

func (s *ringSource) open() error {
	r, err := ring.Open(s.path, maxFrameSlot, maxFrameRing)
	if err != nil {
		return err
	}
	if r.Size < uint64(s.at.Bytes()) {
		return errors.Join(fmt.Errorf("%w: slots of %s have %d bytes, but a frame has %d", frame.ErrFormat, s.path, r.Size, s.at.Bytes()), r.Close())
	}
	s.ring = r
	return nil
}

func (s *ringSource) Format() frame.Format       { return s.at }
func (s *ringSource) Lend(Lending) (bool, error) { return false, nil }
func (s *ringSource) ReadFrame([]byte) error     { return errors.ErrUnsupported }
func (s *ringSource) Interrupt()                 { s.once.Do(func() { close(s.stop) }) }

func (s *ringSource) Capture(f *frame.Frame) (int, error) {
	t := time.NewTimer(0)
	defer t.Stop()
	began, reported := time.Now(), false
	since := began // or when the ring was opened, if that is later
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
				return int(lost), fmt.Errorf("%w: %d of %d bytes", frame.ErrLost, len(got), len(f.Pixels))
			}
			if reported {
				s.after.event("frames resumed after %v", time.Since(began).Round(time.Millisecond))
			}
			return int(lost), nil
		}
		t.Reset(ringPoll)
		if time.Since(since) < s.after.timeout {
			continue
		}
		if !reported {
			reported = true
			if s.after.restart == restartNever {
				return 0, fmt.Errorf("%w: %s: no frame for %v", frame.ErrFormat, s.path, s.after.timeout)
			}
			s.after.event("%s: no frame for %v; reopening it", s.path, s.after.timeout)
		}
		// A restarted writer makes another ring of the same name.
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
