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

// Session is one plan on one device for as long as a process holds it: applied
// as a whole, then looked at and repaired node by node. It is not safe for
// concurrent use; the process that has one also holds the device's lock.
type Session struct {
	dev     rootfs.Device
	plan    *plan.Plan
	options Options
	reader  *reader
	journal *journal.Journal
	info    journal.Plan
	targets []*target
	overlay []*target // of the leases in force; they come before the plan's

	mode          *mode // power mode that is kept, nil for none
	trial         bool  // nothing may outlive this boot
	notRemembered error // why the next boot starts in another mode
}

// Open selects the plan's nodes; nothing is written yet. The error is
// ErrJournal.
func Open(dev rootfs.Device, p *plan.Plan, o Options) (*Session, error) {
	o = o.filled()
	j, err := journal.Load(dev, rootfs.Identify(dev).BootID)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return &Session{
		dev: dev, plan: p, options: o, journal: j,
		reader:  newReader(dev, o.ReadTimeout),
		info:    journal.Plan{Layer: p.Layer, Target: p.Target, Serial: p.Serial, Digest: p.Digest, Rollback: p.Rollback},
		targets: planned(newSelector(dev), p),
	}, nil
}

// Apply makes the whole plan true. It is [Apply], and can be called again.
func (s *Session) Apply() ([]Result, error) {
	// The mode first: it decides which cores, and with them which policies, there
	// are to set.
	modeErr := s.applyMode()
	if errors.Is(modeErr, ErrJournal) {
		return nil, modeErr
	}
	if err := s.run(s.targets); err != nil {
		return nil, err
	}
	results := collect(s.targets)
	for _, pr := range powerResults(s.dev, s.plan.Power) {
		pr.Excused = true
		results = append(results, pr)
	}
	for _, ur := range slices.Concat(unitResults(s.dev, s.plan.Units), fanResult(s.dev, s.plan.Fan), balancerResult(s.dev, s.targets)) {
		ur.Excused = true // systemd's, nvfancontrol's and irqbalance's to change
		results = append(results, ur)
	}
	for _, pr := range defaultResults(s.dev, s.plan.Power, s.mode, modeErr) {
		if s.trial && s.mode != nil && pr.Outcome == outcome.Differs || errors.Is(modeErr, errNoMode) {
			pr.Excused = true // a trial leaves the next boot alone; an image brings modes
		}
		if s.notRemembered != nil && pr.Outcome == outcome.Differs {
			pr.Message += ": " + s.notRemembered.Error()
		}
		results = append(results, pr)
	}
	return results, nil
}

// applyMode enters the plan's power mode; the error is why that is not possible.
func (s *Session) applyMode() error {
	s.mode, s.notRemembered = nil, nil
	if s.plan.Power == nil || s.plan.Power.Default == "" {
		return nil
	}
	config, def, err := readMode(s.dev, s.plan.Power.Default)
	if err != nil {
		return err
	}
	return s.enter(config, def)
}

// run writes what differs of some targets and judges all of them.
func (s *Session) run(all []*target) error {
	for _, t := range all {
		t.reset()
		t.guarded(func() { t.observe(s.reader) })
	}
	pending := writable(s.dev, all, s.options)
	originals, err := originals(s.reader, s.journal.Knows, pending)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	if err := s.journal.Begin(s.info, originals); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}

	w := writer{s.dev, s.reader, s.options, s.journal, s.info}
	inLanes(pending, (*target).node, func(t *target) { t.guarded(func() { w.write(t) }) })
	w.again(all, pending)

	var notes []journal.Note
	for _, t := range all {
		if !t.done {
			t.guarded(func() { t.judge(s.dev, s.options) })
		}
		if t.result.Outcome == outcome.Adjusted {
			notes = append(notes, journal.Note{Path: t.real, Want: t.setting.Want, Found: t.found.Value})
		}
		if verifyOnly(t.setting) || t.setting.Policy == plan.Report {
			t.result.Excused = true
		}
	}
	// The kernel holds the values by now; a note that is lost costs a word in the
	// next verify and must not turn the answer into a failure.
	_ = s.journal.Remember(notes)
	return nil
}

// Node is a kernel node that the session keeps.
type Node struct {
	ID     string   // of the setting
	Path   string   // as selected
	Real   string   // resolved: the node's one name
	Want   string   // what it shall hold now, by the plan or by a lease
	Policy string   // plan.Enforce, plan.Report or plan.Once
	Moved  []string // resolved nodes whose writing changes this one
}

// Nodes lists the nodes that exist and can be written, each once.
func (s *Session) Nodes() []Node {
	var out []Node
	s.each(func(t *target) {
		n := Node{ID: t.setting.ID, Path: t.path, Real: t.real, Want: t.setting.Want, Policy: t.setting.Policy}
		n.Moved = slices.Clone(related(t.real).others)
		if file := rootfs.WrittenFor(t.real); file != "" {
			n.Moved = append(n.Moved, file)
		}
		out = append(out, n)
	})
	// A scheduler resets nr_requests: whoever is moved by a node is looked at
	// when that node is written, whichever of the two lists the other.
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

// Waiting lists the settings whose node a module that is not loaded would bring.
func (s *Session) Waiting() []Node {
	var out []Node
	for _, t := range s.targets {
		if t.real == "" && t.absent() && knob.ProvidingModule(t.path) != "" {
			out = append(out, Node{ID: t.setting.ID, Path: t.path, Want: t.setting.Want, Policy: t.setting.Policy})
		}
	}
	return out
}

// Lacks says which capabilities this process would need and has not.
func (s *Session) Lacks() []string {
	count := map[string]int{}
	for _, n := range s.Nodes() {
		if c := outcome.Capability(n.Path); n.Policy != plan.Report && slices.Contains(s.options.Lacks, c) {
			count[c]++
		}
	}
	var out []string
	for _, c := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("this process has no %s, which %d of the plan's nodes may need", c, count[c]))
	}
	return out
}

// each calls step with the target that counts for each node: a lease's before
// the plan's, and the first of the plan's that may write.
func (s *Session) each(step func(*target)) {
	seen := map[string]bool{}
	for _, writes := range []bool{true, false} {
		for _, t := range slices.Concat(s.overlay, s.targets, s.modeLines()) {
			if t.real == "" || seen[t.real] || verifyOnly(t.setting) || (t.setting.Policy != plan.Report) != writes {
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

func (s *Session) at(reals []string) []*target {
	named := make(map[string]bool, len(reals))
	for _, r := range reals {
		named[r] = true
	}
	var out []*target
	s.each(func(t *target) {
		if named[t.real] {
			out = append(out, t)
		}
	})
	return out
}

// Look reads the named nodes and says how they are, writing nothing.
func (s *Session) Look(reals []string) map[string]Result {
	out := map[string]Result{}
	for _, t := range s.at(reals) {
		t.reset()
		t.guarded(func() { t.look(s.dev, s.reader, s.options, s.journal) })
		out[t.real] = t.result
	}
	return out
}

// Touch writes a node the value that it has.
func (s *Session) Touch(real string) error {
	found := s.at([]string{real})
	if len(found) == 0 {
		return fmt.Errorf("touch %s: %w", real, fs.ErrNotExist)
	}
	t := found[0]
	t.reset()
	t.observe(s.reader)
	if t.err != nil {
		return t.err
	}
	return s.reader.write(real, restorable(s.reader, t))
}

// Repair writes the named nodes that differ. The error is ErrJournal, and then
// nothing was written.
func (s *Session) Repair(reals []string) (map[string]Result, error) {
	ts := s.at(reals)
	if err := s.run(ts); err != nil {
		return nil, err
	}
	out := map[string]Result{}
	for _, t := range ts {
		out[t.real] = t.result
	}
	return out, nil
}

// Rescan selects the plan's nodes again, as devices come and go, and returns
// those that were not there before.
func (s *Session) Rescan() (appeared []string) {
	before := map[string]bool{}
	for _, t := range slices.Concat(s.targets, s.modeLines()) {
		before[t.real] = true
	}
	s.reader.forget()
	s.reselect()
	s.remode()
	for _, n := range s.Nodes() {
		if !before[n.Real] {
			appeared = append(appeared, n.Real)
		}
	}
	return appeared
}

// reselect finds the plan's nodes again.
func (s *Session) reselect() {
	sel := newSelector(s.dev)
	sel.judged = options(s.targets)
	s.targets = planned(sel, s.plan)
}

// Try applies the plan after journalling what all its nodes hold now, so that
// [Session.Uncover] of a session without this plan, or [Revert], brings exactly
// that back: rollback would bring back what they held at boot.
func (s *Session) Try() ([]Result, error) {
	if _, err := s.Uncover(); err != nil {
		return nil, err
	}
	for _, t := range s.targets {
		t.reset()
		t.guarded(func() { t.observe(s.reader) })
	}
	touched := slices.Clone(s.targets)
	if p := s.plan.Power; p != nil && p.Default != "" {
		if config, def, err := readMode(s.dev, p.Default); err == nil {
			m := newMode(s.dev, config, def, s.targets)
			for _, t := range append(m.lines, m.wake...) {
				t.guarded(func() { t.observe(s.reader) })
				touched = append(touched, t)
			}
		}
	}
	s.trial = true
	before, err := originals(s.reader, func(string) bool { return false }, writable(s.dev, touched, s.options))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	if err := s.journal.Cover(before); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return s.Apply()
}

// Revert brings back what was covered by a trial.
func Revert(dev rootfs.Device, o Options) ([]Result, error) {
	o = o.filled()
	j, err := journal.Load(dev, rootfs.Identify(dev).BootID)
	if err != nil {
		return nil, err
	}
	var all []*original
	for _, c := range j.Covered {
		all = append(all, &original{Original: c})
	}
	results := restore(newReader(dev, o.ReadTimeout), o, all)
	_ = dev.RemoveState(modeFile) // the mode before the trial is that of nvpmodel's status
	return results, j.Uncover()
}

// Keep makes what a trial changed the state of the device: there is nothing to
// revert any more.
func Keep(dev rootfs.Device) error {
	j, err := journal.Load(dev, rootfs.Identify(dev).BootID)
	if err != nil {
		return err
	}
	if err := j.Uncover(); err != nil {
		return err
	}
	return keepMode(dev)
}

// Overlay lays a lease's settings over the plan's. What their nodes held before
// is journalled first, as something to be restored when the lease ends or, after
// a crash, when the next session begins.
func (s *Session) Overlay(settings []plan.Setting) ([]Result, error) {
	over := targets(s.dev, settings)
	var before []journal.Original
	for _, t := range over {
		t.guarded(func() { t.observe(s.reader) })
		if t.known && t.real != "" {
			before = append(before, journal.Original{ID: t.setting.ID, Path: t.real, Name: t.path, Type: t.setting.Type, Value: restorable(s.reader, t)})
		}
	}
	if err := s.journal.Cover(before); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	s.overlay = over
	pending := writable(s.dev, over, s.options)
	w := writer{s.dev, s.reader, s.options, s.journal, s.info}
	inLanes(pending, (*target).node, func(t *target) { t.guarded(func() { w.write(t) }) })
	w.again(over, pending)
	return collect(over), nil
}

// Uncover takes the overlay away: nodes of the plan become the plan's again, the
// others what they were before. It also cleans up after a session that was
// killed while it had one. The result holds what could not be put back.
func (s *Session) Uncover() ([]Result, error) {
	covered := s.journal.Covered
	s.overlay = nil
	s.remode() // the lines that the overlay covered are the mode's again
	if len(covered) == 0 {
		return nil, nil
	}
	mine := map[string]bool{}
	for _, n := range s.Nodes() {
		mine[n.Real] = n.Policy != plan.Report
	}
	var reals []string
	var others []*original
	for _, c := range covered {
		if mine[c.Path] {
			reals = append(reals, c.Path)
		}
		// The plan may not have written the node yet, or want it only "at
		// least": what it held before the lease is right in any case.
		others = append(others, &original{Original: c})
	}
	results := restore(s.reader, s.options, others)
	fixed, err := s.Repair(reals)
	if err != nil {
		return nil, err
	}
	var failed []Result
	for i, r := range results {
		if f, ok := fixed[others[i].Path]; ok {
			r = f
		}
		if !r.Satisfied() {
			failed = append(failed, r)
		}
	}
	if err := s.journal.Uncover(); err != nil {
		return failed, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return failed, nil
}
