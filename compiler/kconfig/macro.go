package kconfig

import (
	"errors"
	"fmt"
	"strings"
)

// Shell answers a $(shell,…) of a Kconfig file with what the command prints.
// env is the environment the kernel's build gives it.
type Shell func(command string) string

// macros expands $(…) as Documentation/kbuild/kconfig-macro-language.rst
// describes.
type macros struct {
	env    map[string]string // ARCH, srctree, CC, …: what make exports
	vars   map[string]*variable
	shell  Shell
	probes map[string]func(args []string) string // macros answered without running anything
	legacy bool                                  // $NAME expands too: Linux before 4.18
	steps  int
	where  func() (file string, line int)
	warn   func(string)
}

type variable struct {
	value     string
	recursive bool
	busy      int
}

// errMacro is the kind of the errors that end the reading of a tree.
var errMacro = errors.New("macro")

const (
	maxMacroDepth = 200
	maxMacroSteps = 1_000_000
	maxMacroText  = 1 << 20
)

func newMacroError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errMacro, fmt.Sprintf(format, args...))
}

func (m *macros) assign(name, op, value string) error {
	v := m.vars[name]
	if op == "+=" {
		if v == nil {
			op = "="
		} else {
			text := value
			if !v.recursive {
				var err error
				if text, err = m.expand(value, nil, 0); err != nil {
					return err
				}
			}
			if len(v.value)+len(text) > maxMacroText {
				return newMacroError("%s grows beyond %d bytes", name, maxMacroText)
			}
			v.value += " " + text
			return nil
		}
	}
	nv := &variable{value: value, recursive: op == "="}
	if !nv.recursive {
		text, err := m.expand(value, nil, 0)
		if err != nil {
			return err
		}
		nv.value = text
	}
	m.vars[name] = nv
	return nil
}

// expand replaces every reference in s; args are $(1), $(2), ….
func (m *macros) expand(s string, args []string, depth int) (string, error) {
	if !strings.Contains(s, "$") {
		return s, nil
	}
	var out strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			out.WriteString(s)
			return out.String(), nil
		}
		out.WriteString(s[:i])
		s = s[i+1:]
		if !strings.HasPrefix(s, "(") {
			n := 0
			for m.legacy && n < len(s) && isWordByte(s[n]) && s[n] != '-' {
				n++
			}
			if n > 0 {
				out.WriteString(m.env[s[:n]])
				s = s[n:]
			} else {
				out.WriteByte('$')
			}
			continue
		}
		end := closingParen(s)
		if end < 0 {
			return "", newMacroError("unterminated reference $%s: missing )", shorten(s))
		}
		text, err := m.evaluateReference(s[1:end], args, depth+1)
		if err != nil {
			return "", err
		}
		if out.Len()+len(text) > maxMacroText {
			return "", newMacroError("expansion of more than %d bytes", maxMacroText)
		}
		out.WriteString(text)
		s = s[end+1:]
	}
}

// closingParen finds the parenthesis that closes the one s starts with.
func closingParen(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func shorten(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// evaluateReference evaluates the text between $( and ).
func (m *macros) evaluateReference(body string, args []string, depth int) (string, error) {
	if depth > maxMacroDepth {
		return "", newMacroError("expansion nested more than %d deep at $(%s)", maxMacroDepth, shorten(body))
	}
	if m.steps++; m.steps > maxMacroSteps {
		return "", newMacroError("more than %d expansions", maxMacroSteps)
	}
	if len(body) == 1 && body[0] >= '1' && body[0] <= '9' && int(body[0]-'0') <= len(args) {
		return args[body[0]-'1'], nil
	}
	parts := splitArgs(body)
	if len(parts) > 16 {
		return "", newMacroError("more than 16 arguments in $(%s)", shorten(body))
	}
	for i, p := range parts {
		text, err := m.expand(p, args, depth)
		if err != nil {
			return "", err
		}
		parts[i] = text
	}
	name, params := parts[0], parts[1:]
	if f, ok := m.probes[name]; ok {
		return f(params), nil
	}
	if v, ok := m.vars[name]; ok {
		if len(params) == 0 && v.busy > 0 {
			return "", newMacroError("variable %q refers to itself", name)
		}
		if !v.recursive {
			return v.value, nil
		}
		v.busy++
		defer func() { v.busy-- }()
		return m.expand(v.value, params, depth)
	}
	return m.callBuiltin(name, params)
}

func splitArgs(s string) []string {
	var parts []string
	depth, start := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, s[start:])
}

func (m *macros) callBuiltin(name string, args []string) (string, error) {
	need := map[string]int{"shell": 1, "error-if": 2, "warning-if": 2, "info": 1}[name]
	if need > 0 && len(args) != need {
		return "", newMacroError("$(%s) takes %d arguments, not %d", name, need, len(args))
	}
	switch name {
	case "shell":
		out := strings.TrimRight(m.shell(args[0]), "\n")
		return strings.ReplaceAll(out, "\n", " "), nil
	case "error-if":
		if args[0] == "y" {
			return "", newMacroError("%s", args[1])
		}
		return "", nil
	case "warning-if":
		if args[0] == "y" {
			m.warn(args[1])
		}
		return "", nil
	case "info":
		return "", nil
	case "filename":
		f, _ := m.where()
		return f, nil
	case "lineno":
		_, n := m.where()
		return fmt.Sprint(n), nil
	}
	if len(args) == 0 {
		return m.env[name], nil
	}
	return "", nil
}
