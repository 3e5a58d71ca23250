package quote

import (
	"errors"
	"fmt"
	"strings"

	"github.com/yoctune/yoctune/schema/knob"
)

// UdevValue writes the right side of an assignment in a udev rule (udev(7)),
// with its quotes; % and $ start substitutions.
func UdevValue(v string) (string, error) {
	const sink = "udev value"
	if err := checkText(sink, v, ""); err != nil {
		return "", err
	}
	if strings.Contains(v, `\`) {
		return "", refuse(sink, v, "udev has no way to write a backslash reliably", "")
	}
	return `"` + udevEscapes.Replace(v) + `"`, nil
}

var udevEscapes = strings.NewReplacer(`"`, `\"`, "%", "%%", "$", "$$")

// UdevMatch writes a value that must match literally.
func UdevMatch(v string) (string, error) {
	const hint = "only device names are matched literally; use a glob field for patterns"
	if err := checkCharset("udev match", v, hint, func(_ int, r rune) bool { return isAlnum(r) || isAmong("._:-", r) }); err != nil {
		return "", err
	}
	return `"` + v + `"`, nil
}

// UdevGlob writes a pattern over device names: * ? [set]. The | of udev, which
// joins alternatives, is refused.
func UdevGlob(v string) (string, error) {
	const sink = "device pattern"
	const hint = "write a device name with *, ? or [0-9]"
	if err := checkCharset(sink, v, hint, func(_ int, r rune) bool { return isAlnum(r) || isAmong("._:*?[]!-", r) }); err != nil {
		return "", err
	}
	open := false
	for _, r := range v {
		switch {
		case r == '[' && !open:
			open = true
		case r == ']' && open:
			open = false
		case r == '[' || r == ']':
			return "", refuse(sink, v, "its brackets do not pair", hint)
		}
	}
	if open || strings.Contains(v, "[]") {
		return "", refuse(sink, v, "its brackets do not pair", hint)
	}
	return `"` + v + `"`, nil
}

// UdevAttribute writes the left side of an assignment to an attribute of a device.
func UdevAttribute(v string) (string, error) {
	word, err := checkWord("udev attribute", v, "write letters, digits, '/', '_', '.' and '-'", func(_ int, r rune) bool {
		return isAlnum(r) || isAmong("/_.-", r)
	})
	return "ATTR{" + word + "}", err
}

// UdevWord writes an argument of a program in a udev rule.
func UdevWord(v string) (string, error) {
	return checkWord("argument of a udev rule", v, "write letters, digits, '_' and '-'", func(_ int, r rune) bool {
		return isAlnum(r) || isAmong("_-", r)
	})
}

// Sysctl writes one line of sysctl.d(5) for the node at path below /proc/sys,
// e.g. net/ipv4/conf/eth0.100/rp_filter. The format has no quoting: it trims
// blanks, and the key is read with slashes where its first separator is one.
func Sysctl(path, value string) (string, error) {
	const sink = "sysctl key"
	parts := strings.Split(path, "/")
	for _, p := range parts {
		if err := checkCharset(sink, p, "write the key as the kernel does, such as vm.swappiness", func(i int, r rune) bool {
			return isAlnum(r) || i > 0 && isAmong("_.:@-", r)
		}); err != nil {
			var fault *Error
			if errors.As(err, &fault) {
				return "", refuse(sink, path, fault.Reason, fault.Hint)
			}
			return "", err
		}
		if p == ".." || strings.HasPrefix(p, ".") {
			return "", refuse(sink, path, "it climbs out of /proc/sys", "")
		}
	}
	if len(parts) < 2 {
		return "", refuse(sink, path, "it names no node below /proc/sys", "write at least two parts, such as vm.swappiness")
	}
	if value == "" || strings.TrimSpace(value) != value {
		return "", refuse("sysctl value", value, "it is empty or begins or ends with a blank, which would be dropped", "")
	}
	if err := checkText("sysctl value", value, ""); err != nil {
		return "", err
	}
	key := path // with slashes, dots belong to the components
	if !strings.Contains(path, ".") {
		key, _ = knob.SysctlKey(knob.SysctlDir + path)
	}
	return key + " = " + value, nil
}

// Module writes the name of a kernel module for modules-load.d and modprobe.d,
// or as part of a package name.
func Module(v string) (string, error) {
	if len(v) > 56 { // MODULE_NAME_LEN less its terminator
		return "", refuse("module name", v, "it is longer than the kernel allows (56)", "")
	}
	return checkWord("module name", v, "write letters, digits, '_' and '-'", func(i int, r rune) bool {
		return isAlnum(r) || i > 0 && isAmong("_-", r)
	})
}

// Kconfig writes one line of a kernel fragment (Documentation/kbuild/kconfig):
// quoted text, or a bare y, m, n, decimal or hexadecimal number.
func Kconfig(symbol, value string, quoted bool) (string, error) {
	const hint = "write the symbol without CONFIG_"
	if err := checkCharset("kernel symbol", symbol, hint, func(_ int, r rune) bool {
		return isAlnum(r) || r == '_'
	}); err != nil {
		return "", err
	}
	if strings.HasPrefix(symbol, "CONFIG_") {
		return "", refuse("kernel symbol", symbol, "it begins with CONFIG_", hint)
	}
	if quoted {
		if err := checkText("kernel text value", value, ""); err != nil {
			return "", err
		}
		return fmt.Sprintf(`CONFIG_%s="%s"`, symbol, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)), nil
	}
	if value == "n" {
		return "# CONFIG_" + symbol + " is not set", nil
	}
	if value != "y" && value != "m" && !number(value) {
		return "", refuse("kernel value", value, "it is not y, m, n or a number", "text options are strings in the kernel's Kconfig; check the type of CONFIG_"+symbol)
	}
	return "CONFIG_" + symbol + "=" + value, nil
}

func number(v string) bool {
	hex, isHex := strings.CutPrefix(v, "0x")
	digits := strings.TrimPrefix(v, "-")
	if isHex {
		digits = hex
	}
	if digits == "" {
		return false
	}
	for _, r := range digits {
		if !isDigit(r) && !(isHex && ('a' <= r && r <= 'f' || 'A' <= r && r <= 'F')) {
			return false
		}
	}
	return true
}

// KernelArg writes one argument of the kernel command line. The BSP puts it
// through a shell, mkbootimg and extlinux.conf on its way, and the kernel cannot
// escape a quote, so that only characters none of them reads are taken.
func KernelArg(name, value string, flag bool) (string, error) {
	const hint = "write letters, digits and . _ , : = / @ + -"
	if err := checkCharset("kernel argument", name, hint, func(i int, r rune) bool {
		return isAlnum(r) || i > 0 && isAmong("._-", r)
	}); err != nil {
		return "", err
	}
	if flag {
		return name, nil
	}
	if err := checkCharset("kernel argument value", value, hint, func(_ int, r rune) bool {
		return isAlnum(r) || isAmong("._,:=/@+-", r)
	}); err != nil {
		return "", err
	}
	return name + "=" + value, nil
}

// PowerMode writes the name of a POWER_MODEL. nvpmodel.conf has no escapes and
// the programs that read it take \w only.
func PowerMode(v string) (string, error) {
	if len(v) > 32 {
		return "", refuse("power mode name", v, "it is longer than 32 characters", "")
	}
	return checkWord("power mode name", v, "write letters, digits and underscores", func(_ int, r rune) bool {
		return isAlnum(r) || r == '_'
	})
}

// PowerParam writes one "PARAM ARG value" line of a POWER_MODEL.
func PowerParam(param, arg, value string) (string, error) {
	for _, v := range []string{param, arg} {
		if err := checkCharset("nvpmodel name", v, "write letters, digits and underscores", func(_ int, r rune) bool {
			return isAlnum(r) || r == '_'
		}); err != nil {
			return "", err
		}
	}
	hexed := strings.HasPrefix(value, "0x")
	if value != "on" && value != "auto" && (hexed || !number(value)) {
		return "", refuse("nvpmodel value", value, "it is not a decimal number, on or auto", "")
	}
	return param + " " + arg + " " + value, nil
}
