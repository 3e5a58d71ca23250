package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/language/sandbox"
	"github.com/yoctune/yoctune/internal/sticky"
	"github.com/yoctune/yoctune/internal/strict"
)

// Exit codes.
const (
	exitDone     = 0 // done; the answer is yes
	exitFailed   = 1 // the request is wrong or failed
	exitUsage    = 2
	exitNegative = 3 // it ran and the answer is no
)

// What a command returns when its exit code alone is the answer and it has said
// everything already.
var (
	errReported    = errors.New("the configuration has errors")
	errDifferent   = errors.New("there are differences")
	errCheckFailed = errors.New("the check failed")
)

// usageError is a mistake on the command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// run is the program with its edges as parameters.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if sandbox.Asked(args) {
		return sandbox.Serve(os.Stdin, stdout)
	}
	out := sticky.NewWriter(stdout)
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if lost := out.Lost(err); lost != nil {
		err = fmt.Errorf("the output is not whole: %w", lost)
	}
	var usage usageError
	code := exitFailed
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, errDifferent), errors.Is(err, errCheckFailed):
		return exitNegative
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "yoctune: %v\n%s\n", err, strict.Usage(cmd))
		code = exitUsage
	default:
		fmt.Fprintf(stderr, "yoctune: %v\n", err)
	}
	if format, _ := cmd.Flags().GetString("format"); format == "json" {
		writeJSONLine(stdout, struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		}{"error", err.Error()})
		writeJSONLine(stdout, struct {
			Type    string `json:"type"`
			Command string `json:"command"`
			Exit    int    `json:"exit"`
		}{"summary", cmd.Name(), code})
	}
	return code
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "yoctune",
		Short: "Turn a tuning configuration into a Yocto layer for Jetson devices",
		Long: `yoctune reads a configuration written in CUE, HCL or Jsonnet and writes a Yocto
layer: power modes, kernel configuration and arguments, sysctls, udev rules,
services and the plan that yoctuned enforces on the device. Every message names
the line that caused it.

Exit status: 0 done, 1 the request is wrong or failed, 2 usage, 3 it ran and the
answer is no (differences, a failed check).`,
		Example: `  yoctune init meta-camera --board orin-nano-8gb --release scarthgap
  yoctune vet meta-camera
  yoctune build meta-camera -o meta-camera/layer
  yoctune review meta-camera meta-camera/layer`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().String("format", "text", "`FORMAT`: text, or json: one object a line, a summary last")
	for _, newCommand := range []func() *cobra.Command{
		newVetCommand,
		newBuildCommand,
		newDiffCommand,
		newReviewCommand,
		newTasksCommand,
		newGraphCommand,
		newPlanCommand,
		newExplainCommand,
		newInitCommand,
		newImportCommand,
		newFmtCommand,
		newSchemaCommand,
		newCheckLayerCommand,
		newSignCommand,
		newSBOMCommand,
		newPushCommand,
		newPullCommand,
		newKernelCommand,
		newFactsCommand,
		newVersionCommand,
	} {
		root.AddCommand(newCommand())
	}
	completions(root)
	strict.Commands(root, func(err error) error { return usageError{err} })
	usageErrors(root)
	return root
}

// usageErrors marks what cobra finds wrong with flags and arguments, so that it
// exits as usage.
func usageErrors(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			for _, flags := range []func() error{cmd.ValidateRequiredFlags, cmd.ValidateFlagGroups} {
				if err == nil {
					err = flags()
				}
			}
			if err != nil {
				return usageError{err}
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		usageErrors(sub)
	}
}

// moreFormats is the annotation of a command that has formats beyond text and json.
const moreFormats = "formats"

func formatsOf(cmd *cobra.Command) []string {
	return append([]string{"text", "json"}, strings.Fields(cmd.Annotations[moreFormats])...)
}

// formatOf reads --format and refuses what the command does not offer.
func formatOf(cmd *cobra.Command) (string, error) {
	format, err := cmd.Flags().GetString("format")
	if err != nil {
		return "", err
	}
	if offered := formatsOf(cmd); !slices.Contains(offered, format) {
		return "", usageError{fmt.Errorf("--format %s: this command offers %s", format, strings.Join(offered, ", "))}
	}
	return format, nil
}

// writeJSONLine writes one object of an NDJSON stream. The types written have no
// value that JSON cannot hold; a broken pipe ends the program on the next write.
func writeJSONLine(w io.Writer, v any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	cobra.CheckErr(enc.Encode(v))
}

// endJSON writes the last line of JSON of a command that has nothing to count.
func endJSON(cmd *cobra.Command) {
	writeJSONLine(cmd.OutOrStdout(), struct {
		Type    string `json:"type"`
		Command string `json:"command"`
	}{"summary", cmd.Name()})
}
