package enforce

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yoctune/yoctune/runtime/device/journal"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
	"golang.org/x/sys/unix"
)

// Apply writes what differs and reads it back. An error means that nothing was
// written, and is ErrJournal; everything else is in the results, one for every
// setting and node.
//
// Apply is excused for what it must not write: kernel arguments, modules, power
// modes that an image brings, settings whose policy is to report, and what the
// kernel holds lower for heat.
func Apply(dev rootfs.Device, p *plan.Plan, o Options) ([]Result, error) {
	s, err := Open(dev, p, o)
	if err != nil {
		return nil, err
	}
	// What a lease left behind when its session was killed is nobody's wish now.
	if _, err := s.Uncover(); err != nil {
		return nil, err
	}
	return s.Apply()
}

// writable returns what is to be written, in the order of writing, and finishes
// what must not be.
func writable(dev rootfs.FS, all []*target, o Options) []*target {
	var out []*target
	claimed := map[string]*target{}
	for _, t := range all {
		if t.done || verifyOnly(t.setting) || t.setting.Policy == plan.Report {
			continue
		}
		if t.absent() || t.real == "" {
			t.fault(dev, o, false, t.err)
			continue
		}
		if t.mask && !t.satisfied() && power.Used(dev, t.real) {
			t.staged()
			continue
		}
		if err := writes(dev, t); err != nil {
			t.finish(outcome.Refused, fmt.Sprintf("%s: %v", outcome.Name(t.path), err))
			continue
		}
		if c := claimed[t.real]; c != nil {
			if c.setting.Want != t.setting.Want || c.setting.Compare != t.setting.Compare {
				t.finish(outcome.Contested, fmt.Sprintf("%s: %s of the same plan wants %s", outcome.Name(t.path), c.setting.ID, c.setting.Want))
			}
			continue
		}
		claimed[t.real] = t
		if t.known {
			if t.satisfied() {
				continue // judged after the writes, which might undo it
			}
		} else if blocked(dev, t, o) {
			continue
		}
		out = append(out, t)
	}
	slices.SortStableFunc(out, func(a, b *target) int { return rank(a.real) - rank(b.real) })
	orderLimits(out)
	return out
}

// writes refuses a wanted value that cannot be one, before the kernel is asked.
func writes(dev rootfs.FS, t *target) error {
	s := t.setting
	alternatives := knob.Alternatives(s.Compare, s.Want)
	if len(alternatives) == 0 {
		return fmt.Errorf("%w: nothing is wanted", knob.ErrValue)
	}
	for _, a := range alternatives {
		v, err := knob.Canonical(s.Type, a)
		if err != nil {
			return err
		}
		if v == "" {
			return rootfs.ErrEmpty
		}
		if strings.ContainsAny(a, "\n\x00") {
			return fmt.Errorf("%w: it has a line break", knob.ErrValue)
		}
	}
	if _, err := knob.Satisfies(s.Type, s.Compare, s.Want, t.found); t.known && err != nil {
		return err
	}
	if err := t.confine(dev); err != nil {
		return err
	}
	if len(t.found.Offered) == 0 {
		if list := offers(t.real); list != "" {
			if c, err := dev.Read(list); err == nil {
				t.found.Offered = strings.Fields(c.Text)
			}
		}
	}
	return nil
}

// confine takes CPUs that this machine cannot have out of what is written: the
// kernel refuses a set that is wider than itself, as a whole.
func (t *target) confine(dev rootfs.FS) error {
	s := t.setting
	if s.Type != plan.TypeCPUList && s.Type != plan.TypeCPUMask || s.Compare != plan.Exact {
		return nil
	}
	c, err := dev.Read("/sys/devices/system/cpu/possible")
	if err != nil {
		return nil // the kernel will say what it thinks of the set
	}
	kept, changed := knob.Within(s.Type, s.Want, c.Text)
	if !changed {
		return nil
	}
	if v, err := knob.Canonical(s.Type, kept); err != nil || v == "" {
		return fmt.Errorf("this machine has none of the CPUs %s", s.Want)
	}
	t.write = kept
	return nil
}

// blocked finishes a target whose node cannot be read in a way that makes
// writing it wrong. An original that cannot be read because the node has none
// yet (EIO of stable_secret) is written, and marked as lost.
func blocked(dev rootfs.FS, t *target, o Options) bool {
	if errors.Is(t.err, unix.EIO) && !strings.HasPrefix(t.real, "/proc/irq/") {
		return false
	}
	t.fault(dev, o, false, t.err)
	return true
}

// originals lists what the journal must hold, and does not know yet, before the
// targets are written.
func originals(r *reader, knows func(path string) bool, pending []*target) ([]journal.Original, error) {
	var out []journal.Original
	listed := map[string]bool{}
	add := func(o journal.Original) {
		if !listed[o.Path] && !knows(o.Path) {
			listed[o.Path] = true
			out = append(out, o)
		}
	}
	for _, t := range pending {
		rel := related(t.real)
		o := journal.Original{ID: t.setting.ID, Path: t.real, Name: t.path, Type: t.setting.Type, Group: rel.group}
		if t.known {
			o.Value = restorable(r, t)
		} else {
			o.Lost = "it could not be read: " + t.err.Error()
		}
		if t.known && o.Value == "" {
			o.Lost = "it was empty, which cannot be written"
		}
		add(o)
		for _, other := range rel.others {
			c, err := r.read(other)
			if err != nil {
				continue // this kernel has no such neighbour
			}
			f, err := knob.Parse(rel.typ, c.Text)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", other, err)
			}
			add(journal.Original{Path: other, Name: other, Type: rel.typ, Value: f.Value, Group: rel.group})
		}
	}
	return out, nil
}

// restorable is the text that gives the found value again. The canonical form
// is one the kernel reads, except that masks are canonically lists.
func restorable(r *reader, t *target) string {
	if t.setting.Type != plan.TypeCPUMask {
		return t.found.Value
	}
	c, err := r.read(t.real)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(c.Text)
}

// writer writes targets.
type writer struct {
	dev     rootfs.FS
	reader  *reader
	options Options
	journal *journal.Journal
	plan    journal.Plan
}

// write writes one target and reads it back. A target that stays undone after
// an error is worth another try when the others are written.
func (w *writer) write(t *target) {
	s := t.setting
	alternatives := knob.Alternatives(s.Compare, s.Want)
	if t.write != "" {
		alternatives = []string{t.write}
	}
	if len(t.found.Offered) > 0 {
		offered := slices.DeleteFunc(slices.Clone(alternatives), func(a string) bool {
			return !slices.Contains(t.found.Offered, strings.TrimSpace(a))
		})
		if len(offered) == 0 {
			t.finish(outcome.Refused, outcome.NotOffered(t.path, s.Want, t.found.Offered))
			return
		}
		alternatives = offered
	}
	for _, a := range alternatives {
		// One write(2) of exactly the value: no newline.
		t.err = w.reader.write(t.real, strings.TrimSpace(a))
		if !errors.Is(t.err, unix.EINVAL) && !errors.Is(t.err, unix.ENOENT) {
			break
		}
	}
	if t.err == nil {
		offered := t.found.Offered
		if t.observe(w.reader); t.known && t.found.Offered == nil {
			t.found.Offered = offered
		}
	}
}

// retriable reports whether a refusal may be the order's or the moment's fault.
func retriable(err error) bool { return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EBUSY) }

// hopeless reports whether no other value of this machine can make the kernel take
// what is wanted.
func (w *writer) hopeless(t *target) bool {
	_, outside := takes(w.dev, t.path, t.setting.Want)
	return outside && errors.Is(t.err, unix.EINVAL)
}

// again writes once more what was refused or cut short for a reason that may be
// gone, and what another write of the same plan undid; then it settles all
// results.
func (w *writer) again(all, written []*target) {
	for _, t := range written {
		if !t.done && retriable(t.err) && !w.hopeless(t) {
			w.write(t)
		}
		w.gather(t)
	}
	for _, pause := range w.options.Backoff {
		busy := slices.DeleteFunc(slices.Clone(written), func(t *target) bool {
			return t.done || !errors.Is(t.err, unix.EBUSY)
		})
		if len(busy) == 0 {
			break
		}
		time.Sleep(pause)
		for _, t := range busy {
			w.write(t)
		}
	}
	undone := w.undone(all)
	for _, t := range undone {
		w.write(t)
	}
	was := make(map[*target]bool, len(written))
	for _, t := range written {
		was[t] = true
	}
	for _, t := range all {
		if !mine(t) {
			continue
		}
		// What holds was looked at after the last write, unless there was another.
		if t.err == nil && (len(undone) > 0 || !t.held) {
			t.observe(w.reader)
		}
		w.settle(t, was[t])
	}
}

// gatherings bounds how often huge pages are asked for again.
const gatherings = 3

// gather asks again for huge pages of which there were too few: each time after
// memory was compacted, and only while that brings more.
func (w *writer) gather(t *target) {
	short := func() bool {
		return !t.done && t.err == nil && t.known && outcome.IsPages(t.path) && fewer(t.setting, t.found)
	}
	for try := 0; try < gatherings && short(); try++ {
		before := t.found.Value
		// Kernels without compaction have no such node; asking again may help there too.
		_ = w.reader.write("/proc/sys/vm/compact_memory", "1")
		if w.write(t); t.found.Value == before {
			return
		}
	}
}

// mine reports whether the target's result is still open and this run's to settle.
func mine(t *target) bool {
	return !t.done && !verifyOnly(t.setting) && t.setting.Policy != plan.Report
}

// undone lists what was as wanted and, after the writes, is no longer. Nothing is
// written that is not journalled, and some of these were not to be written.
func (w *writer) undone(all []*target) []*target {
	var out []*target
	var originals []journal.Original
	for _, t := range all {
		if !mine(t) || t.err != nil || !t.satisfied() {
			continue
		}
		t.held = true
		before := journal.Original{
			ID: t.setting.ID, Path: t.real, Name: t.path, Type: t.setting.Type,
			Value: restorable(w.reader, t), Group: related(t.real).group,
		}
		if t.observe(w.reader); t.err == nil && !t.satisfied() {
			if t.setting.Type == plan.TypeCPUMask {
				before.Value = t.setting.Want // what it was, in a form the kernel reads
			}
			out = append(out, t)
			originals = append(originals, before)
		}
	}
	if len(out) == 0 {
		return nil
	}
	if err := w.journal.Begin(w.plan, originals); err != nil {
		return nil // judged as differing, and left alone
	}
	return out
}

func (t *target) satisfied() bool {
	ok, err := t.meets()
	return t.known && err == nil && ok
}

// settle turns the last observation of a target into its result.
func (w *writer) settle(t *target, written bool) {
	switch {
	case t.mask && !t.satisfied():
		t.staged()
	case t.err != nil && !t.known && written && !retriable(t.err):
		// Written, and cannot be read back: nothing may be claimed.
		t.fault(w.dev, w.options, false, t.err)
	case t.err != nil:
		t.fault(w.dev, w.options, true, t.err)
	case t.satisfied():
		t.finish(outcome.OK, "")
	case t.held:
		t.finish(outcome.Contested, fmt.Sprintf("%s: another setting of this plan undoes it", outcome.Name(t.path)))
	case t.capped(w.dev):
	case written && outcome.IsPages(t.path) && fewer(t.setting, t.found):
		t.finish(outcome.Partial, outcome.Short(t.path, t.setting.Want, t.found.Value))
	case written:
		t.finish(outcome.Adjusted, outcome.Changed(t.path, t.setting.Want, t.found.Value))
	default:
		t.judge(w.dev, w.options)
	}
}
