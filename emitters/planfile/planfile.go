// Package planfile writes plan.json, which yoctuned obeys, and beside it
// plan.origins.json, which names the line of the configuration behind each
// setting. Both are marshalled, never templated.
package planfile

import (
	"fmt"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

const dir = "${nonarch_libdir}/yoctune/"

// Emit returns the two files of each target.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	var files []emitters.File
	for _, target := range l.Targets {
		doc, err := target.Plan.Encode()
		if err != nil {
			return nil, fmt.Errorf("encoding the plan of target %s: %w", target.Name, err)
		}
		origins := target.Origins
		if origins == nil {
			origins = plan.Origins{}
		}
		where, err := origins.Encode()
		if err != nil {
			return nil, fmt.Errorf("encoding the origins of target %s: %w", target.Name, err)
		}
		p := emitters.OnDevice(l, target, "plan.json", dir+"plan.json")
		p.Data = doc
		o := emitters.OnDevice(l, target, "plan.origins.json", dir+"plan.origins.json")
		o.Data = where
		files = append(files, p, o)
	}
	return files, nil
}
