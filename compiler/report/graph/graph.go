package graph

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/compiler/check/budget"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/knob"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Unit is a systemd unit and its dependencies.
type Unit struct {
	Name     string
	Slice    string
	CPUs     string
	After    []string
	Wants    []string
	Requires []string
}

// Pipelines draws every pipeline of a plan.
func Pipelines(p *plan.Plan) *Drawing {
	d := &Drawing{Title: "Pipelines"}
	var nodes []node
	var edges []edge
	for _, name := range slices.Sorted(maps.Keys(p.Pipelines)) {
		pipeline(name, p.Pipelines[name], &nodes, &edges)
	}
	d.drawLayered(nodes, edges)
	return d
}

func pipeline(name string, p plan.Pipeline, nodes *[]node, edges *[]edge) {
	at := map[string]int{}
	add := func(id, class, title string, lines ...string) int {
		for i, l := range lines {
			lines[i] = short(l, 34)
		}
		*nodes = append(*nodes, node{id: id, lines: lines, class: class, title: title})
		at[id] = len(*nodes) - 1
		return len(*nodes) - 1
	}
	about := []string{p.Source.Kind, p.Source.Format}
	if p.Source.Width > 0 {
		about = append(about, fmt.Sprintf("%d×%d", p.Source.Width, p.Source.Height))
	}
	if p.Source.FPSNum > 0 && p.Source.FPSDen > 0 {
		about = append(about, strconv.FormatFloat(float64(p.Source.FPSNum)/float64(p.Source.FPSDen), 'f', -1, 64)+" fps")
	}
	if out := registry.SourceOutput(&p.Source); out.Data == registry.Tensors {
		about = append(about, out.Tensor().String())
	}
	first := name
	if p.CPUs != "" {
		first += " (" + cores(p.CPUs) + ")"
	}
	add("source", "good", p.Source.Path, first, strings.Join(about, ", "))
	used := map[string]bool{}
	for i := range p.Stages {
		s := &p.Stages[i]
		class, about := "box", registry.Describe(s)
		if len(registry.Models(s)) > 0 {
			class = "accent"
		}
		lines := []string{s.ID, about.Text}
		if more := describeWorker(s); more != "" {
			lines = append(lines, more)
		}
		if tensor := registry.DescribeOutput(&p, i); tensor != "" {
			lines = append(lines, tensor)
		}
		n := add(s.ID, class, about.File, lines...)
		if from, ok := at[s.Input]; ok && from != n {
			*edges = append(*edges, edge{from, n, "edge"})
		}
		used[s.Input] = true
	}
	about = []string{p.Sink.Kind}
	if p.SLO != nil && p.SLO.LatencyP95 > 0 {
		about = append(about, "p95 ≤ "+time.Duration(p.SLO.LatencyP95).String())
	}
	if p.SLO != nil && p.SLO.MinFPS > 0 {
		about = append(about, fmt.Sprintf("≥ %d fps", p.SLO.MinFPS))
	}
	n := add("\x00sink", "good", p.Sink.Path, "results", strings.Join(about, ", "), describeNeeds(p))
	for _, s := range p.Stages {
		if !used[s.ID] {
			*edges = append(*edges, edge{at[s.ID], n, "edge"})
		}
	}
}

// describeWorker describes the device, instances, batches and time of a stage; "" for one
// CPU worker of unknown time.
func describeWorker(s *plan.PipelineStage) string {
	var all []string
	switch {
	case s.Device == registry.DeviceAuto:
		all = append(all, "on the CPU or the GPU")
	case s.Device != "":
		all = append(all, "on the "+strings.ToUpper(s.Device))
	}
	if s.Instances > 1 {
		all = append(all, fmt.Sprintf("%d×", s.Instances))
	}
	if s.Model != nil && s.Model.Ensemble != nil {
		all = append(all, fmt.Sprintf("%s of %d", s.Model.Ensemble.Vote, len(registry.Models(s))))
	}
	if s.Model != nil && s.Model.Batch != nil {
		batch := "batch " + strings.Trim(fmt.Sprint(s.Model.Batch.Buckets), "[]")
		if s.Model.Batch.Pad {
			batch += " padded"
		}
		all = append(all, batch)
	}
	if s.Time > 0 {
		all = append(all, "≤ "+time.Duration(s.Time).String())
	}
	return strings.Join(all, ", ")
}

// describeNeeds describes a pipeline's memory and latency as far as the plan alone
// determines them: models are not opened here.
func describeNeeds(p plan.Pipeline) string {
	b := budget.Compute(p, nil)
	text := fmt.Sprintf("%d frames, ≥ %d MiB", b.Frames, b.Pool>>20)
	switch l := budget.ComputeLatency(p, true); {
	case len(l.Missing) == 0:
		text += ", ≤ " + l.Worst.String()
	case l.Own > 0:
		text += ", latency ≥ " + l.Own.String()
	}
	return text
}

// cores writes a list of processors.
func cores(list string) string {
	if strings.ContainsAny(list, ",- ") {
		return "cores " + list
	}
	return "core " + list
}

// Units draws which units start after which. Solid lines are for those that a
// unit requires or wants, dashed ones for order alone; units of others have
// dashed boxes.
func Units(units []Unit) *Drawing {
	d := &Drawing{Title: "Order of the units"}
	var nodes []node
	var edges []edge
	at := map[string]int{}
	for _, u := range units {
		detail := []string{}
		if u.Slice != "" {
			detail = append(detail, u.Slice)
		}
		if u.CPUs != "" {
			detail = append(detail, cores(u.CPUs))
		}
		lines := []string{short(u.Name, 34)}
		if len(detail) > 0 {
			lines = append(lines, short(strings.Join(detail, ", "), 34))
		}
		at[u.Name] = len(nodes)
		nodes = append(nodes, node{id: u.Name, lines: lines, class: "accent", title: u.Name})
	}
	for _, u := range units {
		others := map[string]string{}
		for _, o := range u.After {
			others[o] = "weak"
		}
		for _, o := range slices.Concat(u.Wants, u.Requires) {
			others[o] = "edge"
		}
		if u.Slice != "" {
			if _, ok := at[u.Slice]; ok {
				others[u.Slice] = "weak"
			}
		}
		for _, o := range slices.Sorted(maps.Keys(others)) {
			if o == u.Name {
				continue
			}
			if _, ok := at[o]; !ok {
				at[o] = len(nodes)
				nodes = append(nodes, node{id: o, lines: []string{short(o, 34)}, class: "outside", title: o})
			}
			edges = append(edges, edge{at[o], at[u.Name], others[o]})
		}
	}
	d.drawLayered(nodes, edges)
	return d
}

// Cores draws who may run on which core: lanes for the scheduler, interrupts,
// slices, units and pipelines, below the cores grouped by the clock they share.
func Cores(p *plan.Plan, units []Unit) *Drawing {
	d := &Drawing{Title: "Use of the cores"}
	b, ok := board.Lookup(p.Board)
	if !ok || b.Cores == 0 {
		return d
	}
	const label, cell, laneHeight = 170.0, 46.0, 26.0
	x := make([]float64, b.Cores)
	at := margin + label
	ends := map[int]bool{}
	for _, pol := range b.Policies {
		if cpus := parseCPUs(pol.CPUs, b.Cores); len(cpus) > 0 {
			ends[cpus[len(cpus)-1]] = true
		}
	}
	for i := range b.Cores {
		x[i] = at
		at += cell
		if ends[i] {
			at += 10
		}
	}
	isolated, lanes := coreLanes(p, units, b.Cores)
	y := margin
	for i := range b.Cores {
		class := "box"
		if isolated[i] {
			class = "accent"
		}
		d.rect(class, x[i]+2, y, cell-4, 30, 5, "")
		d.text("strong", "middle", x[i]+cell/2, y+19, strconv.Itoa(i))
	}
	d.text("soft", "start", margin, y+19, "core")
	y += 40
	for _, l := range lanes {
		d.text("small", "start", margin, y+16, short(l.name, 24))
		for i := range b.Cores {
			d.rect("track", x[i]+2, y+3, cell-4, laneHeight-8, 3, "")
		}
		for _, c := range l.cpus {
			d.rect(l.class, x[c]+2, y+3, cell-4, laneHeight-8, 3, l.name)
		}
		y += laneHeight
	}
	d.extendTo(at+margin, y+margin)
	return d
}

// lane is a row of the cores that something may run on.
type lane struct {
	name, class string
	cpus        []int
}

// coreLanes returns which of the cores are isolated, and a lane for each of their users.
func coreLanes(p *plan.Plan, units []Unit, cores int) (isolated map[int]bool, lanes []lane) {
	isolated = map[int]bool{}
	irqs := ""
	for _, s := range p.Settings {
		switch s.ID {
		case "kernel.args.isolcpus":
			for _, c := range parseCPUs(s.Want, cores) {
				isolated[c] = true
			}
		case "irq.default":
			irqs = s.Want
		}
	}
	var rest, kept []int
	for i := range cores {
		if isolated[i] {
			kept = append(kept, i)
		} else {
			rest = append(rest, i)
		}
	}
	lanes = append(lanes, lane{"everything else", "past", rest})
	if irqs != "" {
		lanes = append(lanes, lane{"interrupts", "bar3", parseCPUMask(irqs, cores)})
	}
	if len(kept) > 0 {
		lanes = append(lanes, lane{"isolated", "area2", kept})
	}
	for _, u := range units {
		if u.CPUs != "" {
			lanes = append(lanes, lane{u.Name, "bar", parseCPUs(u.CPUs, cores)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Pipelines)) {
		if c := p.Pipelines[name].CPUs; c != "" {
			lanes = append(lanes, lane{"pipeline " + name, "bar2", parseCPUs(c, cores)})
		}
	}
	return isolated, lanes
}

// parseCPUs parses a CPU list and drops the CPUs that the board does not have.
func parseCPUs(text string, cores int) []int {
	var out []int
	for part := range strings.SplitSeq(text, ",") {
		if cpus, err := cpulist.Parse(part); err == nil { // isolcpus may also contain flags
			out = append(out, cpus...)
		}
	}
	slices.Sort(out)
	return below(slices.Compact(out), cores)
}

// parseCPUMask parses a CPU mask and drops the CPUs that the board does not have.
func parseCPUMask(text string, cores int) []int {
	cpus, err := knob.ParseCPUMask(text)
	if err != nil {
		return nil
	}
	return below(cpus, cores)
}

func below(cpus []int, cores int) []int {
	return slices.DeleteFunc(cpus, func(c int) bool { return c >= cores })
}
