package pipeline

import (
	"context"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/ort"
	"github.com/yoctune/yoctune/runtime/trace"
	"github.com/yoctune/yoctune/tests/models"
)

// BenchmarkOverRawRuntime runs the recogniser bare and through the engine in
// turns: the median of the differences, in µs a frame, is what the engine costs.
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
	in, err := rt.NewTensor([]int64{1, 3, 48, 32})
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	out, err := s.NewOutput(in)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	const frames = 40
	bare := func() error {
		for range frames {
			if err := s.Run(in, out); err != nil {
				return err
			}
		}
		return nil
	}
	engine := func() error {
		e := newEngine(&counted{n: frames}, sinkFunc(func(*Record) error { return nil }), 1, block,
			step{id: "m", run: func(context.Context, *frame) error { return s.Run(in, out) }})
		_, _, err := e.run(b.Context())
		return err
	}
	var wall, busy, alone []float64
	for b.Loop() {
		w0, c0, err := measured(bare)
		if err != nil {
			b.Fatal(err)
		}
		w1, c1, err := measured(engine)
		if err != nil {
			b.Fatal(err)
		}
		alone = append(alone, w0/frames)
		wall, busy = append(wall, (w1-w0)/frames), append(busy, (c1-c0)/frames)
	}
	b.ReportMetric(median(alone), "bare-µs/frame")
	b.ReportMetric(median(wall), "engine-µs/frame")
	b.ReportMetric(median(busy), "engine-cpu-µs/frame")
}

// measured is how long do takes, and how much processor time, both in µs.
func measured(do func() error) (wall, cpu float64, err error) {
	c0, err := processorTime()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return 0, 0, err
	}
	took := time.Since(began)
	c1, err := processorTime()
	return float64(took.Nanoseconds()) / 1e3, float64((c1 - c0).Nanoseconds()) / 1e3, err
}

// processorTime is what this process has used so far.
func processorTime() (time.Duration, error) {
	var u unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// BenchmarkTraceCost is the engine with and without its recorder, in turns, with
// three stages that do nothing: all of it is overhead.
func BenchmarkTraceCost(b *testing.B) {
	const frames = 2000
	run := func(r *trace.Recorder) time.Duration {
		e := newEngine(&counted{n: frames}, sinkFunc(func(*Record) error { return nil }), 4, block,
			step{id: "a", run: nothing}, step{id: "b", run: nothing}, step{id: "c", run: nothing})
		e.trace = r
		sum, _, err := e.run(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return time.Duration(sum.Duration)
	}
	cpu := func() time.Duration {
		d, err := processorTime()
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

// BenchmarkStagesSideBySide is a pipeline of two stages of equal work against the
// same work one after the other; on two free cores the ratio nears 2.
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
	work := func(context.Context, *frame) error { spin(); return nil }
	var ratios []float64
	for b.Loop() {
		began := time.Now()
		for range frames {
			spin()
			spin()
		}
		one := time.Since(began)
		e := newEngine(&counted{n: frames}, sinkFunc(func(*Record) error { return nil }), 2, block, step{id: "a", run: work}, step{id: "b", run: work})
		sum, _, err := e.run(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		ratios = append(ratios, float64(one)/float64(sum.Duration))
	}
	b.ReportMetric(median(ratios), "times-sequential")
}
