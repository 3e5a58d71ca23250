package metrics_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/yoctune/yoctune/runtime/device"
	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/metrics"
	"github.com/yoctune/yoctune/runtime/monitor"
	"github.com/yoctune/yoctune/runtime/watch"
)

func scrape(t *testing.T, s *monitor.Sample, w *watch.State) string {
	t.Helper()
	h, err := metrics.Handler(metrics.Source{Sample: func() *monitor.Sample { return s }, Watch: func() *watch.State { return w }})
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
	dev, err := device.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return monitor.New(dev).Take()
}

// Prometheus' own linter reads the text with Prometheus' own parser.
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

func TestWhatIsUnknownHasNoSeries(t *testing.T) {
	text := scrape(t, &monitor.Sample{Rails: []monitor.Rail{{Label: "VDD_IN"}}, Zones: []monitor.Zone{{Name: "tj"}}, GPUs: []monitor.GPU{{Name: "g"}}}, nil)
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "yoctuned_build_info") && line != "yoctuned_enforcer_up 0\n" {
			t.Errorf("a sample that knows nothing gives %s", line)
		}
	}
}

func TestADuplicateOrABrokenLabelCostsOneSeriesOnly(t *testing.T) {
	s := orin(t)
	s.Zones = append(s.Zones, s.Zones[0])
	s.Rails[0].Label = "\xff"
	if text := scrape(t, s, nil); !strings.Contains(text, `yoctuned_temperature_celsius{zone="tj-thermal"}`) {
		t.Error(text)
	}
}

// What dashboards and alerts ask for exists, and every name is documented.
func TestTheShippedRulesAndDashboardUseNamesThatExistAndAreDocumented(t *testing.T) {
	exist := map[string]bool{}
	name := regexp.MustCompile(`yoctuned_[a-z_]+`)
	ch := metrics.New(metrics.Source{Sample: func() *monitor.Sample { return &monitor.Sample{} }, Watch: func() *watch.State { return nil }})
	if _, err := testutil.CollectAndLint(ch); err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range metrics.Names() {
		exist[n] = true
		if !bytes.Contains(docs, []byte("`"+n+"`")) {
			t.Errorf("docs/monitoring.md does not list %s", n)
		}
	}
	for _, file := range []string{"../../examples/grafana/yoctuned.json", "../../examples/prometheus/yoctuned.rules.yml", "../../docs/monitoring.md"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range name.FindAllString(string(b), -1) {
			if !exist[n] {
				t.Errorf("%s: there is no metric %s", file, n)
			}
		}
	}
}

func TestPrometheusAcceptsTheRules(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_PROMTOOL") != "" {
			t.Fatal("promtool is not installed (Debian: prometheus)")
		}
		t.Skip("promtool is not installed (Debian: prometheus)")
	}
	for _, args := range [][]string{{"check", "config", "prometheus.yml"}, {"test", "rules", "yoctuned.rules_test.yml"}} {
		cmd := exec.Command(tool, args...)
		cmd.Dir = "../../examples/prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
