package bench

import "github.com/yoctune/yoctune/runtime/device/monitor"

// StateOf extracts the state from a sample of the device's sensors.
func StateOf(s *monitor.Sample) State {
	out := State{PowerMode: s.PowerMode}
	for _, c := range s.CPUs {
		out.CPU, out.CPUMax = larger(out.CPU, c.Freq), larger(out.CPUMax, c.Max)
		if out.Governor == nil {
			out.Governor = c.Governor
		}
	}
	for _, g := range s.GPUs {
		out.GPU, out.GPUMax = larger(out.GPU, g.Freq), larger(out.GPUMax, g.Max)
	}
	if s.EMC != nil {
		out.Memory = s.EMC.Freq
	}
	if hot := s.Hottest(); hot != nil {
		out.Temperature = hot.Temp
	}
	return out
}

// larger returns the larger of two values, either of which may be unknown (nil).
func larger(a, b *int64) *int64 {
	if a == nil || (b != nil && *b > *a) {
		return b
	}
	return a
}
