// Package packagegroup writes the one name that an image needs. Kernel modules
// are recommended, not required: they may be built in.
package packagegroup

import (
	_ "embed"
	"maps"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/fan"
	"github.com/yoctune/yoctune/emitters/yoctuned"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed packagegroup.bb.tmpl
var recipe string

// Emit returns the recipe.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	t, err := emitters.Parse("packagegroup", recipe)
	if err != nil {
		return nil, err
	}
	packages := []string{"tegra-nvpmodel", "yoctune-" + l.Name + "-config"}
	if l.Runtime.Form != "" {
		packages = append(packages, "yoctuned")
		if l.Runtime.CUDA {
			packages = append(packages, "yoctune-cuda")
		}
	}
	slices.Sort(packages)
	turns, err := fan.Package(l)
	if err != nil {
		return nil, err
	}
	var required, recommended []group
	for _, t := range l.Targets {
		r, m := wanted(l, t, turns)
		if len(r) > 0 {
			required = append(required, group{t.Machine, r})
		}
		if len(m) > 0 {
			recommended = append(recommended, group{t.Machine, m})
		}
	}
	f, err := t.Fill(emitters.File{Path: "recipes-yoctune/packagegroups/packagegroup-yoctune-" + l.Name + ".bb", Means: meanings(packages, required, recommended)},
		struct {
			Layer                 *plan.Layer
			Packages              []string
			Required, Recommended []group
		}{l, packages, required, recommended})
	if err != nil {
		return nil, err
	}
	return []emitters.File{f}, nil
}

// meanings are the packages of every machine and those of one.
func meanings(every []string, required, recommended []group) []emitters.Meaning {
	var out []emitters.Meaning
	for _, name := range every {
		m := emitters.Meaning{Kind: emitters.Package, Name: name, Value: "install"}
		switch name {
		case "yoctuned":
			m.ID = "runtime"
		case "yoctune-cuda":
			m.ID = "runtime.cuda"
		}
		out = append(out, m)
	}
	for _, set := range []struct {
		action string
		groups []group
	}{{"install", required}, {"recommend", recommended}} {
		for _, g := range set.groups {
			for _, p := range g.Packages {
				out = append(out, emitters.Meaning{Kind: emitters.Package, Name: p.Name, Value: set.action, Machine: g.Machine, ID: p.ID})
			}
		}
	}
	return out
}

// group is what one machine adds.
type group struct {
	Machine  string
	Packages []pkg
}

// pkg is a package and what in the configuration asks for it.
type pkg struct{ Name, Target, ID string }

// wanted are the packages that a target requires and those it recommends, by name.
func wanted(l *plan.Layer, t *plan.Target, fan string) (required, recommended []pkg) {
	need := func(id string, names ...string) {
		for _, name := range names {
			required = append(required, pkg{name, t.Name, id})
		}
	}
	module := func(id, name string) {
		name = "kernel-module-" + strings.ReplaceAll(strings.ToLower(name), "_", "-")
		recommended = append(recommended, pkg{name, t.Name, id})
	}
	for _, p := range t.Packages {
		if p.Action == "install" {
			need("packages."+p.Name, p.Name)
		}
	}
	if len(t.Models) > 0 {
		need(t.Models[0].ID, "yoctune-"+l.Name+"-models")
	}
	if l.Runtime.Form != "" {
		if yoctuned.Serves(t) {
			need("monitor", "yoctuned-serve")
		}
		if id := readsJPEG(t.Plan); id != "" {
			need(id, "libturbojpeg")
		}
	}
	if t.Fan != nil && fan != "" {
		need("fan", fan)
	}
	for _, m := range t.Modules {
		if m.Action == "load" {
			module("modules."+m.Name, m.Name)
		}
	}
	if t.ZRAM != nil {
		need("memory.zram", "kmod", "util-linux-mkswap", "util-linux-swapoff", "util-linux-swapon", "util-linux-zramctl")
		module("memory.zram", "zram")
	}
	for _, list := range [][]pkg{required, recommended} {
		slices.SortStableFunc(list, func(a, b pkg) int { return strings.Compare(a.Name, b.Name) })
	}
	same := func(a, b pkg) bool { return a.Name == b.Name }
	return slices.CompactFunc(required, same), slices.CompactFunc(recommended, same)
}

// readsJPEG names the first pipeline whose source is decoded by libjpeg-turbo, ""
// for none. yoctuned loads that library when it is wanted, and does not depend on it.
func readsJPEG(p *plan.Plan) string {
	for _, name := range slices.Sorted(maps.Keys(p.Pipelines)) {
		if p.Pipelines[name].Source.Format == "mjpeg" {
			return "pipelines." + name
		}
	}
	return ""
}
