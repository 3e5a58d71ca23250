// Package tmpfs writes the mount units of file systems in memory.
package tmpfs

import (
	_ "embed"
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
			name, err := quote.UnitOfPath(m.Path, ".mount")
			if err != nil {
				return nil, &emitters.Error{Emitter: "tmpfs", Ref: emitters.Ref{Target: target.Name, ID: id}, Err: err}
			}
			f, err := t.Fill(emitters.NewDeviceFile(l, target, sourceName(m.Path), "${systemd_system_unitdir}/"+name), struct {
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

// sourceName is the name of a mount's unit in the layer, without systemd's escapes: a hyphen of
// the path is two.
func sourceName(folder string) string {
	return strings.NewReplacer("-", "--", "/", "-").Replace(strings.Trim(folder, "/")) + ".mount"
}
