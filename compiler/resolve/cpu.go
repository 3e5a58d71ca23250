package resolve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/plan"
)

// Isolated returns the cores that the target keeps free.
func (t *Target) Isolated() []int { return config.Cores(t.Config.CPU.Isolate) }

// Housekeeping returns the cores that serve everything else.
func (t *Target) Housekeeping() []int {
	isolated := t.Isolated()
	var out []int
	for c := range t.Board.Cores {
		if !slices.Contains(isolated, c) {
			out = append(out, c)
		}
	}
	return out
}

func (r *resolver) resolveCPU() {
	c := &r.c.CPU
	r.setText(c.Governor, plan.Setting{Domain: plan.DomainCPU, Type: plan.TypeString, Select: plan.Select{Class: "cpufreq", Attr: "scaling_governor"}})
	// cpufreq counts in kHz.
	if khz := r.clock(c.Min, 1000); khz != "" {
		r.set(c.Min, plan.Setting{Domain: plan.DomainCPU, Type: plan.TypeInt, Want: khz, Select: plan.Select{Class: "cpufreq", Attr: "scaling_min_freq"}})
	}
	if khz := r.clock(c.Max, 1000); khz != "" {
		r.set(c.Max, plan.Setting{Domain: plan.DomainCPU, Type: plan.TypeInt, Want: khz, Select: plan.Select{Class: "cpufreq", Attr: "scaling_max_freq"}})
	}
	r.setText(c.EPP, plan.Setting{Domain: plan.DomainCPU, Type: plan.TypeString,
		Select: plan.Select{Class: "cpufreq", Attr: "energy_performance_preference"}, Optional: true})
	r.setSwitch(c.Boost, plan.Setting{Domain: plan.DomainCPU, Type: plan.TypeBool,
		Select: plan.Select{Path: "/sys/devices/system/cpu/cpufreq/boost"}, Optional: true})
	r.setText(c.SMT, plan.Setting{Domain: plan.DomainCPU, Type: plan.TypeString,
		Select: plan.Select{Path: "/sys/devices/system/cpu/smt/control"}, Optional: true})
	r.resolveIdleLatency(c.MaxIdleLatency)
	for _, state := range c.IdleStates.Sorted() {
		r.set(state, plan.Setting{Domain: plan.DomainCPU, Type: plan.TypeBool, Want: FormatSwitch(!state.On),
			Select: plan.Select{Class: "cpuidle", Name: state.Key(), Attr: "disable"}})
	}
	if len(c.Isolate.Items) > 0 {
		r.origins["cpu.isolate"] = c.Isolate.Pos()
		rest := formatMask(r.t.Housekeeping())
		// Unbound kernel work does not follow isolcpus= (kernel/workqueue.c).
		r.set(c.Isolate, plan.Setting{ID: "cpu.workqueues", Domain: plan.DomainCPU, Type: plan.TypeCPUMask, Want: rest,
			Select: plan.Select{Path: "/sys/devices/virtual/workqueue/cpumask"}})
		r.set(c.Isolate, plan.Setting{ID: "irq.default", Domain: plan.DomainIRQ, Type: plan.TypeCPUMask, Want: rest,
			Select: plan.Select{Path: "/proc/irq/default_smp_affinity"}})
	}
}

// resolveIdleLatency bounds the time that cores take to wake up. The kernel reads 0
// as "no bound" and "n/a" as a bound of zero (Documentation/ABI/testing/sysfs-devices-power).
func (r *resolver) resolveIdleLatency(latency config.Duration) {
	if !latency.IsSet() {
		return
	}
	s := plan.Setting{Domain: plan.DomainCPU, Type: plan.TypeInt,
		Select: plan.Select{Class: "cpu", Name: "cpu*", Attr: "power/pm_qos_resume_latency_us"}}
	us, ok := r.wholeDuration(latency, 1000)
	switch {
	case !ok:
		return
	case us == 0:
		s.Type, s.Want = plan.TypeString, "n/a"
	default:
		s.Want = strconv.FormatInt(us, 10)
	}
	r.set(latency, s)
}

// FormatSwitch writes a switch as the kernel takes it.
func FormatSwitch(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// formatMask writes cores as smp_affinity does: hexadecimal words of 32 bits.
func formatMask(cores []int) string {
	words := []uint32{0}
	for _, c := range cores {
		for c/32 >= len(words) {
			words = append(words, 0)
		}
		words[c/32] |= 1 << (c % 32)
	}
	s := strconv.FormatUint(uint64(words[len(words)-1]), 16)
	for i := len(words) - 2; i >= 0; i-- {
		s += fmt.Sprintf(",%08x", words[i])
	}
	return s
}

func (r *resolver) resolveGPU() {
	g := &r.c.GPU
	setting := func(attr, kind string) plan.Setting {
		return plan.Setting{Domain: plan.DomainGPU, Type: kind, Select: plan.Select{Class: "devfreq", OFNode: "gpu", Attr: attr}}
	}
	setLimit := func(limit config.Frequency, attr string) {
		if hz, ok := r.hertz(limit); ok {
			s := setting(attr, plan.TypeInt)
			s.Want = strconv.FormatInt(hz, 10)
			r.set(limit, s)
		}
	}
	setLimit(g.Min, "min_freq")
	setLimit(g.Max, "max_freq")
	r.setText(g.Governor, setting("governor", plan.TypeString))
}

func (r *resolver) resolveIRQ() {
	for _, cores := range r.c.IRQ.Affinity.Sorted() {
		r.set(cores, plan.Setting{Domain: plan.DomainIRQ, Type: plan.TypeCPUList, Want: cpulist.Format(config.Cores(*cores)),
			Select: plan.Select{Class: "irq", Name: cores.Key(), Attr: "smp_affinity_list"}})
	}
}

// resolveThreads sets the scheduling of kernel threads.
func (r *resolver) resolveThreads() {
	for _, th := range r.c.Threads.Sorted() {
		set := func(by config.Part, attr, kind, want string) {
			r.set(by, plan.Setting{Domain: plan.DomainThread, Type: kind, Want: want,
				Select: plan.Select{Class: "kthread", Name: th.Key(), Attr: attr}})
		}
		if th.Policy.IsSet() {
			want := th.Policy.Text
			if th.Priority.IsSet() {
				want += " " + strconv.Itoa(th.Priority.Value)
			}
			set(th.Policy, "scheduling", plan.TypeString, want)
		}
		if th.Nice.IsSet() {
			set(th.Nice, "nice", plan.TypeInt, strconv.Itoa(th.Nice.Value))
		}
		if th.Affinity.IsSet() {
			set(th.Affinity, "affinity", plan.TypeCPUList, cpulist.Format(config.Cores(th.Affinity)))
		}
	}
}

// resolveBus sets the power management of PCI Express and USB.
func (r *resolver) resolveBus() {
	usbcore := func(parameter string) plan.Setting {
		return plan.Setting{Domain: plan.DomainBus, Type: plan.TypeInt, Select: plan.Select{Path: "/sys/module/usbcore/parameters/" + parameter}}
	}
	r.setText(r.c.Bus.PCIe.ASPM, plan.Setting{Domain: plan.DomainBus, Type: plan.TypeChoice,
		Select: plan.Select{Path: "/sys/module/pcie_aspm/parameters/policy"}})
	usb := &r.c.Bus.USB
	if s := usbcore("autosuspend"); usb.Autosuspend.Text == "never" {
		s.Want = "-1"
		r.set(usb.Autosuspend, s)
	} else if usb.Autosuspend.IsSet() {
		if seconds, ok := r.wholeDuration(usb.Autosuspend, 1e9); ok {
			s.Want = strconv.FormatInt(seconds, 10)
			r.set(usb.Autosuspend, s)
		}
	}
	if usb.Memory.IsSet() {
		s := usbcore("usbfs_memory_mb")
		if bytes, ok := r.convert(usb.Memory, Size); ok && bytes%(1<<20) != 0 {
			r.reportPart(usb.Memory, bytes, "bytes", "MiB", fmt.Sprintf("%dMiB", bytes>>20+1))
		} else if ok {
			s.Want = strconv.FormatInt(bytes>>20, 10)
			r.set(usb.Memory, s)
		}
	}
	for _, d := range usb.Devices.Sorted() {
		r.set(d, plan.Setting{Domain: plan.DomainBus, Type: plan.TypeString, Want: d.Text, Optional: true,
			Select: plan.Select{Class: "usb", Name: d.Key(), Attr: "power/control"}})
	}
}

// resolveNetwork sets what interfaces and their queues do. The hardware's own settings
// have no files: their attributes are named after what ethtool(8) calls them.
func (r *resolver) resolveNetwork() {
	for _, n := range r.c.Network.Sorted() {
		setting := func(attr, kind string) plan.Setting {
			return plan.Setting{Domain: plan.DomainNetwork, Type: kind, Select: plan.Select{Class: "net", Name: n.Key(), Attr: attr}, Optional: true}
		}
		setInt := func(v config.Int, attr string) { r.setInt(v, setting(attr, plan.TypeInt)) }
		setMask := func(cores config.List[config.Int], attr string) {
			if cores.IsSet() {
				s := setting(attr, plan.TypeCPUMask)
				s.Want = formatMask(config.Cores(cores))
				r.set(cores, s)
			}
		}
		setInt(n.MTU, "mtu")
		setInt(n.TxQueueLen, "tx_queue_len")
		setInt(n.NapiDeferHardIRQs, "napi_defer_hard_irqs")
		if n.GroFlushTimeout.IsSet() {
			s := setting("gro_flush_timeout", plan.TypeInt)
			s.Want = strconv.FormatInt(r.nanoseconds(n.GroFlushTimeout, 0), 10)
			r.set(n.GroFlushTimeout, s)
		}
		setMask(n.RPS, "queues/rx-*/rps_cpus")
		setMask(n.XPS, "queues/tx-*/xps_cpus")
		setInt(n.Channels.Combined, "ethtool/channels/combined")
		setInt(n.Channels.Rx, "ethtool/channels/rx")
		setInt(n.Channels.Tx, "ethtool/channels/tx")
		setInt(n.Ring.Rx, "ethtool/ring/rx")
		setInt(n.Ring.Tx, "ethtool/ring/tx")
		setInt(n.Coalesce.RxUsecs, "ethtool/coalesce/rx-usecs")
		setInt(n.Coalesce.RxFrames, "ethtool/coalesce/rx-frames")
		setInt(n.Coalesce.TxUsecs, "ethtool/coalesce/tx-usecs")
		setInt(n.Coalesce.TxFrames, "ethtool/coalesce/tx-frames")
		r.setSwitch(n.Coalesce.AdaptiveRx, setting("ethtool/coalesce/adaptive-rx", plan.TypeBool))
		r.setSwitch(n.Coalesce.AdaptiveTx, setting("ethtool/coalesce/adaptive-tx", plan.TypeBool))
		for _, f := range n.Offloads.Sorted() {
			r.setSwitch(*f, setting("ethtool/features/"+f.Key(), plan.TypeBool))
		}
	}
}

// EMCLock returns the folder of the files that lock the clock of the memory controller; ok is false
// where the module and its L4T offer none.
func (t *Target) EMCLock() (folder string, ok bool) {
	return strings.CutSuffix(t.Board.EMCNodesOf(t.Release.Line()).Lock, "{rate,mrq_rate_locked}")
}

// resolveEMC locks the clock of the memory controller: requests of drivers then have no effect.
func (r *resolver) resolveEMC(clock config.Frequency) {
	hz, ok := r.hertz(clock)
	folder, offered := r.t.EMCLock()
	if !ok || !offered {
		return // emc-lock reports it
	}
	r.set(clock, plan.Setting{Domain: plan.DomainMemory, Type: plan.TypeInt, Want: strconv.FormatInt(hz, 10), Select: plan.Select{Path: folder + "rate"}})
	r.set(clock, plan.Setting{ID: clock.ID() + ".lock", Domain: plan.DomainMemory, Type: plan.TypeInt, Want: "1", Select: plan.Select{Path: folder + "mrq_rate_locked"}})
}
