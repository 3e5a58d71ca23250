package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/terminal"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
)

func newPipelineTopCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top [NAME]",
		Short: "Show running pipelines",
		Long: `Show the pipelines that run on this machine, updated every second: frame rates, frames
done, dropped and failed, end-to-end latency, the queue, wait and work of each stage, the
degradation level, the counters of stages, and those of the kernel and the CPU for the
process: faults, context switches, interrupts, and cycles and cache misses where the
machine has such counters. Rates and quantiles are for the time since the last update.

A value that is not available is shown as "-" (null in JSON), never as 0. Pipelines
collect these values only while top runs.

On a terminal the screen is redrawn in place: q quits, p pauses. Otherwise top prints one
line per pipeline. With --format json each pipeline is one object per update,
{"type":"pipeline",…}: totals since its start, and "rates" since the last update.

Exit status: 0 done, 1 failed, or NAME is not running, 2 wrong usage.`,
		Example: `  yoctuned pipeline top
  yoctuned pipeline top door --once --format json | jq .rates`,
		RunE: onDevice(runTop),
	}
	cmd.Flags().Bool("once", false, "show one interval and exit")
	cmd.Flags().Duration("interval", time.Second, "`TIME` between updates, at least 100ms")
	return cmd
}

// topRun is one run of top.
type topRun struct {
	dirs     []string
	name     string // "": all
	interval time.Duration
	once     bool
	out      cli.Printer
	screen   *screen
	before   map[string]*live.Snapshot // by pipeline and process
}

func runTop(cmd *cobra.Command, dev *rootfs.Root, args []string) error {
	t := &topRun{dirs: liveDirs(dev), out: cli.NewPrinter(cmd), before: map[string]*live.Snapshot{}}
	if len(args) > 0 {
		t.name = args[0]
	}
	t.once, _ = cmd.Flags().GetBool("once")
	if t.interval, _ = cmd.Flags().GetDuration("interval"); t.interval < minInterval {
		return cli.UsageError(fmt.Errorf("--interval must be at least %v", minInterval))
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	defer stop()
	if !t.out.JSON && !t.once {
		var err error
		if t.screen, ctx, err = openScreen(ctx, cmd); err != nil {
			return err
		} else if t.screen != nil {
			defer t.screen.close()
		}
	}
	if err := t.run(ctx); err != nil {
		return err
	}
	return t.out.End("top", cli.ExitDone, nil)
}

func (t *topRun) run(ctx context.Context) error {
	tick := time.NewTicker(t.interval)
	defer tick.Stop()
	for n := 0; ; n++ {
		// Rates need two readings.
		rows, errs := t.read()
		if n > 0 || len(rows) == 0 {
			if err := t.show(rows, errs); err != nil {
				return err
			}
			if t.once {
				return nil
			}
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return nil
			case <-t.screen.resizes():
				if err := t.screen.redraw(); err != nil {
					return err
				}
			case <-tick.C:
				waiting = false
			}
		}
	}
}

// running is a pipeline and what it did since the last reading.
type running struct {
	*live.Snapshot
	Rates live.Rates `json:"rates"`
}

// read reads all pipelines.
func (t *topRun) read() (rows []running, errs []error) {
	seen := map[string]*live.Snapshot{}
	for _, dir := range t.dirs {
		list, failed := live.All(dir)
		errs = append(errs, failed...)
		for _, s := range list {
			if t.name != "" && s.Pipeline != t.name {
				continue
			}
			key := fmt.Sprint(s.PID, " ", s.Pipeline)
			seen[key] = s
			rows = append(rows, running{s, s.Since(t.before[key])})
		}
	}
	t.before = seen
	return rows, errs
}

func (t *topRun) show(rows []running, errs []error) error {
	if t.once && len(rows) == 0 {
		why := errors.New("no pipeline is running on this machine, or this user may not see it")
		if t.name != "" {
			why = fmt.Errorf("pipeline %q is not running on this machine, or this user may not see it", t.name)
		}
		return errors.Join(append([]error{why}, errs...)...)
	}
	switch v := (topView{rows: rows, errs: errs, interval: t.interval, now: time.Now()}); {
	case t.out.JSON:
		for _, err := range errs {
			t.out.Error(err)
		}
		for _, r := range rows {
			t.out.Encode(r)
		}
	case t.screen != nil:
		return t.screen.draw(v)
	case t.once:
		writeView(t.out, v)
	default:
		for _, r := range rows {
			t.out.Printf("%s %s\n", v.now.Format("15:04:05"), r.head())
		}
	}
	return t.out.Err()
}

// topView is one reading on a screen.
type topView struct {
	rows     []running
	errs     []error
	interval time.Duration
	now      time.Time
}

func (v topView) lines(width int, colour bool) []string {
	p := &page{width: width, colour: colour}
	what := fmt.Sprintf("%d pipelines running", len(v.rows))
	switch len(v.rows) {
	case 0:
		what = "no pipeline is running"
	case 1:
		what = "1 pipeline running"
	}
	p.row("", bold, fmt.Sprintf("%s  %s  every %v", what, v.now.Format("15:04:05"), v.interval))
	for _, r := range v.rows {
		r.lines(p)
	}
	for _, err := range v.errs {
		p.row("problem", red, err.Error())
	}
	return p.lines
}

// head sums up a pipeline in one line.
func (r running) head() string {
	fps := "-"
	if r.Rates.FPS != nil {
		fps = fmt.Sprintf("%.1f", *r.Rates.FPS)
	}
	text := fmt.Sprintf("%s  %s fps  p50 %s  p95 %s", r.Pipeline, fps, millis(r.Rates.P50), millis(r.Rates.P95))
	if r.Target != nil {
		text += " of " + millis(r.Target)
	}
	text += " ms"
	if r.Levels > 1 {
		text += fmt.Sprintf("  level %d of %d", r.Level, r.Levels-1)
	}
	return text
}

// topRow is a stage, or the head of the columns.
const topRow = "%-14s %6s %6s %9s %8s %9s %8s"

func (r running) lines(p *page) {
	style := green
	switch {
	case r.Target != nil && r.Rates.P95 != nil && *r.Rates.P95 > *r.Target || r.Rates.Frames.Failed > 0:
		style = red
	case r.Level > 0 || r.Rates.Frames.Dropped > 0:
		style = yellow
	}
	p.row("", "", "")
	p.row("", style, r.head()+fmt.Sprintf("  up %v", time.Duration(r.Up).Round(time.Second)))
	f := r.Frames
	p.row("frames", "", fmt.Sprintf("%d read  %d done  %d dropped  %d failed  %d in work", f.Read, f.Done, f.Dropped, f.Failed, r.InFlight))
	p.wrap("dropped", yellow, listCounts(r.Drops, r.Rates.Drops))
	p.wrap("failed", red, listCounts(r.Failures, nil))
	r.stages(p)
	p.wrap("process", "", r.process())
	p.wrap("", "", r.interrupts())
	switch {
	case r.Throttled == nil:
		p.row("slowed", "", "-")
	case len(r.Throttled) == 0:
		p.row("slowed", "", "nothing")
	default:
		p.wrap("slowed", red, r.Throttled)
	}
	var own []string
	for _, n := range r.Numbers {
		value := "-"
		if n.Value != nil {
			value = decimal(*n.Value)
		}
		own = append(own, n.Stage+"."+n.Name+" "+value)
	}
	p.wrap("own", "", own)
	for _, e := range r.Events[max(len(r.Events)-3, 0):] {
		ago := time.Duration(r.At - e.At).Round(time.Second)
		p.row(e.Kind, yellow, fmt.Sprintf("%s, %v ago", e.Why, ago))
	}
}

// stages adds a row for each stage.
func (r running) stages(p *page) {
	p.row("", dim, fmt.Sprintf(topRow, "stage", "queue", "busy", "wait p50", "p95", "work p50", "p95 ms"))
	for i, st := range r.Stages {
		queue, busy, now := "-", "-", r.Rates.Stages[i]
		if st.Queue != nil {
			queue = fmt.Sprintf("%d/%d", st.Queue.Depth, st.Queue.Capacity)
		}
		style := ""
		if now.Busy != nil {
			busy = fmt.Sprintf("%.0f %%", 100**now.Busy)
			style = loadColour(new(int64(1000 * *now.Busy / float64(max(st.Instances, 1)))))
		}
		name := st.ID
		if st.Instances > 1 {
			name += fmt.Sprintf(" x%d", st.Instances)
		}
		p.row("", style, fmt.Sprintf(topRow, terminal.Truncate(name, 14, ""), queue, busy,
			millis(now.WaitP50), millis(now.WaitP95), millis(now.ServiceP50), millis(now.ServiceP95)))
	}
}

// listCounts lists counts by name, and how many came since the last reading.
func listCounts(all, fresh map[string]uint64) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		text := fmt.Sprintf("%s %d", k, all[k])
		if n := fresh[k]; n > 0 {
			text += fmt.Sprintf(" (+%d)", n)
		}
		out = append(out, text)
	}
	return out
}

// process lists the counters of the process, per second.
func (r running) process() []string {
	c, s := r.Rates.Counts, r.Rates.Seconds
	cpu := "-"
	if c.CPU != nil && s > 0 {
		cpu = fmt.Sprintf("%.0f %%", float64(*c.CPU)/1e7/s)
	}
	out := []string{"cpu " + cpu}
	for _, n := range []struct {
		name string
		v    *int64
	}{
		{"faults", c.MinorFaults}, {"major", c.MajorFaults}, {"switches", c.Switches}, {"preempted", c.Preemptions}, {"migrations", c.Migrations},
		{"cycles", c.Cycles}, {"instructions", c.Instructions}, {"cache misses", c.CacheMisses}, {"branch misses", c.BranchMisses},
	} {
		text := "-"
		if n.v != nil && s > 0 {
			text = shortNumber(float64(*n.v)/s) + "/s"
		}
		out = append(out, n.name+" "+text)
	}
	return out
}

func (r running) interrupts() []string {
	list := r.Rates.Counts.Interrupts
	if len(list) == 0 || r.Rates.Seconds <= 0 {
		return []string{"interrupts -"}
	}
	out := []string{"interrupts"}
	for i, n := range list {
		out = append(out, fmt.Sprintf("#%d %s/s", i, shortNumber(float64(n)/r.Rates.Seconds)))
	}
	return out
}

// shortNumber shortens a large number.
func shortNumber(v float64) string {
	switch {
	case v >= 1e9:
		return fmt.Sprintf("%.2f G", v/1e9)
	case v >= 1e6:
		return fmt.Sprintf("%.1f M", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.0f k", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}

// millis formats nanoseconds as milliseconds, "-" where they are unknown.
func millis(ns *int64) string {
	if ns == nil {
		return "-"
	}
	return formatMilliseconds(*ns)
}

// liveDirs are the folders with the sockets of pipelines: those of services, and those
// of this user.
func liveDirs(dev *rootfs.Root) []string {
	dirs := []string{filepath.Join(dev.Dir(), pipelines.Dir)}
	if own := os.Getenv("XDG_RUNTIME_DIR"); dev.Running() && own != "" {
		dirs = append(dirs, filepath.Join(own, filepath.Base(pipelines.Dir)))
	}
	return dirs
}

// liveSocket is the socket of a pipeline in this process.
func liveSocket(dev *rootfs.Root, name string) string {
	if own := os.Getenv("RUNTIME_DIRECTORY"); dev.Running() && own != "" && !strings.Contains(own, ":") { // systemd
		return filepath.Join(own, pipelines.Socket)
	}
	dirs := liveDirs(dev)
	if dev.Running() && os.Geteuid() != 0 {
		return pipelines.Path(dirs[len(dirs)-1], name)
	}
	return pipelines.Path(dirs[0], name)
}
