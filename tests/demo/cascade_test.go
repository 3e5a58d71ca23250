package demo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/tests/models"
)

// The example of a cascade: the built programs plan it, find every label of each frame, and read it.
// A frame without labels has a result without any.
func TestTheCascadeReadsEveryLabelOfEachFrame(t *testing.T) {
	const detector = "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9"
	store := models.Digest(t, detector)
	dir := t.TempDir()
	for _, program := range []string{"yoctune", "yoctuned"} {
		run(t, "go", "build", "-o", filepath.Join(dir, program), "./cmd/"+program)
	}
	// The plan names files beside it.
	if err := os.CopyFS(filepath.Join(dir, "cascade"), os.DirFS(filepath.Join(root, "examples", "cascade"))); err != nil {
		t.Fatal(err)
	}
	plan := filepath.Join(dir, "cascade", "plan.json")
	run(t, filepath.Join(dir, "yoctune"), "vet", "examples/cascade")
	run(t, filepath.Join(dir, "yoctune"), "plan", "examples/cascade", "-o", plan)
	args := []string{"pipeline", "run", plan, "--models", store, "--library", models.Library(t)}
	out := run(t, filepath.Join(dir, "yoctuned"), append(args, "--format", "json")...)
	b, err := os.ReadFile(filepath.Join(root, "examples/cascade/media/belt.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(want)+1 {
		t.Fatalf("%d lines for %d frames:\n%s", len(lines), len(want), out)
	}
	boxes := 0
	for n, w := range want {
		var frame struct {
			Results []struct {
				Box  [4]float64
				Then map[string][]struct{ Text string }
			}
		}
		if err := json.Unmarshal([]byte(lines[n]), &frame); err != nil {
			t.Fatal(err)
		}
		var read []string
		for _, r := range frame.Results {
			for _, found := range r.Then["text"] {
				read = append(read, found.Text)
			}
			boxes++
		}
		labels := strings.Fields(w)
		slices.Sort(labels)
		slices.Sort(read)
		if !slices.Equal(read, labels) {
			t.Errorf("frame %d: read %v, the clip shows %v", n, read, labels)
		}
	}
	var sum struct {
		Crops map[string]struct{ Boxes, Crops int }
	}
	if err := json.Unmarshal([]byte(lines[len(want)]), &sum); err != nil {
		t.Fatal(err)
	}
	if c := sum.Crops["crops"]; c.Boxes != boxes || c.Crops != boxes || boxes != 10 {
		t.Errorf("%d boxes, the summary has %+v", boxes, c)
	}
	text := run(t, filepath.Join(dir, "yoctuned"), args...)
	if !strings.Contains(text, `: "YT-48207" 0.`) || !strings.Contains(text, "stage crops: 10 boxes, 10 crops\n") {
		t.Errorf("as text:\n%s", text)
	}
}
