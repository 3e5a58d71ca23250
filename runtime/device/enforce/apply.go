package enforce

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
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

// Apply writes the nodes that differ and reads them back. It returns one result for every
// setting and node. The error is ErrJournal, and then nothing was written.
//
// Results of what Apply must not write are excused: kernel arguments, modules, power modes
// that an image defines, settings with policy report, and frequencies that a thermal limit
// holds down.
func Apply(dev rootfs.Device, p *plan.Plan, o Options) ([]Result, error) {
	s, err := Open(dev, p, o)
	if err != nil {
		return nil, err
	}
	// A session that was killed may have left the settings of a lease.
	if _, err := s.RemoveOverlay(); err != nil {
		return nil, err
	}
	results, err := s.Apply()
	if err == nil && s.options.Wait > 0 {
		return s.awaitNodes(results)
	}
	return results, err
}

// awaitNodes waits for the nodes that a device must have and that do not exist, and applies
// the plan again when one appears. results are those of the plan so far.
func (s *Session) awaitNodes(results []Result) ([]Result, error) {
	missing := s.listMissing()
	if len(missing) == 0 {
		return results, nil
	}
	if s.options.Waiting != nil {
		s.options.Waiting(missing, s.options.Wait)
	}
	const longest = time.Second
	deadline := time.Now().Add(s.options.Wait)
	for pause := 50 * time.Millisecond; len(missing) > 0; pause = min(2*pause, longest) {
		left := time.Until(deadline)
		if left <= 0 {
			break
		}
		time.Sleep(min(pause, left))
		if len(s.Rescan()) > 0 {
			var err error
			if results, err = s.Apply(); err != nil {
				return nil, err
			}
		}
		missing = s.listMissing()
	}
	for i := range results {
		r := &results[i]
		if slices.ContainsFunc(missing, func(n Node) bool { return n.ID == r.ID && n.Path == r.Path }) {
			r.Message += fmt.Sprintf(", after waiting for %s", s.options.Wait.Round(100*time.Millisecond))
		}
	}
	return results, nil
}

// listMissing returns the settings that wait for a node which the device must have.
func (s *Session) listMissing() []Node {
	return slices.DeleteFunc(s.Waiting(), func(n Node) bool { return n.Optional })
}

// selectWritable returns the targets to write, in the order of writing. It finishes those
// that must not be written.
func selectWritable(dev rootfs.FS, all []*target, o Options) []*target {
	var out []*target
	claimed := map[string]*target{}
	for _, t := range all {
		if !isOpen(t) || finishUnwritable(dev, t, o) {
			continue
		}
		if c := claimed[t.real]; c != nil {
			if c.setting.Want != t.setting.Want || c.setting.Compare != t.setting.Compare {
				t.finish(outcome.Contested, fmt.Sprintf("%s: %s of the same plan wants %s", outcome.Name(t.path), c.setting.ID, wantedText(c.setting)))
			}
			continue
		}
		claimed[t.real] = t
		// A target that has its value is judged after the writes, which may change it.
		if t.known && t.isSatisfied() || !t.known && finishUnreadable(dev, t, o) {
			continue
		}
		out = append(out, t)
	}
	slices.SortStableFunc(out, func(a, b *target) int { return knob.WriteRank(a.real) - knob.WriteRank(b.real) })
	orderLimits(out)
	return out
}

// finishUnwritable finishes a target that cannot be written or must not be.
func finishUnwritable(dev rootfs.FS, t *target, o Options) bool {
	if t.isAbsent() || t.real == "" {
		t.finishFault(dev, o, false, t.err)
	} else if t.needsReboot && !t.isSatisfied() && power.IsGPUUsed(dev, t.real) {
		t.finishMask()
	} else if err := checkWrite(dev, t); err != nil {
		t.finish(outcome.Refused, fmt.Sprintf("%s: %v", outcome.Name(t.path), err))
	}
	return t.done
}

// checkWrite refuses invalid values before they reach the kernel.
func checkWrite(dev rootfs.FS, t *target) error {
	s := t.setting
	alternatives := knob.Alternatives(s.Compare, s.Want)
	if len(alternatives) == 0 {
		return fmt.Errorf("%w: no value is wanted", knob.ErrValue)
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
			return fmt.Errorf("%w: it contains a line break", knob.ErrValue)
		}
	}
	if _, err := knob.Satisfies(s.Type, s.Compare, s.Want, t.found); t.known && err != nil {
		return err
	}
	if err := t.limitToPossibleCPUs(dev); err != nil {
		return err
	}
	if err := checkFreeMemory(dev, t); err != nil && !t.isSatisfied() {
		return err
	}
	if len(t.found.Offered) == 0 {
		if list := knob.OfferedValuesPath(t.real); list != "" {
			t.found.Offered = strings.Fields(rootfs.ReadText(dev, list))
		}
	}
	return nil
}

// limitToPossibleCPUs removes CPUs that this machine cannot have from the value to write.
// The kernel refuses a whole set if it has more CPUs than the kernel supports.
func (t *target) limitToPossibleCPUs(dev rootfs.FS) error {
	s := t.setting
	if s.Type != plan.TypeCPUList && s.Type != plan.TypeCPUMask || s.Compare != plan.Exact {
		return nil
	}
	possible := rootfs.ReadText(dev, "/sys/devices/system/cpu/possible")
	kept, changed := knob.RestrictCPUs(s.Type, s.Want, possible)
	if !changed || possible == "" { // then leave the check to the kernel
		return nil
	}
	if v, err := knob.Canonical(s.Type, kept); err != nil || v == "" {
		return fmt.Errorf("this machine has none of the CPUs %s", wantedText(s))
	}
	t.write = kept
	return nil
}

// finishUnreadable finishes a target that could not be read, and reports false for one that
// may be written all the same: stable_secret returns EIO until it is first set. Its original
// is recorded as lost. A driver that fails would leave nothing to restore.
func finishUnreadable(dev rootfs.FS, t *target, o Options) bool {
	if errors.Is(t.err, unix.EIO) && strings.HasPrefix(t.real, "/proc/sys/") {
		return false
	}
	t.finishFault(dev, o, false, t.err)
	return true
}

// listOriginals returns the originals of targets and their neighbours that the journal does
// not hold yet. They must be recorded before the targets are written.
func listOriginals(r *reader, recorded func(path string) bool, pending []*target) ([]journal.Original, error) {
	var out []journal.Original
	listed := map[string]bool{}
	add := func(o journal.Original) {
		if !listed[o.Path] && !recorded(o.Path) {
			listed[o.Path] = true
			out = append(out, o)
		}
	}
	for _, t := range pending {
		rel := related(t.real)
		o := journal.Original{ID: t.setting.ID, Path: t.real, Name: t.path, Type: t.setting.Type, Group: rel.group}
		if t.known {
			o.Value = restorableText(r, t)
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
				continue // this kernel has no such node
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

// restorableText returns the text that restores the value found. The kernel accepts
// canonical values except for masks, whose canonical form is a list.
func restorableText(r *reader, t *target) string {
	if t.setting.Type != plan.TypeCPUMask {
		return t.found.Value
	}
	c, err := r.read(t.real)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(c.Text)
}

// write writes one target and reads it back. After an error the target stays open, since
// the write may succeed once the others are written.
func (s *Session) write(t *target) {
	alternatives := knob.Alternatives(t.setting.Compare, t.setting.Want)
	if t.write != "" {
		alternatives = []string{t.write}
	}
	if pages, ok := s.limitPages(t); ok {
		t.limited = true
		alternatives = []string{strconv.FormatInt(pages, 10)}
		if alternatives[0] == t.found.Value {
			return // the memory does not suffice for another one
		}
	}
	if len(t.found.Offered) > 0 {
		offered := slices.DeleteFunc(slices.Clone(alternatives), func(a string) bool {
			return !slices.Contains(t.found.Offered, strings.TrimSpace(a))
		})
		if len(offered) == 0 {
			t.finish(outcome.Refused, outcome.DescribeNotOffered(t.path, t.setting.Want, t.found.Offered))
			return
		}
		alternatives = offered
	}
	for _, a := range alternatives {
		// Write the value without a newline in one write(2).
		t.err = s.reader.write(t.real, strings.TrimSpace(a))
		if !errors.Is(t.err, unix.EINVAL) && !errors.Is(t.err, unix.ENOENT) {
			break
		}
	}
	if t.err == nil {
		offered := t.found.Offered
		if t.observe(s.reader); t.known && t.found.Offered == nil {
			t.found.Offered = offered
		}
	}
}

// isRetriable reports whether a write may succeed later or in another order.
func isRetriable(err error) bool { return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EBUSY) }

// isOutOfRange reports whether the kernel refuses the wanted value regardless of the values
// of other nodes.
func (s *Session) isOutOfRange(t *target) bool {
	_, outside := acceptedRange(s.dev, t.path, t.setting.Want)
	return outside && errors.Is(t.err, unix.EINVAL)
}

// writeTargets writes the pending targets. It repeats writes that failed or had less than the
// full effect, and those that another write of the same plan undid. Then it sets the results
// of all targets.
func (s *Session) writeTargets(all, pending []*target) {
	runInLanes(pending, (*target).node, func(t *target) { t.recoverIn(func() { s.write(t) }) })
	for _, t := range pending {
		if !t.done && isRetriable(t.err) && !s.isOutOfRange(t) {
			s.write(t)
		}
		s.allocatePages(t)
	}
	s.retryBusy(pending)
	undone := s.findUndone(all)
	for _, t := range undone {
		s.write(t)
	}
	was := make(map[*target]bool, len(pending))
	for _, t := range pending {
		was[t] = true
	}
	for _, t := range all {
		if !isOpen(t) {
			continue
		}
		// findUndone has observed these after the last write, unless it wrote something.
		if t.err == nil && (len(undone) > 0 || !t.wasSatisfied) {
			t.observe(s.reader)
		}
		s.judgeWritten(t, was[t])
	}
}

// retryBusy writes busy nodes again, after each pause of the options.
func (s *Session) retryBusy(written []*target) {
	for _, pause := range s.options.Backoff {
		busy := slices.DeleteFunc(slices.Clone(written), func(t *target) bool {
			return t.done || !errors.Is(t.err, unix.EBUSY)
		})
		if len(busy) == 0 {
			return
		}
		time.Sleep(pause)
		for _, t := range busy {
			s.write(t)
		}
	}
}

// maxAllocations bounds how often huge pages are requested again.
const maxAllocations = 3

// allocatePages compacts memory and requests huge pages again, as long as each attempt
// yields more of them.
func (s *Session) allocatePages(t *target) {
	short := func() bool {
		return !t.done && !t.limited && t.err == nil && t.known && outcome.IsPages(t.path) && isFewer(t.setting, t.found)
	}
	for try := 0; try < maxAllocations && short(); try++ {
		before := t.found.Value
		// Without CONFIG_COMPACTION the node is missing; a second request may help all the same.
		_ = s.reader.write("/proc/sys/vm/compact_memory", "1")
		if s.write(t); t.found.Value == before {
			return
		}
	}
}

// isOpen reports whether the target has no result yet and may be written.
func isOpen(t *target) bool {
	return !t.done && !isReadOnly(t.setting) && t.setting.Policy != plan.Report
}

// findUndone returns targets that had the wanted value before the writes and lost it. It
// records their originals, which were not recorded as they needed no write.
func (s *Session) findUndone(all []*target) []*target {
	var out []*target
	var originals []journal.Original
	for _, t := range all {
		if !isOpen(t) || t.err != nil || !t.isSatisfied() {
			continue
		}
		t.wasSatisfied = true
		before := journal.Original{
			ID: t.setting.ID, Path: t.real, Name: t.path, Type: t.setting.Type,
			Value: restorableText(s.reader, t), Group: related(t.real).group,
		}
		if t.observe(s.reader); t.err == nil && !t.isSatisfied() {
			if t.setting.Type == plan.TypeCPUMask {
				before.Value = t.setting.Want // the same set, in a form that the kernel accepts
			}
			out = append(out, t)
			originals = append(originals, before)
		}
	}
	if len(out) == 0 {
		return nil
	}
	if s.journal.Begin(s.planInfo, originals) != nil {
		return nil // judged as differing and not written
	}
	return out
}

// describeUndone names the setting of the plan whose write undid a target, if there is one.
// Otherwise another process did, or the kernel as an effect of a write.
func (s *Session) describeUndone(t *target) string {
	for _, o := range s.targets {
		if o != t && o.real != "" && slices.Contains(related(o.real).others, t.real) {
			return fmt.Sprintf("%s of this plan overwrites it", o.setting.ID)
		}
	}
	return "it was changed while the plan was applied, by another process or by the kernel"
}

func (t *target) isSatisfied() bool {
	ok, err := t.matches()
	return t.known && err == nil && ok
}

// judgeWritten sets the result of a target from its last observation.
func (s *Session) judgeWritten(t *target, written bool) {
	switch {
	case t.needsReboot && !t.isSatisfied():
		t.finishMask()
	case t.err != nil && !t.known && written && !isRetriable(t.err):
		// The value was written but cannot be read back.
		t.finishFault(s.dev, s.options, false, t.err)
	case t.err != nil:
		t.finishFault(s.dev, s.options, true, t.err)
	case t.isSatisfied():
		t.finish(outcome.OK, "")
	case t.wasSatisfied:
		t.finish(outcome.Contested, fmt.Sprintf("%s: %s", outcome.Name(t.path), s.describeUndone(t)))
	case t.finishIfCapped(s.dev):
	case written && outcome.IsPages(t.path) && isFewer(t.setting, t.found):
		t.finish(outcome.Partial, t.describeShortage(s.dev))
	case written:
		t.finish(outcome.Adjusted, outcome.DescribeChanged(t.path, wantedText(t.setting), t.found.Value))
	default:
		t.judge(s.dev, s.options)
	}
}
