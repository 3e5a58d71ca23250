// Package histogram counts durations in buckets of fixed relative width, so that a
// quantile is within 1.6 % of the exact one and memory does not grow with the number
// of durations.
package histogram

import "math/bits"

// Each power of two nanoseconds is divided into 32 buckets.
const (
	subBits = 5
	sub     = 1 << subBits
	// Buckets is the number of buckets; the last one ends above the largest int64.
	Buckets = 60 * sub
)

// Bucket returns the index of the bucket that holds a duration in ns. The index is the
// value itself for the first 32, then exponent and leading bits.
func Bucket(ns uint64) int {
	if ns < sub {
		return int(ns)
	}
	e := bits.Len64(ns) - subBits - 1
	return e<<subBits + int(ns>>e)
}

// Midpoint returns the duration in the middle of a bucket, in ns.
func Midpoint(bucket int) int64 {
	if bucket < 2*sub {
		return int64(bucket)
	}
	e := bucket>>subBits - 1
	low := int64(bucket-e<<subBits) << e
	return low + (1<<e)/2
}

// Histogram is a set of durations, in ns.
type Histogram struct {
	Count   uint64      `json:"count"`
	Sum     int64       `json:"sum"`
	Buckets [][2]uint64 `json:"buckets"` // index and count of each bucket that is not empty
}

// Since returns the durations that were added after an earlier copy of the same
// histogram. After a restart, which lowers the count, that is all of them.
func (h Histogram) Since(before Histogram) Histogram {
	if h.Count < before.Count {
		return h
	}
	was := make(map[uint64]uint64, len(before.Buckets))
	for _, b := range before.Buckets {
		was[b[0]] = b[1]
	}
	out := Histogram{Count: h.Count - before.Count, Sum: h.Sum - before.Sum, Buckets: [][2]uint64{}}
	for _, b := range h.Buckets {
		if n := b[1] - min(was[b[0]], b[1]); n > 0 {
			out.Buckets = append(out.Buckets, [2]uint64{b[0], n})
		}
	}
	return out
}

// Quantile returns the nearest-rank percentile in ns, or nil for an empty histogram.
func (h Histogram) Quantile(percent uint64) *int64 {
	var total uint64
	for _, b := range h.Buckets {
		total += b[1]
	}
	rank := (total*percent + 99) / 100
	var seen uint64
	for _, b := range h.Buckets {
		if seen += b[1]; b[1] > 0 && seen >= rank && b[0] < Buckets {
			return new(Midpoint(int(b[0])))
		}
	}
	return nil
}

// Bounds returns upper bounds in ns for a coarser histogram, from 16 µs to 17 s: each
// power of two is divided into the given number of steps. Buckets end at these bounds,
// so that the coarser counts are exact.
func Bounds(steps uint64) []uint64 {
	var out []uint64
	for e := 14; e < 34; e++ {
		for n := range steps {
			out = append(out, 1<<e+n*(1<<e)/steps)
		}
	}
	return append(out, 1<<34)
}

// Cumulative returns, for each bound, the number of durations below it.
func (h Histogram) Cumulative(bounds []uint64) []uint64 {
	out := make([]uint64, len(bounds))
	for i, bound := range bounds {
		for _, b := range h.Buckets {
			if b[0] < uint64(Bucket(bound)) {
				out[i] += b[1]
			}
		}
	}
	return out
}
