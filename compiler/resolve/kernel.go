package resolve

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/facts/linux"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/plan"
)

func (r *resolver) resolveKernel() {
	k := &r.t.Kernel
	k.Recipes = slices.Clone(r.t.Release.KernelPNs)
	if recipe := r.c.Kernel.Recipe; recipe.IsSet() {
		k.Provider, k.By, k.Version = recipe.Text, recipe.ID(), r.c.Kernel.Version.Text
		r.origins[recipe.ID()] = recipe.Pos()
	}
	for _, option := range r.c.Kernel.Config.Sorted() {
		r.addOption(option)
	}
	for _, arg := range r.c.Kernel.Args.Sorted() {
		if arg.Kind() == load.Null {
			r.removeArg(&arg.Scalar)
			continue
		}
		r.addArg(plan.Arg{Name: arg.Key(), Value: arg.Text, Flag: arg.Kind() == load.Bool}, arg)
	}
	r.resolveIsolation()
	r.resolvePreemption(r.c.Kernel.Preempt)
	slices.SortFunc(k.Args, func(a, b plan.Arg) int { return strings.Compare(a.Name, b.Name) })
}

func (r *resolver) addOption(option *config.Scalar) {
	r.t.Kernel.Config = append(r.t.Kernel.Config, plan.ConfigOption{
		Symbol: option.Key(), Value: option.Text, Quoted: option.Kind() == load.String && !isBareOption(option.Text),
	})
	r.origins[option.ID()] = option.Pos()
}

// isBareOption reports whether a configuration fragment writes the value without
// quotes: y, m, n and numbers.
func isBareOption(s string) bool {
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

// expectOptions adds the kernel options to the plan in the format of .config. The device
// compares them with the running kernel. They are optional, because a kernel may not expose
// its configuration.
func (r *resolver) expectOptions() {
	for _, o := range r.t.Kernel.Config {
		id := "kernel.config." + o.Symbol
		want := o.Value
		if o.Quoted {
			want = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(want) + `"`
		}
		r.add(plan.Setting{ID: id, Domain: plan.DomainKernel, Type: plan.TypeString, Want: want, Optional: true,
			Select: plan.Select{Class: "config", Name: o.Symbol}, Policy: plan.Report, Needs: plan.NeedsReflash})
	}
}

// implyOption adds an option that another field needs, unless the configuration
// already sets it; package check compares the two.
func (r *resolver) implyOption(symbol, value string, by config.Part) {
	if slices.ContainsFunc(r.t.Kernel.Config, func(o plan.ConfigOption) bool { return o.Symbol == symbol }) {
		return
	}
	r.t.Kernel.Config = append(r.t.Kernel.Config, plan.ConfigOption{Symbol: symbol, Value: value})
	r.origins["kernel.config."+symbol] = by.Where().Pos()
}

func (r *resolver) addArg(a plan.Arg, by config.Part) {
	r.t.Kernel.Args = append(r.t.Kernel.Args, a)
	s := plan.Setting{ID: "kernel.args." + a.Name, Domain: plan.DomainKernel, Type: plan.TypeString, Want: a.Value,
		Select: plan.Select{Class: "cmdline", Name: a.Name}, Policy: plan.Report, Needs: plan.NeedsReboot}
	if a.Flag {
		s.Type, s.Want = plan.TypePresent, "1"
	}
	r.set(by, s)
}

// removeArg removes an argument that the machine sets. The device reports it while the kernel
// still gets it, whoever adds it.
func (r *resolver) removeArg(arg *config.Scalar) {
	removed := plan.RemovedArg{Name: arg.Key()}
	for _, machine := range r.t.StockMachines() {
		for word := range strings.FieldsSeq(machine.KernelArgs) {
			name, value, valued := strings.Cut(word, "=")
			a := plan.Arg{Name: name, Value: value, Flag: !valued}
			if linux.Fold(name) == linux.Fold(arg.Key()) && !slices.Contains(removed.Words, a) {
				removed.Words = append(removed.Words, a)
			}
		}
	}
	if len(removed.Words) == 0 {
		return // it takes back a profile's, or a rule reports it
	}
	r.t.Kernel.Removed = append(r.t.Kernel.Removed, removed)
	r.set(arg, plan.Setting{ID: "kernel.args." + arg.Key(), Domain: plan.DomainKernel, Type: plan.TypePresent, Want: "0",
		Select: plan.Select{Class: "cmdline", Name: arg.Key()}, Policy: plan.Report, Needs: plan.NeedsReboot})
}

// StockMachines returns what the BSP sets for the target's machine. A machine of one's own is
// derived from a machine of its board, so these are all of the board's.
func (t *Target) StockMachines() []release.Machine {
	if m, ok := t.Release.Machine(t.Machine); ok {
		return []release.Machine{m}
	}
	var out []release.Machine
	for _, name := range t.Board.Releases[t.Release.Name].Machines {
		if m, ok := t.Release.Machine(name); ok {
			out = append(out, m)
		}
	}
	return out
}

func (r *resolver) implyArg(name, value string, by config.Part) {
	if !slices.ContainsFunc(r.t.Kernel.Args, func(a plan.Arg) bool { return a.Name == name }) {
		r.addArg(plan.Arg{Name: name, Value: value}, by)
	}
}

// resolveIsolation writes out what cpu.isolate implies. The scheduler (isolcpus), the
// tick (nohz_full), RCU callbacks and interrupts must all leave the cores:
// any one of them left out disturbs the cores as before.
func (r *resolver) resolveIsolation() {
	by := r.c.CPU.Isolate
	if len(by.Items) == 0 {
		return
	}
	cores := cpulist.Format(r.t.Isolated())
	flags := "managed_irq,domain,"
	if r.t.Release.Kernel == "4.9" {
		flags = "" // it would read them as a broken list (kernel/sched/core.c)
	}
	r.implyArg("isolcpus", flags+cores, by)
	r.implyArg("nohz_full", cores, by)
	r.implyArg("rcu_nocbs", cores, by)
	if rest := r.t.Housekeeping(); len(rest) > 0 {
		r.implyArg("irqaffinity", cpulist.Format(rest), by)
	}
	// Without them the kernel ignores nohz_full= and rcu_nocbs=, and no Jetson
	// configuration has them.
	r.implyOption("NO_HZ_FULL", "y", by)
	r.implyOption("RCU_NOCB_CPU", "y", by)
	// CPU_IDLE selects the menu governor only along with the tick models that
	// NO_HZ_FULL replaces: without this line every core would be left with ladder.
	r.implyOption("CPU_IDLE_GOV_MENU", "y", by)
}

func (r *resolver) resolvePreemption(model config.String) {
	if !model.IsSet() {
		return
	}
	r.origins[model.ID()] = model.Pos()
	switch model.Text {
	case "none":
		r.implyOption("PREEMPT_NONE", "y", model)
	case "voluntary":
		r.implyOption("PREEMPT_VOLUNTARY", "y", model)
	case "full":
		r.implyOption("PREEMPT", "y", model)
	case "rt":
		switch {
		case r.t.Release.RTProvider != "":
			r.t.Kernel.Provider, r.t.Kernel.By = r.t.Release.RTProvider, model.ID()
		case r.t.Release.RTByConfig:
			// arm64 offers PREEMPT_RT only with EXPERT and without KVM
			// (arch/arm64/Kconfig: ARCH_SUPPORTS_RT).
			r.implyOption("EXPERT", "y", model)
			r.implyOption("PREEMPT_RT", "y", model)
			r.implyOption("KVM", "n", model)
			// NAMESPACES is on by default only without EXPERT (init/Kconfig); systemd's
			// sandbox and containers need it.
			r.implyOption("NAMESPACES", "y", model)
		case r.c.Kernel.Recipe.IsSet():
			// Linux has it from 6.12 on, with KVM; what an older one does is for its recipe to say.
			r.implyOption("EXPERT", "y", model)
			r.implyOption("PREEMPT_RT", "y", model)
			r.implyOption("NAMESPACES", "y", model)
		}
		r.set(model, plan.Setting{Domain: plan.DomainKernel, Type: plan.TypeInt, Want: "1",
			Select: plan.Select{Path: "/sys/kernel/realtime"}, Policy: plan.Report, Needs: plan.NeedsReflash})
	}
}

func (r *resolver) resolveModules() {
	add := func(name, action string, by config.Part) {
		r.t.Modules = append(r.t.Modules, plan.Module{Name: name, Action: action})
		r.origins["modules."+name] = by.Where().Pos()
		if action != "load" {
			return
		}
		// The kernel shows modules with underscores.
		r.set(by, plan.Setting{ID: "modules." + name, Domain: plan.DomainModule, Type: plan.TypePresent, Want: "1",
			Select: plan.Select{Path: "/sys/module/" + strings.ReplaceAll(name, "-", "_")},
			Policy: plan.Report, Needs: plan.NeedsReboot})
	}
	for _, m := range r.c.Modules.Sorted() {
		add(m.Key(), m.Text, m)
	}
	if cc := r.c.Sysctl.Get("net.ipv4.tcp_congestion_control"); cc.IsSet() {
		module, symbol := "tcp_"+cc.Text, "TCP_CONG_"+strings.ToUpper(cc.Text)
		if r.c.Kernel.Config.Get(symbol).Text == "m" && !r.c.Modules.Has(module) {
			// The kernel calls modprobe on the first write; loading the module at boot
			// spares systemd-sysctl the race.
			add(module, "load", cc)
		}
	}
	slices.SortFunc(r.t.Modules, func(a, b plan.Module) int { return strings.Compare(a.Name, b.Name) })
}
