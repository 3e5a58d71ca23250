// Package kernel writes the kernel fragment of each machine and the appends that
// hand it to the kernel's recipe. Every BSP kernel inherits kernel-yocto, which
// collects .cfg files of SRC_URI and merges them after the defconfig.
package kernel

import (
	_ "embed"
	"fmt"
	"sort"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/plan"
)

var (
	//go:embed fragment.cfg.tmpl
	fragment string
	//go:embed kernel.inc.tmpl
	inc string
)

// Emit returns nothing when no target configures its kernel.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	r, err := emitters.Release(l)
	if err != nil {
		return nil, err
	}
	ft, err := emitters.Parse("kernel", fragment)
	if err != nil {
		return nil, err
	}
	var (
		files   []emitters.File
		targets []*plan.Target
		recipes = map[string]bool{}
	)
	for _, t := range l.Targets {
		if len(t.Kernel.Config) == 0 {
			continue
		}
		targets = append(targets, t)
		// A name of its own for each layer: two layers' files/ folders end up in
		// one search path.
		f, err := ft.Fill(emitters.File{Path: fmt.Sprintf("recipes-kernel/linux/files/%s/yoctune-%s.cfg", t.Machine, l.Name)},
			struct {
				Layer  string
				Target *plan.Target
			}{l.Name, t})
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		// An append without its recipe stops every build, so only what the
		// release has.
		names := t.Kernel.Recipes
		if len(names) == 0 {
			names = r.KernelPNs
		}
		for _, pn := range names {
			if _, err := quote.Package(pn); err != nil {
				return nil, &emitters.Error{Emitter: "kernel", Ref: emitters.Ref{Target: t.Name, ID: "kernel"}, Err: err}
			}
			recipes[pn] = true
		}
	}
	if len(targets) == 0 {
		return nil, nil
	}
	it, err := emitters.Parse("kernel", inc)
	if err != nil {
		return nil, err
	}
	name := "linux-yoctune-" + l.Name + ".inc"
	f, err := it.Fill(emitters.File{Path: "recipes-kernel/linux/" + name}, struct {
		Name    string
		Targets []*plan.Target
	}{l.Name, targets})
	if err != nil {
		return nil, err
	}
	files = append(files, f)
	sorted := make([]string, 0, len(recipes))
	for pn := range recipes {
		sorted = append(sorted, pn)
	}
	sort.Strings(sorted)
	for _, pn := range sorted {
		files = append(files, emitters.File{
			Path: "recipes-kernel/linux/" + pn + "_%.bbappend", Mode: 0o644, Data: emitters.Gate(l.Name, name),
		})
	}
	return files, nil
}
