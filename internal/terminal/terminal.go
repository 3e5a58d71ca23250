// Package terminal describes the terminal that a program writes to: its size, whether it
// shows colours and which characters it has. It also styles, wraps and shortens text for it.
package terminal

import (
	"cmp"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Is reports whether f is a terminal; a nil f is none.
func Is(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// Draws reports whether f is a terminal on which the cursor can be moved.
func Draws(f *os.File) bool { return Is(f) && os.Getenv("TERM") != "dumb" }

// Colour reports whether text for f may be coloured: NO_COLOR forbids it
// (https://no-color.org), CLICOLOR_FORCE demands it, otherwise a terminal may.
func Colour(f *os.File) bool {
	if os.Getenv("NO_COLOR") != "" {
		return false
	}
	force := os.Getenv("CLICOLOR_FORCE")
	return force != "" && force != "0" || Draws(f)
}

// Size returns the columns and rows of a terminal. It is 0, 0 if f is not a terminal, and 80, 24
// if the terminal has no size, such as a serial console.
func Size(f *os.File) (columns, rows int) {
	if !Is(f) {
		return 0, 0
	}
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || columns < 1 || rows < 1 {
		return 80, 24
	}
	return columns, rows
}

// IsUTF8 reports whether the locale's characters are UTF-8, see locale(7).
func IsUTF8() bool {
	name := strings.ToLower(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	return strings.HasSuffix(name, "utf-8") || strings.HasSuffix(name, "utf8")
}

// ascii replaces the symbols of yoctune's own texts by ASCII. Other characters are data, and
// stay.
var ascii = strings.NewReplacer(
	"█", "#", "░", ".", "·", ".", "▁", "_", "▂", ".", "▃", "-", "▄", "=", "▅", "+", "▆", "*", "▇", "%",
	"–", "-", "—", "-", "→", "->", "…", "...", "°", "", "×", "x", "≥", ">=", "≤", "<=", "│", "|", "─", "-", "▸", ">", "↑", "^", "↓", "v",
)

// ASCII returns text for a terminal whose characters are not UTF-8.
func ASCII(text string) string { return ascii.Replace(text) }

// Style is the control sequence of a colour or weight.
type Style string

// Styles. Text is never distinguished by its style alone.
const (
	Plain  Style = ""
	Dim    Style = "\x1b[2m"
	Bold   Style = "\x1b[1m"
	Green  Style = "\x1b[32m"
	Cyan   Style = "\x1b[36m"
	Yellow Style = "\x1b[33m"
	Red    Style = "\x1b[31m"
	Blue   Style = "\x1b[34m"
	reset        = "\x1b[0m"
)

// Paint returns text in a style where colour is true.
func (s Style) Paint(colour bool, text string) string {
	if !colour || s == Plain || text == "" {
		return text
	}
	return string(s) + text + reset
}

// Truncate shortens text to width characters. end replaces what is left out.
func Truncate(text string, width int, end string) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-utf8.RuneCountInString(end), 0)]) + end
}

// Wrap breaks text between words into lines of at most width characters; a width of 0 or
// less does not break it. A longer word has a line of its own.
func Wrap(text string, width int) []string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
