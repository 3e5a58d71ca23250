package conform

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/yoctune/yoctune/compiler/language/load"
)

// errSchema wraps faults in the schema itself.
var errSchema = errors.New("schema")

// readSchema reads the .cue files at the root of a file system as one schema. The
// error wraps errSchema.
func readSchema(fsys fs.FS) (*Schema, error) {
	names, err := fs.Glob(fsys, "*.cue")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSchema, err)
	}
	s := &Schema{}
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errSchema, err)
		}
		f, err := parser.ParseFile("schema/"+name, text, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errSchema, err)
		}
		if err := s.file(f); err != nil {
			return nil, fmt.Errorf("%w: %w", errSchema, err)
		}
	}
	slices.SortFunc(s.defs, func(a, b *definition) int { return strings.Compare(a.name, b.name) })
	for _, d := range s.defs {
		if err := s.resolved(d.value, d.name); err != nil {
			return nil, fmt.Errorf("%w: %w", errSchema, err)
		}
	}
	return s, nil
}

func (s *Schema) file(f *ast.File) error {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.Package, *ast.ImportDecl, *ast.CommentGroup:
		case *ast.Field:
			name, ok := d.Label.(*ast.Ident)
			if !ok || !strings.HasPrefix(name.Name, "#") {
				return faultAt(d.Pos(), "only definitions may be at the top level")
			}
			value, err := compile(d.Value)
			if err != nil {
				return err
			}
			s.defs = append(s.defs, &definition{name: name.Name, doc: docOf(d), value: value})
		default:
			return faultAt(d.Pos(), "unexpected %T", d)
		}
	}
	return nil
}

// resolved checks that every definition that is named exists.
func (s *Schema) resolved(sh *shape, in string) error {
	if sh == nil {
		return nil
	}
	if sh.op == named && s.def(sh.def) == nil {
		return fmt.Errorf("%s: definition %s does not exist", in, sh.def)
	}
	for _, p := range sh.parts {
		if err := s.resolved(p, in); err != nil {
			return err
		}
	}
	if err := s.resolved(sh.elem, in); err != nil {
		return err
	}
	if sh.obj == nil {
		return nil
	}
	return s.resolvedStruct(sh.obj, in)
}

func (s *Schema) resolvedStruct(st *structure, in string) error {
	for _, m := range st.fields {
		if err := s.resolved(m.value, in); err != nil {
			return err
		}
	}
	for _, p := range st.patterns {
		if err := errors.Join(s.resolved(p.key, in), s.resolved(p.value, in)); err != nil {
			return err
		}
	}
	for _, e := range st.embeds {
		if d := s.def(e); d == nil || d.value.op != object {
			return fmt.Errorf("%s: embedded %s is not a struct of the schema", in, e)
		}
	}
	for _, b := range st.branches {
		if err := s.resolvedStruct(b.then, in); err != nil {
			return err
		}
	}
	return nil
}

func faultAt(pos token.Pos, format string, args ...any) error {
	return fmt.Errorf("%s: %s", pos, fmt.Sprintf(format, args...))
}

// docOf is the comment directly above a field.
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
	return strings.Join(lines, " ")
}

func compile(e ast.Expr) (*shape, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return compile(e.X)
	case *ast.Ident:
		return compileIdent(e)
	case *ast.BasicLit:
		return compileLiteral(e, "")
	case *ast.UnaryExpr:
		return compileUnary(e)
	case *ast.BinaryExpr:
		sh := &shape{}
		switch e.Op {
		case token.AND:
			sh.op = all
		case token.OR:
			sh.op = either
		default:
			return nil, faultAt(e.Pos(), "operator %s", e.Op)
		}
		for _, x := range []ast.Expr{e.X, e.Y} {
			p, err := compile(x)
			if err != nil {
				return nil, err
			}
			if p.op == sh.op {
				sh.parts = append(sh.parts, p.parts...)
			} else {
				sh.parts = append(sh.parts, p)
			}
		}
		return sh, nil
	case *ast.ListLit:
		if len(e.Elts) == 1 {
			if el, ok := e.Elts[0].(*ast.Ellipsis); ok && el.Type != nil {
				elem, err := compile(el.Type)
				return &shape{op: list, elem: elem}, err
			}
		}
		return nil, faultAt(e.Pos(), "a list that is not [...T]")
	case *ast.StructLit:
		obj, err := compileStruct(e)
		return &shape{op: object, obj: obj}, err
	case *ast.CallExpr:
		return compileCall(e)
	}
	return nil, faultAt(e.Pos(), "unexpected %T", e)
}

func compileIdent(e *ast.Ident) (*shape, error) {
	sh := &shape{op: basic}
	switch e.Name {
	case "_":
		sh.op = anything
	case "string":
		sh.kind = load.String
	case "int":
		sh.kind = load.Int
	case "number":
		sh.kind, sh.any = load.Number, true
	case "bool":
		sh.kind = load.Bool
	case "true", "false":
		return compileLiteral(&ast.BasicLit{ValuePos: e.Pos(), Kind: token.TRUE, Value: e.Name}, "")
	default:
		if !strings.HasPrefix(e.Name, "#") {
			return nil, faultAt(e.Pos(), "reference to %s", e.Name)
		}
		sh.op, sh.def = named, e.Name
	}
	return sh, nil
}

func compileLiteral(e *ast.BasicLit, sign string) (*shape, error) {
	sh := &shape{op: exactly}
	switch e.Kind {
	case token.STRING:
		text, err := literal.Unquote(e.Value)
		if err != nil {
			return nil, faultAt(e.Pos(), "%v", err)
		}
		sh.literal = &load.Node{Kind: load.String, Text: text}
	case token.INT:
		sh.literal = &load.Node{Kind: load.Int, Text: sign + e.Value}
	case token.TRUE, token.FALSE:
		sh.literal = &load.Node{Kind: load.Bool, True: e.Value == "true"}
	case token.NULL:
		sh.literal = &load.Node{Kind: load.Null}
	default:
		return nil, faultAt(e.Pos(), "literal %s", e.Value)
	}
	return sh, nil
}

func compileUnary(e *ast.UnaryExpr) (*shape, error) {
	operand := e.X
	sign := ""
	if u, ok := operand.(*ast.UnaryExpr); ok && u.Op == token.SUB {
		operand, sign = u.X, "-"
	}
	lit, ok := operand.(*ast.BasicLit)
	if !ok {
		return nil, faultAt(e.Pos(), "operand of %s is not a literal", e.Op)
	}
	switch e.Op {
	case token.SUB:
		return compileLiteral(lit, "-")
	case token.MAT, token.NMAT:
		text, err := literal.Unquote(lit.Value)
		if err != nil {
			return nil, faultAt(e.Pos(), "%v", err)
		}
		if _, err := regexp.Compile(text); err != nil {
			return nil, faultAt(e.Pos(), "%v", err)
		}
		return &shape{op: matches, text: text, invert: e.Op == token.NMAT}, nil
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		n, err := strconv.ParseInt(sign+lit.Value, 10, 64)
		if err != nil {
			return nil, faultAt(e.Pos(), "%v", err)
		}
		return &shape{op: bound, rel: e.Op.String(), number: n}, nil
	}
	return nil, faultAt(e.Pos(), "operator %s", e.Op)
}

func compileCall(e *ast.CallExpr) (*shape, error) {
	sel, ok := e.Fun.(*ast.SelectorExpr)
	if !ok || len(e.Args) != 1 {
		return nil, faultAt(e.Pos(), "unexpected call")
	}
	lit, ok := e.Args[0].(*ast.BasicLit)
	if !ok {
		return nil, faultAt(e.Pos(), "the argument is not a literal")
	}
	n, err := strconv.ParseInt(lit.Value, 10, 64)
	if err != nil {
		return nil, faultAt(e.Pos(), "%v", err)
	}
	pkg, _ := sel.X.(*ast.Ident)
	name, _ := sel.Sel.(*ast.Ident)
	if pkg == nil || name == nil || pkg.Name != "strings" {
		return nil, faultAt(e.Pos(), "unexpected call")
	}
	switch name.Name {
	case "MaxRunes":
		return &shape{op: maxRunes, number: n}, nil
	case "MinRunes":
		return &shape{op: minRunes, number: n}, nil
	}
	return nil, faultAt(e.Pos(), "unexpected call of strings.%s", name.Name)
}

func compileStruct(e *ast.StructLit) (*structure, error) {
	st := &structure{}
	for _, d := range e.Elts {
		switch d := d.(type) {
		case *ast.CommentGroup:
		case *ast.Field:
			if err := st.field(d); err != nil {
				return nil, err
			}
		case *ast.EmbedDecl:
			id, ok := d.Expr.(*ast.Ident)
			if !ok || !strings.HasPrefix(id.Name, "#") {
				return nil, faultAt(d.Pos(), "only definitions may be embedded")
			}
			st.embeds = append(st.embeds, id.Name)
		case *ast.Comprehension:
			if err := st.branch(d); err != nil {
				return nil, err
			}
		default:
			return nil, faultAt(d.Pos(), "unexpected %T", d)
		}
	}
	return st, nil
}

func (st *structure) field(d *ast.Field) error {
	value, err := compile(d.Value)
	if err != nil {
		return err
	}
	switch label := d.Label.(type) {
	case *ast.Ident:
		st.fields = append(st.fields, &member{name: label.Name, required: d.Constraint == token.NOT, value: value, doc: docOf(d)})
		if d.Constraint == token.ILLEGAL {
			return faultAt(d.Pos(), "field %s is neither optional nor required", label.Name)
		}
	case *ast.ListLit:
		if len(label.Elts) != 1 {
			return faultAt(d.Pos(), "a pattern has one element")
		}
		key, err := compile(label.Elts[0])
		if err != nil {
			return err
		}
		st.patterns = append(st.patterns, pattern{key: key, value: value})
	default:
		return faultAt(d.Pos(), "unexpected label %T", label)
	}
	return nil
}

func (st *structure) branch(d *ast.Comprehension) error {
	if len(d.Clauses) != 1 {
		return faultAt(d.Pos(), "more than one clause")
	}
	cond, ok := d.Clauses[0].(*ast.IfClause)
	if !ok {
		return faultAt(d.Pos(), "only `if` may choose fields")
	}
	eq, ok := cond.Condition.(*ast.BinaryExpr)
	if !ok || eq.Op != token.EQL {
		return faultAt(d.Pos(), "the condition is not field == \"value\"")
	}
	field, ok1 := eq.X.(*ast.Ident)
	lit, ok2 := eq.Y.(*ast.BasicLit)
	if !ok1 || !ok2 {
		return faultAt(d.Pos(), "the condition is not field == \"value\"")
	}
	value, err := literal.Unquote(lit.Value)
	if err != nil {
		return faultAt(d.Pos(), "%v", err)
	}
	body, ok := d.Value.(*ast.StructLit)
	if !ok {
		return faultAt(d.Pos(), "the branch is not a struct")
	}
	then, err := compileStruct(body)
	if err != nil {
		return err
	}
	st.branches = append(st.branches, branch{field: field.Name, value: value, then: then})
	return nil
}
