package kconfig

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/kernel"
)

// Line is one assignment of a configuration.
type Line struct {
	Symbol string // without CONFIG_
	Value  string // as written; n for "is not set"
	File   string
	Line   int // from 1; 0 without a file
	// Loose: the comment contains more than "is not set". merge_config.sh does not see
	// such a line; conf obeys it before Linux 6.8 and ignores it since.
	Loose bool
}

// Config is an ordered list of assignments. Order matters: the last wins.
type Config struct {
	Lines []Line
}

// BaseConfig makes a configuration of a kernel's embedded base.
func BaseConfig(name string, vs []kernel.Value) *Config {
	c := &Config{Lines: make([]Line, 0, len(vs))}
	for _, v := range vs {
		c.Lines = append(c.Lines, Line{Symbol: v.Name, Value: v.Value, File: name})
	}
	return c
}

// Problem is a line that has no effect or not the intended one.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"` // from 1, in bytes
	Message string `json:"message"`
	// Ignored reports that the line has no effect at all.
	Ignored bool `json:"ignored"`
}

func (p Problem) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// ReadFragment reads a .config, a defconfig or a fragment. It accepts and ignores the same
// lines as the kernel's reader, but returns silently ignored lines as problems. Windows line
// ends are accepted.
func ReadFragment(file string, data []byte) (*Config, []Problem) {
	c := &Config{}
	var problems []Problem
	seen := map[string]int{}
	for n := 1; len(data) > 0; n++ {
		line, rest, more := bytes.Cut(data, []byte("\n"))
		data = rest
		text := string(bytes.TrimSuffix(line, []byte("\r")))
		bad := func(col int, format string, args ...any) {
			msg := fmt.Sprintf(format, args...)
			problems = append(problems, Problem{File: file, Line: n, Column: col, Message: msg, Ignored: strings.HasPrefix(msg, "ignored")})
		}
		l, ok := readLine(text, bad)
		if ok {
			l.File, l.Line = file, n
			if first, again := seen[l.Symbol]; again && c.Lines[first].Value != l.Value {
				bad(1, "CONFIG_%s was set to %s on line %d; this line, %s, wins", l.Symbol, c.Lines[first].Value, c.Lines[first].Line, l.Value)
			}
			seen[l.Symbol] = len(c.Lines)
			c.Lines = append(c.Lines, l)
		}
		if !more && ok {
			bad(len(text)+1, "no newline at the end: a file appended to this one is glued to this line")
		}
	}
	return c, problems
}

// Contradictions lists the lines of fragments that override an earlier fragment. A later
// fragment wins.
func Contradictions(fragments ...*Config) []Problem {
	var problems []Problem
	last := map[string]Line{} // of the fragments before
	for _, c := range fragments {
		mine := map[string]Line{}
		for _, l := range c.Lines {
			if was, again := last[l.Symbol]; again && was.Value != l.Value {
				problems = append(problems, Problem{File: l.File, Line: l.Line, Column: 1,
					Message: fmt.Sprintf("CONFIG_%s was set to %s at %s:%d; this line, %s, wins", l.Symbol, was.Value, was.File, was.Line, l.Value)})
				delete(last, l.Symbol) // further lines of this fragment contradict the first
			}
			mine[l.Symbol] = l
		}
		maps.Copy(last, mine)
	}
	return problems
}

// ParseLine reads one assignment, as [Line.String] writes it; false for any other
// text.
func ParseLine(text string) (Line, bool) { return readLine(text, func(int, string, ...any) {}) }

// readLine parses one assignment; bad is called for malformed ones.
func readLine(text string, bad func(col int, format string, args ...any)) (Line, bool) {
	trimmed := strings.TrimLeft(text, " \t\ufeff")
	indent := len(text) - len(trimmed)
	if trimmed == "" {
		return Line{}, false
	}
	if rest, ok := strings.CutPrefix(trimmed, "#"); ok {
		body := strings.TrimLeft(rest, " \t")
		name, ok := strings.CutPrefix(body, "CONFIG_")
		if !ok {
			return Line{}, false
		}
		name, tail, _ := strings.Cut(name, " ")
		if !strings.HasPrefix(tail, "is not set") {
			return Line{}, false // a comment that mentions a symbol, or a line switched off
		}
		switch {
		case indent > 0:
			bad(1, "ignored: the line must start with #")
			return Line{}, false
		case rest[0] != ' ' || body != rest[1:]:
			bad(2, "ignored: exactly one space must stand between # and CONFIG_%s", name)
			return Line{}, false
		case !validName(name):
			bad(3, "ignored: CONFIG_%s is not a symbol name", name)
			return Line{}, false
		}
		if tail != "is not set" {
			bad(len(text)-len(tail)+1+len("is not set"), "text after \"is not set\": Linux 6.8 and later ignore the line")
		}
		return Line{Symbol: name, Value: "n", Loose: tail != "is not set"}, true
	}
	name, ok := strings.CutPrefix(trimmed, "CONFIG_")
	if !ok {
		if i := strings.Index(trimmed, "="); i > 0 && validName(strings.TrimSpace(trimmed[:i])) {
			bad(indent+1, "ignored: write CONFIG_%s", strings.TrimSpace(trimmed))
		} else {
			bad(indent+1, "ignored: neither CONFIG_NAME=value nor \"# CONFIG_NAME is not set\"")
		}
		return Line{}, false
	}
	if indent > 0 {
		bad(1, "ignored: CONFIG_ must start the line")
		return Line{}, false
	}
	name, value, ok := strings.Cut(name, "=")
	if !ok {
		bad(len(text)+1, "ignored: CONFIG_%s has no =value", strings.TrimSpace(name))
		return Line{}, false
	}
	if !validName(name) {
		bad(8, "ignored: CONFIG_%s is not a symbol name", name)
		return Line{}, false
	}
	return Line{Symbol: name, Value: value}, true
}

func validName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r == '-' || r >= 0x80 || !isWordByte(byte(r)) })
}

// Merge puts fragments over a base as merge_config.sh does: a symbol that a
// fragment mentions loses every earlier line, and the fragment's lines follow.
func Merge(base *Config, fragments ...*Config) *Config {
	out := &Config{Lines: slices.Clone(base.Lines)}
	for _, f := range fragments {
		mentioned := make(map[string]bool, len(f.Lines))
		for _, l := range f.Lines {
			if !l.Loose {
				mentioned[l.Symbol] = true
			}
		}
		out.Lines = slices.DeleteFunc(out.Lines, func(l Line) bool { return mentioned[l.Symbol] })
		out.Lines = append(out.Lines, f.Lines...)
	}
	return out
}
