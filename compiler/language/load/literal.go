package load

import (
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/yoctune/yoctune/schema"
)

// literalTree reads a configuration that computes nothing: fields, lists and
// scalars as they are written, unified with definitions of the schema. Most
// configurations are like that, and need no evaluator. At the first part that CUE would
// evaluate or refuse, ok is false. A test compares the trees with the evaluator's.
func literalTree(files []*ast.File) (root *Node, ok bool) {
	l := literals{names: map[string]bool{}}
	for _, name := range definitions() {
		l.names[name] = true
	}
	root = &Node{Kind: Struct}
	for _, f := range files {
		imported := false
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.Package, *ast.CommentGroup:
			case *ast.ImportDecl:
				for _, spec := range d.Specs {
					if spec.Name != nil || strings.Trim(spec.Path.Value, `"`) != schema.ImportPath {
						return nil, false
					}
					imported = true
				}
			default:
				if !l.decl(root, d) {
					return nil, false
				}
			}
		}
		// An import that nothing uses is an error that CUE reports.
		if imported && !l.used {
			return nil, false
		}
		l.used = false
	}
	if root.Pos.File == "" && len(root.Fields) > 0 {
		root.Pos = root.Fields[0].Pos
	}
	return root, true
}

type literals struct {
	names map[string]bool // definitions of the schema
	used  bool            // the file uses the schema
}

// decl adds a declaration to a struct.
func (l *literals) decl(n *Node, d ast.Decl) bool {
	switch d := d.(type) {
	case *ast.CommentGroup:
		return true
	case *ast.EmbedDecl:
		v, ok := l.expr(d.Expr)
		if !ok || v.Kind != Struct {
			return false
		}
		if n.Pos.File == "" {
			n.Pos = v.Pos
		}
		for _, f := range v.Fields {
			if !unifyField(n, f) {
				return false
			}
		}
		return true
	case *ast.Field:
		if d.Constraint != token.ILLEGAL || d.Alias != nil || len(d.Attrs) > 0 {
			return false
		}
		name, ok := label(d.Label)
		if !ok {
			return false
		}
		v, ok := l.expr(d.Value)
		return ok && unifyField(n, Field{Name: name, Pos: position(d.Label.Pos()), Value: v})
	}
	return false
}

// label reads a label that names a regular field.
func label(l ast.Label) (string, bool) {
	switch l := l.(type) {
	case *ast.Ident:
		if strings.HasPrefix(l.Name, "_") || strings.HasPrefix(l.Name, "#") {
			return "", false
		}
		return l.Name, true
	case *ast.BasicLit:
		s, err := literal.Unquote(l.Value)
		return s, err == nil && l.Kind == token.STRING
	}
	return "", false
}

// unifyField adds a field to a struct, or unifies it with the one of that name.
func unifyField(n *Node, f Field) bool {
	for i := range n.Fields {
		old := &n.Fields[i]
		if old.Name != f.Name {
			continue
		}
		if old.Value.Kind != Struct || f.Value.Kind != Struct {
			return old.Value.Equal(f.Value)
		}
		for _, sub := range f.Value.Fields {
			if !unifyField(old.Value, sub) {
				return false
			}
		}
		return true
	}
	n.Fields = append(n.Fields, f)
	return true
}

func (l *literals) expr(e ast.Expr) (*Node, bool) {
	n := &Node{Pos: position(e.Pos())}
	switch e := e.(type) {
	case *ast.StructLit:
		n.Kind = Struct
		for _, d := range e.Elts {
			if !l.decl(n, d) {
				return nil, false
			}
		}
		return n, true
	case *ast.ListLit:
		n.Kind = List
		for _, x := range e.Elts {
			it, ok := l.expr(x)
			if !ok {
				return nil, false
			}
			n.Items = append(n.Items, it)
		}
		return n, true
	case *ast.BinaryExpr:
		// schema.#Config & {…}
		if e.Op == token.AND && l.definition(e.X) {
			return l.expr(e.Y)
		}
		return nil, false
	case *ast.UnaryExpr:
		lit, ok := e.X.(*ast.BasicLit)
		if !ok || e.Op != token.SUB || !scalar(n, lit) || n.Kind != Int && n.Kind != Number || strings.Trim(n.Text, "0.") == "" {
			return nil, false
		}
		n.Text = "-" + n.Text
		return n, true
	case *ast.BasicLit:
		return n, scalar(n, e)
	}
	return nil, false
}

// definition reports whether an expression is a definition of the schema.
func (l *literals) definition(e ast.Expr) bool {
	found := l.names[SchemaDefinition(e)]
	l.used = l.used || found
	return found
}

// SchemaDefinition returns #CPU of schema.#CPU, "" for any other expression.
func SchemaDefinition(e ast.Expr) string {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok1 := sel.X.(*ast.Ident)
	name, ok2 := sel.Sel.(*ast.Ident)
	if !ok1 || !ok2 || pkg.Name != "schema" {
		return ""
	}
	return name.Name
}

// scalar reads a literal whose text is its value in every spelling that CUE
// would print.
func scalar(n *Node, e *ast.BasicLit) bool {
	switch e.Kind {
	case token.STRING:
		s, err := literal.Unquote(e.Value)
		n.Kind, n.Text = String, s
		return err == nil && !strings.HasPrefix(strings.TrimLeft(e.Value, "#"), "'")
	case token.TRUE, token.FALSE:
		n.Kind, n.True = Bool, e.Kind == token.TRUE
		return true
	case token.INT:
		n.Kind, n.Text = Int, e.Value
		return digits(e.Value)
	case token.FLOAT:
		whole, part, ok := strings.Cut(e.Value, ".")
		n.Kind, n.Text = Number, e.Value
		return ok && digits(whole) && digits(part) && part[len(part)-1] != '0'
	}
	return false
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
