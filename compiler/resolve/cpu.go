package resolve

import (
	"fmt"
	"strconv"

	"github.com/yoctune/yoctune/compiler/load"
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
	if list := n.Get("isolate"); list != nil && len(list.Items) > 0 {
		r.origins["cpu.isolate"] = list.Pos
		r.set(plan.Setting{ID: "irq.default", Domain: plan.DomainIRQ, Type: plan.TypeCPUMask, Want: mask(r.t.Housekeeping()),
			Select: plan.Select{Path: "/proc/irq/default_smp_affinity"}}, list.Pos)
	}
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
		r.set(plan.Setting{ID: "irq.affinity." + f.Name, Domain: plan.DomainIRQ, Type: plan.TypeCPUList, Want: CPUList(Cores(f.Value)),
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
	}
}
