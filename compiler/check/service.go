package check

import (
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/plan"
)

func serviceRules() []Rule {
	return []Rule{
		{
			ID: "service-exec", Severity: diag.Error, Firm: true,
			Title: "the service's program is not an absolute path",
			Cause: "systemd runs only absolute paths, and the signs @ - : + ! | before the path change how systemd runs the program. Only the commands before and after exec take \"-\" and \"+\".",
			Fix:   `write the absolute path of the program, such as "/usr/bin/vision"`,
			Wrong: `services: "a.service": exec: ["+bin/x"]`, Right: `services: "a.service": exec: ["/usr/bin/x"]`,
			See: "systemd.service(5)",
			run: checkServiceExec,
		},
		{
			ID: "service-reserved", Severity: diag.Error, Firm: true,
			Title: "the unit belongs to the system or to yoctune",
			Cause: "Every image has a unit of that name, and a second one would replace it.",
			Fix:   "choose another name; without exec the entry is a drop-in, which is allowed",
			Wrong: `services: "dbus.service": exec: ["/usr/bin/x"]`,
			See:   "systemd.unit(5)",
			run:   checkServiceReserved,
		},
		{
			ID: "service-priority", Severity: diag.Error, Firm: true,
			Title: "real-time priority and scheduling policy do not match",
			Cause: "A priority has an effect only with fifo or rr, and those need one.",
			Fix:   `set scheduling: "fifo" and a priority, or neither`,
			Wrong: `services: "a.service": {exec: ["/usr/bin/a"], priority: 50}`, Right: `services: "a.service": {exec: ["/usr/bin/a"], scheduling: "fifo", priority: 50}`,
			See: "sched(7)",
			run: checkServicePriority,
		},
		{
			ID: "rt-throttle", Severity: diag.Warning,
			Title: "real-time tasks are never throttled",
			Cause: "With kernel.sched_rt_runtime_us at -1 a real-time task that spins blocks its core permanently.",
			Fix:   "keep the default of 950000, or isolate the cores of the real-time tasks with cpu.isolate",
			Wrong: `sysctl: "kernel.sched_rt_runtime_us": -1`, Right: `sysctl: "kernel.sched_rt_runtime_us": 950000`,
			See: "Documentation/scheduler/sched-rt-group.rst",
			run: checkRTThrottle,
		},
		{
			ID: "unit-order", Severity: diag.Error,
			Title: "units wait for each other in a cycle",
			Cause: "systemd breaks a cycle by dropping a job, with one line in the log. Implicit dependencies count as well: a service waits for basic.target, and the target that starts the service waits for it, unless the service names the target in after.",
			Fix:   "remove one of the after entries",
			Wrong: `services: {"a.service": {exec: ["/usr/bin/a"], after: ["b.service"]}, "b.service": {exec: ["/usr/bin/b"], after: ["a.service"]}}`,
			Right: `services: {"a.service": {exec: ["/usr/bin/a"], after: ["b.service"]}, "b.service": exec: ["/usr/bin/b"]}`,
			See:   "systemd.unit(5), systemd.target(5): default dependencies",
			run:   checkUnitOrder,
		},
		{
			ID: "service-dropin", Severity: diag.Error, Firm: true,
			Title: "a drop-in cannot do this",
			Cause: "An entry without exec is a drop-in for a unit that another package installs. That package decides whether the unit starts at boot, a drop-in has no sandbox, and it takes no rights away.",
			Fix:   "remove the field, or leave the unit's package out with packages: NAME: \"exclude\"",
			Wrong: `services: "ssh.service": enable: false`, Right: `packages: "openssh-sshd": "exclude"`,
			See: "systemd.unit(5)",
			run: checkServiceDropIn,
		},
		{
			ID: "service-empty", Severity: diag.Warning,
			Title: "the drop-in is empty",
			Cause: "An entry without exec changes a unit that another package installs. This one changes nothing.",
			Fix:   "add the fields to change, or exec",
			Wrong: `services: "ssh.service": {}`, Right: `services: "ssh.service": nice: 5`,
			run: checkServiceEmpty,
		},
	}
}

// command is a command line of a service: its exec, one that runs before or after it, or one of
// its unit.
type command struct {
	config.List[config.String]
	prefixes string // that its program may have
}

// program returns the path of what the command starts, "" for none.
func (c command) program() string {
	if len(c.Items) == 0 {
		return ""
	}
	return strings.TrimLeft(c.Items[0].Text, c.prefixes)
}

// isPrivileged reports whether a prefix runs the command outside the service's sandbox.
func (c command) isPrivileged() bool {
	return len(c.Items) > 0 && strings.ContainsAny(strings.TrimSuffix(c.Items[0].Text, c.program()), "+!")
}

// commandsOf lists the command lines of a service, exec first.
func commandsOf(svc *config.Service) []command {
	var all []command
	if svc.Exec.IsSet() {
		all = append(all, command{svc.Exec, ""})
	}
	for _, list := range []config.List[config.List[config.String]]{svc.ExecStartPre, svc.ExecStartPost, svc.ExecStop, svc.ExecStopPost} {
		for _, c := range list.Items {
			all = append(all, command{c, "-+"})
		}
	}
	for _, d := range svc.Unit.Get("Service").Entries {
		if strings.HasPrefix(d.Key(), "Exec") {
			all = append(all, verbatimCommands(&d.Scalar)...)
		}
	}
	return all
}

// verbatimCommands lists the command lines of a directive, as far as blanks separate their words.
func verbatimCommands(d *config.Scalar) []command {
	var all []command
	for _, v := range d.Elements() {
		var words []config.String
		for word := range strings.FieldsSeq(v.Text) {
			words = append(words, config.String{Place: v.Place, Text: strings.Trim(word, `"'`)})
		}
		if len(words) > 0 {
			all = append(all, command{config.List[config.String]{Place: v.Place, Items: words}, "-+!:@|"})
		}
	}
	return all
}

func checkServiceExec(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		for _, c := range commandsOf(svc) {
			program := c.program()
			switch {
			case len(c.Items) == 0:
				s.reportAt(c, "[]", "", "service %s has an empty command", svc.Key())
			case c.prefixes == "-+!:@|": // systemd itself finds the program
			case !strings.HasPrefix(program, "/") || path.Clean(program) != program:
				s.reportAt(c.Items[0], c.Items[0].Show(), "", "the program of %s is not an absolute path", svc.Key())
			}
		}
	}
}

// isReserved reports whether a service is one of the system's or of yoctune's.
func isReserved(service string) bool {
	name, _, _ := strings.Cut(strings.TrimSuffix(service, ".service"), "@")
	switch name {
	case "dbus", "getty", "serial-getty", "nvpmodel", "nvfancontrol", "nvpower", "nvstartup", "emergency", "rescue", "user", "init":
		return true
	}
	return strings.HasPrefix(name, "systemd-") || strings.HasPrefix(name, "yoctuned") || strings.HasPrefix(name, "yoctune-")
}

func checkServiceReserved(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		if resolve.IsWholeUnit(svc) && isReserved(svc.Key()) {
			d := s.raise(svc, "%s is a unit of the system", svc.Key())
			d.Pos, d.Got = config.FirstSet(svc.Exec, svc.Unit).Pos(), svc.Key()
		}
	}
}

func checkServicePriority(s *subject) {
	for _, t := range s.tasks() {
		realtime := isRealtimePolicy(t.Scheduling.Text)
		switch {
		case t.Priority.Value != 0 && !realtime:
			s.reportAt(t.Priority, "", "", "%s %s has a real-time priority without a real-time policy", t.kind, t.Key())
		case t.Priority.Value == 0 && realtime:
			s.reportAt(t.Scheduling, t.Scheduling.Text, "", "%s %s has policy %s without a priority", t.kind, t.Key(), t.Scheduling.Text)
		}
	}
}

// task is what has a scheduling policy: a service, or a pipeline.
type task struct {
	config.Place
	kind       string
	Scheduling config.String
	Priority   config.Int
}

func (s *subject) tasks() []task {
	var all []task
	for _, svc := range s.Config.Services.Sorted() {
		all = append(all, task{svc.Place, "service", svc.Scheduling, svc.Priority})
	}
	for _, p := range s.Config.Pipelines.Entries {
		all = append(all, task{p.Place, "pipeline", p.Scheduling, p.Priority})
	}
	return all
}

func isRealtimePolicy(policy string) bool { return policy == "fifo" || policy == "rr" }

func checkRTThrottle(s *subject) {
	v := s.Config.Sysctl.Get("kernel.sched_rt_runtime_us")
	if v.Text != "-1" {
		return
	}
	// The threads of a pipeline do not sleep while there are frames.
	for _, t := range s.tasks() {
		if t.kind == "pipeline" && isRealtimePolicy(t.Scheduling.Text) {
			d := s.raise(v, "pipeline %s may use its cores permanently", t.Key())
			d.Severity, d.Got = diag.Error, v.Text
			d.Help = "leave the default of 950000"
			d.addRelated(t.Scheduling, "its threads have policy "+t.Scheduling.Text)
			return
		}
	}
	if len(s.Isolated()) == 0 {
		s.reportAt(v, v.Text, "", "no limit for real-time tasks, and no isolated core")
	}
}

func checkServiceDropIn(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		if resolve.IsWholeUnit(svc) {
			continue
		}
		if install := svc.Unit.Get("Install"); len(install.Entries) > 0 {
			s.reportAt(install, "", "", "the section [Install] of %s has no effect in a drop-in", svc.Key())
		}
		for _, field := range []struct {
			config.Bool
			without []bool // effect
		}{{svc.Enable, []bool{true, false}}, {svc.Hardening, []bool{true}}, {svc.MemoryLock, []bool{false}}} {
			startsTimer := field.Key() == "enable" && svc.Timer.IsSet() && !s.BringsTimer(svc)
			if field.IsSet() && slices.Contains(field.without, field.On) && !startsTimer {
				s.reportAt(field, field.Show(), "", "%s of %s has no effect in a drop-in", field.Key(), svc.Key())
			}
		}
	}
}

func checkServiceEmpty(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		if fields := len(svc.Node().Fields); fields == 0 || fields == 1 && svc.Description.IsSet() {
			s.reportAt(svc, "", "", "%s changes nothing", svc.Key())
		}
	}
}

// defaultOrder are the edges between targets of systemd: each comes after those
// it is mapped to (bootup(7)).
func defaultOrder() map[string][]string {
	return map[string][]string{
		"basic.target":      {"sysinit.target", "sockets.target", "timers.target", "paths.target", "slices.target"},
		"multi-user.target": {"basic.target"},
		"graphical.target":  {"multi-user.target"},
		"sysinit.target":    {"local-fs.target", "swap.target"},
	}
}

// knownOrder adds the edges of units that the BSP and meta-tegra-community install.
func knownOrder(s *subject, after map[string][]string) {
	for _, u := range s.Release.Units() {
		after[u.Name] = append(after[u.Name], u.After...)
		for _, later := range u.Before {
			after[later] = append(after[later], u.Name)
		}
	}
	// jetson_stats services/jtop.service:18 at 4.2.3 to 4.3.1, which the branches install.
	after["jtop.service"] = append(after["jtop.service"], "multi-user.target")
}

func checkUnitOrder(s *subject) {
	after := defaultOrder()
	knownOrder(s, after)
	for _, svc := range s.Services {
		after[svc.Name] = append(after[svc.Name], append(svc.After, unitsOf(svc, "After")...)...)
		for _, later := range unitsOf(svc, "Before") {
			after[later] = append(after[later], svc.Name)
		}
		if !svc.IsWhole() {
			continue
		}
		// A unit of its own has default dependencies unless it declares them off, and
		// multi-user.target, which starts it, waits for it, unless the unit itself is ordered
		// after the target.
		if hasDefaultOrder(svc) {
			after[svc.Name] = append(after[svc.Name], "basic.target")
		}
		if svc.Enable && !svc.OwnInstall && hasDefaultOrder(svc) && !slices.Contains(svc.After, "multi-user.target") {
			after["multi-user.target"] = append(after["multi-user.target"], svc.Name)
		}
	}
	explained := map[string]bool{}
	for _, svc := range s.Config.Services.Sorted() {
		for _, first := range svc.After.Items {
			way := findRoute(after, first.Text, svc.Key(), map[string]bool{})
			if way == nil || explained[svc.Key()] {
				continue
			}
			for _, unit := range way {
				explained[unit] = true // one cycle, one message
			}
			s.reportAt(first, strings.Join(append([]string{svc.Key()}, way...), " after "), "", "%s waits for itself", svc.Key())
		}
	}
	for _, svc := range s.Services {
		early := s.Config.Services.Get(svc.Name).Unit.Get("Unit").Get("Before")
		if !svc.IsWhole() || !hasDefaultOrder(svc) || !early.IsSet() || explained[svc.Name] {
			continue
		}
		if way := findRoute(after, "basic.target", svc.Name, map[string]bool{}); way != nil {
			s.reportAt(early, strings.Join(append([]string{svc.Name}, way...), " after "), "add unit: Unit: DefaultDependencies: false",
				"%s waits for itself: a service starts after basic.target", svc.Name)
		}
	}
}

// hasDefaultOrder reports whether systemd orders a whole unit after basic.target.
func hasDefaultOrder(svc plan.Service) bool {
	values := svc.Values("Unit", "DefaultDependencies")
	return len(values) == 0 || !slices.Contains([]string{"0", "no", "n", "false", "f", "off"}, strings.ToLower(values[len(values)-1]))
}

// unitsOf lists the units that a verbatim directive of [Unit] names.
func unitsOf(svc plan.Service, directive string) []string {
	return strings.Fields(strings.Join(svc.Values("Unit", directive), " "))
}

// findRoute finds how one unit comes to wait for another; nil when it does not.
func findRoute(after map[string][]string, from, to string, seen map[string]bool) []string {
	if from == to {
		return []string{to}
	}
	if seen[from] {
		return nil
	}
	seen[from] = true
	for _, next := range after[from] {
		if way := findRoute(after, next, to, seen); way != nil {
			return append([]string{from}, way...)
		}
	}
	return nil
}
