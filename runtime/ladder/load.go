package ladder

import (
	"path"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device"
)

// Meter measures load: the processors' together, or the GPU's where that is more.
type Meter struct {
	dev         device.FS
	busy, total uint64 // jiffies at the last look
	gpus        []string
}

// NewMeter finds the device's load.
func NewMeter(dev device.FS) *Meter {
	m := &Meter{dev: dev}
	nodes, err := device.Nodes(dev, device.ClassDevFreq)
	if err != nil {
		nodes = nil // no GPU that says so
	}
	for _, n := range nodes {
		// Of devfreq devices only NVIDIA's GPUs have a load beside them, in per mille.
		load := path.Join(n.Path, "device", "load")
		if _, err := dev.Read(load); err == nil {
			m.gpus = append(m.gpus, load)
		}
	}
	return m
}

// Load is percent since the last call; not known at the first.
func (m *Meter) Load() (percent int, known bool) {
	if c, err := m.dev.Read("/proc/stat"); err == nil {
		busy, total, ok := parseStat(c.Text)
		if ok && m.total > 0 && total > m.total && busy >= m.busy {
			percent, known = int(100*(busy-m.busy)/(total-m.total)), true
		}
		m.busy, m.total = busy, total
	}
	for _, name := range m.gpus {
		c, err := m.dev.Read(name)
		if err != nil {
			continue // asleep, or gone
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(c.Text), 10, 32); err == nil {
			percent, known = max(percent, int(min(n, 1000)/10)), true
		}
	}
	return percent, known
}

// parseStat reads the first line of /proc/stat: user nice system idle iowait irq
// softirq steal (guest is in user).
func parseStat(text string) (busy, total uint64, ok bool) {
	line, _, _ := strings.Cut(text, "\n")
	f := strings.Fields(line)
	if len(f) < 5 || f[0] != "cpu" {
		return 0, 0, false
	}
	for i, word := range f[1:min(len(f), 9)] {
		n, err := strconv.ParseUint(word, 10, 63)
		if err != nil {
			return 0, 0, false
		}
		total += n
		if i != 3 && i != 4 {
			busy += n
		}
	}
	return busy, total, true
}
