package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/renameio/v2"

	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/engine/trace"
)

// Bounds of the flight recorder: a pipeline that misses its objective for hours
// leaves a few files, not thousands.
const (
	flightRest = time.Minute // minimum time between two files
	flightKeep = 8           // files; the oldest is overwritten
)

// flight writes the recorded events when a window misses the objective.
type flight struct {
	dir, name string
	recorder  *trace.Recorder
	tell      func(Event)
	next      int64 // ns; nothing is written earlier
	n         int
	busy      atomic.Bool
	writing   sync.WaitGroup
}

func newFlight(dir, name string, r *trace.Recorder, tell func(Event)) *flight {
	return &flight{dir: dir, name: pipelines.FileName(name), recorder: r, tell: tell}
}

// dump writes a file in the background.
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

// CheckTrace checks before the run that a trace can be written to path.
func CheckTrace(path string) error {
	f, err := pendingTrace(path)
	if err != nil {
		return err
	}
	return f.Cleanup()
}

// WriteTrace writes a recorder's events to a file atomically.
func WriteTrace(path, name string, r *trace.Recorder) error {
	f, err := pendingTrace(path)
	if err != nil {
		return err
	}
	if err = r.WriteChrome(f, name); err == nil {
		err = f.CloseAtomicallyReplace()
	}
	if err = errors.Join(err, f.Cleanup()); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}

// pendingTrace refuses paths other than regular files, such as devices, because the rename
// would replace them.
func pendingTrace(path string) (*renameio.PendingFile, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, fmt.Errorf("write trace: %s is not a regular file", path)
	}
	f, err := renameio.NewPendingFile(path, renameio.WithStaticPermissions(0o644))
	if err != nil {
		return nil, fmt.Errorf("write trace: %w", err)
	}
	return f, nil
}
