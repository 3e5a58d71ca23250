package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// ErrTrace means that a file is not a trace.
var ErrTrace = errors.New("not a trace")

// ErrStage means that a trace does not have the requested stage.
var ErrStage = errors.New("no such stage in the trace")

// Filter selects spans; the zero value selects all.
type Filter struct {
	Stage      string
	Start, End time.Duration // since the first event; End 0: no limit
	Top        int           // number of slowest spans to list
}

// View is the summary of a trace. Times are in nanoseconds.
type View struct {
	Stages      []StageView       `json:"stages"`   // slowest first, by total time
	Backends    []BackendView     `json:"backends"` // of stages with a known backend
	Slowest     []SpanView        `json:"slowest"`
	Frames      map[string]uint64 `json:"frames"` // by fate
	Reasons     map[string]uint64 `json:"reasons"`
	Events      []EventView       `json:"events"`
	Scopes      []ScopeView       `json:"scopes"`  // by total time
	Values      []ValueView       `json:"values"`  // by name
	Span        int64             `json:"span_ns"` // first to last event selected
	Overwritten uint64            `json:"overwritten"`
	Full        bool              `json:"full"` // the session ended because it had no room for more
}

// StageView is one stage.
type StageView struct {
	Stage   string  `json:"stage"`
	Runs    int     `json:"runs"`
	Total   int64   `json:"total_ns"`
	P50     int64   `json:"p50_ns"`
	P95     int64   `json:"p95_ns"`
	Max     int64   `json:"max_ns"`
	WaitP50 int64   `json:"wait_p50_ns"`
	WaitMax int64   `json:"wait_max_ns"`
	Busy    float64 `json:"busy"` // processing time of all instances / length of the trace
}

// BackendView summarises all stages on one backend.
type BackendView struct {
	Backend string `json:"backend"`
	Runs    int    `json:"runs"`
	Total   int64  `json:"total_ns"`
}

// SpanView is one run of a stage.
type SpanView struct {
	Stage string `json:"stage"`
	Frame uint64 `json:"frame"`
	Start int64  `json:"start_ns"`
	Dur   int64  `json:"duration_ns"`
	Wait  int64  `json:"wait_ns"`
}

// ScopeView is a part of a stage's work that the stage reported.
type ScopeView struct {
	Name  string `json:"name"`
	Stage string `json:"stage"`
	Runs  int    `json:"runs"`
	Total int64  `json:"total_ns"`
	P50   int64  `json:"p50_ns"`
	P95   int64  `json:"p95_ns"`
	Max   int64  `json:"max_ns"`
}

// ValueView is a value that a stage reported.
type ValueView struct {
	Name  string  `json:"name"` // "STAGE: NAME"
	Count int     `json:"count"`
	Min   float64 `json:"min"`
	Mean  float64 `json:"mean"`
	Max   float64 `json:"max"`
	Last  float64 `json:"last"`
}

// EventView is an instant event.
type EventView struct {
	At   int64  `json:"at_ns"`
	Name string `json:"name"`
	Why  string `json:"why"`
}

// file is the part of a trace file that Read uses.
type file struct {
	Events *[]fileEvent `json:"traceEvents"`
	Other  struct {
		Overwritten uint64 `json:"overwritten"`
		Full        bool   `json:"full"`
	} `json:"otherData"`
}

// fileEvent is the part of an event that Read uses. Times are in microseconds.
type fileEvent struct {
	Name  string  `json:"name"`
	Cat   string  `json:"cat"`
	Phase string  `json:"ph"`
	Time  float64 `json:"ts"`
	Dur   float64 `json:"dur"`
	Args  struct {
		Frame   uint64  `json:"frame"`
		Wait    float64 `json:"wait_us"`
		Backend string  `json:"backend"`
		Fate    string  `json:"fate"`
		Reason  string  `json:"reason"`
		Why     string  `json:"why"`
		Stage   string  `json:"stage"`
		Value   float64 `json:"value"`
	} `json:"args"`
}

// Read summarises a trace that [Write] wrote as [Chrome]. Errors wrap [ErrTrace] or
// [ErrStage], or are those of the reader.
func Read(in io.Reader, f Filter) (*View, error) {
	trace, err := decode(in)
	if err != nil {
		return nil, err
	}
	v := viewer{
		View: View{
			Stages: []StageView{}, Backends: []BackendView{}, Slowest: []SpanView{}, Events: []EventView{},
			Scopes: []ScopeView{}, Values: []ValueView{},
			Frames: map[string]uint64{}, Reasons: map[string]uint64{}, Overwritten: trace.Other.Overwritten, Full: trace.Other.Full,
		},
		stages: map[string]*stageTimes{}, backends: map[string]*BackendView{},
		scopes: map[scopeKey][]int64{}, values: map[string]*ValueView{},
		first: math.MaxInt64,
	}
	known := map[string]bool{}
	for i := range *trace.Events {
		e := &(*trace.Events)[i]
		if e.isRun() {
			known[e.Name] = true
		}
		if at := toNanoseconds(e.Time); at < int64(f.Start) || f.End > 0 && at > int64(f.End) {
			continue
		}
		v.add(e, f.Stage)
	}
	if f.Stage != "" && !known[f.Stage] {
		return nil, fmt.Errorf("%w: %q; it has %s", ErrStage, f.Stage, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	v.summarise(f.Top)
	return &v.View, nil
}

// decode parses a trace that has events.
func decode(in io.Reader) (*file, error) {
	trace := &file{}
	var odd *json.UnmarshalTypeError
	b := bufio.NewReader(in)
	head, _ := b.Peek(headSize)
	perfetto := isPerfetto(head)
	switch err := json.NewDecoder(b).Decode(trace); {
	case err != nil && perfetto:
		return nil, fmt.Errorf("%w that trace view reads: it has Perfetto's encoding; open it in ui.perfetto.dev, or record with a name that ends in .json", ErrTrace)
	case errors.As(err, &odd):
		return nil, fmt.Errorf("%w: at byte %d, %q has the wrong type", ErrTrace, odd.Offset, odd.Field)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrTrace, err)
	case trace.Events == nil:
		return nil, fmt.Errorf("%w: no traceEvents", ErrTrace)
	}
	return trace, nil
}

// isRun reports whether an event is a run of a stage.
func (e *fileEvent) isRun() bool { return e.Phase == phaseComplete && e.Cat != catScope }

// viewer collects the spans of a trace.
type viewer struct {
	View
	stages      map[string]*stageTimes
	backends    map[string]*BackendView
	scopes      map[scopeKey][]int64 // durations in ns
	values      map[string]*ValueView
	first, last int64 // ns
}

type scopeKey struct{ stage, name string }

// stageTimes are the processing and waiting times of a stage, in ns.
type stageTimes struct{ took, waited []int64 }

// add adds an event. A run or a scope of a stage counts if stage is that stage or empty.
func (v *viewer) add(e *fileEvent, stage string) {
	switch {
	case e.isRun() && (stage == "" || stage == e.Name):
		v.addSpan(e)
	case e.Phase == phaseComplete && e.Cat == catScope && (stage == "" || stage == e.Args.Stage):
		key := scopeKey{e.Args.Stage, e.Name}
		v.scopes[key] = append(v.scopes[key], toNanoseconds(e.Dur))
	case e.Phase == phaseCounter && e.Cat == catValue && (stage == "" || strings.HasPrefix(e.Name, stage+": ")):
		v.addValue(e)
	case e.Phase == phaseBegin && e.Cat == catFrame:
		v.Frames[e.Args.Fate]++
		if e.Args.Reason != "" {
			v.Reasons[e.Args.Reason]++
		}
	case e.Phase == phaseInstant:
		v.Events = append(v.Events, EventView{At: toNanoseconds(e.Time), Name: e.Name, Why: e.Args.Why})
	}
}

// addSpan adds a run of a stage.
func (v *viewer) addSpan(e *fileEvent) {
	at, dur, wait := toNanoseconds(e.Time), toNanoseconds(e.Dur), toNanoseconds(e.Args.Wait)
	v.first, v.last = min(v.first, at), max(v.last, at+dur)
	s := v.stages[e.Name]
	if s == nil {
		s = &stageTimes{}
		v.stages[e.Name] = s
	}
	s.took, s.waited = append(s.took, dur), append(s.waited, wait)
	if name := e.Args.Backend; name != "" {
		b := v.backends[name]
		if b == nil {
			b = &BackendView{Backend: name}
			v.backends[name] = b
		}
		b.Runs++
		b.Total += dur
	}
	v.Slowest = append(v.Slowest, SpanView{Stage: e.Name, Frame: e.Args.Frame, Start: at, Dur: dur, Wait: wait})
}

// addValue adds a value that a stage reported.
func (v *viewer) addValue(e *fileEvent) {
	x, value := v.values[e.Name], e.Args.Value
	if x == nil {
		x = &ValueView{Name: e.Name, Min: value, Max: value}
		v.values[e.Name] = x
	}
	x.Count++
	x.Min, x.Max, x.Last = min(x.Min, value), max(x.Max, value), value
	x.Mean += value/float64(x.Count) - x.Mean/float64(x.Count)
}

// summarise computes the view of all added spans. top is the number of slowest spans.
func (v *viewer) summarise(top int) {
	v.Span = max(v.last-v.first, 0)
	for name, s := range v.stages {
		slices.Sort(s.took)
		slices.Sort(s.waited)
		st := StageView{
			Stage: name, Runs: len(s.took), P50: percentile(s.took, 50), P95: percentile(s.took, 95), Max: s.took[len(s.took)-1],
			WaitP50: percentile(s.waited, 50), WaitMax: s.waited[len(s.waited)-1],
		}
		for _, d := range s.took {
			st.Total += d
		}
		if v.Span > 0 {
			st.Busy = float64(st.Total) / float64(v.Span)
		}
		v.Stages = append(v.Stages, st)
	}
	slices.SortFunc(v.Stages, func(a, b StageView) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Stage, b.Stage))
	})
	for key, took := range v.scopes {
		slices.Sort(took)
		s := ScopeView{Name: key.name, Stage: key.stage, Runs: len(took), P50: percentile(took, 50), P95: percentile(took, 95), Max: took[len(took)-1]}
		for _, d := range took {
			s.Total += d
		}
		v.Scopes = append(v.Scopes, s)
	}
	slices.SortFunc(v.Scopes, func(a, b ScopeView) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Name, b.Name))
	})
	for _, name := range slices.Sorted(maps.Keys(v.values)) {
		v.Values = append(v.Values, *v.values[name])
	}
	for _, name := range slices.Sorted(maps.Keys(v.backends)) {
		v.Backends = append(v.Backends, *v.backends[name])
	}
	slices.SortStableFunc(v.Slowest, func(a, b SpanView) int { return cmp.Compare(b.Dur, a.Dur) })
	v.Slowest = slices.Clip(v.Slowest[:min(max(top, 0), len(v.Slowest))])
}

// toNanoseconds converts microseconds to nanoseconds, limiting the values of hostile files.
func toNanoseconds(us float64) int64 {
	if !(us > 0) {
		return 0
	}
	return int64(min(us*1000, 1<<62))
}

// percentile returns the nearest-rank percentile of sorted values.
func percentile(sorted []int64, percent int) int64 {
	return sorted[max((len(sorted)*percent+99)/100, 1)-1]
}
