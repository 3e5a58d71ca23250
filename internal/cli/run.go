// Package cli holds what the command lines of yoctune and yoctuned share: groups of
// commands and their help, arguments checked against the usage line, usage errors, exit
// codes, and the printer of text and JSON.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/printable"
)

// Exit codes of every command.
const (
	ExitDone   = 0 // done, or the answer is yes
	ExitFailed = 1 // the request is wrong or could not be carried out
	ExitUsage  = 2 // the command line is wrong
	ExitNo     = 3 // the command ran, and the result is negative
)

// ExitError ends the program with an exit code. Err is nil when the command has
// already printed everything.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// UsageError marks err as a mistake on the command line.
func UsageError(err error) error { return &ExitError{Code: ExitUsage, Err: err} }

// Exit ends a command that printed everything, with an exit code.
func Exit(code int) error {
	if code == ExitDone {
		return nil
	}
	return &ExitError{Code: code}
}

// ExitCode is the exit code of a command that ran, by its answer.
func ExitCode(yes bool) int {
	if yes {
		return ExitDone
	}
	return ExitNo
}

// Answer ends a command that ran, by its answer.
func Answer(yes bool) error { return Exit(ExitCode(yes)) }

// AlreadyReported ends a command that failed and printed why.
func AlreadyReported() error { return Exit(ExitFailed) }

// Run executes the command line and returns the exit code. root comes from [NewRoot].
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	out := newOutput(stdout)
	stderr = newOutput(stderr)
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if out.err != nil && !errors.Is(err, out.err) {
		err = fmt.Errorf("the output is incomplete: %w", out.err)
	}
	if err == nil {
		return ExitDone
	}
	code := ExitFailed
	var exit *ExitError
	if errors.As(err, &exit) {
		code = exit.Code
		if exit.Err == nil {
			return code
		}
	}
	fmt.Fprintf(stderr, "%s: %s\n", root.Name(), printable.Text(err.Error()))
	if code == ExitUsage {
		fmt.Fprintln(stderr, usageHint(cmd))
	}
	if wantsJSON(cmd, args) {
		p := Printer{newOutput(stdout), true} // the error is on stderr too
		p.Error(err)
		_ = p.End(cmd.Name(), code, nil)
	}
	return code
}

// wantsJSON reports whether the output is JSON, even where the flags could not be
// parsed because one of them is wrong.
func wantsJSON(cmd *cobra.Command, args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	line := " " + strings.Join(args, " ") + " "
	return Format(cmd) == "json" || strings.Contains(line, " --format=json ") || strings.Contains(line, " --format json ")
}
