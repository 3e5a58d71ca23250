package doctor

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/knob"
)

// interruptRates returns interrupts a second by CPU, nil if unknown.
func (in *Input) interruptRates() []float64 {
	if in.seconds() <= 0 || len(in.After.Interrupts) == 0 || len(in.After.Interrupts) != len(in.Before.Interrupts) {
		return nil
	}
	out := make([]float64, len(in.After.Interrupts))
	for i := range out {
		out[i] = float64(in.After.Interrupts[i]-in.Before.Interrupts[i]) / in.seconds()
	}
	return out
}

func checkIRQSpread(in *Input) answer {
	rates := in.interruptRates()
	if rates == nil {
		return answer{Unknown, "", "/proc/interrupts cannot be read"}
	}
	sum, most, core := 0.0, 0.0, 0
	for i, r := range rates {
		sum += r
		if r > most {
			most, core = r, i
		}
	}
	if len(rates) < 2 || sum < irqsWorthSpread {
		return answer{Skipped, fmt.Sprintf("%s a second in all", formatNumber(sum)), ""}
	}
	a := answer{OK, fmt.Sprintf("%s %% on cpu%d", formatNumber(100*most/sum), core), "irq: affinity in the configuration: move the interrupts of network card and disk to other cores"}
	if most/sum > 0.8 {
		a.verdict = Warn
	}
	return a
}

func checkIRQIsolation(in *Input) answer {
	cores := in.isolatedCores()
	if len(cores) == 0 {
		return answer{Skipped, "no core is isolated", ""}
	}
	rates := in.interruptRates()
	if rates == nil {
		return answer{Unknown, "", "/proc/interrupts cannot be read"}
	}
	worst, at := 0.0, cores[0]
	for _, c := range cores {
		if c < len(rates) && rates[c] > worst {
			worst, at = rates[c], c
		}
	}
	a := judgeMaximum(worst, 100, 1000, "a second", "irq: affinity for the remaining interrupts in /proc/interrupts, nohz_full and rcu_nocbs for the timer; cpu: isolate sets all of these")
	a.measured += fmt.Sprintf(" (cpu%d)", at)
	return a
}

func checkWorkqueues(in *Input) answer {
	cores := in.isolatedCores()
	if len(cores) == 0 {
		return answer{Skipped, "no core is isolated", ""}
	}
	mask := in.readText("/sys/devices/virtual/workqueue/cpumask")
	if mask == "" {
		return answer{Unknown, "", "this kernel has no CPU mask for unbound workers"}
	}
	cpus, err := knob.ParseCPUMask(mask)
	if err != nil {
		return answer{Unknown, mask, "not a CPU mask"}
	}
	list := cpulist.Format(cpus)
	for _, c := range cores {
		if slices.Contains(cpus, c) {
			return answer{Warn, list + " includes cpu" + strconv.Itoa(c), "write a mask without the isolated cores to /sys/devices/virtual/workqueue/cpumask"}
		}
	}
	return answer{OK, list, ""}
}

func checkRealtimeThrottling(in *Input) answer {
	v := in.readText("/proc/sys/kernel/sched_rt_runtime_us")
	switch v {
	case "":
		return answer{Unknown, "", "/proc/sys/kernel/sched_rt_runtime_us cannot be read"}
	case "-1":
		return answer{Warn, v, "isolate a core for the real-time task (cpu: isolate); without the limit any real-time task can hang the machine"}
	}
	return answer{OK, v, ""}
}

func checkNetwork(in *Input) answer {
	packets, bad := int64(0), int64(0)
	for name, now := range in.After.Links {
		if was, ok := in.Before.Links[name]; ok && name != "lo" {
			packets += now.Packets - was.Packets
			bad += now.Errors - was.Errors
		}
	}
	if packets <= 0 {
		return answer{Skipped, "no traffic", ""}
	}
	return judgeMaximum(100*float64(bad)/float64(packets), 0.01, 1, "%", "find the cause with ethtool -S: full rings (ethtool -g), a bad cable, or an overloaded core")
}
