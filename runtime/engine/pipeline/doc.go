// Package pipeline runs the inference pipelines that a plan declares: a source of
// frames, stages that turn a frame into a tensor and a tensor into results, and
// a sink that writes the results.
//
//	source ─▶ queue ─▶ preprocess ─▶ queue ─▶ model ─▶ queue ─▶ postprocess ─▶ queue ─▶ sink
//	   ▲                                                                                  │
//	   └──────────────────────────── free frames ◀──────────────────────────────────────┘
//
// Each box is a goroutine, so that the stages overlap; the frames and tensors
// they work on are allocated once and travel as indices. The queues are bounded
// and have a policy: a file blocks its source, a live source drops. Every frame
// that the source delivers is counted once: as done, or as dropped or failed with a
// reason.
//
// Time is CLOCK_MONOTONIC in nanoseconds. The latency of a frame runs from its
// capture to the sink. It is exactly the sum of its times in each queue and each
// stage.
package pipeline

import (
	"errors"

	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Errors to test with errors.Is. Errors of models also wrap the sentinels of package
// ort.
var (
	ErrPlan      = registry.ErrPlan
	ErrModelFile = errors.New("model file is not usable")
	ErrFrames    = errors.New("frames failed")
)
