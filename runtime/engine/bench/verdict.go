package bench

import (
	"fmt"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// Outcomes of a comparison with a baseline.
const (
	Slower  = "slower" // the answer is no
	Faster  = "faster"
	Same    = "same"
	unclear = "unclear" // too few samples to tell
	New     = "new"     // not in the baseline
	Gone    = "gone"    // in the baseline only
)

// Rule says when a difference counts.
type Rule struct {
	MinEffect float64 // of the medians, 0.05 is five percent
	Alpha     float64 // chance of calling equal benchmarks different, in each direction
}

// DefaultRule: with a hundred benchmarks that did not change, one run in five would
// call one of them slower by chance if that were all; but it must also be five percent
// slower, and so beside its reference.
func DefaultRule() Rule { return Rule{MinEffect: 0.05, Alpha: 0.001} }

// Verdict compares one benchmark with the baseline's.
type Verdict struct {
	Type    string   `json:"type"` // "verdict"
	Suite   string   `json:"suite"`
	Name    string   `json:"name"`
	Verdict string   `json:"verdict"`
	Base    *int64   `json:"base_p50_ns"`
	Now     *int64   `json:"p50_ns"`
	Change  *float64 `json:"change"` // of the median: 0.1 is ten percent slower
	P       *float64 `json:"p"`      // of the Mann-Whitney test, one-sided
	// Beside is the change of the median of the time divided by the reference's, taken
	// turn by turn: a machine that is slower as a whole does not change it. Nil where
	// the runs had no reference in common.
	Beside *float64 `json:"beside_reference"`
	Why    string   `json:"why"`
}

// Compare judges each benchmark of now by base, and names those that only one has.
func Compare(base, now []Measurement, rule Rule) []Verdict {
	old := map[string]Measurement{}
	for _, m := range base {
		old[m.Suite+"\x00"+m.Name] = m
	}
	var out []Verdict
	for _, m := range now {
		key := m.Suite + "\x00" + m.Name
		b, ok := old[key]
		if !ok {
			out = append(out, Verdict{Type: "verdict", Suite: m.Suite, Name: m.Name, Verdict: New, Now: &m.P50, Why: "not in the baseline"})
			continue
		}
		delete(old, key)
		out = append(out, compare(b, m, rule))
	}
	for _, m := range base {
		if _, left := old[m.Suite+"\x00"+m.Name]; left {
			out = append(out, Verdict{Type: "verdict", Suite: m.Suite, Name: m.Name, Verdict: Gone, Base: &m.P50, Why: "in the baseline only"})
		}
	}
	return out
}

func compare(base, now Measurement, rule Rule) Verdict {
	v := Verdict{Type: "verdict", Suite: now.Suite, Name: now.Name, Base: &base.P50, Now: &now.P50}
	if base.Clock != now.Clock {
		v.Verdict, v.Why = unclear, fmt.Sprintf("the baseline's times are of another clock: %s, here %s", base.Clock, now.Clock)
		return v
	}
	time, ok := judge(floats(base.Times), floats(now.Times), base.Rounds, now.Rounds, rule)
	if !ok {
		v.Verdict, v.Why = unclear, fmt.Sprintf("%d and %d samples are too few, or all the same", len(base.Times), len(now.Times))
		return v
	}
	v.Verdict, v.Change, v.P = time.verdict, &time.change, &time.p
	v.Why = time.why(rule)
	if base.Reference == nil || now.Reference == nil || base.Reference.Name != now.Reference.Name {
		return v
	}
	beside, ok := judge(ratios(base), ratios(now), base.Rounds, now.Rounds, rule)
	if !ok {
		return v
	}
	v.Beside = &beside.change
	if time.verdict != Same && beside.verdict != time.verdict {
		v.Verdict = Same
		v.Why = fmt.Sprintf("the time changed by %+.1f %%, but not beside %s (%+.1f %%): the machine changed", 100*time.change, now.Reference.Name, 100*beside.change)
	}
	return v
}

// judged is one test of two samples.
type judged struct {
	verdict   string
	change, p float64
	overlap   bool // of the rounds of the two runs
}

func (j judged) why(rule Rule) string {
	switch {
	case j.verdict != Same:
		return fmt.Sprintf("the median changed by %+.1f %%, p = %.2g", 100*j.change, j.p)
	case j.overlap:
		return fmt.Sprintf("a change of %+.1f %%, p = %.2g, no larger than between rounds of one run", 100*j.change, j.p)
	case j.p >= rule.Alpha:
		return fmt.Sprintf("no difference that is not chance, p = %.2g", j.p)
	}
	return fmt.Sprintf("a difference of %+.1f %%, less than counts", 100*j.change)
}

// judge tests whether now is larger or smaller than base: by the Mann-Whitney test,
// which asks nothing of the shape of the samples, and by enough. Samples of one round
// share the moment's state of the machine, which the test takes for a difference: so
// every round of one run must also lie beyond every round of the other.
func judge(base, now []float64, baseRounds, nowRounds int, rule Rule) (judged, bool) {
	before, after := percentile(base, 50), percentile(now, 50)
	if before <= 0 || after <= 0 || fewest(len(base), len(now)) > rule.Alpha {
		return judged{}, false
	}
	j := judged{verdict: Same, change: after/before - 1}
	side, verdict := stats.LocationGreater, Slower
	if after < before {
		side, verdict = stats.LocationLess, Faster
	}
	test, err := stats.MannWhitneyUTest(now, base, side)
	if err != nil { // all samples are equal
		return judged{}, false
	}
	j.p = test.P
	if effect := max(after/before, before/after) - 1; j.p < rule.Alpha && effect >= rule.MinEffect {
		j.verdict = verdict
		least, most := rounds(now, nowRounds), rounds(base, baseRounds)
		if verdict == Faster {
			least, most = most, least
		}
		if j.overlap = slices.Min(least) <= slices.Max(most); j.overlap {
			j.verdict = Same
		}
	}
	return j, true
}

// rounds are the medians of n parts of the samples, in their order.
func rounds(x []float64, n int) []float64 {
	n = max(1, min(n, len(x)))
	out := make([]float64, n)
	for i := range out {
		out[i] = percentile(x[len(x)*i/n:len(x)*(i+1)/n], 50)
	}
	return out
}

// fewest is the smallest p that samples of these sizes can give: one order of all.
func fewest(a, b int) float64 {
	orders := 1.0
	for i := 1; i <= b; i++ {
		orders *= float64(a+i) / float64(i)
	}
	return 1 / orders
}

func floats(x []int64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// ratios are times by the reference's, of the same turn.
func ratios(m Measurement) []float64 {
	var out []float64
	for i, v := range m.Times {
		if i < len(m.ReferenceTimes) && m.ReferenceTimes[i] > 0 {
			out = append(out, float64(v)/float64(m.ReferenceTimes[i]))
		}
	}
	return out
}

// Regressed reports whether any verdict is "slower".
func Regressed(all []Verdict) bool {
	return slices.ContainsFunc(all, func(v Verdict) bool { return v.Verdict == Slower })
}
