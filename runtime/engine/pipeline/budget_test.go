package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yoctune/yoctune/compiler/check/budget"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/sink"
	"github.com/yoctune/yoctune/schema/plan"
)

// machine is a device with some memory and links.
type machine struct {
	rootfs.FS
	available atomic.Int64 // bytes
	speed     string       // of every link
}

func (m *machine) ReadFile(string, int) ([]byte, error) {
	return fmt.Appendf(nil, "MemTotal: 8000000 kB\nMemAvailable: %d kB\n", m.available.Load()>>10), nil
}

func (m *machine) Read(name string) (rootfs.Content, error) {
	if !strings.HasSuffix(name, "/speed") || m.speed == "" {
		return rootfs.Content{}, os.ErrNotExist
	}
	return rootfs.Content{Text: m.speed + "\n"}, nil
}

// small is a pipeline that writes shapes to a file, with a budget.
func small(b plan.PipelineBudget) plan.Pipeline {
	return plan.Pipeline{
		Source: plan.PipelineSource{Kind: "synthetic", Format: "nv12", Width: 32, Height: 16, FPSNum: 200, FPSDen: 1},
		Stages: []plan.PipelineStage{
			{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 4, Height: 2, Fit: "stretch"}},
			{ID: "dump", Kind: "postprocess", Input: "pre", Post: &plan.Post{Kind: "raw"}},
		},
		Budget: &b,
	}
}

func TestAnUnattainableBudgetIsRefusedWithFigures(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "results.1"), make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	file := plan.PipelineSink{Kind: "ndjson", Path: filepath.Join(dir, "results")}
	rotated := file
	rotated.Rotate = &plan.Rotate{Size: 16 << 20, Keep: 3}
	remote := plan.PipelineSink{Kind: "http", URL: "http://127.0.0.1:9/"}
	for _, c := range []struct {
		name     string
		budget   plan.PipelineBudget
		sink     plan.PipelineSink
		speed    string
		wantText string // "" when it starts
		note     string
	}{
		{"it is kept", plan.PipelineBudget{Memory: 8 << 30, FreeMemory: 1 << 30, FreeDisk: 90 << 20}, file, "", "", ""},
		{"too little memory is free", plan.PipelineBudget{FreeMemory: 3 << 30}, file, "", "budget.keepFree.memory is 3 GiB, and there are 2 GiB available", ""},
		{"the process has more", plan.PipelineBudget{Memory: 1 << 20}, file, "", "budget.memory is 1 MiB, and the process has ", ""},
		{"the disk is full", plan.PipelineBudget{FreeDisk: 200 << 20}, file, "", dir + " has 100 MiB free", ""},
		{"the files grow", plan.PipelineBudget{FreeDisk: 40 << 20}, rotated, "", "may grow by 63 MiB", ""},
		{"the files have room to grow", plan.PipelineBudget{FreeDisk: 30 << 20}, rotated, "", "", ""},
		{"the link is slower", plan.PipelineBudget{NetOut: 2 << 20}, remote, "10", "budget.netOut is 2 MiB/s, and lo carries 1.2 MiB/s (10 Mbit/s)", ""},
		{"the link carries it", plan.PipelineBudget{NetOut: 2 << 20}, remote, "1000", "", ""},
		{"a link without a speed", plan.PipelineBudget{NetOut: 2 << 20}, remote, "-1", "", "the speed of lo is not known"},
	} {
		m := &machine{speed: c.speed}
		m.available.Store(2 << 30)
		pl := small(c.budget)
		pl.Sink = c.sink
		noted := ""
		p, err := New(Options{
			Name: "p", Plan: pl, Device: m, Note: func(err error) { noted += err.Error() },
			room: func(string) (int64, error) { return 100 << 20, nil },
		})
		if err == nil {
			err = p.Close()
		} else if !errors.Is(err, ErrBudget) {
			t.Errorf("%s: %v is not an ErrBudget", c.name, err)
		}
		if (err == nil) != (c.wantText == "") || err != nil && !strings.Contains(err.Error(), c.wantText) || !strings.Contains(noted, c.note) {
			t.Errorf("%s: %v; noted %q", c.name, err, noted)
		}
	}
}

// While too little memory is free, frames of a live source are dropped before any work, and
// other sources wait.
func TestNoFrameStartsWhileTheReserveIsUsed(t *testing.T) {
	for _, live := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			worked := 0
			src := &counted{n: 100, rate: frame.Rate{Num: 100, Den: 1}}
			e := newEngine(src, &kept{}, 1, dropOldest, step{id: "a", run: func(context.Context, *frame.Frame) error { worked++; return nil }})
			if !live {
				src.rate, e.policy = frame.Rate{}, block
			}
			e.live = live
			m := &machine{}
			m.available.Store(1 << 30)
			r := &budgetGuard{budget: plan.PipelineBudget{FreeMemory: 512 << 20}, dev: m, say: e.event}
			r.memory.Store("")
			e.reserve = r.memoryShortage
			low := time.AfterFunc(300*time.Millisecond, func() { m.available.Store(100 << 20); r.measure() })
			back := time.AfterFunc(600*time.Millisecond, func() { m.available.Store(1 << 30); r.measure() })
			defer low.Stop()
			defer back.Stop()
			if !live {
				m.available.Store(100 << 20)
				r.measure()
			}
			s, _, err := e.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			balanced(t, s)
			events := fmt.Sprint(s.Events)
			switch left := s.Drops[reasonReserve]; {
			case !strings.Contains(events, "budget.keepFree.memory is 512 MiB, and there are 100 MiB available") || !strings.Contains(events, "there is enough again"):
				t.Errorf("live %t: the events are %s", live, events)
			case live && (left < 29 || left > 31 || worked != 100-int(left)):
				t.Errorf("%d frames were left out, %d worked on: 0.3 s at 100 a second are 30", left, worked)
			case !live && (worked != 100 || time.Duration(s.Duration) < 600*time.Millisecond):
				t.Errorf("a file lost frames or did not wait: %d done in %v", worked, time.Duration(s.Duration))
			}
		})
	}
}

func TestResultsDoNotUseReservedDiskSpace(t *testing.T) {
	free := int64(100 << 20)
	r := &budgetGuard{budget: plan.PipelineBudget{FreeDisk: 50 << 20}, dev: &machine{}, dir: "/var/log", room: func(string) (int64, error) { return free, nil }}
	r.memory.Store("")
	r.disk.Store("")
	took := 0
	s := r.limitSink(sinkFunc(func(*result.Record) error { took++; return nil }), plan.PipelineSink{Kind: "ndjson", Path: "/var/log/r"})
	write := func() error { r.measure(); return s.Write(&result.Record{}) }
	if err := write(); err != nil {
		t.Fatal(err)
	}
	free = 49 << 20
	if err := write(); !errors.Is(err, sink.ErrDegraded) || !strings.Contains(err.Error(), "budget.keepFree.disk is 50 MiB, and /var/log has 49 MiB free") {
		t.Errorf("a full disk: %v", err)
	}
	free = 60 << 20
	if err := write(); err != nil || took != 2 {
		t.Errorf("%v, %d results taken", err, took)
	}
	if got := r.usage(); got.FreeDisk == nil || *got.FreeDisk != 49<<20 {
		t.Errorf("the least was %v", got.FreeDisk)
	}
}

func TestReadsAndWritesAreRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &budgetGuard{budget: plan.PipelineBudget{NetOut: 1000, DiskRead: 1000}}
		r.memory.Store("")
		r.disk.Store("")
		rec := &result.Record{Pipeline: "p"}
		each := len(rec.AppendJSON(nil)) + 1
		s := r.limitSink(sinkFunc(func(*result.Record) error { return nil }), plan.PipelineSink{Kind: "http"})
		began := time.Now()
		for range 50 {
			if err := s.Write(rec); err != nil {
				t.Fatal(err)
			}
		}
		// The first thousand bytes are there at once.
		want := time.Duration(50*each-1000) * time.Millisecond
		if took := time.Since(began); took < want-time.Millisecond || took > want+time.Millisecond {
			t.Errorf("%d bytes at 1000 a second took %v, not %v", 50*each, took, want)
		}
		if held := time.Duration(r.usage().HeldBack); held < want-time.Millisecond {
			t.Errorf("held back for %v, not %v", held, want)
		}
		b := r.newLimiter(1)
		go func() { time.Sleep(time.Second); b.release() }()
		began = time.Now()
		if b.wait(1 << 20); time.Since(began) > 2*time.Second {
			t.Error("a stop waits for the bound")
		}
	})
}

// The engine checks the compiler's calculation: for all stages, queues and rates, no result is
// later than the worst case, and with full queues one is nearly as late.
func TestNoResultIsLaterThanTheCompilersWorstCase(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 28))
	tight := 0
	for n := range 200 {
		synctest.Test(t, func(t *testing.T) {
			ms := func(most int) time.Duration { return time.Duration(1+rng.IntN(most)) * time.Millisecond }
			pl := plan.Pipeline{Queue: plan.PipelineQueue{Capacity: 1 + rng.IntN(4), Policy: "block"}, Sink: plan.PipelineSink{Kind: "shm"}}
			live := rng.IntN(2) == 0
			src := &counted{n: 80}
			if live {
				pl.Queue.Policy = "drop-oldest"
				pl.Source = plan.PipelineSource{Live: true, Format: "nv12", FPSNum: 1000 / (5 + rng.IntN(30)), FPSDen: 1}
				src.rate = frame.Rate{Num: pl.Source.FPSNum, Den: 1}
			}
			var steps []step
			for k := range 1 + rng.IntN(3) {
				id, longest := string(rune('a'+k)), ms(25)
				st := step{id: id, instances: 1 + rng.IntN(2)}
				// Now and then shorter than declared.
				jitter := rng.IntN(2) == 0
				st.run = func(ctx context.Context, f *frame.Frame) error {
					d := longest
					if jitter {
						d -= time.Duration(f.ID%3) * longest / 4
					}
					return takes(d)(ctx, f)
				}
				steps = append(steps, st)
				pl.Stages = append(pl.Stages, plan.PipelineStage{ID: id, Instances: st.instances, Time: int64(longest)})
			}
			write := ms(6)
			pl.Sink.Time = int64(write)
			if rng.IntN(3) == 0 {
				pl.Queue.InFlight = 1 + rng.IntN(4)
			}
			e := newEngine(src, &kept{slow: func() { time.Sleep(write) }}, pl.Queue.Capacity, policy(pl.Queue.Policy), steps...)
			e.live, e.credits = live, pl.Queue.InFlight
			s, _, err := e.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			l := budget.ComputeLatency(pl, false)
			found := time.Duration(s.Latency.Total.Max)
			// Quantiles are within 1.6 %.
			if len(l.Missing) > 0 || found > l.Worst+l.Worst/50 {
				t.Errorf("%d: %+v\na result was %v late, the worst case is %v (%s)", n, pl, found, l.Worst, l.Breakdown())
			}
			if l.Worst < found*3/2 {
				tight++
			}
		})
	}
	t.Logf("in %d cases of 200 the worst case is less than 1.5 times what was found", tight)
	if tight < 70 {
		t.Error("the worst case is far from what happens")
	}
}
