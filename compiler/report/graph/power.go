package graph

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/schema/units"
)

// clocks are the caps of a mode, in Hz; 0 where it sets none, -1 for no cap.
type clocks struct {
	name          string
	own           bool // of the configuration, not of the BSP
	cores         int
	cpu, gpu, emc int64
}

func customClocks(m plan.PowerMode) clocks {
	c := clocks{name: m.Name, own: true}
	for _, p := range m.Params {
		c.apply(p.Param, p.Arg, p.Value)
	}
	return c
}

func (c *clocks) apply(param, arg, value string) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return
	}
	switch {
	case param == "CPU_ONLINE" && n == 1:
		c.cores++
	case arg != "MAX_FREQ":
	case strings.HasPrefix(param, "CPU"):
		if n > 0 {
			n *= 1000 // nvpmodel writes the CPU's clocks in kHz
		}
		c.cpu = n
	case strings.HasPrefix(param, "GPU"):
		c.gpu = n
	case param == "EMC":
		c.emc = n
	}
}

// Power draws the caps of the modes that a configuration adds, beside those of
// the board's stock modes; was, when not nil, is what a mode had before.
func Power(p *plan.Plan, was *plan.Plan) *Drawing {
	d := &Drawing{Title: "Power modes"}
	if p.Power == nil || len(p.Power.Modes) == 0 {
		return d
	}
	b, ok := board.Lookup(p.Board)
	if !ok {
		return d
	}
	var modes []clocks
	if table, _, err := b.StockTable(p.Release); err == nil && p.Power.Table != "complete" {
		for _, m := range table.Modes {
			c := clocks{name: m.Name}
			for _, s := range m.Settings {
				c.apply(s[0], s[1], s[2])
			}
			if c.cpu != 0 || c.gpu != 0 {
				modes = append(modes, c)
			}
		}
	}
	before := map[string]clocks{}
	if was != nil && was.Power != nil {
		for _, m := range was.Power.Modes {
			before[m.Name] = customClocks(m)
		}
	}
	for _, m := range p.Power.Modes {
		modes = append(modes, customClocks(m))
	}
	d.modes(modes, before, p.Power.Default)
	return d
}

func (d *Drawing) modes(modes []clocks, before map[string]clocks, chosen string) {
	const label, width, row = 170.0, 140.0, 38.0
	columns := []struct {
		name, class string
		of          func(clocks) int64
	}{
		{"CPU", "bar", func(c clocks) int64 { return c.cpu }},
		{"GPU", "bar2", func(c clocks) int64 { return c.gpu }},
		{"memory", "bar3", func(c clocks) int64 { return c.emc }},
	}
	top := margin + 18
	for i, col := range columns {
		x := margin + label + float64(i)*(width+96)
		d.text("soft small", "start", x, margin+10, col.name+", at most")
		most := int64(1)
		for _, m := range modes {
			most = max(most, col.of(m))
		}
		for _, m := range before {
			most = max(most, col.of(m))
		}
		for r, m := range modes {
			y := top + float64(r)*row
			hz := col.of(m)
			d.rect("track", x, y+6, width, 12, 3, "")
			if hz != 0 {
				d.rect(class(m, col.class), x, y+6, fraction(hz, most)*width, 12, 3, m.name+": "+frequency(hz))
			}
			d.text("small", "start", x+width+6, y+16, frequency(hz))
			if old, ok := before[m.name]; ok && m.own && col.of(old) != hz {
				d.rect("past", x, y+20, fraction(col.of(old), most)*width, 4, 2, "was "+frequency(col.of(old)))
				d.text("soft small", "start", x+width+6, y+27, "was "+frequency(col.of(old)))
			}
		}
	}
	for r, m := range modes {
		name := short(m.name, 20)
		if m.name == chosen {
			name += " •"
		}
		y := top + float64(r)*row
		weight := "soft"
		if m.own {
			weight = "strong"
		}
		d.text(weight, "start", margin, y+16, name)
		if m.cores > 0 {
			d.text("soft small", "end", margin+label-10, y+16, coresOnline(m.cores))
		}
	}
	d.extendTo(margin+label+3*(width+96), top+float64(len(modes))*row)
}

func coresOnline(n int) string {
	if n == 1 {
		return "1 core"
	}
	return fmt.Sprintf("%d cores", n)
}

func class(m clocks, own string) string {
	if m.own {
		return own
	}
	return "past"
}

func fraction(hz, most int64) float64 {
	if hz < 0 {
		return 1
	}
	return min(float64(hz)/float64(most), 1)
}

func frequency(hz int64) string {
	switch {
	case hz == 0:
		return "as it is"
	case hz < 0:
		return "no cap"
	}
	return units.RoundFrequency(hz)
}
