package main

import (
	"github.com/spf13/cobra"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

func newRollbackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback",
		Short: "Put back what apply changed since boot",
		Long: `rollback writes the original values from the journal and removes it. It needs no
plan: the journal knows every node that any apply of this boot wrote, and what
it held before the first one. A reboot does the same, so a journal of an earlier
boot is ignored.

What cannot be put back stays in the journal and is named.

Exit codes: 0 everything is as it was · 1 the journal cannot be read or written ·
2 usage · 3 some nodes could not be put back.`,
		Example: `  yoctuned rollback
  yoctuned rollback --root tree/ --format json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g := globalFlags(cmd)
			dev, err := rootfs.Open(g.Root)
			if err != nil {
				return err
			}
			unlock, err := lock(dev, "rollback")
			if err != nil {
				return err
			}
			defer unlock()
			// A trial ends here too: what it covered is older than what it changed.
			if _, _, err := revertTrial(dev, true); err != nil {
				return err
			}
			results, err := enforce.Rollback(dev, enforce.DefaultOptions())
			if err != nil && len(results) == 0 {
				return err
			}
			quiet, _ := cmd.Flags().GetBool("quiet")
			answer := report{"rollback", results, nil, quiet}.write(cmd.OutOrStdout(), g.Format)
			if err != nil {
				return err
			}
			return answer
		},
	}
	cmd.Flags().BoolP("quiet", "q", false, "text: show only nodes that could not be put back")
	return cmd
}
