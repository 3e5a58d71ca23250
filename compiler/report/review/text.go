// Package review compares two layers: by meaning, for review, and as a text diff that
// patch(1) accepts.
package review

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"

	"github.com/yoctune/yoctune/compiler/layer/manifest"
)

// contextLines is how many unchanged lines surround a change.
const contextLines = 3

// UnifiedDiff writes the difference between two texts in unified format; "" when
// they are equal. An empty name stands for a missing file. Of a file that is not text,
// the size and the digest are shown.
func UnifiedDiff(from, to []byte, fromName, toName string) string {
	if string(from) == string(to) {
		return ""
	}
	if isBinary(from) || isBinary(to) {
		return SummaryDiff(from, to, fromName, toName)
	}
	name := func(n string) string {
		if n == "" {
			return "/dev/null"
		}
		return n
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", name(fromName), name(toName))
	for _, h := range hunks(lines(string(from), string(to))) {
		h.write(&b)
	}
	return b.String()
}

// isBinary reports whether a file is not text. Written to a terminal, it could act on it.
func isBinary(data []byte) bool { return bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) }

// SummaryDiff writes the difference between two files in one line: size and digest.
func SummaryDiff(from, to []byte, fromName, toName string) string {
	describe := func(data []byte) string { return fmt.Sprintf("%d bytes, SHA-256 %s", len(data), manifest.Digest(data)) }
	kind := "File"
	if isBinary(from) || isBinary(to) {
		kind = "Binary file"
	}
	switch {
	case fromName == "":
		return fmt.Sprintf("%s %s is new: %s\n", kind, toName, describe(to))
	case toName == "":
		return fmt.Sprintf("%s %s is removed: %s\n", kind, fromName, describe(from))
	case fromName != toName:
		return fmt.Sprintf("%s %s replaces %s: %s; was %s\n", kind, toName, path.Base(fromName), describe(to), describe(from))
	}
	return fmt.Sprintf("%s %s differs: %s; was %s\n", kind, toName, describe(to), describe(from))
}

// line is a line of either text: ' ' in both, '-' in the first, '+' in the second.
type line struct {
	sign byte
	text string // with its newline, if it has one
}

func lines(from, to string) []line {
	d := diffmatchpatch.New()
	a, b, index := d.DiffLinesToRunes(from, to)
	var out []line
	for _, part := range d.DiffCharsToLines(d.DiffMainRunes(a, b, false), index) {
		sign := byte(' ')
		switch part.Type {
		case diffmatchpatch.DiffDelete:
			sign = '-'
		case diffmatchpatch.DiffInsert:
			sign = '+'
		}
		for l := range strings.Lines(part.Text) {
			out = append(out, line{sign, l})
		}
	}
	return out
}

type hunk struct {
	from, to int // first line of each side, from 1
	lines    []line
}

// hunks groups changes that are less than two contexts apart.
func hunks(all []line) []hunk {
	var out []hunk
	a, b := 1, 1       // numbers of the next line on each side
	start, end := 0, 0 // of the last hunk
	for i, l := range all {
		if l.sign != ' ' {
			if first := max(i-contextLines, 0); first >= end {
				start = first
				out = append(out, hunk{from: a - (i - start), to: b - (i - start)})
			}
			end = min(i+1+contextLines, len(all))
			out[len(out)-1].lines = all[start:end]
		}
		if l.sign != '+' {
			a++
		}
		if l.sign != '-' {
			b++
		}
	}
	return out
}

func (h hunk) write(b *strings.Builder) {
	from, to := 0, 0
	for _, l := range h.lines {
		if l.sign != '+' {
			from++
		}
		if l.sign != '-' {
			to++
		}
	}
	span := func(start, n int) string {
		if n == 0 {
			start-- // an empty side names the line before it
		}
		if n == 1 {
			return fmt.Sprint(start)
		}
		return fmt.Sprintf("%d,%d", start, n)
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", span(h.from, from), span(h.to, to))
	for _, l := range h.lines {
		b.WriteByte(l.sign)
		b.WriteString(l.text)
		if !strings.HasSuffix(l.text, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
