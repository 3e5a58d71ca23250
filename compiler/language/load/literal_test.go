package load

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"

	"github.com/yoctune/yoctune/compiler/diag"
)

// leaves lists the leaves of a tree with their places, in order of path.
func leaves(n *Node) []string {
	var b strings.Builder
	show(n, "", &b)
	out := strings.Split(strings.TrimSpace(b.String()), "\n")
	slices.Sort(out)
	return out
}

// readBothWays reads a text without and with the evaluator.
func readBothWays(t *testing.T, text string) (literal *Node, ok bool, evaluated *Node, report *diag.Report) {
	t.Helper()
	parse := func() []*ast.File {
		f, err := parser.ParseFile("a.cue", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return []*ast.File{f}
	}
	literal, ok = literalTree(parse())
	l := &loader{report: &diag.Report{}, cfg: &Config{Sources: diag.NewSources()}}
	l.evaluate(parse(), &packages{})
	return literal, ok, l.cfg.Root, l.report
}

// Reading without the evaluator gives what the evaluator gives, or gives up.
func TestLiteralConfigurationsNeedNoEvaluator(t *testing.T) {
	const head = "package a\nimport \"github.com/yoctune/yoctune/schema\"\n"
	for _, c := range []struct {
		text    string
		literal bool
	}{
		{"x: 1\ny: {a: \"b\", c: [1, \"two\", true, {d: -5}], e: 0.5}\n", true},
		{"a: b: 1\na: c: 2\n", true},
		{"a: {b: 1}\na: {b: 1}\n", true},
		{"\"a b\": \"c\": \"d\\n\\u0041\"\nm: \"\"\"\n\tlines\n\tof text\n\t\"\"\"\nr: #\"raw \\n\"#\n", true},
		{head + "schema.#Config & {a: 1, b: c: 2}\n", true},
		{head + "schema.#Config & {a: 1}\nb: schema.#Layer & {c: 2}\n", true},
		{"a: {b: 1}\na: {b: 2}\n", false},     // a conflict
		{"a: 1\nb: a\n", false},               // a reference
		{"_a: 1\nb: 2\n", false},              // hidden
		{"#A: {b: int}\n", false},             // a definition
		{"a?: int\n", false},                  // optional
		{"a: int\n", false},                   // a type
		{"a: *1 | 2\n", false},                // a default
		{"a: \"\\(b)\"\nb: \"x\"\n", false},   // interpolation
		{"a: 0x10\nb: 1_000\nc: 1K\n", false}, // other spellings of numbers
		{"a: 1.50\nb: 1e3\n", false},          //
		{"a: -0\n", false},                    //
		{"a: null\n", false},                  // nothing
		{"a: 'bytes'\n", false},               //
		{"a: [...]\n", false},                 //
		{"a: [for x in [1] {x}]\n", false},    //
		{"if true {a: 1}\n", false},           //
		{"let x = 1\na: x\n", false},          //
		{"a: (1)\n", false},                   //
		{"a=b: 1\n", false},                   //
		{"\"\\(\"x\")\": 1\n", false},         //
		{head + "a: 1\n", false},              // an import that nothing uses
		{head + "schema.#Nope & {a: 1}\n", false},
		{"import \"list\"\na: list.Max([1])\n", false},
	} {
		tree, ok, evaluated, report := readBothWays(t, c.text)
		if ok != c.literal {
			t.Errorf("literal %t, want %t: %s", ok, c.literal, c.text)
			continue
		}
		if !ok {
			continue
		}
		if evaluated == nil {
			t.Errorf("the evaluator refuses it: %+v\n%s", report.All(), c.text)
			continue
		}
		if got, want := leaves(tree), leaves(evaluated); !slices.Equal(got, want) {
			t.Errorf("%s\nwithout:\n%s\nwith:\n%s", c.text, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestExamplesReadTheSameWithAndWithoutTheEvaluator(t *testing.T) {
	files, err := filepath.Glob("../../../examples/*/config.cue")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tree, ok, evaluated, report := readBothWays(t, string(text))
		if evaluated == nil {
			t.Fatalf("%s: %+v", file, report.All())
		}
		if ok && !slices.Equal(leaves(tree), leaves(evaluated)) {
			t.Errorf("%s reads differently", file)
		}
	}
}

// A fuzzer looks for a text that the two read differently.
func FuzzLiteral(f *testing.F) {
	f.Add("a: b: 1\na: c: \"x\"\n")
	f.Add("a: [1, {b: true}, -2]\n\"c d\": 0.25\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 400 {
			return
		}
		file, err := parser.ParseFile("a.cue", text)
		if err != nil {
			return
		}
		tree, ok := literalTree([]*ast.File{file})
		if !ok {
			return
		}
		_, _, evaluated, report := readBothWays(t, text)
		if evaluated == nil {
			t.Fatalf("the evaluator refuses %q: %+v", text, report.All())
		}
		if got, want := leaves(tree), leaves(evaluated); !slices.Equal(got, want) {
			t.Fatalf("%q reads as\n%s\nand\n%s", text, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
