package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/plan"
)

func TestMain(m *testing.M) {
	if IsChild(os.Args[1:]) {
		os.Exit(Serve(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// makeDoublingHCL returns HCL that doubles a text n times.
func makeDoublingHCL(n int) string {
	var b strings.Builder
	b.WriteString("locals {\n  a0 = \"xxxxxxxxxxxxxxxx\"\n")
	for i := range n {
		fmt.Fprintf(&b, "  a%d = \"${local.a%d}${local.a%d}\"\n", i+1, i, i)
	}
	b.WriteString("}\n")
	return b.String()
}

// Programs that end a process, or never end by themselves. Each must be one
// error about its file, in bounded time, and the next program must work.
func TestNoProgramCrashesOrHangs(t *testing.T) {
	for _, c := range []struct {
		claim, file, text string
		id                string
		wantText          string // "" where the kernel and Go decide which limit is hit
	}{
		{"an object compared with itself", "a.jsonnet", "{a: $} == {a: $}", "YT0007", "nested without end"},
		{"tail calls without end", "a.jsonnet", "local f(n) = f(n + 1) tailstrict; f(0)", "YT0007", "nested without end"},
		{"three million brackets", "a.jsonnet", strings.Repeat("[", 3_000_000), "YT0006", "nested more than 200"},
		{"three million operators", "a.jsonnet", strings.Repeat("-", 3_000_000) + "1", "YT0007", ""},
		{"an array of 10^9", "a.jsonnet", "{a: std.length(std.makeArray(1e9, function(i) i))}", "YT0007", "memory"},
		{"a text of 2^40", "a.jsonnet", "local d(s, n) = if n == 0 then s else d(s + s, n - 1); {a: d('x', 40)}", "YT0007", "memory"},
		{"a range of 10^8", "a.jsonnet", "{a: std.range(0, 1e8)}", "YT0007", "memory"},
		{"an object that contains itself", "a.jsonnet", "{a: self}", "YT0007", "calls itself without end"},
		{"a call without end", "a.jsonnet", "local f(n) = 1 + f(n); {a: f(1)}", "YT0007", "calls itself without end"},
		{"a loop without end", "a.jsonnet", "{a: std.foldl(function(x, i) x, std.makeArray(3e7, function(i) i), 0)}", "YT0007", ""},
		{"three million brackets", "a.hcl", "locals {\n  a = " + strings.Repeat("[", 3_000_000), "YT0006", "nested more than 200"},
		{"three million operators", "a.hcl", "locals {\n  a = " + strings.Repeat("!", 3_000_000) + "true\n}\n", "YT0007", ""},
		{"a text of 2^40", "a.hcl", makeDoublingHCL(40), "YT0007", "memory"},
		{"loops in loops", "a.hcl", "locals {\n  r = range(1024)\n  a = [for a in local.r : [for b in local.r : [for c in local.r : a + b + c]]]\n}\n", "YT0007", ""},
		{"all combinations of a thousand numbers", "a.hcl", "locals {\n  r = range(1024)\n  a = setproduct(local.r, local.r, local.r)\n}\n", "YT0007", "memory"},
		{"locals in a circle", "a.hcl", "locals {\n  a = local.b\n  b = local.a\n}\n", "YT0108", "depends on itself"},
	} {
		t.Run(c.file+"/"+c.claim, func(t *testing.T) {
			t.Parallel()
			started := time.Now()
			e := FrontEnd{}.Load(map[string][]byte{c.file: []byte(c.text)})
			if took := time.Since(started); took > maxClock+time.Minute {
				t.Errorf("it took %s", took)
			}
			if len(e.Roots) > 0 || len(e.Diagnostics) != 1 {
				t.Fatalf("%d roots, %+v", len(e.Roots), e.Diagnostics)
			}
			d := e.Diagnostics[0]
			if d.ID != c.id || d.Pos.File != c.file || !strings.Contains(d.Message, c.wantText) {
				t.Errorf("got %s at %s: %s", d.ID, d.Pos.File, d.Message)
			}
		})
	}
}

func TestFailedFileIsNamedAmongMany(t *testing.T) {
	e := FrontEnd{}.Load(map[string][]byte{
		"a.jsonnet": []byte("{layer: {name: 'a'}}"),
		"b.jsonnet": []byte("{a: $} == {a: $}"),
		"c.jsonnet": []byte("{}"),
	})
	if len(e.Diagnostics) != 1 || e.Diagnostics[0].Pos != (plan.Position{File: "b.jsonnet", Line: 1, Column: 1}) {
		t.Errorf("got %+v", e.Diagnostics)
	}
}

// A configuration may bring in files below its own folder and nothing else.
func TestImportsStayBelowTheProject(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "project")
	for name, text := range map[string]string{
		"secret":                     "secret",
		"outside/main.hcl":           "layer {}\n",
		"project/lib/ok.libsonnet":   "{ name: 'ok' }",
		"project/modules/ok/all.hcl": "layer {\n  name = \"ok\"\n}\n",
	} {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"link.txt": filepath.Join(base, "secret"), "up.txt": "../secret",
		"modules/out": filepath.Join(base, "outside"), "lib/in.libsonnet": "ok.libsonnet",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, c := range []struct {
		claim, file, text string
		id                string // "" when it is allowed
	}{
		{"below the folder", "a.jsonnet", "{ layer: import 'lib/ok.libsonnet' }", ""},
		{"a link that stays inside", "a.jsonnet", "{ layer: import 'lib/in.libsonnet' }", ""},
		{"through a folder and back", "a.jsonnet", "{ layer: import 'lib/../lib/ok.libsonnet' }", ""},
		{"an absolute path", "a.jsonnet", "{ a: importstr '/etc/passwd' }", "YT0003"},
		{"a path that leads up", "a.jsonnet", "{ a: importstr '../secret' }", "YT0003"},
		{"up through a folder", "a.jsonnet", "{ a: importstr 'lib/../../secret' }", "YT0003"},
		{"a link that leads out", "a.jsonnet", "{ a: importstr 'link.txt' }", "YT0003"},
		{"a relative link that leads out", "a.jsonnet", "{ a: importbin 'up.txt' }", "YT0003"},
		{"a pipe nobody writes to", "a.jsonnet", "{ a: importstr 'pipe' }", "YT0003"},
		{"a folder", "a.jsonnet", "{ a: importstr 'lib' }", "YT0003"},
		{"nothing there", "a.jsonnet", "{ a: import 'none.libsonnet' }", "YT0003"},
		{"a module below the folder", "a.hcl", "module \"m\" {\n  source = \"./modules/ok\"\n}\n", ""},
		{"a module's absolute path", "a.hcl", "module \"m\" {\n  source = \"/etc\"\n}\n", "YT0003"},
		{"a module's path that leads up", "a.hcl", "module \"m\" {\n  source = \"../outside\"\n}\n", "YT0003"},
		{"a module behind a link that leads out", "a.hcl", "module \"m\" {\n  source = \"./modules/out\"\n}\n", "YT0003"},
		{"a module from the network", "a.hcl", "module \"m\" {\n  source = \"git::https://example.com/m\"\n}\n", "YT0003"},
		{"functions that read files", "a.hcl", "locals {\n  a = file(\"/etc/passwd\")\n}\n", "YT0005"},
		{"functions of the host", "a.jsonnet", "std.native('exec')('id')", "YT0100"},
		{"the environment", "a.hcl", "locals {\n  a = env.HOME\n}\n", "YT0005"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			e := FrontEnd{Root: root.FS()}.Load(map[string][]byte{c.file: []byte(c.text)})
			if c.id == "" {
				if len(e.Diagnostics) > 0 || len(e.Roots) == 0 {
					t.Fatalf("refused: %+v", e.Diagnostics)
				}
				return
			}
			if len(e.Roots) > 0 || len(e.Diagnostics) != 1 || e.Diagnostics[0].ID != c.id {
				t.Fatalf("got %+v, want %s", e.Diagnostics, c.id)
			}
			if d := e.Diagnostics[0]; d.Pos.File != c.file || d.Help == "" && c.id == "YT0003" {
				t.Errorf("it does not help: %+v", d)
			}
		})
	}
}

func TestImportsAreBounded(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "big.txt"), make([]byte, load.MaxSource+1), 0o644); err != nil {
		t.Fatal(err)
	}
	e := FrontEnd{Root: os.DirFS(dir)}.Load(map[string][]byte{"a.jsonnet": []byte("{ a: importstr 'big.txt' }")})
	if len(e.Diagnostics) != 1 || !strings.Contains(e.Diagnostics[0].Message, "4 MiB") {
		t.Errorf("got %+v", e.Diagnostics)
	}
}

// A program that forgets to serve must not start itself for ever.
func TestProgramWithoutServeGetsAnError(t *testing.T) {
	t.Setenv(marker, "1")
	e := FrontEnd{}.Load(map[string][]byte{"a.hcl": []byte("layer {}\n")})
	if len(e.Diagnostics) != 1 || !strings.Contains(e.Diagnostics[0].Message, "sandbox.Serve") {
		t.Errorf("got %+v", e.Diagnostics)
	}
}

// For any content of a file, evaluation ends with a tree or an error that names
// the file.
func FuzzEvaluate(f *testing.F) {
	for _, seed := range []string{
		"{layer: {name: 'a'}}", "local a = {b: 1}; a + {c+: 2}", "{[x]: 1 for x in ['a']}", "{a: $} == {a: $}",
		"import 'a.jsonnet'", "function(x=1) {a: x}", "{a: 1e300}", "{a: '%10d' % 1}", "std.range(0, 9)",
		"layer {\n  name = \"a\"\n}\n", "locals {\n  a = [for x in range(9) : x]\n}\n", "a = 1e999\n", "a = format(\"%9d\", 1)\n",
		"module \"m\" {\n  source = \"./\"\n}\n", "target \"a\" {\n  use = var.x\n}\nvariable \"x\" {}\n", "a = <<E\n${b}\nE\n",
	} {
		f.Add([]byte(seed), strings.Contains(seed, "\n"))
	}
	f.Fuzz(func(t *testing.T, text []byte, inHCL bool) {
		name := "a.jsonnet"
		if inHCL {
			name = "a.hcl"
		}
		e := FrontEnd{}.Load(map[string][]byte{name: text})
		if len(e.Roots) == 0 && len(e.Diagnostics) == 0 {
			t.Errorf("neither a tree nor an error for %q", text)
		}
		for _, d := range e.Diagnostics {
			if d.ID == "" || d.ID == "YT0900" || d.Message == "" {
				t.Errorf("%+v for %q", d, text)
			}
		}
	})
}
