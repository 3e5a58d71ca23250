package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom/plugin"
)

func newStageHostCommand() *cobra.Command {
	return &cobra.Command{
		Use:     custom.Command + " PLUGIN",
		Short:   "Host a plug-in for the pipeline that started it",
		Long:    `yoctuned starts this command to run the plug-in of a custom stage in a separate process. Do not run it directly.`,
		Example: `  yoctuned pipeline run plan.json  # starts one for each stage with a plug-in`,
		Hidden:  true,
		RunE:    func(_ *cobra.Command, args []string) error { return plugin.Serve(args[0]) },
	}
}

func newStageExecCommand() *cobra.Command {
	return &cobra.Command{
		Use:                custom.ExecCommand + " PROGRAM [ARG...]",
		Short:              "Start the program of a custom stage for the pipeline that started it",
		Long:               `yoctuned starts this command to run the program of a custom stage. Do not run it directly.`,
		Example:            `  yoctuned pipeline run plan.json  # starts one for each stage with a program`,
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.MinimumNArgs(1),
		RunE:               func(_ *cobra.Command, args []string) error { return custom.Exec(args) },
	}
}

func newPipelineHeaderCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "header",
		Short:   "Print the C header for plug-ins of custom stages",
		Long:    `Print yoctune_stage.h, the only file that a plug-in of a custom stage needs.`,
		Example: `  yoctuned pipeline header >yoctune_stage.h`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), plugin.Header)
			return err
		},
	}
}
