package v4l2

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrHung is the error of a call from which the driver has not returned in time. Nothing can end
// the call. Until the driver returns, every other call fails at once.
var ErrHung = errors.New("the driver hangs")

// Limit returns a System for one camera whose calls of the driver end after a time: those of each
// frame after frame, the others, such as the start of a stream, after other. They are made by a
// goroutine of their own, which a driver that hangs keeps until it returns.
func Limit(sys System, frame, other time.Duration) System {
	return &limited{System: sys, frame: frame, other: other, lines: map[int]*line{}}
}

type limited struct {
	System
	frame, other time.Duration

	mu    sync.Mutex
	lines map[int]*line // by descriptor
	hung  bool          // the driver
	after []func()      // what is done once the driver returns
}

// line makes the calls for a descriptor, one after the other.
type line struct {
	calls chan call
	done  chan answer
	timer *time.Timer
}

type call struct {
	kind    int
	path    string
	fd      int
	request uint
	arg     unsafe.Pointer
}

// Kinds of calls.
const (
	callOpen = iota
	callIoctl
	callClose
)

type answer struct {
	fd  int
	err error
}

func (s *limited) newLine() *line {
	l := &line{calls: make(chan call), done: make(chan answer, 1), timer: time.NewTimer(time.Hour)}
	go func() {
		for c := range l.calls {
			a := answer{fd: c.fd}
			switch c.kind {
			case callOpen:
				a.fd, a.err = s.System.Open(c.path)
			case callIoctl:
				a.err = s.System.Ioctl(c.fd, c.request, c.arg)
			case callClose:
				a.err = s.System.Close(c.fd)
			}
			l.done <- a
		}
	}()
	return l
}

// do makes a call and waits for at most d.
func (s *limited) do(l *line, c call, d time.Duration) answer {
	if s.hangs() {
		return answer{-1, fmt.Errorf("%w: it has not returned from an earlier call", ErrHung)}
	}
	l.timer.Reset(d)
	l.calls <- c
	select {
	case a := <-l.done:
		l.timer.Stop()
		return a
	case <-l.timer.C:
	}
	s.mu.Lock()
	s.hung = true
	s.mu.Unlock()
	go s.await(l, c)
	return answer{-1, fmt.Errorf("%w: it has not returned within %v", ErrHung, d)}
}

// await closes a device whose driver hangs, once the driver returns.
func (s *limited) await(l *line, c call) {
	a := <-l.done
	close(l.calls)
	if c.kind != callClose && a.fd >= 0 {
		_ = s.System.Close(a.fd)
	}
	for {
		s.mu.Lock()
		after := s.after
		s.after, s.hung = nil, len(after) > 0
		s.mu.Unlock()
		if len(after) == 0 {
			return
		}
		for _, f := range after {
			f()
		}
	}
}

func (s *limited) hangs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hung
}

// afterReturn calls f once the driver has returned: now, unless it hangs.
func (s *limited) afterReturn(f func()) {
	s.mu.Lock()
	if s.hung {
		s.after, f = append(s.after, f), func() {}
	}
	s.mu.Unlock()
	f()
}

// Open opens a device, unless its driver hangs.
func (s *limited) Open(path string) (int, error) {
	if s.hangs() {
		return -1, fmt.Errorf("%w: it has not returned from an earlier call", ErrHung)
	}
	l := s.newLine()
	a := s.do(l, call{kind: callOpen, path: path, fd: -1}, s.other)
	switch {
	case a.err == nil:
		s.mu.Lock()
		s.lines[a.fd] = l
		s.mu.Unlock()
	case !errors.Is(a.err, ErrHung):
		close(l.calls)
	}
	return a.fd, a.err
}

func (s *limited) lineOf(fd int) *line {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines[fd]
}

// Ioctl implements [System].
func (s *limited) Ioctl(fd int, request uint, arg unsafe.Pointer) error {
	l, limit := s.lineOf(fd), s.other
	if l == nil {
		return unix.EBADF
	}
	if request == reqDQBuf || request == reqQBuf {
		limit = s.frame
	}
	return s.do(l, call{kind: callIoctl, fd: fd, request: request, arg: arg}, limit).err
}

// Close closes a device, or a buffer that was exported. A device whose driver hangs is closed
// once that returns.
func (s *limited) Close(fd int) error {
	l := s.lineOf(fd)
	if l == nil {
		return s.System.Close(fd)
	}
	s.mu.Lock()
	delete(s.lines, fd) // another file may have the number then
	s.mu.Unlock()
	a := s.do(l, call{kind: callClose, fd: fd}, s.other)
	if !errors.Is(a.err, ErrHung) {
		close(l.calls)
	}
	return a.err
}
