package doctor

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/formats/sysctld"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

func checkPlan(in *Input) answer {
	switch {
	case in.Refused != "":
		return answer{Fail, in.Refused, "see 'yoctuned status'; no setting is applied until this is fixed"}
	case in.Plan == nil:
		return answer{Warn, "no plan", "install an image that contains the layer, or pass a plan: yoctuned doctor plan.json"}
	}
	return answer{OK, fmt.Sprintf("%s on %s, serial %d, %d settings", in.Plan.Target, in.Plan.Board, in.Plan.Serial, len(in.Plan.Settings)), ""}
}

func checkSettings(in *Input) answer {
	if in.Plan == nil {
		return answer{Skipped, "no plan", ""}
	}
	var bad []string
	has := map[outcome.Outcome]bool{}
	for _, r := range in.Results {
		if !r.Satisfied() {
			bad = append(bad, fmt.Sprintf("%s (%s)", r.Label(), r.Outcome))
			has[r.Outcome] = true
		}
	}
	if len(bad) > 0 {
		advice := "'yoctuned verify' lists the reasons"
		if has[outcome.Differs] {
			advice += "; 'yoctuned apply' applies settings that differ"
		}
		if has[outcome.Pending] {
			advice += "; pending settings need an image of the plan's layer, or a reboot if the device runs one"
		}
		return answer{Fail, fmt.Sprintf("%d of %d nodes: %s", len(bad), len(in.Results), joinSome(bad)), advice}
	}
	return answer{OK, fmt.Sprintf("%d nodes of %d settings", len(in.Results), len(in.Plan.Settings)), ""}
}

func checkPipelines(in *Input) answer {
	switch {
	case in.Plan == nil:
		return answer{Skipped, "no plan", ""}
	case len(in.Pipelines) == 0:
		return answer{Skipped, "the plan has no pipelines", ""}
	}
	var idle []string
	for _, s := range in.Pipelines {
		if s.Idle() || s.Start && !s.Enabled {
			idle = append(idle, s.String())
		}
	}
	if len(idle) > 0 {
		return answer{Warn, joinSome(idle), "systemctl status 'yoctuned-pipeline@*' and journalctl -u 'yoctuned-pipeline@*' show why"}
	}
	return answer{OK, pipelines.Summary(in.Pipelines), ""}
}

// owner is a program that changes settings of a domain.
type owner struct{ comm, domain, advice string }

func owners() []owner {
	return []owner{
		{"tuned", "", "systemctl disable --now tuned"},
		{"power-profiles-", "", "systemctl disable --now power-profiles-daemon"},
		{"auto-cpufreq", plan.DomainCPU, "systemctl disable --now auto-cpufreq"},
		{"thermald", plan.DomainCPU, "systemctl disable --now thermald"},
		{"irqbalance", plan.DomainIRQ, "systemctl disable --now irqbalance, or exclude the plan's interrupts with --banirq"},
		{"jtop", plan.DomainCPU, "jtop's service may lock clocks and control the fan: systemctl disable --now jtop"},
	}
}

func checkOwners(in *Input) answer {
	var found, advice []string
	verdict := OK
	if in.Watch != nil && in.Watch.PID != 0 {
		for _, c := range in.Watch.Contested {
			who := "an unknown process"
			if c.By != nil {
				who = c.By.String()
			}
			verdict = Fail
			found = append(found, outcome.Name(c.Path)+" by "+who)
			advice = append(advice, "stop the program that changes "+outcome.Name(c.Path))
		}
	}
	running, _ := rootfs.RunningProcesses(in.Dev) // without /proc no owner is found
	for _, o := range owners() {
		if !slices.ContainsFunc(running, func(p rootfs.RunningProcess) bool { return strings.HasPrefix(p.Name, o.comm) }) || o.domain != "" && !in.hasSettings(o.domain) {
			continue
		}
		if o.domain == "" && in.Plan == nil {
			continue
		}
		if verdict == OK {
			verdict = Warn
		}
		found, advice = append(found, o.comm+" is running"), append(advice, o.advice)
	}
	if verdict == OK {
		return answer{OK, "0", ""}
	}
	return answer{verdict, joinSome(found), strings.Join(advice, "; ")}
}

// Services returns the units whose state belongs in [Input.Units].
func Services() []string {
	return []string{"nvpmodel.service", "nvpower.service", "jetson_clocks.service", "jetsonclocks.service", "nvfancontrol.service"}
}

// unitFault returns what is wrong with a unit and what to do, or OK. The zero state is unknown.
func unitFault(name string, u rootfs.UnitState) (v Verdict, what, advice string) {
	switch {
	case u.Load == "not-found":
	case u.Active == "failed" && name == "nvpmodel.service":
		return Fail, name + " failed", "nvpmodel leaves the mode half applied at the first missing node: journalctl -b -u " + name
	case u.Active == "failed":
		return Fail, name + " failed", "journalctl -b -u " + name
	case strings.HasPrefix(name, "jetson") && (u.Active == "active" || u.Active == "activating"):
		return Warn, name + " is running", "it locks clocks that the plan sets: systemctl disable --now " + name
	}
	return OK, "", ""
}

func checkServices(in *Input) answer {
	if in.Modes == nil && in.Units == nil {
		return answer{Skipped, "no power modes on this device", ""}
	}
	verdict := OK
	var found, advice []string
	addFault := func(v Verdict, what, do string) {
		found, advice = append(found, what), append(advice, do)
		if verdict == OK || v == Fail {
			verdict = v
		}
	}
	for _, name := range Services() {
		if v, what, do := unitFault(name, in.Units[name]); v != OK {
			addFault(v, what, do)
		}
	}
	if clocksLocked(in) {
		addFault(Warn, "every CPU clock is locked at its maximum", "jetson_clocks was run: 'jetson_clocks --restore' or a reboot restores the clocks")
	}
	switch {
	case verdict != OK:
		return answer{verdict, joinSome(found), strings.Join(advice, "; ")}
	case in.Units == nil:
		return answer{Unknown, "", "the state of nvpmodel.service cannot be read from systemd"}
	}
	return answer{OK, "no unit failed, no clock locked", ""}
}

// clocksLocked reports whether all CPU policies are fixed at their maximum, as jetson_clocks
// leaves them, and the plan does not request that.
func clocksLocked(in *Input) bool {
	policies, err := rootfs.Nodes(in.Dev, rootfs.ClassCPUFreq)
	if err != nil || len(policies) == 0 || in.Modes == nil {
		return false
	}
	for _, p := range policies {
		low, high, top := in.readText(p.Path+"/scaling_min_freq"), in.readText(p.Path+"/scaling_max_freq"), in.readText(p.Path+"/cpuinfo_max_freq")
		if low == "" || low != high || high != top {
			return false
		}
	}
	if in.Plan == nil {
		return true
	}
	return !slices.ContainsFunc(in.Plan.Settings, func(s plan.Setting) bool { return strings.HasSuffix(s.Select.Attr, "scaling_min_freq") })
}

// sysctlDirs returns the directories of sysctl settings. Of files with the same name the
// first one is used (sysctl.d(5)).
func sysctlDirs() []string {
	return []string{"/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"}
}

// checkSysctls finds files that set a sysctl of the plan to another value.
func checkSysctls(in *Input) answer {
	want := map[string]plan.Setting{}
	if in.Plan != nil {
		for _, s := range in.Plan.Settings {
			if _, ok := knob.SysctlKey(s.Select.Path); ok {
				want[s.Select.Path] = s
			}
		}
	}
	if len(want) == 0 {
		return answer{Skipped, "no plan sets a sysctl", ""}
	}
	var found []string
	lines := readSysctls(in.Dev)
	for node, s := range want {
		if l, ok := effectiveLine(lines, node); ok && !acceptsValue(s, l.Value) {
			found = append(found, fmt.Sprintf("%s=%s in %s:%d", outcome.Name(node), l.Value, l.file, l.number))
		}
	}
	if len(found) == 0 {
		return answer{OK, fmt.Sprintf("%d sysctls, no other file sets different values", len(want)), ""}
	}
	slices.Sort(found)
	return answer{Warn, joinSome(found), "yoctuned overrides them after boot; remove these lines, since they mislead readers of the files"}
}

// sysctlLine is a line of a file of sysctl.d.
type sysctlLine struct {
	sysctld.Line
	file   string
	number int
}

// readSysctls reads the lines of all files, in the order in which they act.
func readSysctls(dev rootfs.FS) []sysctlLine {
	var lines []sysctlLine
	for _, file := range sysctlFiles(dev) {
		b, err := dev.ReadFile(file, 1<<20)
		if err != nil {
			continue
		}
		for i, text := range strings.Split(string(b), "\n") {
			if l := sysctld.ParseLine(text); l.Kind != sysctld.Other {
				lines = append(lines, sysctlLine{l, file, i + 1})
			}
		}
	}
	return lines
}

// effectiveLine finds the line that sets a node, as systemd-sysctl does: the last one with
// its name; without one, the last pattern, unless a line excludes the node from patterns.
func effectiveLine(lines []sysctlLine, node string) (last sysctlLine, ok bool) {
	named, excluded := false, false
	for _, l := range lines {
		switch name := knob.SysctlPath(l.Key); {
		case sysctld.IsGlob(l.Key):
			if !named && l.Kind == sysctld.Assignment && rootfs.Glob(name, node) {
				last, ok = l, true
			}
		case name != node:
		case l.Kind == sysctld.Exclusion:
			excluded = true
		default:
			last, ok, named = l, true, true
		}
	}
	return last, ok && (named || !excluded)
}

// acceptsValue reports whether a setting accepts a value.
func acceptsValue(s plan.Setting, value string) bool {
	f, err := knob.Parse(s.Type, value)
	if err != nil {
		return false
	}
	ok, err := knob.Satisfies(s.Type, s.Compare, s.Want, f)
	return err == nil && ok
}

// sysctlFiles returns the files in the order in which they are read.
func sysctlFiles(dev rootfs.FS) []string {
	at := map[string]string{}
	for _, dir := range sysctlDirs() {
		names, err := dev.List(dir)
		if err != nil {
			continue
		}
		for _, n := range names {
			if _, hidden := at[n]; !hidden && strings.HasSuffix(n, ".conf") {
				at[n] = path.Join(dir, n)
			}
		}
	}
	var out []string
	for _, n := range slices.Sorted(maps.Keys(at)) {
		out = append(out, at[n])
	}
	// procps reads this file last. systemd reads it through a link in /etc/sysctl.d.
	return append(out, "/etc/sysctl.conf")
}
