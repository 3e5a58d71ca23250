// Package udev writes rules.d/99-yoctune.rules, which set the queues of block devices and
// the parameters of network interfaces as the devices appear.
package udev

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed 99-yoctune.rules.tmpl
var text string

// rule writes an attribute, or runs ethtool with the parameters of one group.
type rule struct {
	Attr     string // "" for ethtool
	Group    string
	Settings []setting
}

type setting struct{ ID, Option, Want string }

// device is what the rules do to the devices of one name.
type device struct {
	Class, Name string
	Rules       []rule
}

// Vendor and Product are the halves of the name of a USB device.
func (d device) Vendor() string  { v, _, _ := strings.Cut(d.Name, ":"); return v }
func (d device) Product() string { _, p, _ := strings.Cut(d.Name, ":"); return p }

// Emit returns one file for each target that configures such devices.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	t := emitters.NewTemplate("udev", text)
	var files []emitters.File
	for _, target := range l.Targets {
		devices, means := collect(target.Plan.Settings)
		if len(devices) == 0 {
			continue
		}
		f, err := t.Fill(emitters.NewDeviceFile(l, target, "99-yoctune.rules", "${nonarch_base_libdir}/udev/rules.d/99-yoctune.rules"),
			struct {
				Layer, Target string
				Devices       []device
			}{l.Name, target.Name, devices})
		if err != nil {
			return nil, err
		}
		f.Means, f.Needs = means, needs(target, devices)
		files = append(files, f)
	}
	return files, nil
}

// collect returns the rules for a plan's settings in the order of writing, which may name a
// device twice.
func collect(settings []plan.Setting) ([]device, []emitters.Meaning) {
	var devices []device
	var means []emitters.Meaning
	for _, s := range order(settings) {
		file := knob.FindPlainFile(s)
		r := rule{Attr: s.Select.Attr, Group: file.Group, Settings: []setting{{s.ID, file.Option, file.Want}}}
		if slices.Contains(file.Places, knob.PlaceEthtool) {
			r.Attr = ""
		}
		if n := len(devices); n == 0 || devices[n-1].Class != s.Select.Class || devices[n-1].Name != s.Select.Name {
			devices = append(devices, device{Class: s.Select.Class, Name: s.Select.Name})
		}
		devices[len(devices)-1].add(r)
		means = append(means, emitters.Meaning{Kind: emitters.Setting, Name: s.ID, Value: s.Want})
	}
	return devices, means
}

// order returns the settings that rules hold, by class and name of the devices. Where a disk
// may have the rules of a pattern and of its name, the schedulers of both come first.
func order(settings []plan.Setting) []plan.Setting {
	var out []plan.Setting
	names := map[bool]bool{}
	for _, s := range settings {
		places := knob.FindPlainFile(s).Places
		if slices.Contains(places, knob.PlaceEthtool) || slices.Contains(places, knob.PlaceUdev) {
			out = append(out, s)
			names[knob.IsPattern(s.Select.Name)] = names[knob.IsPattern(s.Select.Name)] || s.Select.Class == "block"
		}
	}
	slices.SortStableFunc(out, func(a, b plan.Setting) int {
		rank := knob.WriteRank("/"+a.Select.Attr) - knob.WriteRank("/"+b.Select.Attr)
		first := 0
		if names[true] && names[false] {
			first = rank
		}
		return cmp.Or(strings.Compare(a.Select.Class, b.Select.Class), first, knob.ComparePrecedence(a.Select, b.Select), strings.Compare(a.Select.Name, b.Select.Name), rank)
	})
	return out
}

// add adds a rule. ethtool takes all parameters of a group at once: some drivers accept
// them only together.
func (d *device) add(r rule) {
	if i := slices.IndexFunc(d.Rules, func(o rule) bool { return r.Attr == "" && o.Group == r.Group }); i >= 0 {
		d.Rules[i].Settings = append(d.Rules[i].Settings, r.Settings...)
		return
	}
	d.Rules = append(d.Rules, r)
}

// needs are the packages with the programs that the rules run.
func needs(t *plan.Target, devices []device) []emitters.Need {
	for _, d := range devices {
		for _, r := range d.Rules {
			if r.Attr == "" {
				return []emitters.Need{{Package: "ethtool", Machine: t.Machine, ID: r.Settings[0].ID}}
			}
		}
	}
	return nil
}
