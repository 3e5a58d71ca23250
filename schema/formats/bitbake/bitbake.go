// Package bitbake parses assignments of bitbake's configuration files and recipes. It
// expands nothing, follows no includes and skips functions.
package bitbake

import (
	"strings"

	"github.com/yoctune/yoctune/internal/lazyregexp"
)

// Assignment sets a variable.
type Assignment struct {
	Name     string // with overrides, without flag
	Flag     string // of NAME[flag]
	Op       string // =, :=, +=, =+, .=, =., ?=, ??=
	Value    string // without quotes
	Exported bool

	// [Assignments] sets the place.
	Line       int // from 1
	Start, End int // offsets in the text; the line feed is outside
}

// As in bitbake's ConfHandler.py, where the shortest name wins too.
var assignment = lazyregexp.New(`^(export\s+)?([A-Za-z0-9_.+/${}:~@-]+?)(?:\[([A-Za-z0-9_.+@/-]+)\])?\s*(\?\?=|\?=|:=|\+=|=\+|\.=|=\.|=)\s*(?:"(.*)"|'(.*)')$`)

// ParseAssignment parses a line whose continuation lines are joined.
func ParseAssignment(line string) (Assignment, bool) {
	// The expression is slow, and the ends of most other lines suffice.
	if line = strings.TrimRight(line, " \t\r"); !strings.HasSuffix(line, `"`) && !strings.HasSuffix(line, "'") || strings.HasPrefix(line, "#") || !strings.Contains(line, "=") {
		return Assignment{}, false
	}
	m := assignment.FindStringSubmatch(line)
	if m == nil {
		return Assignment{}, false
	}
	return Assignment{Exported: m[1] != "", Name: m[2], Flag: m[3], Op: m[4], Value: m[5] + m[6]}, true
}

// Assignments parses the assignments of a file. Continuation lines are joined, with one blank
// for their indentation.
func Assignments(text string) []Assignment {
	var out []Assignment
	offset := 0
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		number, start := i+1, offset
		offset += len(lines[i])
		s := strings.TrimRight(lines[i], " \t\r\n")
		for strings.HasSuffix(s, `\`) && !strings.HasPrefix(s, "#") && i+1 < len(lines) {
			i++
			offset += len(lines[i])
			next := strings.TrimRight(lines[i], " \t\r\n")
			s = strings.TrimSuffix(s, `\`)
			if rest := strings.TrimLeft(next, " \t"); rest != next {
				s, next = strings.TrimRight(s, " \t")+" ", rest
			}
			s += next
		}
		if a, ok := ParseAssignment(s); ok {
			a.Line, a.Start, a.End = number, start, offset-len(lines[i])+len(strings.TrimRight(lines[i], "\n"))
			out = append(out, a)
		}
	}
	return out
}

// Split splits the name into the variable, the operation ("append", "prepend", "remove", or Op
// without one) and the overrides.
func (a Assignment) Split() (variable, op string, overrides []string) {
	parts := strings.Split(a.Name, ":")
	op = a.Op
	for _, p := range parts[1:] {
		switch p {
		case "append", "prepend", "remove":
			op = p
		default:
			overrides = append(overrides, p)
		}
	}
	return parts[0], op, overrides
}
