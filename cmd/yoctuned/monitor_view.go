package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/yoctune/yoctune/internal/terminal"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/processes"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/schema/units"
)

// choice is what the user chose on the screen of monitor.
type choice struct{ page, sort string }

// frame is one sample on a screen.
type frame struct {
	host      string
	id        rootfs.Identity
	board     string // of the installed plan
	sample    *monitor.Sample
	events    []watch.Event
	enforcer  cell
	processes []processes.Process
	trends    *trends
	interval  time.Duration
	choice    *choice
}

// pages are the screens of monitor, by key.
var pages = []keyHelp{{"1", "overview"}, {"2", "processes"}, {"3", "history"}}

// orders are the orders of processes, by key.
var orders = []keyHelp{{"c", "by CPU"}, {"m", "by memory"}, {"n", "by name"}}

func (f frame) keys() []keyHelp {
	return slices.Concat(pages, []keyHelp{{"tab", "next page"}}, orders)
}

func (f frame) press(key string) bool {
	at := slices.IndexFunc(pages, func(k keyHelp) bool { return k.meaning == f.choice.page })
	switch {
	case key == "tab" || key == "right":
		f.choice.page = pages[(at+1)%len(pages)].meaning
	case key == "left":
		f.choice.page = pages[(at+len(pages)-1)%len(pages)].meaning
	case slices.ContainsFunc(orders, func(k keyHelp) bool { return k.key == key }):
		f.choice.sort = key
	default:
		at = slices.IndexFunc(pages, func(k keyHelp) bool { return k.key == key })
		if at < 0 {
			return false
		}
		f.choice.page = pages[at].meaning
	}
	return true
}

// Rows of processes and of history on the overview, where there is room.
const (
	fewProcesses  = 5
	manyProcesses = 500
)

func (f frame) lines(width, height int, colour bool) []string {
	p := &page{width: width, colour: colour}
	f.title(p)
	switch f.choice.page {
	case "processes":
		f.top(p, manyProcesses)
	case "history":
		f.history(p, false)
	default:
		f.overview(p)
		if f.processes != nil {
			f.top(p, max(fewProcesses, height-len(p.lines)-1-len(overviewTrends)))
		}
		if f.trends != nil {
			f.history(p, true)
		}
	}
	return p.lines
}

func (f frame) overview(p *page) {
	s := f.sample
	f.cpus(p)
	f.gpus(p)
	if s.EMC != nil {
		p.row("emc", loadStyle(s.EMC.Load), gauge(s.EMC.Load)+"  "+clock(s.EMC.Freq, nil))
	} else {
		p.row("emc", terminal.Plain, "-")
	}
	var engines []string
	for _, e := range s.Engines {
		text := e.Name + " off"
		if e.On {
			text = e.Name + " " + clock(e.Freq, nil)
		}
		engines = append(engines, text)
	}
	p.wrapText("engines", terminal.Plain, engines...)
	f.memory(p)
	f.rails(p)
	f.temperatures(p)
	f.fans(p)
	f.throttling(p)
	f.waits(p)
	if f.enforcer.text != "" {
		p.cells("enforcer", f.enforcer)
	}
	for _, e := range f.events[max(len(f.events)-3, 0):] {
		style := terminal.Yellow
		if e.Type == watch.Contest {
			style = terminal.Red
		}
		p.row("drift", style, eventText(e))
	}
}

func (f frame) title(p *page) {
	s := f.sample
	name := cmp.Or(f.id.Model, f.board, "this machine")
	if s.Source != "" {
		name = "from " + s.Source
	}
	mode := "-"
	if s.PowerMode != nil {
		mode = *s.PowerMode
	}
	text := fmt.Sprintf("%s  power mode %s", name, mode)
	if f.host != "" {
		text = f.host + "  " + text
	}
	if !s.Time.IsZero() {
		text += "  " + s.Time.Local().Format("15:04:05")
	}
	if f.interval > 0 {
		text += "  every " + f.interval.String()
	}
	p.wrapText("", terminal.Bold, strings.Split(text, "  ")...)
	var about []string
	for _, part := range []struct{ name, value string }{{"board", f.board}, {"L4T", f.id.L4T}, {"kernel", f.id.Kernel}} {
		if part.value != "" {
			about = append(about, part.name+" "+part.value)
		}
	}
	p.wrapText("", terminal.Dim, about...)
}

// cpuCell is the width of a core where several share a line, wideCPU that of a page which
// shows its limit and governor.
const (
	cpuCell = 36
	wideCPU = 64
)

func (f frame) cpus(p *page) {
	cpus := f.sample.CPUs
	if len(cpus) == 0 {
		p.row("cpu", terminal.Plain, "-")
		return
	}
	// As many columns as are needed for eight rows, if they fit.
	columns := max(min((len(cpus)+5)/6, (p.width-labelWidth)/cpuCell), 1)
	rows := (len(cpus) + columns - 1) / columns
	for r := range rows {
		var cells []cell
		for i := r; i < len(cpus); i += rows {
			cells = append(cells, cpuText(cpus[i], columns == 1 && p.width >= wideCPU))
			if columns > 1 {
				last := &cells[len(cells)-1]
				last.text = pad(last.text, cpuCell)
			}
		}
		label := ""
		if r == 0 {
			label = "cpu"
		}
		p.cells(label, cells...)
	}
}

func cpuText(c monitor.CPU, wide bool) cell {
	if !c.Online {
		return cell{fmt.Sprintf("%2d off", c.Number), terminal.Dim}
	}
	text := fmt.Sprintf("%2d %s", c.Number, gauge(c.Load))
	if !wide {
		return cell{text + " " + clock(c.Freq, nil), loadStyle(c.Load)}
	}
	text += "  " + clock(c.Freq, c.Max)
	if c.Governor != nil {
		text += "  " + *c.Governor
	}
	return cell{text, loadStyle(c.Load)}
}

func (f frame) gpus(p *page) {
	s := f.sample
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
		p.row(label, loadStyle(g.Load), text)
	}
	if len(s.GPUs) == 0 {
		p.row("gpu", terminal.Plain, "-")
	}
}

func (f frame) memory(p *page) {
	m := f.sample.Memory
	load := computeShare(m.Used, m.Total)
	p.row("memory", loadStyle(load), gauge(load)+"  "+size(m.Used)+" of "+size(m.Total))
	items := []string{"cma free " + size(m.CMAFree) + " of " + size(m.CMATotal), "gpu holds " + size(m.NVMap)}
	if m.Largest != nil && m.LargestN != nil {
		items = append(items, fmt.Sprintf("largest free %d x %s", *m.LargestN, size(m.Largest)))
	} else {
		items = append(items, "largest free -")
	}
	if m.SwapTotal != nil && *m.SwapTotal == 0 {
		items = append(items, "no swap")
	} else {
		items = append(items, "swap "+size(m.SwapUsed)+" of "+size(m.SwapTotal))
	}
	if m.ZRAMData != nil {
		items = append(items, "zram "+size(m.ZRAMData)+" in "+size(m.ZRAMUsed))
	}
	p.wrapText("", terminal.Plain, items...)
}

func (f frame) rails(p *page) {
	var items []string
	for _, r := range f.sample.Rails {
		text := r.Label + " -"
		switch {
		case r.Label == monitor.NotConnected:
			text = r.Label + " not connected"
		case r.Power != nil:
			text = fmt.Sprintf("%s %.2f W", r.Label, float64(*r.Power)/1000)
		}
		items = append(items, text)
	}
	p.wrapText("power", terminal.Plain, orUnknown(items)...)
}

// nearLimit is how close to a limit a temperature is marked, in milli-degrees.
const nearLimit = 5000

func (f frame) temperatures(p *page) {
	var items []cell
	limits := []string{}
	for _, z := range f.sample.Zones {
		if z.Placeholder {
			continue
		}
		items = append(items, zoneText(z))
		if l := limitText(z); !slices.Contains(limits, l) {
			limits = append(limits, l)
		}
	}
	if len(items) == 0 {
		items = []cell{{text: "-"}}
	}
	p.wrap("temp", items...)
	if len(limits) == 1 && limits[0] != "" {
		p.row("", terminal.Dim, limits[0])
	} else if len(limits) > 1 {
		var each []string
		for _, z := range f.sample.Zones {
			if l := limitText(z); l != "" && !z.Placeholder {
				each = append(each, zoneName(z)+" "+l)
			}
		}
		p.wrapText("", terminal.Dim, each...)
	}
}

func zoneName(z monitor.Zone) string { return short(strings.TrimSuffix(z.Name, "-thermal")) }

func zoneText(z monitor.Zone) cell {
	if z.Temp == nil {
		return cell{text: zoneName(z) + " -"}
	}
	text := fmt.Sprintf("%s %.1f", zoneName(z), float64(*z.Temp)/1000)
	switch {
	case z.Passive == nil:
	case *z.Temp >= *z.Passive:
		return cell{text + " LIMIT", terminal.Red}
	case *z.Passive-*z.Temp < nearLimit:
		return cell{text + " near limit", terminal.Yellow}
	}
	return cell{text: text}
}

// limitText describes the trip points of a zone.
func limitText(z monitor.Zone) string {
	var parts []string
	for _, l := range []struct {
		what string
		v    *int64
	}{{"slowed at", z.Passive}, {"off at", z.Critical}} {
		if l.v != nil {
			parts = append(parts, l.what+" "+decimal(float64(*l.v)/1000)+" °C")
		}
	}
	return strings.Join(parts, ", ")
}

func (f frame) fans(p *page) {
	var items []string
	for _, fan := range f.sample.Fans {
		if fan.PWM != nil {
			items = append(items, fmt.Sprintf("%s %d %%", fan.Name, *fan.PWM*100/255))
		}
		if fan.RPM != nil {
			items = append(items, fmt.Sprintf("%s %d rpm", fan.Name, *fan.RPM))
		}
	}
	p.wrapText("fan", terminal.Plain, orUnknown(items)...)
}

func (f frame) throttling(p *page) {
	s := f.sample
	var items []cell
	for _, c := range s.Throttled() {
		text := fmt.Sprintf("%s step %d", c.Name, *c.State)
		if c.Max != nil {
			text += fmt.Sprintf(" of %d", *c.Max)
		}
		items = append(items, cell{text, terminal.Red})
	}
	for _, a := range s.Alarms {
		if a.Events != nil && *a.Events > 0 {
			items = append(items, cell{fmt.Sprintf("over-current %s %d times since boot", a.Name, *a.Events), terminal.Yellow})
		}
	}
	switch {
	case len(items) > 0:
	case slices.ContainsFunc(s.Cooling, func(c monitor.Cooling) bool { return c.State != nil }):
		items = []cell{{text: "nothing"}}
	default:
		items = []cell{{text: "-"}}
	}
	p.wrap("slowed", items...)
}

func (f frame) waits(p *page) {
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
	p.wrapText("waits", terminal.Plain, "cpu "+percent(s.Pressure.CPU), "memory "+percent(s.Pressure.Memory), "io "+percent(s.Pressure.IO), "major faults "+faults)
	for _, st := range s.Stale {
		p.row("stale", terminal.Yellow, fmt.Sprintf("%s: no answer for %.1f s", st.Sensor, float64(st.For)/1000))
	}
}

// top shows the first processes in the chosen order. Those of pipelines are marked.
func (f frame) top(p *page, most int) {
	order := cmp.Or(f.choice.sort, "c")
	list := slices.Clone(f.processes)
	slices.SortStableFunc(list, func(a, b processes.Process) int {
		cpu, memory := cmp.Compare(orZero(b.CPU), orZero(a.CPU)), cmp.Compare(b.Resident, a.Resident)
		switch order {
		case "m":
			return cmp.Or(memory, cpu)
		case "n":
			return cmp.Or(strings.Compare(a.Name, b.Name), cpu)
		}
		return cmp.Or(cpu, memory)
	})
	at := slices.IndexFunc(orders, func(k keyHelp) bool { return k.key == order })
	p.row("process", terminal.Bold, fmt.Sprintf("%7s %7s %9s  %-16s %s (%s)", "pid", "cpu", "memory", "name", "pipeline", orders[at].meaning))
	if len(list) == 0 {
		p.row("", terminal.Plain, "-")
	}
	for _, pr := range list[:min(most, len(list))] {
		cpu, style := "-", terminal.Plain
		if pr.CPU != nil {
			cpu = fmt.Sprintf("%.1f %%", float64(*pr.CPU)/10)
		}
		if pr.Pipeline != "" {
			style = terminal.Cyan
		}
		p.row("", style, fmt.Sprintf("%7d %7s %9s  %-16s %s", pr.PID, cpu, size(&pr.Resident), terminal.Truncate(pr.Name, 16, "…"), pr.Pipeline))
	}
}

func orZero(v *int64) int64 {
	if v == nil {
		return -1
	}
	return *v
}

// trends keeps the values of the last samples, NaN where one is unknown.
type trends struct {
	order  []string
	values map[string][]float64
	unit   map[string]string
	taken  int
}

// maxTrend bounds the samples of a trend: no screen is wider.
const maxTrend = 400

// overviewTrends are the values whose history is on the overview.
var overviewTrends = []string{"cpu load", "gpu load", "memory used", "power", "hottest"}

// add adds a sample.
func (t *trends) add(s *monitor.Sample) {
	values := s.Values()
	if hot := s.Hottest(); hot != nil {
		values = append(values, monitor.Value{Name: "hottest", Unit: "°C", Value: float64(*hot.Temp) / 1000})
	}
	if power := s.ModulePower(); power != nil {
		values = append(values, monitor.Value{Name: "power", Unit: "mW", Value: float64(*power)})
	}
	if t.values == nil {
		t.values, t.unit = map[string][]float64{}, map[string]string{}
	}
	for _, v := range values {
		if _, known := t.values[v.Name]; !known {
			t.order, t.unit[v.Name] = append(t.order, v.Name), v.Unit
			t.values[v.Name] = slices.Repeat([]float64{math.NaN()}, min(t.taken, maxTrend))
		}
		t.values[v.Name] = append(t.values[v.Name], v.Value)
	}
	t.taken++
	for name, list := range t.values {
		if len(list) < min(t.taken, maxTrend+1) {
			list = append(list, math.NaN())
		}
		t.values[name] = list[max(0, len(list)-maxTrend):]
	}
}

// history draws a line for each trend: name, curve and latest value.
func (f frame) history(p *page, few bool) {
	names := f.trends.order
	if few {
		names = overviewTrends
	}
	label := "history"
	for _, name := range names {
		list, known := f.trends.values[name]
		if !known {
			continue
		}
		const beside = 20 + 1 + 26
		room := max(p.width-labelWidth-beside, 8)
		shown := list[max(0, len(list)-room):]
		low, high := bounds(shown, f.trends.unit[name])
		text := "-"
		if last := list[len(list)-1]; !math.IsNaN(last) {
			text = decimal(last) + " " + f.trends.unit[name]
		}
		p.row(label, terminal.Plain, fmt.Sprintf("%-20s %s %s", terminal.Truncate(name, 20, "…"), pad(sparkline(shown, low, high), room),
			fmt.Sprintf("%s (%s to %s)", strings.TrimSpace(text), decimal(low), decimal(high))))
		label = ""
	}
	if len(names) > 0 && label != "" && !few {
		p.row(label, terminal.Plain, "-")
	}
}

// bounds are the ends of a curve's scale: 0 to 100 for percentages, else of the values.
func bounds(values []float64, unit string) (low, high float64) {
	if unit == "%" {
		return 0, 100
	}
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		return 0, 0
	}
	return low, high
}

// sparkline draws values as blocks; an unknown value is a gap.
func sparkline(values []float64, low, high float64) string {
	blocks := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case high <= low:
			b.WriteRune(blocks[0])
		default:
			at := int((v - low) / (high - low) * float64(len(blocks)-1))
			b.WriteRune(blocks[max(min(at, len(blocks)-1), 0)])
		}
	}
	return b.String()
}

func orUnknown(items []string) []string {
	if len(items) == 0 {
		return []string{"-"}
	}
	return items
}

// computeShare returns the part of the whole in permille, nil if it is unknown.
func computeShare(part, whole *int64) *int64 {
	if part == nil || whole == nil || *whole <= 0 {
		return nil
	}
	return new(*part * 1000 / *whole)
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

func loadStyle(permille *int64) terminal.Style {
	switch {
	case permille == nil || *permille < 10:
		return terminal.Plain
	case *permille >= 950:
		return terminal.Red
	case *permille >= 700:
		return terminal.Yellow
	}
	return terminal.Green
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
