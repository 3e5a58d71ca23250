// Package power writes the power modes of nvpmodel.
//
// NVIDIA's table differs between L4T versions, and meta-tegra installs it from
// NVIDIA's package, so the layer never carries it. The build appends our
// POWER_MODEL blocks to the installed file and stops when they conflict with it: a
// duplicate id or name, or an undeclared PARAM, would make nvpmodel fail half way
// on the device. The default is looked up by name in the same file. An id from a table that
// differs would choose another mode without a message.
package power

import (
	_ "embed"
	"fmt"
	"strconv"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/fan"
	"github.com/yoctune/yoctune/schema/plan"
)

var (
	//go:embed modes.conf.tmpl
	modes string
	//go:embed nvpmodel.inc.tmpl
	inc string
	// The program that do_install runs.
	//go:embed nvpmodel.py
	program []byte
)

// extends reports whether the target adds modes of its own.
func extends(t *plan.Target) bool {
	return t.Plan.Power != nil && len(t.Plan.Power.Modes) > 0
}

// modeMeanings are the modes that the target adds to the table.
func modeMeanings(t *plan.Target) []emitters.Meaning {
	var out []emitters.Meaning
	for _, m := range t.Plan.Power.Modes {
		out = append(out, emitters.Meaning{Kind: emitters.Mode, Name: m.Name, Value: strconv.Itoa(m.ID), ID: "power.modes." + m.Name})
	}
	return out
}

type target struct {
	Name, Machine, Default string
	Modes                  bool
	Fan                    string
}

// fanProfile is the profile that L4T R32 takes from nvpmodel.conf; later releases
// have nvfancontrol, see package fan.
func fanProfile(l *plan.Layer, t *plan.Target) (string, error) {
	if t.Fan == nil || t.Fan.Profile == "" {
		return "", nil
	}
	pkg, err := fan.Package(l)
	if err != nil || pkg != "" {
		return "", err
	}
	return t.Fan.Profile, nil
}

// Emit returns nothing when every target keeps the stock table and its default.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	mt := emitters.NewTemplate("power", modes)
	var (
		files   []emitters.File
		targets []target
	)
	for _, t := range l.Targets {
		if t.Plan.Power != nil && t.Plan.Power.Table == plan.PowerHeld {
			continue // yoctuned writes the modes by itself
		}
		profile, err := fanProfile(l, t)
		if err != nil {
			return nil, err
		}
		if t.Plan.Power == nil {
			if profile != "" {
				targets = append(targets, target{Name: t.Name, Machine: t.Machine, Fan: profile})
			}
			continue
		}
		if t.Plan.Power.Table == "complete" {
			return nil, &emitters.Error{Emitter: "power", Ref: emitters.Ref{Target: t.Name, ID: "power.table"},
				Err: fmt.Errorf("no complete table is verified for board %s on %s; use \"extend\"", t.Board, l.Release)}
		}
		if t.Plan.Power.Default == "" && !extends(t) && profile == "" {
			continue
		}
		targets = append(targets, target{t.Name, t.Machine, t.Plan.Power.Default, extends(t), profile})
		if !extends(t) {
			continue
		}
		f, err := mt.FillFor(t, l.Name, emitters.File{
			Path: fmt.Sprintf("recipes-bsp/tegra-nvpmodel/files/%s/yoctune-%s-power-modes.conf", emitters.MachineFolder(t.Machine), l.Name), Means: modeMeanings(t),
		})
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if len(targets) == 0 {
		return nil, nil
	}
	it := emitters.NewTemplate("power", inc)
	machines := make([]string, len(targets))
	for i, t := range targets {
		machines[i] = t.Machine
	}
	name := "tegra-nvpmodel-base-yoctune-" + l.Name + ".inc"
	f, err := it.Fill(emitters.File{Path: "recipes-bsp/tegra-nvpmodel/" + name}, struct {
		Name    string
		Targets []target
	}{l.Name, targets})
	if err != nil {
		return nil, err
	}
	return append(files, f, emitters.File{Path: fmt.Sprintf("recipes-bsp/tegra-nvpmodel/files/yoctune-%s-nvpmodel.py", l.Name), Mode: 0o644, Data: program}, emitters.GatedAppend("recipes-bsp/tegra-nvpmodel/tegra-nvpmodel-base_%.bbappend", l.Name, name, machines)), nil
}
