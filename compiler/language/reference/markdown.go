package reference

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue/ast"
)

// Markdown writes the reference for people.
func (r *Reference) Markdown() []byte {
	var b strings.Builder
	b.WriteString(`# The language, field by field

Written by ` + "`yoctune schema --format markdown`" + ` from the comments of schema/*.cue; do
not edit. "yes" in the second column: the field must be there.

`)
	for _, d := range r.Definitions {
		fmt.Fprintf(&b, "- [%s](#%s)\n", d.Name, anchor(d.Name))
	}
	for _, d := range r.Definitions {
		b.WriteByte('\n')
		b.Write(r.MarkdownOf(d))
	}
	return []byte(b.String())
}

// MarkdownOf writes the section of one definition.
func (r *Reference) MarkdownOf(d *Definition) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n", d.Name, sentence(d.Doc))
	if d.Struct == nil {
		fmt.Fprintf(&b, "\n    %s\n", source(d.Value))
		return []byte(b.String())
	}
	for _, e := range d.Embeds {
		fmt.Fprintf(&b, "\nIt has every field of [%s](#%s) as well.\n", e, anchor(e))
	}
	b.WriteString("\n| field | required | value | meaning |\n|---|---|---|---|\n")
	r.rows(&b, "", d.Struct)
	return []byte(b.String())
}

func (r *Reference) rows(b *strings.Builder, prefix string, s *Struct) {
	for _, f := range s.Fields {
		name := prefix + f.Name
		if f.Pattern != nil {
			name = prefix + "[" + source(f.Pattern) + "]"
		}
		required := ""
		if f.Required {
			required = "yes"
		}
		doc := sentence(f.Doc)
		if f.When != "" {
			doc = strings.TrimSpace("When " + f.When + ": " + strings.ToLower(doc[:min(1, len(doc))]) + doc[min(1, len(doc)):])
		}
		value := r.value(f.Value)
		if f.Inner != nil && !isMap(f.Inner) {
			value = "struct"
		}
		if name == "" {
			name = "…"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", cell(name), required, value, escapeProse(doc))
		if f.Inner != nil && !isMap(f.Inner) {
			r.rows(b, name+".", f.Inner)
		}
	}
}

// value writes what a field takes, with links to definitions.
func (r *Reference) value(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		if r.byName[e.Name] != nil {
			return fmt.Sprintf("[%s](#%s)", e.Name, anchor(e.Name))
		}
	case *ast.ListLit:
		if len(e.Elts) == 1 {
			if el, ok := e.Elts[0].(*ast.Ellipsis); ok && el.Type != nil {
				return "list of " + r.value(el.Type)
			}
		}
	case *ast.StructLit:
		if len(e.Elts) == 1 {
			if f, ok := e.Elts[0].(*ast.Field); ok {
				if l, ok := f.Label.(*ast.ListLit); ok && len(l.Elts) == 1 {
					return "map of " + r.value(l.Elts[0]) + " to " + r.value(f.Value)
				}
			}
		}
	}
	return "`" + cell(source(e)) + "`"
}

// isMap reports whether a struct has nothing but a pattern.
func isMap(s *Struct) bool { return len(s.Fields) == 1 && s.Fields[0].Pattern != nil }

func anchor(name string) string { return strings.ToLower(strings.TrimPrefix(name, "#")) }

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// escapeProse escapes text outside of code, where < would begin HTML.
func escapeProse(s string) string { return strings.ReplaceAll(cell(s), "<", "&lt;") }

func sentence(s string) string {
	if s == "" {
		return ""
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}
