package check

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

// The rules of this file read kernel arguments as the kernel does.
func argRules() []Rule {
	return []Rule{
		{
			ID: "kernel-arg-cores", Severity: diag.Error, Firm: true,
			Title: "a kernel argument's list of cores is wrong",
			Cause: "isolcpus, nohz_full, rcu_nocbs and irqaffinity take a list such as 1-3,5 of cores that exist; the kernel ignores the whole argument when it cannot read it, and keeps core 0 out of nohz_full.",
			Fix:   "list existing cores; or say cpu.isolate, and yoctune writes all of these arguments",
			Wrong: `kernel: args: irqaffinity: "0-7"`, Right: `kernel: args: irqaffinity: "0-3"`,
			See: "Documentation/admin-guide/kernel-parameters.txt",
			run: argCores,
		},
		{
			ID: "kernel-arg-value", Severity: diag.Error,
			Title: "the kernel does not read the argument's value",
			Cause: "The argument takes one of a few words, a number, or a size such as 256M; the kernel passes over anything else, with a line in the log at best.",
			Fix:   "write what the argument takes",
			Wrong: `kernel: args: mitigations: "none"`, Right: `kernel: args: mitigations: "off"`,
			See: "Documentation/admin-guide/kernel-parameters.txt",
			run: argValue,
		},
		{
			ID: "isolcpus-config", Severity: diag.Error,
			Title: "isolcpus has flags that the kernel does not know",
			Cause: "Flags before the list came with Linux 4.15 (domain, nohz) and 5.6 (managed_irq); an older kernel reads them as a broken list and isolates nothing.",
			Fix:   "leave the flags out, or say cpu.isolate, which knows the kernel",
			Wrong: `{board: "agx-xavier", release: "kirkstone-l4t-r32.7.x", kernel: args: isolcpus: "domain,6-7"}`,
			Right: `{board: "agx-xavier", release: "kirkstone-l4t-r32.7.x", kernel: args: isolcpus: "6-7"}`,
			See:   "kernel/sched/isolation.c",
			run:   isolcpusFlags,
		},
		{
			ID: "kernel-arg-config", Severity: diag.Error,
			Title: "the kernel ignores an argument",
			Cause: "The argument belongs to an option that the kernel does not have: the kernel passes over it without a word.",
			Fix:   "switch the option on in kernel.config, or remove the argument",
			Wrong: `kernel: args: rcu_nocbs: "4-5"`, Right: "cpu: isolate: [4, 5]",
			See: "Documentation/admin-guide/kernel-parameters.txt",
			run: argConfig,
		},
		{
			ID: "kernel-arg-dead", Severity: diag.Error,
			Title: "a kernel argument has no effect any more",
			Cause: "Multi-queue block devices, which is all of them since Linux 5.0, do not read elevator=.",
			Fix:   "set the scheduler under storage",
			Wrong: `kernel: args: elevator: "mq-deadline"`, Right: `storage: "nvme*": scheduler: "mq-deadline"`,
			See: "block/elevator.c",
			run: argDead,
		},
		{
			ID: "kernel-arg-order", Severity: diag.Error,
			Title: "the order of huge page arguments decides, and cannot be written",
			Cause: "hugepages= counts pages of the size that stands before it on the command line; arguments here have no order, so that the count would go to the default size.",
			Fix:   "reserve them with memory.hugepages",
			Wrong: `kernel: args: {hugepagesz: "1G", hugepages: 2}`, Right: `memory: hugepages: "1GiB": 2`,
			See: "Documentation/admin-guide/mm/hugetlbpage.rst",
			run: argOrder,
		},
		{
			ID: "kernel-arg-stock", Severity: diag.Warning,
			Title: "the BSP sets the argument as well",
			Cause: "The machine's own KERNEL_ARGS hold the argument. Both reach the kernel, the layer's last; most arguments take the last one, and some add up.",
			Fix:   "change KERNEL_ARGS in your machine configuration, or remove the argument",
			Wrong: `kernel: args: fbcon: "map:1"`, Right: `kernel: args: quiet: true`,
			See: "meta-tegra conf/machine",
			run: argStock,
		},
		{
			ID: "kernel-arg-twice", Severity: diag.Error,
			Title: "a kernel argument is given twice in two spellings",
			Cause: "The kernel takes - and _ in the name of an argument for the same character, so that both reach it; most arguments take the last one, and some add up.",
			Fix:   "keep one of the two",
			Wrong: `kernel: args: {log_buf_len: "1M", "log-buf-len": "2M"}`, Right: `kernel: args: log_buf_len: "1M"`,
			See: "kernel/params.c: parameqn",
			run: argTwice,
		},
		{
			ID: "kernel-arg-root", Severity: diag.Warning,
			Title: "the BSP decides what is mounted as root",
			Cause: "The kernel itself mounts no root: the BSP's initial file system does. It takes the partition APP of the slot that was booted, whatever kind of file system it holds, and root= only where there is none; machines that boot with U-Boot (R32) have root= in their boot configuration, and another would be a second one. It reads ro, and from scarthgap on rootfstype=; rootflags=, rootdelay= and nfsroot= it passes over.",
			Fix:   "leave it out; a squashfs root is a matter of the image's type, and ro of its own is read",
			Wrong: `kernel: args: root: "/dev/mmcblk0p1"`, Right: `kernel: args: quiet: true`,
			See: "meta-tegra recipes-core/initrdscripts/tegra-minimal-init, conf/machine/include/tegra-common.inc",
			run: argRoot,
		},
		{
			ID: "cmdline-tegra", Severity: diag.Warning,
			Title: "the command line has two owners",
			Cause: "A command line built into the kernel competes with the one from UEFI, extlinux or the boot image; with CMDLINE_FORCE the other is dropped, root= included.",
			Fix:   "use kernel.args",
			Wrong: `kernel: config: CMDLINE: "quiet"`, Right: `kernel: args: quiet: true`,
			See: "arch/arm64/Kconfig: CMDLINE",
			run: cmdlineOwner,
		},
	}
}

// cpuArg reads the kernel's cpu list; flags before it, as isolcpus has, are
// returned apart.
func cpuArg(text string) (flags []string, cores []int, ok bool) {
	for {
		flag, rest, more := strings.Cut(text, ",")
		if flag == "" || flag[0] >= '0' && flag[0] <= '9' {
			break
		}
		if !more {
			return nil, nil, false // a word such as all
		}
		flags, text = append(flags, flag), rest
	}
	cores, err := cpulist.Parse(text)
	return flags, cores, err == nil && len(cores) > 0
}

// eachArg visits the arguments that the configuration writes itself.
func eachArg(s *subject, f func(name string, n *load.Node, path []string)) {
	for _, a := range s.Node.At("kernel", "args").Members() {
		f(a.Name, a.Value, at("kernel", "args", a.Name))
	}
}

func coreArg(name string) bool {
	return slices.Contains([]string{"isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity"}, name)
}

func argCores(s *subject) {
	eachArg(s, func(name string, n *load.Node, path []string) {
		if !coreArg(name) {
			return
		}
		if name == "rcu_nocbs" && (n.Text == "all" || n.Kind == load.Bool) {
			return
		}
		flags, cores, ok := cpuArg(n.Text)
		if n.Kind == load.Bool || !ok {
			s.finding(n, path, n.Show(), "", "%s is no list of cores", name)
			return
		}
		if len(flags) > 0 && name != "isolcpus" {
			s.finding(n, path, n.Show(), "", "%s takes no flags", name)
			return
		}
		for _, c := range cores {
			if c >= s.Board.Cores {
				s.finding(n, path, n.Show(), "the cores of "+s.Board.ID+" are 0 to "+strconv.Itoa(s.Board.Cores-1), "core %d does not exist", c)
				return
			}
		}
		if name == "nohz_full" && slices.Contains(cores, 0) {
			s.finding(n, path, n.Show(), "leave core 0 out", "core 0 keeps the time for the others and cannot be in nohz_full")
		}
		if name == "isolcpus" && len(cores) >= s.Board.Cores {
			s.finding(n, path, n.Show(), "leave core 0 out at least", "isolcpus leaves no core for the system")
		}
		s.agrees(name, cores, n, path)
	})
}

// agrees holds an argument against cpu.isolate, which writes the same one.
func (s *subject) agrees(name string, cores []int, n *load.Node, path []string) {
	isolated := s.Isolated()
	if len(isolated) == 0 {
		return
	}
	want := isolated
	if name == "irqaffinity" {
		want = s.Housekeeping()
	}
	if slices.Equal(cores, want) {
		return
	}
	d := s.diagnostic(n, path, "%s=%s contradicts cpu.isolate, which makes it %s", name, n.Text, cpulist.Format(want))
	d.Help = "remove the argument: cpu.isolate sets it"
	d.Related = []diag.Related{{Pos: s.Pos("cpu", "isolate"), Message: "the cores that are isolated"}}
	s.report.Add(d)
}

func isolcpusFlags(s *subject) {
	n := s.Node.At("kernel", "args", "isolcpus")
	if n == nil {
		return
	}
	flags, _, ok := cpuArg(n.Text)
	if !ok {
		return // kernel-arg-cores says so
	}
	for _, f := range flags {
		known := s.Release.Kernel != "4.9" && slices.Contains([]string{"domain", "nohz", "managed_irq"}, f)
		if !known {
			s.finding(n, at("kernel", "args", "isolcpus"), n.Show(), "", "kernel %s does not know the flag %q of isolcpus", s.Release.Kernel, f)
			return
		}
	}
}

// argForm is what an argument takes, as a pattern and in words; "" for one that is
// not known here.
func argForm(name string) (pattern, words string) {
	const size, sizeWords = `^[0-9]+[KMGkmg]?$`, "a size such as 256M"
	switch name {
	case "cma":
		return `^[0-9]+[KMGkmg]?(@[0-9a-fx]+[KMGkmg]?(-[0-9a-fx]+[KMGkmg]?)?)?$`, sizeWords
	case "hugepagesz", "default_hugepagesz":
		return `^(64[Kk]|2[Mm]|32[Mm]|1[Gg])$`, "64K, 2M, 32M or 1G"
	case "mem", "log_buf_len":
		return size, sizeWords
	case "hugepages":
		return `^[0-9]+$`, "a number of pages"
	case "mitigations":
		return `^(off|auto|auto,nosmt)$`, "off, auto or auto,nosmt"
	case "transparent_hugepage":
		return `^(always|madvise|never)$`, "always, madvise or never"
	case "preempt":
		return `^(none|voluntary|full|lazy)$`, "none, voluntary, full or lazy"
	case "psi", "audit", "skew_tick", "nokaslr", "nosmt", "zswap.enabled", "rcutree.kthread_prio":
		return `^([0-9]+|[YNyn]|force|on|off)$`, "0 or 1"
	case "loglevel":
		return `^[0-8]$`, "a level from 0 to 8"
	case "panic":
		return `^-?[0-9]+$`, "a number of seconds"
	}
	return "", ""
}

func argValue(s *subject) {
	eachArg(s, func(name string, n *load.Node, path []string) {
		pattern, words := argForm(name)
		if pattern == "" || n.Kind == load.Bool {
			return
		}
		if ok, err := regexp.MatchString(pattern, n.Text); err != nil || ok {
			return
		}
		d := s.diagnostic(n, path, "%s does not take %s", name, n.Show())
		d.Expected, d.Got, d.Help = words, n.Show(), "write "+words
		s.report.Add(d)
	})
}

// argOption is the option without which the kernel passes over an argument.
func argOption(name string) string {
	switch name {
	case "isolcpus":
		return "CPU_ISOLATION"
	case "nohz_full":
		return "NO_HZ_FULL"
	case "rcu_nocbs", "rcu_nocb_poll":
		return "RCU_NOCB_CPU"
	case "preempt":
		return "PREEMPT_DYNAMIC"
	case "psi":
		return "PSI"
	case "threadirqs":
		return "IRQ_FORCED_THREADING"
	case "transparent_hugepage":
		return "TRANSPARENT_HUGEPAGE"
	case "hugepages", "hugepagesz", "default_hugepagesz":
		return "HUGETLBFS"
	case "cma":
		return "DMA_CMA"
	case "zswap.enabled", "zswap.compressor":
		return "ZSWAP"
	case "lru_gen":
		return "LRU_GEN"
	}
	return ""
}

func argConfig(s *subject) {
	eachArg(s, func(name string, n *load.Node, path []string) {
		symbol := argOption(name)
		if symbol == "" || symbol == "HUGETLBFS" || symbol == "CPU_ISOLATION" && s.Release.Kernel == "4.9" || !s.lacks(symbol) {
			return // 4.9 isolates without an option
		}
		d := s.diagnostic(n, path, "the kernel ignores %s: %s is off", name, symbol)
		d.Got = n.Show()
		if !s.off(symbol) {
			s.enable(&d, symbol, "config: ", n.Pos, 1)
		}
		s.report.Add(d)
	})
}

func argDead(s *subject) {
	if n := s.Node.At("kernel", "args", "elevator"); n != nil && s.Release.Kernel != "4.9" {
		s.finding(n, at("kernel", "args", "elevator"), n.Show(), "", "kernel %s does not read elevator", s.Release.Kernel)
	}
}

func argOrder(s *subject) {
	count, size := s.Node.At("kernel", "args", "hugepages"), s.Node.At("kernel", "args", "hugepagesz")
	if count != nil && size != nil {
		d := s.diagnostic(count, at("kernel", "args", "hugepages"), "hugepages counts pages of the size before it, and arguments have no order here")
		d.Related = []diag.Related{{Pos: size.Pos, Message: "the size"}}
		s.report.Add(d)
	}
}

func argStock(s *subject) {
	if len(s.Node.At("kernel", "args").Members()) == 0 {
		return // reading what machines set is not free
	}
	m, ok := s.Release.Machine(s.Machine)
	if !ok {
		return
	}
	stock := map[string]string{}
	for word := range strings.FieldsSeq(m.KernelArgs) {
		name, value, _ := strings.Cut(word, "=")
		stock[oneSpelling(name)] = value
	}
	for _, a := range s.Kernel.Args {
		was, both := stock[oneSpelling(a.Name)]
		// The layer takes a machine's own isolcpus away itself.
		if !both || a.Name == "isolcpus" || a.Name == "console" || a.Name == "earlycon" {
			continue
		}
		n, path := s.Node.At("kernel", "args", a.Name), at("kernel", "args", a.Name)
		own, theirs := wordOf(a.Name, a.Value), wordOf(a.Name, was)
		switch {
		case own != theirs:
			s.finding(n, path, own, "", "%s comes behind %s, which machine %s sets itself", own, theirs, s.Machine)
		case n != nil:
			s.finding(n, path, own, "leave it out", "machine %s sets %s itself", s.Machine, theirs)
		}
	}
}

func wordOf(name, value string) string { return strings.TrimSuffix(name+"="+value, "=") }

func cmdlineOwner(s *subject) {
	for _, symbol := range []string{"CMDLINE", "CMDLINE_FORCE", "CMDLINE_EXTEND"} {
		n := s.Node.At("kernel", "config", symbol)
		if n == nil || n.Text == "n" || n.Text == "" {
			continue
		}
		s.finding(n, at("kernel", "config", symbol), n.Show(), "", "%s puts a second command line into the kernel", symbol)
		return
	}
}

// oneSpelling is a name as the kernel compares it (kernel/params.c: dash2underscore).
func oneSpelling(name string) string { return strings.ReplaceAll(name, "-", "_") }

func argTwice(s *subject) {
	first := map[string]*load.Node{}
	spelt := map[string]string{}
	eachArg(s, func(name string, n *load.Node, path []string) {
		one := oneSpelling(name)
		if first[one] == nil {
			first[one], spelt[one] = n, name
			return
		}
		d := s.diagnostic(n, path, "%s and %s are one argument", spelt[one], name)
		d.Got = n.Show()
		d.Related = []diag.Related{{Pos: first[one].Pos, Message: "the other spelling"}}
		s.report.Add(d)
	})
}

func argRoot(s *subject) {
	eachArg(s, func(name string, n *load.Node, path []string) {
		way := s.Release.ArgPath(s.Board.SoC)
		switch name {
		case "root":
			s.finding(n, path, n.Show(), "", "root does not decide what is mounted: it is %s", way.Root)
		case "rootfstype", "rootflags", "rootdelay", "nfsroot":
			if !way.Reads(name) {
				s.finding(n, path, n.Show(), "", "nothing reads %s: the BSP's initial file system mounts the root and reads only %s", name, strings.Join(way.RootArgs, ", "))
			}
		}
	})
}
