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

// Isolation is one plan in many places: arguments, interrupts, slices, services
// and the power mode. These rules hold the places against each other.
func isolationRules() []Rule {
	return []Rule{
		{
			ID: "isolate-cluster", Severity: diag.Warning,
			Title: "isolated cores share a clock with others",
			Cause: "Cores of a cluster have one clock: what runs on the other cores of the cluster changes the speed of the isolated ones.",
			Fix:   "isolate whole clusters",
			Wrong: "cpu: isolate: [3]", Right: "cpu: isolate: [4, 5]",
			See: "cpufreq related_cpus",
			run: isolateCluster,
		},
		{
			ID: "isolcpus-empty-housekeeping", Severity: diag.Error,
			Title: "a power mode leaves no core for the system",
			Cause: "The cores that the mode keeps on are all isolated, so that nothing else can run.",
			Fix:   "keep a core on in the mode that is not isolated",
			Wrong: `{cpu: isolate: [1, 2, 3, 4, 5], power: modes: LOW: {from: "15W", cpu: online: [0, 4, 5]}, kernel: args: isolcpus: "0-5"}`,
			Right: `{cpu: isolate: [4, 5], power: modes: LOW: {from: "15W", cpu: online: [0, 1, 4, 5]}}`,
			See:   "kernel/sched/isolation.c",
			run:   housekeepingLeft,
		},
		{
			ID: "affinity-offline-cpu", Severity: diag.Error,
			Title: "something is pinned to cores that the default power mode turns off",
			Cause: "A service that may only run on cores that are off fails to start (EINVAL); an interrupt cannot be moved there.",
			Fix:   "pin it to cores that are on, or keep the cores on",
			Wrong: `{power: {default: "SMALL", modes: SMALL: {from: "15W", cpu: online: [0, 1, 2, 3]}}, services: "a.service": {exec: ["/usr/bin/a"], cpus: [4, 5]}}`,
			Right: `{power: {default: "SMALL", modes: SMALL: {from: "15W", cpu: online: [0, 1, 2, 3]}}, services: "a.service": {exec: ["/usr/bin/a"], cpus: [2, 3]}}`,
			See:   "sched_setaffinity(2)",
			run:   affinityOffline,
		},
		{
			ID: "irq-affinity-irqbalance", Severity: diag.Error,
			Title: "irqbalance moves interrupts back",
			Cause: "irqbalance rewrites the affinity of every interrupt some seconds after boot, also onto isolated cores: it and a fixed plan are two owners of one setting.",
			Fix:   `remove irqbalance from the image: packages: irqbalance: "exclude"`,
			Wrong: `{irq: affinity: "eth*": [0, 1], packages: irqbalance: "install"}`,
			Right: `{irq: affinity: "eth*": [0, 1], packages: irqbalance: "exclude"}`,
			See:   "irqbalance(1)",
			run:   irqbalance,
		},
		{
			ID: "irq-affinity-managed", Severity: diag.Warning,
			Title: "the kernel places these interrupts itself",
			Cause: "Interrupts of NVMe and virtio queues are managed by the kernel: writing their affinity fails with EIO.",
			Fix:   "leave them out; cpu.isolate keeps managed interrupts off its cores",
			Wrong: `irq: affinity: "nvme*": [0, 1]`, Right: `irq: affinity: "eth*": [0, 1]`,
			See: "kernel/irq/manage.c: irqd_affinity_is_managed",
			run: irqManaged,
		},
		{
			ID: "thread-count", Severity: diag.Warning,
			Title: "more threads than cores",
			Cause: "OpenMP, BLAS and ONNX Runtime start as many threads as they are told; more than there are cores to run on take turns and wait for each other at every barrier.",
			Fix:   "set as many threads as the service or pipeline has cores",
			Wrong: `services: "a.service": {exec: ["/usr/bin/a"], cpus: [4, 5], environment: OMP_NUM_THREADS: "6"}`,
			Right: `services: "a.service": {exec: ["/usr/bin/a"], cpus: [4, 5], environment: OMP_NUM_THREADS: "2"}`,
			See:   "OMP_NUM_THREADS of the OpenMP specification",
			run:   threadCount,
		},
	}
}

func isolateCluster(s *subject) {
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
			s.finding(s.Node.At("cpu", "isolate"), at("cpu", "isolate"), "cluster "+p.CPUs, "", "%s a clock with %s not isolated", number(in, "core %s shares", "cores %s share"), number(out, "core %s, which is", "cores %s, which are"))
		}
	}
}

// number puts cores into a phrase for one of them, or into one for several.
func number(cores []int, one, several string) string {
	if len(cores) == 1 {
		return fmt.Sprintf(one, cpulist.Format(cores))
	}
	return fmt.Sprintf(several, cpulist.Format(cores))
}

// online lists the cores that a mode of the target keeps on; nil when that is
// not known.
func (s *subject) online(mode string) []int {
	if n := s.Node.At("power", "modes", mode); n != nil {
		if list := n.At("cpu", "online"); list != nil {
			return resolve.Cores(list)
		}
		mode = n.Get("from").Word()
	}
	m, ok := s.Stock.Mode(mode)
	if !ok {
		return nil
	}
	return resolve.OnlineCores(m)
}

func housekeepingLeft(s *subject) {
	taken := s.Isolated()
	if n := s.Node.At("kernel", "args", "isolcpus"); n != nil {
		if _, cores, ok := cpuArg(n.Text); ok {
			taken = append(taken, cores...)
		}
	}
	if len(taken) == 0 {
		return
	}
	eachMode(s, func(name string, n *load.Node) {
		on := s.online(name)
		if len(on) == 0 || slices.ContainsFunc(on, func(c int) bool { return !slices.Contains(taken, c) }) {
			return
		}
		s.finding(n, at("power", "modes", name), "cores "+cpulist.Format(on)+" are on", "", "mode %s leaves no core for the system: all that are on are isolated", name)
	})
}

func affinityOffline(s *subject) {
	if s.Plan.Power == nil || s.Plan.Power.Default == "" {
		return
	}
	on := s.online(s.Plan.Power.Default)
	if len(on) == 0 {
		return
	}
	coreLists(s, func(n *load.Node, path []string) {
		cores := resolve.Cores(n)
		if path[0] == "cpu" || len(cores) == 0 || slices.ContainsFunc(cores, func(c int) bool { return slices.Contains(on, c) || c >= s.Board.Cores }) {
			return // power-cores speaks for cpu.isolate, core-exists for the rest
		}
		s.finding(n, path, "cores "+cpulist.Format(cores), "mode "+s.Plan.Power.Default+" keeps cores "+cpulist.Format(on)+" on", "all of these cores are off in the default power mode %s", s.Plan.Power.Default)
	})
}

func irqbalance(s *subject) {
	plan := s.Node.At("irq", "affinity")
	path := at("irq", "affinity")
	if plan == nil {
		plan, path = s.Node.At("cpu", "isolate"), at("cpu", "isolate")
	}
	if plan == nil {
		return
	}
	by := s.Node.At("packages", "irqbalance")
	if by == nil || by.Text != "install" {
		svc := s.Node.At("services", "irqbalance.service")
		if svc == nil || svc.Get("enable") == nil || !svc.Get("enable").True {
			return
		}
		by = svc.Get("enable")
	}
	d := s.diagnostic(plan, path, "irqbalance is in the image and moves interrupts back")
	d.Related = []diag.Related{{Pos: by.Pos, Message: "the other owner"}}
	if by.Text == "install" {
		d.Edits = []diag.Edit{{Kind: diag.ReplaceText, Pos: by.Pos, Text: `"exclude"`}}
	}
	s.report.Add(d)
}

func irqManaged(s *subject) {
	for _, f := range s.Node.At("irq", "affinity").Members() {
		if strings.HasPrefix(f.Name, "nvme") || strings.HasPrefix(f.Name, "virtio") {
			s.finding(f.Value, at("irq", "affinity", f.Name), f.Name, "", "interrupts of %s are placed by the kernel", f.Name)
		}
	}
}

// threadVariables set the number of threads of a library.
func threadVariable(name string) bool {
	switch name {
	case "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS":
		return true
	}
	return false
}

func threadCount(s *subject) {
	for _, f := range s.Node.Get("services").Members() {
		cores := len(resolve.Cores(f.Value.Get("cpus")))
		if cores == 0 {
			cores = s.Board.Cores
		}
		for _, e := range f.Value.Get("environment").Members() {
			if n, ok := decimalText(e.Value.Text); ok && threadVariable(e.Name) && n > cores {
				s.finding(e.Value, at("services", f.Name, "environment", e.Name), e.Value.Show(), "", "%s=%d on %d cores", e.Name, n, cores)
			}
		}
	}
	for _, f := range s.Node.Get("pipelines").Members() {
		cores := len(resolve.Cores(f.Value.Get("cpus")))
		if cores == 0 {
			cores = s.Board.Cores
		}
		for _, st := range f.Value.Get("stages").Members() {
			if n, ok := st.Value.Get("threads").Int64(); ok && n > int64(cores) {
				s.finding(st.Value.Get("threads"), at("pipelines", f.Name, "stages", st.Name, "threads"), st.Value.Get("threads").Show(), "", "stage %s has %d threads on %d cores", st.Name, n, cores)
			}
		}
	}
}
