package trace

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Session holds the events of a recorder from its start until it is full or stopped. Unlike the
// recorder it keeps the first events.
type Session struct {
	recorder *Recorder
	limit    int
	full     atomic.Bool

	mu       sync.Mutex
	count    int
	last     int64 // time of the last event, ns
	spans    chunks[trackSpan]
	scopes   chunks[scope]
	frames   chunks[span]
	samples  chunks[counterSample]
	instants chunks[instant]
}

type trackSpan struct {
	track *Track
	span  span
}

type counterSample struct {
	counter *Counter
	sample  sample
}

// chunks is a list that grows without copying, because a stage waits meanwhile.
type chunks[T any] struct{ list [][]T }

const chunkSize = 512

func (c *chunks[T]) add(v T) {
	n := len(c.list)
	if n == 0 || len(c.list[n-1]) == chunkSize {
		c.list = append(c.list, make([]T, 0, chunkSize))
		n++
	}
	c.list[n-1] = append(c.list[n-1], v)
}

func (c *chunks[T]) all() []T { return slices.Concat(c.list...) }

// StartSession starts to record at most that many events beside the recorder's own.
func (r *Recorder) StartSession(events int) *Session {
	s := &Session{recorder: r, limit: max(events, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := append(slices.Clone(r.sessions()), s)
	r.active.Store(&now)
	return s
}

// sessions returns those that record.
func (r *Recorder) sessions() []*Session {
	if list := r.active.Load(); list != nil {
		return *list
	}
	return nil
}

// Stop ends the recording; the events stay.
func (s *Session) Stop() {
	r := s.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(r.sessions()), func(o *Session) bool { return o == s })
	if len(left) == 0 {
		r.active.Store(nil)
		return
	}
	r.active.Store(&left)
}

// add calls keep for an event, unless the session is full.
func (s *Session) add(at int64, keep func()) {
	if s.full.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == s.limit {
		s.full.Store(true)
		return
	}
	s.count++
	s.last = max(s.last, at)
	keep()
}

// Events returns the number of events, and whether the session ended because further ones had no
// room; last is the time of the last event in ns.
func (s *Session) Events() (n int, full bool, last int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count, s.full.Load(), s.last
}
