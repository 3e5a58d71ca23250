package pipeline

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/degrade"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/sink"
	"github.com/yoctune/yoctune/runtime/engine/trace"
)

func TestParallelInstancesKeepTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &kept{}
		rng := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		uneven := func(ctx context.Context, f *frame.Frame) error {
			mu.Lock()
			d := time.Duration(1+rng.IntN(19)) * time.Millisecond
			mu.Unlock()
			if f.ID%17 == 3 {
				return errors.New("odd")
			}
			return takes(d)(ctx, f)
		}
		e := newEngine(&counted{n: 400}, sink, 2, block, step{id: "wide", run: uneven, instances: 4}, step{id: "b", run: nothing})
		s, _, err := e.run(t.Context())
		if !errors.Is(err, ErrFrames) {
			t.Fatal(err)
		}
		balanced(t, s)
		if !slices.IsSorted(sink.ids) || len(sink.ids) != int(s.Frames.Done) || s.Frames.Failed != 24 {
			t.Errorf("%+v; in order: %t", s.Frames, slices.IsSorted(sink.ids))
		}
		// 10 ms on average by four: 1 s for 400 frames, and some for the order.
		if d := time.Duration(s.Duration); d > 1500*time.Millisecond {
			t.Errorf("four instances took %v, one takes 4s", d)
		}
	})
}

// batched records the batch sizes a stage was given.
type batched struct {
	mu    sync.Mutex
	sizes []int
	fail  func(n int) error
	cost  func(n int) time.Duration
}

func (b *batched) run(ctx context.Context, _ int, f []*frame.Frame) error {
	b.mu.Lock()
	b.sizes = append(b.sizes, len(f))
	b.mu.Unlock()
	if b.fail != nil {
		if err := b.fail(len(f)); err != nil {
			return err
		}
	}
	return takes(b.cost(len(f)))(ctx, f[0])
}

func flat(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

func TestOnlyDeclaredBatchSizesRun(t *testing.T) {
	for _, buckets := range [][]int{{1, 2, 4}, {1, 3, 7}, {1, 5}} {
		synctest.Test(t, func(t *testing.T) {
			b := &batched{cost: flat(5 * time.Millisecond)}
			sink := &kept{}
			e := newEngine(&counted{n: 1000, rate: frame.Rate{Num: 700, Den: 1}}, sink, 8, block,
				step{id: "m", batch: b.run, buckets: buckets, delay: 3 * time.Millisecond, instances: 2})
			e.live = true
			s, _, err := e.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			balanced(t, s)
			if s.Frames.Done != 1000 || !slices.IsSorted(sink.ids) {
				t.Errorf("%+v", s.Frames)
			}
			large := 0
			for _, n := range b.sizes {
				if !slices.Contains(buckets, n) {
					t.Fatalf("a batch of %d; buckets %v", n, buckets)
				}
				if n > 1 {
					large++
				}
			}
			if large == 0 {
				t.Error("nothing was batched")
			}
		})
	}
}

// A single frame waits for a fuller batch, but not past its deadline.
func TestBatchDelayYieldsToTheDeadline(t *testing.T) {
	for _, c := range []struct {
		name   string
		target time.Duration
		worst  time.Duration
	}{
		{"no objective", 0, 61 * time.Millisecond},
		{"an objective of 30 ms", 30 * time.Millisecond, 31 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &batched{cost: flat(10 * time.Millisecond)}
			e := newEngine(&counted{n: 50, rate: frame.Rate{Num: 10, Den: 1}}, &kept{}, 8, block,
				step{id: "m", batch: b.run, buckets: []int{1, 4}, delay: 50 * time.Millisecond})
			e.live, e.target = true, int64(c.target)
			s, _, err := e.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			// The first frame sets the estimate of the time that a run takes.
			if got := time.Duration(s.Latency.Total.P95); got > c.worst {
				t.Errorf("%s: p95 %v, want at most %v", c.name, got, c.worst)
			}
		})
	}
}

func TestBatchesShrinkWhenMemoryRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &batched{cost: flat(time.Millisecond), fail: func(n int) error {
			if n > 2 {
				return errNoMemory
			}
			return nil
		}}
		e := newEngine(&counted{n: 400}, &kept{}, 8, block, step{id: "m", batch: b.run, buckets: []int{1, 2, 4, 8}})
		s, _, err := e.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, s)
		if s.Frames.Done != 400 || len(s.Events) == 0 || s.Events[0].Kind != EventBatch {
			t.Errorf("%+v %+v", s.Frames, s.Events)
		}
		tooLarge := 0
		for _, n := range b.sizes {
			if n > 2 {
				tooLarge++
			}
		}
		if tooLarge > 2 {
			t.Errorf("%d batches were too large; the stage did not learn", tooLarge)
		}
	})
}

// A frame that waits behind a run that does not end is dropped on time.
func TestOldFramesAreDroppedWhileTheStageIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(&counted{n: 10, rate: frame.Rate{Num: 100, Den: 1}}, &kept{}, 16, block,
			step{id: "slow", run: takes(10 * time.Second)})
		e.live, e.maxAge = true, int64(200*time.Millisecond)
		start, gone := time.Now(), make(chan time.Duration)
		e.ready = func() {
			go func() {
				for tooOld := uint64(0); tooOld < 9; {
					time.Sleep(5 * time.Millisecond)
					e.ledger.mu.Lock()
					tooOld = e.ledger.drops["too-old:slow"]
					e.ledger.mu.Unlock()
				}
				gone <- time.Since(start)
			}()
		}
		s, _, err := e.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, s)
		if n := s.Drops["too-old:slow"]; n != 9 {
			t.Fatalf("%d of 9 frames were dropped as too old: %v", n, s.Drops)
		}
		if at := <-gone; at > 400*time.Millisecond {
			t.Errorf("the last was dropped after %v", at)
		}
	})
}

func TestAMissedDeadlineDropsOnlyItsFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &kept{}
		var stop [2]chan struct{}
		for i := range stop {
			stop[i] = make(chan struct{}, 1)
		}
		hang := func(ctx context.Context, instance int, f []*frame.Frame) error {
			if f[0].ID%10 == 5 {
				<-stop[instance]
				return errors.New("cancelled")
			}
			return takes(5*time.Millisecond)(ctx, f[0])
		}
		resumed := 0
		e := newEngine(&counted{n: 100}, sink, 2, block, step{
			id: "m", batch: hang, deadline: 40 * time.Millisecond, instances: 2,
			cancel: func(i int) { stop[i] <- struct{}{} }, resume: func(int) { resumed++ },
		})
		s, stuck, err := e.run(t.Context())
		if err != nil || stuck {
			t.Fatalf("%v, stuck %t", err, stuck)
		}
		balanced(t, s)
		if s.Frames.Done != 90 || s.Drops["deadline:m"] != 10 || resumed != 10 || !slices.IsSorted(sink.ids) {
			t.Errorf("%+v %v, resumed %d", s.Frames, s.Drops, resumed)
		}
	})
}

// A stage that ignores its cancellation ends the run with an error that names it.
func TestAStageThatIgnoresItsDeadlineEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		e := newEngine(&counted{n: 1 << 30}, &kept{}, 1, block, step{
			id: "deaf", deadline: 100 * time.Millisecond,
			run: func(context.Context, *frame.Frame) error { <-release; return nil },
		})
		s, stuck, err := e.run(t.Context())
		if !stuck || !errors.Is(err, ErrFrames) {
			t.Errorf("%v, stuck %t", err, stuck)
		}
		balanced(t, s)
		if d := time.Duration(s.Duration); d > 4*time.Second {
			t.Errorf("it took %v to notice", d)
		}
		close(release)
		synctest.Wait()
	})
}

// With one frame in flight the fast stage does no work that the slow one drops.
func TestCreditsDropFramesBeforeWork(t *testing.T) {
	for _, credits := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			began := 0
			e := newEngine(&counted{n: 300, rate: frame.Rate{Num: 100, Den: 1}}, &kept{}, 1, dropOldest,
				step{id: "pre", run: func(ctx context.Context, f *frame.Frame) error { began++; return takes(time.Millisecond)(ctx, f) }},
				step{id: "slow", run: takes(30 * time.Millisecond)})
			e.live, e.credits = true, credits
			s, _, err := e.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			balanced(t, s)
			wasted := began - int(s.Frames.Done)
			if credits == 1 && (wasted != 0 || s.Drops["queue-full:slow"] != 0) || credits == 0 && wasted == 0 {
				t.Errorf("%d credits: %d frames preprocessed for nothing; %v", credits, wasted, s.Drops)
			}
			if worst := time.Duration(s.Latency.Total.Max); credits == 1 && worst > 63*time.Millisecond {
				t.Errorf("a result was %v old", worst)
			}
		})
	}
}

// 30 fps into a model of 43 ms, for two minutes of virtual time: 1.3 times too
// much. The ladder halves the rate.
func TestLadderStepsDownUnderOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(&counted{n: 3600, rate: frame.Rate{Num: 30, Den: 1}}, &kept{}, 1, dropOldest, step{id: "m", run: takes(43 * time.Millisecond)})
		e.live, e.target = true, int64(100*time.Millisecond)
		e.levels = []degrade.Level{
			{Bottleneck: 33 * time.Millisecond, Service: 33 * time.Millisecond},
			{Period: time.Second / 15, Bottleneck: 33 * time.Millisecond, Service: 33 * time.Millisecond},
		}
		e.ladder = degrade.New(degrade.Config{Levels: e.levels, Source: time.Second / 30, SLO: 100 * time.Millisecond})
		s, _, err := e.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, s)
		if p50 := time.Duration(s.Latency.Total.P50); p50 > 65*time.Millisecond {
			t.Errorf("p50 %v is more than 1.5 times the service", p50)
		}
		if len(s.Events) != 1 || s.Events[0].Kind != EventLevel || s.Events[0].To != 1 || s.Drops[reasonLevel] == 0 {
			t.Errorf("%+v %v", s.Events, s.Drops)
		}
		t.Logf("p50 %v, p99 %v, %+v, %d events", time.Duration(s.Latency.Total.P50), time.Duration(s.Latency.Total.P99), s.Frames, len(s.Events))
	})
}

// Each refused record drops its frame; the error is reported once.
func TestATemporarySinkErrorDropsResultsUntilItRecovers(t *testing.T) {
	n := 0
	sink := sinkFunc(func(*result.Record) error {
		if n++; n > 10 && n <= 20 {
			return errors.Join(sink.ErrDegraded, errors.New("no space left on device"))
		}
		return nil
	})
	e := newEngine(&counted{n: 50}, sink, 2, block, step{id: "a", run: nothing})
	s, _, err := e.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	balanced(t, s)
	if s.Frames.Done != 40 || s.Drops[reasonSinkDown] != 10 || len(s.Events) != 2 {
		t.Errorf("%+v %v %+v", s.Frames, s.Drops, s.Events)
	}
}

type sinkFunc func(*result.Record) error

func (f sinkFunc) Write(r *result.Record) error { return f(r) }
func (sinkFunc) Close() error                   { return nil }

// After warm-up a frame allocates nothing, through instances, batches and the
// flight recorder.
func TestAFrameAllocatesNothing(t *testing.T) {
	run := func(frames int) (mallocs uint64) {
		e := newEngine(&counted{n: frames}, sinkFunc(func(*result.Record) error { return nil }), 4, block,
			step{id: "a", run: nothing},
			step{id: "b", batch: func(context.Context, int, []*frame.Frame) error { return nil }, buckets: []int{1, 2, 4}, instances: 2, delay: time.Millisecond, deadline: time.Second},
			step{id: "c", run: nothing})
		e.maxAge, e.credits = int64(time.Minute), 8
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, _, err := e.run(t.Context())
		runtime.ReadMemStats(&after)
		if err != nil || s.Frames.Done != uint64(frames) {
			t.Fatalf("%+v %v", s, err)
		}
		return after.Mallocs - before.Mallocs
	}
	short, long := run(200), run(20200)
	// What a run of any length allocates cancels; the runtime's own timers and
	// the test's may add a few.
	if extra := int64(long) - int64(short); extra > 200 {
		t.Errorf("20,000 frames made %d allocations", extra)
	}
}

func TestTraceOfARunHasEveryFrame(t *testing.T) {
	rec := trace.New(4096)
	e := newEngine(&counted{n: 100}, &kept{}, 2, block, step{id: "a", run: nothing}, step{id: "b", run: nothing, instances: 2})
	e.trace = rec
	if _, _, err := e.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := view(t, rec, trace.Filter{})
	if v.Frames["done"] != 100 {
		t.Errorf("%+v", v.Frames)
	}
	for _, s := range v.Stages {
		if s.Runs != 100 {
			t.Errorf("stage %s has %d spans", s.Stage, s.Runs)
		}
	}
}

// If memory runs out, the batch is divided, then the CPU is used, then the frame is dropped.
func TestGPUMemoryExhaustionShrinksBatches(t *testing.T) {
	for _, tc := range []struct {
		name             string
		drop             bool
		cpu              error
		done, lost, cpus uint64
	}{
		{"the CPU has enough", false, nil, 8, 0, 8},
		{"the CPU has not", false, errNoMemory, 0, 8, 0},
		{"the CPU may not", true, nil, 0, 8, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var others atomic.Uint64
			sizes := map[int]int{}
			g := &gpuStage{locks: make([]sync.Mutex, 1),
				drop: tc.drop, others: &others,
				gpu: func(_ context.Context, _ int, f []*frame.Frame) error {
					sizes[len(f)]++
					return &core.Error{Op: "worker", Code: 2}
				},
				cpu: func(context.Context, int, []*frame.Frame) error { return tc.cpu },
			}
			infer := func(ctx context.Context, i int, f []*frame.Frame) error { return g.run(ctx, i, f) }
			e := newEngine(&counted{n: 8}, &kept{}, 8, block, step{id: "infer", buckets: []int{1, 2, 4}, batch: infer})
			sum, _, err := e.run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if f := sum.Frames; f.Done != tc.done || sum.Drops["no-memory:infer"] != tc.lost || f.Failed != 0 || others.Load() != tc.cpus {
				t.Errorf("%+v, drops %v, %d frames on the CPU, batches %v", f, sum.Drops, others.Load(), sizes)
			}
		})
	}
}
