package pipeline

import (
	"slices"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/schema/plan"
)

// The ids in a recording do not depend on when its frames were read.
func TestTheTrackerFollowsTheRecording(t *testing.T) {
	ids := func(step int64) (got []uint64) {
		follow, err := buildTrack(stageBuilder{builder: &builder{}, s: &plan.PipelineStage{ID: "follow", Kind: "track", Track: &plan.Track{Hits: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		for n := range int64(6) {
			x := float32(5 * n)
			f := &frame.Frame{Capture: n * step, Moment: n * 1e8, Results: []result.Result{{Box: [4]float32{x, 10, x + 60, 60}}}}
			if err := follow(t.Context(), 0, []*frame.Frame{f}); err != nil {
				t.Fatal(err)
			}
			got = append(got, f.Results[0].ID)
		}
		return got
	}
	quick, slow := ids(1e6), ids(60e9)
	if !slices.Equal(quick, slow) || quick[0] == 0 {
		t.Errorf("frames that were read quickly have the ids %v, slowly %v", quick, slow)
	}
}
