package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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

func TestLinesOfJSONBeginWithTheirType(t *testing.T) {
	var b strings.Builder
	p := Printer{&output{w: &b}, true}
	p.Line("empty")
	p.Line("fields", struct {
		A int    `json:"a"`
		B string `json:"b"`
	}{1, "<"})
	p.Line("none", struct{}{})
	p.Summary("do", struct {
		Of map[string]int `json:"of"`
	}{map[string]int{"a": 1}})
	p.Error(errors.New("broken"))
	want := `{"type":"empty"}
{"type":"fields","a":1,"b":"<"}
{"type":"none"}
{"type":"summary","command":"do","of":{"a":1}}
{"type":"error","message":"broken"}
`
	if b.String() != want || p.Err() != nil {
		t.Errorf("%s, %v", &b, p.Err())
	}
	p.Encode(math.NaN())
	if p.Err() == nil {
		t.Error("a number that JSON lacks is not an error")
	}
}
