package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/yoctune/yoctune/runtime/device/histogram"
	"github.com/yoctune/yoctune/runtime/engine/perf"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
)

// shownEvents is the number of latest events in a snapshot.
const shownEvents = 8

// liveView serves the state of a running pipeline to other programs.
type liveView struct {
	path      string // of the socket, "" for none
	throttled func() []string
	note      func(error)

	counts   live.Registry // metrics of stages, by id
	counters *perf.Counters
	before   perf.Counts
	start    int64
	server   *live.Server
}

// Metrics returns the registry for metrics of stages, by id.
func (p *Pipeline) Metrics() *live.Registry { return &p.view.counts }

// serveLive starts to serve snapshots, once the engine is prepared.
func (p *Pipeline) serveLive(ctx context.Context) {
	l := &p.view
	l.start = p.clock.Now()
	if l.path == "" {
		return
	}
	var err error
	if l.server, err = live.Serve(ctx, l.path, p.name, p.trace, p.Snapshot); err != nil && l.note != nil {
		// The pipeline also runs without observers.
		l.note(fmt.Errorf("pipeline top and metrics are unavailable: %w", err))
	}
}

// stop closes what serveLive opened, and returns the metrics of the run.
func (l *liveView) stop() (perf.Counts, error) {
	counts := l.counters.Read().Since(l.before)
	if l.server != nil {
		err := l.server.Close()
		if errors.Is(err, live.ErrAnswering) {
			return counts, nil // a client still holds the counters; they end with the process
		} else if err != nil {
			return counts, err
		}
	}
	return counts, l.counters.Close()
}

// quantilesOf returns the quantiles of a histogram, nil for an empty one.
func quantilesOf(h histogram.Histogram) *Quantiles {
	if h.Count == 0 {
		return nil
	}
	return &Quantiles{P50: *h.Quantile(50), P95: *h.Quantile(95), P99: *h.Quantile(99)}
}

// Snapshot returns the current state of the pipeline. It may be called while Run runs.
func (p *Pipeline) Snapshot() *live.Snapshot {
	e, now := &p.engine, p.clock.Now()
	s := &live.Snapshot{
		Type: "pipeline", Pipeline: p.name, PID: os.Getpid(), At: now, Up: now - p.view.start,
		Copies: map[string]uint64{copyBatch: e.copies.Load()}, InFlight: int(e.inflight.Load()),
		Level: int(e.level.Load()), Levels: max(len(e.levels), 1), Latency: e.totals.live(),
		Events: []live.Event{}, Numbers: p.view.counts.Numbers(),
	}
	s.Frames, s.Drops, s.Skips, s.Failures = e.ledger.live()
	s.Copies[copyRead] = s.Frames.Read
	if e.gate != "" {
		s.Copies[copyGate] = e.references.Load()
	}
	if e.target > 0 {
		s.Target = &e.target
	}
	if p.slo != nil && p.slo.MinFPS > 0 {
		s.MinFPS = new(p.slo.MinFPS)
	}
	if p.slo != nil {
		var fps *float64
		if seconds := float64(s.Up) / 1e9; seconds > 1 {
			fps = new(float64(s.Frames.Done) / seconds)
		}
		s.Objectives = p.objectives(quantilesOf(s.Latency), fps)
	}
	if p.requests != nil {
		c := p.requests.Counts()
		s.Requests = &live.Requests{
			Outcomes: map[string]uint64{"done": c.Done, "refused": c.Full, "expired": c.Expired, "canceled": c.Canceled, "dropped": c.Dropped, "failed": c.Failed},
			Active:   c.Active, Waiting: c.Waiting, Limit: p.requests.Limit(),
		}
	}
	if d, ok := p.delivery.(interface{ Delivery() *live.Delivery }); ok {
		s.Delivery = d.Delivery()
	}
	s.Stages = append(s.Stages, live.Stage{ID: idSource, Instances: 1, Service: e.reads.live(), Wait: histogram.Histogram{Buckets: [][2]uint64{}}})
	for k, q := range e.queues {
		st := live.Stage{
			ID: e.stepID(k), Instances: 1, Queue: &live.Queue{Depth: q.len(), Capacity: len(q.ring)},
			Wait: e.waits[k].live(), Service: e.services[k].live(),
		}
		if k < len(e.steps) {
			st.Backend, st.Instances = e.steps[k].backend, e.steps[k].workers()
		}
		s.Stages = append(s.Stages, st)
	}
	e.mu.Lock()
	for _, v := range e.events[max(len(e.events)-shownEvents, 0):] {
		why := v.Why
		if v.Kind == EventLevel {
			why = fmt.Sprintf("level %d to %d: %s", v.From, v.To, v.Why)
		}
		s.Events = append(s.Events, live.Event{At: v.At, Kind: v.Kind, Why: why})
	}
	e.mu.Unlock()
	s.Pool = p.info.Bytes
	s.Phases, s.Timeline = p.memory.Snapshot()
	s.Fallbacks, s.Worker, s.Crops = p.fallbacks(), p.worker(), p.cropCounts()
	s.Counts = p.view.counters.Read().Since(p.view.before)
	if p.view.throttled != nil {
		s.Throttled = p.view.throttled()
	}
	return s
}
