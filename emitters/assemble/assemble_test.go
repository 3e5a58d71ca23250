package assemble_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/assemble"
	"github.com/yoctune/yoctune/emitters/config"
	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/readme"
	"github.com/yoctune/yoctune/schema/plan"
)

// The two artefacts that describe the others.
func TestRecipeAndReadmeOfBothLayers(t *testing.T) {
	emittest.Golden(t, func(l *plan.Layer) ([]emitters.File, error) {
		files, err := assemble.Emit(l)
		if err != nil {
			return nil, err
		}
		recipe, err := config.Emit(l, files)
		if err != nil {
			return nil, err
		}
		doc, err := readme.Emit(l, files)
		return append(recipe, doc...), err
	})
}

var write = flag.String("write", "", "also write both layers below this folder, for checks with a real bitbake")

func TestBothLayersAreCompleteWithoutDuplicates(t *testing.T) {
	dir := *write
	if dir == "" {
		dir = t.TempDir()
	}
	for _, l := range []*plan.Layer{emittest.Vision(t), emittest.Control(t)} {
		files, err := assemble.Emit(l)
		if err != nil {
			t.Fatal(err)
		}
		emittest.Write(t, filepath.Join(dir, "meta-"+l.Name), files)
		for _, want := range []string{"conf/layer.conf", "COPYING.MIT", "SECURITY.md", "README.md", "conf/yoctune/" + l.Name + ".conf"} {
			if _, err := os.Stat(filepath.Join(dir, "meta-"+l.Name, want)); err != nil {
				t.Error(err)
			}
		}
	}
}

// A folder with an emitter that nothing calls would be an artefact that is lost.
func TestEveryEmitterIsListed(t *testing.T) {
	list, err := os.ReadFile("assemble.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no emitters: %v", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(f))
		if name != "assemble" && strings.Contains(string(text), "\nfunc Emit(") && !strings.Contains(string(list), name+".Emit") {
			t.Errorf("assemble.go does not list %s.Emit", name)
		}
	}
}
