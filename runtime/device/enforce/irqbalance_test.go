package enforce_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

func TestIrqbalanceBansThePlansInterrupts(t *testing.T) {
	for _, c := range []struct {
		name, cmdline string
		outcome       outcome.Outcome
		message       string
	}{
		{"not told", "/usr/sbin/irqbalance\x00", outcome.Contested, "irqbalance (pid 701) moves interrupts whose affinity the plan sets: start it with --banirq=44, or stop it"},
		{"told another", "/usr/sbin/irqbalance\x00--banirq=4\x00-i\x0045\x00", outcome.Contested, "--banirq=44"},
		{"told", "/usr/sbin/irqbalance\x00--banirq=44\x00", outcome.OK, ""},
		{"told in two words", "/usr/sbin/irqbalance\x00-i\x0044\x00", outcome.OK, ""},
		{"told in short", "/usr/sbin/irqbalance\x00-i44\x00", outcome.OK, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dev, dir := newBoard(t)
			place(t, dir, "proc/701/comm", "irqbalance\n")
			place(t, dir, "proc/701/cmdline", c.cmdline)
			p := planOf(newTunedPlan().Settings[5])
			apply(t, dev, p)
			results := enforce.Verify(dev, p, options())
			r := findResult(t, results, "interrupts.irqbalance")
			if r.Outcome != c.outcome || !strings.Contains(r.Message, c.message) {
				t.Errorf("%+v", r)
			}
			if enforce.Satisfied(results) != (c.outcome == outcome.OK) {
				t.Errorf("answer %t of %+v", enforce.Satisfied(results), results)
			}
		})
	}
	t.Run("kept off some CPUs by its environment", func(t *testing.T) {
		dev, dir := newBoard(t)
		place(t, dir, "proc/701/comm", "irqbalance\n")
		place(t, dir, "proc/701/cmdline", "/usr/sbin/irqbalance\x00")
		for _, c := range []struct{ file, text, want string }{
			{"etc/irqbalance.env", "# IRQBALANCE_BANNED_CPULIST=1\nIRQBALANCE_BANNED_CPULIST=rubbish\n", "sets: start it"},
			{"etc/sysconfig/irqbalance", "IRQBALANCE_BANNED_CPUS=00000000,0000000c\n", "though not to cpus 2-3 (IRQBALANCE_BANNED_CPUS in /etc/sysconfig/irqbalance): start it with --banirq=44"},
			{"etc/default/irqbalance", "IRQBALANCE_ARGS=\nIRQBALANCE_BANNED_CPULIST=\"4-5\"\n", "not to cpus 4-5 (IRQBALANCE_BANNED_CPULIST in /etc/default/irqbalance)"},
		} {
			place(t, dir, c.file, c.text)
			r := findResult(t, enforce.Verify(dev, planOf(newTunedPlan().Settings[5]), options()), "interrupts.irqbalance")
			if r.Outcome != outcome.Contested || !strings.Contains(r.Message, c.want) {
				t.Errorf("%s: %+v", c.file, r)
			}
		}
	})
	t.Run("bans are added over its socket, earlier bans are kept", func(t *testing.T) {
		dev, dir := newBoard(t)
		place(t, dir, "proc/701/comm", "irqbalance\n")
		place(t, dir, "proc/701/cmdline", "/usr/sbin/irqbalance\x00")
		place(t, dir, rootfs.BannedIRQs, "7\n")
		p := planOf(newTunedPlan().Settings[5])
		apply(t, dev, p)
		if results := enforce.Verify(dev, p, options()); !enforce.Satisfied(results) {
			t.Errorf("%+v", results)
		}
		if c, err := dev.Read(rootfs.BannedIRQs); err != nil || strings.TrimSpace(c.Text) != "7 44" {
			t.Errorf("%q %v", c.Text, err)
		}
		if _, err := enforce.Rollback(dev, options()); err != nil {
			t.Fatal(err)
		}
		if c, err := dev.Read(rootfs.BannedIRQs); err != nil || strings.TrimSpace(c.Text) != "7" {
			t.Errorf("after rollback %q %v", c.Text, err)
		}
	})
	t.Run("no interrupt in the plan", func(t *testing.T) {
		dev, dir := newBoard(t)
		place(t, dir, "proc/701/comm", "irqbalance\n")
		results := enforce.Verify(dev, planOf(sysctl("vm.swappiness", "60")), options())
		if slices.ContainsFunc(results, func(r enforce.Result) bool { return r.ID == "interrupts.irqbalance" }) {
			t.Errorf("%+v", results)
		}
	})
}
