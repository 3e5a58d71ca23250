// Package trace is a flight recorder for pipelines. It records one span per frame and stage
// with the time that the frame waited before, the fate of each frame, and counters over
// time. It runs permanently in memory that is allocated once; new events overwrite the
// oldest.
//
// A [Session] records the same events from its start on, and keeps the first ones.
//
// Each track has its own, usually uncontended, lock, so that recording a span takes tens of
// nanoseconds. A nil recorder and a nil track record nothing.
//
// Times are in nanoseconds of one clock that the caller chooses.
package trace

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	active atomic.Pointer[[]*Session] // sessions that record; nil: none

	mu       sync.Mutex
	tracks   []*Track
	frames   *Track
	reasons  []string
	counters []*Counter
	instants []instant
	scopes   ring[scope]
	names    map[string]string // of scopes and values, so that each is held once
}

type instant struct {
	at   int64
	name string
	args string
}

// scope is a span that a stage reports about its own work.
type scope struct {
	track      *Track // of the stage that reports it
	name       string
	frame      uint64
	start, end int64 // ns
}

// Limits on what stages report.
const (
	keptInstants = 1024
	maxNames     = 256 // of scopes and values; events with further names are ignored
	maxName      = 64  // bytes
)

// ring keeps the newest values.
type ring[T any] struct {
	list  []T
	limit int
	total uint64
}

func (r *ring[T]) add(v T) {
	if len(r.list) < r.limit {
		r.list = append(r.list, v)
	} else {
		r.list[r.total%uint64(r.limit)] = v
	}
	r.total++
}

// snapshot returns the kept values, oldest first, and the number of those that were overwritten.
func (r *ring[T]) snapshot() (list []T, overwritten uint64) {
	if r.total <= uint64(r.limit) {
		return slices.Clone(r.list), 0
	}
	at := r.total % uint64(r.limit)
	return slices.Concat(r.list[at:], r.list[:at]), r.total - uint64(r.limit)
}

// New returns a recorder that keeps that many events per track; 0 means [defaultEvents].
func New(events int) *Recorder {
	if events <= 0 {
		events = defaultEvents
	}
	r := &Recorder{events: events, scopes: ring[scope]{limit: events}, names: map[string]string{}}
	r.frames = r.newTrack("frames", 0, "")
	return r
}

// Track holds the events of one instance of a stage.
type Track struct {
	recorder *Recorder
	name     string
	instance int
	backend  string

	mu   sync.Mutex
	ring ring[span]
}

func (r *Recorder) newTrack(name string, instance int, backend string) *Track {
	return &Track{recorder: r, name: name, instance: instance, backend: backend, ring: ring[span]{list: make([]span, 0, r.events), limit: r.events}}
}

// Track adds a track. backend names the backend of the stage; it may be empty.
func (r *Recorder) Track(stage string, instance int, backend string) *Track {
	if r == nil {
		return nil
	}
	t := r.newTrack(stage, instance, backend)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tracks = append(r.tracks, t)
	return t
}

// Lookup returns the track of an instance of a stage, or nil if there is none yet.
func (r *Recorder) Lookup(stage string, instance int) *Track {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.tracks, func(t *Track) bool { return t.name == stage && t.instance == instance }); i >= 0 {
		return r.tracks[i]
	}
	return nil
}

func (t *Track) add(s span) {
	t.mu.Lock()
	t.ring.add(s)
	t.mu.Unlock()
}

// Span records that the stage processed a frame from start to end, after it waited for wait
// ns. follows is set for all frames of a batch but the first.
func (t *Track) Span(frame uint64, start, end, wait int64, follows bool) {
	if t == nil {
		return
	}
	s := span{frame: frame, start: start, end: end, wait: wait, follows: follows}
	t.add(s)
	for _, to := range t.recorder.sessions() {
		to.add(end, func() { to.spans.add(trackSpan{t, s}) })
	}
}

// Scope records a part of the stage's work on a frame, which the stage itself measured. Scopes
// with more than [maxNames] different names are ignored.
func (t *Track) Scope(name string, frame uint64, start, end int64) {
	if t == nil || end < start {
		return
	}
	r := t.recorder
	r.mu.Lock()
	name, known := r.intern(name)
	s := scope{track: t, name: name, frame: frame, start: start, end: end}
	if known {
		r.scopes.add(s)
	}
	r.mu.Unlock()
	if known {
		for _, to := range r.sessions() {
			to.add(end, func() { to.scopes.add(s) })
		}
	}
}

// intern returns the one copy of a name of a scope or value, or false if there are too many.
func (r *Recorder) intern(name string) (string, bool) {
	if kept, ok := r.names[name]; ok {
		return kept, true
	}
	if len(r.names) == maxNames {
		return "", false
	}
	text := strings.ToValidUTF8(name[:min(len(name), maxName)], "\ufffd")
	r.names[strings.Clone(name)] = text
	return text, true
}

// Value records a value of the stage at a time. It ignores values that are not finite.
func (t *Track) Value(name string, at int64, value float64) {
	if t == nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	r := t.recorder
	r.mu.Lock()
	name, known := r.intern(name)
	var c *Counter
	if known {
		i := slices.IndexFunc(r.counters, func(c *Counter) bool { return c.stage == t.name && c.name == name })
		if i >= 0 {
			c = r.counters[i]
		} else {
			c = &Counter{recorder: r, stage: t.name, name: name, ring: ring[sample]{limit: r.events}}
			r.counters = append(r.counters, c)
		}
	}
	r.mu.Unlock()
	c.record(at, value)
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
	if r == nil {
		return
	}
	s := span{frame: frame, start: capture, end: end, fate: f, reason: reason}
	r.frames.add(s)
	for _, to := range r.sessions() {
		to.add(end, func() { to.frames.add(s) })
	}
}

// Counter is a value over time.
type Counter struct {
	recorder *Recorder
	stage    string // that reports it, "" for the engine
	name     string

	mu   sync.Mutex
	ring ring[sample]
}

type sample struct {
	at    int64
	value float64
}

// Counter adds a counter of the engine.
func (r *Recorder) Counter(name string) *Counter {
	if r == nil {
		return nil
	}
	c := &Counter{recorder: r, name: name, ring: ring[sample]{limit: r.events}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counters = append(r.counters, c)
	return c
}

// Set records the value from a time on.
func (c *Counter) Set(at, value int64) { c.record(at, float64(value)) }

func (c *Counter) record(at int64, value float64) {
	if c == nil {
		return
	}
	s := sample{at, value}
	c.mu.Lock()
	c.ring.add(s)
	c.mu.Unlock()
	for _, to := range c.recorder.sessions() {
		to.add(at, func() { to.samples.add(counterSample{c, s}) })
	}
}

// Instant records an event with its reason.
func (r *Recorder) Instant(at int64, name, why string) {
	if r == nil {
		return
	}
	i := instant{at, name, strings.ToValidUTF8(why, "\ufffd")}
	r.mu.Lock()
	if len(r.instants) == keptInstants {
		r.instants = append(r.instants[:0], r.instants[1:]...)
	}
	r.instants = append(r.instants, i)
	r.mu.Unlock()
	for _, to := range r.sessions() {
		to.add(at, func() { to.instants.add(i) })
	}
}
