// Package reports tests public reports about tuning Yocto for Jetson. Each is a configuration with
// the reported mistake and one without it.
package reports

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/importer"
)

// -update rewrites the table in README.md.
var update = flag.Bool("update", false, "rewrite the table in README.md")

// report is one case, a txtar archive. Its comment has the fields below, one per line; its files
// are wrong.cue, right.cue and, for files to import, import/NAME.
type report struct {
	id, title, source string
	caught            string   // fully, in part, by construction
	expect            []string // ids that wrong.cue raises
	traps             []string // traps that import reports
	emits             []string // PATTERN: REGEXP, in the layer of right.cue
	note              string
	wrong, right      []byte
	imports           []importer.Source
}

func read(t testing.TB, file string) report {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := report{id: strings.TrimSuffix(filepath.Base(file), ".txtar")}
	for line := range strings.Lines(string(a.Comment)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		switch key {
		case "title":
			r.title = value
		case "source":
			r.source = value
		case "caught":
			r.caught = value
		case "expect":
			r.expect = strings.Fields(value)
		case "trap":
			r.traps = strings.Fields(value)
		case "emits":
			r.emits = append(r.emits, value)
		case "note":
			r.note = value
		default:
			t.Fatalf("%s: field %q", file, key)
		}
	}
	for _, f := range a.Files {
		switch name, imported := strings.CutPrefix(f.Name, "import/"); {
		case imported:
			r.imports = append(r.imports, importer.Source{Name: name, Text: f.Data})
		case f.Name == "wrong.cue":
			r.wrong = f.Data
		case f.Name == "right.cue":
			r.right = f.Data
		default:
			t.Fatalf("%s: file %q", file, f.Name)
		}
	}
	return r
}

func loadReports(t testing.TB) []report {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var all []report
	for _, f := range files {
		all = append(all, read(t, f))
	}
	return all
}

// addLayer adds the layer, and the target unless the text has one.
func addLayer(text []byte) []byte {
	var b bytes.Buffer
	b.WriteString("package box\nimport \"github.com/yoctune/yoctune/schema\"\nschema.#Config & {\nlayer: {name: \"box\", maintainer: \"Team <team@example.com>\"}\n}\n")
	b.Write(text)
	return b.Bytes()
}

func vet(text []byte) *compiler.Project {
	p := compiler.OpenFiles(map[string][]byte{"config.cue": addLayer(text)})
	p.Verify()
	return p
}

func TestReports(t *testing.T) {
	for _, r := range loadReports(t) {
		t.Run(r.id, func(t *testing.T) {
			if r.title == "" || r.source == "" || r.caught == "" {
				t.Fatal("title, source or caught is missing")
			}
			if r.wrong != nil {
				r.assertWrongRefused(t)
			}
			if r.right != nil {
				r.assertRightPasses(t)
			}
			if len(r.imports) > 0 {
				r.importReportsTraps(t)
			}
		})
	}
}

func (r report) assertWrongRefused(t *testing.T) {
	p := vet(r.wrong)
	got := map[string]diag.Diagnostic{}
	for _, d := range p.Report.All() {
		if _, ok := got[d.ID]; !ok {
			got[d.ID] = d
		}
	}
	for _, id := range r.expect {
		d, ok := got[id]
		if !ok {
			t.Errorf("%s is not raised; raised: %v", id, ids(p.Report))
			continue
		}
		if d.Pos.File != "config.cue" || d.Pos.Line < 6 {
			t.Errorf("%s is not at a line of the configuration: %+v", id, d.Pos)
		}
		if d.Help == "" && d.Expected == "" {
			t.Errorf("%s gives no advice", id)
		}
	}
	for id, d := range got {
		if d.Severity > diag.Info && !slices.Contains(r.expect, id) {
			t.Errorf("%s is raised as well: %s", id, d.Message)
		}
	}
}

func (r report) assertRightPasses(t *testing.T) {
	p := vet(r.right)
	for _, d := range p.Report.All() {
		if d.Severity > diag.Info {
			t.Errorf("the corrected configuration raises %s: %s (%s)", d.ID, d.Message, d.Got)
		}
	}
	if len(r.emits) == 0 || t.Failed() {
		return
	}
	layers := p.Layers(compiler.Selection{})
	if len(layers) != 1 {
		t.Fatalf("no layer: %v", ids(p.Report))
	}
	for _, e := range r.emits {
		pattern, expr, _ := strings.Cut(e, ": ")
		expr, absent := strings.CutPrefix(expr, "! ")
		re := regexp.MustCompile("(?m)" + expr)
		found, seen := false, false
		for _, f := range layers[0].Files {
			if ok, err := path.Match(pattern, f.Path); err != nil || !ok && pattern != "*" {
				continue
			}
			seen = true
			found = found || re.Match(f.Data) || re.MatchString(f.Path)
		}
		if !seen || found == absent {
			t.Errorf("emits %s: files seen %t, matched %t", e, seen, found)
		}
	}
}

func (r report) importReportsTraps(t *testing.T) {
	got, err := importer.Import(r.imports, importer.Options{
		Board: "orin-nano-8gb", Release: "scarthgap", Layer: "box", Maintainer: "Team <team@example.com>",
		Check: func(files map[string][]byte) *diag.Report {
			p := compiler.OpenFiles(files)
			p.Verify()
			return p.Report
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	met := map[string]bool{}
	for _, l := range got.Lines {
		for _, trap := range l.Traps {
			met[string(trap)] = true
		}
	}
	for _, trap := range r.traps {
		if !met[trap] {
			t.Errorf("importing does not point out %s: %v", trap, met)
		}
	}
}

func ids(r *diag.Report) []string {
	var all []string
	for _, d := range r.All() {
		all = append(all, d.ID+" "+d.Message)
	}
	return all
}

// The table in README.md lists the reports and how they are caught.
func TestTheTableIsUpToDate(t *testing.T) {
	var b strings.Builder
	counts := map[string]int{}
	all := loadReports(t)
	fmt.Fprintf(&b, "| report | what | caught | by | remark |\n|---|---|---|---|---|\n")
	for _, r := range all {
		counts[r.caught]++
		by := append(slices.Clone(r.expect), r.traps...)
		for i := range by {
			by[i] = "`" + by[i] + "`"
		}
		if r.caught == "by construction" {
			by = append(by, "the emitted layer")
		}
		fmt.Fprintf(&b, "| [%s](testdata/%s.txtar) | %s | %s | %s | %s |\n", r.id, r.id, r.title, r.caught, strings.Join(by, ", "), r.note)
	}
	fmt.Fprintf(&b, "\n%d cases: %d caught fully, %d by construction, %d in part, %d not.\n",
		len(all), counts["fully"], counts["by construction"], counts["in part"], counts["not"])
	raw, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(raw), "| report |")
	if !ok {
		t.Fatal("README.md has no table")
	}
	want := head + b.String()
	if *update {
		if err := os.WriteFile("README.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(raw) != want {
		t.Error("the table is not up to date: go test ./tests/reports -update")
	}
}
