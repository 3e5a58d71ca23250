package linux_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/linux"
)

// Each table has names for every kernel, as many as its source registers.
func TestEveryKernelHasNames(t *testing.T) {
	for _, s := range kernel.Sets() {
		args, modules, foreign := 0, 0, 0
		for a := range linux.Args(s.Name) {
			if got, ok := linux.FindArg(s.Name, a.Name); !ok || got.Kinds != a.Kinds {
				t.Fatalf("%s: %s is listed and not found", s.Name, a.Name)
			}
			if args++; a.Arch != "" {
				foreign++
			}
		}
		for m := range linux.Modules(s.Name) {
			if _, ok := linux.FindModule(s.Name, m.Name); !ok {
				t.Fatalf("%s: %s is listed and not found", s.Name, m.Name)
			}
			modules++
		}
		t.Logf("%s: %d arguments, %d of them not for arm64; %d modules", s.Name, args, foreign, modules)
		if args < 5000 || modules < 3000 {
			t.Errorf("%s: %d arguments, %d modules", s.Name, args, modules)
		}
	}
}

func TestKnownArguments(t *testing.T) {
	for _, c := range []struct{ kernel, name, kinds, value, needs, arch string }{
		{"5.15", "isolcpus", "s", "cores,", "CPU_ISOLATION", ""},
		{"4.9", "isolcpus", "s", "cores", "SMP", ""},
		{"6.18", "nohz_full", "s", "cores", "CPU_ISOLATION", ""},
		{"5.10", "printk.time", "m", "bool", "PRINTK", ""},
		{"6.8", "rcutree.kthread_prio", "m", "int", "TREE_RCU", ""},
		{"6.1", "mitigations", "e", "words:auto|auto,nosmt|off", "", ""},
		{"5.15", "intel_pstate", "d", "", "", "x86"},
		{"6.1", "arm64.nopauth", "o", "", "", ""},
		{"6.12", "cma", "e", "size@", "DMA_CMA", ""},
		{"5.15", "log-buf-len", "e", "size", "PRINTK", ""},
		{"5.15", "systemd.unit", "u", "", "", ""},
		{"5.15", "rd.driver.pre", "u", "", "", ""},
	} {
		a, ok := linux.FindArg(c.kernel, c.name)
		var needs []string
		for _, n := range a.Needs {
			needs = append(needs, strings.Join(n, "&"))
		}
		if !ok || a.Kinds != c.kinds || a.Value != c.value || strings.Join(needs, "/") != c.needs || a.Arch != c.arch {
			t.Errorf("%s %s: %t %+v", c.kernel, c.name, ok, a)
		}
	}
	for _, name := range []string{"isolcpu", "nohz_ful", "arm64.nopauthfbcon", "printk", ""} {
		if a, ok := linux.FindArg("5.15", name); ok {
			t.Errorf("%q is known: %+v", name, a)
		}
	}
	if _, ok := linux.FindArg("3.10", "quiet"); ok {
		t.Error("an argument of an unknown kernel")
	}
}

func TestListsOfCoresPerKernel(t *testing.T) {
	for line, want := range map[string][2]bool{
		"4.9": {false, false}, "5.10": {false, false}, "5.15": {true, true}, "6.1": {true, true}, "6.8": {true, true}, "6.12": {true, true}, "6.18": {true, true},
	} {
		if n, all := linux.Cpulist(line); n != want[0] || all != want[1] {
			t.Errorf("%s: N %t, all %t", line, n, all)
		}
	}
}

func TestKnownModules(t *testing.T) {
	for _, c := range []struct{ kernel, name, options string }{
		{"5.15", "wireguard", "WIREGUARD"},
		{"5.10", "sch_fq", "NET_SCH_FQ"},
		{"6.8", "tcp_bbr", "TCP_CONG_BBR"},
		{"5.15", "snd-dummy", "SND_DUMMY"},
		{"6.12", "nvme", "BLK_DEV_NVME"},
		{"5.15", "nvgpu", ""},
	} {
		m, ok := linux.FindModule(c.kernel, c.name)
		if !ok || strings.Join(m.Options, "/") != c.options {
			t.Errorf("%s %s: %t %+v", c.kernel, c.name, ok, m)
		}
	}
	if m, ok := linux.FindModule("5.15", "xt_raw"); ok {
		t.Errorf("xt_raw: %+v", m)
	}
	if got := linux.ModulesOf("5.15", "WIREGUARD"); !slices.Equal(got, []string{"wireguard"}) {
		t.Errorf("WIREGUARD builds %v", got)
	}
	if p := linux.PackageOf("snd_soc_Tegra"); p != "kernel-module-snd-soc-tegra" {
		t.Error(p)
	}
}

func TestKnownThreads(t *testing.T) {
	find := func(line, glob string) *linux.Thread {
		for _, th := range linux.Threads(line) {
			if th.Matches(glob) {
				return &th
			}
		}
		return nil
	}
	for _, s := range kernel.Sets() {
		for glob, bound := range map[string]bool{"ksoftirqd/0": true, "ksoftirqd/*": true, "kswapd0": false, "kcompactd?": false, "migration/3": true, "rcu_preempt": false} {
			if th := find(s.Name, glob); th == nil || th.Bound != bound {
				t.Errorf("%s: %s is %+v", s.Name, glob, th)
			}
		}
		for _, glob := range []string{"ksoftirqd", "ksoftirq/*", "kswapd", "rcub0", "ktimersd/0"} {
			if th := find(s.Name, glob); th != nil {
				t.Errorf("%s: %s is %+v", s.Name, glob, th)
			}
		}
		if th := find(s.Name, "rcub/*"); th == nil || len(th.Needs) != 1 || !slices.Contains(th.Needs[0], "RCU_BOOST") {
			t.Errorf("%s: rcub/* is %+v", s.Name, th)
		}
		// Only the newest has threads for timers.
		if th := find(s.Name, "ktimers/*"); (th != nil) != (s.Name == "6.18") {
			t.Errorf("%s: ktimers/* is %+v", s.Name, th)
		}
		names := linux.NetFeatures(s.Name)
		for _, name := range []string{"rx-gro", "tx-tcp-segmentation", "tx-scatter-gather", "rx-vlan-hw-parse"} {
			if !slices.Contains(names, name) {
				t.Errorf("%s: no feature %s", s.Name, name)
			}
		}
		if slices.Contains(names, "gro") || len(names) < 40 {
			t.Errorf("%s: %d features: %v", s.Name, len(names), names)
		}
	}
}

func TestKnownDisks(t *testing.T) {
	for _, line := range linux.Kernels() {
		known := map[string]linux.Disk{}
		for _, d := range linux.Disks(line) {
			known[d.Names] = d
		}
		nvme, mmc := known["nvme#n#"], known["mmcblk#*"]
		if nvme.Depth != 1023 || nvme.Less != 1 || !nvme.Matches("nvme*") || !nvme.Matches("nvme0n1") || nvme.Matches("nvme0") {
			t.Errorf("%s: %+v", line, nvme)
		}
		if old := line == "4.9"; old != (nvme.Param == "") || old != (mmc.Depth == 0) || !old && mmc.Depth != 64 || old != (linux.MaxScheduled(line) == 0) || !old && linux.MaxScheduled(line) != 2048 {
			t.Errorf("%s: %+v, %+v, %d", line, nvme, mmc, linux.MaxScheduled(line))
		}
		for _, name := range []string{"zram#", "ram#", "md#", "bcache#"} {
			if !known[name].Direct {
				t.Errorf("%s: %s is %+v", line, name, known[name])
			}
		}
		for _, name := range []string{"sd*", "sr#", "vd*", "dm-#", "loop#", "nbd#", "mtdblock#", "ubiblock#_#"} {
			if d, ok := known[name]; !ok || d.Direct {
				t.Errorf("%s: %s is %+v", line, name, d)
			}
		}
	}
}

func TestThreadsMatchGlobs(t *testing.T) {
	for _, c := range []struct {
		name, glob string
		want       bool
	}{
		{"ksoftirqd/#", "ksoftirqd/0", true}, {"ksoftirqd/#", "ksoftirqd/12", true}, {"ksoftirqd/#", "ksoftirqd/", false}, {"ksoftirqd/#", "ksoft*", true},
		{"rc#", "rcub/*", false}, {"rc#", "rc*", true}, {"rcuo?/#", "rcuop/3", true}, {"*-tx", "eth0-tx", true}, {"*-tx", "*-tx", true},
		{"*-tx", "ksoftirq*", false}, {"nvme-#", "*", true}, {"a*b", "ab", true}, {"a*b", "b*a", false}, {"", "", true},
	} {
		if got := (linux.Thread{Name: c.name}).Matches(c.glob); got != c.want {
			t.Errorf("%q and %q: %t", c.name, c.glob, got)
		}
	}
}
