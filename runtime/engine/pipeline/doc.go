// Package pipeline runs the inference pipelines a plan declares: a source of
// frames, stages that turn a frame into a tensor and a tensor into results, and
// a sink that takes the results.
//
//	source ─▶ queue ─▶ preprocess ─▶ queue ─▶ model ─▶ queue ─▶ postprocess ─▶ queue ─▶ sink
//	   ▲                                                                                  │
//	   └──────────────────────────── free frames ◀──────────────────────────────────────┘
//
// Each box is a goroutine, so that the stages overlap; the frames and tensors
// they work on are allocated once and travel as indices. The queues are bounded
// and have a policy: a file blocks its source, a live source drops. Every frame
// the source gives ends as done, dropped for a reason, or failed for a reason,
// and the summary adds up.
//
// Time is CLOCK_MONOTONIC in nanoseconds. The latency of a frame runs from its
// capture to the sink and is the sum of the time it spent in each queue and in
// each stage, with nothing between them.
package pipeline

import (
	"errors"

	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Errors to test with errors.Is. What goes wrong inside a model wraps the
// sentinels of package ort as well.
var (
	ErrPlan      = registry.ErrPlan
	ErrModelFile = errors.New("model file is not usable")
	ErrFrames    = errors.New("frames failed")
)
