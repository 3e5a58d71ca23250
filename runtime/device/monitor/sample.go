package monitor

import (
	"encoding/json"
	"slices"
	"time"
)

// Sample is the state of a device at one moment, in base units. A nil pointer is an unknown
// value.
type Sample struct {
	Type      string    `json:"type"`         // "sample"
	Time      time.Time `json:"time"`         // wall clock, UTC, for display
	Monotonic int64     `json:"monotonic_ns"` // CLOCK_BOOTTIME, for differences
	PowerMode *string   `json:"power_mode"`   // name of nvpmodel's mode
	CPUs      []CPU     `json:"cpus"`         // present ones, by number
	GPUs      []GPU     `json:"gpus"`         // one, on Thor one for each clock domain
	EMC       *Memclock `json:"emc"`          // nil: absent, or debugfs is not readable
	Engines   []Engine  `json:"engines"`      // from tegrastats only
	Rails     []Rail    `json:"rails"`
	Zones     []Zone    `json:"temperatures"`
	Fans      []Fan     `json:"fans"`
	Cooling   []Cooling `json:"cooling"`
	Alarms    []Alarm   `json:"over_current"`
	Memory    Memory    `json:"memory"`
	Pressure  Pressure  `json:"pressure"`
	Faults    *int64    `json:"major_faults_per_second"`
	Stale     []Stale   `json:"stale"`            // sensors that do not respond; their values are nil
	Source    string    `json:"source,omitempty"` // "tegrastats" if parsed from its output
}

// NewSample returns a sample in which every value is unknown.
func NewSample() *Sample {
	return &Sample{
		Type: "sample", CPUs: []CPU{}, GPUs: []GPU{}, Engines: []Engine{}, Rails: []Rail{}, Zones: []Zone{}, Fans: []Fan{},
		Cooling: []Cooling{}, Alarms: []Alarm{}, Stale: []Stale{},
	}
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
	Clusters []int64 `json:"clusters_hz,omitempty"` // from tegrastats, if several
}

// Memclock is the memory controller.
type Memclock struct {
	Load *int64 `json:"load_permille"`
	Freq *int64 `json:"freq_hz"`
}

// Engine is a codec, DLA or similar. With On set, a nil frequency is unknown.
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

// MarshalJSON writes a time that is not known as null: lines of tegrastats may have none.
func (s Sample) MarshalJSON() ([]byte, error) {
	type fields Sample
	out := struct {
		Type string     `json:"type"`
		Time *time.Time `json:"time"`
		fields
	}{Type: s.Type, fields: fields(s)}
	if !s.Time.IsZero() {
		out.Time = &s.Time
	}
	return json.Marshal(out)
}

// NotConnected is the label of a channel of the power monitor that nothing is wired to. It has no
// power, voltage or current.
const NotConnected = "NC"

// Zone is a thermal zone.
type Zone struct {
	Name        string `json:"name"`
	Temp        *int64 `json:"temp_mc"`
	Passive     *int64 `json:"passive_mc"`            // at which the kernel starts to throttle
	Critical    *int64 `json:"critical_mc"`           // at which the device is switched off
	Placeholder bool   `json:"placeholder,omitempty"` // a constant and no measurement
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
	State *int64 `json:"state"` // 0: inactive
	Max   *int64 `json:"max_state"`
}

// IsFan reports whether the device is a fan, which does not throttle.
func (c Cooling) IsFan() bool { return isFanType(c.Name) }

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
	Used      *int64 `json:"used"` // total less available; as printed by tegrastats
	Buffers   *int64 `json:"buffers"`
	Cached    *int64 `json:"cached"`
	Slab      *int64 `json:"slab"`
	SwapTotal *int64 `json:"swap_total"` // 0: no swap
	SwapUsed  *int64 `json:"swap_used"`
	ZRAMData  *int64 `json:"zram_data"` // in compressed swap devices; nil: there are none
	ZRAMUsed  *int64 `json:"zram_used"` // memory that these devices take
	CMATotal  *int64 `json:"cma_total"`
	CMAFree   *int64 `json:"cma_free"`
	NVMap     *int64 `json:"nvmap"`        // memory of GPU clients
	Largest   *int64 `json:"largest_free"` // bytes of the largest free block
	LargestN  *int64 `json:"largest_free_count"`
}

// Pressure is the kernel's pressure stall information: percent of the last ten seconds in
// which some task was stalled. Nil: not supported by the kernel.
type Pressure struct {
	CPU    *float64 `json:"cpu_some_avg10"`
	Memory *float64 `json:"memory_some_avg10"`
	IO     *float64 `json:"io_some_avg10"`
}

// Stale is a sensor that has not responded.
type Stale struct {
	Sensor string `json:"sensor"`
	For    int64  `json:"for_ms"` // since the read started
}

// Hottest returns the hottest zone, nil if no temperature is known.
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

// Throttled returns the cooling devices that throttle now.
func (s *Sample) Throttled() []Cooling {
	var out []Cooling
	for _, c := range s.Cooling {
		if c.State != nil && *c.State > 0 && !c.IsFan() {
			out = append(out, c)
		}
	}
	return out
}

// ReportsThrottling reports whether the state of any cooling device other than a fan is known.
func (s *Sample) ReportsThrottling() bool {
	return slices.ContainsFunc(s.Cooling, func(c Cooling) bool { return c.State != nil && !c.IsFan() })
}

// Load returns the load in percent: that of all CPUs together or of the GPU, whichever is
// higher.
func (s *Sample) Load() (percent int, known bool) {
	sum, n := s.sumCPULoad()
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

// sumCPULoad returns the sum of the known CPU loads in permille, and their number.
func (s *Sample) sumCPULoad() (sum, n int64) {
	for _, c := range s.CPUs {
		if c.Load != nil {
			sum += *c.Load
			n++
		}
	}
	return sum, n
}
