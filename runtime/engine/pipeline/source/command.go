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

// commandSource reads the frames of a program that may be restarted, such as one that reads a
// camera or a network stream. It delivers frames as they arrive.
type commandSource struct {
	argv  []string
	open  func(Input) (Source, error) // parses the program's output
	at    frame.Format
	after restartPolicy
	clock frame.Clock

	child *child
	inner Source // nil while no program runs
	begun bool   // a frame has been delivered

	mu   sync.Mutex // guards what interrupt reads
	now  *child
	stop chan struct{}
	once sync.Once
}

// child is a program with the arrival time of the frame being read.
type child struct {
	*command
	clock frame.Clock
	since atomic.Int64 // ns, 0: nothing has arrived
}

func (c *child) Read(b []byte) (int, error) {
	n, err := c.command.Read(b)
	if n > 0 && c.since.Load() == 0 {
		c.since.Store(c.clock.Now())
	}
	return n, err
}

func openCommand(argv []string, after restartPolicy, open func(Input) (Source, error)) (Source, error) {
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
	// Formats with a header block on it here.
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
			err = ch.withOutput(fmt.Errorf("%w: %s wrote nothing in %v", frame.ErrFormat, s.name(), wait))
		}
		return nil, nil, err
	}
	return ch, inner, nil
}

// startTime is how long a program may take to start: one that reads from the network has to
// connect first.
const startTime = 10 * time.Second

func (s *commandSource) name() string { return filepath.Base(s.argv[0]) }

func (s *commandSource) Format() frame.Format       { return s.at }
func (s *commandSource) Lend(Lending) (bool, error) { return false, nil }
func (s *commandSource) ReadFrame([]byte) error     { return errors.ErrUnsupported }

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

// setDeadline limits the wait for a frame, unless the source was interrupted.
func (s *commandSource) setDeadline(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped() {
		_ = s.child.SetReadDeadline(time.Now().Add(d))
	}
}

// Capture waits for a frame. A program that exits, or writes no frame within the timeout, is
// restarted.
func (s *commandSource) Capture(f *frame.Frame) (int, error) {
	for {
		if s.inner == nil {
			if err := s.restart(); err != nil {
				return 0, err
			}
		}
		wait := s.after.timeout
		if !s.begun {
			wait = max(wait, startTime)
		}
		s.setDeadline(wait)
		s.child.since.Store(0)
		err := ReadInto(s.inner, f)
		f.Arrived = s.clock.Now()
		if f.Capture = s.child.since.Load(); f.Capture == 0 { // the data had arrived earlier
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
		if err := s.stopProgram(err, wait); err != nil {
			return 0, err
		}
	}
}

// stopProgram stops a program that failed with err, and returns err if the program must not be
// restarted.
func (s *commandSource) stopProgram(err error, wait time.Duration) error {
	s.mu.Lock()
	s.now = nil
	s.mu.Unlock()
	well := errors.Is(err, io.EOF)
	switch {
	case well:
		err = errors.New("the program exited")
	case errors.Is(err, context.Canceled):
		err = s.child.withOutput(fmt.Errorf("no frame for %v", wait))
	}
	cerr := s.inner.Close()
	s.inner = nil
	if s.after.restart == restartNever || well && s.after.restart == restartOnFailure {
		if well {
			return io.EOF
		}
		return errors.Join(fmt.Errorf("%s: %w", s.name(), err), cerr)
	}
	s.after.event("%s: %v; restarting it", s.name(), err)
	return nil
}

// restart retries until the program delivers frames again. It returns [context.Canceled] if
// the source is interrupted.
func (s *commandSource) restart() error {
	reported := ""
	for {
		if s.after.pause.Wait(s.stop) {
			return context.Canceled
		}
		child, inner, err := s.start()
		if err == nil {
			w, h := inner.Format().FullSize()
			if wasW, wasH := s.at.FullSize(); w != wasW || h != wasH {
				err = errors.Join(fmt.Errorf("%w: frames are now of %dx%d, not %dx%d", frame.ErrFormat, w, h, wasW, wasH), inner.Close())
			}
		}
		if err == nil {
			s.child, s.inner, s.begun = child, inner, false
			return nil
		}
		if text := err.Error(); text != reported {
			reported = text
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
