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
	f, err := CreateTrace(path)
	if err != nil {
		return err
	}
	return f.Cleanup()
}

// WriteTrace writes a recorder's events to a file atomically, in the encoding of its name.
func WriteTrace(path, name string, r *trace.Recorder) error {
	f, err := CreateTrace(path)
	if err != nil {
		return err
	}
	if err = trace.Write(f, r, name, trace.EncodingFor(path)); err == nil {
		err = f.CloseAtomicallyReplace()
	}
	if err = errors.Join(err, f.Cleanup()); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}

// CreateTrace creates a file that is to replace path. It refuses to replace anything but an older
// trace or an empty file: the rename would destroy a device, or another program's file.
func CreateTrace(path string) (*renameio.PendingFile, error) {
	if err := checkOldTrace(path); err != nil {
		return nil, fmt.Errorf("write trace: %w", err)
	}
	f, err := renameio.NewPendingFile(path, renameio.WithStaticPermissions(0o644))
	if err != nil {
		return nil, fmt.Errorf("write trace: %w", err)
	}
	return f, nil
}

func checkOldTrace(path string) error {
	st, err := os.Stat(path)
	switch {
	case err != nil: // creating the file reports what matters
		return nil
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case st.Size() == 0:
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if !trace.IsTrace(f) {
		return fmt.Errorf("%s exists and is not a trace of yoctuned; choose another name, or remove it", path)
	}
	return nil
}
