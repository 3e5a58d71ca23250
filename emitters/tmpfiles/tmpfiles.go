// Package tmpfiles writes files of tmpfiles.d(5): the folders of yoctuned, and values of
// nodes that exist once the kernel has started. The files only write; yoctuned, where the
// layer installs it, reads the values back and repairs them.
//
// Values that scripts of the BSP write as well are in a second file, outside tmpfiles.d,
// which a unit applies after those scripts.
package tmpfiles

import (
	_ "embed"
	"slices"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

var (
	//go:embed tmpfiles.conf.tmpl
	boot string
	//go:embed late.conf.tmpl
	late string
	//go:embed yoctune-late.service
	unit string
)

// Unit applies the second file.
const Unit = "yoctune-late.service"

type line struct {
	ID, Node, Want string
	Optional       bool
}

type data struct {
	Layer, Target string
	Folders       bool
	Lines         []line
}

// Emit returns up to three files for each target.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	bt, lt := emitters.NewTemplate("tmpfiles", boot), emitters.NewTemplate("tmpfiles", late)
	var files []emitters.File
	for _, target := range l.Targets {
		lines, means := collect(target.Plan.Settings, knob.PlaceBoot)
		if d := (data{l.Name, target.Name, l.Runtime.Installed(), lines}); d.Folders || len(lines) > 0 {
			f, err := bt.Fill(emitters.NewDeviceFile(l, target, "yoctune-tmpfiles.conf", "${nonarch_libdir}/tmpfiles.d/yoctune.conf"), d)
			if err != nil {
				return nil, err
			}
			f.Means = means
			files = append(files, f)
		}
		if lines, means = collect(target.Plan.Settings, knob.PlaceLate); len(lines) == 0 {
			continue
		}
		f, err := lt.Fill(emitters.NewDeviceFile(l, target, "yoctune-late.conf", "${nonarch_libdir}/yoctune/late.conf"), data{Layer: l.Name, Target: target.Name, Lines: lines})
		if err != nil {
			return nil, err
		}
		f.Means = means
		u := emitters.NewDeviceFile(l, target, Unit, "${systemd_system_unitdir}/"+Unit)
		u.Data, u.Install.Unit = []byte(unit), Unit
		u.Means = []emitters.Meaning{{Kind: emitters.Unit, Name: Unit, Value: "unit"}}
		files = append(files, f, u)
	}
	return files, nil
}

// collect returns the lines for the settings that a place holds, in the order of writing. Of
// the ends of a frequency window, the upper one is first: the modes of nvpmodel have the
// lowest clock as the lower.
func collect(settings []plan.Setting, place knob.Place) (lines []line, means []emitters.Meaning) {
	var held []plan.Setting
	for _, s := range settings {
		if slices.Contains(knob.FindPlainFile(s).Places, place) {
			held = append(held, s)
		}
	}
	slices.SortStableFunc(held, func(a, b plan.Setting) int { return knob.ComparePrecedence(a.Select, b.Select) })
	for _, s := range held {
		f := knob.FindPlainFile(s)
		lines = append(lines, line{s.ID, f.Node, f.Want, s.Optional})
		means = append(means, emitters.Meaning{Kind: emitters.Setting, Name: s.ID, Value: s.Want})
	}
	return lines, means
}
