package degrade_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/degrade"
)

const ms = time.Millisecond

// rig is a live source, a queue of one that drops the oldest, and one stage; its
// clock is virtual.
type rig struct {
	period  time.Duration
	load    func(at time.Duration) float64 // factor on service times
	levels  []degrade.Level
	control *degrade.Controller
	slo     time.Duration
	rng     *rand.Rand
}

type outcome struct {
	done, lost, missed, switches int
	latencies                    []time.Duration
	worstMinute                  int // switches within any minute
}

func (o outcome) p50() time.Duration {
	slices.Sort(o.latencies)
	return o.latencies[len(o.latencies)/2]
}

func (r *rig) run(length time.Duration) outcome {
	var o outcome
	var moves []time.Duration
	level, queued, busyUntil := 0, time.Duration(-1), time.Duration(0)
	var window []time.Duration
	var lost int
	var service, services time.Duration
	nextWindow, kept := degrade.Window, time.Duration(-1<<40)
	finish := func(capture, start time.Duration) time.Duration {
		l := r.levels[level]
		d := time.Duration(float64(l.Bottleneck) * r.load(start) * (0.9 + 0.2*r.rng.Float64()))
		services += d
		service = d
		end := start + d
		o.done++
		lat := end - capture
		o.latencies = append(o.latencies, lat)
		window = append(window, lat)
		if lat > r.slo {
			o.missed++
		}
		return end
	}
	for now := time.Duration(0); now < length; now += r.period {
		// What the stage does until this frame comes.
		for queued >= 0 && busyUntil <= now {
			c := queued
			queued = -1
			busyUntil = finish(c, max(busyUntil, c))
		}
		for nextWindow <= now {
			in := degrade.Input{Done: len(window), Lost: lost, Bottleneck: service}
			if len(window) > 0 {
				slices.Sort(window)
				in.P95 = window[(len(window)*95+99)/100-1]
				in.Bottleneck = services / time.Duration(len(window))
			}
			if r.control != nil {
				if d := r.control.Step(nextWindow, in); d.Moved {
					level = d.Level
					moves = append(moves, nextWindow)
				}
			}
			window, lost, services = window[:0], 0, 0
			nextWindow += degrade.Window
		}
		if p := r.levels[level].Period; p > 0 && now-kept < p-r.period/2 {
			continue // left out on purpose, before any work
		}
		kept = now
		if queued >= 0 {
			o.lost++
			lost++
		}
		queued = now
	}
	o.switches = len(moves)
	for i := range moves {
		n := 1
		for n+i < len(moves) && moves[i+n]-moves[i] < time.Minute {
			n++
		}
		o.worstMinute = max(o.worstMinute, n)
	}
	return o
}

// ladder is a model of 33 ms, at half the rate, then a model of a third.
func ladder() []degrade.Level {
	return []degrade.Level{
		{Bottleneck: 33 * ms, Service: 36 * ms},
		{Period: 66 * ms, Bottleneck: 33 * ms, Service: 36 * ms},
		{Period: 66 * ms, Bottleneck: 11 * ms, Service: 14 * ms},
	}
}

func newRig(seed uint64, period time.Duration, load func(time.Duration) float64, control bool) *rig {
	r := &rig{period: period, load: load, levels: ladder(), slo: 100 * ms, rng: rand.New(rand.NewPCG(seed, 1))}
	if control {
		r.control = degrade.New(degrade.Config{Levels: r.levels, Source: period, SLO: r.slo})
	}
	return r
}

func steady(f float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return f }
}

// burst is an overload of factor 2.2 for ten seconds of thirty.
func burst(at time.Duration) float64 {
	if at >= 10*time.Second && at < 20*time.Second {
		return 2.2
	}
	return 0.8
}

func TestOverloadStepsDownUntilItFits(t *testing.T) {
	for _, c := range []struct {
		name    string
		load    func(time.Duration) float64
		length  time.Duration
		service time.Duration // of level 0 under this load
	}{
		{"1.3 times too much for ten minutes", steady(1.3), 10 * time.Minute, 43 * ms},
		{"twice too much for a while", burst, 30 * time.Second, 73 * ms},
	} {
		for seed := range uint64(20) {
			bare := newRig(seed, 33*ms, c.load, false).run(c.length)
			with := newRig(seed, 33*ms, c.load, true).run(c.length)
			missed := float64(with.missed) / float64(with.done)
			if missed > 0.03 || with.worstMinute > 3 || float64(with.p50()) > 1.5*float64(c.service) {
				t.Errorf("%s, seed %d: %.1f %% missed, %d switches within a minute, p50 %v", c.name, seed, 100*missed, with.worstMinute, with.p50())
			}
			if seed == 0 {
				t.Logf("%s: without %d done, %d lost, %.1f %% missed, p50 %v; with %d done, %d lost, %.1f %% missed, p50 %v, %d switches, at most %d a minute",
					c.name, bare.done, bare.lost, 100*float64(bare.missed)/float64(bare.done), bare.p50(),
					with.done, with.lost, 100*missed, with.p50(), with.switches, with.worstMinute)
			}
		}
	}
}

// Each failed step up doubles the dwell time.
func TestRecurringLoadCausesFewerAndFewerMoves(t *testing.T) {
	square := func(at time.Duration) float64 {
		if at%(8*time.Second) < 4*time.Second {
			return 1.6
		}
		return 0.5
	}
	o := newRig(3, 33*ms, square, true).run(5 * time.Minute)
	if o.switches > 15 {
		t.Errorf("%d switches in five minutes", o.switches)
	}
	t.Logf("%d switches in five minutes of load that changes every four seconds", o.switches)
}

func TestLadderStepsDownFastAndUpOnlyIfItFits(t *testing.T) {
	c := degrade.New(degrade.Config{Levels: ladder(), Source: 33 * ms, SLO: 100 * ms})
	now := time.Duration(0)
	step := func(in degrade.Input) degrade.Decision {
		now += degrade.Window
		return c.Step(now, in)
	}
	late := degrade.Input{Done: 8, P95: 150 * ms, Bottleneck: 45 * ms}
	for range 2 {
		step(late)
	}
	if d := step(late); d.Level != 1 {
		t.Fatalf("after 750 ms of missed objectives on level %d", d.Level)
	}
	// In time now, but the level above would still need 45 ms of 33.
	for range 400 {
		if d := step(degrade.Input{Done: 4, P95: 50 * ms, Bottleneck: 45 * ms}); d.Level != 1 {
			t.Fatalf("stepped up to what cannot hold: %+v", d)
		}
	}
	var d degrade.Decision
	for n := 0; n < 40 && !d.Moved; n++ {
		d = step(degrade.Input{Done: 4, P95: 20 * ms, Bottleneck: 15 * ms})
	}
	if d.Level != 0 || d.Why == "" {
		t.Errorf("did not come back: %+v", d)
	}
}

func TestAFailedStepUpDoublesTheDwell(t *testing.T) {
	c := degrade.New(degrade.Config{Levels: ladder(), SLO: 100 * ms, UpDwell: time.Second, MaxDwell: 4 * time.Second})
	now := time.Duration(0)
	good := degrade.Input{Done: 4, P95: 20 * ms, Bottleneck: 10 * ms}
	bad := degrade.Input{Done: 4, P95: 200 * ms, Bottleneck: 10 * ms}
	level := 0
	for range 6 {
		for level == 0 {
			now += degrade.Window
			level = c.Step(now, bad).Level
		}
		for level > 0 {
			now += degrade.Window
			level = c.Step(now, good).Level
		}
	}
	if c.Dwell() != 4*time.Second {
		t.Errorf("dwell %v", c.Dwell())
	}
	for end := now + 21*time.Minute; now < end; now += degrade.Window {
		c.Step(now, good)
	}
	if c.Dwell() != time.Second {
		t.Errorf("after calm the dwell is %v", c.Dwell())
	}
}

func TestHeatStepsDownWithoutOverload(t *testing.T) {
	c := degrade.New(degrade.Config{Levels: ladder(), SLO: 100 * ms})
	var d degrade.Decision
	for n := range 4 {
		if d = c.Step(time.Duration(n)*degrade.Window, degrade.Input{Done: 4, P95: 10 * ms, Hot: "clocks are held down"}); d.Moved {
			break
		}
	}
	if d.Level != 1 || d.Why != "clocks are held down" {
		t.Errorf("%+v", d)
	}
}

// In the simulated plant a batch of n takes 10 + n ms, and a frame arrives every 8 ms.
func TestUtilisationSettlesAndHoldsWhileDegraded(t *testing.T) {
	u := degrade.Utilisation{Target: 0.9, Max: 16}
	busy := func(n int) float64 { return min((10+float64(n))/(8*float64(n)), 1) }
	n := 16
	var seen []int
	for range 30 {
		n = u.Step(busy(n), false)
		seen = append(seen, n)
	}
	// 5 s are ten windows; 2 frames at once are 0.75 busy, 1 is over.
	for _, n := range seen[10:] {
		if n > 3 {
			t.Fatalf("after ten windows still %d at once: %v", n, seen)
		}
	}
	if held := u.Step(1, true); held != u.Step(0, true) {
		t.Error("it moved while degraded")
	}
}
