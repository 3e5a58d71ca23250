package main

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

func newApplyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply [PLAN]",
		Short: "Write the plan's settings and read them back",
		Long: `apply writes every setting that differs, reads it back, and says what became of
it. The original values are on the disk before the first write, so that
'yoctuned rollback' restores them even after a crash or a SIGKILL.

PLAN is a file on this host; without it, /usr/lib/yoctune/plan.json below the
root. Where /etc/yoctune/keys holds a key, PLAN.minisig must be beside it.

apply answers for what it writes. Kernel arguments, modules, the power mode and
settings whose policy is "report" are compared and shown, and do not change its
exit code: 'verify' is where they count. An optional setting whose node is
absent never counts.

With --try the settings stay only for a time, unless 'yoctuned confirm' is run
meanwhile: they are reverted to what they were before, also when apply is killed
or its connection breaks. A plan that was tried and never confirmed is not used
at the next boot.

Exit codes: 0 every setting that apply writes is as wanted · 1 bad plan, wrong
board, or the originals cannot be journalled: nothing was written · 2 usage ·
3 it ran, and some settings are not as wanted, or were tried and reverted.`,
		Example: `  yoctuned apply
  yoctuned apply --try 60s plan.json
  yoctuned apply plan.json --format json
  yoctuned apply --root tree/ plan.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g := globalFlags(cmd)
			dev, file, err := openPlan(cmd, args)
			if err != nil {
				return err
			}
			unlock, err := lock(dev, "apply")
			if err != nil {
				return err
			}
			defer unlock()
			if err := planfile.CheckSerial(dev, file.Plan); err != nil {
				return err
			}
			try, _ := cmd.Flags().GetDuration("try")
			// A trial that is running is in the way; one that was not confirmed may
			// be tried again, or applied for good by somebody who says so here.
			if err := refuseTried(dev, file.Plan); err != nil && !errors.Is(err, planfile.ErrUnconfirmed) {
				return err
			}
			if try > 0 {
				return tryPlan(cmd, dev, file, try, unlock)
			}
			results, err := enforce.Apply(dev, file.Plan, enforce.DefaultOptions())
			if err != nil {
				return err
			}
			if err := planfile.ForgetTrial(dev); err != nil {
				return err
			}
			// A plan that was obeyed once is the oldest that will be from now on. On a
			// root that cannot be written it is obeyed all the same.
			if err := planfile.ProveBoot(dev, file.Plan); err != nil {
				err = fmt.Errorf("an older plan is not refused later: %w", err)
				fmt.Fprintln(cmd.ErrOrStderr(), "yoctuned: "+printable(err.Error()))
				if g.Format == "json" {
					_ = lines(cmd.OutOrStdout()).Encode(errorLine{"error", err.Error()})
				}
			}
			quiet, _ := cmd.Flags().GetBool("quiet")
			return report{"apply", results, file.Origins, quiet}.write(cmd.OutOrStdout(), g.Format)
		},
	}
	planFlags(cmd)
	cmd.Flags().Duration("try", 0, "revert after this `TIME` unless 'yoctuned confirm' is run, e.g. 60s")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		d, _ := cmd.Flags().GetDuration("try")
		if cmd.Flags().Changed("try") && (d < time.Second || d > 24*time.Hour) {
			return usage(fmt.Errorf("--try is 1s to 24h, not %s", d))
		}
		return nil
	}
	return cmd
}

// planFlags are those of the commands that take a plan.
func planFlags(cmd *cobra.Command) {
	cmd.Flags().String("origins", "", "`FILE` that maps settings to lines of the configuration; default: beside the plan")
	cmd.Flags().Bool("any-board", false, "obey a plan that was made for another board or L4T, or on a machine that does not say what it is")
	cmd.Flags().BoolP("quiet", "q", false, "text: show only settings that are not ok")
}

// openPlan opens the device and the plan, and refuses one that is not for it.
func openPlan(cmd *cobra.Command, args []string) (*rootfs.Root, *planfile.File, error) {
	dev, err := rootfs.Open(globalFlags(cmd).Root)
	if err != nil {
		return nil, nil, err
	}
	src := planfile.Source{}
	if len(args) == 1 {
		src.Path = args[0]
	}
	src.Origins, _ = cmd.Flags().GetString("origins")
	file, err := planfile.Load(dev, src)
	if err != nil {
		return nil, nil, err
	}
	if anyBoard, _ := cmd.Flags().GetBool("any-board"); !anyBoard {
		if err := planfile.CheckDevice(file.Plan, rootfs.Identify(dev)); err != nil {
			return nil, nil, err
		}
	}
	return dev, file, nil
}

// lock makes this process the only one that changes the device.
func lock(dev *rootfs.Root, command string) (func(), error) {
	unlock, err := dev.Lock("yoctuned " + command)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s: %w: run it as root", command, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	return unlock, nil
}
