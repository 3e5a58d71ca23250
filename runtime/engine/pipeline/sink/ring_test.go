package sink

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/ring"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// readRing opens a ring of results for reading.
func readRing(path string) (*ring.Reader, error) {
	return ring.Open(path, registry.MaxRingSlotSize, registry.MaxRing)
}

func TestRingKeepsTheLatestAndCountsLostRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring")
	s, err := openRing(path, 4, 256)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := readRing(path)
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
	if err := s.Write(long); !errors.Is(err, ErrDegraded) {
		t.Errorf("%v", err)
	}
	other := filepath.Join(t.TempDir(), "no-ring")
	if err := os.WriteFile(other, make([]byte, 4096), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readRing(other); !errors.Is(err, frame.ErrFormat) {
		t.Errorf("%v", err)
	}
}

// The writer is much faster than the reader.
func TestRingReaderNeverReadsPartialRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring")
	s, err := openRing(path, 2, 512)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := readRing(path)
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

// Any writer of the file may truncate it. Accesses beyond its end raise SIGBUS.
func TestATruncatedRingCrashesNeitherSide(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ring")
	s, err := openRing(name, 4, 1024)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := readRing(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rec := &result.Record{Pipeline: "p"}
	if err := s.Write(rec); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := r.Next(nil); ok {
		t.Error("a record of a ring that has none")
	}
	if err := s.Write(rec); !errors.Is(err, ErrDegraded) || !strings.Contains(err.Error(), "the file was truncated") {
		t.Errorf("%v", err)
	}
	if _, err := readRing(name); !errors.Is(err, frame.ErrFormat) {
		t.Errorf("the truncated ring: %v", err)
	}
	// The sink creates the ring again; a reader that reopens it continues.
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err = s.Write(rec); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	again, err := readRing(name)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := s.Write(rec); err != nil {
		t.Fatal(err)
	}
	if got, lost, ok := again.Next(nil); !ok || lost != 0 || !strings.Contains(string(got), `"pipeline":"p"`) {
		t.Errorf("%s %d %v", got, lost, ok)
	}
	if _, err := readRing(namedPipe(t)); !errors.Is(err, frame.ErrFormat) {
		t.Errorf("a pipe: %v", err)
	}
}

// Create allocates the whole ring, so that a full tmpfs is an error and not a later SIGBUS. It
// leaves no file.
func TestARingLargerThanTheDiskIsRefused(t *testing.T) {
	if !underALimit(t, 64<<10) {
		return
	}
	dir := t.TempDir()
	if _, err := openRing(filepath.Join(dir, "ring"), 64, 4096); !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.EFBIG) {
		t.Errorf("%v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}
