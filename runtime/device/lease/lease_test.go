package lease_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/lease"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"pgregory.net/rapid"
)

func TestLeaseExpiresUnlessRenewed(t *testing.T) {
	var l lease.Ledger
	a, err := l.Acquire(0, 1000, 7, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Acquire(0, 1000, 8, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Renew(9*time.Second, a.ID); err != nil {
		t.Fatal(err)
	}
	if over := l.Expire(15 * time.Second); len(over) != 0 {
		t.Errorf("%+v ended early", over)
	}
	if next, ok := l.Next(); !ok || next != 19*time.Second {
		t.Errorf("next end %v", next)
	}
	if over := l.Expire(20 * time.Second); len(over) != 2 {
		t.Errorf("%+v, want both", over)
	}
	if _, err := l.Renew(21*time.Second, b.ID); !errors.Is(err, lease.ErrNone) {
		t.Errorf("%v", err)
	}
	if _, ok := l.Next(); ok {
		t.Error("an expiry without a lease")
	}
}

func TestLeasesPerUserAreLimited(t *testing.T) {
	var l lease.Ledger
	for range lease.PerUser {
		if _, err := l.Acquire(0, 1000, 7, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Acquire(0, 1000, 7, 0); !errors.Is(err, lease.ErrQuota) {
		t.Errorf("%v", err)
	}
	if _, err := l.Acquire(0, 1001, 7, 0); err != nil {
		t.Errorf("another user: %v", err)
	}
}

func TestTimeToLiveIsLimited(t *testing.T) {
	var l lease.Ledger
	for _, ttl := range []time.Duration{-time.Second, time.Millisecond, 25 * time.Hour} {
		if _, err := l.Acquire(0, 0, 1, ttl); !errors.Is(err, lease.ErrTTL) {
			t.Errorf("%v: %v", ttl, err)
		}
	}
}

func TestNoSequenceLeaksALease(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var l lease.Ledger
		now := time.Duration(0)
		open := map[uint64]bool{}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now += time.Duration(rapid.IntRange(0, 5000).Draw(rt, "ms")) * time.Millisecond
			for _, e := range l.Expire(now) {
				delete(open, e.ID)
			}
			switch rapid.IntRange(0, 2).Draw(rt, "what") {
			case 0:
				if e, err := l.Acquire(now, uint32(rapid.IntRange(0, 3).Draw(rt, "uid")), 1, 2*time.Second); err == nil {
					open[e.ID] = true
				}
			case 1:
				for id := range open {
					l.Release(id)
					delete(open, id)
					break
				}
			case 2:
				for id := range open {
					if _, err := l.Renew(now, id); err != nil {
						rt.Fatal(err)
					}
					break
				}
			}
			if len(l.All()) != len(open) || len(open) > lease.Total {
				rt.Fatalf("%d in the ledger, %d open", len(l.All()), len(open))
			}
		}
		l.Expire(now + lease.MaxTTL)
		if len(l.All()) != 0 {
			rt.Fatal(l.All())
		}
	})
}

func TestHighPerformanceRaisesFrequencyPolicies(t *testing.T) {
	dir := t.TempDir()
	if err := devicetest.Build(dir, "orin-nano-8gb"); err != nil {
		t.Fatal(err)
	}
	dev, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	settings, notes := lease.HighPerformance(dev)
	got := map[string]string{}
	for _, s := range settings {
		got[s.Select.Path] = s.Want
	}
	top, err := dev.Read("/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq")
	if err != nil {
		t.Fatal(err)
	}
	const policy = "/sys/devices/system/cpu/cpufreq/policy0/"
	if got[policy+"scaling_governor"] != "performance" || got[policy+"scaling_min_freq"] != strings.TrimSpace(top.Text) {
		t.Errorf("%v", got)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "power mode") {
		t.Errorf("%q", notes)
	}
}

func TestHighPerformanceWithoutFrequencyPolicies(t *testing.T) {
	dev, err := rootfs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	settings, notes := lease.HighPerformance(dev)
	if len(settings) != 0 || !strings.Contains(strings.Join(notes, "\n"), "no CPU frequency policies") {
		t.Errorf("%v %q", settings, notes)
	}
}
