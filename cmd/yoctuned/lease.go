package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/lease"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

func newLeaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lease --high-performance -- COMMAND [ARG...]",
		Short: "Run a command at the highest allowed performance",
		Long: `Acquire a lease from the running "yoctuned enforce", run COMMAND, and release the lease
when COMMAND ends or when lease itself is killed. While a lease is held, the CPU
frequency policies run at the highest frequency that the plan, the power mode and
thermal limits allow. The power mode does not change.

A lease expires --ttl after its last renewal. This command renews it, so only a holder
that hangs loses it. Root and the members of the group yoctune may acquire leases.

Exit status: that of COMMAND, 1 the lease was refused and COMMAND did not run, 2 wrong
usage.`,
		Example: `  yoctuned lease --high-performance -- make -j8
  yoctuned lease --high-performance --ttl 30s -- ./batch`,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, args []string) error {
			high, _ := cmd.Flags().GetBool("high-performance")
			ttl, _ := cmd.Flags().GetDuration("ttl")
			if !high {
				return cli.UsageError(errors.New("--high-performance is required: it is the only kind of lease"))
			}
			if ttl < lease.MinTTL || ttl > lease.MaxTTL {
				return cli.UsageError(fmt.Errorf("--ttl %v: choose a time from %v to %v", ttl, lease.MinTTL, lease.MaxTTL))
			}
			client, err := api.Dial(path.Join(dev.Dir(), api.Socket))
			switch {
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
				return fmt.Errorf("%w: 'yoctuned enforce' grants leases, and is not running", err)
			case err != nil:
				return err
			}
			defer func() { _ = client.Close() }()
			granted, err := client.Acquire(lease.Profile, ttl)
			if err != nil {
				return err
			}
			if !isQuiet(cmd) {
				// Standard output is the command's.
				for _, s := range granted.Settings {
					if s.Outcome != string(outcome.OK) {
						cli.Warn(cmd, "%s: %s", s.Outcome, s.Message)
					}
				}
				for _, n := range granted.Notes {
					cli.Warn(cmd, "%s", n)
				}
			}
			// A yoctuned that hangs delays neither signals nor the end of the command.
			defer client.KeepRenewed(granted, func(err error) { cli.Warn(cmd, "the lease is lost, the command continues: %v", err) })()
			return runCommand(cmd, args)
		}),
	}
	cmd.Flags().Bool("high-performance", false, "lease the highest allowed CPU frequencies")
	cmd.Flags().Duration("ttl", lease.Default, "`TIME` after which a holder that hangs loses the lease")
	cmd.Flags().BoolP("quiet", "q", false, "do not warn about settings that the lease does not change")
	return cmd
}

// runCommand runs a command, and passes signals on to it.
func runCommand(cmd *cobra.Command, args []string) error {
	child := exec.Command(args[0], args[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr()
	for _, w := range []*io.Writer{&child.Stdout, &child.Stderr} {
		if f := cli.File(*w); f != nil {
			*w = f // it may be a terminal
		}
	}
	// The command must not outlive the lease by accident.
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGTERM}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		return fmt.Errorf("run %s: %w", strings.Join(args, " "), err)
	}
	done := make(chan error, 1)
	go func() { done <- child.Wait() }()
	for {
		select {
		case err := <-done:
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return cli.Exit(codeOf(exit))
			}
			return err
		case s := <-signals:
			// A terminal also sends these to the command; receiving them twice is harmless.
			_ = child.Process.Signal(s)
		}
	}
}

// codeOf returns the exit code as shells do: 128 and the signal's number for a killed
// command.
func codeOf(e *exec.ExitError) int {
	if ws, ok := e.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return e.ExitCode()
}
