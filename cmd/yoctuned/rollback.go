package main

import (
	"cmp"

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
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, _ []string) error {
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
			answer := report{"rollback", results, nil, isQuiet(cmd)}.write(cli.NewPrinter(cmd))
			return cmp.Or(err, answer)
		}),
	}
	cmd.Flags().BoolP("quiet", "q", false, "show only values that could not be restored (text output)")
	return cmd
}
