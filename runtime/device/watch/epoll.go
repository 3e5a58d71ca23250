package watch

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// poll waits for events on descriptors, and for a time.
//
// Go's runtime waits for the epoll itself, and a timer in it has the time. A goroutine that is
// blocked in a system call would cost four more wake-ups at each event: the monitor thread of the
// runtime wakes with it and looks for a while whether it has blocked again. For the same reason, the
// system calls here, none of which blocks, are made without telling the runtime.
type poll struct {
	fd      int
	file    *os.File // fd
	conn    syscall.RawConn
	wakeFD  int // an eventfd, written by other goroutines
	timerFD int
	until   time.Duration // what the timer is set to
	events  [32]unix.EpollEvent
}

// openPoll returns a poll without descriptors. The caller adds wakeFD.
func openPoll() (*poll, error) {
	p := &poll{fd: -1, wakeFD: -1, timerFD: -1}
	if err := p.open(); err != nil {
		p.close()
		return nil, fmt.Errorf("wait for events: %w", err)
	}
	return p, nil
}

func (p *poll) open() (err error) {
	if p.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if err := unix.SetNonblock(p.fd, true); err != nil { // so that Go waits for it
		return err
	}
	p.file = os.NewFile(uintptr(p.fd), "epoll")
	if p.conn, err = p.file.SyscallConn(); err != nil {
		return err
	}
	if p.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	if p.timerFD, err = unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return err
	}
	return p.add(p.timerFD)
}

func (p *poll) add(fd int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP, Fd: int32(fd)}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("wait for events: %w", err)
	}
	return nil
}

// wait returns the readable descriptors, none if none was until a time since the boot.
func (p *poll) wait(until time.Duration) ([]int, error) {
	if err := p.setTimer(until); err != nil {
		return nil, fmt.Errorf("wait for events: %w", err)
	}
	n, errno := 0, unix.Errno(0)
	err := p.conn.Read(func(fd uintptr) bool {
		var r uintptr
		r, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), 0, 0, 0)
		n = int(r)
		return errno != 0 || n > 0
	})
	if err == nil && errno != 0 {
		n, err = 0, errno
	}
	if err != nil {
		return nil, fmt.Errorf("wait for events: %w", err)
	}
	fds := make([]int, 0, n)
	for _, e := range p.events[:n] {
		if int(e.Fd) != p.timerFD {
			fds = append(fds, int(e.Fd))
		}
	}
	return fds, nil
}

// setTimer sets the timer, which is readable from that time on until it is set again.
func (p *poll) setTimer(until time.Duration) error {
	until = max(until, 1) // 0 would stop it
	if until == p.until {
		return nil
	}
	t := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(until))}
	if _, _, errno := unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(p.timerFD), unix.TFD_TIMER_ABSTIME, uintptr(unsafe.Pointer(&t)), 0, 0, 0); errno != 0 {
		return errno
	}
	p.until = until
	return nil
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
	for _, fd := range []int{p.wakeFD, p.timerFD} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	if p.file != nil {
		_ = p.file.Close()
	} else if p.fd >= 0 {
		_ = unix.Close(p.fd)
	}
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
