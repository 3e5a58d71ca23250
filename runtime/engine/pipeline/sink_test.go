package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
)

func record(n uint64) *Record {
	return &Record{Pipeline: "door", Frame: n, Results: []Result{{Kind: kindArgmax, Class: 1, Label: "cat", Score: 0.5}}}
}

// framesOf reads the frame numbers of JSON lines.
func framesOf(t *testing.T, b []byte) (ids []uint64) {
	t.Helper()
	for line := range strings.Lines(string(b)) {
		var v struct{ Frame uint64 }
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		ids = append(ids, v.Frame)
	}
	return ids
}

func TestFilesRotateAndAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.ndjson")
	one := int64(len(record(10).AppendJSON(nil)) + 1)
	s, err := OpenNDJSON(path, plan.Rotate{Size: 10 * one, Keep: 2})
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(10); n < 99; n++ {
		if err := s.Write(record(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want := uint64(70)
	for _, name := range []string{path + ".2", path + ".1", path} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range framesOf(t, b) {
			if id != want {
				t.Fatalf("%s: frame %d, want %d", name, id, want)
			}
			want++
		}
	}
	if all, _ := filepath.Glob(path + "*"); len(all) != 3 || want != 99 {
		t.Errorf("%v, up to frame %d", all, want)
	}
}

// /dev/full is a full disk.
func TestFullDiskIsADegradedStateNotAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := OpenNDJSON("/dev/full", plan.Rotate{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		e := newEngine(&counted{n: 20, rate: rate{10, 1}}, s, 2, block, step{id: "a", run: nothing})
		e.live = true
		sum, _, err := e.run(t.Context())
		if !errors.Is(err, ErrSink) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("%v", err)
		}
		balanced(t, sum)
		if sum.Drops[reasonSinkDown] != 20 || len(sum.Events) != 1 || !strings.Contains(sum.Events[0].Why, "no space left") {
			t.Errorf("%v %+v", sum.Drops, sum.Events)
		}
	})
}

func TestHTTPSinkPostsAndSurvivesABadServer(t *testing.T) {
	var mu sync.Mutex
	var got []byte
	status := http.StatusServiceUnavailable
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.WriteHeader(status)
		if status == http.StatusOK {
			b, _ := io.ReadAll(r.Body)
			got = append(append(got, b...), '\n')
		}
	}))
	defer srv.Close()
	s, err := openHTTP(srv.URL, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Write(record(1)); !errors.Is(err, ErrSinkDegraded) || !strings.Contains(err.Error(), "503") {
		t.Errorf("%v", err)
	}
	if err := s.Write(record(2)); !errors.Is(err, ErrSinkDegraded) {
		t.Errorf("it did not leave the server alone: %v", err)
	}
	mu.Lock()
	status = http.StatusOK
	mu.Unlock()
	s.rest.next = time.Time{}
	for n := uint64(3); n < 6; n++ {
		if err := s.Write(record(n)); err != nil {
			t.Fatal(err)
		}
	}
	if ids := framesOf(t, got); fmt.Sprint(ids) != "[3 4 5]" {
		t.Errorf("the server has %v", ids)
	}
	for _, bad := range []string{"", "ftp://x/", "http:///x", "://", "https://host/"} {
		if _, err := openHTTP(bad, time.Second); !errors.Is(err, ErrPlan) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestCommandSinkGivesLinesAndStartsAgain(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	// It takes two lines and ends.
	s, err := openCommandSink([]string{"/bin/sh", "-c", `read a; read b; printf '%s\n%s\n' "$a" "$b" >>"$0"`, out}, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(0); n < 2; n++ {
		if err := s.Write(record(n)); err != nil {
			t.Fatal(err)
		}
	}
	// Once it has ended a line meets a closed pipe.
	deadline := time.Now().Add(10 * time.Second)
	for err = nil; err == nil && time.Now().Before(deadline); {
		err = s.Write(record(2))
	}
	if !errors.Is(err, ErrSinkDegraded) || !errors.Is(err, syscall.EPIPE) {
		t.Fatalf("%v", err)
	}
	s.rest.next = time.Time{}
	for n := uint64(3); n < 5; n++ {
		if err := s.Write(record(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if ids := framesOf(t, b); len(ids) != 4 || ids[0] != 0 || ids[3] != 4 {
		t.Errorf("the program was given %v", ids)
	}
}

// A program that reads nothing fills its pipe and then costs a timeout, not the
// pipeline.
func TestCommandSinkThatDoesNotReadIsEnded(t *testing.T) {
	s, err := openCommandSink([]string{"/bin/sleep", "1000"}, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	pid := s.cmd.Process.Pid
	for err = nil; err == nil; {
		err = s.Write(record(1))
	}
	if !errors.Is(err, ErrSinkDegraded) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the program is still there: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestRingGivesTheLatestAndCountsWhatIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring")
	s, err := openRing(path, 4, 256)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := OpenRing(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, _, ok := r.Next(nil); ok {
		t.Error("an empty ring has a record")
	}
	for n := range uint64(10) {
		if err := s.Write(record(n)); err != nil {
			t.Fatal(err)
		}
	}
	var ids []uint64
	var lost uint64
	for {
		b, l, ok := r.Next(nil)
		lost += l
		if !ok {
			break
		}
		ids = append(ids, framesOf(t, b)...)
	}
	if fmt.Sprint(ids) != "[6 7 8 9]" || lost != 6 {
		t.Errorf("%v, %d lost", ids, lost)
	}
	long := record(11)
	long.Results[0].Label = strings.Repeat("x", 300)
	if err := s.Write(long); !errors.Is(err, ErrSinkDegraded) {
		t.Errorf("%v", err)
	}
	other := filepath.Join(t.TempDir(), "no-ring")
	if err := os.WriteFile(other, make([]byte, 4096), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRing(other); !errors.Is(err, ErrFormat) {
		t.Errorf("%v", err)
	}
}

// A reader beside a fast writer never sees half a record.
func TestRingReaderSeesWholeRecordsOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring")
	s, err := openRing(path, 2, 512)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := OpenRing(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const all = 20000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range uint64(all) {
			rec := record(n)
			rec.Results[0].Label = strings.Repeat(string(rune('a'+n%26)), int(n%200))
			_ = s.Write(rec)
		}
	}()
	var seen, lost uint64
	for ended := false; ; {
		b, l, ok := r.Next(nil)
		lost += l
		if ok {
			var v struct{ Frame uint64 }
			if err := json.Unmarshal(b, &v); err != nil {
				t.Fatalf("%v in %q", err, b)
			}
			seen++
			continue
		}
		if ended {
			break
		}
		select {
		case <-done:
			ended = true
		default:
		}
	}
	if seen+lost != all || seen == 0 {
		t.Errorf("%d seen and %d lost of %d", seen, lost, all)
	}
}

// A sink that is slow costs frames by its own policy, and no memory.
func TestSlowSinkDropsByItsOwnPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		slow := sinkFunc(func(*Record) error { n++; time.Sleep(50 * time.Millisecond); return nil })
		e := newEngine(&counted{n: 200}, slow, 2, block, step{id: "a", run: takes(10 * time.Millisecond)})
		e.sinkPolicy, e.sinkCapacity = dropOldest, 1
		s, _, err := e.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, s)
		if s.Drops["queue-full:sink"] != s.Frames.Dropped || s.Frames.Dropped < 150 || time.Duration(s.Duration) > 2200*time.Millisecond {
			t.Errorf("%+v %v in %v", s.Frames, s.Drops, time.Duration(s.Duration))
		}
	})
}
