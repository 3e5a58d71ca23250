package hcl

import (
	"maps"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// maxHops limits the references followed to find where a value was written.
const maxHops = 64

// findOrigin follows an object or a list from its use to its literal, which has the positions
// of its members. It passes locals, variables, outputs, conditions and parentheses, and
// returns the last expression that it can reach.
func (e *evaluator) findOrigin(at source) source {
	for range maxHops {
		next, ok := e.selectBranch(at)
		if !ok {
			next, ok = e.followReference(at)
		}
		if !ok {
			break
		}
		at = next
	}
	return at
}

// followBranches returns the part of an expression that gives its value: the taken branch of
// a condition, or the content of parentheses.
func (e *evaluator) followBranches(at source) source {
	for range maxHops {
		next, ok := e.selectBranch(at)
		if !ok {
			break
		}
		at = next
	}
	return at
}

// selectBranch returns the content of parentheses or the taken branch of a condition. It
// reports false for other expressions and for conditions without a value.
func (e *evaluator) selectBranch(at source) (source, bool) {
	switch x := at.expr.(type) {
	case *hclsyntax.ParenthesesExpr:
		return source{x.Expression, at.m}, true
	case *hclsyntax.TemplateWrapExpr:
		return source{x.Wrapped, at.m}, true
	case *hclsyntax.ConditionalExpr:
		v, ok := e.evalQuietly(source{x.Condition, at.m})
		if !ok || v.IsNull() || v.Type() != cty.Bool {
			return at, false
		}
		if v.True() {
			return source{x.TrueResult, at.m}, true
		}
		return source{x.FalseResult, at.m}, true
	}
	return at, false
}

// followReference returns the expression that a reference or an index refers to.
func (e *evaluator) followReference(at source) (source, bool) {
	switch x := at.expr.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return e.followDefinition(at, x.Traversal)
	case *hclsyntax.IndexExpr:
		key, ok := e.evalQuietly(source{x.Key, at.m})
		if !ok {
			return at, false
		}
		return e.findElement(source{x.Collection, at.m}, key)
	}
	return at, false
}

// followDefinition finds the expression behind local.NAME, var.NAME or
// module.NAME.OUTPUT and walks down the rest of the reference.
func (e *evaluator) followDefinition(at source, t hcl.Traversal) (source, bool) {
	if len(t) < 2 {
		return at, false
	}
	name, rest := stepName(t[1]), t[2:]
	var def *value
	switch t.RootName() {
	case "local":
		def = at.m.locals[name]
	case "var":
		if v := at.m.vars[name]; v != nil && v.text == nil {
			def = &v.value
		}
	case "module":
		if c := at.m.calls[name]; c != nil && c.module != nil && len(rest) > 0 {
			def, rest = c.module.outputs[stepName(rest[0])], rest[1:]
		}
	}
	if def == nil || def.expr == nil {
		return at, false
	}
	to := source{def.expr, def.in}
	for _, s := range rest {
		var key cty.Value
		switch s := s.(type) {
		case hcl.TraverseAttr:
			key = cty.StringVal(s.Name)
		case hcl.TraverseIndex:
			key = s.Key
		default:
			return at, false
		}
		next, ok := e.findElement(to, key)
		if !ok {
			return at, false
		}
		to = next
	}
	return to, true
}

// findElement finds the member of an object or the element of a list.
func (e *evaluator) findElement(at source, key cty.Value) (source, bool) {
	at = e.findOrigin(at)
	if key.IsNull() {
		return at, false
	}
	if key.Type() == cty.String {
		m, ok := e.listLiteralMembers(at)[key.AsString()]
		return m.source, ok
	}
	tuple, ok := at.expr.(*hclsyntax.TupleConsExpr)
	if !ok || key.Type() != cty.Number {
		return at, false
	}
	i, _ := key.AsBigFloat().Int64()
	if i < 0 || i >= int64(len(tuple.Exprs)) {
		return at, false
	}
	return source{tuple.Exprs[i], at.m}, true
}

// member is a member of an object and where its name was written.
type member struct {
	source
	pos position
}

// computedMember returns the origin of members that are not written literally: the body of a
// for expression, or else the whole expression.
func (e *evaluator) computedMember(at source, pos position) member {
	o := e.findOrigin(at)
	x, ok := o.expr.(*hclsyntax.ForExpr)
	if !ok {
		return member{at, pos}
	}
	if x.KeyExpr != nil {
		pos = e.startOf(x.KeyExpr.Range())
	}
	return member{source{x.ValExpr, o.m}, pos}
}

// listLiteralMembers lists the literal members of an object by name: those of { … } and of
// merge(…), whose later arguments win.
func (e *evaluator) listLiteralMembers(at source) map[string]member {
	at = e.findOrigin(at)
	members := map[string]member{}
	switch x := at.expr.(type) {
	case *hclsyntax.ObjectConsExpr:
		for _, item := range x.Items {
			key, ok := e.evalQuietly(source{item.KeyExpr, at.m})
			if ok && !key.IsNull() && key.Type() == cty.String {
				members[key.AsString()] = member{source{item.ValueExpr, at.m}, e.startOf(item.KeyExpr.Range())}
			}
		}
	case *hclsyntax.FunctionCallExpr:
		if x.Name != "merge" || x.ExpandFinal {
			return nil
		}
		for _, arg := range x.Args {
			maps.Copy(members, e.listLiteralMembers(source{arg, at.m}))
		}
	}
	return members
}

// evalQuietly evaluates an expression only to find positions, without reporting failures.
func (e *evaluator) evalQuietly(at source) (cty.Value, bool) {
	e.quiet++
	defer func() { e.quiet-- }()
	return at.m.eval(at.expr)
}
