package load

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema/plan"
)

// show writes a tree as lines of "path kind value place".
func show(n *Node, path string, b *strings.Builder) {
	for _, f := range n.Fields {
		sub := PathOf(path, f.Name)
		v := f.Value
		if v.Kind != Struct {
			fmt.Fprintf(b, "%s = %s @%s:%d:%d\n", sub, v.Show(), v.Pos.File, v.Pos.Line, v.Pos.Column)
		}
		show(v, sub, b)
	}
	for i, it := range n.Items {
		show(it, fmt.Sprintf("%s[%d]", path, i), b)
	}
}

// What a person would point at when asked where a value comes from.
func TestEveryLeafHasItsLine(t *testing.T) {
	cfg, report := Files(map[string][]byte{
		"a.cue": []byte(`package a
import "github.com/yoctune/yoctune/schema"
import "list"
_b: {x: 1, y: z: "q"}
schema.#Config & {
	layer: name: "v"
	targets: {
		b: _b & {w: 3}
		c: {_b, "k-\(1+1)": list.Max([1, 2]), f: 0.5, l: [1, "two", _b.x]}
		if _b.x == 1 {d: e: _b.x}
		"with.dot": on: true
	}
}
`),
		"b.cue": []byte("package a\ntargets: q: r: true\n"),
	})
	for _, d := range report.All() {
		t.Errorf("%+v", d)
	}
	var b strings.Builder
	show(cfg.Root, "", &b)
	want := `layer.name = "v" @a.cue:6:15
targets.b.w = 3 @a.cue:8:15
targets.b.x = 1 @a.cue:4:9
targets.b.y.z = "q" @a.cue:4:18
targets.c.x = 1 @a.cue:4:9
targets.c.y.z = "q" @a.cue:4:18
targets.c."k-2" = 2 @a.cue:9:23
targets.c.f = 0.5 @a.cue:9:44
targets.c.l = [1, "two", 1] @a.cue:9:52
targets.d.e = 1 @a.cue:10:23
targets."with.dot".on = true @a.cue:11:19
targets.q.r = true @b.cue:2:16
`
	for line := range strings.Lines(want) {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no line %sin\n%s", line, b.String())
		}
	}
	if got := strings.Count(b.String(), "\n"); got != strings.Count(want, "\n") {
		t.Errorf("%d leaves:\n%s", got, b.String())
	}
}

func TestFilesOfTwoPackagesAreRefused(t *testing.T) {
	_, report := Files(map[string][]byte{"a.cue": []byte("package a\nx: 1\n"), "b.cue": []byte("package b\ny: 1\n")})
	all := report.All()
	if len(all) != 1 || all[0].ID != "YT0002" || all[0].Pos != (plan.Position{File: "b.cue", Line: 1, Column: 9}) {
		t.Errorf("got %+v", all)
	}
}

func TestConfigurationTextIsBounded(t *testing.T) {
	_, report := Files(map[string][]byte{"a.cue": []byte(strings.Repeat("// x\n", MaxSource/5+1))})
	if all := report.All(); len(all) != 1 || all[0].ID != "YT0006" {
		t.Errorf("got %+v", all)
	}
}

// Whatever the text is, loading ends with a tree or with errors that have a
// message, and never panics.
func FuzzFiles(f *testing.F) {
	for _, seed := range []string{
		"package a\nx: 1\n", "a: b: a\n", "a: [...int] & [1]\n", "import \"list\"\nx: list.Max([1])\n",
		"x: \"\\(y)\"\ny: 1\n", "#A: {b: int}\nx: #A & {b: 2}\n", "x: 1 & 2\n", "x: {for k, v in {a: 1} {(k): v}}\n",
		"import \"github.com/yoctune/yoctune/schema\"\nschema.#Config & {layer: name: \"a\"}\n",
		"x: '\\xff'\n", "x: 1e400\n", "x: <5 & >2\n", "x: *1 | 2\n", "@extern(embed)\n", "let a = 1\nx: a\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		// CUE computes what it is told to; a fuzzer soon asks for the whole night.
		if len(text) > 512 || strings.Contains(string(text), "for") || strings.Contains(string(text), "Repeat") || strings.Contains(string(text), "Range") {
			return
		}
		cfg, report := Files(map[string][]byte{"a.cue": text})
		if cfg.Root == nil && !report.Failed() {
			t.Errorf("neither a tree nor an error for %q", text)
		}
		for _, d := range report.All() {
			if d.Message == "" || d.ID == "" {
				t.Errorf("a diagnostic without a message for %q: %+v", text, d)
			}
		}
	})
}

func TestSchemaImportWithVersion(t *testing.T) {
	for _, path := range []string{"schema", "schema@v0", "schema:schema", "schema@v0:schema"} {
		text := "package a\nimport s \"github.com/yoctune/yoctune/" + path + "\"\ns.#Config & {x: 1}\n"
		cfg, report := Files(map[string][]byte{"a.cue": []byte(text)})
		if report.Failed() || cfg.Root.Get("x") == nil {
			t.Errorf("%s: %+v", path, report.All())
		}
	}
	_, report := Files(map[string][]byte{"a.cue": []byte("package a\nimport \"github.com/yoctune/yoctune/schemas\"\nx: schemas.y\n")})
	if all := report.All(); len(all) == 0 || all[0].ID != "YT0003" {
		t.Errorf("a neighbour of the schema is imported: %+v", all)
	}
}

func TestNestingWithoutBracketsIsAnError(t *testing.T) {
	for name, text := range map[string]string{
		"labels":     strings.Repeat("a:", 1900000) + "1\n",
		"sum":        "a: " + strings.Repeat("1+", 1900000) + "1\n",
		"over lines": "a: " + strings.Repeat("1+\n", 900000) + "1\n",
		"negations":  "a: " + strings.Repeat("!", 1900000) + "true\n",
		"selectors":  "a: b" + strings.Repeat(".b", 1900000) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, report := Files(map[string][]byte{"config.cue": []byte(text)})
			if !report.Failed() {
				t.Fatal("accepted")
			}
			if d := report.All()[0]; d.ID != "YT0006" || d.Pos.Line == 0 {
				t.Errorf("got %s at %v, want YT0006 with a place", d.ID, d.Pos)
			}
		})
	}
}

func TestLinkOutOfFolderIsNotFollowed(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret.cue")
	if err := os.WriteFile(outside, []byte("secret: hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "config.cue")); err != nil {
		t.Fatal(err)
	}
	_, report, err := Dir(dir)
	if err == nil && !report.Failed() {
		t.Fatal("the link was followed")
	}
	if err != nil && strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the message shows what the link leads to: %v", err)
	}
}

// CUE cannot be stopped, so the time it may take is bounded from outside.
func TestEndlessEvaluationIsReported(t *testing.T) {
	f, err := parser.ParseFile("config.cue", `import "list"
layer: {for a in list.Range(0, 250, 1) for b in list.Range(0, 250, 1) {"x\(a)": y: "\(b)"}}`)
	if err != nil {
		t.Fatal(err)
	}
	l := &loader{report: &diag.Report{}, cfg: &Config{Sources: diag.NewSources()}, wall: 20 * time.Millisecond}
	l.evaluate([]*ast.File{f}, &packages{})
	if all := l.report.All(); len(all) != 1 || all[0].ID != "YT0007" || all[0].Pos.Line != 1 {
		t.Errorf("%+v", all)
	}
}

func TestCycleIsReportedOnce(t *testing.T) {
	for _, text := range []string{
		"package a\nx: [for i in [1, 2] {x}]\n",
		"package a\ny: b\nlet b = c\nlet c = b\n",
	} {
		_, report := Files(map[string][]byte{"a.cue": []byte(text)})
		if all := report.All(); len(all) != 1 || all[0].ID != "YT0108" {
			t.Errorf("%s: %+v", text, all)
		}
	}
}
