package hcl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/conform"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/spelling"
)

// convertBody turns the attributes and blocks of a file or a block into a struct.
func (m *module) convertBody(b *hclsyntax.Body, sh conform.Shape, path string, top bool) *load.Node {
	e := m.ev
	t := e.tableOf(sh)
	n := &load.Node{Kind: load.Struct, Pos: e.startOf(b.SrcRange)}
	if top {
		n.Pos.Line, n.Pos.Column = 1, 1
	}
	for _, part := range listParts(b) {
		if a := part.attribute; a != nil {
			m.convertAttribute(n, a, t, path)
			continue
		}
		if top && slices.Contains([]string{"locals", "variable", "output", "module"}, part.block.Type) {
			continue // read by declare
		}
		m.convertBlock(n, part.block, t, path)
	}
	return n
}

// part is an attribute or a block of a body.
type part struct {
	attribute *hclsyntax.Attribute
	block     *hclsyntax.Block
	at        int
}

// listParts lists the attributes and blocks of a body in source order.
func listParts(b *hclsyntax.Body) []part {
	list := make([]part, 0, len(b.Attributes)+len(b.Blocks))
	for _, a := range b.Attributes {
		list = append(list, part{attribute: a, at: a.SrcRange.Start.Byte})
	}
	for _, k := range b.Blocks {
		list = append(list, part{block: k, at: k.TypeRange.Start.Byte})
	}
	slices.SortFunc(list, func(a, b part) int { return a.at - b.at })
	return list
}

func (m *module) convertAttribute(n *load.Node, a *hclsyntax.Attribute, t *table, path string) {
	e := m.ev
	f, ok := t.findField(a.Name)
	if !ok {
		e.addNonFatal(t.newUnknownField(e.startOf(a.NameRange), path, a.Name))
		return
	}
	v, ok := m.eval(a.Expr)
	if !ok {
		return
	}
	value := e.buildNode(v, source{a.Expr, m}, f.shape, load.PathOf(path, f.name), 0)
	if value == nil {
		return // null means absent
	}
	m.addField(n, load.Field{Name: f.name, Pos: e.startOf(a.NameRange), Value: value}, a.Name)
}

// findField finds the schema's field for a name.
func (t *table) findField(name string) (field, bool) {
	switch {
	case t.verbatim:
		return field{name, t.values}, true
	case strings.ToLower(name) != name:
		return field{}, false
	}
	if f, ok := t.fields[name]; ok {
		return f, true
	}
	return field{name: toCamelCase(name)}, true
}

// caseHelp begins the help for a field that is not in snake_case.
const caseHelp = "field names use lower case and underscores"

func (t *table) newUnknownField(pos position, path, name string) diag.Diagnostic {
	d := diag.Diagnostic{ID: "YT0102", Pos: pos, Path: load.PathOf(path, name), Message: fmt.Sprintf("unknown field %q", name), Help: caseHelp}
	if near := spelling.Nearest(toSnakeCase(name), slices.Sorted(maps.Keys(t.fields))); near != "" {
		d.Help += fmt.Sprintf(": %q", near)
	}
	return d
}

func (m *module) convertBlock(n *load.Node, b *hclsyntax.Block, t *table, path string) {
	e := m.ev
	k, ok := t.blocks[b.Type]
	if !ok && b.Type == "dynamic" {
		e.addNonFatal(t.refuseDynamic(e.startOf(b.TypeRange), path, b.Labels))
		return
	}
	if !ok {
		e.addNonFatal(t.newUnknownBlock(e.startOf(b.TypeRange), path, b.Type, len(b.Labels) > 0))
		return
	}
	want := 0
	if k.labelled {
		want = 1
	}
	if !m.checkLabels(b, want) {
		return
	}
	sub := load.PathOf(path, k.field)
	if !k.labelled {
		value := m.convertBody(b.Body, k.shape, sub, false)
		value.Pos = e.startOf(b.TypeRange)
		m.addField(n, load.Field{Name: k.field, Pos: value.Pos, Value: value}, b.Type)
		return
	}
	value := m.convertBody(b.Body, k.shape, load.PathOf(sub, b.Labels[0]), false)
	value.Pos = e.startOf(b.TypeRange)
	all := n.Get(k.field)
	if all == nil {
		all = &load.Node{Kind: load.Struct, Pos: value.Pos}
		n.Fields = append(n.Fields, load.Field{Name: k.field, Pos: value.Pos, Value: all})
	}
	entry := load.Field{Name: b.Labels[0], Pos: e.startOf(b.LabelRanges[0]), Value: value}
	if all.Kind != load.Struct {
		m.reportClash(entry.Pos, all.Pos, k.field)
		return
	}
	m.addField(all, entry, fmt.Sprintf("%s %q", b.Type, b.Labels[0]))
}

// newUnknownBlock returns the diagnostic for a block that the language does not have here.
func (t *table) newUnknownBlock(pos position, path, kind string, labelled bool) diag.Diagnostic {
	d := diag.Diagnostic{ID: "YT0102", Pos: pos, Path: load.PathOf(path, kind), Message: fmt.Sprintf("unknown block %q", kind)}
	for name, k := range t.blocks {
		if toSnakeCase(k.field) == kind {
			d.Help = fmt.Sprintf("write one block for each: %s \"NAME\" { … }", name)
			return d
		}
	}
	if _, ok := t.fields[kind]; ok {
		d.Help = fmt.Sprintf("it is a value: %s = …", kind)
		return d
	}
	if t.verbatim {
		d.Help = fmt.Sprintf("names here are free, and each has a value: %s = …", kind)
		return d
	}
	candidates := t.blockNames()
	if !labelled {
		for name := range t.fields {
			candidates = append(candidates, name)
		}
		slices.Sort(candidates)
	}
	if d.Help = diag.DidYouMean(kind, candidates); d.Help == "" {
		d.Help = "blocks here: " + strings.Join(t.blockNames(), ", ")
	}
	return d
}

// refuseDynamic refuses Terraform's dynamic blocks and explains the alternative: every labelled
// block is an entry of a map, and a map can be computed as a value.
func (t *table) refuseDynamic(pos position, path string, labels []string) diag.Diagnostic {
	d := diag.Diagnostic{ID: "YT0102", Pos: pos, Path: path, Message: "dynamic blocks are not supported"}
	plural := "services"
	if len(labels) == 1 {
		if k, ok := t.blocks[labels[0]]; ok && k.labelled {
			plural = toSnakeCase(k.field)
		}
	}
	d.Help = fmt.Sprintf("compute the map as a value: %s = { for name in local.names : name => { … } }", plural)
	return d
}

// addField adds a member to a struct. As in HCL, a name may appear once in a file; members of a
// map may come from an attribute and from blocks.
func (m *module) addField(n *load.Node, f load.Field, written string) {
	if old := n.Field(f.Name); old != nil {
		m.reportClash(f.Pos, old.Pos, written)
		return
	}
	n.Fields = append(n.Fields, f)
}

func (m *module) reportClash(here, there position, written string) {
	m.ev.add(diag.Diagnostic{ID: "YT0105", Pos: here, Message: written + " is given twice",
		Related: []diag.Related{{Pos: there, Message: "the other one"}}, Help: "keep one of them, or merge them"})
}

// source is the origin of a value: an expression and the module whose names it uses.
type source struct {
	expr hclsyntax.Expression
	m    *module
}

// buildNode converts a value to a tree. The value gives the content, its source only the
// positions.
func (e *evaluator) buildNode(v cty.Value, at source, sh conform.Shape, path string, depth int) *load.Node {
	if v.IsNull() && !sh.TakesNull() {
		return nil
	}
	n := &load.Node{Pos: e.startOf(e.followBranches(at).expr.Range())}
	if v.IsNull() {
		return n // of kind [load.Null]
	}
	if e.values++; depth > load.MaxDepth || e.values > maxValues {
		if e.values <= maxValues+1 || depth == load.MaxDepth+1 {
			e.errorf("YT0006", n.Pos, path, "the configuration holds more than %d values, or nests them more than %d deep", maxValues, load.MaxDepth)
		}
		return nil
	}
	if _, quoted := at.expr.(*hclsyntax.TemplateWrapExpr); quoted && v.Type().IsPrimitiveType() && sh.TakesText() {
		// HCL evaluates "${number}" to a number; the quotes mean text.
		if s, err := convert.Convert(v, cty.String); err == nil {
			v = s
		}
	}
	t := v.Type()
	switch {
	case t == cty.Bool:
		n.Kind, n.True = load.Bool, v.True()
	case t == cty.String:
		n.Kind, n.Text = load.String, v.AsString()
	case t == cty.Number:
		return e.setNumber(n, v, path)
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		n.Kind = load.List
		at = e.findOrigin(at)
		tuple, _ := at.expr.(*hclsyntax.TupleConsExpr)
		i := 0
		for it := v.ElementIterator(); it.Next(); i++ {
			_, item := it.Element()
			from := e.computedMember(at, n.Pos).source
			if tuple != nil && len(tuple.Exprs) == v.LengthInt() {
				from.expr = tuple.Exprs[i]
			}
			sub := e.buildNode(item, from, sh.Items(), fmt.Sprintf("%s[%d]", path, i), depth+1)
			if sub == nil {
				sub = &load.Node{Kind: load.Null, Pos: e.startOf(from.expr.Range())}
			}
			n.Items = append(n.Items, sub)
		}
	case t.IsObjectType() || t.IsMapType():
		n.Kind = load.Struct
		e.addMembers(n, v, at, sh, path, depth)
	default:
		e.errorf("YT0101", n.Pos, path, "wrong type for %q: %s", path, t.FriendlyName())
		return nil
	}
	return n
}

func (e *evaluator) addMembers(n *load.Node, v cty.Value, at source, sh conform.Shape, path string, depth int) {
	t := e.tableOf(sh)
	from := e.listLiteralMembers(at)
	for it := v.ElementIterator(); it.Next(); {
		key, item := it.Element()
		name := key.AsString()
		origin, ok := from[name]
		if !ok {
			origin = e.computedMember(at, n.Pos)
		}
		f, ok := t.findField(name)
		if !ok {
			e.addNonFatal(t.newUnknownField(origin.pos, path, name))
			continue
		}
		sub := load.PathOf(path, f.name)
		if value := e.buildNode(item, origin.source, f.shape, sub, depth+1); value != nil {
			if n.Get(f.name) != nil {
				e.errorf("YT0105", origin.pos, sub, "%q is given twice", name)
				continue
			}
			n.Fields = append(n.Fields, load.Field{Name: f.name, Pos: origin.pos, Value: value})
		}
	}
}

// maxDigits limits numbers, in bits: HCL's arithmetic is not exact beyond it, and printing
// a larger number could use all memory.
const maxDigits = 512

func (e *evaluator) setNumber(n *load.Node, v cty.Value, path string) *load.Node {
	b := v.AsBigFloat()
	if b.IsInf() || b.MantExp(nil) > maxDigits {
		e.errorf("YT0106", n.Pos, path, "the number is too large")
		return nil
	}
	switch {
	case b.Sign() == 0:
		n.Kind, n.Text = load.Int, "0"
	case b.IsInt():
		n.Kind, n.Text = load.Int, b.Text('f', 0)
	default:
		f, _ := b.Float64()
		n.Kind, n.Text = load.Number, load.Decimal(f)
	}
	return n
}
