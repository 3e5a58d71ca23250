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
		for _, kind := range []struct{ action, text, name, dest string }{
			{"load", load, "yoctune-modules-load.conf", "${sysconfdir}/modules-load.d/yoctune.conf"},
			{"blacklist", blacklist, "yoctune-modprobe.conf", "${sysconfdir}/modprobe.d/yoctune.conf"},
		} {
			if len(chosen[kind.action]) == 0 {
				continue
			}
			t, err := emitters.Parse("modules", kind.text)
			if err != nil {
				return nil, err
			}
			f, err := t.Fill(emitters.OnDevice(l, target, kind.name, kind.dest), struct {
				Layer, Target string
				Modules       []plan.Module
			}{l.Name, target.Name, chosen[kind.action]})
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	return files, nil
}
