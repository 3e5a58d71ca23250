package resolve

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/facts/system"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/plan"
)

func (r *resolver) resolveServices() {
	slicesOf, partition := map[string]bool{}, map[string]string{}
	for _, c := range r.c.Services.Sorted() {
		s := r.service(c)
		if c.Slice.IsSet() {
			s.Slice = c.Slice.Text + ".slice"
			slicesOf[s.Slice] = true
			if _, ok := r.origins["services."+s.Slice]; !ok {
				r.origins["services."+s.Slice] = c.Slice.Pos()
			}
			if c.CPUPartition.IsSet() {
				partition[s.Slice] = c.CPUPartition.Text
				r.origins[c.CPUPartition.ID()] = c.CPUPartition.Pos()
			}
		}
		s.Timer = r.timer(c, &s)
		r.t.Services = append(r.t.Services, s)
		r.origins[c.ID()] = c.KeyPos()
		if t := s.Timer; t != nil {
			r.origins["services."+t.Name] = c.Timer.KeyPos()
			if !t.IsTemplate() {
				r.plan.Units = append(r.plan.Units, plan.Unit{Name: t.Name, Properties: t.Properties()})
			}
		}
		if s.IsTemplate() || s.Timer != nil && s.ChangesNothing() {
			continue // systemd runs its instances only; no file is about the service
		}
		r.plan.Units = append(r.plan.Units, plan.Unit{Name: s.Name, CPUs: s.CPUs, Slice: s.Slice,
			IOWeight: s.IOWeight, CPUWeight: s.CPUWeight, CPUQuota: s.CPUQuota,
			MemoryMax: s.MemoryMax, MemoryHigh: s.MemoryHigh, Scheduling: s.Scheduling, Priority: s.Priority, Nice: s.Nice,
			Properties: s.Properties()})
	}
	cpus := cpulist.Format(r.t.Isolated())
	for name := range slicesOf {
		r.t.Slices = append(r.t.Slices, plan.Slice{Name: name, CPUs: cpus})
		r.plan.Units = append(r.plan.Units, plan.Unit{Name: name, CPUs: cpus, CPUPartition: partition[name]})
	}
	slices.SortFunc(r.t.Slices, func(a, b plan.Slice) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(r.plan.Units, func(a, b plan.Unit) int { return strings.Compare(a.Name, b.Name) })
}

// service fills in a service but for its slice. With exec it is a whole unit, which
// has defaults; a drop-in changes only what it names.
func (r *resolver) service(c *config.Service) plan.Service {
	s := plan.Service{
		Name: c.Key(), Description: c.Description.Text, Exec: config.Texts(c.Exec), Type: c.Type.Text,
		User: c.User.Text, Group: c.Group.Text, Directory: c.WorkingDirectory.Text,
		After: config.Names(c.After), Wants: config.Names(c.Wants), Requires: config.Names(c.Requires),
		CPUs: cpulist.Format(config.Cores(c.CPUs)), Scheduling: c.Scheduling.Text, Priority: c.Priority.Value,
		MemoryLock: c.MemoryLock.On, CPUQuota: c.CPUQuota.Value, Restart: c.Restart.Text,
		CPUWeight: c.CPUWeight.Value, IOWeight: c.IOWeight.Value, Enable: c.Enable.On, Hardening: c.Hardening.On,
		EnvironmentFiles: config.Texts(c.EnvironmentFiles), StartLimitBurst: c.StartLimitBurst.Value,
		Commands: map[string][][]string{}, Spans: map[string]string{}, Capabilities: map[string][]string{},
	}
	s.Verbatim = verbatim(c.Unit)
	s.OwnInstall = c.Unit.Has("Install")
	if s.IsWhole() {
		s.Description = c.Description.Or(strings.TrimSuffix(s.Name, ".service"))
		s.Type = c.Type.Or("simple")
		restart := "on-failure"
		if s.Type == "oneshot" || slices.Contains(s.Values("Service", "Type"), "oneshot") || len(s.Values("Service", "Restart")) > 0 {
			restart = "no"
		}
		s.Restart = c.Restart.Or(restart)
		// systemd enables a template by its default instance.
		s.Enable = c.Enable.Or(!s.IsTemplate() || len(s.Values("Install", "DefaultInstance")) > 0)
		s.Hardening = c.Hardening.Or(true)
		if s.Restart != "no" {
			s.Spans["RestartSec"] = "3"
		}
	}
	if c.Nice.IsSet() {
		s.Nice = new(c.Nice.Value)
	}
	if c.OOMScoreAdjust.IsSet() {
		s.OOMScore = new(c.OOMScoreAdjust.Value)
	}
	s.MemoryMax, s.MemoryHigh = r.readBytes(c.MemoryMax), r.readBytes(c.MemoryHigh)
	if c.Environment.IsSet() {
		s.Environment = map[string]string{}
		for _, e := range c.Environment.Entries {
			s.Environment[e.Key()] = e.Text
		}
	}
	for _, g := range c.SupplementaryGroups.Items {
		s.Groups = append(s.Groups, g.Text)
	}
	for name, commands := range map[string]config.List[config.List[config.String]]{
		"ExecStartPre": c.ExecStartPre, "ExecStartPost": c.ExecStartPost, "ExecStop": c.ExecStop, "ExecStopPost": c.ExecStopPost,
	} {
		for _, command := range commands.Items {
			s.Commands[name] = append(s.Commands[name], config.Texts(command))
		}
	}
	for name, span := range map[string]config.Scalar{
		"RestartSec": c.RestartSec.Scalar, "StartLimitIntervalSec": c.StartLimitIntervalSec.Scalar, "WatchdogSec": c.WatchdogSec.Scalar,
		"TimeoutStartSec": c.TimeoutStartSec, "TimeoutStopSec": c.TimeoutStopSec,
	} {
		if span.IsSet() {
			s.Spans[name] = r.timeSpan(span)
		}
	}
	for name, set := range map[string]config.List[config.String]{"AmbientCapabilities": c.AmbientCapabilities, "CapabilityBoundingSet": c.CapabilityBoundingSet} {
		if set.IsSet() {
			s.Capabilities[name] = config.Texts(set)
		}
	}
	return s
}

// verbatim lists the directives under a field unit.
func verbatim(unit config.Map[config.Map[config.NamedScalar]]) []plan.Directive {
	var all []plan.Directive
	for _, section := range unit.Sorted() {
		for _, d := range section.Sorted() {
			for _, v := range d.Elements() {
				all = append(all, plan.Directive{Section: section.Key(), Name: d.Key(), Value: DirectiveValue(v)})
			}
		}
	}
	return all
}

// TimerOf returns the name of a service's timer.
func TimerOf(service string) string { return strings.TrimSuffix(service, ".service") + ".timer" }

// BringsTimer reports whether a recipe of the release, or one that the configuration declares, brings the timer
// of a service, so that the layer changes it by a drop-in. A service of the layer has a timer of the layer.
func (t *Target) BringsTimer(c *config.Service) bool {
	if c.Timer.External.IsSet() || IsWholeUnit(c) {
		return c.Timer.External.On
	}
	_, known := system.FindUnit(t.Release.Name, TimerOf(c.Key()))
	return known
}

// timer resolves the timer of a service; nil if it has none.
func (r *resolver) timer(c *config.Service, s *plan.Service) *plan.Timer {
	if !c.Timer.IsSet() {
		return nil
	}
	t := &plan.Timer{Name: TimerOf(s.Name), DropIn: r.t.BringsTimer(c), Verbatim: verbatim(c.Timer.Unit), OwnInstall: c.Timer.Unit.Has("Install")}
	if !t.DropIn {
		t.Description = "Timer of " + s.Name
		t.Enable = c.Enable.Or(!t.IsTemplate() || len(t.Values("Install", "DefaultInstance")) > 0)
	}
	add := func(name, value string) {
		t.Fields = append(t.Fields, plan.Directive{Section: "Timer", Name: name, Value: value})
	}
	span := func(name string, d config.Duration) {
		if d.IsSet() {
			add(name, r.timeSpan(d.Scalar))
		}
	}
	flag := func(name string, b config.Bool) {
		if b.IsSet() {
			add(name, DirectiveValue(config.Scalar{Place: b.Place}))
		}
	}
	span("OnActiveSec", c.Timer.OnActive)
	span("OnBootSec", c.Timer.OnBoot)
	span("OnStartupSec", c.Timer.OnStartup)
	span("OnUnitActiveSec", c.Timer.OnUnitActive)
	span("OnUnitInactiveSec", c.Timer.OnUnitInactive)
	for _, event := range c.Timer.OnCalendar.Items {
		add("OnCalendar", event.Text)
	}
	flag("OnClockChange", c.Timer.OnClockChange)
	flag("OnTimezoneChange", c.Timer.OnTimezoneChange)
	span("AccuracySec", c.Timer.Accuracy)
	span("RandomizedDelaySec", c.Timer.RandomizedDelay)
	flag("FixedRandomDelay", c.Timer.FixedRandomDelay)
	flag("Persistent", c.Timer.Persistent)
	flag("WakeSystem", c.Timer.WakeSystem)
	flag("RemainAfterElapse", c.Timer.RemainAfterElapse)
	if s.IsWhole() && !s.OwnInstall {
		s.Enable, s.OwnInstall = false, true // the timer starts it
	}
	return t
}

// DirectiveValue writes a value of a directive as systemd reads it.
func DirectiveValue(v config.Scalar) string {
	switch {
	case v.Kind() != load.Bool:
		return v.Text
	case v.IsTrue():
		return "yes"
	}
	return "no"
}

// IsWholeUnit reports whether a service's configuration has its command: the layer then
// writes the whole unit.
func IsWholeUnit(c *config.Service) bool {
	if len(c.Exec.Items) > 0 {
		return true
	}
	command := c.Unit.Get("Service").Get("ExecStart")
	elements := command.Elements()
	return command.IsSet() && len(elements) > 0 && DirectiveValue(elements[0]) != ""
}

// timeSpan writes a duration, or "infinity", as systemd.time(7) has it, which counts
// microseconds.
func (r *resolver) timeSpan(span config.Scalar) string {
	if span.Text == "infinity" {
		return span.Text
	}
	us, _ := r.wholeDuration(config.Duration{Scalar: span}, 1000)
	switch {
	case us%1_000_000 == 0:
		return strconv.FormatInt(us/1_000_000, 10)
	case us%1000 == 0:
		return strconv.FormatInt(us/1000, 10) + "ms"
	}
	return strconv.FormatInt(us, 10) + "us"
}
