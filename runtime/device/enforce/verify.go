package enforce

import (
	"errors"
	"fmt"
	"slices"

	"github.com/yoctune/yoctune/runtime/device/journal"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

// Verify compares the device with the plan. It reads only.
func Verify(dev rootfs.Device, p *plan.Plan, o Options) []Result {
	o = o.filled()
	// The journal knows which values the kernel rounds. Without it they are
	// plain differences, so failing to read it costs a nicer word only.
	j, err := journal.Load(dev, rootfs.Identify(dev).BootID)
	if err != nil {
		j = nil
	}
	all := planned(newSelector(dev), p)
	r := newReader(dev, o.ReadTimeout)
	for _, t := range all {
		t.guarded(func() { t.look(dev, r, o, j) })
	}
	out := append(collect(all), powerResults(dev, p.Power)...)
	m, err := verifiedMode(dev, p.Power, all)
	if m != nil {
		for _, t := range m.lines {
			t.guarded(func() { t.look(dev, r, o, j) })
		}
	}
	out = append(out, unitResults(dev, p.Units)...)
	out = append(out, fanResult(dev, p.Fan)...)
	out = append(out, balancerResult(dev, all)...)
	return append(out, defaultResults(dev, p.Power, m, err)...)
}

// verifiedMode is the mode that shall be in force: the plan's, or the one that its
// ladder has climbed to.
func verifiedMode(dev rootfs.Device, p *plan.Power, settings []*target) (*mode, error) {
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
	config, def, err := readMode(dev, name)
	if err != nil {
		return nil, err
	}
	return newMode(dev, config, def, settings), nil
}

// look reads a target and judges it; j may be nil.
func (t *target) look(dev rootfs.FS, r *reader, o Options, j *journal.Journal) {
	t.observe(r)
	t.judge(dev, o)
	if t.result.Outcome == outcome.Differs && j != nil && j.Explains(t.real, t.setting.Want, t.found.Value) {
		t.finish(outcome.Adjusted, outcome.Changed(t.path, t.setting.Want, t.found.Value))
	}
}

// guarded keeps a mistake of this program in one setting from costing the
// others: whatever panics is that setting's outcome.
func (t *target) guarded(step func()) {
	defer func() {
		if cause := recover(); cause != nil {
			t.finish(outcome.Stale, fmt.Sprintf("%s: internal error: %v", outcome.Name(t.path), cause))
		}
	}()
	step()
}

// judge sets the result of a target from what was observed.
func (t *target) judge(dev rootfs.FS, o Options) {
	s := t.setting
	switch {
	case t.done:
	case verifyOnly(s) && t.absent():
		t.pending(fmt.Sprintf("%s is not there", t.path))
	case !t.known && t.err != nil:
		t.fault(dev, o, false, t.err)
	case !t.known: // a kernel argument that is not there
		t.pending(fmt.Sprintf("the running kernel was not given %s", s.Select.Name))
	default:
		ok, err := t.meets()
		switch {
		case err != nil:
			t.finish(outcome.Refused, fmt.Sprintf("%s: %v", outcome.Name(t.path), err))
		case ok:
			t.finish(outcome.OK, "")
		case t.mask:
			t.staged()
		case verifyOnly(s):
			what := fmt.Sprintf("%s is %s", outcome.Name(t.path), t.found.Value)
			if s.Select.Class == rootfs.ClassCmdline {
				what = fmt.Sprintf("the running kernel was given %s=%s", s.Select.Name, t.found.Value)
			}
			if s.Type == plan.TypePresent {
				what = presence(s, t.path, t.found.Value == "1")
			}
			t.pending(what)
		case t.capped(dev):
		case outcome.IsPages(t.path) && fewer(s, t.found):
			t.finish(outcome.Partial, outcome.Short(t.path, s.Want, t.found.Value))
		default:
			t.finish(outcome.Differs, fmt.Sprintf("%s: found %s, wanted %s", outcome.Name(t.path), t.found.Value, wording(s)))
		}
	}
}

// pending finishes a target that this program never writes: with what has to
// happen before it holds.
func (t *target) pending(what string) {
	switch t.setting.Needs {
	case plan.NeedsReboot:
		t.finish(outcome.Pending, what+": in force after a reboot")
	case plan.NeedsReflash:
		t.finish(outcome.Pending, what+": needs an image built from this plan's layer")
	default:
		t.finish(outcome.Differs, what)
	}
}

func presence(s plan.Setting, name string, present bool) string {
	if s.Select.Class == rootfs.ClassCmdline {
		name = "kernel argument " + s.Select.Name
	}
	if present {
		return name + " is there"
	}
	return name + " is not there"
}

// fewer reports whether found is a smaller number than wanted.
func fewer(s plan.Setting, found knob.Found) bool {
	enough, err := knob.Satisfies(s.Type, plan.AtLeast, s.Want, found)
	return err == nil && !enough
}

// wording says what a comparison asks for.
func wording(s plan.Setting) string {
	switch s.Compare {
	case plan.AtLeast:
		return "at least " + s.Want
	case plan.AtMost:
		return "at most " + s.Want
	case plan.FirstAvailable:
		return "the first available of " + s.Want
	}
	return s.Want
}

func collect(all []*target) []Result {
	out := make([]Result, len(all))
	for i, t := range all {
		out[i] = t.result
	}
	return out
}

// ErrJournal says that the originals could not be recorded; nothing was written.
var ErrJournal = errors.New("cannot journal the original values, so nothing was written")
