package sink

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
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

func record(n uint64) *result.Record {
	return &result.Record{Pipeline: "door", Frame: n, Results: []result.Result{{Kind: registry.Argmax, Class: 1, Label: "cat", Score: 0.5}}}
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
	if err := s.Write(record(1)); !errors.Is(err, ErrDegraded) || !strings.Contains(err.Error(), "503") {
		t.Errorf("%v", err)
	}
	if err := s.Write(record(2)); !errors.Is(err, ErrDegraded) {
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
		if _, err := openHTTP(bad, time.Second); !errors.Is(err, registry.ErrPlan) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestCommandSinkWritesLinesAndRestarts(t *testing.T) {
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
	if !errors.Is(err, ErrDegraded) || !errors.Is(err, syscall.EPIPE) {
		t.Fatalf("%v", err)
	}
	s.rest.next = time.Time{}
	for n := uint64(3); n < 5; n++ {
		if err := s.Write(record(n)); err != nil {
			t.Fatal(err)
		}
	}
	// The lines that the pipe took before the write that failed are lost.
	if err := s.Close(); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "bytes of results unread") {
		t.Error(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if ids := framesOf(t, b); len(ids) != 4 || ids[0] != 0 || ids[3] != 4 {
		t.Errorf("the program was given %v", ids)
	}
}

// A program that does not read its input costs one timeout.
func TestCommandSinkKillsAProgramThatDoesNotRead(t *testing.T) {
	s, err := openCommandSink([]string{"/bin/sleep", "1000"}, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	pid := s.cmd.Process.Pid
	for err = nil; err == nil; {
		err = s.Write(record(1))
	}
	if !errors.Is(err, ErrDegraded) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the program is still there: %v", err)
	}
	if err := s.Close(); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "bytes of results unread") {
		t.Error(err)
	}
}
