package inference

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/request"
)

// Duration is a number of events and the time that they took together.
type Duration struct {
	Count uint64 `json:"count"`
	NS    uint64 `json:"ns"`
}

func (d *Duration) add(ns int64) {
	d.Count++
	d.NS += uint64(max(ns, 0))
}

// InferStatistics are the requests of a model since its start.
type InferStatistics struct {
	Success      Duration `json:"success"`
	Fail         Duration `json:"fail"`
	Queue        Duration `json:"queue"` // waiting, and hand-overs between stages
	ComputeInput Duration `json:"compute_input"`
	ComputeInfer Duration `json:"compute_infer"`
	ComputeOut   Duration `json:"compute_output"`
	CacheHit     Duration `json:"cache_hit"` // answers are never cached
	CacheMiss    Duration `json:"cache_miss"`
}

// BatchStatistics are the runs of models with a batch of one size.
type BatchStatistics struct {
	Size         uint64   `json:"batch_size"`
	ComputeInput Duration `json:"compute_input"`
	ComputeInfer Duration `json:"compute_infer"`
	ComputeOut   Duration `json:"compute_output"`
}

// Statistics of a model, as the statistics extension defines them.
type Statistics struct {
	Name       string            `json:"name"`
	Version    string            `json:"version"`
	Last       uint64            `json:"last_inference"`  // ms since 1970
	Inferences uint64            `json:"inference_count"` // rows
	Executions uint64            `json:"execution_count"` // runs of a model
	Infer      InferStatistics   `json:"inference_stats"`
	Batches    []BatchStatistics `json:"batch_stats"`
	Active     int               `json:"active_count"` // requests that wait or are in work, which Triton does not count
}

// stats counts the requests of a model.
type stats struct {
	mu    sync.Mutex
	all   InferStatistics
	rows  uint64
	last  time.Time
	kinds map[Kind]uint64 // of failures
}

func (s *stats) succeed(took time.Duration, c *request.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Success.add(int64(took))
	t := c.Times
	s.all.ComputeInfer.add(t.Compute)
	s.all.ComputeInput.add(t.Input)
	s.all.ComputeOut.add(t.Output)
	s.all.Queue.add(t.Total - t.Compute - t.Input - t.Output)
	s.rows += uint64(c.Rows)
	s.last = time.Now()
}

func (s *stats) fail(took time.Duration, k Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Fail.add(int64(took))
	if s.kinds == nil {
		s.kinds = map[Kind]uint64{}
	}
	s.kinds[k]++
}

// refuse counts a request that was refused before its data was read.
func (s *stats) refuse() { s.fail(0, Full) }

// Statistics returns the statistics of a model, or of all with the name "".
func (s *Server) Statistics(name, ver string) ([]Statistics, error) {
	models := s.Models()
	if name != "" {
		m, err := s.Find(name, ver)
		if err != nil {
			return nil, err
		}
		models = []*Model{m}
	}
	all := []Statistics{}
	for _, m := range models {
		all = append(all, m.statistics())
	}
	return all, nil
}

func (m *Model) statistics() Statistics {
	runs := m.Port.Runs()
	m.stats.mu.Lock()
	defer m.stats.mu.Unlock()
	out := Statistics{Name: m.Name, Version: version, Inferences: m.stats.rows, Infer: m.stats.all, Batches: []BatchStatistics{}, Active: m.Port.Counts().Active}
	if !m.stats.last.IsZero() {
		out.Last = uint64(m.stats.last.UnixMilli())
	}
	for _, size := range slices.Sorted(maps.Keys(runs)) {
		r := runs[size]
		out.Executions += r.Count
		out.Batches = append(out.Batches, BatchStatistics{Size: uint64(size), ComputeInfer: Duration{r.Count, uint64(r.Compute)}})
	}
	return out
}
