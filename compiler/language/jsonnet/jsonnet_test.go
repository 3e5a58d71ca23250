package jsonnet

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-jsonnet/formatter"

	"github.com/yoctune/yoctune/compiler/language/load"
)

// show writes trees as lines of "path = value @place".
func show(roots []*load.Node) string {
	var b strings.Builder
	var walk func(n *load.Node, path string)
	leaf := func(v *load.Node, path string) {
		if v.Kind != load.Struct {
			fmt.Fprintf(&b, "%s = %s @%s:%d:%d\n", path, v.Show(), v.Pos.File, v.Pos.Line, v.Pos.Column)
		}
		walk(v, path)
	}
	walk = func(n *load.Node, path string) {
		for _, f := range n.Fields {
			leaf(f.Value, load.PathOf(path, f.Name))
		}
		for i, it := range n.Items {
			leaf(it, fmt.Sprintf("%s[%d]", path, i))
		}
	}
	for _, r := range roots {
		walk(r, "")
	}
	return b.String()
}

// A value has the position of the field that wrote it last: through imports,
// functions, additions and computed names. A value from a comprehension or the library
// has the position of the field around it.
func TestValuesHaveTheirLine(t *testing.T) {
	p := load.Program{
		Files: map[string][]byte{"a.jsonnet": []byte(`local lib = import 'lib/lib.libsonnet';
local fast = std.extVar('fast') == 'yes';
lib.base {
  layer+: { serial: 2 },
  targets: {
    cam: lib.target('scarthgap') + {
      memory+: { [if fast then 'thp']: 'never' },
      ['use']: ['a', 'b'] + ['c'],
      cpu: { isolate: [4, 5] },
      sysctl: { ['vm.' + k]: 1 for k in ['a', 'b'] },
      packages: std.mapWithKey(function(k, v) v, { perf: 'install' }),
    },
  },
}
`)},
		Root: fstest.MapFS{"lib/lib.libsonnet": {Data: []byte(`local layer = importstr 'name.txt';
{
  base: { layer: { name: layer } },
  target(release): {
    board: 'orin-nano-8gb',
    release: release,
    memory: { ksm: false },
  },
}
`)}, "lib/name.txt": {Data: []byte("box")}},
		Vars: map[string]string{"fast": "yes"},
	}
	e := Load(p)
	for _, d := range e.Diagnostics {
		t.Errorf("%+v", d)
	}
	want := `layer.name = "box" @lib/lib.libsonnet:3:26
layer.serial = 2 @a.jsonnet:4:21
targets.cam.board = "orin-nano-8gb" @lib/lib.libsonnet:5:12
targets.cam.cpu.isolate = [4, 5] @a.jsonnet:9:23
targets.cam.cpu.isolate[0] = 4 @a.jsonnet:9:24
targets.cam.cpu.isolate[1] = 5 @a.jsonnet:9:27
targets.cam.memory.ksm = false @lib/lib.libsonnet:7:20
targets.cam.memory.thp = "never" @a.jsonnet:7:40
targets.cam.packages.perf = "install" @a.jsonnet:11:17
targets.cam.release = "scarthgap" @lib/lib.libsonnet:6:14
targets.cam.sysctl."vm.a" = 1 @a.jsonnet:10:15
targets.cam.sysctl."vm.b" = 1 @a.jsonnet:10:15
targets.cam.use = ["a", "b", "c"] @a.jsonnet:8:16
targets.cam.use[0] = "a" @a.jsonnet:8:16
targets.cam.use[1] = "b" @a.jsonnet:8:16
targets.cam.use[2] = "c" @a.jsonnet:8:16
`
	if got := show(e.Roots); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if string(e.Sources["lib/name.txt"]) != "box" || e.Sources["lib/lib.libsonnet"] == nil || e.Sources["a.jsonnet"] != nil {
		t.Errorf("brought in %v", e.Sources)
	}
}

// Marks must not change what a program gives. One that looks at hidden fields
// loses its places instead.
func TestPositionsNeverChangeValues(t *testing.T) {
	e := Load(load.Program{Files: map[string][]byte{"a.jsonnet": []byte("{ layer: { priority: std.length(std.objectFieldsAll({ a: 1 })) } }")}})
	if got, want := show(e.Roots), "layer.priority = 1 @a.jsonnet:1:1\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFunctionCalledWithDefaults(t *testing.T) {
	e := Load(load.Program{Files: map[string][]byte{"a.jsonnet": []byte("function(serial=3) { layer: { serial: serial } }")}})
	if got, want := show(e.Roots), "layer.serial = 3 @a.jsonnet:1:39\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNumbersAreExactOrRefused(t *testing.T) {
	e := Load(load.Program{Files: map[string][]byte{"a.jsonnet": []byte("{ a: 9007199254740992, b: 0.1, c: 1.0, d: -2 }")}})
	if got, want := show(e.Roots), "a = 9007199254740992 @a.jsonnet:1:6\nb = 0.1 @a.jsonnet:1:27\nc = 1 @a.jsonnet:1:35\nd = -2 @a.jsonnet:1:43\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	e = Load(load.Program{Files: map[string][]byte{"a.jsonnet": []byte("{ layer: { serial: 9007199254740994 } }")}})
	if len(e.Diagnostics) != 1 || e.Diagnostics[0].ID != "YT0106" || e.Diagnostics[0].Pos.Column != 20 || e.Diagnostics[0].Path != "layer.serial" {
		t.Errorf("got %+v", e.Diagnostics)
	}
}

func TestLanguageErrorsHavePositions(t *testing.T) {
	root := fstest.MapFS{"broken.libsonnet": {Data: []byte("{\n  a: 1\n  b: 2\n}\n")}, "fails.libsonnet": {Data: []byte("{\n  a: error 'no such thing',\n}\n")}}
	for _, c := range []struct{ claim, text, id, at, wantText, help string }{
		{"syntax", "{\n  a: 1\n  b: 2\n}\n", "YT0001", "a.jsonnet:3:3", "syntax: expected a comma", ""},
		{"syntax in an import", "import 'broken.libsonnet'", "YT0001", "broken.libsonnet:3:3", "syntax: expected a comma", ""},
		{"name", "{ a: b }", "YT0005", "a.jsonnet:1:6", `the name "b" is not defined`, "quote it"},
		{"field", "local a = { b: 1 };\n{ c: a.d }", "YT0005", "a.jsonnet:2:6", `the field "d" does not exist`, ""},
		{"error of the program", "{ a: error 'too many cores' }", "YT0100", "a.jsonnet:1:6", "too many cores", ""},
		{"error of an import", "{ b: (import 'fails.libsonnet').a }", "YT0100", "fails.libsonnet:2:6", "no such thing", ""},
		{"assertion", "{ assert self.a > 1 : 'a is small', a: 1 }", "YT0100", "a.jsonnet:1:", "a is small", ""},
		{"library", "{ a: std.parseInt('x') }", "YT0100", "a.jsonnet:1:6", "x", ""},
		{"variable without a value", "{ a: std.extVar('serial') }", "YT0107", "a.jsonnet:1:6", "has no value", "--var serial=VALUE"},
		{"not an object", "[1]", "YT0101", "a.jsonnet:1:1", "an array, not a configuration", "{ layer:"},
		{"itself", "{ a: self.a }", "YT0007", "a.jsonnet:1:6", "calls itself without end", ""},
		{"a field that is a function", "{ a: function(x) x }", "YT0100", "a.jsonnet:1:", "function", ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			e := Load(load.Program{Files: map[string][]byte{"a.jsonnet": []byte(c.text)}, Root: root})
			if len(e.Roots) > 0 || len(e.Diagnostics) != 1 {
				t.Fatalf("got %+v", e)
			}
			d := e.Diagnostics[0]
			at := fmt.Sprintf("%s:%d:%d", d.Pos.File, d.Pos.Line, d.Pos.Column)
			if d.ID != c.id || !strings.HasPrefix(at, c.at) {
				t.Errorf("%s at %s, want %s at %s", d.ID, at, c.id, c.at)
			}
			if !strings.Contains(d.Message, c.wantText) || !strings.Contains(d.Help, c.help) {
				t.Errorf("message %q, help %q", d.Message, d.Help)
			}
		})
	}
}

// What parses, parses with its marks put in, and every entry is inside the file.
func FuzzMarks(f *testing.F) {
	for _, seed := range []string{
		"{a: 1}", "{}", "{ }", "{a+: {b:: 2}, c(x):: x}", "{['a' + 'b']: 1, [null]: 2}", "{[x]: 1 for x in []}", "a {b: 1}", "{\"a\\\"b\": 1, 'c': 2, @'d': 3}",
		"{local x = 1, assert true, a: x}", "{|||\n  a\n|||: 1}", "{a: [1, {b: 2}]}", "# {\n{a: 1}", "/* { */ {a: '{'}", "{[{a: 'k'}.a]: 1}", "{a: 1,}", "{ä: 1}", "{'ä': [1]}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, _, deep := load.FindDeepBracket([]byte(text)); deep || len(text) > 4096 {
			return
		}
		if _, _, err := formatter.SnippetToRawAST("a.jsonnet", text); err != nil {
			return
		}
		m := &marker{}
		marked := m.insertMarks("a.jsonnet", []byte(text))
		if _, _, err := formatter.SnippetToRawAST("a.jsonnet", string(marked)); err != nil {
			t.Errorf("%q becomes %q: %v", text, marked, err)
		}
		lines := strings.Split(text, "\n")
		for _, e := range m.entries {
			if e.value.Line < 1 || e.value.Line > len(lines) || e.value.Column < 1 || e.value.Column > len(lines[e.value.Line-1])+1 {
				t.Errorf("%q: an entry at %v", text, e.value)
			}
		}
	})
}
