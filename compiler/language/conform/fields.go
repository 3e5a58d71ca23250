package conform

import (
	"slices"

	"github.com/yoctune/yoctune/compiler/language/load"
)

// Shape is what the language accepts at one place, as far as a front end needs it: which
// names are the language's own and which are the user's. The zero value accepts
// anything. Shapes can be compared and used as keys.
type Shape struct {
	s  *Schema
	sh *shape
}

// FieldShape is a field of a struct of the language.
type FieldShape struct {
	Name  string
	Shape Shape
}

// Root is the shape of a whole configuration.
func (s *Schema) Root() Shape {
	return Shape{s, s.def("#Config").value}
}

// Fields lists the fields of a struct, those of every branch included; none for
// a map or a scalar.
func (x Shape) Fields() []FieldShape {
	v := x.view()
	if v == nil {
		return nil
	}
	fields := make([]FieldShape, 0, len(v.fields))
	for _, m := range v.fields {
		fields = append(fields, FieldShape{m.name, Shape{x.s, m.value}})
	}
	return fields
}

// Values is the shape of a map's values; false when the shape is not a map.
func (x Shape) Values() (Shape, bool) {
	v := x.view()
	if v == nil || len(v.fields) > 0 || len(v.patterns) == 0 {
		return Shape{}, false
	}
	return Shape{x.s, v.patterns[0].value}, true
}

// IsStruct reports whether a struct or a map is accepted.
func (x Shape) IsStruct() bool { return x.view() != nil }

// Items is the shape of a list's elements; the zero value when the shape is not
// a list.
func (x Shape) Items() Shape {
	for sh := x.sh; sh != nil; {
		switch sh.op {
		case named:
			sh = x.s.def(sh.def).value
		case list:
			return Shape{x.s, sh.elem}
		default:
			return Shape{}
		}
	}
	return Shape{}
}

// TakesText reports whether text of some form is accepted.
func (x Shape) TakesText() bool { return x.sh != nil && x.s.takesText(x.sh) }

func (s *Schema) takesText(sh *shape) bool {
	switch sh.op {
	case anything, matches, maxRunes, minRunes:
		return true
	case basic:
		return sh.kind == load.String
	case exactly:
		return sh.literal.Kind == load.String
	case named:
		d := s.def(sh.def)
		return d != nil && s.takesText(d.value)
	case either:
		return slices.ContainsFunc(sh.parts, s.takesText)
	case all:
		return !slices.ContainsFunc(sh.parts, func(p *shape) bool { return !s.takesText(p) })
	}
	return false
}

// TakesNull reports whether null is a value here. Elsewhere it means that the field is absent.
func (x Shape) TakesNull() bool { return x.sh != nil && x.s.takesNull(x.sh) }

func (s *Schema) takesNull(sh *shape) bool {
	switch sh.op {
	case exactly:
		return sh.literal.Kind == load.Null
	case named:
		d := s.def(sh.def)
		return d != nil && s.takesNull(d.value)
	case either:
		return slices.ContainsFunc(sh.parts, s.takesNull)
	}
	return false
}

// Literals lists the values that are accepted where they are a choice: words, and true and false.
func (x Shape) Literals() []*load.Node {
	if x.sh == nil {
		return nil
	}
	return x.s.literals(x.sh)
}

func (s *Schema) literals(sh *shape) []*load.Node {
	switch sh.op {
	case exactly:
		return []*load.Node{sh.literal}
	case basic:
		if sh.kind == load.Bool {
			return []*load.Node{{Kind: load.Bool, True: true}, {Kind: load.Bool}}
		}
	case named:
		if d := s.def(sh.def); d != nil {
			return s.literals(d.value)
		}
	case either:
		var found []*load.Node
		for _, p := range sh.parts {
			found = append(found, s.literals(p)...)
		}
		return found
	}
	return nil
}

// Doc is the comment above a field of a struct.
func (x Shape) Doc(field string) string {
	if v := x.view(); v != nil {
		if m := v.member(field); m != nil {
			return m.doc
		}
	}
	return ""
}

// Expected describes the accepted values.
func (x Shape) Expected() string {
	if x.sh == nil {
		return ""
	}
	return x.s.describeValues(x.sh)
}

func (x Shape) view() *view {
	if x.sh == nil {
		return nil
	}
	return x.s.viewOf(x.sh)
}
