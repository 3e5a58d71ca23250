package live

import "math/bits"

// Durations are counted in buckets of 1/32 of a power of two nanoseconds, so that a
// quantile is within 1.6 % of the truth and memory does not grow with frames.
const (
	bucketBits = 5
	bucketSub  = 1 << bucketBits
	// Buckets is how many there are; the last ends above what int64 holds.
	Buckets = 60 * bucketSub
)

// Bucket is the number of a duration's bucket: the value itself at first, then
// exponent and leading bits.
func Bucket(ns uint64) int {
	if ns < bucketSub {
		return int(ns)
	}
	e := bits.Len64(ns) - bucketBits - 1
	return e<<bucketBits + int(ns>>e)
}

// Middle is the duration in the middle of a bucket.
func Middle(b int) int64 {
	if b < 2*bucketSub {
		return int64(b)
	}
	e := b>>bucketBits - 1
	low := int64(b-e<<bucketBits) << e
	return low + (1<<e)/2
}

// Latency is a set of durations, in ns.
type Latency struct {
	Count   uint64      `json:"count"`
	Sum     int64       `json:"sum"`
	Buckets [][2]uint64 `json:"buckets"` // number of the bucket, and how many; those with none are left out
}

// Since is what was added between two looks at the same set.
func (l Latency) Since(before Latency) Latency {
	if l.Count < before.Count {
		return l // another run
	}
	was := make(map[uint64]uint64, len(before.Buckets))
	for _, b := range before.Buckets {
		was[b[0]] = b[1]
	}
	out := Latency{Count: l.Count - before.Count, Sum: l.Sum - before.Sum, Buckets: [][2]uint64{}}
	for _, b := range l.Buckets {
		if n := b[1] - min(was[b[0]], b[1]); n > 0 {
			out.Buckets = append(out.Buckets, [2]uint64{b[0], n})
		}
	}
	return out
}

// Quantile is the nearest-rank percentile; nil when there are no durations.
func (l Latency) Quantile(percent uint64) *int64 {
	var total uint64
	for _, b := range l.Buckets {
		total += b[1]
	}
	rank := (total*percent + 99) / 100
	var seen uint64
	for _, b := range l.Buckets {
		if seen += b[1]; b[1] > 0 && seen >= rank && b[0] < Buckets {
			return new(Middle(int(b[0])))
		}
	}
	return nil
}

// Bounds are upper bounds for coarser histograms, in ns: each power of two in so many
// steps, at which buckets end, so that counts are exact. From 16 µs to 17 s.
func Bounds(steps uint64) []uint64 {
	var out []uint64
	for e := 14; e < 34; e++ {
		for n := range steps {
			out = append(out, 1<<e+n*(1<<e)/steps)
		}
	}
	return append(out, 1<<34)
}

// Cumulative counts the durations below each of the bounds.
func (l Latency) Cumulative(bounds []uint64) []uint64 {
	out := make([]uint64, len(bounds))
	for i, bound := range bounds {
		for _, b := range l.Buckets {
			if b[0] < uint64(Bucket(bound)) {
				out[i] += b[1]
			}
		}
	}
	return out
}
