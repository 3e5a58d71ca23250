// Package tmpfiles writes the tmpfiles.d file for the folders of yoctuned.
// Values below /sys, such as transparent huge pages, are not written here:
// yoctuned journals, reads back and repairs them, tmpfiles.d would only write.
package tmpfiles

import (
	_ "embed"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed tmpfiles.conf
var text string

// Emit returns one file for each target.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	var files []emitters.File
	for _, target := range l.Targets {
		f := emitters.NewDeviceFile(l, target, "yoctune-tmpfiles.conf", "${nonarch_libdir}/tmpfiles.d/yoctune.conf")
		f.Data = []byte(text)
		files = append(files, f)
	}
	return files, nil
}
