package fix

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue/parser"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema/plan"
)

func apply(t *testing.T, text string, edits ...diag.Edit) (string, bool) {
	t.Helper()
	out, ok := Apply(map[string][]byte{"c.cue": []byte(text)}, edits)
	if !ok {
		return text, false
	}
	return string(out["c.cue"]), true
}

func position(line, column int) plan.Position {
	return plan.Position{File: "c.cue", Line: line, Column: column}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		name, text string
		edit       diag.Edit
		want       string
	}{
		{"a field on its own line", "a: {\n\tb: 1 // why\n}\n", diag.Edit{Kind: diag.AddField, Pos: position(2, 5), Text: "c: 2"}, "a: {\n\tc: 2\n\tb: 1 // why\n}\n"},
		{"a field in a row", "a: {b: 1}\n", diag.Edit{Kind: diag.AddField, Pos: position(1, 8), Text: "c: 2"}, "a: {c: 2, b: 1}\n"},
		{"a field without braces", "a: b: 1\n", diag.Edit{Kind: diag.AddField, Pos: position(1, 7), Text: "c: 2"}, "a: {b: 1, c: 2}\n"},
		{"beside the field around it", "a: b: 1\n", diag.Edit{Kind: diag.AddField, Pos: position(1, 7), Up: 1, Text: "c: 2"}, "c: 2\na: b: 1\n"},
		{"a value", "a: \"x\" // why\n", diag.Edit{Kind: diag.ReplaceText, Pos: position(1, 4), Text: `"y"`}, "a: \"y\" // why\n"},
		{"an element of a list", "a: [1, 2]\n", diag.Edit{Kind: diag.ReplaceText, Pos: position(1, 8), Text: "3"}, "a: [1, 3]\n"},
		{"a label", "\"a b\": 1\n", diag.Edit{Kind: diag.RenameField, Pos: position(1, 8), Text: "ab"}, "ab: 1\n"},
	} {
		if got, ok := apply(t, c.text, c.edit); !ok || got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestInexpressibleLinesAreLeft(t *testing.T) {
	const text = "_x: 1\na: _x + 1\n"
	for name, edit := range map[string]diag.Edit{
		"a computed value":  {Kind: diag.ReplaceText, Pos: position(2, 4), Text: "3"},
		"a place of none":   {Kind: diag.RenameField, Pos: position(9, 9), Text: "b"},
		"too far out":       {Kind: diag.AddField, Pos: position(2, 4), Up: 5, Text: "b: 1"},
		"another language":  {Kind: diag.ReplaceText, Pos: plan.Position{File: "c.hcl", Line: 1, Column: 1}, Text: "3"},
		"an unknown change": {Kind: "erase", Pos: position(2, 4)},
	} {
		if got, ok := apply(t, text, edit); ok {
			t.Errorf("%s: %q", name, got)
		}
	}
	// Two changes of the same bytes contradict each other.
	if got, ok := apply(t, "a: 1\n", diag.Edit{Kind: diag.ReplaceText, Pos: position(1, 4), Text: "2"}, diag.Edit{Kind: diag.ReplaceText, Pos: position(1, 4), Text: "3"}); ok {
		t.Errorf("a contradiction: %q", got)
	}
}

// Wherever an edit is put, what comes out is CUE, or the edit is refused.
func TestEditsEverywhereKeepTheSyntax(t *testing.T) {
	files, err := filepath.Glob("../../../examples/*/config.cue")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	made := 0
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(raw), "\n") {
			for column := 1; column <= len(line); column += 3 {
				for _, edit := range []diag.Edit{
					{Kind: diag.AddField, Pos: position(i+1, column), Text: "zz: 1"},
					{Kind: diag.AddField, Pos: position(i+1, column), Up: 1, Text: "zz: 1"},
					{Kind: diag.ReplaceText, Pos: position(i+1, column), Text: "1"},
					{Kind: diag.RenameField, Pos: position(i+1, column), Text: "zz"},
				} {
					got, ok := apply(t, string(raw), edit)
					if !ok {
						continue
					}
					made++
					if _, err := parser.ParseFile("c.cue", got); err != nil {
						t.Fatalf("%s: %+v: %v", name, edit, err)
					}
				}
			}
		}
	}
	if made == 0 {
		t.Error("no edit was made")
	}
}
