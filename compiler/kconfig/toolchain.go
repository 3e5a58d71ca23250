package kconfig

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// declared answers Kconfig's probes of the toolchain with declared facts: a recent GNU
// toolchain with every probed option, without Rust and pahole. A tree can thus be read
// without a cross compiler and without running its commands.
type declared struct {
	tc      Toolchain
	seen    map[string]bool
	assumed []string
}

func (d *declared) gccVersion() string { return cmp.Or(d.tc.GCC, "12.2.0") }

func (d *declared) binutilsVersion() string { return cmp.Or(d.tc.Binutils, "2.40") }

func (d *declared) gccText() string {
	return "aarch64-linux-gnu-gcc (GCC) " + d.gccVersion()
}

// joinVersion joins the parts of a version with two digits each: 12.2.0 becomes 120200.
func joinVersion(v string) string {
	n := 0
	parts := strings.SplitN(v, ".", 3)
	for i := range 3 {
		x := 0
		if i < len(parts) {
			x, _ = strconv.Atoi(parts[i])
		}
		n = n*100 + x
	}
	return strconv.Itoa(n)
}

func (d *declared) recordAssumption(command string) {
	if !d.seen[command] && len(d.assumed) < 200 {
		d.seen[command] = true
		d.assumed = append(d.assumed, command)
	}
}

// toolchainMacros returns the functions of scripts/Kconfig.include that run a command.
func (d *declared) toolchainMacros() map[string]func([]string) string {
	yes := func([]string) string { return "y" }
	none := func([]string) string { return "" }
	arg := func(a []string, i int) string {
		if i < len(a) {
			return a[i]
		}
		return ""
	}
	pick := func(a []string, then, otherwise string) string {
		if d.commandSucceeds(arg(a, 0)) {
			return then
		}
		return otherwise
	}
	return map[string]func([]string) string{
		"cc-option": d.answerOption, "cc-option-yn": d.answerOption, "cc-disable-warning": yes, "cc-option-align": yes,
		"as-option": yes, "as-instr": yes, "as-instr64": yes, "ld-option": yes,
		"rustc-option": func([]string) string { return "n" },
		// The only user is -m32 and -m64, which arm64's compiler does not have.
		"cc-option-bit": none,
		"success":       func(a []string) string { return pick(a, "y", "n") },
		"failure":       func(a []string) string { return pick(a, "n", "y") },
		"if-success":    func(a []string) string { return pick(a, arg(a, 1), arg(a, 2)) },
	}
}

// answerOption reports (y or n) whether the compiler accepts a flag. It refuses flags of clang,
// flags that probes expect to be refused, and flags of later versions.
func (d *declared) answerOption(args []string) string {
	if len(args) > 0 && !d.gccSupports(args[0]) {
		return "n"
	}
	return "y"
}

// gccSupports reports whether gcc accepts a probe, by flag and by the version that added it.
func (d *declared) gccSupports(probe string) bool {
	for _, f := range [...]struct {
		text string
		gcc  int // 0: no version
	}{
		{"-D__SIZEOF_INT128__=0", 0}, // arm64 has the type, so the probe must fail
		{"-frandomize-layout-seed-file", 0},
		{"-fsanitize=kcfi", 0},
		{"-mllvm", 0},
		{"--target=", 0},
		{"-fstrict-flex-arrays", 13},
		{"-fmin-function-alignment", 14},
		{"-finline-stringops", 14},
		{"__counted_by__", 15},
		{"-fzero-init-padding-bits", 15},
	} {
		if strings.Contains(probe, f.text) && (f.gcc == 0 || majorVersion(d.gccVersion()) < f.gcc) {
			return false
		}
	}
	return true
}

func majorVersion(v string) int {
	m, _, _ := strings.Cut(v, ".")
	n, _ := strconv.Atoi(m)
	return n
}

// commandSucceeds reports whether a command of $(success,…) would exit with 0.
func (d *declared) commandSucceeds(command string) bool {
	if ok, evaluated := evaluateTest(command); evaluated {
		return ok
	}
	if strings.HasPrefix(command, "command -v ") {
		return true
	}
	for _, w := range [...]string{"rust", "bindgen", "pahole", "clang", "grep -qi llvm", "lld", "LLD"} {
		if strings.Contains(command, w) {
			return false
		}
	}
	if !d.gccSupports(command) {
		return false
	}
	// binutils before 2.43 do not support relative relocations on arm64.
	if strings.Contains(command, "tools-support-relr") {
		return versionOf(d.binutilsVersion()).minor >= 43
	}
	d.recordAssumption(command)
	return true
}

// evaluateTest evaluates `test` with constant arguments.
func evaluateTest(command string) (ok, evaluated bool) {
	f := splitWords(command)
	if len(f) == 0 || f[0] != "test" && f[0] != "[" {
		return false, false
	}
	f = f[1:]
	if n := len(f); n > 0 && f[n-1] == "]" {
		f = f[:n-1]
	}
	switch {
	case len(f) == 2 && f[0] == "-z":
		return f[1] == "", true
	case len(f) == 2 && f[0] == "-n":
		return f[1] != "", true
	case len(f) == 3 && f[1] == "=":
		return f[0] == f[2], true
	case len(f) == 3 && f[1] == "!=":
		return f[0] != f[2], true
	case len(f) == 3 && strings.HasPrefix(f[1], "-"):
		a, erra := strconv.Atoi(f[0])
		b, errb := strconv.Atoi(f[2])
		if erra != nil || errb != nil {
			return false, true
		}
		switch f[1] {
		case "-ge":
			return a >= b, true
		case "-gt":
			return a > b, true
		case "-le":
			return a <= b, true
		case "-lt":
			return a < b, true
		case "-eq":
			return a == b, true
		case "-ne":
			return a != b, true
		}
	}
	return false, false
}

// splitWords splits a command at blanks outside double quotes.
func splitWords(s string) []string {
	var out []string
	var cur strings.Builder
	in, any := false, false
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"':
			in, any = !in, true
		case (c == ' ' || c == '\t') && !in:
			if any {
				out = append(out, cur.String())
			}
			cur.Reset()
			any = false
		case strings.IndexByte("|;&<>`", c) >= 0 && !in:
			return nil
		default:
			cur.WriteByte(c)
			any = true
		}
	}
	if any {
		out = append(out, cur.String())
	}
	return out
}

// answerShell answers $(shell,…) itself.
func (d *declared) answerShell(command string) string {
	has := func(s string) bool { return strings.Contains(command, s) }
	switch {
	case strings.HasPrefix(command, "set -- "):
		// set -- GCC 120200 && echo $1
		words, pick, ok := strings.Cut(strings.TrimPrefix(command, "set -- "), "&& echo $")
		n, err := strconv.Atoi(strings.TrimSpace(pick))
		f := strings.Fields(words)
		if ok && err == nil && n >= 1 && n <= len(f) {
			return f[n-1]
		}
		return ""
	case has("cc-version.sh"):
		return "GCC " + joinVersion(d.gccVersion())
	case has("as-version.sh"):
		return "GNU " + joinVersion(d.binutilsVersion())
	case has("ld-version.sh") && has("--version |"):
		// Before Linux 5.12 the script read the version from its input.
		return fmt.Sprintf("%s0000", joinVersion(d.binutilsVersion()))
	case has("ld-version.sh"):
		return "BFD " + joinVersion(d.binutilsVersion())
	case has("gcc-version.sh"):
		return joinVersion(d.gccVersion())
	case has("clang-version.sh"), has("lld-version.sh"), has("rustc"), has("pahole"):
		return "0"
	case has("bindgen"):
		return ""
	case has("--version"):
		return d.gccText()
	}
	d.recordAssumption(command)
	return ""
}
