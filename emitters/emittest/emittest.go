// Package emittest provides helpers for the tests of emitters: two layers that use
// every artefact, and a comparison with a recorded tree.
package emittest

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

var update = flag.Bool("update", false, "rewrite the recorded trees")

// Golden compares what emit makes of both layers with testdata/<layer>.txtar of
// the calling package; -update rewrites it.
func Golden(t *testing.T, emit func(*plan.Layer) ([]emitters.File, error)) {
	t.Helper()
	for _, l := range []*plan.Layer{Vision(t), Control(t)} {
		files, err := emit(l)
		if err != nil {
			t.Fatalf("layer %s: %v", l.Name, err)
		}
		var a txtar.Archive
		for _, f := range files {
			if len(f.Data) == 0 || f.Data[len(f.Data)-1] != '\n' {
				t.Errorf("%s does not end with a line feed", f.Path)
			}
			if f.Mode != 0o644 && f.Mode != 0o755 {
				t.Errorf("%s has mode %v", f.Path, f.Mode)
			}
			a.Files = append(a.Files, txtar.File{Name: f.Path, Data: f.Data})
		}
		got := txtar.Format(&a)
		path := filepath.Join("testdata", l.Name+".txtar")
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v; run the test with -update", err)
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("layer %s differs from %s (-recorded +emitted); -update accepts it\n%s", l.Name, path, d)
		}
	}
}

// Write puts the files of the layer below dir.
func Write(t *testing.T, dir string, files []emitters.File) {
	t.Helper()
	for _, f := range files {
		p := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, f.Data, f.Mode); err != nil {
			t.Fatal(err)
		}
	}
}

func runtime(form string) plan.Runtime {
	const base = "https://downloads.example.com/yoctune/v0.1.0/"
	sum := func(c byte) string {
		b := make([]byte, 64)
		for i := range b {
			b[i] = c
		}
		return string(b)
	}
	keys := []plan.PublicKey{{Name: "release", Key: "RWSab7fjgFtOEj6oTTo4ynhSTGPkjCXYHgljsZGLzQmiZEXsvRKyw/ro"}}
	return plan.Runtime{Form: form, Version: "0.1.0", CUDA: true, Keys: keys, Files: []plan.RuntimeFile{
		{Name: "yoctuned-arm64", URI: base + "yoctuned-0.1.0-linux-arm64", SHA256: sum('a')},
		{Name: "yoctuned-source", URI: base + "yoctuned-0.1.0-source.tar.gz", SHA256: sum('b')},
		{Name: "yoctuned-serve-arm64", URI: base + "yoctuned-serve-0.1.0-linux-arm64", SHA256: sum('d')},
		{Name: "yoctuned-serve-source", URI: base + "yoctuned-serve-0.1.0-source.tar.gz", SHA256: sum('e')},
		{Name: "yoctuned-licenses", URI: base + "yoctuned-0.1.0-licenses.txt", SHA256: sum('6'), MD5: sum('6')[:32], Licences: []string{"Apache-2.0", "BSD-3-Clause", "MIT"}},
		{Name: "yoctuned-serve-licenses", URI: base + "yoctuned-serve-0.1.0-licenses.txt", SHA256: sum('7'), MD5: sum('7')[:32], Licences: []string{"Apache-2.0", "MIT", "blessing"}},
		{Name: "yoctune-cuda-source", URI: base + "yoctune-cuda-0.1.0-source.tar.gz", SHA256: sum('c')},
	}}
}

func positionAt(line int) plan.Position {
	return plan.Position{File: "config.cue", Line: line, Column: 3}
}

func sysctl(key, typ, want string) plan.Setting {
	return plan.Setting{
		ID: "sysctl." + key, Domain: plan.DomainSysctl, Select: plan.Select{Path: knob.SysctlPath(key)},
		Type: typ, Want: want, Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
}

// device is a setting of the devices of a class.
func device(id, class, name, attr, typ, want string) plan.Setting {
	domain, _, _ := strings.Cut(id, ".")
	return plan.Setting{
		ID: id, Domain: domain, Select: plan.Select{Class: class, Name: name, Attr: attr},
		Type: typ, Want: want, Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing, Optional: name != "",
	}
}

// Vision is a layer for one Orin Nano on scarthgap: power modes of its own,
// isolated cores, kernel parameters, storage, services with and without a
// command, modules and compressed swap.
func Vision(t testing.TB) *plan.Layer {
	t.Helper()
	nice := -5
	target := &plan.Target{
		Name: "line-camera", Board: "orin-nano-8gb", Machine: "jetson-orin-nano-devkit",
		Kernel: plan.Kernel{
			Recipes: []string{"linux-jammy-nvidia-tegra"},
			Config: []plan.ConfigOption{
				{Symbol: "DEFAULT_TCP_CONG", Value: "bbr", Quoted: true},
				{Symbol: "HZ", Value: "1000"},
				{Symbol: "KSM", Value: "n"},
				{Symbol: "NO_HZ_FULL", Value: "y"},
				{Symbol: "TCP_CONG_BBR", Value: "m"},
			},
			Args: []plan.Arg{
				{Name: "isolcpus", Value: "managed_irq,domain,4-5"},
				{Name: "nohz_full", Value: "4-5"},
				{Name: "nowatchdog", Flag: true},
				{Name: "rcu_nocbs", Value: "4-5"},
			},
		},
		Modules: []plan.Module{{Name: "tcp_bbr", Action: "load"}, {Name: "nouveau", Action: "blacklist"}},
		Slices:  []plan.Slice{{Name: "inference.slice", CPUs: "4-5"}},
		Services: []plan.Service{
			{
				Name: "nvargus-daemon.service", CPUs: "0-3", Nice: &nice, After: []string{"yoctuned.service"}, Restart: "no", OOMScore: new(0),
				Spans: map[string]string{"StartLimitIntervalSec": "0", "TimeoutStopSec": "infinity"}, Capabilities: map[string][]string{"CapabilityBoundingSet": {"CAP_SYS_NICE", "CAP_IPC_LOCK"}},
			},
			{
				Name: "vision.service", Description: "Line camera, 100% of frames",
				Exec: []string{"/usr/bin/vision", "--title", "a b", "--price", "$5 at 10%", ";"},
				Type: "notify", User: "vision", Group: "991", Groups: []string{"video", "44"}, Directory: "/var/lib/vision", Slice: "inference.slice",
				EnvironmentFiles: []string{"-/etc/default/vision", "/etc/vision.env"}, StartLimitBurst: 3,
				Commands:     map[string][][]string{"ExecStartPre": {{"-+/bin/mkdir", "-p", "/run/v $x"}, {"/bin/true"}}, "ExecStopPost": {{"/bin/echo", "50%"}}},
				Spans:        map[string]string{"RestartSec": "1500ms", "WatchdogSec": "30"},
				Capabilities: map[string][]string{"AmbientCapabilities": {"CAP_SYS_NICE"}},
				After:        []string{"yoctuned.service"}, Wants: []string{"yoctuned.service"},
				Environment: map[string]string{"MODEL": `/opt/"door" model`, "A": "1"},
				Nice:        &nice, Scheduling: "fifo", Priority: 50,
				MemoryMax: 2 << 30, MemoryHigh: 1 << 30, CPUWeight: 200, IOWeight: 50, MemoryLock: true, Restart: "on-failure", Enable: true, Hardening: true,
			},
		},
		Packages: []plan.Package{{Name: "htop", Action: "install"}, {Name: "nfs-utils", Action: "exclude"}},
		ZRAM:     &plan.ZRAM{Bytes: 2 << 30, Algorithm: "lz4"},
		Fan: &plan.Fans{Fan: plan.Fan{Profile: "lab", Governor: "cont"}, Profiles: []plan.FanProfile{
			{Name: "lab", Curve: []plan.FanPoint{{Temp: 30_000}, {Temp: 60_000, Hysteresis: 3000, PWM: 102}, {Temp: 95_000, PWM: 255, RPM: 6000}}},
		}},
		Models: []plan.ModelFile{
			{ID: "pipelines.door.stages.count", URI: "file:///srv/models/count.onnx", SHA256: strings.Repeat("d", 64)},
			{ID: "pipelines.door.stages.read", URI: "https://models.example.com/door/read.onnx", SHA256: strings.Repeat("e", 64)},
			{ID: "pipelines.door.stages.text", URI: "https://models.example.com/door/keys", SHA256: strings.Repeat("f", 64), Name: "keys.txt"},
			{ID: "pipelines.door.stages.find", URI: "https://models.example.com/door-1.0-py3-none-any.whl", SHA256: strings.Repeat("c", 64), Member: "door/find.onnx", Archive: strings.Repeat("b", 64)},
		},
		Files: []plan.CarriedFile{
			{ID: "pipelines.door.source.path", Path: "clips/door.y4m", SHA256: digest("frames\n"), Data: []byte("frames\n")},
			{ID: "pipelines.door.stages.text.labels", Path: "names.txt", SHA256: digest("open\nshut\n"), Data: []byte("open\nshut\n")},
		},
		Origins: plan.Origins{
			"kernel.args.isolcpus": positionAt(20), "kernel.args.nohz_full": positionAt(20), "kernel.args.rcu_nocbs": positionAt(20),
			"kernel.config.HZ": positionAt(22), "kernel.config.TCP_CONG_BBR": positionAt(23), "kernel": positionAt(21),
			"cpu.isolate": positionAt(20), "fan": positionAt(29), "fan.profile": positionAt(29), "memory.zram": positionAt(26), "modules.tcp_bbr": positionAt(27), "modules.nouveau": positionAt(28),
			"power.default": positionAt(12), "power.modes.INFER_20W": positionAt(13), "services.vision.service": positionAt(30),
			"services.nvargus-daemon.service": positionAt(34), "packages.htop": positionAt(36), "packages.nfs-utils": positionAt(37),
			"storage.nvme*": positionAt(38), "storage.mmcblk*.scheduler": positionAt(39), "pipelines.door": positionAt(40),
			"sysctl.vm.swappiness": positionAt(24), "sysctl.net.ipv4.tcp_congestion_control": positionAt(25),
		},
		Overrides: []plan.Override{{ID: "sysctl.vm.swappiness", Profile: "quiet-box", Position: positionAt(5)}},
	}
	first := sysctl("net.ipv4.tcp_congestion_control", plan.TypeString, "bbr|cubic")
	first.Compare = plan.FirstAvailable
	floor := sysctl("vm.min_free_kbytes", plan.TypeInt, "65536")
	floor.Compare = plan.AtLeast
	vlan := sysctl("net.ipv4.conf.eth0/100.rp_filter", plan.TypeInt, "1")
	vlan.Optional = true
	target.Plan = &plan.Plan{
		Monitor: &plan.Monitor{Interval: 1e9, Metrics: true},
		Layer:   "vision", Target: target.Name, Board: target.Board, Machine: target.Machine, Release: "scarthgap", L4T: "36.5.0", Serial: 7,
		Settings: []plan.Setting{first, vlan, floor, sysctl("vm.swappiness", plan.TypeInt, "10"),
			{ID: "memory.thp", Domain: plan.DomainMemory, Select: plan.Select{Path: "/sys/kernel/mm/transparent_hugepage/enabled"},
				Type: plan.TypeChoice, Want: "madvise", Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing},
			device("cpu.governor", "cpufreq", "", "scaling_governor", plan.TypeString, "schedutil"),
			device("irq.affinity.eth*", "irq", "eth*", "smp_affinity_list", plan.TypeCPUList, "0-3"),
			device("network.eth*.mtu", "net", "eth*", "mtu", plan.TypeInt, "9000"),
			device("network.eth*.coalesce.adaptiveRx", "net", "eth*", "ethtool/coalesce/adaptive-rx", plan.TypeBool, "0"),
			device("network.eth*.coalesce.rxUsecs", "net", "eth*", "ethtool/coalesce/rx-usecs", plan.TypeInt, "50"),
			device("storage.mmcblk*.scheduler", "block", "mmcblk*", "queue/scheduler", plan.TypeChoice, "mq-deadline"),
			device("storage.nvme*.readahead", "block", "nvme*", "queue/read_ahead_kb", plan.TypeInt, "4096"),
			device("storage.nvme*.requests", "block", "nvme*", "queue/nr_requests", plan.TypeInt, "256"),
			device("storage.nvme*.rqAffinity", "block", "nvme*", "queue/rq_affinity", plan.TypeInt, "2"),
			device("storage.nvme*.scheduler", "block", "nvme*", "queue/scheduler", plan.TypeChoice, "none")},
		Power: &plan.Power{Table: "extend", Default: "INFER_20W", Modes: []plan.PowerMode{
			{ID: 3, Name: "INFER_20W", From: "25W", Params: stockParams(t, "orin-nano-8gb", "scarthgap", "25W")},
		}},
		Pipelines: map[string]plan.Pipeline{"door": {
			Source: plan.PipelineSource{Kind: "v4l2", Path: "/dev/v4l/by-path/platform-3610000.usb-usb-0:2.1:1.0-video-index0", Format: "mjpeg", Width: 640, Height: 480, FPSNum: 30, FPSDen: 1, Live: true},
			Stages: []plan.PipelineStage{{ID: "count", Kind: "model", Input: "source", Model: &plan.Model{SHA256: strings.Repeat("d", 64)}}}, Sink: plan.PipelineSink{Kind: "ndjson"},
			Queue: plan.PipelineQueue{Capacity: 4, Policy: "drop-oldest"}, CPUs: "4-5", Start: true,
		}},
		Units: []plan.Unit{{Name: "vision.service", Slice: "inference.slice"}},
	}
	sealPlan(t, target.Plan)
	return &plan.Layer{
		Name: "vision", Maintainer: "Platform Team <platform@example.com>",
		Description: "Door cameras: [see README] & more", Priority: 10, Version: 1, Release: "scarthgap",
		Targets: []*plan.Target{target},
		Build: plan.Build{
			Threads: 8, MakeJobs: 8, DownloadThreads: 4, RmWork: true, PressureCPU: 15000,
			HashServe: "auto", HashUpstream: "wss://hash.example.com/ws",
			SStateMirrors: []plan.Mirror{{ID: "office", URL: "https://sstate.example.com/scarthgap"}},
			Premirrors: []plan.Mirror{
				{ID: "first", Pattern: `https?://.*/.*`, URL: "https://dl.example.com/all/"},
				{ID: "second", URL: "file:///srv/downloads/"},
			},
			HashServer: &plan.HashServer{BitBake: "/srv/bitbake", Listen: "ws://:8686", Upstream: "wss://hash.example.com/ws", ReadOnly: true},
			Optional: []plan.Optional{{Collection: "openembedded-layer", Packages: []string{"htop", "nvme-cli"}}, {Collection: "tegra-community",
				Recommended: []plan.Recommended{{Target: "line-camera", Machine: "jetson-orin-nano-devkit", ID: "pipelines.door", Package: "onnxruntime"}}}},
			Kas: &plan.Kas{Image: "core-image-base", Distro: "nodistro", Folder: "layers/vision"},
		},
		Suppressed: []plan.Suppression{{Rule: "tcp-cc-bbr", Reason: "the module is built in | on purpose"}},
		Runtime:    runtime("prebuilt"),
		Origins: plan.Origins{
			"layer.maintainer": positionAt(3), "layer.description": positionAt(4), "build": positionAt(50), "build.parallel": positionAt(51), "runtime": positionAt(60), "suppress": positionAt(70),
		},
	}
}

// Control is a layer for two AGX Orin machines on wrynose: a stock power mode
// from a table that is not verified, the RT kernel, and the runtime built from
// source.
func Control(t testing.TB) *plan.Layer {
	t.Helper()
	l := &plan.Layer{
		Name: "control", Maintainer: "Robotics <robotics@example.com>", Priority: 6, Version: 2,
		Release: "wrynose", Runtime: runtime("source"),
		Origins: plan.Origins{"layer.maintainer": positionAt(3), "runtime": positionAt(8)},
	}
	for _, m := range []struct{ name, machine string }{{"arm", "jetson-agx-orin-devkit"}, {"base", "p3737-0000-p3701-0005"}} {
		target := &plan.Target{
			Name: m.name, Board: "agx-orin-64gb", Machine: m.machine,
			Kernel: plan.Kernel{
				Recipes:  []string{"linux-noble-nvidia-tegra", "linux-noble-nvidia-tegra-rt"},
				Provider: "linux-noble-nvidia-tegra-rt",
				By:       "kernel.preempt",
				Config:   []plan.ConfigOption{{Symbol: "HZ_1000", Value: "y"}},
				Args:     []plan.Arg{{Name: "isolcpus", Value: "8-11"}},
			},
			Origins: plan.Origins{"kernel.preempt": positionAt(12), "kernel.config.HZ_1000": positionAt(13), "kernel.args.isolcpus": positionAt(14),
				"power.default": positionAt(15), "sysctl.kernel.sched_rt_runtime_us": positionAt(16), "services": positionAt(17)},
			Plan: &plan.Plan{
				Monitor: &plan.Monitor{Interval: 1e9, Metrics: true},
				Layer:   "control", Target: m.name, Board: "agx-orin-64gb", Machine: m.machine, Release: "wrynose", L4T: "39.2.0", Serial: 1,
				Settings: []plan.Setting{sysctl("kernel.sched_rt_runtime_us", plan.TypeInt, "-1")},
				Power:    &plan.Power{Table: "stock", Default: "MODE_30W"},
			},
		}
		sealPlan(t, target.Plan)
		l.Targets = append(l.Targets, target)
	}
	l.Targets[0].Services = []plan.Service{{
		Name: "loop.service", Description: "loop", Spans: map[string]string{"RestartSec": "3"}, Exec: []string{"/usr/bin/loop"}, Type: "simple", Scheduling: "rr", Priority: 80,
		CPUs: "8-11", Restart: "always", Enable: true, Hardening: true,
	}, {
		Name: "backup.service", Description: "backup", Exec: []string{"/usr/bin/backup"}, Type: "oneshot", Restart: "no", OwnInstall: true,
		Timer: &plan.Timer{Name: "backup.timer", Description: "Timer of backup.service", Enable: true,
			Fields:   []plan.Directive{{Section: "Timer", Name: "OnCalendar", Value: "Mon..Fri 03:00"}, {Section: "Timer", Name: "OnCalendar", Value: "Sun"}, {Section: "Timer", Name: "Persistent", Value: "yes"}},
			Verbatim: []plan.Directive{{Section: "Unit", Name: "ConditionACPower", Value: "true"}}},
	}, {
		Name:  "fstrim.service", // its timer alone
		Timer: &plan.Timer{Name: "fstrim.timer", DropIn: true, Fields: []plan.Directive{{Section: "Timer", Name: "OnUnitActiveSec", Value: "3600"}}},
	}}
	return l
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func sealPlan(t testing.TB, p *plan.Plan) {
	t.Helper()
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
}

func stockParams(t testing.TB, id, release, mode string) []plan.PowerParam {
	t.Helper()
	b, ok := board.Lookup(id)
	if !ok {
		t.Fatalf("no board %s", id)
	}
	table, _, err := b.StockTable(release)
	if err != nil {
		t.Fatal(err)
	}
	m, ok := table.Mode(mode)
	if !ok {
		t.Fatalf("no mode %s", mode)
	}
	params := make([]plan.PowerParam, len(m.Settings))
	for i, s := range m.Settings {
		params[i] = plan.PowerParam{Param: s[0], Arg: s[1], Value: s[2]}
	}
	return params
}
