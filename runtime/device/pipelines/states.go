package pipelines

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// State is a pipeline of a plan, and what becomes of it on the device.
type State struct {
	Pipeline string `json:"pipeline"`
	Start    bool   `json:"start"`   // the plan wants its unit enabled
	Enabled  bool   `json:"enabled"` // systemd starts its unit at boot
	Running  *bool  `json:"running"` // null if it is unknown
	PID      int    `json:"pid,omitempty"`
	Why      string `json:"why,omitempty"` // it is unknown whether it runs
}

// wantsDirs are where systemd finds the units to start at boot.
var wantsDirs = [...]string{"/etc/systemd/system/multi-user.target.wants", "/usr/lib/systemd/system/multi-user.target.wants"}

// States returns the pipelines of a plan by name. dirs hold the sockets of those that run.
func States(dev rootfs.FS, dirs []string, p *plan.Plan) []State {
	if len(p.Pipelines) == 0 {
		return nil
	}
	var wanted []string
	for _, dir := range wantsDirs {
		names, _ := dev.List(dir) // a folder that is absent enables nothing
		wanted = append(wanted, names...)
	}
	var out []State
	for _, name := range slices.Sorted(maps.Keys(p.Pipelines)) {
		s := State{Pipeline: name, Start: p.Pipelines[name].Start, Enabled: slices.Contains(wanted, "yoctuned-pipeline@"+name+".service")}
		s.look(dirs)
		out = append(out, s)
	}
	return out
}

// look finds out whether a pipeline runs.
func (s *State) look(dirs []string) {
	for _, dir := range dirs {
		switch p, err := Read(Path(dir, s.Pipeline), DecodeProgress); {
		case err == nil:
			s.Running, s.PID, s.Why = new(true), p.PID, ""
			return
		case !errors.Is(err, ErrNotRunning) || errors.Is(err, fs.ErrPermission):
			s.Why = err.Error()
		}
	}
	if s.Why == "" {
		s.Running = new(false)
	}
}

// Idle reports whether a pipeline that the plan starts does not run.
func (s State) Idle() bool { return s.Start && s.Running != nil && !*s.Running }

// String describes the state in a few words.
func (s State) String() string {
	text := "not enabled"
	switch {
	case s.Enabled:
		text = "enabled"
	case s.Start:
		text = "not enabled, although the plan starts it at boot"
	}
	switch {
	case s.Running == nil:
		return fmt.Sprintf("%s: %s; unknown whether it runs: %s", s.Pipeline, text, s.Why)
	case *s.Running:
		return fmt.Sprintf("%s: running as pid %d, %s", s.Pipeline, s.PID, text)
	}
	return fmt.Sprintf("%s: not running, %s", s.Pipeline, text)
}

// Summary counts the states: "1 of 2 running, 2 enabled".
func Summary(states []State) string {
	running, enabled, unknown := 0, 0, 0
	for _, s := range states {
		if s.Enabled {
			enabled++
		}
		switch {
		case s.Running == nil:
			unknown++
		case *s.Running:
			running++
		}
	}
	text := fmt.Sprintf("%d of %d running, %d enabled", running, len(states), enabled)
	if unknown > 0 {
		text += fmt.Sprintf(", %d unknown", unknown)
	}
	return text
}
