package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// sampled imitates the times of a benchmark: most runs near one time, a tail of slower
// ones, times in whole nanoseconds.
func sampled(r *rand.Rand, n int, median float64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(median * (1 + 0.02*math.Abs(r.NormFloat64()) + 0.05*math.Pow(r.Float64(), 8)*r.ExpFloat64()))
	}
	return out
}

func measured(times, reference []int64) Measurement {
	m := Measurement{Suite: "s", Name: "n", Times: times, P50: percentile(times, 50), ReferenceTimes: reference}
	if reference != nil {
		m.Reference = &Reference{Name: "ref", P50: percentile(reference, 50)}
	}
	return m
}

// In thousands of pairs of unchanged runs, the rate of verdicts must match the rule's
// significance level. With the minimum effect there must be no verdict.
func TestEqualRunsRarelyGetAVerdict(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const draws = 3000
	bare, ruled := 0, 0
	for range draws {
		base, now := measured(sampled(r, 20, 1e6), nil), measured(sampled(r, 20, 1e6), nil)
		if compare(base, now, Rule{MinEffect: 0, Alpha: 0.01}).Verdict != Same {
			bare++
		}
		if compare(base, now, DefaultRule()).Verdict != Same {
			ruled++
		}
	}
	t.Logf("of %d: %d by the test at 0.01 a side, %d by the rule", draws, bare, ruled)
	// 2 % expected; four standard deviations are 1 %.
	if share := float64(bare) / draws; share > 0.03 || share < 0.01 {
		t.Errorf("%.3f of equal runs were called different at 0.01 a side", share)
	}
	if ruled > 0 {
		t.Errorf("%d of %d equal runs were called different", ruled, draws)
	}
}

func TestASlowdownOfTenPercentIsFound(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const draws = 500
	found := map[string]int{}
	for range draws {
		reference := sampled(r, 30, 2e6)
		base, slow, quick := measured(sampled(r, 30, 1e6), reference), measured(sampled(r, 30, 1.1e6), sampled(r, 30, 2e6)), measured(sampled(r, 30, 0.9e6), sampled(r, 30, 2e6))
		found[compare(base, slow, DefaultRule()).Verdict]++
		found["back "+compare(base, quick, DefaultRule()).Verdict]++
	}
	if found[Slower] < draws*99/100 || found["back "+Faster] < draws*99/100 {
		t.Errorf("verdicts of %d slowdowns and as many gains: %v", draws, found)
	}
}

func TestASmallDifferenceIsNotReported(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		v := compare(measured(sampled(r, 200, 1e6), nil), measured(sampled(r, 200, 1.02e6), nil), DefaultRule())
		if v.Verdict != Same || !(*v.P < 0.001) || !strings.Contains(v.Why, "the median changed by only") {
			t.Fatalf("%+v: a change of 2 %% is significant but below MinEffect", v)
		}
	}
}

// A machine that became slower as a whole slows the reference as well.
func TestASlowerMachineIsNoRegression(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		load := 1.3
		base := measured(sampled(r, 30, 1e6), sampled(r, 30, 2e6))
		v := compare(base, measured(sampled(r, 30, 1e6*load), sampled(r, 30, 2e6*load)), DefaultRule())
		if v.Verdict != Same || !strings.Contains(v.Why, "the whole machine changed") {
			t.Fatalf("%+v", v)
		}
		v = compare(base, measured(sampled(r, 30, 1e6*load*1.2), sampled(r, 30, 2e6*load)), DefaultRule())
		if v.Verdict != Slower {
			t.Fatalf("20 %% slower on a slower machine: %+v", v)
		}
	}
}

// A machine whose speed changes between the rounds of a run, by a third and more: the
// plain test would call every other pair of equal runs different.
func TestEqualRunsOnABusyMachineAreSeldomCalledDifferent(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	run := func(speed float64) Measurement {
		var own, reference []int64
		for range 6 {
			state, apart := 1+0.4*r.Float64(), 1+0.2*r.Float64() // of the machine, and of ours alone
			own = append(own, sampled(r, 5, 1e6*speed*state*apart)...)
			reference = append(reference, sampled(r, 5, 2e6*state)...)
		}
		m := measured(own, reference)
		m.Rounds = 6
		return m
	}
	const draws = 600
	different, plain, found := 0, 0, 0
	for range draws {
		base, now := run(1), run(1)
		if compare(base, now, DefaultRule()).Verdict != Same {
			different++
		}
		base.Rounds, now.Rounds = 1, 1
		if compare(base, now, DefaultRule()).Verdict != Same {
			plain++
		}
		if compare(run(1), run(2), DefaultRule()).Verdict == Slower {
			found++
		}
	}
	t.Logf("of %d equal pairs %d are called different, without rounds %d; twice as slow: %d found", draws, different, plain, found)
	if different > draws/200 || found < draws*9/10 {
		t.Errorf("%d of %d equal pairs, %d of as many slowdowns", different, draws, found)
	}
}

func TestFewOrEqualSamplesAreInconclusive(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	if v := compare(measured(sampled(r, 4, 1e6), nil), measured(sampled(r, 4, 9e6), nil), DefaultRule()); v.Verdict != unclear {
		t.Errorf("four samples: %+v", v)
	}
	same := make([]int64, 30)
	for i := range same {
		same[i] = 100
	}
	if v := compare(measured(same, nil), measured(same, nil), DefaultRule()); v.Verdict != unclear {
		t.Errorf("samples without a spread: %+v", v)
	}
	if p := smallestP(6, 6); math.Abs(p-1.0/924) > 1e-12 {
		t.Errorf("six and six have 924 orders, p %g", p)
	}
}

func TestBenchmarksInOnlyOneRunAreReported(t *testing.T) {
	old, both, fresh := Measurement{Suite: "s", Name: "old"}, Measurement{Suite: "s", Name: "both"}, Measurement{Suite: "s", Name: "fresh"}
	var got []string
	for _, v := range Compare([]Measurement{old, both}, []Measurement{both, fresh}, DefaultRule()) {
		got = append(got, v.Name+" "+v.Verdict)
	}
	if fmt.Sprint(got) != "[both unclear fresh new old gone]" {
		t.Errorf("%v", got)
	}
}
