package pipeline

import (
	"maps"
	"sync"
	"time"

	"github.com/yoctune/yoctune/runtime/device/histogram"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/degrade"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
)

// durations is a histogram with concurrent readers and one writer, see [histogram.Bucket].
type durations struct {
	mu     sync.Mutex
	counts [histogram.Buckets]uint64
	total  uint64
	sum    int64
	max    int64
}

func (h *durations) add(ns int64) {
	ns = max(ns, 0)
	h.mu.Lock()
	h.counts[histogram.Bucket(uint64(ns))]++
	h.total++
	h.sum += ns
	h.max = max(h.max, ns)
	h.mu.Unlock()
}

// live returns the set as other programs see it.
func (h *durations) live() histogram.Histogram {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := histogram.Histogram{Count: h.total, Sum: h.sum, Buckets: [][2]uint64{}}
	for b, n := range h.counts {
		if n > 0 {
			out.Buckets = append(out.Buckets, [2]uint64{uint64(b), n})
		}
	}
	return out
}

// Quantiles describe a set of durations, in ns.
type Quantiles struct {
	P50 int64 `json:"p50"`
	P95 int64 `json:"p95"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

// quantiles returns nil for an empty set.
func (h *durations) quantiles() *Quantiles {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.total == 0 {
		return nil
	}
	return &Quantiles{P50: h.percentile(50), P95: h.percentile(95), P99: h.percentile(99), Max: h.max}
}

// percentile returns the nearest-rank percentile.
func (h *durations) percentile(percent uint64) int64 {
	rank := (h.total*percent + 99) / 100
	var seen uint64
	for b, n := range h.counts {
		if seen += n; n > 0 && seen >= rank {
			return min(histogram.Midpoint(b), h.max)
		}
	}
	return 0
}

// Fates counts the frames of a run by outcome. Read is the sum of the others.
type Fates = live.Frames

// FrameError is a frame that failed.
type FrameError struct {
	Frame uint64 `json:"frame"`
	Stage string `json:"stage"`
	Err   error  `json:"-"`
	Text  string `json:"error"`
}

// keptErrors limits how many failures the summary lists; all are counted.
const keptErrors = 10

// ledger records the outcome of every frame.
type ledger struct {
	mu       sync.Mutex
	closed   bool
	fates    Fates
	drops    map[string]uint64
	skips    map[string]uint64
	failures map[string]uint64
	errors   []FrameError
}

func newLedger() *ledger {
	return &ledger{drops: map[string]uint64{}, skips: map[string]uint64{}, failures: map[string]uint64{}}
}

func (l *ledger) addRead() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.fates.Read++
	}
}

// addLost counts frames that the source reports as lost.
func (l *ledger) addLost(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.fates.Read += n
		l.fates.Dropped += n
		l.drops[reasonLost] += n
	}
}

func (l *ledger) addDone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.fates.Done++
	}
}

func (l *ledger) addDropped(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.fates.Dropped++
		l.drops[reason]++
	}
}

func (l *ledger) addSkipped(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.fates.Skipped++
		l.skips[reason]++
	}
}

func (l *ledger) addFailed(id uint64, stage string, err error) {
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

// live returns the outcomes so far.
func (l *ledger) live() (f live.Frames, drops, skips, failures map[string]uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fates, maps.Clone(l.drops), maps.Clone(l.skips), maps.Clone(l.failures)
}

// close settles the frames that a hung stage still holds, and ends the accounting.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := l.fates.Read - l.fates.Done - l.fates.Dropped - l.fates.Skipped - l.fates.Failed
	if lost > 0 {
		l.fates.Dropped += lost
		l.drops[reasonShutdown] += lost
	}
	l.closed = true
}

// window collects the figures of one window of a run.
type window struct {
	latency durations

	mu   sync.Mutex
	gone int
}

// addLost counts frames that were dropped because of overload.
func (w *window) addLost(n int) {
	w.mu.Lock()
	w.gone += n
	w.mu.Unlock()
}

// reset returns the current window and starts the next.
func (w *window) reset() degrade.Input {
	w.latency.mu.Lock()
	in := degrade.Input{Done: int(w.latency.total), P95: time.Duration(w.latency.percentile(95))}
	clear(w.latency.counts[:])
	w.latency.total, w.latency.sum, w.latency.max = 0, 0, 0
	w.latency.mu.Unlock()
	w.mu.Lock()
	in.Lost, w.gone = w.gone, 0
	w.mu.Unlock()
	return in
}
