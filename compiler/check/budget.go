package check

import (
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
)

// budgetRules are rules about resources of services, cores and memory that the kernel or
// the module cannot give.
func budgetRules() []Rule {
	return []Rule{
		{
			ID: "cpuset-partition", Severity: diag.Error,
			Title: "unsupported partition of a slice",
			Cause: `A partition takes the slice's cores away from everything else, so it needs a slice with cores of its own. Linux before 6.1 has no "isolated" partitions; from 6.7 on, cores that cpu.isolate isolates at boot can only be in one (kernel/cgroup/cpuset.c, prstate_housekeeping_conflict). All services of a slice share one partition.`,
			Fix:   `name a slice, isolate cores with cpu.isolate, and use "root" before Linux 6.1 and "isolated" from 6.7 on`,
			Wrong: `{cpu: isolate: [4, 5], services: "a.service": {exec: ["/usr/bin/a"], slice: "work", cpuPartition: "isolated"}}`,
			Right: `{cpu: isolate: [4, 5], services: "a.service": {exec: ["/usr/bin/a"], slice: "work", cpuPartition: "root"}}`,
			See:   "Documentation/admin-guide/cgroup-v2.rst: cpuset.cpus.partition",
			run:   checkCpusetPartition,
		},
		{
			ID: "io-weight-scheduler", Severity: diag.Warning,
			Title: "ioWeight has no effect without bfq",
			Cause: "Only the bfq scheduler applies weights. With none, mq-deadline and kyber every service gets the same share.",
			Fix:   `use scheduler: "bfq" for the disk, or leave ioWeight out`,
			Wrong: `services: "a.service": {exec: ["/usr/bin/a"], ioWeight: 200}`,
			Right: `{storage: "mmcblk*": scheduler: "bfq", services: "a.service": {exec: ["/usr/bin/a"], ioWeight: 200}}`,
			See:   "Documentation/block/bfq-iosched.rst; cgroup-v2.rst: io.weight",
			run:   checkIOWeight,
		},
		{
			ID: "cpuidle-latency", Severity: diag.Warning,
			Title: "idle states are bounded in two ways",
			Cause: "cpu.maxIdleLatency keeps cores out of deep idle states. An argument that switches idle states off permanently leaves it without effect, and costs power and the higher clocks of a cooler core.",
			Fix:   "keep cpu.maxIdleLatency and remove the argument",
			Wrong: `{cpu: maxIdleLatency: "20us", kernel: args: "cpuidle.off": 1}`, Right: `cpu: maxIdleLatency: "20us"`,
			See: "Documentation/admin-guide/pm/cpuidle.rst",
			run: checkIdleLatency,
		},
		{
			ID: "mglru", Severity: diag.Error,
			Title: "the kernel has no multi-generational LRU",
			Cause: "/sys/kernel/mm/lru_gen comes with Linux 6.1 and the option LRU_GEN. NVIDIA's kernels up to L4T R36 are older.",
			Fix:   "remove memory.mglru",
			Wrong: `memory: mglru: true`, Right: `{board: "agx-orin-64gb", release: "wrynose", memory: mglru: true}`,
			See: "Documentation/admin-guide/mm/multigen_lru.rst",
			run: checkMultiGeneration,
		},
		{
			ID: "systemd-bpf", Severity: diag.Error,
			Title: "access to devices cannot be limited",
			Cause: "With the unified hierarchy, systemd and container runtimes limit devices and networks by BPF programs attached to control groups. Without CGROUP_BPF or BPF_SYSCALL containers fail to start, and systemd logs once that it does not enforce the limit.",
			Fix:   `leave CGROUP_BPF and BPF_SYSCALL on`,
			Wrong: `{kernel: config: CGROUP_BPF: "n", packages: "nvidia-container-toolkit": "install"}`,
			Right: `packages: "nvidia-container-toolkit": "install"`,
			See:   "systemd README: required kernel options",
			run:   checkSystemdBPF,
		},
		{
			ID: "workqueue-power", Severity: diag.Error,
			Title: "a service writes a parameter that is read-only after boot",
			Cause: "/sys/module/workqueue/parameters/power_efficient is read-only while the system runs. The write fails with EACCES, even for root.",
			Fix:   `set it at boot: kernel: args: "workqueue.power_efficient": 1`,
			Wrong: `services: "wq.service": exec: ["/bin/sh", "-c", "echo Y > /sys/module/workqueue/parameters/power_efficient"]`,
			Right: `kernel: args: "workqueue.power_efficient": 1`,
			See:   "kernel/workqueue.c: module_param_named(power_efficient, ..., 0444)",
			run:   checkWorkqueuePower,
		},
		{
			ID: "default-qdisc-late", Severity: diag.Warning,
			Title: "the interface is up before the default queueing discipline is set",
			Cause: "net.core.default_qdisc applies to interfaces that come up later. An interface that the kernel itself brings up, for a root file system on the network, keeps the kernel's built-in default.",
			Fix:   `set the default in the kernel: kernel: config: {NET_SCH_DEFAULT: "y", DEFAULT_FQ: "y"}`,
			Wrong: `{sysctl: "net.core.default_qdisc": "fq_codel", kernel: {config: NET_SCH_FQ_CODEL: "y", args: ip: "dhcp"}}`,
			Right: `{sysctl: "net.core.default_qdisc": "fq_codel", kernel: config: NET_SCH_FQ_CODEL: "y"}`,
			See:   "Documentation/admin-guide/sysctl/net.rst: default_qdisc",
			run:   checkLateQdisc,
		},
		{
			ID: "smt-none", Severity: diag.Info,
			Title: "the module's cores have one thread each",
			Cause: "No core of a Jetson module runs several threads, so the setting has no effect.",
			Fix:   "remove cpu.smt",
			Wrong: `cpu: smt: "off"`, Right: `cpu: governor: "schedutil"`,
			See: "/sys/devices/system/cpu/smt/active",
			run: checkSMT,
		},
		{
			ID: "numa-none", Severity: diag.Info,
			Title: "the module's memory is one node",
			Cause: "CPU and GPU of a Jetson share one memory. Balancing pages between nodes costs time and has no effect.",
			Fix:   "remove it",
			Wrong: `services: "a.service": exec: ["/usr/bin/numactl", "--interleave=all", "/usr/bin/a"]`, Right: `services: "a.service": exec: ["/usr/bin/a"]`,
			See: "numactl(8)",
			run: checkNUMA,
		},
		{
			ID: "allocator-package", Severity: diag.Warning,
			Title: "the memory allocator is not in the image",
			Cause: "The loader logs that it cannot preload the library, and starts the program with the C library's own allocator.",
			Fix:   "install the package as well",
			Wrong: `services: "a.service": {exec: ["/usr/bin/a"], environment: LD_PRELOAD: "/usr/lib/libjemalloc.so.2"}`,
			Right: `{packages: jemalloc: "install", services: "a.service": {exec: ["/usr/bin/a"], environment: LD_PRELOAD: "/usr/lib/libjemalloc.so.2"}}`,
			See:   "ld.so(8)",
			run:   checkAllocatorPackage,
		},
	}
}

func checkCpusetPartition(s *subject) {
	first := map[string]config.String{}
	for _, svc := range s.Config.Services.Entries {
		partition, slice := svc.CPUPartition, svc.Slice.Text
		if !partition.IsSet() {
			continue
		}
		switch other := first[slice]; {
		case slice == "":
			s.reportAt(partition, partition.Show(), "give the service a slice of its own", "service %s has no slice that could be a partition", svc.Key())
			continue
		case other.IsSet() && other.Text != partition.Text:
			s.raise(partition, "slice %s cannot be two partitions", slice).withValue(partition.Show()).addRelated(other, "another service of the slice has "+other.Show())
		case partition.Text != "member" && len(s.Isolated()) == 0:
			s.reportAt(partition, partition.Show(), "isolate cores with cpu.isolate", "slice %s has no cores of its own", slice)
		case partition.Text == "isolated" && !resolve.KernelAtLeast(s.Release.Kernel, 6, 1),
			partition.Text == "root" && !resolve.KernelAtLeast(s.Release.Kernel, 5, 0):
			s.reportAt(partition, partition.Show(), "", "Linux %s has no partitions of kind %s", s.Release.Kernel, partition.Text)
		case partition.Text == "root" && resolve.KernelAtLeast(s.Release.Kernel, 6, 7):
			s.reportAt(partition, partition.Show(), `use "isolated"`, "Linux %s allows cores that are isolated at boot in isolated partitions only", s.Release.Kernel)
		}
		first[slice] = partition
	}
}

func checkIOWeight(s *subject) {
	if slices.ContainsFunc(s.Config.Storage.Entries, func(d *config.Storage) bool { return d.Scheduler.Text == "bfq" }) {
		return
	}
	for _, svc := range s.Config.Services.Entries {
		if w := first(s.limitsOf(svc).ioWeight); w.IsSet() {
			s.reportAt(w, w.Show(), "", "no disk of the target has the scheduler bfq: the weight of %s has no effect", svc.Key())
		}
	}
}

func checkIdleLatency(s *subject) {
	latency := s.Config.CPU.MaxIdleLatency
	if !latency.IsSet() {
		return
	}
	for _, name := range []string{"cpuidle.off", "nohlt", "idle"} {
		if arg := s.Config.Kernel.Args.Get(name); arg.IsSet() {
			s.raise(arg, "argument %s and cpu.maxIdleLatency both bound idle states", name).addRelated(latency, "the other bound")
		}
	}
}

func checkMultiGeneration(s *subject) {
	part := config.FirstSet(s.Config.Memory.MGLRU, s.Config.Memory.MGLRUMinTTL)
	switch {
	case !part.IsSet():
	case !resolve.KernelAtLeast(s.Release.Kernel, 6, 1):
		s.reportAt(part, part.Show(), "", "Linux %s of release %s has no multi-generational LRU", s.Release.Kernel, s.Release.Name)
	case s.isDisabled("LRU_GEN"):
		s.reportAt(part, part.Show(), `set LRU_GEN: "y"`, "kernel.config switches LRU_GEN off")
	}
}

func checkSystemdBPF(s *subject) {
	var engine *config.String
	for _, p := range s.Config.Packages.Entries {
		if engine == nil && p.Text == "install" && isContainerEngine(p.Key()) {
			engine = &p.String
		}
	}
	for _, symbol := range []string{"CGROUP_BPF", "BPF_SYSCALL"} {
		option := s.Config.Kernel.Config.Get(symbol)
		if option.Text != "n" || engine == nil && len(s.Services) == 0 {
			continue
		}
		d := s.raise(option, "without %s services are not restricted to their devices", symbol)
		if engine != nil {
			d.Message = "without " + symbol + " no container starts"
			d.addRelated(engine, engine.Key()+" needs it")
		}
		return
	}
}

func checkWorkqueuePower(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		for _, c := range commandsOf(svc) {
			for _, w := range c.Items {
				if strings.Contains(w.Text, "/sys/module/workqueue/parameters/") {
					s.reportAt(w, w.Show(), "", "service %s writes a read-only parameter", svc.Key())
				}
			}
		}
	}
}

func checkLateQdisc(s *subject) {
	qdisc := s.Config.Sysctl.Get("net.core.default_qdisc")
	if !qdisc.IsSet() {
		return
	}
	for _, name := range []string{"ip", "nfsroot"} {
		if arg := s.Config.Kernel.Args.Get(name); arg.IsSet() && arg.Text != "off" && arg.Text != "none" {
			s.raise(qdisc, "the kernel brings an interface up before %s is set", qdisc.Text).addRelated(arg, "by argument "+name)
			return
		}
	}
}

func checkSMT(s *subject) {
	if smt := s.Config.CPU.SMT; smt.IsSet() {
		s.reportAt(smt, smt.Show(), "", "each core of %s has one thread", s.Board.ID)
	}
}

func checkNUMA(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		for _, c := range commandsOf(svc) {
			if path.Base(c.program()) == "numactl" {
				s.reportAt(c.Items[0], c.Items[0].Show(), "", "%s has one memory for all cores", s.Board.ID)
			}
		}
	}
}

func checkAllocatorPackage(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		preload := svc.Environment.Get("LD_PRELOAD")
		for lib, pkg := range map[string]string{"libjemalloc": "jemalloc", "libtcmalloc": "gperftools", "libmimalloc": "mimalloc"} {
			if strings.Contains(preload.Text, lib) && s.Config.Packages.Get(pkg).Text != "install" {
				s.reportAt(preload, preload.Show(), `packages: `+pkg+`: "install"`, "%s is not in the image", pkg)
			}
		}
	}
}
