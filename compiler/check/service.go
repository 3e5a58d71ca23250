package check

import (
	"path"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/plan"
)

func serviceRules() []Rule {
	return []Rule{
		{
			ID: "service-exec", Severity: diag.Error, Firm: true,
			Title: "the service's program is not an absolute path",
			Cause: "systemd looks nowhere else, and the signs @ - : + ! | before the path change what systemd does with it.",
			Fix:   `write the program's whole path, such as "/usr/bin/vision"`,
			Wrong: `services: "a.service": exec: ["+bin/x"]`, Right: `services: "a.service": exec: ["/usr/bin/x"]`,
			See: "systemd.service(5)",
			run: serviceExec,
		},
		{
			ID: "service-reserved", Severity: diag.Error, Firm: true,
			Title: "the unit belongs to the system or to yoctune",
			Cause: "A unit of that name exists in every image; a second one of the same name would replace it.",
			Fix:   "choose another name; without exec the entry is a drop-in, which is allowed",
			Wrong: `services: "dbus.service": exec: ["/usr/bin/x"]`,
			See:   "systemd.unit(5)",
			run:   serviceReserved,
		},
		{
			ID: "service-priority", Severity: diag.Error, Firm: true,
			Title: "real-time priority and scheduling policy do not fit",
			Cause: "A priority means something only with fifo or rr, and those need one.",
			Fix:   `set scheduling: "fifo" and a priority, or neither`,
			Wrong: `services: "a.service": {exec: ["/usr/bin/a"], priority: 50}`, Right: `services: "a.service": {exec: ["/usr/bin/a"], scheduling: "fifo", priority: 50}`,
			See: "sched(7)",
			run: servicePriority,
		},
		{
			ID: "rt-throttle", Severity: diag.Warning,
			Title: "real-time tasks are never throttled",
			Cause: "With kernel.sched_rt_runtime_us at -1 a real-time task that spins hangs its core for ever.",
			Fix:   "leave the default, or isolate the cores of the real-time tasks",
			Wrong: `sysctl: "kernel.sched_rt_runtime_us": -1`, Right: `sysctl: "kernel.sched_rt_runtime_us": 950000`,
			See: "Documentation/scheduler/sched-rt-group.rst",
			run: rtThrottle,
		},
		{
			ID: "unit-order", Severity: diag.Error,
			Title: "units wait for each other in a circle",
			Cause: "systemd breaks a circle by dropping a job, with one line in the log. Edges that nobody writes count as well: a service waits for basic.target, and the target that starts it waits for the service.",
			Fix:   "remove one of the after",
			Wrong: `services: {"a.service": {exec: ["/usr/bin/a"], after: ["b.service"]}, "b.service": {exec: ["/usr/bin/b"], after: ["a.service"]}}`,
			Right: `services: {"a.service": {exec: ["/usr/bin/a"], after: ["b.service"]}, "b.service": exec: ["/usr/bin/b"]}`,
			See:   "systemd.unit(5), systemd.target(5): default dependencies",
			run:   unitOrder,
		},
		{
			ID: "service-empty", Severity: diag.Warning,
			Title: "the drop-in says nothing",
			Cause: "An entry without exec changes a unit that something else installs; this one changes nothing.",
			Fix:   "add what it should change, or exec",
			Wrong: `services: "ssh.service": {}`, Right: `services: "ssh.service": nice: 5`,
			run: serviceEmpty,
		},
	}
}

func serviceExec(s *subject) {
	for _, svc := range s.Services {
		exec := s.Node.At("services", svc.Name, "exec")
		if exec == nil {
			continue
		}
		where := at("services", svc.Name, "exec")
		if len(exec.Items) == 0 {
			s.finding(exec, where, "[]", "", "service %s has an empty command", svc.Name)
			continue
		}
		program := exec.Items[0]
		if !strings.HasPrefix(program.Text, "/") || path.Clean(program.Text) != program.Text {
			s.finding(program, where, program.Show(), "", "the program of %s is not an absolute path", svc.Name)
		}
	}
}

// reserved tells whether a service is one of the system's or of yoctune's.
func reserved(service string) bool {
	name := strings.TrimSuffix(service, ".service")
	switch name {
	case "dbus", "getty", "serial-getty", "nvpmodel", "nvfancontrol", "nvpower", "nvstartup", "emergency", "rescue", "user", "init":
		return true
	}
	return strings.HasPrefix(name, "systemd-") || strings.HasPrefix(name, "yoctuned") || strings.HasPrefix(name, "yoctune-")
}

func serviceReserved(s *subject) {
	for _, svc := range s.Services {
		if len(svc.Exec) > 0 && reserved(svc.Name) {
			s.finding(s.Node.At("services", svc.Name, "exec"), at("services", svc.Name), svc.Name, "", "%s is a unit of the system", svc.Name)
		}
	}
}

func servicePriority(s *subject) {
	for _, t := range s.tasks() {
		realtime := realtime(t.policy)
		switch {
		case t.priority != 0 && !realtime:
			s.finding(nil, append(t.at, "priority"), "", "", "%s %s has a real-time priority without a real-time policy", t.kind, t.name)
		case t.priority == 0 && realtime:
			s.finding(nil, append(t.at, "scheduling"), t.policy, "", "%s %s has policy %s without a priority", t.kind, t.name, t.policy)
		}
	}
}

// task is what has a scheduling policy: a service, or a pipeline.
type task struct {
	kind, name, policy string
	priority           int
	at                 []string
}

func (s *subject) tasks() []task {
	var all []task
	for _, svc := range s.Services {
		all = append(all, task{"service", svc.Name, svc.Scheduling, svc.Priority, at("services", svc.Name)})
	}
	s.promised(func(name string, _ *load.Node, p plan.Pipeline) {
		all = append(all, task{"pipeline", name, p.Scheduling, p.Priority, at("pipelines", name)})
	})
	return all
}

func realtime(policy string) bool { return policy == "fifo" || policy == "rr" }

func rtThrottle(s *subject) {
	n := s.Node.At("sysctl", "kernel.sched_rt_runtime_us")
	if n == nil || n.Text != "-1" {
		return
	}
	where := at("sysctl", "kernel.sched_rt_runtime_us")
	// The threads of a pipeline never rest while there are frames.
	for _, t := range s.tasks() {
		if t.kind == "pipeline" && realtime(t.policy) {
			d := s.diagnostic(n, where, "nothing holds pipeline %s back from taking its cores for ever", t.name)
			d.Severity, d.Got = diag.Error, n.Text
			d.Help = "leave the default of 950000"
			d.Related = []diag.Related{{Pos: s.Pos(append(t.at, "scheduling")...), Message: "its threads have policy " + t.policy}}
			s.report.Add(d)
			return
		}
	}
	if len(s.Isolated()) == 0 {
		s.finding(n, where, n.Text, "", "no limit for real-time tasks, and no isolated core")
	}
}

func serviceEmpty(s *subject) {
	for _, svc := range s.Services {
		if n := s.Node.At("services", svc.Name); len(n.Fields) == 0 || len(n.Fields) == 1 && n.Get("description") != nil {
			s.finding(n, at("services", svc.Name), "", "", "%s changes nothing", svc.Name)
		}
	}
}

// decimalText reads a number that an environment variable holds.
func decimalText(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil
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

func unitOrder(s *subject) {
	after := defaultOrder()
	for _, svc := range s.Services {
		after[svc.Name] = append(after[svc.Name], svc.After...)
		if len(svc.Exec) == 0 {
			continue
		}
		// A unit of its own has default dependencies, and multi-user.target, which
		// starts it, waits for it.
		after[svc.Name] = append(after[svc.Name], "basic.target")
		if svc.Enable {
			after["multi-user.target"] = append(after["multi-user.target"], svc.Name)
		}
	}
	told := map[string]bool{}
	for _, svc := range s.Services {
		for i, first := range svc.After {
			way := route(after, first, svc.Name, map[string]bool{})
			if way == nil || told[svc.Name] {
				continue
			}
			for _, unit := range way {
				told[unit] = true // one circle, one message
			}
			list := s.Node.At("services", svc.Name, "after")
			n := list
			if list != nil && i < len(list.Items) {
				n = list.Items[i]
			}
			s.finding(n, at("services", svc.Name, "after"), strings.Join(append([]string{svc.Name}, way...), " after "), "", "%s waits for itself", svc.Name)
		}
	}
}

// route finds how one unit comes to wait for another; nil when it does not.
func route(after map[string][]string, from, to string, seen map[string]bool) []string {
	if from == to {
		return []string{to}
	}
	if seen[from] {
		return nil
	}
	seen[from] = true
	for _, next := range after[from] {
		if way := route(after, next, to, seen); way != nil {
			return append([]string{from}, way...)
		}
	}
	return nil
}
