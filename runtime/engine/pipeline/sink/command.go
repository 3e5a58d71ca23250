package sink

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/tailbuf"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// sinkStopTime is how long a program may take to exit after the end of its input.
const sinkStopTime = 2 * time.Second

// commandSink writes each record as a line to the standard input of a program. It starts the
// program, and restarts it when it exits.
type commandSink struct {
	argv    []string
	timeout time.Duration
	cmd     *exec.Cmd
	in      *os.File
	stderr  *tailbuf.Buffer
	buf     []byte
	rest    Retry
	unread  error // results that were written and never read, nil: none
}

func openCommandSink(argv []string, timeout time.Duration) (*commandSink, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, fmt.Errorf("%w: missing command", registry.ErrPlan)
	}
	s := &commandSink{argv: argv, timeout: timeout}
	if err := s.start(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *commandSink) start() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	s.stderr = &tailbuf.Buffer{}
	cmd := exec.Command(s.argv[0], s.argv[1:]...)
	cmd.Stdin, cmd.Stderr = r, s.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = sinkStopTime
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start sink: %w", err), w.Close())
	}
	s.cmd, s.in = cmd, w
	return nil
}

// Write returns [ErrSinkDegraded] if the program has exited or does not read the line in time.
// A program that may have read half a line is stopped.
func (s *commandSink) Write(r *result.Record) error {
	if !s.rest.Due() {
		return s.rest.Err()
	}
	if s.cmd == nil {
		if err := s.start(); err != nil {
			return s.rest.Fail(err)
		}
	}
	s.buf = append(r.AppendJSON(s.buf[:0]), '\n')
	err := s.in.SetWriteDeadline(time.Now().Add(s.timeout))
	if err == nil {
		_, err = s.in.Write(s.buf)
	}
	if err == nil {
		s.rest.Reset()
		return nil
	}
	return s.rest.Fail(errors.Join(fmt.Errorf("%s does not read its input: %w", s.argv[0], err), s.end(true)))
}

// end stops the program: by closing its input, or with SIGKILL. What was not read, now or by an
// earlier run of the program, is an error, because its frames count as done.
func (s *commandSink) end(now bool) error {
	if s.cmd == nil {
		return s.unread
	}
	cmd := s.cmd
	s.cmd = nil
	left := openUnread(s.in)
	defer left.Close()
	_ = s.in.Close()
	if !now {
		ctx, cancel := context.WithTimeout(context.Background(), sinkStopTime)
		defer cancel()
		defer context.AfterFunc(ctx, func() {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			}
		})()
	} else {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	err := cmd.Wait()
	if err != nil && !now {
		return fmt.Errorf("%s: %w %s", s.argv[0], err, s.stderr.String())
	}
	if n, _ := unix.IoctlGetInt(int(left.Fd()), unix.TIOCINQ); n > 0 {
		s.unread = fmt.Errorf("%w: %s ended and left %d bytes of results unread", ErrFailed, s.argv[0], n)
	}
	return s.unread
}

// openUnread opens the other end of a pipe, which keeps what the program does not read. The program
// has to be the only reader before, so that a write fails when it ends. The file is nil without /proc.
func openUnread(in *os.File) *os.File {
	raw, err := in.SyscallConn()
	if err != nil {
		return nil
	}
	var left *os.File
	_ = raw.Control(func(fd uintptr) {
		left, _ = os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(fd)), os.O_RDONLY|unix.O_NONBLOCK, 0)
	})
	return left
}

func (s *commandSink) Close() error { return s.end(false) }
