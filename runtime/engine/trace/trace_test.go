package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/trace"
)

const ms = int64(time.Millisecond)

// recorded is three frames through two stages, the second with a batch of two.
func recorded() *trace.Recorder {
	r := trace.New(16)
	pre, infer, infer2 := r.Track("pre", 0, ""), r.Track("infer", 0, "onnxruntime cpu"), r.Track("infer", 1, "onnxruntime cpu")
	base := int64(time.Hour)
	for f := range int64(3) {
		pre.Span(uint64(f), base+10*f*ms, base+(10*f+2)*ms, ms/2, false)
	}
	infer.Span(0, base+22*ms, base+52*ms, 20*ms, false)
	infer.Span(1, base+22*ms, base+52*ms, 10*ms, true)
	infer2.Span(2, base+22*ms, base+60*ms, 0, false)
	late := r.Reason("too-old:infer")
	for f := range uint64(2) {
		r.Frame(f, base-ms, base+52*ms, trace.Done, 0)
	}
	r.Frame(2, base-ms, base+60*ms, trace.Dropped, late)
	r.Counter("degrade level").Set(base, 1)
	r.Instant(base+5*ms, "degrade", "latency\xff")
	return r
}

// Perfetto rejects complete events that overlap on one track, asynchronous ends without a
// begin, and flow arrows without a start.
func TestChromeTraceIsSound(t *testing.T) {
	var b bytes.Buffer
	if err := recorded().WriteChrome(&b, "door"); err != nil {
		t.Fatal(err)
	}
	var file struct {
		Events []struct {
			Name, Cat, Ph, ID string
			Ts, Dur           float64
			PID, TID          int
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(b.Bytes(), &file); err != nil {
		t.Fatalf("%v in %s", err, b.String())
	}
	busy, open, flows, runs := map[int]float64{}, map[string]int{}, map[string]string{}, 0
	for _, e := range file.Events {
		if e.Ts < 0 {
			t.Errorf("%s is before the start", e.Name)
		}
		switch e.Ph {
		case "X":
			runs++
			if e.Ts < busy[e.TID] {
				t.Errorf("%s at %v overlaps on track %d", e.Name, e.Ts, e.TID)
			}
			busy[e.TID] = e.Ts + e.Dur
		case "b":
			open[e.Cat+e.ID]++
		case "e":
			if open[e.Cat+e.ID]--; open[e.Cat+e.ID] < 0 {
				t.Errorf("%s %s ends before it begins", e.Cat, e.ID)
			}
		case "s", "t", "f":
			flows[e.ID] += e.Ph
		}
	}
	for id, n := range open {
		if n != 0 {
			t.Errorf("%s is left open", id)
		}
	}
	if runs != 5 || flows["0"] != "sf" || flows["2"] != "sf" {
		t.Errorf("%d runs, arrows %v", runs, flows)
	}
}

func TestViewSummarisesTheTimes(t *testing.T) {
	read := func(f trace.Filter) *trace.View {
		var b bytes.Buffer
		if err := recorded().WriteChrome(&b, "door"); err != nil {
			t.Fatal(err)
		}
		v, err := trace.Read(&b, f)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := read(trace.Filter{Top: 1})
	if s := v.Stages[0]; s.Stage != "infer" || s.Runs != 2 || s.Total != 68*ms || s.Max != 38*ms || s.WaitMax != 20*ms {
		t.Errorf("%+v", s)
	}
	if len(v.Slowest) != 1 || v.Slowest[0].Frame != 2 || v.Slowest[0].Dur != 38*ms {
		t.Errorf("%+v", v.Slowest)
	}
	if len(v.Backends) != 1 || v.Backends[0].Total != 68*ms || v.Frames["done"] != 2 || v.Reasons["too-old:infer"] != 1 ||
		len(v.Events) != 1 || !strings.HasPrefix(v.Events[0].Why, "latency") {
		t.Errorf("%+v", v)
	}
	if v := read(trace.Filter{Stage: "pre", Start: 5 * time.Millisecond, End: 15 * time.Millisecond}); len(v.Stages) != 1 || v.Stages[0].Runs != 1 {
		t.Errorf("%+v", v.Stages)
	}
	if v := read(trace.Filter{Start: time.Hour}); len(v.Stages) != 0 || v.Span != 0 {
		t.Errorf("%+v", v)
	}
}

func TestNewestEventsAreKept(t *testing.T) {
	r := trace.New(8)
	tr := r.Track("a", 0, "")
	for n := range int64(100) {
		tr.Span(uint64(n), n*ms, n*ms+ms/2, 0, false)
	}
	var b bytes.Buffer
	if err := r.WriteChrome(&b, "p"); err != nil {
		t.Fatal(err)
	}
	v, err := trace.Read(&b, trace.Filter{Top: 100})
	if err != nil || v.Overwritten != 92 || len(v.Slowest) != 8 || v.Slowest[0].Frame < 92 {
		t.Errorf("%+v %v", v, err)
	}
}

func TestNilRecordersRecordNothing(t *testing.T) {
	var r *trace.Recorder
	r.Track("a", 0, "").Span(1, 2, 3, 4, false)
	r.Counter("c").Set(1, 2)
	r.Frame(1, 2, 3, trace.Done, r.Reason("x"))
	r.Instant(1, "a", "b")
}

func TestInvalidTracesAreRefused(t *testing.T) {
	for text, wantText := range map[string]string{
		`{}`:                                     "no traceEvents",
		`null`:                                   "no traceEvents",
		`{"traceEvents":null}`:                   "no traceEvents",
		`[]`:                                     "at byte 1",
		`{"traceEvents":{}}`:                     `"traceEvents" has the wrong type`,
		`{"traceEvents":[{"ph":"X","dur":"x"}]}`: `"traceEvents.dur" has the wrong type`,
	} {
		_, err := trace.Read(strings.NewReader(text), trace.Filter{})
		if !errors.Is(err, trace.ErrTrace) || !strings.Contains(err.Error(), wantText) || strings.Contains(err.Error(), "struct") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := trace.Read(strings.NewReader(`{"traceEvents":[]}`), trace.Filter{}); err != nil {
		t.Errorf("a trace without events: %v", err)
	}
}

func TestAnUnknownStageIsReportedWithTheKnownOnes(t *testing.T) {
	var b bytes.Buffer
	if err := recorded().WriteChrome(&b, "p"); err != nil {
		t.Fatal(err)
	}
	_, err := trace.Read(&b, trace.Filter{Stage: "nope"})
	if !errors.Is(err, trace.ErrStage) || !strings.Contains(err.Error(), `"nope"; it has infer, pre`) {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"traceEvents":[{"name":"a","ph":"X","ts":1e300,"dur":-1}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := trace.Read(bytes.NewReader(b), trace.Filter{Top: 3}); err != nil && !errors.Is(err, trace.ErrTrace) {
			t.Error(err)
		}
	})
}

func BenchmarkSpan(b *testing.B) {
	t := trace.New(0).Track("a", 0, "")
	b.ReportAllocs()
	for b.Loop() {
		t.Span(1, 2, 3, 4, false)
	}
}
