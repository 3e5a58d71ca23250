package check

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/directive"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/units"
)

func cpuRules() []Rule {
	return []Rule{
		{
			ID: "core-exists", Severity: diag.Error, Firm: true,
			Title: "a core does not exist on the module",
			Cause: "A list of cores names one that the module lacks. The kernel refuses the whole list.",
			Fix:   "list existing cores",
			Wrong: "cpu: isolate: [6]", Right: "cpu: isolate: [4, 5]",
			See: "cpuset(7)",
			run: checkCoreExists,
		},
		{
			ID: "isolate-boot-core", Severity: diag.Error, Firm: true,
			Title: "core 0 is isolated",
			Cause: "Core 0 boots the system, keeps the time for the others and takes all interrupts without another core. It cannot be isolated.",
			Fix:   "isolate other cores: core 0 boots the system and serves its interrupts",
			Wrong: "cpu: isolate: [0, 1, 2, 3]", Right: "cpu: isolate: [4, 5]",
			See: "Documentation/timers/no_hz.rst",
			run: checkIsolateBootCore,
		},
		{
			ID: "isolcpus-affinity", Severity: diag.Warning,
			Title: "a service with several isolated cores runs only on the first",
			Cause: "The scheduler does not balance load between isolated cores. All threads of a service stay where they start unless the program pins them itself, or they are real-time threads.",
			Fix:   "give the service one core, or pin its threads in the program and suppress the rule with that reason",
			Wrong: `cpu: isolate: [4, 5]` + "\n" + `services: "a.service": {exec: ["/usr/bin/a"], cpus: [4, 5]}`,
			Right: `cpu: isolate: [4, 5]` + "\n" + `services: "a.service": {exec: ["/usr/bin/a"], cpus: [4]}`,
			See:   "Documentation/admin-guide/kernel-parameters.txt, isolcpus=",
			run:   checkIsolcpusAffinity,
		},
		{
			ID: "cpufreq-feature", Severity: diag.Warning,
			Title: "the driver of the processor's clocks lacks the setting",
			Cause: "An energy preference needs a driver for CPPC, and boost one with clocks above the base clock. The drivers of Tegra processors up to Orin have neither: their files do not exist.",
			Fix:   "remove it: a power mode limits the clocks",
			Wrong: `cpu: epp: "performance"`, Right: `cpu: governor: "performance"`,
			See: "drivers/cpufreq/tegra194-cpufreq.c, tegra186-cpufreq.c, tegra124-cpufreq.c",
			run: checkCPUFreqFeature,
		},
		{
			ID: "clock-order", Severity: diag.Error,
			Title: "the lowest clock is above the highest",
			Cause: "The kernel refuses a minimum above the maximum, or moves the other limit, depending on which it is given first.",
			Fix:   "lower min, or raise max",
			Wrong: `cpu: {min: "1.728GHz", max: "729.6MHz"}`, Right: `cpu: {min: "729.6MHz", max: "1.728GHz"}`,
			See: "cpufreq scaling_min_freq; devfreq min_freq",
			run: checkClockOrder,
		},
		{
			ID: "governor-vs-nvpmodel", Severity: diag.Error,
			Title: "two writers of one clock limit",
			Cause: "nvpmodel writes the clock limits of the power mode. Limits under cpu or gpu write the same files, and the last one wins.",
			Fix:   "put the limits into a power mode",
			Wrong: `power: modes: EDGE: {from: "25W", cpu: max: "1.344GHz"}` + "\n" + `cpu: max: "1.1904GHz"`,
			Right: `power: modes: EDGE: {from: "25W", cpu: max: "1.1904GHz"}`,
			run:   checkTwoWriters,
		},
	}
}

func checkClockOrder(s *subject) {
	for _, limits := range [][2]config.Frequency{{s.Config.CPU.Min, s.Config.CPU.Max}, {s.Config.GPU.Min, s.Config.GPU.Max}} {
		low, hasLow := frequencyOf(limits[0])
		high, hasHigh := frequencyOf(limits[1])
		if hasLow && hasHigh && low > high {
			s.raise(limits[0], "min %s is above max %s", units.Frequency(low), units.Frequency(high)).withValue(limits[0].Show()).addRelated(limits[1], "the highest clock")
		}
	}
}

// coreLists lists every list of cores that is set, cpu.isolate first.
func coreLists(s *subject) []config.List[config.Int] {
	all := []config.List[config.Int]{s.Config.CPU.Isolate}
	for _, svc := range s.Config.Services.Entries {
		all = append(all, svc.CPUs)
	}
	for _, p := range s.Config.Pipelines.Entries {
		all = append(all, p.CPUs)
	}
	for _, cores := range s.Config.IRQ.Affinity.Entries {
		all = append(all, *cores)
	}
	for _, n := range s.Config.Network.Entries {
		all = append(all, n.RPS, n.XPS)
	}
	return slices.DeleteFunc(all, func(l config.List[config.Int]) bool { return !l.IsSet() })
}

func checkCoreExists(s *subject) {
	s.checkDirectiveCores()
	for _, svc := range s.Config.Services.Entries {
		for _, c := range commandsOf(svc) {
			if at, cores := commandCores(c.Items); len(cores) > 0 && slices.Max(cores) >= s.Board.Cores {
				s.refuse(s.coreCount(), at, at.Show(), fmt.Sprintf("the cores of %s are 0 to %d", s.Board.ID, s.Board.Cores-1), "core %d does not exist", slices.Max(cores))
			}
		}
	}
	for _, list := range coreLists(s) {
		for _, c := range list.Items {
			if c.Value >= s.Board.Cores {
				s.refuse(s.coreCount(), c, c.Show(), fmt.Sprintf("the cores of %s are 0 to %d", s.Board.ID, s.Board.Cores-1), "core %d does not exist", c.Value)
			}
		}
		if len(list.Items) == 0 && list.ID() != "cpu.isolate" {
			s.reportAt(list, "[]", "list at least one core, or leave the field out", "an empty list of cores")
		}
	}
}

// checkDirectiveCores checks the cores that directives of services.*.unit name: the kernel ignores
// those that the board lacks.
func (s *subject) checkDirectiveCores() {
	for _, d := range s.directives() {
		switch d.fact.Type {
		case "exec_cpu_affinity", "allowed_cpuset", "unit_cpu_set":
		default:
			continue
		}
		for _, v := range d.Elements() {
			if cores, ok := directive.CPUs(resolve.DirectiveValue(v)); ok && slices.Max(cores) >= s.Board.Cores {
				s.refuse(s.coreCount(), v, v.Show(), fmt.Sprintf("the cores of %s are 0 to %d", s.Board.ID, s.Board.Cores-1), "core %d does not exist", slices.Max(cores))
			}
		}
	}
}

func checkCPUFreqFeature(s *subject) {
	if !slices.Contains([]string{"tegra210", "tegra186", "tegra194", "tegra234"}, s.Board.SoC) {
		return // a driver that was not read
	}
	c := s.Config.CPU
	if c.EPP.IsSet() {
		s.reportAt(c.EPP, c.EPP.Show(), "", "the cpufreq driver of %s has no energy preference", s.Board.SoC)
	}
	if c.Boost.On {
		s.reportAt(c.Boost, c.Boost.Show(), "", "the cpufreq driver of %s has no boost", s.Board.SoC)
	}
}

func checkIsolateBootCore(s *subject) {
	list := s.Config.CPU.Isolate
	for _, c := range list.Items {
		if c.Value == 0 {
			s.reportAt(c, list.Show(), "", "core 0 cannot be isolated")
		}
	}
}

// unbalancedCores lists the cores that cpu.isolate or isolcpus takes out of the scheduler's domains.
func (s *subject) unbalancedCores() []int {
	isolated := s.Isolated()
	flags, cores, ok := s.parseCoreArg(s.Config.Kernel.Args.Get("isolcpus").Text)
	if ok && (len(flags) == 0 || slices.Contains(flags, "domain")) {
		isolated = append(isolated, cores...)
	}
	slices.Sort(isolated)
	return slices.Compact(isolated)
}

// commandCores finds the cores that a command of a service gives a program: those of containers and of taskset.
func commandCores(words []config.String) (at config.String, cores []int) {
	for i, w := range words {
		_, text, inOne := strings.Cut(w.Text, "=")
		switch flag := strings.TrimSuffix(w.Text, "="+text); {
		case flag == "--cpuset-cpus" || flag == "--cpu-list" && isTaskset(words):
			if !inOne && i+1 < len(words) {
				w = words[i+1]
				text = w.Text
			}
		case w.Text == "-c" && isTaskset(words[:i+1]) && i+1 < len(words):
			w = words[i+1]
			text = w.Text
		default:
			continue
		}
		if cores, err := cpulist.Parse(text); err == nil && len(cores) > 0 {
			return w, cores
		}
	}
	return at, nil
}

// isTaskset reports whether words begin with taskset and its flags.
func isTaskset(words []config.String) bool {
	return len(words) > 0 && path.Base(words[0].Text) == "taskset" &&
		!slices.ContainsFunc(words[1:], func(w config.String) bool { return !strings.HasPrefix(w.Text, "-") })
}

func checkIsolcpusAffinity(s *subject) {
	isolated := s.unbalancedCores()
	if len(isolated) < 2 {
		return
	}
	for _, svc := range s.Config.Services.Entries {
		if svc.Scheduling.Text == "fifo" || svc.Scheduling.Text == "rr" {
			continue // real-time tasks are pushed and pulled between isolated cores too
		}
		at, cores := svc.CPUs.Place, config.Cores(svc.CPUs)
		if len(cores) == 0 && svc.Slice.IsSet() {
			at, cores = svc.Slice.Place, s.Isolated()
		}
		for _, c := range commandsOf(svc) {
			if word, list := commandCores(c.Items); len(cores) == 0 && len(list) > 0 {
				at, cores = word.Place, list
			}
		}
		several := 0
		for _, c := range cores {
			if slices.Contains(isolated, c) {
				several++
			}
		}
		if several > 1 {
			s.reportAt(at, "cores "+cpulist.Format(cores), "", "service %s may use isolated cores %s, and all its threads start on core %d", svc.Key(), cpulist.Format(cores), cores[0])
		}
	}
}

func checkTwoWriters(s *subject) {
	c := s.Config
	if !c.Power.Modes.IsSet() && !c.Power.Default.IsSet() {
		return
	}
	limits, writer := []config.Frequency{c.CPU.Min, c.CPU.Max, c.GPU.Min, c.GPU.Max}, "nvpmodel"
	if s.IsOwn() {
		writer = "yoctuned"
		if limits = limits[:2]; !slices.ContainsFunc(c.Power.Modes.Entries, func(m *config.PowerMode) bool { return m.CPU.Min.IsSet() || m.CPU.Max.IsSet() }) {
			return
		}
	}
	for _, limit := range limits {
		if limit.IsSet() {
			domain, _, _ := strings.Cut(limit.ID(), ".")
			s.reportAt(limit, limit.Show(), "", "%s writes the %s clock limits of the power mode as well", writer, strings.ToUpper(domain))
		}
	}
}
