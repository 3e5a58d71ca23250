// Package browser tests the page of `yoctuned serve` and the pages of `yoctune review` and `tasks`
// in Chromium: with mouse and keyboard, in light and dark, and at several widths.
package browser

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/histogram"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/serve/history"
	"github.com/yoctune/yoctune/runtime/serve/web"
)

// require skips the test, or fails it, when a tool of `scripts/setup.sh browser` is missing.
func require(t *testing.T, missing bool, what string) {
	t.Helper()
	switch {
	case !missing:
	case os.Getenv("YOCTUNE_REQUIRE_BROWSER") != "":
		t.Fatal(what)
	default:
		t.Skip(what)
	}
}

// screenshots returns the folder for screenshots, which people inspect.
func screenshots(t *testing.T) string {
	if dir := os.Getenv("YOCTUNE_SCREENSHOTS"); dir != "" {
		return dir
	}
	return t.TempDir()
}

// browserTools returns Chromium and the folder of Playwright, or skips the test.
func browserTools(t *testing.T) (program, modules string) {
	t.Helper()
	program, err := exec.LookPath("chromium")
	require(t, err != nil, "no chromium: scripts/setup.sh browser")
	if modules, err = filepath.Abs("../../build/browser/node_modules"); err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(modules, "playwright-core"))
	require(t, err != nil, "no playwright-core: scripts/setup.sh browser")
	return program, modules
}

// runBrowserScript runs a script that controls Chromium and decodes its observations.
func runBrowserScript(t *testing.T, saw any, script string, args ...string) {
	t.Helper()
	program, modules := browserTools(t)
	cmd := exec.CommandContext(t.Context(), "node", append([]string{script, program}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	if err := json.Unmarshal(out.Bytes(), saw); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
}

// serveBoard serves the page of a synthetic board whose load changes from sample to sample.
func serveBoard(t *testing.T, interval time.Duration) *httptest.Server {
	t.Helper()
	dir := t.TempDir()
	if err := devicetest.Build(dir, "agx-orin-64gb"); err != nil {
		t.Fatal(err)
	}
	dev, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	sampler, n := monitor.New(dev), atomic.Int64{}
	hub := monitor.NewHub(func() *monitor.Sample {
		if err := devicetest.SimulateLoad(dir, 12, n.Add(1)); err != nil {
			t.Error(err)
		}
		return sampler.Take()
	}, interval)
	store, _, err := history.Open(t.Context(), filepath.Join(t.TempDir(), "history.db"), 32<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close(t.Context()) })
	recordDay(t, store, hub)
	frames, killed := atomic.Uint64{}, atomic.Bool{}
	h, err := (&web.Site{
		Device: rootfs.Identify(dev), Hostname: "bench-7", Hub: hub, History: store, Planned: true,
		Watch: func() (*watch.State, error) {
			s := &watch.State{PID: 7, Written: time.Now().Add(-3 * time.Minute), History: []watch.Event{{
				Type: watch.Drift, Path: "/proc/sys/vm/swappiness", Found: "<b>77</b>", Outcome: "ok", Time: time.Now(), By: &rootfs.Process{PID: 812, Command: "sh"},
			}}}
			if killed.Load() {
				s.PID, s.Killed = 0, s.PID
			}
			return s, nil
		},
		Pipelines: func() []*live.Snapshot {
			f := frames.Add(6)
			return []*live.Snapshot{{
				Type: "pipeline", Pipeline: "door", At: int64(f) * 33e6, Up: int64(f) * 33e6, Levels: 3, Level: 1, Target: new(int64(100e6)),
				Frames: live.Frames{Read: f, Done: f}, Stages: []live.Stage{{ID: "infer", Service: histogram.Histogram{Count: f, Sum: int64(f) * 20e6}}},
				Latency: histogram.Histogram{Count: f, Sum: int64(f) * 40e6, Buckets: [][2]uint64{{uint64(histogram.Bucket(40e6)), f}}},
			}}
		},
	}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	var server *httptest.Server
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.HandleFunc("POST /test/kill", func(http.ResponseWriter, *http.Request) { killed.Store(true) })
	mux.HandleFunc("POST /test/end", func(http.ResponseWriter, *http.Request) {
		_ = server.Listener.Close()
		go server.CloseClientConnections()
	})
	server = httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}

// recordDay fills a history as a day of serve does, the last minute not yet written.
func recordDay(t *testing.T, store *history.Store, hub *monitor.Hub) {
	t.Helper()
	hub.Now() // loads are since the sample before
	samples := make([]*monitor.Sample, 20)
	for i := range samples {
		samples[i] = hub.Now()
	}
	now := time.Now()
	at := now.Add(-25 * time.Hour)
	for n := 0; at.Before(now); n++ {
		s := *samples[n%len(samples)]
		s.Time = at
		store.Add(&s)
		step := 5 * time.Minute
		if now.Sub(at) < 90*time.Minute {
			step = 10 * time.Second
		}
		if at = at.Add(step); store.Pending() > 100 && now.Sub(at) > time.Minute {
			if err := store.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Recording goes on.
	tick, ended := time.NewTicker(time.Second), make(chan bool)
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-t.Context().Done():
				return
			case at := <-tick.C:
				s := *samples[n%len(samples)]
				s.Time = at
				store.Add(&s)
			}
		}
	}()
	t.Cleanup(func() { <-ended })
}

// What a person saw.
type seen struct {
	Complaints, Elsewhere                          []string
	Misfits                                        map[string][]string
	Painted                                        map[string]int
	Tiles                                          map[string]string
	Mode, Title, Drift, Pipelines, Pressed, Legend string
	Light, Dark, System, State                     string
	Host, Enforcer, Killed, DriftNote, LegendTime  string
	Paused, Old                                    bool
	Overlaps                                       map[string][]string
	Covered                                        map[string]map[string]float64
	Texts                                          map[string]map[string][]string
}

// checkCharts checks what the charts of the history show.
func (s *seen) checkCharts(t *testing.T) {
	t.Helper()
	for where, list := range s.Overlaps {
		if len(list) > 0 {
			t.Errorf("%s: %q", where, list)
		}
	}
	for _, name := range []string{"1 min", "5 min", "1 h", "24 h"} {
		for chart, share := range s.Covered[name] {
			if share < 0.7 {
				t.Errorf("%s: the curves of %s cover %.0f %% of the width", name, chart, 100*share)
			}
		}
		if len(s.Covered[name]) != 8 {
			t.Errorf("%s: %d charts", name, len(s.Covered[name]))
		}
		clock := regexp.MustCompile(`^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$`)
		var times, others int
		for _, text := range s.Texts[name]["Load"] {
			switch {
			case clock.MatchString(text):
				times++
			case !regexp.MustCompile(`^(\d+|[A-Z][a-z]{2} \d+)$`).MatchString(text):
				others++
			}
		}
		if times < 3 || others > 0 {
			t.Errorf("%s: the axes are labelled %q", name, s.Texts[name]["Load"])
		}
	}
	for chart, want := range map[string]string{"Temperature": "slowed at 99 °C", "Clocks": "cpu limit", "Memory": "total", "Pressure stall": "10"} {
		if text := strings.Join(s.Texts["5 min"][chart], "|"); !strings.Contains(text, want) {
			t.Errorf("%s has no %q: %s", chart, want, text)
		}
	}
	if ok, _ := regexp.MatchString(`^time:?\s*\d\d:\d\d:\d\d$`, s.LegendTime); !ok {
		t.Errorf("the legend's time is %q", s.LegendTime)
	}
}

func TestPageRendersInChromium(t *testing.T) {
	var s seen
	runBrowserScript(t, &s, "page.cjs", serveBoard(t, time.Hour).URL+"/", serveBoard(t, 200*time.Millisecond).URL+"/", screenshots(t))
	if len(s.Complaints) > 0 || len(s.Elsewhere) > 0 {
		t.Errorf("Chromium complains of %q; asked elsewhere: %q", s.Complaints, s.Elsewhere)
	}
	for where, list := range s.Misfits {
		if len(list) > 0 {
			t.Errorf("%s: %q", where, list)
		}
	}
	s.checkCharts(t)
	if s.Host != "bench-7" || s.Enforcer != "yoctuned enforces the plan (pid 7)" || !s.Old {
		t.Errorf("host %q, enforcer %q, old values are marked: %v", s.Host, s.Enforcer, s.Old)
	}
	if !strings.HasPrefix(s.Killed, "nobody enforces the plan: yoctuned.service is not running; pid 7 ended unexpectedly; its last state is 3m") ||
		s.DriftNote != "recorded by an enforcer that has ended, 3 min ago; nothing is repaired now" {
		t.Errorf("after a kill: %q, %q", s.Killed, s.DriftNote)
	}
	if ok, _ := regexp.MatchString(`^disconnected: values of \d\d:\d\d:\d\d, \d+ s old$`, s.State); !ok {
		t.Errorf("without a connection the state is %q", s.State)
	}
	if len(s.Misfits) != 7 {
		t.Errorf("looked at %d widths", len(s.Misfits))
	}
	for _, chart := range []string{"Load", "Cores", "Clocks", "Power", "Temperature", "Memory", "Pressure stall", "Fan"} {
		if s.Painted[chart] < 20 {
			t.Errorf("chart %s has %d coloured pixels", chart, s.Painted[chart])
		}
	}
	for tile, want := range map[string]string{"CPU": `^\d+\.\d %$`, "VIN_SYS_5V0": `^1\.61 W$`, "throttled by": "^nothing$", "memory used": `^\d+ MiB$`} {
		if ok, _ := regexp.MatchString(want, s.Tiles[tile]); !ok {
			t.Errorf("tile %s is %q, want %s; all: %v", tile, s.Tiles[tile], want, s.Tiles)
		}
	}
	if s.Mode != "power mode MODE_30W" || !strings.HasSuffix(s.Title, " – yoctuned") || s.Pressed != "true" || !s.Paused {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(s.Legend, "VIN_SYS_5V01612") {
		t.Errorf("a legend without a pointer does not have the latest values: %q", s.Legend)
	}
	if !strings.Contains(s.Drift, "/proc/sys/vm/swappiness<b>77</b>sh (pid 812)ok") {
		t.Errorf("drift is shown as %q", s.Drift)
	}
	if ok, _ := regexp.MatchString(`^door30\.340\.\d+40\.\d+met1 of 2\d+00infer \d+ %$`, s.Pipelines); !ok {
		t.Errorf("pipelines are shown as %q", s.Pipelines)
	}
	if s.Light == s.Dark || s.System != s.Dark {
		t.Errorf("light %q, dark %q, dark by preference %q", s.Light, s.Dark, s.System)
	}
	t.Logf("saw: %d layouts without misfits, %d charts painted, %q then %q, tiles %v", len(s.Misfits), len(s.Painted), s.Light, s.Dark, s.Tiles)
}
