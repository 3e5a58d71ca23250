package web_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/monitor"
	"github.com/yoctune/yoctune/runtime/watch"
	"github.com/yoctune/yoctune/runtime/web"
)

func serve(t *testing.T, s *web.Site) *httptest.Server {
	t.Helper()
	if s.Hub == nil {
		s.Hub = monitor.NewHub(func() *monitor.Sample { return &monitor.Sample{Type: "sample", Time: time.Now()} }, 10*time.Millisecond)
	}
	if s.Watch == nil {
		s.Watch = func() *watch.State { return nil }
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

func TestThePageNeedsNothingFromElsewhere(t *testing.T) {
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

func TestOnlyThisMachinesNamesAreAnswered(t *testing.T) {
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

func TestNothingCanBeChangedAndMetricsAreThereOnlyWhenAsked(t *testing.T) {
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

func TestHealthSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		site web.Site
		code int
		text string
	}{
		"all well":       {web.Site{Planned: true, Watch: func() *watch.State { return &watch.State{PID: 7} }}, 200, `"healthy":true`},
		"no plan":        {web.Site{}, 200, `"healthy":true`},
		"nobody watches": {web.Site{Planned: true}, 503, "yoctuned.service does not run"},
		"contested": {web.Site{Planned: true, Watch: func() *watch.State {
			return &watch.State{PID: 7, Contested: []watch.Contested{{Path: "/proc/sys/vm/swappiness"}}}
		}}, 503, "contested: /proc/sys/vm/swappiness"},
	} {
		code, body, _ := get(t, serve(t, &c.site), "/healthz", "")
		if code != c.code || !strings.Contains(body, c.text) {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
}

func TestAStreamHasSamplesAndDriftAndEndsWithThePage(t *testing.T) {
	hub := monitor.NewHub(func() *monitor.Sample {
		return &monitor.Sample{Type: "sample", Rails: []monitor.Rail{{Label: "VDD_IN", Power: new(int64(5000))}}}
	}, time.Millisecond)
	server := serve(t, &web.Site{Hub: hub, Watch: func() *watch.State {
		return &watch.State{PID: 7, History: []watch.Event{{Type: watch.Drift, Path: "/proc/sys/vm/swappiness", Time: time.Unix(1, 0)}}}
	}})
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
	if events["drift"] != 1 {
		t.Errorf("%v: drift that is known is sent once", events)
	}
	_ = resp.Body.Close()
	for range 2000 {
		if hub.Watchers() == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("a page that was closed is still being sampled for")
}
