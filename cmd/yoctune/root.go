package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/language/sandbox"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/version"
)

// run is the program with its edges as parameters.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if sandbox.IsChild(args) {
		return sandbox.Serve(os.Stdin, stdout)
	}
	return cli.Run(ctx, newRootCommand(), args, stdout, stderr)
}

// groups lists the commands. A new one is a file with a constructor, and a line here.
func groups() []cli.Group {
	return []cli.Group{
		{Title: "Configuration", Commands: []func() *cobra.Command{
			newInitCommand, newVetCommand, newFmtCommand, newExplainCommand, newImportCommand, newSchemaCommand, newLSPCommand,
		}},
		{Title: "Layers and plans", Commands: []func() *cobra.Command{
			newBuildCommand, newDiffCommand, newReviewCommand, newPlanCommand, newGraphCommand, newCheckLayerCommand, newModelCommand,
		}},
		{Title: "Releases", Commands: []func() *cobra.Command{
			newSignCommand, newSBOMCommand, newPushCommand, newPullCommand,
		}},
		{Title: "Kernels, boards and builds", Commands: []func() *cobra.Command{
			newKernelCommand, newFactsCommand, newTasksCommand,
		}},
	}
}

func newRootCommand() *cobra.Command {
	root := cli.NewRoot(&cobra.Command{
		Use:   "yoctune",
		Short: "Turn a tuning configuration into a Yocto layer for Jetson devices",
		Long: `yoctune turns a tuning configuration for Jetson devices, written in CUE, HCL or
Jsonnet, into a Yocto layer: power modes, kernel options and arguments, sysctls, udev
rules, services, and the plan that yoctuned enforces on the device. Every message names
the line of the configuration that caused it.

Exit status: 0 success, 1 invalid input or a failure, 2 wrong usage, 3 the check ran and
did not pass (there are differences, or a check failed).`,
		Example: `  yoctune init meta-camera --board orin-nano-8gb --release scarthgap
  yoctune vet meta-camera
  yoctune build meta-camera -o meta-camera/layer
  yoctune review meta-camera meta-camera/layer`,
	}, version.Version, groups(), newVersionCommand)
	registerCompletions(root)
	return root
}
