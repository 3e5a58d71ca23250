package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom"
)

func newStageHostCommand() *cobra.Command {
	return &cobra.Command{
		Use:     custom.Command + " PLUGIN",
		Short:   "Keep a plug-in for the pipeline that started it",
		Long:    custom.Command + ` is what yoctuned starts to keep a stage's plug-in out of its own process. By hand it does nothing.`,
		Example: `  yoctuned pipeline run plan.json # starts one for each stage with a plugin`,
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return custom.Serve(args[0]) },
	}
}

func newPipelineHeaderCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "header",
		Short:   "Print the C header that plug-ins of stages are written against",
		Long:    `header prints yoctune_stage.h, the one file that a plug-in needs.`,
		Example: `  yoctuned pipeline header >yoctune_stage.h`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), custom.Header)
			return err
		},
	}
}
