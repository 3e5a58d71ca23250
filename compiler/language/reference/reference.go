// Package reference reads the language as documentation: every definition and
// field of the schema with its comment, as Markdown and as a JSON Schema.
//
// The schema's own text is the source, so the reference cannot fall behind it; a
// test fails when a field has no comment.
package reference

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/yoctune/yoctune/schema"
)

// errSchema wraps faults in the schema's text.
var errSchema = errors.New("schema")

// Reference is the language as documentation.
type Reference struct {
	Definitions []*Definition // in the order of the files, #Config first
	byName      map[string]*Definition
}

// Definition is a named part of the schema.
type Definition struct {
	Name string // "#CPU"
	Doc  string
	File string // "cpu.cue"
	Line int
	*Struct
	Value ast.Expr // of everything that is not a struct
	field *ast.Field
}

// Struct is a closed struct.
type Struct struct {
	Fields []*Field
	Embeds []string // definitions whose fields it has as well
}

// Field is a field of a struct, or the pattern of a map.
type Field struct {
	Name     string   // "" for a pattern
	Pattern  ast.Expr // of the names, for a map
	Required bool
	Doc      string
	Line     int
	Value    ast.Expr
	Inner    *Struct // when the value is a struct of its own
	When     string  // "kind is file": it exists only then
	field    string  // of When
	value    string  // of When
}

// Language reads the embedded schema.
func Language() (*Reference, error) { return read(schema.Files()) }

// read reads files of the schema. The error wraps [errSchema].
func read(files []schema.File) (*Reference, error) {
	r := &Reference{byName: map[string]*Definition{}}
	for _, file := range files {
		f, err := parser.ParseFile(file.Name, file.Text, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errSchema, err)
		}
		if err := r.file(file.Name, f); err != nil {
			return nil, fmt.Errorf("%w: %w", errSchema, err)
		}
	}
	slices.SortStableFunc(r.Definitions, func(a, b *Definition) int { return rank(a) - rank(b) })
	return r, nil
}

// Lookup finds a definition by its name, with or without its #.
func (r *Reference) Lookup(name string) (*Definition, bool) {
	d, ok := r.byName["#"+strings.TrimPrefix(name, "#")]
	return d, ok
}

// Names lists the definitions without their #.
func (r *Reference) Names() []string {
	names := make([]string, 0, len(r.Definitions))
	for _, d := range r.Definitions {
		names = append(names, strings.TrimPrefix(d.Name, "#"))
	}
	return names
}

// rank puts the file people start from first and scalars last.
func rank(d *Definition) int {
	switch d.File {
	case "config.cue":
		return 0
	case "types.cue":
		return 2
	}
	return 1
}

func (r *Reference) file(name string, f *ast.File) error {
	for _, d := range f.Decls {
		field, ok := d.(*ast.Field)
		if !ok {
			continue
		}
		id, ok := field.Label.(*ast.Ident)
		if !ok {
			return fmt.Errorf("%s: only definitions may be at the top level", d.Pos())
		}
		def := &Definition{Name: id.Name, Doc: docOf(field), File: name, Line: field.Pos().Line(), Value: field.Value, field: field}
		if s, ok := field.Value.(*ast.StructLit); ok {
			inner, err := readStruct(s)
			if err != nil {
				return err
			}
			def.Struct = inner
		}
		r.Definitions = append(r.Definitions, def)
		r.byName[def.Name] = def
	}
	return nil
}

func readStruct(s *ast.StructLit) (*Struct, error) {
	out := &Struct{}
	for _, d := range s.Elts {
		switch d := d.(type) {
		case *ast.Field:
			f, err := readField(d)
			if err != nil {
				return nil, err
			}
			out.Fields = append(out.Fields, f)
		case *ast.EmbedDecl:
			id, ok := d.Expr.(*ast.Ident)
			if !ok {
				return nil, fmt.Errorf("%s: only definitions may be embedded", d.Pos())
			}
			out.Embeds = append(out.Embeds, id.Name)
		case *ast.Comprehension:
			if err := out.branch(d); err != nil {
				return nil, err
			}
		case *ast.CommentGroup:
		default:
			return nil, fmt.Errorf("%s: unexpected %T", d.Pos(), d)
		}
	}
	return out, nil
}

func readField(d *ast.Field) (*Field, error) {
	f := &Field{Required: d.Constraint == token.NOT, Doc: docOf(d), Line: d.Pos().Line(), Value: d.Value}
	switch label := d.Label.(type) {
	case *ast.Ident:
		f.Name = label.Name
	case *ast.ListLit:
		if len(label.Elts) != 1 {
			return nil, fmt.Errorf("%s: a pattern has one element", d.Pos())
		}
		f.Pattern = label.Elts[0]
	default:
		return nil, fmt.Errorf("%s: unexpected label %T", d.Pos(), label)
	}
	if s, ok := d.Value.(*ast.StructLit); ok {
		inner, err := readStruct(s)
		if err != nil {
			return nil, err
		}
		f.Inner = inner
	}
	return f, nil
}

// branch reads `if field == "value" {…}`.
func (s *Struct) branch(d *ast.Comprehension) error {
	body, ok := d.Value.(*ast.StructLit)
	cond, isIf := d.Clauses[0].(*ast.IfClause)
	if !ok || !isIf {
		return fmt.Errorf("%s: only `if` may choose fields", d.Pos())
	}
	eq, ok := cond.Condition.(*ast.BinaryExpr)
	if !ok || eq.Op != token.EQL {
		return fmt.Errorf("%s: the condition is not field == \"value\"", d.Pos())
	}
	field, ok1 := eq.X.(*ast.Ident)
	lit, ok2 := eq.Y.(*ast.BasicLit)
	if !ok1 || !ok2 {
		return fmt.Errorf("%s: the condition is not field == \"value\"", d.Pos())
	}
	value, err := literal.Unquote(lit.Value)
	if err != nil {
		return fmt.Errorf("%s: %w", d.Pos(), err)
	}
	inner, err := readStruct(body)
	if err != nil {
		return err
	}
	for _, f := range inner.Fields {
		f.When, f.field, f.value = field.Name+" is "+value, field.Name, value
		s.Fields = append(s.Fields, f)
	}
	for _, e := range inner.Embeds {
		s.Fields = append(s.Fields, &Field{Value: ast.NewIdent(e), Doc: "the fields of " + e, When: field.Name + " is " + value, field: field.Name, value: value})
	}
	return nil
}

func docOf(n ast.Node) string {
	var lines []string
	for _, g := range ast.Comments(n) {
		if !g.Doc {
			continue
		}
		for _, c := range g.List {
			lines = append(lines, strings.TrimSpace(strings.TrimPrefix(c.Text, "//")))
		}
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}

// source writes an expression as CUE on one line.
func source(e ast.Expr) string {
	b, err := format.Node(e, format.Simplify())
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

// CUE writes a definition as CUE, with its comments. The error wraps [errSchema].
func (d *Definition) CUE() ([]byte, error) {
	text, err := format.Node(&ast.File{Decls: []ast.Decl{d.field}})
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errSchema, d.Name, err)
	}
	return text, nil
}

// Text is the schema as CUE: all files, one after the other.
func Text() []byte {
	var b bytes.Buffer
	for _, f := range schema.Files() {
		fmt.Fprintf(&b, "// %s\n\n%s\n", f.Name, f.Text)
	}
	return b.Bytes()
}
