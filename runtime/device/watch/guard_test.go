package watch_test

import (
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/watch"
	"pgregory.net/rapid"
)

const node = "/proc/sys/vm/swappiness"

func TestFourthDriftInAMinuteIsNotRepaired(t *testing.T) {
	g := watch.NewGuard()
	for n, want := range []watch.Verdict{watch.Repair, watch.Repair, watch.Repair, watch.Yield, watch.Leave, watch.Leave} {
		if got := g.HandleDrift(time.Duration(n)*time.Second, node); got != want {
			t.Errorf("drift %d: %v, want %v", n+1, got, want)
		}
	}
	if got := g.HandleDrift(9*time.Second, "/proc/sys/vm/page-cluster"); got != watch.Repair {
		t.Errorf("another node: %v", got)
	}
}

func TestRareDriftIsAlwaysRepaired(t *testing.T) {
	g := watch.NewGuard()
	for n := range 100 {
		if got := g.HandleDrift(time.Duration(n)*21*time.Second, node); got != watch.Repair {
			t.Fatalf("drift %d: %v", n+1, got)
		}
	}
}

func contestedGuard(t *testing.T) *watch.Guard {
	t.Helper()
	g := watch.NewGuard()
	for range watch.Repairs + 1 {
		g.HandleDrift(0, node)
	}
	if !g.Contested(node) {
		t.Fatal("not contested")
	}
	return g
}

func TestContestEndsAtTheWantedValue(t *testing.T) {
	g := contestedGuard(t)
	if !g.EndContest(node) || g.Contested(node) || g.EndContest(node) {
		t.Error("still contested with the wanted value")
	}
	if got := g.HandleDrift(time.Second, node); got != watch.Repair {
		t.Errorf("after the contest: %v", got)
	}
}

func TestContestIsRetriedAfterQuiet(t *testing.T) {
	g := contestedGuard(t)
	g.HandleDrift(time.Minute, node) // the other program is still running
	next, ok := g.Next()
	if !ok || next != time.Minute+watch.Truce {
		t.Errorf("next try at %v", next)
	}
	if due := g.Due(next - 1); len(due) != 0 {
		t.Errorf("tried early: %v", due)
	}
	if due := g.Due(next); len(due) != 1 || due[0] != node {
		t.Errorf("%v", due)
	}
	if got := g.HandleDrift(next+time.Second, node); got != watch.Yield {
		t.Errorf("another foreign write: %v, want Yield at once", got)
	}
}

func TestAtMostThreeRepairsAMinute(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := watch.NewGuard()
		now := time.Duration(0)
		var repairs []time.Duration
		for range rapid.IntRange(1, 80).Draw(rt, "drifts") {
			now += time.Duration(rapid.IntRange(0, 90_000).Draw(rt, "ms")) * time.Millisecond
			for range g.Due(now) {
				repairs = append(repairs, now)
			}
			if g.HandleDrift(now, node) == watch.Repair {
				repairs = append(repairs, now)
			}
			recent := 0
			for _, at := range repairs {
				if now-at < watch.Window {
					recent++
				}
			}
			if recent > watch.Repairs {
				rt.Fatalf("%d repairs in the minute before %v", recent, now)
			}
		}
	})
}
