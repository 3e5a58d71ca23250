package nvpmodel

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Real files are NVIDIA's and cannot be part of this repository. Point
// YOCTUNE_NVPMODEL_DIR at a folder of them to check that each survives.
func TestRealPowerModeFilesRoundTrip(t *testing.T) {
	dir := os.Getenv("YOCTUNE_NVPMODEL_DIR")
	if dir == "" {
		t.Skip("YOCTUNE_NVPMODEL_DIR names no folder of real nvpmodel.conf files")
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	modes, damaged := 0, 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, problems, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(name), err)
			continue
		}
		out := string(writeStock(file))
		lines := strings.Split(string(text), "\n")
		for _, p := range problems {
			t.Logf("%s:%d: %s %s", filepath.Base(name), p.Line, p.Trap, p.Message)
			if p.Ignored { // damaged, and reported
				lines[p.Line-1] = ""
				damaged++
			}
		}
		if want, got := stripComments(strings.Join(lines, "\n")), stripComments(out); want != got {
			t.Errorf("%s differs:\n--- read\n%s\n--- written\n%s", filepath.Base(name), want, got)
		}
		modes += strings.Count(out, "POWER_MODEL")
	}
	t.Logf("%d files, %d modes, %d damaged lines", len(names), modes, damaged)
}

var blanks = regexp.MustCompile(`\s+`)

// stripComments returns a file without comments and spacing, read independently of the
// parser under test.
func stripComments(text string) string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(strings.TrimSuffix(line, "\r"))
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '<' {
			line = "< " + strings.TrimSpace(strings.Trim(line, "<>")) + " >"
		}
		out = append(out, blanks.ReplaceAllString(line, " "))
	}
	return strings.Join(out, "\n")
}
