package enforce

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

// irqbalance moves every interrupt that it does not exclude, some ten seconds after another
// program has placed it. Exclusions are on its command line, or set through its socket. The
// latter are lost when irqbalance is restarted, and are set again then.

// banSettings returns the setting that adds the plan's interrupts to the exclusions of a
// running irqbalance.
func banSettings(dev rootfs.FS, all []*target) []plan.Setting {
	mine := placedIRQs(all)
	if len(mine) == 0 {
		return nil
	}
	c, err := dev.Read(rootfs.BannedIRQs)
	if err != nil {
		return nil // irqbalance is not running or has no socket
	}
	return []plan.Setting{{
		ID: "interrupts.irqbalance", Domain: plan.DomainIRQ, Select: plan.Select{Path: rootfs.BannedIRQs}, Type: plan.TypeString,
		Want: rootfs.AddBannedIRQs(strings.TrimSpace(c.Text), mine...), Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing, Optional: true,
	}}
}

// placedIRQs returns the interrupts whose affinity a plan sets.
func placedIRQs(all []*target) []string {
	var mine []string
	for _, t := range all {
		number, ok := strings.CutPrefix(t.real, "/proc/irq/")
		number, _, below := strings.Cut(number, "/")
		if ok && below && t.real != rootfs.BannedIRQs && t.setting.Policy != plan.Report && !slices.Contains(mine, number) {
			mine = append(mine, number)
		}
	}
	return mine
}

// balancerResult reports whether a running irqbalance excludes the plan's interrupts. It is
// nil if irqbalance is not running or the plan sets no affinity.
func balancerResult(dev rootfs.FS, all []*target) []Result {
	mine := placedIRQs(all)
	if len(mine) == 0 {
		return nil
	}
	set := strings.Fields(rootfs.ReadText(dev, rootfs.BannedIRQs))
	var out []Result
	for _, p := range findProcesses(dev, []string{"irqbalance"}) {
		banned := append(readBannedIRQs(dev, p), set...)
		var moved []string
		for _, number := range mine {
			if !slices.Contains(banned, number) {
				moved = append(moved, "--banirq="+number)
			}
		}
		r := Result{ID: "interrupts.irqbalance", Path: "/proc/irq", Wanted: "the plan's interrupts excluded", Known: true, Outcome: outcome.OK}
		if r.Found = r.Wanted; len(moved) > 0 {
			r.Found = fmt.Sprintf("%d of %d excluded", len(mine)-len(moved), len(mine))
			r.Outcome = outcome.Contested
			r.Message = fmt.Sprintf("%s moves interrupts whose affinity the plan sets%s: start it with %s, or stop it: `systemctl disable --now irqbalance`", p, describeBannedCPUs(dev), strings.Join(moved, " "))
		}
		out = append(out, r)
	}
	return out
}

// describeBannedCPUs returns a text about the CPUs that irqbalance does not use, "" if it
// may use all. They are set in the environment file of its unit (irqbalance(1); Debian,
// Fedora, upstream). Such CPUs receive no interrupts; placed interrupts are still moved.
func describeBannedCPUs(dev rootfs.FS) string {
	types := map[string]string{"IRQBALANCE_BANNED_CPULIST": plan.TypeCPUList, "IRQBALANCE_BANNED_CPUS": plan.TypeCPUMask}
	for _, file := range []string{"/etc/default/irqbalance", "/etc/sysconfig/irqbalance", "/etc/irqbalance.env"} {
		for line := range strings.Lines(rootfs.ReadText(dev, file)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if types[name] == "" {
				continue
			}
			if cpus, err := knob.Canonical(types[name], strings.Trim(value, `"'`)); err == nil && cpus != "" {
				return fmt.Sprintf(", though not to cpus %s (%s in %s)", cpus, name, file)
			}
		}
	}
	return ""
}

// readBannedIRQs returns the exclusions on irqbalance's command line: --banirq=N,
// --banirq N, -i N, -iN (irqbalance(1)).
func readBannedIRQs(dev rootfs.FS, p rootfs.RunningProcess) []string {
	c, err := dev.Read("/proc/" + p.PID + "/cmdline")
	if err != nil {
		return nil
	}
	var out []string
	args := strings.Split(c.Text, "\x00")
	for i, a := range args {
		value, ok := strings.CutPrefix(a, "--banirq=")
		switch {
		case ok:
		case (a == "--banirq" || a == "-i") && i+1 < len(args):
			value = args[i+1]
		case strings.HasPrefix(a, "-i"):
			value = a[len("-i"):]
		}
		if _, err := strconv.ParseUint(value, 10, 32); err == nil {
			out = append(out, value)
		}
	}
	return out
}
