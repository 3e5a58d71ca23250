package scaffold_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/language/scaffold"
	"github.com/yoctune/yoctune/schema/facts/board"
)

func project(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "p")
	files, err := scaffold.Files(scaffold.Options{Board: "orin-nano-8gb", Release: "scarthgap", Name: "line-camera", Maintainer: "Team <team@example.com>"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.Write(dir, ".", files, false); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A new project is sound for every board on every release it runs on.
func TestEveryBoardAndReleaseHasAValidStart(t *testing.T) {
	tried := 0
	for _, id := range board.IDs() {
		b, ok := board.Lookup(id)
		if !ok {
			t.Fatal(id)
		}
		for rel := range b.Releases {
			files, err := scaffold.Files(scaffold.Options{Board: id, Release: rel, Name: "a", Maintainer: "T <t@example.com>"})
			if err != nil {
				t.Fatalf("%s %s: %v", id, rel, err)
			}
			for _, f := range files {
				if f.Path != "config.cue" {
					continue
				}
				p := compiler.OpenFiles(map[string][]byte{"config.cue": f.Text})
				p.Verify()
				if p.Report.Failed() {
					t.Errorf("%s %s: %+v", id, rel, p.Report.All())
				}
			}
			tried++
		}
	}
	if tried < 40 {
		t.Errorf("only %d boards and releases", tried)
	}
}

// CUE itself finds the definitions of a new project below cue.mod/pkg, where it
// looks before any registry, and judges the configuration by them.
func TestCUEUnderstandsTheProjectOffline(t *testing.T) {
	dir := project(t)
	ctx := build.NewContext()
	folder := func(inst *build.Instance, dir string) *build.Instance {
		names, err := filepath.Glob(filepath.Join(dir, "*.cue"))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no CUE files: %v", dir, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := parser.ParseFile(name, text)
			if err != nil {
				t.Fatal(err)
			}
			if err := inst.AddSyntax(f); err != nil {
				t.Fatal(err)
			}
		}
		return inst
	}
	check := func() error {
		inst := folder(ctx.NewInstance(dir, func(_ token.Pos, path string) *build.Instance {
			if path == "strings" {
				return nil
			}
			dep := ctx.NewInstance("", nil)
			dep.ImportPath, dep.PkgName = path, "schema"
			return folder(dep, filepath.Join(dir, "cue.mod", "pkg", filepath.FromSlash(path)))
		}), dir)
		if err := inst.Complete(); err != nil {
			return err
		}
		return cuecontext.New().BuildInstance(inst).Validate(cue.Concrete(true))
	}
	if err := check(); err != nil {
		t.Errorf("the project as written: %v", err)
	}
	name := filepath.Join(dir, "config.cue")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	wrong := bytes.Replace(text, []byte(`scheduler: "none"`), []byte(`scheduler: "fast"`), 1)
	if bytes.Equal(wrong, text) {
		t.Fatal("nothing to make wrong")
	}
	if err := os.WriteFile(name, wrong, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := check(); err == nil || !strings.Contains(err.Error(), "scheduler") {
		t.Errorf("a wrong value: %v", err)
	}
}

// The same by the cue command, where it is installed.
func TestCueCommandVetsTheProjectOffline(t *testing.T) {
	cmd := cueCommand(t)
	c := exec.Command(cmd, "vet", "-c", ".")
	c.Dir, c.Env = project(t), append(os.Environ(), "CUE_REGISTRY=none")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("cue vet: %v\n%s", err, out)
	}
}

func TestWriteKeepsExistingValues(t *testing.T) {
	files := []scaffold.File{{Path: "a/b.txt", Text: []byte("new")}, {Path: "own.txt", Text: []byte("new"), Keep: true}}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "own.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.Write(dir, ".", files, false); !errors.Is(err, scaffold.ErrNotEmpty) {
		t.Errorf("a folder that is not empty: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
		t.Error("something was written all the same")
	}
	written, err := scaffold.Write(dir, ".", files, true)
	if err != nil || len(written.Files) != 1 || written.Files[0] != "a/b.txt" {
		t.Errorf("with force: %v %v", written, err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "own.txt")); string(got) != "mine" {
		t.Errorf("the user's file: %s", got)
	}
}
