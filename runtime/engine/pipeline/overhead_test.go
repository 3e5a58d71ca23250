package pipeline

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/trace"
	"github.com/yoctune/yoctune/tests/models"
)

// BenchmarkOverRawRuntime runs the recogniser directly and through the engine, in turns. The
// overhead of the engine is the difference of the times from one result to the next, in µs per
// frame: of their medians, and of their fastest tenths, which other load affects least.
func BenchmarkOverRawRuntime(b *testing.B) {
	rt, err := ort.Open(models.Library(b))
	if err != nil {
		b.Fatal(err)
	}
	defer rt.Close()
	s, err := rt.NewSession(models.Dir(b)+"/"+models.Recogniser, ort.Options{Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	in, err := rt.NewTensor(ort.Float32, []int64{1, 3, 48, 32})
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	made, err := s.Probe(in)
	if err != nil {
		b.Fatal(err)
	}
	out, err := rt.NewTensor(ort.Float32, made[0].Shape)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	bound, err := s.Bind([]*ort.Tensor{in}, out)
	if err != nil {
		b.Fatal(err)
	}
	defer bound.Close()
	const frames = 40
	var bare, engine []float64 // µs from one result to the next
	var last time.Time
	lap := func(to *[]float64) {
		now := time.Now()
		if !last.IsZero() {
			*to = append(*to, float64(now.Sub(last).Nanoseconds())/1e3)
		}
		last = now
	}
	raw := func() error {
		for range frames {
			if err := bound.Run(); err != nil {
				return err
			}
			lap(&bare)
		}
		return nil
	}
	through := func() error {
		sink := sinkFunc(func(*result.Record) error { lap(&engine); return nil })
		e := newEngine(&counted{n: frames}, sink, 1, block,
			step{id: "m", run: func(context.Context, *frame.Frame) error { return bound.Run() }})
		_, _, err := e.run(b.Context())
		return err
	}
	var busy []float64
	for b.Loop() {
		last = time.Time{}
		c0, err := measureCPUTime(raw)
		if err != nil {
			b.Fatal(err)
		}
		last = time.Time{}
		c1, err := measureCPUTime(through)
		if err != nil {
			b.Fatal(err)
		}
		busy = append(busy, float64((c1-c0).Nanoseconds())/1e3/frames)
	}
	b.ReportMetric(quantile(bare, 50), "bare-µs/frame")
	b.ReportMetric(quantile(engine, 50)-quantile(bare, 50), "p50-engine-µs/frame")
	b.ReportMetric(quantile(engine, 10)-quantile(bare, 10), "p10-engine-µs/frame")
	b.ReportMetric(quantile(busy, 50), "engine-cpu-µs/frame")
}

// measureCPUTime returns the processor time that do takes.
func measureCPUTime(do func() error) (time.Duration, error) {
	c0, err := processTime()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	c1, err := processTime()
	return c1 - c0, err
}

func quantile(x []float64, percent int) float64 {
	slices.Sort(x)
	return x[len(x)*percent/100]
}

// BenchmarkTraceCost compares the engine with and without its recorder, in turns. The three
// stages do nothing, so all of the time is overhead.
func BenchmarkTraceCost(b *testing.B) {
	const frames = 2000
	run := func(r *trace.Recorder) time.Duration {
		e := newEngine(&counted{n: frames}, sinkFunc(func(*result.Record) error { return nil }), 4, block,
			step{id: "a", run: nothing}, step{id: "b", run: nothing}, step{id: "c", run: nothing})
		e.trace = r
		sum, _, err := e.run(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return time.Duration(sum.Duration)
	}
	cpu := func() time.Duration {
		d, err := processTime()
		if err != nil {
			b.Fatal(err)
		}
		return d
	}
	with, without := time.Hour, time.Hour
	began, n := cpu(), 0
	for b.Loop() {
		without, with = min(without, run(nil)), min(with, run(trace.New(0)))
		n += 2 * frames
	}
	b.ReportMetric(float64((cpu()-began).Nanoseconds())/float64(n), "cpu-ns/frame")
	b.ReportMetric(float64(without.Nanoseconds())/frames, "plain-ns/frame")
	b.ReportMetric(float64((with-without).Nanoseconds())/frames, "trace-ns/frame")
}

// BenchmarkStagesSideBySide compares a pipeline of two equal stages with the same work done
// serially. On two idle cores the ratio approaches 2.
func BenchmarkStagesSideBySide(b *testing.B) {
	const frames = 240
	spin := func() {
		x := uint64(1)
		for range 100_000 {
			x = x*6364136223846793005 + 1442695040888963407
		}
		if x == 0 {
			b.Fatal("unlikely")
		}
	}
	work := func(context.Context, *frame.Frame) error { spin(); return nil }
	var ratios []float64
	for b.Loop() {
		began := time.Now()
		for range frames {
			spin()
			spin()
		}
		one := time.Since(began)
		e := newEngine(&counted{n: frames}, sinkFunc(func(*result.Record) error { return nil }), 2, block, step{id: "a", run: work}, step{id: "b", run: work})
		sum, _, err := e.run(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		ratios = append(ratios, float64(one)/float64(sum.Duration))
	}
	b.ReportMetric(quantile(ratios, 50), "times-sequential")
}
