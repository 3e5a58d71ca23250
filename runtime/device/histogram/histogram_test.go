package histogram_test

import (
	"reflect"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/histogram"
)

func TestBucketMidpointIsWithinThreePercent(t *testing.T) {
	last := -1
	for v := uint64(0); v < 1<<62; v += 1 + v/100 {
		b := histogram.Bucket(v)
		if d := histogram.Midpoint(b) - int64(v); d > int64(v)/32 || -d > int64(v)/32 {
			t.Fatalf("%d has midpoint %d", v, histogram.Midpoint(b))
		}
		if b < last || b >= histogram.Buckets {
			t.Fatalf("%d is in bucket %d after %d", v, b, last)
		}
		last = b
	}
}

// latency returns the histogram of some durations.
func latency(ns ...uint64) histogram.Histogram {
	var counts [histogram.Buckets]uint64
	out := histogram.Histogram{Buckets: [][2]uint64{}}
	for _, v := range ns {
		counts[histogram.Bucket(v)]++
		out.Count++
		out.Sum += int64(v)
	}
	for b, n := range counts {
		if n > 0 {
			out.Buckets = append(out.Buckets, [2]uint64{uint64(b), n})
		}
	}
	return out
}

func TestSinceQuantiles(t *testing.T) {
	before := latency(1e6, 1e6, 1e6)
	now := latency(1e6, 1e6, 1e6, 50e6, 60e6)
	d := now.Since(before)
	if p := d.Quantile(50); d.Count != 2 || d.Sum != 110e6 || p == nil || *p < 49e6 || *p > 51e6 {
		t.Errorf("%+v, p50 %v", d, p)
	}
	if p := (histogram.Histogram{}).Quantile(95); p != nil {
		t.Errorf("the quantile of an empty histogram is %d", *p)
	}
	if d := before.Since(now); d.Count != 3 {
		t.Errorf("of another run: %+v", d)
	}
}

func TestCoarseBoundsCountExactly(t *testing.T) {
	bounds := []uint64{1 << 14, 1 << 20, 1 << 34}
	got := latency(1, 1<<14-1, 1<<14, 1<<20-1, 1<<20, 1<<35).Cumulative(bounds)
	if !reflect.DeepEqual(got, []uint64{2, 4, 5}) {
		t.Errorf("%v", got)
	}
	for _, b := range histogram.Bounds(4) {
		if histogram.Bucket(b-1) == histogram.Bucket(b) {
			t.Errorf("no bucket ends at %d", b)
		}
	}
	if n := len(histogram.Bounds(1)); n != 21 {
		t.Errorf("%d bounds", n)
	}
}
