package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/kconfig"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/plan"
)

// The rules of this file compare what the configuration sets on the running device with
// the options of its kernel.
func needRules() []Rule {
	return []Rule{
		{
			ID: "governor-config", Severity: diag.Error,
			Title: "the kernel lacks the cpufreq governor",
			Cause: "Each governor is an option of the kernel. Choosing one whose option is off fails on the device.",
			Fix:   "switch the governor on in kernel.config, or choose another",
			Wrong: `{cpu: governor: "powersave", kernel: config: CPU_FREQ_GOV_POWERSAVE: "n"}`,
			Right: `{cpu: governor: "powersave", kernel: config: CPU_FREQ_GOV_POWERSAVE: "y"}`,
			See:   "drivers/cpufreq/Kconfig",
			run:   checkGovernorConfig,
		},
		{
			ID: "iosched-config", Severity: diag.Error,
			Title: "the kernel lacks the I/O scheduler",
			Cause: "Each scheduler is an option of the kernel. The kernel refuses one whose option is off with EINVAL and keeps the current scheduler. Linux 4.9 has none of these schedulers, which came with 4.11 and 4.12.",
			Fix:   "switch it on in kernel.config, or choose another",
			Wrong: `{storage: "mmcblk*": scheduler: "kyber", kernel: config: MQ_IOSCHED_KYBER: "n"}`,
			Right: `storage: "mmcblk*": scheduler: "kyber"`,
			See:   "block/Kconfig.iosched",
			run:   checkIOSchedulerConfig,
		},
		{
			ID: "tcp-cc-config", Severity: diag.Error, tables: true,
			Title: "the kernel lacks the congestion control",
			Cause: "The sysctl takes the name of an algorithm that is built in or a module. Any other name fails with ENOENT, and the device stays on cubic.",
			Fix:   "switch the algorithm on in kernel.config",
			Wrong: `sysctl: "net.ipv4.tcp_congestion_control": "vegas"`,
			Right: `{kernel: config: {TCP_CONG_ADVANCED: "y", TCP_CONG_VEGAS: "y"}, sysctl: "net.ipv4.tcp_congestion_control": "vegas"}`,
			See:   "net/ipv4/Kconfig",
			run:   checkCongestionConfig,
		},
		{
			ID: "tcp-bbr-fq", Severity: diag.Error,
			Title: "BBR without fq on Linux 4.9",
			Cause: "Before Linux 4.13 BBR has no pacing of its own and relies on the fq queue. Without it BBR floods the link.",
			Fix:   `set sysctl "net.core.default_qdisc": "fq", and NET_SCH_FQ`,
			Wrong: `{board: "agx-xavier", release: "kirkstone-l4t-r32.7.x", kernel: config: {TCP_CONG_ADVANCED: "y", TCP_CONG_BBR: "y"}, sysctl: "net.ipv4.tcp_congestion_control": "bbr"}`,
			Right: `{board: "agx-xavier", release: "kirkstone-l4t-r32.7.x", kernel: config: {TCP_CONG_ADVANCED: "y", TCP_CONG_BBR: "y", NET_SCH_FQ: "y"}, sysctl: {"net.ipv4.tcp_congestion_control": "bbr", "net.core.default_qdisc": "fq"}}`,
			See:   "net/ipv4/tcp_bbr.c of Linux 4.9",
			run:   checkBBRNeedsFQ,
		},
		{
			ID: "default-qdisc", Severity: diag.Error, tables: true,
			Title: "the kernel lacks the queueing discipline",
			Cause: "net.core.default_qdisc takes the name of a discipline that is built in or a module. Any other name fails with ENOENT. Only interfaces that come up later use it.",
			Fix:   "switch the discipline on in kernel.config",
			Wrong: `sysctl: "net.core.default_qdisc": "fq"`,
			Right: `{kernel: config: NET_SCH_FQ: "y", sysctl: "net.core.default_qdisc": "fq"}`,
			See:   "net/sched/Kconfig",
			run:   checkQdiscConfig,
		},
		{
			ID: "module-autoload", Severity: diag.Warning,
			Title: "a setting needs a module that the image lacks",
			Cause: "An option built as a module is a separate package, and no package of the image depends on it. The setting then fails on the device.",
			Fix:   "load the module, which also installs its package",
			Wrong: `{kernel: config: IOSCHED_BFQ: "m", storage: "mmcblk*": scheduler: "bfq"}`,
			Right: `{kernel: config: IOSCHED_BFQ: "m", storage: "mmcblk*": scheduler: "bfq", modules: bfq: "load"}`,
			See:   "oe-core kernel-module-split.bbclass",
			run:   checkModuleAutoload,
		},
		{
			ID: "thp-config", Severity: diag.Error,
			Title: "the kernel has no transparent huge pages",
			Cause: "Without TRANSPARENT_HUGEPAGE there is no /sys/kernel/mm/transparent_hugepage. Real-time kernels lack the option.",
			Fix:   "remove the setting, or switch the option on",
			Wrong: `{kernel: preempt: "rt", memory: thp: "madvise"}`, Right: `{kernel: preempt: "rt"}`,
			See: "mm/Kconfig",
			run: checkTHPConfig,
		},
		{
			ID: "thp-always", Severity: diag.Warning,
			Title: "transparent huge pages for every process on a small memory",
			Cause: "khugepaged then promotes memory of every process. CPU and GPU share the memory of a Jetson, and a device of 16 GiB or less runs out of contiguous memory, which NvMap needs.",
			Fix:   `use "madvise", with which programs that benefit request huge pages`,
			Wrong: `memory: thp: "always"`, Right: `memory: thp: "madvise"`,
			See: "Documentation/admin-guide/mm/transhuge.rst",
			run: checkTHPAlways,
		},
		{
			ID: "ksm-config", Severity: diag.Error,
			Title: "the kernel cannot merge pages",
			Cause: "Without KSM=y there is no /sys/kernel/mm/ksm. The option is a bool, so =m switches it off.",
			Fix:   `set KSM: "y"`,
			Wrong: `{memory: ksm: true, kernel: config: KSM: "n"}`, Right: `memory: ksm: true`,
			See: "mm/Kconfig",
			run: checkKSMConfig,
		},
		{
			ID: "hugepages-config", Severity: diag.Error,
			Title: "the kernel cannot reserve huge pages",
			Cause: "Without HUGETLBFS there is no /sys/kernel/mm/hugepages, and hugepages= is ignored.",
			Fix:   `set HUGETLBFS: "y"`,
			Wrong: `{memory: hugepages: "2MiB": 64, kernel: config: HUGETLBFS: "n"}`, Right: `memory: hugepages: "2MiB": 64`,
			See: "fs/Kconfig",
			run: checkHugepagesConfig,
		},
		{
			ID: "zram-config", Severity: diag.Error,
			Title: "the kernel has no compressed swap device",
			Cause: "memory.zram needs ZRAM and SWAP in the kernel.",
			Fix:   `set ZRAM: "m"`,
			Wrong: `{memory: zram: "1GiB", kernel: config: ZRAM: "n"}`, Right: `memory: zram: "1GiB"`,
			See: "drivers/block/zram/Kconfig",
			run: checkZRAMConfig,
		},
		{
			ID: "zram-algo", Severity: diag.Error,
			Title: "the kernel lacks the compression algorithm",
			Cause: "zram lists algorithms that it cannot use: the write fails with EINVAL when the kernel lacks the compressor. yoctune requests the compressor along with the algorithm.",
			Fix:   "choose another algorithm, or leave it to the kernel",
			Wrong: `{board: "agx-xavier", release: "kirkstone-l4t-r32.7.x", memory: zram: {size: "1GiB", algorithm: "zstd"}}`,
			Right: `{board: "agx-xavier", release: "kirkstone-l4t-r32.7.x", memory: zram: {size: "1GiB", algorithm: "lz4"}}`,
			See:   "drivers/block/zram/zcomp.c",
			run:   checkZRAMAlgorithm,
		},
		{
			ID: "zram-zswap", Severity: diag.Warning,
			Title: "swap is compressed twice",
			Cause: "zswap compresses pages on their way to swap, and zram compresses them again.",
			Fix:   "use either memory.zram or zswap",
			Wrong: `{memory: zram: "1GiB", kernel: {args: "zswap.enabled": 1, config: {FRONTSWAP: "y", ZSWAP: "y"}}}`, Right: `memory: zram: "1GiB"`,
			See: "Documentation/admin-guide/mm/zswap.rst",
			run: checkZRAMWithZswap,
		},
		{
			ID: "zram-nvzramconfig", Severity: diag.Error,
			Title: "two services set up zram0",
			Cause: "L4T's nvzramconfig and memory.zram create the same device. The second one fails with EBUSY.",
			Fix:   "remove memory.zram, or leave nvzramconfig out of the image",
			Wrong: `{memory: zram: "1GiB", services: "nvzramconfig.service": enable: true}`,
			Right: `memory: zram: "1GiB"`,
			See:   "nvzramconfig of the BSP",
			run:   checkZRAMWithNVZRAM,
		},
		{
			ID: "rt-group-sched", Severity: diag.Error,
			Title: "the kernel refuses real-time priorities to services",
			Cause: "With RT_GROUP_SCHED every control group except the root starts with a real-time budget of 0, and sched_setscheduler fails with EPERM in each service. NVIDIA's r35 configuration has the option on.",
			Fix:   `set RT_GROUP_SCHED: "n"`,
			Wrong: `{board: "agx-orin-64gb", release: "kirkstone", services: "a.service": {exec: ["/usr/bin/a"], scheduling: "fifo", priority: 50}}`,
			Right: `{board: "agx-orin-64gb", release: "kirkstone", kernel: config: RT_GROUP_SCHED: "n", services: "a.service": {exec: ["/usr/bin/a"], scheduling: "fifo", priority: 50}}`,
			See:   "Documentation/scheduler/sched-rt-group.rst",
			run:   checkRTGroupSched,
		},
		{
			ID: "cgroup-memory-config", Severity: diag.Error,
			Title: "the kernel does not limit memory by control group",
			Cause: "memoryMax needs MEMCG. Without it systemd ignores the limit.",
			Fix:   `set MEMCG: "y"`,
			Wrong: `{kernel: config: MEMCG: "n", services: "a.service": {exec: ["/usr/bin/a"], memoryMax: "64MiB"}}`,
			Right: `services: "a.service": {exec: ["/usr/bin/a"], memoryMax: "64MiB"}`,
			See:   "init/Kconfig; systemd.resource-control(5)",
			run:   checkMemoryControl,
		},
		{
			ID: "cgroup-cpu-max", Severity: diag.Error,
			Title: "the kernel does not limit processor time by control group",
			Cause: "cpuQuota needs CFS_BANDWIDTH. Without it systemd ignores the limit. The kernel's own arm64 configuration lacks it.",
			Fix:   `set CFS_BANDWIDTH: "y"`,
			Wrong: `{kernel: config: CFS_BANDWIDTH: "n", services: "a.service": {exec: ["/usr/bin/a"], cpuQuota: 50}}`,
			Right: `services: "a.service": {exec: ["/usr/bin/a"], cpuQuota: 50}`,
			See:   "init/Kconfig; systemd.resource-control(5)",
			run:   checkProcessorControl,
		},
		{
			ID: "psi", Severity: diag.Error,
			Title: "the kernel does not measure pressure",
			Cause: "systemd-oomd reads /proc/pressure, and its unit does not start without it (ConditionPathExists). No base configuration of a Jetson kernel has PSI.",
			Fix:   `set PSI: "y"`,
			Wrong: `packages: "systemd-oomd": "install"`,
			Right: `{packages: "systemd-oomd": "install", kernel: config: PSI: "y"}`,
			See:   "systemd-oomd.service(8); init/Kconfig: PSI",
			run:   checkPressure,
		},
		{
			ID: "cgroup-v2", Severity: diag.Error,
			Title: "the kernel's control groups are too old",
			Cause: "Linux 4.9 has no cpu and cpuset controllers on the unified hierarchy (4.15 and 5.0) and no device programs, without which containers fail. Slices with cores need the unified hierarchy.",
			Fix:   `leave out kernel: args: "systemd.unified_cgroup_hierarchy"; pin the service itself with cpus`,
			Wrong: `{board: "nano-4gb", release: "kirkstone-l4t-r32.7.x", kernel: args: "systemd.unified_cgroup_hierarchy": 1, services: "a.service": {exec: ["/usr/bin/a"], memoryMax: "1GiB"}}`,
			Right: `{board: "nano-4gb", release: "kirkstone-l4t-r32.7.x", services: "a.service": {exec: ["/usr/bin/a"], memoryMax: "1GiB"}}`,
			See:   "Documentation/cgroup-v2.txt of Linux 4.9",
			run:   checkCgroupV2,
		},
		{
			ID: "cgroup-hybrid", Severity: diag.Warning,
			Title: "systemd of the release does not use the unified hierarchy",
			Cause: "systemd of kirkstone is built for the hybrid hierarchy (its PACKAGECONFIG lacks cgroupv2), where the controllers are on the old one. memoryHigh and the cores of a slice exist only on the unified hierarchy: systemd ignores them without a message.",
			Fix:   `boot with kernel: args: "systemd.unified_cgroup_hierarchy": 1`,
			Wrong: `{board: "orin-nano-8gb", release: "kirkstone", services: "a.service": {exec: ["/usr/bin/a"], memoryHigh: "1GiB"}}`,
			Right: `{board: "orin-nano-8gb", release: "kirkstone", kernel: args: "systemd.unified_cgroup_hierarchy": 1, services: "a.service": {exec: ["/usr/bin/a"], memoryHigh: "1GiB"}}`,
			See:   "oe-core meta/recipes-core/systemd/systemd_250.14.bb; systemd.resource-control(5)",
			run:   checkCgroupHybrid,
		},
		{
			ID: "cpuset-controller", Severity: diag.Error,
			Title: "the kernel does not keep slices to their cores",
			Cause: "A slice with isolated cores uses AllowedCPUs=, which needs CPUSETS. Without it systemd ignores the line.",
			Fix:   `set CPUSETS: "y"`,
			Wrong: `{cpu: isolate: [4, 5], kernel: config: CPUSETS: "n", services: "a.service": {exec: ["/usr/bin/a"], slice: "work"}}`,
			Right: `{cpu: isolate: [4, 5], services: "a.service": {exec: ["/usr/bin/a"], slice: "work"}}`,
			See:   "systemd.resource-control(5)",
			run:   checkCpusetControl,
		},
	}
}

// lacksKernelOption reports whether the kernel will not have an option. It is false where the facts
// do not decide it, and where the configuration requests the option: the kconfig rules
// report whether requests succeed.
func (s *subject) lacksKernelOption(symbol string) bool {
	switch {
	case s.kernel == nil, s.isEnabled(symbol):
		return false
	case s.isDisabled(symbol):
		return true
	}
	return s.kernel.IsExact() && !s.kernel.IsEnabled(symbol)
}

// choice is a field that selects a feature of the kernel by name.
type choice struct {
	config.Part
	value  string
	symbol string // option that brings it
	module string // its name where the option is m
	up     int    // levels from the field to the target's own fields
}

func (s *subject) governor() []choice {
	g := s.Config.CPU.Governor
	if !g.IsSet() {
		return nil
	}
	return []choice{{g, g.Text, "CPU_FREQ_GOV_" + strings.ToUpper(g.Text), "cpufreq_" + g.Text, 1}}
}

func (s *subject) schedulers() []choice {
	var all []choice
	for _, c := range s.Config.Storage.Entries {
		k := choice{Part: c.Scheduler, value: c.Scheduler.Text, up: 2}
		switch k.value {
		case "mq-deadline":
			k.symbol, k.module = "MQ_IOSCHED_DEADLINE", "mq-deadline"
		case "kyber":
			k.symbol, k.module = "MQ_IOSCHED_KYBER", "kyber-iosched"
		case "bfq":
			k.symbol, k.module = "IOSCHED_BFQ", "bfq"
		default:
			continue
		}
		all = append(all, k)
	}
	return all
}

// sysctlChoice is a sysctl whose value names an option below a prefix, except for the
// values that every kernel has.
func (s *subject) sysctlChoice(key, prefix, module string, always ...string) []choice {
	v := s.Config.Sysctl.Get(key)
	if v.Kind() != load.String || slices.Contains(always, v.Text) {
		return nil
	}
	return []choice{{v, v.Text, prefix + strings.ToUpper(v.Text), module + v.Text, 1}}
}

func (s *subject) congestion() []choice {
	return s.sysctlChoice("net.ipv4.tcp_congestion_control", "TCP_CONG_", "tcp_", "reno")
}

func (s *subject) qdisc() []choice {
	return s.sysctlChoice("net.core.default_qdisc", "NET_SCH_", "sch_", "pfifo_fast", "pfifo", "bfifo", "noqueue", "mq")
}

// enable completes a finding about an option that the kernel lacks with the options
// that bring it: kconfig often needs more than one, and some kernels cannot have it.
// The field is added up levels above the finding, with a prefix such as
// "kernel: config: ". An option that the configuration switches off gets no proposal.
func (s *subject) enable(f *finding, symbol, prefix string, up int) {
	if s.isDisabled(symbol) {
		return
	}
	lines := s.kernel.Enable(symbol, "y")
	fields := make([]string, 0, len(lines))
	for _, l := range lines {
		fields = append(fields, formatField(l.String()))
	}
	switch len(fields) {
	case 0:
		f.Help = "no option of kernel.config brings " + symbol + " to kernel " + s.Release.Kernel + ": remove the setting"
		return
	case 1:
		prefix += fields[0]
	default:
		prefix += "{" + strings.Join(fields, ", ") + "}"
	}
	f.suggest(prefix, up)
	if !strings.HasPrefix(prefix, "kernel:") {
		f.Help = "add kernel: " + prefix
	}
}

// require reports a choice whose option the kernel lacks.
func (s *subject) require(c choice, format string, args ...any) {
	if !s.lacksKernelOption(c.symbol) {
		return
	}
	d := s.raise(c, format, args...).withValue(c.Where().Show())
	if s.isDisabled(c.symbol) {
		d.addRelated(s.Config.Kernel.Config.Get(c.symbol), "switched off here")
		d.Help = "remove it, or choose another"
	}
	s.enable(d, c.symbol, "kernel: config: ", c.up)
}

func checkGovernorConfig(s *subject) {
	for _, c := range s.governor() {
		s.require(c, "governor %q is not in the kernel: %s is off", c.value, c.symbol)
	}
}

func checkIOSchedulerConfig(s *subject) {
	for _, c := range s.schedulers() {
		if s.Release.Kernel == "4.9" {
			s.markExplained(c.symbol)
			s.reportAt(c, c.Where().Show(), "leave the scheduler to the kernel, whose default there is cfq", "Linux 4.9 has no scheduler %q", c.value)
			continue
		}
		s.require(c, "scheduler %q is not in the kernel: %s is off", c.value, c.symbol)
	}
}

// refuseUnknown reports a choice whose module no option of the kernel builds, and whether it is one.
func (s *subject) refuseUnknown(c choice, prefix, what string) bool {
	if _, known := s.findModule(c.module); known || !s.isBracketed() || s.Config.Modules.Get(c.module).External.On {
		return false
	}
	f := s.raise(c, "kernel %s has no %s %q", s.Release.Kernel, what, c.value).withValue(c.Where().Show())
	f.unlessOwn(s)
	if near, ok := strings.CutPrefix(s.nearestModule(c.module), prefix); ok {
		f.Help = fmt.Sprintf("did you mean %q?", near)
	} else {
		f.Help = "remove it, or add modules: " + c.module + `: {value: "load", external: true} if a recipe of yours builds it`
	}
	return true
}

func checkCongestionConfig(s *subject) {
	for _, c := range s.congestion() {
		if !s.refuseUnknown(c, "tcp_", "congestion control") && c.value != "bbr" { // tcp-cc-bbr explains it
			s.require(c, "congestion control %q is not in the kernel: %s is off", c.value, c.symbol)
		}
	}
}

func checkQdiscConfig(s *subject) {
	for _, c := range s.qdisc() {
		if s.refuseUnknown(c, "sch_", "queueing discipline") {
			continue
		}
		s.require(c, "queueing discipline %q is not in the kernel: %s is off", c.value, c.symbol)
	}
}

func checkBBRNeedsFQ(s *subject) {
	cc, q := s.Config.Sysctl.Get("net.ipv4.tcp_congestion_control"), s.Config.Sysctl.Get("net.core.default_qdisc")
	if s.Release.Kernel == "4.9" && cc.Text == "bbr" && q.Text != "fq" {
		s.reportAt(cc, cc.Show(), "", "bbr on Linux 4.9 needs the fq queue to pace it")
	}
}

func checkModuleAutoload(s *subject) {
	if s.kernel == nil {
		return
	}
	for _, c := range slices.Concat(s.governor(), s.schedulers(), s.congestion(), s.qdisc()) {
		if v, _ := s.optionValue(c.symbol); v != "m" || s.loadsModule(c.module) {
			continue
		}
		s.raise(c, "%s is a module, and the image does not install %s", c.symbol, c.module).suggest(loadField(c.module), c.up)
	}
}

// loadField is the field that loads a module.
func loadField(module string) string { return "modules: " + load.PathOf("", module) + `: "load"` }

// loadsModule reports whether a module is loaded at boot, or its package installed.
func (s *subject) loadsModule(module string) bool {
	same := func(name string) bool {
		return strings.ReplaceAll(name, "-", "_") == strings.ReplaceAll(module, "-", "_")
	}
	return slices.ContainsFunc(s.Modules, func(m plan.Module) bool { return m.Action == "load" && same(m.Name) }) ||
		slices.ContainsFunc(s.Packages, func(p plan.Package) bool {
			return p.Action == "install" && (p.Name == "kernel-modules" || same(strings.TrimPrefix(p.Name, "kernel-module-")))
		})
}

func checkTHPConfig(s *subject) {
	for _, v := range []config.String{s.Config.Memory.THP, s.Config.Memory.THPDefrag} {
		// Every PREEMPT_RT kernel is without, whatever the facts describe.
		if !v.IsSet() || v.Text == "never" || !s.isRealtime() && !s.lacksKernelOption("TRANSPARENT_HUGEPAGE") {
			continue
		}
		message := "the kernel has no transparent huge pages"
		if s.isRealtime() {
			message += ": PREEMPT_RT takes them away"
		}
		s.reportAt(v, v.Show(), "", "%s", message)
		return
	}
}

// smallMemory is the size, in bytes, up to which transparent huge pages for every
// process do more harm than good.
const smallMemory = 16 << 30

func checkTHPAlways(s *subject) {
	if v := s.Config.Memory.THP; v.Text == "always" && s.Board.RAMBytes <= smallMemory {
		s.reportAt(v, v.Show(), "", "transparent huge pages always, on %d MiB that CPU and GPU share", s.Board.RAMBytes>>20)
	}
}

func checkKSMConfig(s *subject) {
	if v := s.Config.Memory.KSM; v.On && s.lacksKernelOption("KSM") {
		s.reportAt(v, v.Show(), "", "the kernel cannot merge pages: KSM is off")
	}
}

func checkHugepagesConfig(s *subject) {
	part := config.FirstSet(s.Config.Memory.Hugepages, s.Config.Kernel.Args.Get("hugepages"))
	if part.IsSet() && s.lacksKernelOption("HUGETLBFS") {
		s.reportAt(part, "", "", "the kernel cannot reserve huge pages: HUGETLBFS is off")
	}
}

func checkZRAMConfig(s *subject) {
	if s.ZRAM == nil {
		return
	}
	for _, symbol := range []string{"ZRAM", "SWAP"} {
		if s.lacksKernelOption(symbol) {
			s.reportAt(s.Config.Memory.ZRAM, "", `set `+symbol+`: "y"`, "the kernel has no compressed swap: %s is off", symbol)
			return
		}
	}
}

func checkZRAMAlgorithm(s *subject) {
	v := s.Config.Memory.ZRAM.Struct.Algorithm
	if s.ZRAM == nil || v.Text == "" || s.kernel == nil {
		return
	}
	symbol := s.Compressor(v.Text)
	if s.isDisabled(symbol) {
		s.reportAt(v, v.Show(), "remove "+symbol+": \"n\"", "zram cannot use %s: %s is off", v.Text, symbol)
		return
	}
	if !s.kernel.IsExact() || s.Config.Kernel.Config.Has(symbol) {
		return // kconfig-lost explains what becomes of it
	}
	for _, p := range s.kernel.Predictions() {
		if p.Symbol == symbol && p.Outcome != kconfig.Kept && s.markExplained(symbol) {
			s.reportAt(v, v.Show(), "", "zram cannot use %s: %s", v.Text, p.Cause)
		}
	}
}

func checkZRAMWithZswap(s *subject) {
	arg := s.Config.Kernel.Args.Get("zswap.enabled")
	if s.ZRAM != nil && !s.lacksKernelOption("ZSWAP") && (slices.Contains([]string{"1", "Y", "y"}, arg.Text) || arg.IsTrue()) {
		s.reportAt(arg, arg.Show(), "", "zswap and zram both compress what is swapped")
	}
}

func checkZRAMWithNVZRAM(s *subject) {
	if svc := s.Config.Services.Get("nvzramconfig.service"); s.ZRAM != nil && svc.Enable.On {
		s.reportAt(svc, "", "", "nvzramconfig and memory.zram make the same device")
	}
}

func checkRTGroupSched(s *subject) {
	if s.kernel == nil || s.isDisabled("RT_GROUP_SCHED") {
		return
	}
	for _, t := range s.tasks() {
		if !isRealtimePolicy(t.Scheduling.Text) {
			continue
		}
		if !s.isEnabled("RT_GROUP_SCHED") && (!s.kernel.IsExact() || !s.kernel.IsEnabled("RT_GROUP_SCHED")) {
			return
		}
		s.raise(t.Scheduling, "the kernel refuses %s to services: RT_GROUP_SCHED is on", t.Scheduling.Text).suggest(`kernel: config: RT_GROUP_SCHED: "n"`, 2)
		return
	}
}

// requireForServices reports the first service with a field that needs an option which
// the kernel lacks.
func (s *subject) requireForServices(symbol, message string, field func(*config.Service) config.Place) {
	for _, svc := range s.Config.Services.Sorted() {
		if at := field(svc); at.IsSet() && s.lacksKernelOption(symbol) {
			s.reportAt(at, at.Show(), "", "%s", message)
			return
		}
	}
}

func checkMemoryControl(s *subject) {
	s.requireForServices("MEMCG", "memory limits need MEMCG, which is off", func(svc *config.Service) config.Place { return first(s.limitsOf(svc).memoryMax) })
}

func checkProcessorControl(s *subject) {
	s.requireForServices("CFS_BANDWIDTH", "limits of processor time need CFS_BANDWIDTH, which is off", func(svc *config.Service) config.Place { return first(s.limitsOf(svc).quota) })
}

func checkPressure(s *subject) {
	pkg, enable := s.Config.Packages.Get("systemd-oomd"), s.Config.Services.Get("systemd-oomd.service").Enable
	by, up := pkg.Place, 1
	if pkg.Text != "install" {
		if !enable.On {
			return
		}
		by, up = enable.Place, 2
	}
	if !s.lacksKernelOption("PSI") {
		return
	}
	s.enable(s.raise(by, "systemd-oomd needs PSI, which is off").withValue(by.Show()), "PSI", "kernel: config: ", up)
}

func checkCgroupV2(s *subject) {
	if s.Release.Kernel != "4.9" {
		return
	}
	legacy := !s.hasUnifiedHierarchy()
	for _, p := range s.Packages {
		if p.Action == "install" && isContainerEngine(p.Name) && !legacy {
			at := s.Config.Packages.Get(p.Name)
			s.reportAt(at, at.Show(), "", "containers do not start on the unified hierarchy of Linux 4.9, and nvidia-container-toolkit %s of %s does not support it", s.Release.ContainerToolkit, s.Release.Name)
		}
	}
	for _, svc := range s.Config.Services.Entries {
		if at := first(s.limitsOf(svc).memoryMax); at.IsSet() && !legacy {
			s.reportAt(at, "", "", "limits of services do not work with the unified hierarchy of Linux 4.9")
		}
		if svc.Slice.IsSet() && len(s.Isolated()) > 0 {
			s.reportAt(svc.Slice, svc.Slice.Show(), "give the service its cores with cpus", "Linux 4.9 cannot keep a slice to cores")
		}
	}
}

// hasUnifiedHierarchy reports whether systemd mounts the unified hierarchy: by its argument, or
// the release's build, which is hybrid up to systemd 250 of openembedded-core.
func (s *subject) hasUnifiedHierarchy() bool {
	switch s.Config.Kernel.Args.Get("systemd.unified_cgroup_hierarchy").Text {
	case "0", "no", "n", "false", "off":
		return false
	case "":
		return s.Release.CoreBranch() != "kirkstone"
	}
	return true
}

func checkCgroupHybrid(s *subject) {
	if s.hasUnifiedHierarchy() || s.Release.Kernel == "4.9" { // cgroup-v2 reports that kernel
		return
	}
	for _, svc := range s.Config.Services.Entries {
		if at := first(s.limitsOf(svc).memoryHigh); at.IsSet() {
			s.reportAt(at, at.Show(), "", "systemd of %s ignores %s on its hybrid hierarchy", s.Release.Name, at.Key())
		}
		if svc.Slice.IsSet() && len(s.Isolated()) > 0 {
			s.reportAt(svc.Slice, svc.Slice.Show(), "", "systemd of %s keeps no slice to its cores on its hybrid hierarchy", s.Release.Name)
		}
	}
}

// isContainerEngine reports whether a package brings a container engine.
func isContainerEngine(name string) bool {
	switch name {
	case "docker", "docker-ce", "docker-moby", "containerd", "containerd-opencontainers", "podman", "cri-o", "nvidia-container-toolkit", "nvidia-docker", "nvidia-container-runtime":
		return true
	}
	return false
}

func checkCpusetControl(s *subject) {
	if len(s.Isolated()) > 0 && s.Release.Kernel != "4.9" {
		s.requireForServices("CPUSETS", "the slice cannot be kept to its cores: CPUSETS is off", func(svc *config.Service) config.Place { return svc.Slice.Place })
	}
}
