// Package settings writes conf/yoctune/<layer>.conf, the one file that switches
// the layer on, and on series that have them the configuration fragment that
// requires it.
//
// Kernel arguments and the kernel's provider are read by several recipes and by
// image classes, so they must be set in configuration, never in a bbappend.
package settings

import (
	_ "embed"
	"reflect"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/variable"
	"github.com/yoctune/yoctune/schema/plan"
)

var (
	//go:embed settings.conf.tmpl
	settingsConf string
	// The part about the build, which follows.
	//go:embed build.conf.tmpl
	buildConf string
	//go:embed fragment.conf.tmpl
	fragmentConf string
)

type target struct {
	*plan.Target
	StockIsolation string // cores that the machine's own KERNEL_ARGS isolate and this target replaces
}

// assignment is what the file sets of a variable.
type assignment struct {
	plan.Variable
	Added, Removed string // in the form that :append and :remove take
}

// assignments joins words as the variables' lists are joined.
func assignments(variables []plan.Variable, r release.Release) []assignment {
	var out []assignment
	for _, v := range variables {
		a := assignment{Variable: v, Removed: strings.Join(v.Remove, " ")}
		separator := " "
		if f, ok := variable.Lookup(r.Name, v.Name); ok && f.List {
			separator = f.Separator
		}
		if len(v.Append) > 0 {
			a.Added = separator + strings.Join(v.Append, separator)
		}
		out = append(out, a)
	}
	return out
}

// Emit returns the settings file and the fragment.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	r, err := emitters.Release(l)
	if err != nil {
		return nil, err
	}
	data := struct {
		Layer     *plan.Layer
		Release   release.Release
		Targets   []target
		HasBuild  bool
		Variables []assignment
		// ArgVariables take kernel arguments where the layer is CoreOnly.
		ArgVariables []string
	}{Layer: l, Release: r, HasBuild: hasBuild(l.Build), Variables: assignments(l.Build.Variables, r), ArgVariables: release.CoreArgVariables()}
	for _, t := range l.Targets {
		data.Targets = append(data.Targets, target{t, stockIsolation(t)})
	}

	if err := refuse(l.Build, r); err != nil {
		return nil, err
	}
	st := emitters.NewTemplate("settings", settingsConf+buildConf)
	f, err := st.Fill(emitters.File{Path: "conf/yoctune/" + l.Name + ".conf", Means: excluded(l)}, data)
	if err != nil {
		return nil, err
	}
	files := []emitters.File{f}
	if r.Fragments {
		ft := emitters.NewTemplate("settings", fragmentConf)
		f, err := ft.Fill(emitters.File{Path: "conf/fragments/" + l.Name + ".conf"}, data)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// excluded are the packages that images must not have.
func excluded(l *plan.Layer) []emitters.Meaning {
	var out []emitters.Meaning
	for _, t := range l.Targets {
		for _, p := range t.Packages {
			if p.Action == "exclude" {
				out = append(out, emitters.Meaning{Kind: emitters.Package, Name: p.Name, Value: p.Action, Machine: t.Machine, ID: "packages." + p.Name})
			}
		}
	}
	return out
}

// stockIsolation returns what meta-tegra's conf/machine/include/tegra186.inc
// isolates, the Denver cores of the TX2, where the target isolates others: the
// kernel would take both lists.
func stockIsolation(t *plan.Target) string {
	const denver = "1-2"
	b, ok := board.Lookup(t.Board)
	if !ok || b.SoC != "tegra186" {
		return ""
	}
	for _, a := range t.Kernel.Args {
		if a.Name == "isolcpus" && a.Value != denver {
			return denver
		}
	}
	return ""
}

// hasBuild reports whether the settings file has a part about the build.
func hasBuild(b plan.Build) bool {
	// These become files of their own.
	b.HashServer, b.Optional, b.Kas = nil, nil, nil
	return !reflect.ValueOf(b).IsZero()
}
