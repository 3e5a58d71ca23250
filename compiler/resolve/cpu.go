package resolve

import (
	"fmt"
	"strconv"

	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/plan"
)

// Isolated lists the cores that the target keeps free.
func (t *Target) Isolated() []int { return Cores(t.Node.At("cpu", "isolate")) }

// Housekeeping lists the cores that serve everything else.
func (t *Target) Housekeeping() []int {
	free := map[int]bool{}
	for _, c := range t.Isolated() {
		free[c] = true
	}
	var out []int
	for c := range t.Board.Cores {
		if !free[c] {
			out = append(out, c)
		}
	}
	return out
}

func (r *resolver) cpu() {
	n := r.n.Get("cpu")
	if n == nil {
		return
	}
	if g := n.Get("governor"); g != nil {
		r.set(plan.Setting{ID: "cpu.governor", Domain: plan.DomainCPU, Type: plan.TypeString, Want: g.Text,
			Select: plan.Select{Class: "cpufreq", Attr: "scaling_governor"}}, g.Pos)
	}
	for _, limit := range []struct{ field, attr string }{{"min", "scaling_min_freq"}, {"max", "scaling_max_freq"}} {
		v := n.Get(limit.field)
		if v == nil {
			continue
		}
		// cpufreq counts in kHz.
		if khz := r.clock("cpu."+limit.field, v, 1000); khz != "" {
			r.set(plan.Setting{ID: "cpu." + limit.field, Domain: plan.DomainCPU, Type: plan.TypeInt, Want: khz,
				Select: plan.Select{Class: "cpufreq", Attr: limit.attr}}, v.Pos)
		}
	}
	if v := n.Get("epp"); v != nil {
		r.set(plan.Setting{ID: "cpu.epp", Domain: plan.DomainCPU, Type: plan.TypeString, Want: v.Text,
			Select: plan.Select{Class: "cpufreq", Attr: "energy_performance_preference"}, Optional: true}, v.Pos)
	}
	if v := n.Get("boost"); v != nil {
		r.set(plan.Setting{ID: "cpu.boost", Domain: plan.DomainCPU, Type: plan.TypeBool, Want: digit(v.True),
			Select: plan.Select{Path: "/sys/devices/system/cpu/cpufreq/boost"}, Optional: true}, v.Pos)
	}
	if v := n.Get("smt"); v != nil {
		r.set(plan.Setting{ID: "cpu.smt", Domain: plan.DomainCPU, Type: plan.TypeString, Want: v.Text,
			Select: plan.Select{Path: "/sys/devices/system/cpu/smt/control"}, Optional: true}, v.Pos)
	}
	r.idle(n.Get("maxIdleLatency"))
	if list := n.Get("isolate"); list != nil && len(list.Items) > 0 {
		r.origins["cpu.isolate"] = list.Pos
		// Work that the kernel may do anywhere does not follow isolcpus= (kernel/workqueue.c).
		r.set(plan.Setting{ID: "cpu.workqueues", Domain: plan.DomainCPU, Type: plan.TypeCPUMask, Want: mask(r.t.Housekeeping()),
			Select: plan.Select{Path: "/sys/devices/virtual/workqueue/cpumask"}}, list.Pos)
		r.set(plan.Setting{ID: "irq.default", Domain: plan.DomainIRQ, Type: plan.TypeCPUMask, Want: mask(r.t.Housekeeping()),
			Select: plan.Select{Path: "/proc/irq/default_smp_affinity"}}, list.Pos)
	}
}

// idle bounds the time that cores take to wake up. The kernel reads 0 as "no
// bound" and takes "n/a" for a bound of nothing (Documentation/ABI/testing/sysfs-devices-power).
func (r *resolver) idle(n *load.Node) {
	if n == nil {
		return
	}
	s := plan.Setting{ID: "cpu.maxIdleLatency", Domain: plan.DomainCPU, Type: plan.TypeInt,
		Select: plan.Select{Class: "cpu", Name: "cpu*", Attr: "power/pm_qos_resume_latency_us"}}
	us, ok := r.whole("cpu.maxIdleLatency", n, 1000)
	switch {
	case !ok:
		return
	case us == 0:
		s.Type, s.Want = plan.TypeString, "n/a"
	default:
		s.Want = strconv.FormatInt(us, 10)
	}
	r.set(s, n.Pos)
}

// digit writes a switch as the kernel takes it.
func digit(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// mask writes cores as smp_affinity does: hexadecimal words of 32 bits.
func mask(cores []int) string {
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

func (r *resolver) gpu() {
	n := r.n.Get("gpu")
	if n == nil {
		return
	}
	for _, limit := range []struct{ field, attr string }{{"min", "min_freq"}, {"max", "max_freq"}} {
		v := n.Get(limit.field)
		if v == nil {
			continue
		}
		if hz, ok := r.frequency("gpu."+limit.field, v); ok {
			r.set(plan.Setting{ID: "gpu." + limit.field, Domain: plan.DomainGPU, Type: plan.TypeInt, Want: strconv.FormatInt(hz, 10),
				Select: plan.Select{Class: "devfreq", OFNode: "gpu", Attr: limit.attr}}, v.Pos)
		}
	}
	if g := n.Get("governor"); g != nil {
		r.set(plan.Setting{ID: "gpu.governor", Domain: plan.DomainGPU, Type: plan.TypeString, Want: g.Text,
			Select: plan.Select{Class: "devfreq", OFNode: "gpu", Attr: "governor"}}, g.Pos)
	}
}

func (r *resolver) irq() {
	for _, f := range sortedFields(r.n.At("irq", "affinity")) {
		r.set(plan.Setting{ID: "irq.affinity." + f.Name, Domain: plan.DomainIRQ, Type: plan.TypeCPUList, Want: cpulist.Format(Cores(f.Value)),
			Select: plan.Select{Class: "irq", Name: f.Name, Attr: "smp_affinity_list"}}, f.Value.Pos)
	}
}

func (r *resolver) network() {
	for _, f := range sortedFields(r.n.Get("network")) {
		for _, k := range []struct{ field, attr string }{
			{"mtu", "mtu"}, {"txQueueLen", "tx_queue_len"}, {"groFlushTimeout", "gro_flush_timeout"}, {"napiDeferHardIRQs", "napi_defer_hard_irqs"},
		} {
			v := f.Value.Get(k.field)
			if v == nil {
				continue
			}
			want := v.Text
			if k.field == "groFlushTimeout" {
				want = strconv.FormatInt(r.duration(load.PathOf("network", f.Name)+"."+k.field, v, 0), 10)
			}
			r.set(plan.Setting{ID: "network." + f.Name + "." + k.field, Domain: plan.DomainNetwork, Type: plan.TypeInt, Want: want,
				Select: plan.Select{Class: "net", Name: f.Name, Attr: k.attr}, Optional: true}, v.Pos)
		}
		r.queues(f.Name, f.Value)
	}
}

// queues sets what an interface's queues do. The hardware's own settings have no
// files: their attributes are named after what ethtool(8) calls them.
func (r *resolver) queues(glob string, n *load.Node) {
	set := func(field, attr, kind, want string, pos plan.Position) {
		r.set(plan.Setting{ID: "network." + glob + "." + field, Domain: plan.DomainNetwork, Type: kind, Want: want,
			Select: plan.Select{Class: "net", Name: glob, Attr: attr}, Optional: true}, pos)
	}
	for _, k := range []struct{ field, attr string }{{"rps", "queues/rx-*/rps_cpus"}, {"xps", "queues/tx-*/xps_cpus"}} {
		if v := n.Get(k.field); v != nil {
			set(k.field, k.attr, plan.TypeCPUMask, mask(Cores(v)), v.Pos)
		}
	}
	for _, k := range []struct{ group, field, attr string }{
		{"channels", "combined", "channels/combined"}, {"channels", "rx", "channels/rx"}, {"channels", "tx", "channels/tx"},
		{"ring", "rx", "ring/rx"}, {"ring", "tx", "ring/tx"},
		{"coalesce", "rxUsecs", "coalesce/rx-usecs"}, {"coalesce", "rxFrames", "coalesce/rx-frames"},
		{"coalesce", "txUsecs", "coalesce/tx-usecs"}, {"coalesce", "txFrames", "coalesce/tx-frames"},
		{"coalesce", "adaptiveRx", "coalesce/adaptive-rx"}, {"coalesce", "adaptiveTx", "coalesce/adaptive-tx"},
	} {
		v := n.At(k.group, k.field)
		switch {
		case v == nil:
		case v.Kind == load.Bool:
			set(k.group+"."+k.field, "ethtool/"+k.attr, plan.TypeBool, digit(v.True), v.Pos)
		default:
			set(k.group+"."+k.field, "ethtool/"+k.attr, plan.TypeInt, v.Text, v.Pos)
		}
	}
}
