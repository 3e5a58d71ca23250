package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/notify"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
)

// memoryLimit is what Go may take before it collects garbage, in bytes. There is
// no other trigger: the collector's two-minute timer would wake an idle process.
const memoryLimit = 8 << 20

func newEnforceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "enforce [PLAN]",
		Short: "Apply the plan and keep it true",
		Long: `enforce applies the plan and stays. When somebody changes a setting it is put
back within milliseconds, and who did it is logged; when a device appears it is
given its settings; and every few minutes everything is looked at, for what the
kernel changes without telling.

A setting's policy decides: "enforce" is repaired, "once" was written and is only
reported from then on, "report" is never written. A node that is changed a fourth
time in a minute is contested: it is left alone, with an alarm that names who
insists, until it is found as wanted or was quiet for ten minutes. A frequency
that heat holds down is not fought.

A plan is proven when it has been in force for a minute: from then on plans with
a lower serial are refused. One that was put into force at three boots and never
got there is not used again, as it may be what ends them, until it is applied by
hand.

It ends with SIGTERM. The settings stay, unless the plan says rollback: on-stop.
Run by systemd it reports that it is ready, how it is doing, and that it lives.

Exit codes: 0 ended by a signal · 1 bad plan, wrong board, somebody else is
changing the device, or the originals cannot be journalled · 2 usage · 3 ended,
and some settings could not be rolled back.`,
		Example: `  yoctuned enforce
  yoctuned enforce plan.json --format json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			// Ended by systemd's watchdog, or by a fault of its own, it must be killed
			// by a signal: Go would exit with 2, which says that a start is no use.
			debug.SetTraceback("crash")
			debug.SetGCPercent(-1)
			debug.SetMemoryLimit(memoryLimit)
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
			if err := refuseTried(dev, file.Plan); err != nil {
				return err
			}
			log := &enforceLog{w: cmd.OutOrStdout(), json: globalFlags(cmd).Format == "json", file: file}
			boot := rootfs.Identify(dev).BootID
			if err := planfile.BeginBoot(dev, boot, file.Plan); errors.Is(err, planfile.ErrUnproven) {
				return err
			} else if err != nil {
				// Not to be tuned at all is worse than not to be counted.
				log.Problem(err)
			}
			systemd, err := notify.Connect(os.Getenv, os.Getpid())
			if err != nil {
				return err
			}
			defer systemd.Close()
			ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGTERM, unix.SIGINT)
			defer stop()
			err = watch.Run(ctx, watch.Settings{
				Root: dev, File: file, Enforce: enforce.DefaultOptions(), Systemd: systemd, Report: log,
				ProveAfter: planfile.ProveAfter, Prove: func() error { return planfile.ProveBoot(dev, file.Plan) },
			})
			if err != nil {
				return err
			}
			if err := planfile.EndBoot(dev, boot, file.Plan); err != nil {
				log.Problem(err)
			}
			return log.end()
		},
	}
	cmd.Flags().String("origins", "", "`FILE` that maps settings to lines of the configuration; default: beside the plan")
	cmd.Flags().Bool("any-board", false, "obey a plan that was made for another board or L4T, or on a machine that does not say what it is")
	return cmd
}

// enforceLog writes one line for each thing that happens.
type enforceLog struct {
	w      io.Writer
	json   bool
	file   *planfile.File
	failed bool // something could not be rolled back
}

// line writes one line at once: nobody waits for a buffer to fill.
func (l *enforceLog) line(v any, format string, args ...any) {
	if l.json {
		if b, err := json.Marshal(v); err == nil {
			_, _ = l.w.Write(append(b, '\n')) // a log that cannot be written has nowhere to say so
		}
		return
	}
	_, _ = io.WriteString(l.w, printable(fmt.Sprintf(format, args...))+"\n")
}

func (l *enforceLog) Applied(results []enforce.Result) {
	r := report{"applied", results, l.file.Origins, true}
	if l.json {
		// The caller's buffer is the kernel's pipe; errors are as above.
		enc := lines(l.w)
		for _, s := range r.settings() {
			_ = enc.Encode(s)
		}
		_ = enc.Encode(summaryLine{Type: "applied", Command: "enforce", Outcomes: r.counts(), Exit: r.exit()})
		return
	}
	// What has one cause is one line: a read-only /sys must not fill the log.
	said := map[string]bool{}
	for _, res := range results {
		if res.Satisfied() {
			continue
		}
		cause := r.cause(res)
		if n := r.sharing(res); n > 1 {
			if !said[cause] {
				l.line(nil, "%s: %s, and %d more settings: %s", res.Outcome, label(res), n-1, cause)
			}
			said[cause] = true
			continue
		}
		l.line(nil, "%s: %s", res.Outcome, describe(res, r.origin(res.ID)))
	}
	l.line(nil, "%s", r.summary())
}

// describe is a result's message and where it was asked for.
func describe(res enforce.Result, origin *string) string {
	text := res.Message
	if text == "" {
		text = label(res)
	}
	if origin != nil {
		text += " (asked for at " + *origin + ")"
	}
	return text
}

func (l *enforceLog) Watching(sources []watch.Source, nodes int, sweep time.Duration) {
	l.line(struct {
		Type    string         `json:"type"`
		Nodes   int            `json:"nodes"`
		Sources []watch.Source `json:"sources"`
		Sweep   int64          `json:"sweep_s"`
	}{"watching", nodes, sources, int64(sweep / time.Second)}, "watching %d nodes; all are looked at every %s", nodes, sweep)
	if l.json {
		return
	}
	for _, s := range sources {
		if !s.Delivered {
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
		l.line(e, "%s: set to %s by %s; %s again after %.1f ms", name, e.Found, who(e.By), e.Wanted, float64(e.Repair)/1000)
	default:
		l.line(e, "%s: set to %s by %s; %s", name, e.Found, who(e.By), e.Message)
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
	r := report{"rollback of the " + what, results, nil, true}
	if what == "plan" && r.exit() != exitYes {
		l.failed = true
	}
	for _, res := range results {
		if !res.Satisfied() {
			l.line(errorLine{"error", describe(res, nil)}, "not put back: %s", describe(res, nil))
		}
	}
	l.line(summaryLine{Type: "restored", Command: what, Outcomes: r.counts(), Exit: r.exit()}, "%s", r.summary())
}

func (l *enforceLog) Problem(err error) { l.line(errorLine{"error", err.Error()}, "problem: %v", err) }

func (l *enforceLog) end() error {
	exit := exitYes
	if l.failed {
		exit = exitNo
	}
	if l.json {
		l.line(summaryLine{Type: "summary", Command: "enforce", Exit: exit}, "")
	}
	if l.failed {
		return answerNo()
	}
	return nil
}

var _ watch.Reporter = (*enforceLog)(nil)
