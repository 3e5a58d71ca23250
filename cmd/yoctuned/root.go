package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/sticky"
	"github.com/yoctune/yoctune/internal/strict"
)

// commands lists the subcommands. A new one is a file with a constructor, and a
// line here.
func commands() []func() *cobra.Command {
	return []func() *cobra.Command{
		newApplyCommand,
		newVerifyCommand,
		newEnforceCommand,
		newRollbackCommand,
		newConfirmCommand,
		newRevertCommand,
		newStatusCommand,
		newWhyCommand,
		newLeaseCommand,
		newMonitorCommand,
		newDoctorCommand,
		newMemCommand,
		newExplainMemoryCommand,
		newServeCommand,
		newProbeCommand,
		newPipelineCommand,
		newEnginesCommand,
		newWorkerCommand,
		newStageHostCommand,
		newTraceCommand,
		newProfileCommand,
		newBenchCommand,
		newTuneCommand,
		newDevicesCommand,
		newOccupancyCommand,
		newVersionCommand,
	}
}

// Exit codes of every command.
const (
	exitYes    = 0 // done, or the answer is yes
	exitFailed = 1 // the request is wrong or could not be carried out
	exitUsage  = 2 // the command line is wrong
	exitNo     = 3 // it ran, and the answer is no
)

// exitError ends the program with a code; without Err there is nothing to add to
// what was printed.
type exitError struct {
	Code int
	Err  error
}

func (e *exitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Err.Error()
}

func (e *exitError) Unwrap() error { return e.Err }

// answerNo is returned by a command that ran and whose answer is no.
func answerNo() error { return &exitError{Code: exitNo} }

// usage marks an error of the command line.
func usage(err error) error { return &exitError{Code: exitUsage, Err: err} }

// globals are the flags that every command has.
type globals struct {
	Root   string
	Format string // text, json
}

// globalFlags reads them; they are validated before any command runs.
func globalFlags(cmd *cobra.Command) globals {
	root, _ := cmd.Flags().GetString("root")
	format, _ := cmd.Flags().GetString("format")
	return globals{Root: root, Format: format}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "yoctuned",
		Short: "Make a tuning plan true on this device",
		Long: `yoctuned obeys a plan that yoctune compiled: it writes kernel settings, reads
them back, says what became of each, and can put everything back as it was.

Exit codes: 0 done, the answer is yes · 1 the request is wrong or failed ·
2 usage · 3 it ran and the answer is no (differences, refused settings).`,
		Example: `  yoctuned verify                      # is the device as the installed plan wants it?
  yoctuned apply plan.json             # make it so
  yoctuned enforce                     # make it so, and keep it so
  yoctuned rollback                    # put back what was changed since boot
  yoctuned verify --root tree/ plan.json --format json`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().String("root", "/", "`DIR` that stands for /: a recorded or synthetic device tree")
	root.PersistentFlags().String("format", "text", "output `FORMAT`: text, or json (one object per line, a summary last)")
	_ = root.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	_ = root.MarkPersistentFlagDirname("root")
	for _, c := range commands() {
		root.AddCommand(c())
	}
	strict.Commands(root, usage)
	return root
}

// run is the program; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := sticky.NewWriter(stdout)
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	// Whatever fails before a command starts is the command line's fault.
	started := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if f := globalFlags(cmd).Format; f != "text" && f != "json" {
			return fmt.Errorf("--format is text or json, not %q", f)
		}
		started = true
		return nil
	}
	cmd, err := root.ExecuteContextC(ctx)
	if lost := out.Lost(err); lost != nil {
		err = fmt.Errorf("the output is not whole: %w", lost)
	}
	if err == nil {
		return exitYes
	}
	code := exitFailed
	if !started {
		code = exitUsage
	}
	var ee *exitError
	if errors.As(err, &ee) {
		code = ee.Code
		if ee.Err == nil {
			return code
		}
	}
	fmt.Fprintln(stderr, "yoctuned: "+printable(err.Error()))
	if code == exitUsage {
		fmt.Fprintln(stderr, strict.Usage(cmd))
	}
	if asksForJSON(cmd, args) {
		writeFailure(stdout, cmd.Name(), err, code)
	}
	return code
}

// asksForJSON reports whether the answer shall be JSON, also where the flags could
// not be read because one of them is wrong.
func asksForJSON(cmd *cobra.Command, args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	line := " " + strings.Join(args, " ") + " "
	return globalFlags(cmd).Format == "json" || strings.Contains(line, " --format=json ") || strings.Contains(line, " --format json ")
}

// group is a command that only has others below it.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
	}
	cmd.AddCommand(below...)
	return cmd
}
