// Package conform checks a concrete value against the CUE definitions of the
// schema and explains, in the user's terms, what is wrong.
//
// CUE itself accepts and rejects the same values (a test compares the two), but
// its errors expose its own machinery, hide siblings behind the first mistake,
// and rarely point at the user's line. The schema deliberately uses a small part
// of CUE: closed structs, patterns, bounds, literals, alternatives of scalars,
// and dispatch by `if kind == …`. A test reads every file of the schema, refuses
// anything else, and generates language.go.
package conform

import (
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/load"
)

type op int

const (
	anything op = iota
	basic       // of a kind
	exactly     // a literal
	bound       // a number compared with a literal
	matches     // text against a regular expression
	maxRunes    // text no longer than n characters
	minRunes
	all    // every part
	either // some part
	list
	object
	named // a definition
)

// shape is one expression of the schema.
type shape struct {
	op      op
	kind    load.Kind
	any     bool // basic number: integers too
	text    string
	rel     string // of bound: < <= > >=
	number  int64
	invert  bool
	parts   []*shape
	elem    *shape // of a list
	obj     *structure
	def     string // of named
	literal *load.Node
}

// structure is a closed struct of the schema.
type structure struct {
	fields   []*member
	patterns []pattern
	embeds   []string
	branches []branch
}

type member struct {
	name     string
	required bool
	value    *shape
	doc      string
}

type pattern struct {
	key   *shape
	value *shape
}

// branch is `if field == "value" {…}`.
type branch struct {
	field, value string
	then         *structure
}

type definition struct {
	name  string
	doc   string
	value *shape
}

// Schema is the language, ready to check values. It is immutable.
type Schema struct {
	defs []*definition // by name
}

// Language returns the embedded schema. Parsing its files would take a tenth of a
// whole build, so the program carries the result in language.go; a test compares
// the two.
func Language() *Schema { return &language }

func (s *Schema) def(name string) *definition {
	i, ok := slices.BinarySearchFunc(s.defs, name, func(d *definition, name string) int { return strings.Compare(d.name, name) })
	if !ok {
		return nil
	}
	return s.defs[i]
}
