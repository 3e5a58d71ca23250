package sink

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/schema/plan"
)

// The environment variable with which a test runs itself where files have a limit.
const limited = "YOCTUNE_TEST_LIMITED"

// underALimit runs the calling test again in a process with a limit of the file size, like
// a disk that fills up. It reports whether this is that process.
func underALimit(t *testing.T, bytes uint64) bool {
	t.Helper()
	if os.Getenv(limited) == t.Name() {
		// The kernel also sends a signal, which would end a Go program.
		ossignal.Ignore(syscall.SIGXFSZ)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: bytes}); err != nil {
			t.Fatal(err)
		}
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), limited+"="+t.Name())
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// If the disk fills up during a line, no part of the line remains, and the next line is
// complete.
func TestAFullDiskLeavesWholeLines(t *testing.T) {
	one := len(record(10).AppendJSON(nil)) + 1
	room := uint64(3*one + one/2)
	if !underALimit(t, room) {
		return
	}
	path := filepath.Join(t.TempDir(), "out.ndjson")
	s, err := OpenNDJSON(path, plan.Rotate{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := range uint64(3) {
		if err := s.Write(record(10 + n)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := s.Write(record(13)); !errors.Is(err, ErrDegraded) || !errors.Is(err, syscall.EFBIG) {
			t.Errorf("%v", err)
		}
		s.rest.next = time.Time{}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if ids := framesOf(t, b); len(b) != 3*one || len(ids) != 3 {
		t.Errorf("%d bytes, frames %v", len(b), ids)
	}
	// Somebody makes room.
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	s.rest.next = time.Time{}
	if err := s.Write(record(14)); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || len(framesOf(t, b)) != 1 {
		t.Errorf("%q %v", b, err)
	}
}

// A server may be slow, silent, endless or speak another protocol. Each costs at most one
// timeout and a few hundred bytes.
func TestHTTPSinkLimitsTheResponse(t *testing.T) {
	for name, serve := range map[string]func(net.Conn){
		"never answers": func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"never reads":   func(net.Conn) {},
		"endless line": func(c net.Conn) {
			for {
				if _, err := c.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
					return
				}
			}
		},
		"hangs up":     func(c net.Conn) { _ = c.Close() },
		"no HTTP":      func(c net.Conn) { _, _ = c.Write([]byte("220 smtp ready\r\n")) },
		"redirects":    func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\n\r\n")) },
		"has no reply": func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1\r\n\r\n")) },
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						serve(c)
						_, _ = io.Copy(io.Discard, c)
					}()
				}
			}()
			s, err := openHTTP("http://"+l.Addr().String()+"/", 100*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Write(record(1)); !errors.Is(err, ErrDegraded) {
				t.Errorf("%v", err)
			}
		})
	}
}
