// Package oelint checks generated recipes with oelint-adv, the style checker for
// openembedded-core.
//
// It is looked up at YOCTUNE_OELINT, in build/oelint-venv of the repository, and in PATH. Without
// it a test is skipped with the reason.
package oelint

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/yoctune/yoctune/emitters"
)

// intendedFindings lists the rules that do not apply to a generated layer, with reasons.
func intendedFindings() map[string]string {
	return map[string]string{
		"oelint.vars.homepageping":     "it needs the network",
		"oelint.vars.noncoreoverride":  "appends act only behind the distro feature, which it cannot see",
		"oelint.vars.specific":         "the override of one machine alone is defined in the settings file, which it does not read",
		"oelint.file.requirenotfound":  "it misreads a condition inside a condition; bitbake's own parser finds every file that is required",
		"oelint.func.specific":         "as oelint.vars.specific",
		"oelint.vars.layerconf":        "UNPACKDIR, where the series has none",
		"oelint.vars.mispell.unknown":  "UNPACKDIR, and CUDA_DEPENDS of meta-tegra",
		"oelint.vars.downloadfilename": "models are named by their digest, which is more precise than a version",
		"oelint.var.licenseremotefile": "files of the layer itself are under the common licence",
	}
}

// Check reports the findings of oelint-adv about the recipes, appends, includes and layer.conf of
// a layer for series.
func Check(t testing.TB, series string, files []emitters.File) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"--quiet", "--hide", "info", "--release", series}
	for rule := range intendedFindings() {
		args = append(args, "--suppress", rule)
	}
	for _, f := range files {
		p := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, f.Data, f.Mode); err != nil {
			t.Fatal(err)
		}
		if ext := filepath.Ext(f.Path); ext == ".bb" || ext == ".bbappend" || ext == ".inc" || filepath.Base(f.Path) == "layer.conf" {
			args = append(args, p)
		}
	}
	out, err := exec.CommandContext(t.Context(), program(t), args...).CombinedOutput()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("oelint-adv, %s: %v\n%s", series, err, bytes.ReplaceAll(out, []byte(dir+string(filepath.Separator)), nil))
	}
}

func program(t testing.TB) string {
	t.Helper()
	if p := os.Getenv("YOCTUNE_OELINT"); p != "" {
		return p
	}
	// Tests run in their package's folder; all that call are two below the root.
	own, err := filepath.Abs(filepath.Join("..", "..", "build", "oelint-venv", "bin", "oelint-adv"))
	if err == nil {
		if _, err := os.Stat(own); err == nil {
			return own
		}
	}
	p, err := exec.LookPath("oelint-adv")
	if err != nil {
		t.Skipf("%v: its judgement of the recipes is missing (scripts/setup.sh python)", err)
	}
	return p
}
