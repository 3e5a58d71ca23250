package sysctl

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestFactsAreConsistent(t *testing.T) {
	for _, problem := range Check() {
		t.Error(problem)
	}
}

func TestPresenceIsPerTree(t *testing.T) {
	for _, c := range []struct {
		key, kernel string
		want        State
	}{
		{"vm.swappiness", "5.15", Present},
		{"vm.swappiness", "5.15.185", Present},
		{"vm.swappiness", "5.15-tegra", Present},
		{"vm.swappiness", "6.6", Unknown},
		{"vm.swappiness", "", Unknown},
		{"kernel.sched_latency_ns", "5.10", Present},
		{"kernel.sched_latency_ns", "5.15", Absent},
		{"kernel.oops_limit", "5.15", Present}, // mainline 6.2, backported
		{"kernel.oops_limit", "4.9", Absent},
	} {
		f, ok := Lookup(c.key)
		if !ok {
			t.Errorf("%s is not known", c.key)
			continue
		}
		if got := f.PresenceIn(c.kernel).State; got != c.want {
			t.Errorf("%s on %q: %s, want %s", c.key, c.kernel, got, c.want)
		}
	}
}

func TestRangeComesFromTheTableThenTheHandlerThenTheType(t *testing.T) {
	for _, c := range []struct {
		key, kernel string
		low, high   int64
	}{
		{"vm.swappiness", "4.9", 0, 100},
		{"vm.swappiness", "5.15", 0, 200},
		{"kernel.sched_util_clamp_min", "5.15", 0, 1024}, // handler
		{"net.ipv4.tcp_tw_reuse", "5.15", 0, 2},
		{"kernel.sched_migration_cost_ns", "5.10", 0, 1<<32 - 1}, // type
	} {
		f, _ := Lookup(c.key)
		low, high := f.PresenceIn(c.kernel).Range()
		if low == nil || high == nil || *low != c.low || *high != c.high {
			t.Errorf("%s on %s: %v..%v, want %d..%d", c.key, c.kernel, low, high, c.low, c.high)
		}
	}
	f, _ := Lookup("net.ipv4.tcp_congestion_control")
	if low, high := f.PresenceIn("5.15").Range(); low != nil || high != nil {
		t.Error("a string has no range")
	}
	f, _ = Lookup("vm.dirty_bytes")
	if low, high := f.PresenceIn("6.8").Range(); low == nil || *low != 8192 || high != nil {
		t.Errorf("vm.dirty_bytes: %v..%v, want 8192 and no upper end: 4 GiB is a value like others", low, high)
	}
}

func TestSysctlTraits(t *testing.T) {
	for key, check := range map[string]func(Fact) bool{
		"vm.drop_caches":                   func(f Fact) bool { return f.Has(WriteOnly) || f.Has(OneShot) },
		"vm.dirty_ratio":                   func(f Fact) bool { return len(f.Excludes) == 1 && f.Excludes[0] == "vm.dirty_bytes" },
		"net.core.default_qdisc":           func(f Fact) bool { return f.Has(AutoLoad) && f.Config == "NET_SCHED" },
		"net.ipv4.tcp_congestion_control":  func(f Fact) bool { return f.Has(NetNS) },
		"vm.lowmem_reserve_ratio":          func(f Fact) bool { return f.Has(Vector) },
		"kernel.sched_min_granularity_ns":  func(f Fact) bool { return f.Has(Moved) && f.Config == "SCHED_DEBUG" },
		"net.netfilter.nf_conntrack_max":   func(f Fact) bool { return f.Module == "nf_conntrack" },
		"kernel.unprivileged_bpf_disabled": func(f Fact) bool { return f.Has(Sticky) },
	} {
		f, ok := Lookup(key)
		if !ok || !check(f) {
			t.Errorf("%s: known %t, %+v", key, ok, f)
		}
	}
}

func TestNearestFindsSimilarNamesOnly(t *testing.T) {
	for name, want := range map[string]string{
		"vm.swapiness":                    "vm.swappiness",
		"swappiness":                      "vm.swappiness",
		"kernel.swappiness":               "vm.swappiness",
		"vm/swappiness":                   "vm.swappiness",
		"net.core.tcp_congestion_control": "net.ipv4.tcp_congestion_control",
		"net.core.rmem_maxx":              "net.core.rmem_max",
		"completely.other.thing":          "",
		"":                                "",
	} {
		if got, ok := Nearest(name); got != want || ok != (want != "") {
			t.Errorf("Nearest(%q) = %q, %t, want %q", name, got, ok, want)
		}
	}
}

func FuzzNearest(f *testing.F) {
	f.Add("vm.swapiness")
	f.Add("....")
	f.Fuzz(func(t *testing.T, name string) {
		if got, ok := Nearest(name); ok {
			if _, known := Lookup(got); !known {
				t.Errorf("Nearest(%q) = %q, which is no fact", name, got)
			}
		}
	})
}

func BenchmarkFirstUse(b *testing.B) {
	for b.Loop() {
		var d Data
		if err := json.Unmarshal(embedded, &d); err != nil {
			b.Fatal(err)
		}
	}
}

// Lookup reads one line of the file, which must stay one fact a line.
func TestEveryKeyIsFound(t *testing.T) {
	for _, key := range Keys() {
		if f, ok := Lookup(key); !ok || f.Key != key || len(f.Variants) == 0 {
			t.Errorf("Lookup(%q) finds %+v", key, f)
		}
	}
	if got, want := kernels(), load().Kernels; !slices.Equal(got, want) {
		t.Errorf("the trees alone are %v, in the whole file %v", got, want)
	}
}
