package fix

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/cursor"
	"github.com/yoctune/yoctune/compiler/language/hcl"
	"github.com/yoctune/yoctune/compiler/language/jsonnet"
)

// languageOf returns the language of a file: its extension, for imported files of Jsonnet that
// of Jsonnet.
func languageOf(name string) string {
	if ext := path.Ext(name); ext == ".cue" || ext == hcl.Extension {
		return ext
	}
	return jsonnet.Extension
}

// writer makes edits, whose texts are CUE, in HCL and Jsonnet.
type writer struct{ language, text string }

func (w writer) change(e diag.Edit) (change, bool) {
	offset, ok := offsetOf(w.text, e.Pos.Line, e.Pos.Column)
	if !ok {
		return change{}, false
	}
	c := cursor.Find(w.language, w.text, offset)
	if len(c.Fields) == 0 {
		return change{}, false // in a comment
	}
	if e.Kind == diag.RenameField && !c.IsKey && !c.InList { // the place is that of the value
		offset = c.Fields[len(c.Fields)-1].Start
		c = cursor.Find(w.language, w.text, offset)
	}
	t := c.Token
	named := (t.Kind == cursor.Word || t.Kind == cursor.Quoted) && t.Start == offset && !t.Open
	switch {
	case e.Kind == diag.ReplaceText && named && c.IsWhole && w.isLiteral(t):
		now, err := parser.ParseExpr("", e.Text)
		if err != nil {
			return change{}, false
		}
		text, ok := w.write(now)
		return change{e.Pos.File, t.Start, t.End, text}, ok
	case e.Kind == diag.RenameField && named && c.IsKey && c.IsNamed:
		name := e.Text
		if s, err := literal.Unquote(name); err == nil {
			name = s
		}
		return change{e.Pos.File, t.Start, t.End, w.label(name, t.Kind == cursor.Quoted)}, true
	case e.Kind == diag.AddField:
		return w.addBeside(c, e)
	}
	return change{}, false
}

// offsetOf returns the offset of a line and a column, both counted from 1.
func offsetOf(text string, line, column int) (int, bool) {
	at := 0
	for n := 1; n < line; n++ {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return 0, false
		}
		at += i + 1
	}
	at += column - 1
	return at, column > 0 && at < len(text)
}

// isLiteral reports whether a token is a value as it is written.
func (w writer) isLiteral(t cursor.Token) bool {
	if t.Kind == cursor.Quoted {
		computed := w.language == hcl.Extension && (strings.Contains(t.Text, "${") || strings.Contains(t.Text, "%{"))
		return len(t.Quote) == 1 && !computed
	}
	_, err := strconv.ParseFloat(t.Text, 64)
	return err == nil || t.Text == "true" || t.Text == "false"
}

// addBeside adds fields before the one that a place is in, or before one around it.
func (w writer) addBeside(c cursor.Cursor, e diag.Edit) (change, bool) {
	depth := c.Fields[len(c.Fields)-1].Depth - e.Up
	start := -1
	for _, f := range c.Fields {
		if f.Depth == depth {
			start = f.Start
		}
	}
	file, err := parser.ParseFile("", e.Text)
	if err != nil || start < 0 || start > len(w.text) {
		return change{}, false
	}
	line := strings.LastIndexByte(w.text[:start], '\n') + 1
	indent := w.text[line:start]
	own := strings.TrimLeft(indent, " \t") == ""
	var text strings.Builder
	for _, d := range file.Decls {
		field, ok := w.field(d)
		switch {
		case !ok:
			return change{}, false
		case own && w.language == hcl.Extension:
			text.WriteString(field + "\n" + indent)
		case own:
			text.WriteString(field + ",\n" + indent)
		default:
			text.WriteString(field + ", ")
		}
	}
	return change{e.Pos.File, start, start, text.String()}, true
}

// field writes a field of CUE.
func (w writer) field(d ast.Decl) (string, bool) {
	f, ok := d.(*ast.Field)
	if !ok {
		return "", false
	}
	name, _, err := ast.LabelName(f.Label)
	if err != nil {
		return "", false
	}
	value, ok := w.write(f.Value)
	if w.language == hcl.Extension {
		return w.label(name, false) + " = " + value, ok
	}
	return w.label(name, false) + ": " + value, ok
}

// label writes the name of a field.
func (w writer) label(name string, quoted bool) string {
	if w.language == hcl.Extension {
		name = hcl.Spell(name)
	}
	if !quoted && ast.IsValidIdent(name) {
		return name
	}
	return w.quote(name)
}

func (w writer) quote(s string) string {
	if w.language == jsonnet.Extension {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
	}
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strconv.Quote(s))
}

// write writes a literal of CUE.
func (w writer) write(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return e.Value, true
		}
		s, err := literal.Unquote(e.Value)
		return w.quote(s), err == nil && !strings.ContainsAny(s, "\n\r")
	case *ast.ListLit:
		var items []string
		for _, x := range e.Elts {
			item, ok := w.write(x)
			if !ok {
				return "", false
			}
			items = append(items, item)
		}
		return "[" + strings.Join(items, ", ") + "]", true
	case *ast.StructLit:
		var fields []string
		for _, d := range e.Elts {
			field, ok := w.field(d)
			if !ok {
				return "", false
			}
			fields = append(fields, field)
		}
		return fmt.Sprintf("{ %s }", strings.Join(fields, ", ")), true
	}
	return "", false
}
