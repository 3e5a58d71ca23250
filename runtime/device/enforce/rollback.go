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

// passes is how often rollback goes over what is not yet as it was: a refusal
// may depend on a value that comes later, and a write may move a neighbour.
const passes = 3

// Rollback puts back every original of the journal and then removes it. Each
// result's Wanted is the original. What could not be put back stays journalled.
func Rollback(dev rootfs.Device, o Options) ([]Result, error) {
	o = o.filled()
	r := newReader(dev, o.ReadTimeout)
	j, err := journal.Load(dev, rootfs.Identify(dev).BootID)
	if err != nil {
		return nil, err
	}
	// What a lease covered when its session was killed comes back with the rest.
	recorded := slices.Clone(j.Originals)
	for _, c := range j.Covered {
		if !j.Knows(c.Path) {
			recorded = append(recorded, c)
		}
	}
	all := make([]*original, len(recorded))
	for i, rec := range recorded {
		all[i] = &original{Original: rec}
	}
	results := restore(r, o, all)
	others := append(damaged(j), forgetMode(dev)...)
	var kept []journal.Original
	for i, t := range all {
		if !results[i].Satisfied() && t.Lost == "" {
			kept = append(kept, t.Original)
		}
	}
	if err := j.Keep(kept); err != nil {
		return results, err
	}
	return append(results, others...), nil
}

// damaged says that the journal has lost originals; nobody knows whose.
func damaged(j *journal.Journal) []Result {
	if j.Damaged == 0 {
		return nil
	}
	return []Result{{
		ID: "journal", Path: journal.File, Outcome: outcome.Stale,
		Message: fmt.Sprintf("%s: damaged records: %d; what they held cannot be put back before a reboot does", journal.File, j.Damaged),
	}}
}

// restore writes originals until they hold, and says what became of each.
func restore(r *reader, o Options, all []*original) []Result {
	for pass := range passes {
		var wrote atomic.Bool
		inLanes(all, (*original).node, func(t *original) {
			// The kernel zeroes an inactive member when the active one is written.
			// Where it did not (a tree of plain files), the next pass does.
			if t.restored(r) || pass == 0 && t.inactive(all) {
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
		results[i] = t.result(r, o)
	}
	return results
}

type original struct {
	journal.Original
	found knob.Found
	known bool
	err   error
}

// node is the resolved name of what is written.
func (t *original) node() string { return t.Path }

// restored reads the node and reports whether there is nothing to write.
func (t *original) restored(r *reader) bool {
	if t.Lost != "" {
		return true
	}
	c, err := r.read(t.Path)
	if err != nil {
		t.known, t.err = false, err
		// Some nodes can be written and not read; absent ones neither.
		return gone(err)
	}
	t.found, err = knob.Parse(t.Type, c.Text)
	t.known = err == nil
	if t.same() {
		t.err = nil
		return true
	}
	return false
}

func (t *original) same() bool {
	want, err := knob.Canonical(t.Type, t.Value)
	return t.known && err == nil && want == t.found.Value
}

// inactive reports whether t is the zero member of a group whose other member is
// not zero. The kernel refuses the zero itself, as in dirty_bytes=0.
func (t *original) inactive(all []*original) bool {
	return t.Group != "" && t.Value == "0" && slices.ContainsFunc(all, func(m *original) bool {
		return m.Group == t.Group && m.Value != "0"
	})
}

func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO)
}

func (t *original) result(r *reader, o Options) Result {
	done := t.restored(r)
	res := Result{ID: t.ID, Path: t.Name, Wanted: t.Value, Found: t.found.Value, Known: t.known}
	switch {
	case t.Lost != "":
		res.Outcome = outcome.Refused
		res.Message = fmt.Sprintf("%s: the original is not known: %s", outcome.Name(t.Name), t.Lost)
	case t.known && done:
		res.Outcome = outcome.OK
	case !t.known && gone(t.err):
		// A device that comes back starts with the kernel's defaults.
		res.Outcome, res.Excused = outcome.Stale, true
		res.Message = fmt.Sprintf("%s: the node is gone, there is nothing to put back", outcome.Name(t.Name))
	case t.err != nil:
		res.Outcome, res.Message = outcome.Explain(outcome.Fault{Path: t.Name, Write: true, Want: t.Value, Root: o.Root, Err: t.err})
	default:
		res.Outcome = outcome.Adjusted
		res.Message = outcome.Changed(t.Name, t.Value, t.found.Value)
	}
	return res
}
