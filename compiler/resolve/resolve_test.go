package resolve_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/schema/units"
)

// target resolves a target of which the board, the release and some lines are given.
func target(t *testing.T, board, release, lines string) *resolve.Target {
	t.Helper()
	p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(`package box
import "github.com/yoctune/yoctune/schema"
schema.#Config & {
	layer: {name: "box", maintainer: "x"}
	targets: cam: {board: "` + board + `", release: "` + release + `"
` + lines + `
}}
`)})
	if p.Report.Failed() || len(p.Targets) != 1 {
		t.Fatalf("%+v", p.Report.All())
	}
	return p.Targets[0]
}

func setting(t *testing.T, tgt *resolve.Target, id string) plan.Setting {
	t.Helper()
	for _, s := range tgt.Plan.Settings {
		if s.ID == id {
			return s
		}
	}
	t.Fatalf("no setting %s", id)
	return plan.Setting{}
}

func TestQuantitiesAreExact(t *testing.T) {
	read := map[string]func(*load.Node) (int64, error){"Hz": resolve.Frequency, "B": resolve.Size, "ns": resolve.Duration}
	for _, c := range []struct {
		unit, text string
		want       int64
		err        error
	}{
		{"Hz", "918MHz", 918_000_000, nil},
		{"Hz", "1.1904GHz", 1_190_400_000, nil},
		{"Hz", "729.6MHz", 729_600_000, nil},
		{"Hz", "0.1Hz", 0, units.ErrInexact},
		{"B", "2GiB", 2 << 30, nil},
		{"B", "1.5KiB", 1536, nil},
		{"B", "5MB", 5_000_000, nil},
		{"B", "0.3KiB", 0, units.ErrInexact},
		{"ns", "5ms", 5_000_000, nil},
		{"ns", "2min", 120_000_000_000, nil},
		{"ns", "33.333333333ms", 0, units.ErrInexact},
	} {
		got, err := read[c.unit](&load.Node{Kind: load.String, Text: c.text})
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: got %d %s, %v; want %d, %v", c.text, got, c.unit, err, c.want, c.err)
		}
	}
	for _, text := range []string{"99999999999TiB", "5parsec"} {
		if v, err := resolve.Size(&load.Node{Kind: load.String, Text: text}); err == nil {
			t.Errorf("%s is read as %d", text, v)
		}
	}
}

func TestIsolatedCoresImplyAffinities(t *testing.T) {
	tgt := target(t, "orin-nano-8gb", "scarthgap", `cpu: isolate: [5, 4]
services: "a.service": {exec: ["/usr/bin/a"], slice: "rt"}`)
	var args []string
	for _, a := range tgt.Kernel.Args {
		args = append(args, a.Name+"="+a.Value)
	}
	if got, want := strings.Join(args, " "), "irqaffinity=0-3 isolcpus=managed_irq,domain,4-5 nohz_full=4-5 rcu_nocbs=4-5"; got != want {
		t.Errorf("kernel arguments: %s, want %s", got, want)
	}
	for _, o := range []plan.ConfigOption{{Symbol: "NO_HZ_FULL", Value: "y"}, {Symbol: "RCU_NOCB_CPU", Value: "y"}} {
		if !slices.Contains(tgt.Kernel.Config, o) {
			t.Errorf("kernel option %+v is missing from %+v", o, tgt.Kernel.Config)
		}
	}
	if s := setting(t, tgt, "irq.default"); s.Want != "f" || s.Type != plan.TypeCPUMask {
		t.Errorf("default interrupt affinity: %+v", s)
	}
	if want := []plan.Slice{{Name: "rt.slice", CPUs: "4-5"}}; !slices.Equal(tgt.Slices, want) {
		t.Errorf("slices %+v, want %+v", tgt.Slices, want)
	}
	for _, id := range []string{"kernel.args.isolcpus", "kernel.config.NO_HZ_FULL", "irq.default"} {
		if tgt.Origins[id] != (plan.Position{File: "config.cue", Line: 6, Column: 15}) {
			t.Errorf("%s comes from %+v, not from the line of cpu.isolate", id, tgt.Origins[id])
		}
	}
}

func params(m plan.PowerMode) string {
	var b strings.Builder
	for _, p := range m.Params {
		fmt.Fprintf(&b, "%s %s %s\n", p.Param, p.Arg, p.Value)
	}
	return b.String()
}

func TestPowerModeReplacesStockLimits(t *testing.T) {
	tgt := target(t, "orin-nano-8gb", "scarthgap", `power: modes: EDGE: {
	from: "25W"
	cpu: {online: [0, 1, 2, 3], max: "1.1904GHz"}
	gpu: {min: "306MHz", max: "unlimited"}
	emc: max: "2.133GHz"
}`)
	m := tgt.Plan.Power.Modes[0]
	if m.ID != len(tgt.Stock.Modes) || m.From != "25W" {
		t.Errorf("id %d from %s", m.ID, m.From)
	}
	want := `CPU_ONLINE CORE_0 1
CPU_ONLINE CORE_1 1
CPU_ONLINE CORE_2 1
CPU_ONLINE CORE_3 1
CPU_ONLINE CORE_4 0
CPU_ONLINE CORE_5 0
FBP_POWER_GATING FBP_PG_MASK 2
TPC_POWER_GATING TPC_PG_MASK 240
GPU_POWER_CONTROL_ENABLE GPU_PWR_CNTL_EN on
CPU_A78_0 MIN_FREQ 729600
CPU_A78_0 MAX_FREQ 1190400
CPU_A78_1 MIN_FREQ 729600
CPU_A78_1 MAX_FREQ 1190400
CPU_A78_2 MIN_FREQ 729600
CPU_A78_2 MAX_FREQ 1190400
CPU_A78_3 MIN_FREQ 729600
CPU_A78_3 MAX_FREQ 1190400
GPU MIN_FREQ 306000000
GPU MAX_FREQ -1
GPU_POWER_CONTROL_DISABLE GPU_PWR_CNTL_DIS auto
EMC MAX_FREQ 2133000000
`
	if got := params(m); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if len(m.Reboot) != 0 {
		t.Errorf("the GPU mask is unchanged, but a reboot is required to reach %v", m.Reboot)
	}
}

func TestModeWithOtherGPUGatingNeedsReboot(t *testing.T) {
	tgt := target(t, "orin-nano-8gb", "scarthgap", `power: modes: {HALF: {from: "15W", gpu: mask: 252}, FULL: from: "25W"}`)
	for _, m := range tgt.Plan.Power.Modes {
		switch m.Name {
		case "HALF":
			for _, other := range []string{"15W", "25W", "MAXN_SUPER", "FULL"} {
				if !slices.Contains(m.Reboot, other) {
					t.Errorf("HALF to %s needs a reboot; it has %v", other, m.Reboot)
				}
			}
		case "FULL":
			if !slices.Equal(m.Reboot, []string{"HALF"}) {
				t.Errorf("FULL reboots for %v", m.Reboot)
			}
		}
	}
}

// In older tables a clock belongs to a cluster: adding cores to a mode also adds their
// cluster's clock.
func TestCoresOfAnotherClusterAddTheirClock(t *testing.T) {
	tgt := target(t, "agx-orin-64gb", "wrynose", `power: modes: MORE: {from: "MODE_15W", cpu: online: [0, 1, 4]}`)
	got := params(tgt.Plan.Power.Modes[0])
	for _, line := range []string{"CPU_ONLINE CORE_4 1\n", "CPU_ONLINE CORE_2 0\n", "CPU_A78_1 MAX_FREQ 1113600\n"} {
		if !strings.Contains(got, line) {
			t.Errorf("no %sin\n%s", line, got)
		}
	}
	if strings.Contains(got, "CPU_A78_2") {
		t.Errorf("the clock of a cluster that is off is written:\n%s", got)
	}
}

func TestRealTimeKernelFollowsItsRelease(t *testing.T) {
	byRecipe := target(t, "agx-orin-64gb", "wrynose", `kernel: preempt: "rt"`)
	if byRecipe.Kernel.Provider != "linux-noble-nvidia-tegra-rt" || len(byRecipe.Kernel.Config) != 0 {
		t.Errorf("wrynose: provider %q, options %+v", byRecipe.Kernel.Provider, byRecipe.Kernel.Config)
	}
	byConfig := target(t, "orin-nano-8gb", "scarthgap", `kernel: preempt: "rt"`)
	want := []plan.ConfigOption{{Symbol: "EXPERT", Value: "y"}, {Symbol: "KVM", Value: "n"}, {Symbol: "NAMESPACES", Value: "y"}, {Symbol: "PREEMPT_RT", Value: "y"}}
	if byConfig.Kernel.Provider != "" || !slices.Equal(byConfig.Kernel.Config, want) {
		t.Errorf("scarthgap: provider %q, options %+v", byConfig.Kernel.Provider, byConfig.Kernel.Config)
	}
}

func TestSysctlValuesAreCanonical(t *testing.T) {
	tgt := target(t, "orin-nano-8gb", "scarthgap", `sysctl: {
	"net.ipv4.tcp_rmem": "4096 87380  6291456"
	"net.ipv4.ip_forward": true
	"vm.dirty_ratio": 10
	"net.core.default_qdisc": "fq"
	"net.ipv4.conf.eth0/100.rp_filter": 1
}
kernel: config: NET_SCH_FQ: "y"`)
	for id, want := range map[string]plan.Setting{
		"sysctl.net.ipv4.tcp_rmem":                {Type: plan.TypeVector, Want: "4096 87380 6291456", Select: plan.Select{Path: "/proc/sys/net/ipv4/tcp_rmem"}},
		"sysctl.net.ipv4.ip_forward":              {Type: plan.TypeInt, Want: "1", Select: plan.Select{Path: "/proc/sys/net/ipv4/ip_forward"}},
		"sysctl.vm.dirty_ratio":                   {Type: plan.TypeInt, Want: "10", Group: "vm.dirty", Select: plan.Select{Path: "/proc/sys/vm/dirty_ratio"}},
		"sysctl.net.core.default_qdisc":           {Type: plan.TypeString, Want: "fq", Select: plan.Select{Path: "/proc/sys/net/core/default_qdisc"}},
		"sysctl.net.ipv4.conf.eth0/100.rp_filter": {Type: plan.TypeInt, Want: "1", Select: plan.Select{Path: "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"}},
	} {
		got := setting(t, tgt, id)
		if got.Type != want.Type || got.Want != want.Want || got.Group != want.Group || got.Select != want.Select {
			t.Errorf("%s: %+v", id, got)
		}
	}
}

func TestCongestionControlModuleIsLoaded(t *testing.T) {
	const sysctl = `sysctl: "net.ipv4.tcp_congestion_control": "bbr"` + "\n"
	asModule := target(t, "orin-nano-8gb", "scarthgap", sysctl+`kernel: config: {TCP_CONG_ADVANCED: "y", TCP_CONG_BBR: "m"}`)
	if want := []plan.Module{{Name: "tcp_bbr", Action: "load"}}; !slices.Equal(asModule.Modules, want) {
		t.Errorf("as a module: %+v", asModule.Modules)
	}
	builtIn := target(t, "orin-nano-8gb", "scarthgap", sysctl+`kernel: config: {TCP_CONG_ADVANCED: "y", TCP_CONG_BBR: "y"}`)
	if len(builtIn.Modules) != 0 {
		t.Errorf("built in: %+v", builtIn.Modules)
	}
}

func TestStagesComeAfterTheirInputs(t *testing.T) {
	tgt := target(t, "orin-nano-8gb", "scarthgap", `pipelines: p: {
	source: {kind: "v4l2", path: "/dev/video0", format: "nv12", width: 64, height: 48}
	stages: {
		a: {kind: "postprocess", input: "m", decode: "raw"}
		z: {kind: "preprocess", input: "source", width: 32, height: 32, mean: [0.50, 5e-1, "0.5"]}
		m: {kind: "model", input: "z", path: "x.onnx"}
	}
}`)
	p := tgt.Plan.Pipelines["p"]
	var order []string
	for _, s := range p.Stages {
		order = append(order, s.ID)
	}
	if !slices.Equal(order, []string{"z", "m", "a"}) {
		t.Errorf("order %v", order)
	}
	if !slices.Equal(p.Stages[0].Preprocess.Mean, []string{"0.5", "0.5", "0.5"}) {
		t.Errorf("one value, three spellings: %v", p.Stages[0].Preprocess.Mean)
	}
	if !p.Source.Live || p.Queue.Policy != "drop-oldest" {
		t.Errorf("a camera does not wait: live %t, queue %s", p.Source.Live, p.Queue.Policy)
	}
}

func TestEverySettingHasItsLine(t *testing.T) {
	tgt := target(t, "orin-nano-8gb", "scarthgap", `cpu: {governor: "schedutil", isolate: [5]}
memory: {thp: "madvise", ksm: false, zram: "1GiB", hugepages: "2MiB": 64}
storage: "nvme*": {scheduler: "none", readahead: "128KiB", requests: 64, rqAffinity: 2}
network: "eth*": {mtu: 9000, groFlushTimeout: "20us"}
irq: affinity: "eth*": [0]
modules: mc: "load"
kernel: args: quiet: true
sysctl: "vm.swappiness": 10`)
	for _, s := range tgt.Plan.Settings {
		if o := tgt.Origins[s.ID]; o.File != "config.cue" || o.Line < 6 {
			t.Errorf("%s has origin %+v", s.ID, o)
		}
	}
	if len(tgt.Plan.Settings) != 24 { // three of them kernel options of cpu.isolate
		t.Errorf("%d settings", len(tgt.Plan.Settings))
	}
}

func TestEachFieldMapsToAKernelFile(t *testing.T) {
	tgt := target(t, "agx-orin-64gb", "wrynose", `cpu: {epp: "balance_power", boost: false, smt: "off", maxIdleLatency: "20us", isolate: [8, 9, 10, 11]}
memory: {mglru: true, mglruMinTTL: "1s"}
network: "eth*": {rps: [0, 1], xps: [2], channels: combined: 2, ring: rx: 1024, coalesce: {rxUsecs: 50, adaptiveRx: false}}
services: "a.service": {exec: ["/usr/bin/a"], slice: "work", cpuPartition: "isolated", ioWeight: 200, scheduling: "fifo", priority: 10, nice: -5}`)
	var got []string
	for _, s := range tgt.Plan.Settings {
		if s.Domain == plan.DomainKernel || s.Domain == plan.DomainIRQ {
			continue
		}
		got = append(got, fmt.Sprint(s.ID, " ", s.Select.Class, s.Select.Path, " ", s.Select.Name, " ", s.Select.Attr, " = ", s.Want, " ", s.Type, " ", s.Compare, " ", s.Optional))
	}
	want := []string{
		"cpu.boost /sys/devices/system/cpu/cpufreq/boost   = 0 bool exact true",
		"cpu.epp cpufreq  energy_performance_preference = balance_power string exact true",
		"cpu.maxIdleLatency cpu cpu* power/pm_qos_resume_latency_us = 20 int exact false",
		"cpu.smt /sys/devices/system/cpu/smt/control   = off string exact true",
		"cpu.workqueues /sys/devices/virtual/workqueue/cpumask   = ff cpumask exact false",
		"memory.mglru /sys/kernel/mm/lru_gen/enabled   = 1 int at_least true",
		"memory.mglruMinTTL /sys/kernel/mm/lru_gen/min_ttl_ms   = 1000 int exact true",
		"network.eth*.channels.combined net eth* ethtool/channels/combined = 2 int exact true",
		"network.eth*.coalesce.adaptiveRx net eth* ethtool/coalesce/adaptive-rx = 0 bool exact true",
		"network.eth*.coalesce.rxUsecs net eth* ethtool/coalesce/rx-usecs = 50 int exact true",
		"network.eth*.ring.rx net eth* ethtool/ring/rx = 1024 int exact true",
		"network.eth*.rps net eth* queues/rx-*/rps_cpus = 3 cpumask exact true",
		"network.eth*.xps net eth* queues/tx-*/xps_cpus = 4 cpumask exact true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	nice := -5
	if want := []plan.Unit{
		{Name: "a.service", Slice: "work.slice", IOWeight: 200, Scheduling: "fifo", Priority: 10, Nice: &nice,
			Properties: map[string]string{"FragmentPath": "lib/systemd/system/a.service", "Type": "simple", "Restart": "on-failure", "RestartUSec": "3000000"}},
		{Name: "work.slice", CPUs: "8-11", CPUPartition: "isolated"},
	}; !reflect.DeepEqual(tgt.Plan.Units, want) {
		t.Errorf("units %+v", tgt.Plan.Units)
	}
	if none := target(t, "agx-orin-64gb", "wrynose", `cpu: maxIdleLatency: 0`).Plan.Settings[0]; none.Want != "n/a" || none.Type != plan.TypeString {
		t.Errorf("no latency at all: %+v", none)
	}
}

func TestFanCurveUsesChipTemperature(t *testing.T) {
	tgt := target(t, "orin-nano-8gb", "scarthgap", `fan: {profile: "lab", governor: "cont", curves: {
	lab: {"95C": pwm: 255, "40C": {pwm: 0, hysteresis: "3C"}, "100C": {pwm: 255, rpm: 6000}}
	cool: {"50C": pwm: 100, "95C": pwm: 255}
}}`)
	curve := []plan.FanPoint{{Temp: 40_000, Hysteresis: 3000}, {Temp: 95_000, PWM: 255}, {Temp: 100_000, PWM: 255, RPM: 6000}}
	if want := (&plan.Fan{Profile: "lab", Governor: "cont", Curve: curve}); !reflect.DeepEqual(tgt.Plan.Fan, want) {
		t.Errorf("%+v", tgt.Plan.Fan)
	}
	if len(tgt.Fan.Profiles) != 2 || tgt.Fan.Profiles[0].Name != "cool" || tgt.Fan.Curve != nil {
		t.Errorf("%+v", tgt.Fan)
	}
}

// TX2 and Nano name clocks by core type, without a number.
func TestLimitsApplyToClocksNamedByCoreType(t *testing.T) {
	nano := target(t, "nano-4gb", "kirkstone-l4t-r32.7.x", `power: modes: EDGE: {from: "MAXN", cpu: max: "918MHz"}`)
	if got := params(nano.Plan.Power.Modes[0]); !strings.Contains(got, "CPU_A57 MAX_FREQ 918000") {
		t.Errorf("nano-4gb: the limit is lost:\n%s", got)
	}
	tx2 := target(t, "tx2", "kirkstone-l4t-r32.7.x", `power: modes: EDGE: {from: "MAXN", cpu: online: [0, 3, 4, 5]}`)
	if got := params(tx2.Plan.Power.Modes[0]); strings.Contains(got, "CPU_DENVER") || !strings.Contains(got, "CPU_A57") {
		t.Errorf("tx2: clocks of cores that are off:\n%s", got)
	}
}
