package web_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	"github.com/yoctune/yoctune/runtime/serve/web"
)

func serve(t *testing.T, s *web.Site) *httptest.Server {
	t.Helper()
	if s.Hub == nil {
		s.Hub = monitor.NewHub(func() *monitor.Sample { return &monitor.Sample{Type: "sample", Time: time.Now()} }, 10*time.Millisecond)
	}
	if s.Watch == nil {
		s.Watch = func() (*watch.State, error) { return nil, nil }
	}
	h, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

func get(t *testing.T, server *httptest.Server, path, host string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var b strings.Builder
	if _, err := bufio.NewReader(resp.Body).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b.String(), resp.Header
}

func TestPageLoadsNothingFromOtherHosts(t *testing.T) {
	server := serve(t, &web.Site{})
	for _, path := range []string{"/", "/app.js", "/style.css", "/uplot/uPlot.iife.min.js", "/uplot/uPlot.min.css", "/uplot/LICENSE"} {
		code, body, head := get(t, server, path, "")
		if code != 200 || body == "" {
			t.Errorf("%s: %d", path, code)
		}
		if path != "/uplot/LICENSE" && !strings.HasPrefix(path, "/uplot/") && (strings.Contains(body, "http://") || strings.Contains(body, "https://")) {
			t.Errorf("%s names another host", path)
		}
		if !strings.Contains(head.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: policy %q", path, head.Get("Content-Security-Policy"))
		}
	}
}

func TestOnlyLocalHostNamesAreAccepted(t *testing.T) {
	server := serve(t, &web.Site{})
	for host, want := range map[string]int{"localhost": 200, "127.0.0.1:8817": 200, "[::1]:8817": 200, "evil.example": 403, "evil.example:8817": 403, "127.0.0.1.evil.example": 403} {
		if code, _, _ := get(t, server, "/api/sample", host); code != want {
			t.Errorf("%s: %d, want %d", host, code, want)
		}
	}
	if code, _, _ := get(t, serve(t, &web.Site{Remote: true}), "/api/sample", "jetson.lan"); code != 200 {
		t.Errorf("remote: %d", code)
	}
}

func TestServerIsReadOnly(t *testing.T) {
	server := serve(t, &web.Site{})
	resp, err := server.Client().Post(server.URL+"/api/sample", "text/plain", strings.NewReader("x"))
	if err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("%v %v", resp, err)
	}
	for _, path := range []string{"/metrics", "/api/history?seconds=60", "/../web.go", "/assets"} {
		if code, _, _ := get(t, server, path, ""); code != 404 {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// door returns a pipeline whose worker is in a state.
func door(s worker.State) func() []*live.Snapshot {
	return func() []*live.Snapshot {
		return []*live.Snapshot{{Pipeline: "door", Worker: &worker.Status{State: s, Why: "hang: no answer in 50ms"}}}
	}
}

func state(s watch.State) func() (*watch.State, error) {
	return func() (*watch.State, error) { return &s, nil }
}

func TestHealthReportsTheReason(t *testing.T) {
	contested := []watch.Contested{{Path: "/proc/sys/vm/swappiness"}}
	for name, c := range map[string]struct {
		site web.Site
		code int
		text string
	}{
		"all well":    {web.Site{Planned: true, Watch: state(watch.State{PID: 7})}, 200, `"fine":["yoctuned enforces the plan (pid 7)","all sensors respond"]`},
		"no plan":     {web.Site{}, 200, `"fine":["no plan is installed, and no enforcer is running"`},
		"no enforcer": {web.Site{Planned: true}, 503, "yoctuned.service is not running, and did not since boot"},
		"an enforcer that ended": {
			web.Site{Planned: true, Watch: state(watch.State{Written: time.Now().Add(-time.Minute), Contested: contested})}, 503,
			`"problems":["nobody enforces the plan: yoctuned.service is not running; its last state is 1m0s old"]`,
		},
		"an enforcer that was killed": {
			web.Site{Watch: state(watch.State{Killed: 7, Written: time.Now().Add(-time.Minute), Contested: contested})}, 503,
			`"problems":["nobody enforces the plan: yoctuned.service is not running; pid 7 ended unexpectedly; its last state is 1m0s old"]`,
		},
		"an unreadable state": {web.Site{Watch: func() (*watch.State, error) { return nil, errors.New("denied") }}, 503, "enforcement is unknown: denied"},
		"contested":           {web.Site{Planned: true, Watch: state(watch.State{PID: 7, Contested: contested})}, 503, `"problems":["contested: /proc/sys/vm/swappiness"]`},
		"a worker that rests": {web.Site{Pipelines: door(worker.StateResting)}, 503, "pipeline door has no GPU: resting: hang: no answer in 50ms"},
		"a worker that works": {web.Site{Pipelines: door(worker.StateReady)}, 200, `"healthy":true`},
	} {
		code, body, _ := get(t, serve(t, &c.site), "/healthz", "")
		if code != c.code || !strings.Contains(body, c.text) {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
}

func TestStreamOfSamplesAndDrift(t *testing.T) {
	var taken atomic.Int64
	hub := monitor.NewHub(func() *monitor.Sample {
		return &monitor.Sample{Type: "sample", Monotonic: taken.Add(1), Rails: []monitor.Rail{{Label: "VDD_IN", Power: new(int64(5000))}}}
	}, time.Millisecond)
	server := serve(t, &web.Site{Hub: hub, Watch: state(watch.State{PID: 7, History: []watch.Event{{Type: watch.Drift, Path: "/proc/sys/vm/swappiness", Time: time.Unix(1, 0)}}}), Pipelines: func() []*live.Snapshot {
		return []*live.Snapshot{{Type: "pipeline", Pipeline: "door"}}
	}})
	if code, body, _ := get(t, server, "/api/pipelines", ""); code != 200 || !strings.Contains(body, `"pipeline":"door"`) {
		t.Errorf("%d %s", code, body)
	}
	resp, err := server.Client().Get(server.URL + "/api/stream")
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(resp.Body)
	events := map[string]int{}
	for events["sample"] < 3 && in.Scan() {
		if name, ok := strings.CutPrefix(in.Text(), "event: "); ok {
			events[name]++
		}
		if data, ok := strings.CutPrefix(in.Text(), "data: "); ok && !json.Valid([]byte(data)) {
			t.Errorf("%s", data)
		}
	}
	if events["drift"] != 1 || events["pipelines"] < 2 || events["enforcer"] < 2 {
		t.Errorf("%v: the same drift must be sent once", events)
	}
	_ = resp.Body.Close()
	// With watchers, Now returns their last sample. Otherwise it takes one.
	alone := func() bool {
		for range 10 {
			if n := taken.Load(); hub.Now().Monotonic != n+1 {
				return false
			}
		}
		return true
	}
	for late := time.Now().Add(time.Minute); time.Now().Before(late); {
		if alone() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("samples are taken for a closed page")
}

// Any input is answered or ends the connection soon, and does not affect the next one.
func TestHostileRequestsDoNotAffectOthers(t *testing.T) {
	h, err := (&web.Site{Hub: monitor.NewHub(func() *monitor.Sample { return &monitor.Sample{Type: "sample"} }, 50*time.Millisecond), Watch: func() (*watch.State, error) { return nil, nil }}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := web.NewServer(h)
	if server.ReadHeaderTimeout <= 0 || server.ReadTimeout <= 0 || server.WriteTimeout <= 0 || server.IdleTimeout <= 0 {
		t.Error("a client may hold a connection for ever without a request, a body or the answer")
	}
	// The test only checks that they end.
	server.ReadHeaderTimeout, server.ReadTimeout, server.IdleTimeout = 200*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	long := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct{ send, want string }{
		"slow":           {"GET / HTTP/1.1\r\nHost: localhost\r\n", ""},
		"silent":         {"", ""},
		"slow body":      {"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx", "HTTP/1.1 "},
		"no HTTP":        {"\x16\x03\x01\x02\x00\x01\x00\xff\xfe\r\n\r\n", "HTTP/1.1 400"},
		"huge query":     {"GET /api/history?seconds=" + long + " HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 431"},
		"huge header":    {"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + long + "\r\n\r\n", "HTTP/1.1 431"},
		"two hosts":      {"GET /api/sample HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 400"},
		"absolute":       {"GET http://evil.example/api/sample HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 403"},
		"foreign":        {"GET /api/sample HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 403"},
		"out of assets":  {"GET /../../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "HTTP/1.1 "},
		"not UTF-8":      {"GET /%ff HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "HTTP/1.1 404"},
		"not UTF-8, API": {"GET /api/%c3%28 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "HTTP/1.1 404"},
		"zero byte":      {"GET /x%00 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "HTTP/1.1 404"},
		"encoded escape": {"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "HTTP/1.1 "},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, c.send) // it may be cut off in the middle
			buf := make([]byte, 4096)
			n, err := io.ReadAtLeast(conn, buf, max(len(c.want), 1))
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("the connection is not closed")
			}
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("the connection is not closed after the answer")
			}
			got := string(buf[:n])
			if c.want != "" && n > 0 && !strings.HasPrefix(got, c.want) || strings.Contains(got, "root:") {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	// The stream of events has no such end.
	stream, err := http.Get("http://" + l.Addr().String() + "/api/stream")
	if err != nil {
		t.Fatal(err)
	}
	begin, in := time.Now(), bufio.NewScanner(stream.Body)
	for time.Since(begin) < 3*server.ReadTimeout && in.Scan() {
	}
	if err := in.Err(); err != nil || time.Since(begin) < 3*server.ReadTimeout {
		t.Errorf("the stream ended after %v: %v", time.Since(begin), err)
	}
	_ = stream.Body.Close()
	resp, err := http.Get("http://" + l.Addr().String() + "/api/sample")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("afterwards: %v %v", resp, err)
	}
	_ = resp.Body.Close()
}
