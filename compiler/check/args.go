package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/plan"
)

// The rules of this file read kernel arguments as the kernel does.
func argRules() []Rule {
	return []Rule{
		{
			ID: "kernel-arg-cores", Severity: diag.Error, Firm: true,
			Title: "invalid list of cores in a kernel argument",
			Cause: "isolcpus, nohz_full, rcu_nocbs and irqaffinity take a list of existing cores, such as 1-3,5. The kernel ignores the whole argument when it cannot parse it, and keeps core 0 out of nohz_full. Core 0 under isolcpus is a warning.",
			Fix:   "list existing cores, or use cpu.isolate, which writes all of these arguments",
			Wrong: `kernel: args: irqaffinity: "0-7"`, Right: `kernel: args: irqaffinity: "0-3"`,
			See: "Documentation/admin-guide/kernel-parameters.txt",
			run: checkArgCores,
		},
		{
			ID: "kernel-arg-value", Severity: diag.Error, tables: true,
			Title: "invalid value of a kernel argument",
			Cause: "The argument takes one of a few words, a number, or a size such as 256M. The kernel ignores anything else, at best with a line in the log.",
			Fix:   "write a value that the argument takes",
			Wrong: `kernel: args: mitigations: "none"`, Right: `kernel: args: mitigations: "off"`,
			See: "Documentation/admin-guide/kernel-parameters.txt",
			run: checkArgValue,
		},
		{
			ID: "isolcpus-config", Severity: diag.Error,
			Title: "unsupported flags of isolcpus",
			Cause: "Flags before the list came with Linux 4.15 (domain, nohz) and 5.6 (managed_irq). An older kernel reads them as a broken list and isolates nothing.",
			Fix:   "leave the flags out, or use cpu.isolate, which writes the flags that the kernel supports",
			Wrong: `{board: "agx-xavier", release: "kirkstone-l4t-r32.7.x", kernel: args: isolcpus: "domain,6-7"}`,
			Right: `{board: "agx-xavier", release: "kirkstone-l4t-r32.7.x", kernel: args: isolcpus: "6-7"}`,
			See:   "kernel/sched/isolation.c",
			run:   checkIsolcpusFlags,
		},
		{
			ID: "kernel-arg-config", Severity: diag.Error,
			Title: "the kernel ignores an argument",
			Cause: "The argument belongs to an option that the kernel lacks. The kernel ignores it without a message.",
			Fix:   "switch the option on in kernel.config, or remove the argument",
			Wrong: `kernel: args: rcu_nocbs: "4-5"`, Right: "cpu: isolate: [4, 5]",
			See: "Documentation/admin-guide/kernel-parameters.txt",
			run: checkArgConfig,
		},
		{
			ID: "kernel-arg-dead", Severity: diag.Error,
			Title: "a kernel argument no longer has an effect",
			Cause: "Multi-queue block devices do not read elevator=. Since Linux 5.0 all block devices are multi-queue.",
			Fix:   "set the scheduler under storage",
			Wrong: `kernel: args: elevator: "mq-deadline"`, Right: `storage: "nvme*": scheduler: "mq-deadline"`,
			See: "block/elevator.c",
			run: checkIneffectiveArg,
		},
		{
			ID: "kernel-arg-order", Severity: diag.Error,
			Title: "huge page arguments depend on an order that cannot be expressed",
			Cause: "hugepages= counts pages of the size that precedes it on the command line. Arguments have no order here, so the count would apply to the default size.",
			Fix:   "reserve them with memory.hugepages",
			Wrong: `kernel: args: {hugepagesz: "1G", hugepages: 2}`, Right: `memory: hugepages: "1GiB": 2`,
			See: "Documentation/admin-guide/mm/hugetlbpage.rst",
			run: checkArgOrder,
		},
		{
			ID: "kernel-arg-stock", Severity: diag.Warning,
			Title: "the BSP sets the same argument",
			Cause: "The machine's own KERNEL_ARGS contain the argument. Both reach the kernel, the layer's last. Most arguments take the last value, and some add up.",
			Fix:   "change KERNEL_ARGS in your machine configuration, or remove the argument",
			Wrong: `kernel: args: fbcon: "map:1"`, Right: `kernel: args: quiet: true`,
			See: "meta-tegra conf/machine",
			run: checkArgStock,
		},
		{
			ID: "kernel-arg-remove", Severity: diag.Error,
			Title: "nothing removes a kernel argument",
			Cause: "null removes an argument from the machine's own KERNEL_ARGS. What the boot loader, the device tree or this configuration adds stays.",
			Fix:   "remove the line, or name an argument that the machine sets",
			Wrong: `kernel: args: quiet: null`, Right: `kernel: args: fbcon: null`,
			See: "meta-tegra conf/machine",
			run: checkArgRemove,
		},
		{
			ID: "kernel-arg-remove-own", Severity: diag.Warning,
			Title: "the KERNEL_ARGS of a machine of one's own are not known",
			Cause: "The layer removes what the machines of the board have in KERNEL_ARGS. A machine of one's own may have the argument with another value, which then stays.",
			Fix:   "change KERNEL_ARGS in the machine's own configuration",
			Wrong: `{board: "orin-nano-8gb", machine: "acme-edge", kernel: args: fbcon: null}`, Right: `kernel: args: fbcon: null`,
			See: "meta-tegra conf/machine",
			run: checkArgRemoveOwn,
		},
		{
			ID: "kernel-arg-length", Severity: diag.Error,
			Title: "the kernel's command line is too long",
			Cause: "The kernel keeps COMMAND_LINE_SIZE bytes of its command line and cuts the rest off, in the middle of a word and without a message. The machine's own KERNEL_ARGS come first, and the boot loader adds more: a warning where fewer than 512 bytes are left for it.",
			Fix:   "remove arguments; parameters of modules also work in modprobe.d, and sysctl.* under sysctl",
			Wrong: `kernel: args: "acme.a": {value: "x" * 2100, external: true}`,
			Right: `kernel: args: quiet: true`,
			See:   "arch/arm64/include/uapi/asm/setup.h: COMMAND_LINE_SIZE",
			run:   checkArgLength,
		},
		{
			ID: "kernel-arg-twice", Severity: diag.Error,
			Title: "a kernel argument is given in two spellings",
			Cause: "The kernel treats - and _ in the name of an argument as the same character, so both reach it. Most arguments take the last value, and some add up.",
			Fix:   "keep one of the two",
			Wrong: `kernel: args: {log_buf_len: "1M", "log-buf-len": "2M"}`, Right: `kernel: args: log_buf_len: "1M"`,
			See: "kernel/params.c: parameqn",
			run: checkRepeatedArg,
		},
		{
			ID: "kernel-arg-root", Severity: diag.Warning,
			Title: "the BSP decides what is mounted as root",
			Cause: "The kernel itself does not mount the root file system: the BSP's initial file system does. It mounts the partition APP of the booted slot, whatever kind of file system it holds, and uses root= only where there is no such partition. Machines that boot with U-Boot (R32) have root= in their boot configuration, and this would be a second one. The initial file system reads ro, and from scarthgap on rootfstype=. It ignores rootflags=, rootdelay= and nfsroot=.",
			Fix:   "leave it out; for a squashfs root set the image's type",
			Wrong: `kernel: args: root: "/dev/mmcblk0p1"`, Right: `kernel: args: quiet: true`,
			See: "meta-tegra recipes-core/initrdscripts/tegra-minimal-init, conf/machine/include/tegra-common.inc",
			run: checkArgRoot,
		},
		{
			ID: "cmdline-tegra", Severity: diag.Warning,
			Title: "the command line has two owners",
			Cause: "A command line built into the kernel competes with the one from UEFI, extlinux or the boot image. With CMDLINE_FORCE the other is dropped, root= included.",
			Fix:   "use kernel.args",
			Wrong: `kernel: config: CMDLINE: "quiet"`, Right: `kernel: args: quiet: true`,
			See: "arch/arm64/Kconfig: CMDLINE",
			run: checkCmdlineOwner,
		},
	}
}

// parseCoreArg reads a list of cores as the kernel of the release does.
func (s *subject) parseCoreArg(text string) (flags []string, cores []int, ok bool) {
	lastN, all := linux.Cpulist(s.lines[len(s.lines)-1])
	if !lastN {
		return parseCoreArg(text, -1, false)
	}
	return parseCoreArg(text, s.Board.Cores-1, all)
}

// parseCoreArg reads the kernel's cpu list; flags before it, as isolcpus has, are returned
// apart. N stands for the core last, and "all" for every one, where the kernel has these words.
func parseCoreArg(text string, last int, all bool) (flags []string, cores []int, ok bool) {
	for {
		flag, rest, more := strings.Cut(text, ",")
		if flag == "" || flag[0] >= '0' && flag[0] <= '9' || last >= 0 && flag[0] == 'N' || all && strings.HasPrefix(flag, "all") {
			break
		}
		if !more {
			return nil, nil, false // the word is not a list
		}
		flags, text = append(flags, flag), rest
	}
	if all {
		text = strings.ReplaceAll(text, "all", "0-N")
	}
	if last >= 0 {
		text = strings.ReplaceAll(text, "N", strconv.Itoa(last))
	}
	cores, err := cpulist.Parse(text)
	return flags, cores, err == nil && len(cores) > 0
}

func checkArgCores(s *subject) {
	for _, a := range s.arguments() {
		arg := a.Scalar
		name, flag := arg.Key(), arg.Kind() == load.Bool
		if !strings.HasPrefix(a.Value, "cores") || name == "rcu_nocbs" && (arg.Text == "all" || flag) {
			continue
		}
		flags, cores, ok := s.parseCoreArg(arg.Text)
		if flag || !ok {
			s.reportAt(arg, arg.Show(), "", "%s is not a list of cores", name)
			continue
		}
		if len(flags) > 0 && name != "isolcpus" {
			s.reportAt(arg, arg.Show(), "", "%s takes no flags", name)
			continue
		}
		if i := slices.IndexFunc(cores, func(c int) bool { return c >= s.Board.Cores }); i >= 0 {
			s.refuse(s.coreCount(), arg, arg.Show(), "the cores of "+s.Board.ID+" are 0 to "+strconv.Itoa(s.Board.Cores-1), "core %d does not exist", cores[i])
			continue
		}
		// Of "all" the kernel itself keeps the boot core out (kernel/sched/isolation.c).
		if name == "nohz_full" && arg.Text != "all" && slices.Contains(cores, 0) {
			s.reportAt(arg, arg.Show(), "leave core 0 out", "core 0 keeps the time for the others and cannot be in nohz_full")
		}
		switch {
		case name != "isolcpus":
		case len(cores) >= s.Board.Cores:
			s.refuse(s.coreCount(), arg, arg.Show(), "leave core 0 out at least", "isolcpus leaves no core for the system")
		case slices.Contains(cores, 0):
			s.reportAt(arg, arg.Show(), "leave core 0 out", "isolcpus takes core 0 from the scheduler, which boots the system and takes all interrupts without another core").Severity = diag.Warning
		}
		s.compareWithIsolated(arg, cores)
	}
}

// compareWithIsolated compares an argument with cpu.isolate, which writes the same one.
func (s *subject) compareWithIsolated(arg *config.Scalar, cores []int) {
	isolate := s.Config.CPU.Isolate
	want := s.Isolated()
	if len(want) == 0 {
		return
	}
	if arg.Key() == "irqaffinity" {
		want = s.Housekeeping()
	}
	if slices.Equal(cores, want) {
		return
	}
	d := s.raise(arg, "%s=%s contradicts cpu.isolate, which makes it %s", arg.Key(), arg.Text, cpulist.Format(want))
	d.Help = "remove the argument: cpu.isolate sets it"
	d.addRelated(isolate, "the cores that are isolated")
	if arg.Key() == "irqaffinity" {
		d.restOn(s.coreCount())
	}
}

func checkIsolcpusFlags(s *subject) {
	arg := s.Config.Kernel.Args.Get("isolcpus")
	flags, _, ok := s.parseCoreArg(arg.Text)
	if !ok {
		return // kernel-arg-cores reports it
	}
	for _, f := range flags {
		if s.Release.Kernel == "4.9" || !slices.Contains([]string{"domain", "nohz", "managed_irq"}, f) {
			s.reportAt(arg, arg.Show(), "", "kernel %s does not support the flag %q of isolcpus", s.Release.Kernel, f)
			return
		}
	}
}

func checkArgValue(s *subject) {
	for _, a := range s.arguments() {
		words := expectedValue(a)
		if words == "" {
			continue
		}
		d := s.raise(a.Scalar, "%s does not accept %s", a.Key(), a.Show())
		d.Expected, d.Got, d.Help = words, a.Show(), "write "+words
	}
}

func checkArgConfig(s *subject) {
	for _, a := range s.arguments() {
		symbol, module := s.missingOption(a.Arg)
		if a.Name == "nohz_full" && symbol == "" && s.lacksKernelOption("NO_HZ_FULL") {
			symbol = "NO_HZ_FULL" // its handler is always there, and does nothing without
		}
		switch {
		case symbol == "" || symbol == "HUGETLBFS": // hugepages-config
		case module:
			s.reportAt(a.Scalar, a.Show(), "build "+symbol+" in, or set the module's parameter", "the kernel ignores %s: %s is a module, and only a driver that is built in reads the argument", a.Key(), symbol)
		default:
			s.enable(s.raise(a.Scalar, "the kernel ignores %s: %s is off", a.Key(), symbol).withValue(a.Show()), symbol, "config: ", 1)
		}
	}
}

func checkIneffectiveArg(s *subject) {
	if arg := s.Config.Kernel.Args.Get("elevator"); arg.IsSet() && s.Release.Kernel != "4.9" {
		s.reportAt(arg, arg.Show(), "", "kernel %s does not read elevator", s.Release.Kernel)
	}
}

func checkArgOrder(s *subject) {
	count, size := s.Config.Kernel.Args.Get("hugepages"), s.Config.Kernel.Args.Get("hugepagesz")
	if count.IsSet() && size.IsSet() {
		s.raise(count, "hugepages counts pages of the size before it, and arguments have no order here").addRelated(size, "the size")
	}
}

func checkArgStock(s *subject) {
	own := &s.Config.Kernel.Args
	if len(own.Entries) == 0 {
		return // reading the facts of machines takes time
	}
	m, ok := s.Release.Machine(s.Machine)
	if !ok {
		return
	}
	stock := map[string]string{}
	for word := range strings.FieldsSeq(m.KernelArgs) {
		name, value, _ := strings.Cut(word, "=")
		stock[linux.Fold(name)] = value
	}
	for _, a := range s.Kernel.Args {
		was, both := stock[linux.Fold(a.Name)]
		// The layer removes a machine's own isolcpus.
		if !both || a.Name == "isolcpus" || a.Name == "console" || a.Name == "earlycon" {
			continue
		}
		at, now, before := own.Get(a.Name), formatArg(a.Name, a.Value), formatArg(a.Name, was)
		switch {
		case now != before:
			s.reportAt(at, now, "", "%s follows %s, which machine %s sets itself", now, before, s.Machine)
		case at.IsSet():
			s.reportAt(at, now, "leave it out", "machine %s sets %s itself", s.Machine, before)
		}
	}
}

// loaderArgs is room on the command line for what boot loaders add, in bytes: cboot and UEFI of L4T write some
// hundreds.
const loaderArgs = 512

func checkArgLength(s *subject) {
	size := linux.CommandLineSize(s.lines[0])
	if size == 0 || len(s.Kernel.Args) == 0 || s.File != nil && s.File.Arch != "" && s.File.Arch != "aarch64" {
		return
	}
	length := 1 // the zero at the end
	var longest plan.Arg
	for _, a := range s.Kernel.Args {
		n := len(formatArg(a.Name, a.Value))
		length += n + 1
		if n >= len(formatArg(longest.Name, longest.Value)) {
			longest = a
		}
	}
	own := length - 1
	if m, ok := s.Release.Machine(s.Machine); ok {
		length += len(m.KernelArgs)
	}
	if length <= size-loaderArgs {
		return
	}
	at := config.FirstSet(s.Config.Kernel.Args.Get(longest.Name), s.Config.CPU.Isolate)
	d := s.reportAt(at, "", "", "the command line has %d bytes, %d of them of this configuration, and the kernel keeps %d", length, own, size-1)
	if length <= size {
		d.Message = fmt.Sprintf("the command line has %d bytes, %d of them of this configuration: of the %d that the kernel keeps, %d are left to the boot loader", length, own, size-1, size-length)
		d.Severity = diag.Warning
	}
}

// setArgs are the arguments that the configuration adds.
func (s *subject) setArgs() []*config.NamedScalar {
	return slices.DeleteFunc(slices.Clone(s.Config.Kernel.Args.Entries), func(a *config.NamedScalar) bool { return a.Kind() == load.Null })
}

// removedArgs are the arguments that the configuration removes.
func (s *subject) removedArgs() []*config.NamedScalar {
	return slices.DeleteFunc(slices.Clone(s.Config.Kernel.Args.Entries), func(a *config.NamedScalar) bool { return a.Kind() != load.Null })
}

// isStock reports whether the machine itself sets an argument with the same value: what is wrong
// with that is the BSP's (kernel-arg-stock).
func (s *subject) isStock(arg *config.NamedScalar) bool {
	text := arg.Text
	if arg.Kind() == load.Bool {
		text = ""
	}
	m, ok := s.Release.Machine(s.Machine)
	return ok && slices.Contains(strings.Fields(m.KernelArgs), formatArg(arg.Key(), text))
}

// stockArgs are the names in the machine's own KERNEL_ARGS.
func (s *subject) stockArgs() []string {
	var names []string
	for _, m := range s.StockMachines() {
		for word := range strings.FieldsSeq(m.KernelArgs) {
			name, _, _ := strings.Cut(word, "=")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func checkArgRemove(s *subject) {
	for _, arg := range s.removedArgs() {
		name := arg.Key()
		if implied := slices.IndexFunc(s.Kernel.Args, func(a plan.Arg) bool { return linux.Fold(a.Name) == linux.Fold(name) }); implied >= 0 {
			s.reportAt(arg, "null", "remove one of the two", "this configuration adds %s", formatArg(s.Kernel.Args[implied].Name, s.Kernel.Args[implied].Value))
			continue
		}
		names := s.stockArgs()
		switch {
		case slices.ContainsFunc(names, func(n string) bool { return linux.Fold(n) == linux.Fold(name) }):
		case slices.ContainsFunc(s.Replaced, func(o resolve.Override) bool { return o.ID == arg.ID() }): // takes back a profile's
		case len(names) == 0:
			s.reportKey(arg, "", "the KERNEL_ARGS of machine %s are not known, so the layer cannot remove %s", s.Machine, name)
		default:
			help := diag.DidYouMean(name, names)
			if help == "" {
				help = "the machine sets " + strings.Join(names, ", ")
			}
			s.reportKey(arg, help, "machine %s does not set %s", s.Machine, name)
		}
	}
}

func checkArgRemoveOwn(s *subject) {
	if _, known := s.Release.Machine(s.Machine); known {
		return
	}
	for _, removed := range s.Kernel.Removed {
		var words []string
		for _, w := range removed.Words {
			words = append(words, formatArg(w.Name, w.Value))
		}
		s.reportAt(s.Config.Kernel.Args.Get(removed.Name), "null", "", "machine %s is not one of the BSP: the layer removes %s", s.Machine, strings.Join(words, ", "))
	}
}

func formatArg(name, value string) string { return strings.TrimSuffix(name+"="+value, "=") }

func checkCmdlineOwner(s *subject) {
	for _, symbol := range []string{"CMDLINE", "CMDLINE_FORCE", "CMDLINE_EXTEND"} {
		if o := s.Config.Kernel.Config.Get(symbol); o.Text != "n" && o.Text != "" {
			s.reportAt(o, o.Show(), "", "%s puts a second command line into the kernel", symbol)
			return
		}
	}
}

func checkRepeatedArg(s *subject) {
	first := map[string]*config.Scalar{}
	for _, arg := range s.Config.Kernel.Args.Entries {
		other := first[linux.Fold(arg.Key())]
		if other == nil {
			first[linux.Fold(arg.Key())] = &arg.Scalar
			continue
		}
		s.raise(arg, "%s and %s are one argument", other.Key(), arg.Key()).withValue(arg.Show()).addRelated(other, "the other spelling")
	}
}

func checkArgRoot(s *subject) {
	way := s.Release.ArgPath(s.Board.SoC)
	for _, arg := range s.setArgs() {
		switch arg.Key() {
		case "root":
			s.reportAt(arg, arg.Show(), "", "root does not decide what is mounted: it is %s", way.Root)
		case "rootfstype", "rootflags", "rootdelay", "nfsroot":
			if !way.Reads(arg.Key()) {
				s.reportAt(arg, arg.Show(), "", "nothing reads %s: the BSP's initial file system mounts the root and reads only %s", arg.Key(), strings.Join(way.RootArgs, ", "))
			}
		}
	}
}
