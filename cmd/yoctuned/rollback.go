package main

import (
	"github.com/spf13/cobra"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/trial"
)

func newRollbackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback",
		Short: "Restore the values from before the first apply",
		Long: `Write the original values from the journal back, and remove the journal. No plan is
needed: the journal lists every node that was written since boot, with its value from
before. A reboot has the same effect, so a journal of an earlier boot is ignored.

Values that cannot be restored stay in the journal and are reported.

Exit status: 0 everything is restored, 1 the journal cannot be read or written, 2 wrong
usage, 3 some values could not be restored.`,
		Example: `  yoctuned rollback
  yoctuned rollback --root tree/ --format json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dev, err := rootfs.Open(rootDir(cmd))
			if err != nil {
				return err
			}
			unlock, err := lock(dev, "rollback")
			if err != nil {
				return err
			}
			defer unlock()
			// Revert a trial first: the values from before it are older.
			if err := trial.Revert(dev); err != nil {
				return err
			}
			results, err := enforce.Rollback(dev, enforce.DefaultOptions())
			if err != nil && len(results) == 0 {
				return err
			}
			quiet, _ := cmd.Flags().GetBool("quiet")
			answer := report{"rollback", results, nil, quiet}.write(cmd.OutOrStdout(), cli.Format(cmd))
			if err != nil {
				return err
			}
			return answer
		},
	}
	cmd.Flags().BoolP("quiet", "q", false, "show only values that could not be restored (text output)")
	return cmd
}
