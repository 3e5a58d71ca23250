// Package sysctl writes sysctl.d/95-yoctune.conf, so that kernel parameters are
// in force from early boot. The BSP's own files go up to 90.
package sysctl

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed sysctl.conf.tmpl
var text string

type entry struct {
	plan.Setting
	Node string // path below /proc/sys
	Rule string
}

// Emit returns one file for each target that sets kernel parameters.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	t := emitters.NewTemplate("sysctl", text)
	var files []emitters.File
	for _, target := range l.Targets {
		data := struct {
			Layer, Target string
			Enforced      bool
			Now, Later    []entry
		}{Layer: l.Name, Target: target.Name, Enforced: l.Runtime.Installed()}
		for _, s := range target.Plan.Settings {
			if s.Domain != plan.DomainSysctl || s.Policy == plan.Report {
				continue
			}
			node, ok := strings.CutPrefix(s.Select.Path, knob.SysctlDir)
			if !ok {
				return nil, &emitters.Error{Emitter: "sysctl", Ref: emitters.Ref{Target: target.Name, ID: s.ID},
					Err: fmt.Errorf("the node %q is not below %s", s.Select.Path, knob.SysctlDir)}
			}
			// sysctl.d can only assign: a floor or a list of
			// alternatives written so could make things worse.
			switch s.Compare {
			case plan.Exact, "":
				data.Now = append(data.Now, entry{s, node, ""})
			case plan.AtLeast:
				data.Later = append(data.Later, entry{s, node, "at least"})
			case plan.AtMost:
				data.Later = append(data.Later, entry{s, node, "at most"})
			default:
				data.Later = append(data.Later, entry{s, node, "the first available of"})
			}
		}
		if len(data.Now)+len(data.Later) == 0 {
			continue
		}
		var means []emitters.Meaning
		for _, s := range data.Now {
			means = append(means, emitters.Meaning{Kind: emitters.Setting, Name: s.ID, Value: s.Want})
		}
		f, err := t.Fill(emitters.NewDeviceFile(l, target, "95-yoctune.conf", "${sysconfdir}/sysctl.d/95-yoctune.conf"), data)
		if err != nil {
			return nil, err
		}
		f.Means = means
		files = append(files, f)
	}
	return files, nil
}
