// Package udev writes rules.d/99-yoctune.rules, which set the queues of block
// devices as they appear.
package udev

import (
	_ "embed"
	"strconv"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed 99-yoctune.rules.tmpl
var text string

// Emit returns one file for each target that configures storage.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	t := emitters.NewTemplate("udev", text)
	var files []emitters.File
	for _, target := range l.Targets {
		if len(target.Storage) == 0 {
			continue
		}
		f, err := t.Fill(emitters.NewDeviceFile(l, target, "99-yoctune.rules", "${nonarch_base_libdir}/udev/rules.d/99-yoctune.rules"),
			struct {
				Layer, Target string
				Storage       []plan.Storage
			}{l.Name, target.Name, target.Storage})
		if err != nil {
			return nil, err
		}
		for _, s := range target.Storage {
			f.Means = append(f.Means, settings(s)...)
		}
		files = append(files, f)
	}
	return files, nil
}

// settings are the values that the rules of one entry write.
func settings(s plan.Storage) []emitters.Meaning {
	var out []emitters.Meaning
	set := func(field, value string, set bool) {
		if set {
			out = append(out, emitters.Meaning{Kind: emitters.Setting, Name: "storage." + s.ID + "." + field, Value: value})
		}
	}
	set("scheduler", s.Scheduler, s.Scheduler != "")
	set("readahead", strconv.Itoa(s.ReadKiB), s.ReadKiB >= 0)
	set("requests", strconv.Itoa(s.Requests), s.Requests != 0)
	set("rqAffinity", strconv.Itoa(s.RQ), s.RQ >= 0)
	return out
}
