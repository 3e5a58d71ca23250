package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/kconfig"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/facts/linux"
)

// The rules of this file look the names of kernel arguments and modules up in the facts.
func nameRules() []Rule {
	return []Rule{
		{
			ID: "kernel-arg-name", Severity: diag.Error, tables: true,
			Title: "misspelt kernel argument",
			Cause: "Neither the kernel nor systemd, dracut or the BSP reads an argument of that name, and one has nearly the same. The kernel passes what it does not know to the first program, without a message. A warning where the tables are not of the very kernel.",
			Fix:   "write the name that the kernel reads, or set external: true if a program or driver of yours reads it",
			Wrong: `kernel: args: isolcpu: "4-5"`, Right: "cpu: isolate: [4, 5]",
			See: "yoctune facts show NAME; Documentation/admin-guide/kernel-parameters.txt",
			run: checkArgName,
		},
		{
			ID: "kernel-arg-unknown", Severity: diag.Warning, tables: true,
			Title: "unknown kernel argument",
			Cause: "Neither the kernel nor systemd, dracut or the BSP is known to read an argument of that name. The kernel passes it to the first program, without a message.",
			Fix:   "remove it, or set external: true if a program or driver of yours reads it",
			Wrong: `kernel: args: "acme.profile": "fast"`, Right: `kernel: args: "acme.profile": {value: "fast", external: true}`,
			See: "yoctune facts show NAME",
			run: checkArgUnknown,
		},
		{
			ID: "kernel-arg-arch", Severity: diag.Error, tables: true,
			Title: "kernel argument of another architecture",
			Cause: "The code that reads the argument is not part of a kernel for arm64. The kernel passes the argument to the first program, without a message.",
			Fix:   "remove it",
			Wrong: `kernel: args: intel_pstate: "off"`, Right: `cpu: governor: "performance"`,
			See: "yoctune facts show NAME",
			run: checkArgArch,
		},
		{
			ID: "module-name", Severity: diag.Error, tables: true,
			Title: "misspelt kernel module",
			Cause: "No option of the kernel and no recipe of the BSP builds a module of that name, and one has nearly the same. systemd-modules-load then fails at each boot, and a blacklist entry blocks nothing. A warning where more than a slip parts the two names, and where the tables are not of the very kernel: a recipe of yours may build it.",
			Fix:   "write the module's name, or set external: true if a recipe of yours builds it",
			Wrong: `modules: sch_fqq: "blacklist"`, Right: `modules: sch_fq: "blacklist"`,
			See: "yoctune facts show NAME; the kernel's Makefiles",
			run: checkModuleName,
		},
		{
			ID: "module-unknown", Severity: diag.Warning, tables: true,
			Title: "unknown kernel module",
			Cause: "No option of the kernel and no recipe of the BSP is known to build a module of that name. If there is none, systemd-modules-load fails at each boot.",
			Fix:   "remove it, or set external: true if a recipe of yours builds it",
			Wrong: `modules: acme_dsp: "load"`, Right: `modules: acme_dsp: {value: "load", external: true}`,
			See: "yoctune facts show NAME; the kernel's Makefiles",
			run: checkModuleUnknown,
		},
		{
			ID: "module-config", Severity: diag.Error,
			Title: "the kernel does not build a module",
			Cause: "The option that builds the module is off. systemd-modules-load then fails at each boot.",
			Fix:   "switch the option on in kernel.config",
			Wrong: `modules: wireguard: "load"`, Right: `{kernel: config: WIREGUARD: "m", modules: wireguard: "load"}`,
			See: "the kernel's Makefiles",
			run: checkModuleConfig,
		},
		{
			ID: "module-builtin", Severity: diag.Warning, tables: true,
			Title: "blacklist of a module that is built in",
			Cause: "The kernel has the code itself and loads no module for it. modprobe reads blacklist entries, and nothing calls it here.",
			Fix:   "build it as a module or switch it off in kernel.config, or remove the entry",
			Wrong: `modules: ext4: "blacklist"`, Right: `modules: uvcvideo: "blacklist"`,
			See: "modprobe.d(5)",
			run: checkModuleBuiltin,
		},
		{
			ID: "module-package", Severity: diag.Warning, last: true,
			Title: "a requested module reaches no image",
			Cause: "Each module is a package of its own, and no package of the image depends on it. The kernel is built with the module, and the device lacks it.",
			Fix:   "load the module, which also installs its package, or build it in",
			Wrong: `kernel: config: WIREGUARD: "m"`, Right: `kernel: config: WIREGUARD: "m"` + "\n" + `modules: wireguard: "load"`,
			See: "oe-core kernel-module-split.bbclass",
			run: checkModulePackage,
		},
	}
}

// argument is a kernel argument of the configuration with its fact.
type argument struct {
	*config.Scalar
	linux.Arg
	unknown bool
	message string // of an unknown one that was probably meant to be another
	help    string
	near    string
}

// arguments are those that the configuration sets, without those it declares to be its own.
func (s *subject) arguments() []argument {
	if s.args != nil || len(s.Config.Kernel.Args.Entries) == 0 {
		return s.args
	}
	s.args = []argument{}
	for _, arg := range s.Config.Kernel.Args.Entries {
		name := arg.Key()
		if arg.External.On || arg.Kind() == load.Null || s.isStock(arg) { // kernel-arg-remove
			continue
		}
		a := argument{Scalar: &arg.Scalar}
		var known bool
		if a.Arg, known = s.findArg(name); !known && !s.isRead(name) {
			a.unknown = true
			a.message, a.help, a.near = s.guess(name)
		}
		s.args = append(s.args, a)
	}
	return s.args
}

// isRead reports whether something reads an argument that the facts lack: a sysctl, a
// parameter of every module, or one of a module whose parameters are not known.
func (s *subject) isRead(name string) bool {
	module, rest, dotted := strings.Cut(linux.Fold(name), ".")
	if !dotted {
		return false
	}
	if module == "sysctl" {
		_, ok := s.findArg("!sysctl")
		return ok
	}
	m, known := s.findModule(module)
	return known && (rest == "dyndbg" || rest == "async_probe" || m.OutOfTree())
}

// guess describes what an unknown argument was probably meant to be; "" where nothing is near.
func (s *subject) guess(name string) (message, help, near string) {
	near, distance := "", 0
	for _, line := range s.lines {
		if n, d := linux.NearestArg(line, name); n != "" && (near == "" || d < distance) {
			near, distance = n, d
		}
	}
	if near == "" || distance > 1 {
		if first, second := s.splitArgs(name); first != "" {
			return fmt.Sprintf("%s is two arguments run together: %s and %s", name, first, second), "write them as two", ""
		}
	}
	if near == "" {
		return "", "", ""
	}
	return fmt.Sprintf("nothing reads the kernel argument %s on kernel %s", name, s.Release.Kernel), fmt.Sprintf("did you mean %q?", near), near
}

// splitArgs finds two arguments whose names, one after the other, are name.
func (s *subject) splitArgs(name string) (first, second string) {
	const shortest = 4
	for i := shortest; i <= len(name)-shortest; i++ {
		if linux.HasArg(s.lines[0], name[:i]) && linux.HasArg(s.lines[0], name[i:]) {
			first, second = name[:i], name[i:] // the longest first part
		}
	}
	return first, second
}

func checkArgName(s *subject) {
	for _, a := range s.arguments() {
		if a.unknown && a.message != "" {
			f := s.reportName(a.Scalar, a.Key(), a.help, "%s", a.message).propose(a.Scalar, a.Key(), a.near)
			f.unlessOwn(s)
			f.unlessShort(a.Key())
		}
	}
}

func checkArgUnknown(s *subject) {
	for _, a := range s.arguments() {
		if a.unknown && a.message == "" && s.isBracketed() {
			s.reportKey(a.Scalar, "remove it, or set external: true if a program or driver of yours reads it",
				"%s is not known to kernel %s", a.Key(), s.Release.Kernel)
		}
	}
}

func checkArgArch(s *subject) {
	for _, a := range s.arguments() {
		if a.Arch != "" && a.Arch != "other" {
			s.reportKey(a.Scalar, "", "%s is an argument of kernels for %s: no kernel for arm64 reads it", a.Key(), strings.ReplaceAll(a.Arch, ",", ", "))
		}
	}
}

// missingOption returns the option without which the kernel does not read an argument, and
// whether it is there as a module only; "" where the kernel reads it.
func (s *subject) missingOption(a linux.Arg) (symbol string, module bool) {
	fewest := 0
	for _, alternative := range a.Needs {
		count, first, first2 := 0, "", false
		for _, option := range alternative {
			name, builtIn := strings.CutSuffix(option, "=y")
			lacks := s.lacksKernelOption(name)
			if value, _ := s.optionValue(name); !lacks && builtIn && value == "m" {
				lacks, first2 = true, true
			}
			if lacks {
				count++
				first = name
			}
		}
		if count == 0 {
			return "", false
		}
		if symbol == "" || count < fewest {
			symbol, module, fewest = first, first2, count
		}
	}
	return symbol, module
}

// optionValue is the value that an option is requested to have, or will have.
func (s *subject) optionValue(symbol string) (value string, known bool) {
	if o, ok := s.findConfig(symbol); ok {
		return o.Value, true
	}
	if s.kernel == nil || !s.kernel.IsExact() {
		return "", false
	}
	return s.kernel.Value(symbol)
}

var (
	numberForm   = lazyregexp.New(`^-?(0[xX][0-9a-fA-F]+|[0-9]+)$`)
	unsignedForm = lazyregexp.New(`^(0[xX][0-9a-fA-F]+|[0-9]+)$`)
	digitsForm   = lazyregexp.New(`^-?[0-9]`)
	boolForm     = lazyregexp.New(`^([yYnNtTfF01].*|[oO][nNfF].*)$`)
	sizeForm     = lazyregexp.New(`^(0[xX][0-9a-fA-F]+|[0-9]+)[KMGTPEkmgtpe]?$`)
	rangeForm    = lazyregexp.New(`^(0[xX][0-9a-fA-F]+|[0-9]+)[KMGTPEkmgtpe]?([@-](0[xX][0-9a-fA-F]+|[0-9a-fA-F]+)[KMGTPEkmgtpe]?)*$`)
)

// expectedValue returns what an argument takes if it does not take the value that is set; ""
// where it does, and where the facts do not decide it.
func expectedValue(a argument) string {
	form, words := valueForm(a.Arg)
	switch {
	case a.Kind() == load.Bool && (a.Kinds == string(linux.SetupValue) || a.Kinds == string(linux.Module) && form != nil && form != boolForm):
		if words == "" {
			return "a value"
		}
		return words
	case a.Kind() == load.Bool || form == nil || form.MatchString(a.Text):
		return ""
	}
	return words
}

// valueForm returns the pattern of an argument's values, with words for it; nil where they are
// not known.
func valueForm(a linux.Arg) (*lazyregexp.Regexp, string) {
	switch a.Name {
	case "hugepagesz", "default_hugepagesz": // of an arm64 kernel with pages of 4 KiB
		return lazyregexp.New(`^(64[Kk]|2[Mm]|32[Mm]|1[Gg])$`), "64K, 2M, 32M or 1G"
	case "preempt": // compared in a function of the scheduler
		return lazyregexp.New(`^(none|voluntary|full|lazy)$`), "none, voluntary, full or lazy"
	case "loglevel":
		return lazyregexp.New(`^[0-8]$`), "a level from 0 to 8"
	}
	switch a.Value {
	case "bool", "invbool", "bool_enable_only":
		return boolForm, "y, n, 1 or 0"
	case "int", "long", "short", "number":
		return numberForm, "a number"
	case "uint", "ulong", "ullong", "ushort", "byte", "hexint":
		return unsignedForm, "a number that is not negative"
	case "digits":
		return digitsForm, "a number"
	case "size":
		return sizeForm, "a size such as 256M"
	case "size@":
		return rangeForm, "a size such as 256M, or 256M@ADDRESS"
	}
	words, ok := strings.CutPrefix(a.Value, "words:")
	if !ok {
		return nil, ""
	}
	all := strings.Split(words, "|")
	quoted := make([]string, len(all))
	for i, w := range all {
		quoted[i] = regexp.QuoteMeta(w)
	}
	form := lazyregexp.New("^(" + strings.Join(quoted, "|") + ")$")
	return form, joinOr(all)
}

func joinOr(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// moduleEntry is a module of the configuration with its fact.
type moduleEntry struct {
	*config.String
	linux.Mod
	unknown bool
	near    string // of an unknown one
}

// modules are those that the configuration names, without those it declares to be its own.
func (s *subject) modules() []moduleEntry {
	if s.mods != nil || len(s.Config.Modules.Entries) == 0 {
		return s.mods
	}
	s.mods = []moduleEntry{}
	for _, entry := range s.Config.Modules.Entries {
		if entry.External.On {
			continue
		}
		m := moduleEntry{String: &entry.String}
		var known bool
		m.Mod, known = s.findModule(entry.Key())
		if known && len(m.Of) > 0 {
			m.Mod, known = s.findModule(m.Of[0])
		}
		if !known {
			m.unknown, m.near = true, s.nearestModule(entry.Key())
		}
		s.mods = append(s.mods, m)
	}
	return s.mods
}

func checkModuleName(s *subject) {
	for _, m := range s.modules() {
		if m.near != "" {
			s.reportName(m.String, m.Key(), fmt.Sprintf("did you mean %q? Otherwise set external: true", m.near), "kernel %s has no module %s", s.Release.Kernel, m.Key()).
				propose(m.String, m.Key(), m.near).unlessSlip(linux.Fold(m.Key()), m.near, nearLetters).unlessOwn(s)
		}
	}
}

func checkModuleUnknown(s *subject) {
	for _, m := range s.modules() {
		if m.unknown && m.near == "" && s.isBracketed() {
			s.reportKey(m.String, "remove it, or set external: true if a recipe of yours builds it",
				"no module %s is known for kernel %s", m.Key(), s.Release.Kernel)
		}
	}
}

func checkModuleConfig(s *subject) {
	for _, m := range s.modules() {
		if m.unknown || m.Text != "load" || len(m.Options) == 0 || slices.ContainsFunc(m.Options, func(o string) bool { return !s.lacksKernelOption(o) }) {
			continue
		}
		f := s.raise(m.String, "the kernel does not build module %s: %s is off", m.Key(), joinOr(m.Options)).withValue(m.Text)
		s.enable(f, m.Options[0], "kernel: config: ", 1)
	}
}

func checkModuleBuiltin(s *subject) {
	for _, m := range s.modules() {
		if m.unknown || m.Text != "blacklist" {
			continue
		}
		if i := slices.IndexFunc(m.Options, func(o string) bool {
			v, _ := s.optionValue(o)
			return v == "y"
		}); i >= 0 {
			s.reportAt(m.String, m.Show(), "", "the blacklist entry of %s has no effect: %s is y", m.Key(), m.Options[i])
		}
	}
}

func checkModulePackage(s *subject) {
	for p, o := range s.predictions(kconfig.Kept) {
		if o.Text != "m" || p.Note != "" || s.isChoice(p.Symbol) {
			continue
		}
		modules := linux.ModulesOf(s.Release.Kernel, p.Symbol)
		if len(modules) == 0 || slices.ContainsFunc(modules, s.loadsModule) || s.ZRAM != nil && slices.Contains(modules, "zram") {
			continue
		}
		// The module of the option's own name, where there are several.
		at := max(slices.Index(modules, strings.ToLower(p.Symbol)), 0)
		s.raise(o, "%s=m builds module %s, and nothing brings its package to the image", p.Symbol, modules[at]).
			withValue(o.Show()).suggest(loadField(modules[at]), 2)
	}
}

// isChoice reports whether module-autoload answers for an option.
func (s *subject) isChoice(symbol string) bool {
	return slices.ContainsFunc(slices.Concat(s.governor(), s.schedulers(), s.congestion(), s.qdisc()), func(c choice) bool { return c.symbol == symbol })
}
