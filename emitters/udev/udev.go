// Package udev writes rules.d/99-yoctune.rules, which set the queues of block
// devices as they appear.
package udev

import (
	_ "embed"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed 99-yoctune.rules.tmpl
var text string

// Emit returns one file for each target that configures storage.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	t, err := emitters.Parse("udev", text)
	if err != nil {
		return nil, err
	}
	var files []emitters.File
	for _, target := range l.Targets {
		if len(target.Storage) == 0 {
			continue
		}
		f, err := t.Fill(emitters.OnDevice(l, target, "99-yoctune.rules", "${nonarch_base_libdir}/udev/rules.d/99-yoctune.rules"),
			struct {
				Layer, Target string
				Storage       []plan.Storage
			}{l.Name, target.Name, target.Storage})
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}
