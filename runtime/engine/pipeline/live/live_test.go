package live_test

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/histogram"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
	"github.com/yoctune/yoctune/runtime/engine/perf"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/engine/trace"
)

// latency is what these durations are as they are shown.
func latency(ns ...uint64) histogram.Histogram {
	var counts [histogram.Buckets]uint64
	out := histogram.Histogram{Buckets: [][2]uint64{}}
	for _, v := range ns {
		counts[histogram.Bucket(v)]++
		out.Count++
		out.Sum += int64(v)
	}
	for b, n := range counts {
		if n > 0 {
			out.Buckets = append(out.Buckets, [2]uint64{uint64(b), n})
		}
	}
	return out
}

func snapshot(name string) *live.Snapshot {
	return &live.Snapshot{
		Type: "pipeline", Pipeline: name, PID: 7, At: 10e9, Up: 5e9, Frames: live.Frames{Read: 100, Done: 90, Dropped: 10},
		Drops: map[string]uint64{"queue-full:a": 10}, Latency: latency(1e6, 2e6), Levels: 1,
		Stages: []live.Stage{{ID: "a", Instances: 1, Queue: &live.Queue{Depth: 1, Capacity: 4}, Service: latency(1e6)}},
	}
}

// The enforcer does not link the engine; it parses the same document with a type of its own.
func TestTheEnforcerReadsTheSameDocument(t *testing.T) {
	s := snapshot("door")
	s.Target = new(int64(33e6))
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipelines.DecodeProgress(b)
	if err != nil {
		t.Fatal(err)
	}
	want := pipelines.Progress{Type: s.Type, Pipeline: s.Pipeline, PID: s.PID, At: s.At, Up: s.Up, Target: s.Target, Latency: s.Latency}
	want.Frames.Dropped = s.Frames.Dropped
	if !reflect.DeepEqual(*p, want) {
		t.Errorf("%+v, want %+v", *p, want)
	}
}

func TestTwoSnapshotsGiveRates(t *testing.T) {
	before, now := snapshot("door"), snapshot("door")
	now.At, now.Up = 12e9, 7e9
	now.Frames = live.Frames{Read: 160, Done: 149, Dropped: 11}
	now.Drops = map[string]uint64{"queue-full:a": 10, "deadline:a": 1}
	now.Stages[0].Service = latency(1e6, 500e6, 500e6)
	before.Counts, now.Counts = perf.Counts{MinorFaults: new(int64(3))}, perf.Counts{MinorFaults: new(int64(5))}
	r := now.Since(before)
	if *r.FPS != 29.5 || r.Frames.Dropped != 1 || len(r.Drops) != 1 || r.Drops["deadline:a"] != 1 || *r.Stages[0].Busy != 0.5 || *r.Counts.MinorFaults != 2 || r.P50 != nil {
		t.Errorf("%+v", r)
	}
	// Another run of the same pipeline: since its start.
	before.At = 1e9
	if r := now.Since(before); r.Seconds != 7 || r.Frames.Done != 149 {
		t.Errorf("%+v", r)
	}
	if r := now.Since(nil); r.Seconds != 7 {
		t.Errorf("%+v", r)
	}
}

func TestEveryClientIsAnswered(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"door", "../b é"} {
		s, err := live.Serve(t.Context(), pipelines.Path(dir, name), "door", trace.New(64), func() *live.Snapshot { return snapshot(name) })
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
	}
	if st, err := os.Stat(pipelines.Path(dir, "door")); err != nil || st.Mode().Perm() != 0o666 {
		t.Errorf("%v %v", st, err)
	}
	// The list skips a socket without a process and a plain file. A process with an invalid answer
	// is an error.
	dead := pipelines.Path(dir, "dead")
	if err := os.MkdirAll(filepath.Dir(dead), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	nonsense := pipelines.Path(dir, "nonsense")
	if err := os.MkdirAll(filepath.Dir(nonsense), 0o755); err != nil {
		t.Fatal(err)
	}
	if l, err = net.ListenUnix("unix", &net.UnixAddr{Name: nonsense}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(`{"type":"sample"}`))
			_ = c.Close()
		}
	}()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	list, errs := live.All(dir)
	if len(list) != 2 || list[0].Pipeline != "../b é" || list[1].Frames.Done != 90 {
		t.Errorf("%+v", list)
	}
	if len(errs) != 1 || !errors.Is(errs[0], pipelines.ErrAnswer) || !strings.Contains(errs[0].Error(), "nonsense") {
		t.Errorf("%v", errs)
	}
	if _, err := pipelines.Read(dead, live.Decode); !errors.Is(err, pipelines.ErrNotRunning) {
		t.Errorf("%v", err)
	}
	if list, errs := live.All(filepath.Join(dir, "none")); list != nil || errs != nil {
		t.Errorf("%v %v", list, errs)
	}
	// A second server of the same pipeline is refused.
	if _, err := live.Serve(t.Context(), pipelines.Path(dir, "door"), "door", trace.New(64), nil); err == nil {
		t.Error("two servers of one pipeline are accepted")
	}
}

// A snapshot that hangs in a sensor blocks neither Close nor the requests to other pipelines.
// A folder that systemd or the user has made stays.
func TestTheFolderOfTheSocketIsRemovedByItsMaker(t *testing.T) {
	dir := t.TempDir()
	for _, existed := range []bool{false, true} {
		path := filepath.Join(dir, "door", pipelines.Socket)
		if existed {
			if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		s, err := live.Serve(t.Context(), path, "door", trace.New(64), func() *live.Snapshot { return snapshot("door") })
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Dir(path)); (err == nil) != existed {
			t.Errorf("the folder existed: %v; after the end: %v", existed, err)
		}
	}
}

func TestAHangingSnapshotDoesNotBlockClose(t *testing.T) {
	dir := t.TempDir()
	let := make(chan bool)
	defer close(let)
	hung, err := live.Serve(t.Context(), pipelines.Path(dir, "hung"), "door", trace.New(64), func() *live.Snapshot { <-let; return snapshot("hung") })
	if err != nil {
		t.Fatal(err)
	}
	well, err := live.Serve(t.Context(), pipelines.Path(dir, "well"), "door", trace.New(64), func() *live.Snapshot { return snapshot("well") })
	if err != nil {
		t.Fatal(err)
	}
	list, errs := live.All(dir)
	if len(list) != 1 || list[0].Pipeline != "well" || len(errs) != 1 {
		t.Errorf("%+v %v", list, errs)
	}
	if err := hung.Close(); !errors.Is(err, live.ErrAnswering) {
		t.Errorf("%v", err)
	}
	if err := well.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	b, err := json.Marshal(snapshot("door"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"type":"pipeline","latency_ns":{"count":1,"buckets":[[99999999,1],[3,18446744073709551615]]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := live.Decode(b)
		if err != nil {
			if !errors.Is(err, pipelines.ErrAnswer) {
				t.Fatal(err)
			}
			return
		}
		// Using a decoded snapshot must not panic, whatever the other process sent.
		s.Since(nil)
		s.Since(snapshot("door"))
		snapshot("door").Since(s)
		s.Latency.Cumulative(histogram.Bounds(4))
	})
}
