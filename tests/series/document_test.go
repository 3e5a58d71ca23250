package series

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
)

// The releases in docs/compatibility.md match the facts.
func TestDocumentMatchesTheFacts(t *testing.T) {
	raw, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(raw)) {
		cells := strings.Split(strings.Trim(line, "|\n "), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if _, seen := rows[cells[0]]; len(cells) == 9 && !seen {
			rows[cells[0]] = cells
		}
	}
	choose := func(yes, no string, condition bool) string {
		if condition {
			return yes
		}
		return no
	}
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		realTime := "no"
		switch {
		case r.RTProvider != "":
			realTime = "recipe"
		case r.RTByConfig:
			realTime = "by configuration"
		}
		row := rows[name]
		if row == nil {
			t.Errorf("release %s has no row", name)
			continue
		}
		want := []string{
			name, r.Series, r.L4T, row[3], r.Provider + " " + r.Kernel, realTime,
			choose("fragment", "`require`", r.Fragments), choose("the series' own", "defined by the layer", r.UnpackDir),
			choose("bundled, prebuilt or from source (Go "+r.Go+")", "bundled or prebuilt (Go "+r.Go+")", r.GoSource),
		}
		if r.CUDA == "10.2" {
			want[8] = "bundled or prebuilt, no CUDA library (CUDA 10.2 has no C++17)"
		}
		if !slices.Equal(row, want) {
			t.Errorf("release %s:\n got %q\nwant %q", name, row, want)
		}
		for _, id := range board.IDs() {
			b, _ := board.Lookup(id)
			if _, on := b.Releases[name]; on && !strings.Contains(row[3], strings.TrimPrefix(b.SoC, "tegra")) {
				t.Errorf("release %s: %s of board %s is not among %q", name, b.SoC, b.ID, row[3])
			}
		}
	}
}
