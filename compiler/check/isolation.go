package check

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

// Isolation is one plan in many places: arguments, interrupts, slices, services and the
// power mode. These rules compare the places.
func isolationRules() []Rule {
	return []Rule{
		{
			ID: "isolate-cluster", Severity: diag.Warning,
			Title: "isolated cores share a clock with others",
			Cause: "The cores of a cluster share one clock. Work on the other cores of the cluster changes the speed of the isolated ones.",
			Fix:   "isolate whole clusters",
			Wrong: "cpu: isolate: [3]", Right: "cpu: isolate: [4, 5]",
			See: "cpufreq related_cpus",
			run: checkIsolateCluster,
		},
		{
			ID: "isolcpus-empty-housekeeping", Severity: diag.Error,
			Title: "a power mode leaves no core for the system",
			Cause: "All cores that the mode keeps on are isolated, so nothing else can run.",
			Fix:   "keep a core on in the mode that is not isolated",
			Wrong: `{cpu: isolate: [1, 2, 3, 4, 5], power: modes: LOW: {from: "15W", cpu: online: [0, 4, 5]}, kernel: args: isolcpus: "0-5"}`,
			Right: `{cpu: isolate: [4, 5], power: modes: LOW: {from: "15W", cpu: online: [0, 1, 4, 5]}}`,
			See:   "kernel/sched/isolation.c",
			run:   checkHousekeepingLeft,
		},
		{
			ID: "affinity-offline-cpu", Severity: diag.Error,
			Title: "a service or an interrupt is pinned to cores that a power mode turns off",
			Cause: "A service that may run only on offline cores fails to start (EINVAL), and an interrupt cannot be moved there. The default mode counts, and each mode of the ladder.",
			Fix:   "pin it to cores that are on, or keep the cores on",
			Wrong: `{power: {default: "SMALL", modes: SMALL: {from: "15W", cpu: online: [0, 1, 2, 3]}}, services: "a.service": {exec: ["/usr/bin/a"], cpus: [4, 5]}}`,
			Right: `{power: {default: "SMALL", modes: SMALL: {from: "15W", cpu: online: [0, 1, 2, 3]}}, services: "a.service": {exec: ["/usr/bin/a"], cpus: [2, 3]}}`,
			See:   "sched_setaffinity(2)",
			run:   checkAffinityOffline,
		},
		{
			ID: "irq-affinity-irqbalance", Severity: diag.Error,
			Title: "irqbalance moves interrupts back",
			Cause: "irqbalance rewrites the affinity of every interrupt some seconds after boot, also onto isolated cores. It competes with any fixed affinity.",
			Fix:   `remove irqbalance from the image: packages: irqbalance: "exclude"`,
			Wrong: `{irq: affinity: "eth*": [0, 1], packages: irqbalance: "install"}`,
			Right: `{irq: affinity: "eth*": [0, 1], packages: irqbalance: "exclude"}`,
			See:   "irqbalance(1)",
			run:   checkIRQBalance,
		},
		{
			ID: "irq-affinity-managed", Severity: diag.Warning,
			Title: "the kernel manages the affinity of these interrupts",
			Cause: "The kernel manages the interrupts of NVMe and virtio queues. Writing their affinity fails with EIO.",
			Fix:   "leave them out; cpu.isolate keeps managed interrupts off its cores",
			Wrong: `irq: affinity: "nvme*": [0, 1]`, Right: `irq: affinity: "eth*": [0, 1]`,
			See: "kernel/irq/manage.c: irqd_affinity_is_managed",
			run: checkManagedIRQ,
		},
		{
			ID: "thread-count", Severity: diag.Warning,
			Title: "more threads than cores",
			Cause: "OpenMP, BLAS and ONNX Runtime start as many threads as they are configured for. Threads in excess of the cores take turns and wait for each other at every barrier.",
			Fix:   "set at most as many threads as the service or pipeline has cores",
			Wrong: `services: "a.service": {exec: ["/usr/bin/a"], cpus: [4, 5], environment: OMP_NUM_THREADS: "6"}`,
			Right: `services: "a.service": {exec: ["/usr/bin/a"], cpus: [4, 5], environment: OMP_NUM_THREADS: "2"}`,
			See:   "OMP_NUM_THREADS of the OpenMP specification",
			run:   checkThreadCount,
		},
	}
}

func checkIsolateCluster(s *subject) {
	isolated := s.Isolated()
	if len(isolated) == 0 {
		return
	}
	for _, p := range s.Board.Policies {
		var in, out []int
		for _, c := range resolve.PolicyCores(p) {
			if slices.Contains(isolated, c) {
				in = append(in, c)
			} else {
				out = append(out, c)
			}
		}
		if len(in) > 0 && len(out) > 0 {
			s.reportAt(s.Config.CPU.Isolate, "cluster "+p.CPUs, "", "%s a clock with %s not isolated",
				formatCores(in, "core %s shares", "cores %s share"), formatCores(out, "core %s, which is", "cores %s, which are"))
		}
	}
}

// formatCores puts cores into a phrase for one of them, or into one for several.
func formatCores(cores []int, one, several string) string {
	if len(cores) == 1 {
		return fmt.Sprintf(one, cpulist.Format(cores))
	}
	return fmt.Sprintf(several, cpulist.Format(cores))
}

// onlineCores lists the cores that a mode of the target keeps on, and the fact that shows
// it; nil when they are unknown.
func (s *subject) onlineCores(mode string) ([]int, ground) {
	own := s.Config.Power.Modes.Get(mode)
	if own.CPU.Online.IsSet() {
		return config.Cores(own.CPU.Online), configured
	}
	m, ok := s.Stock.Mode(own.From.Or(mode))
	if !ok {
		return nil, configured
	}
	return resolve.OnlineCores(m), s.stockModes()
}

func checkHousekeepingLeft(s *subject) {
	taken := s.Isolated()
	if _, cores, ok := s.parseCoreArg(s.Config.Kernel.Args.Get("isolcpus").Text); ok {
		taken = append(taken, cores...)
	}
	if len(taken) == 0 {
		return
	}
	for _, m := range s.Config.Power.Modes.Entries {
		on, fact := s.onlineCores(m.Key())
		if len(on) == 0 || slices.ContainsFunc(on, func(c int) bool { return !slices.Contains(taken, c) }) {
			continue
		}
		s.refuse(fact, m, "cores "+cpulist.Format(on)+" are on", "", "mode %s leaves no core for the system: all that are on are isolated", m.Key())
	}
}

func checkAffinityOffline(s *subject) {
	if s.Plan.Power == nil {
		return
	}
	seen := map[string]bool{}
	if mode := s.Plan.Power.Default; mode != "" {
		s.checkOffline(mode, "the default power mode", seen)
	}
	for _, mode := range s.Config.Power.Adaptive.Ladder.Items {
		s.checkOffline(mode.Text, "mode", seen)
	}
}

// checkOffline examines the lists of cores in a power mode; seen are those already reported.
func (s *subject) checkOffline(mode, what string, seen map[string]bool) {
	on, fact := s.onlineCores(mode)
	if len(on) == 0 {
		return
	}
	for _, list := range coreLists(s) {
		cores := config.Cores(list)
		if seen[list.ID()] || list.ID() == "cpu.isolate" || len(cores) == 0 || slices.ContainsFunc(cores, func(c int) bool { return slices.Contains(on, c) || c >= s.Board.Cores }) {
			continue // power-cores covers cpu.isolate, core-exists the rest
		}
		s.refuse(fact, list, "cores "+cpulist.Format(cores), "mode "+mode+" keeps cores "+cpulist.Format(on)+" on", "all of these cores are off in %s %s", what, mode)
		seen[list.ID()] = true
	}
}

func checkIRQBalance(s *subject) {
	c := s.Config
	owner := config.FirstSet(c.IRQ.Affinity, c.CPU.Isolate)
	if !owner.IsSet() {
		return
	}
	const message = "irqbalance is in the image and moves interrupts back"
	enable, pkg := c.Services.Get("irqbalance.service").Enable, c.Packages.Get("irqbalance")
	switch {
	case pkg.Text == "install":
		d := s.raise(owner, message)
		d.addRelated(pkg, "the other owner")
		d.Edits = []diag.Edit{{Kind: diag.ReplaceText, Pos: pkg.Pos(), Text: `"exclude"`}}
	case enable.On:
		s.raise(owner, message).addRelated(enable, "the other owner")
	}
}

func checkManagedIRQ(s *subject) {
	for _, cores := range s.Config.IRQ.Affinity.Entries {
		if name := cores.Key(); strings.HasPrefix(name, "nvme") || strings.HasPrefix(name, "virtio") {
			s.reportAt(cores, name, "", "interrupts of %s are placed by the kernel", name)
		}
	}
}

// isThreadVariable reports whether an environment variable sets the number of threads
// of a library.
func isThreadVariable(name string) bool {
	switch name {
	case "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS":
		return true
	}
	return false
}

// countCores is the number of cores that a list leaves to its owner: all when absent.
func (s *subject) countCores(list config.List[config.Int]) int {
	return cmp.Or(len(config.Cores(list)), s.Board.Cores)
}

func checkThreadCount(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		cores := s.countCores(svc.CPUs)
		for _, v := range svc.Environment.Entries {
			if n, err := strconv.Atoi(v.Text); err == nil && isThreadVariable(v.Key()) && n > cores {
				s.reportAt(v, v.Show(), "", "%s=%d on %d cores", v.Key(), n, cores)
			}
		}
	}
	for _, p := range s.Config.Pipelines.Entries {
		cores := s.countCores(p.CPUs)
		for _, v := range p.Environment.Entries {
			if n, err := strconv.Atoi(v.Text); err == nil && isThreadVariable(v.Key()) && n > cores {
				s.reportAt(v, v.Show(), "", "%s=%d on %d cores", v.Key(), n, cores)
			}
		}
		for _, st := range p.Stages.Entries {
			if st.Threads.Value > cores {
				s.reportAt(st.Threads, st.Threads.Show(), "", "stage %s has %d threads on %d cores", st.Key(), st.Threads.Value, cores)
			}
		}
	}
}
