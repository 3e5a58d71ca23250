// Package sysctld parses files of sysctl.d(5).
package sysctld

import (
	"strings"

	"github.com/yoctune/yoctune/schema/knob"
)

// Kind classifies a line.
type Kind int

// Kinds of lines.
const (
	Other      Kind = iota // blank, a comment, or without meaning to the readers of the format
	Assignment             // key = value
	Exclusion              // -key: takes a parameter out of an earlier glob
)

// Line is a parsed line.
type Line struct {
	Kind Kind
	Key  string // components separated by dots; a pattern where [IsGlob]
	// Value is the rest of the line without blanks at its ends. The format has no
	// comments behind values and no quotes.
	Value   string
	Lenient bool // a "-" before the key: failures are ignored
}

// IsGlob reports whether a key is a pattern (glob(7)).
func IsGlob(key string) bool { return strings.ContainsAny(key, "*?[") }

// ParseLine parses one line.
func ParseLine(text string) Line {
	text = strings.TrimSpace(text)
	if text == "" || text[0] == '#' || text[0] == ';' {
		return Line{}
	}
	key, value, assigned := strings.Cut(text, "=")
	l := Line{Kind: Assignment, Value: strings.TrimSpace(value)}
	key, l.Lenient = strings.CutPrefix(strings.TrimSpace(key), "-")
	l.Key = knob.DottedSysctl(strings.TrimSpace(key))
	switch {
	case l.Key == "", !assigned && !l.Lenient:
		return Line{}
	case !assigned:
		l.Kind = Exclusion
	}
	return l
}
