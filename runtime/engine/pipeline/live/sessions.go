package live

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yoctune/yoctune/internal/lazyregexp"
	"github.com/yoctune/yoctune/runtime/engine/trace"
)

// Limits of profiling sessions. An event takes about 70 bytes.
const (
	SessionTime      = time.Minute // unless a client asks for another
	MaxSessionTime   = time.Hour
	SessionEvents    = 1 << 16 // unless a client asks for another number
	MaxSessionEvents = 1 << 18

	maxSessions = 4
	keptTime    = 10 * time.Minute // after the end of a session
)

// sessionType is the type of [Session].
const sessionType = "session"

// Reasons for the end of a session.
const (
	notEnded  = ""
	endStop   = "stopped"
	endTime   = "time"
	endEvents = "events"
)

// Errors of sessions.
var (
	ErrSession     = errors.New("invalid session")
	ErrNoSession   = errors.New("no such session")
	ErrSessionBusy = errors.New("a session of that name exists")
	ErrSessions    = errors.New("too many sessions")
)

// Session is the state of a profiling session.
type Session struct {
	Type      string `json:"type"` // "session"
	Session   string `json:"session"`
	Pipeline  string `json:"pipeline"`
	Lasted    int64  `json:"lasted_ns"`
	Limit     int64  `json:"limit_ns"`
	Events    int    `json:"events"`
	MaxEvents int    `json:"max_events"`
	Ended     string `json:"ended"` // "" while it records; stopped, time or events: the limit that was reached
	Fetched   bool   `json:"fetched"`
}

// sessions are the profiling sessions of a pipeline.
type sessions struct {
	recorder *trace.Recorder
	pipeline string

	mu     sync.Mutex
	byName map[string]*session
	closed bool
}

type session struct {
	*trace.Session
	name      string
	begun     time.Time
	limit     time.Duration
	maxEvents int
	ended     string
	lasted    time.Duration // when it ended
	fetched   bool
	timer     *time.Timer
}

func newSessions(pipeline string, r *trace.Recorder) *sessions {
	return &sessions{recorder: r, pipeline: pipeline, byName: map[string]*session{}}
}

var sessionName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// CheckSessionName returns an error that wraps [ErrSession] for a name that no session may have.
func CheckSessionName(name string) error {
	if len(name) > maxName || !sessionName.MatchString(name) {
		return fmt.Errorf("%w: name %.70q: at most %d letters, digits, dots, dashes and underscores, and a letter or digit first", ErrSession, name, maxName)
	}
	return nil
}

// start begins a session. A finished session of the same name is replaced once it was fetched.
func (s *sessions) start(name string, limit time.Duration, events int) (*Session, error) {
	limit, events = cmp.Or(limit, SessionTime), cmp.Or(events, SessionEvents)
	switch err := CheckSessionName(name); {
	case err != nil:
		return nil, err
	case limit < time.Millisecond || limit > MaxSessionTime:
		return nil, fmt.Errorf("%w: a time of %v: must be %v to %v", ErrSession, limit, time.Millisecond, MaxSessionTime)
	case events < 1 || events > MaxSessionEvents:
		return nil, fmt.Errorf("%w: %d events: must be 1 to %d", ErrSession, events, MaxSessionEvents)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("%w: the pipeline is ending", ErrSession)
	}
	switch old := s.byName[name]; {
	case old == nil:
	case !old.fetched:
		return nil, fmt.Errorf("%w: %s %s; stop it first", ErrSessionBusy, name, old.words())
	default:
		s.discard(old)
	}
	if err := s.makeRoom(); err != nil {
		return nil, err
	}
	n := &session{Session: s.recorder.StartSession(events), name: name, begun: time.Now(), limit: limit, maxEvents: events}
	n.timer = time.AfterFunc(limit, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.end(n, endTime)
	})
	s.byName[name] = n
	return s.state(n), nil
}

// makeRoom discards the oldest session that was fetched if there are too many.
func (s *sessions) makeRoom() error {
	if len(s.byName) < maxSessions {
		return nil
	}
	var oldest *session
	for _, o := range s.byName {
		if o.fetched && (oldest == nil || o.begun.Before(oldest.begun)) {
			oldest = o
		}
	}
	if oldest == nil {
		return fmt.Errorf("%w: a pipeline has at most %d: %s", ErrSessions, maxSessions, strings.Join(slices.Sorted(maps.Keys(s.byName)), ", "))
	}
	s.discard(oldest)
	return nil
}

// end ends a session and keeps its events for a while.
func (s *sessions) end(n *session, why string) {
	if n.ended != notEnded || s.byName[n.name] != n {
		return
	}
	n.Stop()
	n.timer.Stop()
	n.ended, n.lasted = why, min(time.Since(n.begun), n.limit)
	if _, full, _ := n.Session.Events(); full {
		n.ended = endEvents
	}
	n.timer = time.AfterFunc(keptTime, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.discard(n)
	})
}

func (s *sessions) discard(n *session) {
	n.Stop()
	n.timer.Stop()
	if s.byName[n.name] == n {
		delete(s.byName, n.name)
	}
}

// state describes a session.
func (s *sessions) state(n *session) *Session {
	events, full, _ := n.Session.Events()
	out := &Session{
		Type: sessionType, Session: n.name, Pipeline: s.pipeline, Lasted: int64(n.lasted), Limit: int64(n.limit),
		Events: events, MaxEvents: n.maxEvents, Ended: n.ended, Fetched: n.fetched,
	}
	if n.ended == notEnded {
		out.Lasted = int64(time.Since(n.begun))
		if full {
			out.Ended = endEvents
		}
	}
	return out
}

// words describes a session that may not be replaced.
func (n *session) words() string {
	if n.ended == notEnded {
		return fmt.Sprintf("has recorded for %v", time.Since(n.begun).Round(time.Millisecond))
	}
	return "has ended, and its trace was not fetched"
}

// list describes all sessions in the order of their names.
func (s *sessions) list() []*Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []*Session{}
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		out = append(out, s.state(s.byName[name]))
	}
	return out
}

// stop ends a session, unless it has ended, and returns a function that writes its trace. The
// trace is kept for a while, so that a client that fails may ask again.
func (s *sessions) stop(name string, e trace.Encoding) (func(io.Writer) error, error) {
	if e != trace.Chrome && e != trace.Perfetto {
		return nil, fmt.Errorf("%w: encoding %.40q: must be %s or %s", ErrSession, e, trace.Chrome, trace.Perfetto)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.byName[name]
	if n == nil {
		all := slices.Sorted(maps.Keys(s.byName))
		return nil, fmt.Errorf("%w: %.70q; the pipeline has %s", ErrNoSession, name, cmp.Or(strings.Join(all, ", "), "none"))
	}
	s.end(n, endStop)
	return func(w io.Writer) error {
		err := trace.Write(w, n.Session, s.pipeline, e)
		if err == nil {
			s.mu.Lock()
			n.fetched = true
			s.mu.Unlock()
		}
		return err
	}, nil
}

// close ends all sessions.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, n := range s.byName {
		s.discard(n)
	}
}
