// Package demo tests scripts/demo.sh, which `make demo` runs.
package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/tests/models"
)

const root = "../.."

// The demonstration ends with the labels of the clip, and states what was real.
func TestDemoReadsTheLabelsOfTheClip(t *testing.T) {
	store := models.Dir(t)
	dir := t.TempDir()
	for _, program := range []string{"yoctune", "yoctuned"} {
		run(t, "go", "build", "-o", filepath.Join(dir, "bin", program), "./cmd/"+program)
	}
	if err := os.CopyFS(filepath.Join(dir, "lib", "yoctune"), os.DirFS(filepath.Join(root, "golden", "runtime"))); err != nil {
		t.Fatal(err)
	}
	out := run(t, "scripts/demo.sh", "examples/video-analytics", filepath.Join(dir, "bin"), filepath.Join(dir, "work"), store)
	labels, err := os.ReadFile(filepath.Join(root, "examples/video-analytics/media/serials.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, label := range strings.Fields(string(labels)) {
		if !strings.Contains(out, `"`+label+`"`) {
			t.Errorf("the output lacks the label %s", label)
		}
	}
	_, end, ok := strings.Cut(out, "== What was real, and what stood in\n")
	if !ok || !strings.HasPrefix(end, "real:") || !strings.Contains(end, "all 20 labels") || !strings.Contains(end, "\nstood in:") || !strings.Contains(end, "\nnot shown:") {
		t.Errorf("the last lines are:\n%s", end)
	}
	if t.Failed() {
		t.Log(out)
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}
