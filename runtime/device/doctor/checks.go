package doctor

import (
	"fmt"
	"strings"
	"time"
)

// Limits of checks.
const (
	thermalMargin   = 5_000       // m°C below the throttling temperature
	passiveUnknown  = 85_000      // m°C, throttling temperature of zones without trip points
	fewBlocks       = 64 << 20    // bytes in largest free blocks, for a model
	smallMachine    = 16 << 30    // bytes; THP "always" hurts up to this size
	writesPerDay    = 20_000      // MB to an eMMC or SD card
	busyQueue       = 500         // permille of the time; below, the queue depth is meaningless
	leakWindow      = time.Minute // shortest observation that shows a leak
	irqsWorthSpread = 1000        // a second
)

// checks returns all checks in the order of the report.
func checks() []check {
	return []check{
		{"plan", "a valid plan is installed", "", checkPlan},
		{"plan-true", "the device matches the plan", "0 settings differ", checkSettings},
		{"pipelines", "the pipelines that the plan starts are running", "0 idle", checkPipelines},
		{"power-mode", "the power mode is the one in the plan", "the plan's power.default", checkPowerMode},
		{"power-nodes", "every node in the nvpmodel table exists", "0 missing", checkPowerNodes},
		{"two-owners", "no other program changes the same settings", "0", checkOwners},
		{"services", "nvpmodel and nvpower have not failed, and jetson_clocks does not lock clocks", "0", checkServices},
		{"super-clocks", "the firmware permits the clocks of Super modes", "the board's maximum clocks", checkSuper},
		{"sysctl-files", "no other file sets the plan's sysctls to different values", "0", checkSysctls},
		{"throttling", "no clock is throttled for temperature or current", "0 % of the time; 20 % is a failure", checkThrottling},
		{"over-current", "the power supply is sufficient for the power mode", "0 events", checkOverCurrent},
		{"thermal-margin", "the hottest zone is well below its throttling temperature", "5 °C", checkThermalMargin},
		{"fan", "the fan runs when the device is hot", "above 70 °C", checkFan},
		{"sensors", "every sensor responds", "0 stale", checkSensors},
		{"governor", "no CPU policy is held at its lowest clock", "not powersave", checkGovernor},
		{"cpu-load", "no CPU core is the bottleneck", "90 % of a core; 50 % leaves headroom", checkCPU},
		{"gpu-load", "the GPU is well utilised under load", "85 %", checkGPU},
		{"memory-bandwidth", "memory bandwidth is not the bottleneck", "90 %", checkBandwidth},
		{"memory-available", "enough memory is available", "10 %; 5 % is a failure", checkMemory},
		{"memory-pressure", "tasks do not stall on memory", "1 %; 10 % is a failure", checkPressure},
		{"memory-leak", "available memory does not shrink steadily", "1 % of memory a minute", checkLeak},
		{"largest-block", "memory is not fragmented", "64 MiB in largest free blocks", checkLargestBlock},
		{"cma", "contiguous memory (CMA) is available for cameras and codecs", "10 %", checkCMA},
		{"swap", "no memory is swapped to a disk", "zram only; 0 pages a second", checkSwap},
		{"major-faults", "few pages are read back from the disk", "100 a second; 1000 is a failure", checkMajorFaults},
		{"hugepages", "reserved huge pages are in use", "at least one in use", checkHugepages},
		{"thp", "transparent huge pages do not fragment a small memory", "madvise at up to 16 GiB", checkTHP},
		{"ksm", "kernel same-page merging (KSM) is off", "off", checkKSM},
		{"io-scheduler", "NVMe disks use no I/O scheduler", "none on NVMe", checkScheduler},
		{"io-queue", "the queue depth of busy disks is adequate", "16 to 32 while busy", checkIOQueue},
		{"disk-writes", "writes do not wear out an eMMC or SD card", "20 GB a day", checkDiskWrites},
		{"journald", "the size of the system journal on disk is bounded", "SystemMaxUse= is set", checkJournald},
		{"irq-spread", "interrupts are spread over cores", "80 % on one core", checkIRQSpread},
		{"irq-isolation", "isolated cores receive few interrupts", "100 a second", checkIRQIsolation},
		{"workqueues", "isolated cores run no unbound kernel workers", "isolated cores not in the mask", checkWorkqueues},
		{"rt-throttling", "a runaway real-time task cannot monopolise a core", "sched_rt_runtime_us above 0", checkRealtimeThrottling},
		{"network-errors", "few packets are lost", "0.01 %", checkNetwork},
		{"network-latency", "latency of the local network is low", "1 ms", notMeasurable("from another machine: ping -c 20 DEVICE")},
		{"kernel-occupancy", "GPU kernels reach a high occupancy", "60 %", notMeasurable("profile with Nsight Compute: achieved_occupancy")},
	}
}

func notMeasurable(how string) func(*Input) answer {
	return func(*Input) answer { return answer{Unknown, "", "not measurable on the device; " + how} }
}

// judgeMaximum judges a number by its upper limits.
func judgeMaximum(v, warn, fail float64, unit, advice string) answer {
	a := answer{OK, strings.TrimSpace(fmt.Sprintf("%s %s", formatNumber(v), unit)), advice}
	switch {
	case v >= fail:
		a.verdict = Fail
	case v >= warn:
		a.verdict = Warn
	}
	return a
}

func formatNumber(v float64) string {
	if v == float64(int64(v)) || v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

func joinSome(names []string) string {
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
