package diag

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/internal/terminal"
	"github.com/yoctune/yoctune/schema/plan"
)

// WriteText writes a report as text: for each diagnostic a heading, an excerpt of the
// source, cause and fix. colour enables terminal colours.
func WriteText(w io.Writer, r *Report, src *Sources, colour bool) error {
	p := &printer{w: w, src: src, colour: colour}
	all := r.All()
	for i, d := range all {
		if i == limit {
			p.printf("... and %d more\n", len(all)-limit)
			break
		}
		p.printDiagnostic(d)
	}
	return p.err
}

type printer struct {
	w      io.Writer
	src    *Sources
	colour bool
	err    error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// paint returns s in bold and a colour.
func (p *printer) paint(s string, tone terminal.Style) string {
	return (terminal.Bold + tone).Paint(p.colour, s)
}

func (p *printer) printDiagnostic(d Diagnostic) {
	tone := terminal.Cyan
	switch d.Severity {
	case Error:
		tone = terminal.Red
	case Warning:
		tone = terminal.Yellow
	}
	p.printf("%s: %s\n", p.paint(fmt.Sprintf("%s[%s]", d.Severity, d.ID), tone), p.paint(printable.Line(d.Message), terminal.Plain))
	gutter := "  "
	if d.Pos.File != "" {
		gutter = p.printExcerpt("-->", d.Pos, d.Length, tone, "")
	}
	for _, r := range d.Related {
		p.printExcerpt(":::", r.Pos, 0, terminal.Cyan, r.Message)
	}
	note := func(label, text string) {
		if text != "" {
			p.printf("%s%s %s: %s\n", gutter, p.paint("=", terminal.Blue), p.paint(label, terminal.Plain), printable.Line(text))
		}
	}
	note("path", strings.Join(append([]string{d.Path}, d.Also...), ", "))
	note("expected", d.Expected)
	note("got", d.Got)
	note("help", d.Help)
	note("not verified", d.Unverified)
	note("see", d.See)
	p.printf("\n")
}

// printExcerpt prints a place and returns the gutter that notes below it use.
func (p *printer) printExcerpt(arrow string, pos plan.Position, length int, tone terminal.Style, message string) string {
	number := fmt.Sprint(pos.Line)
	pad := strings.Repeat(" ", len(number)+1)
	p.printf("%s%s %s:%d:%d\n", pad[1:], p.paint(arrow, terminal.Blue), pos.File, pos.Line, pos.Column)
	line, ok := p.src.Line(pos.File, pos.Line)
	if !ok || pos.Column < 1 || pos.Column > len(line)+1 {
		if message != "" {
			p.printf("%s%s\n", pad, message)
		}
		return pad
	}
	line, at := cutWindow(line, pos.Column-1)
	lead := line[:at]
	length = utf8.RuneCountInString(line[at:][:Extent(line[at:], length)])
	bar := p.paint("|", terminal.Blue)
	p.printf("%s%s\n", pad, bar)
	p.printf("%s %s %s\n", p.paint(number, terminal.Blue), bar, printable.Line(expandTabs(line)))
	marks := strings.Repeat(" ", utf8.RuneCountInString(printable.Line(expandTabs(lead)))) + p.paint(strings.Repeat("^", max(length, 1)), tone)
	if message != "" {
		marks += " " + printable.Line(message)
	}
	p.printf("%s%s %s\n", pad, bar, marks)
	return pad
}

// maxExcerpt bounds how much of a line is quoted, in bytes: a generated line can
// be megabytes long.
const maxExcerpt = 240

// cutWindow shortens a long line to the text around a place, given and returned as
// an offset.
func cutWindow(line string, at int) (string, int) {
	if len(line) <= maxExcerpt {
		return line, at
	}
	from, to := max(0, at-maxExcerpt/2), min(len(line), at+maxExcerpt/2)
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to++
	}
	const more = "…"
	shown := line[from:to]
	at -= from
	if from > 0 {
		shown, at = more+shown, at+len(more)
	}
	if to < len(line) {
		shown += more
	}
	return shown, at
}

// Extent returns how many bytes of s, the rest of a line from the place of a diagnostic on, the
// diagnostic is about: a number of characters, or the value there if the number is 0.
func Extent(s string, characters int) int {
	if characters == 0 {
		return valueLength(s)
	}
	for i := range s {
		if characters == 0 {
			return i
		}
		characters--
	}
	return len(s)
}

// valueLength guesses the width of the value at the start of s in bytes: a string up to its
// closing quote, otherwise a word.
func valueLength(s string) int {
	switch {
	case s == "":
		return 0
	case s[0] == '"' || s[0] == '\'':
		for i := 1; i < len(s); i++ {
			if s[i] == '\\' {
				i++
				continue
			}
			if s[i] == s[0] {
				return i + 1
			}
		}
		return len(s)
	case strings.ContainsRune("{[(", rune(s[0])):
		return 1
	}
	if n := strings.IndexAny(s, " \t,:{}[]()"); n >= 0 {
		return n
	}
	return len(s)
}

func expandTabs(s string) string { return strings.ReplaceAll(s, "\t", "    ") }
