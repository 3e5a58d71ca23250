package kconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler/kconfig"
	"github.com/yoctune/yoctune/schema/facts/kernel"
)

func open(t testing.TB, name string) (*kconfig.Kernel, *kconfig.Config) {
	t.Helper()
	tree, base, err := kernel.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return kconfig.Prepare(tree), kconfig.BaseConfig(name+" base", base)
}

// testdata/truth holds what the kernels' own conf made of fragments merged over
// their base configuration: lines of symbol, wanted, got.
func TestPredictionsMatchKconfig(t *testing.T) {
	files, err := filepath.Glob("testdata/truth/*.tsv")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d recorded results: %v", len(files), err)
	}
	lines, lost := 0, 0
	for _, f := range files {
		name, fragment, _ := strings.Cut(strings.TrimSuffix(filepath.Base(f), ".tsv"), "-")
		k, base := open(t, name)
		data, err := os.ReadFile(filepath.Join("testdata/truth", fragment+".cfg"))
		if err != nil {
			t.Fatal(err)
		}
		cfg, _ := kconfig.ReadFragment(fragment+".cfg", data)
		r := k.Evaluate(kconfig.Merge(base, cfg))
		truth, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(truth)) {
			col := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			got, present := r.Get(col[0])
			if !present {
				got = "(absent)"
			}
			lines++
			if col[1] != col[2] {
				lost++
			}
			if got != col[2] {
				t.Errorf("%s: %s=%s: predicted %s, the real tool gave %s", filepath.Base(f), col[0], col[1], got, col[2])
			}
		}
	}
	t.Logf("%d lines, %d of them not as wanted", lines, lost)
}

func BenchmarkEvaluate(b *testing.B) {
	k, base := open(b, "6.12")
	for b.Loop() {
		k.Evaluate(base)
	}
}
