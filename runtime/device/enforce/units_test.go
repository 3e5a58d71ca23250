package enforce_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/schema/plan"
)

// process creates a process in a tree. Its stat has the kernel's format, with a command that looks
// like fields.
func process(t *testing.T, dir string, pid, policy, priority, nice int, cpus string) {
	t.Helper()
	stat := fmt.Sprintf("%d (a) b) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 %d 1 0 100 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 %d %d 0 0 0\n", pid, nice, priority, policy)
	place(t, dir, fmt.Sprintf("/proc/%d/stat", pid), stat)
	place(t, dir, fmt.Sprintf("/proc/%d/status", pid), "Name:\tvision\nCpus_allowed:\tff\nCpus_allowed_list:\t"+cpus+"\nMems_allowed:\t1\n")
}

func place(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
		t.Fatal(err)
	}
	writeText(t, dir, name, text)
}

func TestUnitStateComesFromItsTasks(t *testing.T) {
	dev, dir := newBoard(t)
	const slice = "/sys/fs/cgroup/inference.slice/inference-fast.slice"
	place(t, dir, "/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n")
	place(t, dir, slice+"/cpuset.cpus.effective", "4-5\n")
	place(t, dir, slice+"/cpuset.cpus.partition", "isolated invalid (Cpu list in cpuset.cpus not exclusive)\n")
	place(t, dir, slice+"/vision.service/cgroup.procs", "812\n813\n99999\n")
	place(t, dir, slice+"/vision.service/io.weight", "default 100\n8:0 50\n")
	process(t, dir, 812, 1, 50, 0, "4-5")
	process(t, dir, 813, 0, 0, 0, "0-5")

	p := planOf()
	p.Units = []plan.Unit{
		{Name: "vision.service", Slice: "inference-fast.slice", CPUs: "4,5", Scheduling: "fifo", Priority: 50, IOWeight: 500},
		{Name: "inference-fast.slice", CPUs: "4-5", CPUPartition: "isolated"},
		{Name: "gone.service"},
		{Name: "../../etc/passwd"},
	}
	results := enforce.Verify(dev, p, options())
	vision := findResult(t, results, "services.vision.service")
	for _, part := range []string{"io weight is 100, wanted 500", "1 of 2 processes run as other, wanted fifo 50 (pid 813)", "1 of 2 processes may use cpus 0-5, wanted 4,5 (pid 813)", "systemctl restart vision.service"} {
		if !strings.Contains(vision.Message, part) {
			t.Errorf("%q is not in %q", part, vision.Message)
		}
	}
	if vision.Outcome != outcome.Differs || vision.Satisfied() {
		t.Errorf("%+v", vision)
	}
	if r := findResult(t, results, "services.inference-fast.slice"); r.Outcome != outcome.Differs || !strings.Contains(r.Message, "isolated invalid (Cpu list") || strings.Contains(r.Message, "cpus is") {
		t.Errorf("%+v", r)
	}
	if r := findResult(t, results, "services.gone.service"); r.Outcome != outcome.Pending || !r.Satisfied() || !strings.Contains(r.Message, "is not running in system.slice/gone.service") {
		t.Errorf("%+v", r)
	}
	if r := findResult(t, results, "services.../../etc/passwd"); r.Outcome != outcome.Forbidden {
		t.Errorf("%+v", r)
	}

	process(t, dir, 813, 1, 50, 0, "4-5")
	writeText(t, dir, slice+"/vision.service/io.weight", "default 500\n")
	writeText(t, dir, slice+"/cpuset.cpus.partition", "isolated\n")
	for _, id := range []string{"services.vision.service", "services.inference-fast.slice"} {
		if r := findResult(t, enforce.Verify(dev, p, options()), id); r.Outcome != outcome.OK || r.Found != r.Wanted {
			t.Errorf("%+v", r)
		}
	}
}

func TestUnitNeedsUnifiedCgroups(t *testing.T) {
	dev, dir := newBoard(t)
	if err := os.Remove(filepath.Join(dir, "/sys/fs/cgroup/cgroup.controllers")); err != nil {
		t.Fatal(err)
	}
	p := planOf()
	p.Units = []plan.Unit{{Name: "vision.service", CPUs: "4"}}
	if r := findResult(t, enforce.Verify(dev, p, options()), "services.vision.service"); r.Outcome != outcome.Unsupported || !strings.Contains(r.Message, "cgroup hierarchy (v2)") {
		t.Errorf("%+v", r)
	}
}

// verify compares what systemd shows; the plan's lines are among those of a list.
func TestUnitPropertiesAreVerified(t *testing.T) {
	dev, dir := newBoard(t)
	const unit = "/sys/fs/cgroup/system.slice/vision.service"
	place(t, dir, "/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n")
	place(t, dir, unit+"/cgroup.procs", "")
	service := plan.Service{
		Name: "vision.service", Exec: []string{"/usr/bin/vision"}, User: "vision", Restart: "always", After: []string{"a.service", "b.target"},
		Spans:        map[string]string{"RestartSec": "2", "WatchdogSec": "1500ms", "TimeoutStopSec": "infinity", "TimeoutStartSec": "0"},
		Capabilities: map[string][]string{"AmbientCapabilities": {"CAP_SYS_NICE", "CAP_IPC_LOCK"}, "CapabilityBoundingSet": {}},
		OOMScore:     new(int), MemoryLock: true, Environment: map[string]string{"A": "x y"}, EnvironmentFiles: []string{"-/etc/default/vision"},
	}
	p := planOf()
	p.Units = []plan.Unit{{Name: "vision.service", Properties: service.Properties()}}
	shown := map[string]string{
		"FragmentPath": "/usr/lib/systemd/system/vision.service", "User": "vision", "Restart": "always", "After": "sysinit.target\nb.target\na.service",
		"RestartUSec": "2000000", "WatchdogUSec": "1500000", "TimeoutStopUSec": "infinity", "TimeoutStartUSec": "infinity",
		"AmbientCapabilities": "CAP_IPC_LOCK\nCAP_SYS_NICE", "CapabilityBoundingSet": "", "OOMScoreAdjust": "0", "LimitMEMLOCK": "infinity",
		"Environment": "B=1\nA=x y", "EnvironmentFiles": "-/etc/default/vision", "NeedDaemonReload": "no",
	}
	for name := range service.Properties() {
		if _, ok := shown[name]; !ok {
			t.Errorf("%s is not among what systemd shows", name)
		}
	}
	for name, value := range shown {
		place(t, dir, unit+"/systemd/"+name, value+"\n")
	}
	if r := findResult(t, enforce.Verify(dev, p, options()), "services.vision.service"); r.Outcome != outcome.OK || r.Found != r.Wanted {
		t.Errorf("%+v", r)
	}
	for name, wrong := range map[string]string{
		"FragmentPath": "/etc/systemd/system/vision.service", "Restart": "no", "RestartUSec": "100000", "After": "a.service", "NeedDaemonReload": "yes",
		"CapabilityBoundingSet": "CAP_SYS_NICE", "Environment": "A=x", "EnvironmentFiles": "",
	} {
		writeText(t, dir, unit+"/systemd/"+name, wrong+"\n")
		r := findResult(t, enforce.Verify(dev, p, options()), "services.vision.service")
		if name == "NeedDaemonReload" {
			name = "systemctl daemon-reload"
		}
		if r.Outcome != outcome.Differs || !strings.Contains(r.Message, name) {
			t.Errorf("%s: %+v", name, r)
		}
		for name, value := range shown {
			writeText(t, dir, unit+"/systemd/"+name, value+"\n")
		}
	}
}

// An instance of a template runs in the slice of the template.
func TestInstanceIsFoundInTheSliceOfItsTemplate(t *testing.T) {
	dev, dir := newBoard(t)
	place(t, dir, "/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n")
	place(t, dir, `/sys/fs/cgroup/system.slice/system-serial\x2dgetty.slice/serial-getty@ttyTCU0.service/cgroup.procs`, "7\n")
	process(t, dir, 7, 0, 0, 5, "0-5")
	nice := 5
	p := planOf()
	p.Units = []plan.Unit{{Name: "serial-getty@ttyTCU0.service", Nice: &nice}}
	if r := findResult(t, enforce.Verify(dev, p, options()), "services.serial-getty@ttyTCU0.service"); r.Outcome != outcome.OK {
		t.Errorf("%+v", r)
	}
}
