package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/layer/checklayer"
	"github.com/yoctune/yoctune/schema/facts/release"
)

// The lines around the table in the document.
const (
	tableBegins = "<!-- table: written by tests/series/prove -->"
	tableEnds   = "<!-- end of table -->"
)

// columns are the steps of check-layer that the table shows, with their titles.
func columns() [][2]string {
	return [][2]string{
		{"parse", "parse"}, {"appends", "appends attach"}, {"variables", "`bitbake -e`"}, {"dependencies", "dependencies"},
		{"task package_qa", "tasks"}, {"installed files", "files"}, {"yocto-check-layer", "yocto-check-layer"}, {"other machines", "other machines"},
	}
}

// table returns the record as Markdown: a row per machine, with its parse results and, for one
// machine of each SoC, the results of all steps. today has the checksums of the current layers.
func table(rec *record, today checksums) string {
	var b strings.Builder
	b.WriteString("| release | L4T | machine | SoC |")
	for _, c := range columns() {
		b.WriteString(" " + c[1] + " |")
	}
	b.WriteString(" layer | time |\n|---|---|---|---|" + strings.Repeat("---|", len(columns())) + "---|---|\n")
	var old staleRows
	for i := 0; i < len(rec.Results); {
		r := rec.Results[i]
		old.add(r, today)
		of := []string{shortChecksum(r.Layer)}
		for i++; i < len(rec.Results) && rec.Results[i].Release == r.Release && rec.Results[i].Machine == r.Machine; i++ {
			more := rec.Results[i]
			old.add(more, today)
			of = append(of, shortChecksum(more.Layer))
			r.Steps = slices.Concat(r.Steps, more.Steps)
			r.Seconds += more.Seconds
			if r.Reason == "" {
				r.Reason = more.Reason
			}
		}
		facts, _ := release.Lookup(r.Release)
		fmt.Fprintf(&b, "| %s | %s | %s | %s |", r.Release, facts.L4T, r.Machine, r.SoC)
		if len(r.Steps) == 0 {
			fmt.Fprintf(&b, " not checked: %s |%s | |\n", cell(r.Reason), strings.Repeat(" |", len(columns())-1))
			continue
		}
		for _, c := range columns() {
			b.WriteString(" " + sumUpSteps(r.Steps, c[0]) + " |")
		}
		fmt.Fprintf(&b, " %s | %.0f s |\n", strings.Join(of, ", "), r.Seconds)
	}
	b.WriteString("\nThe column layer gives the first digits of the checksum of each layer's files; the layer with every machine comes first.\n")
	b.WriteString(old.String())
	return b.String()
}

// staleRows collects the results of layers that the program no longer makes.
type staleRows struct {
	releases []string // of results for every machine, in order
	machines map[string]int
	deep     []string
}

func (e *staleRows) add(r result, today checksums) {
	switch {
	case len(r.Steps) == 0 || r.Layer == today[r.layer()]:
	case r.Deep:
		e.deep = append(e.deep, r.Release+" "+r.Machine)
	default:
		if e.machines == nil {
			e.machines = map[string]int{}
		}
		if e.machines[r.Release]++; e.machines[r.Release] == 1 {
			e.releases = append(e.releases, r.Release)
		}
	}
}

func (e *staleRows) String() string {
	if len(e.releases)+len(e.deep) == 0 {
		return "All rows are of the layers that the program makes now.\n"
	}
	var b strings.Builder
	for i, name := range e.releases {
		e.releases[i] = fmt.Sprintf("%s (%d machines)", name, e.machines[name])
	}
	if len(e.releases) > 0 {
		b.WriteString("An earlier state of the layer was parsed, and its appends and values checked: " + strings.Join(e.releases, ", ") + ".\n")
	}
	if len(e.deep) > 0 {
		b.WriteString("An earlier state of the layer went through the other steps: " + strings.Join(e.deep, ", ") + ".\n")
	}
	return b.String()
}

// shortChecksum abbreviates a layer's checksum for the table.
func shortChecksum(checksum string) string {
	if len(checksum) < 8 {
		return "–"
	}
	return checksum[:8]
}

// promised finds the number of values in a note of the variables step.
var promised = regexp.MustCompile(`: (\d+) values as (?:expected|promised)$`)

// sumUpSteps sums up the steps with this name: a failed step decides, and a passed
// step counts more than a skipped one.
func sumUpSteps(steps []checklayer.Step, name string) string {
	text := "–"
	for _, s := range steps {
		if s.Name != name {
			continue
		}
		switch s.Status {
		case checklayer.Fail:
			why := "see the record"
			if len(s.Errors) > 0 {
				why = s.Errors[0]
			}
			return "**failed**: " + cell(why)
		case checklayer.Pass:
			text = "pass"
			values := 0
			for _, note := range s.Notes {
				if m := promised.FindStringSubmatch(note); m != nil {
					n, _ := strconv.Atoi(m[1]) // digits
					values += n
				}
			}
			if values > 0 {
				text += fmt.Sprintf(", %d values", values)
			}
		case checklayer.Skipped:
			if text == "–" {
				text = "skipped"
			}
		}
	}
	return text
}

// cell makes text fit one cell of a Markdown table.
func cell(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > 120 {
		s = string(r[:120]) + "…"
	}
	return strings.ReplaceAll(s, "|", `\|`)
}

// writeTable replaces what stands between the two lines in the document.
func writeTable(file string, rec *record, today checksums) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(raw), tableBegins)
	_, after, closed := strings.Cut(rest, tableEnds)
	if !ok || !closed {
		return fmt.Errorf("%s has no lines %q and %q around its table", file, tableBegins, tableEnds)
	}
	return replace(file, []byte(before+tableBegins+"\n"+table(rec, today)+tableEnds+after))
}
