package main

import (
	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/engine/core"
)

// coreFlags adds the flags that choose the backend of the compute core.
func coreFlags(cmd *cobra.Command, o *core.Options) {
	cli.ChoiceVar(cmd, &o.Backend, "backend", core.Auto, "`BACKEND` to use", core.Auto, core.CPU, core.CUDA, core.Strict)
	cmd.Flags().StringVar(&o.Library, "library", core.DefaultLibrary, "`FILE` of the CUDA backend library")
}
