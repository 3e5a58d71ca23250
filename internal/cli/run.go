// Package cli holds what the command lines of yoctune and yoctuned share: groups of
// commands and their help, arguments checked against the usage line, usage errors,
// exit codes, and the JSON that ends a command that failed.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes of every command.
const (
	ExitDone   = 0 // done, or the answer is yes
	ExitFailed = 1 // the request is wrong or could not be carried out
	ExitUsage  = 2 // the command line is wrong
	ExitNo     = 3 // the command ran, and the answer is no
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

// AnswerNo ends a command that ran and whose answer is no.
func AnswerNo() error { return &ExitError{Code: ExitNo} }

// AlreadyReported ends a command that failed and printed why.
func AlreadyReported() error { return &ExitError{Code: ExitFailed} }

// Run executes the command line and returns the exit code. root comes from [NewRoot].
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	out := &output{w: stdout}
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
	text := printable(err.Error())
	fmt.Fprintf(stderr, "%s: %s\n", root.Name(), text)
	if code == ExitUsage {
		fmt.Fprintln(stderr, usageHint(cmd))
	}
	if wantsJSON(cmd, args) {
		enc := Encoder(stdout) // the error is on stderr too
		_ = enc.Encode(NewErrorLine(err.Error()))
		_ = enc.Encode(Summary{Type: "summary", Command: cmd.Name(), Exit: code})
	}
	return code
}

// ErrorLine is an error in JSON output.
type ErrorLine struct {
	Type    string `json:"type"` // "error"
	Message string `json:"message"`
}

// NewErrorLine returns the line of an error.
func NewErrorLine(message string) ErrorLine { return ErrorLine{Type: "error", Message: message} }

// Summary is the last line of JSON output.
type Summary struct {
	Type     string         `json:"type"` // "summary"
	Command  string         `json:"command"`
	Outcomes map[string]int `json:"outcomes,omitempty"`
	Exit     int            `json:"exit"`
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
