package check

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/sysctl"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/spelling"
)

func sysctlRules() []Rule {
	return []Rule{
		{
			ID: "dirty-pair", Severity: diag.Error,
			Title: "two sysctls that clear each other",
			Cause: "vm.dirty_bytes and vm.dirty_ratio (and their background and overcommit equivalents) are one limit in two units. Writing one sets the other to 0, so only one can hold.",
			Fix:   "keep either the ratio or the bytes",
			Wrong: `sysctl: {"vm.dirty_ratio": 15, "vm.dirty_bytes": 1048576}`, Right: `sysctl: "vm.dirty_ratio": 15`,
			See: "Documentation/admin-guide/sysctl/vm.rst",
			run: checkDirtyPair,
		},
		{
			ID: "dirty-order", Severity: diag.Warning,
			Title: "background writeback starts after processes are stopped",
			Cause: "When the background limit is not below the foreground one, the kernel silently uses half of the foreground limit.",
			Fix:   "set the background limit below the limit at which processes stop",
			Wrong: `sysctl: {"vm.dirty_ratio": 10, "vm.dirty_background_ratio": 10}`, Right: `sysctl: {"vm.dirty_ratio": 10, "vm.dirty_background_ratio": 5}`,
			See: "mm/page-writeback.c, domain_dirty_limits",
			run: checkDirtyOrder,
		},
		{
			ID: "sysctl-order", Severity: diag.Error,
			Title: "numbers of a sysctl that must ascend",
			Cause: "The numbers are a lower limit, a default or a point of pressure, and an upper limit, or the ends of a range. The kernel refuses a range that descends, or takes it for an empty one; of limits that descend it enforces the last.",
			Fix:   "write the numbers in ascending order",
			Wrong: `sysctl: "net.ipv4.tcp_rmem": "6291456 131072 4096"`, Right: `sysctl: "net.ipv4.tcp_rmem": "4096 131072 6291456"`,
			See: "Documentation/networking/ip-sysctl.rst",
			run: checkSysctlOrder,
		},
		{
			ID: "sysctl-memory", Severity: diag.Error,
			Title: "a sysctl reserves most of the memory",
			Cause: "The kernel keeps this memory free, or from programs. With most of it gone, programs are ended when the device starts.",
			Fix:   "reserve a few per cent of the memory",
			Wrong: `sysctl: "vm.min_free_kbytes": 6291456`, Right: `sysctl: "vm.min_free_kbytes": 131072`,
			See: "Documentation/admin-guide/sysctl/vm.rst",
			run: checkSysctlMemory,
		},
		{
			ID: "sysctl-oneshot", Severity: diag.Error, Firm: true,
			Title: "the sysctl is an action, not a setting",
			Cause: "Writing it triggers an action, such as dropping caches. It cannot be read back, and a device would repeat the action at every boot and repair.",
			Fix:   "remove it, or run the action from a service",
			Wrong: `sysctl: "vm.compact_memory": 1`,
			See:   "Documentation/admin-guide/sysctl/vm.rst",
			run:   checkOneshot,
		},
		{
			ID: "sysctl-executes", Severity: diag.Error, Firm: true,
			Title: "the sysctl must not be set by a tuning layer",
			Cause: "core_pattern, modprobe, hotplug and similar parameters hold a command line that the kernel runs as root, and others disable protections until the next boot. A tuning layer must not be a way to do that.",
			Fix:   "set it in a recipe of your own, where it is reviewed as such",
			Wrong: `sysctl: "kernel.core_pattern": "|/tmp/x"`,
			See:   "Documentation/admin-guide/sysctl/kernel.rst",
			run:   checkForbiddenSysctls,
		},
		{
			ID: "sched-knobs-moved", Severity: diag.Error, tables: true,
			Title: "the scheduler parameter is no longer a sysctl",
			Cause: "Linux 5.13 moved the kernel.sched_* parameters to debugfs, and 6.6 removed them with the scheduler they belonged to. Where they are sysctls they need SCHED_DEBUG, which r32 has off.",
			Fix:   "remove it",
			Wrong: `sysctl: "kernel.sched_latency_ns": 10000000`,
			See:   "kernel/sched/debug.c",
			run:   checkMovedSchedulerSysctls,
		},
		{
			ID: "sysctl-text", Severity: diag.Error, Firm: true,
			Title: "the value cannot be written to sysctl.d",
			Cause: "sysctl.d has no quoting: blanks at the ends are lost, an empty value is skipped, and a comment after a value becomes part of it.",
			Fix:   "write the value without blanks at its ends, and without a comment",
			Wrong: `sysctl: "kernel.hostname": " box "`, Right: `sysctl: "kernel.hostname": "box"`,
			See: "sysctl.d(5)",
			run: checkSysctlText,
		},
		{
			ID: "sysctl-unknown", Severity: diag.Error,
			Title: "unknown sysctl",
			Cause: "It is not among the parameters that were read from kernel sources. It may still exist, because the facts cover only parameters that are commonly tuned. A parameter that does not exist fails at boot with one line in the log. It is an error where the name is that of a parameter of the kernel with one slip.",
			Fix:   "check the spelling; if it is right, suppress the rule with that reason",
			Wrong: `sysctl: "vm.swapiness": 10`, Right: `{sysctl: "vm.swappiness": 10, memory: zram: "1GiB"}`,
			See: "yoctune facts list",
			run: checkSysctlUnknown,
		},
		{
			ID: "sysctl-absent", Severity: diag.Error, tables: true,
			Title: "the kernel of the release lacks the sysctl",
			Cause: "Parameters come and go between kernels, and vendors backport them: the tree that is built decides. Writing an absent parameter fails at boot with one line in the log.",
			Fix:   "remove it, or move it to a target whose kernel has it",
			Wrong: `sysctl: "net.ipv4.tcp_tw_recycle": 1`, Right: `sysctl: "net.ipv4.tcp_tw_reuse": 1`,
			See: "yoctune facts show KEY",
			run: checkSysctlAbsent,
		},
		{
			ID: "sysctl-value", Severity: diag.Error, tables: true,
			Title: "the kernel refuses the value",
			Cause: "The parameter takes another type of value, another number of values, or a number within bounds that differ between kernels. Anything else fails with EINVAL at boot.",
			Fix:   "write a value that the kernel takes",
			Wrong: `sysctl: "vm.overcommit_memory": 3`, Right: `sysctl: "vm.overcommit_memory": 1`,
			See: "yoctune facts show KEY",
			run: checkSysctlValue,
		},
		{
			ID: "sysctl-readonly", Severity: diag.Error, Firm: true,
			Title: "the sysctl is read-only",
			Cause: "The file has no write permission and only reports a value.",
			Fix:   "remove it",
			Wrong: `sysctl: "kernel.random.entropy_avail": 256`,
			See:   "yoctune facts show KEY",
			run:   checkSysctlReadOnly,
		},
		{
			ID: "sysctl-config", Severity: diag.Error, last: true,
			Title: "the kernel lacks the option that provides the sysctl",
			Cause: "The parameter exists only with an option of the kernel that is off.",
			Fix:   "switch the option on in kernel.config, or remove the sysctl",
			Wrong: `{board: "agx-orin-64gb", release: "kirkstone", sysctl: "kernel.sched_util_clamp_min": 128}`,
			Right: `{board: "agx-orin-64gb", release: "kirkstone", kernel: config: UCLAMP_TASK: "y", sysctl: "kernel.sched_util_clamp_min": 128}`,
			See:   "yoctune facts show KEY",
			run:   checkSysctlConfig,
		},
		{
			ID: "sysctl-module", Severity: diag.Warning,
			Title: "the sysctl is written before its module is loaded",
			Cause: "The file appears with the module. systemd-sysctl runs early and skips absent files, so the value is not set, unless an initial RAM disk or a unit before systemd-sysctl loads the module.",
			Fix:   "load the module at boot",
			Wrong: `sysctl: "net.netfilter.nf_conntrack_max": 262144`,
			Right: `{modules: nf_conntrack: "load", sysctl: "net.netfilter.nf_conntrack_max": 262144}`,
			See:   "sysctl.d(5)",
			run:   checkSysctlModule,
		},
		{
			ID: "sysctl-sticky", Severity: diag.Warning,
			Title: "the sysctl cannot be reverted",
			Cause: "Once set, it stays until the next boot: rolling a plan back does not undo it.",
			Fix:   "suppress the rule with a reason if this is intended",
			Wrong: `sysctl: "kernel.unprivileged_bpf_disabled": 1`,
			See:   "Documentation/admin-guide/sysctl/kernel.rst",
			run:   checkSysctlSticky,
		},
		{
			ID: "sysctl-device", Severity: diag.Warning,
			Title: "the sysctl belongs to an interface that may not exist yet",
			Cause: "Parameters of an interface exist once the interface does. At boot that may be after systemd-sysctl has run. systemd writes those of IPv4 and IPv6 when the interface appears, and no others.",
			Fix:   `set it where the interface is configured`,
			Wrong: `sysctl: "net.mpls.conf.eth0.input": 1`, Right: `sysctl: "net.ipv4.conf.eth0.rp_filter": 2`,
			See: "sysctl.d(5); systemd rules.d/99-systemd.rules",
			run: checkSysctlDevice,
		},
		{
			ID: "sysctl-ipforward", Severity: diag.Warning,
			Title: "forwarding resets other settings of the interfaces",
			Cause: "A change of net.ipv4.ip_forward sets the forwarding of every interface, and net.ipv4.conf.all.accept_redirects to the opposite. sysctl.d is written in the order of names, so ip_forward comes after them. The documentation states that it resets all of net.ipv4.conf, but no kernel that was read does: for other parameters this is only a note.",
			Fix:   "remove one of the two",
			Wrong: `sysctl: {"net.ipv4.ip_forward": 1, "net.ipv4.conf.default.forwarding": 0}`,
			Right: `sysctl: "net.ipv4.ip_forward": 1`,
			See:   "Documentation/networking/ip-sysctl.rst; net/ipv4/devinet.c: inet_forward_change",
			run:   checkSysctlForward,
		},
		{
			ID: "sysctl-later", Severity: diag.Warning,
			Title: "a file that is read later sets the sysctl",
			Cause: "openembedded-core's package procps-sysctl installs /etc/sysctl.d/99-sysctl.conf. Files are read in the order of their names, whatever folder they are in, so its value overrides that of 95-yoctune.conf. yoctuned would then report drift at every start.",
			Fix:   "leave procps-sysctl out of the image, or remove the sysctl",
			Wrong: `sysctl: "net.ipv4.tcp_syncookies": 0`,
			Right: `{sysctl: "net.ipv4.tcp_syncookies": 0, packages: "procps-sysctl": "exclude"}`,
			See:   "sysctl.d(5); oe-core meta/recipes-extended/procps",
			run:   checkLateSysctl,
		},
		{
			ID: "overcommit-cuda", Severity: diag.Warning,
			Title: "CUDA programs fail under strict overcommit",
			Cause: "CUDA reserves far more address space than it uses. With vm.overcommit_memory at 2 the reservation counts and fails.",
			Fix:   "use 0 or 1",
			Wrong: `sysctl: "vm.overcommit_memory": 2`, Right: `sysctl: "vm.overcommit_memory": 1`,
			See: "Documentation/vm/overcommit-accounting.rst",
			run: checkOvercommitCUDA,
		},
		{
			ID: "overcommit-dep", Severity: diag.Warning,
			Title: "the overcommit limit has no effect",
			Cause: "vm.overcommit_ratio and vm.overcommit_kbytes count only with vm.overcommit_memory at 2.",
			Fix:   "remove it",
			Wrong: `sysctl: "vm.overcommit_ratio": 80`,
			See:   "Documentation/vm/overcommit-accounting.rst",
			run:   checkOvercommitDependencies,
		},
		{
			ID: "rt-period", Severity: diag.Error,
			Title: "the real-time runtime exceeds the period",
			Cause: "kernel.sched_rt_runtime_us is a part of kernel.sched_rt_period_us (1000000 by default). The kernel refuses a greater value with EINVAL.",
			Fix:   "lower the runtime, or raise the period",
			Wrong: `sysctl: "kernel.sched_rt_runtime_us": 1200000`, Right: `sysctl: {"kernel.sched_rt_period_us": 2000000, "kernel.sched_rt_runtime_us": 1200000}`,
			See: "Documentation/scheduler/sched-rt-group.rst",
			run: checkRTPeriod,
		},
		{
			ID: "bpf-jit", Severity: diag.Error,
			Title: "the BPF compiler cannot be switched off",
			Cause: "With BPF_JIT_ALWAYS_ON the kernel has no interpreter, and refuses 0 with EINVAL.",
			Fix:   `set BPF_JIT_ALWAYS_ON: "n", or remove the sysctl`,
			Wrong: `{kernel: config: {BPF_JIT: "y", BPF_JIT_ALWAYS_ON: "y"}, sysctl: "net.core.bpf_jit_enable": 0}`,
			Right: `sysctl: "net.core.bpf_jit_enable": 1`,
			See:   "kernel/bpf/Kconfig",
			run:   checkBPFJIT,
		},
		{
			ID: "thp-min-free", Severity: diag.Warning,
			Title: "khugepaged raises vm.min_free_kbytes",
			Cause: "With transparent huge pages on, khugepaged raises the reserve at start to about 67 MiB. A smaller value does not last, and yoctuned reports drift continuously.",
			Fix:   "set at least 67584, or leave it to the kernel",
			Wrong: `{memory: thp: "madvise", sysctl: "vm.min_free_kbytes": 16384}`,
			Right: `{memory: thp: "madvise", sysctl: "vm.min_free_kbytes": 131072}`,
			See:   "mm/khugepaged.c: set_recommended_min_free_kbytes",
			run:   checkTHPMinFree,
		},
	}
}

func checkDirtyPair(s *subject) {
	for _, v := range s.Config.Sysctl.Entries {
		for _, other := range sysctl.ExcludedBy(v.Key()) {
			twin := s.Config.Sysctl.Get(other)
			if !twin.IsSet() || v.Key() > other {
				continue // a pair is reported once
			}
			s.raise(v, "%s and %s clear each other", other, v.Key()).addRelated(twin, "the other of the pair")
		}
	}
}

func checkDirtyOrder(s *subject) {
	for _, unit := range []string{"ratio", "bytes"} {
		background, foreground := s.Config.Sysctl.Get("vm.dirty_background_"+unit), s.Config.Sysctl.Get("vm.dirty_"+unit)
		back, ok1 := background.Int()
		fore, ok2 := foreground.Int()
		if ok1 && ok2 && back >= fore {
			s.raise(background, "background limit %d is not below %d", back, fore).addRelated(foreground, "the limit at which processes wait")
		}
	}
}

// ascending are sysctls whose numbers are limits or the ends of a range.
var ascending = []string{
	"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_mem", "net.ipv4.udp_mem",
	"net.sctp.sctp_rmem", "net.sctp.sctp_wmem", "net.sctp.sctp_mem", "net.ipv4.ip_local_port_range", "net.ipv4.ping_group_range",
}

func checkSysctlOrder(s *subject) {
	for _, name := range ascending {
		v := s.Config.Sysctl.Get(name)
		words := strings.Fields(v.Text)
		if name == "net.ipv4.ping_group_range" && slices.Equal(words, []string{"1", "0"}) {
			continue // nobody
		}
		for i := 1; i < len(words); i++ {
			low, err1 := strconv.ParseInt(words[i-1], 10, 64)
			high, err2 := strconv.ParseInt(words[i], 10, 64)
			if err1 == nil && err2 == nil && low > high {
				s.reportAt(v, v.Show(), "", "%s: %d is above %d", name, low, high)
				break
			}
		}
	}
}

func checkSysctlMemory(s *subject) {
	for _, name := range []string{"vm.min_free_kbytes", "vm.admin_reserve_kbytes", "vm.user_reserve_kbytes"} {
		v := s.Config.Sysctl.Get(name)
		if kib, ok := v.Int(); ok && s.Board.RAMBytes > 0 && kib > s.Board.RAMBytes>>11 { // half of it
			s.refuse(s.memorySize(), v, v.Show(), "", "%s takes %d MiB of the module's %d MiB", name, kib>>10, s.Board.RAMBytes>>20)
		}
	}
}

// sysctlEntry is a sysctl of a target with its facts.
type sysctlEntry struct {
	*config.Scalar
	fact     *sysctl.Fact // nil when there are none
	presence sysctl.Presence
}

// sysctlsOf looks the sysctls of a target up, each once for all targets.
func sysctlsOf(t *resolve.Target, known map[string]*sysctl.Fact) []sysctlEntry {
	all := make([]sysctlEntry, 0, len(t.Config.Sysctl.Entries))
	for _, v := range t.Config.Sysctl.Entries {
		e := sysctlEntry{Scalar: v}
		fact, seen := known[v.Key()]
		if !seen {
			if f, ok := sysctl.Lookup(v.Key()); ok {
				fact = &f
			}
			known[v.Key()] = fact
		}
		if e.fact = fact; fact != nil {
			e.presence = fact.PresenceAmong(kernel.Around(t.Release.Kernel))
		}
		all = append(all, e)
	}
	return all
}

// knownSysctls returns the sysctls of the target that have facts.
func (s *subject) knownSysctls() iter.Seq2[sysctlEntry, *sysctl.Fact] {
	return func(yield func(sysctlEntry, *sysctl.Fact) bool) {
		for _, e := range s.sysctls {
			if e.fact != nil && !yield(e, e.fact) {
				return
			}
		}
	}
}

// isTypo reports whether two names differ by a letter too many or too few, or by two
// that changed places. One letter in place of another may be another parameter:
// rmem and wmem.
func isTypo(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 0:
		return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	case 1:
		return a[i:] == b[i+1:]
	}
	return false
}

func checkOneshot(s *subject) {
	for _, e := range s.sysctls {
		acts := e.fact != nil && e.fact.Has(sysctl.WriteOnly)
		switch e.Key() {
		case "net.ipv4.route.flush", "net.ipv6.route.flush", "vm.stat_refresh", "kernel.sysrq-trigger":
			acts = true
		}
		if acts {
			s.reportAt(e, "", "", "%s acts once and cannot be read back", e.Key())
		}
	}
}

func checkForbiddenSysctls(s *subject) {
	for _, e := range s.sysctls {
		switch {
		case strings.HasPrefix(e.Key(), "fs.binfmt_misc."):
			s.reportAt(e, e.Show(), "", "%s registers a program to run", e.Key())
		case knob.ForbiddenSysctl(e.Key()):
			s.reportAt(e, e.Show(), "", "a tuning layer must not set %s", e.Key())
		}
	}
}

func checkMovedSchedulerSysctls(s *subject) {
	for e, f := range s.knownSysctls() {
		if f.Has(sysctl.Moved) && e.presence.State == sysctl.Absent {
			s.reportAt(e, "", "", "%s is not in kernel %s: %s", f.Key, s.Release.Kernel, f.Note)
		}
	}
}

func checkSysctlText(s *subject) {
	for _, e := range s.sysctls {
		switch {
		case e.Kind() != load.String:
		case e.Text == "" || strings.TrimSpace(e.Text) != e.Text:
			s.reportAt(e, e.Show(), "", "the value of %s is empty or has blanks at its ends", e.Key())
		case strings.Contains(e.Text, " #") || strings.Contains(e.Text, " ;"):
			s.reportAt(e, e.Show(), "", "the value of %s contains a comment, which sysctl.d reads as part of the value", e.Key())
		}
	}
}

// isTemplate reports whether a parameter is one of those that the kernel registers
// for each device or that a driver or file system brings: they are not in the facts.
func isTemplate(name string) bool {
	for _, prefix := range []string{
		"dev.", "sunrpc.", "fs.binfmt_misc.", "fs.cachefiles.", "fs.nfs.", "fs.ocfs2.", "fs.xfs.",
		"net.mptcp.", "net.sctp.", "kernel.sched_domain.", "kernel.apparmor",
	} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func checkSysctlUnknown(s *subject) {
	for _, e := range s.sysctls {
		name := e.Key()
		if e.fact != nil || isDocumented(name) || name == "kernel.sysrq-trigger" || knob.ForbiddenSysctl(name) {
			continue
		}
		if prefix, keys := perInterface(name); keys != nil {
			s.checkInterfaceKey(e, prefix, keys)
			continue
		}
		near, ok := sysctl.Nearest(name)
		if isTemplate(name) && (!ok || spelling.DistanceWithin(name, near, 1) != 1) {
			continue
		}
		d := s.raise(e, "unknown sysctl %s", name)
		d.Pos, d.Severity = e.KeyPos(), diag.Warning
		if ok {
			if fact, _ := sysctl.Lookup(near); fact.PresenceIn(s.Release.Kernel).State == sysctl.Present {
				d.Severity = s.kernelSeverity()
			}
			d.unlessSlip(name, near, nearLetters).unlessOwn(s)
			d.Help = fmt.Sprintf("did you mean %q?", near)
			if isTypo(name, near) {
				d.Edits = []diag.Edit{{Kind: diag.RenameField, Pos: e.Pos(), Text: strconv.Quote(near)}}
			}
		}
	}
}

// checkInterfaceKey compares the last part of a parameter of an interface with those that kernels have.
func (s *subject) checkInterfaceKey(e sysctlEntry, prefix string, keys []string) {
	key := strings.TrimPrefix(e.Key(), prefix)
	if slices.Contains(keys, key) {
		return
	}
	d := s.raise(e, "unknown sysctl %s", e.Key())
	d.Pos, d.Severity = e.KeyPos(), diag.Warning
	if near := spelling.Nearest(key, keys); near != "" {
		d.Help = fmt.Sprintf("did you mean %q?", prefix+near)
		if spelling.DistanceWithin(key, near, 1) <= 1 {
			d.Severity = s.kernelSeverity()
		}
	}
}

// families are groups of parameters that come with an option of the kernel's configuration.
var families = map[string]string{"net.mptcp.": "MPTCP", "net.sctp.": "IP_SCTP", "net.smc.": "SMC", "net.mpls.": "MPLS_ROUTING", "net.bridge.": "BRIDGE_NETFILTER"}

// checkSysctlFamilies reports the parameters of families that the kernel lacks.
func checkSysctlFamilies(s *subject) {
	for _, e := range s.sysctls {
		for prefix, symbol := range families {
			if e.fact != nil || !strings.HasPrefix(e.Key(), prefix) || s.hasOption(symbol) {
				continue
			}
			d := s.raise(e, "%s is not in kernel %s: it has no %s", e.Key(), s.Release.Kernel, symbol)
			d.Pos, d.Severity = e.KeyPos(), s.kernelSeverity()
		}
	}
}

// hasOption reports whether the kernel's source has an option; true where it was not read.
func (s *subject) hasOption(symbol string) bool {
	if s.kernel == nil {
		return true
	}
	if _, known := s.kernel.Value(symbol); known {
		return true
	}
	_, evaluated := s.kernel.Value("NET")
	return !evaluated
}

func checkSysctlAbsent(s *subject) {
	checkSysctlFamilies(s)
	for e, f := range s.knownSysctls() {
		if e.presence.State != sysctl.Absent || f.Has(sysctl.Moved) || knob.ForbiddenSysctl(f.Key) {
			continue
		}
		d := s.raise(e, "%s is not in kernel %s", f.Key, s.Release.Kernel)
		d.Pos, d.Severity = e.KeyPos(), s.kernelSeverity()
		if f.Note != "" {
			d.Message += ": " + f.Note
		}
	}
}

func checkSysctlValue(s *subject) {
	for e, f := range s.knownSysctls() {
		if e.presence.State != sysctl.Present || knob.ForbiddenSysctl(f.Key) || f.Has(sysctl.WriteOnly) {
			continue
		}
		if f.Key == "net.core.bpf_jit_enable" {
			// The table has the limits of a kernel with BPF_JIT_ALWAYS_ON; bpf-jit covers that one.
			low, high := int64(0), int64(2)
			e.presence.Min, e.presence.Max = &low, &high
		}
		value := e.Text
		if e.Kind() == load.Bool {
			value = resolve.FormatSwitch(e.IsTrue())
		}
		expected, wrong := compareSysctl(f, &e.presence, value)
		if expected == "" {
			continue
		}
		d := s.raise(e, "%s does not accept %s", f.Key, cmp.Or(wrong, e.Show()))
		d.Expected, d.Got, d.Help = expected, e.Show(), "write "+expected
		if f.Note != "" {
			d.Help += " (" + f.Note + ")"
		}
	}
}

// compareSysctl compares a value with the type and range of a parameter. It returns
// what the parameter takes, "" when it takes the value, and the part of the value that
// is wrong, "" for all of it.
func compareSysctl(f *sysctl.Fact, in *sysctl.Presence, value string) (expected, wrong string) {
	words := strings.Fields(value)
	switch in.Type {
	case "string":
		return "", ""
	case "vector":
		return compareVector(vectorLength(f), words)
	}
	low, high := in.Range()
	expected = "a number"
	switch {
	case low != nil && high != nil:
		expected = fmt.Sprintf("a number from %d to %d", *low, *high)
	case low != nil:
		expected = fmt.Sprintf("a number of at least %d", *low)
	}
	if len(words) != 1 {
		return expected, ""
	}
	v, err := strconv.ParseInt(words[0], 0, 64)
	if err != nil {
		if _, err := strconv.ParseUint(words[0], 0, 64); err == nil && in.Type == "ulong" {
			return "", ""
		}
		return expected, ""
	}
	// An empty range comes from limits that the kernel keeps in variables.
	if low != nil && high != nil && *low > *high {
		return "", ""
	}
	if low != nil && v < *low || high != nil && v > *high {
		return expected, words[0]
	}
	return "", ""
}

// compareVector compares the words of a value with a number of integers, of which 0
// stands for any number.
func compareVector(length int, words []string) (expected, wrong string) {
	expected = "numbers"
	if length > 0 {
		expected = fmt.Sprintf("%d numbers in quotes", length)
	}
	for _, w := range words {
		if _, err := strconv.ParseInt(w, 0, 64); err != nil {
			return expected, strconv.Quote(w)
		}
	}
	if length > 0 && len(words) != length {
		return expected, fmt.Sprintf("%d values", len(words))
	}
	return "", ""
}

// DescribeSysctl returns what a parameter accepts, in words.
func DescribeSysctl(f sysctl.Fact, in sysctl.Presence) string {
	if in.Type == "string" {
		return "text"
	}
	// No other kind accepts this value, so that what is accepted comes back.
	expected, _ := compareSysctl(&f, &in, "?")
	return expected
}

// vectorLength is how many numbers a parameter takes; 0 when that is not known.
func vectorLength(f *sysctl.Fact) int {
	for _, note := range []string{f.RangeNote, f.Note} {
		first, rest, _ := strings.Cut(note, " ")
		if n, err := strconv.Atoi(first); err == nil && strings.HasPrefix(rest, "integers") {
			return n
		}
	}
	return 0
}

func checkSysctlReadOnly(s *subject) {
	for e, f := range s.knownSysctls() {
		if f.Has(sysctl.ReadOnly) || e.presence.State == sysctl.Present && strings.HasSuffix(e.presence.Mode, "444") {
			s.reportAt(e, "", "", "%s can only be read", f.Key)
		}
	}
}

// requiredOptions lists the kernel options that a parameter needs, as far as the facts
// name them one by one.
func requiredOptions(f *sysctl.Fact) []string {
	words := strings.Fields(f.Config)
	for _, w := range words {
		if strings.Trim(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
			return nil
		}
	}
	return words
}

func checkSysctlConfig(s *subject) {
	if s.kernel == nil {
		return
	}
	for e, f := range s.knownSysctls() {
		if e.presence.State != sysctl.Present || f.Module != "" && f.Has(sysctl.AutoLoad) {
			continue
		}
		for _, symbol := range requiredOptions(f) {
			if !s.lacksKernelOption(symbol) || s.explained[symbol] {
				continue
			}
			s.enable(s.raise(e, "%s needs %s, which is off", f.Key, symbol), symbol, "kernel: config: ", 1)
			break
		}
	}
}

func checkSysctlModule(s *subject) {
	explained := map[string]bool{}
	for _, e := range s.sysctls {
		module := knob.ProvidingModule(knob.SysctlPath(e.Key()))
		if module == "" || s.loadsModule(module) || explained[module] {
			continue
		}
		if o, ok := s.findConfig(strings.ToUpper(module)); ok && o.Value == "y" {
			continue // built in
		}
		explained[module] = true
		s.raise(e, "%s appears with module %s, which is not loaded at boot", e.Key(), module).suggest(loadField(module), 1)
	}
}

func checkSysctlSticky(s *subject) {
	for e, f := range s.knownSysctls() {
		if f.Stays(e.Text) && !knob.ForbiddenSysctl(f.Key) {
			s.reportAt(e, e.Show(), "", "%s stays until the next boot", f.Key)
		}
	}
}

func checkSysctlDevice(s *subject) {
	for _, e := range s.sysctls {
		parts := strings.Split(e.Key(), ".")
		// systemd's 99-systemd.rules runs systemd-sysctl for conf and neigh of ipv4 and ipv6
		// when the interface appears.
		if len(parts) < 5 || parts[0] != "net" || parts[2] != "conf" || parts[1] == "ipv4" || parts[1] == "ipv6" {
			continue
		}
		switch parts[3] {
		case "all", "default", "lo":
			continue
		}
		s.reportAt(e, "", "", "%s is written before %s may exist", e.Key(), parts[3])
	}
}

func checkSysctlForward(s *subject) {
	forward := s.Config.Sysctl.Get("net.ipv4.ip_forward")
	if !forward.IsSet() {
		return
	}
	on := func(v *config.Scalar) bool { return v.IsTrue() || v.Kind() != load.Bool && v.Text != "0" }
	var documented *sysctlEntry // to be reset, but the kernels that were read do not
	for i, other := range s.sysctls {
		rest, ok := strings.CutPrefix(other.Key(), "net.ipv4.conf.")
		switch {
		case !ok:
		case strings.HasSuffix(rest, ".forwarding") && on(other.Scalar) != on(forward), rest == "all.accept_redirects" && on(other.Scalar) == on(forward):
			s.raise(forward, "ip_forward, which is written after it, undoes %s", other.Key()).addRelated(other, "set here")
			return
		case documented == nil:
			documented = &s.sysctls[i]
		}
	}
	if documented != nil {
		d := s.raise(forward, "ip_forward is documented to reset %s, and is written after it", documented.Key())
		d.Severity, d.Help = diag.Info, "no change is needed: the kernels that were read reset accept_redirects and forwarding alone"
		d.addRelated(documented, "set here")
	}
}

func checkOvercommitCUDA(s *subject) {
	if v := s.Config.Sysctl.Get("vm.overcommit_memory"); v.Text == "2" {
		s.reportAt(v, v.Text, "", "strict overcommit makes CUDA programs fail")
	}
}

func checkOvercommitDependencies(s *subject) {
	if s.Config.Sysctl.Get("vm.overcommit_memory").Text == "2" {
		return
	}
	for _, key := range []string{"vm.overcommit_ratio", "vm.overcommit_kbytes"} {
		if v := s.Config.Sysctl.Get(key); v.IsSet() {
			s.reportAt(v, "", "", "%s counts only with vm.overcommit_memory at 2", key)
		}
	}
}

func checkRTPeriod(s *subject) {
	runtime, period := s.Config.Sysctl.Get("kernel.sched_rt_runtime_us"), s.Config.Sysctl.Get("kernel.sched_rt_period_us")
	most := int64(1000000)
	if v, ok := period.Int(); ok {
		most = v
	}
	v, ok := runtime.Int()
	if !ok || v <= most {
		return
	}
	d := s.raise(runtime, "real-time tasks may run %d of %d µs", v, most)
	if period.IsSet() {
		d.addRelated(period, "the period")
	}
}

func checkBPFJIT(s *subject) {
	v := s.Config.Sysctl.Get("net.core.bpf_jit_enable")
	if v.Text != "0" || s.kernel == nil {
		return
	}
	if s.isEnabled("BPF_JIT_ALWAYS_ON") || s.kernel.IsExact() && s.kernel.IsEnabled("BPF_JIT_ALWAYS_ON") {
		s.reportAt(v, v.Text, "", "the kernel has no BPF interpreter to fall back to")
	}
}

// khugepagedReserve is about what khugepaged reserves with 4 KiB pages and three
// zones: (2 + 9) page blocks of 2 MiB in each, in KiB.
const khugepagedReserve = 3 * 11 * 2048

func checkTHPMinFree(s *subject) {
	thp, free := s.Config.Memory.THP, s.Config.Sysctl.Get("vm.min_free_kbytes")
	if v, ok := free.Int(); ok && thp.IsSet() && thp.Text != "never" && v < khugepagedReserve && s.Board.RAMBytes > 4<<30 {
		s.raise(free, "khugepaged raises vm.min_free_kbytes above %d", v).addRelated(thp, "transparent huge pages are on")
	}
}

func checkLateSysctl(s *subject) {
	for _, name := range []string{"procps-sysctl", "procps"} {
		if s.Config.Packages.Get(name).Text == "exclude" {
			return
		}
	}
	for _, e := range s.sysctls {
		if value, ok := release.LaterSysctl(e.Key()); ok && e.Text != value {
			s.reportAt(e, e.Show(), `add packages: "procps-sysctl": "exclude"`, "%s of openembedded-core sets %s to %s later", release.LaterSysctlFile, e.Key(), value)
		}
	}
}
