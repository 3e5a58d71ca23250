package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/internal/terminal"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/journal"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/schema/plan"
)

// settingLine is one result in JSON.
type settingLine struct {
	ID      string          `json:"id"`
	Path    string          `json:"path"`
	Wanted  string          `json:"wanted"`
	Found   *string         `json:"found"` // null if it could not be read
	Outcome outcome.Outcome `json:"outcome"`
	Counts  bool            `json:"counts"` // whether it makes the command fail
	Origin  *string         `json:"origin"` // "file:line:column" of the configuration
	Message string          `json:"message"`
}

// report renders the results of a command.
type report struct {
	Command string
	Results []enforce.Result
	Origins plan.Origins
	Quiet   bool // text only: omit results that are ok

	Pipelines []pipelines.State // of the plan; they do not count
}

func (r report) exit() int {
	// Without a record of them, the values that were not restored are unknown.
	if slices.ContainsFunc(r.Results, func(res enforce.Result) bool { return res.Path == journal.File || res.Path == planfile.TrialFile }) {
		return cli.ExitFailed
	}
	return cli.ExitCode(enforce.Satisfied(r.Results))
}

func (r report) origin(id string) *string {
	p, ok := r.Origins[id]
	if !ok {
		return nil
	}
	return new(fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column))
}

func (r report) counts() map[string]int {
	m := map[string]int{}
	for _, res := range r.Results {
		m[string(res.Outcome)]++
	}
	return m
}

// cause returns the message of a result without the name of its node.
func (report) cause(res enforce.Result) string {
	_, rest, ok := strings.Cut(res.Message, outcome.Name(res.Path)+": ")
	if !ok {
		return ""
	}
	return rest
}

// countSharing counts the results with the same cause: a restriction often applies to a whole
// domain.
func (r report) countSharing(res enforce.Result) int {
	n := 0
	for _, other := range r.Results {
		if other.Outcome == outcome.Forbidden && res.Outcome == outcome.Forbidden && r.cause(res) != "" && r.cause(other) == r.cause(res) {
			n++
		}
	}
	return n
}

// write renders the results and returns the command's answer as its error.
func (r report) write(p cli.Printer) error {
	p.AtOnce(func() {
		if p.JSON {
			r.settings(p)
		} else {
			r.text(p)
		}
	})
	return p.End(r.Command, r.exit(), r.counts())
}

// settings writes a line of JSON for each result.
func (r report) settings(p cli.Printer) {
	for _, res := range r.Results {
		l := settingLine{
			ID: res.ID, Path: res.Path, Wanted: res.Wanted,
			Outcome: res.Outcome, Counts: !res.Satisfied(), Origin: r.origin(res.ID), Message: res.Message,
		}
		if res.Known {
			l.Found = &res.Found
		}
		p.Line("setting", l)
	}
	for _, s := range r.Pipelines {
		p.Line("pipeline", s)
	}
}

// text writes one aligned line per result, and the reason below each result that is not ok.
func (r report) text(p cli.Printer) {
	rows := [][]string{{"outcome", "setting", "wanted", "found", "set at"}}
	shown := []enforce.Result{{}}
	for _, res := range r.Results {
		if r.Quiet && res.Outcome == outcome.OK {
			continue
		}
		found := "–"
		if res.Known {
			found = res.Found
		}
		origin := ""
		if o := r.origin(res.ID); o != nil {
			origin = *o
		}
		rows = append(rows, []string{outcomeWord(res), res.Label(), res.Wanted, found, origin})
		shown = append(shown, res)
	}
	if len(rows) > 1 {
		r.table(p, rows, shown)
	}
	if len(r.Pipelines) > 0 {
		p.Printf("pipelines: %s; not counted\n", pipelines.Summary(r.Pipelines))
		for _, s := range r.Pipelines {
			if !r.Quiet || s.Idle() {
				p.Printf("  %s\n", s)
			}
		}
	}
	p.Printf("%s\n", r.summary())
}

// table writes the rows of results, a heading first.
func (r report) table(p cli.Printer, rows [][]string, shown []enforce.Result) {
	colour, columns := cli.Colour(p), cli.Columns(p)
	width := fitColumns(rows, columns)
	indent := width[0] + 2
	reported := map[string]bool{}
	for n, row := range rows {
		rest := ""
		for i, cell := range row[1:] {
			if width[i+1] > 0 {
				rest += "  " + pad(terminal.Truncate(cell, width[i+1], "…"), width[i+1])
			}
		}
		head, rest := pad(row[0], width[0]), strings.TrimRight(rest, " ")
		if n == 0 {
			fmt.Fprintln(p, terminal.Bold.Paint(colour, head+rest))
		} else {
			fmt.Fprintln(p, outcomeStyle(shown[n]).Paint(colour, head)+rest)
		}
		msg := shown[n].Message
		if shared := r.countSharing(shown[n]); shared > 1 {
			cause := r.cause(shown[n])
			if msg = fmt.Sprintf("%d settings: %s", shared, cause); reported[cause] {
				msg = ""
			}
			reported[cause] = true
		}
		if origin := row[len(row)-1]; width[len(row)-1] == 0 && origin != "" && n > 0 {
			fmt.Fprintf(p, "%*s%s\n", indent, "", terminal.Dim.Paint(colour, origin))
		}
		if msg != "" {
			for _, l := range terminal.Wrap(printable.Line(msg), columns-indent) {
				fmt.Fprintf(p, "%*s%s\n", indent, "", l)
			}
		}
	}
}

// fitColumns makes the cells printable and returns the widths of the columns, so that a row
// fits a terminal; with 0 columns the width is unlimited. Where a row is too wide, the last
// column has a width of 0 and goes below it, and then the widest columns are shortened.
func fitColumns(rows [][]string, columns int) []int {
	const least = 8
	width, total := make([]int, len(rows[0])), 0
	for i := range width {
		for _, row := range rows {
			row[i] = short(printable.Line(row[i]))
			width[i] = max(width[i], utf8.RuneCountInString(row[i]))
		}
		total += width[i] + 2
	}
	total -= 2
	if columns == 0 || total <= columns {
		return width
	}
	last := len(width) - 1
	total -= width[last] + 2
	width[last] = 0
	for total > columns {
		widest := 1
		for i := range width {
			if width[i] > width[widest] {
				widest = i
			}
		}
		if width[widest] <= least {
			break
		}
		width[widest]--
		total--
	}
	return width
}

// pad fills text up to a width, in characters.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-utf8.RuneCountInString(text), 0))
}

// outcomeWord is the outcome, in parentheses where it does not count.
func outcomeWord(res enforce.Result) string {
	if res.Excused && res.Outcome != outcome.OK {
		return "(" + string(res.Outcome) + ")"
	}
	return string(res.Outcome)
}

// summary counts the rows: those that are ok or count, by outcome, and those that do not
// count.
func (r report) summary() string {
	counts, no := map[string]int{}, 0
	for _, res := range r.Results {
		counts[outcomeWord(res)]++
		if !res.Satisfied() {
			no++
		}
	}
	list := func(form string) string {
		var parts []string
		for _, o := range outcome.Outcomes() {
			word := fmt.Sprintf(form, o)
			if n := counts[word]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, word))
			}
		}
		return strings.Join(parts, ", ")
	}
	if len(r.Results) == 0 {
		return r.Command + ": nothing to do"
	}
	parts := []string{}
	if counted := list("%s"); counted != "" {
		parts = append(parts, counted)
	}
	if no > 0 {
		parts = append(parts, fmt.Sprintf("%d not as wanted", no))
	}
	if excused := list("(%s)"); excused != "" {
		parts = append(parts, "not counted: "+excused)
	}
	return r.Command + ": " + strings.Join(parts, "; ")
}

// outcomeStyle is the colour of the word of an outcome.
func outcomeStyle(res enforce.Result) terminal.Style {
	switch {
	case res.Outcome == outcome.OK:
		return terminal.Green
	case res.Satisfied():
		return terminal.Yellow
	}
	return terminal.Red
}

// short keeps a column readable; JSON has the whole value.
func short(s string) string { return terminal.Truncate(s, 44, "…") }
