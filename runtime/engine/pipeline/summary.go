package pipeline

import (
	"math"

	"github.com/yoctune/yoctune/runtime/device/memory"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/perf"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/engine/worker"
)

// Reasons for the end of a run.
const (
	reasonEnd     = "end-of-source"
	reasonLimit   = "frame-limit"
	reasonStopped = "stopped"
	reasonError   = "error"
)

// Summary is the result of a run.
type Summary struct {
	Type     string            `json:"type"` // "summary"
	Pipeline string            `json:"pipeline"`
	Ended    string            `json:"ended"` // end-of-source, frame-limit, stopped, error
	Frames   Fates             `json:"frames"`
	FPS      float64           `json:"fps"`         // frames done or skipped per second, first capture to last result
	Duration int64             `json:"duration_ns"` // of the run, without loading
	Latency  LatencySummary    `json:"latency_ns"`
	Drops    map[string]uint64 `json:"drops"`            // by reason: shutdown, queue-full:<stage>
	Skips    map[string]uint64 `json:"skips"`            // of frames that a gate skipped: skipped:<stage>
	Failures map[string]uint64 `json:"failures"`         // by stage
	Errors   []FrameError      `json:"errors,omitempty"` // the first ten
	Events   []Event           `json:"events"`           // changes of level, batch and sink; the first 256
	Copies   map[string]uint64 `json:"copies"`           // of frames and tensors from memory to memory, by where
	SLO      *SLOSummary       `json:"slo,omitempty"`

	Budget    *BudgetInfo       `json:"budget,omitempty"`    // what the plan's budget was compared with
	Fallbacks map[string]uint64 `json:"fallbacks,omitempty"` // frames that the CPU processed instead of the GPU, by stage
	Runtime   RuntimeInfo       `json:"runtime"`

	Crops    map[string]live.Crops `json:"crops,omitempty"` // by roi stage
	Memory   []memory.Phase        `json:"memory"`          // of the process, by phase
	Counters perf.Counts           `json:"counters"`        // of the process over the run

	Order []string `json:"-"` // stage ids from source to sink
}

// Event is a change in how a pipeline works.
type Event struct {
	At    int64  `json:"at_ns"` // CLOCK_MONOTONIC
	Kind  string `json:"kind"`  // one of the Event constants
	Stage string `json:"stage,omitempty"`
	From  int    `json:"from"` // level or batch size, if the kind has one
	To    int    `json:"to"`
	Why   string `json:"why"`
}

// Kinds of events.
const (
	EventLevel  = "degrade" // the ladder changed its level
	EventBatch  = "batch"   // the largest batch changed
	EventRate   = "rate"    // frames of a live source are skipped for the utilisation target, or not: from and to are percent
	EventSource = "source"  // the source stopped, resumed, or delivers something else than requested
	EventStage  = "stage"   // the program of a custom stage was restarted
	EventSink   = "sink"    // writing results failed or resumed
	EventFlight = "flight"  // the objective was missed and a trace was saved
)

// Places where data is copied. A preprocess stage makes new data and does not count.
const (
	copyRead  = "source" // from the kernel or the generator into the frame
	copyBatch = "batch"  // between frames and the tensors of a batch
	copyGate  = "gate"   // of a frame that passes a gate, which becomes the reference
)

// LatencySummary is the latency of completed frames and of each stage; nil without completed
// frames.
type LatencySummary struct {
	Total  *Quantiles              `json:"total"` // capture until the result is written
	Stages map[string]StageSummary `json:"stages"`
}

// StageSummary describes one stage over the run.
type StageSummary struct {
	Queue   *Quantiles `json:"queue"` // nil for the source
	Service *Quantiles `json:"service"`
}

// SLOSummary compares the run with the plan's objectives. Objectives that the plan lacks are
// nil.
type SLOSummary struct {
	Met        bool       `json:"met"`
	LatencyP50 *Objective `json:"latency_p50,omitempty"` // ns
	LatencyP95 *Objective `json:"latency_p95,omitempty"` // ns
	LatencyP99 *Objective `json:"latency_p99,omitempty"` // ns
	MinFPS     *Objective `json:"min_fps,omitempty"`
	Memory     *Objective `json:"memory,omitempty"` // bytes
	Energy     *Objective `json:"energy,omitempty"` // microjoules for a frame
}

// Objective is one figure of an SLO.
type Objective struct {
	Wanted float64  `json:"wanted"`
	Found  *float64 `json:"found"` // nil if no frame was completed, or nothing measures it
	Met    bool     `json:"met"`
}

// RuntimeInfo describes what the pipeline ran on.
type RuntimeInfo struct {
	Backend     string `json:"backend,omitempty"`     // of preprocessing
	ONNXRuntime string `json:"onnxruntime,omitempty"` // version; empty without a model
	Provider    string `json:"provider,omitempty"`    // of the first model
	Frames      int    `json:"frames"`                // in the pool
	Bytes       int64  `json:"bytes"`                 // of frames and tensors, allocated at start

	Decoded *Size `json:"decoded,omitempty"` // frame size after scaled decoding, if the decoder scales

	Worker *worker.Status `json:"worker,omitempty"` // the first GPU's worker process, at the end
	GPUs   []GPUShare     `json:"gpus,omitempty"`   // if there are several

	Locked *int64 `json:"locked_bytes,omitempty"`   // memory of the process that is locked; only with memory options in the plan
	Huge   *int64 `json:"hugepage_bytes,omitempty"` // on large pages

	Models []ModelInfo `json:"models,omitempty"` // models of all levels, each once

	Tensors []TensorInfo `json:"tensors,omitempty"` // that stages give to the next one, without a ladder

	Devices *DeviceChoice `json:"devices,omitempty"` // of stages with device auto
}

// TensorInfo is a tensor that a stage gives for a frame, or for a crop of it.
type TensorInfo struct {
	Stage  string  `json:"stage"`
	Name   string  `json:"name,omitempty"` // of the model's output
	DType  string  `json:"dtype"`
	Shape  []int64 `json:"shape"`
	Memory string  `json:"memory"` // in which the next stage finds it
}

// Size of a picture in pixels.
type Size struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// ModelInfo describes what runs a model.
type ModelInfo struct {
	Stage    string        `json:"stage"`
	Path     string        `json:"path"`
	Provider string        `json:"provider"`
	Threads  int           `json:"threads"`
	Missing  []ort.Missing `json:"missing,omitempty"` // preferred providers that are unavailable, with reasons
}

func (e *engine) summary(duration int64) *Summary {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.ledger
	s := &Summary{
		Type: "summary", Pipeline: e.name, Ended: e.reason, Duration: duration,
		Frames: l.fates, Drops: l.drops, Skips: l.skips, Failures: l.failures, Errors: l.errors,
		Latency: LatencySummary{Total: e.totals.quantiles(), Stages: map[string]StageSummary{}},
		Order:   []string{idSource}, Events: append([]Event{}, e.events...),
	}
	s.Copies = map[string]uint64{copyRead: e.filled.Load(), copyBatch: e.copies.Load()}
	s.Crops = e.cropCounts()
	if e.gate != "" {
		s.Copies[copyGate] = e.references.Load()
	}
	if s.Ended == "" { // the source has not returned
		s.Ended = reasonStopped
	}
	if n := l.fates.Done + l.fates.Skipped; n > 0 && e.last > e.first {
		s.FPS = math.Round(float64(n)*1e11/float64(e.last-e.first)) / 100
	}
	s.Latency.Stages[idSource] = StageSummary{Service: e.reads.quantiles()}
	for k := range e.waits {
		id := e.stepID(k)
		s.Order = append(s.Order, id)
		s.Latency.Stages[id] = StageSummary{Queue: e.waits[k].quantiles(), Service: e.services[k].quantiles()}
	}
	return s
}
