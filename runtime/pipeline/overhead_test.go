package pipeline

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/ort"
	"github.com/yoctune/yoctune/runtime/trace"
	"github.com/yoctune/yoctune/tests/models"
)

// BenchmarkOverRawRuntime runs the recogniser through the engine and bare, frame
// by frame in turns: the difference, in µs a frame, is what the engine costs.
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
	const frames = 3
	bare := func() time.Duration {
		began := time.Now()
		for range frames {
			if err := s.Run(in, out); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(began)
	}
	engine := func() time.Duration {
		e := newEngine(&counted{n: frames}, sinkFunc(func(*Record) error { return nil }), 1, block,
			step{id: "m", run: func(context.Context, *frame) error { return s.Run(in, out) }})
		sum, _, err := e.run(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return time.Duration(sum.Duration)
	}
	least, through := time.Hour, time.Hour
	for b.Loop() {
		least, through = min(least, bare()), min(through, engine())
	}
	b.ReportMetric(float64(least.Microseconds())/frames, "bare-µs/frame")
	b.ReportMetric(float64((through-least).Microseconds())/frames, "engine-µs/frame")
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
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
	const frames = 24
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
	one, both := time.Hour, time.Hour
	for b.Loop() {
		began := time.Now()
		for range frames {
			spin()
			spin()
		}
		one = min(one, time.Since(began))
		e := newEngine(&counted{n: frames}, sinkFunc(func(*Record) error { return nil }), 2, block, step{id: "a", run: work}, step{id: "b", run: work})
		sum, _, err := e.run(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		both = min(both, time.Duration(sum.Duration))
	}
	b.ReportMetric(float64(one)/float64(both), "times-sequential")
}
