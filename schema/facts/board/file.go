package board

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/formats/boardfile"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

// FromFile returns the facts of a board that a board file alone describes. source names the
// file in evidence. The file has cores and memory.
func FromFile(id, source string, f *boardfile.File) *Board {
	b := &Board{ID: id, Name: cmp.Or(f.Model, id), Compatible: f.Compatible, Releases: map[string]Release{}, Evidence: map[string]Evidence{}, Sources: map[string]string{}}
	b.take(source, f)
	return b
}

// Refreshed returns the facts of a board in which those of a board file replace what is not
// verified. A verified fact stays: one device does not refute it.
func (b *Board) Refreshed(source string, f *boardfile.File) *Board {
	out := *b
	out.Evidence, out.Sources = maps.Clone(b.Evidence), maps.Clone(b.Sources)
	out.GPUTables = maps.Clone(b.GPUTables)
	out.take(source, f)
	return &out
}

// take takes facts of a file that are not verified otherwise.
func (b *Board) take(source string, f *boardfile.File) {
	o := Observe(f)
	take := func(field, fact string, known bool, set func()) {
		if !known || b.IsVerified(field) {
			return
		}
		set()
		e := Evidence{Source: source + ": " + f.Read[fact], Verified: true}
		b.Evidence[field], b.Sources[field] = e, e.Source
	}
	take("cores", "cpus", o.Cores > 0, func() { b.Cores = o.Cores })
	take("policies", "cpus", len(o.Policies) > 0, func() {
		b.Policies = nil
		for _, cpus := range o.Policies {
			list, _ := cpulist.Parse(cpus) // checked when the file was read
			b.Policies = append(b.Policies, Policy{First: list[0], CPUs: cpus})
		}
	})
	take("cpu_khz", "cpus", len(o.CPUkHz) > 0, func() { b.CPUkHz = o.CPUkHz })
	if low, high := cpuRange(f); high > 0 {
		take("cpu", "cpus", true, func() { b.CPU.Min, b.CPU.Max = &low, &high })
	}
	take("gpu_hz", "devfreq", len(o.GPUHz) > 0, func() { b.GPUHz = o.GPUHz })
	// A module's size is its label; what the kernel manages is less.
	if f.Memory != nil && !b.IsKnown("ram_bytes") {
		take("ram_bytes", "memory", true, func() { b.RAMBytes = f.Memory.Bytes })
	}
}

// cpuRange returns the lowest and the highest clock of all policies in kHz, 0 if not known.
func cpuRange(f *boardfile.File) (low, high int64) {
	if f.CPUs == nil {
		return 0, 0
	}
	for _, p := range f.CPUs.Policies {
		if min := p.MinHz / 1000; low == 0 || min > 0 && min < low {
			low = min
		}
		high = max(high, p.MaxHz/1000)
	}
	return low, high
}

// IsGPU reports whether a devfreq device is the GPU of a Jetson.
func IsGPU(name, node string) bool {
	_, kind, dotted := strings.Cut(name, ".")
	return node == "gpu" || dotted && slices.Contains([]string{"gpu", "ga10b", "gv11b", "gp10b", "gm20b"}, kind)
}

// Observe returns what a board file reports of a Jetson.
func Observe(f *boardfile.File) Observation {
	o := Observation{L4T: f.L4T, Cores: f.Cores(), Modes: f.Modes}
	if f.CPUs != nil {
		listed := true
		for _, p := range f.CPUs.Policies {
			o.Policies = append(o.Policies, p.CPUs)
			listed = listed && len(p.Hz) > 0
			for _, hz := range p.Hz {
				o.CPUkHz = append(o.CPUkHz, hz/1000)
			}
		}
		// Clusters may have different steps, and each is one that the kernel takes.
		slices.Sort(o.CPUkHz)
		if o.CPUkHz = slices.Compact(o.CPUkHz); !listed {
			o.CPUkHz = nil
		}
	}
	for _, d := range f.Devfreq {
		if IsGPU(d.Name, d.OFNode) {
			o.GPU, o.GPUHz = d.Name, d.Hz
		}
	}
	if f.Memory != nil {
		o.MemTotal = f.Memory.Bytes
	}
	for _, z := range f.Zones {
		o.ThermalZones = append(o.ThermalZones, z.Type)
	}
	slices.Sort(o.ThermalZones)
	return o
}
