// Package modules writes modules-load.d and modprobe.d. Only "blacklist" is ever
// written to modprobe.d: its install and remove lines run commands.
package modules

import (
	_ "embed"
	"fmt"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

var (
	//go:embed modules-load.conf.tmpl
	load string
	//go:embed modprobe.conf.tmpl
	blacklist string
)

// Emit returns up to two files for each target.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	kinds := []struct {
		action, text, name, dest string
		t                        *emitters.Template
	}{
		{action: "load", text: load, name: "yoctune-modules-load.conf", dest: "${sysconfdir}/modules-load.d/yoctune.conf"},
		{action: "blacklist", text: blacklist, name: "yoctune-modprobe.conf", dest: "${sysconfdir}/modprobe.d/yoctune.conf"},
	}
	for i, k := range kinds {
		kinds[i].t = emitters.NewTemplate("modules", k.text)
	}
	var files []emitters.File
	for _, target := range l.Targets {
		chosen := map[string][]plan.Module{}
		for _, m := range target.Modules {
			if m.Action != "load" && m.Action != "blacklist" {
				return nil, &emitters.Error{Emitter: "modules", Ref: emitters.Ref{Target: target.Name, ID: "modules." + m.Name},
					Err: fmt.Errorf("action %q is neither load nor blacklist", m.Action)}
			}
			chosen[m.Action] = append(chosen[m.Action], m)
		}
		for _, k := range kinds {
			if len(chosen[k.action]) == 0 {
				continue
			}
			f, err := k.t.Fill(emitters.NewDeviceFile(l, target, k.name, k.dest), struct {
				Layer, Target string
				Modules       []plan.Module
			}{l.Name, target.Name, chosen[k.action]})
			if err != nil {
				return nil, err
			}
			for _, m := range chosen[k.action] {
				f.Means = append(f.Means, emitters.Meaning{Kind: emitters.Module, Name: m.Name, Value: m.Action, ID: "modules." + m.Name})
				if m.Action == "load" {
					f.Needs = append(f.Needs, emitters.KernelModule(m.Name, target.Machine, "modules."+m.Name))
				}
			}
			files = append(files, f)
		}
	}
	return files, nil
}
