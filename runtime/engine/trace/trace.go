// Package trace records where the time of frames goes: one span for each frame
// in each stage, with the time it waited before, what became of it, and values
// that change over time. It always runs, as a flight recorder, in memory that is
// allocated once; the newest events overwrite the oldest.
//
// A track has one writer at a time that matters, and a lock of its own, so that
// a span costs some tens of nanoseconds. A nil recorder and a nil track record
// nothing.
//
// Time is in nanoseconds of whatever clock the caller uses throughout.
package trace

import (
	"slices"
	"strings"
	"sync"
)

// defaultEvents is how many events a track keeps: at 30 frames a second two
// minutes, at 40 bytes each some 160 KiB a track.
const defaultEvents = 4096

// Fate is what became of a frame.
type Fate uint8

// Fates.
const (
	Done Fate = iota
	Dropped
	Failed
)

func (f Fate) String() string {
	return [...]string{"done", "dropped", "failed"}[min(f, Failed)]
}

// span is one event of a track.
type span struct {
	frame      uint64
	start, end int64 // ns
	wait       int64 // ns before start that it waited for the stage
	follows    bool  // it is in one batch with the span before
	fate       Fate  // of frames
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

// keptInstants bounds the instants; the oldest go.
const keptInstants = 1024

// New makes a recorder that keeps so many events for each track, 0:
// [defaultEvents].
func New(events int) *Recorder {
	if events <= 0 {
		events = defaultEvents
	}
	r := &Recorder{events: events}
	r.frames = &Track{name: "frames", ring: make([]span, events)}
	return r
}

// Track is the events of one worker of a stage.
type Track struct {
	name     string
	instance int
	backend  string

	mu    sync.Mutex
	ring  []span
	total uint64
}

// Track adds a track. backend is what the stage runs on; it may be empty.
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

// Span records that a frame was worked on from start to end, after it had waited.
// follows is set for the frames of a batch after its first.
func (t *Track) Span(frame uint64, start, end, wait int64, follows bool) {
	if t != nil {
		t.add(span{frame: frame, start: start, end: end, wait: wait, follows: follows})
	}
}

// Reason gives a number for [Recorder.Frame]; call it once for each text.
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

// Frame records the life of a frame, from its capture on.
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

// Instant records something that happened, and why.
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

// copied returns the events that are kept, oldest first, and how many there were.
func (t *Track) copied() ([]span, uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := uint64(len(t.ring))
	if t.total <= n {
		return slices.Clone(t.ring[:t.total]), t.total
	}
	at := t.total % n
	return slices.Concat(t.ring[at:], t.ring[:at]), t.total
}

func (c *Counter) copied() []sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := uint64(len(c.ring))
	if c.total <= n {
		return slices.Clone(c.ring[:c.total])
	}
	at := c.total % n
	return slices.Concat(c.ring[at:], c.ring[:at])
}
