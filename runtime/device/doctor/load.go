package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/monitor"
)

func checkGovernor(in *Input) answer {
	seen := map[string]bool{}
	var slow []string
	for _, c := range in.lastSample().CPUs {
		if c.Governor == nil {
			continue
		}
		seen[*c.Governor] = true
		if *c.Governor == "powersave" {
			slow = append(slow, "cpu"+strconv.Itoa(c.Number))
		}
	}
	if len(seen) == 0 {
		return answer{Unknown, "", "no CPU frequency scaling"}
	}
	if len(slow) > 0 {
		return answer{Warn, "powersave on " + joinSome(slow), "cpu: governor: \"schedutil\" in the configuration"}
	}
	return answer{OK, strings.Join(slices.Sorted(maps.Keys(seen)), ", "), ""}
}

// busiestCore returns the core with the highest average load, in permille.
func (in *Input) busiestCore() (core int, load float64, ok bool) {
	core, load, _, ok = in.loadOfCores()
	return core, load, ok
}

// loadOfCores returns the core with the highest average load, that load, and the lowest one.
func (in *Input) loadOfCores() (core int, load, least float64, ok bool) {
	for i, c := range in.lastSample().CPUs {
		l, known := in.averageOf(func(s *monitor.Sample) *int64 {
			if i < len(s.CPUs) {
				return s.CPUs[i].Load
			}
			return nil
		})
		if !known {
			continue
		}
		if !ok || l < least {
			least = l
		}
		if !ok || l > load {
			core, load = c.Number, l
		}
		ok = true
	}
	return core, load, least, ok
}

func (in *Input) gpuLoad() (float64, bool) {
	return in.averageOf(func(s *monitor.Sample) *int64 {
		if len(s.GPUs) == 0 {
			return nil
		}
		return s.GPUs[0].Load
	})
}

func checkCPU(in *Input) answer {
	core, load, least, ok := in.loadOfCores()
	if !ok {
		return answer{Unknown, "", "the load could not be read"}
	}
	if least >= 900 {
		return answer{Warn, fmt.Sprintf("all cores, %.0f %% and more", least/10), "the CPU limits throughput: lower rates or sizes, move work to the GPU, or choose a power mode with more or faster cores"}
	}
	a := judgeMaximum(load/10, 90, 101, "%", "one thread limits throughput: split it, move pre- and post-processing to the GPU, or pin it to its own core")
	a.measured += fmt.Sprintf(" (cpu%d)", core)
	return a
}

func checkGPU(in *Input) answer {
	load, ok := in.gpuLoad()
	if !ok {
		return answer{Unknown, "", "no GPU load can be read"}
	}
	measured := formatNumber(load/10) + " %"
	if load < 100 {
		return answer{Skipped, measured + ": idle", ""}
	}
	if load >= 850 {
		return answer{OK, measured, ""}
	}
	advice := "use larger batches, several streams, or overlapping stages"
	if core, cpu, ok := in.busiestCore(); ok && cpu >= 900 {
		advice = fmt.Sprintf("the GPU waits for cpu%d (%s %%), which is the bottleneck", core, formatNumber(cpu/10))
	}
	return answer{Warn, measured, advice}
}

func checkBandwidth(in *Input) answer {
	load, ok := in.averageOf(func(s *monitor.Sample) *int64 {
		if s.EMC == nil {
			return nil
		}
		return s.EMC.Load
	})
	if !ok {
		return answer{Unknown, "", "no memory controller found; its load is in debugfs, which only root can read"}
	}
	return judgeMaximum(load/10, 90, 101, "%", "use smaller data types (fp16, int8), zero-copy buffers, or a power mode with a faster memory clock")
}
