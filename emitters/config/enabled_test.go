package config_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/assemble"
	"github.com/yoctune/yoctune/emitters/emittest"
)

// What the recipe does to start a pipeline at boot is what systemd calls enabled.
func TestSystemdFindsTheStartedPipelineEnabled(t *testing.T) {
	if _, err := exec.LookPath("systemctl"); err != nil {
		t.Skipf("%v: the judgement of systemd is missing", err)
	}
	files, err := assemble.Emit(emittest.Vision(t))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	units := filepath.Join(root, "usr/lib/systemd/system")
	if err := os.MkdirAll(units, 0o755); err != nil {
		t.Fatal(err)
	}
	var script []string
	for _, f := range files {
		switch filepath.Base(f.Path) {
		case "yoctuned-pipeline@.service":
			if err := os.WriteFile(filepath.Join(units, "yoctuned-pipeline@.service"), f.Data, 0o644); err != nil {
				t.Fatal(err)
			}
		case "yoctune-vision-config_1.0.bb":
			for line := range strings.Lines(string(f.Data)) {
				if strings.Contains(line, ".wants") {
					script = append(script, line)
				}
			}
		}
	}
	vars := strings.NewReplacer("${D}", root, "${sysconfdir}", "/etc", "${systemd_system_unitdir}", "/usr/lib/systemd/system")
	if out, err := exec.Command("sh", "-euc", vars.Replace(strings.Join(script, ""))).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for unit, want := range map[string]string{emitters.PipelineUnit("door"): "enabled", emitters.PipelineUnit("other"): "disabled"} {
		out, err := exec.Command("systemctl", "--root="+root, "is-enabled", unit).Output()
		if got := strings.TrimSpace(string(out)); got != want {
			t.Errorf("%s is %q (%v), want %s", unit, got, err, want)
		}
	}
}
