package enforce

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

// A power mode is a list of nodes and values, like the settings of a plan, and is
// made true in the same way: journalled, written, read back, watched. nvpmodel
// itself is not run: it stops at the first missing node, asks for a reboot on
// standard input, and cannot be put back.

// modeID is the id of everything about the power mode in force, as its lines are
// asked for by one line of the configuration.
const modeID = "power.default"

// mode is a power mode on this device.
type mode struct {
	def   *power.Mode
	lines []*target
	wake  []*target // what must be on while the clocks are set
}

// readMode finds a mode of this device by name; the error is why there is none.
func readMode(dev rootfs.FS, name string) (*power.Config, *power.Mode, error) {
	config, err := power.Read(dev)
	if err != nil {
		return nil, nil, err
	}
	if config == nil {
		return nil, nil, fmt.Errorf("no %s: this system has no power modes", power.ConfigFile)
	}
	m := config.Mode(name)
	if m == nil {
		return config, nil, fmt.Errorf("%w: %s does not define %s: needs an image built from this plan's layer", errNoMode, power.ConfigFile, name)
	}
	return config, m, nil
}

var errNoMode = errors.New("no such power mode")

// newMode makes targets of a mode's lines. A node that the plan sets itself is the
// plan's: it is the more particular wish of the same configuration.
func newMode(dev rootfs.FS, config *power.Config, def *power.Mode, settings []*target) *mode {
	claimed := map[string]bool{}
	for _, t := range settings {
		if t.real != "" && !verifyOnly(t.setting) && t.setting.Policy != plan.Report {
			claimed[t.real] = true
		}
	}
	m := &mode{def: def}
	sel := newSelector(dev)
	for _, step := range config.Steps(dev, def) {
		t := line(sel, step)
		switch {
		case claimed[t.real]:
		case step.Stage == power.Wake:
			m.wake = append(m.wake, t)
		default:
			m.lines = append(m.lines, t)
		}
	}
	return m
}

// line makes a target of one step.
func line(sel *selector, step power.Step) *target {
	s := plan.Setting{
		ID: modeID, Domain: plan.DomainPower, Type: plan.TypeInt, Want: step.Want,
		Select:  plan.Select{Path: step.Path},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
	if step.AtLeast {
		s.Compare = plan.AtLeast
	}
	if step.Stage == power.Wake || step.Stage == power.Sleep {
		s.Type = plan.TypeString
	}
	if step.Missing != "" {
		t := &target{setting: s, path: step.Param + " " + step.Arg}
		t.finish(outcome.Unsupported, t.path+": "+step.Missing)
		return t
	}
	t := sel.node(s, step.Path)
	t.write, t.also, t.mask = step.Write, step.Also, step.Stage == power.Masks
	return t
}

// staged finishes a mask of the GPU that differs: only a boot changes it.
func (t *target) staged() {
	msg := fmt.Sprintf("%s: in force after a reboot", outcome.Name(t.path))
	if t.known {
		msg = fmt.Sprintf("%s is %s, wanted %s: in force after a reboot, as the GPU has been used", outcome.Name(t.path), t.found.Value, t.setting.Want)
	}
	t.finish(outcome.Pending, msg)
}

// meets reports whether what was found will do.
func (t *target) meets() (bool, error) {
	if slices.Contains(t.also, t.found.Value) {
		return true, nil
	}
	return knob.Satisfies(t.setting.Type, t.setting.Compare, t.setting.Want, t.found)
}

// claims are the targets that come before a mode's lines.
func (s *Session) claims() []*target { return slices.Concat(s.overlay, s.targets) }

// remode selects the mode's nodes again.
func (s *Session) remode() {
	if s.mode == nil {
		return
	}
	if config, def, err := readMode(s.dev, s.mode.def.Name); err == nil {
		s.mode = newMode(s.dev, config, def, s.claims())
	}
}

// Mode returns the name of the power mode that the session keeps, "" for none.
func (s *Session) Mode() string {
	if s.mode == nil {
		return ""
	}
	return s.mode.def.Name
}

// SetMode makes a power mode of this device true, in place of the plan's own or
// the one set before, until the next boot: the mode that nvpmodel sets at boot
// stays the plan's. The error is ErrJournal, or that there is no such mode.
func (s *Session) SetMode(name string) ([]Result, error) {
	config, def, err := readMode(s.dev, name)
	if err != nil {
		return nil, err
	}
	if err := s.enter(config, def); err != nil {
		return nil, err
	}
	return append([]Result{modeResult(s.dev, s.plan.Power, s.mode)}, s.mode.faults()...), nil
}

// enter switches: cores and masks, then, with the GPU awake, clocks, then what is
// left. Policies of cores that come on are there only afterwards.
func (s *Session) enter(config *power.Config, def *power.Mode) error {
	m := newMode(s.dev, config, def, s.claims())
	cores := slices.DeleteFunc(slices.Clone(m.lines), func(t *target) bool { return rank(t.real) >= rankClocks })
	if err := s.run(cores); err != nil {
		return err
	}
	s.reselect()
	m = newMode(s.dev, config, def, s.claims())
	for _, t := range m.lines {
		t.guarded(func() { t.observe(s.reader) })
	}
	if slices.ContainsFunc(m.lines, func(t *target) bool { return rank(t.real) >= rankClocks && !t.satisfied() }) {
		if err := s.run(m.wake); err != nil {
			return err
		}
	}
	s.mode = m
	if err := s.run(m.lines); err != nil {
		return err
	}
	return s.inForce(def)
}

// faults lists what of the mode does not hold. They are excused, because the
// mode's own result answers for them.
func (m *mode) faults() []Result {
	var out []Result
	for _, t := range m.lines {
		if t.result.Outcome != outcome.OK {
			r := t.result
			r.Excused = true
			out = append(out, r)
		}
	}
	return out
}

// modeResult sums the lines of a mode up, after they were judged.
func modeResult(dev rootfs.FS, p *plan.Power, m *mode) Result {
	r := Result{ID: modeID, Path: power.StatusFile, Wanted: m.def.Name, Outcome: outcome.OK}
	worst := outcome.OK
	count := map[outcome.Outcome]int{}
	first := map[outcome.Outcome]string{}
	for _, t := range m.lines {
		o := t.result.Outcome
		if o == outcome.Adjusted {
			o = outcome.OK // a clock between two steps of the table: the kernel chose
		}
		if count[o]++; first[o] == "" {
			first[o] = t.result.Message
		}
	}
	for _, o := range []outcome.Outcome{outcome.Capped, outcome.Pending, outcome.Unsupported, outcome.Differs, outcome.Contested, outcome.Busy, outcome.Stale, outcome.Forbidden, outcome.Refused} {
		if count[o] > 0 {
			worst = o
		}
	}
	config, _, err := readMode(dev, m.def.Name)
	if err == nil {
		var id int
		if id, err = power.Current(dev, config); err == nil {
			if r.Found, r.Known = config.Name(id), true; r.Found == "" {
				r.Found = fmt.Sprintf("mode %d", id)
			}
		}
	}
	held := fmt.Sprintf("%d of %d lines of %s hold", count[outcome.OK]+count[outcome.Capped], len(m.lines), m.def.Name)
	switch {
	case worst == outcome.Unsupported && count[outcome.OK] > 0:
		r.Outcome, r.Message = outcome.Partial, held+"; "+first[worst]
	case worst != outcome.OK:
		r.Outcome, r.Message = worst, held+"; "+first[worst]
		r.Excused = worst == outcome.Capped
	case err != nil:
		r.Outcome, r.Message = outcome.Differs, fmt.Sprintf("%s holds, but what the next boot starts in is not known: %v", m.def.Name, err)
	case p.Default != "" && r.Found != p.Default:
		r.Outcome, r.Message = outcome.Differs, fmt.Sprintf("%s holds, but the next boot starts in %s", m.def.Name, r.Found)
	default:
		r.Found = m.def.Name
	}
	return r
}

// modeFile says which mode is in force where that is not the one that nvpmodel's
// status names: while a trial runs, and when the mode follows the load.
const modeFile = "/run/yoctune/mode.json"

type inForce struct {
	Boot     string `json:"boot"`
	Mode     string `json:"mode"`
	Remember int    `json:"remember"` // id to remember when the trial is confirmed; -1: none
}

// inForce records the mode, and makes the plan's own that of the next boot; in a
// trial only once it is confirmed, so that a reset reverts it.
func (s *Session) inForce(def *power.Mode) error {
	config, planned, err := readMode(s.dev, s.plan.Power.Default)
	if err != nil {
		return nil // a ladder without a default: nothing to remember
	}
	f := inForce{Boot: rootfs.Identify(s.dev).BootID, Mode: def.Name, Remember: -1}
	if id, err := power.Current(s.dev, config); err == nil && id != planned.ID {
		if s.trial {
			f.Remember = planned.ID
		} else if err := power.Remember(s.dev, planned.ID); err != nil {
			s.notRemembered = err
		}
	}
	if def.Name == s.plan.Power.Default && f.Remember < 0 {
		err = s.dev.RemoveState(modeFile)
	} else {
		var b []byte
		if b, err = json.Marshal(f); err == nil {
			err = s.dev.WriteState(modeFile, append(b, '\n'))
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return nil
}

// readInForce returns what was recorded in this boot, nil when nothing was.
func readInForce(dev rootfs.Device) *inForce {
	b, err := dev.ReadState(modeFile)
	if err != nil {
		return nil
	}
	var f inForce
	if json.Unmarshal(b, &f) != nil || f.Boot != rootfs.Identify(dev).BootID {
		return nil
	}
	return &f
}

// keepMode makes the mode of a confirmed trial that of the next boot.
func keepMode(dev rootfs.Device) error {
	f := readInForce(dev)
	if f == nil || f.Remember < 0 {
		return nil
	}
	if err := power.Remember(dev, f.Remember); err != nil {
		return err
	}
	return dev.RemoveState(modeFile)
}

// forgetMode puts nvpmodel's status back, and says so in a result.
func forgetMode(dev rootfs.Device) []Result {
	was, changed, err := power.Forget(dev)
	_ = dev.RemoveState(modeFile) // of this boot only, and stale from now on
	switch {
	case err != nil:
		return []Result{{ID: modeID, Path: power.StatusFile, Outcome: outcome.Refused, Message: err.Error()}}
	case !changed:
		return nil
	case was == "":
		was = "absent"
	}
	return []Result{{ID: modeID, Path: power.StatusFile, Wanted: was, Found: was, Known: true, Outcome: outcome.OK}}
}

// CanEnter returns why a power mode cannot be entered without a reboot from what is
// in force; nil when it can.
func (s *Session) CanEnter(name string) error {
	config, def, err := readMode(s.dev, name)
	if err != nil {
		return err
	}
	for _, step := range config.Steps(s.dev, def) {
		if step.Stage != power.Masks || step.Path == "" {
			continue
		}
		c, err := s.reader.read(step.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if found, perr := knob.Parse(plan.TypeInt, c.Text); err == nil && perr == nil && found.Value != step.Want {
			return fmt.Errorf("%s needs a reboot: %s is %s, %s has %s", name, step.Arg, strings.TrimSpace(c.Text), name, step.Want)
		}
	}
	return nil
}
