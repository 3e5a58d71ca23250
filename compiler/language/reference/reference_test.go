package reference

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/language/load"
)

// -update rewrites the generated pages.
var update = flag.Bool("update", false, "rewrite docs/reference.md and docs/config.schema.json")

func language(t testing.TB) *Reference {
	t.Helper()
	r, err := Language()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// findUndocumented lists definitions and fields without a comment, as file:line.
func findUndocumented(r *Reference) []string {
	var out []string
	var walk func(file, path string, s *Struct)
	walk = func(file, path string, s *Struct) {
		for _, f := range s.Fields {
			if f.Doc == "" && f.Name != "" {
				out = append(out, fmt.Sprintf("%s:%d: %s.%s", file, f.Line, path, f.Name))
			}
			if f.Inner != nil {
				walk(file, path+"."+f.Name, f.Inner)
			}
		}
	}
	for _, d := range r.Definitions {
		if d.Doc == "" {
			out = append(out, fmt.Sprintf("%s:%d: %s", d.File, d.Line, d.Name))
		}
		if d.Struct != nil {
			walk(d.File, d.Name, d.Struct)
		}
	}
	return out
}

func TestEveryFieldHasADocComment(t *testing.T) {
	for _, s := range findUndocumented(language(t)) {
		t.Errorf("%s has no comment above it", s)
	}
}

func TestGeneratedPagesAreUpToDate(t *testing.T) {
	r := language(t)
	js, err := r.JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"reference.md": r.Markdown(), "config.schema.json": js} {
		path := filepath.Join("..", "..", "..", "docs", name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("docs/%s does not match the schema: run go test ./compiler/language/reference -update", name)
		}
	}
}

func TestReferenceNamesEveryDefinition(t *testing.T) {
	r := language(t)
	md := string(r.Markdown())
	for _, d := range r.Definitions {
		if !strings.Contains(md, "\n## "+d.Name+"\n") {
			t.Errorf("%s has no section", d.Name)
		}
	}
}

func validator(t testing.TB) *jsonschema.Schema {
	t.Helper()
	js, err := language(t).JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(js))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// value is a configuration as JSON has it.
func value(n *load.Node) any {
	switch n.Kind {
	case load.Bool:
		return n.True
	case load.Int, load.Number:
		return json.Number(n.Text)
	case load.String:
		return n.Text
	case load.List:
		out := []any{}
		for _, it := range n.Items {
			out = append(out, value(it))
		}
		return out
	case load.Struct:
		out := map[string]any{}
		for _, f := range n.Fields {
			out[f.Name] = value(f.Value)
		}
		return out
	}
	return nil
}

func TestJSONSchemaAcceptsTheExamples(t *testing.T) {
	s := validator(t)
	dirs, err := filepath.Glob("../../../examples/*/config.cue")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no examples", err)
	}
	for _, name := range dirs {
		cfg, report, err := load.Dir(filepath.Dir(name))
		if err != nil || report.Failed() {
			t.Fatalf("%s: %v", name, err)
		}
		if err := s.Validate(value(cfg.Root)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the compiler's own check of the language refuses, the JSON Schema refuses
// too, and the other way round.
func TestJSONSchemaAgreesWithTheCompiler(t *testing.T) {
	s := validator(t)
	for _, tt := range []struct {
		name, body string
		ok         bool
	}{
		{"nothing set", ``, true},
		{"a governor", `cpu: governor: "schedutil"`, true},
		{"an unknown governor", `cpu: governor: "fast"`, false},
		{"an unknown field", `cpu: govenor: "schedutil"`, false},
		{"a clock with a unit", `gpu: max: "918MHz"`, true},
		{"a clock in Hz", `gpu: max: 918000000`, true},
		{"a clock without a unit", `gpu: max: "918"`, false},
		{"a negative clock", `gpu: max: -1`, false},
		{"a sysctl of each kind", `sysctl: {"vm.swappiness": 10, "net.ipv4.ip_forward": true, "kernel.core_pattern": "core"}`, true},
		{"a sysctl without a dot", `sysctl: swappiness: 10`, false},
		{"a list for a sysctl", `sysctl: "vm.swappiness": [10]`, false},
		{"zram as a size", `memory: zram: "2GiB"`, true},
		{"zram as a struct", `memory: zram: {size: "2GiB", algorithm: "zstd"}`, true},
		{"zram without a size", `memory: zram: algorithm: "zstd"`, false},
		{"a core too high", `cpu: isolate: [300]`, false},
		{"nice out of bounds", `services: "a.service": {exec: ["/usr/bin/a"], nice: 40}`, false},
		{"a unit with another ending", `services: "a.timer": {exec: ["/usr/bin/a"]}`, false},
		{"a whole pipeline", `pipelines: p: {source: {kind: "file", format: "nv12", path: "a", width: 64, height: 64}, stages: a: {kind: "preprocess", input: "source", width: 8, height: 8}}`, true},
		{"a field of another source", `pipelines: p: {source: {kind: "synthetic", format: "nv12", path: "a"}, stages: a: {kind: "preprocess", input: "source", width: 8, height: 8}}`, false},
		{"a field that its kind needs", `pipelines: p: {source: {kind: "file", format: "nv12"}, stages: a: {kind: "preprocess", input: "source", width: 8, height: 8}}`, false},
		{"a field of another stage", `pipelines: p: {source: {kind: "synthetic", format: "nv12"}, stages: a: {kind: "preprocess", input: "source", width: 8, height: 8, decode: "ctc"}}`, false},
	} {
		text := `package p
import "github.com/yoctune/yoctune/schema"
schema.#Config & {
	layer: {name: "p", maintainer: "T <t@example.com>"}
	targets: t: {board: "orin-nano-8gb", release: "scarthgap"
		` + tt.body + `
	}
}
`
		p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(text)})
		refused := false
		for _, d := range p.Report.All() {
			refused = refused || strings.HasPrefix(d.ID, "YT01") || strings.HasPrefix(d.ID, "YT00")
		}
		if refused == tt.ok {
			t.Errorf("%s: the compiler accepts it: %t; %v", tt.name, !refused, p.Report.All())
		}
		if err := s.Validate(value(p.Config.Root)); (err == nil) != tt.ok {
			t.Errorf("%s: the JSON Schema returns %v", tt.name, err)
		}
	}
}
