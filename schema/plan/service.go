package plan

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ServiceField is a field of a service and the directives that it sets, with their sections,
// after those older names of theirs that systemd still reads.
type ServiceField struct {
	Field      string
	Directives []string
}

// ServiceFields lists the fields of a service that set directives.
func ServiceFields() []ServiceField {
	return []ServiceField{
		{"description", []string{"Unit.Description"}},
		{"after", []string{"Unit.After"}},
		{"wants", []string{"Unit.Wants"}},
		{"requires", []string{"Unit.Requires"}},
		{"startLimitIntervalSec", []string{"Unit.StartLimitIntervalSec", "Unit.StartLimitInterval", "Service.StartLimitInterval"}},
		{"startLimitBurst", []string{"Unit.StartLimitBurst", "Service.StartLimitBurst"}},
		{"exec", []string{"Service.ExecStart"}},
		{"execStartPre", []string{"Service.ExecStartPre"}},
		{"execStartPost", []string{"Service.ExecStartPost"}},
		{"execStop", []string{"Service.ExecStop"}},
		{"execStopPost", []string{"Service.ExecStopPost"}},
		{"type", []string{"Service.Type"}},
		{"user", []string{"Service.User"}},
		{"group", []string{"Service.Group"}},
		{"supplementaryGroups", []string{"Service.SupplementaryGroups"}},
		{"workingDirectory", []string{"Service.WorkingDirectory"}},
		{"slice", []string{"Service.Slice"}},
		{"environment", []string{"Service.Environment"}},
		{"environmentFiles", []string{"Service.EnvironmentFile"}},
		{"cpus", []string{"Service.CPUAffinity", "Service.AllowedCPUs"}},
		{"nice", []string{"Service.Nice"}},
		{"scheduling", []string{"Service.CPUSchedulingPolicy"}},
		{"priority", []string{"Service.CPUSchedulingPriority"}},
		{"memoryMax", []string{"Service.MemoryMax", "Service.MemoryLimit"}},
		{"memoryHigh", []string{"Service.MemoryHigh"}},
		{"cpuWeight", []string{"Service.CPUWeight", "Service.CPUShares"}},
		{"ioWeight", []string{"Service.IOWeight", "Service.BlockIOWeight"}},
		{"cpuQuota", []string{"Service.CPUQuota"}},
		{"memoryLock", []string{"Service.LimitMEMLOCK"}},
		{"oomScoreAdjust", []string{"Service.OOMScoreAdjust"}},
		{"ambientCapabilities", []string{"Service.AmbientCapabilities"}},
		{"capabilityBoundingSet", []string{"Service.CapabilityBoundingSet"}},
		{"restart", []string{"Service.Restart"}},
		{"restartSec", []string{"Service.RestartSec"}},
		{"watchdogSec", []string{"Service.WatchdogSec"}},
		{"timeoutStartSec", []string{"Service.TimeoutStartSec", "Service.TimeoutSec"}},
		{"timeoutStopSec", []string{"Service.TimeoutStopSec", "Service.TimeoutSec"}},
	}
}

// TimerFields lists the fields of a timer that set directives.
func TimerFields() []ServiceField {
	return []ServiceField{
		{"onActive", []string{"Timer.OnActiveSec"}},
		{"onBoot", []string{"Timer.OnBootSec"}},
		{"onStartup", []string{"Timer.OnStartupSec"}},
		{"onUnitActive", []string{"Timer.OnUnitActiveSec"}},
		{"onUnitInactive", []string{"Timer.OnUnitInactiveSec"}},
		{"onCalendar", []string{"Timer.OnCalendar"}},
		{"onClockChange", []string{"Timer.OnClockChange"}},
		{"onTimezoneChange", []string{"Timer.OnTimezoneChange"}},
		{"accuracy", []string{"Timer.AccuracySec"}},
		{"randomizedDelay", []string{"Timer.RandomizedDelaySec"}},
		{"fixedRandomDelay", []string{"Timer.FixedRandomDelay"}},
		{"persistent", []string{"Timer.Persistent"}},
		{"wakeSystem", []string{"Timer.WakeSystem"}},
		{"remainAfterElapse", []string{"Timer.RemainAfterElapse"}},
	}
}

// Properties returns what systemd must show of a timer.
func (t *Timer) Properties() map[string]string {
	all := map[string]string{}
	if t.DropIn {
		all["DropInPaths"] = path.Join("lib/systemd/system", t.Name+".d", "50-yoctune.conf")
	} else {
		all["FragmentPath"] = path.Join("lib/systemd/system", t.Name)
	}
	for _, d := range t.Fields {
		switch d.Name {
		case "AccuracySec", "RandomizedDelaySec":
			all[strings.TrimSuffix(d.Name, "Sec")+"USec"] = microseconds(d.Name, d.Value)
		case "FixedRandomDelay", "Persistent", "WakeSystem", "RemainAfterElapse", "OnClockChange", "OnTimezoneChange":
			all[d.Name] = d.Value
		}
	}
	return all
}

// Infinity is the text of a property without a limit.
const Infinity = "infinity"

// Properties returns what systemd must show of the service while it runs: properties of its
// D-Bus interface, with the lines of lists joined. What the cgroup and the processes show is not among them.
func (s *Service) Properties() map[string]string {
	all := map[string]string{}
	add := func(name, value string) {
		if value != "" {
			all[name] = value
		}
	}
	list := func(name string, lines []string) {
		lines = slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.Contains(l, "\n") })
		add(name, strings.Join(lines, "\n"))
	}
	if s.IsWhole() {
		add("FragmentPath", path.Join("lib/systemd/system", s.Name))
	} else {
		add("DropInPaths", path.Join("lib/systemd/system", s.Name+".d", "50-yoctune.conf"))
	}
	for name, value := range map[string]string{"Type": s.Type, "User": s.User, "Group": s.Group, "WorkingDirectory": s.Directory, "Restart": s.Restart} {
		add(name, value)
	}
	for name, units := range map[string][]string{"After": s.After, "Wants": s.Wants, "Requires": s.Requires, "SupplementaryGroups": s.Groups, "EnvironmentFiles": s.EnvironmentFiles} {
		list(name, units)
	}
	var environment []string
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		environment = append(environment, name+"="+s.Environment[name])
	}
	list("Environment", environment)
	for directive, span := range s.Spans {
		add(strings.TrimSuffix(directive, "Sec")+"USec", microseconds(directive, span))
	}
	for name, set := range s.Capabilities {
		all[name] = strings.Join(slices.Sorted(slices.Values(set)), "\n") // also an empty one
	}
	if s.StartLimitBurst > 0 {
		add("StartLimitBurst", strconv.Itoa(s.StartLimitBurst))
	}
	if s.OOMScore != nil {
		add("OOMScoreAdjust", strconv.Itoa(*s.OOMScore))
	}
	if s.MemoryLock {
		add("LimitMEMLOCK", Infinity)
	}
	return all
}

// microseconds returns a time span of a unit as systemd shows it. A timeout of 0 is none.
func microseconds(directive, span string) string {
	if span == Infinity || span == "0" && strings.HasPrefix(directive, "Timeout") {
		return Infinity
	}
	if !strings.HasSuffix(span, "s") {
		span += "s"
	}
	d, err := time.ParseDuration(span)
	if err != nil {
		return ""
	}
	return strconv.FormatInt(d.Microseconds(), 10)
}
