// Package config writes the recipe that installs everything the other emitters
// put on the device.
package config

import (
	_ "embed"
	"fmt"
	"path"
	"sort"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed config.bb.tmpl
var recipe string

type file struct {
	Source, Dest string
	Exec         bool
}

type machine struct {
	Machine string
	Files   []file
	Units   []string // started at boot
}

// Emit returns the recipe for the files that have an Install.
func Emit(l *plan.Layer, files []emitters.File) ([]emitters.File, error) {
	data := struct {
		Layer    *plan.Layer
		Machines []machine
	}{Layer: l}
	for _, target := range l.Targets {
		m := machine{Machine: target.Machine}
		for _, f := range files {
			if f.Install == nil || f.Install.Machine != target.Machine {
				continue
			}
			m.Files = append(m.Files, file{path.Base(f.Path), f.Install.Dest, f.Mode&0o100 != 0})
			if f.Install.Unit != "" {
				m.Units = append(m.Units, f.Install.Unit)
			}
		}
		sort.Slice(m.Files, func(i, j int) bool { return m.Files[i].Source < m.Files[j].Source })
		sort.Strings(m.Units)
		data.Machines = append(data.Machines, m)
	}
	t, err := emitters.Parse("config", recipe)
	if err != nil {
		return nil, err
	}
	f, err := t.Fill(emitters.File{Path: fmt.Sprintf("%s/yoctune-%s-config_%d.0.bb", emitters.ConfigDir(l), l.Name, l.Version)}, data)
	if err != nil {
		return nil, err
	}
	return []emitters.File{f}, nil
}
