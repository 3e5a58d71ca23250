// Package config writes the recipe that installs everything the other emitters
// put on the device.
package config

import (
	_ "embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed config.bb.tmpl
var recipe string

type file struct {
	Folder, Source, Dest string
	Exec                 bool
}

type machine struct {
	Machine string
	Files   []file
	Folders []string // taken whole
	Units   []string // started at boot
	Started []string // instances of a unit of another recipe that are started at boot
}

// Emit returns the recipe for the files that have an Install.
func Emit(l *plan.Layer, files []emitters.File) ([]emitters.File, error) {
	data := struct {
		Layer    *plan.Layer
		Common   machine // what every machine has
		Machines []machine
		Folders  []string
		Packaged []string // folders that FILES does not have by itself
		Signed   bool     // the device obeys signed plans only
		Enabled  bool     // some unit is started at boot
	}{Layer: l, Signed: len(l.Runtime.Keys) > 0, Packaged: []string{
		"${nonarch_base_libdir}/udev/rules.d", "${nonarch_libdir}/tmpfiles.d", "${nonarch_libdir}/yoctune",
	}}
	var means []emitters.Meaning
	own := emitters.ByMachine(files)
	for _, target := range l.Targets {
		m := machine{Machine: target.Machine}
		for _, f := range own[target.Machine] {
			if f.Install == nil {
				continue
			}
			one := file{Source: path.Base(f.Path), Dest: f.Install.Dest, Exec: f.Mode&0o100 != 0}
			if folder := path.Base(path.Dir(f.Path)); folder != emitters.MachineFolder(target.Machine) {
				one.Folder = folder
				if !slices.Contains(m.Folders, folder) {
					m.Folders = append(m.Folders, folder)
				}
			}
			m.Files = append(m.Files, one)
			if f.Install.Unit != "" {
				m.Units = append(m.Units, f.Install.Unit)
			}
		}
		sort.Slice(m.Files, func(i, j int) bool { return m.Files[i].Source < m.Files[j].Source })
		sort.Strings(m.Folders)
		for _, f := range m.Folders {
			if !slices.Contains(data.Folders, f) {
				data.Folders = append(data.Folders, f)
			}
		}
		sort.Strings(m.Units)
		for _, name := range slices.Sorted(maps.Keys(target.Plan.Pipelines)) {
			if target.Plan.Pipelines[name].Start && l.Runtime.Installed() {
				instance := emitters.PipelineUnit(name)
				m.Started = append(m.Started, instance)
				means = append(means, emitters.Meaning{Kind: emitters.Unit, Name: instance, Value: "enabled", Machine: target.Machine, ID: "pipelines." + name})
			}
		}
		for _, f := range m.Files {
			for _, folder := range packagedFolders(f.Dest) {
				if !slices.Contains(data.Packaged, folder) {
					data.Packaged = append(data.Packaged, folder)
				}
			}
		}
		data.Enabled = data.Enabled || len(m.Units) > 0
		data.Machines = append(data.Machines, m)
	}
	data.Common, data.Machines = split(data.Machines)
	slices.Sort(data.Packaged)
	t := emitters.NewTemplate("config", recipe)
	f, err := t.Fill(emitters.File{Path: fmt.Sprintf("%s/yoctune-%s-config_%d.0.bb", emitters.ConfigDir(l), l.Name, l.Version), Means: means}, data)
	if err != nil {
		return nil, err
	}
	return []emitters.File{f}, nil
}

// split takes what all machines have out of them.
func split(machines []machine) (common machine, rest []machine) {
	if len(machines) == 0 {
		return common, nil
	}
	first, others := machines[0], machines[1:]
	common = machine{
		Files:   shared(first.Files, others, func(m machine) []file { return m.Files }),
		Folders: shared(first.Folders, others, func(m machine) []string { return m.Folders }),
		Units:   shared(first.Units, others, func(m machine) []string { return m.Units }),
		Started: shared(first.Started, others, func(m machine) []string { return m.Started }),
	}
	for _, m := range machines {
		rest = append(rest, machine{m.Machine, without(m.Files, common.Files), without(m.Folders, common.Folders),
			without(m.Units, common.Units), without(m.Started, common.Started)})
	}
	return common, rest
}

func shared[T comparable](first []T, others []machine, list func(machine) []T) []T {
	return slices.DeleteFunc(slices.Clone(first), func(one T) bool {
		return slices.ContainsFunc(others, func(m machine) bool { return !slices.Contains(list(m), one) })
	})
}

func without[T comparable](all, drop []T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return slices.Contains(drop, one) })
}

// packagedFolders returns the folder that FILES must name for an installed file: none if
// bitbake.conf or the template lists it, otherwise the variable and the folder below it.
func packagedFolders(dest string) []string {
	root, rest, _ := strings.Cut(dest, "/")
	folder, _, deeper := strings.Cut(rest, "/")
	switch {
	case root == "${sysconfdir}", root == "${systemd_system_unitdir}":
		return nil
	case !deeper:
		return []string{dest}
	case root == "${nonarch_base_libdir}" && folder == "udev":
		return []string{root + "/udev/rules.d"}
	}
	return []string{root + "/" + folder}
}
