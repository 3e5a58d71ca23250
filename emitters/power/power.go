// Package power writes the power modes of nvpmodel.
//
// NVIDIA's table differs between L4T versions, and meta-tegra installs it from
// NVIDIA's package, so the layer never carries it. The build appends our
// POWER_MODEL blocks to the installed file and stops when they conflict with it: a
// duplicate id or name, or an undeclared PARAM, would make nvpmodel fail half way
// on the device.
package power

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/fan"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/plan"
)

var (
	//go:embed modes.conf.tmpl
	modes string
	//go:embed nvpmodel.inc.tmpl
	inc string
	// The part of the .inc that no value goes into.
	//go:embed nvpmodel.inc.py
	function string
)

// extends reports whether the target adds modes of its own.
func extends(t *plan.Target) bool {
	return t.Plan.Power != nil && len(t.Plan.Power.Modes) > 0
}

// StockID is the id for NVPMODEL_CONFIG_DEFAULT, or -1 where that variable must
// be left alone: nothing is chosen, modes are added (the build then sets the
// default), or the stock table of the release has not been verified. An id
// from a table that may differ would silently choose another mode, so there the
// build looks the name up in the real file instead.
func StockID(l *plan.Layer, t *plan.Target) (int, error) {
	if t.Plan.Power == nil || t.Plan.Power.Default == "" || extends(t) || t.Plan.Power.Table == plan.PowerHeld {
		return -1, nil
	}
	table, ok := stockTable(l, t)
	if !ok {
		return -1, nil
	}
	m, ok := table.Mode(t.Plan.Power.Default)
	if !ok {
		return -1, &emitters.Error{Emitter: "power", Ref: emitters.Ref{Target: t.Name, ID: "power.default"},
			Err: fmt.Errorf("board %s has no power mode named %q on %s", t.Board, t.Plan.Power.Default, l.Release)}
	}
	return m.ID, nil
}

func stockTable(l *plan.Layer, t *plan.Target) (board.Table, bool) {
	b, ok := board.Lookup(t.Board)
	if !ok {
		return board.Table{}, false
	}
	if slices.ContainsFunc(b.Releases[l.Release].Others, func(o board.Other) bool { return o.Machine == t.Machine }) {
		return board.Table{}, false // this machine installs another file than the one that was read
	}
	table, sure, err := b.StockTable(l.Release)
	return table, err == nil && sure
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

// Emit returns nothing when every target keeps the stock table or selects a mode
// of it by id.
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
		id, err := StockID(l, t)
		if err != nil {
			return nil, err
		}
		wanted := t.Plan.Power.Default
		if id >= 0 {
			wanted = "" // NVPMODEL_CONFIG_DEFAULT chooses it
		}
		if wanted == "" && !extends(t) && profile == "" {
			continue
		}
		targets = append(targets, target{t.Name, t.Machine, wanted, extends(t), profile})
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
	f.Data = append(f.Data, function...)
	return append(files, f, emitters.GatedAppend("recipes-bsp/tegra-nvpmodel/tegra-nvpmodel-base_%.bbappend", l.Name, name, machines)), nil
}
