package main

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/trial"
	"github.com/yoctune/yoctune/runtime/device/watch"
)

func newApplyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply [PLAN]",
		Short: "Write the plan's settings and read them back",
		Long: `Write every setting that differs from the plan, read it back, and report the result. The
original values are on disk before the first write, so that "yoctuned rollback" restores
them even after a crash or a SIGKILL.

PLAN is a file on this host (default: /usr/lib/yoctune/plan.json below the root). If
/etc/yoctune/keys has a key, PLAN.minisig must be beside the plan.

The exit status covers what apply can write. Kernel arguments, modules, the power mode
and settings with the policy "report" are compared and shown, but only "yoctuned verify"
counts them. An optional setting whose node is absent never counts. The outcome of a row
that does not count is in parentheses.

A module or a device that a setting needs may come late. In the first minute after boot,
apply waits for it until that minute is over; --wait sets another time.

With --try the settings are reverted after a time, unless "yoctuned confirm" is run
before. This also happens when apply is killed or its connection breaks. A plan that was
tried and not confirmed is not used at the next boot.

Exit status: 0 every setting that apply can write is as wanted, 1 bad plan, wrong board,
or the original values cannot be saved (nothing was written), 2 wrong usage, 3 some
settings are not as wanted, or were tried and reverted.`,
		Example: `  yoctuned apply
  yoctuned apply --try 60s plan.json
  yoctuned apply plan.json --format json
  yoctuned apply --root tree/ plan.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
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
			// A running trial is an error; a plan that was not confirmed may be tried
			// again, or applied for good by this explicit command.
			if err := trial.Check(dev, file.Plan); err != nil && !errors.Is(err, planfile.ErrUnconfirmed) {
				return err
			}
			if try > 0 {
				return tryPlan(cmd, dev, file, try, unlock)
			}
			p := cli.NewPrinter(cmd)
			results, err := enforce.Apply(dev, file.Plan, waitOptions(cmd, dev))
			if err != nil {
				return err
			}
			if err := planfile.ForgetTrial(dev); err != nil {
				return err
			}
			// From now on older plans are refused. A root that cannot be written does not
			// make the plan fail.
			if err := planfile.ProveBoot(dev, file.Plan); err != nil {
				err = fmt.Errorf("older plans will not be refused later: %w", err)
				cli.Warn(cmd, "%v", err)
				if p.JSON {
					p.Error(err)
				}
			}
			return report{"apply", results, file.Origins, isQuiet(cmd), nil}.write(p)
		},
	}
	planFlags(cmd)
	quietFlag(cmd, notOK)
	cmd.Flags().Duration("try", 0, "`TIME` after which to revert unless 'yoctuned confirm' is run, such as 60s")
	cmd.Flags().Duration("wait", 0, "`TIME` to wait for modules and devices that are not there yet (default: until a minute after boot)")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		d, _ := cmd.Flags().GetDuration("try")
		if cmd.Flags().Changed("try") && (d < time.Second || d > 24*time.Hour) {
			return cli.UsageError(fmt.Errorf("--try %s: choose a time from 1s to 24h", d))
		}
		if wait, _ := cmd.Flags().GetDuration("wait"); wait < 0 || wait > time.Hour {
			return cli.UsageError(fmt.Errorf("--wait %s: choose a time from 0s to 1h", wait))
		}
		return nil
	}
	cmd.MarkFlagsMutuallyExclusive("try", "wait")
	return cmd
}

// waitOptions are the options of apply with the time to wait for nodes.
func waitOptions(cmd *cobra.Command, dev *rootfs.Root) enforce.Options {
	o := enforce.DefaultOptions()
	if o.Wait, _ = cmd.Flags().GetDuration("wait"); !cmd.Flags().Changed("wait") && dev.Running() {
		o.Wait = max(watch.Patience-rootfs.BootTime(), 0)
	}
	o.Waiting = func(missing []enforce.Node, wait time.Duration) {
		more := ""
		if n := len(missing) - 1; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		cli.Warn(cmd, "%s%s: no such node yet; waiting for at most %s", outcome.Name(missing[0].Path), more, wait.Round(100*time.Millisecond))
	}
	return o
}

// planFlags are those of the commands that take a plan.
func planFlags(cmd *cobra.Command) {
	cmd.Flags().String("origins", "", "`FILE` that maps settings to lines of the configuration (default: beside the plan)")
	cmd.Flags().Bool("any-board", false, "accept a plan for another board or L4T version, or on an unidentified machine")
}

// notOK is the usage of --quiet in apply and verify.
const notOK = "show only settings that are not ok (text output)"

func quietFlag(cmd *cobra.Command, usage string) { cmd.Flags().BoolP("quiet", "q", false, usage) }

func isQuiet(cmd *cobra.Command) bool {
	quiet, _ := cmd.Flags().GetBool("quiet")
	return quiet
}

// planSource is the plan that the arguments name: the installed one without arguments.
func planSource(cmd *cobra.Command, args []string) planfile.Source {
	src := planfile.Source{Stdin: cmd.InOrStdin()}
	if len(args) == 1 {
		src.Path = args[0]
	}
	return src
}

// openPlan opens the device and the plan. A plan for another device is an error.
func openPlan(cmd *cobra.Command, args []string) (*rootfs.Root, *planfile.File, error) {
	dev, err := rootfs.Open(rootDir(cmd))
	if err != nil {
		return nil, nil, err
	}
	src := planSource(cmd, args)
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

// lock makes this process the only one that may change the device.
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
