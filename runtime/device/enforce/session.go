package enforce

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/yoctune/yoctune/runtime/device/journal"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

// Session is a plan on a device: applied as a whole, then inspected and repaired node by
// node. It is not safe for concurrent use. Its process holds the device's lock.
type Session struct {
	dev      rootfs.Device
	plan     *plan.Plan
	options  Options
	reader   *reader
	journal  *journal.Journal
	planInfo journal.Plan
	targets  []*target
	overlay  []*target // of leases, with precedence over the plan's

	mode        *mode // power mode in force, nil for none
	trial       bool  // nothing may persist over a reboot
	rememberErr error // why the mode could not be set for the next boot
}

// Open selects the plan's nodes and writes nothing. The error is ErrJournal.
func Open(dev rootfs.Device, p *plan.Plan, o Options) (*Session, error) {
	o = o.withDefaults()
	j, err := journal.Load(dev, rootfs.BootID(dev))
	if err != nil {
		return nil, journalError(err)
	}
	return &Session{
		dev: dev, plan: p, options: o, journal: j,
		reader:   newReader(dev, o.ReadTimeout),
		planInfo: journal.Plan{Layer: p.Layer, Target: p.Target, Serial: p.Serial, Digest: p.Digest, Rollback: p.Rollback},
		targets:  planTargets(newSelector(dev), p),
	}, nil
}

// Apply applies the whole plan, see [Apply]. It can be called again.
func (s *Session) Apply() ([]Result, error) {
	// The mode comes first: it decides which cores are online and thus which cpufreq
	// policies exist.
	modeErr := s.applyMode()
	if errors.Is(modeErr, ErrJournal) {
		return nil, modeErr
	}
	if err := s.applyTargets(s.targets); err != nil {
		return nil, err
	}
	results := collectResults(s.targets)
	for _, pr := range powerResults(s.dev, s.plan.Power) {
		pr.Excused = true
		results = append(results, pr)
	}
	for _, ur := range slices.Concat(unitResults(s.dev, s.plan.Units, nil), fanResult(s.dev, s.plan.Fan), balancerResult(s.dev, s.targets)) {
		ur.Excused = true // left to systemd, nvfancontrol and irqbalance
		results = append(results, ur)
	}
	for _, pr := range defaultResults(s.dev, s.plan.Power, s.mode, modeErr) {
		if s.trial && s.mode != nil && pr.Outcome == outcome.Differs || errors.Is(modeErr, errNoMode) {
			pr.Excused = true // a trial does not change the next boot, and only an image adds modes
		}
		if s.rememberErr != nil && pr.Outcome == outcome.Differs {
			pr.Message += ": " + s.rememberErr.Error()
		}
		results = append(results, pr)
	}
	return results, nil
}

// applyMode enters the plan's power mode.
func (s *Session) applyMode() error {
	s.mode, s.rememberErr = nil, nil
	if s.plan.Power == nil || s.plan.Power.Default == "" {
		return nil
	}
	def, err := findMode(s.dev, s.plan.Power, s.plan.Power.Default)
	if err != nil {
		return err
	}
	return s.enterMode(def)
}

// applyTargets writes the targets that differ and judges all.
func (s *Session) applyTargets(all []*target) error {
	s.observe(all)
	pending := selectWritable(s.dev, all, s.options)
	originals, err := listOriginals(s.reader, s.journal.HasOriginal, pending)
	if err == nil {
		err = s.journal.Begin(s.planInfo, originals)
	}
	if err != nil {
		return journalError(err)
	}
	s.writeTargets(all, pending)
	var notes []journal.Note
	for _, t := range all {
		if !t.done {
			t.recoverIn(func() { t.judge(s.dev, s.options) })
		}
		if t.result.Outcome == outcome.Adjusted {
			notes = append(notes, journal.Note{Path: t.real, Want: t.setting.Want, Found: t.found.Value})
		}
		if isReadOnly(t.setting) || t.setting.Policy == plan.Report {
			t.result.Excused = true
		}
	}
	// The values are in force. A lost note only makes the next verify report "differs" in
	// place of "adjusted", so the error is ignored.
	_ = s.journal.AddNotes(notes)
	return nil
}

// observe reads the nodes of targets again, even if they were read before.
func (s *Session) observe(all []*target) {
	for _, t := range all {
		t.reset()
		t.recoverIn(func() { t.observe(s.reader) })
	}
}

// Node is a kernel node of the session.
type Node struct {
	ID     string   // of the setting
	Path   string   // as selected
	Real   string   // resolved
	Want   string   // by the plan or a lease
	Policy string   // plan.Enforce, plan.Report or plan.Once
	Moved  []string // resolved nodes whose writes may change this one

	Optional bool // of an absent node: the device may lack it
}

// Nodes returns the existing nodes that can be written, each once.
func (s *Session) Nodes() []Node {
	var out []Node
	s.eachNode(func(t *target) {
		n := Node{ID: t.setting.ID, Path: t.path, Real: t.real, Want: wantedText(t.setting), Policy: t.setting.Policy}
		n.Moved = slices.Clone(related(t.real).others)
		if file := rootfs.BackingFile(t.real); file != "" {
			n.Moved = append(n.Moved, file)
		}
		out = append(out, n)
	})
	// Relations hold in both directions: a scheduler resets nr_requests, so that
	// nr_requests is checked after a write of the scheduler.
	at := map[string]int{}
	for i := range out {
		at[out[i].Real] = i
	}
	for _, n := range out {
		for _, moved := range related(n.Real).others {
			if i, ok := at[moved]; ok && !slices.Contains(out[i].Moved, n.Real) {
				out[i].Moved = append(out[i].Moved, n.Real)
			}
		}
	}
	return out
}

// Waiting returns the settings that would be written to a node that does not exist: the
// module or the device that provides it may still come.
func (s *Session) Waiting() []Node {
	var out []Node
	for _, t := range s.targets {
		if t.isMissing() {
			out = append(out, Node{ID: t.setting.ID, Path: t.path, Want: wantedText(t.setting), Policy: t.setting.Policy, Optional: t.setting.Optional})
		}
	}
	return out
}

// isMissing reports whether the setting has no node yet. One that is only compared counts if
// a module provides the node.
func (t *target) isMissing() bool {
	noDevice := t.done && t.err == nil && t.result.Outcome == outcome.Unsupported
	if t.real != "" || !t.isAbsent() && !noDevice {
		return false
	}
	return knob.ProvidingModule(t.path) != "" || !isReadOnly(t.setting) && t.setting.Policy != plan.Report
}

// MissingCapabilities returns a text for each capability that the plan's nodes may require
// and this process lacks.
func (s *Session) MissingCapabilities() []string {
	count := map[string]int{}
	for _, n := range s.Nodes() {
		if c := outcome.Capability(n.Path); n.Policy != plan.Report && slices.Contains(s.options.MissingCaps, c) {
			count[c]++
		}
	}
	var out []string
	for _, c := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("this process lacks %s, which %d of the plan's nodes may require", c, count[c]))
	}
	return out
}

// eachNode calls step with the effective target of each node. Leases come before the plan,
// and targets that may write before others.
func (s *Session) eachNode(step func(*target)) {
	seen := map[string]bool{}
	for _, writes := range []bool{true, false} {
		for _, t := range slices.Concat(s.overlay, s.targets, s.modeLines()) {
			if t.real == "" || seen[t.real] || isReadOnly(t.setting) || (t.setting.Policy != plan.Report) != writes {
				continue
			}
			seen[t.real] = true
			step(t)
		}
	}
}

func (s *Session) modeLines() []*target {
	if s.mode == nil {
		return nil
	}
	return s.mode.lines
}

func (s *Session) targetsAt(reals []string) []*target {
	named := make(map[string]bool, len(reals))
	for _, r := range reals {
		named[r] = true
	}
	var out []*target
	s.eachNode(func(t *target) {
		if named[t.real] {
			out = append(out, t)
		}
	})
	return out
}

// Inspect reads the named nodes and returns their results. It writes nothing.
func (s *Session) Inspect(reals []string) map[string]Result {
	out := map[string]Result{}
	for _, t := range s.targetsAt(reals) {
		t.reset()
		t.recoverIn(func() { t.inspect(s.dev, s.reader, s.options, s.journal) })
		out[t.real] = t.result
	}
	return out
}

// Touch writes the value of a node back to it.
func (s *Session) Touch(real string) error {
	found := s.targetsAt([]string{real})
	if len(found) == 0 {
		return fmt.Errorf("touch %s: %w", real, fs.ErrNotExist)
	}
	t := found[0]
	t.reset()
	t.observe(s.reader)
	if t.err != nil {
		return t.err
	}
	return s.reader.write(real, restorableText(s.reader, t))
}

// Repair writes the named nodes that differ. The error is ErrJournal, and then nothing was
// written.
func (s *Session) Repair(reals []string) (map[string]Result, error) {
	ts := s.targetsAt(reals)
	if err := s.applyTargets(ts); err != nil {
		return nil, err
	}
	out := map[string]Result{}
	for _, t := range ts {
		out[t.real] = t.result
	}
	return out, nil
}

// Rescan selects the plan's nodes again after devices were added or removed. It returns the
// new ones.
func (s *Session) Rescan() (appeared []string) {
	before := map[string]bool{}
	for _, t := range slices.Concat(s.targets, s.modeLines()) {
		before[t.real] = true
	}
	s.reader.forgetFixed()
	s.reselect()
	s.reselectMode()
	for _, n := range s.Nodes() {
		if !before[n.Real] {
			appeared = append(appeared, n.Real)
		}
	}
	return appeared
}

// reselect selects the plan's nodes again.
func (s *Session) reselect() {
	sel := newSelector(s.dev)
	sel.judged = judgedOptions(s.targets)
	s.targets = planTargets(sel, s.plan)
}

// ApplyTrial records the current values of all nodes and applies the plan. [RevertTrial], or
// [Session.RemoveOverlay] of a session without this plan, restores exactly these values;
// rollback would restore those of the boot.
func (s *Session) ApplyTrial() ([]Result, error) {
	if _, err := s.RemoveOverlay(); err != nil {
		return nil, err
	}
	touched := slices.Clone(s.targets)
	if p := s.plan.Power; p != nil && p.Default != "" {
		if def, err := findMode(s.dev, p, p.Default); err == nil {
			m := newMode(s.dev, def, s.targets)
			touched = slices.Concat(touched, m.lines, m.wake)
		}
	}
	s.observe(touched)
	s.trial = true
	before, err := listOriginals(s.reader, func(string) bool { return false }, selectWritable(s.dev, touched, s.options))
	if err == nil {
		err = s.journal.AddCovered(before)
	}
	if err != nil {
		return nil, journalError(err)
	}
	return s.Apply()
}

// RevertTrial restores the values that a trial replaced.
func RevertTrial(dev rootfs.Device, o Options) ([]Result, error) {
	o = o.withDefaults()
	j, err := journal.Load(dev, rootfs.BootID(dev))
	if err != nil {
		return nil, err
	}
	results := restore(newReader(dev, o.ReadTimeout), o, newOriginals(j.Covered))
	_ = dev.RemoveState(modeFile) // nvpmodel's status names the mode before the trial
	return results, j.RemoveCovered()
}

// ConfirmTrial makes the changes of a trial permanent.
func ConfirmTrial(dev rootfs.Device) error {
	j, err := journal.Load(dev, rootfs.BootID(dev))
	if err != nil {
		return err
	}
	if err := j.RemoveCovered(); err != nil {
		return err
	}
	return confirmMode(dev)
}

// Overlay applies the settings of a lease with precedence over the plan's. It first records
// the nodes' values, which are restored when the lease ends or, after a crash, when the
// next session opens.
func (s *Session) Overlay(settings []plan.Setting) ([]Result, error) {
	over := newTargets(s.dev, settings)
	var before []journal.Original
	s.observe(over)
	for _, t := range over {
		if t.known && t.real != "" {
			before = append(before, journal.Original{ID: t.setting.ID, Path: t.real, Name: t.path, Type: t.setting.Type, Value: restorableText(s.reader, t)})
		}
	}
	if err := s.journal.AddCovered(before); err != nil {
		return nil, journalError(err)
	}
	s.overlay = over
	s.writeTargets(over, selectWritable(s.dev, over, s.options))
	return collectResults(over), nil
}

// RemoveOverlay ends the overlay: the plan's nodes get the plan's values again, the others
// their values from before. It also cleans up after a session that was killed with an
// overlay. It returns the results that failed.
func (s *Session) RemoveOverlay() ([]Result, error) {
	covered := s.journal.Covered
	s.overlay = nil
	s.reselectMode() // lines of the mode that the overlay had claimed
	if len(covered) == 0 {
		return nil, nil
	}
	mine := map[string]bool{}
	for _, n := range s.Nodes() {
		mine[n.Real] = n.Policy != plan.Report
	}
	var reals []string
	for _, c := range covered {
		if mine[c.Path] {
			reals = append(reals, c.Path)
		}
	}
	// Restore the plan's nodes too: the plan may not have written a node yet, or may accept
	// the lease's value as "at least".
	results := restore(s.reader, s.options, newOriginals(covered))
	fixed, err := s.Repair(reals)
	if err != nil {
		return nil, err
	}
	var failed []Result
	for i, r := range results {
		if f, ok := fixed[covered[i].Path]; ok {
			r = f
		}
		if !r.Satisfied() {
			failed = append(failed, r)
		}
	}
	return failed, journalError(s.journal.RemoveCovered())
}
