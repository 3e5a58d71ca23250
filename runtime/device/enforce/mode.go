package enforce

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/formats/nvpmodel"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

// A power mode is a list of nodes and values, which are recorded, written, read back and
// watched like settings. nvpmodel itself is not run: it stops at the first missing node,
// prompts for a reboot on standard input, and cannot be rolled back.

// modeID is the id of all results of the power mode in force: one line of the configuration
// selects the whole mode.
const modeID = "power.default"

// mode is a power mode on this device.
type mode struct {
	definition
	lines []*target
	wake  []*target // nodes that must be on while clocks are set
}

// definition is a power mode: of the device's nvpmodel, or of a plan whose modes yoctuned holds
// by itself.
type definition struct {
	name   string
	config *nvpmodel.File // nil: held
	stock  *nvpmodel.Mode
	held   []plan.Setting
}

// findMode finds a power mode by name.
func findMode(dev rootfs.FS, p *plan.Power, name string) (definition, error) {
	if isHeld(p) {
		for _, m := range p.Modes {
			if m.Name == name {
				return definition{name: name, held: m.Settings}, nil
			}
		}
		return definition{}, fmt.Errorf("%w: the plan does not define %s", errNoMode, name)
	}
	config, m, err := readMode(dev, name)
	if err != nil {
		return definition{}, err
	}
	return definition{name: m.Name, config: config, stock: m}, nil
}

// isHeld reports whether yoctuned holds the plan's modes by itself, without nvpmodel.
func isHeld(p *plan.Power) bool { return p != nil && p.Table == plan.PowerHeld }

// readMode finds a power mode of this device by name.
func readMode(dev rootfs.FS, name string) (*nvpmodel.File, *nvpmodel.Mode, error) {
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

// newMode returns a mode with targets for its lines. Nodes that the plan sets by itself are
// left out, since the plan's setting is more specific.
func newMode(dev rootfs.FS, def definition, settings []*target) *mode {
	claimed := map[string]bool{}
	for _, t := range settings {
		if t.real != "" && !isReadOnly(t.setting) && t.setting.Policy != plan.Report {
			claimed[t.real] = true
		}
	}
	m := &mode{definition: def}
	sel := newSelector(dev)
	for _, t := range sel.targetsOf(def.held) {
		if !claimed[t.real] {
			m.lines = append(m.lines, t)
		}
	}
	if def.config == nil {
		return m
	}
	for _, step := range power.Steps(dev, def.config, def.stock) {
		t := newModeTarget(sel, step)
		switch {
		case claimed[t.real]:
		case step.Stage == nvpmodel.Wake:
			m.wake = append(m.wake, t)
		default:
			m.lines = append(m.lines, t)
		}
	}
	return m
}

// newModeTarget returns the target of one step.
func newModeTarget(sel *selector, step nvpmodel.Step) *target {
	s := plan.Setting{
		ID: modeID, Domain: plan.DomainPower, Type: plan.TypeInt, Want: step.Want,
		Select:  plan.Select{Path: step.Path},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
	if step.AtLeast {
		s.Compare = plan.AtLeast
	}
	if step.Stage == nvpmodel.Wake || step.Stage == nvpmodel.Sleep {
		s.Type = plan.TypeString
	}
	if step.Missing != "" {
		t := &target{setting: s, path: step.Param + " " + step.Arg}
		t.finish(outcome.Unsupported, t.path+": "+step.Missing)
		return t
	}
	t := sel.nodeTarget(s, step.Path)
	t.write, t.accepted, t.needsReboot = step.Write, step.Also, step.Stage == nvpmodel.Masks
	return t
}

// finishMask finishes a power-gating mask of the GPU that differs and needs a reboot.
func (t *target) finishMask() {
	msg := fmt.Sprintf("%s: in force after a reboot", outcome.Name(t.path))
	if t.known {
		msg = fmt.Sprintf("%s is %s, wanted %s: in force after a reboot, since the GPU has been used", outcome.Name(t.path), t.found.Value, t.setting.Want)
	}
	t.finish(outcome.Pending, msg)
}

// matches reports whether the value found is accepted.
func (t *target) matches() (bool, error) {
	if slices.Contains(t.accepted, t.found.Value) {
		return true, nil
	}
	return knob.Satisfies(t.setting.Type, t.setting.Compare, t.setting.Want, t.found)
}

// claimingTargets returns the targets that take precedence over a mode's lines.
func (s *Session) claimingTargets() []*target { return slices.Concat(s.overlay, s.targets) }

// reselectMode selects the mode's nodes again.
func (s *Session) reselectMode() {
	if s.mode == nil {
		return
	}
	if def, err := findMode(s.dev, s.plan.Power, s.mode.name); err == nil {
		s.mode = newMode(s.dev, def, s.claimingTargets())
	}
}

// Mode returns the name of the power mode in force, "" for none.
func (s *Session) Mode() string {
	if s.mode == nil {
		return ""
	}
	return s.mode.name
}

// SetMode enters a power mode of this device until the next boot, in place of the current
// one. nvpmodel still sets the plan's own mode at boot. The error is ErrJournal or reports
// that there is no such mode.
func (s *Session) SetMode(name string) ([]Result, error) {
	def, err := findMode(s.dev, s.plan.Power, name)
	if err != nil {
		return nil, err
	}
	if err := s.enterMode(def); err != nil {
		return nil, err
	}
	return append([]Result{modeResult(s.dev, s.plan.Power, s.mode)}, s.mode.failedLines()...), nil
}

// enterMode sets cores and masks first and then, with the GPU awake, clocks and the rest.
// The cpufreq policies of cores exist only once the cores are online.
func (s *Session) enterMode(def definition) error {
	m := newMode(s.dev, def, s.claimingTargets())
	cores := slices.DeleteFunc(slices.Clone(m.lines), func(t *target) bool { return knob.WriteRank(t.real) >= knob.RankClocks })
	if err := s.applyTargets(cores); err != nil {
		return err
	}
	s.reselect()
	m = newMode(s.dev, def, s.claimingTargets())
	s.observe(m.lines)
	if slices.ContainsFunc(m.lines, func(t *target) bool { return knob.WriteRank(t.real) >= knob.RankClocks && !t.isSatisfied() }) {
		if err := s.applyTargets(m.wake); err != nil {
			return err
		}
	}
	s.mode = m
	if err := s.applyTargets(m.lines); err != nil {
		return err
	}
	return s.recordMode(def)
}

// failedLines returns the lines of the mode that do not hold. They are excused, since the mode's
// own result covers them.
func (m *mode) failedLines() []Result {
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

// modeResult summarises the lines of a mode after they were judged.
func modeResult(dev rootfs.FS, p *plan.Power, m *mode) Result {
	r := Result{ID: modeID, Path: power.StatusFile, Wanted: m.name, Outcome: outcome.OK}
	worst := outcome.OK
	count := map[outcome.Outcome]int{}
	first := map[outcome.Outcome]string{}
	for _, t := range m.lines {
		o := t.result.Outcome
		if o == outcome.Adjusted {
			o = outcome.OK // the kernel chose another step of the frequency table
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
	var err error
	if m.config == nil {
		r.Path, r.Found, r.Known = modeFile, p.Default, true // yoctuned enters it at boot
	} else if id, cerr := power.Current(dev, m.config); cerr != nil {
		err = cerr
	} else if r.Found, r.Known = m.config.ModeName(id), true; r.Found == "" {
		r.Found = fmt.Sprintf("mode %d", id)
	}
	part := fmt.Sprintf("%d of %d lines of %s", count[outcome.OK]+count[outcome.Capped], len(m.lines), m.name)
	held := part + " are in force"
	if worst != outcome.OK && worst != outcome.Capped && r.Found == m.name {
		r.Found = part // the name alone would claim that nothing differs
	}
	switch {
	case worst == outcome.Unsupported && count[outcome.OK] > 0:
		r.Outcome, r.Message = outcome.Partial, held+"; "+first[worst]
	case worst != outcome.OK:
		r.Outcome, r.Message = worst, held+"; "+first[worst]
		r.Excused = worst == outcome.Capped
	case err != nil:
		r.Outcome, r.Message = outcome.Differs, fmt.Sprintf("%s is in force, but the mode of the next boot is unknown: %v", m.name, err)
	case p.Default != "" && r.Found != p.Default:
		r.Outcome, r.Message = outcome.Differs, fmt.Sprintf("%s is in force, but the next boot starts in %s", m.name, r.Found)
	default:
		r.Found = m.name
	}
	return r
}

// modeFile records the mode in force if it is not the one in nvpmodel's status: during a
// trial, and while the mode follows the load.
const modeFile = "/run/yoctune/mode.json"

type inForce struct {
	Boot     string `json:"boot"`
	Mode     string `json:"mode"`
	Remember int    `json:"remember"` // id to remember when the trial is confirmed; -1: none
}

// recordMode records the mode in force and sets the plan's own for the next boot. In a trial
// the latter waits for the confirmation, so that a reset reverts it.
func (s *Session) recordMode(def definition) error {
	planned, err := findMode(s.dev, s.plan.Power, s.plan.Power.Default)
	if err != nil && !isHeld(s.plan.Power) {
		return nil // a ladder without a default mode
	}
	f := inForce{Boot: rootfs.BootID(s.dev), Mode: def.name, Remember: -1}
	if planned.config != nil {
		s.rememberMode(&f, planned)
	}
	if def.name == s.plan.Power.Default && f.Remember < 0 {
		return journalError(s.dev.RemoveState(modeFile))
	}
	return journalError(rootfs.WriteJSON(s.dev, modeFile, f))
}

// rememberMode sets the plan's mode for the next boot where nvpmodel has another one.
func (s *Session) rememberMode(f *inForce, planned definition) {
	id, err := power.Current(s.dev, planned.config)
	switch {
	case err != nil || id == planned.stock.ID:
	case s.trial:
		f.Remember = planned.stock.ID
	default:
		if err := power.SetBootMode(s.dev, planned.stock.ID); err != nil {
			s.rememberErr = err
		}
	}
}

// readInForce returns the record of this boot, nil if there is none.
func readInForce(dev rootfs.Device) *inForce {
	f, err := rootfs.ReadJSON[inForce](dev, modeFile)
	if err != nil || f == nil || f.Boot != rootfs.BootID(dev) {
		return nil
	}
	return f
}

// confirmMode sets the mode of a confirmed trial for the next boot.
func confirmMode(dev rootfs.Device) error {
	f := readInForce(dev)
	if f == nil || f.Remember < 0 {
		return nil
	}
	if err := power.SetBootMode(dev, f.Remember); err != nil {
		return err
	}
	return dev.RemoveState(modeFile)
}

// restoreBootMode restores nvpmodel's status and returns the result.
func restoreBootMode(dev rootfs.Device) []Result {
	was, changed, err := power.Forget(dev)
	_ = dev.RemoveState(modeFile) // no longer valid
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

// CanEnter returns an error that states why a power mode cannot be entered without a reboot,
// nil if it can.
func (s *Session) CanEnter(name string) error {
	def, err := findMode(s.dev, s.plan.Power, name)
	if err != nil || def.config == nil {
		return err
	}
	for _, step := range power.Steps(s.dev, def.config, def.stock) {
		if step.Stage != nvpmodel.Masks || step.Path == "" {
			continue
		}
		c, err := s.reader.read(step.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if found, perr := knob.Parse(plan.TypeInt, c.Text); err == nil && perr == nil && found.Value != step.Want {
			return fmt.Errorf("needs a reboot: %s is %s, the mode has %s", step.Arg, strings.TrimSpace(c.Text), step.Want)
		}
	}
	return nil
}
