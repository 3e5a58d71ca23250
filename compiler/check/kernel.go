package check

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/facts/release"
)

func kernelRules() []Rule {
	return []Rule{
		{
			ID: "tcp-cc-bbr", Severity: diag.Error,
			Title: "the kernel drops BBR",
			Cause: "TCP_CONG_BBR depends on TCP_CONG_ADVANCED, which no Jetson configuration sets. kconfig drops the line without an error, and the sysctl then fails at boot.",
			Fix:   `add kernel: config: {TCP_CONG_ADVANCED: "y", TCP_CONG_BBR: "m"}`,
			Wrong: `kernel: config: TCP_CONG_BBR: "y"`, Right: `kernel: config: {TCP_CONG_ADVANCED: "y", TCP_CONG_BBR: "y"}`,
			See: "net/ipv4/Kconfig",
			run: checkBBR,
		},
		{
			ID: "nohz-full-config", Severity: diag.Error,
			Title: "an isolated core keeps its tick",
			Cause: "cpu.isolate needs NO_HZ_FULL and RCU_NOCB_CPU in the kernel, and the configuration switches one of them off.",
			Fix:   "remove the option: cpu.isolate sets it",
			Wrong: `cpu: isolate: [4, 5]` + "\n" + `kernel: config: NO_HZ_FULL: "n"`, Right: "cpu: isolate: [4, 5]",
			See: "kernel/time/Kconfig, kernel/rcu/Kconfig",
			run: checkNohzFull,
		},
		{
			ID: "preempt-choice", Severity: diag.Error,
			Title: "two preemption models",
			Cause: "The models are a choice in kconfig: the last line wins and the others are lost.",
			Fix:   "choose one with kernel.preempt",
			Wrong: `kernel: {preempt: "rt", config: PREEMPT_VOLUNTARY: "y"}`, Right: `kernel: preempt: "rt"`,
			See: "kernel/Kconfig.preempt",
			run: checkPreemptChoice,
		},
		{
			ID: "preempt-rt-kvm", Severity: diag.Error,
			Title: "PREEMPT_RT and KVM exclude each other",
			Cause: "On arm64 the kernel offers PREEMPT_RT only while KVM is off. With KVM the line is dropped, and the kernel loses its preemption as well.",
			Fix:   "remove KVM, or use another preemption model",
			Wrong: `kernel: {preempt: "rt", config: KVM: "y"}`, Right: `kernel: preempt: "rt"`,
			See: "arch/arm64/Kconfig: ARCH_SUPPORTS_RT",
			run: checkPreemptKVM,
		},
		{
			ID: "preempt-rt-route", Severity: diag.Error, Firm: true,
			Title: "the release has no real-time kernel",
			Cause: "Linux 4.9 and 5.10 of the BSP support PREEMPT_RT only with separate patches. Where the release has a recipe for the real-time kernel, use that recipe instead of an option of the other kernel.",
			Fix:   "choose a release that has a real-time kernel",
			Wrong: `{board: "agx-orin-64gb", release: "kirkstone", kernel: preempt: "rt"}`,
			Right: `{board: "agx-orin-64gb", release: "wrynose", kernel: preempt: "rt"}`,
			See:   "meta-tegra recipes-kernel/linux",
			run:   checkPreemptRoute,
		},
		{
			ID: "kernel-config-value", Severity: diag.Error, Firm: true,
			Title: "invalid value of a kernel option",
			Cause: "kconfig drops lines that it cannot parse, without an error: write y instead of Y, and names without CONFIG_.",
			Fix:   `write "y", "m", "n", a number, or text`,
			Wrong: `kernel: config: {PSI: "Y"}`, Right: `kernel: config: {PSI: "y"}`,
			See: "Documentation/kbuild/kconfig-language.rst",
			run: checkConfigValue,
		},
		{
			ID: "kernel-localversion", Severity: diag.Error,
			Title: "the kernel's recipe overwrites LOCALVERSION",
			Cause: "After all fragments, do_kernel_configme writes the recipe's LINUX_VERSION_EXTENSION as LOCALVERSION, and every kernel recipe of meta-tegra sets that variable. The layer's own check would then stop the build.",
			Fix:   "set LINUX_VERSION_EXTENSION in an append of your own, and SRCBRANCH where the recipe derives it from that",
			Wrong: `kernel: config: LOCALVERSION: "-edge"`, Right: `kernel: config: LOCALVERSION_AUTO: "n"`,
			See: "openembedded-core kernel-yocto.bbclass",
			run: checkLocalVersion,
		},
		{
			ID: "kernel-arg-unsafe", Severity: diag.Error, Firm: true,
			Title: "a kernel argument replaces the first program or weakens protection",
			Cause: "init= and rdinit= replace the system's first program, and others turn off protections of the running kernel. A tuning layer must not be a way to do that.",
			Fix:   "set it in your own machine configuration, where it is reviewed as such",
			Wrong: `kernel: args: init: "/bin/sh"`, Right: `kernel: args: quiet: true`,
			See: "Documentation/admin-guide/kernel-parameters.txt",
			run: checkArgUnsafe,
		},
		{
			ID: "kernel-arg-text", Severity: diag.Error, Firm: true,
			Title: "a kernel argument contains characters that boot loaders interpret",
			Cause: "The command line passes through bitbake, extlinux or UEFI, and the kernel's own parser. Blanks, quotes, $ and ; change their meaning on the way.",
			Fix:   "use letters, digits and . _ , : / = @ % + -",
			Wrong: `kernel: args: foo: "a; b"`, Right: `kernel: args: foo: "a,b"`,
			See: "meta-tegra KERNEL_ARGS",
			run: checkArgText,
		},
	}
}

func checkBBR(s *subject) {
	option := s.Config.Kernel.Config.Get("TCP_CONG_BBR")
	requested := option.IsSet() && option.Text != "n"
	if requested && !s.isEnabled("TCP_CONG_ADVANCED") {
		s.markExplained("TCP_CONG_BBR")
		d := s.raise(option, "TCP_CONG_BBR is dropped without TCP_CONG_ADVANCED=y").withValue(option.Show())
		d.suggest(`TCP_CONG_ADVANCED: "y"`, 0)
		if s.Config.Kernel.Config.Has("TCP_CONG_ADVANCED") {
			d.Edits = nil
		}
		return
	}
	if cc := s.Config.Sysctl.Get("net.ipv4.tcp_congestion_control"); cc.Text == "bbr" && !requested {
		s.raise(cc, "bbr is not in the kernel of %s", s.Release.Name).withValue(cc.Show()).suggest(`kernel: config: {TCP_CONG_ADVANCED: "y", TCP_CONG_BBR: "y"}`, 1)
	}
}

func checkNohzFull(s *subject) {
	if len(s.Isolated()) == 0 {
		return
	}
	for _, symbol := range []string{"NO_HZ_FULL", "RCU_NOCB_CPU"} {
		if s.isDisabled(symbol) {
			s.markExplained("NO_HZ_FULL")
			s.markExplained("RCU_NOCB_CPU")
			s.raise(s.Config.Kernel.Config.Get(symbol), "%s=n removes an option that cpu.isolate needs", symbol).withValue("n").addRelated(s.Config.CPU.Isolate, "the cores that are isolated")
		}
	}
}

// preemptionOptions are the options of the preemption models, by the name that
// kernel.preempt has for them.
func preemptionOptions() map[string]string {
	return map[string]string{"none": "PREEMPT_NONE", "voluntary": "PREEMPT_VOLUNTARY", "full": "PREEMPT", "rt": "PREEMPT_RT"}
}

func checkPreemptChoice(s *subject) {
	p := s.Config.Kernel.Preempt
	if !p.IsSet() {
		s.reportTwoModels()
		return
	}
	options := preemptionOptions()
	for model, symbol := range options {
		o := s.Config.Kernel.Config.Get(symbol)
		if !o.IsSet() || (o.Text == "y") == (model == p.Text) || o.Text == "n" && model != p.Text {
			continue
		}
		s.markExplained(symbol)
		s.markExplained(options[p.Text])
		s.raise(o, "%s=%s contradicts kernel.preempt %q", symbol, o.Text, p.Text).withValue(o.Show()).addRelated(p, "the model that kernel.preempt chooses")
	}
}

// reportTwoModels reports several models among the options themselves. What becomes of
// a single one is kconfig's to explain.
func (s *subject) reportTwoModels() {
	var models []*config.Scalar
	for _, symbol := range []string{"PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT", "PREEMPT_RT"} {
		if o := s.Config.Kernel.Config.Get(symbol); o.Text == "y" {
			models = append(models, o)
		}
	}
	if len(models) < 2 {
		return
	}
	first := models[0]
	s.markExplained(first.Key())
	for _, o := range models[1:] {
		s.markExplained(o.Key())
		s.raise(o, "%s and %s are members of one choice", first.Key(), o.Key()).withValue(o.Show()).addRelated(first, "the other model")
	}
}

func checkLocalVersion(s *subject) {
	if o := s.Config.Kernel.Config.Get("LOCALVERSION"); o.IsSet() {
		s.markExplained("LOCALVERSION")
		s.reportAt(o, o.Show(), "", "the kernel's recipe overwrites LOCALVERSION")
	}
}

func checkPreemptKVM(s *subject) {
	if s.isEnabled("KVM") && s.Release.RTByConfig && (s.isRealtime() || s.isEnabled("PREEMPT_RT")) {
		s.markExplained("PREEMPT_RT")
		s.reportAt(s.Config.Kernel.Config.Get("KVM"), "y", "", "KVM=y makes the kernel drop PREEMPT_RT")
	}
}

func hasRealtime(r release.Release) bool { return r.RTProvider != "" || r.RTByConfig }

// releasesThat advises the releases of the board that have something; "" when no release has.
func (s *subject) releasesThat(have func(release.Release) bool) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.Board.Releases)) {
		if r, ok := release.Lookup(name); ok && have(r) {
			names = append(names, name)
		}
	}
	if names == nil {
		return "no release for " + s.Board.ID + " has one"
	}
	return "choose one of: " + strings.Join(names, ", ")
}

func checkPreemptRoute(s *subject) {
	option, model := s.Config.Kernel.Config.Get("PREEMPT_RT"), s.Config.Kernel.Preempt
	switch {
	case s.Release.RTProvider != "":
		if option.Text == "y" && !s.isRealtime() {
			s.markExplained("PREEMPT_RT")
			s.reportAt(option, option.Show(), `use kernel: preempt: "rt", which chooses the recipe`, "release %s has a separate recipe for the real-time kernel", s.Release.Name)
		}
	case s.Release.RTByConfig || s.Config.Kernel.Recipe.IsSet(): // the Kconfig of another kernel decides
	case s.isRealtime():
		s.markExplained("PREEMPT_RT")
		s.reportAt(model, model.Show(), s.releasesThat(hasRealtime), "release %s has no real-time kernel", s.Release.Name)
	case option.Text == "y":
		s.markExplained("PREEMPT_RT")
		s.reportAt(option, option.Show(), s.releasesThat(hasRealtime), "release %s has no real-time kernel", s.Release.Name)
	}
}

func checkConfigValue(s *subject) {
	for _, o := range s.Config.Kernel.Config.Entries {
		short, prefixed := strings.CutPrefix(o.Key(), "CONFIG_")
		switch {
		case prefixed:
			s.markExplained(o.Key())
			d := s.raise(o, "the name is written without CONFIG_")
			d.Got, d.Help = o.Key(), "write "+short
			d.Edits = []diag.Edit{{Kind: diag.RenameField, Pos: o.Pos(), Text: short}}
		case slices.Contains([]string{"Y", "M", "N", "yes", "no"}, o.Text):
			right := strconv.Quote(strings.ToLower(o.Text[:1]))
			s.markExplained(o.Key())
			d := s.raise(o, "kconfig does not read %q", o.Text)
			d.Got, d.Help = o.Show(), "write "+right
			d.Edits = []diag.Edit{{Kind: diag.ReplaceText, Pos: o.Pos(), Text: right}}
		}
	}
}

func checkArgUnsafe(s *subject) {
	for _, arg := range s.setArgs() {
		switch arg.Key() {
		case "init", "rdinit", "module.sig_enforce", "lockdown", "lsm", "apparmor", "selinux", "enforcing", "single", "emergency", "rd.break", "systemd.debug-shell", "systemd.debug_shell":
			s.reportAt(arg, arg.Show(), "", "a tuning layer must not set argument %s", arg.Key())
		}
	}
}

func checkArgText(s *subject) {
	for _, arg := range s.Config.Kernel.Args.Entries {
		if arg.Kind() != load.String {
			continue
		}
		bad := strings.IndexFunc(arg.Text, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._,:/=@%+-", r))
		})
		switch {
		case arg.Text == "":
			s.reportAt(arg, `""`, "write true for an argument without a value", "argument %s has an empty value", arg.Key())
		case bad >= 0:
			s.reportAt(arg, arg.Show(), "", "argument %s holds %q", arg.Key(), []rune(arg.Text[bad:])[0])
		}
	}
}
