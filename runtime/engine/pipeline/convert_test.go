package pipeline

import (
	"runtime"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/schema/plan"
)

// A frame allocates nothing on its way through a tensor of uint8 elements and its conversion.
func TestConvertedTensorsAllocateNothingPerFrame(t *testing.T) {
	mallocs := func(frames uint64) uint64 {
		pl := plan.Pipeline{
			Source: plan.PipelineSource{Kind: "synthetic", Format: "nv12", Width: 16, Height: 8},
			Stages: []plan.PipelineStage{
				{ID: "pre", Kind: "preprocess", Input: "source", Preprocess: &plan.Preprocess{Width: 4, Height: 2, DType: "u8", Layout: "nhwc"}},
				{ID: "dump", Kind: "postprocess", Input: "pre", Post: &plan.Post{Kind: "raw"}},
			},
		}
		p, err := New(Options{Name: "own", Plan: pl, Frames: frames, Sink: sinkFunc(func(*result.Record) error { return nil })})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := p.Run(t.Context())
		runtime.ReadMemStats(&after)
		if err != nil || s.Frames.Done != frames {
			t.Fatalf("%+v %v", s, err)
		}
		return after.Mallocs - before.Mallocs
	}
	few, many := mallocs(200), mallocs(5200)
	// What a run of any length allocates cancels; timers and the sampling of memory add a few.
	if extra := int64(many) - int64(few); extra > 500 {
		t.Errorf("5,000 frames made %d allocations", extra)
	}
}
