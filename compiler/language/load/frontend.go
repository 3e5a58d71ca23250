package load

import (
	"io"
	"io/fs"
	"os"
	"strconv"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema/plan"
)

// FrontEnd evaluates the files of another language than CUE.
type FrontEnd interface {
	// Reads reports whether the front end evaluates a file of the configuration's
	// folder, by its name.
	Reads(name string) bool
	// Load evaluates the files that it reads, by name.
	Load(files map[string][]byte) Evaluated
}

// Program is the input of a front end.
type Program struct {
	Files map[string][]byte // of the configuration's folder, by name
	Root  fs.FS             // the folder, for imports; nil when there is none
	Vars  map[string]string // given on the command line

	// VarsShared is set when another language uses the variables too; an unknown variable is
	// then not an error.
	VarsShared bool
}

// Evaluated is the result of a front end. Its parts are unified with each other and with the
// values of other languages.
type Evaluated struct {
	Roots       []*Node           // none when the files could not be evaluated
	Sources     map[string][]byte // imported files, by path below the folder
	Diagnostics []diag.Diagnostic
}

// nameFrontEndFiles lists the kinds of files that the front ends read, for a message.
func nameFrontEndFiles(ends []FrontEnd) string {
	for _, end := range ends {
		if end.Reads("config.hcl") && end.Reads("config.jsonnet") {
			return ", .hcl or .jsonnet"
		}
	}
	return ""
}

// readInside reads a file of a folder and refuses symbolic links that lead out of it.
func readInside(dir, name string) ([]byte, error) {
	f, err := os.OpenInRoot(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxSource+1))
}

// collectForeign collects the results of the front ends. ok is false if one of them failed.
func (l *loader) collectForeign(files map[string][]byte, ends []FrontEnd) (roots []*Node, ok bool) {
	ok = true
	for _, end := range ends {
		own := map[string][]byte{}
		for name, text := range files {
			if end.Reads(name) {
				own[name] = text
			}
		}
		if len(own) == 0 {
			continue
		}
		e := end.Load(own)
		for name, text := range e.Sources {
			l.cfg.Sources.Add(name, text)
		}
		for _, d := range e.Diagnostics {
			l.report.Add(d)
		}
		roots = append(roots, e.Roots...)
		ok = ok && len(e.Roots) > 0
	}
	return roots, ok
}

// asCUE converts a value of another language to CUE, keeping the position of every part.
// Values of several languages then unify like those of one, and a conflict names both
// positions. The file is of the package that the CUE files are of, so that these can refer
// to its values.
func (l *loader) asCUE(root *Node, pkg string) *ast.File {
	w := &writer{sources: l.cfg.Sources, files: map[string]*written{}}
	f := &ast.File{Filename: root.Pos.File, Decls: w.fields(root)}
	if pkg != "" {
		f.Decls = append([]ast.Decl{&ast.Package{Name: ast.NewIdent(pkg)}}, f.Decls...)
	}
	return f
}

type writer struct {
	sources *diag.Sources
	files   map[string]*written
}

// written is a source file as CUE counts positions in it.
type written struct {
	file   *token.File
	starts []int // offset of each line
	size   int
}

func (w *writer) pos(p plan.Position) token.Pos {
	if p.File == "" {
		return token.NoPos
	}
	f := w.files[p.File]
	if f == nil {
		text := w.sources.Text(p.File)
		f = &written{file: token.NewFile(p.File, -1, len(text)+1), size: len(text), starts: []int{0}}
		f.file.SetLinesForContent(text)
		for i, c := range text {
			if c == '\n' {
				f.starts = append(f.starts, i+1)
			}
		}
		w.files[p.File] = f
	}
	if p.Line < 1 || p.Line > len(f.starts) {
		return token.NoPos
	}
	offset := f.starts[p.Line-1] + p.Column - 1
	if offset < 0 || offset > f.size {
		return token.NoPos
	}
	return f.file.Pos(offset, token.NoRelPos)
}

func (w *writer) fields(n *Node) []ast.Decl {
	decls := make([]ast.Decl, 0, len(n.Fields))
	for _, f := range n.Fields {
		label := ast.NewStringLabel(f.Name)
		ast.SetPos(label, w.pos(f.Pos))
		decls = append(decls, &ast.Field{Label: label, Value: w.expr(f.Value)})
	}
	return decls
}

func (w *writer) expr(n *Node) ast.Expr {
	pos := w.pos(n.Pos)
	lit := func(kind token.Token, text string) *ast.BasicLit {
		return &ast.BasicLit{ValuePos: pos, Kind: kind, Value: text}
	}
	switch n.Kind {
	case Null:
		return lit(token.NULL, "null")
	case Bool:
		if n.True {
			return lit(token.TRUE, "true")
		}
		return lit(token.FALSE, "false")
	case Int, Number:
		kind := token.INT
		if n.Kind == Number {
			kind = token.FLOAT
		}
		if n.Text[0] == '-' {
			return &ast.UnaryExpr{OpPos: pos, Op: token.SUB, X: lit(kind, n.Text[1:])}
		}
		return lit(kind, n.Text)
	case String:
		return lit(token.STRING, literal.String.Quote(n.Text))
	case List:
		list := &ast.ListLit{Lbrack: pos}
		for _, it := range n.Items {
			list.Elts = append(list.Elts, w.expr(it))
		}
		return list
	}
	return &ast.StructLit{Lbrace: pos, Elts: w.fields(n)}
}

// Decimal writes a number with a fraction with as few digits as name it, so that
// 0.5 is the same text in every language.
func Decimal(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
