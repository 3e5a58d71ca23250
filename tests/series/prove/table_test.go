package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler/layer/checklayer"
)

func steps(s ...string) []checklayer.Step {
	var out []checklayer.Step
	for i := 0; i < len(s); i += 2 {
		step := checklayer.Step{Name: s[i], Status: s[i+1]}
		if step.Status == checklayer.Fail {
			step.Errors = []string{"a | b\nsecond line"}
		}
		out = append(out, step)
	}
	return out
}

func TestTableShowsWhatRan(t *testing.T) {
	rec := &record{}
	rec.replace(result{Release: "wrynose", Target: "b", Machine: "m2", SoC: "tegra264", Reason: "no checkouts at hand"})
	rec.replace(result{Release: "kirkstone", Target: "a", Machine: "m1", SoC: "tegra194", Seconds: 70, Steps: steps(
		"parse", "pass", "appends", "fail", "task package_qa", "skipped", "task package_qa", "pass")})
	rec.replace(result{Release: "kirkstone-l4t-r32.7.x", Target: "c", Machine: "m3", Steps: steps("parse", "pass")})
	rec.replace(result{Release: "kirkstone-l4t-r32.7.x", Target: "c", Machine: "m3", Steps: steps("parse", "fail")})
	lines := strings.Split(table(rec, nil), "\n")
	for i, want := range []string{
		2: "| kirkstone-l4t-r32.7.x | 32.7.6 | m3 |",
		3: `| kirkstone | 35.6.4 | m1 | tegra194 | pass | **failed**: a \| b | – | – | pass | – | – | – | – | 70 s |`,
		4: "not checked: no checkouts at hand",
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q, want %q in it", i, lines[i], want)
		}
	}
	if strings.Contains(lines[2], "| pass |") {
		t.Errorf("an older result is still there: %q", lines[2])
	}
}

// The table names the rows whose layers have changed since.
func TestTableNamesEarlierLayers(t *testing.T) {
	rec := &record{}
	rec.replace(result{Release: "kirkstone", Machine: "m1", Layer: "0123456789", Date: "2026-01-02", Steps: steps("parse", "pass")})
	rec.replace(result{Release: "kirkstone", Machine: "m1", Deep: true, Layer: "abcdefghij", Steps: steps("parse", "pass")})
	today := checksums{{"kirkstone", false}: "0123456789", {"kirkstone", true}: "abcdefghij"}
	if text := table(rec, today); !strings.Contains(text, "| 01234567, abcdefgh |") || !strings.Contains(text, "All rows are of the layers") {
		t.Errorf("%s", text)
	}
	today[layer{"kirkstone", true}] = "x"
	if text := table(rec, today); !strings.Contains(text, "earlier state of the layer went through the other steps: kirkstone m1.") {
		t.Errorf("%s", text)
	}
	today = checksums{{"kirkstone", true}: "abcdefghij"}
	if text := table(rec, today); !strings.Contains(text, "its appends and values checked: kirkstone (1 machines).") || strings.Contains(text, "other steps") {
		t.Errorf("%s", text)
	}
}

func TestTableUpdateKeepsTheDocumentsText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.md")
	if err := os.WriteFile(file, []byte("before\n"+tableBegins+"\nold\n"+tableEnds+"\nafter\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	rec := &record{Results: []result{{Release: "master", Target: "t", Reason: "r"}}}
	for range 2 {
		if err := writeTable(file, rec, nil); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\n" + tableBegins + "\n" + table(rec, nil) + tableEnds + "\nafter\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := os.WriteFile(file, []byte("no table"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeTable(file, rec, nil); err == nil {
		t.Error("a document without a table is rewritten")
	}
}

// An interrupted run resumes: only checks that passed with the same files are skipped.
func TestOnlyPassedIdenticalLayersAreSkipped(t *testing.T) {
	asked := result{Layer: "x", Commits: map[string]string{"bitbake": "1"}}
	passed := asked
	passed.Steps = steps("parse", "pass")
	for _, tc := range []struct {
		name   string
		change func(*result)
		want   bool
	}{
		{"the same", func(*result) {}, true},
		{"another layer", func(r *result) { r.Layer = "y" }, false},
		{"another bitbake", func(r *result) { r.Commits = map[string]string{"bitbake": "2"} }, false},
		{"a check failed", func(r *result) { r.Steps = steps("parse", "fail") }, false},
		{"nothing ran", func(r *result) { r.Steps = nil }, false},
	} {
		old := passed
		tc.change(&old)
		if got := old.covers(asked); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}

func TestSoCRepresentativeHasOneRow(t *testing.T) {
	rec := &record{}
	rec.replace(result{Release: "kirkstone", Machine: "m1", Deep: true, Layer: "x", Seconds: 60, Steps: steps("parse", "pass", "yocto-check-layer", "pass")})
	first := steps("parse", "pass", "variables", "pass")
	first[1].Notes = []string{"configuration: 30 values as expected", "linux-tegra: 2 values as expected"}
	rec.replace(result{Release: "kirkstone", Machine: "m1", Seconds: 5, Steps: first})
	lines := strings.Split(strings.TrimSpace(table(rec, nil)), "\n")
	if want := "| pass | – | pass, 32 values | – | – | – | pass | – | –, – | 65 s |"; len(lines) != 6 || !strings.HasSuffix(lines[2], want) {
		t.Errorf("got %q, want one row with %q", lines, want)
	}
}
