package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

func cpuRules() []Rule {
	return []Rule{
		{
			ID: "core-exists", Severity: diag.Error, Firm: true,
			Title: "a core does not exist on the module",
			Cause: "A list of cores names one that the module does not have; the kernel refuses the whole list.",
			Fix:   "list existing cores",
			Wrong: "cpu: isolate: [6]", Right: "cpu: isolate: [4, 5]",
			See: "cpuset(7)",
			run: coreExists,
		},
		{
			ID: "isolate-boot-core", Severity: diag.Error, Firm: true,
			Title: "core 0 is isolated",
			Cause: "Core 0 boots the system, keeps the time for the others and takes the interrupts nobody else wants: it cannot be free of them.",
			Fix:   "isolate other cores",
			Wrong: "cpu: isolate: [0, 1, 2, 3]", Right: "cpu: isolate: [4, 5]",
			See: "Documentation/timers/no_hz.rst",
			run: isolateBootCore,
		},
		{
			ID: "isolcpus-affinity", Severity: diag.Warning,
			Title: "a service with several isolated cores stays on the first of them",
			Cause: "The scheduler does not balance load between isolated cores: all threads of a service stay where they start unless the program pins them itself.",
			Fix:   "give the service one core, or pin its threads in the program and suppress the rule with that reason",
			Wrong: `cpu: isolate: [4, 5]` + "\n" + `services: "a.service": {exec: ["/usr/bin/a"], cpus: [4, 5]}`,
			Right: `cpu: isolate: [4, 5]` + "\n" + `services: "a.service": {exec: ["/usr/bin/a"], cpus: [4]}`,
			See:   "Documentation/admin-guide/kernel-parameters.txt, isolcpus=",
			run:   isolcpusAffinity,
		},
		{
			ID: "governor-vs-nvpmodel", Severity: diag.Error,
			Title: "two writers of the same clock",
			Cause: "nvpmodel writes the clock limits of the power mode; limits under cpu or gpu write the same files, and the last one wins.",
			Fix:   "put the limits into a power mode",
			Wrong: `power: modes: EDGE: {from: "25W", cpu: max: "1.344GHz"}` + "\n" + `cpu: max: "1.1904GHz"`,
			Right: `power: modes: EDGE: {from: "25W", cpu: max: "1.1904GHz"}`,
			run:   twoWriters,
		},
	}
}

// coreLists finds every list of cores of the target.
func coreLists(s *subject, f func(n *load.Node, path []string)) {
	visit := func(path ...string) {
		if n := s.Node.At(path...); n != nil {
			f(n, path)
		}
	}
	visit("cpu", "isolate")
	for _, section := range []string{"services", "pipelines"} {
		if all := s.Node.Get(section); all != nil {
			for _, m := range all.Fields {
				visit(section, m.Name, "cpus")
			}
		}
	}
	for _, m := range s.Node.At("irq", "affinity").Members() {
		visit("irq", "affinity", m.Name)
	}
	for _, m := range s.Node.Get("network").Members() {
		visit("network", m.Name, "rps")
		visit("network", m.Name, "xps")
	}
}

func coreExists(s *subject) {
	coreLists(s, func(n *load.Node, path []string) {
		for i, it := range n.Items {
			if c, ok := it.Int64(); ok && c >= int64(s.Board.Cores) {
				s.finding(n.Items[i], path, it.Text, fmt.Sprintf("the cores of %s are 0 to %d", s.Board.ID, s.Board.Cores-1), "core %d does not exist", c)
			}
		}
		if len(n.Items) == 0 && path[0] != "cpu" {
			s.finding(n, path, "[]", "list at least one core, or leave the field out", "an empty list of cores")
		}
	})
}

func isolateBootCore(s *subject) {
	list := s.Node.At("cpu", "isolate")
	if list == nil {
		return
	}
	for _, it := range list.Items {
		if c, ok := it.Int64(); ok && c == 0 {
			s.finding(it, at("cpu", "isolate"), list.Show(), "", "core 0 cannot be isolated")
		}
	}
}

func isolcpusAffinity(s *subject) {
	isolated := s.Isolated()
	if len(isolated) < 2 {
		return
	}
	for _, svc := range s.Services {
		n := s.Node.At("services", svc.Name)
		cores := resolve.Cores(n.Get("cpus"))
		if len(cores) == 0 && svc.Slice != "" {
			cores = isolated
		}
		several := 0
		for _, c := range cores {
			if slices.Contains(isolated, c) {
				several++
			}
		}
		if several < 2 {
			continue
		}
		where, path := n.Get("cpus"), at("services", svc.Name, "cpus")
		if where == nil {
			where, path = n.Get("slice"), at("services", svc.Name, "slice")
		}
		s.finding(where, path, "cores "+cpulist.Format(cores), "", "service %s may use isolated cores %s, and all its threads start on core %d", svc.Name, cpulist.Format(cores), cores[0])
	}
}

func twoWriters(s *subject) {
	if s.Node.At("power", "modes") == nil && s.Node.At("power", "default") == nil {
		return
	}
	for _, domain := range []string{"cpu", "gpu"} {
		for _, field := range []string{"min", "max"} {
			if n := s.Node.At(domain, field); n != nil {
				s.finding(n, at(domain, field), n.Show(), "", "nvpmodel writes the %s clock limits of the power mode as well", strings.ToUpper(domain))
			}
		}
	}
}
