package check

import (
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
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
			Wrong: `cpu: isolate: [4, 5]` + "\n" + `kernel: config: NO_HZ_FULL: "n"`, Right: "cpu: isolate: [4, 5]",
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
			Cause: "Linux 4.9 and 5.10 of the BSP take PREEMPT_RT only with patches that come apart from it; where the release has a real-time recipe, that one is the way, not an option of the other kernel.",
			Fix:   "choose a release that has one",
			Wrong: `{board: "agx-orin-64gb", release: "kirkstone", kernel: preempt: "rt"}`,
			Right: `{board: "agx-orin-64gb", release: "wrynose", kernel: preempt: "rt"}`,
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
			ID: "kernel-localversion", Severity: diag.Error,
			Title: "the kernel's recipe writes LOCALVERSION itself",
			Cause: "After all fragments, do_kernel_configme writes LINUX_VERSION_EXTENSION of the recipe as LOCALVERSION, and every kernel recipe of meta-tegra sets that. The layer's own check would then stop the build.",
			Fix:   "set LINUX_VERSION_EXTENSION in an append of your own, and SRCBRANCH where the recipe makes it of that",
			Wrong: `kernel: config: LOCALVERSION: "-edge"`, Right: `kernel: config: LOCALVERSION_AUTO: "n"`,
			See: "openembedded-core kernel-yocto.bbclass",
			run: localVersion,
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
	n := s.Node.At("kernel", "config", "TCP_CONG_BBR")
	path := at("kernel", "config", "TCP_CONG_BBR")
	asked := n != nil && n.Text != "n"
	if asked && !s.on("TCP_CONG_ADVANCED") {
		s.tell("TCP_CONG_BBR")
		d := s.diagnostic(n, path, "TCP_CONG_BBR is dropped without TCP_CONG_ADVANCED=y")
		d.Got, d.Help = n.Show(), `add TCP_CONG_ADVANCED: "y"`
		if s.Node.At("kernel", "config", "TCP_CONG_ADVANCED") == nil {
			d.Edits = []diag.Edit{{Kind: diag.AddField, Pos: n.Pos, Text: `TCP_CONG_ADVANCED: "y"`}}
		}
		s.report.Add(d)
		return
	}
	n = s.Node.At("sysctl", "net.ipv4.tcp_congestion_control")
	if n != nil && n.Text == "bbr" && !asked {
		field := `kernel: config: {TCP_CONG_ADVANCED: "y", TCP_CONG_BBR: "y"}`
		d := s.diagnostic(n, at("sysctl", "net.ipv4.tcp_congestion_control"), "bbr is not in the kernel of %s", s.Release.Name)
		d.Got, d.Help = n.Show(), "add "+field
		d.Edits = []diag.Edit{{Kind: diag.AddField, Pos: n.Pos, Up: 1, Text: field}}
		s.report.Add(d)
	}
}

func nohzFull(s *subject) {
	if len(s.Isolated()) == 0 {
		return
	}
	for _, symbol := range []string{"NO_HZ_FULL", "RCU_NOCB_CPU"} {
		if s.off(symbol) {
			s.tell("NO_HZ_FULL")
			s.tell("RCU_NOCB_CPU")
			d := s.diagnostic(nil, at("kernel", "config", symbol), "%s=n takes away what cpu.isolate needs", symbol)
			d.Got = "n"
			d.Related = []diag.Related{{Pos: s.Pos("cpu", "isolate"), Message: "the cores that are isolated"}}
			s.report.Add(d)
		}
	}
}

// models are the preemption models by the name that kernel.preempt has for them.
func models() map[string]string {
	return map[string]string{"none": "PREEMPT_NONE", "voluntary": "PREEMPT_VOLUNTARY", "full": "PREEMPT", "rt": "PREEMPT_RT"}
}

func preemptChoice(s *subject) {
	p := s.Node.At("kernel", "preempt")
	if p == nil {
		s.preemptTwice()
		return
	}
	for model, symbol := range models() {
		n := s.Node.At("kernel", "config", symbol)
		if n == nil || (n.Text == "y") == (model == p.Text) || n.Text == "n" && model != p.Text {
			continue
		}
		s.tell(symbol)
		s.tell(models()[p.Text])
		d := s.diagnostic(n, at("kernel", "config", symbol), "%s=%s contradicts kernel.preempt %q", symbol, n.Text, p.Text)
		d.Got = n.Show()
		d.Related = []diag.Related{{Pos: p.Pos, Message: "the model that is asked for"}}
		s.report.Add(d)
	}
}

// preemptTwice reports two models among the options themselves.
func (s *subject) preemptTwice() {
	var first *load.Node
	name := ""
	for _, symbol := range []string{"PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT", "PREEMPT_RT"} {
		n := s.Node.At("kernel", "config", symbol)
		if n == nil || n.Text != "y" {
			continue
		}
		s.tell(symbol)
		if first == nil {
			first, name = n, symbol
			continue
		}
		d := s.diagnostic(n, at("kernel", "config", symbol), "%s and %s are members of one choice", name, symbol)
		d.Got = n.Show()
		d.Related = []diag.Related{{Pos: first.Pos, Message: "the other model"}}
		s.report.Add(d)
	}
	if name != "" && len(s.told) > 0 && first != nil && s.only(name) {
		delete(s.told, name) // alone, its fate is kconfig's to explain
	}
}

func (s *subject) only(symbol string) bool {
	for _, other := range models() {
		if n := s.Node.At("kernel", "config", other); n != nil && n.Text == "y" && other != symbol {
			return false
		}
	}
	return true
}

func localVersion(s *subject) {
	if n := s.Node.At("kernel", "config", "LOCALVERSION"); n != nil {
		s.tell("LOCALVERSION")
		s.finding(n, at("kernel", "config", "LOCALVERSION"), n.Show(), "", "the kernel's recipe overwrites LOCALVERSION")
	}
}

func preemptKVM(s *subject) {
	if s.on("KVM") && s.Release.RTByConfig && (s.realtime() || s.on("PREEMPT_RT")) {
		s.tell("PREEMPT_RT")
		s.finding(s.Node.At("kernel", "config", "KVM"), at("kernel", "config", "KVM"), "y", "", "KVM=y makes the kernel drop PREEMPT_RT")
	}
}

func preemptRoute(s *subject) {
	if s.Release.RTProvider != "" {
		if n := s.Node.At("kernel", "config", "PREEMPT_RT"); n != nil && n.Text == "y" && !s.realtime() {
			s.tell("PREEMPT_RT")
			s.finding(n, at("kernel", "config", "PREEMPT_RT"), n.Show(), `use kernel: preempt: "rt", which chooses the recipe`, "release %s has a recipe of its own for the real-time kernel", s.Release.Name)
		}
		return
	}
	if s.Release.RTByConfig {
		return
	}
	n, path := s.Node.At("kernel", "preempt"), at("kernel", "preempt")
	if n == nil || n.Text != "rt" {
		n, path = s.Node.At("kernel", "config", "PREEMPT_RT"), at("kernel", "config", "PREEMPT_RT")
	}
	if n != nil && (n.Text == "rt" || n.Text == "y") {
		s.tell("PREEMPT_RT")
		s.finding(n, path, n.Show(), "", "release %s has no real-time kernel", s.Release.Name)
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
			short := strings.TrimPrefix(f.Name, "CONFIG_")
			s.tell(f.Name)
			d := s.diagnostic(f.Value, path, "the name is written without CONFIG_")
			d.Got, d.Help = f.Name, "write "+short
			d.Edits = []diag.Edit{{Kind: diag.RenameField, Pos: f.Value.Pos, Text: short}}
			s.report.Add(d)
		case f.Value.Kind == load.String && (f.Value.Text == "Y" || f.Value.Text == "M" || f.Value.Text == "N" || f.Value.Text == "yes" || f.Value.Text == "no"):
			right := strconv.Quote(strings.ToLower(f.Value.Text[:1]))
			s.tell(f.Name)
			d := s.diagnostic(f.Value, path, "kconfig does not read %q", f.Value.Text)
			d.Got, d.Help = f.Value.Show(), "write "+right
			d.Edits = []diag.Edit{{Kind: diag.ReplaceText, Pos: f.Value.Pos, Text: right}}
			s.report.Add(d)
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
