package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// The committed files are the output of `facts update`, so that the next change shows only its own
// differences.
func TestTheDataFilesAreUpToDate(t *testing.T) {
	root := t.TempDir()
	facts := filepath.Join(root, "schema", "facts")
	if err := os.CopyFS(facts, os.DirFS("../../../schema/facts")); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"update", "kernels"} {
		if err := run([]string{command, "-root", root}); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(facts, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		got, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		want, err := os.ReadFile(filepath.Join("../../..", rel))
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not up to date: make update", rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestABoardNeedsEvidence(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "new.json"), []byte(`{"id": "new"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := updateBoards(dir); err == nil || !strings.Contains(err.Error(), "evidence is missing") {
		t.Errorf("got %v, want an error about the evidence", err)
	}
}

func TestFilesOfAReleaseHaveTheGeneratorsLayout(t *testing.T) {
	for _, name := range []string{"machines.json", "units.json", "renamed.json", "kernels.json"} {
		raw, err := os.ReadFile("../../../schema/facts/release/data/" + name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := layOut(raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !bytes.Equal(raw, want) {
			t.Errorf("%s is laid out in another way than facts writes it", name)
		}
	}
}

func TestExclusionsBecomeMutualAndRowsAreSorted(t *testing.T) {
	row := func(key, excludes string) string {
		return `{"key":"` + key + `",` + excludes + `"source":"s","variants":null}`
	}
	file := func(rows string) string { return "{\"kernels\": [],\n \"facts\": [" + rows + "\n ]}\n" }
	got, err := layOutSysctls([]byte(file(row("b.x", `"excludes":["a.y"],`) + "," + row("a.y", ""))))
	if err != nil {
		t.Fatal(err)
	}
	want := file("\n  " + row("a.y", `"excludes":["b.x"],`) + ",\n  " + row("b.x", `"excludes":["a.y"],`))
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for _, rows := range []string{row("a", "") + "," + row("a", ""), row("a", `"excludes":["b"],`), `{"name":"a"}`} {
		if _, err := layOutSysctls([]byte(file(rows))); err == nil {
			t.Errorf("%s is accepted", rows)
		}
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
	b := &board.Board{Tables: map[string]board.Table{
		"new": {L4T: "36.4", Holds: []string{"36.4"}, Files: []string{"f"}},
		"old": {L4T: "32", Files: []string{"f"}, Lines: []string{"R32"}},
	}}
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
		key, verified, basis := nearestTable(b, "f", r)
		if key != c.key || verified != c.verified || basis != c.basis {
			t.Errorf("%s: %q, verified %t, basis %q; want %q, %t, %q", c.release, key, verified, basis, c.key, c.verified, c.basis)
		}
	}
	if key, _, _ := nearestTable(b, "other", release.Release{L4T: "36.4.3"}); key != "" {
		t.Errorf("a file without readings has table %q", key)
	}
}
