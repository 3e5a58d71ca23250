package cursor

import (
	"strings"
	"testing"
)

// A text with | at the cursor, and what is found there: the enclosing fields, then "key", "value" or
// "item" with the token.
func TestCursor(t *testing.T) {
	for _, c := range []struct{ language, text, want string }{
		{".cue", `a: b: {c: |`, "a.b.c value "},
		{".cue", "a: b: {\n\tc: 1\n\td|", "a.b key d"},
		{".cue", "a: b: {\n\tc: 1,\n\n}\ne: \"x|\"\n", "e value x"},
		{".cue", `a: {"b.c": 1, "d|`, "a key d"},
		{".cue", `a: b|: 1`, "a key b"},
		{".cue", "s.#Config & {\n\ta: [\"b\", |", "a item "},
		{".cue", "// a: {\nb: |", "b value "},
		{".cue", "a: \"\"\"\n\tb: {\n\t\"\"\"\nc|", " key c"},
		{".cue", "a: {\nmodules: nvm|\n\tb: 1", "a.modules value nvm"},
		{".cue", "a: (b): {c|", "a. key c"},
		{".hcl", "target \"x\" {\n  board = \"o|\"\n", "target.x.board value o"},
		{".hcl", "target \"x\" {\n  cpu {\n    isolate = [4]\n  }\n  st|", "target.x key st"},
		{".hcl", "target \"x|\" {\n", " value x"},
		{".hcl", "a {\n  b = { c = 1, \"d.e|\" = 2 }\n", "a.b key d.e"},
		{".hcl", "a {\n  # b {\n  c = <<EOT\n d {\nEOT\n  e|", "a key e"},
		{".hcl", "a {\n  b = \"${c[\"d\"]}\"\n  e|", "a key e"},
		{".jsonnet", "{ a: { b: 'x|' } }", "a.b value x"},
		{".jsonnet", "local l = { z: 1 };\n{ a+: { 'b.c':: 1, d|", "a key d"},
		{".jsonnet", "local l = { z|", " key z"},
		{".jsonnet", "{ a: [ { b: 1 }, { c|", "a key c"},
		{".jsonnet", "{ /* { */ a: (import 'x') + { b|", "a key b"},
	} {
		offset := strings.Index(c.text, "|")
		got := Find(c.language, strings.Replace(c.text, "|", "", 1), offset)
		role := "value"
		switch {
		case got.IsKey:
			role = "key"
		case got.InList:
			role = "item"
		}
		if s := strings.Join(got.Around, ".") + " " + role + " " + got.Token.Text; s != c.want {
			t.Errorf("%s %q: %q, want %q", c.language, c.text, s, c.want)
		}
	}
}

// Whatever the text is, every place of it has an answer.
func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"a: {b: \"\\(c)\"}", "target \"x\" {\n a = [1, {b = 2}]\n}", "{ a+: { 'b'::: |||\n x\n||| } }", "<<EOT\n", "\"${\"", "'''"} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, text string, offset int) {
		if offset < 0 || offset > len(text) {
			return
		}
		for _, language := range []string{".cue", ".hcl", ".jsonnet"} {
			c := Find(language, text, offset)
			if c.Token.Start > c.Token.End || c.Token.End > len(text) {
				t.Errorf("%s %q at %d: %+v", language, text, offset, c)
			}
		}
	})
}
