package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
)

// commandSource reads the frames of a program that may end and be started again: one
// that reads a camera or a stream of the network. It gives frames when they come.
type commandSource struct {
	argv  []string
	open  func(Input) (Source, error) // reads what the program writes
	at    frame.Format
	after revival
	clock frame.Clock

	child *child
	inner Source // nil while there is none
	begun bool   // it has given a frame

	mu   sync.Mutex // of what interrupt sees
	now  *child
	stop chan struct{}
	once sync.Once
}

// child is a program with the time at which the frame that is read began to come.
type child struct {
	*command
	clock frame.Clock
	since atomic.Int64 // ns, 0: nothing has come
}

func (c *child) Read(b []byte) (int, error) {
	n, err := c.command.Read(b)
	if n > 0 && c.since.Load() == 0 {
		c.since.Store(c.clock.Now())
	}
	return n, err
}

func openCommand(argv []string, after revival, open func(Input) (Source, error)) (Source, error) {
	k, err := frame.NewClock()
	if err != nil {
		return nil, err
	}
	s := &commandSource{argv: argv, open: open, after: after, clock: k, stop: make(chan struct{})}
	if s.child, s.inner, err = s.start(); err != nil {
		return nil, err
	}
	s.at = s.inner.Format()
	return s, nil
}

func (s *commandSource) start() (*child, Source, error) {
	c, err := startCommand(s.argv)
	if err != nil {
		return nil, nil, err
	}
	ch := &child{command: c, clock: s.clock}
	s.mu.Lock()
	s.now = ch
	// Formats with a header wait for it here.
	wait := max(s.after.timeout, startTime)
	if s.stopped() {
		wait = 0
	}
	_ = c.SetReadDeadline(time.Now().Add(wait))
	s.mu.Unlock()
	inner, err := s.open(ch)
	if s.stopped() {
		err = errors.Join(err, context.Canceled)
	}
	if err != nil {
		s.mu.Lock()
		s.now = nil
		s.mu.Unlock()
		if inner != nil {
			err = errors.Join(err, inner.Close())
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = ch.saying(fmt.Errorf("%w: %s wrote nothing in %v", frame.ErrFormat, s.name(), wait))
		}
		return nil, nil, err
	}
	return ch, inner, nil
}

// startTime is how long a program has to begin: one that reads from the network
// first has to connect.
const startTime = 10 * time.Second

func (s *commandSource) name() string { return filepath.Base(s.argv[0]) }

func (s *commandSource) Format() frame.Format         { return s.at }
func (s *commandSource) Lend(int, bool) (bool, error) { return false, nil }
func (s *commandSource) ReadFrame([]byte) error       { return errors.ErrUnsupported }

func (s *commandSource) Interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.once.Do(func() { close(s.stop) })
	if s.now != nil {
		_ = s.now.SetReadDeadline(time.Unix(1, 0))
	}
}

func (s *commandSource) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// deadline bounds the wait for a frame, unless nobody wants one any more.
func (s *commandSource) deadline(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped() {
		_ = s.child.SetReadDeadline(time.Now().Add(d))
	}
}

// Capture waits for a frame. A program that has ended, or gives none for too long,
// is started again.
func (s *commandSource) Capture(f *frame.Frame) (int, error) {
	for {
		if s.inner == nil {
			if err := s.again(); err != nil {
				return 0, err
			}
		}
		wait := s.after.timeout
		if !s.begun {
			wait = max(wait, startTime)
		}
		s.deadline(wait)
		s.child.since.Store(0)
		err := ReadInto(s.inner, f)
		f.Arrived = s.clock.Now()
		if f.Capture = s.child.since.Load(); f.Capture == 0 { // it was there before
			f.Capture = f.Arrived
		}
		switch {
		case err == nil:
			s.begun, s.after.pause = true, 0
			return 0, nil
		case errors.Is(err, frame.ErrLost):
			return 0, err
		case s.stopped():
			return 0, context.Canceled
		}
		if err := s.ended(err, wait); err != nil {
			return 0, err
		}
	}
}

// ended ends a program that failed with err, which is returned when it is not to be
// started again.
func (s *commandSource) ended(err error, wait time.Duration) error {
	s.mu.Lock()
	s.now = nil
	s.mu.Unlock()
	well := errors.Is(err, io.EOF)
	switch {
	case well:
		err = errors.New("it ended")
	case errors.Is(err, context.Canceled):
		err = s.child.saying(fmt.Errorf("it wrote no frame for %v", wait))
	}
	cerr := s.inner.Close()
	s.inner = nil
	if s.after.restart == restartNever || well && s.after.restart == restartOnFailure {
		if well {
			return io.EOF
		}
		return errors.Join(fmt.Errorf("%s: %w", s.name(), err), cerr)
	}
	s.after.event("%s: %v; it is started again", s.name(), err)
	return nil
}

func (s *commandSource) again() error {
	said := ""
	for {
		t := time.NewTimer(s.after.pause.Next())
		select {
		case <-t.C:
		case <-s.stop:
			t.Stop()
			return context.Canceled
		}
		child, inner, err := s.start()
		if err == nil {
			w, h := inner.Format().Whole()
			if wasW, wasH := s.at.Whole(); w != wasW || h != wasH {
				err = errors.Join(fmt.Errorf("%w: frames are now of %dx%d, not %dx%d", frame.ErrFormat, w, h, wasW, wasH), inner.Close())
			}
		}
		if err == nil {
			s.child, s.inner, s.begun = child, inner, false
			return nil
		}
		if text := err.Error(); text != said {
			said = text
			s.after.event("%s", text)
		}
	}
}

func (s *commandSource) Close() error {
	s.mu.Lock()
	s.now = nil
	s.mu.Unlock()
	if s.inner == nil {
		return nil
	}
	err := s.inner.Close()
	s.inner = nil
	return err
}
