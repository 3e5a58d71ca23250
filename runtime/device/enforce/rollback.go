package enforce

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"

	"github.com/yoctune/yoctune/runtime/device/journal"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/knob"
	"golang.org/x/sys/unix"
)

// maxPasses bounds how often rollback repeats its writes: a refusal may depend on a value
// that is restored later, and a write may change another node.
const maxPasses = 3

// Rollback restores every original of the journal and removes the journal. The Wanted of
// each result is the original. Originals that could not be restored stay in the journal.
func Rollback(dev rootfs.Device, o Options) ([]Result, error) {
	o = o.withDefaults()
	r := newReader(dev, o.ReadTimeout)
	j, err := journal.Load(dev, rootfs.BootID(dev))
	if err != nil {
		return nil, err
	}
	// Include the originals under a lease whose session was killed.
	recorded := slices.Clone(j.Originals)
	for _, c := range j.Covered {
		if !j.HasOriginal(c.Path) {
			recorded = append(recorded, c)
		}
	}
	all := newOriginals(recorded)
	results := restore(r, o, all)
	others := append(damagedResults(j), restoreBootMode(dev)...)
	var kept []journal.Original
	for i, t := range all {
		if !results[i].Satisfied() && t.Lost == "" {
			kept = append(kept, t.Original)
		}
	}
	if err := j.ReplaceOriginals(kept); err != nil {
		return results, err
	}
	return append(results, others...), nil
}

// damagedResults returns a result for records that the journal has lost.
func damagedResults(j *journal.Journal) []Result {
	if j.Damaged == 0 {
		return nil
	}
	return []Result{{
		ID: "journal", Path: journal.File, Outcome: outcome.Stale,
		Message: fmt.Sprintf("%s: lost records: %d; their originals cannot be restored, only a reboot restores the defaults", journal.File, j.Damaged),
	}}
}

// restore writes originals until they are in force, and returns their results.
func restore(r *reader, o Options, all []*original) []Result {
	var wrote atomic.Bool
	for pass := range maxPasses {
		wrote.Store(false)
		runInLanes(all, (*original).node, func(t *original) {
			// The kernel clears an inactive member when the active one is written. In a
			// tree of plain files, the next pass does.
			if t.done = t.isRestored(r); t.done || pass == 0 && t.isInactive(all) {
				return
			}
			wrote.Store(true)
			t.err = r.write(t.Path, t.Value)
		})
		if pass > 0 && !wrote.Load() {
			break
		}
	}
	results := make([]Result, len(all))
	for i, t := range all {
		if wrote.Load() { // otherwise the last pass has observed the result
			t.done = t.isRestored(r)
		}
		results[i] = t.result(r.dev, o)
	}
	return results
}

// original is a recorded value and the last observation of its node.
type original struct {
	journal.Original
	found knob.Found
	known bool  // found is valid
	done  bool  // no write is needed, by the last observation
	err   error // of the last read or write
}

func newOriginals(recorded []journal.Original) []*original {
	out := make([]*original, len(recorded))
	for i, rec := range recorded {
		out[i] = &original{Original: rec}
	}
	return out
}

// node returns the resolved name.
func (t *original) node() string { return t.Path }

// isRestored reads the node and reports whether no write is needed.
func (t *original) isRestored(r *reader) bool {
	if t.Lost != "" {
		return true
	}
	c, err := r.read(t.Path)
	if err != nil {
		t.known, t.err = false, err
		// A node that cannot be read may still accept a write, unless it is gone.
		return isGone(err)
	}
	t.found, err = knob.Parse(t.Type, c.Text)
	t.known = err == nil
	if t.hasOriginalValue() {
		t.err = nil
		return true
	}
	return false
}

func (t *original) hasOriginalValue() bool {
	want, err := knob.Canonical(t.Type, t.Value)
	return t.known && err == nil && want == t.found.Value
}

// isInactive reports whether t is the zero member of a group whose other member is not
// zero. The kernel refuses to write that zero, as in dirty_bytes=0.
func (t *original) isInactive(all []*original) bool {
	return t.Group != "" && t.Value == "0" && slices.ContainsFunc(all, func(m *original) bool {
		return m.Group == t.Group && m.Value != "0"
	})
}

func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO)
}

// result returns the result of the last observation.
func (t *original) result(dev rootfs.FS, o Options) Result {
	res := Result{ID: t.ID, Path: t.Name, Wanted: knob.Show(t.Type, t.Value), Found: t.found.Value, Known: t.known}
	switch {
	case t.Lost != "":
		res.Outcome = outcome.Refused
		res.Message = fmt.Sprintf("%s: the original value is unknown: %s", outcome.Name(t.Name), t.Lost)
	case t.known && t.done:
		res.Outcome = outcome.OK
	case !t.known && isGone(t.err):
		// A device that is added again starts with the kernel's defaults.
		res.Outcome, res.Excused = outcome.Stale, true
		res.Message = fmt.Sprintf("%s: the node no longer exists, nothing to restore", outcome.Name(t.Name))
	case t.err != nil:
		res.Outcome, res.Message = outcome.Explain(outcome.Fault{Path: t.Name, Write: true, Want: res.Wanted, Root: o.Root, Offline: isOfflineCPU(dev, t.Path), Err: t.err})
	default:
		res.Outcome = outcome.Adjusted
		res.Message = outcome.DescribeChanged(t.Name, res.Wanted, t.found.Value)
	}
	return res
}
