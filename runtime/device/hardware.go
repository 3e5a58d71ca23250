package device

import (
	"slices"
	"strconv"
	"strings"
)

// Hardware is what the kernel says the machine is made of. What it does not say
// is absent.
type Hardware struct {
	Cores    int      `json:"cores,omitempty"`    // present, online or not
	Policies []string `json:"policies,omitempty"` // the cores of each cpufreq policy, as lists
	// Steps of the CPU clock in kHz, ascending, where all policies have the same.
	CPUkHz  []int64 `json:"cpu_khz,omitempty"`
	DevFreq []Clock `json:"devfreq,omitempty"`
	// MemTotal in bytes: less than the module has, by what firmware and kernel keep.
	MemTotal     int64    `json:"mem_total,omitempty"`
	ThermalZones []string `json:"thermal_zones,omitempty"` // thermal_zone*/type
}

// Clock is a devfreq device and its steps.
type Clock struct {
	Name   string  `json:"name"`
	OFNode string  `json:"of_node,omitempty"`
	Hz     []int64 `json:"hz,omitempty"` // ascending
}

// Survey reads it. It never fails: a file that is not there leaves its field
// absent.
func Survey(dev FS) Hardware {
	text := func(name string) string {
		c, err := dev.Read(name)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(c.Text)
	}
	h := Hardware{Cores: cores(text("/sys/devices/system/cpu/present"))}
	policies, _ := Nodes(dev, ClassCPUFreq)
	slices.SortFunc(policies, func(a, b Node) int { return policyNumber(a) - policyNumber(b) })
	for i, p := range policies {
		if own := strings.Fields(text(p.Path + "/related_cpus")); len(own) > 0 {
			h.Policies = append(h.Policies, strings.Join(own, ","))
		}
		steps := ascending(text(p.Path + "/scaling_available_frequencies"))
		if i == 0 {
			h.CPUkHz = steps
		} else if !slices.Equal(h.CPUkHz, steps) {
			h.CPUkHz = nil
		}
	}
	clocks, _ := Nodes(dev, ClassDevFreq)
	for _, n := range clocks {
		n = Describe(dev, n)
		h.DevFreq = append(h.DevFreq, Clock{Name: n.Name, OFNode: n.OFNode, Hz: ascending(text(n.Path + "/available_frequencies"))})
	}
	if info, err := dev.ReadFile("/proc/meminfo", 64<<10); err == nil {
		for line := range strings.Lines(string(info)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
				kib, err := strconv.ParseInt(f[1], 10, 53)
				if err == nil {
					h.MemTotal = kib << 10
				}
			}
		}
	}
	const zones = "/sys/class/thermal"
	names, _ := dev.List(zones)
	for _, name := range names {
		if strings.HasPrefix(name, "thermal_zone") {
			if kind := text(zones + "/" + name + "/type"); kind != "" {
				h.ThermalZones = append(h.ThermalZones, kind)
			}
		}
	}
	slices.Sort(h.ThermalZones)
	return h
}

func policyNumber(n Node) int {
	number, _ := strconv.Atoi(strings.TrimPrefix(n.Name, "policy"))
	return number
}

// cores counts a list such as "0-3,5"; 0 when it is none.
func cores(list string) int { return len(cpuNumbers(list)) }

// cpuNumbers reads such a list; nil when it is none.
func cpuNumbers(list string) []int {
	var out []int
	for part := range strings.SplitSeq(list, ",") {
		low, high, ok := strings.Cut(part, "-")
		if !ok {
			high = low
		}
		a, err := strconv.ParseUint(low, 10, 16)
		z, err2 := strconv.ParseUint(high, 10, 16)
		if err != nil || err2 != nil || z < a || len(out) > 1<<16 {
			return nil
		}
		for n := a; n <= z; n++ {
			out = append(out, int(n))
		}
	}
	return out
}

// ascending reads numbers between blanks; nil when one of them is none.
func ascending(text string) []int64 {
	var steps []int64
	for f := range strings.FieldsSeq(text) {
		n, err := strconv.ParseInt(f, 10, 63)
		if err != nil {
			return nil
		}
		steps = append(steps, n)
	}
	slices.Sort(steps)
	return slices.Compact(steps)
}
