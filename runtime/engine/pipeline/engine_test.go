package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/sink"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/source"
	"github.com/yoctune/yoctune/runtime/engine/trace"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// counted is a source of n tiny frames; fail is returned after them.
type counted struct {
	n    int
	rate frame.Rate
	fail error
}

func (c *counted) Format() frame.Format { return frame.Format{Width: 2, Height: 2, Rate: c.rate} }
func (c *counted) Interrupt()           {}
func (c *counted) Close() error         { return nil }
func (c *counted) ReadFrame([]byte) error {
	if c.n == 0 {
		if c.fail != nil {
			return c.fail
		}
		return io.EOF
	}
	c.n--
	return nil
}

// kept is a sink that remembers frame ids and latencies.
type kept struct {
	ids  []uint64
	sums []bool // the stages add up to the total
	err  error  // returned from the third frame on
	slow func()
}

func (k *kept) Write(r *result.Record) error {
	if k.slow != nil {
		k.slow()
	}
	if k.err != nil && len(k.ids) == 2 {
		return k.err
	}
	var sum int64
	for _, s := range r.Latency.Stages {
		sum += s.Queue + s.Service
	}
	k.ids = append(k.ids, r.Frame)
	k.sums = append(k.sums, sum == r.Latency.Total)
	return nil
}
func (k *kept) Close() error { return nil }

func newEngine(src source.Source, sink sink.Sink, capacity int, p policy, steps ...step) *engine {
	e := &engine{
		name: "test", source: src, sink: sink, steps: steps,
		capacity: capacity, policy: p, drain: time.Second,
		frames: make([]frame.Frame, framesFor(steps, capacity, 0)), trace: trace.New(256),
	}
	for i := range e.frames {
		e.frames[i].Spent = make([]frame.Span, len(steps)+1)
	}
	return e
}

func takes(d time.Duration) func(context.Context, *frame.Frame) error {
	return func(ctx context.Context, _ *frame.Frame) error {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func nothing(context.Context, *frame.Frame) error { return nil }

// balanced reports whether every frame has one fate and every fate a reason.
func balanced(t *testing.T, s *Summary) {
	t.Helper()
	f := s.Frames
	if f.Read != f.Done+f.Dropped+f.Failed {
		t.Errorf("%d frames read, but %d done + %d dropped + %d failed", f.Read, f.Done, f.Dropped, f.Failed)
	}
	var drops, failures uint64
	for _, n := range s.Drops {
		drops += n
	}
	for _, n := range s.Failures {
		failures += n
	}
	if drops != f.Dropped || failures != f.Failed {
		t.Errorf("reasons cover %d drops of %d, %d failures of %d", drops, f.Dropped, failures, f.Failed)
	}
}

func TestFileSourceLosesNoFrameAndKeepsTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &kept{}
		e := newEngine(&counted{n: 100}, sink, 2, block,
			step{id: "a", run: takes(time.Millisecond)}, step{id: "b", run: takes(3 * time.Millisecond)}, step{id: "c", run: nothing})
		s, _, err := e.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, s)
		if s.Frames.Done != 100 || s.Ended != reasonEnd {
			t.Errorf("done %d, ended %s", s.Frames.Done, s.Ended)
		}
		for n, id := range sink.ids {
			if id != uint64(n) {
				t.Fatalf("result %d is of frame %d", n, id)
			}
			if !sink.sums[n] {
				t.Fatalf("frame %d: stages do not add up to the total", n)
			}
		}
	})
}

// Three stages of equal length take as long per frame as one.
func TestStagesOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := 10 * time.Millisecond
		e := newEngine(&counted{n: 100}, &kept{}, 1, block, step{id: "a", run: takes(d)}, step{id: "b", run: takes(d)}, step{id: "c", run: takes(d)})
		s, _, err := e.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := time.Duration(s.Duration), 102*d; got != want {
			t.Errorf("100 frames took %v, overlapped stages take %v", got, want)
		}
	})
}

// The stage processes two of three frames. Those are fresh, and the others have a reason.
func TestLiveSourceDropsTheOldestAndStaysFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &kept{}
		e := newEngine(&counted{n: 300, rate: frame.Rate{Num: 100, Den: 1}}, sink, 1, dropOldest, step{id: "slow", run: takes(15 * time.Millisecond)})
		e.live = true
		s, _, err := e.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, s)
		if s.Frames.Read != 300 || s.Frames.Done < 195 || s.Drops["queue-full:slow"] != s.Frames.Dropped {
			t.Errorf("%+v %v", s.Frames, s.Drops)
		}
		// One frame in work, one waiting: at most two services old.
		if worst := time.Duration(s.Latency.Total.Max); worst > 31*time.Millisecond {
			t.Errorf("a result was %v old", worst)
		}
	})
}

func TestDropNewestKeepsWaitingFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &kept{}
		e := newEngine(&counted{n: 6, rate: frame.Rate{Num: 1000, Den: 1}}, sink, 1, dropNewest, step{id: "slow", run: takes(time.Second)})
		e.live = true
		s, _, err := e.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, s)
		if fmt.Sprint(sink.ids) != "[0 1]" {
			t.Errorf("frames %v came through, the first two came first", sink.ids)
		}
	})
}

func TestFailedFramesAreCountedAndOthersContinue(t *testing.T) {
	cause := errors.New("bad luck")
	e := newEngine(&counted{n: 50}, &kept{}, 2, block, step{id: "odd", run: func(_ context.Context, f *frame.Frame) error {
		if f.ID%2 == 1 {
			return cause
		}
		return nil
	}})
	s, _, err := e.run(t.Context())
	if !errors.Is(err, ErrFrames) || !errors.Is(err, cause) || !strings.Contains(err.Error(), "25 of 50") {
		t.Errorf("error: %v", err)
	}
	balanced(t, s)
	if s.Frames.Done != 25 || s.Failures["odd"] != 25 || len(s.Errors) != keptErrors || s.Errors[0].Frame != 1 {
		t.Errorf("%+v", s)
	}
}

func TestFramesBeforeATruncatedOneAreKept(t *testing.T) {
	e := newEngine(&counted{n: 7, fail: fmt.Errorf("%w: 3 of 6 bytes", frame.ErrTruncated)}, &kept{}, 2, block, step{id: "a", run: nothing})
	s, _, err := e.run(t.Context())
	if !errors.Is(err, frame.ErrTruncated) || !strings.Contains(err.Error(), "frame 7") {
		t.Errorf("error: %v", err)
	}
	balanced(t, s)
	if s.Frames.Done != 7 || s.Failures[idSource] != 1 || s.Ended != reasonError {
		t.Errorf("%+v", s)
	}
}

func TestAFailedSinkStopsThePipeline(t *testing.T) {
	full := errors.New("no space left on device")
	broken := &kept{err: full}
	e := newEngine(&counted{n: 1 << 30}, broken, 2, block, step{id: "a", run: nothing})
	s, stuck, err := e.run(t.Context())
	if !errors.Is(err, sink.ErrFailed) || !errors.Is(err, full) || stuck {
		t.Errorf("error: %v, stuck %t", err, stuck)
	}
	balanced(t, s)
	if s.Frames.Done != 2 || s.Ended != reasonError {
		t.Errorf("%+v", s)
	}
}

func TestStopDrainsFramesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		e := newEngine(&counted{n: 1 << 30}, &kept{}, 2, block, step{id: "a", run: takes(10 * time.Millisecond)}, step{id: "b", run: takes(10 * time.Millisecond)})
		time.AfterFunc(time.Second, stop)
		s, stuck, err := e.run(ctx)
		if err != nil || stuck {
			t.Fatalf("error %v, stuck %t", err, stuck)
		}
		balanced(t, s)
		if s.Ended != reasonStopped || s.Frames.Dropped != 0 {
			t.Errorf("%+v", s)
		}
		if d := time.Duration(s.Duration); d > 1100*time.Millisecond {
			t.Errorf("it took %v to stop", d-time.Second)
		}
	})
}

func TestStopAbortsWorkThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		e := newEngine(&counted{n: 1 << 30}, &kept{}, 2, block, step{id: "hour", run: takes(time.Hour)})
		aborted := false
		e.abort = func() { aborted = true }
		time.AfterFunc(time.Second, stop)
		s, stuck, err := e.run(ctx)
		if err != nil || stuck || !aborted {
			t.Fatalf("error %v, stuck %t, aborted %t", err, stuck, aborted)
		}
		balanced(t, s)
		if s.Drops[reasonShutdown] != s.Frames.Read || s.Frames.Read == 0 {
			t.Errorf("%+v %v", s.Frames, s.Drops)
		}
		if d := time.Duration(s.Duration); d != 2*time.Second {
			t.Errorf("ended after %v; the stop came after 1s and leaves 1s", d)
		}
	})
}

// A stage that ignores the stop does not keep the program from ending.
func TestStopDoesNotWaitForAStageThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		release := make(chan struct{})
		e := newEngine(&counted{n: 1 << 30}, &kept{}, 1, block, step{id: "deaf", run: func(context.Context, *frame.Frame) error {
			<-release
			return nil
		}})
		time.AfterFunc(time.Second, stop)
		s, stuck, err := e.run(ctx)
		if !stuck || err == nil {
			t.Fatalf("error %v, stuck %t", err, stuck)
		}
		balanced(t, s)
		close(release)
		synctest.Wait()
	})
}

func TestFrameLimitEndsTheRun(t *testing.T) {
	e := newEngine(&counted{n: 1 << 30}, &kept{}, 2, block, step{id: "a", run: nothing})
	e.limit = 12
	s, _, err := e.run(t.Context())
	if err != nil || s.Frames.Done != 12 || s.Ended != reasonLimit {
		t.Errorf("%+v %v", s, err)
	}
}

// A frame is in one place at a time under every policy.
func TestAFrameIsNeverInTwoPlaces(t *testing.T) {
	for _, p := range []policy{block, dropOldest, dropNewest} {
		t.Run(string(p), func(t *testing.T) {
			var owned sync.Map
			own := func(_ context.Context, f *frame.Frame) error {
				o, _ := owned.LoadOrStore(f, new(atomic.Int32))
				n := o.(*atomic.Int32)
				if n.Add(1) != 1 {
					t.Error("two stages have one frame")
				}
				n.Add(-1)
				return nil
			}
			e := newEngine(&counted{n: 20000}, &kept{}, 1, p, step{id: "a", run: own}, step{id: "b", run: own}, step{id: "c", run: own})
			s, _, err := e.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			balanced(t, s)
			if len(e.free) != len(e.frames) {
				t.Errorf("%d of %d frames came back", len(e.free), len(e.frames))
			}
		})
	}
}

func TestRecordsAreAlwaysValidJSON(t *testing.T) {
	var out bytes.Buffer
	lines := sink.NewNDJSON(&out)
	nan := float32(0)
	nan /= nan
	err := lines.Write(&result.Record{
		Pipeline: "quote\" \\ \n \xff 漢", Frame: 3, Capture: 5,
		Results: []result.Result{
			{Kind: registry.CTC, Text: "A\x00\u007fé", Score: nan},
			{Kind: registry.Argmax, Class: 2, Label: "</script>", Score: 0.25},
			{Kind: registry.Raw, Shape: []int64{1, 2}, Values: []float32{1e-20, nan}},
		},
		Latency: result.Latency{Total: 7, Stages: []result.StageLatency{{ID: "a", Queue: 3, Service: 4}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Type     string
		Pipeline string
		Frame    int
		Results  []map[string]any
		Latency  struct {
			Total  int
			Stages map[string]map[string]int
		} `json:"latency_ns"`
	}
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if v.Type != "result" || v.Pipeline != "quote\" \\ \n \ufffd 漢" || v.Results[0]["text"] != "A\x00\x7fé" ||
		v.Results[0]["score"] != nil || v.Results[1]["label"] != "</script>" || v.Latency.Stages["a"]["service"] != 4 {
		t.Errorf("%+v", v)
	}
	if strings.Count(out.String(), "\n") != 1 || !strings.HasSuffix(out.String(), "\n") {
		t.Errorf("not one line: %q", out.String())
	}
}

func TestQuantilesAreWithinTwoPercent(t *testing.T) {
	var h durations
	for v := int64(1); v <= 100000; v++ {
		h.add(v * 1000)
	}
	q := h.quantiles()
	for _, c := range []struct{ got, want int64 }{{q.P50, 50e6}, {q.P95, 95e6}, {q.P99, 99e6}, {q.Max, 100e6}} {
		if d := c.got - c.want; d > c.want/50 || -d > c.want/50 {
			t.Errorf("got %d, want %d", c.got, c.want)
		}
	}
}

func BenchmarkEnginePerFrame(b *testing.B) {
	e := newEngine(&counted{n: b.N}, &kept{}, 4, block, step{id: "a", run: nothing}, step{id: "b", run: nothing}, step{id: "c", run: nothing})
	b.ReportAllocs()
	if _, _, err := e.run(b.Context()); err != nil {
		b.Fatal(err)
	}
}
