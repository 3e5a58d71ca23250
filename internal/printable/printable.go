// Package printable makes text safe for a terminal: control characters, and those that
// hide or reorder text, are written as escape sequences of Go, such as \x1b.
package printable

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns s with everything escaped that does not print, line breaks and tabs too.
func Line(s string) string {
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func hidden(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// Text is [Line] for text of several lines: line breaks and tabs stay.
func Text(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		text, end := strings.CutSuffix(line, "\n")
		for i, field := range strings.Split(text, "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(Line(field))
		}
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Fprintf is [fmt.Fprintf] with strings and errors made printable by [Line]. Its callers
// write to a program's output, which keeps the error of a failed write.
func Fprintf(w io.Writer, format string, args ...any) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = Line(arg)
		case error:
			args[i] = Line(arg.Error())
		case fmt.Stringer:
			args[i] = Line(arg.String())
		}
	}
	_, _ = fmt.Fprintf(w, format, args...)
}
