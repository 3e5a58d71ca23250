package check

import (
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/load"
)

func kernelRules() []Rule {
	return []Rule{
		{
			ID: "tcp-cc-bbr", Severity: diag.Error,
			Title: "BBR is asked for and the kernel drops it",
			Cause: "TCP_CONG_BBR is offered only below TCP_CONG_ADVANCED, which no Jetson configuration sets. kconfig drops the line without an error, and the sysctl then fails at boot.",
			Fix:   `add kernel: config: {TCP_CONG_ADVANCED: "y", TCP_CONG_BBR: "m"}`,
			Wrong: `kernel: config: TCP_CONG_BBR: "y"`, Right: `kernel: config: {TCP_CONG_ADVANCED: "y", TCP_CONG_BBR: "y"}`,
			See: "net/ipv4/Kconfig",
			run: bbr,
		},
		{
			ID: "nohz-full-config", Severity: diag.Error,
			Title: "an isolated core keeps its tick",
			Cause: "cpu.isolate needs NO_HZ_FULL and RCU_NOCB_CPU in the kernel, and the configuration turns one of them off.",
			Fix:   "remove the option: cpu.isolate sets it",
			Wrong: `cpu: isolate: [5]` + "\n" + `kernel: config: NO_HZ_FULL: "n"`, Right: "cpu: isolate: [5]",
			See: "kernel/time/Kconfig, kernel/rcu/Kconfig",
			run: nohzFull,
		},
		{
			ID: "preempt-choice", Severity: diag.Error,
			Title: "two preemption models",
			Cause: "The models are a choice in kconfig: the last line wins and the others are lost.",
			Fix:   "say it once, with kernel.preempt",
			Wrong: `kernel: {preempt: "rt", config: PREEMPT_VOLUNTARY: "y"}`, Right: `kernel: preempt: "rt"`,
			See: "kernel/Kconfig.preempt",
			run: preemptChoice,
		},
		{
			ID: "preempt-rt-kvm", Severity: diag.Error,
			Title: "PREEMPT_RT and KVM exclude each other",
			Cause: "On arm64 the kernel offers PREEMPT_RT only while KVM is off; with KVM the line is dropped, and the kernel loses its preemption as well.",
			Fix:   "remove KVM, or use another preemption model",
			Wrong: `kernel: {preempt: "rt", config: KVM: "y"}`, Right: `kernel: preempt: "rt"`,
			See: "arch/arm64/Kconfig: ARCH_SUPPORTS_RT",
			run: preemptKVM,
		},
		{
			ID: "preempt-rt-route", Severity: diag.Error, Firm: true,
			Title: "the release has no way to a real-time kernel",
			Cause: "Neither a real-time kernel recipe nor PREEMPT_RT by configuration exists on the release.",
			Fix:   "choose a release that has one",
			See:   "meta-tegra recipes-kernel/linux",
			run:   preemptRoute,
		},
		{
			ID: "kernel-config-value", Severity: diag.Error, Firm: true,
			Title: "an option's value is not one that kconfig reads",
			Cause: "kconfig drops lines it cannot read, without an error: Y is not y, and CONFIG_ is not part of the name.",
			Fix:   `write "y", "m", "n", a number, or text`,
			Wrong: `kernel: config: {PSI: "Y"}`, Right: `kernel: config: {PSI: "y"}`,
			See: "Documentation/kbuild/kconfig-language.rst",
			run: configValue,
		},
		{
			ID: "kernel-arg-unsafe", Severity: diag.Error, Firm: true,
			Title: "a kernel argument decides what runs as the first program",
			Cause: "init= and rdinit= replace the system's first program, and others turn off the protection of the running kernel. A tuning layer must not be a way to do that.",
			Fix:   "set it in your own machine configuration, where it is reviewed as such",
			Wrong: `kernel: args: init: "/bin/sh"`, Right: `kernel: args: quiet: true`,
			See: "Documentation/admin-guide/kernel-parameters.txt",
			run: argUnsafe,
		},
		{
			ID: "kernel-arg-text", Severity: diag.Error, Firm: true,
			Title: "a kernel argument holds characters that boot loaders act on",
			Cause: "The command line passes through bitbake, extlinux or UEFI, and the kernel's own parser; blanks, quotes, $ and ; change their meaning on the way.",
			Fix:   "use letters, digits and . _ , : / = @ % + -",
			Wrong: `kernel: args: foo: "a; b"`, Right: `kernel: args: foo: "a,b"`,
			See: "meta-tegra KERNEL_ARGS",
			run: argText,
		},
	}
}

func bbr(s *subject) {
	if n := s.Node.At("kernel", "config", "TCP_CONG_BBR"); n != nil && n.Text != "n" && !s.on("TCP_CONG_ADVANCED") {
		s.finding(n, at("kernel", "config", "TCP_CONG_BBR"), n.Show(), `add TCP_CONG_ADVANCED: "y"`, "TCP_CONG_BBR is dropped without TCP_CONG_ADVANCED=y")
	}
	n := s.Node.At("sysctl", "net.ipv4.tcp_congestion_control")
	if n != nil && n.Text == "bbr" && !s.on("TCP_CONG_BBR") {
		s.finding(n, at("sysctl", "net.ipv4.tcp_congestion_control"), n.Show(), "", "bbr is not in the kernel of %s", s.Release.Name)
	}
}

func nohzFull(s *subject) {
	if len(s.Isolated()) == 0 {
		return
	}
	for _, symbol := range []string{"NO_HZ_FULL", "RCU_NOCB_CPU"} {
		if s.off(symbol) {
			s.finding(nil, at("kernel", "config", symbol), "n", "", "%s=n takes away what cpu.isolate needs", symbol)
		}
	}
}

func preemptChoice(s *subject) {
	models := map[string]string{"none": "PREEMPT_NONE", "voluntary": "PREEMPT_VOLUNTARY", "full": "PREEMPT", "rt": "PREEMPT_RT"}
	p := s.Node.At("kernel", "preempt")
	if p == nil {
		return
	}
	for model, symbol := range models {
		n := s.Node.At("kernel", "config", symbol)
		if n == nil || (n.Text == "y") == (model == p.Text) {
			continue
		}
		if n.Text == "n" && model != p.Text {
			continue
		}
		s.finding(n, at("kernel", "config", symbol), n.Show(), "", "%s=%s contradicts kernel.preempt %q", symbol, n.Text, p.Text)
	}
}

func preemptKVM(s *subject) {
	if p := s.Node.At("kernel", "preempt"); p != nil && p.Text == "rt" && s.Release.RTByConfig && s.on("KVM") {
		s.finding(s.Node.At("kernel", "config", "KVM"), at("kernel", "config", "KVM"), "y", "", "KVM=y makes the kernel drop PREEMPT_RT")
	}
}

func preemptRoute(s *subject) {
	if p := s.Node.At("kernel", "preempt"); p != nil && p.Text == "rt" && s.Release.RTProvider == "" && !s.Release.RTByConfig {
		s.finding(p, at("kernel", "preempt"), p.Show(), "", "release %s has no real-time kernel", s.Release.Name)
	}
}

func configValue(s *subject) {
	n := s.Node.At("kernel", "config")
	if n == nil {
		return
	}
	for _, f := range n.Fields {
		path := at("kernel", "config", f.Name)
		switch {
		case strings.HasPrefix(f.Name, "CONFIG_"):
			s.finding(f.Value, path, f.Name, "write "+strings.TrimPrefix(f.Name, "CONFIG_"), "the name is written without CONFIG_")
		case f.Value.Kind == load.String && (f.Value.Text == "Y" || f.Value.Text == "M" || f.Value.Text == "N" || f.Value.Text == "yes" || f.Value.Text == "no"):
			s.finding(f.Value, path, f.Value.Show(), "write "+strings.ToLower(f.Value.Text[:1]), "kconfig does not read %q", f.Value.Text)
		}
	}
}

func argUnsafe(s *subject) {
	n := s.Node.At("kernel", "args")
	if n == nil {
		return
	}
	for _, f := range n.Fields {
		switch f.Name {
		case "init", "rdinit", "module.sig_enforce", "lockdown", "lsm", "apparmor", "selinux", "enforcing", "single", "emergency", "rd.break", "systemd.debug-shell", "systemd.debug_shell":
			s.finding(f.Value, at("kernel", "args", f.Name), f.Value.Show(), "", "argument %s is not a tuning layer's to set", f.Name)
		}
	}
}

func argText(s *subject) {
	n := s.Node.At("kernel", "args")
	if n == nil {
		return
	}
	for _, f := range n.Fields {
		if f.Value.Kind != load.String {
			continue
		}
		bad := strings.IndexFunc(f.Value.Text, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._,:/=@%+-", r))
		})
		switch {
		case f.Value.Text == "":
			s.finding(f.Value, at("kernel", "args", f.Name), `""`, "write true for an argument without a value", "argument %s has an empty value", f.Name)
		case bad >= 0:
			s.finding(f.Value, at("kernel", "args", f.Name), f.Value.Show(), "", "argument %s holds %q", f.Name, []rune(f.Value.Text[bad:])[0])
		}
	}
}
