package emitters

import (
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/schema/formats/bitbake"
)

// ReadBitBake returns what a configuration file, recipe, include or append of a
// layer for the given machines assigns, inherits and appends to. It serves the
// files that emitters render, and layers whose manifest is of version 1; it does
// not follow includes and skips functions.
func ReadBitBake(name string, text []byte, machines map[string]bool) []Meaning {
	return readBitBake(name, text, machines, nil)
}

// IsBitBake reports whether bitbake reads the variables of a file.
func IsBitBake(name string) bool {
	conf := strings.HasPrefix(name, "conf/") && path.Ext(name) == ".conf"
	return conf || slices.Contains([]string{".bb", ".bbappend", ".inc"}, path.Ext(name))
}

func readBitBake(name string, text []byte, machines map[string]bool, causes []cause) []Meaning {
	if !IsBitBake(name) {
		return nil
	}
	settings := path.Dir(name) == "conf/yoctune"
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
		for len(causes) > 0 && causes[0].offset < end {
			causes = causes[1:]
		}
		for _, c := range causes {
			if c.offset >= a.End && c.offset > a.Start {
				break
			}
			if c.offset <= a.Start || id == "" {
				id = c.ref.ID
			}
		}
		end = a.End
		if !settings && (strings.ContainsAny(a.Name, "[$") || isDynamic(a.Value)) {
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

// isDynamic reports whether nothing is certain about a value before bitbake has
// expanded it.
func isDynamic(value string) bool {
	words := strings.Fields(value)
	return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(w, "${") })
}

// MachineOf returns the machine of the last override of a variable. Layers older than
// overrides for a single machine use the machine's own name.
func MachineOf(name string, machines map[string]bool) string {
	i := strings.LastIndexByte(name, ':')
	if m := strings.TrimPrefix(name[i+1:], quote.OverridePrefix); i >= 0 && machines[m] {
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

// included is the file that [GatedAppend] requires.
func included(text string) string { return gated.FindString(text) }

// Assignments reads the assignments of a file, apart from those with ?= and ??=,
// which give way to any other, and those to variables of a recipe's shell. A name
// includes its flag.
func Assignments(text string) []bitbake.Assignment {
	var out []bitbake.Assignment
	for _, a := range bitbake.Assignments(text) {
		if a.Exported || a.Op == "?=" || a.Op == "??=" {
			continue
		}
		if a.Flag != "" {
			a.Name += "[" + a.Flag + "]"
		}
		out = append(out, a)
	}
	return out
}
