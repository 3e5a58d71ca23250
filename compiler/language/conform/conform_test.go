package conform

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema"
)

// checkWithCUE validates a configuration with CUE itself and the real schema.
func checkWithCUE(t *testing.T, text string) error {
	t.Helper()
	bctx := build.NewContext()
	lang := bctx.NewInstance("schema", nil)
	lang.ImportPath, lang.PkgName = schema.ImportPath, "schema"
	names, err := fs.Glob(schema.FS, "*.cue")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		src, err := fs.ReadFile(schema.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(name, src)
		if err != nil {
			t.Fatal(err)
		}
		if err := lang.AddSyntax(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := lang.Complete(); err != nil {
		t.Fatal(err)
	}
	inst := bctx.NewInstance("", func(_ token.Pos, path string) *build.Instance {
		if path == schema.ImportPath {
			return lang
		}
		return nil
	})
	f, err := parser.ParseFile("config.cue", text)
	if err != nil {
		t.Fatal(err)
	}
	if err := inst.AddSyntax(f); err != nil {
		t.Fatal(err)
	}
	if err := inst.Complete(); err != nil {
		t.Fatal(err)
	}
	return cuecontext.New().BuildInstance(inst).Validate(cue.Concrete(true))
}

// checkWithSchema validates a configuration with this package.
func checkWithSchema(t *testing.T, lang *Schema, text string) []diag.Diagnostic {
	t.Helper()
	cfg, report := load.Files(map[string][]byte{"config.cue": []byte(text)})
	if cfg.Root == nil {
		t.Fatalf("does not load: %+v\n%s", report.All(), text)
	}
	NewChecker(lang, report).Check(cfg.Root, "", "#Config", false)
	return report.All()
}

const frame = `package box
import "github.com/yoctune/yoctune/schema"
schema.#Config & {
	layer: {name: "box", maintainer: "x"}
	targets: cam: {board: "b", release: "r", %s}
}
`

// The checker and CUE must accept and reject the same values: the schema is one
// language, whichever program reads it.
func TestCheckerAndCUEAgree(t *testing.T) {
	lang := Language()
	agree := func(t *testing.T, text string) {
		t.Helper()
		theirs, mine := checkWithCUE(t, text), checkWithSchema(t, lang, text)
		if (theirs == nil) != (len(mine) == 0) {
			t.Errorf("CUE returns %v, the checker %+v\n%s", theirs, mine, text)
		}
	}
	values := []string{`1`, `-1`, `0`, `255`, `256`, `65536`, `99999999999999999999`, `0.5`, `"x"`, `""`, `"a b"`, `"918MHz"`, `"2GiB"`, `"5ms"`, `"unlimited"`,
		`true`, `false`, `[]`, `[1]`, `["x"]`, `["/bin/x"]`, `{}`, `{size: "1GiB"}`, `{size: 1, other: 2}`, `"none"`, `"y"`, `"rt"`, `"a.service"`, `"a\nb"`}
	for _, field := range []string{
		`cpu: isolate: %s`, `cpu: governor: %s`, `cpu: min: %s`, `cpu: nonsense: %s`, `gpu: max: %s`,
		`kernel: config: A: %s`, `kernel: config: "a-b": %s`, `kernel: args: a: %s`, `kernel: preempt: %s`,
		`sysctl: "vm.x": %s`, `sysctl: x: %s`, `memory: zram: %s`, `memory: ksm: %s`, `memory: hugepages: "2MiB": %s`, `memory: hugepages: "3MiB": %s`,
		`storage: "nvme*": %s`, `storage: "nvme*": readahead: %s`, `storage: "nvme*": rqAffinity: %s`, `irq: affinity: "eth0": %s`,
		`network: eth0: mtu: %s`, `modules: m: %s`, `packages: p: %s`, `packages: P: %s`,
		`services: "a.service": %s`, `services: "a.service": exec: %s`, `services: "a.service": nice: %s`, `services: a: %s`,
		`power: default: %s`, `power: modes: A: %s`, `power: modes: A: {from: "x", cpu: max: %s}`, `power: modes: A: {from: "x", emc: %s}`,
		`pipelines: p: {source: {kind: "file", path: "p", format: "y4m"}, stages: %s}`,
		`pipelines: p: {source: {kind: "file", path: "p", format: "y4m", fps: %s}, stages: {}}`,
		`pipelines: p: {source: {kind: "v4l2", path: %s, format: "nv12"}, stages: {}}`,
		`pipelines: p: {source: {kind: "synthetic", path: %s, format: "nv12"}, stages: {}}`,
		`pipelines: p: {source: {kind: "file", path: "p", format: "y4m"}, stages: s: {kind: "preprocess", input: "source", width: %[1]s, height: 4}}`,
		`pipelines: p: {source: {kind: "file", path: "p", format: "y4m"}, stages: s: {kind: "model", input: "source", width: %s}}`,
		`pipelines: p: {source: {kind: "file", path: "p", format: "y4m"}, stages: s: {kind: "postprocess", input: "source", decode: "ctc", threshold: %s}}`,
		`monitor: interval: %s`, `runtime: cuda: %s`, `use: %s`, `machine: %s`,
	} {
		t.Run(field, func(t *testing.T) {
			for _, v := range values {
				agree(t, fmt.Sprintf(frame, fmt.Sprintf(field, v)))
			}
		})
	}
}

func TestExamplesConform(t *testing.T) {
	lang := Language()
	files, err := filepath.Glob("../../../examples/*/config.cue")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkWithCUE(t, string(text)); err != nil {
			t.Errorf("%s: CUE: %v", file, err)
		}
		if found := checkWithSchema(t, lang, string(text)); len(found) > 0 {
			t.Errorf("%s: %+v", file, found)
		}
	}
}

func TestEveryFieldOfTheLanguageIsDocumented(t *testing.T) {
	var visit func(where string, st *structure)
	visit = func(where string, st *structure) {
		for _, m := range st.fields {
			if m.doc == "" {
				t.Errorf("%s.%s has no comment", where, m.name)
			}
			if m.value.op == object {
				visit(where+"."+m.name, m.value.obj)
			}
		}
		for _, b := range st.branches {
			visit(where, b.then)
		}
	}
	for _, d := range Language().defs {
		if d.doc == "" {
			t.Errorf("%s has no comment", d.name)
		}
		if d.value.op == object {
			visit(d.name, d.value.obj)
		}
	}
}

// One mistake must not hide another, as it does in CUE.
func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	found := checkWithSchema(t, Language(), fmt.Sprintf(frame, `cpu: {govenor: "x", isolate: ["y"]}, memory: thp: "madvice", services: "a.service": {nice: 99, exec: [1, 2]}`))
	var ids []string
	for _, d := range found {
		ids = append(ids, d.ID)
	}
	if got, want := strings.Join(ids, " "), "YT0102 YT0101 YT0103 YT0106 YT0101 YT0101"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
