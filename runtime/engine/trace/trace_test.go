package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
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
	if err := trace.Write(&b, recorded(), "door", trace.Chrome); err != nil {
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
		if err := trace.Write(&b, recorded(), "door", trace.Chrome); err != nil {
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
	if err := trace.Write(&b, r, "p", trace.Chrome); err != nil {
		t.Fatal(err)
	}
	v, err := trace.Read(&b, trace.Filter{Top: 100})
	if err != nil || v.Overwritten != 92 || len(v.Slowest) != 8 || v.Slowest[0].Frame < 92 {
		t.Errorf("%+v %v", v, err)
	}
}

// busyRecorder has scopes that overlap each other and the runs, and values that are not numbers.
func busyRecorder(events int) (*trace.Recorder, *trace.Session) {
	r := trace.New(events)
	s := r.StartSession(40)
	a := r.Track("a", 0, "")
	for n := range int64(3) {
		at := time.Hour.Nanoseconds() + 100*n*ms
		a.Scope("outer", uint64(n), at+10*ms, at+60*ms)
		a.Scope("inner", uint64(n), at+20*ms, at+30*ms)
		a.Scope("across", uint64(n), at+50*ms, at+70*ms)    // overlaps outer
		a.Scope("beyond", uint64(n), at+80*ms, at+120*ms)   // overlaps the end of the run
		a.Scope("again", uint64(n), at+85*ms, at+110*ms)    // inside beyond
		a.Scope("backwards", uint64(n), at+30*ms, at+20*ms) // ignored
		a.Value("faces", at, float64(n))
		a.Value("faces", at, math.NaN())
		a.Value("faces", at, math.Inf(1))
		a.Span(uint64(n), at, at+90*ms, 0, false)
	}
	return r, s
}

func TestScopesThatOverlapGetTracksOfTheirOwn(t *testing.T) {
	r, s := busyRecorder(64)
	for _, source := range []trace.Source{r, s} {
		var b bytes.Buffer
		if err := trace.Write(&b, source, "p", trace.Chrome); err != nil {
			t.Fatal(err)
		}
		checkSound(t, b.Bytes())
		v, err := trace.Read(&b, trace.Filter{})
		if err != nil || len(v.Stages) != 1 || v.Stages[0].Runs != 3 || len(v.Scopes) != 5 || v.Scopes[0].Name != "outer" || v.Scopes[0].Total != 150*ms ||
			len(v.Values) != 1 || v.Values[0].Count != 3 || v.Values[0].Mean != 1 || v.Values[0].Max != 2 || v.Full {
			t.Errorf("%+v %v", v, err)
		}
		if v, err := trace.Read(bytes.NewReader(write(t, source, trace.Chrome)), trace.Filter{Stage: "a"}); err != nil || len(v.Scopes) != 5 || len(v.Values) != 1 {
			t.Errorf("%+v %v", v, err)
		}
		if _, err := trace.Read(bytes.NewReader(write(t, source, trace.Perfetto)), trace.Filter{}); !errors.Is(err, trace.ErrTrace) || !strings.Contains(err.Error(), "ui.perfetto.dev") {
			t.Errorf("%v", err)
		}
	}
}

func write(t *testing.T, s trace.Source, e trace.Encoding) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := trace.Write(&b, s, strings.Repeat("long ", 100), e); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// checkSound checks that complete events of one track are nested or apart, in nanoseconds.
func checkSound(t *testing.T, b []byte) {
	t.Helper()
	var file struct {
		Events []struct {
			Name, Ph string
			Ts, Dur  float64
			TID      int
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	type slice struct{ start, end int64 }
	tracks := map[int][]slice{}
	for _, e := range file.Events {
		if e.Ph == "X" {
			start := int64(math.Round(e.Ts * 1000))
			tracks[e.TID] = append(tracks[e.TID], slice{start, start + int64(math.Round(e.Dur*1000))})
		}
	}
	for tid, all := range tracks {
		for i, x := range all {
			for _, y := range all[i+1:] {
				if x.start < y.end && y.start < x.end && !(x.start <= y.start && y.end <= x.end) && !(y.start <= x.start && x.end <= y.end) {
					t.Errorf("track %d: %v and %v overlap", tid, x, y)
				}
			}
		}
	}
}

// A session keeps the first events of all kinds, the recorder the newest.
func TestASessionKeepsItsFirstEvents(t *testing.T) {
	r := trace.New(8)
	before := r.Track("before", 0, "")
	before.Span(1, 0, ms, 0, false)
	s := r.StartSession(5)
	other := r.StartSession(1 << 12)
	for n := range int64(20) {
		before.Span(uint64(n+2), (n+1)*ms, (n+1)*ms+1, 0, false)
	}
	if n, full, last := s.Events(); n != 5 || !full || last != 5*ms+1 {
		t.Errorf("%d %v %d", n, full, last)
	}
	s.Stop()
	other.Stop()
	before.Span(99, 90*ms, 91*ms, 0, false)
	for source, want := range map[trace.Source][2]uint64{s: {2, 6}, other: {2, 21}, r: {15, 99}} {
		v, err := trace.Read(bytes.NewReader(write(t, source, trace.Chrome)), trace.Filter{Top: 100})
		if err != nil {
			t.Fatal(err)
		}
		first, last := uint64(1000), uint64(0)
		for _, x := range v.Slowest {
			first, last = min(first, x.Frame), max(last, x.Frame)
		}
		if first != want[0] || last != want[1] || v.Full != (source == trace.Source(s)) {
			t.Errorf("frames %d to %d, want %v; full %v", first, last, want, v.Full)
		}
	}
}

// Names of scopes and values are bounded in length and number.
func TestNamesOfScopesAreBounded(t *testing.T) {
	r := trace.New(4096)
	a := r.Track("a", 0, "")
	for n := range 1000 {
		a.Scope(strconv.Itoa(n)+strings.Repeat("x\xff", 200), 0, 0, 1)
		a.Value(strconv.Itoa(n)+"v", 0, 1)
	}
	v, err := trace.Read(bytes.NewReader(write(t, r, trace.Chrome)), trace.Filter{})
	if err != nil || len(v.Scopes)+len(v.Values) != 256 || len(v.Scopes[0].Name) > 128 {
		t.Errorf("%d scopes, %d values, %v", len(v.Scopes), len(v.Values), err)
	}
}

func TestOwnFilesAreRecognised(t *testing.T) {
	r, s := busyRecorder(4)
	for _, source := range []trace.Source{r, s, trace.New(1)} {
		for _, e := range []trace.Encoding{trace.Chrome, trace.Perfetto} {
			if !trace.IsTrace(bytes.NewReader(write(t, source, e))) {
				t.Errorf("a trace in %s is not recognised", e)
			}
		}
	}
	for _, text := range []string{"", "{", "{\"traceEvents\":[]}", "\x0a", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x0a\x05abcde", "mine"} {
		if trace.IsTrace(strings.NewReader(text)) {
			t.Errorf("%q is taken for a trace", text)
		}
	}
	if err := trace.Write(io.Discard, r, "p", "xml"); err == nil {
		t.Error("an unknown encoding is written")
	}
	if trace.EncodingFor("a.pftrace") != trace.Perfetto || trace.EncodingFor("a.json") != trace.Chrome {
		t.Error("encodings of names")
	}
}

// Stages record while sessions start, end and are written.
func TestSessionsDuringARun(t *testing.T) {
	r := trace.New(64)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for n := range 4 {
		a, c := r.Track("a", n, ""), r.Counter("c")
		running.Go(func() {
			for at := int64(0); ; at++ {
				select {
				case <-stop:
					return
				default:
				}
				a.Span(uint64(at), at, at+1, 0, false)
				a.Scope("s", uint64(at), at, at+1)
				a.Value("v", at, 1)
				c.Set(at, at)
				r.Frame(uint64(at), at, at+1, trace.Done, r.Reason("x"))
				r.Instant(at, "i", "why")
			}
		})
	}
	for n := range 20 {
		s := r.StartSession(100)
		o := r.StartSession(1000)
		write(t, o, []trace.Encoding{trace.Chrome, trace.Perfetto}[n%2])
		s.Stop()
		o.Stop()
		s.Stop()
		checkSound(t, write(t, s, trace.Chrome))
	}
	close(stop)
	running.Wait()
}

func TestNilRecordersRecordNothing(t *testing.T) {
	var r *trace.Recorder
	a := r.Track("a", 0, "")
	a.Span(1, 2, 3, 4, false)
	a.Scope("s", 1, 2, 3)
	a.Value("v", 1, 2)
	r.Lookup("a", 0).Value("v", 1, 2)
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
	if err := trace.Write(&b, recorded(), "p", trace.Chrome); err != nil {
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
	for _, sessions := range []int{0, 1, 4} {
		b.Run(strconv.Itoa(sessions)+"-sessions", func(b *testing.B) {
			r := trace.New(0)
			t := r.Track("a", 0, "")
			for range sessions {
				r.StartSession(1 << 20)
			}
			b.ReportAllocs()
			for b.Loop() {
				t.Span(1, 2, 3, 4, false)
			}
		})
	}
}
