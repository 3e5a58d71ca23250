package main

import (
	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/runtime/engine/worker"
)

func newWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:     worker.Command,
		Short:   "Work on a device for the yoctuned that started it",
		Long:    `worker is what yoctuned starts to keep a GPU out of its own process. By hand it does nothing.`,
		Example: `  yoctuned pipeline run plan.json # starts one where a stage has device gpu`,
		Hidden:  true,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if code := worker.Serve(); code != 0 {
				return &exitError{Code: code}
			}
			return nil
		},
	}
}
