package pipeline

import (
	"math/bits"
	"sync"
	"time"

	"github.com/yoctune/yoctune/runtime/pipeline/degrade"
)

// histogram counts durations in buckets of 1/32 of a power of two, so that a
// quantile is within 1.6 % of the truth and memory does not grow with frames.
// It may be read while it is written.
type histogram struct {
	mu     sync.Mutex
	counts [60 * histSub]uint64
	total  uint64
	max    int64
}

const (
	histBits = 5
	histSub  = 1 << histBits
)

func (h *histogram) add(ns int64) {
	ns = max(ns, 0)
	h.mu.Lock()
	h.counts[bucket(uint64(ns))]++
	h.total++
	h.max = max(h.max, ns)
	h.mu.Unlock()
}

// bucket is the value itself up to histSub, then exponent and leading bits.
func bucket(v uint64) int {
	if v < histSub {
		return int(v)
	}
	e := bits.Len64(v) - histBits - 1
	return e<<histBits + int(v>>e)
}

// middle is the value in the middle of a bucket.
func middle(b int) int64 {
	if b < 2*histSub {
		return int64(b)
	}
	e := b>>histBits - 1
	low := int64(b-e<<histBits) << e
	return low + (1<<e)/2
}

// Quantiles describe a set of durations, in ns. All are 0 when there were none.
type Quantiles struct {
	P50 int64 `json:"p50"`
	P95 int64 `json:"p95"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

func (h *histogram) quantiles() Quantiles {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Quantiles{P50: h.at(50), P95: h.at(95), P99: h.at(99), Max: h.max}
}

// at is the nearest-rank percentile.
func (h *histogram) at(percent uint64) int64 {
	rank := (h.total*percent + 99) / 100
	var seen uint64
	for b, n := range h.counts {
		if seen += n; n > 0 && seen >= rank {
			return min(middle(b), h.max)
		}
	}
	return 0
}

// Fates counts frames by how they ended.
type Fates struct {
	Read    uint64 `json:"read"` // given by the source; the sum of the others
	Done    uint64 `json:"done"`
	Dropped uint64 `json:"dropped"`
	Failed  uint64 `json:"failed"`
}

// FrameError is a frame that failed.
type FrameError struct {
	Frame uint64 `json:"frame"`
	Stage string `json:"stage"`
	Err   error  `json:"-"`
	Text  string `json:"error"`
}

// keptErrors bounds how many failures the summary shows; all are counted.
const keptErrors = 10

// ledger holds the fate of every frame.
type ledger struct {
	mu       sync.Mutex
	closed   bool
	fates    Fates
	drops    map[string]uint64
	failures map[string]uint64
	errors   []FrameError
}

func newLedger() *ledger {
	return &ledger{drops: map[string]uint64{}, failures: map[string]uint64{}}
}

func (l *ledger) read() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.fates.Read++
	}
}

func (l *ledger) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.fates.Done++
	}
}

func (l *ledger) dropped(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.fates.Dropped++
		l.drops[reason]++
	}
}

func (l *ledger) failed(id uint64, stage string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.fates.Failed++
	l.failures[stage]++
	if len(l.errors) < keptErrors {
		l.errors = append(l.errors, FrameError{Frame: id, Stage: stage, Err: err, Text: err.Error()})
	}
}

// close settles what is still on its way, in a stage that does not come back,
// and ends the books.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := l.fates.Read - l.fates.Done - l.fates.Dropped - l.fates.Failed
	if lost > 0 {
		l.fates.Dropped += lost
		l.drops[reasonShutdown] += lost
	}
	l.closed = true
}

// window collects what happened since it was last taken.
type window struct {
	latency histogram

	mu   sync.Mutex
	gone int
}

func (w *window) done(ns int64) { w.latency.add(ns) }

func (w *window) lost() {
	w.mu.Lock()
	w.gone++
	w.mu.Unlock()
}

// take returns the window and begins the next.
func (w *window) take() degrade.Input {
	w.latency.mu.Lock()
	in := degrade.Input{Done: int(w.latency.total), P95: time.Duration(w.latency.at(95))}
	clear(w.latency.counts[:])
	w.latency.total, w.latency.max = 0, 0
	w.latency.mu.Unlock()
	w.mu.Lock()
	in.Lost, w.gone = w.gone, 0
	w.mu.Unlock()
	return in
}
