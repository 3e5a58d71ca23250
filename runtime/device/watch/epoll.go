package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// poll waits for events on descriptors.
type poll struct {
	fd     int
	wakeFD int // an eventfd, written by other goroutines
	events [32]unix.EpollEvent
}

// openPoll returns a poll without descriptors. The caller adds wakeFD.

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
	return &poll{fd: fd, wakeFD: wake}, nil
}

func (p *poll) add(fd int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP, Fd: int32(fd)}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("wait for events: %w", err)
	}
	return nil
}

// wait returns the readable descriptors, none after the timeout.
func (p *poll) wait(d time.Duration) ([]int, error) {
	// Round up: a wake-up before the deadline would only wait again.
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

// wake ends the current or the next wait.
func (p *poll) wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(p.wakeFD, one[:]) // the counter is full only if a wake-up is pending
}

// clearWake makes the next wait block again.
func (p *poll) clearWake() {
	var count [8]byte
	_, _ = unix.Read(p.wakeFD, count[:])
}

func (p *poll) close() {
	_ = unix.Close(p.wakeFD)
	_ = unix.Close(p.fd)
}

// resumeTimer reports that the machine has slept, after which drivers have their defaults
// again. A timer that is cancelled when the wall clock jumps is also cancelled at every
// resume (timerfd_create(2)).
type resumeTimer struct {
	fd    int
	slept time.Duration
}

func openResumeTimer() (*resumeTimer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch for resume: %w", err)
	}
	r := &resumeTimer{fd: fd, slept: rootfs.SuspendTime()}
	if err := r.arm(); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return r, nil
}

// arm sets the timer to a time in the far future.
func (r *resumeTimer) arm() error {
	never := unix.ItimerSpec{Value: unix.Timespec{Sec: math.MaxInt32}}
	if err := unix.TimerfdSettime(r.fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &never, nil); err != nil {
		return fmt.Errorf("watch for resume: %w", err)
	}
	return nil
}

// hasSlept reads the timer and reports whether the machine has slept since the last call.
// A wall clock that was set also ends the timer, and is ignored.
func (r *resumeTimer) hasSlept() bool {
	var buf [8]byte
	_, _ = unix.Read(r.fd, buf[:])
	_ = r.arm()
	before := r.slept
	r.slept = rootfs.SuspendTime()
	return r.slept-before > 100*time.Millisecond
}
