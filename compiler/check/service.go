package check

import (
	"path"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
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

func serviceReserved(s *subject) {
	for _, svc := range s.Services {
		if len(svc.Exec) == 0 {
			continue
		}
		name := strings.TrimSuffix(svc.Name, ".service")
		reserved := strings.HasPrefix(name, "systemd-") || strings.HasPrefix(name, "yoctuned") || strings.HasPrefix(name, "yoctune-")
		switch name {
		case "dbus", "getty", "serial-getty", "nvpmodel", "nvfancontrol", "nvpower", "nvstartup", "emergency", "rescue", "user", "init":
			reserved = true
		}
		if reserved {
			s.finding(s.Node.At("services", svc.Name, "exec"), at("services", svc.Name), svc.Name, "", "%s is a unit of the system", svc.Name)
		}
	}
}

func servicePriority(s *subject) {
	for _, svc := range s.Services {
		realtime := svc.Scheduling == "fifo" || svc.Scheduling == "rr"
		switch {
		case svc.Priority != 0 && !realtime:
			s.finding(nil, at("services", svc.Name, "priority"), "", "", "service %s has a real-time priority without a real-time policy", svc.Name)
		case svc.Priority == 0 && realtime:
			s.finding(nil, at("services", svc.Name, "scheduling"), svc.Scheduling, "", "service %s has policy %s without a priority", svc.Name, svc.Scheduling)
		}
	}
}

func rtThrottle(s *subject) {
	if n := s.Node.At("sysctl", "kernel.sched_rt_runtime_us"); n != nil && n.Text == "-1" && len(s.Isolated()) == 0 {
		s.finding(n, at("sysctl", "kernel.sched_rt_runtime_us"), n.Text, "", "no limit for real-time tasks, and no isolated core")
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
