package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/formats/calendar"
	"github.com/yoctune/yoctune/schema/plan"
)

// The rules of this file are about the timers of services.
func timerRules() []Rule {
	const see = "systemd.timer(5)"
	return []Rule{
		{
			ID: "timer-times", Severity: diag.Error, Firm: true,
			Title: "a timer without times",
			Cause: "systemd refuses to load a timer that nothing triggers. A trigger that is off is none.",
			Fix:   "add onCalendar, onBoot or another time",
			Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], timer: persistent: true}`,
			Right: `services: "a.service": {exec: ["/usr/bin/yes"], timer: {onCalendar: ["daily"], persistent: true}}`,
			See:   see,
			run:   checkTimerTimes,
		},
		{
			ID: "timer-calendar", Severity: diag.Error, Firm: true,
			Title: "invalid times of the calendar",
			Cause: "systemd skips a line that it cannot read, and waits for ever for a day that does not exist.",
			Fix:   `write times such as "daily", "Mon..Fri 08:00" or "*:0/15"; systemd-analyze calendar shows what they mean`,
			Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], timer: onCalendar: ["Mo 8"]}`,
			Right: `services: "a.service": {exec: ["/usr/bin/yes"], timer: onCalendar: ["Mon 08:00"]}`,
			See:   "systemd.time(7), calendar events",
			run:   checkTimerCalendar,
		},
		{
			ID: "timer-first", Severity: diag.Warning,
			Title: "nothing starts the service for the first time",
			Cause: "onUnitActive and onUnitInactive count from the last start or end of the service, and there is none before another trigger, another unit or a user starts it.",
			Fix:   "add onBoot or onActive",
			Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], timer: onUnitActive: "1h"}`,
			Right: `services: "a.service": {exec: ["/usr/bin/yes"], timer: {onBoot: "1min", onUnitActive: "1h"}}`,
			See:   see,
			run:   checkTimerFirst,
		},
		{
			ID: "timer-accuracy", Severity: diag.Warning,
			Title: "the timer is less accurate than its period",
			Cause: "systemd may start the service later by accuracy, which is 1 min by default, so that timers wake the device together. A shorter period is not kept.",
			Fix:   "set accuracy to a part of the period",
			Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], timer: {onBoot: "1s", onUnitActive: "10s"}}`,
			Right: `services: "a.service": {exec: ["/usr/bin/yes"], timer: {onBoot: "1s", onUnitActive: "10s", accuracy: "100ms"}}`,
			See:   see + ", AccuracySec=",
			run:   checkTimerAccuracy,
		},
		{
			ID: "timer-persistent", Severity: diag.Warning,
			Title: "persistent has no effect",
			Cause: "systemd stores the last start of a timer with onCalendar only, in /var/lib/systemd/timers. What is in memory is lost when the device is off.",
			Fix:   "add onCalendar and keep /var/lib on a disk, or remove persistent",
			Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], timer: {onBoot: "1h", persistent: true}}`,
			Right: `services: "a.service": {exec: ["/usr/bin/yes"], timer: {onCalendar: ["daily"], persistent: true}}`,
			See:   see + ", Persistent=",
			run:   checkTimerPersistent,
		},
		{
			ID: "timer-running", Severity: diag.Warning,
			Title: "the timer finds the service running",
			Cause: "A timer starts a service that is not active. One that systemd restarts whenever it ends, or that stays active after its end, is started once.",
			Fix:   "let the service end: leave restart at \"no\" or \"on-failure\", and RemainAfterExit out",
			Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], restart: "always", timer: onCalendar: ["hourly"]}`,
			Right: `services: "a.service": {exec: ["/usr/bin/yes"], type: "oneshot", timer: onCalendar: ["hourly"]}`,
			See:   see,
			run:   checkTimerRunning,
		},
		{
			ID: "timer-unit", Severity: diag.Error, Firm: true,
			Title: "the timer starts another unit",
			Cause: "The timer belongs to a service, and Unit= in its section [Timer] makes it start another one.",
			Fix:   "write the timer at the service that it starts",
			Wrong: `services: "a.service": {exec: ["/usr/bin/yes"], timer: {onCalendar: ["daily"], unit: Timer: Unit: "b.service"}}`,
			Right: `services: "a.service": {exec: ["/usr/bin/yes"], timer: onCalendar: ["daily"]}`,
			See:   see + ", Unit=",
			run:   checkTimerUnit,
		},
	}
}

// timed are the services with a timer, in the configuration and in the plan.
func (s *subject) timed() func(func(*config.Service, *plan.Service) bool) {
	return func(yield func(*config.Service, *plan.Service) bool) {
		for i := range s.Services {
			if svc := &s.Services[i]; svc.Timer != nil && !yield(s.Config.Services.Get(svc.Name), svc) {
				return
			}
		}
	}
}

// timesOf lists the directives that trigger a timer, of fields and verbatim.
func timesOf(t *plan.Timer) []plan.Directive {
	return slices.DeleteFunc(slices.Concat(t.Fields, t.Verbatim), func(d plan.Directive) bool {
		isEvent := d.Section == "Timer" && (d.Name == "OnClockChange" || d.Name == "OnTimezoneChange") && isOn(d.Value)
		return d.Value == "" || !isEvent && !d.SetsTimes()
	})
}

// isOn reports whether systemd reads a value as true.
func isOn(value string) bool {
	return slices.Contains([]string{"1", "yes", "y", "true", "t", "on"}, strings.ToLower(value))
}

func checkTimerTimes(s *subject) {
	for c, svc := range s.timed() {
		if !svc.Timer.DropIn && len(timesOf(svc.Timer)) == 0 {
			s.reportKey(c.Timer, "", "nothing triggers %s", svc.Timer.Name)
		}
	}
}

func checkTimerCalendar(s *subject) {
	for c := range s.timed() {
		for _, event := range c.Timer.OnCalendar.Items {
			if err := calendar.Check(event.Text); err != nil {
				s.reportAt(event, event.Show(), "", "invalid time of the calendar: %v", err)
			}
		}
	}
}

func checkTimerFirst(s *subject) {
	for c, svc := range s.timed() {
		times := timesOf(svc.Timer)
		isRelative := func(d plan.Directive) bool { return strings.HasPrefix(d.Name, "OnUnit") }
		if len(times) == 0 || svc.Timer.DropIn || !svc.IsWhole() || s.isAskedFor(svc.Name) || c.Unit.Has("Install") ||
			slices.ContainsFunc(times, func(d plan.Directive) bool { return !isRelative(d) }) {
			continue
		}
		s.reportAt(config.FirstSet(c.Timer.OnUnitActive, c.Timer.OnUnitInactive, c.Timer), "", "", "%s waits for a start of %s that nothing causes", svc.Timer.Name, svc.Name)
	}
}

// accuracyNS is systemd's default of AccuracySec=, in nanoseconds.
const accuracyNS = 60_000_000_000

func checkTimerAccuracy(s *subject) {
	for c, svc := range s.timed() {
		if svc.Timer.DropIn || len(svc.Timer.Values("Timer", "AccuracySec")) > 0 {
			continue
		}
		accuracy, by := int64(accuracyNS), "the default of accuracy, 1 min,"
		if c.Timer.Accuracy.IsSet() {
			n, err := resolve.Duration(c.Timer.Accuracy.Node())
			if err != nil {
				continue
			}
			accuracy, by = n, "accuracy"
		}
		for _, period := range []config.Duration{c.Timer.OnUnitActive, c.Timer.OnUnitInactive} {
			if !period.IsSet() {
				continue
			}
			if n, err := resolve.Duration(period.Node()); err == nil && n > 0 && n < accuracy {
				s.reportAt(period, period.Show(), fmt.Sprintf(`add accuracy: "%s"`, partOf(n)), "%s is longer than the %s of %s", by, period.Key(), svc.Timer.Name)
			}
		}
	}
}

// partOf writes a tenth of a period, in microseconds at least.
func partOf(ns int64) string {
	switch us := max(ns/10_000, 1); {
	case us%1_000_000 == 0:
		return fmt.Sprintf("%ds", us/1_000_000)
	case us%1000 == 0:
		return fmt.Sprintf("%dms", us/1000)
	default:
		return fmt.Sprintf("%dus", us)
	}
}

func checkTimerPersistent(s *subject) {
	for c, svc := range s.timed() {
		persistent := c.Timer.Persistent
		if !persistent.On || svc.Timer.DropIn {
			continue
		}
		if !slices.ContainsFunc(timesOf(svc.Timer), func(d plan.Directive) bool { return d.Name == "OnCalendar" }) {
			s.reportAt(persistent, persistent.Show(), "add onCalendar, or remove persistent", "%s has no onCalendar", svc.Timer.Name)
		}
		for _, m := range s.Config.Tmpfs.Entries {
			if folder := m.Key(); folder == "/var" || strings.HasPrefix("/var/lib/systemd/timers/", folder+"/") {
				s.reportAt(persistent, persistent.Show(), "keep "+folder+" on a disk, or remove persistent", "the last start of %s is lost with %s", svc.Timer.Name, folder).addRelated(m, "this folder is in memory")
			}
		}
	}
}

func checkTimerRunning(s *subject) {
	for c, svc := range s.timed() {
		at, restart := effective(c, c.Restart, "Restart")
		if restart == "always" || restart == "on-success" {
			s.reportAt(at, at.Show(), "", "systemd restarts %s whenever it ends, and %s finds it running", svc.Name, svc.Timer.Name)
		}
		if stays := c.Unit.Get("Service").Get("RemainAfterExit"); stays.IsSet() && isOn(resolve.DirectiveValue(stays.Scalar)) {
			s.reportAt(stays, stays.Show(), "", "%s stays active after its end, and %s starts it once", svc.Name, svc.Timer.Name)
		}
	}
}

func checkTimerUnit(s *subject) {
	for c, svc := range s.timed() {
		if other := c.Timer.Unit.Get("Timer").Get("Unit"); other.IsSet() && other.Text != svc.Name {
			s.reportAt(other, other.Show(), "", "%s is the timer of %s", svc.Timer.Name, svc.Name)
		}
	}
}
