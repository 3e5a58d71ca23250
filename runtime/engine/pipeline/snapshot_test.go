package pipeline

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/engine/nvtx/nvtxtest"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/schema/plan"
)

// A snapshot in the middle of a run agrees with the summary.
func TestARunningPipelineServesSnapshots(t *testing.T) {
	dir := t.TempDir()
	p, seen := watched(t, pipelines.Path(dir, "door"))
	faces, err := p.Metrics().Counter("a", "faces")
	if err != nil {
		t.Fatal(err)
	}
	p.steps[0].run = func(_ context.Context, f *frame.Frame) error {
		faces.Add(2)
		if f.ID == 3 {
			return errors.New("broken")
		}
		return nil
	}
	sum, err := p.Run(t.Context())
	if !errors.Is(err, ErrFrames) {
		t.Fatal(err)
	}
	s := <-seen
	if s.Pipeline != "door" || s.PID != os.Getpid() || s.Frames.Done != 5 || s.Frames.Failed != 1 || s.Failures["a"] != 1 || s.Copies["source"] != s.Frames.Read {
		t.Errorf("%+v", s)
	}
	if len(s.Stages) != 3 || s.Stages[0].Queue != nil || s.Stages[1].ID != "a" || s.Stages[2].Queue.Capacity != 2 || s.Stages[1].Service.Count < 6 {
		t.Errorf("%+v", s.Stages)
	}
	if n := s.Numbers; len(n) != 1 || n[0].Stage != "a" || *n[0].Value < 12 {
		t.Errorf("%+v", n)
	}
	if s.Latency.Count != 5 || s.Counts.MinorFaults == nil || s.Throttled != nil || s.Target == nil || *s.Target != 100e6 {
		t.Errorf("%+v", s)
	}
	if sum.Frames.Done != 9 || sum.Counters.CPU == nil {
		t.Errorf("%+v", sum)
	}
	if _, err := os.Stat(pipelines.Path(dir, "door")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// watched is a pipeline of ten frames that looks at itself from outside while it
// writes the sixth.
func watched(t *testing.T, path string) (*Pipeline, chan *live.Snapshot) {
	t.Helper()
	seen := make(chan *live.Snapshot, 1)
	n := 0
	e := newEngine(&counted{n: 10}, sinkFunc(func(*result.Record) error {
		if n++; n == 6 && path != "" {
			s, err := pipelines.Read(path, live.Decode)
			if err != nil {
				t.Error(err)
				s = &live.Snapshot{}
			}
			seen <- s
		}
		return nil
	}), 2, block, step{id: "a", run: nothing})
	p := &Pipeline{view: liveView{path: path}, slo: &plan.PipelineSLO{}}
	p.name, p.target, p.source, p.sink, p.steps, p.frames = "door", 100e6, e.source, e.sink, e.steps, e.frames
	p.capacity, p.policy, p.drain, p.trace = e.capacity, e.policy, e.drain, e.trace
	return p, seen
}

func TestAPipelineRunsWithoutItsSocket(t *testing.T) {
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p, _ := watched(t, "")
	var notes []string
	p.view.path, p.view.note = pipelines.Path(file, "door"), func(err error) { notes = append(notes, err.Error()) }
	sum, err := p.Run(t.Context())
	if err != nil || sum.Frames.Done != 10 || len(notes) != 1 || !strings.Contains(notes[0], "are unavailable") {
		t.Errorf("%+v, %v, %q", sum, err, notes)
	}
}

func TestStagesAreMarkedForProfilers(t *testing.T) {
	path, calls := nvtxtest.Library(t)
	p, err := New(Options{
		Name: "belt", NVTX: path, Sink: sinkFunc(func(*result.Record) error { return nil }), Note: func(err error) { t.Error(err) }, Frames: 3,
		Plan: plan.Pipeline{
			Source: plan.PipelineSource{Kind: "synthetic", Format: "nv12", Width: 64, Height: 64, FPSNum: 30, FPSDen: 1},
			Stages: []plan.PipelineStage{
				{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 8, Height: 8}},
				{ID: "out", Kind: "postprocess", Input: "pre", Post: &plan.Post{Kind: "raw"}},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	starts, ends := map[string]int{}, 0
	for _, call := range calls() {
		f := strings.Fields(call)
		if f[0] == "end" {
			ends++
		} else {
			starts[f[2]]++
		}
	}
	if starts["belt/pre"] != 3 || starts["belt/out"] != 3 || ends != 6 {
		t.Errorf("%v, and %d ends", starts, ends)
	}
}

// BenchmarkProfiler measures how much processor time observation adds to a pipeline of 1 ms
// per frame. share-% is the median of pairs.
func BenchmarkProfiler(b *testing.B) {
	measure := func(looked bool) float64 {
		took, err := MeasureOverhead(b.Context(), 2000, looked)
		if err != nil {
			b.Fatal(err)
		}
		return float64(took.Nanoseconds())
	}
	measure(false)
	var plain, shares []float64
	for b.Loop() {
		p := measure(false)
		plain, shares = append(plain, p), append(shares, 100*(measure(true)/p-1))
	}
	b.ReportMetric(quantile(plain, 50)/1e3, "cpu-µs/frame")
	b.ReportMetric(quantile(shares, 50), "share-%")
}
