package hcl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/yoctune/yoctune/compiler/diag"
)

// eval computes an expression with the names of a module. It computes references first;
// failures are reported once, at their position.
func (m *module) eval(expr hclsyntax.Expression) (cty.Value, bool) {
	e := m.ev
	ctx := &hcl.EvalContext{Functions: e.functions}
	needs := expr.Variables()
	if len(needs) > 0 {
		spaces := map[string]map[string]cty.Value{}
		for _, t := range needs {
			if !m.resolveReference(t, spaces) {
				return cty.DynamicVal, false
			}
		}
		ctx.Variables = map[string]cty.Value{}
		for name, members := range spaces {
			ctx.Variables[name] = cty.ObjectVal(members)
		}
	}
	v, diags := expr.Value(ctx)
	e.report(diags, false)
	if diags.HasErrors() {
		return cty.DynamicVal, false
	}
	if !v.IsWhollyKnown() {
		e.errorf("YT0107", e.startOf(expr.Range()), "", "the value is not decided")
		return cty.DynamicVal, false
	}
	return v, true
}

// resolveReference computes the value of a reference such as local.quiet.thp.
func (m *module) resolveReference(t hcl.Traversal, spaces map[string]map[string]cty.Value) bool {
	root, name, at := t.RootName(), "", t.SourceRange()
	if len(t) > 1 {
		name = stepName(t[1])
	}
	var known []string
	var compute func() (cty.Value, bool) // nil for a name that is not defined
	switch root {
	case "var":
		known = slices.Sorted(maps.Keys(m.vars))
		if v := m.vars[name]; v != nil {
			compute = func() (cty.Value, bool) { return m.ev.computeVariable(v) }
		}
	case "local":
		known = slices.Sorted(maps.Keys(m.locals))
		if v := m.locals[name]; v != nil {
			compute = func() (cty.Value, bool) { return m.ev.computeValue(v) }
		}
	case "module":
		known = slices.Sorted(maps.Keys(m.calls))
		if c := m.calls[name]; c != nil {
			compute = func() (cty.Value, bool) { return m.ev.computeOutputs(m, c) }
		}
	default:
		m.ev.add(diag.Diagnostic{ID: "YT0005", Pos: m.ev.startOf(at), Message: fmt.Sprintf("the name %q is not defined", root),
			Help: "quote it to make it a string; variables are var.NAME, locals local.NAME"})
		return false
	}
	if compute == nil {
		d := diag.Diagnostic{ID: "YT0005", Pos: m.ev.startOf(at), Message: fmt.Sprintf("%s.%s is not defined", root, name), Help: diag.DidYouMean(name, known)}
		if name == "" {
			d.Message = fmt.Sprintf("%s is not a value: name one of its members", root)
		}
		m.ev.add(d)
		return false
	}
	v, ok := compute()
	if !ok {
		return false
	}
	if spaces[root] == nil {
		spaces[root] = map[string]cty.Value{}
	}
	spaces[root][name] = v
	return true
}

// stepName returns the name in a step of a reference: .quiet or ["quiet"].
func stepName(step hcl.Traverser) string {
	switch s := step.(type) {
	case hcl.TraverseAttr:
		return s.Name
	case hcl.TraverseIndex:
		if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
			return s.Key.AsString()
		}
	}
	return ""
}

// computeValue returns the value of a local or an output.
func (e *evaluator) computeValue(v *value) (cty.Value, bool) {
	switch v.state {
	case computed:
		return v.v, true
	case failed:
		return cty.DynamicVal, false
	case computing:
		e.add(diag.Diagnostic{ID: "YT0108", Pos: e.startOf(v.expr.Range()), Message: v.name + " depends on itself",
			Help: "give one of the names in the cycle a concrete value"})
		return cty.DynamicVal, false
	}
	v.state = computing
	result, ok := v.in.eval(v.expr)
	if !ok {
		v.state = failed
		return cty.DynamicVal, false
	}
	v.v, v.state = result, computed
	return result, true
}

// computeVariable returns the value of a variable: from the command line, from the caller of
// the module, or the default.
func (e *evaluator) computeVariable(v *variable) (cty.Value, bool) {
	if v.state == computed {
		return v.v, true
	}
	if v.state == failed {
		return cty.DynamicVal, false
	}
	at := v.pos
	var result cty.Value
	switch {
	case v.text != nil:
		result = cty.StringVal(*v.text)
		if !v.typ.IsPrimitiveType() && v.typ != cty.DynamicPseudoType {
			expr, diags := hclsyntax.ParseExpression([]byte(*v.text), "--"+v.name, hcl.InitialPos)
			var more hcl.Diagnostics
			if !diags.HasErrors() {
				result, more = expr.Value(nil)
				diags = append(diags, more...)
			}
			if diags.HasErrors() {
				v.state = failed
				e.add(diag.Diagnostic{ID: "YT0101", Pos: at, Message: fmt.Sprintf("%s is given as %q, which is not a value of its type", v.name, *v.text), Help: "write it as in a file, such as --var 'cores=[4, 5]'"})
				return cty.DynamicVal, false
			}
		}
	case v.expr != nil:
		var ok bool
		at = e.startOf(v.expr.Range())
		if result, ok = e.computeValue(&v.value); !ok {
			return cty.DynamicVal, false
		}
	default:
		v.state = failed
		e.add(diag.Diagnostic{ID: "YT0107", Pos: at, Message: v.name + " has no value",
			Help: fmt.Sprintf("give one with --var %s=VALUE, where the module is called, or as its default", strings.TrimPrefix(v.name, "var."))})
		return cty.DynamicVal, false
	}
	converted, err := convert.Convert(result, v.typ)
	if err != nil {
		v.state = failed
		e.add(diag.Diagnostic{ID: "YT0101", Pos: at, Message: "wrong type for " + v.name, Expected: v.typ.FriendlyName(), Got: result.Type().FriendlyName(), Help: err.Error()})
		return cty.DynamicVal, false
	}
	v.v, v.state = converted, computed
	return converted, true
}

// computeOutputs returns the outputs of a module as an object.
func (e *evaluator) computeOutputs(m *module, c *call) (cty.Value, bool) {
	inner := m.open(c)
	if inner == nil {
		return cty.DynamicVal, false
	}
	members := map[string]cty.Value{}
	for name, out := range inner.outputs {
		v, ok := e.computeValue(out)
		if !ok {
			return cty.DynamicVal, false
		}
		members[name] = v
	}
	return cty.ObjectVal(members), true
}

// add reports an error that prevents evaluation.
func (e *evaluator) add(d diag.Diagnostic) {
	if e.quiet > 0 {
		return
	}
	e.incomplete = true
	e.addNonFatal(d)
}

// addNonFatal reports an error that does not prevent checking the rest.
func (e *evaluator) addNonFatal(d diag.Diagnostic) {
	d.Severity = diag.Error
	e.found = append(e.found, d)
}

func (e *evaluator) errorf(id string, pos position, path, format string, args ...any) {
	e.add(diag.Diagnostic{ID: id, Pos: pos, Path: path, Message: fmt.Sprintf(format, args...)})
}

// report converts HCL's diagnostics. Only this function depends on their wording.
func (e *evaluator) report(diags hcl.Diagnostics, parsing bool) {
	for _, h := range diags {
		if h.Severity != hcl.DiagError {
			continue
		}
		d := diag.Diagnostic{ID: "YT0100"}
		if parsing {
			d.ID = "YT0001"
		}
		if h.Subject != nil {
			d.Pos = e.startOf(*h.Subject)
		}
		cause, rest, _ := strings.Cut(strings.TrimSpace(h.Detail), ". ")
		rest, _, _ = strings.Cut(rest, "\n")
		d.Message = lowerFirst(h.Summary) + ": " + lowerFirst(strings.TrimSuffix(cause, "."))
		d.Help = lowerFirst(strings.TrimSuffix(rest, "."))
		switch h.Summary {
		case "Attribute redefined":
			d.ID, d.Help = "YT0105", "keep one of them"
			if i := strings.LastIndex(h.Detail, " at "); i >= 0 {
				file, place, _ := strings.Cut(h.Detail[i+4:], ":")
				other := position{File: file}
				if n, _ := fmt.Sscanf(place, "%d,%d", &other.Line, &other.Column); n == 2 {
					d.Related = []diag.Related{{Pos: other, Message: "the other definition"}}
				}
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(h.Detail, `The argument "`), `"`)
			d.Message = fmt.Sprintf("%q is given twice", name)
		case "Call to unknown function":
			d.ID = "YT0005"
			if d.Help == "" || isExternalFunction(h.Detail) {
				d.Help = "functions compute from their arguments alone; none of them reads files, the environment or the clock"
			}
		case "Unsupported attribute", "Unknown variable", "Invalid index":
			d.ID = "YT0005"
		case "Invalid type specification":
			d.ID = "YT0101"
		}
		e.add(d)
	}
}

// isExternalFunction reports whether a message is about a Terraform function that reads
// files, the environment or the clock. Suggesting a similar name would not help.
func isExternalFunction(detail string) bool {
	for _, name := range []string{"file", "fileexists", "fileset", "filebase64", "templatefile", "abspath", "pathexpand", "env", "get_env", "timestamp", "plantimestamp", "uuid", "bcrypt"} {
		if strings.Contains(detail, `function named "`+name+`"`) {
			return true
		}
	}
	return false
}

// lowerFirst changes the first letter of HCL's messages to lower case.
func lowerFirst(s string) string {
	if len(s) > 1 && s[0] >= 'A' && s[0] <= 'Z' && (s[1] < 'A' || s[1] > 'Z') {
		return string(s[0]-'A'+'a') + s[1:]
	}
	return s
}
