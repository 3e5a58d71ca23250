package enforce_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/journal"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/knob"
	"github.com/yoctune/yoctune/schema/plan"
)

// readHostNode reads a node without the code under test.
func readHostNode(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// hostKernel returns the running system, if this test may change it.
func hostKernel(t *testing.T) *rootfs.Root {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: the kernel of this machine cannot be changed")
	}
	f, err := os.OpenFile("/proc/sys/vm/swappiness", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("/proc/sys is not writable here: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	devicetest.LockMachine(t)
	dev, err := rootfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := dev.Lock("go test")
	if err != nil {
		t.Skipf("this machine is being tuned: %v", err)
	}
	t.Cleanup(unlock)
	if _, err := dev.ReadState(journal.File); err == nil {
		t.Skipf("this machine is tuned: %s exists", journal.File)
	}
	return dev
}

// idleDisk returns a block device with a choice of schedulers, an unused loop device if
// possible.
func idleDisk(t *testing.T) (name string, schedulers []string) {
	t.Helper()
	names, err := filepath.Glob("/sys/block/*/queue/scheduler")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(names, func(a, b string) int {
		loop := func(s string) int {
			if strings.HasPrefix(s, "/sys/block/loop") {
				return 0
			}
			return 1
		}
		return loop(a) - loop(b)
	})
	for _, n := range names {
		f, err := knob.Parse(plan.TypeChoice, readHostNode(t, n))
		if err == nil && len(f.Offered) > 1 {
			return filepath.Base(strings.TrimSuffix(n, "/queue/scheduler")), f.Offered
		}
	}
	return "", nil
}

// The test changes and restores some harmless settings of this machine, to compare with a real
// kernel.
func TestApplyAndRollbackOnThisKernel(t *testing.T) {
	dev := hostKernel(t)
	settings := []plan.Setting{
		sysctl("vm.swappiness", otherValue(t, "/proc/sys/vm/swappiness", "11", "12")),
		sysctl("vm.vfs_cache_pressure", otherValue(t, "/proc/sys/vm/vfs_cache_pressure", "111", "112")),
		sysctl("vm.dirty_bytes", "268435456"),
		sysctl("vm.dirty_background_bytes", "67108864"),
	}
	if disk, schedulers := idleDisk(t); disk != "" {
		dir := "/sys/block/" + disk + "/queue/"
		now, err := knob.Parse(plan.TypeChoice, readHostNode(t, dir+"scheduler"))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(schedulers, func(s string) bool { return s != now.Value })
		settings = append(settings,
			block(disk, "scheduler", plan.TypeChoice, schedulers[i]),
			block(disk, "read_ahead_kb", plan.TypeInt, otherValue(t, dir+"read_ahead_kb", "256", "512")))
		t.Logf("with block device %s", disk)
	} else {
		t.Log("without a block device: none here has a choice of schedulers")
	}
	p := planOf(settings...)

	nodes := []string{"/proc/sys/vm/dirty_ratio", "/proc/sys/vm/dirty_background_ratio"}
	for _, r := range enforce.Verify(dev, p, options()) {
		nodes = append(nodes, r.Path)
	}
	if i := slices.IndexFunc(nodes, func(n string) bool { return strings.HasSuffix(n, "/scheduler") }); i >= 0 {
		nodes = append(nodes, filepath.Dir(nodes[i])+"/nr_requests")
	}
	before := map[string]string{}
	for _, n := range nodes {
		before[n] = readHostNode(t, n)
	}
	t.Cleanup(func() {
		if _, err := enforce.Rollback(dev, options()); err != nil {
			t.Error(err)
		}
	})

	for _, r := range apply(t, dev, p) {
		if r.Outcome != outcome.OK {
			t.Errorf("%s: %s: %s", r.Path, r.Outcome, r.Message)
		}
		if value := readHostNode(t, r.Path); value != r.Wanted && !strings.Contains(value, "["+r.Wanted+"]") {
			t.Errorf("%s is %q, wanted %q", r.Path, value, r.Wanted)
		}
	}
	if err := os.WriteFile("/proc/sys/vm/swappiness", []byte("33"), 0); err != nil {
		t.Fatal(err)
	}
	if r := findResult(t, enforce.Verify(dev, p, options()), "sysctl.vm.swappiness"); r.Outcome != outcome.Differs || r.Found != "33" {
		t.Errorf("drift: %+v", r)
	}
	apply(t, dev, p)
	if r := findResult(t, enforce.Verify(dev, p, options()), "sysctl.vm.swappiness"); r.Outcome != outcome.OK {
		t.Errorf("repair: %+v", r)
	}
	results, err := enforce.Rollback(dev, options())
	if err != nil || !enforce.Satisfied(results) {
		t.Errorf("rollback: %v %+v", err, results)
	}
	for n, was := range before {
		if is := readHostNode(t, n); is != was {
			t.Errorf("%s is %q, was %q", n, is, was)
		}
	}
}

// otherValue returns a value that the node does not have now.
func otherValue(t *testing.T, name, a, b string) string {
	t.Helper()
	if readHostNode(t, name) == a {
		return b
	}
	return a
}

func TestRefusalByThisKernelFailsOneSetting(t *testing.T) {
	dev := hostKernel(t)
	const pressure = "/proc/sys/vm/vfs_cache_pressure"
	before := readHostNode(t, pressure)
	n, err := strconv.Atoi(before)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := enforce.Rollback(dev, options()); err != nil {
			t.Error(err)
		}
		if is := readHostNode(t, pressure); is != before {
			t.Errorf("%s is %s, was %s", pressure, is, before)
		}
	})
	results := apply(t, dev, planOf(
		sysctl("vm.swappiness", "9999"),
		sysctl("kernel.no_such_thing", "1"),
		sysctl("vm.drop_caches", "3"),
		sysctl("vm.vfs_cache_pressure", strconv.Itoa(n+1))))
	for id, want := range map[string]outcome.Outcome{
		"sysctl.vm.swappiness":         outcome.Refused,
		"sysctl.kernel.no_such_thing":  outcome.Unsupported,
		"sysctl.vm.drop_caches":        outcome.Forbidden,
		"sysctl.vm.vfs_cache_pressure": outcome.OK,
	} {
		if r := findResult(t, results, id); r.Outcome != want {
			t.Errorf("%s: %s: %s; want %s", id, r.Outcome, r.Message, want)
		}
	}
}

// The test changes and restores two threads of this kernel, which do next to nothing on an idle
// machine, and compares with chrt(1), taskset(1) and ps(1).
func TestKernelThreadsOfThisKernel(t *testing.T) {
	dev := hostKernel(t)
	pid := map[string]string{}
	nodes, err := rootfs.Nodes(dev, rootfs.ClassKThread)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		pid[n.Name] = strings.Split(n.Path, "/")[2]
	}
	if pid["kswapd0"] == "" || pid["kcompactd0"] == "" {
		t.Skip("this kernel has no kswapd0 and kcompactd0")
	}
	if _, found := pid["systemd"]; found || pid["kthreadd"] != "2" {
		t.Errorf("not the kernel's threads: %v", pid)
	}
	thread := func(name, attr, kind, want string) plan.Setting {
		return plan.Setting{ID: "threads." + name + "." + attr, Domain: plan.DomainThread, Type: kind, Want: want, Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
			Select: plan.Select{Class: rootfs.ClassKThread, Name: name, Attr: attr}}
	}
	run := func(program string, args ...string) string {
		out, err := exec.Command(program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v: %s", program, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	look := func() string {
		return run("chrt", "-p", pid["kcompactd0"]) + "; " + run("taskset", "-pc", pid["kcompactd0"]) + "; nice " + run("ps", "-o", "ni=", "-p", pid["kswapd0"])
	}
	before := look()
	p := planOf(
		thread("kcompactd0", "scheduling", plan.TypeString, "fifo 3"),
		thread("kcompactd*", "affinity", plan.TypeCPUList, "0"),
		thread("kswapd0", "nice", plan.TypeInt, "7"),
		thread("ksoftirqd/*", "affinity", plan.TypeCPUList, "0"), // bound: refused
		thread("no_such_thread/*", "nice", plan.TypeInt, "1"))
	t.Cleanup(func() {
		if _, err := enforce.Rollback(dev, options()); err != nil {
			t.Error(err)
		}
		if is := look(); is != before {
			t.Errorf("after the rollback: %s, was %s", is, before)
		}
	})
	results := apply(t, dev, p)
	for id, want := range map[string]outcome.Outcome{
		"threads.kcompactd0.scheduling": outcome.OK, "threads.kcompactd*.affinity": outcome.OK, "threads.kswapd0.nice": outcome.OK,
		"threads.no_such_thread/*.nice": outcome.Unsupported,
	} {
		if r := findResult(t, results, id); r.Outcome != want {
			t.Errorf("%s: %s: %s", id, r.Outcome, r.Message)
		}
	}
	if !slices.ContainsFunc(results, func(r enforce.Result) bool {
		return r.ID == "threads.ksoftirqd/*.affinity" && r.Outcome == outcome.Refused
	}) {
		t.Errorf("ksoftirqd was moved: %+v", results)
	}
	is := look()
	for _, want := range []string{"SCHED_FIFO", "priority: 3", "affinity list: 0;", "nice   7"} {
		if !strings.Contains(strings.Join(strings.Fields(is), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("%s lacks %q", is, want)
		}
	}
	run("chrt", "-o", "-p", "0", pid["kcompactd0"])
	if r := findResult(t, enforce.Verify(dev, p, options()), "threads.kcompactd0.scheduling"); r.Outcome != outcome.Differs || r.Found != "other" {
		t.Errorf("drift: %+v", r)
	}
	apply(t, dev, p)
	if is := run("chrt", "-p", pid["kcompactd0"]); !strings.Contains(is, "SCHED_FIFO") {
		t.Errorf("not repaired: %s", is)
	}
	// An original value is never written to another thread under the same number.
	wrong := "/proc/" + pid["kswapd0"] + "/kthread/kcompactd0/nice"
	if err := dev.Write(wrong, "1"); err == nil {
		t.Errorf("%s was written", wrong)
	}
}
