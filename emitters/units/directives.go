package units

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/plan"
)

// directive is a line of a unit, with its value as systemd reads it.
type directive struct{ Name, Value string }

// section collects the directives of a section, and the first value that is refused.
type section struct {
	lines []directive
	err   error
}

// add adds a directive unless its value is empty.
func (s *section) add(name, value string, sink func(string) (string, error)) {
	if value != "" {
		s.put(name)(sink(value))
	}
}

func (s *section) put(name string) func(string, error) {
	return func(value string, err error) {
		s.err = cmp.Or(s.err, err)
		s.lines = append(s.lines, directive{name, value})
	}
}

// each adds a directive for each value.
func (s *section) each(name string, values []string, sink func(string) (string, error)) {
	for _, v := range values {
		s.add(name, v, sink)
	}
}

// number adds a directive unless its value is 0.
func (s *section) number(name string, n int64) {
	if n != 0 {
		s.put(name)(strconv.FormatInt(n, 10), nil)
	}
}

func (s *section) optional(name string, n *int) {
	if n != nil {
		s.put(name)(strconv.Itoa(*n), nil)
	}
}

// join adds a directive whose value is a list of words.
func (s *section) join(name string, values []string, sink func(string) (string, error)) {
	words := make([]string, len(values))
	for i, v := range values {
		word, err := sink(v)
		s.err, words[i] = cmp.Or(s.err, err), word
	}
	s.put(name)(strings.Join(words, " "), nil)
}

// sections are the directives of a unit, or of a drop-in.
type sections struct {
	Whole                                  bool
	Unit, Service, Timer, Sandbox, Install []directive
}

// allSections returns what a service consists of.
func allSections(s *plan.Service) (sections, error) {
	unit, service := unitSection(s), serviceSection(s)
	all := sections{Whole: s.IsWhole(), Unit: unit.lines, Service: service.lines}
	if all.Whole && !s.OwnInstall {
		// Also of a service that is not enabled: systemctl enable needs it.
		all.Install = []directive{{"WantedBy", "multi-user.target"}}
	}
	for name, lines := range map[string]*[]directive{"Unit": &all.Unit, "Service": &all.Service, "Install": &all.Install} {
		*lines = withVerbatim(s, s.Verbatim, name, *lines)
	}
	if all.Whole {
		all.Sandbox = sandbox(s, all.Service)
	}
	return all, cmp.Or(unit.err, service.err)
}

// verbatim has directives that a configuration writes as they stand.
type verbatim interface {
	Values(section, name string) []string
}

// withVerbatim adds the verbatim directives of a section. They replace defaults: a rule
// refuses those that a field sets as well.
func withVerbatim(u verbatim, all []plan.Directive, section string, lines []directive) []directive {
	lines = slices.DeleteFunc(lines, func(d directive) bool { return len(u.Values(section, d.Name)) > 0 })
	for _, d := range all {
		if d.Section == section {
			lines = append(lines, directive{d.Name, d.Value})
		}
	}
	return lines
}

// timerSections returns what a timer consists of. In a drop-in its times replace those of the timer.
func timerSections(t *plan.Timer) (sections, error) {
	var unit, timer section
	unit.add("Description", t.Description, quote.SystemdText)
	if t.DropIn && slices.ContainsFunc(t.Fields, plan.Directive.SetsTimes) {
		timer.put("OnCalendar")("", nil) // resets the times of every kind
	}
	for _, d := range t.Fields {
		timer.add(d.Name, d.Value, quote.SystemdValue)
	}
	all := sections{Whole: !t.DropIn, Unit: unit.lines, Timer: timer.lines}
	if all.Whole && !t.OwnInstall {
		all.Install = []directive{{"WantedBy", "timers.target"}}
	}
	for name, lines := range map[string]*[]directive{"Unit": &all.Unit, "Timer": &all.Timer, "Install": &all.Install} {
		*lines = withVerbatim(t, t.Verbatim, name, *lines)
	}
	return all, cmp.Or(unit.err, timer.err)
}

// unitSection returns the directives of [Unit].
func unitSection(s *plan.Service) section {
	var u section
	u.add("Description", s.Description, quote.SystemdText)
	u.each("After", s.After, quote.SystemdUnit)
	u.each("Wants", s.Wants, quote.SystemdUnit)
	u.each("Requires", s.Requires, quote.SystemdUnit)
	u.add("StartLimitIntervalSec", s.Spans["StartLimitIntervalSec"], quote.SystemdWord)
	u.number("StartLimitBurst", int64(s.StartLimitBurst))
	return u
}

// serviceSection returns the directives of [Service].
func serviceSection(s *plan.Service) section {
	var v section
	v.add("Type", s.Type, quote.SystemdWord)
	if len(s.Exec) > 0 {
		v.put("ExecStart")(quote.SystemdExec(s.Exec))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Commands)) {
		for _, command := range s.Commands[name] {
			v.put(name)(quote.SystemdCommand(command))
		}
	}
	v.add("User", s.User, quote.SystemdUser)
	v.add("Group", s.Group, quote.SystemdUser)
	if len(s.Groups) > 0 {
		v.join("SupplementaryGroups", s.Groups, quote.SystemdUser)
	}
	v.add("WorkingDirectory", s.Directory, quote.DevicePath)
	v.add("Slice", s.Slice, quote.SystemdUnit)
	v.add("CPUAffinity", s.CPUs, quote.CPUList)
	v.add("AllowedCPUs", s.CPUs, quote.CPUList)
	v.optional("Nice", s.Nice)
	v.add("CPUSchedulingPolicy", s.Scheduling, quote.SystemdWord)
	v.number("CPUSchedulingPriority", int64(s.Priority))
	v.number("MemoryMax", s.MemoryMax)
	v.number("MemoryHigh", s.MemoryHigh)
	v.number("CPUWeight", int64(s.CPUWeight))
	v.number("IOWeight", int64(s.IOWeight))
	if s.CPUQuota > 0 {
		v.put("CPUQuota")(strconv.Itoa(s.CPUQuota)+"%", nil)
	}
	if s.MemoryLock {
		v.put("LimitMEMLOCK")("infinity", nil)
	}
	v.optional("OOMScoreAdjust", s.OOMScore)
	for _, name := range slices.Sorted(maps.Keys(s.Capabilities)) {
		set := s.Capabilities[name]
		if !s.IsWhole() || len(set) == 0 {
			// The lines of several files add up: an empty one begins anew.
			v.put(name)("", nil)
		}
		if len(set) > 0 {
			v.join(name, set, quote.SystemdWord)
		}
	}
	if s.Restart != "no" || !s.IsWhole() { // systemd's default, which a drop-in restores
		v.add("Restart", s.Restart, quote.SystemdWord)
	}
	for _, name := range []string{"RestartSec", "WatchdogSec", "TimeoutStartSec", "TimeoutStopSec"} {
		v.add(name, s.Spans[name], quote.SystemdWord)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		v.put("Environment")(quote.SystemdEnvironment(name, s.Environment[name]))
	}
	v.each("EnvironmentFile", s.EnvironmentFiles, quote.SystemdOptionalPath)
	return v
}

// sandbox returns the directives of systemd's sandbox, without ProtectClock and PrivateDevices,
// which hide cameras and the GPU, and without MemoryDenyWriteExecute, because CUDA programs
// generate code. What the service sets itself stays as it is.
func sandbox(s *plan.Service, own []directive) []directive {
	if !s.Hardening {
		return nil
	}
	all := []directive{
		{"NoNewPrivileges", "yes"},
		{"ProtectSystem", "full"},
		{"ProtectHome", "yes"},
		{"PrivateTmp", "yes"},
		{"ProtectHostname", "yes"},
		{"ProtectKernelLogs", "yes"},
		{"ProtectKernelModules", "yes"},
		{"ProtectKernelTunables", "yes"},
		{"ProtectControlGroups", "yes"},
		{"RestrictNamespaces", "yes"},
		{"RestrictSUIDSGID", "yes"},
	}
	if s.Scheduling != "fifo" && s.Scheduling != "rr" {
		all = append(all, directive{"RestrictRealtime", "yes"})
	}
	all = append(all,
		directive{"LockPersonality", "yes"},
		directive{"SystemCallArchitectures", "native"},
		directive{"SystemCallFilter", "@system-service"},
		directive{"SystemCallErrorNumber", "EPERM"})
	if !s.IsRoot() {
		all = append(all, directive{"CapabilityBoundingSet", strings.Join(s.Capabilities["AmbientCapabilities"], " ")})
	}
	return slices.DeleteFunc(all, func(d directive) bool {
		return slices.ContainsFunc(own, func(o directive) bool { return o.Name == d.Name })
	})
}
