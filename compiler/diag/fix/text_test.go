package fix

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema/plan"
)

func TestEditsInOtherLanguages(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		line, column     int
		edit             diag.Edit
		want             string // "" where the edit is refused
	}{
		{"a value", "a.hcl", "a {\n  b = \"x\"\n}\n", 2, 7, diag.Edit{Kind: diag.ReplaceText, Text: `"y${z}"`}, "a {\n  b = \"y$${z}\"\n}\n"},
		{"a number", "a.hcl", "b = 1\n", 1, 5, diag.Edit{Kind: diag.ReplaceText, Text: `2`}, "b = 2\n"},
		{"an element", "a.jsonnet", "{ b: ['x', 'y'] }", 1, 12, diag.Edit{Kind: diag.ReplaceText, Text: `"it's"`}, `{ b: ['x', 'it\'s'] }`},
		{"a computed value", "a.hcl", "b = \"${x}\"\n", 1, 5, diag.Edit{Kind: diag.ReplaceText, Text: `2`}, ""},
		{"part of an expression", "a.jsonnet", "{ b: 'x' + 'y' }", 1, 6, diag.Edit{Kind: diag.ReplaceText, Text: `"z"`}, ""},
		{"the end of an expression", "a.jsonnet", "{ b: x + 'y' }", 1, 10, diag.Edit{Kind: diag.ReplaceText, Text: `"z"`}, ""},
		{"a reference", "a.hcl", "b = local.x\n", 1, 5, diag.Edit{Kind: diag.ReplaceText, Text: `"z"`}, ""},
		{"a label", "a.hcl", "memory {\n  thp_defragg = \"x\"\n}\n", 2, 3, diag.Edit{Kind: diag.RenameField, Text: "thpDefrag"}, "memory {\n  thp_defrag = \"x\"\n}\n"},
		{"the label of a value", "a.jsonnet", "{ a: { 'b.d': 1 } }", 1, 15, diag.Edit{Kind: diag.RenameField, Text: `"b.c"`}, "{ a: { 'b.c': 1 } }"},
		{"a field on its own line", "a.hcl", "a {\n  b = 1 # why\n}\n", 2, 7, diag.Edit{Kind: diag.AddField, Text: `C: "y", D: 2`}, "a {\n  C = \"y\"\n  D = 2\n  b = 1 # why\n}\n"},
		{"a field in a row", "a.jsonnet", "{ a: { b: 1 } }", 1, 11, diag.Edit{Kind: diag.AddField, Text: `"c.d": "y"`}, "{ a: { 'c.d': 'y', b: 1 } }"},
		{"beside the block", "a.hcl", "target \"x\" {\n  kernel {\n    config {\n      A = \"m\"\n    }\n  }\n}\n", 4, 11,
			diag.Edit{Kind: diag.AddField, Up: 2, Text: `modules: a: "load"`}, "target \"x\" {\n  modules = { a = \"load\" }\n  kernel {\n    config {\n      A = \"m\"\n    }\n  }\n}\n"},
		{"beside the field around it", "a.jsonnet", "{\n  a: { b: 1 },\n}\n", 2, 11, diag.Edit{Kind: diag.AddField, Up: 1, Text: `c: d: [1, true]`}, "{\n  c: { d: [1, true] },\n  a: { b: 1 },\n}\n"},
		{"too far out", "a.hcl", "b = 1\n", 1, 5, diag.Edit{Kind: diag.AddField, Up: 5, Text: `c: 1`}, ""},
		{"an expression", "a.hcl", "b = 1\n", 1, 5, diag.Edit{Kind: diag.AddField, Text: `c: d + 1`}, ""},
		{"beyond the text", "a.hcl", "b = 1\n", 9, 5, diag.Edit{Kind: diag.ReplaceText, Text: `1`}, ""},
	} {
		c.edit.Pos = plan.Position{File: c.file, Line: c.line, Column: c.column}
		out, ok := Apply(map[string][]byte{c.file: []byte(c.text)}, []diag.Edit{c.edit})
		if got := string(out[c.file]); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %t, want %q", c.name, got, ok, c.want)
		}
	}
}

// Wherever a value is replaced or a label renamed, the languages' own parsers take the result.
func TestReplacementsEverywhereKeepTheSyntax(t *testing.T) {
	for _, name := range []string{"hcl/config.hcl", "jsonnet/config.jsonnet", "jsonnet/sysctl.libsonnet"} {
		raw, err := os.ReadFile(filepath.Join("../../../golden/threeways", name))
		if err != nil {
			t.Fatal(err)
		}
		made := 0
		for i, line := range strings.Split(string(raw), "\n") {
			for column := 1; column <= len(line); column++ {
				for _, edit := range []diag.Edit{{Kind: diag.ReplaceText, Text: "1"}, {Kind: diag.RenameField, Text: "zz"}} {
					edit.Pos = plan.Position{File: name, Line: i + 1, Column: column}
					out, ok := Apply(map[string][]byte{name: raw}, []diag.Edit{edit})
					if !ok {
						continue
					}
					made++
					if filepath.Ext(name) == ".hcl" {
						if _, diags := hclsyntax.ParseConfig(out[name], name, hcl.InitialPos); diags.HasErrors() {
							t.Fatalf("%+v: %v", edit, diags)
						}
					} else if _, err := jsonnet.SnippetToAST(name, string(out[name])); err != nil && !strings.Contains(err.Error(), "Duplicate field") {
						t.Fatalf("%+v: %v", edit, err)
					}
				}
			}
		}
		if made == 0 {
			t.Errorf("%s: no edit was made", name)
		}
	}
}
