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

// irqbalance moves every interrupt that it was not told to leave alone, some ten
// seconds after anybody else has placed it. What it was told is on its command
// line; its socket takes a list too, which it forgets when it is started again, and
// is told anew then.

// banSettings has the plan's interrupts put on the list of a running irqbalance, in
// addition to what is there.
func banSettings(dev rootfs.FS, all []*target) []plan.Setting {
	mine := placed(all)
	if len(mine) == 0 {
		return nil
	}
	c, err := dev.Read(rootfs.BannedIRQs)
	if err != nil {
		return nil // none runs, or none that could be told
	}
	return []plan.Setting{{
		ID: "interrupts.irqbalance", Domain: plan.DomainIRQ, Select: plan.Select{Path: rootfs.BannedIRQs}, Type: plan.TypeString,
		Want: rootfs.BanIRQs(strings.TrimSpace(c.Text), mine...), Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing, Optional: true,
	}}
}

// placed are the interrupts that a plan places.
func placed(all []*target) []string {
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

// balancerResult says whether a running irqbalance leaves the plan's interrupts
// alone, nil when none runs or the plan places no interrupt.
func balancerResult(dev rootfs.FS, all []*target) []Result {
	mine := placed(all)
	if len(mine) == 0 {
		return nil
	}
	var told []string
	if c, err := dev.Read(rootfs.BannedIRQs); err == nil {
		told = strings.Fields(c.Text)
	}
	var out []Result
	for _, p := range running(dev, []string{"irqbalance"}) {
		banned := append(bannedIRQs(dev, p), told...)
		var moved []string
		for _, number := range mine {
			if !slices.Contains(banned, number) {
				moved = append(moved, "--banirq="+number)
			}
		}
		r := Result{ID: "interrupts.irqbalance", Path: "/proc/irq", Wanted: "the plan's interrupts left alone", Known: true, Outcome: outcome.OK}
		if r.Found = r.Wanted; len(moved) > 0 {
			r.Found = fmt.Sprintf("%d of %d left alone", len(mine)-len(moved), len(mine))
			r.Outcome = outcome.Contested
			r.Message = fmt.Sprintf("%s moves interrupts that the plan places%s: start it with %s, or stop it: `systemctl disable --now irqbalance`", p, sparedCPUs(dev), strings.Join(moved, " "))
		}
		out = append(out, r)
	}
	return out
}

// sparedCPUs says onto which CPUs irqbalance moves nothing, "" where it may use all:
// those of the file that its unit takes its environment from (irqbalance(1); Debian,
// Fedora, upstream). They do not keep a placed interrupt where it is, only off them.
func sparedCPUs(dev rootfs.FS) string {
	types := map[string]string{"IRQBALANCE_BANNED_CPULIST": plan.TypeCPUList, "IRQBALANCE_BANNED_CPUS": plan.TypeCPUMask}
	for _, file := range []string{"/etc/default/irqbalance", "/etc/sysconfig/irqbalance", "/etc/irqbalance.env"} {
		c, err := dev.Read(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(c.Text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if types[name] == "" {
				continue
			}
			if cpus, err := knob.Canonical(types[name], strings.Trim(value, `"'`)); err == nil && cpus != "" {
				return fmt.Sprintf(", though none onto cpus %s (%s in %s)", cpus, name, file)
			}
		}
	}
	return ""
}

// bannedIRQs reads irqbalance's own command line: --banirq=N, --banirq N, -i N, -iN
// (irqbalance(1)).
func bannedIRQs(dev rootfs.FS, p program) []string {
	c, err := dev.Read("/proc/" + p.pid + "/cmdline")
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
