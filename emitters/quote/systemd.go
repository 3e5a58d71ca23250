package quote

import (
	"fmt"
	"github.com/yoctune/yoctune/internal/lazyregexp"
	"path"
	"strconv"
	"strings"
)

// SystemdText writes free text such as Description=, which systemd does not
// unquote but in which it expands % specifiers (systemd.unit(5)).
func SystemdText(v string) (string, error) {
	const sink = "systemd text"
	if err := checkText(sink, v, ""); err != nil {
		return "", err
	}
	switch {
	case strings.TrimSpace(v) != v || v == "":
		return "", refuse(sink, v, "it is empty or begins or ends with a blank, which systemd drops", "")
	case strings.HasSuffix(v, `\`):
		return "", refuse(sink, v, "a backslash at the end joins lines", "")
	}
	return strings.ReplaceAll(v, "%", "%%"), nil
}

// SystemdWord writes one word of a list that systemd unquotes
// (systemd.syntax(7), "Quoting").
func SystemdWord(v string) (string, error) {
	return systemdWord("systemd word", v, false)
}

// A replacer is costly to make.
var (
	systemdEscapes  = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "%", "%%")
	tmpfilesEscapes = strings.NewReplacer(`\`, `\\`, "%", "%%")
)

func systemdWord(sink, v string, exec bool) (string, error) {
	// Line feed and tab have escapes; the other control characters could be
	// written as \x.. but no argument of a service has needed one honestly.
	if err := checkText(sink, v, "\n\t"); err != nil {
		return "", err
	}
	plain := v != ""
	for _, r := range v {
		plain = plain && (isAlnum(r) || isAmong("_./:=,@+-", r))
	}
	if plain {
		return v, nil
	}
	w := systemdEscapes.Replace(v)
	if exec {
		w = strings.ReplaceAll(w, "$", "$$")
	}
	return `"` + w + `"`, nil
}

// SystemdExec writes a command line for ExecStart= (systemd.service(5),
// "Command lines"). Every word is written so that systemd gives back exactly
// that word: a lone ";" does not start a second command and $X stays $X.
func SystemdExec(argv []string) (string, error) {
	const sink = "exec argument"
	if len(argv) == 0 {
		return "", refuse(sink, "", "the command is empty", "write exec as a list whose first word is an absolute path")
	}
	words := make([]string, len(argv))
	for i, arg := range argv {
		var err error
		if i == 0 {
			// A leading @ - : + ! | changes how systemd runs the program.
			words[i], err = devicePath("exec path", arg)
		} else {
			words[i], err = systemdWord(sink, arg, true)
		}
		if err != nil {
			return "", err
		}
	}
	return strings.Join(words, " "), nil
}

// SystemdCommand writes a command line whose program may have prefixes: "-" ignores its
// failure, "+" runs it with all rights (systemd.service(5), "Command lines").
func SystemdCommand(argv []string) (string, error) {
	if len(argv) == 0 {
		return SystemdExec(argv)
	}
	program := strings.TrimLeft(argv[0], "-+")
	prefix := argv[0][:len(argv[0])-len(program)]
	line, err := SystemdExec(append([]string{program}, argv[1:]...))
	return prefix + line, err
}

// SystemdOptionalPath writes the path of a file that may be absent if "-" stands before it.
func SystemdOptionalPath(v string) (string, error) {
	prefix := ""
	if rest, ok := strings.CutPrefix(v, "-"); ok {
		prefix, v = "-", rest
	}
	line, err := DevicePath(v)
	return strings.ReplaceAll(prefix+line, "%", "%%"), err
}

// SystemdDirective writes the name of a directive.
func SystemdDirective(v string) (string, error) {
	return checkWord("directive", v, "write letters, digits and '-'", func(i int, r rune) bool {
		return isUpper(r) || isLower(r) || i > 0 && (isDigit(r) || r == '-')
	})
}

// SystemdValue writes the value of a directive as it stands: quotes, % and $ mean what they
// mean to systemd. An empty value resets a list.
func SystemdValue(v string) (string, error) {
	const sink = "directive's value"
	if err := checkText(sink, v, ""); err != nil {
		return "", err
	}
	switch {
	case strings.TrimSpace(v) != v:
		return "", refuse(sink, v, "it begins or ends with a blank, which systemd drops", "")
	case strings.HasSuffix(v, `\`):
		return "", refuse(sink, v, "a backslash at the end joins lines", "")
	}
	return v, nil
}

// DevicePath writes an absolute path of the device.
func DevicePath(v string) (string, error) { return devicePath("device path", v) }

func devicePath(sink, v string) (string, error) {
	const hint = "write a clean absolute path without blanks"
	if err := checkCharset(sink, v, hint, func(_ int, r rune) bool {
		return isAlnum(r) || isAmong(pathMarks, r)
	}); err != nil {
		return "", err
	}
	if !path.IsAbs(v) || path.Clean(v) != v {
		return "", refuse(sink, v, "it is not a clean absolute path", hint)
	}
	return v, nil
}

// SystemdEnvironment writes one assignment of Environment= (systemd.exec(5)):
// $ is not special there, % is.
func SystemdEnvironment(name, value string) (string, error) {
	const sink = "environment variable"
	if err := checkCharset(sink, name, "write letters, digits and underscores", func(i int, r rune) bool {
		return isLower(r) || isUpper(r) || r == '_' || i > 0 && isDigit(r)
	}); err != nil {
		return "", err
	}
	if err := checkText(sink, value, "\n\t"); err != nil {
		return "", err
	}
	return `"` + name + "=" + systemdEscapes.Replace(value) + `"`, nil
}

// SystemdUnit writes the name of a unit that is not a template. Directives that take names
// keep the escapes that systemd-escape writes, such as \x2d.
func SystemdUnit(v string) (string, error) { return systemdUnit(v, false) }

// SystemdTemplate writes the name of a unit, which may be a template.
func SystemdTemplate(v string) (string, error) { return systemdUnit(v, true) }

// unitEscape is a character as systemd-escape(1) writes it.
var unitEscape = lazyregexp.New(`\\x[0-9a-f]{2}`)

// withoutEscapes returns a name with a hyphen for each escape.
func withoutEscapes(name string) string { return strings.Join(unitEscape.Split(name, -1), "-") }

// UnitOfPath returns the name of the unit of a type, such as ".mount", for a folder: that which
// `systemd-escape --path` writes.
func UnitOfPath(folder, kind string) (string, error) {
	folder, err := DevicePath(folder)
	if err != nil {
		return "", err
	}
	if folder == "/" {
		return "-" + kind, nil
	}
	var b strings.Builder
	for i, c := range []byte(strings.Trim(folder, "/")) {
		switch {
		case c == '/':
			b.WriteByte('-')
		case isAlnum(rune(c)) || c == '_' || c == ':' || c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String() + kind, nil
}

func systemdUnit(v string, mayBeTemplate bool) (string, error) {
	const sink = "unit name"
	if err := checkCharset(sink, withoutEscapes(v), "write name.service, name.slice, …, and other characters as systemd-escape does", func(i int, r rune) bool {
		return isAlnum(r) || i > 0 && isAmong("_.@:-", r)
	}); err != nil {
		return "", err
	}
	base, suffix := strings.TrimSuffix(v, path.Ext(v)), path.Ext(v)
	name, instance, templated := strings.Cut(base, "@")
	switch {
	case len(v) > 200:
		return "", refuse(sink, v, "it is longer than 200 characters", "")
	case !oneOf(suffix, ".service", ".slice", ".socket", ".target", ".mount", ".timer", ".path", ".device", ".swap"):
		return "", refuse(sink, v, "it does not end in a unit type", "write "+base+".service")
	case name == "":
		return "", refuse(sink, v, "it has no name before its type", "")
	case templated && (instance == "" && !mayBeTemplate || strings.Contains(instance, "@")):
		return "", refuse(sink, v, "it is a template, not a unit", "name an instance, such as "+name+"@one"+suffix)
	case strings.Contains(v, ".."):
		return "", refuse(sink, v, "it holds ..", "")
	}
	return v, nil
}

func oneOf(v string, set ...string) bool {
	for _, s := range set {
		if v == s {
			return true
		}
	}
	return false
}

// SystemdUser writes the name or number of a user or group.
func SystemdUser(v string) (string, error) {
	const sink = "user name"
	if n, err := strconv.ParseUint(v, 10, 64); err == nil {
		// -1 of 16 and 32 bits mean no user (systemd's uid_is_valid).
		if n >= 1<<32-1 || n == 1<<16-1 || strconv.FormatUint(n, 10) != v {
			return "", refuse(sink, v, "it is not the number of a user", "")
		}
		return v, nil
	}
	if len(v) > 31 {
		return "", refuse(sink, v, "it is longer than 31 characters", "")
	}
	return checkWord(sink, v, "write a lower-case letter, then letters, digits, '_' and '-'", func(i int, r rune) bool {
		return isLower(r) || r == '_' || i > 0 && (isDigit(r) || r == '-')
	})
}

// Tmpfiles writes the path of a tmpfiles.d line, where % starts a specifier.
func Tmpfiles(v string) (string, error) {
	if err := checkText("tmpfiles path", v, ""); err != nil {
		return "", err
	}
	if !path.IsAbs(v) || path.Clean(v) != v {
		return "", refuse("tmpfiles path", v, "it is not a clean absolute path", "")
	}
	return systemdWord("tmpfiles path", v, false)
}

// TmpfilesText writes the argument of a line of tmpfiles.d(5), which is the rest of the
// line: "-" and blanks at its ends would be dropped, and % starts a specifier.
func TmpfilesText(v string) (string, error) {
	const sink = "tmpfiles argument"
	if err := checkText(sink, v, ""); err != nil {
		return "", err
	}
	if v == "" || v == "-" || strings.TrimSpace(v) != v {
		return "", refuse(sink, v, "it is empty, \"-\", or begins or ends with a blank, which would be dropped", "")
	}
	return tmpfilesEscapes.Replace(v), nil
}
