package compiler

import (
	"bytes"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/assemble"
)

// samples declare every field of a target that has an effect on a device. A file other than
// the plan must have the text, unless it is "": then the line must be an error.
var samples = []struct{ path, cue, text string }{
	{"power.default", `default: "15W"`, `YOCTUNE_POWER_DEFAULT:yoctune-on-jetson-orin-nano-devkit = "15W"`},
	{"power", `power: {table: "extend", default: "MINE", modes: MINE: {from: "15W", cpu: {online: [0, 1], min: "729.6MHz", max: "1.1904GHz"}, gpu: {min: "306MHz", max: "408MHz", mask: 1}, emc: max: "665.6MHz", devfreq: "*.gpu": {min: "306MHz", max: "408MHz"}, thermal: "cpu-thermal": passive: 80}}`, "CPU_A78_0 MAX_FREQ 1190400"},
	{"power.adaptive", `power: {default: "15W", adaptive: {up: {load: 80, for: "2s"}, down: {load: 40, for: "3s"}, ladder: ["15W", "25W"], dwell: "5s", cool: "3s", budget: 3}}`, ""},
	{"cpu.isolate", `cpu: isolate: [5]`, "isolcpus=managed_irq,domain,5"},
	{"cpu.isolate", `cpu: isolate: [4]`, "w /sys/devices/virtual/workqueue/cpumask - - - - 2f"},
	{"cpu.isolate", `cpu: isolate: [3]`, "w /proc/irq/default_smp_affinity - - - - 37"},
	{"cpu.governor", `cpu: governor: "performance"`, `cpufreq/policy*/scaling_governor" - - - - performance`},
	{"cpu.min", `cpu: min: "729.6MHz"`, "- - - - 729600"},
	{"cpu.max", `cpu: max: "1.1904GHz"`, "- - - - 1190400"},
	{"cpu.epp", `cpu: epp: "power"`, `w- "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference" - - - - power`},
	{"cpu.boost", `cpu: boost: false`, "w- /sys/devices/system/cpu/cpufreq/boost - - - - 0"},
	{"cpu.smt", `cpu: smt: "off"`, "w- /sys/devices/system/cpu/smt/control - - - - off"},
	{"cpu.maxIdleLatency", `cpu: maxIdleLatency: "0ns"`, `w "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us" - - - - n/a`},
	{"cpu.idleStates", `cpu: idleStates: c7: false`, ""},
	{"memory.emc", `memory: emc: "665.6MHz"`, ""},
	{"gpu.min", `gpu: min: "306MHz"`, ""},
	{"gpu.max", `gpu: max: "408MHz"`, ""},
	{"gpu.governor", `gpu: governor: "performance"`, ""},
	{"devfreq", `devfreq: "*.gpu": {min: "306MHz", max: "408MHz", governor: "performance"}`, ""},
	{"fan.profile", `fan: {profile: "mine", curves: mine: {"30C": {pwm: 0, rpm: 0, hysteresis: "1C"}, "95C": pwm: 255}}`, `YOCTUNE_FAN_PROFILE:yoctune-on-jetson-orin-nano-devkit = "mine"`},
	{"fan.governor", `fan: governor: "pid"`, `YOCTUNE_FAN_GOVERNOR:yoctune-on-jetson-orin-nano-devkit = "pid"`},
	{"fan.control", `fan: control: "close_loop"`, `YOCTUNE_FAN_CONTROL:yoctune-on-jetson-orin-nano-devkit = "close_loop"`},
	{"kernel.config", `kernel: config: HZ_1000: "y"`, "CONFIG_HZ_1000=y"},
	{"kernel.args", `kernel: args: {skew_tick: 1, "rcu_nocb_poll": true}`, "skew_tick=1"},
	{"kernel.args", `kernel: args: fbcon: null`, `KERNEL_ARGS:remove:yoctune-on-jetson-orin-nano-devkit = "fbcon=map:0"`},
	{"kernel.recipe", `kernel: {recipe: "linux-yocto", version: "6.6"}`, `PREFERRED_PROVIDER_virtual/kernel:yoctune-on-jetson-orin-nano-devkit = "linux-yocto"`},
	{"kernel.preempt", `kernel: preempt: "full"`, "CONFIG_PREEMPT=y"},
	{"sysctl", `sysctl: "vm.swappiness": 10`, "vm.swappiness = 10"},
	{"memory.thp", `memory: thp: "never"`, "w- /sys/kernel/mm/transparent_hugepage/enabled - - - - never"},
	{"memory.thpDefrag", `memory: thpDefrag: "defer+madvise"`, "w /sys/kernel/mm/transparent_hugepage/defrag - - - - defer+madvise"},
	{"memory.ksm", `memory: ksm: true`, "w /sys/kernel/mm/ksm/run - - - - 1"},
	{"memory.mglru", `memory: mglru: true`, "w- /sys/kernel/mm/lru_gen/enabled - - - - y"},
	{"memory.mglru", `memory: mglru: false`, "w- /sys/kernel/mm/lru_gen/enabled - - - - 0"},
	{"memory.mglruMinTTL", `memory: mglruMinTTL: "1s"`, "w- /sys/kernel/mm/lru_gen/min_ttl_ms - - - - 1000"},
	{"memory.zram", `memory: zram: {size: "1GiB", algorithm: "lz4"}`, "1073741824 lz4"},
	{"memory.hugepages", `memory: hugepages: "2MiB": 64`, "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 64"},
	{"models", `models: m: source: "/data/m.onnx", pipelines: p: {source: {kind: "synthetic", format: "nv12", width: 64, height: 64}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f", model: "m"}}}`, ""},
	{"tmpfs", `tmpfs: "/var/cache/frames": {size: "64MiB", mode: "0750", inodes: 5000}`, "Options=size=67108864,mode=0750,nr_inodes=5000,nosuid,nodev"},
	{"storage.scheduler", `storage: "nvme*": scheduler: "none"`, `KERNEL=="nvme*", ATTR{queue/scheduler}="none"`},
	{"storage.readahead", `storage: "nvme*": readahead: "512KiB"`, `KERNEL=="nvme*", ATTR{queue/read_ahead_kb}="512"`},
	{"storage.readahead", `storage: "mmcblk*": readahead: "256KiB"`, `w- "/sys/block/mmcblk*/queue/read_ahead_kb" - - - - 256`},
	{"storage.requests", `storage: "sd*": requests: 64`, `KERNEL=="sd*", ATTR{queue/nr_requests}="64"`},
	{"storage.rqAffinity", `storage: "sd*": rqAffinity: 2`, `KERNEL=="sd*", ATTR{queue/rq_affinity}="2"`},
	{"irq.affinity", `irq: affinity: "eth0": [0]`, ""},
	{"threads", `threads: "kswapd0": {policy: "other", nice: 5, affinity: [0]}`, ""},
	{"threads", `threads: "ksoftirqd/*": {policy: "fifo", priority: 2}`, ""},
	{"threads", `threads: "acme": {nice: 2, external: true}`, ""},
	{"bus.pcie", `bus: pcie: aspm: "performance"`, "w /sys/module/pcie_aspm/parameters/policy - - - - performance"},
	{"bus.usb", `bus: usb: autosuspend: "2s"`, "w /sys/module/usbcore/parameters/autosuspend - - - - 2"},
	{"bus.usb", `bus: usb: {autosuspend: "never", memory: "256MiB"}`, "w /sys/module/usbcore/parameters/usbfs_memory_mb - - - - 256"},
	{"bus.usb", `bus: usb: devices: "046d:0825": "on"`, `ATTR{idVendor}=="046d", ATTR{idProduct}=="0825", ATTR{power/control}="on"`},
	{"network.offloads", `network: "eth*": offloads: {"rx-gro": false, "tx-tcp-segmentation": true}`, "ethtool -K $name rx-gro off tx-tcp-segmentation on"},
	{"network.mtu", `network: "eth*": mtu: 9000`, `KERNEL=="eth*", ATTR{mtu}="9000"`},
	{"network.txQueueLen", `network: "can*": txQueueLen: 500`, `KERNEL=="can*", ATTR{tx_queue_len}="500"`},
	{"network.groFlushTimeout", `network: "eth*": groFlushTimeout: "20us"`, `ATTR{gro_flush_timeout}="20000"`},
	{"network.napiDeferHardIRQs", `network: "eth*": napiDeferHardIRQs: 2`, `ATTR{napi_defer_hard_irqs}="2"`},
	{"network.rps", `network: "eth*": rps: [0]`, ""},
	{"network.xps", `network: "eth*": xps: [0]`, ""},
	{"network.channels", `network: "eth*": channels: {combined: 4, rx: 1, tx: 2}`, "ethtool -L $name combined 4 rx 1 tx 2"},
	{"network.ring", `network: "eth*": ring: {rx: 512, tx: 256}`, "ethtool -G $name rx 512 tx 256"},
	{"network.coalesce", `network: "eth*": coalesce: {rxUsecs: 1, rxFrames: 2, txUsecs: 3, txFrames: 4, adaptiveRx: true, adaptiveTx: false}`,
		"ethtool -C $name adaptive-rx on adaptive-tx off rx-frames 2 rx-usecs 1 tx-frames 4 tx-usecs 3"},
	{"modules", `modules: uvcvideo: "blacklist"`, "blacklist uvcvideo"},
	{"modules", `modules: mttcan: "load"`, "\nmttcan\n"},
	{"modules", `modules: acme: {value: "load", external: true}`, "\nacme\n"},
	{"kernel.args", `kernel: args: acme_rate: {value: 7, external: true}`, "acme_rate=7"},
	{"services.exec", `services: "a.service": {exec: ["/usr/bin/a"], description: "D", type: "exec", user: "u", after: ["b.service"], wants: ["c.service"], requires: ["d.service"], environment: A: "1", enable: true, hardening: false}`, "Requires=d.service"},
	{"services.package", `services: "a.service": {exec: ["/usr/bin/a"], package: "pack"}`, "pack"},
	{"services.external", `services: "a.service": {exec: ["/usr/bin/a"], external: true}`, "/usr/bin/a"},
	{"services.slice", `services: "a.service": slice: "work"`, "Slice=work.slice"},
	{"services.cpus", `services: "a.service": cpus: [1]`, "AllowedCPUs=1"},
	{"services.nice", `services: "a.service": nice: -5`, "Nice=-5"},
	{"services.scheduling", `services: "a.service": {scheduling: "fifo", priority: 7}`, "CPUSchedulingPriority=7"},
	{"services.memoryMax", `services: "a.service": memoryMax: "64MiB"`, "MemoryMax=67108864"},
	{"services.memoryHigh", `services: "a.service": memoryHigh: "64MiB"`, "MemoryHigh=67108864"},
	{"services.cpuWeight", `services: "a.service": cpuWeight: 7`, "CPUWeight=7"},
	{"services.ioWeight", `services: "a.service": ioWeight: 7`, "IOWeight=7"},
	{"services.cpuPartition", `services: "a.service": {slice: "work", cpuPartition: "root"}`, ""},
	{"services.cpuQuota", `services: "a.service": cpuQuota: 150`, "CPUQuota=150%"},
	{"services.memoryLock", `services: "a.service": memoryLock: true`, "LimitMEMLOCK=infinity"},
	{"services.group", `services: "a.service": {user: 1000, group: "video", supplementaryGroups: ["render"]}`, "SupplementaryGroups=render"},
	{"services.workingDirectory", `services: "a.service": workingDirectory: "/srv"`, "WorkingDirectory=/srv"},
	{"services.environmentFiles", `services: "a.service": environmentFiles: ["-/etc/default/a"]`, "EnvironmentFile=-/etc/default/a"},
	{"services.execStartPre", `services: "a.service": execStartPre: [["/bin/true"]]`, "ExecStartPre=/bin/true"},
	{"services.execStartPost", `services: "a.service": execStartPost: [["-/bin/true", "a b"]]`, `ExecStartPost=-/bin/true "a b"`},
	{"services.execStop", `services: "a.service": execStop: [["+/bin/true"]]`, "ExecStop=+/bin/true"},
	{"services.execStopPost", `services: "a.service": execStopPost: [["/bin/true"]]`, "ExecStopPost=/bin/true"},
	{"services.oomScoreAdjust", `services: "a.service": oomScoreAdjust: 0`, "OOMScoreAdjust=0"},
	{"services.ambientCapabilities", `services: "a.service": ambientCapabilities: ["CAP_SYS_NICE"]`, "AmbientCapabilities=CAP_SYS_NICE"},
	{"services.capabilityBoundingSet", `services: "a.service": capabilityBoundingSet: []`, "CapabilityBoundingSet=\n"},
	{"services.restartSec", `services: "a.service": restartSec: "1500ms"`, "RestartSec=1500ms"},
	{"services.startLimitIntervalSec", `services: "a.service": startLimitIntervalSec: 0`, "StartLimitIntervalSec=0"},
	{"services.startLimitBurst", `services: "a.service": startLimitBurst: 9`, "StartLimitBurst=9"},
	{"services.watchdogSec", `services: "a.service": watchdogSec: "10us"`, "WatchdogSec=10us"},
	{"services.timeoutStartSec", `services: "a.service": timeoutStartSec: "2min"`, "TimeoutStartSec=120"},
	{"services.timeoutStopSec", `services: "a.service": timeoutStopSec: "infinity"`, "TimeoutStopSec=infinity"},
	{"services.unit", `services: "a.service": unit: Service: IOSchedulingClass: {value: "idle", external: true}`, "IOSchedulingClass=idle"},
	{"services.restart", `services: "a.service": restart: "always"`, "Restart=always"},
	{"services.timer.onActive", `services: "a.service": timer: onActive: "90s"`, "OnActiveSec=90"},
	{"services.timer.onBoot", `services: "a.service": timer: onBoot: "2min"`, "OnBootSec=120\n"},
	{"services.timer.onStartup", `services: "a.service": timer: onStartup: "1500ms"`, "OnStartupSec=1500ms"},
	{"services.timer.onUnitActive", `services: "a.service": timer: onUnitActive: "1h"`, "OnUnitActiveSec=3600"},
	{"services.timer.onUnitInactive", `services: "a.service": timer: onUnitInactive: "5s"`, "OnUnitInactiveSec=5"},
	{"services.timer.onCalendar", `services: "a.service": timer: onCalendar: ["Mon..Fri 08:00", "daily"]`, "OnCalendar=Mon..Fri 08:00\nOnCalendar=daily"},
	{"services.timer.onClockChange", `services: "a.service": timer: onClockChange: true`, "OnClockChange=yes"},
	{"services.timer.onTimezoneChange", `services: "a.service": timer: onTimezoneChange: true`, "OnTimezoneChange=yes"},
	{"services.timer.accuracy", `services: "a.service": timer: accuracy: "1s"`, "AccuracySec=1"},
	{"services.timer.randomizedDelay", `services: "a.service": timer: randomizedDelay: "30s"`, "RandomizedDelaySec=30"},
	{"services.timer.fixedRandomDelay", `services: "a.service": timer: fixedRandomDelay: true`, "FixedRandomDelay=yes"},
	{"services.timer.persistent", `services: "a.service": timer: persistent: true`, "Persistent=yes"},
	{"services.timer.wakeSystem", `services: "a.service": timer: wakeSystem: true`, "WakeSystem=yes"},
	{"services.timer.remainAfterElapse", `services: "a.service": timer: remainAfterElapse: false`, "RemainAfterElapse=no"},
	{"services.timer.unit", `services: "a.service": timer: unit: Timer: DeferReactivation: {value: true, external: true}`, "DeferReactivation=yes"},
	{"services.timer.external", `services: "a.service": timer: {external: true, accuracy: "1s"}`, "drop-in for a timer of another recipe"},
	{"packages", `packages: htop: "install"`, "    htop \\"},
	{"pipelines.start", `pipelines: p: {start: true, source: {kind: "synthetic", format: "nv12", width: 64, height: 64, fps: 5}, stages: a: {kind: "preprocess", input: "source", width: 32, height: 32}}`, ""},
	{"pipelines", `pipelines: p: {source: {kind: "synthetic", format: "nv12", width: 64, height: 64, fps: 5}, stages: a: {kind: "preprocess", input: "source", width: 32, height: 32}}`, ""},
	{"cluster", `cluster: {name: "plant", embedded: {listen: "0.0.0.0:4222", plain: false}, tls: {ca: "/etc/s/ca.crt", certificate: "/etc/s/s.crt", key: "/etc/s/s.key"}, domain: "gate", replicas: 1, store: {size: "1GiB", sync: "1s"}}`, ""},
	{"cluster", `cluster: {name: "plant", url: "tls://nats.example.com", credentials: "/etc/s/s.creds"}, pipelines: p: {source: {kind: "synthetic", format: "nv12", width: 64, height: 64, fps: 5}, sink: kind: "nats", stages: a: {kind: "preprocess", input: "source", width: 32, height: 32}}`, ""},
	{"monitor", `monitor: {interval: "1s", metrics: true}`, ""},
	{"runtime.keys", `runtime: keys: release: "RWTNUVs4vsM0k82KQlC5R6/ihB0csf6K230jAtxrcEv0YnAXOEMTuF4M"`, ""},
	{"runtime.manifest", `runtime: manifest: "manifest.json"`, ""},
	{"runtime.cuda", `runtime: cuda: true`, ""},
	{"tools", `tools: {perf: true, memory: true, benchmark: true}`, "    rt-tests \\"},
}

// The line of a sample.
const sampleLine = 8

// withoutRuntime is a configuration with form "none" and one line more.
func withoutRuntime(line string) map[string][]byte {
	return map[string][]byte{"config.cue": fmt.Appendf(nil, `package box
layer: {name: "box", maintainer: "M <m@example.com>"}
targets: [string]: {board: "orin-nano-8gb", release: "scarthgap", use: ["all"]}
targets: cam: {}
targets: other: machine: "jetson-orin-nano-devkit-nvme"
profiles: all: {
runtime: form: "none"
%s
}
`, line)}
}

// Without the runtime, each field is in a file or an error at its line, once for both targets.
func TestFieldIsInAFileOrAnErrorAtItsLine(t *testing.T) {
	for _, s := range samples {
		if s.path == "power.default" {
			s.cue = "power: " + s.cue
		}
		p := OpenFiles(withoutRuntime(s.cue))
		var found []diag.Diagnostic
		for _, d := range p.Report.All() {
			if d.ID == "YT0210" {
				found = append(found, d)
			}
		}
		if s.text == "" {
			if len(found) != 1 || found[0].Pos.Line != sampleLine {
				t.Errorf("%s: %v, want one YT0210 at line %d", s.cue, found, sampleLine)
			}
			continue
		}
		if len(found) > 0 {
			t.Errorf("%s: %s", s.cue, found[0].Message)
		}
		if p.Project == nil || len(p.Targets) != 2 {
			t.Errorf("%s: no targets: %v", s.cue, p.Report.All())
			continue
		}
		report := &diag.Report{}
		files, err := assemble.Emit(p.Layer(p.Targets, nil, report))
		if err != nil || report.Failed() {
			t.Errorf("%s: %v %v", s.cue, err, report.All())
			continue
		}
		if !slices.ContainsFunc(files, func(f emitters.File) bool {
			return !slices.Contains([]string{"plan.json", "README.md"}, path.Base(f.Path)) && bytes.Contains(f.Data, []byte(s.text))
		}) {
			t.Errorf("%s: no file has %q", s.cue, s.text)
		}
	}
}

// Every field of a target that has an effect on the device has a sample.
func TestEveryFieldHasASample(t *testing.T) {
	unset := map[string]bool{}
	set := map[string]bool{}
	for _, s := range samples {
		if s.path == "power.default" {
			s.cue = "power: " + s.cue
		}
		p := OpenFiles(withoutRuntime(s.cue))
		for _, target := range p.Targets {
			walkFields(reflect.ValueOf(target.Config).Elem(), unset, set)
		}
	}
	for name := range unset {
		if !set[name] && name != "Target.Use" { // the profiles are merged by then
			t.Errorf("no sample sets %s: add one that shows the file that holds it, or that it is an error", name)
		}
	}
	if len(set) < 90 {
		t.Errorf("%d fields are set, which is too few: is the walk complete?", len(set))
	}
}

// walkFields collects the fields that are set and unset, by path. The names in maps are left
// out, and so are the contents of pipelines and of the models that they run, which have one outcome.
func walkFields(v reflect.Value, unset, set map[string]bool) {
	for i := range v.NumField() {
		f := v.Field(i)
		part, ok := f.Addr().Interface().(config.Part)
		if !ok || v.Type().Field(i).Anonymous {
			if v.Type().Field(i).Name == "Profile" {
				walkFields(f, unset, set)
			}
			continue
		}
		at := part.Where()
		name := v.Type().Name() + "." + v.Type().Field(i).Name
		if at.IsSet() {
			set[name] = true
		} else {
			unset[name] = true
		}
		entries := f.FieldByName("Entries")
		switch {
		case strings.HasSuffix(name, ".Pipelines"), strings.HasSuffix(name, ".Models"):
		case entries.IsValid():
			for j := range entries.Len() {
				if e := entries.Index(j).Elem(); e.Kind() == reflect.Struct {
					walkFields(e, unset, set)
				}
			}
		case f.FieldByName("Struct").IsValid():
			walkFields(f.FieldByName("Struct"), unset, set)
		case f.Kind() == reflect.Struct && f.NumField() > 1:
			walkFields(f, unset, set)
		}
	}
}
