package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// Limits that more than one check, or its text, uses.
const (
	thermalMargin   = 5_000       // m°C below where the kernel slows the device
	passiveUnknown  = 85_000      // m°C, where a zone does not say
	fewBlocks       = 64 << 20    // bytes in largest free blocks: less does not hold a model
	smallMachine    = 16 << 30    // bytes: THP "always" hurts at and below
	writesPerDay    = 20_000      // MB to an eMMC or SD card
	busyQueue       = 500         // permille of the time: a queue depth below says nothing
	leakWindow      = time.Minute // less shows no leak
	irqsWorthSpread = 1000        // a second
)

// Checks are all, in the order of a report.
func Checks() []Check {
	return []Check{
		{"plan", "a plan is installed and would be obeyed", "", checkPlan},
		{"plan-true", "the device is as the plan wants it", "0 settings differ", checkTrue},
		{"power-mode", "the power mode is the one that is wanted", "the plan's power.default", checkMode},
		{"power-nodes", "nvpmodel finds every node that its table names", "0 missing", checkNodes},
		{"two-owners", "nothing else changes the same knobs", "0", checkOwners},
		{"services", "nvpmodel, nvpower and jetson_clocks neither failed nor hold the clocks", "0", checkServices},
		{"super-clocks", "the firmware lets the clocks go where Super modes send them", "the board's upper ends", checkSuper},
		{"sysctl-files", "no other file sets the plan's sysctls otherwise", "0", checkSysctls},
		{"throttling", "nothing is slowed down for heat or current", "0 % of the time; 20 % is a failure", checkThrottling},
		{"over-current", "the supply holds what the power mode draws", "0 events", checkCurrent},
		{"thermal-margin", "the hottest zone is well below where the kernel slows down", "5 °C", checkMargin},
		{"fan", "the fan turns when it is hot", "above 70 °C", checkFan},
		{"sensors", "every sensor answers", "0 stale", checkSensors},
		{"governor", "no CPU policy is held at its lowest clock", "not powersave", checkGovernor},
		{"cpu-load", "no core is the bottleneck", "90 % of a core; 50 % leaves room", checkCPU},
		{"gpu-load", "the GPU is kept busy while it works", "85 %", checkGPU},
		{"memory-bandwidth", "memory bandwidth is not the bottleneck", "90 %", checkBandwidth},
		{"memory-available", "there is memory left", "10 %; 5 % is a failure", checkMemory},
		{"memory-pressure", "tasks do not wait for memory", "1 %; 10 % is a failure", checkPressure},
		{"memory-leak", "free memory does not shrink steadily", "1 % of memory a minute", checkLeak},
		{"largest-block", "memory is not fragmented", "64 MiB in largest free blocks", checkBlocks},
		{"cma", "contiguous memory is left for cameras and codecs", "10 %", checkCMA},
		{"swap", "no working memory is on a disk", "zram only; 0 pages a second", checkSwap},
		{"major-faults", "pages are not read back from the disk", "100 a second; 1000 is a failure", checkFaults},
		{"hugepages", "reserved huge pages are used", "some are in use", checkHugepages},
		{"thp", "huge pages do not fragment a small machine", "madvise at up to 16 GiB", checkTHP},
		{"ksm", "no memory is merged behind programs' backs", "off", checkKSM},
		{"io-scheduler", "fast disks are not scheduled twice", "none on NVMe", checkScheduler},
		{"io-queue", "disks have the right depth of work", "16 to 32 while busy", checkQueue},
		{"disk-writes", "an eMMC or SD card is not worn out", "20 GB a day", checkWrites},
		{"journald", "the system log on the disk is bounded", "SystemMaxUse= is set", checkJournald},
		{"irq-spread", "interrupts do not all hit one core", "80 % on one core", checkSpread},
		{"irq-isolation", "isolated cores get no interrupts", "100 a second", checkIsolation},
		{"workqueues", "isolated cores run no kernel workers", "outside the mask", checkWorkqueues},
		{"rt-throttling", "a runaway real-time task cannot take a core for ever", "sched_rt_runtime_us above 0", checkRT},
		{"network-errors", "packets arrive", "0.01 %", checkNetwork},
		{"network-latency", "the local network answers quickly", "1 ms", notMeasured("from another machine: ping -c 20 DEVICE")},
		{"kernel-occupancy", "GPU kernels fill the GPU", "60 %", notMeasured("profile with Nsight Compute: achieved_occupancy")},
	}
}

func notMeasured(how string) func(*Input) answer {
	return func(*Input) answer { return answer{Unknown, "", "not measurable from here; " + how} }
}

// over judges a number that should be low.
func over(v, warn, fail float64, unit, advice string) answer {
	a := answer{OK, strings.TrimSpace(fmt.Sprintf("%s %s", number(v), unit)), advice}
	switch {
	case v >= fail:
		a.verdict = Fail
	case v >= warn:
		a.verdict = Warn
	}
	return a
}

func number(v float64) string {
	if v == float64(int64(v)) || v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

func listed(names []string) string {
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func checkPlan(in *Input) answer {
	switch {
	case in.Refused != "":
		return answer{Fail, in.Refused, "see 'yoctuned status'; nothing tunes this device until it is right"}
	case in.Plan == nil:
		return answer{Warn, "no plan", "install an image with the layer, or name a plan: yoctuned doctor plan.json"}
	}
	return answer{OK, fmt.Sprintf("%s on %s, serial %d, %d settings", in.Plan.Target, in.Plan.Board, in.Plan.Serial, len(in.Plan.Settings)), ""}
}

func checkTrue(in *Input) answer {
	if in.Plan == nil {
		return answer{Skipped, "no plan", ""}
	}
	var bad []string
	for _, r := range in.Results {
		if !r.Satisfied() {
			bad = append(bad, fmt.Sprintf("%s (%s)", outcome.Name(r.Path), r.Outcome))
		}
	}
	if len(bad) > 0 {
		return answer{Fail, fmt.Sprintf("%d of %d: %s", len(bad), len(in.Results), listed(bad)), "'yoctuned verify' says why for each; 'yoctuned apply' sets them"}
	}
	return answer{OK, fmt.Sprintf("%d settings", len(in.Results)), ""}
}

func checkMode(in *Input) answer {
	want := ""
	if in.Plan != nil && in.Plan.Power != nil {
		want = in.Plan.Power.Default
	}
	switch {
	case in.Modes == nil && want == "":
		return answer{Skipped, "no power modes on this device", ""}
	case in.Modes == nil:
		return answer{Fail, "no power modes on this device", "nvpmodel and its table are not in the image: tegra-nvpmodel"}
	case in.Mode == "":
		return answer{Fail, "no mode is set", "nvpmodel has failed or never ran: systemctl status nvpmodel; the state is in /var/lib/nvpmodel/status"}
	case want != "" && in.Modes.Mode(want) == nil:
		return answer{Fail, in.Mode, fmt.Sprintf("the table on the device has no mode %s: it is another module's, or an older image's", want)}
	case want != "" && want != in.Mode:
		return answer{Fail, in.Mode + ", wanted " + want, "the state file beats the table's default; 'nvpmodel -m' may need a reboot, which it asks for on a terminal only"}
	}
	return answer{OK, in.Mode, ""}
}

func checkNodes(in *Input) answer {
	if in.Modes == nil {
		return answer{Skipped, "no power modes on this device", ""}
	}
	if gone := missingNodes(in.Dev); len(gone) > 0 {
		return answer{Fail, listed(gone), "nvpmodel stops at the first of them and leaves the mode half set: the driver is not bound (dmesg), or the table is another L4T's or module's"}
	}
	return answer{OK, "0", ""}
}

// owner is a program that writes knobs of a domain.
type owner struct{ comm, domain, advice string }

func owners() []owner {
	return []owner{
		{"tuned", "", "systemctl disable --now tuned"},
		{"power-profiles-", "", "systemctl disable --now power-profiles-daemon"},
		{"auto-cpufreq", plan.DomainCPU, "systemctl disable --now auto-cpufreq"},
		{"thermald", plan.DomainCPU, "systemctl disable --now thermald"},
		{"irqbalance", plan.DomainIRQ, "systemctl disable --now irqbalance, or ban the interrupts that the plan owns"},
		{"jtop", plan.DomainCPU, "jtop's service may lock clocks and drive the fan: systemctl disable --now jtop"},
	}
}

func checkOwners(in *Input) answer {
	var found, advice []string
	verdict := OK
	if in.Watch != nil && in.Watch.PID != 0 {
		for _, c := range in.Watch.Contested {
			who := "somebody"
			if c.By != nil {
				who = c.By.String()
			}
			verdict = Fail
			found = append(found, outcome.Name(c.Path)+" by "+who)
			advice = append(advice, "stop what insists on "+outcome.Name(c.Path))
		}
	}
	for _, o := range owners() {
		if !slices.ContainsFunc(in.Procs, func(p string) bool { return strings.HasPrefix(p, o.comm) }) || o.domain != "" && !in.wants(o.domain) {
			continue
		}
		if o.domain == "" && in.Plan == nil {
			continue
		}
		if verdict == OK {
			verdict = Warn
		}
		found, advice = append(found, o.comm+" runs"), append(advice, o.advice)
	}
	if verdict == OK {
		return answer{OK, "0", ""}
	}
	return answer{verdict, listed(found), strings.Join(advice, "; ")}
}

func checkThrottling(in *Input) answer {
	known, slow := 0, 0
	names := map[string]bool{}
	for _, s := range in.Samples {
		if !s.KnowsThrottling() {
			continue
		}
		known++
		if hot := s.Throttled(); len(hot) > 0 {
			slow++
			for _, c := range hot {
				names[c.Name] = true
			}
		}
	}
	if known == 0 {
		return answer{Unknown, "", "there is no cooling device to ask"}
	}
	share := 100 * float64(slow) / float64(known)
	a := over(share, 0.001, 20, "% of the time", "cool better, or choose a lower power mode: a capped mode that is held is faster than one that throttles")
	if slow > 0 {
		var list []string
		for n := range names {
			list = append(list, n)
		}
		slices.Sort(list)
		a.measured += ": " + listed(list)
	}
	return a
}

func checkCurrent(in *Input) answer {
	first := map[string]int64{}
	for _, s := range in.Samples {
		for _, a := range s.Alarms {
			if _, ok := first[a.Name]; !ok && a.Events != nil {
				first[a.Name] = *a.Events
			}
		}
	}
	if len(first) == 0 {
		return answer{Unknown, "", "this kernel has no over-current counters"}
	}
	total, grown := int64(0), int64(0)
	for _, a := range in.last().Alarms {
		if a.Events != nil {
			total += *a.Events
			grown += *a.Events - first[a.Name]
		}
	}
	advice := "the supply or the carrier does not give what the mode draws: the next lower power mode, or a stronger supply"
	switch {
	case grown > 0:
		return answer{Fail, fmt.Sprintf("%d events while watching, %d since boot", grown, total), advice}
	case total > 0:
		return answer{Warn, fmt.Sprintf("%d events since boot", total), advice}
	}
	return answer{OK, "0 events", ""}
}

func checkMargin(in *Input) answer {
	least, name := int64(1<<40), ""
	for _, s := range in.Samples {
		for _, z := range s.Zones {
			if z.Temp == nil || z.Placeholder {
				continue
			}
			limit := int64(passiveUnknown)
			if z.Passive != nil {
				limit = *z.Passive
			} else if z.Critical != nil {
				limit = min(limit, *z.Critical)
			}
			if m := limit - *z.Temp; m < least {
				least, name = m, z.Name
			}
		}
	}
	if name == "" {
		return answer{Unknown, "", "no thermal zone can be read"}
	}
	a := answer{OK, fmt.Sprintf("%.1f °C (%s)", float64(least)/1000, name), "a fan curve that starts earlier, more air, or a lower power mode"}
	switch {
	case least <= 0:
		a.verdict = Fail
	case least < thermalMargin:
		a.verdict = Warn
	}
	return a
}

func checkFan(in *Input) answer {
	s := in.last()
	if len(s.Fans) == 0 {
		return answer{Skipped, "no fan", ""}
	}
	turning, known := false, false
	for _, f := range s.Fans {
		if v := f.RPM; v != nil {
			known, turning = true, turning || *v > 0
		} else if v := f.PWM; v != nil {
			known, turning = true, turning || *v > 0
		}
	}
	hot := s.Hottest()
	switch {
	case !known || hot == nil:
		return answer{Unknown, "", "neither speed nor temperature can be read"}
	case !turning && *hot.Temp > 70_000:
		return answer{Fail, fmt.Sprintf("stands still at %.1f °C", float64(*hot.Temp)/1000), "systemctl status nvfancontrol; it takes a new profile only when /var/lib/nvfancontrol/status is removed"}
	}
	state := "stands still"
	if turning {
		state = "turns"
	}
	return answer{OK, fmt.Sprintf("%s at %.1f °C", state, float64(*hot.Temp)/1000), ""}
}

func checkSensors(in *Input) answer {
	var names []string
	for _, st := range in.last().Stale {
		names = append(names, fmt.Sprintf("%s (%.1f s)", st.Sensor, float64(st.For)/1000))
	}
	if len(names) > 0 {
		return answer{Warn, listed(names), "a driver or firmware hangs; dmesg says more"}
	}
	return answer{OK, "0", ""}
}

func checkGovernor(in *Input) answer {
	seen := map[string]bool{}
	var slow []string
	for _, c := range in.last().CPUs {
		if c.Governor == nil {
			continue
		}
		seen[*c.Governor] = true
		if *c.Governor == "powersave" {
			slow = append(slow, "cpu"+strconv.Itoa(c.Number))
		}
	}
	if len(seen) == 0 {
		return answer{Unknown, "", "no frequency scaling here"}
	}
	if len(slow) > 0 {
		return answer{Warn, "powersave on " + listed(slow), "cpu: governor: \"schedutil\" in the configuration"}
	}
	var names []string
	for g := range seen {
		names = append(names, g)
	}
	slices.Sort(names)
	return answer{OK, strings.Join(names, ", "), ""}
}

// busiest is the core with the highest average load, in permille.
func (in *Input) busiest() (core int, load float64, ok bool) {
	for i, c := range in.last().CPUs {
		l, known := in.average(func(s *monitor.Sample) *int64 {
			if i < len(s.CPUs) {
				return s.CPUs[i].Load
			}
			return nil
		})
		if known && (!ok || l > load) {
			core, load, ok = c.Number, l, true
		}
	}
	return core, load, ok
}

func (in *Input) gpuLoad() (float64, bool) {
	return in.average(func(s *monitor.Sample) *int64 {
		if len(s.GPUs) == 0 {
			return nil
		}
		return s.GPUs[0].Load
	})
}

func checkCPU(in *Input) answer {
	core, load, ok := in.busiest()
	if !ok {
		return answer{Unknown, "", "the load could not be read"}
	}
	a := over(load/10, 90, 101, "%", "one thread is the limit: split it, move pre- and post-processing to the GPU, or pin it to a core of its own")
	a.measured += fmt.Sprintf(" (cpu%d)", core)
	return a
}

func checkGPU(in *Input) answer {
	load, ok := in.gpuLoad()
	if !ok {
		return answer{Unknown, "", "no GPU load can be read"}
	}
	measured := number(load/10) + " %"
	if load < 100 {
		return answer{Skipped, measured + ": idle", ""}
	}
	if load >= 850 {
		return answer{OK, measured, ""}
	}
	advice := "larger batches, several streams, or stages that overlap"
	if core, cpu, ok := in.busiest(); ok && cpu >= 900 {
		advice = fmt.Sprintf("it waits for cpu%d (%s %%): that is the bottleneck", core, number(cpu/10))
	}
	return answer{Warn, measured, advice}
}

func checkBandwidth(in *Input) answer {
	load, ok := in.average(func(s *monitor.Sample) *int64 {
		if s.EMC == nil {
			return nil
		}
		return s.EMC.Load
	})
	if !ok {
		return answer{Unknown, "", "there is no memory controller to ask; as another user than root none can be seen, as it is in debugfs"}
	}
	return over(load/10, 90, 101, "%", "smaller data (fp16, int8), zero-copy buffers, or a mode with a faster memory clock")
}

func checkMemory(in *Input) answer {
	m := in.last().Memory
	if m.Available == nil || m.Total == nil || *m.Total <= 0 {
		return answer{Unknown, "", "/proc/meminfo cannot be read"}
	}
	share := 100 * float64(*m.Available) / float64(*m.Total)
	a := answer{OK, number(share) + " %", "'yoctuned mem' shows who holds it"}
	switch {
	case share < 5:
		a.verdict = Fail
	case share < 10:
		a.verdict = Warn
	}
	return a
}

func checkPressure(in *Input) answer {
	p := in.last().Pressure.Memory
	if p == nil {
		return answer{Unknown, "", "the kernel has no pressure information (CONFIG_PSI, psi=1)"}
	}
	return over(*p, 1, 10, "%", "'yoctuned mem' shows who holds memory; compressed swap (memory: zram) buys time")
}

func checkLeak(in *Input) answer {
	n := len(in.Samples)
	if n < 10 || time.Duration(in.Samples[n-1].Monotonic-in.Samples[0].Monotonic) < leakWindow {
		return answer{Skipped, "watched for less than a minute", ""}
	}
	// The slope of a straight line through what is available.
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
	return over(lost, 1, 101, "% a minute", "'yoctuned mem' twice, some minutes apart, shows which process grows")
}

func checkBlocks(in *Input) answer {
	m := in.last().Memory
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
	m := in.last().Memory
	if m.CMATotal == nil || m.CMAFree == nil || *m.CMATotal == 0 {
		return answer{Skipped, "none reserved", ""}
	}
	share := 100 * float64(*m.CMAFree) / float64(*m.CMATotal)
	a := answer{OK, fmt.Sprintf("%s %% of %d MiB", number(share), *m.CMATotal>>20), "a larger cma= kernel argument"}
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
	advice := "take the swap file away, or use compressed memory instead (memory: zram); vm.swappiness alone does not stop it"
	switch {
	case len(disks) > 0 && rate > 0:
		return answer{Fail, fmt.Sprintf("%s pages a second to %s", number(rate), listed(disks)), advice}
	case len(disks) > 0:
		return answer{Warn, listed(disks), advice}
	case rate > 0:
		return answer{OK, fmt.Sprintf("%s pages a second, to zram", number(rate)), ""}
	}
	return answer{OK, "no swap on a disk", ""}
}

func checkFaults(in *Input) answer {
	rate, ok := in.rate("pgmajfault")
	if !ok {
		return answer{Unknown, "", "/proc/vmstat cannot be read"}
	}
	return over(rate, 100, 1000, "a second", "lock the working set (LimitMEMLOCK, mlockall), or make room: programs and models are read from the disk again and again")
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
		return answer{Warn, fmt.Sprintf("0 of %d", total), "nobody maps them, and nobody else can have that memory: use them (MAP_HUGETLB, hugetlbfs) or do not reserve them"}
	}
	return answer{OK, fmt.Sprintf("%d of %d", total-free, total), ""}
}

func checkTHP(in *Input) answer {
	mode := chosen(in.text("/sys/kernel/mm/transparent_hugepage/enabled"))
	total := in.last().Memory.Total
	switch {
	case mode == "":
		return answer{Skipped, "not in this kernel", ""}
	case mode == "always" && total != nil && *total <= smallMachine:
		return answer{Warn, mode, "memory: thp: \"madvise\" in the configuration"}
	}
	return answer{OK, mode, ""}
}

func checkKSM(in *Input) answer {
	switch run := in.text("/sys/kernel/mm/ksm/run"); run {
	case "":
		return answer{Skipped, "not in this kernel", ""}
	case "1":
		return answer{Warn, "on", "memory: ksm: false in the configuration: its scans cost a core and its unsharing costs latency"}
	default:
		return answer{OK, "off", ""}
	}
}

func checkScheduler(in *Input) answer {
	nodes, err := rootfs.Nodes(in.Dev, rootfs.ClassBlock)
	if err != nil {
		return answer{Unknown, "", err.Error()}
	}
	var bad []string
	n := 0
	for _, d := range nodes {
		if !strings.HasPrefix(d.Name, "nvme") {
			continue
		}
		n++
		if s := chosen(in.text(d.Path + "/queue/scheduler")); s != "none" && s != "" {
			bad = append(bad, d.Name+" "+s)
		}
	}
	switch {
	case n == 0:
		return answer{Skipped, "no NVMe", ""}
	case len(bad) > 0:
		return answer{Warn, listed(bad), "storage: \"nvme*\": scheduler: \"none\" in the configuration"}
	}
	return answer{OK, "none", ""}
}

// wholeDisk leaves partitions out: nvme0n1p1, mmcblk0p1, sda1.
func wholeDisk(dev rootfs.FS, name string) bool {
	_, err := dev.Resolve("/sys/block/" + name)
	return err == nil && !strings.HasPrefix(name, "loop") && !strings.HasPrefix(name, "ram") && !strings.HasPrefix(name, "zram")
}

func checkQueue(in *Input) answer {
	ms := in.seconds() * 1000
	if ms <= 0 || len(in.After.Disks) == 0 {
		return answer{Unknown, "", "/proc/diskstats cannot be read"}
	}
	worst := answer{Skipped, "no disk is busy", ""}
	for name, now := range in.After.Disks {
		was, ok := in.Before.Disks[name]
		busy := float64(now.Busy - was.Busy)
		if !ok || !wholeDisk(in.Dev, name) || busy*1000/ms < busyQueue {
			continue
		}
		depth := float64(now.Weighted-was.Weighted) / busy
		a := answer{OK, fmt.Sprintf("%s: %s while busy", name, number(depth)), ""}
		switch {
		case depth > 32:
			a.verdict, a.advice = Warn, "more is asked than the disk does at once, and each waits: fewer writers, or a smaller nr_requests"
		case depth < 16:
			a.verdict, a.advice = Warn, "the disk is busy with little in flight: larger or more parallel reads (io_uring, readahead)"
		}
		if worst.verdict == Skipped || a.verdict == Warn {
			worst = a
		}
	}
	return worst
}

func checkWrites(in *Input) answer {
	if in.seconds() <= 0 || len(in.After.Disks) == 0 {
		return answer{Unknown, "", "/proc/diskstats cannot be read"}
	}
	n, mb := 0, 0.0
	for name, now := range in.After.Disks {
		if was, ok := in.Before.Disks[name]; ok && strings.HasPrefix(name, "mmcblk") && wholeDisk(in.Dev, name) {
			n++
			mb += float64(now.Written-was.Written) * 512 / 1e6 / in.seconds() * 86400
		}
	}
	if n == 0 {
		return answer{Skipped, "no eMMC or SD card", ""}
	}
	return over(mb/1000, writesPerDay/1000, 1e12, "GB a day at this rate", "logs to memory (journald Storage=volatile), longer vm.dirty_expire_centisecs, data to another disk")
}

func checkJournald(in *Input) answer {
	if _, err := in.Dev.Mode("/var/log/journal"); errors.Is(err, fs.ErrNotExist) {
		return answer{OK, "in memory", ""}
	}
	files := []string{"/etc/systemd/journald.conf"}
	for _, dir := range []string{"/usr/lib/systemd/journald.conf.d", "/etc/systemd/journald.conf.d"} {
		names, err := in.Dev.List(dir)
		if err != nil {
			continue
		}
		for _, n := range names {
			files = append(files, dir+"/"+n)
		}
	}
	storage, limit := "", ""
	for _, f := range files {
		b, err := in.Dev.ReadFile(f, 64<<10)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch key {
			case "Storage":
				storage = value
			case "SystemMaxUse":
				limit = value
			}
		}
	}
	switch {
	case storage == "volatile" || storage == "none":
		return answer{OK, "Storage=" + storage, ""}
	case limit == "":
		return answer{Warn, "on the disk, up to a tenth of it", "SystemMaxUse=50M, or Storage=volatile, in /etc/systemd/journald.conf.d/"}
	}
	return answer{OK, "SystemMaxUse=" + limit, ""}
}

// interruptRates are interrupts a second by CPU; nil when they are not known.
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

func checkSpread(in *Input) answer {
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
		return answer{Skipped, fmt.Sprintf("%s a second in all", number(sum)), ""}
	}
	a := answer{OK, fmt.Sprintf("%s %% on cpu%d", number(100*most/sum), core), "irq: affinity in the configuration: the network card and the disk away from the core that takes them all"}
	if most/sum > 0.8 {
		a.verdict = Warn
	}
	return a
}

func checkIsolation(in *Input) answer {
	cores := in.isolated()
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
	a := over(worst, 100, 1000, "a second", "irq: affinity for what is left in /proc/interrupts, nohz_full and rcu_nocbs for the timer: cpu: isolate sets all of them")
	a.measured += fmt.Sprintf(" (cpu%d)", at)
	return a
}

func checkWorkqueues(in *Input) answer {
	cores := in.isolated()
	if len(cores) == 0 {
		return answer{Skipped, "no core is isolated", ""}
	}
	mask := in.text("/sys/devices/virtual/workqueue/cpumask")
	if mask == "" {
		return answer{Unknown, "", "this kernel has no mask for unbound workers"}
	}
	bits, err := strconv.ParseUint(strings.ReplaceAll(mask, ",", ""), 16, 64)
	if err != nil {
		return answer{Unknown, mask, "more cores than this check knows"}
	}
	for _, c := range cores {
		if c < 64 && bits&(1<<c) != 0 {
			return answer{Warn, mask + " has cpu" + strconv.Itoa(c), "write a mask without the isolated cores to /sys/devices/virtual/workqueue/cpumask"}
		}
	}
	return answer{OK, mask, ""}
}

func checkRT(in *Input) answer {
	v := in.text("/proc/sys/kernel/sched_rt_runtime_us")
	switch v {
	case "":
		return answer{Unknown, "", "/proc/sys/kernel/sched_rt_runtime_us cannot be read"}
	case "-1":
		return answer{Warn, v, "give the one task a core of its own (cpu: isolate) instead of all tasks the right to hang the machine"}
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
	return over(100*float64(bad)/float64(packets), 0.01, 1, "%", "ethtool -S says which: full rings (ethtool -g), a bad cable, or a core that does not keep up")
}
