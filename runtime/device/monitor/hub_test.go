package monitor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

func TestWatchersShareSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken atomic.Int64
		hub := monitor.NewHub(func() *monitor.Sample { return &monitor.Sample{Monotonic: taken.Add(1)} }, time.Second)
		time.Sleep(time.Minute)
		if taken.Load() != 0 {
			t.Fatalf("%d samples without watchers", taken.Load())
		}
		ctx, leave := context.WithCancel(t.Context())
		for range 10 {
			go func() {
				for range hub.Watch(ctx) {
				}
			}()
		}
		slow := hub.Watch(ctx) // never read until the end
		time.Sleep(10500 * time.Millisecond)
		if n := taken.Load(); n != 11 {
			t.Errorf("%d samples in 10.5 s for eleven watchers", n)
		}
		if s := <-slow; s.Monotonic != 11 {
			t.Errorf("a slow watcher receives sample %d, not the last", s.Monotonic)
		}
		leave()
		synctest.Wait()
		n := taken.Load()
		time.Sleep(time.Hour)
		if taken.Load() != n {
			t.Errorf("%d samples after the last watcher left", taken.Load()-n)
		}
		ctx, leave = context.WithCancel(t.Context())
		if s := <-hub.Watch(ctx); s.Monotonic != n+1 {
			t.Errorf("a watcher that returns receives sample %d", s.Monotonic)
		}
		leave()
		synctest.Wait()
		time.Sleep(2 * time.Second)
	})
}

func TestSummary(t *testing.T) {
	s := monitor.NewSummary()
	for n := range 100 {
		sample := &monitor.Sample{Monotonic: int64(n) * int64(time.Second), Rails: []monitor.Rail{{Label: "VDD_IN", Power: new(int64(n + 1))}}}
		if n%10 == 0 {
			sample.Rails[0].Power = nil
			sample.Cooling = []monitor.Cooling{{Name: "cpufreq-cpu0", State: new(int64(1))}}
		} else if n%10 < 5 { // unknown in the others
			sample.Cooling = []monitor.Cooling{{Name: "cpufreq-cpu0", State: new(int64(0))}}
		}
		if err := s.Add(sample); err != nil {
			t.Fatal(err)
		}
	}
	got := s.Series()[1] // the first is what the first sample had: throttling
	// 2…10, 12…20, …: ninety values; the nearest ranks are the 45th, 86th and 90th.
	want := monitor.Series{Type: "series", Name: "rail VDD_IN", Unit: "mW", N: 90, Min: 2, Avg: 51, P50: 50, P95: 96, P99: 100, Max: 100}
	if got != want {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	if s.Duration != 99*time.Second || *s.Throttled() != 0.2 {
		t.Errorf("%v, throttled %v", s.Duration, *s.Throttled())
	}
}

func TestReadIgnoresATruncatedLastLine(t *testing.T) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	for n := range 3 {
		if err := enc.Encode(monitor.Sample{Type: "sample", Monotonic: int64(n)}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(text string) (n int, err error) {
		err = monitor.Read(strings.NewReader(text), func(*monitor.Sample) error { n++; return nil })
		return n, err
	}
	if n, err := count(buf.String()); n != 3 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if n, err := count(buf.String()[:buf.Len()-10]); n != 2 || err != nil {
		t.Errorf("cut: %d %v", n, err)
	}
	for _, bad := range []string{"", "hello\n", "{\"type\":\"sample\",\"cpus\":7}\n", strings.Repeat("x", 2<<20)} {
		if _, err := count(bad); !errors.Is(err, monitor.ErrRecording) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("{\"type\":\"sample\",\"cpus\":[{\"cpu\":0,\"load_permille\":500}]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := monitor.NewSummary()
		if err := monitor.Read(bytes.NewReader(data), s.Add); err != nil && !errors.Is(err, monitor.ErrRecording) {
			t.Fatal(err)
		}
		s.Series()
	})
}

func FuzzTables(f *testing.F) {
	f.Add("Node 0, zone   Normal   200  100   50\n")
	f.Add("MemTotal:        7802352 kB\n")
	f.Add("user vision 812 262144K\ntotal 262144K\n")
	f.Add("some avg10=0.50 avg60=0.00 avg300=0.00 total=1")
	f.Add("0-3,5")
	f.Fuzz(func(t *testing.T, text string) {
		rootfs.Meminfo(text)
		if size, n := monitor.Largest(monitor.Buddyinfo(text), 4096); (size == nil) != (n == nil) || size != nil && *size <= 0 {
			t.Fatalf("largest %v %v", size, n)
		}
		for _, c := range monitor.ParseNVMap(text).Clients {
			if c.Bytes < 0 {
				t.Fatalf("%+v", c)
			}
		}
		if p := monitor.SomePressure(text); p != nil && !(*p >= 0 && *p <= 100) {
			t.Fatal(*p)
		}
	})
}
