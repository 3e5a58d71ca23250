package knob

import (
	"slices"
	"testing"
)

func TestNodesThatResetOthersAreWrittenFirst(t *testing.T) {
	const (
		core     = "/sys/devices/system/cpu/cpu4/online"
		mask     = "/sys/devices/platform/bus@0/17000000.gpu/tpc_pg_mask"
		governor = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
		clock    = "/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"
		sleep    = "/sys/devices/platform/bus@0/17000000.gpu/power/control"
	)
	want := []string{core, mask, governor, clock, sleep}
	got := []string{sleep, clock, governor, mask, core}
	slices.SortStableFunc(got, func(a, b string) int { return WriteRank(a) - WriteRank(b) })
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// Nodes of the same name elsewhere have no rank of their own.
	for _, name := range []string{"/sys/devices/system/memory/memory0/online", "/sys/class/net/eth0/control", "/proc/sys/vm/swappiness"} {
		if r := WriteRank(name); r != RankClocks {
			t.Errorf("%s has rank %d, want %d", name, r, RankClocks)
		}
	}
}

func TestAFrequencyWindowHasTwoEnds(t *testing.T) {
	for low, high := range map[string]string{
		"/sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq": "/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq",
		"/sys/class/devfreq/17000000.gpu/min_freq":                 "/sys/class/devfreq/17000000.gpu/max_freq",
	} {
		if other, upper, ok := OppositeLimit(low); other != high || upper || !ok {
			t.Errorf("%s: %s, %v, %v", low, other, upper, ok)
		}
		if other, upper, ok := OppositeLimit(high); other != low || !upper || !ok {
			t.Errorf("%s: %s, %v, %v", high, other, upper, ok)
		}
	}
	if other, _, ok := OppositeLimit("/proc/sys/vm/swappiness"); ok {
		t.Error(other)
	}
}
