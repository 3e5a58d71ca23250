package compiler

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/assemble"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

// unheld is what one line declares and nothing on a device would put in force.
type unheld struct {
	pos    plan.Position
	path   string
	parts  []string
	help   string
	form   config.String
	reason string
}

// reportUnheld reports, for layers without the runtime, what no file of the layer puts in
// force: once for each line, whatever the number of targets that use it.
func (p *Project) reportUnheld() {
	var found []unheld
	for _, g := range p.buildable() {
		if !slices.ContainsFunc(g, excludesRuntime) {
			continue
		}
		ignored := &diag.Report{} // Verify and Layers report what prevents the layer
		l := p.Layer(g, nil, ignored)
		if ignored.Failed() {
			continue
		}
		if files, err := assemble.Emit(l); err == nil {
			found = append(found, p.unheldParts(l, files, g)...)
		}
	}
	for _, t := range p.Targets {
		if excludesRuntime(t) {
			found = append(found, runtimeFields(t)...)
			found = append(found, runtimeUses(t)...)
		}
	}
	for _, u := range mergeLines(found) {
		p.Report.Add(diag.Diagnostic{
			ID: "YT0210", Severity: diag.Error, Pos: u.pos, Path: u.path,
			Message: fmt.Sprintf("nothing on the device would put %s in force: the layer has no yoctuned, and %s", joinWords(u.parts), u.reason),
			Help:    strings.TrimPrefix(u.help+"; or leave out form: \"none\" of runtime", "; or "),
			Related: []diag.Related{{Pos: u.form.Pos(), Message: "the runtime is left out here"}},
		})
	}
}

// excludesRuntime reports whether a target declares that its layer has no runtime.
func excludesRuntime(t *resolve.Target) bool { return t.Config.Runtime.Form.Text == plan.RuntimeNone }

// unheldParts returns the parts of the plans of a layer that none of its files holds.
func (p *Project) unheldParts(l *plan.Layer, files []emitters.File, targets []*resolve.Target) []unheld {
	var out []unheld
	for _, ref := range emitters.Unheld(l, files) {
		i := slices.IndexFunc(targets, func(t *resolve.Target) bool { return t.Name == ref.Target })
		t := targets[i]
		if ref.ID == t.Config.Monitor.Key() && asksNothing(t.Config.Monitor.Node()) {
			continue
		}
		pos, _ := emitters.Position(l, ref)
		out = append(out, unheld{pos: pos, path: t.Path + "." + ref.ID, parts: []string{ref.ID}, help: instead(t, ref.ID),
			form: t.Config.Runtime.Form, reason: "no other file holds it"})
	}
	return out
}

// instead describes what to declare in place of a part that only yoctuned puts in force, ""
// if nothing does.
func instead(t *resolve.Target, id string) string {
	i := slices.IndexFunc(t.Plan.Settings, func(s plan.Setting) bool { return s.ID == id })
	section, _, _ := strings.Cut(id, ".")
	switch {
	case i >= 0:
		return knob.FindPlainFile(t.Plan.Settings[i]).Unless
	case id == "power.adaptive":
		return "choose one mode with power.default, which nvpmodel sets at boot"
	case section == "pipelines":
		return "start a program of your own under services"
	}
	return ""
}

// runtimeFields returns the fields of runtime that are about the program.
func runtimeFields(t *resolve.Target) []unheld {
	var out []unheld
	r := &t.Config.Runtime
	for _, f := range r.Node().Fields {
		if f.Name == r.Form.Key() || asksNothing(f.Value) {
			continue
		}
		out = append(out, unheld{pos: f.Pos, path: load.PathOf(r.FullPath(), f.Name), parts: []string{"runtime." + f.Name}, form: r.Form,
			reason: "the field is about that program"})
	}
	return out
}

// asksNothing reports whether a value declares nothing: false, or what has no other members.
func asksNothing(n *load.Node) bool {
	switch n.Kind {
	case load.Bool:
		return !n.True
	case load.Struct:
		return !slices.ContainsFunc(n.Fields, func(f load.Field) bool { return !asksNothing(f.Value) })
	case load.List:
		return len(n.Items) == 0
	}
	return false
}

// runtimeUses returns what a target declares about units, programs and packages that come
// with yoctuned.
func runtimeUses(t *resolve.Target) []unheld {
	var out []unheld
	add := func(at config.Place, name string) {
		if own := strings.HasPrefix(name, "yoctuned"); own || name == "yoctune-cuda" {
			out = append(out, unheld{pos: at.Pos(), path: at.FullPath(), parts: []string{at.ID()}, form: t.Config.Runtime.Form, reason: name + " comes with it"})
		}
	}
	for _, svc := range t.Config.Services.Entries {
		if !asksNothing(svc.Node()) {
			add(svc.Place, svc.Key())
		}
		for _, units := range []config.List[config.NamedString]{svc.After, svc.Wants, svc.Requires} {
			for _, unit := range units.Items {
				add(unit.Where(), unit.Text)
			}
		}
		for _, program := range svc.Exec.Items[:min(1, len(svc.Exec.Items))] {
			add(program.Place, path.Base(program.Text))
		}
	}
	for _, pkg := range t.Config.Packages.Entries {
		if pkg.Text == "install" {
			add(pkg.Place, pkg.Key())
		}
	}
	return out
}

// mergeLines merges what one line declares, and sorts by position.
func mergeLines(found []unheld) []unheld {
	slices.SortStableFunc(found, func(a, b unheld) int {
		return cmp.Or(strings.Compare(a.pos.File, b.pos.File), cmp.Compare(a.pos.Line, b.pos.Line), cmp.Compare(a.pos.Column, b.pos.Column))
	})
	var out []unheld
	for _, u := range found {
		if n := len(out); n > 0 && out[n-1].pos.File == u.pos.File && out[n-1].pos.Line == u.pos.Line {
			last := &out[n-1]
			if !slices.Contains(last.parts, u.parts[0]) {
				last.parts = append(last.parts, u.parts[0])
				last.help = cmp.Or(last.help, u.help)
			}
			continue
		}
		out = append(out, u)
	}
	return out
}

// joinWords lists words as a sentence does.
func joinWords(words []string) string {
	n := len(words) - 1
	if n == 0 {
		return words[0]
	}
	return strings.Join(words[:n], ", ") + " and " + words[n]
}
