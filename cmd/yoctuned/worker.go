package main

import (
	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/engine/worker"
)

func newWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:     worker.Command,
		Short:   "Use the GPU for the pipeline that started it",
		Long:    `yoctuned starts this command to use the GPU in a separate process. Do not run it directly.`,
		Example: `  yoctuned pipeline run plan.json  # starts one if a stage has device gpu`,
		Hidden:  true,
		RunE:    func(*cobra.Command, []string) error { return cli.Exit(worker.Serve()) },
	}
}
