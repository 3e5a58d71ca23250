// Package resolve turns a checked configuration into layers: profiles merged,
// quantities in base units, defaults filled in, and everything that one field
// implies written out. It converts and never judges: what is unwise or
// impossible is for package check to say.
package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/conform"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/plan"
)

// Project is a resolved configuration.
type Project struct {
	Root     *load.Node
	Targets  []*Target // by name
	Suppress []Suppression
	manifest func(path string) ([]byte, error)
}

// Suppression is a rule that the configuration switches off, and where.
type Suppression struct {
	plan.Suppression
	Pos plan.Position
}

// Target is a target with the facts it stands on.
type Target struct {
	*plan.Target
	Path    string     // in the configuration: targets."line-camera"
	Node    *load.Node // profiles and own fields merged
	Board   *board.Board
	Custom  *load.Node // the entry under boards, when the board is the user's own
	Release release.Release
	Stock   board.Table
	Exact   bool // Stock was verified for the release

	Replaced []Override // by id
}

// Resolve resolves every target of a configuration that conforms to the schema.
// manifest reads a file below the configuration's folder. What is wrong goes to
// the report; targets that could not be resolved are left out.
func Resolve(root *load.Node, lang *conform.Schema, manifest func(string) ([]byte, error), report *diag.Report) *Project {
	p := &Project{Root: root, manifest: manifest}
	checker := conform.NewChecker(lang, report)
	checkParts(checker, root)

	suppress := root.Get("suppress")
	if suppress != nil {
		for _, f := range suppress.Fields {
			if reason := f.Value.Get("reason"); reason != nil {
				p.Suppress = append(p.Suppress, Suppression{plan.Suppression{Rule: f.Name, Reason: reason.Text}, f.Pos})
			}
		}
		slices.SortFunc(p.Suppress, func(a, b Suppression) int { return strings.Compare(a.Rule, b.Rule) })
	}
	targets := root.Get("targets")
	if targets == nil || targets.Kind != load.Struct {
		return p
	}
	before := report.Failed()
	for _, f := range targets.Fields {
		if f.Value.Kind != load.Struct {
			continue
		}
		if t := p.target(f, checker, report, before); t != nil {
			p.Targets = append(p.Targets, t)
		}
	}
	slices.SortFunc(p.Targets, func(a, b *Target) int { return strings.Compare(a.Name, b.Name) })
	return p
}

// checkParts checks everything but the targets' contents, which are checked
// once their profiles are merged. Profiles may be incomplete.
func checkParts(c *conform.Checker, root *load.Node) {
	bare := &load.Node{Kind: load.Struct, Pos: root.Pos}
	for _, f := range root.Fields {
		switch {
		case f.Name == "profiles" && f.Value.Kind == load.Struct:
			for _, p := range f.Value.Fields {
				c.Check(p.Value, load.PathOf("profiles", p.Name), "#Profile", true)
			}
			bare.Fields = append(bare.Fields, load.Field{Name: f.Name, Pos: f.Pos, Value: emptied(f.Value)})
		case f.Name == "targets" && f.Value.Kind == load.Struct:
			names := emptied(f.Value)
			for i := range names.Fields {
				if f.Value.Fields[i].Value.Kind != load.Struct {
					names.Fields[i].Value = f.Value.Fields[i].Value
				}
			}
			c.CheckNames(names, "targets")
		default:
			bare.Fields = append(bare.Fields, f)
		}
	}
	if t := root.Get("targets"); t != nil && t.Kind != load.Struct {
		bare.Fields = append(bare.Fields, load.Field{Name: "targets", Pos: t.Pos, Value: t})
	}
	c.CheckExcept(bare, "", "#Config", "targets", root.Get("targets") != nil)
}

// emptied keeps the names of a struct and drops what they hold.
func emptied(n *load.Node) *load.Node {
	out := &load.Node{Kind: load.Struct, Pos: n.Pos}
	for _, f := range n.Fields {
		out.Fields = append(out.Fields, load.Field{Name: f.Name, Pos: f.Pos, Value: &load.Node{Kind: load.Struct, Pos: f.Value.Pos}})
	}
	return out
}

func (p *Project) target(f load.Field, checker *conform.Checker, report *diag.Report, failed bool) *Target {
	path := load.PathOf("targets", f.Name)
	own := &load.Node{Kind: load.Struct, Pos: f.Value.Pos}
	for _, m := range f.Value.Fields {
		if m.Name != "use" {
			own.Fields = append(own.Fields, m)
		}
	}
	m := &merger{report: report}
	merged := m.merge(path, "", own, p.profiles(f.Value, path, report))
	if use := f.Value.Get("use"); use != nil {
		checker.CheckField(use, path+".use", "#Target", "use", false)
	}
	mine := &diag.Report{}
	checker.Into(mine).Check(merged, path, "#Target", false)
	report.Merge(mine)

	t := &Target{Path: path, Node: merged}
	if !p.facts(t, merged, path, mine, report) || mine.Failed() || failed {
		return nil
	}
	t.Target = &plan.Target{Name: f.Name, Board: t.Board.ID, Origins: plan.Origins{}}
	slices.SortStableFunc(m.overrides, func(a, b Override) int { return strings.Compare(a.ID, b.ID) })
	t.Replaced = m.overrides
	for _, o := range m.overrides {
		t.Overrides = append(t.Overrides, o.Override)
	}
	t.Machine = t.machine()
	r := &resolver{t: t, n: merged, report: report, path: path, origins: t.Origins, plan: &plan.Plan{
		Layer: text(p.Root.At("layer", "name")), Target: f.Name, Board: t.Board.ID, Machine: t.Machine,
		Release: t.Release.Name, L4T: t.Release.L4T, Serial: integer(p.Root.At("layer", "serial"), 1), Rollback: "keep",
	}}
	t.Plan = r.plan
	r.all()
	if err := t.Plan.Seal(); err != nil {
		report.Errorf("YT0900", f.Pos, path, "sealing the plan: %v", err)
		return nil
	}
	return t
}

// profiles lists what `use` names, in order.
func (p *Project) profiles(target *load.Node, path string, report *diag.Report) []layered {
	use := target.Get("use")
	if use == nil || use.Kind != load.List {
		return nil
	}
	var known []string
	if all := p.Root.Get("profiles"); all != nil {
		for _, f := range all.Fields {
			known = append(known, f.Name)
		}
	}
	slices.Sort(known)
	var out []layered
	for i, u := range use.Items {
		if u.Kind != load.String {
			continue // the schema check says so
		}
		prof := p.Root.At("profiles", u.Text)
		if prof == nil || prof.Kind != load.Struct {
			report.Add(diag.Diagnostic{ID: "YT0203", Severity: diag.Error, Pos: u.Pos, Path: fmt.Sprintf("%s.use[%d]", path, i),
				Message: fmt.Sprintf("profile %q is not defined", diag.Visible(u.Text)), Help: diag.DidYouMean(u.Text, known)})
			continue
		}
		out = append(out, layered{u.Text, prof})
	}
	return out
}

// facts finds board and release; false when one of them is unknown. What the
// schema check said of them already is not said again.
func (p *Project) facts(t *Target, n *load.Node, path string, said, report *diag.Report) bool {
	ok := true
	misspelt := func(field string) bool {
		return slices.ContainsFunc(said.All(), func(d diag.Diagnostic) bool { return d.Path == path+"."+field })
	}
	if b := n.Get("board"); b != nil && b.Kind == load.String {
		id, pos := b.Text, b.Pos
		if custom := p.Root.At("boards", id); custom != nil {
			t.Custom = custom
			if base := custom.Get("base"); base != nil {
				id, pos = base.Text, base.Pos
			}
		}
		facts, found := board.Lookup(id)
		if !found && misspelt("board") {
			ok = false
		} else if !found {
			known := board.IDs()
			if own := p.Root.Get("boards"); own != nil && t.Custom == nil {
				for _, f := range own.Fields {
					known = append(known, f.Name)
				}
			}
			slices.Sort(known)
			report.Add(diag.Diagnostic{ID: "YT0201", Severity: diag.Error, Pos: pos, Path: path + ".board",
				Message: fmt.Sprintf("board %q is not known", diag.Visible(id)), Help: diag.DidYouMean(id, known),
				Expected: "one of " + strings.Join(known, ", ") + ", or a name under boards"})
			ok = false
		}
		t.Board = facts
	} else {
		ok = false
	}
	if r := n.Get("release"); r != nil && r.Kind == load.String {
		facts, found := release.Lookup(r.Text)
		if !found && misspelt("release") {
			ok = false
		} else if !found {
			report.Add(diag.Diagnostic{ID: "YT0202", Severity: diag.Error, Pos: r.Pos, Path: path + ".release",
				Message: fmt.Sprintf("release %q is not known", diag.Visible(r.Text)), Help: diag.DidYouMean(r.Text, release.Names()),
				Expected: "one of " + strings.Join(release.Names(), ", ")})
			ok = false
		}
		t.Release = facts
	} else {
		ok = false
	}
	if ok {
		if table, exact, err := t.Board.Stock(t.Release.Name); err == nil {
			t.Stock, t.Exact = table, exact
		}
	}
	return ok
}

// Machines lists the MACHINEs that fit the target's board on its release.
func (t *Target) Machines() []string {
	if t.Custom != nil {
		var own []string
		if list := t.Custom.At("machines", t.Release.Name); list != nil {
			for _, m := range list.Items {
				own = append(own, m.Text)
			}
		}
		return own
	}
	return t.Board.Releases[t.Release.Name].Machines
}

func (t *Target) machine() string {
	if m := t.Node.Get("machine"); m != nil {
		return m.Text
	}
	if all := t.Machines(); len(all) > 0 {
		return all[0]
	}
	return ""
}

// Pos is where a part of the target was written, by its path below the target;
// the nearest enclosing part when it was not.
func (t *Target) Pos(names ...string) plan.Position {
	n := t.Node
	for _, name := range names {
		next := n.Get(name)
		if next == nil {
			break
		}
		n = next
	}
	return n.Pos
}

// resolver fills one target.
type resolver struct {
	t       *Target
	n       *load.Node
	plan    *plan.Plan
	report  *diag.Report
	path    string
	origins plan.Origins
}

func (r *resolver) all() {
	r.power()
	r.cpu()
	r.gpu()
	r.kernel()
	r.fan()
	r.sysctl()
	r.memory()
	r.storage()
	r.irq()
	r.network()
	r.modules()
	r.services()
	r.packages()
	r.pipelines()
	r.monitor()
	slices.SortFunc(r.t.Kernel.Config, func(a, b plan.ConfigOption) int { return strings.Compare(a.Symbol, b.Symbol) })
	r.expectOptions()
	slices.SortStableFunc(r.plan.Settings, func(a, b plan.Setting) int { return strings.Compare(a.ID, b.ID) })
}

// set adds a setting and remembers who asked for it.
func (r *resolver) set(s plan.Setting, pos plan.Position) {
	if s.Compare == "" {
		s.Compare = plan.Exact
	}
	if s.Policy == "" {
		s.Policy = plan.Enforce
	}
	if s.Needs == "" {
		s.Needs = plan.NeedsNothing
	}
	r.plan.Settings = append(r.plan.Settings, s)
	r.origins[s.ID] = pos
}

func (r *resolver) inexact(path string, n *load.Node, err error) {
	r.report.Add(diag.Diagnostic{ID: "YT0204", Severity: diag.Error, Pos: n.Pos, Path: r.path + "." + path, Message: err.Error(), Got: n.Show()})
}

func (r *resolver) frequency(path string, n *load.Node) (int64, bool) {
	v, err := Frequency(n)
	if err != nil {
		r.inexact(path, n, err)
	}
	return v, err == nil
}

func (r *resolver) size(path string, n *load.Node) (int64, bool) {
	v, err := Size(n)
	if err != nil {
		r.inexact(path, n, err)
	}
	return v, err == nil
}

func (r *resolver) rate(path string, n *load.Node) (int64, bool) {
	v, err := Rate(n)
	if err != nil {
		r.inexact(path, n, err)
	}
	return v, err == nil
}

func (r *resolver) duration(path string, n *load.Node, otherwise int64) int64 {
	if n == nil {
		return otherwise
	}
	v, err := Duration(n)
	if err != nil {
		r.inexact(path, n, err)
	}
	return v
}

// whole converts a duration to a coarser unit of so many nanoseconds, in which it
// must be a whole number.
func (r *resolver) whole(path string, n *load.Node, unit int64) (int64, bool) {
	v, err := Duration(n)
	if err == nil && v%unit != 0 {
		err = ErrInexact
	}
	if err != nil {
		r.inexact(path, n, err)
		return 0, false
	}
	return v / unit, true
}

func text(n *load.Node) string {
	if n == nil {
		return ""
	}
	return n.Text
}

func textOr(n *load.Node, otherwise string) string {
	if n == nil {
		return otherwise
	}
	return n.Text
}

func integer(n *load.Node, otherwise int64) int64 {
	if v, ok := n.Int64(); ok {
		return v
	}
	return otherwise
}

func boolean(n *load.Node, otherwise bool) bool {
	if n == nil || n.Kind != load.Bool {
		return otherwise
	}
	return n.True
}

func texts(n *load.Node) []string {
	if n == nil {
		return nil
	}
	out := make([]string, 0, len(n.Items))
	for _, it := range n.Items {
		out = append(out, it.Text)
	}
	return out
}

// Cores reads a list of core numbers, sorted and without repeats.
func Cores(n *load.Node) []int {
	if n == nil {
		return nil
	}
	var out []int
	for _, it := range n.Items {
		if v, ok := it.Int64(); ok {
			out = append(out, int(v))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sortedFields gives the members of a struct by name: the order that every
// front end can reproduce.
func sortedFields(n *load.Node) []load.Field {
	if n == nil {
		return nil
	}
	out := slices.Clone(n.Fields)
	slices.SortFunc(out, func(a, b load.Field) int { return strings.Compare(a.Name, b.Name) })
	return out
}
