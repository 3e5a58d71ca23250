// Package packagegroup writes the one name that an image needs. Kernel modules
// are recommended, not required: they may be built in.
package packagegroup

import (
	_ "embed"
	"maps"
	"slices"
	"sort"

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
	sort.Strings(packages)
	turns, err := fan.Package(l)
	if err != nil {
		return nil, err
	}
	f, err := t.Fill(emitters.File{Path: "recipes-yoctune/packagegroups/packagegroup-yoctune-" + l.Name + ".bb"},
		struct {
			Layer    *plan.Layer
			Packages []string
			Fan      string
			Serves   func(*plan.Target) bool
			JPEG     func(*plan.Target) string
		}{l, packages, turns, func(t *plan.Target) bool { return l.Runtime.Form != "" && yoctuned.Serves(t) }, func(t *plan.Target) string {
			if l.Runtime.Form == "" {
				return ""
			}
			return readsJPEG(t.Plan)
		}})
	if err != nil {
		return nil, err
	}
	return []emitters.File{f}, nil
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
