package bench

import (
	"context"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline"
)

// observedFrames is how many frames of a millisecond one sample takes.
const observedFrames = 100

// profiler is what it costs a pipeline to be recorded and looked at; the reference are
// the same frames without either.
func profiler(*rig) ([]benchmark, error) {
	return []benchmark{{
		name: "a frame of a pipeline that is recorded and looked at", clock: processClock,
		run: func(ctx context.Context) (time.Duration, error) {
			return pipeline.Observed(ctx, observedFrames, true)
		},
		reference: &reference{name: "the same frame, not looked at", run: func() (time.Duration, error) {
			return pipeline.Observed(context.Background(), observedFrames, false)
		}},
	}}, nil
}
