package doctor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/doctor"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/device/power"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/schema/plan"
)

// patient is a synthetic Orin Nano that is observed for ten seconds.
type patient struct {
	t   *testing.T
	dir string
	dev *rootfs.Root
	in  doctor.Input
}

func (p *patient) write(name, text string) {
	p.t.Helper()
	host := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(host), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(host, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// each calls change with every sample.
func (p *patient) each(change func(n int, s *monitor.Sample)) {
	for n, s := range p.in.Samples {
		change(n, s)
	}
}

// examine observes a patient and returns the findings by check. before changes it in advance and
// during while it is observed.
func examine(t *testing.T, before, during func(*patient)) map[string]doctor.Finding {
	t.Helper()
	p := &patient{t: t, dir: t.TempDir()}
	if err := devicetest.Build(p.dir, "orin-nano-8gb"); err != nil {
		t.Fatal(err)
	}
	dev, err := rootfs.Open(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	p.dev, p.in.Dev = dev, dev
	if before != nil {
		before(p)
	}
	p.in.Before = doctor.ReadCounters(dev, 0)
	sampler := monitor.New(dev)
	for n := range 11 {
		s := sampler.Take()
		s.Monotonic = int64(n) * int64(10*time.Second)
		for i := range s.CPUs {
			s.CPUs[i].Load = new(int64(200))
		}
		p.in.Samples = append(p.in.Samples, s)
	}
	if during != nil {
		during(p)
	}
	p.in.After = doctor.ReadCounters(dev, 10*time.Second)
	if p.in.Modes, err = power.Read(dev); err == nil && p.in.Modes != nil {
		if id, err := power.Current(dev, p.in.Modes); err == nil {
			p.in.Mode = p.in.Modes.ModeName(id)
		}
	}
	if p.in.Units == nil {
		p.in.Units = map[string]rootfs.UnitState{"nvpmodel.service": {Load: "loaded", Active: "active"}}
	}
	out := map[string]doctor.Finding{}
	for _, f := range doctor.Examine(&p.in) {
		out[f.Check] = f
	}
	return out
}

func TestHealthyBoardHasNoFindings(t *testing.T) {
	want := map[string]doctor.Verdict{
		"plan": doctor.Warn, "thp": doctor.Warn, // the kernel's default, and no plan
		"plan-true": doctor.Skipped, "pipelines": doctor.Skipped, "sysctl-files": doctor.Skipped, "gpu-load": doctor.OK, "hugepages": doctor.Skipped, "io-queue": doctor.Skipped,
		"irq-spread": doctor.Skipped, "irq-isolation": doctor.Skipped, "workqueues": doctor.Skipped, "network-errors": doctor.Skipped,
		"network-latency": doctor.Unknown, "kernel-occupancy": doctor.Unknown,
	}
	for id, f := range examine(t, nil, func(p *patient) {
		p.each(func(_ int, s *monitor.Sample) { s.GPUs[0].Load = new(int64(930)) })
	}) {
		w := want[id]
		if w == "" {
			w = doctor.OK
		}
		if f.Verdict != w {
			t.Errorf("%s is %s, want %s: %+v", id, f.Verdict, w, f)
		}
	}
}

func processor(name string) func(*patient) {
	return func(p *patient) { p.write("/proc/812/comm", name+"\n") }
}

// isolate isolates the last two cores, as isolcpus=4,5 does.
func isolate(p *patient) { p.write("/sys/devices/system/cpu/isolated", "4-5\n") }

func interrupts(counts ...int) string {
	var head, line strings.Builder
	for i, n := range counts {
		fmt.Fprintf(&head, " CPU%d", i)
		fmt.Fprintf(&line, " %d", n)
	}
	return head.String() + "\n 40:" + line.String() + " GICv3 40 Level eth0\nERR: 0\n"
}

func TestExamineFindsEachFault(t *testing.T) {
	withPlan := func(p *patient) {
		p.in.Plan = &plan.Plan{Target: "cam", Board: "orin-nano-8gb", Settings: []plan.Setting{{Domain: plan.DomainIRQ}, {Domain: plan.DomainCPU}}}
	}
	for _, c := range []struct {
		name, check    string
		verdict        doctor.Verdict
		text           string // in measured or advice
		before, during func(*patient)
	}{
		{"a plan is refused", "plan", doctor.Fail, "another board", func(p *patient) { p.in.Refused = "it is for another board" }, nil},
		{"a setting differs", "plan-true", doctor.Fail, "vm.swappiness (differs)", withPlan, func(p *patient) {
			p.in.Results = []enforce.Result{{Path: "/proc/sys/vm/swappiness", Outcome: outcome.Differs}}
		}},
		{"a pipeline does not run", "pipelines", doctor.Warn, "belt: not running, not enabled", withPlan, func(p *patient) {
			p.in.Pipelines = []pipelines.State{{Pipeline: "belt", Start: true, Running: new(false)}}
		}},
		{"nvpmodel never ran", "power-mode", doctor.Fail, "no mode is set", nil, func(p *patient) { p.write("/var/lib/nvpmodel/status", "") }},
		{"another mode", "power-mode", doctor.Fail, "25W, wanted MAXN_SUPER", func(p *patient) {
			p.in.Plan = &plan.Plan{Power: &plan.Power{Default: "MAXN_SUPER"}}
		}, nil},
		{"another module's table", "power-mode", doctor.Fail, "no mode MAXN", func(p *patient) {
			p.in.Plan = &plan.Plan{Power: &plan.Power{Default: "MAXN"}}
		}, nil},
		{"the GPU driver is not bound", "power-nodes", doctor.Fail, "available_frequencies", func(p *patient) {
			p.write("/etc/nvpmodel.conf", "< PARAM TYPE=CLOCK NAME=GPU >\nFREQ_TABLE /sys/gone/available_frequencies\n< POWER_MODEL ID=0 NAME=A >\n< PM_CONFIG DEFAULT=0 >\n")
		}, nil},
		{"tuned fights", "two-owners", doctor.Fail, "vm.swappiness by tuned (pid 401, tuned.service)", nil, func(p *patient) {
			p.in.Watch = &watch.State{PID: 301, Contested: []watch.Contested{{Path: "/proc/sys/vm/swappiness", By: &rootfs.Process{PID: 401, Command: "tuned", Unit: "tuned.service"}}}}
		}},
		{"irqbalance moves planned interrupts", "two-owners", doctor.Warn, "irqbalance", withPlan, processor("irqbalance")},
		{"nvpmodel stopped half way", "services", doctor.Fail, "nvpmodel.service failed", func(p *patient) {
			p.in.Units = map[string]rootfs.UnitState{"nvpmodel.service": {Load: "loaded", Active: "failed"}, "jetson_clocks.service": {Load: "not-found", Active: "inactive"}}
		}, nil},
		{"jetson_clocks is started at boot", "services", doctor.Warn, "jetson_clocks.service is running", func(p *patient) {
			p.in.Units = map[string]rootfs.UnitState{"jetson_clocks.service": {Load: "loaded", Active: "active"}}
		}, nil},
		{"jetson_clocks was run", "services", doctor.Warn, "jetson_clocks --restore", func(p *patient) {
			for _, policy := range []string{"policy0", "policy4"} {
				top := p.in.Dev
				c, err := top.Read("/sys/devices/system/cpu/cpufreq/" + policy + "/cpuinfo_max_freq")
				if err != nil {
					p.t.Fatal(err)
				}
				p.write("/sys/devices/system/cpu/cpufreq/"+policy+"/scaling_min_freq", c.Text)
				p.write("/sys/devices/system/cpu/cpufreq/"+policy+"/scaling_max_freq", c.Text)
			}
		}, nil},
		{"a Super table on firmware without Super support", "super-clocks", doctor.Fail, "CPU 1510 of 1728 MHz", func(p *patient) {
			for _, policy := range []string{"policy0", "policy4"} {
				p.write("/sys/devices/system/cpu/cpufreq/"+policy+"/scaling_available_frequencies", "729600 1190400 1510400\n")
			}
		}, nil},
		{"a Super table on memory without Super clocks", "super-clocks", doctor.Fail, "EMC 2133 of 3199 MHz", func(p *patient) {
			p.write("/sys/kernel/debug/bpmp/debug/clk/emc/max_rate", "2133000000\n")
		}, nil},
		{"another file sets a sysctl", "sysctl-files", doctor.Warn, "vm.swappiness=60 in /etc/sysctl.d/99-local.conf:3", func(p *patient) {
			p.in.Plan = &plan.Plan{Settings: []plan.Setting{
				{Domain: plan.DomainSysctl, Type: plan.TypeInt, Compare: plan.Exact, Want: "10", Select: plan.Select{Path: "/proc/sys/vm/swappiness"}},
			}}
			p.write("/usr/lib/sysctl.d/99-local.conf", "vm.swappiness = 1\n") // hidden by its namesake
			p.write("/etc/sysctl.d/50-same.conf", "vm/swappiness=10\n")
			p.write("/etc/sysctl.d/99-local.conf", "# mine\n\n-vm.swappiness = 60\n")
		}, nil},
		{"a pattern sets it", "sysctl-files", doctor.Warn, "net.ipv4.conf.eth0.rp_filter=2 in /usr/lib/sysctl.d/50-default.conf:1", func(p *patient) {
			p.in.Plan = &plan.Plan{Settings: []plan.Setting{
				{Domain: plan.DomainSysctl, Type: plan.TypeInt, Compare: plan.Exact, Want: "1", Select: plan.Select{Path: "/proc/sys/net/ipv4/conf/eth0/rp_filter"}},
			}}
			p.write("/usr/lib/sysctl.d/50-default.conf", "net.ipv4.conf.*.rp_filter = 2\n")
		}, nil},
		{"the last line of a file is the one that acts, and excludes hold", "sysctl-files", doctor.OK, "2 sysctls, no other file", func(p *patient) {
			p.in.Plan = &plan.Plan{Settings: []plan.Setting{
				{Domain: plan.DomainSysctl, Type: plan.TypeInt, Compare: plan.Exact, Want: "10", Select: plan.Select{Path: "/proc/sys/vm/swappiness"}},
				{Domain: plan.DomainSysctl, Type: plan.TypeInt, Compare: plan.Exact, Want: "1", Select: plan.Select{Path: "/proc/sys/net/ipv4/conf/eth0/rp_filter"}},
			}}
			p.write("/etc/sysctl.d/50-a.conf", "vm.swappiness = 60\nvm.swappiness = 10\nnet.ipv4.conf.*.rp_filter = 2\n-net.ipv4.conf.eth0.rp_filter\n")
		}, nil},
		{"it throttles all the time", "throttling", doctor.Fail, "100 % of the time: devfreq-17000000.gpu", func(p *patient) {
			p.write("/sys/class/thermal/cooling_device3/cur_state", "2\n")
		}, nil},
		{"it throttles sometimes", "throttling", doctor.Warn, "9.1 % of the time", nil, func(p *patient) { p.in.Samples[3].Cooling[1].State = new(int64(1)) }},
		{"the supply is weak", "over-current", doctor.Fail, "5 events during the check", nil, func(p *patient) {
			p.in.Samples[10].Alarms[0].Events = new(int64(5))
		}},
		{"the supply was weak", "over-current", doctor.Warn, "3 events since boot", func(p *patient) { p.write("/sys/class/hwmon/hwmon3/oc1_event_cnt", "3\n") }, nil},
		{"it is nearly too hot", "thermal-margin", doctor.Warn, "1.0 °C (tj-thermal)", func(p *patient) { p.write("/sys/class/thermal/thermal_zone8/temp", "98000\n") }, nil},
		{"it is too hot", "thermal-margin", doctor.Fail, "tj-thermal", func(p *patient) { p.write("/sys/class/thermal/thermal_zone8/temp", "100000\n") }, nil},
		{"the fan is stopped", "fan", doctor.Fail, "stopped at 80.0 °C", func(p *patient) {
			p.write("/sys/class/hwmon/hwmon2/rpm", "0\n")
			p.write("/sys/class/hwmon/hwmon1/pwm1", "0\n")
			p.write("/sys/class/thermal/thermal_zone8/temp", "80000\n")
		}, nil},
		{"a sensor hangs", "sensors", doctor.Warn, "temperature cpu-thermal (3.0 s)", nil, func(p *patient) {
			p.in.Samples[10].Stale = []monitor.Stale{{Sensor: "temperature cpu-thermal", For: 3000}}
		}},
		{"the clock is held low", "governor", doctor.Warn, "powersave on cpu4, cpu5", func(p *patient) {
			p.write("/sys/devices/system/cpu/cpufreq/policy4/scaling_governor", "powersave\n")
		}, nil},
		{"one thread is the limit", "cpu-load", doctor.Warn, "97 % (cpu2)", nil, func(p *patient) {
			p.each(func(_ int, s *monitor.Sample) { s.CPUs[2].Load = new(int64(970)) })
		}},
		{"all cores are busy", "cpu-load", doctor.Warn, "all cores, 95 % and more", nil, func(p *patient) {
			p.each(func(_ int, s *monitor.Sample) {
				for i := range s.CPUs {
					s.CPUs[i].Load = new(int64(950))
				}
			})
		}},
		{"the GPU waits for it", "gpu-load", doctor.Warn, "waits for cpu2", nil, func(p *patient) {
			p.each(func(_ int, s *monitor.Sample) { s.CPUs[2].Load, s.GPUs[0].Load = new(int64(970)), new(int64(400)) })
		}},
		{"the GPU is not busy", "gpu-load", doctor.Warn, "larger batches", nil, func(p *patient) {
			p.each(func(_ int, s *monitor.Sample) { s.GPUs[0].Load = new(int64(400)) })
		}},
		{"bandwidth is the limit", "memory-bandwidth", doctor.Warn, "95 %", nil, func(p *patient) {
			p.each(func(_ int, s *monitor.Sample) { s.EMC.Load = new(int64(950)) })
		}},
		{"memory is short", "memory-available", doctor.Fail, "yoctuned mem", nil, func(p *patient) { p.in.Samples[10].Memory.Available = new(int64(100 << 20)) }},
		{"tasks wait for memory", "memory-pressure", doctor.Fail, "12 %", func(p *patient) { p.write("/proc/pressure/memory", "some avg10=12.00 avg60=0.00\n") }, nil},
		{"it leaks", "memory-leak", doctor.Warn, "a minute", nil, func(p *patient) {
			p.each(func(n int, s *monitor.Sample) { s.Memory.Available = new(int64(6<<30 - n*40<<20)) })
		}},
		{"memory is fragmented", "largest-block", doctor.Warn, "3 x 4096 KiB", nil, func(p *patient) {
			p.in.Samples[10].Memory.Largest, p.in.Samples[10].Memory.LargestN = new(int64(4<<20)), new(int64(3))
		}},
		{"cameras get no buffers", "cma", doctor.Warn, "2 % of 256 MiB", nil, func(p *patient) { p.in.Samples[10].Memory.CMAFree = new(int64(5369000)) }},
		{"a swap file", "swap", doctor.Warn, "/swapfile", func(p *patient) { p.write("/proc/swaps", "Filename Type Size Used Priority\n/swapfile file 1 0 -2\n") }, nil},
		{"it swaps to the disk", "swap", doctor.Fail, "150 pages a second to /swapfile", func(p *patient) {
			p.write("/proc/swaps", "Filename Type Size Used Priority\n/swapfile file 1 0 -2\n")
			p.write("/proc/vmstat", "pswpin 0\npswpout 0\n")
		}, func(p *patient) { p.write("/proc/vmstat", "pswpin 500\npswpout 1000\n") }},
		{"models are read again and again", "major-faults", doctor.Fail, "2000 a second", func(p *patient) { p.write("/proc/vmstat", "pgmajfault 0\n") },
			func(p *patient) { p.write("/proc/vmstat", "pgmajfault 20000\n") }},
		{"huge pages lie idle", "hugepages", doctor.Warn, "0 of 64", func(p *patient) {
			p.write("/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\nHugePages_Total: 64\nHugePages_Free: 64\n")
		}, nil},
		{"huge pages everywhere", "thp", doctor.Warn, "madvise", nil, nil},
		{"pages are merged", "ksm", doctor.Warn, "on", func(p *patient) { p.write("/sys/kernel/mm/ksm/run", "1\n") }, nil},
		{"NVMe is scheduled", "io-scheduler", doctor.Warn, "nvme0n1 kyber", func(p *patient) { p.write("/sys/block/nvme0n1/queue/scheduler", "none mq-deadline [kyber]\n") }, nil},
		{"the disk queue is too long", "io-queue", doctor.Warn, "nvme0n1: 60 while busy", nil, func(p *patient) {
			p.write("/proc/diskstats", " 259 0 nvme0n1 0 0 0 0 0 0 240000 0 0 12000 543500 0 0 0 0 0 0\n")
		}},
		{"the disk queue is too short", "io-queue", doctor.Warn, "nvme0n1: 1 while busy", nil, func(p *patient) {
			p.write("/proc/diskstats", " 259 0 nvme0n1 0 0 0 0 0 0 240000 0 0 12000 12500 0 0 0 0 0 0\n")
		}},
		{"the eMMC wears out", "disk-writes", doctor.Warn, "GB a day", nil, func(p *patient) {
			p.write("/proc/diskstats", " 179 0 mmcblk0 0 0 0 0 0 0 100080 0 0 60 55 0 0 0 0 0 0\n")
		}},
		{"the log grows", "journald", doctor.Warn, "SystemMaxUse", func(p *patient) { p.write("/var/log/journal/x", "") }, nil},
		{"one core takes all interrupts", "irq-spread", doctor.Warn, "95 % on cpu0", func(p *patient) { p.write("/proc/interrupts", interrupts(0, 0, 0, 0, 0, 0)) },
			func(p *patient) { p.write("/proc/interrupts", interrupts(95000, 1000, 1000, 1000, 1000, 1000)) }},
		{"an isolated core is interrupted", "irq-isolation", doctor.Warn, "500 a second (cpu5)", func(p *patient) { isolate(p); p.write("/proc/interrupts", interrupts(0, 0, 0, 0, 0, 0)) },
			func(p *patient) { p.write("/proc/interrupts", interrupts(1, 1, 1, 1, 1, 5000)) }},
		{"kernel workers on an isolated core", "workqueues", doctor.Warn, "0-5 includes cpu4", func(p *patient) { isolate(p); p.write("/sys/devices/virtual/workqueue/cpumask", "3f\n") }, nil},
		{"real-time tasks may hang it", "rt-throttling", doctor.Warn, "-1", func(p *patient) { p.write("/proc/sys/kernel/sched_rt_runtime_us", "-1\n") }, nil},
		{"packets are lost", "network-errors", doctor.Fail, "5 %", func(p *patient) { p.write("/sys/class/net/eth0/statistics/rx_packets", "0\n") }, func(p *patient) {
			p.write("/sys/class/net/eth0/statistics/rx_packets", "1000\n")
			p.write("/sys/class/net/eth0/statistics/rx_dropped", "50\n")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := examine(t, c.before, c.during)[c.check]
			if f.Verdict != c.verdict || !strings.Contains(f.Measured+" "+f.Advice, c.text) || f.Advice == "" && f.Verdict != doctor.OK {
				t.Errorf("want %s and %q: %+v", c.verdict, c.text, f)
			}
		})
	}
}

// Every check has a test in which it warns or fails, except the two that cannot be measured.
func TestEveryCheckHasAFailingCase(t *testing.T) {
	source, err := os.ReadFile("doctor_test.go")
	if err != nil {
		t.Fatal(err)
	}
	dev, err := rootfs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range doctor.Examine(&doctor.Input{Dev: dev}) {
		if f.Check != "network-latency" && f.Check != "kernel-occupancy" && !strings.Contains(string(source), `", "`+f.Check+`", doctor.`) {
			t.Errorf("no test makes %s addFault", f.Check)
		}
	}
}

func TestDeviceWithoutFilesIsUnknown(t *testing.T) {
	dev, err := rootfs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range doctor.Examine(&doctor.Input{Dev: dev}) {
		if f.Verdict == doctor.Fail || f.Verdict == doctor.Warn && f.Check != "plan" {
			t.Errorf("%+v", f)
		}
	}
}
