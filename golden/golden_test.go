// Package golden pins the whole layer of each example, so that every change of
// the compiler or of an emitter shows what it changes for users.
package golden

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/layer/manifest"
	"github.com/yoctune/yoctune/compiler/layer/tree"
	"github.com/yoctune/yoctune/compiler/report/review"
	"github.com/yoctune/yoctune/emitters"
)

var update = flag.Bool("update", false, "rewrite the golden trees")

const examples = "../examples"

// names lists the examples, each a folder with a configuration.
func names(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(examples, "*", "config.cue"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no examples in %s: %v", examples, err)
	}
	var out []string
	for _, d := range dirs {
		out = append(out, filepath.Base(filepath.Dir(d)))
	}
	return out
}

func build(t *testing.T, name string) []emitters.File {
	t.Helper()
	p, err := compiler.Options{Runtime: runtimeFolder}.Open(filepath.Join(examples, name))
	if err != nil {
		t.Fatal(err)
	}
	layers := p.Layers(compiler.Selection{})
	if p.Report.Failed() || len(layers) != 1 {
		var b strings.Builder
		if err := diag.WriteText(&b, p.Report, p.Config.Sources, false); err != nil {
			t.Fatal(err)
		}
		t.Fatalf("%s does not build:\n%s", name, b.String())
	}
	return layers[0].Files
}

func TestEachExampleYieldsItsGoldenTree(t *testing.T) {
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			files := build(t, name)
			if *update {
				c, err := tree.Compare(name, files)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Write(t.Context(), true); err != nil {
					t.Fatal(err)
				}
				return
			}
			compare(t, name, files)
		})
	}
}

// compare reports every difference between a golden folder and the files.
func compare(t *testing.T, dir string, files []emitters.File) {
	t.Helper()
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("the golden tree is missing; make it with: go test ./golden -update")
	}
	c, err := tree.Compare(dir, files)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range c.Conflicts {
		t.Errorf("%s: %v", dir, k)
	}
	for _, a := range c.Actions {
		from, to := filepath.Join(dir, a.Path), filepath.Join(dir, a.Path)
		switch a.Kind {
		case tree.Add:
			from = ""
		case tree.Remove:
			to = ""
		}
		diff := review.UnifiedDiff(a.Was, a.Now, from, to)
		if diff == "" {
			diff = a.Path + ": the mode differs\n"
		}
		t.Errorf("%s changed; if that is intended: go test ./golden -update\n%s", a.Path, diff)
	}
	owned := map[string]bool{manifest.Name: true}
	for _, f := range files {
		owned[f.Path] = true
	}
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !owned[path] {
			t.Errorf("%s/%s belongs to no layer", dir, path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Two builds of the same configuration give the same bytes.
func TestBuildingTwiceGivesTheSameBytes(t *testing.T) {
	for _, name := range names(t) {
		first, second := build(t, name), build(t, name)
		if len(first) != len(second) {
			t.Fatalf("%s: %d files, then %d", name, len(first), len(second))
		}
		for i := range first {
			if first[i].Path != second[i].Path || string(first[i].Data) != string(second[i].Data) || first[i].Mode != second[i].Mode {
				t.Errorf("%s: %s differs between two builds", name, first[i].Path)
			}
		}
	}
}

// Generated layers are shared: they must not contain traces of the build machine.
func TestLayersNameNothingOfTheBuildMachine(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names(t) {
		for _, f := range build(t, name) {
			if strings.Contains(string(f.Data), wd) || len(host) > 4 && strings.Contains(string(f.Data), host) {
				t.Errorf("%s: %s names this machine", name, f.Path)
			}
		}
	}
}
