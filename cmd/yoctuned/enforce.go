package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/notify"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/trial"
	"github.com/yoctune/yoctune/runtime/device/watch"
)

// memoryLimit is the heap size in bytes at which Go collects garbage. There is no other
// trigger: the collector's two-minute timer would wake an idle process.
const memoryLimit = 8 << 20

func newEnforceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "enforce [PLAN]",
		Short: "Apply the plan and repair later changes",
		Long: `Apply the plan and keep running. When another process changes a setting, enforce restores
it within milliseconds and logs which process changed it. When a device appears, its
settings are written. Every few minutes all settings are checked, because the kernel can
change some without a notification.

The policy of a setting decides what happens: "enforce" is repaired, "once" is written
once and then only reported, "report" is never written. A node that is changed a fourth
time within a minute is contested: enforce raises an alarm that names the process, and
leaves the node alone until it has the wanted value or was unchanged for ten minutes. A
frequency that thermal throttling holds down is not contested.

A plan counts as proven after one minute in force: from then on plans with a lower serial
are refused. A plan that was started at three boots without being proven may be what ends
them. It is not used again until it is applied by hand.

SIGTERM ends enforce. The settings stay, unless the plan has rollback: on-stop. Under
systemd, enforce reports readiness and status, and serves the watchdog.

Exit status: 0 ended by a signal, 1 bad plan, wrong board, another yoctuned is changing
the device, or the original values cannot be saved, 2 wrong usage, 3 ended, and some
settings could not be restored.`,
		Example: `  yoctuned enforce
  yoctuned enforce plan.json --format json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			// A crash, or systemd's watchdog, must end the process by a signal: Go would
			// exit with 2, which the unit takes as a reason not to restart.
			debug.SetTraceback("crash")
			debug.SetGCPercent(-1)
			debug.SetMemoryLimit(memoryLimit)
			if slices.Contains(args, "-") {
				return cli.UsageError(errors.New("enforce needs the plan in a file, because other commands read it too"))
			}
			dev, file, err := openPlan(cmd, args)
			if err != nil {
				return err
			}
			unlock, err := lock(dev, strings.TrimSpace("enforce "+strings.Join(args, " ")))
			if err != nil {
				return err
			}
			defer unlock()
			if err := planfile.CheckSerial(dev, file.Plan); err != nil {
				return err
			}
			if err := trial.Check(dev, file.Plan); err != nil {
				return err
			}
			log := &enforceLog{p: cli.NewPrinter(cmd), file: file}
			boot := rootfs.BootID(dev)
			if err := planfile.BeginBoot(dev, boot, file.Plan); errors.Is(err, planfile.ErrUnproven) {
				return err
			} else if err != nil {
				// An untuned device is worse than a boot that is not counted.
				log.Problem(err)
			}
			systemd, err := notify.Connect(os.Getenv, os.Getpid())
			if err != nil {
				return err
			}
			defer systemd.Close()
			ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGTERM, unix.SIGINT)
			defer stop()
			settings := watch.Settings{Root: dev, File: file, Enforce: enforce.DefaultOptions(), Systemd: systemd, Report: log, Rest: rest}
			if !planfile.IsProven(dev, file.Plan) {
				settings.ProveAfter, settings.Prove = planfile.ProveAfter, func() error { return planfile.ProveBoot(dev, file.Plan) }
			}
			if err = watch.Run(ctx, settings); err != nil {
				return err
			}
			if err := planfile.EndBoot(dev, boot, file.Plan); err != nil {
				log.Problem(err)
			}
			return log.p.End("enforce", cli.ExitCode(!log.failed), nil)
		},
	}
	planFlags(cmd)
	return cmd
}

// rest reduces what an event costs once the plan is in force: events are handled one after the
// other, and a second processor would only be woken to find no work.
func rest() {
	runtime.GOMAXPROCS(1)
	// While anything runs, a thread of Go's runtime sleeps 20 µs and looks, again and again. With
	// this slack its timer ends with the next event instead. Nothing else needs exact timers. The kernel
	// refuses it without CAP_SYS_NICE, which costs only wake-ups.
	const slack = "10000000" // ns
	threads, _ := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		_ = os.WriteFile("/proc/"+t.Name()+"/timerslack_ns", []byte(slack), 0)
	}
}

// enforceLog writes one line for each event.
type enforceLog struct {
	p      cli.Printer
	file   *planfile.File
	failed bool // something could not be rolled back
}

// line writes one line: v in JSON, or the text.
func (l *enforceLog) line(v any, format string, args ...any) {
	if l.p.JSON {
		l.p.Encode(v)
	} else {
		l.p.Printf("%s\n", fmt.Sprintf(format, args...))
	}
}

func (l *enforceLog) Applied(results []enforce.Result) {
	r := report{"applied", results, l.file.Origins, true, nil}
	if l.p.JSON {
		r.settings(l.p)
		l.p.Encode(cli.Summary{Type: "applied", Command: "enforce", Outcomes: r.counts(), Exit: r.exit()})
		return
	}
	// Results with one cause share a line: a read-only /sys must not fill the log.
	reported := map[string]bool{}
	for _, res := range results {
		if res.Satisfied() {
			continue
		}
		cause := r.cause(res)
		if n := r.countSharing(res); n > 1 {
			if !reported[cause] {
				l.line(nil, "%s: %s, and %d more settings: %s", res.Outcome, res.Label(), n-1, cause)
			}
			reported[cause] = true
			continue
		}
		l.line(nil, "%s: %s", res.Outcome, describe(res, r.origin(res.ID)))
	}
	l.line(nil, "%s", r.summary())
}

// describe is the message of a result and its line of the configuration.
func describe(res enforce.Result, origin *string) string {
	text := res.Message
	if text == "" {
		text = res.Label()
	}
	if origin != nil {
		text += " (set at " + *origin + ")"
	}
	return text
}

func (l *enforceLog) Watching(sources []watch.Source, nodes int, sweep time.Duration) {
	l.line(struct {
		Type    string         `json:"type"`
		Nodes   int            `json:"nodes"`
		Sources []watch.Source `json:"sources"`
		Sweep   int64          `json:"sweep_s"`
	}{"watching", nodes, sources, int64(sweep / time.Second)}, "watching %d nodes; all are checked every %s", nodes, sweep)
	for _, s := range sources {
		if !s.Delivered && !l.p.JSON {
			l.line(nil, "no events from %s: %s", s.Name, s.Why)
		}
	}
}

func (l *enforceLog) Event(e watch.Event) {
	name := outcome.Name(e.Path)
	switch {
	case e.Type == watch.Contest:
		l.line(e, "ALARM: %s", e.Message)
	case e.Type == watch.Returned, e.Type == watch.Overdue:
		l.line(e, "%s", e.Message)
	case e.Type == watch.Switched:
		l.line(e, "power mode %s, was %s: %s", e.Wanted, e.Found, e.Message)
	case e.Type == watch.Regained:
		l.line(e, "%s: no longer contested: %s", name, e.Message)
	case e.Repair > 0 && e.Type == watch.Reapplied:
		l.line(e, "%s: %s, was %s after %s", name, e.Wanted, e.Found, e.Message)
	case e.Repair > 0 && e.Outcome == outcome.OK:
		l.line(e, "%s: set to %s by %s; restored to %s after %.1f ms", name, e.Found, processName(e.By), e.Wanted, float64(e.Repair)/1000)
	default:
		l.line(e, "%s: set to %s by %s; %s", name, e.Found, processName(e.By), e.Message)
	}
}

func (l *enforceLog) Leased(action string, lease watch.Lease) {
	l.line(struct {
		Type   string `json:"type"`
		Action string `json:"action"`
		watch.Lease
	}{"lease", action, lease}, "lease %d of %s, user %d: %s", lease.ID, lease.Holder, lease.UID, action)
}

func (l *enforceLog) Restored(what string, results []enforce.Result) {
	r := report{"rollback of the " + what, results, nil, true, nil}
	if what == "plan" && r.exit() != cli.ExitDone {
		l.failed = true
	}
	for _, res := range results {
		if !res.Satisfied() {
			l.error("not restored", errors.New(describe(res, nil)))
		}
	}
	l.line(cli.Summary{Type: "restored", Command: what, Outcomes: r.counts(), Exit: r.exit()}, "%s", r.summary())
}

func (l *enforceLog) Problem(err error) { l.error("problem", err) }

func (l *enforceLog) error(what string, err error) {
	if l.p.JSON {
		l.p.Error(err)
	} else {
		l.p.Printf("%s: %v\n", what, err)
	}
}

var _ watch.Reporter = (*enforceLog)(nil)
