package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/version"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// groups lists the commands. A new one is a file with a constructor, and a line here.
func groups() []cli.Group {
	return []cli.Group{
		{Title: "Enforce a plan", Commands: []func() *cobra.Command{
			newVerifyCommand, newApplyCommand, newConfirmCommand, newRevertCommand, newEnforceCommand, newRollbackCommand,
			newStatusCommand, newWhyCommand, newLeaseCommand, newKeygenCommand,
		}},
		{Title: "Observe the device", Commands: []func() *cobra.Command{
			newMonitorCommand, newDoctorCommand, newMemCommand, newProbeCommand, newServeCommand,
		}},
		{Title: "Inference pipelines", Commands: []func() *cobra.Command{
			newPipelineCommand, newEnginesCommand, newTraceCommand, newProfileCommand, newWorkerCommand, newStageHostCommand, newStageExecCommand, newClusterCommand,
		}},
		{Title: "Compute core", Commands: []func() *cobra.Command{
			newDevicesCommand, newBenchCommand, newBenchModelProcessCommand, newTuneCommand, newOccupancyCommand, newExplainMemoryCommand,
		}},
	}
}

func newRootCommand() *cobra.Command {
	root := cli.NewRoot(&cobra.Command{
		Use:   "yoctuned",
		Short: "Enforce a tuning plan on this device",
		Long: `yoctuned enforces a plan that yoctune compiled: it writes kernel settings, reads them
back, reports the result of each, and can restore the original values. It also runs the
plan's inference pipelines.

Exit status: 0 success, 1 invalid input or a failure, 2 wrong usage, 3 the command ran and
the result is negative (there are differences, or settings were refused).`,
		Example: `  yoctuned verify                      # compare the device with the installed plan
  yoctuned apply plan.json             # write the settings of a plan
  yoctuned enforce                     # write them, and repair later changes
  yoctuned rollback                    # restore the values from before the first apply
  yoctuned verify --root tree/ plan.json --format json`,
	}, version.Version, groups(), newVersionCommand)
	root.PersistentFlags().String("root", "/", "`DIR` to use in place of /: a recorded or synthetic device tree")
	_ = root.MarkPersistentFlagDirname("root")
	return root
}

// run is the program; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return cli.Run(ctx, newRootCommand(), args, stdout, stderr)
}

// rootDir is the folder that stands for /.
func rootDir(cmd *cobra.Command) string {
	root, _ := cmd.Flags().GetString("root")
	return root
}

// onDevice makes a command that works on the device below --root.
func onDevice(run func(cmd *cobra.Command, dev *rootfs.Root, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		dev, err := rootfs.Open(rootDir(cmd))
		if err != nil {
			return err
		}
		return run(cmd, dev, args)
	}
}

// newGroupCommand returns a command that only has others below it.
func newGroupCommand(use, short, long, example string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example}
	cmd.AddCommand(below...)
	return cmd
}
