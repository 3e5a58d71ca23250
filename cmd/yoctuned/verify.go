package main

import (
	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
)

func newVerifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [PLAN]",
		Short: "Compare the device with the plan",
		Long: `Read every node of the plan and compare it with the wanted value, by type: 0x2a equals
42, a tab equals a blank, [none] equals none. Nothing is written, and read permission is
enough. PLAN can be - for standard input.

Everything in the plan counts, even what is pending until a reboot, a new image, a module
or nvpmodel. Only an optional setting whose node is absent does not count; its outcome is
in parentheses.

The pipelines of the plan are listed, with whether they run and start at boot. They are not
settings and do not count.

Exit status: 0 the device matches the plan, 1 bad plan or wrong board, 2 wrong usage, 3
some settings are not as wanted.`,
		Example: `  yoctuned verify --quiet
  yoctuned verify plan.json --format json | jq 'select(.counts)'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dev, file, err := openPlan(cmd, args)
			if err != nil {
				return err
			}
			results := enforce.Verify(dev, file.Plan, enforce.DefaultOptions())
			states := pipelines.States(dev, liveDirs(dev), file.Plan)
			return report{"verify", results, file.Origins, isQuiet(cmd), states}.write(cli.NewPrinter(cmd))
		},
	}
	planFlags(cmd)
	quietFlag(cmd, notOK)
	return cmd
}
