package jsonnet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	jsonnet "github.com/google/go-jsonnet"
	"github.com/google/go-jsonnet/ast"
	"github.com/google/go-jsonnet/formatter"
	"github.com/google/go-jsonnet/toolutils"

	"github.com/yoctune/yoctune/schema/plan"
)

// mark is the hidden field with the positions of an object's fields. Adding objects merges
// their marks, so that each field keeps the entry of its last writer.
const mark = "__src__"

// walk makes a value and the marks inside it visible: an object becomes
// {s: mark, f: fields}.
const walk = `local w(v) =
  if std.isObject(v) then {
    s: if std.objectHasAll(v, '` + mark + `') then v.` + mark + ` else {},
    f: { [k]: w(v[k]) for k in std.objectFields(v) },
  } else if std.isArray(v) then std.map(w, v) else v;
local v = import %s;
w(if std.isFunction(v) then v() else v)
`

// placed holds the positions of a value and its parts; nil when unknown.
type placed struct {
	label  plan.Position // the name of the field that holds the value
	value  plan.Position
	fields map[string]*placed
	items  []*placed
}

func (p *placed) position(around plan.Position) plan.Position {
	if p == nil || p.value.File == "" {
		return around
	}
	return p.value
}

func (p *placed) field(name string) *placed {
	if p == nil {
		return nil
	}
	return p.fields[name]
}

func (p *placed) item(i int) *placed {
	if p == nil || i >= len(p.items) {
		return nil
	}
	return p.items[i]
}

// findPositions evaluates the program a second time, with marks. It returns nil if the marks
// changed the result, as in a program that inspects hidden fields.
func (e *evaluator) findPositions(plain any) *placed {
	m := &marker{importer: e.importer, contents: map[string]jsonnet.Contents{}}
	name, err := json.Marshal(e.name)
	if err != nil {
		return nil
	}
	// Walking the result needs additional stack.
	text, err := e.evaluate(m, path.Join(path.Dir(e.name), "<places>"), fmt.Sprintf(walk, name), 4*maxStack)
	if err != nil {
		return nil
	}
	marked, err := decode(text)
	if err != nil {
		return nil
	}
	p, same := m.read(marked, plain)
	if !same {
		return nil
	}
	return p
}

// read separates a marked value into its positions and the rest, and reports whether the
// rest equals the plain value.
func (m *marker) read(marked, plain any) (*placed, bool) {
	switch plain := plain.(type) {
	case map[string]any:
		wrapped, ok := marked.(map[string]any)
		if !ok {
			return nil, false
		}
		fields, ok := wrapped["f"].(map[string]any)
		if !ok || len(fields) != len(plain) {
			return nil, false
		}
		marks, _ := wrapped["s"].(map[string]any)
		p := &placed{fields: make(map[string]*placed, len(fields))}
		for name, v := range plain {
			inner, ok := fields[name]
			if !ok {
				return nil, false
			}
			sub, same := m.read(inner, v)
			if !same {
				return nil, false
			}
			number, _ := marks[name].(json.Number)
			p.fields[name] = m.placesOf(number, sub)
		}
		return p, true
	case []any:
		list, ok := marked.([]any)
		if !ok || len(list) != len(plain) {
			return nil, false
		}
		p := &placed{items: make([]*placed, len(plain))}
		for i := range plain {
			sub, same := m.read(list[i], plain[i])
			if !same {
				return nil, false
			}
			p.items[i] = sub
		}
		return p, true
	}
	return nil, marked == plain
}

// placesOf assigns a value the positions of the field that wrote it.
func (m *marker) placesOf(number json.Number, p *placed) *placed {
	i, err := number.Int64()
	if err != nil || i < 0 || i >= int64(len(m.entries)) {
		return p
	}
	if p == nil {
		p = &placed{}
	}
	written := m.entries[i]
	p.label, p.value = written.label, written.value
	mergePositions(p, written)
	return p
}

// mergePositions adds the positions of an array literal to those of its elements.
func mergePositions(p, written *placed) {
	if len(written.items) == 0 || len(written.items) != len(p.items) {
		return
	}
	for i, w := range written.items {
		if p.items[i] == nil {
			p.items[i] = &placed{}
		}
		if p.items[i].value.File == "" {
			p.items[i].value = w.value
		}
		mergePositions(p.items[i], w)
	}
}

// marker imports files and inserts marks.
type marker struct {
	importer *importer
	contents map[string]jsonnet.Contents
	entries  []*placed // of fields, by number
}

// Import implements [jsonnet.Importer].
func (m *marker) Import(from, name string) (jsonnet.Contents, string, error) {
	c, full, err := m.importer.Import(from, name)
	if err != nil || !isProgram(full) {
		return c, full, err
	}
	if marked, ok := m.contents[full]; ok {
		return marked, full, nil
	}
	marked := jsonnet.MakeContents(string(m.insertMarks(full, c.Data())))
	m.contents[full] = marked
	return marked, full, nil
}

// insertMarks inserts a mark into every object of a program.
func (m *marker) insertMarks(name string, text []byte) []byte {
	tree, _, err := formatter.SnippetToRawAST(name, string(text))
	if err != nil {
		return text
	}
	s := &source{name: name, text: text, starts: []int{0}}
	for i, c := range text {
		if c == '\n' {
			s.starts = append(s.starts, i+1)
		}
	}
	type insertion struct {
		at   int
		text string
	}
	var insertions []insertion
	var visit func(n ast.Node)
	visit = func(n ast.Node) {
		if n == nil {
			return
		}
		if o, ok := n.(*ast.Object); ok {
			at := s.offset(o.LocRange.Begin)
			if entries := m.object(s, o); entries != "" && at >= 0 && at < len(text) && text[at] == '{' {
				insertions = append(insertions, insertion{at + 1, entries})
			}
		}
		for _, c := range toolutils.Children(n) {
			visit(c)
		}
	}
	visit(tree)
	slices.SortFunc(insertions, func(a, b insertion) int { return a.at - b.at })
	var out bytes.Buffer
	done := 0
	for _, in := range insertions {
		out.Write(text[done:in.at])
		out.WriteString(in.text)
		done = in.at
	}
	out.Write(text[done:])
	return out.Bytes()
}

// object writes the mark of an object: the number of each field's entry.
func (m *marker) object(s *source, o *ast.Object) string {
	var b strings.Builder
	for _, f := range o.Fields {
		name := ""
		label := f.LocRange
		switch f.Kind {
		case ast.ObjectFieldID:
			name = fmt.Sprintf("%q", string(*f.Id))
		case ast.ObjectFieldStr:
			name = s.slice(*f.Expr1.Loc())
			label = *f.Expr1.Loc()
		case ast.ObjectFieldExpr:
			// A computed name may not look at the object: inside the mark it
			// would see the mark.
			expr := s.slice(*f.Expr1.Loc())
			if strings.Contains(expr, "self") || strings.Contains(expr, "super") || strings.Contains(expr, "$") {
				continue
			}
			name = "[" + expr + "]"
			label = *f.Expr1.Loc()
		default:
			continue
		}
		if name == "" || name == "[]" || f.Method != nil {
			continue
		}
		entry := s.locate(f.Expr2)
		entry.label = s.position(label)
		if f.SuperSugar {
			entry.items = nil // what was there before comes first
		}
		fmt.Fprintf(&b, "%s: %d, ", name, len(m.entries))
		m.entries = append(m.entries, entry)
	}
	if b.Len() == 0 {
		return ""
	}
	return " " + mark + "+:: { " + b.String() + "}, "
}

// source is a program's text.
type source struct {
	name   string
	text   []byte
	starts []int // offset of each line
}

func (s *source) offset(l ast.Location) int {
	if l.Line < 1 || l.Line > len(s.starts) {
		return -1
	}
	return s.starts[l.Line-1] + l.Column - 1
}

func (s *source) slice(r ast.LocationRange) string {
	from, to := s.offset(r.Begin), s.offset(r.End)
	if from < 0 || to < from || to > len(s.text) {
		return ""
	}
	return string(s.text[from:to])
}

func (s *source) position(r ast.LocationRange) plan.Position {
	return plan.Position{File: s.name, Line: r.Begin.Line, Column: r.Begin.Column}
}

// locate returns the position of an expression and, for an array literal, of its elements.
func (s *source) locate(n ast.Node) *placed {
	p := &placed{value: s.position(*n.Loc())}
	if a, ok := n.(*ast.Array); ok {
		for _, e := range a.Elements {
			p.items = append(p.items, s.locate(e.Expr))
		}
	}
	return p
}
