// Package resolve turns a checked configuration into layers: it merges profiles, converts
// quantities to base units, fills in defaults and writes out what fields imply. It makes
// no judgement about the result: package check has the rules.
package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/conform"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/formats/boardfile"
	"github.com/yoctune/yoctune/schema/plan"
)

// Project is a resolved configuration.
type Project struct {
	Root     *load.Node
	Config   *config.Config // of Root
	Targets  []*Target      // by name
	Suppress []Suppression
	Conforms bool // all but the targets' contents conforms to the schema
	files    Files

	boardFiles map[string]*boardfile.File            // by path; nil: it was reported
	machines   map[*config.Board]map[string][]string // machines of a release, by its name
}

// Suppression is a rule that the configuration switches off, and where.
type Suppression struct {
	plan.Suppression
	Pos plan.Position
}

// Target is a target with the facts of its board and release.
type Target struct {
	*plan.Target
	Path    string         // in the configuration: targets."line-camera"
	Node    *load.Node     // profiles and own fields merged
	Config  *config.Target // of Node
	Board   *board.Board
	Custom  *config.Board   // the entry under boards; nil for a board of the facts
	File    *boardfile.File // of Custom; nil for none
	Release release.Release
	Stock   board.Table
	Exact   bool // Stock was verified for the release

	Replaced []Override          // by id
	Evidence map[string]Evidence // of models with candidates, by name

	machines []string // see Machines
}

// Resolve resolves every target of a configuration that conforms to the schema.
// What is wrong goes to the report; targets that could not be resolved are left out. An error elsewhere, such as a
// layer without a maintainer, leaves them in: the rules judge what can be judged.
func Resolve(root *load.Node, lang *conform.Schema, files Files, report *diag.Report) *Project {
	p := &Project{Root: root, Config: config.Decode(root), files: files, boardFiles: map[string]*boardfile.File{}, machines: map[*config.Board]map[string][]string{}}
	checker := conform.NewChecker(lang, report)
	checkParts(checker, p)
	for _, s := range p.Config.Suppress.Sorted() {
		if s.Reason.IsSet() {
			p.Suppress = append(p.Suppress, Suppression{plan.Suppression{Rule: s.Key(), Reason: s.Reason.Text}, s.KeyPos()})
		}
	}
	p.Conforms = !report.Failed()
	failed := slices.ContainsFunc(report.All(), func(d diag.Diagnostic) bool {
		part, _, _ := strings.Cut(d.Path, ".")
		return d.Severity == diag.Error && (part == p.Config.Boards.Key() || part == p.Config.Suppress.Key())
	})
	for _, own := range p.Config.Targets.Sorted() {
		if own.Node().Kind != load.Struct {
			continue
		}
		if t := p.target(own, checker, report, failed); t != nil {
			p.Targets = append(p.Targets, t)
		}
	}
	return p
}

// checkParts checks everything but the targets' contents, which are checked
// once their profiles are merged. Profiles may be incomplete.
func checkParts(c *conform.Checker, p *Project) {
	profiles, targets := p.Config.Profiles.Place, p.Config.Targets.Place
	bare := &load.Node{Kind: load.Struct, Pos: p.Root.Pos}
	for _, f := range p.Root.Fields {
		switch {
		case f.Name == profiles.Key() && f.Value.Kind == load.Struct:
			for _, profile := range p.Config.Profiles.Entries {
				c.Check(profile.Node(), profile.FullPath(), "#Profile", true)
			}
			f.Value = withoutValues(f.Value)
		case f.Name == targets.Key() && f.Value.Kind == load.Struct:
			names := withoutValues(f.Value)
			for i := range names.Fields {
				if f.Value.Fields[i].Value.Kind != load.Struct {
					names.Fields[i].Value = f.Value.Fields[i].Value
				}
			}
			c.CheckNames(names, targets.Key())
			continue
		}
		bare.Fields = append(bare.Fields, f)
	}
	c.CheckExcept(bare, "", "#Config", targets.Key(), targets.IsSet())
}

// withoutValues returns a struct with the same field names and no values.
func withoutValues(n *load.Node) *load.Node {
	out := &load.Node{Kind: load.Struct, Pos: n.Pos}
	for _, f := range n.Fields {
		out.Fields = append(out.Fields, load.Field{Name: f.Name, Pos: f.Pos, Value: &load.Node{Kind: load.Struct, Pos: f.Value.Pos}})
	}
	return out
}

// target resolves a target; own is the target without its profiles. failed reports whether
// the parts that every target rests on have errors already.
func (p *Project) target(own *config.Target, checker *conform.Checker, report *diag.Report, failed bool) *Target {
	path := own.FullPath()
	fields := &load.Node{Kind: load.Struct, Pos: own.Pos()}
	for _, f := range own.Node().Fields {
		if f.Name != own.Use.Key() {
			fields.Fields = append(fields.Fields, f)
		}
	}
	m := &merger{report: report}
	merged := m.merge(path, "", fields, p.profiles(own.Use, report))
	if own.Use.IsSet() {
		checker.CheckField(own.Use.Node(), own.Use.FullPath(), "#Target", own.Use.Key(), false)
	}
	checked := &diag.Report{}
	checker.WithReport(checked).Check(merged, path, "#Target", false)
	report.Merge(checked)

	t := &Target{Path: path, Node: merged, Config: config.DecodeTarget(path, merged)}
	if !p.findFacts(t, checked, report) || checked.Failed() || failed {
		return nil
	}
	t.Target = &plan.Target{Name: own.Key(), Board: t.Board.ID, Origins: plan.Origins{}}
	p.readEvidence(t, t.Config)
	if expanded := expandModels(merged, t.chosen); expanded != merged {
		t.Node, t.Config = expanded, config.DecodeTarget(path, expanded)
	}
	slices.SortStableFunc(m.overrides, func(a, b Override) int { return strings.Compare(a.ID, b.ID) })
	t.Replaced = m.overrides
	for _, o := range m.overrides {
		t.Overrides = append(t.Overrides, o.Override)
	}
	t.Machine = t.machine()
	layer := &p.Config.Layer
	r := &resolver{t: t, c: t.Config, report: report, origins: t.Origins, plan: &plan.Plan{
		Layer: layer.Name.Text, Target: t.Name, Board: t.Board.ID, Machine: t.Machine,
		Release: t.Release.Name, L4T: t.Release.L4T, Serial: int64(layer.Serial.Or(1)), Rollback: "keep",
		Settings: make([]plan.Setting, 0, 64),
	}}
	if t.IsOwn() {
		r.plan.Identities = t.File.Identities()
	}
	t.Plan = r.plan
	r.resolveAll()
	t.Plan.Settings = slices.Clone(t.Plan.Settings) // without the room for more: a fleet keeps thousands of plans
	if err := t.Plan.Seal(); err != nil {
		report.Errorf("YT0900", own.KeyPos(), path, "sealing the plan: %v", err)
		return nil
	}
	return t
}

// profiles returns the profiles that a target uses, in order.
func (p *Project) profiles(use config.List[config.String], report *diag.Report) []layered {
	if use.IsSet() && use.Node().Kind != load.List {
		return nil // the schema check reports it
	}
	var out []layered
	for i, name := range use.Items {
		if name.Node().Kind != load.String {
			continue
		}
		profile := p.Config.Profiles.Get(name.Text)
		if !profile.IsSet() || profile.Node().Kind != load.Struct {
			d := diag.Diagnostic{ID: "YT0203", Severity: diag.Error, Pos: name.Pos(), Path: fmt.Sprintf("%s[%d]", use.FullPath(), i),
				Message: fmt.Sprintf("profile %q is not defined", name.Text)}
			d.SuggestValue(name.Text, sorted(p.Config.Profiles.Keys()))
			report.Add(d)
			continue
		}
		out = append(out, layered{name.Text, profile.Node()})
	}
	return out
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}

// findFacts finds board and release; false when one of them is unknown.
func (p *Project) findFacts(t *Target, checked, report *diag.Report) bool {
	boardFound := p.findBoard(t, checked, report)
	if !p.findRelease(t, checked, report) || !boardFound {
		return false
	}
	t.machines = p.findMachines(t)
	t.Exact = t.IsOwn() // it has no stock modes
	if table, exact, err := t.Board.StockTable(t.Release.Name); err == nil {
		t.Stock, t.Exact = table, exact
	}
	return true
}

func (p *Project) findBoard(t *Target, checked, report *diag.Report) bool {
	name := t.Config.Board
	if !isText(name) {
		return false
	}
	id := name
	if p.Config.Boards.Has(name.Text) {
		t.Custom = p.Config.Boards.Get(name.Text)
		if !p.readBoardFile(t, report) || !checkBoardKind(t, report) {
			return false
		}
		if t.IsOwn() {
			t.Board = board.FromFile(name.Text, t.Custom.Facts.Text, t.File)
			return true
		}
		id = t.Custom.Base
	}
	facts, found := board.Lookup(id.Text)
	if !found {
		known := board.IDs()
		if t.Custom == nil {
			known = append(known, p.Config.Boards.Keys()...)
		}
		slices.Sort(known)
		d := diag.Diagnostic{ID: "YT0201", Pos: id.Pos(), Message: fmt.Sprintf("unknown board %q", id.Text),
			Expected: "one of " + strings.Join(known, ", ") + ", or a name under boards"}
		if d.SuggestValue(id.Text, known); d.Help == "" {
			d.Help = describeMachine(id.Text)
		}
		reportUnknown(name, checked, report, d)
	}
	if t.Board = facts; found && t.File != nil {
		t.Board = facts.Refreshed(t.Custom.Facts.Text, t.File)
	}
	return found
}

// describeMachine names the boards that use a MACHINE which was written in place of a board, ""
// where none does.
func describeMachine(machine string) string {
	var users []string
	for _, id := range board.IDs() {
		b, _ := board.Lookup(id)
		for _, r := range b.Releases {
			if slices.Contains(r.Machines, machine) {
				users = append(users, id)
				break
			}
		}
	}
	if len(users) == 0 {
		return ""
	}
	return machine + " is a MACHINE, of " + strings.Join(users, ", ") + "; write the board, and machine: " + strconv.Quote(machine)
}

func (p *Project) findRelease(t *Target, checked, report *diag.Report) bool {
	name := t.Config.Release
	if !isText(name) {
		return false
	}
	facts, found := release.Lookup(name.Text)
	if !found {
		d := diag.Diagnostic{ID: "YT0202", Pos: name.Pos(), Message: fmt.Sprintf("unknown release %q", name.Text),
			Expected: "one of " + strings.Join(release.Names(), ", ")}
		d.SuggestValue(name.Text, release.Names())
		reportUnknown(name, checked, report, d)
	}
	t.Release = facts
	return found && t.chooseKernel(report)
}

// isText reports whether a value is a string; before the schema check it may be
// anything.
func isText(s config.String) bool { return s.IsSet() && s.Node().Kind == load.String }

// reportUnknown reports a name without facts, unless the schema check has reported
// the field already.
func reportUnknown(field config.String, checked, report *diag.Report, d diag.Diagnostic) {
	d.Severity, d.Path = diag.Error, field.FullPath()
	if !slices.ContainsFunc(checked.All(), func(o diag.Diagnostic) bool { return o.Path == d.Path }) {
		report.Add(d)
	}
}

// Machines returns the MACHINEs that fit the target's board on its release.
func (t *Target) Machines() []string { return t.machines }

// findMachines returns the machines of a target. Those of a board of the configuration are
// listed once: a fleet has many.
func (p *Project) findMachines(t *Target) []string {
	if t.Custom == nil {
		return t.Board.Releases[t.Release.Name].Machines
	}
	known := p.machines[t.Custom]
	if known == nil {
		known = map[string][]string{}
		p.machines[t.Custom] = known
	}
	if _, ok := known[t.Release.Name]; !ok {
		known[t.Release.Name] = config.Texts(*t.Custom.Machines.Get(t.Release.Name))
	}
	return known[t.Release.Name]
}

func (t *Target) machine() string {
	if all := t.Machines(); len(all) > 0 {
		return t.Config.Machine.Or(all[0])
	}
	return t.Config.Machine.Text
}

// resolver fills one target.
type resolver struct {
	t       *Target
	c       *config.Target
	plan    *plan.Plan
	report  *diag.Report
	origins plan.Origins
}

func (r *resolver) resolveAll() {
	r.resolvePower()
	r.resolveCPU()
	r.resolveGPU()
	r.resolveDevfreq()
	r.resolveKernel()
	r.resolveFan()
	r.resolveSysctl()
	r.resolveMemory()
	r.resolveStorage()
	r.resolveIRQ()
	r.resolveThreads()
	r.resolveBus()
	r.resolveNetwork()
	r.resolveModules()
	r.resolveServices()
	r.resolvePackages()
	r.resolvePipelines()
	r.resolveMonitor()
	r.resolveCluster()
	slices.SortFunc(r.t.Kernel.Config, func(a, b plan.ConfigOption) int { return strings.Compare(a.Symbol, b.Symbol) })
	r.expectOptions()
	slices.SortStableFunc(r.plan.Settings, func(a, b plan.Setting) int { return strings.Compare(a.ID, b.ID) })
}

// set adds a setting that a field causes. A setting without an id has the field's.
func (r *resolver) set(by config.Part, s plan.Setting) {
	if s.ID == "" {
		s.ID = by.Where().ID()
	}
	r.origins[s.ID] = by.Where().Pos()
	r.add(s)
}

// setText adds a setting that has the text of a field, when the field is set.
func (r *resolver) setText(field config.String, s plan.Setting) {
	if field.IsSet() {
		s.Want = field.Text
		r.set(field, s)
	}
}

// setInt adds a setting that has the number of a field, when the field is set.
func (r *resolver) setInt(field config.Int, s plan.Setting) {
	if field.IsSet() {
		s.Want = strconv.Itoa(field.Value)
		r.set(field, s)
	}
}

// setSwitch adds a setting that is 1 or 0 as the field is, when the field is set.
func (r *resolver) setSwitch(field config.Bool, s plan.Setting) {
	if field.IsSet() {
		s.Want = FormatSwitch(field.On)
		r.set(field, s)
	}
}

func (r *resolver) add(s plan.Setting) {
	s.Compare = cmp.Or(s.Compare, plan.Exact)
	s.Policy = cmp.Or(s.Policy, plan.Enforce)
	s.Needs = cmp.Or(s.Needs, plan.NeedsNothing)
	r.plan.Settings = append(r.plan.Settings, s)
}

// reportQuantity reports a quantity that cannot be converted.
func (r *resolver) reportQuantity(field config.Part, err error) {
	at := field.Where()
	r.report.Add(diag.Diagnostic{ID: "YT0204", Severity: diag.Error, Pos: at.Pos(), Path: at.FullPath(), Message: err.Error(), Got: at.Show()})
}

// convert reads a quantity in base units; false when it is absent or wrong.
func (r *resolver) convert(field config.Part, read func(*load.Node) (int64, error)) (int64, bool) {
	if !field.Where().IsSet() {
		return 0, false
	}
	v, err := read(field.Where().Node())
	if err != nil {
		r.reportQuantity(field, err)
	}
	return v, err == nil
}

func (r *resolver) hertz(field config.Frequency) (int64, bool) { return r.convert(field, Frequency) }

// readBytes reads a size, 0 when it is absent or wrong.
func (r *resolver) readBytes(field config.Size) int64 {
	v, _ := r.convert(field, Size)
	return v
}

// rate reads an amount a second in bytes, 0 when it is absent or wrong.
func (r *resolver) rate(field config.Rate) int64 {
	v, _ := r.convert(field, Rate)
	return v
}

// nanoseconds reads a duration; a default stands for an absent one.
func (r *resolver) nanoseconds(field config.Duration, otherwise int64) int64 {
	if !field.IsSet() {
		return otherwise
	}
	v, _ := r.convert(field, Duration)
	return v
}

// wholeDuration converts a duration to a coarser unit of so many nanoseconds, in which
// it must be a whole number.
func (r *resolver) wholeDuration(field config.Part, unit int64) (int64, bool) {
	v, ok := r.convert(field, Duration)
	if ok && v%unit != 0 {
		name, suffix := wholeUnit(unit)
		r.reportPart(field, v, "ns", name, fmt.Sprintf("%d%s", v/unit+1, suffix))
		return 0, false
	}
	return v / unit, ok
}

// wholeUnit returns the name and the suffix of a unit of so many nanoseconds.
func wholeUnit(unit int64) (name, suffix string) {
	switch unit {
	case 1e9:
		return "seconds", "s"
	case 1e6:
		return "milliseconds", "ms"
	}
	return "microseconds", "us"
}

// reportPart reports a quantity that the kernel holds in whole units only. An integer counts base
// units, which its author may not have meant.
func (r *resolver) reportPart(field config.Part, v int64, base, unit, up string) {
	at := field.Where()
	text := at.Node().Text
	if at.Node().Kind == load.Int {
		text = fmt.Sprintf("%d %s", v, base)
	}
	r.report.Add(diag.Diagnostic{ID: "YT0204", Severity: diag.Error, Pos: at.Pos(), Path: at.FullPath(), Got: at.Show(),
		Message: fmt.Sprintf("%s is not a whole number of %s", text, unit),
		Help:    fmt.Sprintf("write a quantity with its unit, such as %q", up)})
}
