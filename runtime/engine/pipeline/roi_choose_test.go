package pipeline

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

func TestTheBestBoxesAreCroppedAndTheOthersCounted(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	box := func(score float32, class int, edges ...float32) result.Result {
		return result.Result{Score: score, Class: class, Box: [4]float32(edges)}
	}
	f := &frame.Frame{Results: []result.Result{
		box(0.5, 2, 10, 10, 20, 20),
		box(0.9, 2, 0.5, 0.5, 3.5, 4.5),       // touches pixels 0 to 3
		box(0.8, 1, 50, 30, 70, 60),           // reaches over the edge
		box(0.9, 2, 63.5, 47.5, 64, 48),       // the last pixel; the same score as an earlier one
		box(0.99, 3, 1, 1, 2, 2),              // of another class
		box(0.99, 2, 64, 0, 70, 10),           // beside the frame
		box(0.99, 2, -9, -9, -1, -1),          //
		box(0.99, 2, 5, 5, 5, 9),              // without area
		box(0.99, 2, 9, 9, 5, 5),              // inside out
		box(0.99, 2, nan, 1, 2, 2),            //
		box(0.99, 2, 1, 1, inf, 2),            //
		box(nan, 2, 1, 1, 2, 2),               //
		box(0.4, 1, -3e38, -3e38, 3e38, 3e38), // beyond the count
	}}
	c := &cropper{counts: &cropCounts{}, width: 64, height: 48, count: 4, only: []int{1, 2}}
	c.choose(f)
	want := []frame.Crop{
		{Result: 1, Area: core.Rect{X: 0, Y: 0, Width: 4, Height: 5}},
		{Result: 3, Area: core.Rect{X: 63, Y: 47, Width: 1, Height: 1}},
		{Result: 2, Area: core.Rect{X: 50, Y: 30, Width: 14, Height: 18}},
		{Result: 0, Area: core.Rect{X: 10, Y: 10, Width: 10, Height: 10}},
	}
	if len(f.Crops) != len(want) {
		t.Fatalf("%+v", f.Crops)
	}
	for n, w := range want {
		if f.Crops[n] != w {
			t.Errorf("crop %d is %+v, want %+v", n, f.Crops[n], w)
		}
	}
	if got, want := c.counts.read(), (live.Crops{Boxes: 13, Crops: 4, Cut: 1, Beyond: 1, Other: 1, Outside: 2, Empty: 2, Invalid: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	c.margin = 0.5
	c.choose(f)
	if got, want := f.Crops[3].Area, (core.Rect{X: 5, Y: 5, Width: 20, Height: 20}); got != want {
		t.Errorf("with a margin of half the box %+v, want %+v", got, want)
	}
	if n := testing.AllocsPerRun(100, func() { c.choose(f) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzCropsAreInTheFrame(f *testing.F) {
	f.Add(float32(-1), float32(2), float32(70), float32(3), float32(0.5), float32(0.3))
	f.Add(float32(-3e38), float32(-3e38), float32(3e38), float32(3e38), float32(1), float32(1))
	f.Fuzz(func(t *testing.T, x0, y0, x1, y1, score, margin float32) {
		if !(margin >= 0 && margin <= 1) {
			return
		}
		c := &cropper{counts: &cropCounts{}, width: 63, height: 47, count: 1, margin: float64(margin)}
		fr := &frame.Frame{Results: []result.Result{{Score: score, Box: [4]float32{x0, y0, x1, y1}}}}
		c.choose(fr)
		n := c.counts.read()
		if n.Crops+n.Beyond+n.Other+n.Outside+n.Empty+n.Invalid != 1 {
			t.Fatalf("%+v", n)
		}
		for _, crop := range fr.Crops {
			a := crop.Area
			if a.X < 0 || a.Y < 0 || a.Width < 1 || a.Height < 1 || a.X+a.Width > c.width || a.Y+a.Height > c.height {
				t.Fatalf("%+v", a)
			}
		}
	})
}

// With a batch of crops every size is run only where a bucket of that size is declared, and every
// crop is in one run.
func TestRunsCoverTheCrops(t *testing.T) {
	stages := func(b *plan.ModelBatch) []plan.PipelineStage {
		return []plan.PipelineStage{{Kind: "roi", ROI: &plan.ROI{Count: 13}}, {Kind: "model", Model: &plan.Model{Batch: b}}}
	}
	for _, tc := range []struct {
		batch *plan.ModelBatch
		rows  int
	}{
		{nil, 13},
		{&plan.ModelBatch{Buckets: []int{1, 2, 4, 8}}, 13},
		{&plan.ModelBatch{Buckets: []int{1, 3, 5}}, 13},
		{&plan.ModelBatch{Buckets: []int{4}, Pad: true}, 16},
		{&plan.ModelBatch{Buckets: []int{2, 8}, Pad: true}, 16},
		{&plan.ModelBatch{Buckets: []int{20}, Pad: true}, 20},
	} {
		checkRuns(t, stages(tc.batch), tc.rows)
	}
}

func checkRuns(t *testing.T, stages []plan.PipelineStage, rows int) {
	t.Helper()
	model := &stages[1]
	buckets := registry.CropBuckets(model)
	spans := registry.CropSpans(model, stages[0].ROI.Count)
	for n := 1; n <= stages[0].ROI.Count; n++ {
		at := 0
		for at < n {
			size := registry.CropRun(model, buckets[len(buckets)-1], n-at)
			if !slices.Contains(buckets, size) || !slices.Contains(spans, registry.CropSpan{At: at, Size: size}) || at+size > rows {
				t.Errorf("%v, %d crops: a run of %d at %d", model.Model.Batch, n, size, at)
			}
			at += size
		}
		if pad := model.Model.Batch != nil && model.Model.Batch.Pad; at > n && !pad {
			t.Errorf("%v, %d crops: runs of %d", model.Model.Batch, n, at)
		}
	}
	for k := range stages {
		if got := registry.CropRows(stages, k); got != rows {
			t.Errorf("%v: room for %d crops in stage %d, want %d", model.Model.Batch, got, k, rows)
		}
	}
}

// Without memory for a batch of crops the runs are repeated with the next smaller bucket, and stay
// that small for a while; a crop that does not fit alone is an error.
func TestRunsOnCropsShrinkWhenMemoryRunsOut(t *testing.T) {
	p := &Pipeline{}
	var err error
	if p.clock, err = frame.NewClock(); err != nil {
		t.Fatal(err)
	}
	s := &plan.PipelineStage{ID: "look", Model: &plan.Model{Batch: &plan.ModelBatch{Buckets: []int{1, 2, 4}}}}
	for _, none := range []error{fmt.Errorf("%w: no room", errNoMemory), fmt.Errorf("worker: %w", core.ErrOOM)} {
		m := &cropModel{p: p, s: s, limits: []cropLimit{{size: 4}}}
		most := 2
		run := func(sizes *[]int) error {
			at := 0
			return m.runAll(0, 7, func(span registry.CropSpan) error {
				*sizes = append(*sizes, span.Size)
				if span.Size > most {
					return none
				}
				if span.At != at {
					t.Errorf("a run at %d, and %d crops are done", span.At, at)
				}
				at += span.Size
				return nil
			})
		}
		var first, second []int
		if err := errors.Join(run(&first), run(&second)); err != nil || !slices.Equal(first, []int{4, 2, 2, 2, 1}) || !slices.Equal(second, []int{2, 2, 2, 1}) {
			t.Errorf("%v then %v: %v", first, second, err)
		}
		m.limits[0].until = time.Now().Add(-time.Second)
		var third []int
		if err := run(&third); err != nil || !slices.Equal(third, first) {
			t.Errorf("after the rest %v: %v", third, err)
		}
		most = 0
		if err := run(&third); !errors.Is(err, none) {
			t.Errorf("no crop fits: %v", err)
		}
	}
	if len(p.events) < 2 || p.events[0].Kind != EventBatch || p.events[0].From != 4 || p.events[0].To != 2 {
		t.Errorf("%+v", p.events)
	}
}
