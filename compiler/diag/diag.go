// Package diag defines diagnostics of a configuration: what is wrong, where, why,
// and how to fix it. A [Diagnostic] is a value; a [Report] collects, orders and
// bounds them; the renderers in this package write a report for a terminal, a
// program, a code scanner or a CI log.
package diag

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/schema/plan"
)

// Severity orders diagnostics. Only [Error] makes a command fail.
type Severity int

// The severities, least first.
const (
	Info Severity = iota
	Warning
	Error
)

// String is the word shown to people and programs.
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	default:
		return "info"
	}
}

// level returns the word of another format for a severity, which differs for [Info].
func (s Severity) level(info string) string {
	if s == Info {
		return info
	}
	return s.String()
}

// MarshalText writes the word in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Related is a second place that a diagnostic is about, such as the other side
// of a conflict.
type Related struct {
	Pos     plan.Position `json:"position"`
	Message string        `json:"message"`
}

// Diagnostic is one finding.
type Diagnostic struct {
	ID       string        `json:"id"` // YTnnnn for the language, a slug for a rule
	Severity Severity      `json:"severity"`
	Message  string        `json:"message"` // lower case, without a full stop
	Path     string        `json:"path,omitempty"`
	Also     []string      `json:"also,omitempty"` // paths of further targets with the same finding at the same line
	Pos      plan.Position `json:"position"`       // the zero value when no line of the configuration is to blame
	Length   int           `json:"-"`              // columns to underline, 0: to the end of the word
	Related  []Related     `json:"related,omitempty"`
	Expected string        `json:"expected,omitempty"`
	Got      string        `json:"got,omitempty"`
	Help     string        `json:"help,omitempty"`
	See      string        `json:"see,omitempty"` // a command or an upstream document
	// Unverified is the fact that the finding rests on, where no source shows it.
	Unverified string `json:"unverified,omitempty"`
	// Edits remedy it when all of them are made; empty when only a person can
	// decide.
	Edits []Edit `json:"edits,omitempty"`
}

// limit is how many diagnostics a report shows; the rest are counted.
const limit = 50

// Report collects diagnostics. The zero value is ready to use, from one
// goroutine at a time.
type Report struct {
	list   []Diagnostic
	sorted bool

	// Words, if set, rewrites a diagnostic in the terms of the language of its
	// file. It must be idempotent.
	Words func(*Diagnostic)
}

// Add puts a diagnostic into the report.
func (r *Report) Add(d Diagnostic) {
	r.list = append(r.list, d)
	r.sorted = false
}

// Errorf adds an error about a place.
func (r *Report) Errorf(id string, pos plan.Position, path, format string, args ...any) {
	r.Add(Diagnostic{ID: id, Severity: Error, Pos: pos, Path: path, Message: fmt.Sprintf(format, args...)})
}

// Merge adds everything another report holds.
func (r *Report) Merge(other *Report) {
	if other != nil {
		r.list = append(r.list, other.list...)
		r.sorted = false
	}
}

// All returns the diagnostics by file, line and column; those without a place
// come last. Equal ones appear once.
func (r *Report) All() []Diagnostic {
	if !r.sorted {
		for i := range r.list {
			if r.Words != nil {
				r.Words(&r.list[i])
			}
		}
		slices.SortStableFunc(r.list, compare)
		r.list = slices.CompactFunc(r.list, func(a, b Diagnostic) bool {
			return a.ID == b.ID && a.Pos == b.Pos && a.Message == b.Message && a.Path == b.Path
		})
		r.sorted = true
	}
	return r.list
}

// Findings returns the diagnostics of [Report.All], with those that a shared line causes for
// several targets as one.
func (r *Report) Findings() []Diagnostic {
	type cause struct {
		id, message, got, help string
		pos                    plan.Position
	}
	first := map[cause]int{}
	var out []Diagnostic
	for _, d := range r.All() {
		c := cause{d.ID, d.Message, d.Got, d.Help, d.Pos}
		i, seen := first[c]
		if seen && d.Pos.File != "" {
			out[i].Also = append(slices.Clip(out[i].Also), d.Path)
			continue
		}
		first[c] = len(out)
		out = append(out, d)
	}
	return out
}

func compare(a, b Diagnostic) int {
	placed := func(d Diagnostic) int {
		if d.Pos.File == "" {
			return 1
		}
		return 0
	}
	return cmp.Or(
		placed(a)-placed(b), strings.Compare(a.Pos.File, b.Pos.File), a.Pos.Line-b.Pos.Line, a.Pos.Column-b.Pos.Column,
		strings.Compare(a.ID, b.ID), strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message),
	)
}

// PrefixPaths returns the findings of the report with the paths of its files below a folder. Inside the compiler
// they are relative to the folder of the configuration, which is not where users are.
func (r *Report) PrefixPaths(folder string) *Report {
	moved := &Report{sorted: true}
	for _, d := range r.Findings() {
		d.Pos = PrefixPath(folder, d.Pos)
		d.Related = slices.Clone(d.Related)
		for i := range d.Related {
			d.Related[i].Pos = PrefixPath(folder, d.Related[i].Pos)
		}
		moved.list = append(moved.list, d)
	}
	return moved
}

// PrefixPath returns a position with its file below a folder, unless its path is absolute.
func PrefixPath(folder string, p plan.Position) plan.Position {
	if p.File != "" && !path.IsAbs(p.File) {
		p.File = path.Join(folder, p.File)
	}
	return p
}

// Count is the number of diagnostics of a severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for _, d := range r.Findings() {
		if d.Severity == s {
			n++
		}
	}
	return n
}

// Failed reports whether there is an error.
func (r *Report) Failed() bool {
	for i := range r.list {
		if r.list[i].Severity == Error {
			return true
		}
	}
	return false
}

// Sources gives the renderers the lines they quote. It is safe for concurrent
// use.
type Sources struct {
	mu    sync.Mutex
	files map[string]string
	lines map[string][]string
}

// NewSources returns an empty set.
func NewSources() *Sources {
	return &Sources{files: map[string]string{}, lines: map[string][]string{}}
}

// Add records the text of a file.
func (s *Sources) Add(name string, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[name] = string(text)
}

// PrefixPaths returns the sources with the paths of the files below a folder, as [Report.PrefixPaths] does.
func (s *Sources) PrefixPaths(folder string) *Sources {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	moved := NewSources()
	for name, text := range s.files {
		moved.files[PrefixPath(folder, plan.Position{File: name}).File] = text
	}
	return moved
}

// Text returns the text of a file; empty when it is not known.
func (s *Sources) Text(name string) []byte {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return []byte(s.files[name])
}

// Names lists the files that are known, sorted.
func (s *Sources) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.files))
}

// Line returns a line of a file, counted from 1, and whether it is known.
func (s *Sources) Line(name string, n int) (string, bool) {
	if s == nil {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lines, ok := s.lines[name]
	if !ok {
		text, ok := s.files[name]
		if !ok {
			return "", false
		}
		lines = strings.Split(text, "\n")
		s.lines[name] = lines
	}
	if n < 1 || n > len(lines) {
		return "", false
	}
	return strings.TrimRight(lines[n-1], "\r"), true
}
