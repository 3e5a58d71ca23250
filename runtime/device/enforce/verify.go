package enforce

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/yoctune/yoctune/runtime/device/journal"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

// Verify compares the device with the plan. It reads only.
func Verify(dev rootfs.Device, p *plan.Plan, o Options) []Result {
	o = o.withDefaults()
	// The journal records which values the kernel rounds. Without it these are reported
	// as "differs" in place of "adjusted", so the error is ignored.
	j, err := journal.Load(dev, rootfs.BootID(dev))
	if err != nil {
		j = nil
	}
	all := planTargets(newSelector(dev), p)
	r := newReader(dev, o.ReadTimeout)
	for _, t := range all {
		t.recoverIn(func() { t.inspect(dev, r, o, j) })
	}
	out := append(collectResults(all), powerResults(dev, p.Power)...)
	m, err := modeToVerify(dev, p.Power, all)
	if m != nil {
		for _, t := range m.lines {
			t.recoverIn(func() { t.inspect(dev, r, o, j) })
		}
	}
	out = append(out, unitResults(dev, p.Units, compareProperties)...)
	out = append(out, fanResult(dev, p.Fan)...)
	out = append(out, balancerResult(dev, all)...)
	return append(out, defaultResults(dev, p.Power, m, err)...)
}

// modeToVerify returns the wanted mode: the plan's, or the one that its ladder has entered.
func modeToVerify(dev rootfs.Device, p *plan.Power, settings []*target) (*mode, error) {
	if p == nil {
		return nil, nil
	}
	name := p.Default
	if f := readInForce(dev); f != nil && p.Adaptive != nil && slices.Contains(p.Adaptive.Ladder, f.Mode) {
		name = f.Mode
	}
	if name == "" {
		return nil, nil
	}
	def, err := findMode(dev, p, name)
	if err != nil {
		return nil, err
	}
	return newMode(dev, def, settings), nil
}

// inspect reads a target and judges it. j may be nil.
func (t *target) inspect(dev rootfs.FS, r *reader, o Options, j *journal.Journal) {
	t.observe(r)
	t.judge(dev, o)
	if t.result.Outcome == outcome.Differs && j != nil && j.Explains(t.real, t.setting.Want, t.found.Value) {
		t.finish(outcome.Adjusted, outcome.DescribeChanged(t.path, wantedText(t.setting), t.found.Value))
	}
}

// recoverIn runs a step and turns a panic into the outcome of this setting, so that a bug
// does not stop the others.
func (t *target) recoverIn(step func()) {
	defer func() {
		if cause := recover(); cause != nil {
			t.finish(outcome.Stale, fmt.Sprintf("%s: internal error: %v", outcome.Name(t.path), cause))
		}
	}()
	step()
}

// judge sets the result of a target from its observation.
func (t *target) judge(dev rootfs.FS, o Options) {
	s := t.setting
	switch {
	case t.done:
	case isReadOnly(s) && t.isAbsent():
		t.finishPending(fmt.Sprintf("%s does not exist", t.path))
	case !t.known && t.err != nil:
		t.finishFault(dev, o, false, t.err)
	case !t.known: // a missing kernel argument
		t.finishPending(fmt.Sprintf("the running kernel was not given %s", s.Select.Name))
	default:
		t.compare(dev)
	}
}

// compare sets the result of a target from the value found.
func (t *target) compare(dev rootfs.FS) {
	s := t.setting
	ok, err := t.matches()
	switch {
	case err != nil:
		t.finish(outcome.Refused, fmt.Sprintf("%s: %v", outcome.Name(t.path), err))
	case ok:
		t.finish(outcome.OK, "")
	case t.needsReboot:
		t.finishMask()
	case isBuiltIn(dev, s):
		t.found.Value = s.Want
		t.finish(outcome.OK, "")
	case isUnknownModule(dev, s):
		t.finish(outcome.Unsupported, fmt.Sprintf("the running kernel has no module %s: neither modules.dep nor modules.builtin has it", path.Base(s.Select.Path)))
	case isReadOnly(s):
		t.finishPending(t.describeFound())
	case t.finishIfCapped(dev):
	case outcome.IsPages(t.path) && isFewer(s, t.found):
		t.finish(outcome.Partial, t.describeShortage(dev))
	default:
		t.finish(outcome.Differs, fmt.Sprintf("%s: found %s, wanted %s", outcome.Name(t.path), t.found.Value, describeWanted(s)))
	}
}

// describeFound describes the value found in a node that is never written.
func (t *target) describeFound() string {
	s := t.setting
	switch {
	case s.Type == plan.TypePresent:
		return describePresence(s, t.path, t.found.Value == "1")
	case s.Select.Class == rootfs.ClassCmdline:
		return fmt.Sprintf("the running kernel was given %s=%s", s.Select.Name, t.found.Value)
	}
	return fmt.Sprintf("%s is %s", outcome.Name(t.path), t.found.Value)
}

// finishPending finishes a target that is never written, with the action that it needs.
func (t *target) finishPending(what string) {
	s := t.setting
	switch {
	case s.Needs == plan.NeedsReboot && s.Select.Class != rootfs.ClassCmdline:
		t.finish(outcome.Pending, what+": in force after a reboot")
	case s.Needs == plan.NeedsReboot, s.Needs == plan.NeedsReflash: // the boot loader's files come with an image
		t.finish(outcome.Pending, what+": needs an image built from this plan's layer")
	default:
		t.finish(outcome.Differs, what)
	}
}

func describePresence(s plan.Setting, name string, present bool) string {
	if s.Select.Class == rootfs.ClassCmdline {
		name = "kernel argument " + s.Select.Name
	}
	if present {
		return name + " is present"
	}
	return name + " is missing"
}

// isFewer reports whether the number found is smaller than the wanted one.
func isFewer(s plan.Setting, found knob.Found) bool {
	enough, err := knob.Satisfies(s.Type, plan.AtLeast, s.Want, found)
	return err == nil && !enough
}

// describeWanted returns the wanted value with its comparison.
func describeWanted(s plan.Setting) string {
	switch s.Compare {
	case plan.AtLeast:
		return "at least " + wantedText(s)
	case plan.AtMost:
		return "at most " + wantedText(s)
	case plan.FirstAvailable:
		return "the first available of " + s.Want
	}
	return wantedText(s)
}

// collectResults returns the results of targets.
func collectResults(all []*target) []Result {
	out := make([]Result, len(all))
	for i, t := range all {
		out[i] = t.result
	}
	return out
}

// journalError wraps an error of the journal, and returns nil for nil.
func journalError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrJournal, err)
}

// ErrJournal reports that the originals could not be recorded. Nothing was written.
var ErrJournal = errors.New("cannot record the original values in the journal, so nothing was written")

// wantedText is the wanted value in the notation of found ones: CPUs as a list, also where
// the node takes a mask.
func wantedText(s plan.Setting) string { return knob.Show(s.Type, s.Want) }
