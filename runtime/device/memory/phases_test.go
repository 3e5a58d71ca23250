package memory

import (
	"testing"
	"time"
)

func TestEachPhaseHasItsOwnPeak(t *testing.T) {
	var held, most int64 = 10, 10
	p := Phases{read: func() (int64, int64, bool) { return held, most, true }}
	p.Begin("load")
	held, most = 80, 100 // it was at 100 between two looks
	p.Begin("warm up")
	held = 90
	p.Begin("run")
	held = 40
	p.Sample()
	phases, timeline := p.Snapshot()
	want := []struct {
		name             string
		start, end, peak int64
		exact            bool
	}{{"load", 10, 80, 100, true}, {"warm up", 80, 90, 90, false}, {"run", 90, 40, 90, false}}
	if len(phases) != len(want) {
		t.Fatalf("%+v", phases)
	}
	for i, w := range want {
		g := phases[i]
		if g.Name != w.name || *g.Start != w.start || *g.End != w.end || *g.Peak != w.peak || g.Exact != w.exact {
			t.Errorf("%s: from %d to %d, peak %d, exact %v; want %+v", g.Name, *g.Start, *g.End, *g.Peak, g.Exact, w)
		}
	}
	if len(timeline) == 0 || timeline[0].Bytes != 80 {
		t.Errorf("%+v", timeline)
	}
}

func TestTimelineIsBounded(t *testing.T) {
	p := Phases{read: func() (int64, int64, bool) { return 1, 1, true }}
	p.Begin("run")
	start := p.began
	for s := range 100_000 {
		p.mu.Lock()
		p.addPoint(start.Add(time.Duration(s)*time.Second), false)
		p.mu.Unlock()
	}
	_, timeline := p.Snapshot()
	if n := len(timeline); n < timelinePoints/2-1 || n > timelinePoints {
		t.Errorf("%d points", n)
	}
	if last := timeline[len(timeline)-1].At; last < 90_000*time.Second {
		t.Errorf("it ends after %v", last)
	}
}

func TestMissingKernelFiguresAreUnknown(t *testing.T) {
	p := Phases{read: func() (int64, int64, bool) { return 0, 0, false }}
	p.Begin("load")
	if phases, timeline := p.Snapshot(); phases[0].Start != nil || phases[0].Peak != nil || len(timeline) != 0 {
		t.Errorf("%+v %+v", phases, timeline)
	}
	for _, text := range []string{"", "VmRSS:\t10 kB\n", "VmRSS:\tx kB\nVmHWM:\t1 kB\n"} {
		if _, _, ok := Resident(text); ok {
			t.Errorf("%q was accepted", text)
		}
	}
	if held, most, ok := Resident("VmHWM:\t  20 kB\nVmRSS:\t  12 kB\n"); !ok || held != 12<<10 || most != 20<<10 {
		t.Errorf("%d, %d, %v", held, most, ok)
	}
}
