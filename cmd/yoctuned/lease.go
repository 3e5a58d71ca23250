package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/lease"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

func newLeaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lease --high-performance -- COMMAND [ARG...]",
		Short: "Run a command with more performance than the plan gives",
		Long: `lease asks the running 'yoctuned enforce' for performance, runs COMMAND, and gives
the performance back when COMMAND ends, or when lease itself is killed. While any
lease is in force the CPU frequency policies run at the highest frequency that
the plan, the power mode and heat allow. The power mode is left as it is.

A lease ends --ttl after its last renewal; lease renews it, so only a holder that
hangs loses it. Root and the members of group yoctune may have leases.

Exit code: that of COMMAND; 1 when the lease was refused and COMMAND not run.`,
		Example: `  yoctuned lease --high-performance -- make -j8
  yoctuned lease --high-performance --ttl 30s -- ./batch`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			high, _ := cmd.Flags().GetBool("high-performance")
			ttl, _ := cmd.Flags().GetDuration("ttl")
			if !high {
				return usage(errors.New("say what for: --high-performance"))
			}
			if ttl < lease.MinTTL || ttl > lease.MaxTTL {
				return usage(fmt.Errorf("--ttl is %v to %v, not %v", lease.MinTTL, lease.MaxTTL, ttl))
			}
			dev, err := rootfs.Open(globalFlags(cmd).Root)
			if err != nil {
				return err
			}
			client, err := api.Dial(path.Join(dev.Dir(), api.Socket))
			switch {
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
				return fmt.Errorf("%w: leases are given by 'yoctuned enforce', which is not running", err)
			case err != nil:
				return err
			}
			defer func() { _ = client.Close() }()
			granted, err := client.Acquire(lease.Profile, ttl)
			if err != nil {
				return err
			}
			quiet, _ := cmd.Flags().GetBool("quiet")
			if !quiet {
				// Standard output is the command's.
				for _, s := range granted.Settings {
					if s.Outcome != string(outcome.OK) {
						cmd.PrintErrln("yoctuned: " + printable(s.Outcome+": "+s.Message))
					}
				}
				for _, n := range granted.Notes {
					cmd.PrintErrln("yoctuned: " + printable(n))
				}
			}
			return runLeased(cmd, client, time.Duration(granted.TTL)*time.Millisecond, args)
		},
	}
	cmd.Flags().Bool("high-performance", false, "the highest CPU frequencies that are allowed")
	cmd.Flags().Duration("ttl", lease.Default, "`TIME` after which a holder that hangs loses the lease")
	cmd.Flags().BoolP("quiet", "q", false, "do not say what the lease does not do")
	return cmd
}

// runLeased runs the command and renews the lease until it ends.
func runLeased(cmd *cobra.Command, client *api.Client, ttl time.Duration, args []string) error {
	child := exec.Command(args[0], args[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr()
	// The command must not outlive the lease's holder by accident.
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGTERM}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		return fmt.Errorf("run %s: %w", strings.Join(args, " "), err)
	}
	done := make(chan error, 1)
	go func() { done <- child.Wait() }()
	renew := time.NewTicker(ttl / 3)
	defer renew.Stop()
	lost := make(chan error, 1)
	go func() { // a yoctuned that hangs must not keep the command's end or a signal waiting
		for range renew.C {
			if _, err := client.Renew(); err != nil {
				lost <- err
				return
			}
		}
	}()
	for {
		select {
		case err := <-done:
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return &exitError{Code: codeOf(exit)}
			}
			return err
		case s := <-signals:
			// A terminal sends these to the command too; twice does no harm.
			_ = child.Process.Signal(s)
		case err := <-lost:
			cmd.PrintErrln("yoctuned: the lease is lost, the command goes on: " + printable(err.Error()))
		}
	}
}

// codeOf is the shell's: 128 and the signal's number for a killed command.
func codeOf(e *exec.ExitError) int {
	if ws, ok := e.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return e.ExitCode()
}
