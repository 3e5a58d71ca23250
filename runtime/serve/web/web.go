// Package web serves a device's samples over HTTP: a page with its assets, a stream of
// samples, the history, metrics and health. It works offline, and no request changes the
// device.
package web

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/serve/history"
)

//go:embed assets
var assets embed.FS

// maxStreams bounds the number of open streams.
const maxStreams = 32

// Site is the served content.
type Site struct {
	Device    rootfs.Identity
	Hub       *monitor.Hub
	Hostname  string
	Watch     func() (*watch.State, error) // nil state: no enforcer has run
	Pipelines func() []*live.Snapshot      // running ones; nil: not shown
	Planned   bool                         // a plan is installed, so that an enforcer should run
	History   *history.Store               // nil: no history
	Metrics   http.Handler                 // nil: not served
	Remote    bool                         // accept host names other than the loopback's
}

// Handler returns the site's handler.
func (s *Site) Handler() (http.Handler, error) {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		if !utf8.ValidString(r.URL.Path) { // no file has such a name, and http.FileServerFS answers 500
			http.NotFound(w, r)
			return
		}
		http.FileServerFS(files).ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /api/device", s.serveDevice)
	mux.HandleFunc("GET /api/sample", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.Hub.Now()) })
	mux.HandleFunc("GET /api/history", s.serveHistory)
	mux.HandleFunc("GET /api/pipelines", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, append([]*live.Snapshot{}, s.readPipelines()...))
	})
	mux.HandleFunc("GET /healthz", s.serveHealth)
	room := make(chan bool, maxStreams)
	mux.HandleFunc("GET /api/stream", func(w http.ResponseWriter, r *http.Request) {
		select {
		case room <- true:
			defer func() { <-room }()
			s.serveStream(w, r)
		default:
			http.Error(w, "too many open streams", http.StatusServiceUnavailable)
		}
	})
	if s.Metrics != nil {
		mux.Handle("GET /metrics", s.Metrics)
	}
	return s.restrictHost(mux), nil
}

// restrictHost refuses requests with a foreign host name, against DNS rebinding: a foreign page
// whose name resolves to 127.0.0.1.
func (s *Site) restrictHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.Remote && !IsLoopback(r.Host) {
			http.Error(w, "host name not allowed", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// IsLoopback reports whether host, with or without a port, is this machine only.
func IsLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	if name == "localhost" || name == "" { // the unix socket has no name
		return true
	}
	if len(name) > 1 && name[0] == '[' && name[len(name)-1] == ']' {
		name = name[1 : len(name)-1]
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has disconnected
}

func (s *Site) serveDevice(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, struct {
		Hostname string `json:"hostname,omitempty"`
		rootfs.Identity
	}{s.Hostname, s.Device})
}

// enforcement is whether somebody enforces the plan, for the page and /healthz.
type enforcement struct {
	State string   `json:"state"`           // running, ended, none, unknown
	PID   int      `json:"pid,omitempty"`   // while running
	Age   *float64 `json:"age_s,omitempty"` // of the last state of an enforcer that has ended
	Text  string   `json:"text"`
	Bad   bool     `json:"bad"` // a plan that should be in force is not
}

func (s *Site) enforcement(state *watch.State, err error, now time.Time) enforcement {
	switch {
	case err != nil:
		return enforcement{State: "unknown", Text: "enforcement is unknown: " + err.Error(), Bad: true}
	case state == nil && s.Planned:
		return enforcement{State: "none", Text: "nobody enforces the plan: yoctuned.service is not running, and did not since boot", Bad: true}
	case state == nil:
		return enforcement{State: "none", Text: "no plan is installed, and no enforcer is running"}
	case state.PID != 0:
		return enforcement{State: "running", PID: state.PID, Text: fmt.Sprintf("yoctuned enforces the plan (pid %d)", state.PID)}
	}
	e := enforcement{State: "ended", Bad: s.Planned || state.Killed != 0, Text: "nobody enforces the plan: yoctuned.service is not running"}
	if state.Killed != 0 {
		e.Text += fmt.Sprintf("; pid %d ended unexpectedly", state.Killed)
	}
	if !state.Written.IsZero() {
		e.Age = new(now.Sub(state.Written).Seconds())
		e.Text += fmt.Sprintf("; its last state is %v old", now.Sub(state.Written).Round(time.Second))
	}
	return e
}

// health is the answer of /healthz.
type health struct {
	Healthy  bool        `json:"healthy"`
	Problems []string    `json:"problems"`
	Fine     []string    `json:"fine"` // what was examined without a problem
	Enforcer enforcement `json:"enforcer"`
}

// note adds a text to the problems, or to what is fine.
func (h *health) note(fine bool, format string, args ...any) {
	list := &h.Problems
	if fine {
		list = &h.Fine
	}
	*list = append(*list, fmt.Sprintf(format, args...))
}

func (s *Site) serveHealth(w http.ResponseWriter, _ *http.Request) {
	state, err := s.Watch()
	h := health{Problems: []string{}, Fine: []string{}, Enforcer: s.enforcement(state, err, time.Now())}
	h.note(!h.Enforcer.Bad, "%s", h.Enforcer.Text)
	if h.Enforcer.State == "running" {
		for _, c := range state.Contested {
			h.note(false, "contested: %s", c.Path)
		}
	}
	stale := s.Hub.Now().Stale
	for _, st := range stale {
		h.note(false, "no response from %s for %.1f s", st.Sensor, float64(st.For)/1000)
	}
	if len(stale) == 0 {
		h.note(true, "all sensors respond")
	}
	for _, p := range s.readPipelines() {
		if w := p.Worker; w != nil && !w.Healthy() {
			h.note(false, "pipeline %s has no GPU: %s: %s", p.Pipeline, w.State, w.Why)
		} else {
			h.note(true, "pipeline %s runs", p.Pipeline)
		}
	}
	if s.History != nil {
		why := s.History.Problem()
		h.note(why == "", "%s", cmp.Or(why, "the history can be written"))
	}
	h.Healthy = len(h.Problems) == 0
	status := http.StatusOK
	if !h.Healthy {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, h)
}

func (s *Site) readPipelines() []*live.Snapshot {
	if s.Pipelines == nil {
		return nil
	}
	return s.Pipelines()
}

// runningPipeline is a pipeline with its rates since the last event of the stream.
type runningPipeline struct {
	*live.Snapshot
	Rates  live.Rates `json:"rates"`
	Missed []string   `json:"missed"` // objectives, since the last event
}

// streamedSample is a sample in the form that the page draws.
type streamedSample struct {
	Time   time.Time       `json:"time"`
	Sample *monitor.Sample `json:"sample"`
	Values []monitor.Value `json:"values"`
}

// serveStream sends server-sent events until the page is closed.
func (s *Site) serveStream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	ctrl := http.NewResponseController(w)
	// The server's time for a request would end the stream.
	if err := ctrl.SetReadDeadline(time.Time{}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	send := func(event string, v any) error {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		// Disconnect a page that does not read its events.
		if err := ctrl.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, b); err != nil {
			return err
		}
		return ctrl.Flush()
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	shown := time.Time{}
	before := map[string]*live.Snapshot{}
	for sample := range s.Hub.Watch(ctx) {
		if send("sample", streamedSample{sample.Time, sample, sample.Values()}) != nil {
			return
		}
		now, rows := map[string]*live.Snapshot{}, []runningPipeline{}
		for _, p := range s.readPipelines() {
			now[p.Pipeline] = p
			rates := p.Since(before[p.Pipeline])
			rows = append(rows, runningPipeline{p, rates, p.Missed(rates)})
		}
		if len(rows)+len(before) > 0 && send("pipelines", rows) != nil {
			return
		}
		before = now
		st, err := s.Watch()
		if send("enforcer", s.enforcement(st, err, time.Now())) != nil {
			return
		}
		if st == nil || len(st.History) == 0 {
			continue
		}
		if last := st.History[len(st.History)-1].Time; last.After(shown) {
			shown = last
			if send("drift", st.History) != nil {
				return
			}
		}
	}
}

// historyPoints bounds the points of each series; a chart is not wider.
const historyPoints = 300

type pastValues struct {
	Points []history.Point `json:"points"`
}

// serveHistory serves /api/history?seconds=N, for all series or for one (&series=).
func (s *Site) serveHistory(w http.ResponseWriter, r *http.Request) {
	if s.History == nil {
		http.Error(w, "no history is recorded", http.StatusNotFound)
		return
	}
	seconds, err := strconv.ParseUint(r.URL.Query().Get("seconds"), 10, 25)
	if err != nil || seconds == 0 {
		http.Error(w, "the parameter seconds must be a positive number", http.StatusBadRequest)
		return
	}
	names := []string{r.URL.Query().Get("series")}
	if names[0] == "" {
		if names, err = s.History.Names(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	to := time.Now()
	out := map[string]pastValues{}
	for _, n := range names {
		points, err := s.History.Query(r.Context(), n, to.Add(-time.Duration(seconds)*time.Second), to, historyPoints)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		out[n] = pastValues{Points: points}
	}
	writeJSON(w, http.StatusOK, struct {
		To     int64                 `json:"to"` // ms since 1970
		Series map[string]pastValues `json:"series"`
	}{to.UnixMilli(), out})
}

// NewServer returns a server with limits for a small device: a client that sends or reads slowly
// holds its connection for seconds.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
}
