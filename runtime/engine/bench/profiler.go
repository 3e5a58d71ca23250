package bench

import (
	"context"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline"
)

// observedFrames is the number of frames per sample; each takes one millisecond of work.
const observedFrames = 100

// profilerSuite measures what recording and monitoring cost a pipeline. The reference
// processes the same frames without them.
func profilerSuite(*rig) []benchmark {
	return []benchmark{{
		name: "a pipeline frame with recording and monitoring", clock: processClock,
		run: func(ctx context.Context) (time.Duration, error) {
			return pipeline.MeasureOverhead(ctx, observedFrames, true)
		},
		reference: &reference{name: "the same frame without them", run: func() (time.Duration, error) {
			return pipeline.MeasureOverhead(context.Background(), observedFrames, false)
		}},
	}}
}
