package cli

import (
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// output is a program's standard output. After the first failed write it only repeats
// that error, so that a program that prints line by line can report it once at its end.
type output struct {
	w   io.Writer
	err error
}

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

// File returns the file that w writes to, which may be a terminal; nil when w is not a file.
func File(w io.Writer) *os.File {
	switch w := w.(type) {
	case *os.File:
		return w
	case *output:
		return File(w.w)
	}
	return nil
}

// Colour reports whether w is a terminal that may be coloured.
func Colour(w io.Writer) bool {
	f := File(w)
	return f != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// Encoder writes NDJSON.
func Encoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}

// printable escapes what could hide or reorder text on a terminal. Line breaks stay.
func printable(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = PrintableLine(line)
	}
	return strings.Join(lines, "\n")
}

// PrintableLine is [printable] for text that must stay on one line.
func PrintableLine(s string) string {
	var b strings.Builder
	for _, c := range s {
		if c == utf8.RuneError || !unicode.IsPrint(c) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}
