package check

import (
	"path"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/resolve"
)

// What a service or a core is given, and what the kernel and the module make of it.
func budgetRules() []Rule {
	return []Rule{
		{
			ID: "cpuset-partition", Severity: diag.Error,
			Title: "the kernel does not make this partition of a slice",
			Cause: "A partition takes the slice's cores away from everything else, so that it needs a slice with cores of its own. Linux before 6.1 has no \"isolated\" partitions, and a slice is one partition, whoever runs in it.",
			Fix:   `name a slice, isolate cores with cpu.isolate, and use "root" before Linux 6.1`,
			Wrong: `{cpu: isolate: [4, 5], services: "a.service": {exec: ["/usr/bin/a"], slice: "work", cpuPartition: "isolated"}}`,
			Right: `{cpu: isolate: [4, 5], services: "a.service": {exec: ["/usr/bin/a"], slice: "work", cpuPartition: "root"}}`,
			See:   "Documentation/admin-guide/cgroup-v2.rst: cpuset.cpus.partition",
			run:   cpusetPartition,
		},
		{
			ID: "io-weight-scheduler", Severity: diag.Warning,
			Title: "no disk keeps the weight",
			Cause: "Weights are kept by the bfq scheduler; with none, mq-deadline and kyber every service gets the same, whatever its weight.",
			Fix:   `use scheduler: "bfq" for the disk, or leave ioWeight out`,
			Wrong: `services: "a.service": {exec: ["/usr/bin/a"], ioWeight: 200}`,
			Right: `{storage: "mmcblk*": scheduler: "bfq", services: "a.service": {exec: ["/usr/bin/a"], ioWeight: 200}}`,
			See:   "Documentation/block/bfq-iosched.rst; cgroup-v2.rst: io.weight",
			run:   ioWeight,
		},
		{
			ID: "cpuidle-latency", Severity: diag.Warning,
			Title: "idle states are bounded in two ways",
			Cause: "cpu.maxIdleLatency keeps cores out of deep idle states while it is wanted. An argument that switches idle states off for good leaves it nothing to choose, and costs power and the clocks that a cooler core could have.",
			Fix:   "keep cpu.maxIdleLatency and remove the argument",
			Wrong: `{cpu: maxIdleLatency: "20us", kernel: args: "cpuidle.off": 1}`, Right: `cpu: maxIdleLatency: "20us"`,
			See: "Documentation/admin-guide/pm/cpuidle.rst",
			run: idleLatency,
		},
		{
			ID: "mglru", Severity: diag.Error,
			Title: "the kernel has no multi-generational LRU",
			Cause: "/sys/kernel/mm/lru_gen comes with Linux 6.1 and the option LRU_GEN; NVIDIA's kernels up to L4T R36 are older.",
			Fix:   "remove memory.mglru",
			Wrong: `memory: mglru: true`, Right: `{board: "agx-orin-64gb", release: "wrynose", memory: mglru: true}`,
			See: "Documentation/admin-guide/mm/multigen_lru.rst",
			run: multiGeneration,
		},
		{
			ID: "systemd-bpf", Severity: diag.Error,
			Title: "access to devices cannot be limited",
			Cause: "With the unified hierarchy systemd and container runtimes limit devices and networks by programs attached to control groups. Without CGROUP_BPF or BPF_SYSCALL containers fail to start, and systemd says once that it does not enforce the limit.",
			Fix:   `leave CGROUP_BPF and BPF_SYSCALL on`,
			Wrong: `{kernel: config: CGROUP_BPF: "n", packages: "nvidia-container-toolkit": "install"}`,
			Right: `packages: "nvidia-container-toolkit": "install"`,
			See:   "systemd README: required kernel options",
			run:   systemdBPF,
		},
		{
			ID: "workqueue-power", Severity: diag.Error,
			Title: "a parameter is written that the kernel takes at boot only",
			Cause: "/sys/module/workqueue/parameters/power_efficient is read-only while the system runs: the write fails with EACCES, for root too.",
			Fix:   `set it at boot: kernel: args: "workqueue.power_efficient": 1`,
			Wrong: `services: "wq.service": exec: ["/bin/sh", "-c", "echo Y > /sys/module/workqueue/parameters/power_efficient"]`,
			Right: `kernel: args: "workqueue.power_efficient": 1`,
			See:   "kernel/workqueue.c: module_param_named(power_efficient, ..., 0444)",
			run:   workqueuePower,
		},
		{
			ID: "default-qdisc-late", Severity: diag.Warning,
			Title: "the interface is up before the default queueing discipline is chosen",
			Cause: "net.core.default_qdisc is for interfaces that come up later. One that the kernel itself brings up, for a root file system on the network, keeps what the kernel was built with.",
			Fix:   `choose the default in the kernel: kernel: config: {NET_SCH_DEFAULT: "y", DEFAULT_FQ: "y"}`,
			Wrong: `{sysctl: "net.core.default_qdisc": "fq_codel", kernel: {config: NET_SCH_FQ_CODEL: "y", args: ip: "dhcp"}}`,
			Right: `{sysctl: "net.core.default_qdisc": "fq_codel", kernel: config: NET_SCH_FQ_CODEL: "y"}`,
			See:   "Documentation/admin-guide/sysctl/net.rst: default_qdisc",
			run:   qdiscLate,
		},
		{
			ID: "smt-none", Severity: diag.Info,
			Title: "the module's cores have one thread each",
			Cause: "No core of a Jetson module runs several threads: there is nothing to switch off.",
			Fix:   "remove cpu.smt",
			Wrong: `cpu: smt: "off"`, Right: `cpu: governor: "schedutil"`,
			See: "/sys/devices/system/cpu/smt/active",
			run: smtNone,
		},
		{
			ID: "numa-none", Severity: diag.Info,
			Title: "the module's memory is one node",
			Cause: "CPU and GPU of a Jetson share one memory. Balancing pages between nodes costs time and finds nothing to do.",
			Fix:   "remove it",
			Wrong: `services: "a.service": exec: ["/usr/bin/numactl", "--interleave=all", "/usr/bin/a"]`, Right: `services: "a.service": exec: ["/usr/bin/a"]`,
			See: "numactl(8)",
			run: numaNone,
		},
		{
			ID: "allocator-package", Severity: diag.Warning,
			Title: "the memory allocator is not in the image",
			Cause: "The loader says in the log that it cannot preload a library, and starts the program with the C library's own allocator.",
			Fix:   "install the package as well",
			Wrong: `services: "a.service": {exec: ["/usr/bin/a"], environment: LD_PRELOAD: "/usr/lib/libjemalloc.so.2"}`,
			Right: `{packages: jemalloc: "install", services: "a.service": {exec: ["/usr/bin/a"], environment: LD_PRELOAD: "/usr/lib/libjemalloc.so.2"}}`,
			See:   "ld.so(8)",
			run:   allocatorPackage,
		},
	}
}

func cpusetPartition(s *subject) {
	first := map[string]*load.Node{}
	for _, f := range s.Node.Get("services").Members() {
		n := f.Value.Get("cpuPartition")
		if n == nil {
			continue
		}
		where := at("services", f.Name, "cpuPartition")
		slice := f.Value.Get("slice").Word()
		switch other := first[slice]; {
		case slice == "":
			s.finding(n, where, n.Show(), "give the service a slice of its own", "service %s has no slice that could be a partition", f.Name)
			continue
		case other != nil && other.Text != n.Text:
			d := s.diagnostic(n, where, "slice %s cannot be two partitions", slice)
			d.Got = n.Show()
			d.Related = []diag.Related{{Pos: other.Pos, Message: "another service of the slice says " + other.Show()}}
			s.report.Add(d)
		case n.Text != "member" && len(s.Isolated()) == 0:
			s.finding(n, where, n.Show(), "isolate cores with cpu.isolate", "slice %s has no cores of its own", slice)
		case n.Text == "isolated" && !resolve.KernelAtLeast(s.Release.Kernel, 6, 1),
			n.Text == "root" && !resolve.KernelAtLeast(s.Release.Kernel, 5, 0):
			s.finding(n, where, n.Show(), "", "Linux %s has no partitions of kind %s", s.Release.Kernel, n.Text)
		}
		first[slice] = n
	}
}

func ioWeight(s *subject) {
	for _, d := range s.Storage {
		if d.Scheduler == "bfq" {
			return
		}
	}
	for _, f := range s.Node.Get("services").Members() {
		if n := f.Value.Get("ioWeight"); n != nil {
			s.finding(n, at("services", f.Name, "ioWeight"), n.Show(), "", "no disk of the target has the scheduler bfq: the weight of %s has no effect", f.Name)
		}
	}
}

func idleLatency(s *subject) {
	n := s.Node.At("cpu", "maxIdleLatency")
	if n == nil {
		return
	}
	for _, name := range []string{"cpuidle.off", "nohlt", "idle"} {
		if a := s.Node.At("kernel", "args", name); a != nil {
			d := s.diagnostic(a, at("kernel", "args", name), "argument %s and cpu.maxIdleLatency both bound idle states", name)
			d.Related = []diag.Related{{Pos: n.Pos, Message: "the other bound"}}
			s.report.Add(d)
		}
	}
}

func multiGeneration(s *subject) {
	for _, field := range []string{"mglru", "mglruMinTTL"} {
		n := s.Node.At("memory", field)
		if n == nil {
			continue
		}
		if !resolve.KernelAtLeast(s.Release.Kernel, 6, 1) {
			s.finding(n, at("memory", field), n.Show(), "", "Linux %s of release %s has no multi-generational LRU", s.Release.Kernel, s.Release.Name)
		} else if s.off("LRU_GEN") {
			s.finding(n, at("memory", field), n.Show(), `set LRU_GEN: "y"`, "kernel.config switches LRU_GEN off")
		}
		return
	}
}

// containers finds what puts containers into the image.
func (s *subject) containers() (*load.Node, string) {
	for _, f := range s.Node.Get("packages").Members() {
		if f.Value.Text == "install" && isContainerEngine(f.Name) {
			return f.Value, f.Name
		}
	}
	return nil, ""
}

func systemdBPF(s *subject) {
	user, name := s.containers()
	for _, symbol := range []string{"CGROUP_BPF", "BPF_SYSCALL"} {
		n := s.Node.At("kernel", "config", symbol)
		if n == nil || n.Text != "n" || user == nil && len(s.Services) == 0 {
			continue
		}
		d := s.diagnostic(n, at("kernel", "config", symbol), "without %s services are not kept to their devices", symbol)
		if user != nil {
			d.Message = "without " + symbol + " no container starts"
			d.Related = []diag.Related{{Pos: user.Pos, Message: name + " needs it"}}
		}
		s.report.Add(d)
		return
	}
}

func workqueuePower(s *subject) {
	for _, f := range s.Node.Get("services").Members() {
		for _, w := range words(f.Value.Get("exec")) {
			if strings.Contains(w.Text, "/sys/module/workqueue/parameters/") {
				s.finding(w, at("services", f.Name, "exec"), w.Show(), "", "service %s writes a parameter that is read-only", f.Name)
			}
		}
	}
}

func qdiscLate(s *subject) {
	n := s.Node.At("sysctl", "net.core.default_qdisc")
	if n == nil {
		return
	}
	for _, name := range []string{"ip", "nfsroot"} {
		if a := s.Node.At("kernel", "args", name); a != nil && a.Text != "off" && a.Text != "none" {
			d := s.diagnostic(n, at("sysctl", "net.core.default_qdisc"), "the kernel brings an interface up before it is told of %s", n.Text)
			d.Related = []diag.Related{{Pos: a.Pos, Message: "by argument " + name}}
			s.report.Add(d)
			return
		}
	}
}

func smtNone(s *subject) {
	if n := s.Node.At("cpu", "smt"); n != nil {
		s.finding(n, at("cpu", "smt"), n.Show(), "", "each core of %s has one thread", s.Board.ID)
	}
}

func numaNone(s *subject) {
	for _, f := range s.Node.Get("services").Members() {
		if words := words(f.Value.Get("exec")); len(words) > 0 && path.Base(words[0].Text) == "numactl" {
			s.finding(words[0], at("services", f.Name, "exec"), words[0].Show(), "", "%s has one memory for all cores", s.Board.ID)
		}
	}
}

func allocatorPackage(s *subject) {
	for _, f := range s.Node.Get("services").Members() {
		n := f.Value.At("environment", "LD_PRELOAD")
		if n == nil {
			continue
		}
		for lib, pkg := range map[string]string{"libjemalloc": "jemalloc", "libtcmalloc": "gperftools", "libmimalloc": "mimalloc"} {
			if !strings.Contains(n.Text, lib) {
				continue
			}
			if p := s.Node.At("packages", pkg); p == nil || p.Text != "install" {
				s.finding(n, at("services", f.Name, "environment", "LD_PRELOAD"), n.Show(), `packages: `+pkg+`: "install"`, "%s is not in the image", pkg)
			}
		}
	}
}

// words lists the words of a command; none when there is none.
func words(exec *load.Node) []*load.Node {
	if exec == nil {
		return nil
	}
	return exec.Items
}
