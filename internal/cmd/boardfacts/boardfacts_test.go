package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
)

func TestLayOutKeepsTheDataAndItsOrder(t *testing.T) {
	in := []byte(`{"z":1,"a":[1,2,3],"long":[{"k":"` + string(bytes.Repeat([]byte("x"), 200)) + `"},[["P","A","1"],["P","B","2"]]],"e":{},"u":"<&>"}`)
	out, err := layOut(in)
	if err != nil {
		t.Fatal(err)
	}
	var back bytes.Buffer
	if err := json.Compact(&back, out); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Bytes(), in) {
		t.Errorf("got %s\nwant %s", back.Bytes(), in)
	}
}

// Whoever edits a data file by hand keeps the generator's layout, so that the
// next run shows only what changed.
func TestDataFilesHaveTheGeneratorsLayout(t *testing.T) {
	files, err := filepath.Glob("../../../schema/facts/board/data/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d board files, %v", len(files), err)
	}
	for _, name := range []string{"machines.json", "units.json", "variables.json"} {
		files = append(files, "../../../schema/facts/release/data/"+name)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := layOut(raw)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		} else if !bytes.Equal(raw, want) {
			t.Errorf("%s is laid out in another way than the generator writes it", file)
		}
	}
}

func TestOverlayKnowsTheBoardsThatAreEmbedded(t *testing.T) {
	var o overlay
	if err := json.Unmarshal(overlayFile, &o); err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(o.Boards)), board.IDs(); !slices.Equal(got, want) {
		t.Errorf("overlay.json has %v, embedded are %v", got, want)
	}
}

func TestMachineFilesResolveThroughWhatTheyRequire(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	repo := t.TempDir()
	for name, text := range map[string]string{
		"conf/machine/kit.conf": "# kit\nNVPMODEL ?= \"mine_${TEGRA_UCM}\"\nTEGRA_UCM ?= \"ucm1\"\nrequire conf/machine/include/soc.inc\nKERNEL_ARGS += \"quiet\"\n",
		"conf/machine/include/soc.inc": "require conf/machine/include/arm/arch.inc\nNVPMODEL ?= \"soc\"\nTEGRA_BOARDID ??= \"3701\"\n" +
			"KERNEL_ARGS ?= \"console=ttyS0 \\\n   fbcon=map:0\"\nKERNEL_DEVICETREE ?= \"a.dtb b.dtb\"\n",
	} {
		file := filepath.Join(repo, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "wrynose"}, {"add", "."},
		{"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "machine"},
	} {
		if _, err := repository(repo).git(args...); err != nil {
			t.Fatal(err)
		}
	}
	c := machineConf{value: map[string]string{}, weak: map[string]string{}, origin: map[string]string{}}
	if err := c.load(repository(repo), "wrynose", "conf/machine/kit.conf"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"NVPMODEL": "mine_ucm1", "TEGRA_BOARDID": "3701", "KERNEL_ARGS": "console=ttyS0 fbcon=map:0 quiet",
		"KERNEL_DEVICETREE": "a.dtb b.dtb", "NVFANCONTROL": "",
	} {
		if got := c.get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

func TestATableIsOnlyVerifiedForTheL4TItWasReadFor(t *testing.T) {
	g := generator{over: boardOverlay{Tables: []tableOverlay{
		{Key: "new", L4T: "36.4", Holds: []string{"36.4"}, Files: []string{"f"}},
		{Key: "old", L4T: "32", Files: []string{"f"}, Lines: []string{"R32"}},
	}}}
	for _, c := range []struct {
		release, key, basis string
		verified            bool
	}{
		{"walnascar", "new", "", true},
		{"scarthgap", "new", "36.4", false}, // 36.5
		{"kirkstone", "new", "36.4", false},
		{"kirkstone-l4t-r32.7.x", "old", "32", false},
	} {
		r, _ := release.Lookup(c.release)
		key, verified, basis := g.tableFor("f", r)
		if key != c.key || verified != c.verified || basis != c.basis {
			t.Errorf("%s: %q, verified %t, basis %q; want %q, %t, %q", c.release, key, verified, basis, c.key, c.verified, c.basis)
		}
	}
	if key, _, _ := g.tableFor("other", release.Release{L4T: "36.4.3"}); key != "" {
		t.Errorf("a file nobody read has table %q", key)
	}
}

func TestKernelLinesSortByNumber(t *testing.T) {
	lines := []string{"6.12", "4.9", "6.8", "5.10", "6.1"}
	slices.SortFunc(lines, func(a, b string) int {
		if lineLess(a, b) {
			return -1
		}
		return 1
	})
	if want := []string{"4.9", "5.10", "6.1", "6.8", "6.12"}; !slices.Equal(lines, want) {
		t.Errorf("got %v, want %v", lines, want)
	}
}
