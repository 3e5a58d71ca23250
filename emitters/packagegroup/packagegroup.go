// Package packagegroup writes the package group that an image installs: the packages
// of the configuration, and those that the other files need. Kernel modules are
// recommended, not required: they may be built in.
package packagegroup

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed packagegroup.bb.tmpl
var recipe string

// pkg is a package and the configuration field that requests it.
type pkg struct{ Name, Target, ID string }

// group is what the images of one machine get, or with Machine "" all images.
type group struct {
	Machine  string
	Packages []pkg
}

// Emit returns the recipe for a layer with files.
func Emit(l *plan.Layer, files []emitters.File) ([]emitters.File, error) {
	t := emitters.NewTemplate("packagegroup", recipe)
	needs := []emitters.Need{{Package: "yoctune-" + l.Name + "-config"}}
	if !l.CoreOnly {
		// nvpmodel comes with packagegroup-base only, which a small image leaves out.
		needs = append(needs, emitters.Need{Package: "tegra-nvpmodel"})
	}
	for _, t := range l.Targets {
		for _, p := range t.Packages {
			if p.Action == "install" {
				needs = append(needs, emitters.Need{Package: p.Name, Machine: t.Machine, ID: "packages." + p.Name})
			}
		}
	}
	for _, f := range files {
		needs = append(needs, f.Needs...)
	}
	byMachine := map[string][]emitters.Need{}
	for _, n := range needs {
		byMachine[n.Machine] = append(byMachine[n.Machine], n)
	}
	every := collect(byMachine[""], "", false)
	var required, recommended []group
	for _, t := range l.Targets {
		for _, set := range []struct {
			weak bool
			into *[]group
		}{{false, &required}, {true, &recommended}} {
			if packages := collect(byMachine[t.Machine], t.Name, set.weak); len(packages) > 0 {
				*set.into = append(*set.into, group{t.Machine, packages})
			}
		}
	}
	f, err := t.Fill(emitters.File{Path: "recipes-yoctune/packagegroups/packagegroup-yoctune-" + l.Name + ".bb",
		Means: slices.Concat(meanings("install", group{"", every}), meanings("install", required...), meanings("recommend", recommended...))},
		struct {
			Layer                 *plan.Layer
			Packages              []pkg
			Required, Recommended []group
		}{l, every, required, recommended})
	if err != nil {
		return nil, err
	}
	return []emitters.File{f}, nil
}

// collect selects the packages that one machine needs, by name and once each.
func collect(needs []emitters.Need, target string, weak bool) []pkg {
	var out []pkg
	for _, n := range needs {
		if n.Weak == weak {
			out = append(out, pkg{n.Package, target, n.ID})
		}
	}
	slices.SortStableFunc(out, func(a, b pkg) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(out, func(a, b pkg) bool { return a.Name == b.Name })
}

func meanings(action string, groups ...group) []emitters.Meaning {
	var out []emitters.Meaning
	for _, g := range groups {
		for _, p := range g.Packages {
			out = append(out, emitters.Meaning{Kind: emitters.Package, Name: p.Name, Value: action, Machine: g.Machine, ID: p.ID})
		}
	}
	return out
}
