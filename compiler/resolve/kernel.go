package resolve

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/plan"
)

func (r *resolver) kernel() {
	k := &r.t.Kernel
	k.Recipes = slices.Clone(r.t.Release.KernelPNs)
	n := r.n.Get("kernel")
	for _, f := range sortedFields(n.Get("config")) {
		r.option(f.Name, f.Value, f.Value.Pos)
	}
	for _, f := range sortedFields(n.Get("args")) {
		arg := plan.Arg{Name: f.Name, Value: f.Value.Text}
		if f.Value.Kind == load.Bool {
			arg.Flag = true
		}
		r.arg(arg, f.Value.Pos)
	}
	r.isolation()
	r.preempt(n.Get("preempt"))
	slices.SortFunc(k.Args, func(a, b plan.Arg) int { return strings.Compare(a.Name, b.Name) })
}

func (r *resolver) option(symbol string, n *load.Node, pos plan.Position) {
	o := plan.ConfigOption{Symbol: symbol, Value: n.Text}
	if n.Kind == load.String && !bare(n.Text) {
		o.Quoted = true
	}
	r.t.Kernel.Config = append(r.t.Kernel.Config, o)
	r.origins["kernel.config."+symbol] = pos
}

// bare tells what a fragment writes without quotes: y, m, n and numbers.
func bare(s string) bool {
	switch s {
	case "y", "m", "n":
		return true
	}
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		_, err := strconv.ParseUint(hex, 16, 64)
		return err == nil
	}
	_, err := strconv.ParseInt(s, 10, 64)
	return err == nil
}

// expectOptions puts the options into the plan, as .config writes them: the device
// compares them with the kernel that runs. A kernel that keeps its configuration
// to itself is no fault, hence optional.
func (r *resolver) expectOptions() {
	for _, o := range r.t.Kernel.Config {
		id := "kernel.config." + o.Symbol
		want := o.Value
		if o.Quoted {
			want = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(want) + `"`
		}
		r.set(plan.Setting{ID: id, Domain: plan.DomainKernel, Type: plan.TypeString, Want: want, Optional: true,
			Select: plan.Select{Class: "config", Name: o.Symbol}, Policy: plan.Report, Needs: plan.NeedsReflash}, r.origins[id])
	}
}

// imply adds an option that another field needs, unless the configuration
// already sets it; package check compares the two.
func (r *resolver) imply(symbol, value string, pos plan.Position) {
	for _, o := range r.t.Kernel.Config {
		if o.Symbol == symbol {
			return
		}
	}
	r.t.Kernel.Config = append(r.t.Kernel.Config, plan.ConfigOption{Symbol: symbol, Value: value})
	r.origins["kernel.config."+symbol] = pos
}

func (r *resolver) arg(a plan.Arg, pos plan.Position) {
	r.t.Kernel.Args = append(r.t.Kernel.Args, a)
	s := plan.Setting{ID: "kernel.args." + a.Name, Domain: plan.DomainKernel, Type: plan.TypeString, Want: a.Value,
		Select: plan.Select{Class: "cmdline", Name: a.Name}, Policy: plan.Report, Needs: plan.NeedsReboot}
	if a.Flag {
		s.Type, s.Want = plan.TypePresent, "1"
	}
	r.set(s, pos)
}

func (r *resolver) implyArg(name, value string, pos plan.Position) {
	for _, a := range r.t.Kernel.Args {
		if a.Name == name {
			return
		}
	}
	r.arg(plan.Arg{Name: name, Value: value}, pos)
}

// isolation writes out what cpu.isolate implies. The scheduler (isolcpus), the
// tick (nohz_full), RCU callbacks and interrupts must all leave the cores:
// any one of them left out disturbs them as before.
func (r *resolver) isolation() {
	list := r.n.At("cpu", "isolate")
	if list == nil || len(list.Items) == 0 {
		return
	}
	cores := cpulist.Format(r.t.Isolated())
	flags := "managed_irq,domain,"
	if r.t.Release.Kernel == "4.9" {
		flags = "" // it would read them as a broken list (kernel/sched/core.c)
	}
	r.implyArg("isolcpus", flags+cores, list.Pos)
	r.implyArg("nohz_full", cores, list.Pos)
	r.implyArg("rcu_nocbs", cores, list.Pos)
	if rest := r.t.Housekeeping(); len(rest) > 0 {
		r.implyArg("irqaffinity", cpulist.Format(rest), list.Pos)
	}
	// Without them the kernel ignores nohz_full= and rcu_nocbs=, and no Jetson
	// configuration has them.
	r.imply("NO_HZ_FULL", "y", list.Pos)
	r.imply("RCU_NOCB_CPU", "y", list.Pos)
	// CPU_IDLE selects the menu governor only along with the tick models that
	// NO_HZ_FULL replaces: without this line every core would be left with ladder.
	r.imply("CPU_IDLE_GOV_MENU", "y", list.Pos)
}

func (r *resolver) preempt(n *load.Node) {
	if n == nil {
		return
	}
	r.origins["kernel.preempt"] = n.Pos
	switch n.Text {
	case "none":
		r.imply("PREEMPT_NONE", "y", n.Pos)
	case "voluntary":
		r.imply("PREEMPT_VOLUNTARY", "y", n.Pos)
	case "full":
		r.imply("PREEMPT", "y", n.Pos)
	case "rt":
		switch {
		case r.t.Release.RTProvider != "":
			r.t.Kernel.Provider = r.t.Release.RTProvider
		case r.t.Release.RTByConfig:
			// arm64 offers PREEMPT_RT only with EXPERT and without KVM
			// (arch/arm64/Kconfig: ARCH_SUPPORTS_RT).
			r.imply("EXPERT", "y", n.Pos)
			r.imply("PREEMPT_RT", "y", n.Pos)
			r.imply("KVM", "n", n.Pos)
			// NAMESPACES is on by default only without EXPERT (init/Kconfig); systemd's
			// sandbox and containers need it.
			r.imply("NAMESPACES", "y", n.Pos)
		}
		r.set(plan.Setting{ID: "kernel.preempt", Domain: plan.DomainKernel, Type: plan.TypeInt, Want: "1",
			Select: plan.Select{Path: "/sys/kernel/realtime"}, Policy: plan.Report, Needs: plan.NeedsReflash}, n.Pos)
	}
}

func (r *resolver) modules() {
	add := func(name, action string, pos plan.Position) {
		r.t.Modules = append(r.t.Modules, plan.Module{Name: name, Action: action})
		r.origins["modules."+name] = pos
		if action != "load" {
			return
		}
		// The kernel shows modules with underscores.
		r.set(plan.Setting{ID: "modules." + name, Domain: plan.DomainModule, Type: plan.TypePresent, Want: "1",
			Select: plan.Select{Path: "/sys/module/" + strings.ReplaceAll(name, "-", "_")},
			Policy: plan.Report, Needs: plan.NeedsReboot}, pos)
	}
	named := r.n.Get("modules")
	for _, f := range sortedFields(named) {
		add(f.Name, f.Value.Text, f.Value.Pos)
	}
	if cc := r.n.At("sysctl", "net.ipv4.tcp_congestion_control"); cc != nil {
		module, symbol := "tcp_"+cc.Text, "TCP_CONG_"+strings.ToUpper(cc.Text)
		if v := r.n.At("kernel", "config", symbol); v != nil && v.Text == "m" && named.Get(module) == nil {
			// The kernel asks modprobe for it on the first write; loading it at boot
			// spares systemd-sysctl the race.
			add(module, "load", cc.Pos)
		}
	}
	slices.SortFunc(r.t.Modules, func(a, b plan.Module) int { return strings.Compare(a.Name, b.Name) })
}
