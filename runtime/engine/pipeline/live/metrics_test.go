package live_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
)

func TestStagesHaveTheirOwnMetrics(t *testing.T) {
	var r live.Registry
	faces, err := r.Counter("faces", "seen")
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.Counter("faces", "seen")
	if err != nil || again != faces {
		t.Errorf("second registration: %p and %p, %v", faces, again, err)
	}
	light, err := r.Gauge("faces", "light")
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Numbers(); n[0].Value != nil || n[1].Value != nil {
		t.Errorf("a metric that was never set is %+v", n)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				faces.Add(1)
			}
		})
	}
	all.Wait()
	for _, ignored := range []float64{-1, math.NaN(), math.Inf(1)} {
		faces.Add(ignored)
	}
	faces.Set(7)
	light.Set(0.5)
	light.Add(-1)
	light.Set(math.Inf(-1))
	n := r.Numbers()
	if *n[0].Value != 8000 || n[0].Kind != live.KindCounter || *n[1].Value != -0.5 || n[1].Kind != live.KindGauge {
		t.Errorf("%+v %v %v", n, *n[0].Value, *n[1].Value)
	}
	light.Set(math.NaN())
	if n := r.Numbers(); n[1].Value != nil {
		t.Errorf("a gauge that is unknown again is %v", *n[1].Value)
	}
}

func TestInvalidAndTooManyMetricsAreRefused(t *testing.T) {
	var r live.Registry
	for _, name := range []string{"", "A", "1x", "a-b", "a b", "ä", strings.Repeat("x", 65), "a\n"} {
		if _, err := r.Counter("s", name); !errors.Is(err, live.ErrMetric) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := r.Counter("s", "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Gauge("s", "x"); !errors.Is(err, live.ErrMetric) {
		t.Errorf("a counter that is a gauge: %v", err)
	}
	var last error
	for n := range 200 {
		_, last = r.Gauge("s", fmt.Sprintf("g%d", n))
	}
	if !errors.Is(last, live.ErrMetric) || len(r.Numbers()) != 128 {
		t.Errorf("%d numbers, %v", len(r.Numbers()), last)
	}
}
