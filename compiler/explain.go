package compiler

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"

	"github.com/yoctune/yoctune/compiler/check"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/load"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/plan"
)

// Page finds the page of a diagnostic or of a rule.
func Page(id string) (diag.Explanation, bool) {
	if r, ok := check.Find(id); ok {
		return r.Page(), true
	}
	if id == check.SharedMachine {
		return diag.Explanation{
			ID: id, Title: "two targets of a release have the same MACHINE", Severity: "warning, or error when both are built into one layer",
			Cause: "Everything a layer does is chosen by MACHINE, so it can hold one target for each.",
			Fix:   "Build them one at a time with --target, or give one a machine of its own.",
		}, true
	}
	return diag.Page(id)
}

// PageIDs lists every page.
func PageIDs() []string {
	ids := append(diag.IDs(), check.SharedMachine)
	for _, r := range check.Rules() {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return ids
}

// Account says of one field what it is, who said so, and what follows from it.
type Account struct {
	Path     string         `json:"path"`
	Doc      string         `json:"doc,omitempty"`
	Expected string         `json:"expected,omitempty"`
	See      string         `json:"see,omitempty"`
	Value    string         `json:"value,omitempty"`
	Pos      *plan.Position `json:"position,omitempty"`
	Profile  string         `json:"profile,omitempty"` // that gave the value
	Replaced []string       `json:"replaced,omitempty"`
	Settings []plan.Setting `json:"settings,omitempty"`
	Files    []string       `json:"files,omitempty"`
}

// Explain gives account of a field by its path, such as
// targets.cam.sysctl."vm.swappiness".
func (p *Project) Explain(path string) (Account, error) {
	parsed := cue.ParsePath(path)
	if err := parsed.Err(); err != nil {
		return Account{}, fmt.Errorf("%q is not a path: write it as in the configuration, names with dots in quotes", path)
	}
	var names []string
	for _, s := range parsed.Selectors() {
		if s.Type() == cue.StringLabel {
			names = append(names, s.Unquoted())
		}
	}
	a := Account{Path: path}
	doc, known := p.Language.Describe(names)
	if known {
		a.Doc, a.Expected, a.See = doc.Text, doc.Expected, doc.See
	}
	if p.Project == nil {
		return a, nil
	}
	n := p.Root.At(names...)
	if len(names) >= 2 && names[0] == "targets" {
		for _, t := range p.Targets {
			if t.Name == names[1] {
				n = t.Node.At(names[2:]...)
				p.account(&a, t, names[2:], n)
			}
		}
	}
	if n != nil {
		a.Value = n.Show()
		pos := n.Pos
		a.Pos = &pos
	}
	if n == nil && !known {
		return a, fmt.Errorf("%q is neither in the configuration nor in the language", path)
	}
	return a, nil
}

// account adds what follows from a field of a target.
func (p *Project) account(a *Account, t *resolve.Target, names []string, n *load.Node) {
	id := strings.Join(names, ".")
	if id == "" {
		return
	}
	if profiles := p.Root.Get("profiles"); profiles != nil && n != nil {
		for _, f := range profiles.Fields {
			if v := f.Value.At(names...); v != nil && v == n {
				a.Profile = f.Name
			}
		}
	}
	for _, o := range t.Replaced {
		if o.ID == id || strings.HasPrefix(o.ID, id+".") {
			a.Replaced = append(a.Replaced, fmt.Sprintf("%s: profile %s says %s at %s", o.ID, o.Profile, o.Was, Place(o.Position)))
		}
	}
	for _, s := range t.Plan.Settings {
		// A field is the origin of a setting by name, or because the setting
		// follows from it and carries its position.
		if s.ID == id || strings.HasPrefix(s.ID, id+".") || n != nil && t.Origins[s.ID] == n.Pos {
			a.Settings = append(a.Settings, s)
		}
	}
	layers := p.Layers(Selection{Target: t.Name})
	if len(layers) == 0 {
		return
	}
	for _, f := range layers[0].Files {
		for _, o := range f.Origins {
			if o.Target == t.Name && (o.ID == id || strings.HasPrefix(o.ID, id+".") || n != nil && t.Origins[o.ID] == n.Pos) {
				a.Files = append(a.Files, f.Path)
				break
			}
		}
	}
}

// Place writes a position as editors understand it.
func Place(p plan.Position) string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// PathsAt lists the fields written on a line of the configuration, such as
// config.cue:12, as paths; fields of profiles as well.
func (p *Project) PathsAt(place string) ([]string, bool) {
	file, number, ok := strings.Cut(place, ":")
	line, err := strconv.Atoi(number)
	if !ok || err != nil || p.Config == nil || p.Config.Root == nil {
		return nil, false
	}
	var paths []string
	var walk func(n *load.Node, path string)
	walk = func(n *load.Node, path string) {
		for _, f := range n.Fields {
			sub := load.PathOf(path, f.Name)
			if f.Value.Kind != load.Struct && f.Value.Pos.File == file && f.Value.Pos.Line == line {
				paths = append(paths, sub)
			}
			walk(f.Value, sub)
		}
	}
	walk(p.Config.Root, "")
	return paths, true
}
