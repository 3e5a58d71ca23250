package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// poll is the one place where a watching process waits.
type poll struct {
	fd     int
	wakeFD int // an eventfd, written by other goroutines
	events [32]unix.EpollEvent
}

func openPoll() (*poll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("wait for events: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("wait for events: %w", err)
	}
	p := &poll{fd: fd, wakeFD: wake}
	return p, p.add(wake)
}

func (p *poll) add(fd int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP, Fd: int32(fd)}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("wait for events: %w", err)
	}
	return nil
}

// wait returns the descriptors that have something, none when the time is over.
func (p *poll) wait(d time.Duration) ([]int, error) {
	// Rounded up: waking before the deadline would only wait again.
	ms := min(max((d+time.Millisecond-1)/time.Millisecond, 0), math.MaxInt32)
	n, err := unix.EpollWait(p.fd, p.events[:], int(ms))
	if errors.Is(err, unix.EINTR) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("wait for events: %w", err)
	}
	fds := make([]int, n)
	for i := range fds {
		fds[i] = int(p.events[i].Fd)
	}
	return fds, nil
}

// wake ends a wait, now or the next one.
func (p *poll) wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(p.wakeFD, one[:]) // full means that it is awake already
}

func (p *poll) close() {
	_ = unix.Close(p.wakeFD)
	_ = unix.Close(p.fd)
}

// boottime counts while the machine sleeps, and is not set by anybody.
func boottime() time.Duration { return clock(unix.CLOCK_BOOTTIME) }

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0 // only an unknown clock fails, and these are as old as Go's kernels
	}
	return time.Duration(ts.Nano())
}

// resume tells that the machine slept: drivers come back with their defaults. A
// timer on the wall clock that asks to be cancelled when that clock jumps is
// cancelled at every resume, too (timerfd_create(2)).
type resume struct {
	fd    int
	slept time.Duration
}

func openResume() (*resume, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch for resume: %w", err)
	}
	r := &resume{fd: fd, slept: asleep()}
	if err := r.arm(); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return r, nil
}

// arm sets the timer to a time that does not come.
func (r *resume) arm() error {
	never := unix.ItimerSpec{Value: unix.Timespec{Sec: math.MaxInt32}}
	if err := unix.TimerfdSettime(r.fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &never, nil); err != nil {
		return fmt.Errorf("watch for resume: %w", err)
	}
	return nil
}

// happened reads the timer and reports whether the machine slept meanwhile; a
// clock that was set is no reason to do anything.
func (r *resume) happened() bool {
	var buf [8]byte
	_, _ = unix.Read(r.fd, buf[:])
	_ = r.arm()
	before := r.slept
	r.slept = asleep()
	return r.slept-before > 100*time.Millisecond
}

func asleep() time.Duration { return clock(unix.CLOCK_BOOTTIME) - clock(unix.CLOCK_MONOTONIC) }
