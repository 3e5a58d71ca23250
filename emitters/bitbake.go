package emitters

import (
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/internal/lazyregexp"
)

// ReadBitBake returns what a configuration file, recipe, include or append of a
// layer for the given machines assigns, inherits and appends to. It serves the
// files that emitters render, and layers whose manifest is of version 1; it does
// not follow includes and skips functions.
func ReadBitBake(name string, text []byte, machines []string) []Meaning {
	return readBitBake(name, text, machines, nil)
}

func readBitBake(name string, text []byte, machines []string, causes []cause) []Meaning {
	settings := path.Dir(name) == "conf/yoctune"
	conf := strings.HasPrefix(name, "conf/") && path.Ext(name) == ".conf"
	if !conf && !slices.Contains([]string{".bb", ".bbappend", ".inc"}, path.Ext(name)) {
		return nil
	}
	var out []Meaning
	base := path.Base(name)
	pn, _, _ := strings.Cut(strings.TrimSuffix(base, path.Ext(base)), "_")
	switch path.Ext(name) {
	case ".bb":
		out = append(out, Meaning{Kind: Recipe, Name: pn, Value: inherited(string(text))})
	case ".bbappend":
		out = append(out, Meaning{Kind: Append, Name: pn, Value: included(string(text))})
	}
	end := 0 // of the assignment before
	for _, a := range Assignments(string(text)) {
		var id string
		for _, c := range causes {
			if c.offset >= end && c.offset <= a.start || id == "" && c.offset > a.start && c.offset < a.end {
				id = c.ref.ID
			}
		}
		end = a.end
		if !settings && (strings.ContainsAny(a.Name, "[$") || dynamic(a.Value)) {
			continue
		}
		m := Meaning{Kind: Variable, Name: a.Name, Value: a.Value, Line: a.Line, Machine: MachineOf(a.Name, machines), ID: id}
		if a.Op != "=" {
			m.Op = a.Op
		}
		out = append(out, m)
	}
	return out
}

// dynamic reports whether nothing is certain about a value before bitbake has
// expanded it.
func dynamic(value string) bool {
	words := strings.Fields(value)
	return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(w, "${") })
}

// MachineOf is the machine that the last override of a variable stands for. Layers
// of before there were overrides of one machine alone name the machine itself.
func MachineOf(name string, machines []string) string {
	i := strings.LastIndexByte(name, ':')
	if m := strings.TrimPrefix(name[i+1:], quote.OverridePrefix); i >= 0 && slices.Contains(machines, m) {
		return m
	}
	return ""
}

var inherits = lazyregexp.New(`(?m)^\s*inherit\s+(.*)$`)

func inherited(text string) string {
	var classes []string
	for _, m := range inherits.FindAllStringSubmatch(text, -1) {
		classes = append(classes, strings.Fields(m[1])...)
	}
	return strings.Join(classes, " ")
}

var gated = lazyregexp.New(`[A-Za-z0-9+._-]+\.inc\b`)

// included is the file that [Gate] pulls in.
func included(text string) string { return gated.FindString(text) }

// Assignment sets a bitbake variable.
type Assignment struct {
	Name  string // with overrides and flag, as it stands there
	Op    string // =, :=, +=, =+, .=, =.
	Value string // without quotes; continued lines are joined, with one blank for their indentation
	Line  int    // from 1

	start, end int // offsets in the text; the line feed is outside
}

var assignment = lazyregexp.New(`^([A-Za-z0-9_.+/\${}:-]+?(?:\[[A-Za-z0-9_.+-]+\])?)\s*(:=|\+=|=\+|\.=|=\.|=)\s*(?:"(.*)"|'(.*)')$`)

// Assignments reads the assignments of a file, apart from those with ?= and ??=,
// which give way to any other.
func Assignments(text string) []Assignment {
	var out []Assignment
	offset := 0
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		a := Assignment{Line: i + 1, start: offset}
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
		m := assignment.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		a.Name, a.Op, a.Value, a.end = m[1], m[2], m[3]+m[4], offset-len(lines[i])+len(strings.TrimRight(lines[i], "\n"))
		out = append(out, a)
	}
	return out
}
