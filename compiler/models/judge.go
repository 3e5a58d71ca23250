// Package models optimises the models of a configuration: it makes candidates in a pinned Python
// environment, has them measured on the device, and judges what was measured.
package models

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/yoctune/yoctune/schema/formats/evidence"
	"github.com/yoctune/yoctune/schema/formats/measurement"
	"github.com/yoctune/yoctune/schema/units"
)

// Criteria is what a candidate must hold.
type Criteria struct {
	Metric     string
	MaxLoss    float64 // of the metric
	MinSpeedup float64
	MaxMemory  int64 // bytes; 0: any
	Batches    []int
}

const (
	resamples   = 2000
	minExamples = 20 // below, no interval means anything
	confidence  = 0.95
)

// interval is an estimate with its 95 % bounds.
type interval struct{ low, mid, high float64 }

func (i interval) text() *evidence.Interval {
	return &evidence.Interval{Low: decimal(i.low), Mid: decimal(i.mid), High: decimal(i.high)}
}

func decimal(v float64) string { return evidence.Decimal(v) }

// bounds returns the interval of samples around an estimate.
func bounds(mid float64, samples []float64) interval {
	slices.Sort(samples)
	at := func(p float64) float64 { return samples[min(len(samples)-1, int(p*float64(len(samples))))] }
	return interval{at((1 - confidence) / 2), mid, at((1 + confidence) / 2)}
}

// newRandom is the same sequence for every judgement: the same record gives the same verdict.
func newRandom() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// speedup compares the medians of two models. Rounds are drawn, since the runs of a round share the
// state of the machine; the same rounds of both, since they took turns.
func speedup(original, candidate *measurement.Batch) interval {
	ratio := func(rounds []int) float64 {
		median := func(b *measurement.Batch) float64 {
			var all []int64
			for _, r := range rounds {
				all = append(all, b.Times[r]...)
			}
			slices.Sort(all)
			return float64(all[len(all)/2])
		}
		return median(original) / median(candidate)
	}
	n := len(original.Times)
	rng, all, rounds := newRandom(), make([]int, n), make([]int, n)
	for i := range all {
		all[i] = i
	}
	samples := make([]float64, resamples/4)
	for s := range samples {
		for i := range rounds {
			rounds[i] = rng.IntN(n)
		}
		samples[s] = ratio(rounds)
	}
	return bounds(ratio(all), samples)
}

// loss compares the accuracy of two models on the same examples. Where no example differs, the true
// loss may still be up to three over their number, with 95 % confidence.
func loss(m measurement.Metric, original, candidate []measurement.Example) (interval, bool) {
	n := len(original)
	rng, pick := newRandom(), make([]int, n)
	for i := range pick {
		pick[i] = i
	}
	value := func() (float64, bool) {
		a, known := m.Value(original, pick)
		b, known2 := m.Value(candidate, pick)
		return m.Loss(a, b), known && known2
	}
	mid, known := value()
	if !known {
		return interval{}, false
	}
	same := true
	for i := range original {
		same = same && slices.Equal(original[i].Counts, candidate[i].Counts) && slices.Equal(original[i].Detections, candidate[i].Detections)
	}
	if same && m.Name == measurement.Cosine {
		return interval{mid, mid, mid}, true // the outputs are equal
	}
	if same {
		return interval{mid, mid, mid + 3/float64(n)}, true
	}
	var samples []float64
	for range resamples {
		for i := range pick {
			pick[i] = rng.IntN(n)
		}
		if v, ok := value(); ok {
			samples = append(samples, v)
		}
	}
	if len(samples) == 0 {
		return interval{}, false
	}
	return bounds(mid, samples), true
}

// perfect are the scores of a model that equals the original.
func perfect(n int) []measurement.Example {
	out := make([]measurement.Example, n)
	for i := range out {
		out[i].Counts = []int64{measurement.Billionth}
	}
	return out
}

// judgeModel judges the model at index i of a record. Index 0 is the original itself: what it loses
// at the other batch sizes is a fault of the model.
func judgeModel(r *measurement.Record, i int, c Criteria) evidence.Candidate {
	m := &r.Models[i]
	out := evidence.Candidate{File: evidence.File{Name: m.Name, SHA256: m.SHA256, Bytes: m.Bytes}, Memory: m.Memory, Provider: m.Provider, Batches: []evidence.Batch{}}
	reasons := []string{}
	refuse := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	if m.Failed != "" {
		refuse("it failed: %s", m.Failed)
	} else if want := r.Runtime.Providers[0]; m.Provider != want {
		why := ""
		if m.Missing != "" {
			why = fmt.Sprintf(" (%.300s)", m.Missing)
		}
		refuse("%s ran it, and %s is the first choice%s: what one loses, the other may hide", m.Provider, want, why)
	}
	metric, _ := measurement.MetricOf(c.Metric)
	first := r.Models[0].Find(c.Batches[0])
	for _, size := range c.Batches {
		b, base := m.Find(size), r.Models[0].Find(size)
		if b == nil || base == nil || b.Failed != "" || base.Failed != "" {
			if m.Failed == "" {
				why := "it was not measured"
				if b != nil && b.Failed != "" {
					why = b.Failed
				}
				refuse("batch %d: %s", size, why)
			}
			continue
		}
		e := evidence.Batch{Batch: size, P50: b.Percentile(50), P95: b.Percentile(95), P99: b.Percentile(99), Rate: decimal(b.Rate()), Energy: b.Energy}
		if v, known := r.Accuracy(b); known {
			e.Metric = decimal(v)
		}
		reference := first.Scores
		if metric.Name == measurement.Cosine {
			reference = perfect(len(b.Scores))
		}
		if l, known := loss(metric, reference, b.Scores); !known {
			refuse("batch %d: the loss is not known", size)
		} else {
			if i == 0 { // against itself at the first batch: what is likely, not what is possible
				l = interval{l.mid, l.mid, l.mid}
			}
			e.Loss = l.text()
			if l.high > c.MaxLoss {
				refuse("batch %d: it may lose %s of %s (95 %% confidence; %s measured), and %s is allowed", size, decimal(l.high), c.Metric, decimal(l.mid), decimal(c.MaxLoss))
			}
		}
		if i > 0 {
			s := speedup(base, b)
			e.Speedup = s.text()
			if s.low < c.MinSpeedup {
				refuse("batch %d: its speedup may be %s (95 %% confidence; %s measured), and %s is asked for", size, decimal(s.low), decimal(s.mid), decimal(c.MinSpeedup))
			}
		}
		out.Batches = append(out.Batches, e)
	}
	if i > 0 && c.MaxMemory > 0 {
		switch {
		case m.Memory == nil:
			refuse("its memory is not known, and at most %s is allowed", units.RoundSize(c.MaxMemory))
		case *m.Memory > c.MaxMemory:
			refuse("it takes %s of memory, and %s is allowed", units.RoundSize(*m.Memory), units.RoundSize(c.MaxMemory))
		}
	}
	if len(reasons) > 0 {
		out.Reason = reasons[0]
		if len(reasons) > 1 {
			more := "one more reason"
			if len(reasons) > 2 {
				more = fmt.Sprintf("%d more reasons, the last", len(reasons)-1)
			}
			out.Reason += "; " + more + ": " + reasons[len(reasons)-1]
		}
		return out
	}
	out.Accepted, out.Reason = true, "it holds at every batch size"
	if i == 0 {
		out.Reason = "the original"
	}
	return out
}

// Judge judges a record. The result lacks what only the caller knows: the target, the model, the
// files and how the record came. The error is about a record that cannot be judged by the criteria.
func Judge(r *measurement.Record, c Criteria) (*evidence.Evidence, error) {
	switch {
	case len(r.Runtime.Providers) == 0:
		return nil, errors.New("the record names no execution provider")
	case r.Metric != c.Metric:
		return nil, fmt.Errorf("the record has metric %q, and accept has %q: measure again", r.Metric, c.Metric)
	case r.Examples == nil || r.Examples.Count < minExamples:
		return nil, fmt.Errorf("the labelled set has %d examples, and at least %d are needed for a judgement", count(r), minExamples)
	}
	for _, size := range c.Batches {
		if b := r.Models[0].Find(size); b == nil || b.Failed != "" {
			return nil, fmt.Errorf("the record lacks the original at batch %d: measure again", size)
		}
	}
	e := &evidence.Evidence{
		Schema: evidence.Schema, Device: r.Device, Runtime: r.Runtime, Examples: r.Examples.SHA256, Count: r.Examples.Count,
		Accept: c.Text(),
	}
	best := 0.0
	for i := range r.Models {
		v := judgeModel(r, i, c)
		e.Candidates = append(e.Candidates, v)
		if i == 0 && !v.Accepted {
			return nil, fmt.Errorf("the original is wrong: %s", v.Reason)
		}
		if i == 0 || !v.Accepted {
			continue
		}
		slowest := math.Inf(1)
		for _, b := range v.Batches {
			s, err := strconv.ParseFloat(b.Speedup.Mid, 64)
			if err == nil {
				slowest = min(slowest, s)
			}
		}
		if slowest > best {
			best = slowest
			e.Chosen = &v.File
		}
	}
	return e, nil
}

func count(r *measurement.Record) int {
	if r.Examples == nil {
		return 0
	}
	return r.Examples.Count
}

// Text writes the criteria as evidence has them.
func (c Criteria) Text() evidence.Accept {
	return evidence.NewAccept(c.Metric, c.MaxLoss, c.MinSpeedup, c.MaxMemory, c.Batches)
}
