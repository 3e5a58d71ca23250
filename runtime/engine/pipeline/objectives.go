package pipeline

import (
	"sync"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
)

// judge compares the pipeline with the plan's objectives; nil without objectives. What is not known is
// not met.
func (p *Pipeline) judge(latency *Quantiles, fps *float64) *SLOSummary {
	slo := p.slo
	if slo == nil {
		return nil
	}
	j := &SLOSummary{Met: true}
	any := false
	most := func(wanted int64, found *float64) *Objective {
		if wanted <= 0 {
			return nil
		}
		any = true
		o := &Objective{Wanted: float64(wanted), Found: found, Met: found != nil && *found <= float64(wanted)}
		j.Met = j.Met && o.Met
		return o
	}
	of := func(pick func(*Quantiles) int64) *float64 {
		if latency == nil {
			return nil
		}
		return new(float64(pick(latency)))
	}
	j.LatencyP50 = most(slo.LatencyP50, of(func(q *Quantiles) int64 { return q.P50 }))
	j.LatencyP95 = most(slo.LatencyP95, of(func(q *Quantiles) int64 { return q.P95 }))
	j.LatencyP99 = most(slo.LatencyP99, of(func(q *Quantiles) int64 { return q.P99 }))
	j.Memory = most(slo.Memory, p.peakMemory())
	counts, _, _, _ := p.ledger.live()
	j.Energy = most(slo.Energy, p.energy.perFrame(counts.Done))
	if slo.MinFPS > 0 {
		any = true
		j.MinFPS = &Objective{Wanted: float64(slo.MinFPS), Found: fps, Met: fps != nil && *fps >= float64(slo.MinFPS)}
		j.Met = j.Met && j.MinFPS.Met
	}
	if !any {
		return nil
	}
	return j
}

// peakMemory returns the most memory of the run in bytes, nil if it is unknown.
func (p *Pipeline) peakMemory() *float64 {
	phases, _ := p.memory.Snapshot()
	if len(phases) == 0 || phases[len(phases)-1].Peak == nil {
		return nil
	}
	return new(float64(*phases[len(phases)-1].Peak))
}

// objectives describes how the running pipeline meets its objectives.
func (p *Pipeline) objectives(latency *Quantiles, fps *float64) []live.Objective {
	j := p.judge(latency, fps)
	if j == nil {
		return nil
	}
	var all []live.Objective
	for _, o := range []struct {
		name  string
		judge *Objective
	}{
		{"latency_p50", j.LatencyP50}, {"latency_p95", j.LatencyP95}, {"latency_p99", j.LatencyP99},
		{"min_fps", j.MinFPS}, {"memory", j.Memory}, {"energy", j.Energy},
	} {
		if o.judge != nil {
			all = append(all, live.Objective{Name: o.name, Wanted: o.judge.Wanted, Found: o.judge.Found, Met: o.judge.Met})
		}
	}
	return all
}

// energyMeter adds up the energy of the module over a run.
type energyMeter struct {
	power func() *int64 // mW; nil: unknown

	mu      sync.Mutex
	last    time.Time
	joules  float64
	unknown bool // the power was unknown for a part of the run
	known   bool // it was measured at least once
}

func (m *energyMeter) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = time.Now()
}

// measure adds the energy since the last call.
func (m *energyMeter) measure() {
	if m.power == nil {
		return
	}
	power := m.power()
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if power == nil {
		m.unknown = true
	} else {
		m.known = true
		m.joules += float64(*power) / 1000 * now.Sub(m.last).Seconds()
	}
	m.last = now
}

// perFrame returns the energy of a frame in microjoules, nil if it is unknown.
func (m *energyMeter) perFrame(frames uint64) *float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.power == nil || m.unknown || !m.known || frames == 0 {
		return nil
	}
	return new(m.joules * 1e6 / float64(frames))
}
