// Package prometheus runs a real Prometheus, which scrapes `yoctuned serve`, loads the shipped
// alert rules and answers every query of the shipped dashboard.
package prometheus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/histogram"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/serve/metrics"
)

// startServer starts a server with the metrics of a device with a pipeline.
func startServer(t *testing.T) *httptest.Server {
	t.Helper()
	dir := t.TempDir()
	if err := devicetest.Build(dir, "agx-orin-64gb"); err != nil {
		t.Fatal(err)
	}
	dev, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	sampler, looks, frames := monitor.New(dev), atomic.Int64{}, atomic.Uint64{}
	hub := monitor.NewHub(func() *monitor.Sample {
		if err := devicetest.SimulateLoad(dir, 12, looks.Add(1)); err != nil {
			t.Error(err)
		}
		return sampler.Take()
	}, time.Second)
	h, err := metrics.Handler(metrics.Source{
		Sample: hub.Now, Watch: func() (*watch.State, error) { return &watch.State{PID: 7, Drifts: 3, Repairs: 3}, nil },
		Pipelines: func() []*live.Snapshot {
			f := frames.Add(30)
			took := histogram.Histogram{Count: f, Sum: int64(f) * 40e6, Buckets: [][2]uint64{{uint64(histogram.Bucket(40e6)), f}}}
			return []*live.Snapshot{{
				Type: "pipeline", Pipeline: "door", Up: int64(f) * 33e6, Frames: live.Frames{Read: f + 2, Done: f, Dropped: 1, Failed: 1}, Target: new(int64(50e6)),
				Drops: map[string]uint64{"queue-full:infer": f / 30}, Failures: map[string]uint64{"infer": f / 30}, Latency: took,
				Stages: []live.Stage{{ID: "infer", Instances: 1, Queue: &live.Queue{Depth: 1, Capacity: 4}, Wait: took, Service: took}},
			}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

// start runs Prometheus with the shipped configuration, pointed at the server, and
// returns its address.
func start(t *testing.T, program, target string) string {
	t.Helper()
	dir := t.TempDir()
	config, err := os.ReadFile("../../examples/prometheus/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(config)) {
		indent := line[:len(line)-len(strings.TrimLeft(line, " -"))]
		switch text := strings.TrimSpace(line); {
		case strings.Contains(text, "targets:"):
			line = indent + fmt.Sprintf("targets: [%q]\n", target)
		case strings.HasPrefix(text, "scrape_interval:"):
			line = indent + "scrape_interval: 1s\n"
		}
		lines = append(lines, line)
	}
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("../../examples/prometheus/yoctuned.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "yoctuned.rules.yml"), rules, 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(stderr.String())
		}
	})
	return "http://" + address
}

// queryAPI sends a query to Prometheus and decodes the answer's data into out.
func queryAPI(address, path string, out any) error {
	resp, err := http.Get(address + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var a struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return err
	}
	if a.Status != "success" {
		return fmt.Errorf("%s: %s", a.Status, a.Error)
	}
	return json.Unmarshal(a.Data, out)
}

type vector struct {
	Result []struct {
		Metric map[string]string
		Value  [2]any
	}
}

func queryVector(address, expr string) (v vector, err error) {
	err = queryAPI(address, "/api/v1/query?query="+url.QueryEscape(expr), &v)
	return v, err
}

func TestPrometheusScrapesAndAnswersTheDashboard(t *testing.T) {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_PROMTOOL") != "" {
			t.Fatal("prometheus is not installed (Debian: prometheus)")
		}
		t.Skip("prometheus is not installed (Debian: prometheus)")
	}
	address := start(t, program, strings.TrimPrefix(startServer(t).URL, "http://"))
	// Rates need two scrapes.
	late := time.Now().Add(2 * time.Minute)
	for {
		v, err := queryVector(address, `count_over_time(yoctuned_pipeline_frames_total{fate="done"}[1m]) >= 3`)
		if err == nil && len(v.Result) == 1 {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("nothing was scraped: %+v %v", v, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
	b, err := os.ReadFile("../../examples/grafana/yoctuned.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			asked++
			// The values that Grafana substitutes for its variables.
			expr := strings.NewReplacer("$instance", ".*", "$__rate_interval", "1m").Replace(target.Expr)
			if v, err := queryVector(address, expr); err != nil || len(v.Result) == 0 {
				t.Errorf("panel %q: %s gives %d series, %v", p.Title, expr, len(v.Result), err)
			}
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := queryAPI(address, "/api/v1/rules", &rules); err != nil {
		t.Fatal(err)
	}
	if len(rules.Groups) != 1 || len(rules.Groups[0].Rules) < 10 {
		t.Fatalf("%+v", rules)
	}
	for _, r := range rules.Groups[0].Rules {
		if r.Health == "err" {
			t.Errorf("rule %s: %s", r.Name, r.LastError)
		}
	}
	p95, err := queryVector(address, `histogram_quantile(0.95, sum by (le) (rate(yoctuned_pipeline_latency_seconds_bucket[1m])))`)
	if err != nil || len(p95.Result) != 1 {
		t.Fatalf("%+v %v", p95, err)
	}
	// The bucket of 40 ms ends at 42.
	if v, ok := p95.Result[0].Value[1].(string); !ok || !strings.HasPrefix(v, "0.041") {
		t.Errorf("of frames that took 40 ms the 95th percentile is %v", p95.Result[0].Value[1])
	}
	t.Logf("saw: %d queries answered, %d rules loaded, p95 of 40 ms frames by Prometheus: %v s", asked, len(rules.Groups[0].Rules), p95.Result[0].Value[1])
}
