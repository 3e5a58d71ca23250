package ladder_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yoctune/yoctune/runtime/device/ladder"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

func config() ladder.Config {
	return ladder.Config{Steps: 3, UpLoad: 80, UpFor: 2 * time.Second, DownLoad: 40, DownFor: 30 * time.Second}
}

// run feeds one input each second and returns the seconds of its moves with the
// step after each.
func run(l *ladder.Ladder, from, to int, in ladder.Input) map[int]int {
	moves := map[int]int{}
	for s := from; s < to; s++ {
		if d := l.Decide(time.Duration(s)*time.Second, in); d.Moved {
			moves[s] = d.Step
		}
	}
	return moves
}

func load(n int) ladder.Input { return ladder.Input{Load: n, Known: true} }

func checkEqual(t *testing.T, what string, got, want map[int]int) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
}

func TestSustainedLoadRaisesTheModeStepByStep(t *testing.T) {
	l := ladder.New(config(), 0, 0)
	checkEqual(t, "busy", run(l, 0, 60, load(95)), map[int]int{2: 1, 7: 2})
	checkEqual(t, "between", run(l, 60, 200, load(60)), nil)
	checkEqual(t, "idle", run(l, 200, 300, load(10)), map[int]int{230: 1, 261: 0})
}

func TestLatePipelineRaisesTheMode(t *testing.T) {
	l := ladder.New(config(), 0, 0)
	late := load(10) // little load, and yet too slow: it waits for one core
	late.Late = "door"
	checkEqual(t, "late", run(l, 0, 100, late), map[int]int{2: 1, 7: 2})
	checkEqual(t, "in time", run(l, 100, 200, load(10)), map[int]int{130: 1, 161: 0})
	late.Hot = true
	checkEqual(t, "hot", run(l, 200, 300, late), nil)
}

func TestConfiguredDwellCoolAndBudget(t *testing.T) {
	c := config()
	c.Dwell, c.Cool, c.Budget = 20*time.Second, 10*time.Second, 2
	l := ladder.New(c, 0, 0)
	checkEqual(t, "busy", run(l, 0, 100, load(95)), map[int]int{2: 1, 22: 2})
	checkEqual(t, "the budget is spent", run(l, 100, 300, load(10)), nil)
	l = ladder.New(c, 0, 0)
	hot := load(95)
	hot.Hot = true
	run(l, 0, 50, hot)
	checkEqual(t, "cooled", run(l, 50, 75, load(95)), map[int]int{59: 1})
}

func TestIntermittentLoadChangesNothing(t *testing.T) {
	l := ladder.New(config(), 0, 0)
	for s := range 600 {
		in := load(100)
		if s%2 == 1 {
			in = load(50)
		}
		if d := l.Decide(time.Duration(s)*time.Second, in); d.Moved {
			t.Fatalf("moved at %d s: %+v", s, d)
		}
	}
}

func TestUnknownLoadChangesNothing(t *testing.T) {
	l := ladder.New(config(), 1, 0)
	checkEqual(t, "unknown", run(l, 0, 600, ladder.Input{Load: 100}), nil)
}

func TestPriorityOfHeatLeaseAndLoad(t *testing.T) {
	l := ladder.New(config(), 0, 0)
	lease := load(0)
	lease.Lease = true
	checkEqual(t, "lease", run(l, 0, 100, lease), map[int]int{0: 2})
	hot := lease
	hot.Hot = true
	checkEqual(t, "hot", run(l, 100, 150, hot), map[int]int{102: 1, 107: 0})
	// Exactly thirty seconds after the last heat.
	checkEqual(t, "cooled", run(l, 150, 250, lease), map[int]int{179: 2})
	checkEqual(t, "released", run(l, 250, 320, load(0)), map[int]int{280: 1, 311: 0})
}

func TestHourlyBudgetIsKeptAndReportedOnce(t *testing.T) {
	l := ladder.New(ladder.Config{Steps: 2, UpLoad: 80, UpFor: time.Second, DownLoad: 40, DownFor: time.Second}, 0, 0)
	moves, reports := 0, 0
	for s := range 3600 {
		in := load(100)
		if l.Step() == 1 {
			in = load(0)
		}
		d := l.Decide(time.Duration(s)*time.Second, in)
		if d.Moved {
			moves++
		} else if d.Why != "" {
			reports++
		}
	}
	if moves != ladder.Budget || reports != 1 {
		t.Errorf("%d moves, reported %d times", moves, reports)
	}
	again := load(100)
	if l.Step() == 1 {
		again = load(0)
	}
	if first := l.Decide(3700*time.Second, again); !first.Moved && !l.Decide(3702*time.Second, again).Moved {
		t.Error("no budget after an hour")
	}
}

func TestRandomTracesStayWithinLadderAndBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.IntRange(2, 5).Draw(t, "steps")
		c := config()
		c.Steps = steps
		l := ladder.New(c, rapid.IntRange(-1, 6).Draw(t, "start"), 0)
		now, last, byLoad := time.Duration(0), -ladder.Dwell, []time.Duration{}
		for range rapid.IntRange(1, 300).Draw(t, "samples") {
			now += time.Duration(rapid.IntRange(100, 20000).Draw(t, "gap")) * time.Millisecond
			in := ladder.Input{Load: rapid.IntRange(0, 100).Draw(t, "load"), Known: rapid.Bool().Draw(t, "known"), Hot: rapid.Bool().Draw(t, "hot"), Lease: rapid.Bool().Draw(t, "lease")}
			before := l.Step()
			d := l.Decide(now, in)
			if d.Step != l.Step() || d.Step < 0 || d.Step >= steps || d.Moved != (d.Step != before) {
				t.Fatalf("%+v from %d", d, before)
			}
			if !d.Moved {
				continue
			}
			if in.Hot && d.Step > before {
				t.Fatal("a step up in spite of heat")
			}
			if in.Lease && !in.Hot && d.Step < before {
				t.Fatal("a step down during a lease")
			}
			if !in.Lease && now-last < ladder.Dwell {
				t.Fatalf("moved after %v", now-last)
			}
			if last = now; !in.Hot && !in.Lease {
				byLoad = append(byLoad, now)
			}
			for len(byLoad) > 0 && now-byLoad[0] >= time.Hour {
				byLoad = byLoad[1:]
			}
			if len(byLoad) > ladder.Budget {
				t.Fatalf("%d moves by load within an hour", len(byLoad))
			}
		}
	})
}

func TestLoadIsTheHigherOfCPUAndGPU(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("/sys/class/devfreq/17000000.gpu/device/load", "250\n")
	write("/proc/stat", "cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 …\n")
	dev, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := ladder.NewMeter(dev)
	if n, known := m.Load(); n != 25 || !known {
		t.Errorf("at first: %d %t", n, known) // the GPU's
	}
	write("/proc/stat", "cpu  160 0 120 710 110 0 0 0 0 0\n")
	if n, _ := m.Load(); n != 80 {
		t.Errorf("80 of 100 jiffies: %d", n)
	}
	write("/proc/stat", "garbage\n")
	write("/sys/class/devfreq/17000000.gpu/device/load", "much\n")
	if n, known := m.Load(); known {
		t.Errorf("%d of garbage", n)
	}
}
