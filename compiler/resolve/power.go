package resolve

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/plan"
)

// unlimited is nvpmodel's "no cap" on a CLOCK.
const unlimited = "-1"

func (r *resolver) power() {
	n := r.n.Get("power")
	if n == nil {
		return
	}
	p := &plan.Power{Table: "stock", Default: text(n.Get("default"))}
	if d := n.Get("default"); d != nil {
		r.origins["power.default"] = d.Pos
	}
	modes := sortedFields(n.Get("modes"))
	if len(modes) > 0 {
		p.Table = textOr(n.Get("table"), "extend")
	}
	for i, f := range modes {
		from, _ := r.t.Stock.Mode(text(f.Value.Get("from")))
		p.Modes = append(p.Modes, plan.PowerMode{
			ID: len(r.t.Stock.Modes) + i, Name: f.Name, From: from.Name, Params: r.mode(f, from),
		})
		r.origins["power.modes."+f.Name] = f.Pos
	}
	for i := range p.Modes {
		p.Modes[i].Reboot = rebootsFrom(p.Modes[i], p.Modes, r.t.Stock)
	}
	if a := n.Get("adaptive"); a != nil {
		p.Adaptive = &plan.Adaptive{
			UpLoad:   int(integer(a.At("up", "load"), 0)),
			UpFor:    r.duration("power.adaptive.up.for", a.At("up", "for"), 0),
			DownLoad: int(integer(a.At("down", "load"), 0)),
			DownFor:  r.duration("power.adaptive.down.for", a.At("down", "for"), 0),
			Ladder:   texts(a.Get("ladder")),
			Dwell:    r.duration("power.adaptive.dwell", a.Get("dwell"), 0),
			Cool:     r.duration("power.adaptive.cool", a.Get("cool"), 0),
			Budget:   int(integer(a.Get("budget"), 0)),
		}
		r.origins["power.adaptive"] = a.Pos
	}
	r.plan.Power = p
}

// mode derives the parameters of a mode from a stock one, in the order in which
// nvpmodel must write them.
func (r *resolver) mode(f load.Field, from board.Mode) []plan.PowerParam {
	path := "power.modes." + f.Name
	cpu, gpu, emc := f.Value.Get("cpu"), f.Value.Get("gpu"), f.Value.Get("emc")
	online := OnlineCores(from)
	if list := cpu.Get("online"); list != nil {
		online = Cores(list)
	}
	clocks := newClocks(r.t.Board, r.t.Stock, from)
	cpuMin, cpuMax := r.clock(path+".cpu.min", cpu.Get("min"), 1000), r.clock(path+".cpu.max", cpu.Get("max"), 1000)
	gpuMin, gpuMax := r.clock(path+".gpu.min", gpu.Get("min"), 1), r.clock(path+".gpu.max", gpu.Get("max"), 1)
	emcMax := r.clock(path+".emc.max", emc.Get("max"), 1)

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
		case clocks.is(param):
			if !cpuDone {
				out = append(out, clocks.lines(online, cpuMin, cpuMax)...)
				cpuDone = true
			}
			continue
		case param == "GPU" && arg == "MIN_FREQ":
			value = or(gpuMin, value)
		case param == "GPU" && arg == "MAX_FREQ":
			value = or(gpuMax, value)
		case param == "EMC" && arg == "MAX_FREQ":
			value = or(emcMax, value)
		case param == "TPC_POWER_GATING" && arg == "TPC_PG_MASK":
			if mask := gpu.Get("mask"); mask != nil {
				value = mask.Text
			}
		}
		out = append(out, plan.PowerParam{Param: param, Arg: arg, Value: value})
	}
	return out
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// clock writes a limit in units of hz; "" when there is none.
func (r *resolver) clock(path string, n *load.Node, hz int64) string {
	if n == nil {
		return ""
	}
	if n.Kind == load.String && n.Text == "unlimited" {
		return unlimited
	}
	v, ok := r.frequency(path, n)
	if !ok {
		return ""
	}
	if v%hz != 0 {
		if len(r.t.Board.CPUkHz) == 0 {
			r.inexact(path, n, ErrInexact)
		} // else the rules say that it is no step
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

// clocks knows the labels of a stock table's CPU clocks. A label stands for one
// core in the tables of R36 with Super modes, and for a cluster in older ones.
type clocks struct {
	labels []string         // in the order of the table
	cores  map[string][]int // that a label stands for
	values map[string][2]string
}

func newClocks(b *board.Board, t board.Table, from board.Mode) clocks {
	c := clocks{cores: map[string][]int{}, values: map[string][2]string{}}
	see := func(label string) {
		// TX2 and Nano have labels without a number: CPU_A57, CPU_DENVER.
		if (cpuClock(label) || len(b.CoresOf(t, label)) > 0) && !slices.Contains(c.labels, label) {
			c.labels = append(c.labels, label)
		}
	}
	for _, p := range t.Params {
		see(p.Name)
	}
	for _, m := range t.Modes {
		for _, s := range m.Settings {
			see(s[0])
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

func (c clocks) is(param string) bool { return slices.Contains(c.labels, param) }

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
		if s := or(low, v[0]); s != "" {
			out = append(out, plan.PowerParam{Param: label, Arg: "MIN_FREQ", Value: s})
		}
		if s := or(high, v[1]); s != "" {
			out = append(out, plan.PowerParam{Param: label, Arg: "MAX_FREQ", Value: s})
		}
	}
	return out
}

// rebootsFrom lists the modes between which and m the GPU's gating masks differ.
func rebootsFrom(m plan.PowerMode, own []plan.PowerMode, stock board.Table) []string {
	mine := masks(m.Params)
	var out []string
	for _, s := range stock.Modes {
		var params []plan.PowerParam
		for _, p := range s.Settings {
			params = append(params, plan.PowerParam{Param: p[0], Arg: p[1], Value: p[2]})
		}
		if masks(params) != mine {
			out = append(out, s.Name)
		}
	}
	for _, o := range own {
		if o.Name != m.Name && masks(o.Params) != mine {
			out = append(out, o.Name)
		}
	}
	return out
}

func masks(params []plan.PowerParam) string {
	var b strings.Builder
	for _, p := range params {
		if strings.HasSuffix(p.Arg, "_PG_MASK") {
			b.WriteString(p.Arg + "=" + p.Value + ";")
		}
	}
	return b.String()
}

// PolicyCores are the cores that share a clock. A test of the facts reads every
// list of them.
func PolicyCores(p board.Policy) []int {
	cores, _ := cpulist.Parse(p.CPUs)
	return cores
}
