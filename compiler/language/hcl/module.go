package hcl

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/plan"
)

// module is a folder of HCL files with its own names.
type module struct {
	ev      *evaluator
	dir     string // below the project's folder
	parent  *module
	bodies  []*hclsyntax.Body
	vars    map[string]*variable
	locals  map[string]*value
	outputs map[string]*value
	calls   map[string]*call
}

// value is a lazily computed expression.
type value struct {
	name  string // as a configuration writes it: local.quiet
	expr  hclsyntax.Expression
	in    *module // whose names the expression uses
	state state
	v     cty.Value
}

type state int

const (
	untouched state = iota
	computing
	computed
	failed
)

// addVariable is an input of a module; the caller gives its value.
type variable struct {
	value          // the default, or what the caller gave
	pos   position // of the declaration
	typ   cty.Type
	text  *string // given on the command line
}

type position = plan.Position

// call is a module block.
type call struct {
	name   string
	block  *hclsyntax.Block
	source hclsyntax.Expression
	module *module // once opened
	state  state
}

// declare collects the names that a file defines.
func (m *module) declare(body *hclsyntax.Body) bool {
	ok := true
	for _, b := range body.Blocks {
		switch b.Type {
		case "locals":
			ok = m.checkLabels(b, 0) && ok
			for _, a := range attributes(b.Body) {
				if old := m.locals[a.Name]; old != nil {
					ok = m.reportTwice("local."+a.Name, m.ev.startOf(a.NameRange), m.ev.startOf(old.expr.Range()))
					continue
				}
				m.locals[a.Name] = &value{name: "local." + a.Name, expr: a.Expr, in: m}
			}
			ok = m.refuseBlocks(b) && ok
		case "variable":
			ok = m.checkLabels(b, 1) && m.addVariable(b) && ok
		case "output":
			ok = m.checkLabels(b, 1) && m.addOutput(b) && ok
		case "module":
			ok = m.checkLabels(b, 1) && m.call(b) && ok
		}
	}
	return ok
}

func (m *module) checkLabels(b *hclsyntax.Block, want int) bool {
	if len(b.Labels) == want {
		return true
	}
	message, help := "has no label", "write "+b.Type+" { … }"
	if want == 1 {
		message, help = "has one label, its name", "write "+b.Type+" \"NAME\" { … }"
	}
	m.ev.add(diag.Diagnostic{ID: "YT0001", Pos: m.ev.startOf(b.TypeRange), Message: fmt.Sprintf("block %q %s", b.Type, message), Help: help})
	return false
}

// refuseBlocks refuses nested blocks.
func (m *module) refuseBlocks(b *hclsyntax.Block) bool {
	for _, inner := range b.Body.Blocks {
		m.ev.add(diag.Diagnostic{ID: "YT0102", Pos: m.ev.startOf(inner.TypeRange), Message: fmt.Sprintf("block %q is not allowed in %s", inner.Type, b.Type),
			Help: "write it as an attribute: " + inner.Type + " = { … }"})
	}
	return len(b.Body.Blocks) == 0
}

// reportTwice reports a name with two definitions and returns false.
func (m *module) reportTwice(name string, here, there position) bool {
	m.ev.add(diag.Diagnostic{ID: "YT0105", Pos: here, Message: name + " is defined twice",
		Related: []diag.Related{{Pos: there, Message: "the other definition"}}, Help: "keep one of them"})
	return false
}

// checkObjects refuses objects in which a key is written twice: HCL takes the last of them.
func (m *module) checkObjects(body *hclsyntax.Body) bool {
	sound := true
	_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics { // the visitor returns none
		object, ok := n.(*hclsyntax.ObjectConsExpr)
		if !ok {
			return nil
		}
		first := map[string]hcl.Range{}
		for _, item := range object.Items {
			key, diags := item.KeyExpr.Value(nil)
			if diags.HasErrors() || !key.IsKnown() || key.IsNull() || key.Type() != cty.String {
				continue // computed
			}
			name := key.AsString()
			if there, twice := first[name]; twice {
				m.reportClash(m.ev.startOf(item.KeyExpr.Range()), m.ev.startOf(there), strconv.Quote(name))
				sound = false
				continue
			}
			first[name] = item.KeyExpr.Range()
		}
		return nil
	})
	return sound
}

// checkAttributes refuses attributes of a block that are not among the allowed.
func (m *module) checkAttributes(b *hclsyntax.Block, allowed ...string) bool {
	ok := m.refuseBlocks(b)
	for _, a := range attributes(b.Body) {
		if !slices.Contains(allowed, a.Name) {
			m.ev.add(diag.Diagnostic{ID: "YT0102", Pos: m.ev.startOf(a.NameRange), Message: fmt.Sprintf("unknown field %q of a %s", a.Name, b.Type), Help: diag.DidYouMean(a.Name, allowed)})
			ok = false
		}
	}
	return ok
}

func (m *module) addVariable(b *hclsyntax.Block) bool {
	name := b.Labels[0]
	if old := m.vars[name]; old != nil {
		return m.reportTwice("variable "+name, m.ev.startOf(b.LabelRanges[0]), old.pos)
	}
	v := &variable{pos: m.ev.startOf(b.TypeRange), typ: cty.DynamicPseudoType, value: value{name: "var." + name, in: m}}
	m.vars[name] = v
	ok := m.checkAttributes(b, "type", "default", "description")
	if a := b.Body.Attributes["type"]; a != nil {
		typ, diags := typeexpr.TypeConstraint(a.Expr)
		m.ev.report(diags, true)
		if diags.HasErrors() {
			return false
		}
		v.typ = typ
	}
	if a := b.Body.Attributes["default"]; a != nil {
		v.expr = a.Expr
	}
	return ok
}

func (m *module) addOutput(b *hclsyntax.Block) bool {
	name := b.Labels[0]
	ok := m.checkAttributes(b, "value", "description")
	a := b.Body.Attributes["value"]
	if a == nil {
		m.ev.add(diag.Diagnostic{ID: "YT0104", Pos: m.ev.startOf(b.TypeRange), Message: `"value" is missing`, Help: "an output gives a value to the module's callers: value = …"})
		return false
	}
	if old := m.outputs[name]; old != nil {
		return m.reportTwice("output "+name, m.ev.startOf(b.LabelRanges[0]), m.ev.startOf(old.expr.Range()))
	}
	m.outputs[name] = &value{name: "output " + name, expr: a.Expr, in: m}
	return ok
}

func (m *module) call(b *hclsyntax.Block) bool {
	name := b.Labels[0]
	ok := m.refuseBlocks(b)
	if old := m.calls[name]; old != nil {
		return m.reportTwice("module "+name, m.ev.startOf(b.LabelRanges[0]), m.ev.startOf(old.block.LabelRanges[0]))
	}
	a := b.Body.Attributes["source"]
	if a == nil {
		m.ev.add(diag.Diagnostic{ID: "YT0104", Pos: m.ev.startOf(b.TypeRange), Message: `"source" is missing`, Help: "name the module's folder: source = \"./modules/network\""})
		return false
	}
	m.calls[name] = &call{name: name, block: b, source: a.Expr}
	return ok
}

// setVariables sets variables from the command line.
func (m *module) setVariables(vars map[string]string, shared bool) {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		text := vars[name]
		if v := m.vars[name]; v != nil {
			v.text = &text
			continue
		}
		if shared {
			continue
		}
		m.ev.add(diag.Diagnostic{ID: "YT0005", Message: fmt.Sprintf("no variable is called %q", name), Help: diag.DidYouMean(name, slices.Sorted(maps.Keys(m.vars)))})
	}
}

// roots evaluates the files of a module and of the modules it calls.
func (m *module) roots() []*load.Node {
	var roots []*load.Node
	for _, b := range m.bodies {
		roots = append(roots, m.convertBody(b, m.ev.lang.Root(), "", true))
	}
	for _, name := range slices.Sorted(maps.Keys(m.calls)) {
		if inner := m.open(m.calls[name]); inner != nil {
			roots = append(roots, inner.roots()...)
		}
	}
	// Everything that was written is computed, used or not: a mistake in a local
	// shows when it is made, not when it is first used.
	for _, name := range slices.Sorted(maps.Keys(m.locals)) {
		m.ev.computeValue(m.locals[name])
	}
	return roots
}

// open parses the module of a call, once.
func (m *module) open(c *call) *module {
	e := m.ev
	switch c.state {
	case computed:
		return c.module
	case failed:
		return nil
	}
	c.state = failed
	at := e.startOf(c.source.Range())
	refuse := func(id, message, help string) *module {
		e.incomplete = true
		e.add(diag.Diagnostic{ID: id, Pos: at, Message: message, Help: help})
		return nil
	}
	src, ok := m.eval(c.source)
	if !ok {
		return nil
	}
	if src.IsNull() || src.Type() != cty.String {
		return refuse("YT0101", `wrong type for "source"`, "name the module's folder: source = \"./modules/network\"")
	}
	source := src.AsString()
	const help = "a module is a folder below the project: source = \"./modules/network\""
	if !strings.HasPrefix(source, "./") && !strings.HasPrefix(source, "../") {
		return refuse("YT0003", fmt.Sprintf("module source %q is not allowed", source), help)
	}
	dir := path.Join(m.dir, source)
	if !fs.ValidPath(dir) {
		return refuse("YT0003", fmt.Sprintf("module source %q leads out of the project", source), help)
	}
	for up := m; up != nil; up = up.parent {
		if up.dir == dir {
			return refuse("YT0108", fmt.Sprintf("module %q contains itself", source), "remove one of the modules of the cycle")
		}
	}
	if e.modules++; e.modules > maxModules {
		return refuse("YT0006", fmt.Sprintf("the configuration calls more than %d modules", maxModules), "")
	}
	if e.prog.Root == nil {
		return refuse("YT0003", "modules need a folder, and this configuration has none", "")
	}
	files, err := e.readFolder(dir)
	if err != nil {
		return refuse("YT0003", fmt.Sprintf("module %q cannot be read: %v", source, load.WithoutPath(err)), help)
	}
	if len(files) == 0 {
		return refuse("YT0003", fmt.Sprintf("module %q has no %s file", source, Extension), help)
	}
	inner := e.parseModule(dir, files)
	if inner == nil {
		return nil
	}
	inner.parent = m
	for _, a := range attributes(c.block.Body) {
		if a.Name == "source" {
			continue
		}
		v := inner.vars[a.Name]
		if v == nil {
			e.add(diag.Diagnostic{ID: "YT0102", Pos: e.startOf(a.NameRange), Message: fmt.Sprintf("module %q has no variable %q", c.name, a.Name),
				Help: diag.DidYouMean(a.Name, slices.Sorted(maps.Keys(inner.vars)))})
			continue
		}
		v.expr, v.in = a.Expr, m
	}
	c.module, c.state = inner, computed
	return inner
}

// attributes lists the attributes of a body in source order.
func attributes(b *hclsyntax.Body) []*hclsyntax.Attribute {
	list := slices.Collect(maps.Values(b.Attributes))
	slices.SortFunc(list, func(a, b *hclsyntax.Attribute) int { return a.SrcRange.Start.Byte - b.SrcRange.Start.Byte })
	return list
}
