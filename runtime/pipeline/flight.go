package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yoctune/yoctune/runtime/pipeline/live"
	"github.com/yoctune/yoctune/runtime/trace"
)

// Bounds of the flight recorder: a pipeline that misses its objective for hours
// leaves a few files, not thousands.
const (
	flightRest = time.Minute // between two files
	flightKeep = 8           // files; the oldest is overwritten
)

// flight writes what the recorder has when a window missed the objective.
type flight struct {
	dir, name string
	recorder  *trace.Recorder
	tell      func(Event)
	next      int64 // ns, before which nothing is written
	n         int
	busy      atomic.Bool
	writing   sync.WaitGroup
}

func newFlight(dir, name string, r *trace.Recorder, tell func(Event)) *flight {
	return &flight{dir: dir, name: live.FileName(name), recorder: r, tell: tell}
}

// dump writes a file, beside the frames.
func (f *flight) dump(now int64) {
	if now < f.next || !f.busy.CompareAndSwap(false, true) {
		return
	}
	f.next = now + int64(flightRest)
	path := filepath.Join(f.dir, fmt.Sprintf("%s-%d.trace.json", f.name, f.n%flightKeep))
	f.n++
	f.writing.Go(func() {
		defer f.busy.Store(false)
		why := "the objective was missed; trace in " + path
		if err := WriteTrace(path, f.name, f.recorder); err != nil {
			why = "the objective was missed; no trace: " + err.Error()
		}
		f.tell(Event{Kind: EventFlight, Why: why})
	})
}

// close waits for a file that is being written.
func (f *flight) close() error {
	f.writing.Wait()
	return nil
}

// WriteTrace writes a recorder's events to a file, whole or not at all.
func WriteTrace(path, name string, r *trace.Recorder) (err error) {
	t, err := os.CreateTemp(filepath.Dir(path), ".trace-*")
	if err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	defer os.Remove(t.Name())
	err = r.WriteChrome(t, name)
	if e := t.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(t.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(t.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}
