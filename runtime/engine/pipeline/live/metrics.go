package live

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
)

// Limits on the metrics of the stages of one pipeline.
const (
	maxMetrics = 128
	maxName    = 64
)

// ErrMetric is wrapped by errors about metrics of stages.
var ErrMetric = errors.New("invalid metric")

// Registry holds the metrics of stages, such as those that plug-ins count. Pipeline top and
// Prometheus show them beside the engine's own.
//
// A metric that was never set is unknown; it is not shown as 0.
type Registry struct {
	mu   sync.Mutex
	list []*Metric
}

// Metric is one value. Its methods are safe for concurrent use and cost an atomic operation.
type Metric struct {
	stage, name string
	counter     bool
	bits        atomic.Uint64 // of a float64
}

var unset = math.Float64bits(math.NaN())

// Counter returns the counter of that name, which only grows. The same stage and name return
// the same counter. A name is lower-case letters, digits and underscores.
func (r *Registry) Counter(stage, name string) (*Metric, error) { return r.metric(stage, name, true) }

// Gauge returns the gauge of that name, which may rise and fall.
func (r *Registry) Gauge(stage, name string) (*Metric, error) { return r.metric(stage, name, false) }

func (r *Registry) metric(stage, name string, counter bool) (*Metric, error) {
	if ok, _ := regexp.MatchString(`^[a-z][a-z0-9_]*$`, name); !ok || len(name) > maxName {
		return nil, fmt.Errorf("%w: name %.70q; it is at most %d lower-case letters, digits and underscores", ErrMetric, name, maxName)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.list, func(m *Metric) bool { return m.stage == stage && m.name == name })
	switch {
	case i >= 0 && r.list[i].counter != counter:
		return nil, fmt.Errorf("%w: %s of stage %s is both a counter and a gauge", ErrMetric, name, stage)
	case i >= 0:
		return r.list[i], nil
	case len(r.list) == maxMetrics:
		return nil, fmt.Errorf("%w: %s of stage %s is one too many; a pipeline has at most %d", ErrMetric, name, stage, maxMetrics)
	}
	m := &Metric{stage: stage, name: name, counter: counter}
	m.bits.Store(unset)
	r.list = append(r.list, m)
	return m, nil
}

// Add adds to the metric. It ignores values that are not finite, and negative ones for a
// counter.
func (m *Metric) Add(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) || m.counter && v < 0 {
		return
	}
	for {
		was := m.bits.Load()
		now := v
		if was != unset {
			now += math.Float64frombits(was)
		}
		if m.bits.CompareAndSwap(was, math.Float64bits(now)) {
			return
		}
	}
}

// Set sets a gauge; NaN makes it unknown again. Set ignores infinities and does nothing on a
// counter.
func (m *Metric) Set(v float64) {
	switch {
	case m.counter || math.IsInf(v, 0):
	case math.IsNaN(v):
		m.bits.Store(unset)
	default:
		m.bits.Store(math.Float64bits(v))
	}
}

// Number is the value of a metric in a snapshot.
type Number struct {
	Stage string   `json:"stage"`
	Name  string   `json:"name"`
	Kind  string   `json:"kind"`  // counter, gauge
	Value *float64 `json:"value"` // null: never set
}

// Kinds of metrics.
const (
	KindCounter = "counter"
	KindGauge   = "gauge"
)

// Numbers lists the metrics in the order of their registration.
func (r *Registry) Numbers() []Number {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Number, 0, len(r.list))
	for _, m := range r.list {
		n := Number{Stage: m.stage, Name: m.name, Kind: KindGauge}
		if m.counter {
			n.Kind = KindCounter
		}
		if b := m.bits.Load(); b != unset {
			n.Value = new(math.Float64frombits(b))
		}
		out = append(out, n)
	}
	return out
}
