// Package plugin loads stages written as C plug-ins (yoctune_stage.h), into a process of their own
// or into this one.
package plugin

import (
	_ "embed"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom"
)

// Header is the C header for plug-ins.
//
//go:embed yoctune_stage.h
var Header string

// Serve hosts a plug-in in this process and serves the pipeline that started it. It returns at the end of its
// input.
func Serve(path string) error {
	custom.SpareParent()
	var p *Plugin
	defer func() {
		if p != nil {
			p.Close()
		}
	}()
	return custom.Serve(func(s *custom.Stage) (_ custom.Run, err error) {
		p, err = Load(path, s.In, s.Out, s.Options, custom.Reports{Metric: s.Metric, Event: s.Report})
		if err != nil {
			return nil, err
		}
		diePlainly()
		return p.Run, nil
	})
}
