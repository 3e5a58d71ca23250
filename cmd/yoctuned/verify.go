package main

import (
	"github.com/spf13/cobra"
	"github.com/yoctune/yoctune/runtime/device/enforce"
)

func newVerifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [PLAN]",
		Short: "Compare the device with the plan, reading only",
		Long: `verify reads every node of the plan and compares it with what is wanted, by type:
0x2a is 42, a tab is a blank, [none] is none. It writes nothing and needs no
privilege beyond reading.

Everything in the plan counts, also what is pending until a reboot, a new image,
a module or nvpmodel. Only an optional setting whose node is absent does not.

Exit codes: 0 the device is as the plan wants it · 1 bad plan or wrong board ·
2 usage · 3 some settings are not as wanted.`,
		Example: `  yoctuned verify --quiet
  yoctuned verify plan.json --format json | jq 'select(.counts)'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dev, file, err := openPlan(cmd, args)
			if err != nil {
				return err
			}
			results := enforce.Verify(dev, file.Plan, enforce.DefaultOptions())
			quiet, _ := cmd.Flags().GetBool("quiet")
			return report{"verify", results, file.Origins, quiet}.write(cmd.OutOrStdout(), globalFlags(cmd).Format)
		},
	}
	planFlags(cmd)
	return cmd
}
