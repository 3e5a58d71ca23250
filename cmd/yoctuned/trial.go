package main

import (
	"fmt"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/device/enforce"
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			dev, err := rootfs.Open(rootDir(cmd))
			if err != nil {
				return err
			}
			unlock, err := lock(dev, "confirm")
			if err != nil {
				return err
			}
			defer unlock()
			t, err := trial.Confirm(dev)
			if err != nil {
				return fmt.Errorf("confirm: %w", err)
			}
			if cli.Format(cmd) == "json" {
				return cli.Encoder(cmd.OutOrStdout()).Encode(cli.Summary{Type: "summary", Command: "confirm"})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "confirmed: %s serial %d stays\n", cli.PrintableLine(t.Target), t.Serial)
			return err
		},
	}
}

// newRevertCommand is what `apply --try` leaves behind, in case it is killed.
func newRevertCommand() *cobra.Command {
	return &cobra.Command{
		Use:     trial.GuardCommand,
		Short:   "Wait for the end of a trial and revert it unless it was confirmed",
		Long:    `"yoctuned apply --try" starts this command, which reverts the trial even if apply is killed.`,
		Example: `  yoctuned revert`,
		Hidden:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dev, err := rootfs.Open(rootDir(cmd))
			if err != nil {
				return err
			}
			signal.Ignore(unix.SIGHUP, unix.SIGINT)
			return trial.Guard(cmd.Context(), dev)
		},
	}
}

// tryPlan applies a plan, waits for its confirmation, and reverts it when none comes. The
// caller holds the lock, which is released to wait.
func tryPlan(cmd *cobra.Command, dev *rootfs.Root, file *planfile.File, d time.Duration, unlock func()) error {
	t, results, err := trial.Start(dev, file.Plan, d, rootDir(cmd))
	if err != nil {
		return err
	}
	quiet, _ := cmd.Flags().GetBool("quiet")
	r := report{"apply", results, file.Origins, quiet}
	out := trialOutput{cmd, cli.Format(cmd) == "json"}
	out.applied(r, d)
	unlock()

	// An interrupt reverts at once.
	ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGINT)
	defer stop()
	confirmed, reverted, err := trial.Wait(ctx, dev, t)
	if err != nil {
		return err
	}
	if confirmed {
		return out.ended("confirmed", r.exit(), nil)
	}
	return out.ended("reverted", cli.ExitNo, reverted)
}

// trialOutput is what `apply --try` prints.
type trialOutput struct {
	cmd  *cobra.Command
	json bool
}

type trialLine struct {
	Type  string `json:"type"`  // "trial"
	State string `json:"state"` // running, confirmed, reverted
	Left  int64  `json:"left_s,omitempty"`
}

func (o trialOutput) applied(r report, d time.Duration) {
	w := o.cmd.OutOrStdout()
	if o.json {
		enc := cli.Encoder(w)
		for _, s := range r.settings() {
			_ = enc.Encode(s) // standard output that fails shows in the last write
		}
		_ = enc.Encode(trialLine{"trial", "running", int64(d / time.Second)})
		return
	}
	r.text(w, cli.Colour(w))
	_, _ = fmt.Fprintf(w, "trying for %s: 'yoctuned confirm' keeps it, Ctrl-C reverts it now\n", d)
}

func (o trialOutput) ended(state string, exit int, reverted []enforce.Result) error {
	w := o.cmd.OutOrStdout()
	var err error
	if o.json {
		enc := cli.Encoder(w)
		_ = enc.Encode(trialLine{"trial", state, 0})
		err = enc.Encode(cli.Summary{Type: "summary", Command: "apply", Exit: exit})
	} else {
		if len(reverted) > 0 {
			r := report{"reverted", reverted, nil, true}
			r.text(w, cli.Colour(w))
		}
		_, err = fmt.Fprintln(w, map[string]string{"confirmed": "confirmed", "reverted": "not confirmed: everything is as it was before"}[state])
	}
	if err == nil && exit == cli.ExitNo {
		return cli.AnswerNo()
	}
	return err
}
