package hcl

import (
	"slices"
	"sync"

	"github.com/yoctune/yoctune/compiler/language/conform"
)

// Name is an attribute or a block of a struct, as HCL writes it.
type Name struct {
	Written string
	Field   string // in the schema
	Shape   conform.Shape
	// IsBlock is set for a block, and IsLabelled if it is an entry of a map; Shape is then that of its
	// body.
	IsBlock, IsLabelled bool
}

// NamesOf lists the attributes and blocks of a struct. A struct has both forms as a value; those
// of blocks come first. There are none for a map, whose keys are written as they are.
func NamesOf(sh conform.Shape) []Name {
	t := newTable(sh)
	var names []Name
	for name, b := range t.blocks {
		names = append(names, Name{name, b.field, b.shape, true, b.labelled})
	}
	for name, f := range t.fields {
		if b, ok := t.blocks[name]; !ok || b.labelled {
			names = append(names, Name{name, f.name, f.shape, false, false})
		}
	}
	slices.SortFunc(names, func(a, b Name) int {
		switch {
		case a.Written < b.Written:
			return -1
		case a.Written > b.Written:
			return 1
		case a.IsBlock:
			return -1
		}
		return 1
	})
	return names
}

// Spell writes the names of the language's fields in a text as HCL does, and no other words.
func Spell(text string) string { return spell()(text) }

var spell = sync.OnceValue(func() func(string) string { return newRewriter(conform.Language()) })
