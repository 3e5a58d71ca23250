// Package tmpfs writes the mount units of file systems in memory.
package tmpfs

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed tmpfs.mount.tmpl
var unit string

// Emit returns a unit for each file system of each target.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	t := emitters.NewTemplate("tmpfs", unit)
	var files []emitters.File
	for _, target := range l.Targets {
		for _, m := range target.Tmpfs {
			id := "tmpfs." + m.Path
			name := unitName(m.Path)
			if _, err := quote.SystemdUnit(name); err != nil || strings.ContainsAny(m.Path, `-\`) || !strings.HasPrefix(m.Path, "/") {
				return nil, &emitters.Error{Emitter: "tmpfs", Ref: emitters.Ref{Target: target.Name, ID: id}, Err: fmt.Errorf("%q gives no name for a unit", m.Path)}
			}
			f, err := t.Fill(emitters.NewDeviceFile(l, target, name, "${systemd_system_unitdir}/"+name), struct {
				Target, ID string
				Mount      plan.Tmpfs
			}{target.Name, id, m})
			if err != nil {
				return nil, err
			}
			f.Install.Unit = name
			f.Means = []emitters.Meaning{{Kind: emitters.Unit, Name: name, Value: "unit", ID: id}}
			files = append(files, f)
		}
	}
	return files, nil
}

// unitName is the name that systemd wants for the mount of a folder (systemd.mount(5)).
func unitName(folder string) string {
	return strings.ReplaceAll(strings.Trim(folder, "/"), "/", "-") + ".mount"
}
