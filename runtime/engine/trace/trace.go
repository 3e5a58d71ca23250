// Package trace is a flight recorder for pipelines. It records one span per frame and stage
// with the time that the frame waited before, the fate of each frame, and counters over
// time. It runs permanently in memory that is allocated once; new events overwrite the
// oldest.
//
// Each track has its own, usually uncontended, lock, so that recording a span takes tens of
// nanoseconds. A nil recorder and a nil track record nothing.
//
// Times are in nanoseconds of one clock that the caller chooses.
package trace

import (
	"slices"
	"strings"
	"sync"
)

// defaultEvents is the default capacity of a track: two minutes at 30 frames per second, and
// about 200 KiB at 48 bytes per event.
const defaultEvents = 4096

// Fate is the outcome of a frame.
type Fate uint8

// Fates.
const (
	Done Fate = iota
	Dropped
	Failed
	Skipped
)

func (f Fate) String() string {
	return [...]string{"done", "dropped", "failed", "skipped"}[min(f, Skipped)]
}

// span is one event of a track.
type span struct {
	frame      uint64
	start, end int64 // ns
	wait       int64 // ns that the frame waited for the stage before start
	follows    bool  // in the same batch as the previous span
	fate       Fate  // for frames
	reason     uint16
}

// Recorder holds the events of one run.
type Recorder struct {
	events int

	mu       sync.Mutex
	tracks   []*Track
	frames   *Track
	reasons  []string
	counters []*Counter
	instants []instant
}

type instant struct {
	at   int64
	name string
	args string
}

// keptInstants is the number of instants that are kept.
const keptInstants = 1024

// New returns a recorder that keeps that many events per track; 0 means [defaultEvents].
func New(events int) *Recorder {
	if events <= 0 {
		events = defaultEvents
	}
	r := &Recorder{events: events}
	r.frames = &Track{name: "frames", ring: make([]span, events)}
	return r
}

// Track holds the events of one instance of a stage.
type Track struct {
	name     string
	instance int
	backend  string

	mu    sync.Mutex
	ring  []span
	total uint64
}

// Track adds a track. backend names the backend of the stage; it may be empty.
func (r *Recorder) Track(stage string, instance int, backend string) *Track {
	if r == nil {
		return nil
	}
	t := &Track{name: stage, instance: instance, backend: backend, ring: make([]span, r.events)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tracks = append(r.tracks, t)
	return t
}

func (t *Track) add(s span) {
	t.mu.Lock()
	t.ring[t.total%uint64(len(t.ring))] = s
	t.total++
	t.mu.Unlock()
}

// Span records that the stage processed a frame from start to end, after it waited for wait
// ns. follows is set for all frames of a batch but the first.
func (t *Track) Span(frame uint64, start, end, wait int64, follows bool) {
	if t != nil {
		t.add(span{frame: frame, start: start, end: end, wait: wait, follows: follows})
	}
}

// Reason returns the number of a text for [Recorder.Frame].
func (r *Recorder) Reason(text string) uint16 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.reasons, text); i >= 0 {
		return uint16(i)
	}
	r.reasons = append(r.reasons, text)
	return uint16(len(r.reasons) - 1)
}

// Frame records the lifetime of a frame from its capture to its end. reason is the number of
// the reason for its fate.
func (r *Recorder) Frame(frame uint64, capture, end int64, f Fate, reason uint16) {
	if r != nil {
		r.frames.add(span{frame: frame, start: capture, end: end, fate: f, reason: reason})
	}
}

// Counter is a value over time.
type Counter struct {
	name string

	mu    sync.Mutex
	ring  []sample
	total uint64
}

type sample struct{ at, value int64 }

// Counter adds a counter.
func (r *Recorder) Counter(name string) *Counter {
	if r == nil {
		return nil
	}
	c := &Counter{name: name, ring: make([]sample, r.events)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counters = append(r.counters, c)
	return c
}

// Set records the value from a time on.
func (c *Counter) Set(at, value int64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.ring[c.total%uint64(len(c.ring))] = sample{at, value}
	c.total++
	c.mu.Unlock()
}

// Instant records an event with its reason.
func (r *Recorder) Instant(at int64, name, why string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.instants) == keptInstants {
		r.instants = append(r.instants[:0], r.instants[1:]...)
	}
	r.instants = append(r.instants, instant{at, name, strings.ToValidUTF8(why, "\ufffd")})
}

// snapshot returns the kept events, oldest first, and the number of all events.
func (t *Track) snapshot() ([]span, uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := uint64(len(t.ring))
	if t.total <= n {
		return slices.Clone(t.ring[:t.total]), t.total
	}
	at := t.total % n
	return slices.Concat(t.ring[at:], t.ring[:at]), t.total
}

// snapshot returns the kept samples, oldest first.
func (c *Counter) snapshot() []sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := uint64(len(c.ring))
	if c.total <= n {
		return slices.Clone(c.ring[:c.total])
	}
	at := c.total % n
	return slices.Concat(c.ring[at:], c.ring[:at])
}
