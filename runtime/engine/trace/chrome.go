package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
)

// event is a Chrome trace event, for Perfetto and chrome://tracing. Times are in
// microseconds. Reference: "Trace Event Format" of the Chromium project.
type event struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	Time  float64        `json:"ts"`
	Dur   *float64       `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	ID    string         `json:"id,omitempty"`
	Bind  string         `json:"bp,omitempty"`
	Scope string         `json:"s,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// document is the content of a trace file other than its events.
type document struct {
	Unit  string         `json:"displayTimeUnit"`
	Other map[string]any `json:"otherData"`
}

// Phases of events.
const (
	phaseComplete = "X"
	phaseBegin    = "b" // of an asynchronous event
	phaseEnd      = "e"
	phaseFlow     = "s" // and t, f
	phaseStep     = "t"
	phaseFinish   = "f"
	phaseCounter  = "C"
	phaseInstant  = "i"
	phaseMeta     = "M"
)

// Categories of asynchronous events.
const (
	catFrame = "frame"
	catQueue = "queue"
)

// WriteChrome writes the kept events as Chrome trace JSON.
//
// Spans are complete events on the track of their instance, where they do not overlap; the
// spans of a batch are one event. Lifetimes and waits of frames overlap and are asynchronous
// events. Flow arrows lead from stage to stage.
func (r *Recorder) WriteChrome(w io.Writer, process string) error {
	b := bufio.NewWriterSize(w, 64<<10)
	r.mu.Lock()
	tracks, counters := slices.Clone(r.tracks), slices.Clone(r.counters)
	instants, reasons := slices.Clone(r.instants), slices.Clone(r.reasons)
	r.mu.Unlock()

	out := chromeWriter{w: b}
	var lost uint64
	out.writeMetadata("process_name", 0, map[string]any{"name": process})
	steps := map[uint64][]flow{}
	zero := r.startTime(tracks)
	for n, t := range tracks {
		tid := n + 1
		name := t.name
		if t.instance > 0 {
			name += " " + strconv.Itoa(t.instance+1)
		}
		out.writeMetadata("thread_name", tid, map[string]any{"name": name})
		out.writeMetadata("thread_sort_index", tid, map[string]any{"sort_index": tid})
		spans, total := t.snapshot()
		lost += total - uint64(len(spans))
		for i := 0; i < len(spans); {
			s := spans[i]
			size := 1
			for i+size < len(spans) && spans[i+size].follows {
				size++
			}
			args := map[string]any{"frame": s.frame, "wait_us": toMicroseconds(s.wait)}
			if size > 1 {
				args["batch"] = size
			}
			if t.backend != "" {
				args["backend"] = t.backend
			}
			dur := toMicroseconds(s.end - s.start)
			out.writeEvent(event{Name: t.name, Cat: "stage", Phase: phaseComplete, Time: toMicroseconds(s.start - zero), Dur: &dur, TID: tid, Args: args})
			for _, f := range spans[i : i+size] {
				steps[f.frame] = append(steps[f.frame], flow{f.start, tid})
				if f.wait > 0 {
					id := t.name + "/" + strconv.FormatUint(f.frame, 10)
					out.writeEvent(event{Name: "wait for " + t.name, Cat: catQueue, Phase: phaseBegin, Time: toMicroseconds(f.start - f.wait - zero), TID: tid, ID: id})
					out.writeEvent(event{Name: "wait for " + t.name, Cat: catQueue, Phase: phaseEnd, Time: toMicroseconds(f.start - zero), TID: tid, ID: id})
				}
			}
			i += size
		}
	}
	r.writeFrames(&out, zero, reasons)
	out.writeFlows(zero, steps)
	for _, c := range counters {
		for _, s := range c.snapshot() {
			out.writeEvent(event{Name: c.name, Phase: phaseCounter, Time: toMicroseconds(s.at - zero), Args: map[string]any{"value": s.value}})
		}
	}
	for _, i := range instants {
		out.writeEvent(event{Name: i.name, Cat: "event", Phase: phaseInstant, Time: toMicroseconds(i.at - zero), Scope: "p", Args: map[string]any{"why": i.args}})
	}
	out.writeEnd(document{Unit: "ms", Other: map[string]any{"clock": "CLOCK_MONOTONIC", "start_ns": zero, "overwritten": lost}})
	if out.err != nil {
		return out.err
	}
	return b.Flush()
}

// startTime returns the time of the oldest event, which becomes time 0 of the trace.
func (r *Recorder) startTime(tracks []*Track) int64 {
	zero := int64(-1)
	include := func(at int64) {
		if zero < 0 || at < zero {
			zero = at
		}
	}
	for _, t := range append(slices.Clone(tracks), r.frames) {
		spans, _ := t.snapshot()
		for _, s := range spans {
			include(s.start - s.wait)
		}
	}
	return max(zero, 0)
}

func (r *Recorder) writeFrames(out *chromeWriter, zero int64, reasons []string) {
	frames, _ := r.frames.snapshot()
	for _, f := range frames {
		name, id := "frame "+strconv.FormatUint(f.frame, 10), strconv.FormatUint(f.frame, 10)
		args := map[string]any{"frame": f.frame, "fate": f.fate.String()}
		if int(f.reason) < len(reasons) && f.fate != Done {
			args["reason"] = reasons[f.reason]
		}
		out.writeEvent(event{Name: name, Cat: catFrame, Phase: phaseBegin, Time: toMicroseconds(f.start - zero), ID: id, Args: args})
		out.writeEvent(event{Name: name, Cat: catFrame, Phase: phaseEnd, Time: toMicroseconds(f.end - zero), ID: id})
	}
}

// flow is the arrival of a frame at a track.
type flow struct {
	at  int64
	tid int
}

type chromeWriter struct {
	w     *bufio.Writer
	count int
	err   error
}

func (c *chromeWriter) writeEvent(e event) {
	if c.err != nil {
		return
	}
	e.PID = 1
	b, err := json.Marshal(e)
	if err != nil {
		c.err = err
		return
	}
	lead := ",\n"
	if c.count == 0 {
		lead = "{\"traceEvents\":[\n"
	}
	c.count++
	if _, err := c.w.WriteString(lead); err != nil {
		c.err = err
		return
	}
	_, c.err = c.w.Write(b)
}

func (c *chromeWriter) writeMetadata(name string, tid int, args map[string]any) {
	c.writeEvent(event{Name: name, Phase: phaseMeta, TID: tid, Args: args})
}

// writeFlows writes the flow arrows of each frame.
func (c *chromeWriter) writeFlows(zero int64, steps map[uint64][]flow) {
	for _, id := range slices.Sorted(maps.Keys(steps)) {
		stops := steps[id]
		if len(stops) < 2 {
			continue
		}
		slices.SortFunc(stops, func(a, b flow) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.tid, b.tid)) })
		for n, s := range stops {
			e := event{Name: "frame", Cat: "flow", Phase: phaseStep, Time: toMicroseconds(s.at - zero), TID: s.tid, ID: strconv.FormatUint(id, 10)}
			switch n {
			case 0:
				e.Phase = phaseFlow
			case len(stops) - 1:
				e.Phase, e.Bind = phaseFinish, "e"
			}
			c.writeEvent(e)
		}
	}
}

func (c *chromeWriter) writeEnd(d document) {
	b, err := json.Marshal(d)
	if c.err == nil {
		c.err = err
	}
	if c.err == nil {
		// The closing part continues the object of the events.
		_, c.err = c.w.WriteString("\n]," + string(b[1:]) + "\n")
	}
}

func toMicroseconds(ns int64) float64 { return float64(ns) / 1000 }
