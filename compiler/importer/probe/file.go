package probe

import (
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/formats/boardfile"
)

// FromFile returns what a board file holds of a probe.
func FromFile(f *boardfile.File) Probe {
	var p Probe
	p.device.Compatible, p.device.L4T, p.device.Modes = f.Compatible, f.L4T, f.Modes
	if f.Kernel != nil {
		p.device.Kernel = f.Kernel.Release
	}
	o := board.Observe(f)
	p.hardware.Cores, p.hardware.Policies, p.hardware.CPUkHz = o.Cores, o.Policies, o.CPUkHz
	p.hardware.MemTotal, p.hardware.ThermalZones = o.MemTotal, o.ThermalZones
	for _, d := range f.Devfreq {
		p.hardware.DevFreq = append(p.hardware.DevFreq, clock{Name: d.Name, OFNode: d.OFNode, Hz: d.Hz})
	}
	return p
}
