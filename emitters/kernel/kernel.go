// Package kernel writes the kernel fragment of each machine and the appends that
// add it to the kernel's recipe. Every BSP kernel inherits kernel-yocto, which
// collects .cfg files of SRC_URI and merges them after the defconfig.
//
// kernel-yocto's own audit only warns, at a level most builds do not show. So the append adds
// a task of the layer's class after do_configure. It compares the finished .config with the
// fragment, and stops the build with the configuration line of each missing option.
package kernel

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	ft := emitters.NewTemplate("kernel", fragment)
	var (
		files    []emitters.File
		targets  []*plan.Target
		machines []string
		recipes  = map[string]bool{}
	)
	for _, t := range l.Targets {
		if len(t.Kernel.Config) == 0 {
			continue
		}
		targets, machines = append(targets, t), append(machines, t.Machine)
		// A name of its own for each layer: two layers' files/ folders end up in
		// one search path.
		f, err := ft.FillFor(t, l.Name, emitters.File{Path: fmt.Sprintf("recipes-kernel/linux/files/%s/yoctune-%s.cfg", emitters.MachineFolder(t.Machine), l.Name), Means: options(t)})
		if err != nil {
			return nil, err
		}
		where, err := encodeOrigins(l, t)
		if err != nil {
			return nil, err
		}
		files = append(files, f, emitters.File{
			// Not below files/: kernel-yocto puts all of that into the signature.
			Path: fmt.Sprintf("recipes-kernel/linux/origins/%s/yoctune-%s.cfg.origins.json", t.Machine, l.Name), Mode: 0o644, Machine: t.Machine, Data: where,
		})
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
	it := emitters.NewTemplate("kernel", inc)
	name := "linux-yoctune-" + l.Name + ".inc"
	f, err := it.Fill(emitters.File{Path: "recipes-kernel/linux/" + name}, struct {
		Name    string
		Targets []*plan.Target
		Lenient bool
	}{l.Name, targets, acceptsLostOptions(l)})
	if err != nil {
		return nil, err
	}
	files = append(files, f)
	for _, pn := range slices.Sorted(maps.Keys(recipes)) {
		files = append(files, emitters.GatedAppend("recipes-kernel/linux/"+pn+"_%.bbappend", l.Name, name, machines))
	}
	return files, nil
}

// options are the options of a target's fragment, with the values as they stand
// there.
func options(t *plan.Target) []emitters.Meaning {
	out := make([]emitters.Meaning, 0, len(t.Kernel.Config))
	for _, o := range t.Kernel.Config {
		value := o.Value
		if line, err := quote.Kconfig(o.Symbol, o.Value, o.Quoted); err == nil && o.Quoted {
			_, value, _ = strings.Cut(line, "=")
		}
		out = append(out, emitters.Meaning{Kind: emitters.Option, Name: o.Symbol, Value: value, ID: "kernel.config." + o.Symbol})
	}
	return out
}

// encodeOrigins encodes the position of each option in the configuration. A build that
// stops names it.
func encodeOrigins(l *plan.Layer, t *plan.Target) ([]byte, error) {
	where := map[string]string{}
	for _, o := range t.Kernel.Config {
		if p, ok := emitters.Position(l, emitters.Ref{Target: t.Name, ID: "kernel.config." + o.Symbol}); ok {
			where[o.Symbol] = fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
		}
	}
	data, err := plan.Canonical(where)
	if err != nil {
		return nil, fmt.Errorf("encode the origins of the options of target %s: %w", t.Name, err)
	}
	return data, nil
}

// acceptsLostOptions reports whether the configuration itself accepts that options are lost.
func acceptsLostOptions(l *plan.Layer) bool {
	return slices.ContainsFunc(l.Suppressed, func(s plan.Suppression) bool {
		return s.Rule == "kconfig-lost" || s.Rule == "kconfig-changed"
	})
}
