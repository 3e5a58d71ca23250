package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/planfile"
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

Values that cannot be restored stay in the journal and are reported. Where records of the
journal are lost, or the record of a trial is damaged, rollback restores the values that it
knows and reports the rest.

Exit status: 0 everything is restored, 1 the journal or the record of a trial cannot be read
in full or written, 2 wrong usage, 3 some values could not be restored.`,
		Example: `  yoctuned rollback
  yoctuned rollback --root tree/ --format json`,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, _ []string) error {
			unlock, err := lock(dev, "rollback")
			if err != nil {
				return err
			}
			defer unlock()
			// Revert a trial first: the values from before it are older. The journal has the
			// original values of a trial whose record is damaged.
			trialErr := trial.Revert(dev)
			results, err := enforce.Rollback(dev, enforce.DefaultOptions())
			if err != nil && len(results) == 0 {
				return err
			}
			if trialErr != nil {
				results = append(results, enforce.Result{ID: "trial", Path: planfile.TrialFile, Outcome: outcome.Stale, Message: trialErr.Error()})
			}
			answer := report{"rollback", results, nil, isQuiet(cmd), nil}.write(cli.NewPrinter(cmd))
			return cmp.Or(err, answer)
		}),
	}
	cmd.Flags().BoolP("quiet", "q", false, "show only values that could not be restored (text output)")
	return cmd
}
