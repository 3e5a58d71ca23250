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
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed readme.md.tmpl
var text string

type row struct {
	plan.Setting
	Rule, When, Where string
	Holders           []string // files that put it in force without yoctuned
}

// program is one that the layer installs.
type program struct{ Name, Version, SHA256, Licences string }

type override struct {
	ID, Profile, Where, By string
}

type target struct {
	*plan.Target
	ArgsBy    string // how kernel arguments reach the kernel; "" without any
	Rows      []row
	Overrides []override
	Alone     bool // some setting is in force by yoctuned alone
}

type file struct {
	Path  string
	Where []string
	Why   string // the reason, if no line caused the file
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
		Files    []file
		Programs []program
		Flash    bool
	}{Layer: l, Release: r, Programs: programs(files)}
	for _, t := range l.Targets {
		data.Flash = data.Flash || len(t.Kernel.Args) > 0
		tt := target{Target: t}
		if l.CoreOnly && len(t.Kernel.Args) > 0 {
			tt.ArgsBy = "what reads " + strings.Join(release.CoreArgVariables(), ", ") + " in the machine's BSP"
		} else if b, ok := board.Lookup(t.Board); ok && len(t.Kernel.Args) > 0 {
			tt.ArgsBy = r.ArgPath(b.SoC).Text()
		}
		held := emitters.Holders(t, files)
		for _, s := range t.Plan.Settings {
			where, _ := emitters.Position(l, emitters.Ref{Target: t.Name, ID: s.ID})
			holders := names(held[s.ID])
			s.Want = knob.Show(s.Type, s.Want)
			tt.Rows = append(tt.Rows, row{s, rules[s.Compare], when[s.Needs], emitters.Line(where), holders})
			tt.Alone = tt.Alone || len(holders) == 0
		}
		for _, o := range t.Overrides {
			by, _ := emitters.Position(l, emitters.Ref{Target: t.Name, ID: o.ID})
			tt.Overrides = append(tt.Overrides, override{o.ID, o.Profile, emitters.Line(o.Position), emitters.Line(by)})
		}
		data.Targets = append(data.Targets, tt)
	}
	for _, f := range files {
		data.Files = append(data.Files, describe(l, f))
	}
	slices.SortFunc(data.Files, func(a, b file) int { return strings.Compare(a.Path, b.Path) })
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

func describe(l *plan.Layer, f emitters.File) file {
	d := file{Path: f.Path, Why: "the layer itself", Where: emitters.Lines(l, f.Origins)}
	if f.Install != nil {
		d.Why = "every target"
		for _, t := range l.Targets {
			if t.Machine == f.Machine {
				d.Why = "all of target " + t.Name
			}
		}
	}
	return d
}
