// Package notify implements sd_notify(3) for services of Type=notify: datagrams of KEY=value
// lines to the socket in NOTIFY_SOCKET. Without that variable it does nothing.
package notify

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// States of sd_notify(3).
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	Alive    = "WATCHDOG=1"
)

// Status returns the state that `systemctl status` shows as a line of text.
func Status(text string) string {
	return "STATUS=" + strings.NewReplacer("\n", " ", "\x00", " ").Replace(text)
}

// Systemd is the service manager that started this process.
type Systemd struct {
	fd       int
	to       unix.RawSockaddrUnix
	toLen    uintptr
	Watchdog time.Duration // interval within which systemd expects Alive, 0: none
}

// Connect reads the environment that systemd has set. pid is this process, since the watchdog
// may be for another one.
func Connect(getenv func(string) string, pid int) (*Systemd, error) {
	name := getenv("NOTIFY_SOCKET")
	if name == "" {
		return &Systemd{fd: -1}, nil
	}
	s := &Systemd{}
	if len(name) >= len(s.to.Path) {
		return nil, fmt.Errorf("connect to systemd: NOTIFY_SOCKET has %d bytes, and a socket's name at most %d", len(name), len(s.to.Path)-1)
	}
	s.to.Family = unix.AF_UNIX
	for i := range len(name) {
		s.to.Path[i] = int8(name[i])
	}
	s.toLen = unsafe.Offsetof(s.to.Path) + uintptr(len(name)) + 1
	if name[0] == '@' { // an abstract name begins with a zero, and ends without one
		s.to.Path[0], s.toLen = 0, s.toLen-1
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("connect to systemd: %w", err)
	}
	s.fd = fd
	if us, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		if p := getenv("WATCHDOG_PID"); p == "" || p == strconv.Itoa(pid) {
			s.Watchdog = time.Duration(us) * time.Microsecond
		}
	}
	return s, nil
}

// Connected reports whether a service manager has started this process.
func (s *Systemd) Connected() bool { return s.fd >= 0 }

// Send sends states in one datagram. Its error should only be logged.
func (s *Systemd) Send(states ...string) error {
	if s.fd < 0 {
		return nil
	}
	// The socket does not block. Unlike unix.Sendto, this does not announce to Go's runtime a
	// call that may block, for which the runtime would wake a thread at each sign of life.
	b := []byte(strings.Join(states, "\n"))
	if _, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_NOSIGNAL,
		uintptr(unsafe.Pointer(&s.to)), s.toLen); errno != 0 {
		return fmt.Errorf("notify systemd: %w", errno)
	}
	return nil
}

// Close releases the socket.
func (s *Systemd) Close() {
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
}
