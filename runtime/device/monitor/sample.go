package monitor

import (
	"slices"
	"time"
)

// Sample is everything at one moment, in base units. A nil pointer is a value
// that is unknown.
type Sample struct {
	Type      string    `json:"type"`         // "sample"
	Time      time.Time `json:"time"`         // wall clock, UTC, for people
	Monotonic int64     `json:"monotonic_ns"` // since boot, suspend included; what differences are made of
	PowerMode *string   `json:"power_mode"`   // name of nvpmodel's mode
	CPUs      []CPU     `json:"cpus"`         // present ones, by number
	GPUs      []GPU     `json:"gpus"`         // one, on Thor one for each clock domain
	EMC       *Memclock `json:"emc"`          // nil: there is none, or debugfs is closed
	Engines   []Engine  `json:"engines"`      // only from a tegrastats text
	Rails     []Rail    `json:"rails"`
	Zones     []Zone    `json:"temperatures"`
	Fans      []Fan     `json:"fans"`
	Cooling   []Cooling `json:"cooling"`
	Alarms    []Alarm   `json:"over_current"`
	Memory    Memory    `json:"memory"`
	Pressure  Pressure  `json:"pressure"`
	Faults    *int64    `json:"major_faults_per_second"`
	Stale     []Stale   `json:"stale"`            // sensors that do not answer: their values are nil
	Source    string    `json:"source,omitempty"` // "tegrastats" when it was not sampled here
}

// CPU is one core. Loads are in permille of the time since the sample before.
type CPU struct {
	Number   int     `json:"cpu"`
	Online   bool    `json:"online"`
	Load     *int64  `json:"load_permille"`
	Freq     *int64  `json:"freq_hz"`
	Max      *int64  `json:"max_hz"` // the limit in force
	Governor *string `json:"governor"`
}

// GPU is a devfreq device of the GPU.
type GPU struct {
	Name     string  `json:"name"`
	Load     *int64  `json:"load_permille"`
	Freq     *int64  `json:"freq_hz"`
	Min      *int64  `json:"min_hz"`
	Max      *int64  `json:"max_hz"`
	Governor *string `json:"governor"`
	Clusters []int64 `json:"clusters_hz,omitempty"` // of a tegrastats text with several
}

// Memclock is the memory controller.
type Memclock struct {
	Load *int64 `json:"load_permille"`
	Freq *int64 `json:"freq_hz"`
}

// Engine is a codec, DLA or the like. A nil frequency with On set is unknown.
type Engine struct {
	Name string `json:"name"`
	On   bool   `json:"on"`
	Load *int64 `json:"load_permille"`
	Freq *int64 `json:"freq_hz"`
}

// Rail is one channel of a power monitor.
type Rail struct {
	Label   string `json:"label"`
	Power   *int64 `json:"power_mw"`
	Voltage *int64 `json:"voltage_mv"`
	Current *int64 `json:"current_ma"`
}

// Zone is a thermal zone.
type Zone struct {
	Name        string `json:"name"`
	Temp        *int64 `json:"temp_mc"`
	Passive     *int64 `json:"passive_mc"`            // where the kernel starts to slow the device
	Critical    *int64 `json:"critical_mc"`           // where it is switched off
	Placeholder bool   `json:"placeholder,omitempty"` // a constant that measures nothing
}

// Fan is a fan; PWM goes from 0 to 255.
type Fan struct {
	Name string `json:"name"`
	PWM  *int64 `json:"pwm"`
	RPM  *int64 `json:"rpm"`
}

// Cooling is a cooling device of the thermal framework.
type Cooling struct {
	Name  string `json:"name"`
	State *int64 `json:"state"` // 0: it does nothing
	Max   *int64 `json:"max_state"`
}

// Fan reports whether it cools with air and not by slowing something down.
func (c Cooling) Fan() bool { return isFan(c.Name) }

// Alarm counts over-current events since boot.
type Alarm struct {
	Name   string `json:"name"`
	Events *int64 `json:"events"`
}

// Memory is in bytes.
type Memory struct {
	Total     *int64 `json:"total"`
	Available *int64 `json:"available"`
	Free      *int64 `json:"free"`
	Used      *int64 `json:"used"` // total less available; of a tegrastats text, what it says
	Buffers   *int64 `json:"buffers"`
	Cached    *int64 `json:"cached"`
	Slab      *int64 `json:"slab"`
	SwapTotal *int64 `json:"swap_total"` // 0: no swap
	SwapUsed  *int64 `json:"swap_used"`
	CMATotal  *int64 `json:"cma_total"`
	CMAFree   *int64 `json:"cma_free"`
	NVMap     *int64 `json:"nvmap"`        // what GPU clients hold
	Largest   *int64 `json:"largest_free"` // bytes of the largest free block
	LargestN  *int64 `json:"largest_free_count"`
}

// Pressure is the kernel's stall information: percent of the last ten seconds in
// which some task waited. Nil: the kernel does not have it.
type Pressure struct {
	CPU    *float64 `json:"cpu_some_avg10"`
	Memory *float64 `json:"memory_some_avg10"`
	IO     *float64 `json:"io_some_avg10"`
}

// Stale names a sensor that has not answered.
type Stale struct {
	Sensor string `json:"sensor"`
	For    int64  `json:"for_ms"` // since it was asked
}

// Hottest is the hottest zone that measures something, nil when there is none.
func (s *Sample) Hottest() *Zone {
	var hot *Zone
	for i := range s.Zones {
		z := &s.Zones[i]
		if z.Temp != nil && !z.Placeholder && (hot == nil || *z.Temp > *hot.Temp) {
			hot = z
		}
	}
	return hot
}

// Throttled lists the cooling devices that slow something down now.
func (s *Sample) Throttled() []Cooling {
	var out []Cooling
	for _, c := range s.Cooling {
		if c.State != nil && *c.State > 0 && !c.Fan() {
			out = append(out, c)
		}
	}
	return out
}

// KnowsThrottling reports whether any cooling device that slows something down answers.
func (s *Sample) KnowsThrottling() bool {
	return slices.ContainsFunc(s.Cooling, func(c Cooling) bool { return c.State != nil && !c.Fan() })
}

// Load is in percent: the processors' together, or the GPU's where that is more.
func (s *Sample) Load() (percent int, known bool) {
	var sum, n int64
	for _, c := range s.CPUs {
		if c.Load != nil {
			sum += *c.Load
			n++
		}
	}
	if n > 0 {
		percent, known = int(sum/n/10), true
	}
	for _, g := range s.GPUs {
		if g.Load != nil {
			percent, known = max(percent, int(*g.Load/10)), true
		}
	}
	return percent, known
}
