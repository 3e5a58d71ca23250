package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// Lengths on both sides of every boundary of the tree: lanes, chunks, a second
// and a third level.
var treeLengths = []int{1, 2, 3, 4, 5, 1023, 1024, 1025, 4096, 16383, 16384, 16385, 16384*2 - 1, 16384 * 1024, 16384*16384/64 + 7}

func genValues(t *rapid.T) []float32 {
	n := rapid.OneOf(rapid.IntRange(1, 40000), rapid.SampledFrom(treeLengths[:len(treeLengths)-2])).Draw(t, "n")
	state := rapid.Uint64().Draw(t, "values") | 1
	x := make([]float32, n)
	for i := range x {
		state = state*6364136223846793005 + 1442695040888963407
		x[i] = float32(int32(state>>32)) / (1 << 20)
	}
	return x
}

func TestSumIsAsAccurateAsPairwise(t *testing.T) {
	d := openCPU(t)
	rapid.Check(t, func(t *rapid.T) {
		x := genValues(t)
		got, err := d.Reduce(context.Background(), core.Sum, x)
		if err != nil {
			t.Fatal(err)
		}
		var sum, size float64
		for _, v := range x {
			sum += float64(v)
			size += math.Abs(float64(v))
		}
		if limit := 1e-6*size + 1e-30; !(math.Abs(float64(got)-sum) <= limit) {
			t.Fatalf("sum of %d values is %g, float64 gives %g", len(x), got, sum)
		}
	})
}

func TestMinAndMaxAreExact(t *testing.T) {
	d := openCPU(t)
	rapid.Check(t, func(t *rapid.T) {
		x := genValues(t)
		low, high := x[0], x[0]
		for _, v := range x {
			low, high = min(low, v), max(high, v)
		}
		for op, want := range map[core.Reduction]float32{core.Min: low, core.Max: high} {
			if got, err := d.Reduce(context.Background(), op, x); err != nil || got != want {
				t.Fatalf("reduction %d of %d values is %g (%v), want %g", op, len(x), got, err, want)
			}
		}
	})
}

// The tree of the documentation, written down again without vectors or levels
// in flight. The backend must give the same bits.
func refTreeSum(x []float32) float32 {
	const lanes, chunk = 1024, 16 * 1024
	for first := true; first || len(x) > 1; first = false {
		var next []float32
		for at := 0; at < len(x); at += chunk {
			var lane [lanes]float32
			for i, v := range x[at:min(at+chunk, len(x))] {
				lane[i%lanes] += v
			}
			for half := lanes / 2; half > 0; half /= 2 {
				for j := range half {
					lane[j] += lane[j+half]
				}
			}
			next = append(next, lane[0])
		}
		x = next
	}
	return x[0]
}

func TestSumFollowsTheDocumentedTreeToTheBit(t *testing.T) {
	d := openCPU(t)
	for _, n := range treeLengths {
		// One more value than needed: the sum of x[1:] is at another alignment.
		x := make([]float32, n+1)
		state := uint64(n)
		for i := range x {
			state = state*6364136223846793005 + 1442695040888963407
			x[i] = float32(int32(state>>32)) / (1 << 20)
		}
		got, err := d.Reduce(context.Background(), core.Sum, x[1:])
		if err != nil {
			t.Fatal(err)
		}
		if want := refTreeSum(x[1:]); math.Float32bits(got) != math.Float32bits(want) {
			t.Errorf("n = %d: %g, the tree gives %g", n, got, want)
		}
	}
}

func TestReduceOfNothingAndOfNaN(t *testing.T) {
	d := openCPU(t)
	inf := float32(math.Inf(1))
	for op, want := range map[core.Reduction]float32{core.Sum: 0, core.Min: inf, core.Max: -inf} {
		t.Run(fmt.Sprint(op), func(t *testing.T) {
			if got, err := d.Reduce(context.Background(), op, nil); err != nil || got != want {
				t.Errorf("of nothing: %g (%v), want %g", got, err, want)
			}
			for _, n := range []int{1, 1025, 40000} {
				for _, at := range []int{0, n / 2, n - 1} {
					x := make([]float32, n)
					x[at] = nan
					if got, err := d.Reduce(context.Background(), op, x); err != nil || got == got {
						t.Errorf("NaN at %d of %d: %g (%v)", at, n, got, err)
					}
				}
			}
		})
	}
	if _, err := d.Reduce(context.Background(), 4, []float32{1}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("unknown reduction: %v", err)
	}
}

// A sum has the same bits for any number of threads and in any thread.
func TestReductionDoesNotDependOnTheThread(t *testing.T) {
	const n = 100_003
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(i))) * 1000
	}
	var first []byte
	for _, threads := range []int{1, 2, 4} {
		d, err := core.Open(core.Options{Backend: core.CPU, Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		buf, err := d.Alloc(4*n+256, core.MemHost)
		if err != nil {
			t.Fatal(err)
		}
		copy(buf.Float32s()[64:], x)
		for _, queued := range []bool{false, true} {
			s, err := d.OpenStream(core.StreamOptions{Queued: queued})
			if err != nil {
				t.Fatal(err)
			}
			l := s.List().Reduce(buf.At(0, 4), buf.At(256, 4*n), core.Sum)
			if err := errors.Join(l.Submit(), s.Wait(context.Background())); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = bytes.Clone(buf.Bytes()[:4])
			}
			if !bytes.Equal(buf.Bytes()[:4], first) {
				t.Errorf("%d threads, queued %v: other bits", threads, queued)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
