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
	"github.com/yoctune/yoctune/internal/cli"
)

// newCheckLayerCommand returns `yoctune check-layer`.
func newCheckLayerCommand() *cobra.Command {
	var o checklayer.Options
	cmd := &cobra.Command{
		Use:   "check-layer LAYER --release R --machine M --bitbake DIR --oe-core DIR",
		Short: "Check a generated layer with your bitbake",
		Long: `Check a layer with the real bitbake, openembedded-core and meta-tegra, offline.
A layer for boards of your own needs no meta-tegra.

The quick mode takes about a minute. It masks every recipe except those that the layer
has or appends to, and replaces their dependencies by empty recipes. It then
  - parses the layer and checks that each .bbappend applies,
  - resolves dependencies,
  - compares final variables with the layer and its plan,
  - runs the tasks of the layer's recipes up to package_qa and checks what they install,
  - runs yocto-check-layer: a layer that is present but not enabled must not change the
    signature of any task.
With --full nothing is masked, which takes much longer.

Nothing is written to the layer or to the checkouts. bitbake refuses to run as root; when
started as root, it is run as --user.

Exit status: 0 all checks passed, 1 they could not be run, 3 a check failed.`,
		Example: `  yoctune check-layer build/meta-vision --release scarthgap \
    --machine jetson-orin-nano-devkit --bitbake ~/src/bitbake \
    --oe-core ~/src/openembedded-core --meta-tegra ~/src/meta-tegra`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Layer = args[0]
			return checkLayer(cmd, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Release, "release", "", "`R` release of the layer: a branch of meta-tegra such as scarthgap")
	f.StringVar(&o.Machine, "machine", "", "`M` machine to check, such as jetson-orin-nano-devkit")
	f.StringVar(&o.BitBake, "bitbake", "", "`DIR` checkout of bitbake")
	f.StringVar(&o.OECore, "oe-core", "", "`DIR` checkout of openembedded-core or poky")
	f.StringVar(&o.MetaTegra, "meta-tegra", "", "`DIR` checkout of meta-tegra; a layer for boards of your own needs none")
	f.StringArrayVar(&o.Extra, "extra-layer", nil, "`DIR` another layer that this one depends on; may be repeated")
	f.StringVar(&o.WorkDir, "workdir", "", "`DIR` for build folders and logs (default: temporary, kept when a check fails)")
	f.StringVar(&o.User, "user", "", "`ACCOUNT` that runs bitbake when started as root (default: nobody)")
	f.BoolVar(&o.Full, "full", false, "also parse and check with nothing masked")
	f.DurationVar(&o.Timeout, "timeout", 0, "`TIME` limit of one step (default: 15m, and 6h for the steps of --full)")
	f.IntVar(&o.Threads, "threads", 0, "`N` threads of bitbake (default: one per CPU)")
	for _, name := range []string{"release", "machine", "bitbake", "oe-core"} {
		cobra.CheckErr(cmd.MarkFlagRequired(name))
	}
	return cmd
}

func checkLayer(cmd *cobra.Command, o checklayer.Options) error {
	out, progress := cli.NewPrinter(cmd), cmd.ErrOrStderr()
	// bitbake's server would outlive this process: every signal that ends this process
	// must end the server too.
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	summary, err := checklayer.Run(ctx, o, checklayer.Observer{
		Started: func(name, subject string) {
			fmt.Fprintf(progress, "%s  %s …\n", time.Now().Format(time.TimeOnly), strings.TrimSpace(name+" "+subject))
		},
		Finished: func(s checklayer.Step) {
			if out.JSON {
				out.Line("step", s)
			} else {
				writeStep(out, s)
			}
		},
	})
	if err != nil {
		return err
	}
	if out.JSON {
		out.Line("summary", summary)
	} else {
		writeCheckSummary(out, summary)
	}
	return cli.Answer(summary.Failed == 0)
}

// writeStep prints one line per step, and below a failed one its errors.
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
