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

An objective of the plan (slo) that was missed since the last update is marked MISSED.

top waits for a pipeline that is not running, and prints on which socket; --once does not
wait, and --timeout limits the wait.

On a terminal the screen is redrawn in place: ? shows the keys, q quits. Otherwise top
prints one line per pipeline. With --format json each pipeline is one object per update,
{"type":"pipeline",…}: totals since its start, "rates" since the last update, and "missed".

Exit status: 0 done, 1 failed, or no pipeline was running in time, 2 wrong usage.`,
		Example: `  yoctuned pipeline top
  yoctuned pipeline top door --once --format json | jq .rates`,
		RunE:              onDevice(runTop),
		ValidArgsFunction: completeFrom(0, 1, pipelinesOf),
	}
	cmd.Flags().Bool("once", false, "show one interval and exit")
	cmd.Flags().Duration("interval", time.Second, "`TIME` between updates, at least 100ms")
	cmd.Flags().Duration("timeout", 0, "`TIME` to wait for a pipeline that is not running (default: no limit; with --once: 0)")
	return cmd
}

// topRun is one run of top.
type topRun struct {
	dirs     []string
	name     string // "": all
	interval time.Duration
	timeout  time.Duration // 0: no limit
	once     bool
	waiting  bool // that it waits was printed
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
	if t.timeout, _ = cmd.Flags().GetDuration("timeout"); t.timeout < 0 {
		return cli.UsageError(errors.New("--timeout must not be negative"))
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
	began, were := time.Now(), false
	for {
		// Rates need two readings.
		rows, errs := t.read()
		switch {
		case len(rows) == 0:
			if (t.once || !were) && t.isLate(began) {
				return errors.Join(append([]error{t.notRunning()}, errs...)...)
			}
			if err := t.wait(errs); err != nil {
				return err
			}
		case were:
			if err := t.show(rows, errs); err != nil {
				return err
			}
			if t.once {
				return nil
			}
		}
		were = were || len(rows) > 0
		if err := t.pause(ctx, tick.C); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// isLate reports whether the wait for a pipeline is over.
func (t *topRun) isLate(began time.Time) bool {
	if t.timeout == 0 {
		return t.once
	}
	return time.Since(began) >= t.timeout
}

// pause handles keys until the next update.
func (t *topRun) pause(ctx context.Context, tick <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case key := <-t.screen.pending():
			if err := t.screen.handle(key); err != nil {
				return err
			}
		case <-tick:
			return nil
		}
	}
}

// sockets are the places where a pipeline is expected.
func (t *topRun) sockets() string {
	name := "NAME"
	if t.name != "" {
		name = pipelines.FileName(t.name)
	}
	paths := make([]string, len(t.dirs))
	for i, dir := range t.dirs {
		paths[i] = filepath.Join(dir, name, pipelines.Socket)
	}
	return strings.Join(paths, " or ")
}

func (t *topRun) notRunning() error {
	if t.name == "" {
		return fmt.Errorf("no pipeline is running on this machine, or this user may not see it: nobody listens on %s", t.sockets())
	}
	return notRunning(t.name, t.sockets())
}

func notRunning(name, sockets string) error {
	return fmt.Errorf("pipeline %q is not running on this machine, or this user may not see it: nobody listens on %s", name, sockets)
}

// wait shows that no pipeline is running: once, or on the screen.
func (t *topRun) wait(errs []error) error {
	text := "waiting for a pipeline: nobody listens on " + t.sockets()
	if t.name != "" {
		text = fmt.Sprintf("waiting for pipeline %q: nobody listens on %s", t.name, t.sockets())
	}
	switch {
	case t.screen != nil:
		return t.screen.draw(topView{errs: errs, interval: t.interval, now: time.Now(), waits: text})
	case t.waiting:
	case t.out.JSON:
		t.out.Line("waiting", struct {
			Message string `json:"message"`
		}{text})
	case t.once: // the result alone is printed
	default:
		t.out.Printf("%s\n", text)
	}
	t.waiting = true
	return t.out.Err()
}

// running is a pipeline and what it did since the last reading.
type running struct {
	*live.Snapshot
	Rates  live.Rates `json:"rates"`
	Missed []string   `json:"missed"` // objectives, since the last reading
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
			rates := s.Since(t.before[key])
			rows = append(rows, running{s, rates, s.Missed(rates)})
		}
	}
	t.before = seen
	return rows, errs
}

func (t *topRun) show(rows []running, errs []error) error {
	t.waiting = false
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
			line := v.now.Format("15:04:05") + " " + r.head()
			if len(r.Missed) > 0 {
				line += "  MISSED " + strings.Join(r.Missed, "; ")
			}
			t.out.Printf("%s\n", line)
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
	waits    string // for what, while none is running
}

func (topView) keys() []keyHelp   { return nil }
func (topView) press(string) bool { return false }

func (v topView) lines(width, _ int, colour bool) []string {
	p := &page{width: width, colour: colour}
	what := fmt.Sprintf("%d pipelines running", len(v.rows))
	switch len(v.rows) {
	case 0:
		what = "no pipeline is running"
	case 1:
		what = "1 pipeline running"
	}
	p.row("", terminal.Bold, fmt.Sprintf("%s  %s  every %v", what, v.now.Format("15:04:05"), v.interval))
	for _, line := range terminal.Wrap(v.waits, width-labelWidth) {
		p.row("", terminal.Plain, line)
	}
	for _, r := range v.rows {
		r.lines(p)
	}
	for _, err := range v.errs {
		p.row("problem", terminal.Red, err.Error())
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
	style := terminal.Green
	switch {
	case len(r.Missed) > 0 || r.Rates.Frames.Failed > 0:
		style = terminal.Red
	case r.Level > 0 || r.Rates.Frames.Dropped > 0:
		style = terminal.Yellow
	}
	p.row("", terminal.Plain, "")
	p.row("", style, r.head()+fmt.Sprintf("  up %v", time.Duration(r.Up).Round(time.Second)))
	for _, m := range r.Missed {
		p.row("slo", terminal.Red, "MISSED "+m)
	}
	if len(r.Missed) == 0 && (r.Target != nil || r.MinFPS != nil) {
		p.row("slo", terminal.Green, "met")
	}
	f := r.Frames
	counts := fmt.Sprintf("%d read  %d done  %d dropped  %d failed", f.Read, f.Done, f.Dropped, f.Failed)
	if len(r.Skips) > 0 {
		counts += fmt.Sprintf("  %d skipped", f.Skipped)
	}
	p.row("frames", terminal.Plain, fmt.Sprintf("%s  %d in work", counts, r.InFlight))
	p.wrapText("dropped", terminal.Yellow, listCounts(r.Drops, r.Rates.Drops)...)
	p.wrapText("failed", terminal.Red, listCounts(r.Failures, nil)...)
	for _, stage := range slices.Sorted(maps.Keys(r.Crops)) {
		p.row("crops", terminal.Plain, cropsText(stage, r.Crops[stage]))
	}
	r.stages(p)
	p.wrapText("process", terminal.Plain, r.process()...)
	p.wrapText("", terminal.Plain, r.interrupts()...)
	switch {
	case r.Throttled == nil:
		p.row("slowed", terminal.Plain, "-")
	case len(r.Throttled) == 0:
		p.row("slowed", terminal.Plain, "nothing")
	default:
		p.wrapText("slowed", terminal.Red, r.Throttled...)
	}
	var own []string
	for _, n := range r.Numbers {
		value := "-"
		if n.Value != nil {
			value = decimal(*n.Value)
		}
		own = append(own, n.Stage+"."+n.Name+" "+value)
	}
	p.wrapText("own", terminal.Plain, own...)
	for _, e := range r.Events[max(len(r.Events)-3, 0):] {
		ago := time.Duration(r.At - e.At).Round(time.Second)
		p.row(e.Kind, terminal.Yellow, fmt.Sprintf("%s, %v ago", e.Why, ago))
	}
}

// stages adds a row for each stage.
func (r running) stages(p *page) {
	p.row("", terminal.Dim, fmt.Sprintf(topRow, "stage", "queue", "busy", "wait p50", "p95", "work p50", "p95 ms"))
	for i, st := range r.Stages {
		queue, busy, now := "-", "-", r.Rates.Stages[i]
		if st.Queue != nil {
			queue = fmt.Sprintf("%d/%d", st.Queue.Depth, st.Queue.Capacity)
		}
		style := terminal.Plain
		if now.Busy != nil {
			busy = fmt.Sprintf("%.0f %%", 100**now.Busy)
			style = loadStyle(new(int64(1000 * *now.Busy / float64(max(st.Instances, 1)))))
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
