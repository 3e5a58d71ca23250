package resolve

import (
	"fmt"
	"path"
	"strconv"

	"slices"

	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/schema/formats/boardfile"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/plan"
)

// A board of one's own has no nvpmodel. Its power modes are settings that yoctuned holds while
// the mode is in force. A limit that one mode sets and another leaves out is the hardware's in
// the other: otherwise the device would keep the limit of the mode before.

// heldModes resolves the modes of a board of one's own.
func (r *resolver) heldModes(modes []*config.PowerMode) []plan.PowerMode {
	touched := r.touchedBy(modes)
	var out []plan.PowerMode
	for i, m := range modes {
		h := &heldMode{r: r, mode: m}
		h.online(touched.online)
		h.cpu(touched)
		h.devfreq(touched.devfreq)
		h.thermal(touched.thermal)
		out = append(out, plan.PowerMode{ID: i, Name: m.Key(), Params: []plan.PowerParam{}, Settings: h.settings})
		r.origins[m.ID()] = m.KeyPos()
	}
	return out
}

// touched is what at least one mode sets.
type touched struct {
	online, cpuMin, cpuMax bool
	devfreq                map[string][2]bool // by device: its lower and its upper limit
	thermal                map[string]bool    // by zone type
}

func (r *resolver) touchedBy(modes []*config.PowerMode) touched {
	t := touched{devfreq: map[string][2]bool{}, thermal: map[string]bool{}}
	for _, m := range modes {
		t.online = t.online || m.CPU.Online.IsSet()
		t.cpuMin, t.cpuMax = t.cpuMin || m.CPU.Min.IsSet(), t.cpuMax || m.CPU.Max.IsSet()
		for _, limits := range m.Devfreq.Entries {
			for _, d := range r.devicesOf(limits.Key()) {
				was := t.devfreq[d.Name]
				t.devfreq[d.Name] = [2]bool{was[0] || limits.Min.IsSet(), was[1] || limits.Max.IsSet()}
			}
		}
		for _, zone := range m.Thermal.Entries {
			t.thermal[zone.Key()] = true
		}
	}
	return t
}

// devicesOf returns the devfreq devices of the board that a glob matches.
func (r *resolver) devicesOf(glob string) []boardfile.Devfreq {
	var out []boardfile.Devfreq
	for _, d := range r.t.File.Devfreq {
		if ok, err := path.Match(glob, d.Name); ok && err == nil {
			out = append(out, d)
		}
	}
	return out
}

// heldMode collects the settings of one mode.
type heldMode struct {
	r        *resolver
	mode     *config.PowerMode
	settings []plan.Setting
}

// add adds a setting of a part of the mode; by is where the mode sets it, or the mode itself.
func (h *heldMode) add(by config.Part, name string, sel plan.Select, want int64) {
	s := plan.Setting{
		ID: h.mode.ID() + "." + name, Domain: plan.DomainPower, Type: plan.TypeInt, Want: strconv.FormatInt(want, 10), Select: sel,
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
	h.settings = append(h.settings, s)
	if by.Where().IsSet() {
		h.r.origins[s.ID] = by.Where().Pos()
	} else {
		h.r.origins[s.ID] = h.mode.KeyPos()
	}
}

// online switches cores. Core 0 is always on.
func (h *heldMode) online(touched bool) {
	if !touched {
		return
	}
	list := h.mode.CPU.Online
	present, _ := cpulist.Parse(h.r.t.File.CPUs.Present) // checked when the file was read
	for _, core := range present {
		if core == 0 {
			continue
		}
		on := int64(0)
		if !list.IsSet() || slices.Contains(config.Cores(list), core) {
			on = 1
		}
		name := fmt.Sprintf("cpu%d", core)
		h.add(list, "cpu.online."+name, plan.Select{Class: "cpu", Name: name, Attr: "online"}, on)
	}
}

// cpu limits the clock of each policy. Clusters have different ranges, and a limit outside of
// one is its end.
func (h *heldMode) cpu(t touched) {
	for _, p := range h.r.t.File.CPUs.Policies {
		cores, _ := cpulist.Parse(p.CPUs)
		if h.mode.CPU.Online.IsSet() && !slices.ContainsFunc(cores, func(c int) bool { return c == 0 || slices.Contains(config.Cores(h.mode.CPU.Online), c) }) {
			continue // a cluster that is off has no cpufreq policy
		}
		name := fmt.Sprintf("policy%d", cores[0])
		limit := func(touched bool, field config.Frequency, attr string, hardware int64) {
			if touched && hardware > 0 {
				want := h.limit(field, hardware, p.MinHz, p.MaxHz)
				h.add(field, "cpu."+name+"."+attr, plan.Select{Class: "cpufreq", Name: name, Attr: "scaling_" + attr + "_freq"}, want/1000)
			}
		}
		limit(t.cpuMin, h.mode.CPU.Min, "min", p.MinHz)
		limit(t.cpuMax, config.Frequency(h.mode.CPU.Max), "max", p.MaxHz)
	}
}

// limit is the frequency of a field within a range, or the hardware's where the mode has none.
func (h *heldMode) limit(field config.Frequency, hardware, low, high int64) int64 {
	if !field.IsSet() || field.Text == "unlimited" {
		return hardware
	}
	hz, ok := h.r.hertz(field)
	if !ok {
		return hardware // reported
	}
	return min(max(hz, low), high)
}

func (h *heldMode) devfreq(touched map[string][2]bool) {
	for _, d := range h.r.t.File.Devfreq {
		var limits config.ClockLimits
		for _, entry := range h.mode.Devfreq.Sorted() {
			if ok, err := path.Match(entry.Key(), d.Name); ok && err == nil {
				limits = *entry
			}
		}
		sel := plan.Select{Class: "devfreq", Name: d.Name}
		limit := func(touched bool, field config.Frequency, attr string, hardware int64) {
			if touched && hardware > 0 {
				sel.Attr = attr + "_freq"
				h.add(field, "devfreq."+d.Name+"."+attr, sel, h.limit(field, hardware, d.MinHz, d.MaxHz))
			}
		}
		limit(touched[d.Name][0], limits.Min, "min", d.MinHz)
		limit(touched[d.Name][1], limits.Max, "max", d.MaxHz)
	}
}

// thermal moves the first passive trip point of zones.
func (h *heldMode) thermal(touched map[string]bool) {
	for _, z := range h.r.t.File.Zones {
		i := PassiveTrip(z)
		if !touched[z.Type] || i < 0 {
			continue
		}
		zone := h.mode.Thermal.Get(z.Type)
		want := z.Trips[i].Temp
		if zone.Passive.IsSet() {
			want = int64(zone.Passive.Value) * 1000
		}
		h.add(zone.Passive, "thermal."+z.Type, plan.Select{Class: "thermal", Name: z.Type, Attr: fmt.Sprintf("trip_point_%d_temp", i)}, want)
	}
}

// PassiveTrip returns the number of a zone's first passive trip point, -1 if it has none.
func PassiveTrip(z boardfile.Zone) int {
	return slices.IndexFunc(z.Trips, func(t boardfile.Trip) bool { return t.Type == "passive" })
}

// resolveDevfreq limits the clocks of devfreq devices.
func (r *resolver) resolveDevfreq() {
	for _, d := range r.c.Devfreq.Sorted() {
		setting := func(attr, kind string) plan.Setting {
			return plan.Setting{Domain: plan.DomainDevfreq, Type: kind, Select: plan.Select{Class: "devfreq", Name: d.Key(), Attr: attr}}
		}
		limit := func(field config.Frequency, attr string) {
			if hz, ok := r.hertz(field); ok {
				s := setting(attr, plan.TypeInt)
				s.Want = strconv.FormatInt(hz, 10)
				r.set(field, s)
			}
		}
		limit(d.Min, "min_freq")
		limit(d.Max, "max_freq")
		r.setText(d.Governor, setting("governor", plan.TypeString))
	}
}
