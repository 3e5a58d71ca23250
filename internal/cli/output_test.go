package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var errFull = errors.New("no space left")

// disk takes room bytes.
type disk struct {
	strings.Builder
	room int
}

func (d *disk) Write(p []byte) (int, error) {
	if len(p) > d.room {
		return 0, errFull
	}
	d.room -= len(p)
	return d.Builder.Write(p)
}

func TestNothingIsWrittenAfterAFailedWrite(t *testing.T) {
	d := &disk{room: 6}
	w := &output{w: d}
	for _, line := range []string{"one\n", "three\n", "2\n"} {
		_, _ = io.WriteString(w, line)
	}
	if got := d.String(); got != "one\n" {
		t.Errorf("after the loss the output is %q", got)
	}
	if !errors.Is(w.err, errFull) {
		t.Errorf("the error is %v, want %v", w.err, errFull)
	}
}

func TestFailedWriteIsReportedOnceAndFailsTheCommand(t *testing.T) {
	for _, c := range []struct {
		name   string
		result func(write error) error
		room   int
		want   string
	}{
		{"the command does not notice", func(error) error { return nil }, 1, "prog: the output is incomplete: no space left\n"},
		{"the command reports it", func(err error) error { return fmt.Errorf("writing the report: %w", err) }, 1, "prog: writing the report: no space left\n"},
		{"everything arrived", func(err error) error { return err }, 100, ""},
	} {
		root := NewRoot(&cobra.Command{Use: "prog"}, "1.0", []Group{{"Main", []func() *cobra.Command{func() *cobra.Command {
			return &cobra.Command{Use: "do", RunE: func(cmd *cobra.Command, _ []string) error {
				_, err := io.WriteString(cmd.OutOrStdout(), "two\n")
				return c.result(err)
			}}
		}}}})
		var stderr strings.Builder
		code := Run(context.Background(), root, []string{"do"}, &disk{room: c.room}, &stderr)
		if failed := c.want != ""; stderr.String() != c.want || (code != ExitDone) != failed {
			t.Errorf("%s: exit %d, %q", c.name, code, stderr.String())
		}
	}
}

func TestTextForATerminalHasNoControlCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"plain":             "plain",
		"nvme0n1 – größer":  "nvme0n1 – größer",
		"\x1b[2Jgone\r\n":   `\x1b[2Jgone\r\n`,
		"\u202eright":       `\u202eright`,
		string([]byte{255}): `\ufffd`,
	} {
		if got := PrintableLine(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got, want := printable("one\ntwo\a"), "one\ntwo\\a"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
