package check

import (
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/load"
)

func sysctlRules() []Rule {
	return []Rule{
		{
			ID: "dirty-pair", Severity: diag.Error,
			Title: "two sysctls that clear each other",
			Cause: "vm.dirty_bytes and vm.dirty_ratio (and their background and overcommit twins) are one limit in two units: writing one sets the other to 0, so the two can never both be true.",
			Fix:   "keep one of the pair",
			Wrong: `sysctl: {"vm.dirty_ratio": 15, "vm.dirty_bytes": 1048576}`, Right: `sysctl: "vm.dirty_ratio": 15`,
			See: "Documentation/admin-guide/sysctl/vm.rst",
			run: dirtyPair,
		},
		{
			ID: "dirty-order", Severity: diag.Warning,
			Title: "background writeback starts after processes are stopped",
			Cause: "When the background limit is not below the foreground one, the kernel silently uses half of the foreground limit.",
			Fix:   "make vm.dirty_background_ratio less than vm.dirty_ratio",
			Wrong: `sysctl: {"vm.dirty_ratio": 10, "vm.dirty_background_ratio": 10}`, Right: `sysctl: {"vm.dirty_ratio": 10, "vm.dirty_background_ratio": 5}`,
			See: "mm/page-writeback.c, domain_dirty_limits",
			run: dirtyOrder,
		},
		{
			ID: "sysctl-oneshot", Severity: diag.Error, Firm: true,
			Title: "the sysctl is an action, not a setting",
			Cause: "Writing it does something once, such as dropping caches; it cannot be read back, and a device would do it again at every boot and repair.",
			Fix:   "remove it; run the action from a service when it is needed",
			Wrong: `sysctl: "vm.compact_memory": 1`,
			See:   "Documentation/admin-guide/sysctl/vm.rst",
			run:   oneshot,
		},
		{
			ID: "sysctl-executes", Severity: diag.Error, Firm: true,
			Title: "the sysctl names a program that the kernel runs as root",
			Cause: "core_pattern, modprobe, hotplug and their like hold a command line. A tuning layer must not be a way to run a program.",
			Fix:   "set it in a recipe of your own, where it is reviewed as such",
			Wrong: `sysctl: "kernel.core_pattern": "|/tmp/x"`,
			See:   "Documentation/admin-guide/sysctl/kernel.rst",
			run:   executes,
		},
		{
			ID: "sched-knobs-moved", Severity: diag.Error,
			Title: "the scheduler knob is no sysctl any more",
			Cause: "Linux 5.13 moved kernel.sched_* tunables to debugfs, and 6.6 removed them with the scheduler they belonged to.",
			Fix:   "remove it",
			Wrong: `sysctl: "kernel.sched_latency_ns": 10000000`,
			See:   "kernel/sched/debug.c",
			run:   schedMoved,
		},
		{
			ID: "sysctl-text", Severity: diag.Error, Firm: true,
			Title: "the value cannot be written to sysctl.d",
			Cause: "sysctl.d has no quoting: blanks at the ends are lost, and an empty value is skipped.",
			Fix:   "write the value without blanks at its ends",
			Wrong: `sysctl: "kernel.hostname": " box "`, Right: `sysctl: "kernel.hostname": "box"`,
			See: "sysctl.d(5)",
			run: sysctlText,
		},
	}
}

func dirtyPair(s *subject) {
	n := s.Node.Get("sysctl")
	for _, pair := range [][2]string{
		{"vm.dirty_ratio", "vm.dirty_bytes"},
		{"vm.dirty_background_ratio", "vm.dirty_background_bytes"},
		{"vm.overcommit_ratio", "vm.overcommit_kbytes"},
	} {
		a, b := n.Get(pair[0]), n.Get(pair[1])
		if a == nil || b == nil {
			continue
		}
		s.report.Add(diag.Diagnostic{
			ID: s.rule.ID, Severity: s.rule.Severity, Pos: b.Pos, Path: s.path(at("sysctl", pair[1])),
			Message: pair[0] + " and " + pair[1] + " clear each other", Help: s.rule.Fix, See: s.rule.See,
			Related: []diag.Related{{Pos: a.Pos, Message: "the other of the pair"}},
		})
	}
}

func dirtyOrder(s *subject) {
	n := s.Node.Get("sysctl")
	back, ok1 := n.Get("vm.dirty_background_ratio").Int64()
	fore, ok2 := n.Get("vm.dirty_ratio").Int64()
	if ok1 && ok2 && back >= fore {
		s.finding(n.Get("vm.dirty_background_ratio"), at("sysctl", "vm.dirty_background_ratio"), "", "", "background limit %d %% is not below %d %%", back, fore)
	}
}

// eachSysctl visits the sysctls of the target by their name in lower case with
// "-" read as "_": the kernel's file decides, not the spelling.
func eachSysctl(s *subject, f func(name string, n *load.Node, path []string)) {
	all := s.Node.Get("sysctl")
	if all == nil {
		return
	}
	for _, m := range all.Fields {
		f(m.Name, m.Value, at("sysctl", m.Name))
	}
}

func oneshot(s *subject) {
	eachSysctl(s, func(name string, n *load.Node, path []string) {
		switch name {
		case "vm.compact_memory", "vm.drop_caches", "net.ipv4.route.flush", "net.ipv6.route.flush", "vm.stat_refresh", "kernel.sysrq-trigger":
			s.finding(n, path, "", "", "%s acts once and cannot be read back", name)
		}
	})
}

func executes(s *subject) {
	eachSysctl(s, func(name string, n *load.Node, path []string) {
		switch name {
		case "kernel.core_pattern", "kernel.modprobe", "kernel.hotplug", "kernel.poweroff_cmd", "kernel.usermodehelper.bset", "kernel.usermodehelper.inheritable", "kernel.modules_disabled", "kernel.kexec_load_disabled":
			s.finding(n, path, n.Show(), "", "%s is not a tuning layer's to set", name)
		}
		if strings.HasPrefix(name, "fs.binfmt_misc.") {
			s.finding(n, path, n.Show(), "", "%s registers a program to run", name)
		}
	})
}

func schedMoved(s *subject) {
	eachSysctl(s, func(name string, n *load.Node, path []string) {
		switch name {
		case "kernel.sched_latency_ns", "kernel.sched_min_granularity_ns", "kernel.sched_wakeup_granularity_ns", "kernel.sched_migration_cost_ns", "kernel.sched_nr_migrate", "kernel.sched_tunable_scaling":
			if s.Release.Kernel != "4.9" && s.Release.Kernel != "5.10" {
				s.finding(n, path, "", "", "%s is not in kernel %s", name, s.Release.Kernel)
			}
		}
	})
}

func sysctlText(s *subject) {
	eachSysctl(s, func(name string, n *load.Node, path []string) {
		if n.Kind == load.String && (n.Text == "" || strings.TrimSpace(n.Text) != n.Text) {
			s.finding(n, path, n.Show(), "", "the value of %s is empty or has blanks at its ends", name)
		}
	})
}
