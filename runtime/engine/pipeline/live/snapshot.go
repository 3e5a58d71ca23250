package live

import (
	"fmt"
	"math"

	"github.com/yoctune/yoctune/runtime/device/histogram"
	"github.com/yoctune/yoctune/runtime/device/memory"
	"github.com/yoctune/yoctune/runtime/engine/perf"
	"github.com/yoctune/yoctune/runtime/engine/worker"
)

// Snapshot is the state of a running pipeline. Counts are since its start.
type Snapshot struct {
	Type     string `json:"type"` // "pipeline"
	Pipeline string `json:"pipeline"`
	PID      int    `json:"pid"`
	At       int64  `json:"at_ns"` // CLOCK_MONOTONIC
	Up       int64  `json:"up_ns"` // since the start

	Frames   Frames            `json:"frames"`
	Drops    map[string]uint64 `json:"drops"`    // by reason
	Skips    map[string]uint64 `json:"skips"`    // by gate
	Failures map[string]uint64 `json:"failures"` // by stage
	Copies   map[string]uint64 `json:"copies"`   // by where
	InFlight int               `json:"in_flight"`
	Level    int               `json:"level"`             // of the ladder, 0: full work
	Levels   int               `json:"levels"`            // number of levels, 1 without a ladder
	Target   *int64            `json:"target_ns"`         // objective of the 95th percentile; null: none
	MinFPS   *int              `json:"min_fps,omitempty"` // objective of the rate; null: none
	// Objectives are those of the plan, and how the pipeline has met them since its start.
	Objectives []Objective `json:"objectives,omitempty"`
	Requests   *Requests   `json:"requests,omitempty"` // of a pipeline that answers requests
	Delivery   *Delivery   `json:"delivery,omitempty"` // of a pipeline whose results go to a stream

	Latency histogram.Histogram `json:"latency_ns"` // of frames that were done, capture to sink
	Stages  []Stage             `json:"stages"`     // from source to sink
	Events  []Event             `json:"events"`     // the latest, oldest first
	Numbers []Number            `json:"metrics"`    // of the stages themselves
	Counts  perf.Counts         `json:"counters"`

	Fallbacks map[string]uint64 `json:"fallbacks,omitempty"` // frames that the CPU processed instead of the GPU, by stage
	Worker    *worker.Status    `json:"worker,omitempty"`    // the GPU worker process
	Crops     map[string]Crops  `json:"crops,omitempty"`     // by roi stage

	Pool     int64          `json:"pool_bytes"` // of frames and tensors, allocated at start
	Phases   []memory.Phase `json:"phases"`     // of the process's memory
	Timeline []memory.Point `json:"timeline"`

	// Throttled names what heat or power throttles now; null: unknown.
	Throttled []string `json:"throttled"`
}

// States of a delivery.
const (
	Stored  = "stored"  // the stream has what was sent
	Waiting = "waiting" // the server does not answer; results wait
	Full    = "full"    // the stream takes no more
	Refused = "refused" // the stream cannot be used
)

// Delivery is what became of the results that go to a stream of the cluster. Numbers of results count on when the
// pipeline starts again.
type Delivery struct {
	Stream   string `json:"stream"`
	Subject  string `json:"subject"`
	State    string `json:"state"`           // one of the states above
	Why      string `json:"why,omitempty"`   // of any but stored
	Accepted uint64 `json:"accepted"`        // number of the last result that the sink took
	Stored   uint64 `json:"stored"`          // number of the last result that the stream on the device has
	Dropped  uint64 `json:"dropped"`         // since the start
	Batches  uint64 `json:"batches"`         // since the start
	Bytes    uint64 `json:"bytes"`           // of results in them
	Sent     uint64 `json:"sent_bytes"`      // of them, compressed
	Codec    string `json:"codec,omitempty"` // of the last batch, "": none
}

// Objective is one figure that the plan wants. Latencies are in ns, memory in bytes, energy in microjoules for a
// frame.
type Objective struct {
	Name   string   `json:"name"` // latency_p50, latency_p95, latency_p99, min_fps, memory, energy
	Wanted float64  `json:"wanted"`
	Found  *float64 `json:"found"` // nil: not known
	Met    bool     `json:"met"`
}

// Requests counts requests.
type Requests struct {
	Outcomes map[string]uint64 `json:"outcomes"` // done, refused, expired, canceled, dropped, failed
	Active   int               `json:"active"`   // not answered yet
	Waiting  int               `json:"waiting"`  // of those, for the first stage
	Limit    int               `json:"limit"`
}

// Frames counts frames by outcome; the rest are in flight.
type Frames struct {
	Read    uint64 `json:"read"`
	Done    uint64 `json:"done"`
	Dropped uint64 `json:"dropped"`
	Failed  uint64 `json:"failed"`
	Skipped uint64 `json:"skipped"` // by a gate, because the picture did not change
}

// Crops is what a roi stage did with the boxes that it received.
type Crops struct {
	Boxes   uint64 `json:"boxes"`
	Crops   uint64 `json:"crops"`
	Cut     uint64 `json:"cut"`     // crops that reached over the edge of the frame, and were cut there
	Beyond  uint64 `json:"beyond"`  // boxes after the best ones, as many as the plan's count
	Other   uint64 `json:"other"`   // boxes of classes that the plan does not list
	Outside uint64 `json:"outside"` // boxes without a pixel in the frame
	Empty   uint64 `json:"empty"`   // boxes without area
	Invalid uint64 `json:"invalid"` // boxes with an edge or a score that is not a finite number
}

// Lost returns the boxes that were not cropped, by reason.
func (c Crops) Lost() map[string]uint64 {
	return map[string]uint64{"beyond": c.Beyond, "other": c.Other, "outside": c.Outside, "empty": c.Empty, "invalid": c.Invalid}
}

// Stage is one stage, or the source or sink.
type Stage struct {
	ID        string              `json:"id"`
	Backend   string              `json:"backend,omitempty"`
	Instances int                 `json:"instances"`
	Queue     *Queue              `json:"queue"` // before the stage; null for the source
	Wait      histogram.Histogram `json:"wait_ns"`
	Service   histogram.Histogram `json:"service_ns"`
}

// Queue is a queue of frames.
type Queue struct {
	Depth    int `json:"depth"`
	Capacity int `json:"capacity"`
}

// Event is a change in how the pipeline works.
type Event struct {
	At   int64  `json:"at_ns"`
	Kind string `json:"kind"`
	Why  string `json:"why"`
}

// Rates is the difference between two snapshots of one run.
type Rates struct {
	Seconds float64             `json:"seconds"`
	FPS     *float64            `json:"fps"` // frames done or skipped; null: no time has passed
	Frames  Frames              `json:"frames"`
	Drops   map[string]uint64   `json:"drops"`
	Latency histogram.Histogram `json:"-"`
	P50     *int64              `json:"p50_ns"`
	P95     *int64              `json:"p95_ns"`
	Stages  []StageRates        `json:"stages"`
	Counts  perf.Counts         `json:"counters"`
}

// Missed describes the objectives that the pipeline missed since the snapshot before, for
// which there must be one.
func (s *Snapshot) Missed(r Rates) []string {
	missed := []string{}
	if s.Target != nil && r.P95 != nil && *r.P95 > *s.Target {
		missed = append(missed, fmt.Sprintf("latency p95 %.2f ms, at most %.2f ms wanted", float64(*r.P95)/1e6, float64(*s.Target)/1e6))
	}
	if s.Target != nil && r.P95 == nil && r.Frames.Dropped > 0 {
		missed = append(missed, "latency p95: no frame was done, and some were dropped")
	}
	// One frame more or less at the ends of the interval does not count as a miss.
	if n := r.Frames.Done + r.Frames.Skipped; s.MinFPS != nil && float64(n+1) < float64(*s.MinFPS)*r.Seconds {
		missed = append(missed, fmt.Sprintf("%.1f fps, at least %d wanted", float64(n)/r.Seconds, *s.MinFPS))
	}
	return missed
}

// StageRates is the difference of one stage between two snapshots.
type StageRates struct {
	ID         string   `json:"id"`
	Busy       *float64 `json:"busy"` // fraction of the time it worked, summed over instances
	WaitP50    *int64   `json:"wait_p50_ns"`
	WaitP95    *int64   `json:"wait_p95_ns"`
	ServiceP50 *int64   `json:"service_p50_ns"`
	ServiceP95 *int64   `json:"service_p95_ns"`
}

// Since returns the difference from another snapshot of the same run; for another run or nil,
// from the start.
func (s *Snapshot) Since(before *Snapshot) Rates {
	if before == nil || before.PID != s.PID || before.At-before.Up != s.At-s.Up {
		before = &Snapshot{At: s.At - s.Up}
	}
	less := func(a, b uint64) uint64 { return a - min(a, b) }
	r := Rates{
		Seconds: float64(s.At-before.At) / 1e9,
		Frames: Frames{
			Read: less(s.Frames.Read, before.Frames.Read), Done: less(s.Frames.Done, before.Frames.Done),
			Dropped: less(s.Frames.Dropped, before.Frames.Dropped), Skipped: less(s.Frames.Skipped, before.Frames.Skipped),
			Failed: less(s.Frames.Failed, before.Frames.Failed),
		},
		Drops: map[string]uint64{}, Latency: s.Latency.Since(before.Latency), Counts: s.Counts.Since(before.Counts),
	}
	if r.Seconds > 0 {
		r.FPS = new(math.Round(float64(r.Frames.Done+r.Frames.Skipped)/r.Seconds*100) / 100)
	}
	for reason, n := range s.Drops {
		if n = less(n, before.Drops[reason]); n > 0 {
			r.Drops[reason] = n
		}
	}
	r.P50, r.P95 = r.Latency.Quantile(50), r.Latency.Quantile(95)
	for i, st := range s.Stages {
		var was Stage
		if i < len(before.Stages) && before.Stages[i].ID == st.ID {
			was = before.Stages[i]
		}
		wait, service := st.Wait.Since(was.Wait), st.Service.Since(was.Service)
		out := StageRates{
			ID: st.ID, WaitP50: wait.Quantile(50), WaitP95: wait.Quantile(95),
			ServiceP50: service.Quantile(50), ServiceP95: service.Quantile(95),
		}
		if r.Seconds > 0 {
			out.Busy = new(float64(service.Sum) / 1e9 / r.Seconds)
		}
		r.Stages = append(r.Stages, out)
	}
	return r
}
