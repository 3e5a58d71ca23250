package conform

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"testing"

	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema"
)

var update = flag.Bool("update", false, "rewrite the generated files")

// language.go is schema/*.cue as Go data.
func TestTheCarriedLanguageIsTheSchema(t *testing.T) {
	want, err := writeSource(readLanguage(t))
	if err != nil {
		t.Fatal(err)
	}
	compareGenerated(t, "language.go", want)
}

func readLanguage(t *testing.T) *Schema {
	t.Helper()
	s, err := readSchema(schema.FS)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// compareGenerated compares a generated file with what it should be; with -update it
// writes the file.
func compareGenerated(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from schema/*.cue; write it with: go test ./compiler/language/conform -update", file)
	}
}

// writeSource writes a schema as a Go file.
func writeSource(s *Schema) ([]byte, error) {
	p := &printer{}
	p.f("// Code generated from schema/*.cue by go test ./compiler/language/conform -update. DO NOT EDIT.\n\n")
	p.f("package conform\n\nimport \"github.com/yoctune/yoctune/compiler/language/load\"\n\n")
	p.f("// language is data that the linker lays out: it costs a start nothing.\nvar language = Schema{defs: []*definition{\n")
	for _, d := range s.defs {
		p.f("{name: %q, doc: %q, value: ", d.name, d.doc)
		p.printShape(d.value)
		p.f("},\n")
	}
	p.f("}}\n")
	return format.Source(p.Bytes())
}

type printer struct{ bytes.Buffer }

func (p *printer) f(format string, args ...any) { fmt.Fprintf(&p.Buffer, format, args...) }

func (p *printer) printShape(s *shape) {
	ops := [...]string{"anything", "basic", "exactly", "bound", "matches", "maxRunes", "minRunes", "all", "either", "list", "object", "named"}
	kinds := [...]string{"Null", "Bool", "Int", "Number", "String", "List", "Struct"}
	p.f("&shape{op: %s", ops[s.op])
	if s.kind != load.Null {
		p.f(", kind: load.%s", kinds[s.kind])
	}
	if s.any {
		p.f(", any: true")
	}
	if s.invert {
		p.f(", invert: true")
	}
	for _, field := range []struct{ name, value string }{{"text", s.text}, {"rel", s.rel}, {"def", s.def}} {
		if field.value != "" {
			p.f(", %s: %q", field.name, field.value)
		}
	}
	if s.number != 0 {
		p.f(", number: %d", s.number)
	}
	if l := s.literal; l != nil {
		p.f(", literal: &load.Node{Kind: load.%s, Text: %q, True: %t}", kinds[l.Kind], l.Text, l.True)
	}
	if s.elem != nil {
		p.f(", elem: ")
		p.printShape(s.elem)
	}
	if len(s.parts) > 0 {
		p.f(", parts: []*shape{\n")
		for _, part := range s.parts {
			p.printShape(part)
			p.f(",\n")
		}
		p.f("}")
	}
	if s.obj != nil {
		p.f(", obj: ")
		p.printStructure(s.obj)
	}
	p.f("}")
}

func (p *printer) printStructure(st *structure) {
	p.f("&structure{\n")
	if len(st.fields) > 0 {
		p.f("fields: []*member{\n")
		for _, m := range st.fields {
			p.f("{name: %q, required: %t, doc: %q, value: ", m.name, m.required, m.doc)
			p.printShape(m.value)
			p.f("},\n")
		}
		p.f("},\n")
	}
	if len(st.patterns) > 0 {
		p.f("patterns: []pattern{\n")
		for _, pt := range st.patterns {
			p.f("{key: ")
			p.printShape(pt.key)
			p.f(", value: ")
			p.printShape(pt.value)
			p.f("},\n")
		}
		p.f("},\n")
	}
	if len(st.embeds) > 0 {
		p.f("embeds: %#v,\n", st.embeds)
	}
	if len(st.branches) > 0 {
		p.f("branches: []branch{\n")
		for _, b := range st.branches {
			p.f("{field: %q, value: %q, then: ", b.field, b.value)
			p.printStructure(b.then)
			p.f("},\n")
		}
		p.f("},\n")
	}
	p.f("}")
}
