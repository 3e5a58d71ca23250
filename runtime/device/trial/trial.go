// Package trial applies a plan for a limited time: unless the plan is confirmed in time,
// the previous values are restored. A second process, the guard, restores them even when
// the first one is killed.
package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// GuardCommand is the command of this program that calls [Guard].
const GuardCommand = "revert"

// Start applies a plan for the time d and starts the guard. The caller holds the lock of
// the device, and releases it before it calls [Wait].
func Start(dev *rootfs.Root, p *plan.Plan, d time.Duration, root string) (*planfile.Trial, []enforce.Result, error) {
	t := &planfile.Trial{
		Boot: rootfs.BootID(dev), Layer: p.Layer, Target: p.Target, Serial: p.Serial, Digest: p.Digest,
		Deadline: int64(rootfs.BootTime() + d),
	}
	session, err := enforce.Open(dev, p, enforce.DefaultOptions())
	if err != nil {
		return nil, nil, err
	}
	// On disk before the first write: a machine that hangs now boots without this plan.
	if err := t.Write(dev); err != nil {
		return nil, nil, err
	}
	if err := startGuard(root); err != nil {
		return nil, nil, errors.Join(err, planfile.ForgetTrial(dev))
	}
	results, err := session.ApplyTrial()
	if err != nil {
		return nil, nil, errors.Join(err, planfile.ForgetTrial(dev))
	}
	return t, results, nil
}

// Wait returns when the trial is confirmed or reverted. When the context ends before,
// Wait reverts the trial at once.
func Wait(ctx context.Context, dev *rootfs.Root, t *planfile.Trial) (confirmed bool, reverted []enforce.Result, err error) {
	if err := awaitEnd(ctx, dev, t); err != nil && ctx.Err() == nil {
		return false, nil, err
	}
	return endTrial(dev, t, ctx.Err() != nil)
}

// Guard waits for the end of the running trial and reverts it unless it was confirmed.
func Guard(ctx context.Context, dev *rootfs.Root) error {
	t, err := planfile.ReadTrial(dev)
	if err != nil || !t.Running(rootfs.BootID(dev)) {
		return err
	}
	if err := awaitEnd(ctx, dev, t); err != nil {
		return err
	}
	_, _, err = endTrial(dev, t, false)
	return err
}

// Confirm ends the running trial and keeps its settings. The caller holds the lock.
func Confirm(dev *rootfs.Root) (*planfile.Trial, error) {
	t, err := planfile.ReadTrial(dev)
	switch {
	case err != nil:
		return nil, err
	case !t.Running(rootfs.BootID(dev)):
		return nil, planfile.ErrNoTrial
	case t.Expired(rootfs.BootTime()):
		return nil, fmt.Errorf("%w: its time is over, and it is being reverted", planfile.ErrNoTrial)
	}
	p := &plan.Plan{Layer: t.Layer, Target: t.Target, Serial: t.Serial, Digest: t.Digest}
	return t, errors.Join(planfile.ProveBoot(dev, p), planfile.ForgetTrial(dev), enforce.ConfirmTrial(dev))
}

// Check reverts a trial that is over. It returns an error when a trial is running, or
// when p is the plan of a trial that was not confirmed. The caller holds the lock.
func Check(dev *rootfs.Root, p *plan.Plan) error {
	if _, _, err := revert(dev, nil, false); err != nil {
		return err
	}
	t, err := planfile.ReadTrial(dev)
	if err != nil {
		return err
	}
	if t.Running(rootfs.BootID(dev)) {
		left := (time.Duration(t.Deadline) - rootfs.BootTime()).Round(time.Second)
		return fmt.Errorf("%w: %s serial %d, for another %s; confirm it or wait", planfile.ErrTrying, t.Target, t.Serial, left)
	}
	return planfile.CheckTrial(t, p)
}

// Revert reverts a running trial, even before its time. The caller holds the lock.
func Revert(dev *rootfs.Root) error {
	_, _, err := revert(dev, nil, true)
	return err
}

// read returns the last trial. If its record is damaged, that is the trial that the caller
// has started, which is nil if it has started none.
func read(dev *rootfs.Root, started *planfile.Trial) (*planfile.Trial, error) {
	t, err := planfile.ReadTrial(dev)
	if err != nil && started != nil {
		return started, nil
	}
	return t, err
}

// startGuard starts the process that calls [Guard].
func startGuard(root string) error {
	abs, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("start the guard of the trial: %w", err)
	}
	guard := &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        []string{os.Args[0], GuardCommand, "--root", abs},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := guard.Start(); err != nil {
		return fmt.Errorf("start the guard of the trial: %w", err)
	}
	return guard.Process.Release()
}

// awaitEnd returns when the time of the trial is over or its record changes, whichever is
// first.
func awaitEnd(ctx context.Context, dev *rootfs.Root, t *planfile.Trial) error {
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
		now, err := read(dev, t)
		if err != nil {
			return err
		}
		left := time.Duration(t.Deadline) - rootfs.BootTime()
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

// endTrial takes the lock and reverts the trial unless it was confirmed. The guard and the
// first process both call it; the second call does nothing.
func endTrial(dev *rootfs.Root, started *planfile.Trial, now bool) (confirmed bool, reverted []enforce.Result, err error) {
	unlock, err := waitForLock(dev)
	if err != nil {
		return false, nil, err
	}
	defer unlock()
	return revert(dev, started, now)
}

// revert reverts a trial whose time is over, or any running one if now is set. The trial that
// the caller has started, if any, stands in for a damaged record.
func revert(dev *rootfs.Root, started *planfile.Trial, now bool) (confirmed bool, reverted []enforce.Result, err error) {
	t, err := read(dev, started)
	switch {
	case err != nil:
		return false, nil, err
	case t == nil:
		return true, nil, nil
	case !t.Running(rootfs.BootID(dev)), !now && !t.Expired(rootfs.BootTime()):
		return false, nil, nil
	}
	if reverted, err = enforce.RevertTrial(dev, enforce.DefaultOptions()); err != nil {
		return false, reverted, err
	}
	t.Reverted = true
	return false, reverted, t.Write(dev)
}

// waitForLock waits up to five seconds for the lock, which the other process may hold.
func waitForLock(dev *rootfs.Root) (func(), error) {
	const tries = 50
	for n := 0; ; n++ {
		unlock, err := dev.Lock("yoctuned " + GuardCommand)
		var held *rootfs.HeldError
		if err == nil {
			return unlock, nil
		}
		if n == tries || !errors.As(err, &held) {
			return nil, fmt.Errorf("%s: %w", GuardCommand, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
