// Package readme writes the layer's main document: how to switch the layer on,
// its effect on each target, and which line of the configuration caused which
// file.
//
// yocto-check-layer requires a maintainer, a section about patches and a mail address
// in it (lib/checklayer/cases/common.py, test_readme).
package readme

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed readme.md.tmpl
var text string

// program is one that the layer installs.
type program struct{ Name, Version, SHA256, Licences string }

// row is one of a table.
type row = []quote.Cell

// target is a part of the document. Its tables are made when they are written: those of a
// thousand targets are large.
type target struct {
	*plan.Target
	ArgsBy  string // how kernel arguments reach the kernel; "" without any
	layer   *plan.Layer
	holders emitters.Holders
}

// Alone reports whether some setting is in force by yoctuned alone.
func (t target) Alone() bool {
	held := t.holders.Find(t.Target)
	return slices.ContainsFunc(t.Plan.Settings, func(s plan.Setting) bool { return len(held[s.ID]) == 0 })
}

// Rows describe the settings.
func (t target) Rows() []row {
	held := t.holders.Find(t.Target)
	var out []row
	for _, s := range t.Plan.Settings {
		out = append(out, describeSetting(t.layer, t.Target, s, names(held[s.ID])))
	}
	return out
}

// Replaced describes the values of profiles that the target overrides.
func (t target) Replaced() []row {
	var out []row
	for _, o := range t.Overrides {
		out = append(out, row{code(o.ID), code(o.Profile), code(emitters.Line(o.Position)), code(place(t.layer, t.Name, o.ID))})
	}
	return out
}

var rules = map[string]string{
	plan.AtLeast:        "at least ",
	plan.AtMost:         "at most ",
	plan.FirstAvailable: "first available of ",
}

var when = map[string]string{
	plan.NeedsNothing: "at once",
	plan.NeedsReboot:  "after a reboot",
	plan.NeedsReflash: "after a flash",
}

// Emit returns the document for the layer that holds files.
func Emit(l *plan.Layer, files []emitters.File) ([]emitters.File, error) {
	r, err := emitters.Release(l)
	if err != nil {
		return nil, err
	}
	data := struct {
		Layer    *plan.Layer
		Release  release.Release
		Targets  []target
		Files    []row
		Programs []program
		Flash    bool
	}{Layer: l, Release: r, Programs: programs(files)}
	holders := emitters.HoldersAmong(files)
	targets := map[string]string{} // by machine
	for _, t := range l.Targets {
		targets[t.Machine] = t.Name
		data.Flash = data.Flash || len(t.Kernel.Args) > 0
		tt := target{Target: t, layer: l, holders: holders}
		if l.CoreOnly && len(t.Kernel.Args) > 0 {
			tt.ArgsBy = "what reads " + strings.Join(release.CoreArgVariables(), ", ") + " in the machine's BSP"
		} else if b, ok := board.Lookup(t.Board); ok && len(t.Kernel.Args) > 0 {
			tt.ArgsBy = r.ArgPath(b.SoC).Text()
		}
		data.Targets = append(data.Targets, tt)
	}
	for i := range files {
		data.Files = append(data.Files, describeFile(l, &files[i], targets[files[i].Machine]))
	}
	slices.SortFunc(data.Files, func(a, b row) int { return strings.Compare(a[0].Code[0], b[0].Code[0]) })
	t := emitters.NewTemplate("readme", text)
	f, err := t.Fill(emitters.File{Path: "README.md"}, data)
	if err != nil {
		return nil, err
	}
	return []emitters.File{f}, nil
}

// names are files as a reader finds them: on the device where they are installed, otherwise
// in the layer.
func names(files []*emitters.File) []string {
	var out []string
	for _, f := range files {
		name := f.Path
		if f.Install != nil {
			name = f.Install.DevicePath()
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// programs are those that the recipes install. The digest of a version that was not released
// is left out: each build of it has another.
func programs(files []emitters.File) []program {
	var out []program
	for _, f := range files {
		for _, m := range f.Means {
			switch {
			case m.Kind == emitters.Program && !slices.ContainsFunc(out, func(p program) bool { return p.Name == m.Name }):
				p := program{Name: m.Name, Version: m.Value, SHA256: m.SHA256}
				if strings.Contains(m.Value, "-") {
					p.SHA256 = ""
				}
				out = append(out, p)
			case m.Kind == emitters.Licences:
				if i := slices.IndexFunc(out, func(p program) bool { return p.Name == m.Name }); i >= 0 {
					out[i].Licences = m.Value
				}
			}
		}
	}
	return out
}

func code(values ...string) quote.Cell { return quote.Cell{Code: values} }

func place(l *plan.Layer, target, id string) string {
	at, _ := emitters.Position(l, emitters.Ref{Target: target, ID: id})
	return emitters.Line(at)
}

func describeSetting(l *plan.Layer, t *plan.Target, s plan.Setting, holders []string) row {
	wanted := knob.Show(s.Type, s.Want)
	if s.ID == "kernel.preempt" {
		wanted = "real time"
	}
	r := row{code(s.ID), {Text: rules[s.Compare], Code: []string{wanted}}, code(holders...)}
	if l.Runtime.Installed() {
		r = append(r, quote.Cell{Text: s.Policy}, quote.Cell{Text: when[s.Needs]})
	}
	return append(r, code(place(l, t.Name, s.ID)))
}

// describeFile names the lines that caused a file, or else the reason for it. target is that
// of its machine.
func describeFile(l *plan.Layer, f *emitters.File, target string) row {
	why := code(emitters.Lines(l, f.Origins)...)
	switch {
	case len(why.Code) > 0:
	case f.Install == nil:
		why.Text = "the layer itself"
	case target != "":
		why.Text = "all of target " + target
	default:
		why.Text = "every target"
	}
	return row{code(f.Path), why}
}
