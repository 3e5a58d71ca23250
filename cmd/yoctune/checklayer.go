package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/compiler/layer/checklayer"
)

// newCheckLayerCommand returns `yoctune check-layer`.
func newCheckLayerCommand() *cobra.Command {
	var o checklayer.Options
	cmd := &cobra.Command{
		Use:   "check-layer LAYER --release R --machine M --bitbake DIR --oe-core DIR --meta-tegra DIR",
		Short: "Run your bitbake over a generated layer",
		Long: `Check a layer with the real bitbake, openembedded-core and meta-tegra, offline.

The quick mode, about a minute, masks every recipe but those the layer has or
appends to and puts empty stand-ins in place of what they depend on. It parses,
looks whether each .bbappend attaches, resolves dependencies, compares final
variables with what the layer and its plan promise, really runs the tasks of the
layer's recipes up to package_qa and looks at what they install, and ends with
yocto-check-layer: a layer that is present but not switched on must change no
task's signature. --full does so with nothing masked, which takes much longer.

Nothing is written to the layer or the checkouts. bitbake refuses root: as root
it is run as --user.

Exit status: 0 all passed, 1 the check could not be run, 3 a check failed.`,
		Example: `  yoctune check-layer build/meta-vision --release scarthgap \
    --machine jetson-orin-nano-devkit --bitbake ~/src/bitbake \
    --oe-core ~/src/openembedded-core --meta-tegra ~/src/meta-tegra`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Layer = args[0]
			return runCheckLayer(cmd, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Release, "release", "", "`RELEASE` the layer is for: a branch of meta-tegra, e.g. scarthgap")
	f.StringVar(&o.Machine, "machine", "", "`MACHINE` to check for, e.g. jetson-orin-nano-devkit")
	f.StringVar(&o.BitBake, "bitbake", "", "`DIR` with a checkout of bitbake")
	f.StringVar(&o.OECore, "oe-core", "", "`DIR` with a checkout of openembedded-core or poky")
	f.StringVar(&o.MetaTegra, "meta-tegra", "", "`DIR` with a checkout of meta-tegra")
	f.StringArrayVar(&o.Extra, "extra-layer", nil, "`DIR` of a further layer that this one depends on (may be repeated)")
	f.StringVar(&o.WorkDir, "workdir", "", "`DIR` to keep build folders and logs in (default: temporary, kept when a check fails)")
	f.StringVar(&o.User, "user", "", "`ACCOUNT` to run bitbake as when root (default: nobody)")
	f.BoolVar(&o.Full, "full", false, "also parse and check with nothing masked")
	f.DurationVar(&o.Timeout, "timeout", 0, "`TIME` that one step may take (default: 15m, 6h for the steps of --full)")
	f.IntVar(&o.Threads, "threads", 0, "`N` threads of bitbake (default: one per CPU)")
	return cmd
}

func runCheckLayer(cmd *cobra.Command, o checklayer.Options) error {
	format, err := formatOf(cmd)
	if err != nil {
		return err
	}
	for _, flag := range []string{"release", "machine", "bitbake", "oe-core", "meta-tegra"} {
		if !cmd.Flags().Changed(flag) {
			return usageError{fmt.Errorf("--%s is needed: %s", flag, cmd.Flags().Lookup(flag).Usage)}
		}
	}
	out, progress := cmd.OutOrStdout(), cmd.ErrOrStderr()
	finished := func(s checklayer.Step) { writeStep(out, s) }
	if format == "json" {
		finished = func(s checklayer.Step) {
			writeJSONLine(out, struct {
				Type string `json:"type"`
				checklayer.Step
			}{"step", s})
		}
	}
	// bitbake's server would outlive us: every way of being told to stop must
	// reach it.
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	summary, err := checklayer.Run(ctx, o, checklayer.Observer{
		Started: func(name, subject string) {
			fmt.Fprintf(progress, "%s  %s …\n", time.Now().Format(time.TimeOnly), strings.TrimSpace(name+" "+subject))
		},
		Finished: finished,
	})
	if err != nil {
		return err
	}
	if format == "json" {
		writeJSONLine(out, struct {
			Type string `json:"type"`
			checklayer.Summary
		}{"summary", summary})
	} else {
		writeCheckSummary(out, summary)
	}
	if summary.Failed > 0 {
		return errCheckFailed
	}
	return nil
}

// writeStep prints one line per step, and under it what a reader needs: the
// errors of a failed one.
func writeStep(w io.Writer, s checklayer.Step) {
	fmt.Fprintf(w, "%-7s %7.1fs  %s", s.Status, s.Seconds, strings.TrimSpace(s.Name+" "+s.Subject))
	switch {
	case s.Reason != "":
		fmt.Fprintf(w, "  (%s)", s.Reason)
	case s.Status == checklayer.Pass && len(s.Notes) > 0:
		fmt.Fprintf(w, "  (%s)", shortNote(s.Notes))
	}
	fmt.Fprintln(w)
	if s.Status != checklayer.Fail {
		return
	}
	for _, e := range s.Errors {
		fmt.Fprintf(w, "          %s\n", e)
	}
	if s.Log != "" {
		fmt.Fprintf(w, "          log: %s\n", s.Log)
	}
}

// shortNote keeps a passed step on one line; --format json has all notes.
func shortNote(notes []string) string {
	if len(notes) == 1 {
		return notes[0]
	}
	return fmt.Sprintf("%s, and %d more", notes[0], len(notes)-1)
}

func writeCheckSummary(w io.Writer, s checklayer.Summary) {
	fmt.Fprintf(w, "\n%s on %s, %s, bitbake %s, %s mode: %d passed, %d failed, %d skipped in %.0f s\n",
		s.Layer, s.Release, s.Machine, s.BitBake, s.Mode, s.Passed, s.Failed, s.Skipped, s.Seconds)
	if s.WorkDir != "" {
		fmt.Fprintf(w, "build folders and logs: %s\n", s.WorkDir)
	}
}
