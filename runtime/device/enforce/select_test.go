package enforce_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/enforce"
	"github.com/yoctune/yoctune/runtime/device/outcome"
	"github.com/yoctune/yoctune/schema/plan"
	"golang.org/x/sys/unix"
)

func selected(class, name, attr, typ, want string) plan.Setting {
	return plan.Setting{
		ID: class + "." + attr, Domain: plan.DomainCPU, Type: typ, Want: want,
		Select:  plan.Select{Class: class, Name: name, Attr: attr},
		Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
	}
}

func TestOfflineCoreWaits(t *testing.T) {
	dev, dir := boardOf(t, "agx-xavier") // its default mode has four of eight cores
	const attr = "power/pm_qos_resume_latency_us"
	p := planOf(selected("cpu", "cpu*", attr, plan.TypeInt, "20"))
	results := apply(t, dev, p)
	if !enforce.Satisfied(results) || len(results) != 8 {
		t.Errorf("%d results: %+v", len(results), results)
	}
	if r := results[6]; r.Outcome != outcome.Pending || !strings.Contains(r.Message, "cpu6 is offline") {
		t.Errorf("%+v", r)
	}
	for n, want := range map[string]string{"0": "20", "3": "20", "6": "0"} {
		if got := readNode(t, dir, "/sys/devices/system/cpu/cpu"+n+"/"+attr); got != want {
			t.Errorf("cpu%s: %s, want %s", n, got, want)
		}
	}
	s, err := enforce.Open(dev, p, options())
	if err != nil {
		t.Fatal(err)
	}
	writeText(t, dir, "/sys/devices/system/cpu/cpu6/online", "1\n")
	appeared := s.Rescan()
	if len(appeared) != 1 || !strings.Contains(appeared[0], "/cpu6/") {
		t.Errorf("came online: %v", appeared)
	}
	if fixed, err := s.Repair(appeared); err != nil || fixed[appeared[0]].Outcome != outcome.OK {
		t.Errorf("%v %+v", err, fixed)
	}
}

func TestPatternSelectsEveryQueue(t *testing.T) {
	dev, dir := newBoard(t)
	queue := filepath.Join(dir, "/sys/class/net/eth0/queues")
	for _, n := range []string{"rx-1", "rx-2"} {
		if err := os.MkdirAll(filepath.Join(queue, n), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(queue, n, "rps_cpus"), []byte("00\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	results := apply(t, dev, planOf(selected("net", "eth*", "queues/rx-*/rps_cpus", plan.TypeCPUMask, "0f")))
	if len(results) != 3 || !enforce.Satisfied(results) {
		t.Errorf("%+v", results)
	}
	if got := readNode(t, dir, "/sys/class/net/eth0/queues/rx-2/rps_cpus"); got != "0f" {
		t.Error(got)
	}
	r := apply(t, dev, planOf(selected("net", "lo", "queues/rx-*/rps_cpus", plan.TypeCPUMask, "0f")))[0]
	if r.Outcome != outcome.Unsupported || !strings.Contains(r.Message, "lo has no queues/rx-*/rps_cpus") {
		t.Errorf("%+v", r)
	}
}

func TestPatternStaysInsideItsDevice(t *testing.T) {
	dev, _ := newBoard(t)
	for _, attr := range []string{"../*/mtu", "queues/../../../../kernel/*", "*/../../lo/mtu"} {
		for _, r := range apply(t, dev, planOf(selected("net", "eth0", attr, plan.TypeInt, "1"))) {
			if r.Outcome == outcome.OK || r.Outcome == outcome.Adjusted {
				t.Errorf("%s: %+v", attr, r)
			}
		}
	}
}

func TestDriverSettingsAreFilesOfATree(t *testing.T) {
	dev, dir := newBoard(t)
	const node = "/sys/class/net/eth0/ethtool/ring/rx"
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, node)), 0o755); err != nil {
		t.Fatal(err)
	}
	writeText(t, dir, node, "256\n")
	results := apply(t, dev, planOf(selected("net", "eth0", "ethtool/ring/rx", plan.TypeInt, "1024"), selected("net", "eth0", "ethtool/channels/combined", plan.TypeInt, "4")))
	if r := results[0]; r.Outcome != outcome.OK || readNode(t, dir, node) != "1024" {
		t.Errorf("%+v", r)
	}
	if r := results[1]; r.Outcome != outcome.Unsupported || !strings.Contains(r.Message, "eth0 ethtool/channels/combined") {
		t.Errorf("%+v", r)
	}
}

func TestHugePagesAreRetriedAfterCompaction(t *testing.T) {
	dev, _ := newBoard(t)
	got := []string{"100", "400", "512"}
	compacted := 0
	dev.Quirk = func(name, value string) string {
		switch filepath.Base(name) {
		case "compact_memory":
			compacted++
		case "nr_hugepages":
			value = got[0]
			got = append(got[1:], got[len(got)-1])
		}
		return value
	}
	r := findResult(t, apply(t, dev, planOf(sysctl("vm.nr_hugepages", "512"))), "sysctl.vm.nr_hugepages")
	if r.Outcome != outcome.OK || compacted != 2 {
		t.Errorf("%+v after %d compactions", r, compacted)
	}
}

// More huge pages than there is memory for end other processes: a reserve is kept.
func TestHugePagesLeaveAReserve(t *testing.T) {
	for name, c := range map[string]struct {
		node, want, written string
		outcome             outcome.Outcome
		message             string
	}{
		"all of the memory":  {"/proc/sys/vm/nr_hugepages", "1000000", "2790", outcome.Partial, "vm.nr_hugepages: 2790 of 1000000 pages of 2MiB: 476 MiB of the memory is left to others; reserve more at boot with hugepages=, or fewer here"},
		"pages of a size":    {"/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "7", "5", outcome.Partial, "5 of 7 pages of 1GiB: 476 MiB of the memory is left to others"},
		"less than the rest": {"/proc/sys/vm/nr_hugepages", "1000", "1000", outcome.OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dev, dir := newBoard(t)
			p := planOf(copyWith(sysctl("x", c.want), func(s *plan.Setting) { s.Select.Path = c.node }))
			for _, results := range [][]enforce.Result{apply(t, dev, p), enforce.Verify(dev, p, options())} {
				if r := results[0]; r.Outcome != c.outcome || !strings.Contains(r.Message, c.message) || c.message == "" && r.Message != "" {
					t.Errorf("%+v", r)
				}
			}
			if got := readState(t, dir)[c.node]; got != c.written {
				t.Errorf("%s pages, want %s", got, c.written)
			}
		})
	}
	t.Run("no memory left", func(t *testing.T) {
		dev, dir := newBoard(t)
		if err := os.WriteFile(filepath.Join(dir, "proc/meminfo"), []byte("MemTotal: 7802352 kB\nMemAvailable: 300000 kB\nHugepagesize: 2048 kB\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if r := apply(t, dev, planOf(sysctl("vm.nr_hugepages", "512")))[0]; r.Outcome != outcome.Partial || len(dev.Writes) > 0 {
			t.Errorf("%+v, wrote %q", r, dev.Writes)
		}
	})
}

func TestMinAndMaxAreWrittenInValidOrder(t *testing.T) {
	for _, c := range []struct{ low, high, first string }{
		{"1728000", "1728000", "scaling_max_freq"}, // up: the maximum first
		{"115200", "499200", "scaling_min_freq"},   // down: the minimum first
		{"800000", "1000000", "scaling_max_freq"},  // both orders are legal
	} {
		for _, swapped := range []bool{false, true} {
			dev, _ := newBoard(t) // 729600 to 1344000
			settings := []plan.Setting{selected("cpufreq", "policy0", "scaling_min_freq", plan.TypeInt, c.low), selected("cpufreq", "policy0", "scaling_max_freq", plan.TypeInt, c.high)}
			if swapped {
				settings[0], settings[1] = settings[1], settings[0]
			}
			if results := apply(t, dev, planOf(settings...)); !enforce.Satisfied(results) {
				t.Errorf("%+v", results)
			}
			if len(dev.Writes) != 2 || !strings.Contains(dev.Writes[0], c.first) {
				t.Errorf("%s–%s: %v, want %s first", c.low, c.high, dev.Writes, c.first)
			}
		}
	}
}

// The values are in the kernel's format, but the nodes are plain files, so that the kernel's
// behaviour on writes is not tested.
func TestBoardSpecificSettingsAreAppliedAndRestored(t *testing.T) {
	for _, c := range []struct{ path, before, typ, want, after string }{
		{"/sys/devices/system/cpu/cpufreq/boost", "1", plan.TypeBool, "0", "0"},
		{"/sys/devices/system/cpu/smt/control", "on", plan.TypeString, "off", "off"},
		{"/sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference", "balance_performance", plan.TypeString, "performance", "performance"},
		{"/sys/devices/virtual/workqueue/cpumask", "3f", plan.TypeCPUMask, "03", "03"},
		{"/sys/kernel/mm/lru_gen/enabled", "0x0000", plan.TypeInt, "7", "7"},
		{"/sys/kernel/mm/lru_gen/min_ttl_ms", "0", plan.TypeInt, "1000", "1000"},
		{"/sys/kernel/mm/ksm/run", "0", plan.TypeInt, "1", "1"},
		{"/sys/block/nvme0n1/queue/rq_affinity", "1", plan.TypeInt, "2", "2"},
		{"/sys/devices/platform/bus@0/17000000.gpu/railgate_enable", "1", plan.TypeInt, "0", "0"},
		{"/sys/kernel/debug/bpmp/debug/clk/emc/mrq_rate_locked", "0", plan.TypeInt, "1", "1"},
	} {
		t.Run(c.path, func(t *testing.T) {
			dev, dir := newBoard(t)
			place(t, dir, strings.TrimPrefix(c.path, "/"), c.before+"\n")
			p := planOf(copyWith(sysctl("x", c.want), func(s *plan.Setting) { s.Select.Path, s.Type = c.path, c.typ }))
			if r := apply(t, dev, p)[0]; r.Outcome != outcome.OK {
				t.Errorf("%+v", r)
			}
			if got := readNode(t, dir, strings.TrimPrefix(c.path, "/")); got != c.after {
				t.Errorf("%s is %q, want %q", c.path, got, c.after)
			}
			if results, err := enforce.Rollback(dev, options()); err != nil || !enforce.Satisfied(results) {
				t.Errorf("rollback: %v %+v", err, results)
			}
			if got := readNode(t, dir, strings.TrimPrefix(c.path, "/")); got != c.before && !(c.before == "0x0000" && got == "0") { // the same number
				t.Errorf("%s is %q, was %q", c.path, got, c.before)
			}
			dev.WriteFault[c.path] = unix.EOPNOTSUPP
			if real, err := dev.Resolve(c.path); err == nil {
				dev.WriteFault[real] = unix.EOPNOTSUPP
			}
			if r := apply(t, dev, p)[0]; r.Outcome != outcome.Unsupported || !strings.Contains(r.Message, "not supported by the driver") {
				t.Errorf("%+v", r)
			}
		})
	}
}

// An unknown word of a newer plan format may forbid the write.
func TestUnknownKeywordsAreRefused(t *testing.T) {
	dev, dir := newBoard(t)
	before := readState(t, dir)
	policy, needs := sysctl("vm.swappiness", "10"), sysctl("vm.vfs_cache_pressure", "50")
	policy.Policy, needs.Needs = "advise", "a restart of the network"
	for n, r := range apply(t, dev, planOf(policy, needs)) {
		if r.Outcome != outcome.Refused || !strings.Contains(r.Message, []string{`policy "advise"`, `needs "a restart of the network"`}[n]) {
			t.Errorf("%+v", r)
		}
	}
	compareStates(t, before, readState(t, dir))
}
