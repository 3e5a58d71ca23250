package monitor_test

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/monitor"
)

// enforcer answers each line on a socket with one text.
func enforcer(t *testing.T, path, text string) (asked *atomic.Int64, stop func()) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	asked = &atomic.Int64{}
	conns := make(chan net.Conn, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- c
			go func() {
				for in := bufio.NewScanner(c); in.Scan(); {
					asked.Add(1)
					if _, err := c.Write([]byte(text + "\n")); err != nil {
						return
					}
				}
			}()
		}
	}()
	return asked, func() {
		_ = l.Close()
		for len(conns) > 0 {
			_ = (<-conns).Close()
		}
	}
}

func TestSharedReadingIsPreferred(t *testing.T) {
	b := newBoard(t, "orin-nano-8gb")
	dir, err := os.MkdirTemp("", "yt")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "socket")
	now := time.Hour
	s := monitor.NewShared(b.dev, socket, time.Second)
	defer s.Close()
	s.FakeShared(func() time.Duration { return now })
	own := func(when string) {
		t.Helper()
		if got := s.Take(); len(got.CPUs) != 6 {
			t.Errorf("%s: %+v", when, got)
		}
	}
	theirs := func(when string) {
		t.Helper()
		if got := s.Take(); got.PowerMode == nil || *got.PowerMode != "theirs" || len(got.CPUs) != 0 {
			t.Errorf("%s: %+v", when, got)
		}
	}
	own("no enforcer")
	const sample = `{"type":"sampled","sample":{"type":"sample","power_mode":"theirs"}}`
	asked, stop := enforcer(t, socket, sample)
	own("before the next lookup")
	now += 11 * time.Second
	theirs("after the next lookup")
	theirs("second sample")
	if asked.Load() != 2 {
		t.Errorf("%d requests for two samples", asked.Load())
	}
	stop()
	own("the enforcer stopped")

	for _, answer := range []string{
		`{"type":"error","code":"malformed","message":"unknown type"}`, // of an older one
		`{"type":"sampled"}`, `{"type":"sampled","sample":{"type":"drift"}}`, `{"type":"sampled","sample":[]}`, `nonsense`,
	} {
		now += time.Minute
		asked, stop := enforcer(t, socket, answer)
		own(answer)
		if asked.Load() != 1 {
			t.Errorf("%s: %d requests", answer, asked.Load())
		}
		stop()
	}
}

func TestSampleLoadIsTheHigherOfCPUAndGPU(t *testing.T) {
	s := monitor.Sample{}
	if _, known := s.Load(); known {
		t.Error("the load is known without values")
	}
	s.CPUs = []monitor.CPU{{Load: new(int64(200))}, {Load: new(int64(400))}, {}}
	if load, known := s.Load(); load != 30 || !known {
		t.Errorf("%d %v", load, known)
	}
	s.GPUs = []monitor.GPU{{Load: new(int64(900))}}
	if load, _ := s.Load(); load != 90 {
		t.Errorf("%d", load)
	}
}
