package pipeline

import "math"

// Why a run ended.
const (
	reasonEnd     = "end-of-source"
	reasonLimit   = "frame-limit"
	reasonStopped = "stopped"
	reasonError   = "error"
)

// Summary is what a run amounted to.
type Summary struct {
	Type     string            `json:"type"` // "summary"
	Pipeline string            `json:"pipeline"`
	Ended    string            `json:"ended"` // end-of-source, frame-limit, stopped, error
	Frames   Fates             `json:"frames"`
	FPS      float64           `json:"fps"`         // frames done per second, first capture to last result
	Duration int64             `json:"duration_ns"` // of the run, without loading
	Latency  LatencySummary    `json:"latency_ns"`
	Drops    map[string]uint64 `json:"drops"`            // by reason: shutdown, queue-full:<stage>
	Failures map[string]uint64 `json:"failures"`         // by stage
	Errors   []FrameError      `json:"errors,omitempty"` // the first ten
	SLO      *SLOSummary       `json:"slo,omitempty"`
	Runtime  RuntimeInfo       `json:"runtime"`

	Order []string `json:"-"` // stage ids from source to sink
}

// LatencySummary is the latency of the frames that were done, and of each stage.
type LatencySummary struct {
	Total  Quantiles               `json:"total"` // capture until the sink has written
	Stages map[string]StageSummary `json:"stages"`
}

// StageSummary is one stage over the run.
type StageSummary struct {
	Queue   Quantiles `json:"queue"`
	Service Quantiles `json:"service"`
}

// SLOSummary compares the plan's objectives with the run; a part is nil when the
// plan does not ask for it.
type SLOSummary struct {
	Met        bool       `json:"met"`
	LatencyP95 *Objective `json:"latency_p95,omitempty"` // ns
	MinFPS     *Objective `json:"min_fps,omitempty"`
}

// Objective is one figure of an SLO.
type Objective struct {
	Wanted float64 `json:"wanted"`
	Found  float64 `json:"found"`
	Met    bool    `json:"met"`
}

// RuntimeInfo says what the pipeline ran on.
type RuntimeInfo struct {
	Backend     string `json:"backend,omitempty"`     // of preprocessing
	ONNXRuntime string `json:"onnxruntime,omitempty"` // version; empty without a model
	Provider    string `json:"provider,omitempty"`    // of the model
	Frames      int    `json:"frames"`                // in the pool
	Bytes       int64  `json:"bytes"`                 // of frames and tensors, allocated at start
}

func (e *engine) summary(duration int64) *Summary {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.ledger
	s := &Summary{
		Type: "summary", Pipeline: e.name, Ended: e.reason, Duration: duration,
		Frames: l.fates, Drops: l.drops, Failures: l.failures, Errors: l.errors,
		Latency: LatencySummary{Total: e.totals.quantiles(), Stages: map[string]StageSummary{}},
		Order:   []string{idSource},
	}
	if s.Ended == "" { // the source has not come back
		s.Ended = reasonStopped
	}
	if l.fates.Done > 0 && e.last > e.first {
		s.FPS = math.Round(float64(l.fates.Done)*1e11/float64(e.last-e.first)) / 100
	}
	s.Latency.Stages[idSource] = StageSummary{Service: e.reads.quantiles()}
	for k := range e.waits {
		id := idSink
		if k < len(e.steps) {
			id = e.steps[k].id
		}
		s.Order = append(s.Order, id)
		s.Latency.Stages[id] = StageSummary{Queue: e.waits[k].quantiles(), Service: e.services[k].quantiles()}
	}
	return s
}
