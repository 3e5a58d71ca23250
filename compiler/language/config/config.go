// Package config holds a configuration as Go values: a struct for every struct of
// schema/*.cue, whose fields keep the position where they were written.
//
// language.go is generated from the schema. Decoding cannot fail: package conform
// has checked the values before, and what does not fit its field counts as empty.
// Decoded values are never changed.
package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/plan"
)

// Place is a part of the configuration: a value that was written, or the place
// where an absent one would stand. Every type of this package embeds it.
type Place struct {
	node   *load.Node     // nil when absent
	key    *plan.Position // of the label; nil for elements of lists
	parent *Place         // nil for a root
	name   string         // of the field; a root's path
}

// Part is anything that has a place: every type of this package.
type Part interface{ Where() Place }

// Where returns the place itself.
func (p Place) Where() Place { return p }

// IsSet reports whether the configuration has a value there.
func (p Place) IsSet() bool { return p.node != nil }

// Node returns the value as it was read, nil when absent.
func (p Place) Node() *load.Node { return p.node }

// Pos returns where the value was written; of an absent value, where the nearest
// enclosing part was.
func (p Place) Pos() plan.Position {
	for q := &p; q != nil; q = q.parent {
		if q.node != nil {
			return q.node.Pos
		}
	}
	return plan.Position{}
}

// KeyPos returns where the field's name was written; the value's position for
// parts without a name.
func (p Place) KeyPos() plan.Position {
	if p.key == nil {
		return p.Pos()
	}
	return *p.key
}

// Key returns the name of the field, or of the entry of a map. An element of a list
// has the list's.
func (p Place) Key() string { return p.name }

// FullPath returns the path in the configuration, such as targets.cam.cpu.governor.
func (p Place) FullPath() string {
	if p.parent == nil {
		return p.name
	}
	return load.PathOf(p.parent.FullPath(), p.name)
}

// ID returns the path below the root with plain dots, as plan.Origins has it.
func (p Place) ID() string {
	if p.parent == nil {
		return ""
	}
	return strings.TrimPrefix(p.parent.ID()+"."+p.name, ".")
}

// Show returns the value as a message quotes it, "" when absent.
func (p Place) Show() string {
	if p.node == nil {
		return ""
	}
	return p.node.Show()
}

// Equal compares two values, not their places.
func (p Place) Equal(o Place) bool { return p.node.Equal(o.node) }

// Below returns the part at a path that is known only when the program runs, such as
// one of a plan.
func (p Place) Below(names ...string) Place {
	for _, name := range names {
		up := p
		p = up.field(name)
	}
	return p
}

// FirstSet returns the place of the first part that is set, of the last when none is.
func FirstSet(parts ...Part) Place {
	var p Place
	for _, part := range parts {
		if p = part.Where(); p.IsSet() {
			break
		}
	}
	return p
}

// field returns the place of a field.
func (p *Place) field(name string) Place {
	if f := p.node.Field(name); f != nil {
		return Place{node: f.Value, key: &f.Pos, parent: p, name: name}
	}
	if p.node != nil {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(p.node.Items) {
			return Place{node: p.node.Items[i], parent: p.parent, name: p.name}
		}
	}
	return Place{parent: p, name: name}
}

// text returns a scalar as it was written, "" for a bool.
func (p *Place) text() string {
	if p.node == nil {
		return ""
	}
	return p.node.Text
}

// String is text.
type String struct {
	Place
	Text string
}

func (s *String) decode(p Place) { s.Place, s.Text = p, p.node.Word() }

// Or returns the text, or the default of an absent one.
func (s String) Or(otherwise string) string {
	if s.IsSet() {
		return s.Text
	}
	return otherwise
}

// Int is an integer.
type Int struct {
	Place
	Value int
}

func (i *Int) decode(p Place) {
	v, _ := p.node.Int64()
	i.Place, i.Value = p, int(v)
}

// Or returns the value, or the default of an absent one.
func (i Int) Or(otherwise int) int {
	if i.IsSet() {
		return i.Value
	}
	return otherwise
}

// Bool is a switch.
type Bool struct {
	Place
	On bool
}

func (b *Bool) decode(p Place) { b.Place, b.On = p, p.node != nil && p.node.True }

// Or returns the value, or the default of an absent one.
func (b Bool) Or(otherwise bool) bool {
	if b.IsSet() {
		return b.On
	}
	return otherwise
}

// Scalar is a value that may be of several kinds, such as a sysctl's.
type Scalar struct {
	Place
	Text string // "" for a bool
}

func (s *Scalar) decode(p Place) { s.Place, s.Text = p, p.text() }

// Kind returns the kind of the value, [load.Null] when absent.
func (s Scalar) Kind() load.Kind {
	if s.node == nil {
		return load.Null
	}
	return s.node.Kind
}

// IsTrue reports whether the value is the bool true.
func (s Scalar) IsTrue() bool { return s.node != nil && s.node.True }

// Elements returns the elements of a list, or the scalar itself if it is none.
func (s Scalar) Elements() []Scalar {
	if s.Kind() != load.List {
		return []Scalar{s}
	}
	var all List[Scalar]
	all.decode(s.Place)
	return all.Items
}

// Int returns the value of an integer, and whether it is one.
func (s Scalar) Int() (int64, bool) { return s.node.Int64() }

// Quantities and decimal numbers, as they were written. Package resolve converts
// them to base units.
type (
	// Frequency is a frequency in Hz or with its unit, or "unlimited".
	Frequency struct{ Scalar }
	// Size is an amount of memory in bytes or with its unit.
	Size struct{ Scalar }
	// Rate is an amount a second in bytes or with its unit.
	Rate struct{ Scalar }
	// Duration is a duration in nanoseconds or with its unit.
	Duration struct{ Scalar }
	// Decimal is a number, or the text of one.
	Decimal struct{ Scalar }
)

// Either is a scalar, or a struct with more fields.
type Either[S, T any] struct {
	Place
	Scalar S
	Struct T
}

func (e *Either[S, T]) decode(p Place) {
	e.Place = p
	absent := Place{parent: p.parent, name: p.name}
	if p.node != nil && p.node.Kind == load.Struct {
		decode(&e.Scalar, absent)
		decode(&e.Struct, p)
		return
	}
	decode(&e.Scalar, p)
	decode(&e.Struct, absent)
}

// NamedString is the value of a name that is looked up in the facts. In the long form, a
// struct, a layer of the user's may define the name.
type NamedString struct {
	String
	External Bool
}

func (n *NamedString) decode(p Place) {
	value, external := p.splitNamed()
	n.String.decode(value)
	n.External.decode(external)
}

// NamedScalar is a [NamedString] whose value may be of several kinds.
type NamedScalar struct {
	Scalar
	External Bool
}

func (n *NamedScalar) decode(p Place) {
	value, external := p.splitNamed()
	n.Scalar.decode(value)
	n.External.decode(external)
}

// splitNamed returns the places of the value of a name, which keeps the name's path, and of
// the field external.
func (p Place) splitNamed() (value, external Place) {
	if p.node == nil || p.node.Kind != load.Struct {
		return p, Place{parent: p.parent, name: p.name}
	}
	value, external = p, p.field("external")
	value.node = p.field("value").node
	return value, external
}

// List is a list.
type List[T any] struct {
	Place
	Items []T
}

func (l *List[T]) decode(p Place) {
	l.Place = p
	if p.node == nil || len(p.node.Items) == 0 {
		return
	}
	l.Items = make([]T, len(p.node.Items))
	for i, n := range p.node.Items {
		decode(&l.Items[i], Place{node: n, parent: p.parent, name: p.name})
	}
}

// Map is a struct whose names are the user's.
type Map[T any] struct {
	Place
	Entries []*T // in the order of the source
}

func (m *Map[T]) decode(p Place) {
	m.Place = p
	if p.node == nil || len(p.node.Fields) == 0 {
		return
	}
	entries := make([]T, len(p.node.Fields))
	m.Entries = make([]*T, len(entries))
	for i := range p.node.Fields {
		f := &p.node.Fields[i]
		decode(&entries[i], Place{node: f.Value, key: &f.Pos, parent: &m.Place, name: f.Name})
		m.Entries[i] = &entries[i]
	}
}

// Get returns the entry of a name, never nil: for a missing name, the entry has a place and
// nothing is set.
func (m *Map[T]) Get(name string) *T {
	for i, e := range m.Entries {
		if m.node.Fields[i].Name == name {
			return e
		}
	}
	absent := new(T)
	decode(absent, Place{parent: &m.Place, name: name})
	return absent
}

// Has reports whether there is an entry of a name.
func (m *Map[T]) Has(name string) bool { return m.node.Field(name) != nil }

// Keys returns the names in the order of the source.
func (m *Map[T]) Keys() []string {
	names := make([]string, len(m.Entries))
	for i := range m.Entries {
		names[i] = m.node.Fields[i].Name
	}
	return names
}

// Sorted returns the entries by name, the order that every front end can reproduce.
func (m *Map[T]) Sorted() []*T {
	order := make([]int, len(m.Entries))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(m.node.Fields[a].Name, m.node.Fields[b].Name) })
	sorted := make([]*T, len(order))
	for i, j := range order {
		sorted[i] = m.Entries[j]
	}
	return sorted
}

// decode fills a value; each type of this package has the method.
func decode[T any](v *T, p Place) { any(v).(interface{ decode(p Place) }).decode(p) }

// Texts returns the elements of a list of texts, nil when the list is absent.
func Texts(l List[String]) []string {
	if !l.IsSet() {
		return nil
	}
	out := make([]string, len(l.Items))
	for i, s := range l.Items {
		out[i] = s.Text
	}
	return out
}

// Names returns the elements of a list of names, nil when the list is absent.
func Names(l List[NamedString]) []string {
	if !l.IsSet() {
		return nil
	}
	out := make([]string, len(l.Items))
	for i, s := range l.Items {
		out[i] = s.Text
	}
	return out
}

// Cores returns a list of core numbers, sorted and without repeats.
func Cores(l List[Int]) []int {
	var out []int
	for _, c := range l.Items {
		out = append(out, c.Value)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Decode returns a whole configuration.
func Decode(root *load.Node) *Config {
	c := &Config{}
	c.decode(Place{node: root})
	return c
}

// DecodeTarget returns a target, merged with its profiles. path is its path in
// the configuration.
func DecodeTarget(path string, n *load.Node) *Target {
	t := &Target{}
	t.decode(Place{node: n, name: path})
	return t
}
