package printable_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/printable"
)

const escape = "\x1b[2J"

func TestTextForATerminalHasNoControlCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"plain":             "plain",
		"nvme0n1 – größer":  "nvme0n1 – größer",
		"\x1b[2Jgone\r\n":   `\x1b[2Jgone\r\n`,
		"\u202eright":       `\u202eright`,
		"a\tb":              `a\tb`,
		string([]byte{255}): `\ufffd`,
	} {
		if got := printable.Line(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got, want := printable.Text("one\r\n\ttwo\a"), "one\\r\n\ttwo\\a"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

type name string

func (n name) String() string { return string(n) }

func TestFprintfEscapesItsArgumentsOnly(t *testing.T) {
	var b strings.Builder
	printable.Fprintf(&b, "\x1b[1m%s %v %-10s %d\n", escape, errors.New(escape), name(escape), 5)
	if want := "\x1b[1m" + `\x1b[2J \x1b[2J \x1b[2J    5` + "\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
