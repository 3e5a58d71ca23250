package rootfs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

// Hardware is the machine's hardware as the kernel reports it. Unreported fields are
// absent.
type Hardware struct {
	Cores    int      `json:"cores,omitempty"`    // present, online or not
	Policies []string `json:"policies,omitempty"` // lists of the cores of each cpufreq policy
	// Steps of the CPU clock in kHz, ascending, if all policies have the same.
	CPUkHz  []int64 `json:"cpu_khz,omitempty"`
	DevFreq []Clock `json:"devfreq,omitempty"`
	// MemTotal in bytes, without the memory that firmware and kernel reserve.
	MemTotal     int64    `json:"mem_total,omitempty"`
	ThermalZones []string `json:"thermal_zones,omitempty"` // thermal_zone*/type
}

// Clock is a devfreq device with its frequency steps.
type Clock struct {
	Name   string  `json:"name"`
	OFNode string  `json:"of_node,omitempty"`
	Hz     []int64 `json:"hz,omitempty"` // ascending
}

// ReadHardware reads the hardware. Missing files leave their fields absent.
func ReadHardware(dev FS) Hardware {
	text := func(name string) string { return ReadText(dev, name) }
	var h Hardware
	if present, err := cpulist.Parse(text("/sys/devices/system/cpu/present")); err == nil {
		h.Cores = len(present)
	}
	policies, _ := Nodes(dev, ClassCPUFreq)
	slices.SortFunc(policies, func(a, b Node) int { return policyNumber(a) - policyNumber(b) })
	for i, p := range policies {
		if own := strings.Fields(text(p.Path + "/related_cpus")); len(own) > 0 {
			h.Policies = append(h.Policies, strings.Join(own, ","))
		}
		steps := parseSteps(text(p.Path + "/scaling_available_frequencies"))
		if i == 0 {
			h.CPUkHz = steps
		} else if !slices.Equal(h.CPUkHz, steps) {
			h.CPUkHz = nil
		}
	}
	clocks, _ := Nodes(dev, ClassDevFreq)
	for _, n := range clocks {
		n = Describe(dev, n)
		h.DevFreq = append(h.DevFreq, Clock{Name: n.Name, OFNode: n.OFNode, Hz: parseSteps(text(n.Path + "/available_frequencies"))})
	}
	if info, err := dev.ReadFile("/proc/meminfo", 64<<10); err == nil {
		h.MemTotal = Meminfo(string(info))["MemTotal"]
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

// Meminfo parses /proc/meminfo into bytes. Lines other than "Name: n kB" and "Name: n" are
// skipped.
func Meminfo(text string) map[string]int64 {
	m := map[string]int64{}
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if !ok || len(f) == 0 {
			continue
		}
		n, err := strconv.ParseUint(f[0], 10, 52)
		if err != nil {
			continue
		}
		if len(f) > 1 && f[1] == "kB" {
			n <<= 10
		}
		m[name] = int64(n)
	}
	return m
}

// parseSteps parses numbers between blanks and sorts them. It returns nil on any error.
func parseSteps(text string) []int64 {
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
