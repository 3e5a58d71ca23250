package monitor

import (
	"strconv"
	"strings"
)

// Value is a measured number with a name that is stable over samples, for recordings, charts
// and the history.
type Value struct {
	Name  string  `json:"name"` // "cpu3 load", "rail VDD_IN", "temperature tj-thermal"
	Unit  string  `json:"unit"` // %, MHz, mW, °C, MiB, rpm, …
	Value float64 `json:"value"`
}

// Values returns the known values of a sample in a fixed order.
func (s *Sample) Values() []Value {
	out := []Value{}
	add := func(name, unit string, v *int64, scale float64) {
		if v != nil {
			out = append(out, Value{name, unit, float64(*v) / scale})
		}
	}
	sum, n := s.sumCPULoad()
	if n > 0 {
		add("cpu load", "%", &sum, 10*float64(n))
	}
	for _, c := range s.CPUs {
		at := "cpu" + strconv.Itoa(c.Number)
		add(at+" load", "%", c.Load, 10)
		add(at+" clock", "MHz", c.Freq, 1e6)
	}
	for i, g := range s.GPUs {
		at := "gpu"
		if i > 0 {
			at = "gpu " + g.Name
		}
		add(at+" load", "%", g.Load, 10)
		add(at+" clock", "MHz", g.Freq, 1e6)
	}
	if s.EMC != nil {
		add("memory clock", "MHz", s.EMC.Freq, 1e6)
		add("memory bandwidth", "%", s.EMC.Load, 10)
	}
	for _, e := range s.Engines {
		add("engine "+e.Name, "MHz", e.Freq, 1e6)
	}
	for _, r := range s.Rails {
		add("rail "+r.Label, "mW", r.Power, 1)
	}
	for _, z := range s.Zones {
		if !z.Placeholder {
			add("temperature "+z.Name, "°C", z.Temp, 1000)
		}
	}
	for _, f := range s.Fans {
		add("fan "+f.Name, "rpm", f.RPM, 1)
		add("fan "+f.Name+" pwm", "", f.PWM, 1)
	}
	add("throttled", "", s.countThrottled(), 1)
	for _, a := range s.Alarms {
		add("over-current "+a.Name, "events", a.Events, 1)
	}
	const mib = 1 << 20
	m := s.Memory
	add("memory used", "MiB", m.Used, mib)
	add("memory available", "MiB", m.Available, mib)
	add("swap used", "MiB", m.SwapUsed, mib)
	add("cma free", "MiB", m.CMAFree, mib)
	add("nvmap", "MiB", m.NVMap, mib)
	add("largest free block", "MiB", m.Largest, mib)
	add("major faults", "/s", s.Faults, 1)
	for _, p := range []struct {
		name string
		v    *float64
	}{{"cpu", s.Pressure.CPU}, {"memory", s.Pressure.Memory}, {"io", s.Pressure.IO}} {
		if p.v != nil {
			out = append(out, Value{p.name + " pressure", "%", *p.v})
		}
	}
	return numberDuplicates(out)
}

// countThrottled returns the number of cooling devices that throttle, nil if unknown.
func (s *Sample) countThrottled() *int64 {
	if !s.ReportsThrottling() {
		return nil
	}
	return new(int64(len(s.Throttled())))
}

// numberDuplicates appends numbers to repeated names, such as those of two equal zones.
func numberDuplicates(values []Value) []Value {
	seen := map[string]int{}
	for i := range values {
		key := strings.ToLower(values[i].Name) // names that differ by case only count as equal
		if seen[key]++; seen[key] > 1 {
			values[i].Name += " #" + strconv.Itoa(seen[key])
		}
	}
	return values
}
