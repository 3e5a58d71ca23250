// Package fan makes the build edit the BSP's nvfancontrol.conf: it adds the
// configuration's profiles and sets the defaults at boot.
//
// NVIDIA's file is neither shipped nor replaced. Its temperatures are margins
// below a limit on some modules and degrees on others, and the limit differs,
// so the build derives both from the installed file and stops when the file lacks
// a requested profile, governor or control. L4T R32 has no such file: there package power writes the
// profile into nvpmodel.conf.
package fan

import (
	_ "embed"
	"fmt"
	"slices"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

var (
	//go:embed nvfancontrol.inc.tmpl
	inc string
	// The program that do_install runs.
	//go:embed nvfancontrol.py
	program []byte
	//go:embed profiles.conf.tmpl
	profiles string
	//go:embed fan.conf.tmpl
	dropin string
)

const folder = "recipes-bsp/tegra-nvfancontrol/"

// Package is the BSP's package with nvfancontrol, "" on a release without it.
func Package(l *plan.Layer) (string, error) {
	r, err := emitters.Release(l)
	if err != nil || r.Line() == "R32" {
		return "", err
	}
	return "tegra-nvfancontrol", nil
}

// profileMeanings are the profiles that the target adds to the file.
func profileMeanings(t *plan.Target) []emitters.Meaning {
	var out []emitters.Meaning
	for _, p := range t.Fan.Profiles {
		out = append(out, emitters.Meaning{Kind: emitters.Profile, Name: p.Name, ID: "fan.curves." + p.Name})
	}
	return out
}

// Emit returns nothing when no target configures its fan.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	var files []emitters.File
	targets := slices.DeleteFunc(slices.Clone(l.Targets), func(t *plan.Target) bool { return t.Fan == nil })
	if len(targets) == 0 {
		return nil, nil
	}
	pkg, err := Package(l)
	if err != nil {
		return nil, err
	}
	if pkg == "" {
		for _, t := range targets {
			if len(t.Fan.Profiles) > 0 {
				return nil, &emitters.Error{Emitter: "fan", Ref: emitters.Ref{Target: t.Name, ID: "fan.curves"},
					Err: fmt.Errorf("release %s has no nvfancontrol: its fan has the profiles quiet and cool only", l.Release)}
			}
		}
		return nil, nil
	}
	profile, unit := emitters.NewTemplate("fan", profiles), emitters.NewTemplate("fan", dropin)
	machines := make([]string, 0, len(targets))
	for _, t := range targets {
		machines = append(machines, t.Machine)
		if len(t.Fan.Profiles) > 0 {
			f, err := profile.FillFor(t, l.Name, emitters.File{
				Path: fmt.Sprintf("%sfiles/%s/yoctune-%s-fan-profiles.conf", folder, emitters.MachineFolder(t.Machine), l.Name), Means: profileMeanings(t),
			})
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
		if t.Fan.Profile == "" {
			continue
		}
		f, err := unit.Fill(emitters.NewDeviceFile(l, t, "nvfancontrol.service.d-50-yoctune-fan.conf",
			"${systemd_system_unitdir}/nvfancontrol.service.d/50-yoctune-fan.conf"), struct{ Layer, Target string }{l.Name, t.Name})
		if err != nil {
			return nil, err
		}
		f.Means = []emitters.Meaning{{Kind: emitters.Unit, Name: "nvfancontrol.service", Value: "drop-in", ID: "fan.profile"}}
		files = append(files, f)
	}
	name := "tegra-nvfancontrol-yoctune-" + l.Name + ".inc"
	f, err := emitters.NewTemplate("fan", inc).Fill(emitters.File{Path: folder + name}, struct {
		Layer   string
		Targets []*plan.Target
	}{l.Name, targets})
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		f.Needs = append(f.Needs, emitters.Need{Package: pkg, Machine: t.Machine, ID: "fan"})
	}
	return append(files, f, emitters.File{Path: folder + "files/yoctune-" + l.Name + "-nvfancontrol.py", Mode: 0o644, Data: program}, emitters.GatedAppend(folder+"tegra-nvfancontrol_%.bbappend", l.Name, name, machines)), nil
}
