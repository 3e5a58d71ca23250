package main

import (
	"fmt"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/trial"
)

func newConfirmCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "confirm",
		Short: "Keep the plan that 'apply --try' applied",
		Long: `Confirm the trial that "yoctuned apply --try" started: its settings stay, and the plan
may be used at the next boot.

Exit status: 0 confirmed, 1 there is no trial, or its time is over, 2 wrong usage.`,
		Example: `  yoctuned confirm`,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, _ []string) error {
			unlock, err := lock(dev, "confirm")
			if err != nil {
				return err
			}
			defer unlock()
			t, err := trial.Confirm(dev)
			if err != nil {
				return fmt.Errorf("confirm: %w", err)
			}
			p := cli.NewPrinter(cmd)
			if !p.JSON {
				p.Printf("confirmed: %s serial %d stays\n", t.Target, t.Serial)
			}
			return p.End("confirm", cli.ExitDone, nil)
		}),
	}
}

// newRevertCommand returns the hidden command that `apply --try` starts: it reverts the
// trial even if apply is killed.
func newRevertCommand() *cobra.Command {
	return &cobra.Command{
		Use:     trial.GuardCommand,
		Short:   "Wait for the end of a trial and revert it unless it was confirmed",
		Long:    `"yoctuned apply --try" starts this command, which reverts the trial even if apply is killed.`,
		Example: `  yoctuned revert`,
		Hidden:  true,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, _ []string) error {
			signal.Ignore(unix.SIGHUP, unix.SIGINT)
			return trial.Guard(cmd.Context(), dev)
		}),
	}
}

// tryPlan applies a plan, waits for its confirmation, and reverts it when none comes. The
// caller holds the lock, which is released to wait.
func tryPlan(cmd *cobra.Command, dev *rootfs.Root, file *planfile.File, d time.Duration, unlock func()) error {
	t, results, err := trial.Start(dev, file.Plan, d, rootDir(cmd))
	if err != nil {
		return err
	}
	r := report{"apply", results, file.Origins, isQuiet(cmd), nil}
	p := cli.NewPrinter(cmd)
	if p.JSON {
		r.settings(p)
	} else {
		r.text(p)
		p.Printf("trying for %s: 'yoctuned confirm' keeps it, Ctrl-C reverts it now\n", d)
	}
	state := func(name string, left int64) {
		if p.JSON {
			p.Line("trial", struct {
				State string `json:"state"` // running, confirmed, reverted
				Left  int64  `json:"left_s,omitempty"`
			}{name, left})
		}
	}
	state("running", int64(d/time.Second))
	unlock()

	// An interrupt reverts at once.
	ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGINT)
	defer stop()
	confirmed, reverted, err := trial.Wait(ctx, dev, t)
	if err != nil {
		return err
	}
	if confirmed {
		state("confirmed", 0)
		if !p.JSON {
			p.Printf("confirmed\n")
		}
		return p.End("apply", r.exit(), nil)
	}
	state("reverted", 0)
	if !p.JSON {
		if len(reverted) > 0 {
			report{"reverted", reverted, nil, true, nil}.text(p)
		}
		p.Printf("not confirmed: everything is as it was before\n")
	}
	return p.End("apply", cli.ExitNo, nil)
}
