// Package notify tells systemd how a service of Type=notify is doing: the
// protocol of sd_notify(3), one datagram of KEY=value lines to the socket that
// NOTIFY_SOCKET names. Without that variable everything here does nothing.
package notify

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// States of sd_notify(3).
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	Alive    = "WATCHDOG=1"
)

// Status is the line that `systemctl status` shows.
func Status(text string) string {
	return "STATUS=" + strings.NewReplacer("\n", " ", "\x00", " ").Replace(text)
}

// Systemd is the manager that started this process.
type Systemd struct {
	fd       int
	to       *unix.SockaddrUnix
	Watchdog time.Duration // what it waits for Alive before it restarts us; 0: it does not
}

// Connect reads what systemd put into the environment. pid is this process: the
// watchdog may be meant for another.
func Connect(getenv func(string) string, pid int) (*Systemd, error) {
	name := getenv("NOTIFY_SOCKET")
	if name == "" {
		return &Systemd{fd: -1}, nil
	}
	// unix.SockaddrUnix takes "@" for the abstract namespace as systemd writes it.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("connect to systemd: %w", err)
	}
	s := &Systemd{fd: fd, to: &unix.SockaddrUnix{Name: name}}
	if us, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		if p := getenv("WATCHDOG_PID"); p == "" || p == strconv.Itoa(pid) {
			s.Watchdog = time.Duration(us) * time.Microsecond
		}
	}
	return s, nil
}

// Send sends states in one datagram. A manager that does not listen must not
// disturb the work, so the error is for a log only.
func (s *Systemd) Send(states ...string) error {
	if s.fd < 0 {
		return nil
	}
	if err := unix.Sendto(s.fd, []byte(strings.Join(states, "\n")), unix.MSG_NOSIGNAL, s.to); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
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
