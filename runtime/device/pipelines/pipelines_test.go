package pipelines_test

import (
	"errors"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/histogram"
	"github.com/yoctune/yoctune/runtime/device/pipelines"
)

// progress returns the statistics of a pipeline after some frames of 50 ms each.
func progress(seconds int64, frames, dropped uint64) *pipelines.Progress {
	p := &pipelines.Progress{
		Type: "pipeline", Pipeline: "door", PID: 7, At: seconds * 1e9, Up: seconds * 1e9, Target: new(int64(33e6)),
		Latency: histogram.Histogram{Count: frames, Buckets: [][2]uint64{{uint64(histogram.Bucket(50e6)), frames}}},
	}
	p.Frames.Dropped = dropped
	return p
}

func TestMissedTarget(t *testing.T) {
	relaxed := progress(2, 20, 0)
	relaxed.Target = new(int64(60e6))
	without := progress(2, 20, 9)
	without.Target = nil
	restarted := progress(2, 5, 0)
	restarted.PID = 8
	for _, c := range []struct {
		name        string
		now, before *pipelines.Progress
		want        bool
	}{
		{"95th percentile above the target", progress(2, 20, 0), progress(1, 10, 0), true},
		{"95th percentile below the target", relaxed, progress(1, 10, 0), false},
		{"frames only dropped", progress(2, 10, 3), progress(1, 10, 0), true},
		{"no frames", progress(2, 10, 3), progress(1, 10, 3), false},
		{"no objective", without, progress(1, 10, 0), false},
		{"no earlier reading", progress(2, 20, 0), nil, false},
		{"another run counts from its start", restarted, progress(1, 10, 0), true},
	} {
		if got := c.now.MissedTarget(c.before); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestFileName(t *testing.T) {
	if got := pipelines.FileName("../b é"); got != "___b___" {
		t.Errorf("%q", got)
	}
}

func FuzzDecodeProgress(f *testing.F) {
	f.Add([]byte(`{"type":"pipeline","target_ns":1,"latency_ns":{"count":1,"buckets":[[99999999,1],[3,18446744073709551615]]}}`))
	f.Add([]byte(`{"type":"sample"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := pipelines.DecodeProgress(b)
		if err != nil {
			if !errors.Is(err, pipelines.ErrAnswer) {
				t.Fatal(err)
			}
			return
		}
		p.MissedTarget(p)
		p.MissedTarget(progress(1, 10, 0))
	})
}
