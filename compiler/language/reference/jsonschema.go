package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// dialect is the JSON Schema dialect that [Reference.JSONSchema] writes: closed
// structs with fields that depend on another one need unevaluatedProperties.
const dialect = "https://json-schema.org/draft/2020-12/schema"

type object = map[string]any

// JSONSchema writes the language as a JSON Schema: of a configuration as `cue
// export` prints it. The error wraps [errSchema].
func (r *Reference) JSONSchema() ([]byte, error) {
	return r.JSONSchemaOf(r.byName["#Config"])
}

// JSONSchemaOf writes the JSON Schema of one definition.
func (r *Reference) JSONSchemaOf(root *Definition) ([]byte, error) {
	defs := object{}
	for _, d := range r.Definitions {
		s, err := r.documented(d.Struct, d.Value, d.Doc)
		if err != nil {
			return nil, fmt.Errorf("%w: %s:%d: %w", errSchema, d.File, d.Line, err)
		}
		defs[strings.TrimPrefix(d.Name, "#")] = s
	}
	title := "yoctune configuration"
	if root.Name != "#Config" {
		title += ": " + root.Name
	}
	out := object{"$schema": dialect, "title": title, "$ref": "#/$defs/" + strings.TrimPrefix(root.Name, "#"), "$defs": defs}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(out); err != nil {
		return nil, fmt.Errorf("%w: %w", errSchema, err)
	}
	return b.Bytes(), nil
}

// structure writes a closed struct. Embedded definitions are written out: a
// reference to one would close the struct before its other fields.
func (r *Reference) structure(st *Struct) (object, error) {
	s := object{"type": "object"}
	if err := r.fill(s, st, "unevaluatedProperties"); err != nil {
		return nil, err
	}
	return s, nil
}

func (r *Reference) fill(s object, st *Struct, closed string) error {
	properties := object{}
	var required []string
	conditions := map[string]*Struct{}
	var order []*Field
	open := false
	for _, f := range r.allFields(st) {
		switch {
		case f.When != "":
			if conditions[f.When] == nil {
				conditions[f.When] = &Struct{}
				order = append(order, f)
			}
			c := conditions[f.When]
			if f.Name == "" && f.Pattern == nil {
				c.Embeds = append(c.Embeds, source(f.Value))
				continue
			}
			plain := *f
			plain.When = ""
			c.Fields = append(c.Fields, &plain)
		case f.Pattern != nil:
			names, err := r.schema(f.Pattern)
			if err != nil {
				return err
			}
			value, err := r.documented(f.Inner, f.Value, f.Doc)
			if err != nil {
				return err
			}
			s["propertyNames"], s["additionalProperties"] = names, value
			open = true
		default:
			value, err := r.documented(f.Inner, f.Value, f.Doc)
			if err != nil {
				return err
			}
			properties[f.Name] = value
			if f.Required {
				required = append(required, f.Name)
			}
		}
	}
	if len(properties) > 0 {
		s["properties"] = properties
	}
	if len(required) > 0 {
		s["required"] = required
	}
	var all []any
	for _, f := range order {
		then := object{}
		if err := r.fill(then, conditions[f.When], ""); err != nil {
			return err
		}
		all = append(all, object{
			"if":   object{"properties": object{f.field: object{"const": f.value}}, "required": []string{f.field}},
			"then": then,
		})
	}
	if len(all) > 0 {
		s["allOf"] = all
	}
	if closed != "" && !open {
		s[closed] = false
	}
	return nil
}

// allFields lists the fields of a struct with those of what it embeds.
func (r *Reference) allFields(st *Struct) []*Field {
	out := append([]*Field{}, st.Fields...)
	for _, e := range st.Embeds {
		if d := r.byName[e]; d != nil && d.Struct != nil {
			out = append(out, r.allFields(d.Struct)...)
		}
	}
	return out
}

// documented writes a struct, or the value of anything else, with its comment.
func (r *Reference) documented(st *Struct, value ast.Expr, doc string) (object, error) {
	var s object
	var err error
	if st != nil {
		s, err = r.structure(st)
	} else {
		s, err = r.schema(value)
	}
	if err == nil && doc != "" {
		s["description"] = doc
	}
	return s, err
}

func (r *Reference) schema(e ast.Expr) (object, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return r.schema(e.X)
	case *ast.Ident:
		return r.ident(e)
	case *ast.BasicLit:
		return constant(e, "")
	case *ast.UnaryExpr:
		return unary(e)
	case *ast.BinaryExpr:
		return r.binary(e)
	case *ast.CallExpr:
		return call(e)
	case *ast.ListLit:
		if len(e.Elts) == 1 {
			if el, ok := e.Elts[0].(*ast.Ellipsis); ok && el.Type != nil {
				items, err := r.schema(el.Type)
				return object{"type": "array", "items": items}, err
			}
		}
	case *ast.StructLit:
		st, err := readStruct(e)
		if err != nil {
			return nil, err
		}
		return r.structure(st)
	}
	return nil, fmt.Errorf("%s: cannot be written as JSON Schema", source(e))
}

func (r *Reference) ident(e *ast.Ident) (object, error) {
	switch e.Name {
	case "_":
		return object{}, nil
	case "int":
		return object{"type": "integer"}, nil
	case "number":
		return object{"type": "number"}, nil
	case "string":
		return object{"type": "string"}, nil
	case "bool":
		return object{"type": "boolean"}, nil
	case "true", "false":
		return object{"const": e.Name == "true"}, nil
	}
	if r.byName[e.Name] == nil {
		return nil, fmt.Errorf("%s does not exist", e.Name)
	}
	return object{"$ref": "#/$defs/" + strings.TrimPrefix(e.Name, "#")}, nil
}

func constant(e *ast.BasicLit, sign string) (object, error) {
	switch e.Kind {
	case token.STRING:
		text, err := literal.Unquote(e.Value)
		return object{"const": text}, err
	case token.INT:
		n, err := strconv.ParseInt(sign+e.Value, 10, 64)
		return object{"const": n}, err
	case token.TRUE, token.FALSE:
		return object{"const": e.Kind == token.TRUE}, nil
	case token.NULL:
		return object{"type": "null"}, nil
	}
	return nil, fmt.Errorf("literal %s", e.Value)
}

func unary(e *ast.UnaryExpr) (object, error) {
	x, sign := e.X, ""
	if u, ok := x.(*ast.UnaryExpr); ok && u.Op == token.SUB {
		x, sign = u.X, "-"
	}
	lit, ok := x.(*ast.BasicLit)
	if !ok {
		return nil, fmt.Errorf("operand of %s is not a literal", e.Op)
	}
	keyword := map[token.Token]string{
		token.GEQ: "minimum", token.LEQ: "maximum", token.GTR: "exclusiveMinimum", token.LSS: "exclusiveMaximum",
	}[e.Op]
	switch {
	case e.Op == token.SUB:
		return constant(lit, "-")
	case keyword != "":
		n, err := strconv.ParseInt(sign+lit.Value, 10, 64)
		return object{"type": "number", keyword: n}, err
	case e.Op == token.MAT:
		text, err := literal.Unquote(lit.Value)
		return object{"type": "string", "pattern": text}, err
	}
	return nil, fmt.Errorf("operator %s", e.Op)
}

func call(e *ast.CallExpr) (object, error) {
	keyword := map[string]string{"strings.MaxRunes": "maxLength", "strings.MinRunes": "minLength"}[source(e.Fun)]
	if keyword == "" || len(e.Args) != 1 {
		return nil, fmt.Errorf("call of %s", source(e.Fun))
	}
	n, err := strconv.Atoi(source(e.Args[0]))
	return object{"type": "string", keyword: n}, err
}

func (r *Reference) binary(e *ast.BinaryExpr) (object, error) {
	x, err := r.schema(e.X)
	if err != nil {
		return nil, err
	}
	y, err := r.schema(e.Y)
	if err != nil {
		return nil, err
	}
	switch e.Op {
	case token.AND:
		return mergeSchemas(x, y), nil
	case token.OR:
		return makeAlternatives(x, y), nil
	}
	return nil, fmt.Errorf("operator %s", e.Op)
}

// mergeSchemas joins two schemas: in one object where their keywords are distinct.
func mergeSchemas(x, y object) object {
	out := object{}
	for k, v := range x {
		out[k] = v
	}
	for k, v := range y {
		was, ok := out[k]
		switch {
		case !ok, was == v:
			out[k] = v
		case k == "type" && (was == "integer" && v == "number" || was == "number" && v == "integer"):
			out[k] = "integer"
		default:
			return object{"allOf": []any{x, y}}
		}
	}
	return out
}

// makeAlternatives makes alternatives: an enum of constants, otherwise anyOf.
func makeAlternatives(x, y object) object {
	if a, ok := constants(x); ok {
		if b, ok := constants(y); ok {
			return object{"enum": append(append([]any{}, a...), b...)}
		}
	}
	return object{"anyOf": append(alternatives(x), alternatives(y)...)}
}

func constants(s object) ([]any, bool) {
	if c, ok := s["const"]; ok && len(s) == 1 {
		return []any{c}, true
	}
	if e, ok := s["enum"].([]any); ok && len(s) == 1 {
		return e, true
	}
	return nil, false
}

func alternatives(s object) []any {
	if a, ok := s["anyOf"].([]any); ok && len(s) == 1 {
		return a
	}
	return []any{s}
}
