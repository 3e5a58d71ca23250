package metrics_test

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/histogram"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/runtime/device/watch"
	"github.com/yoctune/yoctune/runtime/engine/perf"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	"github.com/yoctune/yoctune/runtime/serve/metrics"
)

func scrape(t *testing.T, s *monitor.Sample, w *watch.State, pipelines ...*live.Snapshot) string {
	t.Helper()
	h, err := metrics.Handler(metrics.Source{
		Sample: func() *monitor.Sample { return s }, Watch: func() (*watch.State, error) { return w, nil }, Pipelines: func() []*live.Snapshot { return pipelines },
	})
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if rec.Code != 200 {
		t.Fatal(rec.Code, rec.Body)
	}
	return rec.Body.String()
}

func orin(t *testing.T) *monitor.Sample {
	t.Helper()
	dir := t.TempDir()
	if err := devicetest.Build(dir, "agx-orin-64gb"); err != nil {
		t.Fatal(err)
	}
	dev, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return monitor.New(dev).Take()
}

// The text is checked by the linter and the parser of Prometheus.
func TestPrometheusAcceptsTheMetrics(t *testing.T) {
	s := orin(t)
	s.Stale = []monitor.Stale{{Sensor: "x", For: 1500}}
	text := scrape(t, s, &watch.State{PID: 7, Drifts: 5, Repairs: 4, Contested: make([]watch.Contested, 1)})
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	for _, want := range []string{
		`yoctuned_rail_power_watts{rail="VIN_SYS_5V0"} 1.612`, `yoctuned_temperature_celsius{zone="tj-thermal"} 48.125`,
		`yoctuned_gpu_load_ratio{gpu="17000000.gpu"} 0.125`, `yoctuned_power_mode_info{mode="MODE_30W"} 1`, `yoctuned_throttled 0`,
		`yoctuned_enforcer_up 1`, `yoctuned_drift_events_total 5`, `yoctuned_contested_nodes 1`, `yoctuned_sensor_stale_seconds{sensor="x"} 1.5`,
		`yoctuned_memory_bytes{kind="cma_free"} 1.34217728e+08`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// What an enforcer counted is not current after its end.
func TestEnforcerThatEndedHasAnAgeAndNoCounts(t *testing.T) {
	for name, w := range map[string]*watch.State{
		"orderly": {Written: time.Now().Add(-time.Hour), Drifts: 5, Contested: make([]watch.Contested, 1)},
		"killed":  {Written: time.Now().Add(-time.Hour), Killed: 7, Drifts: 5, Contested: make([]watch.Contested, 1)},
	} {
		text := scrape(t, &monitor.Sample{}, w)
		if !regexp.MustCompile(`(?m)^yoctuned_enforcer_ended_seconds 360\d\.`).MatchString(text) || !strings.Contains(text, "\nyoctuned_enforcer_up 0\n") {
			t.Errorf("%s: %s", name, text)
		}
		for _, stale := range []string{"drift_", "contested_"} {
			if strings.Contains(text, "yoctuned_"+stale) {
				t.Errorf("%s: a stale series %s", name, stale)
			}
		}
	}
}

func TestUnreadableStateOfTheEnforcerHasNoSeries(t *testing.T) {
	ch := metrics.NewCollector(metrics.Source{
		Sample: func() *monitor.Sample { return &monitor.Sample{} },
		Watch:  func() (*watch.State, error) { return nil, errors.New("no permission") },
	})
	if n := testutil.CollectAndCount(ch, "yoctuned_enforcer_up"); n != 0 {
		t.Errorf("%d series", n)
	}
}

// door returns a pipeline that has processed two frames.
func door() *live.Snapshot {
	once := func(ns int64) histogram.Histogram {
		return histogram.Histogram{Count: 1, Sum: ns, Buckets: [][2]uint64{{uint64(histogram.Bucket(uint64(ns))), 1}}}
	}
	return &live.Snapshot{
		Type: "pipeline", Pipeline: "door", Up: 2e9, Frames: live.Frames{Read: 3, Done: 1, Dropped: 1, Failed: 1},
		Drops: map[string]uint64{"queue-full:infer": 1}, Failures: map[string]uint64{"infer": 1}, Copies: map[string]uint64{"source": 3},
		Level: 1, Levels: 3, Target: new(int64(50e6)), Latency: once(40e6),
		Stages: []live.Stage{
			{ID: "source", Instances: 1, Service: once(1e6)},
			{ID: "infer", Instances: 2, Queue: &live.Queue{Depth: 3, Capacity: 4}, Wait: once(5e6), Service: once(30e6)},
		},
		Numbers: []live.Number{
			{Stage: "infer", Name: "faces", Kind: live.KindCounter, Value: new(7.0)}, {Stage: "infer", Name: "light", Kind: live.KindGauge, Value: new(0.5)},
			{Stage: "infer", Name: "never", Kind: live.KindGauge},
		},
		Fallbacks: map[string]uint64{"pre": 3},
		Worker:    &worker.Status{State: worker.StateResting, Starts: 2, Losses: map[worker.Cause]uint64{worker.CauseHang: 2}},
		Counts:    perf.Counts{MajorFaults: new(int64(2)), Cycles: new(int64(1e9)), CPU: new(int64(15e8))}, Throttled: []string{"gpu"},
	}
}

func TestMetricsOfARunningPipeline(t *testing.T) {
	text := scrape(t, &monitor.Sample{}, nil, door())
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	for _, want := range []string{
		`yoctuned_pipeline_frames_total{fate="dropped",pipeline="door"} 1`, `yoctuned_pipeline_dropped_frames_total{pipeline="door",reason="queue-full:infer"} 1`,
		`yoctuned_pipeline_failed_frames_total{pipeline="door",stage="infer"} 1`, `yoctuned_pipeline_copies_total{pipeline="door",where="source"} 3`,
		`yoctuned_pipeline_latency_seconds_bucket{pipeline="door",le="0.033554432"} 0`, `yoctuned_pipeline_latency_seconds_bucket{pipeline="door",le="0.067108864"} 1`,
		`yoctuned_pipeline_latency_seconds_sum{pipeline="door"} 0.04`, `yoctuned_pipeline_stage_seconds_count{kind="queue",pipeline="door",stage="infer"} 1`,
		`yoctuned_pipeline_fallback_frames_total{pipeline="door",stage="pre"} 3`, `yoctuned_pipeline_worker_state{pipeline="door",state="resting"} 1`,
		`yoctuned_pipeline_worker_starts_total{pipeline="door"} 2`, `yoctuned_pipeline_worker_losses_total{cause="hang",pipeline="door"} 2`,
		`yoctuned_pipeline_queue_depth_frames{pipeline="door",stage="infer"} 3`, `yoctuned_pipeline_degrade_level{pipeline="door"} 1`,
		`yoctuned_pipeline_custom_total{metric="faces",pipeline="door",stage="infer"} 7`, `yoctuned_pipeline_custom_value{metric="light",pipeline="door",stage="infer"} 0.5`,
		`yoctuned_pipeline_page_faults_total{kind="major",pipeline="door"} 2`, `yoctuned_pipeline_cpu_events_total{event="cycles",pipeline="door"} 1e+09`,
		`yoctuned_pipeline_cpu_seconds_total{pipeline="door"} 1.5`, `yoctuned_pipeline_throttled{pipeline="door"} 1`, `yoctuned_pipeline_latency_target_seconds{pipeline="door"} 0.05`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	for _, unknown := range []string{"never", `event="instructions"`, `kind="minor"`, "migrations", `stage="source",kind="queue"`} {
		if strings.Contains(text, unknown) {
			t.Errorf("%s is unknown and has a series", unknown)
		}
	}
}

func TestUnknownValuesHaveNoSeries(t *testing.T) {
	text := scrape(t, &monitor.Sample{Rails: []monitor.Rail{{Label: "VDD_IN"}}, Zones: []monitor.Zone{{Name: "tj"}}, GPUs: []monitor.GPU{{Name: "g"}}}, nil)
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "yoctuned_build_info") && line != "yoctuned_enforcer_up 0\n" {
			t.Errorf("a sample without values gives %s", line)
		}
	}
}

func TestInvalidLabelDropsOneSeries(t *testing.T) {
	s := orin(t)
	s.Zones = append(s.Zones, s.Zones[0])
	s.Rails[0].Label = "\xff"
	if text := scrape(t, s, nil); !strings.Contains(text, `yoctuned_temperature_celsius{zone="tj-thermal"}`) {
		t.Error(text)
	}
}

// The metrics of dashboards and alerts exist, and every metric is documented.
func TestRulesAndDashboardUseDocumentedMetrics(t *testing.T) {
	exist := map[string]bool{}
	name := regexp.MustCompile(`yoctuned_[a-z_]+`)
	ch := metrics.NewCollector(metrics.Source{Sample: func() *monitor.Sample { return &monitor.Sample{} }, Watch: func() (*watch.State, error) { return nil, nil }})
	if _, err := testutil.CollectAndLint(ch); err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	descs := make(chan *prometheus.Desc, 1000)
	ch.Describe(descs)
	close(descs)
	for d := range descs {
		n := name.FindString(d.String())
		exist[n] = true
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			exist[n+part] = strings.HasSuffix(n, "_seconds") // some are histograms
		}
		if !bytes.Contains(docs, []byte("`"+n+"`")) {
			t.Errorf("docs/monitoring.md does not list %s", n)
		}
	}
	for _, file := range []string{"../../../examples/grafana/yoctuned.json", "../../../examples/prometheus/yoctuned.rules.yml", "../../../docs/monitoring.md"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range name.FindAllString(string(b), -1) {
			if !exist[n] {
				t.Errorf("%s: unknown metric %s", file, n)
			}
		}
	}
}

// promtool returns Prometheus's own checker, and skips the test without it.
func promtool(t *testing.T) string {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_PROMTOOL") != "" {
			t.Fatal("promtool is not installed (Debian: prometheus)")
		}
		t.Skip("promtool is not installed (Debian: prometheus)")
	}
	return tool
}

func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	tool := promtool(t)
	for name, w := range map[string]*watch.State{"running": {PID: 7}, "ended": {Killed: 7, Written: time.Now()}, "never": nil} {
		cmd := exec.Command(tool, "check", "metrics")
		cmd.Stdin = strings.NewReader(scrape(t, orin(t), w, door()))
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestPrometheusAcceptsTheRules(t *testing.T) {
	tool := promtool(t)
	for _, args := range [][]string{{"check", "config", "prometheus.yml"}, {"test", "rules", "yoctuned.rules_test.yml"}} {
		cmd := exec.Command(tool, args...)
		cmd.Dir = "../../../examples/prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
