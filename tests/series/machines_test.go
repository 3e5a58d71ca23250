package series

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/tests/bitbake/bbref"
	"github.com/yoctune/yoctune/tests/series/machines"
)

// Every machine of every release builds, and bitbake's parser reads a layer with all machines of a
// release.
func TestEveryMachineOfEveryReleaseBuilds(t *testing.T) {
	files, missing, err := machines.Config("config")
	if err != nil {
		t.Fatal(err)
	}
	for name, machines := range missing {
		t.Errorf("%s: no module's facts name the machines %s", name, strings.Join(machines, ", "))
	}
	dir := t.TempDir()
	for file, data := range files {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, err := compiler.Options{Runtime: programs}.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ls := p.Layers(compiler.Selection{All: true})
	if p.Report.Failed() {
		var b strings.Builder
		if err := diag.WriteText(&b, p.Report, p.Config.Sources, false); err != nil {
			t.Fatal(err)
		}
		t.Fatalf("it does not build:\n%s", b.String())
	}
	if len(ls) != len(release.Names()) {
		t.Errorf("%d layers for %d releases", len(ls), len(release.Names()))
	}
	for _, l := range ls {
		r := facts(t, l)
		if len(l.Targets) != len(r.Machines()) {
			t.Errorf("%s: %d targets for %d machines", l.Release, len(l.Targets), len(r.Machines()))
		}
		// One run per release is enough: machines differ only in overrides, which the parser reads
		// in any case.
		machine := l.Targets[len(l.Targets)-1]
		layer := bbref.ParseLayer(t, bbref.Request{
			Dir: writeLayer(t, l), Machine: machine.Machine, Overrides: "cuda:tegra:aarch64:" + soc(t, machine),
			UnpackDir: r.UnpackDir, Fragments: r.Fragments, Enable: true,
		})
		for _, problem := range layer.Problems {
			t.Errorf("%s: %s", l.Release, problem)
		}
	}
}
