package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/internal/terminal"
	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/processes"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/tegrastats"
	"github.com/yoctune/yoctune/runtime/device/watch"
)

// Bounds of the time between samples.
const (
	defaultInterval = time.Second
	minInterval     = 100 * time.Millisecond
	// firstRate is between the two samples of --once: loads are rates.
	firstRate = 250 * time.Millisecond
)

func newMonitorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "monitor",
		Short: "Show loads, clocks, power, temperatures and memory",
		Long: `Show the state of the device, updated every second: load and clock of each core, GPU,
memory controller, power rails, temperatures, fans, memory with CMA, GPU allocations and
the largest free block, throttling, the power mode, pressure, and which process changed
settings of the plan.

monitor only reads files. A value that is not available is shown as "-" (null in JSON),
never as 0. A sensor that does not respond is named and delays nothing. The values of the
memory controller and of GPU allocations are in debugfs, which only root may read.

On a terminal the screen is redrawn in place, with the processes and the history of the
values; ? shows the keys, q quits. Otherwise monitor prints one line per sample. --tegrastats shows the output of NVIDIA's tegrastats instead, from
L4T R31 to R39.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 lines of the tegrastats output could not
be parsed completely.`,
		Example: `  yoctuned monitor
  yoctuned monitor --once --format json | jq .rails
  yoctuned monitor --record run.ndjson --duration 10m
  tegrastats | yoctuned monitor --tegrastats -`,
		RunE: onDevice(func(cmd *cobra.Command, dev *rootfs.Root, _ []string) error {
			m, err := openMonitor(cmd, dev)
			if err != nil {
				return err
			}
			return m.run(cmd.Context())
		}),
	}
	cmd.Flags().Bool("once", false, "show one sample and exit")
	cmd.Flags().Duration("interval", 0, "`TIME` between samples, at least 100ms (default: the plan's monitor.interval, else 1s)")
	cmd.Flags().Duration("duration", 0, "`TIME` after which to exit")
	cmd.Flags().String("record", "", "`FILE` to record samples in, one JSON object per line; it must not exist")
	cmd.Flags().String("tegrastats", "", "`FILE` with tegrastats output to show instead of sampling; - is standard input")
	cmd.AddCommand(newSummaryCommand())
	return cmd
}

// monitorRun is one run of monitor.
type monitorRun struct {
	cmd      *cobra.Command
	dev      *rootfs.Root
	id       rootfs.Identity
	board    string // of the installed plan
	interval time.Duration
	duration time.Duration
	once     bool
	text     string // tegrastats file
	out      cli.Printer
	record   *os.File
	drift    driftReader
	screen   *screen // nil: not on a terminal
	choice   choice
	top      *processes.Sampler
	trends   trends
	problems int
	samples  int
}

func openMonitor(cmd *cobra.Command, dev *rootfs.Root) (*monitorRun, error) {
	m := &monitorRun{cmd: cmd, dev: dev, out: cli.NewPrinter(cmd)}
	m.once, _ = cmd.Flags().GetBool("once")
	m.interval, _ = cmd.Flags().GetDuration("interval")
	m.duration, _ = cmd.Flags().GetDuration("duration")
	m.text, _ = cmd.Flags().GetString("tegrastats")
	record, _ := cmd.Flags().GetString("record")
	switch {
	case cmd.Flags().Changed("interval") && m.interval < minInterval:
		return nil, cli.UsageError(fmt.Errorf("--interval must be at least %v", minInterval))
	case m.duration < 0:
		return nil, cli.UsageError(errors.New("--duration must not be negative"))
	case m.once && record != "":
		return nil, cli.UsageError(errors.New("--once and --record cannot be used together"))
	}
	if m.interval == 0 {
		m.interval = planInterval(dev)
	}
	m.id, m.top = rootfs.Identify(dev), processes.New(dev)
	if file, err := planfile.Load(dev, planfile.Source{}); err == nil {
		m.board = file.Plan.Board
	}
	m.drift = driftReader{dev: dev, boot: m.id.BootID, seen: time.Now()}
	m.drift.watch()
	if record != "" {
		var err error
		m.record, err = os.OpenFile(record, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("record: %s already exists; choose another name, or remove it", record)
		} else if err != nil {
			return nil, fmt.Errorf("record: %w", err)
		}
	}
	return m, nil
}

// planInterval is the interval of the installed plan. A plan that is missing or invalid
// does not matter here.
func planInterval(dev rootfs.FS) time.Duration {
	file, err := planfile.Load(dev, planfile.Source{})
	if err != nil || file.Plan.Monitor == nil || file.Plan.Monitor.Interval < int64(minInterval) {
		return defaultInterval
	}
	return time.Duration(file.Plan.Monitor.Interval)
}

func (m *monitorRun) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	defer stop()
	if m.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.duration)
		defer cancel()
	}
	if !m.out.JSON && !m.once && m.text == "" {
		var err error
		if m.screen, ctx, err = openScreen(ctx, m.cmd); err != nil {
			return err
		} else if m.screen != nil {
			if m.record != nil {
				m.screen.note = "recording"
			}
			defer m.screen.close()
		}
	}
	err := m.showSamples(ctx)
	if m.record != nil {
		if cerr := m.record.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("record: %w", cerr)
		}
	}
	if err != nil {
		return err
	}
	if m.record != nil && m.screen == nil && !m.out.JSON {
		m.out.Printf("recorded %d samples in %s\n", m.samples, m.record.Name())
	}
	return m.out.End("monitor", cli.ExitCode(m.problems == 0), nil)
}

// showSamples shows each sample as it arrives.
func (m *monitorRun) showSamples(ctx context.Context) error {
	if m.text != "" {
		return m.tegrastats(ctx)
	}
	socket := path.Join(m.dev.Dir(), api.Socket)
	if m.once {
		between := min(firstRate, m.interval)
		sampler := monitor.NewShared(m.dev, socket, between)
		defer sampler.Close()
		sampler.Take()
		m.top.Take()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(between):
		}
		return m.show(sampler.Take())
	}
	sampler := monitor.NewShared(m.dev, socket, m.interval) // until the process ends
	hub := monitor.NewHub(sampler.Take, m.interval)
	watching, leave := context.WithCancel(ctx)
	defer leave()
	samples := hub.Watch(watching)
	for {
		select {
		case s, ok := <-samples:
			if !ok {
				return nil
			}
			if err := m.show(s); err != nil {
				return err
			}
		case key := <-m.screen.pending():
			if err := m.screen.handle(key); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *monitorRun) tegrastats(ctx context.Context) error {
	r, err := cli.Open(m.cmd, m.text)
	if err != nil {
		return fmt.Errorf("read tegrastats: %w", err)
	}
	defer r.Close()
	var last *monitor.Sample
	err = tegrastats.Read(r, func(n int, line *tegrastats.Line, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			m.reportProblem(fmt.Errorf("line %d: %w", n, err))
			return nil
		}
		if len(line.Unknown) > 0 {
			m.reportProblem(fmt.Errorf("line %d: not understood, shown as unknown: %s", n, strings.Join(line.Unknown, ", ")))
		}
		last = line.Sample
		if m.once {
			return nil
		}
		return m.show(line.Sample)
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("read tegrastats: %w", err)
	}
	if last == nil && m.problems == 0 {
		return errors.New("read tegrastats: the input is empty")
	}
	if m.once && last != nil {
		return m.show(last)
	}
	return nil
}

func (m *monitorRun) reportProblem(err error) {
	m.problems++
	if m.out.JSON {
		m.out.Error(err)
	} else {
		m.out.Printf("%v\n", err)
	}
}

func (m *monitorRun) show(s *monitor.Sample) error {
	m.samples++
	if m.record != nil {
		record := m.out.To(m.record)
		if record.Encode(s); record.Err() != nil {
			return fmt.Errorf("record: %w", record.Err())
		}
	}
	switch {
	case m.out.JSON:
		if s.Source == "" {
			m.drift.events()
		}
		m.out.Encode(s)
		for _, e := range m.drift.newEvents() {
			m.out.Encode(e)
		}
	case m.screen != nil:
		m.trends.add(s)
		f := m.frame(s)
		f.interval, f.trends = m.interval, &m.trends
		return m.screen.draw(f)
	case m.once:
		writeView(m.out, m.frame(s))
	default:
		m.out.Printf("%s\n", logLine(s))
	}
	return m.out.Err()
}

// frame returns the view of a sample.
func (m *monitorRun) frame(s *monitor.Sample) frame {
	f := frame{sample: s, choice: &m.choice}
	if s.Source != "" {
		return f // text of another machine
	}
	f.id, f.host, f.board = m.id, rootfs.Hostname(m.dev), m.board
	f.events, f.processes = m.drift.events(), m.top.Take()
	switch state, err := watch.ReadState(m.dev, m.id.BootID); {
	case err != nil:
		f.enforcer = cell{"unknown: " + err.Error(), terminal.Yellow}
	case state != nil && state.PID != 0:
		f.enforcer = cell{fmt.Sprintf("%s; %d drifts, %d repairs, %d contested", state.Watcher(time.Now()), state.Drifts, state.Repairs, len(state.Contested)), terminal.Green}
		if len(state.Contested) > 0 {
			f.enforcer.style = terminal.Red
		}
	case state != nil:
		f.enforcer = cell{state.Watcher(time.Now()), terminal.Red}
	case m.board != "":
		f.enforcer = cell{"nobody enforces the plan: yoctuned.service is not running", terminal.Red}
	default:
		f.enforcer = cell{"no plan is installed", terminal.Dim}
	}
	return f
}

// driftReader follows the drift events of the enforcer. Its socket has them at once; its
// state file has earlier ones too, and is the only source when the socket does not
// respond, but is written later.
type driftReader struct {
	dev  *rootfs.Root
	boot string
	raw  []byte
	list []watch.Event
	seen time.Time // of the last event that newEvents returned, at first when monitor started
	live chan watch.Event
	late []watch.Event // received, and not yet in the file
}

// maxLate bounds the events that are not yet in the file.
const maxLate = 256

// watch subscribes to events until the program ends. If that fails, the file is used.
func (d *driftReader) watch() {
	live := make(chan watch.Event, maxLate)
	d.live = live
	socket := path.Join(d.dev.Dir(), api.Socket)
	go func() {
		client, err := api.Dial(socket)
		if err != nil {
			return
		}
		defer func() { _ = client.Close() }()
		_ = client.Watch(func(e api.Event) error { // its end leaves the file
			select {
			case live <- watch.FromAPI(e):
			default: // it is in the file by the time of the next sample
			}
			return nil
		})
	}()
}

// events returns those of this boot, oldest first. A file that cannot be read counts as
// empty; `yoctuned status` reports what is wrong with it.
func (d *driftReader) events() []watch.Event {
	if raw, err := d.dev.ReadState(watch.File); err == nil && !bytes.Equal(raw, d.raw) {
		d.raw = raw
		if st, err := watch.ReadState(d.dev, d.boot); err == nil && st != nil {
			d.list = st.History
		}
	}
	for more := true; more; {
		select {
		case e := <-d.live:
			d.late = append(d.late, e)
		default:
			more = false
		}
	}
	d.late = d.late[max(0, len(d.late)-maxLate):]
	if n := len(d.list); n > 0 {
		written := d.list[n-1].Time
		d.late = slices.DeleteFunc(d.late, func(e watch.Event) bool { return !e.Time.After(written) })
	}
	return slices.Concat(d.list, d.late)
}

// newEvents returns the events since the last call.
func (d *driftReader) newEvents() []watch.Event {
	var out []watch.Event
	for _, e := range slices.Concat(d.list, d.late) {
		if e.Time.After(d.seen) {
			out = append(out, e)
		}
	}
	if n := len(out); n > 0 {
		d.seen = out[n-1].Time
	}
	return out
}

func eventText(e watch.Event) string {
	return fmt.Sprintf("%s %s %s", e.Time.Local().Format("15:04:05"), e.Type, changeText(e))
}

// changeText describes the change of a node and its repair. A node that appeared has its first
// value, which no process has written.
func changeText(e watch.Event) string {
	if e.Type == watch.Reapplied && e.By == nil {
		return fmt.Sprintf("%s %s after %s%s", outcome.Name(e.Path), e.Found, e.Message, repairText(e))
	}
	return fmt.Sprintf("%s %s by %s%s", outcome.Name(e.Path), e.Found, processName(e.By), repairText(e))
}

// repairText ends the description of a change that was repaired.
func repairText(e watch.Event) string {
	if e.Repair == 0 {
		return ""
	}
	return fmt.Sprintf(", %s after %.1f ms", e.Outcome, float64(e.Repair)/1000)
}

func newSummaryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "summary FILE",
		Short: "Summarise a recording: minimum, average, percentiles, maximum",
		Long: `Summarise a recording of "yoctuned monitor --record": the statistics of each value over
the samples that have it. - reads standard input. Percentiles use the nearest rank, so
they are values that were measured.

Exit status: 0 done, 1 the file is not a recording, 2 wrong usage.`,
		Example: `  yoctuned monitor summary run.ndjson
  yoctuned monitor summary run.ndjson --format json | jq 'select(.name == "rail VDD_IN").avg'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := cli.Open(cmd, args[0])
			if err != nil {
				return fmt.Errorf("summarise: %w", err)
			}
			defer r.Close()
			sum := monitor.NewSummary()
			if err := monitor.Read(r, sum.Add); err != nil {
				return fmt.Errorf("summarise %s: %w", args[0], err)
			}
			if sum.Samples == 0 {
				return fmt.Errorf("summarise %s: %w: no sample in it", args[0], monitor.ErrRecording)
			}
			p := cli.NewPrinter(cmd)
			if !p.JSON {
				summaryText(p, sum)
				return nil
			}
			for _, s := range sum.Series() {
				p.Encode(s)
			}
			p.Encode(struct {
				cli.Summary
				Samples   int       `json:"samples"`
				Duration  float64   `json:"duration_s"`
				First     time.Time `json:"first"`
				Last      time.Time `json:"last"`
				Throttled *float64  `json:"throttled_share"`
			}{cli.Summary{Type: "summary", Command: "summary"}, sum.Samples, sum.Duration.Seconds(), sum.First, sum.Last, sum.Throttled()})
			return nil
		},
	}
}

func summaryText(w cli.Printer, sum *monitor.Summary) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "min\tavg\tp50\tp95\tp99\tmax\t \t")
	for _, s := range sum.Series() {
		known := ""
		if s.N < sum.Samples {
			known = fmt.Sprintf(" (known in %d)", s.N)
		}
		printable.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", decimal(s.Min), decimal(s.Avg), decimal(s.P50), decimal(s.P95), decimal(s.P99), decimal(s.Max), s.Unit,
			"  "+s.Name+known)
	}
	_ = tw.Flush()
	throttled := "throttling is unknown"
	if share := sum.Throttled(); share != nil {
		throttled = fmt.Sprintf("throttled in %.1f %% of them", 100**share)
	}
	w.Printf("%d samples in %s; %s\n", sum.Samples, sum.Duration.Round(time.Second), throttled)
}

// decimal drops the fraction of whole and of large numbers.
func decimal(v float64) string {
	if v == float64(int64(v)) || v >= 1000 || v <= -1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}
