package hcl

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/conform"
)

// table maps HCL names to the fields of one struct. It is derived from the schema alone, so
// new fields need no change here.
type table struct {
	verbatim bool          // a map: its keys belong to the user
	values   conform.Shape // of a map
	fields   map[string]field
	blocks   map[string]block
}

// field is an attribute: name = value.
type field struct {
	name  string // in the schema
	shape conform.Shape
}

// block is a block: kind { … }, or kind "label" { … } for an entry of a map.
type block struct {
	field    string // in the schema
	labelled bool
	shape    conform.Shape // of the block's body
}

func (e *evaluator) tableOf(sh conform.Shape) *table {
	if t := e.tables[sh]; t != nil {
		return t
	}
	t := newTable(sh)
	e.tables[sh] = t
	return t
}

func newTable(sh conform.Shape) *table {
	t := &table{fields: map[string]field{}, blocks: map[string]block{}}
	fields := sh.Fields()
	if len(fields) == 0 {
		t.verbatim = true
		t.values, _ = sh.Values()
		return t
	}
	for _, f := range fields {
		name := toSnakeCase(f.Name)
		t.fields[name] = field{f.Name, f.Shape}
		values, isMap := f.Shape.Values()
		switch {
		case isMap && values.IsStruct():
			entry := toSingular(name)
			if slices.ContainsFunc(fields, func(o conform.FieldShape) bool { return toSnakeCase(o.Name) == entry }) {
				entry = name // inputs beside input
			}
			t.blocks[entry] = block{f.Name, true, values}
		case f.Shape.IsStruct():
			t.blocks[name] = block{f.Name, false, f.Shape}
		}
	}
	return t
}

// blockNames lists the blocks of a struct.
func (t *table) blockNames() []string {
	return slices.Sorted(maps.Keys(t.blocks))
}

// toSingular returns the name of one entry of a map: service for services. Names that are
// not plurals stay unchanged: storage, network, suppress, tmpfs.
func toSingular(name string) string {
	if strings.HasSuffix(name, "ss") || strings.HasSuffix(name, "fs") {
		return name
	}
	return strings.TrimSuffix(name, "s")
}

// toSnakeCase converts a name of the schema to snake_case: groFlushTimeout becomes
// gro_flush_timeout, napiDeferHardIRQs napi_defer_hard_irqs.
func toSnakeCase(name string) string {
	var b strings.Builder
	upper := func(i int) bool { return i >= 0 && i < len(name) && name[i] >= 'A' && name[i] <= 'Z' }
	for i := range len(name) {
		if !upper(i) {
			b.WriteByte(name[i])
			continue
		}
		// A word starts where capitals start, or at the last capital of a run
		// that lower-case letters follow; the s of a plural does not count.
		starts := !upper(i-1) || i+1 < len(name) && !upper(i+1) && name[i+1:] != "s"
		if i > 0 && starts {
			b.WriteByte('_')
		}
		b.WriteByte(name[i] - 'A' + 'a')
	}
	return b.String()
}

// toCamelCase guesses the schema's form of a name that the schema does not have.
func toCamelCase(name string) string {
	var b strings.Builder
	up := false
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '_' && i > 0:
			up = true
			continue
		case up && c >= 'a' && c <= 'z':
			c -= 'a' - 'A'
		}
		up = false
		b.WriteByte(c)
	}
	return b.String()
}

// Words converts the language's names in a diagnostic about an HCL file to HCL's form.
func Words(lang *conform.Schema) func(*diag.Diagnostic) {
	rewrite := sync.OnceValue(func() func(string) string { return newRewriter(lang) })
	return func(d *diag.Diagnostic) {
		if !strings.HasSuffix(d.Pos.File, Extension) || strings.HasPrefix(d.Help, caseHelp) {
			return // the name is as the file has it
		}
		if name, ok := strings.CutPrefix(d.Message, "unknown field "); ok {
			d.Message = "unknown field " + toSnakeCase(name)
		}
		d.Message, d.Help = rewrite()(d.Message), rewrite()(d.Help)
	}
}

// newRewriter returns a function that replaces the language's names in a text by HCL's, and
// no other words.
func newRewriter(lang *conform.Schema) func(string) string {
	known := map[string]bool{}
	seen := map[conform.Shape]bool{}
	var collect func(sh conform.Shape)
	collect = func(sh conform.Shape) {
		if seen[sh] {
			return
		}
		seen[sh] = true
		for _, f := range sh.Fields() {
			known[f.Name] = true
			collect(f.Shape)
		}
		if values, ok := sh.Values(); ok {
			collect(values)
		}
	}
	collect(lang.Root())
	word := regexp.MustCompile(`\b[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*\b`)
	return func(text string) string {
		return word.ReplaceAllStringFunc(text, func(w string) string {
			if known[w] {
				return toSnakeCase(w)
			}
			return w
		})
	}
}
