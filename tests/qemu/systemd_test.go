package qemu

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	unitfiles "github.com/yoctune/yoctune/emitters/units"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed root.sh
var rootScript string

//go:embed systemd.sh
var systemdScript string

// The files that a layer installs, from its golden tree.
const (
	units      = "../../golden/video-analytics/recipes-yoctune/yoctuned/files"
	scheduling = "../../golden/realtime-control/recipes-yoctune/yoctune-realtime-control-config/files/yoctune-on-jetson-agx-orin-devkit/yoctuned.service.d-40-scheduling.conf"
)

// TestUnitUnderARealSystemd boots the kernel with the systemd of this host's
// Debian as process 1 and the unit of a generated layer, whose plan is signed by
// Debian's minisign.
func TestUnitUnderARealSystemd(t *testing.T) {
	cache := guestKernel(t)
	dir := t.TempDir()
	archive := newSystemdGuest(t, cache, dir, systemdScript)
	// Files of a layer whose plan schedules tasks.
	data, err := os.ReadFile(scheduling)
	if err != nil {
		t.Fatal(err)
	}
	archive.addFile("lib/systemd/system/yoctuned.service.d/40-scheduling.conf", 0o644, data)
	archive.addSymlink("etc/systemd/system/multi-user.target.wants/vision.service", "/etc/systemd/system/vision.service")
	archive.addSymlink("etc/systemd/system/multi-user.target.wants/uplink.service", "/etc/systemd/system/uplink.service")
	for name, text := range map[string]string{
		// Unit files from before the plan: they have none of its properties.
		"etc/systemd/system/vision.service": "[Unit]\nBefore=yoctuned.service\n[Service]\nType=exec\nSlice=inference.slice\nExecStart=/bin/sleep 100000\n",
		// The unit of a layer starts after yoctuned, and its file has the properties.
		"etc/systemd/system/uplink.service": "[Unit]\nAfter=yoctuned.service\n[Service]\nType=exec\nMemoryMax=33554432\nNice=-5\nExecStart=/bin/sleep 100000\n",
		// Started by hand, and its file lacks them.
		"etc/systemd/system/late.service":                  "[Service]\nType=exec\nSlice=late.slice\nExecStart=/bin/sleep 100000\n",
		"etc/systemd/system/yoctuned.service.d/quick.conf": "[Service]\nWatchdogSec=20\nStandardOutput=append:/log\nStandardError=append:/log\n",
	} {
		archive.addFile(name, 0o644, []byte(text))
	}
	for name, data := range signedPlan(t, dir) {
		archive.addFile(name, 0o644, data)
	}
	console := archive.boot(t, cache, "systemd.unit=multi-user.target systemd.show_status=0")
	report(t, console, 60)
}

// newSystemdGuest returns a guest with the systemd of this host's Debian as process 1, the units of a
// generated layer, and a script that runs as a service after yoctuned.
func newSystemdGuest(t *testing.T, cache, dir, script string) *cpio {
	t.Helper()
	archive := newGuest(t, cache, []byte(rootScript+script))
	for _, tool := range []string{"ls", "stat", "cp", "switch_root", "umount", "cut", "sleep", "nsenter"} {
		archive.addSymlink("bin/"+tool, "busybox")
	}
	for name, host := range buildBinary(t, dir) {
		archive.addHostFile(strings.Replace(name, "bin/", "usr/bin/", 1), host)
	}
	archive.addDebianSystemd(t)
	for _, unit := range []string{"yoctuned.service", "yoctuned-pipeline@.service"} {
		data, err := os.ReadFile(filepath.Join(units, unit))
		if err != nil {
			t.Fatal(err)
		}
		archive.addFile("lib/systemd/system/"+unit, 0o644, data)
	}
	archive.addSymlink("etc/systemd/system/multi-user.target.wants/yoctuned.service", "/lib/systemd/system/yoctuned.service")
	archive.addSymlink("etc/systemd/system/timers.target.wants/report.timer", "/lib/systemd/system/report.timer")
	archive.addSymlink("etc/systemd/system/multi-user.target.wants/check.service", "/etc/systemd/system/check.service")
	for name, text := range map[string]string{
		"etc/systemd/system/check.service": "[Unit]\nAfter=yoctuned.service\n[Service]\nType=oneshot\nExecStart=/init\nStandardOutput=tty\nStandardError=tty\nTTYPath=/dev/ttyS0\nTimeoutStartSec=infinity\n",
		"etc/passwd":                       "root:x:0:0::/root:/bin/sh\nyoctune:x:900:900::/:/bin/false\nnobody:x:65534:65534::/:/bin/false\n",
		"etc/group":                        "root:x:0:\ntty:x:5:\nkvm:x:6:\nsystemd-journal:x:7:\nyoctune:x:900:\nvideo:x:44:\nnogroup:x:65534:\n",
		"etc/machine-id":                   "0123456789abcdef0123456789abcdef\n",
		"etc/os-release":                   "ID=guest\n",
	} {
		archive.addFile(name, 0o644, []byte(text))
	}
	return archive
}

// rampPipeline returns a pipeline without a model or a camera.
func rampPipeline(counters bool) plan.Pipeline {
	return plan.Pipeline{
		Source: plan.PipelineSource{Kind: "synthetic", Format: "nv12", Width: 32, Height: 16, FPSNum: 20, FPSDen: 1, Live: true},
		Stages: []plan.PipelineStage{
			{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 4, Height: 1}},
			{ID: "dump", Kind: "postprocess", Input: "pre", Post: &plan.Post{Kind: "raw"}},
		},
		Counters: counters,
	}
}

// reportService is a service with a timer, as a layer installs both.
func reportService() plan.Service {
	timer := plan.Directive{Section: "Timer", Name: "OnCalendar", Value: "Mon..Fri 08:00"}
	accuracy := plan.Directive{Section: "Timer", Name: "AccuracySec", Value: "1"}
	return plan.Service{Name: "report.service", Exec: []string{"/bin/true"}, Type: "oneshot", Restart: "no", OwnInstall: true,
		Timer: &plan.Timer{Name: "report.timer", Description: "Timer of report.service", Enable: true, Fields: []plan.Directive{timer, accuracy}}}
}

// unitFiles returns the drop-ins that a layer installs for the pipelines of p, and the units of a service with a
// timer.
func unitFiles(t *testing.T, p *plan.Plan) map[string][]byte {
	t.Helper()
	made, err := unitfiles.Emit(&plan.Layer{Name: p.Layer, Runtime: plan.Runtime{Form: plan.RuntimePrebuilt}, Targets: []*plan.Target{{Name: p.Target, Plan: p, Services: []plan.Service{reportService()}}}})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range made {
		for _, unit := range []string{"/yoctuned-pipeline@", "/report."} {
			if at := strings.Index(f.Install.Dest, unit); at >= 0 {
				files["lib/systemd/system"+f.Install.Dest[at:]] = f.Data
			}
		}
	}
	return files
}

// signedPlan returns the installed plan, its signature by Debian's minisign, the key,
// and "expect", the paths and values that systemd.sh compares with.
func signedPlan(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	knob := func(path, typ, want string) plan.Setting {
		return plan.Setting{
			ID: path, Domain: plan.DomainKnob, Type: typ, Want: want, Select: plan.Select{Path: path},
			Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
		}
	}
	// One path of every kind that a plan writes: the sandbox must permit them all.
	p := &plan.Plan{Layer: "qemu", Target: "systemd", Board: "generic", Serial: 4, Settings: []plan.Setting{
		knob("/proc/sys/vm/swappiness", plan.TypeInt, "10"),
		knob("/proc/sys/vm/dirty_bytes", plan.TypeInt, "67108864"),
		knob("/proc/sys/kernel/sched_rt_runtime_us", plan.TypeInt, "940000"),
		knob("/proc/sys/kernel/perf_event_paranoid", plan.TypeInt, "2"),
		knob("/proc/sys/net/core/somaxconn", plan.TypeInt, "8192"),
		knob("/proc/sys/net/ipv4/tcp_rmem", plan.TypeVector, "4096 262144 8388608"),
		knob("/proc/sys/fs/inotify/max_user_instances", plan.TypeInt, "257"),
		knob("/sys/block/vda/queue/scheduler", plan.TypeChoice, "kyber"),
		knob("/sys/block/vda/queue/read_ahead_kb", plan.TypeInt, "512"),
		knob("/sys/kernel/mm/transparent_hugepage/enabled", plan.TypeChoice, "madvise"),
		knob("/sys/kernel/mm/ksm/pages_to_scan", plan.TypeInt, "150"),
		knob("/sys/module/kernel/parameters/panic_on_warn", plan.TypeInt, "0"),
		knob("/proc/irq/default_smp_affinity", plan.TypeCPUMask, "1"),
	}, Pipelines: map[string]plan.Pipeline{"counted": rampPipeline(true), "plain": rampPipeline(false)}, Units: []plan.Unit{
		{Name: "inference.slice", CPUs: "1"},
		{Name: "vision.service", Slice: "inference.slice", CPUWeight: 200, MemoryMax: 64 << 20, CPUQuota: 150, Scheduling: "rr", Priority: 10},
		{Name: "uplink.service", MemoryMax: 32 << 20, Nice: new(-5)},
		{Name: "late.service", Slice: "late.slice", MemoryMax: 32 << 20, Nice: new(-5)},
		{Name: "report.timer", Properties: reportService().Timer.Properties()},
	}}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	minisign := findTool(t, "minisign")
	file, pub, sec := filepath.Join(dir, "plan.json"), filepath.Join(dir, "fleet.pub"), filepath.Join(dir, "fleet.key")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-G", "-W", "-p", pub, "-s", sec}, {"-S", "-s", sec, "-m", file}} {
		if out, err := exec.Command(minisign, args...).CombinedOutput(); err != nil {
			t.Fatalf("minisign %s: %v\n%s", args[0], err, out)
		}
	}
	files := unitFiles(t, p)
	for name, host := range map[string]string{
		"usr/lib/yoctune/plan.json": file, "usr/lib/yoctune/plan.json.minisig": file + ".minisig", "etc/yoctune/keys/fleet.pub": pub,
	} {
		if files[name], err = os.ReadFile(host); err != nil {
			t.Fatal(err)
		}
	}
	var expect strings.Builder
	for _, s := range p.Settings {
		expect.WriteString(s.Select.Path + " " + s.Want + "\n")
	}
	files["expect"] = []byte(expect.String())
	return files
}

// addDebianSystemd adds the files of this host's systemd package, and the libraries
// that its programs load.
func (c *cpio) addDebianSystemd(t *testing.T) {
	t.Helper()
	out, err := exec.Command("dpkg", "-L", "systemd").Output()
	if err != nil {
		t.Fatalf("list systemd's files: %v; `make setup` installs it", err)
	}
	// Files that the guest does not need.
	skip := []string{"/man/", "/doc/", "/locale/", "/bash-completion/", "/zsh/", "/catalog/", "/system-generators/", "/user/", "getty", "networkd", "timesync", "remount-fs", "/lib/modprobe.d"}
	added := map[string]bool{}
	var programs []string
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if slices.ContainsFunc(skip, func(s string) bool { return strings.Contains(name, s) }) {
			continue
		}
		st, err := os.Lstat(name)
		switch {
		case err != nil, st.IsDir(), !strings.Contains(name[1:], "/"):
		case st.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(name)
			if err != nil {
				t.Fatal(err)
			}
			c.addSymlink(strings.TrimPrefix(name, "/"), target)
		default:
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			c.addFile(strings.TrimPrefix(name, "/"), uint32(st.Mode().Perm()), data)
			if strings.HasPrefix(string(data), "\x7fELF") {
				programs = append(programs, name)
			}
		}
	}
	for _, p := range append(programs, "/bin/kmod") {
		for _, l := range libraries(p) {
			if !added[l] {
				added[l] = true
				c.addHostFile(strings.TrimPrefix(l, "/"), l)
			}
		}
	}
}
