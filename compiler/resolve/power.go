package resolve

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/schema/units"
)

// unlimited is nvpmodel's "no cap" on a CLOCK.
const unlimited = "-1"

func (r *resolver) resolvePower() {
	c := &r.c.Power
	if !c.IsSet() {
		return
	}
	p := &plan.Power{Table: "stock", Default: c.Default.Text}
	if c.Default.IsSet() {
		r.origins[c.Default.ID()] = c.Default.Pos()
	}
	modes := c.Modes.Sorted()
	switch {
	case r.t.IsOwn():
		p.Table, p.Modes, modes = plan.PowerHeld, r.heldModes(modes), nil
	case len(modes) > 0:
		p.Table = c.Table.Or("extend")
	}
	for i, m := range modes {
		from, _ := r.t.Stock.Mode(m.From.Text)
		p.Modes = append(p.Modes, plan.PowerMode{
			ID: len(r.t.Stock.Modes) + i, Name: m.Key(), From: from.Name, Params: r.modeParams(m, from),
		})
		r.origins[m.ID()] = m.KeyPos()
	}
	for i := range p.Modes {
		p.Modes[i].Reboot = findRebootModes(p.Modes[i], p.Modes, r.t.Stock)
	}
	if a := &c.Adaptive; a.IsSet() {
		p.Adaptive = &plan.Adaptive{
			UpLoad: a.Up.Load.Value, UpFor: r.nanoseconds(a.Up.For, 0),
			DownLoad: a.Down.Load.Value, DownFor: r.nanoseconds(a.Down.For, 0),
			Ladder: config.Texts(a.Ladder),
			Dwell:  r.nanoseconds(a.Dwell, 0), Cool: r.nanoseconds(a.Cool, 0),
			Budget: a.Budget.Value,
		}
		r.origins[a.ID()] = a.Pos()
	}
	r.plan.Power = p
}

// modeParams derives the parameters of a mode from a stock one, in the order in which
// nvpmodel must write them.
func (r *resolver) modeParams(m *config.PowerMode, from board.Mode) []plan.PowerParam {
	online := OnlineCores(from)
	if m.CPU.Online.IsSet() {
		online = config.Cores(m.CPU.Online)
	}
	clocks := newClocks(r.t.Board, r.t.Stock, from)
	cpuMin, cpuMax := r.clock(m.CPU.Min, 1000), r.clock(m.CPU.Max, 1000)
	gpuMin, gpuMax, emcMax := r.clock(m.GPU.Min, 1), r.clock(m.GPU.Max, 1), r.clock(m.EMC.Max, 1)

	var out []plan.PowerParam
	cpuDone := false
	for _, s := range from.Settings {
		param, arg, value := s[0], s[1], s[2]
		switch {
		case param == "CPU_ONLINE":
			core, err := strconv.Atoi(strings.TrimPrefix(arg, "CORE_"))
			value = "0"
			if err == nil && slices.Contains(online, core) {
				value = "1"
			}
		case slices.Contains(clocks.labels, param):
			if !cpuDone {
				out = append(out, clocks.lines(online, cpuMin, cpuMax)...)
				cpuDone = true
			}
			continue
		case param == "GPU" && arg == "MIN_FREQ":
			value = cmp.Or(gpuMin, value)
		case param == "GPU" && arg == "MAX_FREQ":
			value = cmp.Or(gpuMax, value)
		case param == "EMC" && arg == "MAX_FREQ":
			if nodes := r.t.Board.EMCNodesOf(r.t.Release.Line()); value == "0" && nodes.NoCap != "" {
				value = nodes.NoCap // the stock file may be that of another L4T
			}
			value = cmp.Or(emcMax, value)
		case param == "TPC_POWER_GATING" && arg == "TPC_PG_MASK":
			if m.GPU.Mask.IsSet() {
				value = strconv.Itoa(m.GPU.Mask.Value)
			}
		}
		out = append(out, plan.PowerParam{Param: param, Arg: arg, Value: value})
	}
	return out
}

// clock writes a limit in units of hz; "" when there is none.
func (r *resolver) clock(limit config.Frequency, hz int64) string {
	if limit.Text == "unlimited" {
		return unlimited
	}
	v, ok := r.hertz(limit)
	if !ok {
		return ""
	}
	if v%hz != 0 {
		if len(r.t.Board.CPUkHz) == 0 {
			r.reportQuantity(limit, units.ErrInexact)
		} // else a rule reports the unsupported frequency
		return ""
	}
	return strconv.FormatInt(v/hz, 10)
}

// OnlineCores lists the cores that a stock mode keeps on; nil when its settings
// are not known.
func OnlineCores(m board.Mode) []int {
	var out []int
	for _, s := range m.Settings {
		if s[0] != "CPU_ONLINE" || s[2] != "1" {
			continue
		}
		if core, err := strconv.Atoi(strings.TrimPrefix(s[1], "CORE_")); err == nil {
			out = append(out, core)
		}
	}
	return out
}

// clocks are the labels of a stock table's CPU clocks. A label stands for one
// core in the tables of R36 with Super modes, and for a cluster in older ones.
type clocks struct {
	labels []string         // in the order of the table
	cores  map[string][]int // that a label stands for
	values map[string][2]string
}

func newClocks(b *board.Board, t board.Table, from board.Mode) clocks {
	c := clocks{cores: map[string][]int{}, values: map[string][2]string{}}
	addLabel := func(label string) {
		// TX2 and Nano have labels without a number: CPU_A57, CPU_DENVER.
		if !slices.Contains(c.labels, label) && (cpuClock(label) || len(b.CoresOf(t, label)) > 0) {
			c.labels = append(c.labels, label)
		}
	}
	for _, p := range t.Params {
		addLabel(p.Name)
	}
	for _, m := range t.Modes {
		for _, s := range m.Settings {
			addLabel(s[0])
		}
	}
	slices.SortStableFunc(c.labels, func(a, b string) int { return labelIndex(a) - labelIndex(b) })
	for i, label := range c.labels {
		if cores := b.CoresOf(t, label); len(cores) > 0 {
			c.cores[label] = cores
		} else if len(c.labels) == b.Cores {
			c.cores[label] = []int{i}
		} else if i < len(b.Policies) {
			c.cores[label] = PolicyCores(b.Policies[i])
		}
	}
	for _, s := range from.Settings {
		v := c.values[s[0]]
		switch s[1] {
		case "MIN_FREQ":
			v[0] = s[2]
		case "MAX_FREQ":
			v[1] = s[2]
		}
		c.values[s[0]] = v
	}
	return c
}

func cpuClock(label string) bool {
	return strings.HasPrefix(label, "CPU_") && label != "CPU_ONLINE" && labelIndex(label) >= 0
}

func labelIndex(label string) int {
	n, err := strconv.Atoi(label[strings.LastIndexByte(label, '_')+1:])
	if err != nil {
		return -1
	}
	return n
}

// lines writes the clocks of the labels that have a core online: nvpmodel
// abandons a mode half way when it meets a clock whose cores are all off.
func (c clocks) lines(online []int, low, high string) []plan.PowerParam {
	var out []plan.PowerParam
	// A label that the stock mode leaves out, because its cores are off there,
	// takes the limits of the first one.
	var first [2]string
	for _, label := range c.labels {
		if v, ok := c.values[label]; ok {
			first = v
			break
		}
	}
	for _, label := range c.labels {
		if !slices.ContainsFunc(c.cores[label], func(core int) bool { return slices.Contains(online, core) }) {
			continue
		}
		v, ok := c.values[label]
		if !ok {
			v = first
		}
		if s := cmp.Or(low, v[0]); s != "" {
			out = append(out, plan.PowerParam{Param: label, Arg: "MIN_FREQ", Value: s})
		}
		if s := cmp.Or(high, v[1]); s != "" {
			out = append(out, plan.PowerParam{Param: label, Arg: "MAX_FREQ", Value: s})
		}
	}
	return out
}

// findRebootModes lists the modes between which and m the GPU's gating masks differ.
func findRebootModes(m plan.PowerMode, own []plan.PowerMode, stock board.Table) []string {
	mine := ownMasks(m)
	var out []string
	for _, s := range stock.Modes {
		if masks(s.Settings) != mine {
			out = append(out, s.Name)
		}
	}
	for _, o := range own {
		if o.Name != m.Name && ownMasks(o) != mine {
			out = append(out, o.Name)
		}
	}
	return out
}

// masks returns the gating masks of a mode's parameters.
func masks(settings [][3]string) string {
	var b strings.Builder
	for _, s := range settings {
		if arg, value := s[1], s[2]; strings.HasSuffix(arg, "_PG_MASK") {
			b.WriteString(arg + "=" + value + ";")
		}
	}
	return b.String()
}

func ownMasks(m plan.PowerMode) string {
	settings := make([][3]string, len(m.Params))
	for i, p := range m.Params {
		settings[i] = [3]string{p.Param, p.Arg, p.Value}
	}
	return masks(settings)
}

// PolicyCores are the cores that share a clock. A test of the facts reads every
// list of them.
func PolicyCores(p board.Policy) []int {
	cores, _ := cpulist.Parse(p.CPUs)
	return cores
}
