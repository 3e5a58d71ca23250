package conform

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yoctune/yoctune/compiler/language/load"
)

// describeValues describes the accepted values of a shape.
func (s *Schema) describeValues(sh *shape) string {
	switch sh.op {
	case basic:
		switch sh.kind {
		case load.String:
			return "text"
		case load.Int:
			return "an integer"
		case load.Number:
			return "a number"
		case load.Bool:
			return "true or false"
		}
	case exactly:
		return sh.literal.Show()
	case bound:
		return fmt.Sprintf("a number %s %d", sh.rel, sh.number)
	case matches:
		return "text that matches " + sh.text
	case maxRunes:
		return fmt.Sprintf("text of at most %d characters", sh.number)
	case minRunes:
		return fmt.Sprintf("text of at least %d characters", sh.number)
	case all:
		return s.describeBounds(sh)
	case either:
		parts := make([]string, 0, len(sh.parts))
		literals := true
		for _, p := range sh.parts {
			literals = literals && p.op == exactly
			parts = append(parts, s.describeValues(p))
		}
		if literals {
			return strings.Join(parts, " | ")
		}
		return strings.Join(parts, ", or ")
	case list:
		return "a list, each element " + s.describeValues(sh.elem)
	case object:
		if names := fieldNames(sh.obj); len(names) > 0 && len(names) < 5 {
			return "a struct of " + strings.Join(names, ", ")
		}
		return "a struct"
	case named:
		d := s.def(sh.def)
		if d.value.op == object {
			return "a struct, " + sh.def
		}
		if describesForm(d.doc) {
			return d.doc
		}
		return s.describeValues(d.value)
	}
	return "any value"
}

// describesForm reports whether the comment of a definition describes how a value is written. A
// sentence is about what the value does.
func describesForm(doc string) bool {
	first, _ := utf8.DecodeRuneInString(doc)
	return unicode.IsLower(first)
}

func fieldNames(obj *structure) []string {
	var names []string
	for _, f := range obj.fields {
		names = append(names, f.name)
	}
	return names
}

// describeBounds joins a kind and its bounds: "an integer from 0 to 99".
func (s *Schema) describeBounds(sh *shape) string {
	low, high, kind := "", "", ""
	var rest []string
	for _, p := range sh.parts {
		switch {
		case p.op == bound && p.rel == ">=":
			low = fmt.Sprint(p.number)
		case p.op == bound && p.rel == "<=":
			high = fmt.Sprint(p.number)
		case p.op == basic:
			kind = s.describeValues(p)
		default:
			rest = append(rest, s.describeValues(p))
		}
	}
	switch {
	case low != "" && high != "":
		kind += " from " + low + " to " + high
	case low != "":
		kind += ", at least " + low
	case high != "":
		kind += ", at most " + high
	}
	if kind != "" {
		rest = append([]string{kind}, rest...)
	}
	return strings.TrimSpace(strings.Join(rest, ", "))
}

// Doc describes a field of the language.
type Doc struct {
	Path     string   `json:"path"`
	Text     string   `json:"text"`
	Expected string   `json:"expected"`
	See      string   `json:"see"`
	Fields   []string `json:"fields,omitempty"` // of a struct
}

// Describe finds the field at a path of the configuration, such as targets, line-camera,
// cpu, governor.
func (s *Schema) Describe(path []string) (Doc, bool) {
	sh := &shape{op: named, def: "#Config"}
	def := sh.def
	doc := Doc{}
	for _, name := range path {
		if sh.op == named {
			def = sh.def
		}
		v := s.viewOf(sh)
		if v == nil {
			return doc, false
		}
		if m := v.member(name); m != nil {
			sh, doc.Text, doc.See = m.value, m.doc, seeSchema(def)
			continue
		}
		if len(v.patterns) == 0 {
			return doc, false
		}
		sh = v.patterns[0].value
		if sh.op == named {
			doc.Text, doc.See = s.def(sh.def).doc, seeSchema(sh.def)
		}
	}
	doc.Path = strings.Join(path, ".")
	doc.Expected = s.describeValues(sh)
	if v := s.viewOf(sh); v != nil {
		for _, m := range v.fields {
			doc.Fields = append(doc.Fields, m.name)
		}
	}
	return doc, true
}

func (s *Schema) structOf(sh *shape) *structure {
	switch sh.op {
	case named:
		return s.structOf(s.def(sh.def).value)
	case object:
		return sh.obj
	case either, all:
		for _, p := range sh.parts {
			if st := s.structOf(p); st != nil {
				return st
			}
		}
	}
	return nil
}

// viewOf returns the struct of a shape with every branch; nil for another shape.
func (s *Schema) viewOf(sh *shape) *view {
	st := s.structOf(sh)
	if st == nil {
		return nil
	}
	return s.gather(st, func(branch) bool { return true })
}

// FieldsOf lists the fields of a definition such as "#CPU", those of every branch
// included. open reports whether the names of other fields may match a pattern.
func (s *Schema) FieldsOf(def string) (fields map[string]bool, open, known bool) {
	d := s.def(def)
	if d == nil {
		return nil, false, false
	}
	v := s.viewOf(d.value)
	if v == nil {
		return nil, false, false
	}
	fields = map[string]bool{}
	for _, m := range v.fields {
		fields[m.name] = true
	}
	return fields, len(v.patterns) > 0, true
}
