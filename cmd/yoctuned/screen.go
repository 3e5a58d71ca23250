package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/spf13/cobra"

	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/printable"
	"github.com/yoctune/yoctune/internal/terminal"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/schema/units"
)

// screen is the terminal while monitor or pipeline top uses it. Only lines that change
// are written, because the console of a board is often a slow serial line.
type screen struct {
	in, out int
	w       io.Writer
	input   io.Reader
	initial *term.State
	resized chan os.Signal
	paused  atomic.Bool
	note    string // beside the keys
	last    view
	shown   []string
	width   int
	height  int
}

// openScreen switches the terminal of a command to raw mode. It returns nil if the command
// has no terminal. The context ends when the user quits.
func openScreen(ctx context.Context, cmd *cobra.Command) (*screen, context.Context, error) {
	in, ok := cmd.InOrStdin().(*os.File)
	out := cli.File(cmd.OutOrStdout())
	if !ok || out == nil || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil, ctx, nil
	}
	initial, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, ctx, fmt.Errorf("set the terminal to raw mode: %w", err)
	}
	s := &screen{in: int(in.Fd()), out: int(out.Fd()), w: cmd.OutOrStdout(), input: in, initial: initial, resized: make(chan os.Signal, 1)}
	signal.Notify(s.resized, unix.SIGWINCH)
	// The alternate buffer keeps what was on the screen.
	if _, err := io.WriteString(s.w, "\x1b[?1049h\x1b[?25l"); err != nil {
		s.close()
		return nil, ctx, err
	}
	return s, s.watchKeys(ctx), nil
}

// resizes is the channel of changes of the size; it blocks where there is no screen.
func (s *screen) resizes() <-chan os.Signal {
	if s == nil {
		return nil
	}
	return s.resized
}

func (s *screen) close() {
	signal.Stop(s.resized)
	_, _ = io.WriteString(s.w, "\x1b[0m\x1b[?25h\x1b[?1049l")
	_ = term.Restore(s.in, s.initial)
}

// Keys of a terminal in raw mode.
const (
	ctrlC  = 3
	escape = 27
)

// watchKeys ends the context when q, Escape or Ctrl-C is typed. The goroutine ends
// with the process: a read of a terminal cannot be cancelled.
func (s *screen) watchKeys(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		buf := make([]byte, 16)
		for {
			n, err := s.input.Read(buf)
			if err != nil {
				return
			}
			if n > 1 && buf[0] == escape { // an arrow or another special key
				continue
			}
			for _, key := range buf[:n] {
				switch key {
				case 'q', ctrlC, escape:
					return
				case 'p', ' ':
					s.paused.Store(!s.paused.Load())
					select {
					case s.resized <- unix.SIGWINCH: // show that it is paused
					default:
					}
				}
			}
		}
	}()
	return ctx
}

// view is the content of a screen.
type view interface {
	lines(width int, colour bool) []string
}

func (s *screen) draw(v view) error {
	if s.paused.Load() {
		return nil
	}
	s.last = v
	return s.redraw()
}

func (s *screen) redraw() error {
	if s.last == nil {
		return nil
	}
	width, height, err := term.GetSize(s.out)
	if err != nil || width < 1 || height < 1 { // a serial console has no size
		width, height = 80, 24
	}
	if width != s.width || height != s.height {
		s.shown, s.width, s.height = nil, width, height
	}
	colour := os.Getenv("NO_COLOR") == ""
	now := s.last.lines(width, colour)
	now = append(now[:min(len(now), height-1)], s.footer(width, colour))
	var b bytes.Buffer
	if s.shown == nil {
		b.WriteString("\x1b[2J")
	}
	for i, line := range now {
		if i < len(s.shown) && s.shown[i] == line {
			continue
		}
		fmt.Fprintf(&b, "\x1b[%d;1H%s\x1b[0m\x1b[K", i+1, line)
	}
	if len(now) < len(s.shown) {
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[J", len(now)+1)
	}
	s.shown = now
	_, err = s.w.Write(b.Bytes())
	return err
}

// footer is the last line, which shows the keys.
func (s *screen) footer(width int, colour bool) string {
	text := "q quit  p pause"
	if s.paused.Load() {
		text = "PAUSED  p continue  q quit"
	}
	if s.note != "" {
		text += "  " + s.note
	}
	p := &page{width: width, colour: colour}
	p.row("", dim, text)
	return p.lines[0]
}

// frame is one sample on a screen.
type frame struct {
	model    string
	sample   *monitor.Sample
	events   []watch.Event
	interval time.Duration
}

// Colours of the screen; on a terminal without colours, or with NO_COLOR, none.
const (
	bold, dim, green, yellow, red, reset = "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
)

// writeView prints a view once, 80 characters wide.
func writeView(p cli.Printer, v view) {
	fmt.Fprintln(p, strings.Join(v.lines(80, cli.Colour(p)), "\n"))
}

// page collects the lines of a screen.
type page struct {
	width  int
	colour bool
	lines  []string
}

// row adds a label and text, which is cut to the width.
func (p *page) row(label, style, text string) {
	const column = 9
	text = terminal.Truncate(printable.Line(text), p.width-column, "")
	if p.colour && style != "" {
		text = style + text + reset
	}
	label = fmt.Sprintf("%-*s", column, label)
	if p.colour {
		label = dim + label + reset
	}
	p.lines = append(p.lines, label+text)
}

// wrap adds items under one label, on as many lines as they need.
func (p *page) wrap(label, style string, items []string) {
	line := ""
	for _, it := range items {
		if line != "" && utf8.RuneCountInString(line)+2+utf8.RuneCountInString(it) > p.width-9 {
			p.row(label, style, line)
			label, line = "", ""
		}
		if line != "" {
			line += "  "
		}
		line += it
	}
	if line != "" {
		p.row(label, style, line)
	}
}

func (f frame) lines(width int, colour bool) []string {
	p := &page{width: width, colour: colour}
	s := f.sample
	f.title(p)
	f.cpus(p)
	for i, g := range s.GPUs {
		label := "gpu"
		if i > 0 {
			label = ""
		}
		text := gauge(g.Load) + "  " + clock(g.Freq, g.Max)
		if g.Governor != nil {
			text += "  " + *g.Governor
		}
		if len(s.GPUs) > 1 {
			text += "  " + g.Name
		}
		p.row(label, loadColour(g.Load), text)
	}
	if len(s.GPUs) == 0 {
		p.row("gpu", "", "-")
	}
	if s.EMC != nil {
		p.row("emc", loadColour(s.EMC.Load), gauge(s.EMC.Load)+"  "+clock(s.EMC.Freq, nil))
	} else {
		p.row("emc", "", "-")
	}
	if len(s.Engines) > 0 {
		var items []string
		for _, e := range s.Engines {
			text := e.Name + " off"
			if e.On {
				text = e.Name + " " + clock(e.Freq, nil)
			}
			items = append(items, text)
		}
		p.wrap("engines", "", items)
	}
	f.memory(p)
	f.rails(p)
	f.temperatures(p)
	f.fans(p)
	f.throttling(p)
	f.faults(p)
	for _, e := range f.events[max(len(f.events)-3, 0):] {
		style := yellow
		if e.Type == watch.Contest {
			style = red
		}
		p.row("drift", style, eventText(e))
	}
	return p.lines
}

func (f frame) title(p *page) {
	s := f.sample
	name := f.model
	if s.Source != "" {
		name = "from " + s.Source
	}
	if name == "" {
		name = "this machine"
	}
	mode := "-"
	if s.PowerMode != nil {
		mode = *s.PowerMode
	}
	text := fmt.Sprintf("%s  power mode %s", name, mode)
	if !s.Time.IsZero() {
		text += "  " + s.Time.Local().Format("15:04:05")
	}
	if f.interval > 0 {
		text += "  every " + f.interval.String()
	}
	p.row("", bold, text)
}

func (f frame) cpus(p *page) {
	cpus := f.sample.CPUs
	if len(cpus) == 0 {
		p.row("cpu", "", "-")
		return
	}
	// Two columns when there are many.
	columns := 1
	if len(cpus) > 6 && p.width >= 78 {
		columns = 2
	}
	rows := (len(cpus) + columns - 1) / columns
	for r := range rows {
		var cells []string
		style := ""
		for c := range columns {
			if i := r + c*rows; i < len(cpus) {
				cpu := cpus[i]
				text := fmt.Sprintf("%2d off", cpu.Number)
				if cpu.Online {
					text = fmt.Sprintf("%2d %s %s", cpu.Number, gauge(cpu.Load), clock(cpu.Freq, nil))
					if columns == 1 {
						text = fmt.Sprintf("%2d %s  %s", cpu.Number, gauge(cpu.Load), clock(cpu.Freq, cpu.Max))
						if cpu.Governor != nil {
							text += "  " + *cpu.Governor
						}
					}
				}
				if c < columns-1 {
					text = fmt.Sprintf("%-34s", text)
				}
				cells = append(cells, text)
				style = strongerColour(style, loadColour(cpu.Load))
			}
		}
		label := ""
		if r == 0 {
			label = "cpu"
		}
		p.row(label, style, strings.Join(cells, " "))
	}
}

func (f frame) memory(p *page) {
	m := f.sample.Memory
	var load *int64
	if m.Used != nil && m.Total != nil && *m.Total > 0 {
		load = new(*m.Used * 1000 / *m.Total)
	}
	p.row("memory", loadColour(load), gauge(load)+"  "+size(m.Used)+" of "+size(m.Total))
	items := []string{"cma free " + size(m.CMAFree) + " of " + size(m.CMATotal), "gpu holds " + size(m.NVMap)}
	if m.Largest != nil && m.LargestN != nil {
		items = append(items, fmt.Sprintf("largest free %d x %s", *m.LargestN, size(m.Largest)))
	} else {
		items = append(items, "largest free -")
	}
	switch {
	case m.SwapTotal != nil && *m.SwapTotal == 0:
		items = append(items, "no swap")
	default:
		items = append(items, "swap "+size(m.SwapUsed)+" of "+size(m.SwapTotal))
	}
	p.wrap("", "", items)
}

func (f frame) rails(p *page) {
	s := f.sample
	var items []string
	for _, r := range s.Rails {
		text := r.Label + " -"
		if r.Power != nil {
			text = fmt.Sprintf("%s %.2f W", r.Label, float64(*r.Power)/1000)
		}
		items = append(items, text)
	}
	p.wrap("power", "", orUnknown(items))
}

func (f frame) temperatures(p *page) {
	s := f.sample
	var items []string
	style := ""
	for _, z := range s.Zones {
		if z.Placeholder {
			continue
		}
		name := short(strings.TrimSuffix(z.Name, "-thermal"))
		text := name + " -"
		if z.Temp != nil {
			text = fmt.Sprintf("%s %.1f", name, float64(*z.Temp)/1000)
			if z.Passive != nil && *z.Temp >= *z.Passive {
				style = red
			} else if z.Passive != nil && *z.Passive-*z.Temp < 5000 {
				style = strongerColour(style, yellow)
			}
		}
		items = append(items, text)
	}
	p.wrap("°C", style, orUnknown(items))
}

func (f frame) fans(p *page) {
	s := f.sample
	var items []string
	for _, fan := range s.Fans {
		if fan.PWM != nil {
			items = append(items, fmt.Sprintf("%s %d %%", fan.Name, *fan.PWM*100/255))
		}
		if fan.RPM != nil {
			items = append(items, fmt.Sprintf("%s %d rpm", fan.Name, *fan.RPM))
		}
	}
	p.wrap("fan", "", orUnknown(items))
}

func (f frame) throttling(p *page) {
	s := f.sample
	var items []string
	style := ""
	for _, c := range s.Throttled() {
		text := fmt.Sprintf("%s step %d", c.Name, *c.State)
		if c.Max != nil {
			text += fmt.Sprintf(" of %d", *c.Max)
		}
		items, style = append(items, text), red
	}
	for _, a := range s.Alarms {
		if a.Events != nil && *a.Events > 0 {
			items, style = append(items, fmt.Sprintf("over-current %s %d times since boot", a.Name, *a.Events)), strongerColour(style, yellow)
		}
	}
	if len(items) == 0 && slices.ContainsFunc(s.Cooling, func(c monitor.Cooling) bool { return c.State != nil }) {
		items = []string{"nothing"}
	}
	p.wrap("slowed", style, orUnknown(items))
}

func (f frame) faults(p *page) {
	s := f.sample
	percent := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.1f %%", *v)
	}
	faults := "-"
	if s.Faults != nil {
		faults = fmt.Sprintf("%d/s", *s.Faults)
	}
	p.row("waits", "", fmt.Sprintf("cpu %s  memory %s  io %s  major faults %s", percent(s.Pressure.CPU), percent(s.Pressure.Memory), percent(s.Pressure.IO), faults))
	for _, st := range s.Stale {
		p.row("stale", yellow, fmt.Sprintf("%s: no answer for %.1f s", st.Sensor, float64(st.For)/1000))
	}
}

func orUnknown(items []string) []string {
	if len(items) == 0 {
		return []string{"-"}
	}
	return items
}

// gauge draws a load: ten cells and the number.
func gauge(permille *int64) string {
	const cells = 10
	if permille == nil {
		return strings.Repeat("·", cells) + "     -  "
	}
	full := int(*permille+50) * cells / 1000
	full = min(max(full, 0), cells)
	return fmt.Sprintf("%s%s %5.1f %%", strings.Repeat("█", full), strings.Repeat("░", cells-full), float64(*permille)/10)
}

func clock(hz, most *int64) string {
	if hz == nil {
		return "- MHz"
	}
	if most == nil {
		return fmt.Sprintf("%d MHz", *hz/1e6)
	}
	return fmt.Sprintf("%d of %d MHz", *hz/1e6, *most/1e6)
}

// size prints bytes, "-" where they are unknown.
func size(bytes *int64) string {
	if bytes == nil {
		return "-"
	}
	return units.RoundSize(*bytes)
}

func loadColour(permille *int64) string {
	switch {
	case permille == nil || *permille < 10:
		return ""
	case *permille >= 950:
		return red
	case *permille >= 700:
		return yellow
	}
	return green
}

// strongerColour returns the stronger of two colours.
func strongerColour(a, b string) string {
	order := []string{"", dim, green, yellow, red}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// logLine describes a sample in one line.
func logLine(s *monitor.Sample) string {
	var out []string
	if !s.Time.IsZero() {
		out = append(out, s.Time.Local().Format("15:04:05"))
	}
	for _, v := range s.Values() {
		switch {
		case v.Name == "cpu load", v.Name == "gpu load", v.Name == "gpu clock", v.Name == "memory bandwidth", v.Name == "memory used",
			v.Name == "throttled", strings.HasPrefix(v.Name, "rail "):
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", v.Name, decimal(v.Value), v.Unit)))
		}
	}
	if hot := s.Hottest(); hot != nil {
		out = append(out, fmt.Sprintf("%s %.1f °C", hot.Name, float64(*hot.Temp)/1000))
	}
	return strings.Join(out, ", ")
}
