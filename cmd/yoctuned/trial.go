package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
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
			t, err := planfile.ReadTrial(dev)
			if err != nil {
				return err
			}
			switch {
			case !t.Running(rootfs.Identify(dev).BootID):
				return fmt.Errorf("confirm: %w", planfile.ErrNoTrial)
			case t.Over(boottime()):
				return fmt.Errorf("confirm: %w: its time is over, and it is being reverted", planfile.ErrNoTrial)
			}
			p := &plan.Plan{Layer: t.Layer, Target: t.Target, Serial: t.Serial, Digest: t.Digest}
			if err := errors.Join(planfile.ProveBoot(dev, p), planfile.ForgetTrial(dev), enforce.ConfirmTrial(dev)); err != nil {
				return err
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
		Use:     "revert",
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
			t, err := planfile.ReadTrial(dev)
			if err != nil || !t.Running(rootfs.Identify(dev).BootID) {
				return err
			}
			if err := await(cmd.Context(), dev, t); err != nil {
				return err
			}
			_, _, err = settleTrial(dev)
			return err
		},
	}
}

// tryPlan applies a plan, waits for its confirmation, and reverts it when none
// comes. The caller holds the lock, which is given up to wait.
func tryPlan(cmd *cobra.Command, dev *rootfs.Root, file *planfile.File, d time.Duration, unlock func()) error {
	boot := rootfs.Identify(dev).BootID
	p := file.Plan
	t := &planfile.Trial{Boot: boot, Layer: p.Layer, Target: p.Target, Serial: p.Serial, Digest: p.Digest, Deadline: int64(boottime() + d)}
	session, err := enforce.Open(dev, p, enforce.DefaultOptions())
	if err != nil {
		return err
	}
	// On the disk before the first write: a machine that hangs now boots without
	// this plan.
	if err := t.Write(dev); err != nil {
		return err
	}
	if err := startGuard(rootDir(cmd)); err != nil {
		return errors.Join(err, planfile.ForgetTrial(dev))
	}
	results, err := session.ApplyTrial()
	if err != nil {
		return errors.Join(err, planfile.ForgetTrial(dev))
	}
	quiet, _ := cmd.Flags().GetBool("quiet")
	r := report{"apply", results, file.Origins, quiet}
	out := trialOutput{cmd, cli.Format(cmd) == "json"}
	out.applied(r, d)
	unlock()

	// An interrupt is a "no" that need not wait.
	ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGINT)
	defer stop()
	if err := await(ctx, dev, t); err != nil && ctx.Err() == nil {
		return err
	}
	confirmed, reverted, err := settleTrialNow(dev, ctx.Err() != nil)
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

// startGuard starts a process that reverts the trial when this one is killed.
func startGuard(root string) error {
	abs, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("start the guard of the trial: %w", err)
	}
	guard := &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        []string{os.Args[0], "revert", "--root", abs},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := guard.Start(); err != nil {
		return fmt.Errorf("start the guard of the trial: %w", err)
	}
	return guard.Process.Release()
}

// await returns when the trial is over: its time, or its record, whichever is
// first.
func await(ctx context.Context, dev *rootfs.Root, t *planfile.Trial) error {
	file, err := dev.StatePath(planfile.TrialFile)
	if err != nil {
		return err
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("wait for confirmation: %w", err)
	}
	changes := os.NewFile(uintptr(fd), "inotify")
	defer func() { _ = changes.Close() }()
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(file), unix.IN_DELETE|unix.IN_MOVED_TO); err != nil {
		return fmt.Errorf("wait for confirmation: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = changes.SetReadDeadline(time.Unix(1, 0)) })()
	for ctx.Err() == nil {
		now, err := planfile.ReadTrial(dev)
		if err != nil {
			return err
		}
		left := time.Duration(t.Deadline) - boottime()
		if !now.Running(t.Boot) || now.Digest != t.Digest || left <= 0 {
			return nil
		}
		if err := changes.SetReadDeadline(time.Now().Add(left)); err != nil {
			return fmt.Errorf("wait for confirmation: %w", err)
		}
		var buf [4096]byte
		if _, err := changes.Read(buf[:]); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("wait for confirmation: %w", err)
		}
	}
	return ctx.Err()
}

// settleTrial reverts a trial whose time is over, whoever comes first.
func settleTrial(dev *rootfs.Root) (confirmed bool, reverted []enforce.Result, err error) {
	return settleTrialNow(dev, false)
}

func settleTrialNow(dev *rootfs.Root, now bool) (confirmed bool, reverted []enforce.Result, err error) {
	unlock, err := patientLock(dev, "revert")
	if err != nil {
		return false, nil, err
	}
	defer unlock()
	return revertTrial(dev, now)
}

// revertTrial does it for one who holds the lock. now: also before its time.
func revertTrial(dev *rootfs.Root, now bool) (confirmed bool, reverted []enforce.Result, err error) {
	t, err := planfile.ReadTrial(dev)
	switch {
	case err != nil:
		return false, nil, err
	case t == nil:
		return true, nil, nil
	case !t.Running(rootfs.Identify(dev).BootID), !now && !t.Over(boottime()):
		return false, nil, nil
	}
	if reverted, err = enforce.RevertTrial(dev, enforce.DefaultOptions()); err != nil {
		return false, reverted, err
	}
	t.Reverted = true
	return false, reverted, t.Write(dev)
}

// patientLock waits a while for the lock: the other reverter may hold it.
func patientLock(dev *rootfs.Root, command string) (func(), error) {
	const tries = 50
	for n := 0; ; n++ {
		unlock, err := lock(dev, command)
		var held *rootfs.HeldError
		if err == nil || n == tries || !errors.As(err, &held) {
			return unlock, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// refuseTried reverts a trial that is over, and refuses to put a plan into force
// while one is running, or when it is the one that was never confirmed.
func refuseTried(dev *rootfs.Root, p *plan.Plan) error {
	if _, _, err := revertTrial(dev, false); err != nil {
		return err
	}
	t, err := planfile.ReadTrial(dev)
	if err != nil {
		return err
	}
	if t.Running(rootfs.Identify(dev).BootID) {
		left := (time.Duration(t.Deadline) - boottime()).Round(time.Second)
		return fmt.Errorf("%w: %s serial %d, for another %s; confirm it or wait", planfile.ErrTrying, t.Target, t.Serial, left)
	}
	return planfile.CheckTrial(t, p)
}

// boottime counts while the machine sleeps, and nobody sets it.
func boottime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0 // only an unknown clock fails, and this one is older than Go's oldest kernel
	}
	return time.Duration(ts.Nano())
}
