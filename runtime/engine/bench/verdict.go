package bench

import (
	"fmt"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// Outcomes of a comparison with a baseline.
const (
	Slower  = "slower" // a regression
	Faster  = "faster"
	Same    = "same"
	unclear = "unclear" // too few samples
	New     = "new"     // not in the baseline
	Gone    = "gone"    // in the baseline only
)

// Rule defines which differences are significant.
type Rule struct {
	MinEffect float64 // relative change of the median; 0.05 is five percent
	Alpha     float64 // probability of a false alarm, in each direction
}

// DefaultRule returns the rule of the command line. With a hundred unchanged benchmarks,
// Alpha alone would report one of them as slower in every tenth run. MinEffect and the
// comparison with the reference make that much rarer.
func DefaultRule() Rule { return Rule{MinEffect: 0.05, Alpha: 0.001} }

// Verdict compares one benchmark with the baseline's.
type Verdict struct {
	Type    string   `json:"type"` // "verdict"
	Suite   string   `json:"suite"`
	Name    string   `json:"name"`
	Verdict string   `json:"verdict"`
	Base    *int64   `json:"base_p50_ns"`
	Now     *int64   `json:"p50_ns"`
	Change  *float64 `json:"change"` // relative change of the median; 0.1 is ten percent slower
	P       *float64 `json:"p"`      // of the one-sided Mann-Whitney test
	// Beside is the relative change of the median ratio of time to reference time. It does
	// not change when the whole machine becomes slower. It is nil if the runs have no
	// common reference.
	Beside *float64 `json:"beside_reference"`
	Why    string   `json:"why"`
}

// Compare compares each benchmark of now with base. It also reports benchmarks that exist
// in only one of the runs.
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
		v.Verdict, v.Why = unclear, fmt.Sprintf("different clocks: %s in the baseline, %s now", base.Clock, now.Clock)
		return v
	}
	time, ok := testDifference(floats(base.Times), floats(now.Times), base.Rounds, now.Rounds, rule)
	if !ok {
		v.Verdict, v.Why = unclear, fmt.Sprintf("too few or identical samples (%d and %d)", len(base.Times), len(now.Times))
		return v
	}
	v.Verdict, v.Change, v.P = time.verdict, &time.change, &time.p
	v.Why = time.explain(rule)
	if base.Reference == nil || now.Reference == nil || base.Reference.Name != now.Reference.Name {
		return v
	}
	beside, ok := testDifference(ratios(base), ratios(now), base.Rounds, now.Rounds, rule)
	if !ok {
		return v
	}
	v.Beside = &beside.change
	if time.verdict != Same && beside.verdict != time.verdict {
		v.Verdict = Same
		v.Why = fmt.Sprintf("the time changed by %+.1f %%, relative to %s by only %+.1f %%: the whole machine changed", 100*time.change, now.Reference.Name, 100*beside.change)
	}
	return v
}

// testResult is the result of one test of two sets of samples.
type testResult struct {
	verdict   string
	change, p float64
	overlap   bool // the rounds of the two runs overlap
}

// explain gives the reason for the verdict.
func (j testResult) explain(rule Rule) string {
	switch {
	case j.verdict != Same:
		return fmt.Sprintf("the median changed by %+.1f %%, p = %.2g", 100*j.change, j.p)
	case j.overlap:
		return fmt.Sprintf("the median changed by %+.1f %%, p = %.2g, but rounds of one run differ as much", 100*j.change, j.p)
	case j.p >= rule.Alpha:
		return fmt.Sprintf("no significant difference, p = %.2g", j.p)
	}
	return fmt.Sprintf("the median changed by only %+.1f %%", 100*j.change)
}

// testDifference tests whether now differs from base. The difference must be significant in
// the Mann-Whitney test, which assumes no distribution, and at least MinEffect. Samples of
// one round share the current state of the machine, which the test mistakes for a
// difference. Therefore the rounds of the two runs must also not overlap. ok is false if
// the samples allow no conclusion.
func testDifference(base, now []float64, baseRounds, nowRounds int, rule Rule) (_ testResult, ok bool) {
	before, after := percentile(base, 50), percentile(now, 50)
	if before <= 0 || after <= 0 || smallestP(len(base), len(now)) > rule.Alpha {
		return testResult{}, false
	}
	j := testResult{verdict: Same, change: after/before - 1}
	side, verdict := stats.LocationGreater, Slower
	if after < before {
		side, verdict = stats.LocationLess, Faster
	}
	test, err := stats.MannWhitneyUTest(now, base, side)
	if err != nil { // all samples are equal
		return testResult{}, false
	}
	j.p = test.P
	if effect := max(after/before, before/after) - 1; j.p < rule.Alpha && effect >= rule.MinEffect {
		j.verdict = verdict
		least, most := roundMedians(now, nowRounds), roundMedians(base, baseRounds)
		if verdict == Faster {
			least, most = most, least
		}
		if j.overlap = slices.Min(least) <= slices.Max(most); j.overlap {
			j.verdict = Same
		}
	}
	return j, true
}

// roundMedians returns the medians of n consecutive parts of the samples.
func roundMedians(x []float64, n int) []float64 {
	n = max(1, min(n, len(x)))
	out := make([]float64, n)
	for i := range out {
		out[i] = percentile(x[len(x)*i/n:len(x)*(i+1)/n], 50)
	}
	return out
}

// smallestP returns the smallest p value that samples of these sizes can reach.
func smallestP(a, b int) float64 {
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

// ratios returns each time divided by the reference time of the same turn.
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
