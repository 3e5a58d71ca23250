// Package web serves samples to browsers and to Prometheus: one page with its
// assets, a stream of samples, the history, and health. It needs nothing from
// the network, and only answers: no request changes anything.
package web

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/serve/history"
)

//go:embed assets
var assets embed.FS

// maxStreams bounds how many pages watch at once.
const maxStreams = 32

// Site is what is served.
type Site struct {
	Device    rootfs.Identity
	Hub       *monitor.Hub
	Watch     func() *watch.State     // nil result: nobody watches
	Pipelines func() []*live.Snapshot // that run now; nil: none are looked for
	Planned   bool                    // a plan is installed, so that somebody should
	History   *history.Store          // nil: none is kept
	Metrics   http.Handler            // nil: not asked for
	Remote    bool                    // other names than the loopback's are answered
}

// Handler returns the site's handler.
func (s *Site) Handler() (http.Handler, error) {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /api/device", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.Device) })
	mux.HandleFunc("GET /api/sample", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.Hub.Now()) })
	mux.HandleFunc("GET /api/history", s.history)
	mux.HandleFunc("GET /api/pipelines", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, append([]*live.Snapshot{}, s.pipelines()...))
	})
	mux.HandleFunc("GET /healthz", s.health)
	room := make(chan bool, maxStreams)
	mux.HandleFunc("GET /api/stream", func(w http.ResponseWriter, r *http.Request) {
		select {
		case room <- true:
			defer func() { <-room }()
			s.stream(w, r)
		default:
			http.Error(w, "too many pages watch", http.StatusServiceUnavailable)
		}
	})
	if s.Metrics != nil {
		mux.Handle("GET /metrics", s.Metrics)
	}
	return s.guard(mux), nil
}

// guard answers only those who named this machine by its address: a page of
// somewhere else that makes a browser resolve its name to 127.0.0.1 gets nothing.
func (s *Site) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.Remote && !Loopback(r.Host) {
			http.Error(w, "not this host's name", http.StatusForbidden)
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

// Loopback reports whether host, with or without a port, is this machine only.
func Loopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	if name == "localhost" || name == "" { // no name: over the unix socket
		return true
	}
	if len(name) > 1 && name[0] == '[' && name[len(name)-1] == ']' {
		name = name[1 : len(name)-1]
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // whoever asked is gone
}

// Health is the answer of /healthz.
type Health struct {
	Healthy  bool     `json:"healthy"`
	Problems []string `json:"problems"`
}

func (s *Site) health(w http.ResponseWriter, _ *http.Request) {
	h := Health{Problems: []string{}}
	state := s.Watch()
	switch {
	case state == nil || state.PID == 0:
		if s.Planned {
			h.Problems = append(h.Problems, "nobody keeps the plan true: yoctuned.service does not run")
		}
	default:
		for _, c := range state.Contested {
			h.Problems = append(h.Problems, "contested: "+c.Path)
		}
	}
	for _, st := range s.Hub.Now().Stale {
		h.Problems = append(h.Problems, "no answer from "+st.Sensor)
	}
	for _, p := range s.pipelines() {
		if w := p.Worker; w != nil && !w.Healthy() {
			h.Problems = append(h.Problems, fmt.Sprintf("pipeline %s has no GPU: %s: %s", p.Pipeline, w.State, w.Why))
		}
	}
	if s.History != nil {
		if why := s.History.Problem(); why != "" {
			h.Problems = append(h.Problems, why)
		}
	}
	h.Healthy = len(h.Problems) == 0
	status := http.StatusOK
	if !h.Healthy {
		status = http.StatusServiceUnavailable
	}
	reply(w, status, h)
}

func (s *Site) pipelines() []*live.Snapshot {
	if s.Pipelines == nil {
		return nil
	}
	return s.Pipelines()
}

// running is a pipeline and what it did since the page was last told.
type running struct {
	*live.Snapshot
	Rates live.Rates `json:"rates"`
}

// streamed is one sample as the page draws it.
type streamed struct {
	Time   time.Time       `json:"time"`
	Sample *monitor.Sample `json:"sample"`
	Values []named         `json:"values"`
}

type named struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
}

// stream sends server-sent events until the page is closed.
func (s *Site) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	ctrl := http.NewResponseController(w)
	send := func(event string, v any) error {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		// A page that does not take its events is dropped.
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
		out := streamed{Time: sample.Time, Sample: sample, Values: []named{}}
		for _, v := range sample.Values() {
			out.Values = append(out.Values, named(v))
		}
		if send("sample", out) != nil {
			return
		}
		now, rows := map[string]*live.Snapshot{}, []running{}
		for _, p := range s.pipelines() {
			now[p.Pipeline] = p
			rows = append(rows, running{p, p.Since(before[p.Pipeline])})
		}
		if len(rows)+len(before) > 0 && send("pipelines", rows) != nil {
			return
		}
		before = now
		st := s.Watch()
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

type past struct {
	Points []history.Point `json:"points"`
}

// history answers /api/history?seconds=N, for all series or for one (&series=).
func (s *Site) history(w http.ResponseWriter, r *http.Request) {
	if s.History == nil {
		http.Error(w, "no history is kept", http.StatusNotFound)
		return
	}
	seconds, err := strconv.ParseUint(r.URL.Query().Get("seconds"), 10, 25)
	if err != nil || seconds == 0 {
		http.Error(w, "seconds is a number of seconds", http.StatusBadRequest)
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
	out := map[string]past{}
	for _, n := range names {
		points, err := s.History.Query(r.Context(), n, to.Add(-time.Duration(seconds)*time.Second), to, 300)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		out[n] = past{Points: points}
	}
	reply(w, http.StatusOK, struct {
		Series map[string]past `json:"series"`
	}{out})
}

// Server returns a server with limits for a small device.
func Server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
}
