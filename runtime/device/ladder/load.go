package ladder

import (
	"path"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// Meter measures the load: that of all CPUs together or of the GPU, whichever is higher.
type Meter struct {
	dev    rootfs.FS
	before monitor.CPUTime // at the last call
	gpus   []string
}

// NewMeter finds the device's sources of load.
func NewMeter(dev rootfs.FS) *Meter {
	m := &Meter{dev: dev}
	nodes, err := rootfs.Nodes(dev, rootfs.ClassDevFreq)
	if err != nil {
		nodes = nil // continue with the CPUs
	}
	for _, n := range nodes {
		// Only NVIDIA's GPUs have a load, in per mille, beside their devfreq device.
		load := path.Join(n.Path, "device", "load")
		if _, err := dev.Read(load); err == nil {
			m.gpus = append(m.gpus, load)
		}
	}
	return m
}

// Load returns the load since the last call in percent. It is unknown at the first call.
func (m *Meter) Load() (percent int, known bool) {
	if c, err := m.dev.Read("/proc/stat"); err == nil {
		line, _, _ := strings.Cut(c.Text, "\n")
		name, now, ok := monitor.ParseCPU(line)
		if ok = ok && name == "cpu"; !ok {
			now = monitor.CPUTime{}
		}
		if was := m.before; ok && was.Total > 0 && now.Total > was.Total && now.Busy >= was.Busy {
			percent, known = int(100*(now.Busy-was.Busy)/(now.Total-was.Total)), true
		}
		m.before = now
	}
	for _, name := range m.gpus {
		c, err := m.dev.Read(name)
		if err != nil {
			continue // suspended or removed
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(c.Text), 10, 32); err == nil {
			percent, known = max(percent, int(min(n, 1000)/10)), true
		}
	}
	return percent, known
}
