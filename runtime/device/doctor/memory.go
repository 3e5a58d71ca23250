package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

func checkMemory(in *Input) answer {
	m := in.lastSample().Memory
	if m.Available == nil || m.Total == nil || *m.Total <= 0 {
		return answer{Unknown, "", "/proc/meminfo cannot be read"}
	}
	share := 100 * float64(*m.Available) / float64(*m.Total)
	a := answer{OK, formatNumber(share) + " %", "'yoctuned mem' lists the memory of processes"}
	switch {
	case share < 5:
		a.verdict = Fail
	case share < 10:
		a.verdict = Warn
	}
	return a
}

func checkPressure(in *Input) answer {
	p := in.lastSample().Pressure.Memory
	if p == nil {
		return answer{Unknown, "", "the kernel has no pressure information (CONFIG_PSI, psi=1)"}
	}
	return judgeMaximum(*p, 1, 10, "%", "'yoctuned mem' lists the memory of processes; compressed swap (memory: zram) relieves it")
}

func checkLeak(in *Input) answer {
	n := len(in.Samples)
	if n < 10 || time.Duration(in.Samples[n-1].Monotonic-in.Samples[0].Monotonic) < leakWindow {
		return answer{Skipped, "observed for less than a minute", ""}
	}
	// The slope of the regression line through available memory.
	var sx, sy, sxx, sxy, k, total float64
	for _, s := range in.Samples {
		if s.Memory.Available == nil || s.Memory.Total == nil {
			continue
		}
		x := float64(s.Monotonic-in.Samples[0].Monotonic) / float64(time.Minute)
		y := float64(*s.Memory.Available)
		sx, sy, sxx, sxy, k, total = sx+x, sy+y, sxx+x*x, sxy+x*y, k+1, float64(*s.Memory.Total)
	}
	d := k*sxx - sx*sx
	if d == 0 || total == 0 {
		return answer{Unknown, "", "/proc/meminfo cannot be read"}
	}
	lost := max(-100*(k*sxy-sx*sy)/d/total, 0)
	return judgeMaximum(lost, 1, 101, "% a minute", "run 'yoctuned mem' twice, some minutes apart, to find the process that grows")
}

func checkLargestBlock(in *Input) answer {
	m := in.lastSample().Memory
	if m.Largest == nil || m.LargestN == nil {
		return answer{Unknown, "", "/proc/buddyinfo cannot be read"}
	}
	a := answer{OK, fmt.Sprintf("%d x %d KiB", *m.LargestN, *m.Largest>>10), "load the largest model first after boot, reserve huge pages, or set vm.compaction_proactiveness"}
	if *m.LargestN**m.Largest < fewBlocks {
		a.verdict = Warn
	}
	return a
}

func checkCMA(in *Input) answer {
	m := in.lastSample().Memory
	if m.CMATotal == nil || m.CMAFree == nil || *m.CMATotal == 0 {
		return answer{Skipped, "none reserved", ""}
	}
	share := 100 * float64(*m.CMAFree) / float64(*m.CMATotal)
	a := answer{OK, fmt.Sprintf("%s %% of %d MiB", formatNumber(share), *m.CMATotal>>20), "increase the kernel argument cma="}
	if share < 10 {
		a.verdict = Warn
	}
	return a
}

func checkSwap(in *Input) answer {
	var disks []string
	b, err := in.Dev.ReadFile("/proc/swaps", 64<<10)
	if err != nil {
		return answer{Unknown, "", "/proc/swaps cannot be read"}
	}
	_, rest, _ := strings.Cut(string(b), "\n")
	for line := range strings.Lines(rest) {
		if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(f[0], "/dev/zram") {
			disks = append(disks, f[0])
		}
	}
	ins, _ := in.rate("pswpin")
	outs, _ := in.rate("pswpout")
	rate := ins + outs
	advice := "remove the swap file or use compressed memory instead (memory: zram); vm.swappiness alone does not prevent swapping"
	switch {
	case len(disks) > 0 && rate > 0:
		return answer{Fail, fmt.Sprintf("%s pages a second to %s", formatNumber(rate), joinSome(disks)), advice}
	case len(disks) > 0:
		return answer{Warn, joinSome(disks), advice}
	case rate > 0:
		return answer{OK, fmt.Sprintf("%s pages a second, to zram", formatNumber(rate)), ""}
	}
	return answer{OK, "no swap on a disk", ""}
}

func checkMajorFaults(in *Input) answer {
	rate, ok := in.rate("pgmajfault")
	if !ok {
		return answer{Unknown, "", "/proc/vmstat cannot be read"}
	}
	return judgeMaximum(rate, 100, 1000, "a second", "lock the working set (LimitMEMLOCK, mlockall) or free memory: programs and models are read from the disk repeatedly")
}

func checkHugepages(in *Input) answer {
	b, err := in.Dev.ReadFile("/proc/meminfo", 64<<10)
	if err != nil {
		return answer{Unknown, "", "/proc/meminfo cannot be read"}
	}
	info := rootfs.Meminfo(string(b))
	total, free := info["HugePages_Total"], info["HugePages_Free"]
	switch {
	case total == 0:
		return answer{Skipped, "none reserved", ""}
	case free == total:
		return answer{Warn, fmt.Sprintf("0 of %d", total), "no process maps them, and their memory is not available otherwise: use them (MAP_HUGETLB, hugetlbfs) or do not reserve them"}
	}
	return answer{OK, fmt.Sprintf("%d of %d", total-free, total), ""}
}

func checkTHP(in *Input) answer {
	mode := selectedChoice(in.readText("/sys/kernel/mm/transparent_hugepage/enabled"))
	total := in.lastSample().Memory.Total
	switch {
	case mode == "":
		return answer{Skipped, "not in this kernel", ""}
	case mode == "always" && total != nil && *total <= smallMachine:
		return answer{Warn, mode, "memory: thp: \"madvise\" in the configuration"}
	}
	return answer{OK, mode, ""}
}

func checkKSM(in *Input) answer {
	switch run := in.readText("/sys/kernel/mm/ksm/run"); run {
	case "":
		return answer{Skipped, "not in this kernel", ""}
	case "1":
		return answer{Warn, "on", "memory: ksm: false in the configuration; scanning costs CPU time, and unsharing adds latency"}
	default:
		return answer{OK, "off", ""}
	}
}
