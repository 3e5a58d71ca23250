package check_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
)

// Known faults across domains, and the rule that reports each. Some rules cover several
// causes that have a name of their own.
func TestKnownCausesFollowTheEvaluatedKernel(t *testing.T) {
	const (
		r32 = `board: "agx-xavier", release: "kirkstone-l4t-r32.7.x", `
		r35 = `board: "agx-orin-64gb", release: "kirkstone", `
		r36 = `board: "orin-nano-8gb", release: "scarthgap", `
	)
	for _, c := range []struct{ cause, body, id string }{
		{"nohz-full-choice", r36 + `kernel: config: {NO_HZ_FULL: "y", HZ_PERIODIC: "y"}`, "kconfig-lost"},
		{"nohz-full-rcu", r36 + `kernel: config: {NO_HZ_FULL: "y", RCU_NOCB_CPU: "n"}`, "kconfig-changed"},
		{"string-quotes by hand", r36 + `kernel: config: CMDLINE: "nohz_full=1-3"`, "cmdline-tegra"},
		{"sysctl-later-file", r36 + `sysctl: "net.ipv4.conf.all.accept_redirects": 1`, "sysctl-later"},
		{"nohz-full-boot-cpu", r36 + `kernel: {config: {NO_HZ_FULL: "y", CPU_IDLE_GOV_MENU: "y"}, args: nohz_full: "0-3"}`, "kernel-arg-cores"},
		{"rcu-nocbs-config", r36 + `kernel: args: rcu_nocbs: "4-5"`, "kernel-arg-config"},
		{"cpuset-possible", r36 + `services: "a.service": cpus: [9]`, "core-exists"},
		{"rt-vs-fair-group", r36 + `kernel: config: {SCHED_AUTOGROUP: "y", FAIR_GROUP_SCHED: "n"}`, "kconfig-changed"},
		{"iosched-name-49", r32 + `storage: "nvme*": scheduler: "kyber"`, "iosched-config"},
		{"iosched-name-new", r36 + `storage: "nvme*": scheduler: "deadline"`, "YT0103"},
		{"preempt-rt-arch", r35 + `kernel: preempt: "rt"`, "preempt-rt-route"},
		{"preempt-rt-arch on r36", r36 + `kernel: config: {EXPERT: "y", PREEMPT_RT: "y"}`, "kconfig-lost"},
		{"preempt-rt-thp", r36 + `kernel: {preempt: "rt", config: TRANSPARENT_HUGEPAGE: "y"}`, "kconfig-lost"},
		{"preempt-dynamic", r36 + `kernel: args: preempt: "full"`, "kernel-arg-config"},
		{"hz-choice", r36 + `kernel: config: {HZ_250: "y", HZ_1000: "y"}`, "kconfig-lost"},
		{"thp-choice", r36 + `kernel: config: {TRANSPARENT_HUGEPAGE_ALWAYS: "y", TRANSPARENT_HUGEPAGE_MADVISE: "y"}`, "kconfig-lost"},
		{"sysctl-bridge", r36 + `sysctl: "net.bridge.bridge-nf-call-iptables": 1`, "sysctl-module"},
		{"governor-default", r36 + `kernel: config: {CPU_FREQ_DEFAULT_GOV_PERFORMANCE: "y", CPU_FREQ_DEFAULT_GOV_SCHEDUTIL: "y"}`, "kconfig-lost"},
		{"irq-threads", r36 + `kernel: config: IRQ_FORCED_THREADING: "n"`, "kconfig-changed"},
		{"tick-accounting", r36 + `kernel: config: {NO_HZ_FULL: "y", CPU_IDLE_GOV_MENU: "y", TICK_CPU_ACCOUNTING: "y"}`, "kconfig-lost"},
		{"psi", r36 + `kernel: args: psi: 1`, "kernel-arg-config"},
		{"uclamp", r35 + `sysctl: "kernel.sched_util_clamp_min": 128`, "sysctl-config"},
		{"bool-m", r36 + `kernel: config: KSM: "m"`, "kconfig-lost"},
		{"string-quotes", r36 + `kernel: config: NR_CPUS: "abc"`, "kconfig-changed"},
		{"int-range", r36 + `kernel: config: LOG_BUF_SHIFT: 99`, "kconfig-changed"},
		{"no-prompt", r36 + `kernel: config: NO_HZ_COMMON: "y"`, "kconfig-selected"},
		{"removed-symbols", r32 + `kernel: config: MQ_IOSCHED_DEADLINE: "y"`, "kconfig-lost"},
		{"nmi-watchdog-arm64", r36 + `sysctl: "kernel.nmi_watchdog": 1`, "sysctl-config"},
	} {
		p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(inTarget("{" + c.body + "}"))})
		var ids []string
		for _, d := range p.Report.All() {
			ids = append(ids, d.ID+": "+d.Message)
		}
		if !slices.ContainsFunc(p.Report.All(), func(d diag.Diagnostic) bool { return d.ID == c.id }) {
			t.Errorf("%s: %s is not raised, only %q", c.cause, c.id, ids)
		}
	}
}

// Known causes of failures that no configuration can bring about: the layer always
// avoids them.
func TestKnownCausesThatLayersAvoid(t *testing.T) {
	const r36 = `board: "orin-nano-8gb", release: "scarthgap", `
	for _, c := range []struct{ cause, body, file, holds string }{
		// The module's package is in the image, and it is loaded before systemd-sysctl.
		{"tcp-cc-module", r36 + `kernel: config: {TCP_CONG_ADVANCED: "y", TCP_CONG_BBR: "m"}, sysctl: "net.ipv4.tcp_congestion_control": "bbr"`,
			"packagegroup-yoctune-box.bb", "kernel-module-tcp-bbr"},
		// zramctl writes the algorithm before the size, and a device is set up once.
		{"zram-order", r36 + `memory: zram: {size: "1GiB", algorithm: "zstd"}`, "yoctune-zram", `--size "$2" --algorithm "$3"`},
		// NO_HZ_FULL selects RCU_NOCB_CPU; the callbacks are moved by an argument of their own.
		{"nohz-full-rcu", r36 + `cpu: isolate: [4, 5]`, "box.conf", "rcu_nocbs=4-5"},
		{"nohz-full-rcu, the option", r36 + `cpu: isolate: [4, 5]`, "yoctune-box.cfg", "CONFIG_RCU_NOCB_CPU=y"},
		// arm64 has it, and VIRT_CPU_ACCOUNTING_GEN, which cpu.isolate brings, is no obstacle.
		{"irq-time", r36 + `cpu: isolate: [4, 5], kernel: config: IRQ_TIME_ACCOUNTING: "y"`, "yoctune-box.cfg", "CONFIG_IRQ_TIME_ACCOUNTING=y"},
	} {
		p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(inTarget("{" + c.body + "}"))})
		if p.Report.Failed() {
			t.Errorf("%s: %v", c.cause, p.Report.All())
			continue
		}
		var held bool
		for _, f := range p.Layers(compiler.Selection{})[0].Files {
			held = held || strings.Contains(f.Path, c.file) && strings.Contains(string(f.Data), c.holds)
		}
		if !held {
			t.Errorf("%s: no %s holds %q", c.cause, c.file, c.holds)
		}
	}
}
