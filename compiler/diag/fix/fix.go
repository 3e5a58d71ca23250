// Package fix makes the changes that diagnostics propose in the files of a configuration. It
// touches only what a position names without doubt: a literal, a label, or the
// place beside a field. What could mean two things is left to a person.
package fix

import (
	"cmp"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema/plan"
)

// change replaces bytes of a file.
type change struct {
	file       string
	start, end int
	text       string
}

// Apply makes edits in the text of some files and returns the files that
// change. ok is false, and nothing is made, when one of the edits has no place
// of its own.
func Apply(files map[string][]byte, edits []diag.Edit) (changed map[string][]byte, ok bool) {
	parsed := map[string]*ast.File{}
	var changes []change
	for _, e := range edits {
		name := e.Pos.File
		text, known := files[name]
		if !known {
			return nil, false
		}
		if language := languageOf(name); language != ".cue" {
			c, ok := writer{language, string(text)}.change(e)
			if !ok {
				return nil, false
			}
			changes = append(changes, c)
			continue
		}
		f := parsed[name]
		if f == nil {
			var err error
			if f, err = parser.ParseFile(name, text, parser.ParseComments); err != nil {
				return nil, false
			}
			parsed[name] = f
		}
		c, found := changesOf(f, text, e)
		if !found {
			return nil, false
		}
		changes = append(changes, c...)
	}
	return splice(files, changes)
}

// splice puts changes into the files. Changes to the same bytes contradict each
// other; the same insertion twice is one.
func splice(files map[string][]byte, changes []change) (map[string][]byte, bool) {
	slices.SortStableFunc(changes, func(a, b change) int {
		if c := strings.Compare(a.file, b.file); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	seen := map[change]bool{}
	out := map[string][]byte{}
	at := map[string]int{}
	for _, c := range changes {
		if seen[c] {
			continue
		}
		seen[c] = true
		text := files[c.file]
		if c.start < at[c.file] || c.end > len(text) {
			return nil, false
		}
		out[c.file] = append(append(out[c.file], text[at[c.file]:c.start]...), c.text...)
		at[c.file] = c.end
	}
	for name := range out {
		out[name] = append(out[name], files[name][at[name]:]...)
	}
	return out, true
}

// place is a field of a file with the fields around it, innermost last.
type place struct {
	fields  []*ast.Field
	literal *ast.BasicLit // when the position is that of a literal
}

func changesOf(f *ast.File, text []byte, e diag.Edit) ([]change, bool) {
	p, ok := find(f, e.Pos)
	if !ok || len(p.fields) == 0 {
		return nil, false
	}
	field := p.fields[len(p.fields)-1]
	name := e.Pos.File
	switch e.Kind {
	case diag.ReplaceText:
		if p.literal == nil {
			return nil, false // computed, or shared with others
		}
		start := p.literal.Pos().Offset()
		return []change{{name, start, start + len(p.literal.Value), e.Text}}, true
	case diag.RenameField:
		label := ""
		switch l := field.Label.(type) {
		case *ast.Ident:
			label = l.Name
		case *ast.BasicLit:
			label = l.Value
		}
		if label == "" {
			return nil, false
		}
		start := field.Label.Pos().Offset()
		return []change{{name, start, start + len(label), e.Text}}, true
	case diag.AddField:
		at := len(p.fields) - 1 - e.Up
		if at < 0 {
			return nil, false
		}
		return addBeside(f, text, name, p.fields[at], e.Text)
	}
	return nil, false
}

// find looks for the field whose value, or whose label, is at a position.
func find(f *ast.File, pos plan.Position) (place, bool) {
	var found []place
	at := func(p token.Pos) bool {
		q := p.Position()
		return p.IsValid() && q.Line == pos.Line && q.Column == pos.Column
	}
	var stack []*ast.Field
	ast.Walk(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			stack = append(stack, n)
			if at(n.Label.Pos()) || at(n.Value.Pos()) {
				p := place{fields: slices.Clone(stack)}
				if at(n.Value.Pos()) {
					p.literal, _ = n.Value.(*ast.BasicLit)
				}
				found = append(found, p)
			}
		case *ast.BasicLit:
			// An element of a list.
			if at(n.Pos()) && len(stack) > 0 && len(found) == 0 {
				found = append(found, place{slices.Clone(stack), n})
			}
		}
		return true
	}, func(n ast.Node) {
		if _, ok := n.(*ast.Field); ok {
			stack = stack[:len(stack)-1]
		}
	})
	// a: b: c: 1 gives the value of a and the label of b one position; the
	// innermost is the one that diagnostics mean.
	if len(found) == 0 {
		return place{}, false
	}
	return found[len(found)-1], true
}

// addBeside adds a field next to another one. Where the other has no braces around
// it, as in `a: b: 1`, it gets them.
func addBeside(f *ast.File, text []byte, file string, field *ast.Field, add string) ([]change, bool) {
	start, end := field.Pos().Offset(), field.End().Offset()
	if end > len(text) || start > end {
		return nil, false
	}
	if !isBraced(f, field) {
		return []change{{file, start, start, "{"}, {file, end, end, ", " + add + "}"}}, true
	}
	line := strings.LastIndexByte(string(text[:start]), '\n') + 1
	indent := string(text[line:start])
	if strings.TrimLeft(indent, " \t") != "" {
		return []change{{file, start, start, add + ", "}}, true
	}
	return []change{{file, start, start, add + "\n" + indent}}, true
}

// isBraced reports whether a field is in a struct with braces, or at the top level
// of the file.
func isBraced(f *ast.File, field *ast.Field) bool {
	braces := true
	ast.Walk(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.StructLit); ok {
			for _, d := range s.Elts {
				if d == field {
					braces = s.Lbrace.IsValid() && s.Lbrace.Offset() < field.Pos().Offset() && s.Rbrace.IsValid()
				}
			}
		}
		return true
	}, nil)
	return braces
}
