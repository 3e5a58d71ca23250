package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
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

// Categories of events.
const (
	catStage = "stage"
	catScope = "scope" // a part of a stage's work
	catFrame = "frame" // asynchronous
	catQueue = "queue" // asynchronous
	catValue = "value" // reported by a stage
	catEvent = "event"
)

// chromeHead is how every file begins.
const chromeHead = "{\"traceEvents\":[\n{\"name\":\"process_name\","

// writeChrome writes Chrome trace JSON.
//
// Spans are complete events on the track of their instance, where they are nested or apart; the
// spans of a batch are one event. Scopes that do neither are on tracks of their own. Lifetimes and
// waits of frames overlap and are asynchronous events. Flow arrows lead from stage to stage.
func (c *content) writeChrome(w io.Writer, process string) error {
	b := bufio.NewWriterSize(w, 64<<10)
	out := chromeWriter{w: b}
	out.writeMetadata("process_name", 0, map[string]any{"name": process})
	steps := map[uint64][]flow{}
	spare := len(c.tracks) + 1 // the next track for scopes that overlap
	for n := range c.tracks {
		out.nameTrack(n+1, c.tracks[n].title())
		spare = out.writeTrack(c, &c.tracks[n], n+1, spare, steps)
	}
	out.writeFrames(c)
	out.writeFlows(c.zero, steps)
	for _, k := range c.counters {
		e := event{Name: k.title(), Phase: phaseCounter}
		if k.stage != "" {
			e.Cat = catValue
		}
		for _, s := range k.samples {
			e.Time, e.Args = toMicroseconds(s.at-c.zero), map[string]any{"value": s.value}
			out.writeEvent(e)
		}
	}
	for _, i := range c.instants {
		out.writeEvent(event{Name: i.name, Cat: catEvent, Phase: phaseInstant, Time: toMicroseconds(i.at - c.zero), Scope: "p", Args: map[string]any{"why": i.args}})
	}
	other := map[string]any{"clock": "CLOCK_MONOTONIC", "start_ns": c.zero, "overwritten": c.lost}
	if c.full {
		other["full"] = true
	}
	out.writeEnd(document{Unit: "ms", Other: other})
	if out.err != nil {
		return out.err
	}
	return b.Flush()
}

// writeTrack writes the runs and scopes of a track, and adds the arrival of each frame to steps. It
// returns the next free track.
func (c *chromeWriter) writeTrack(from *content, t *trackContent, tid, spare int, steps map[uint64][]flow) int {
	runs := t.runs()
	for _, r := range runs {
		args := map[string]any{"frame": r.frame, "wait_us": toMicroseconds(r.wait)}
		if len(r.frames) > 1 {
			args["batch"] = len(r.frames)
		}
		if t.backend != "" {
			args["backend"] = t.backend
		}
		dur := toMicroseconds(r.end - r.start)
		c.writeEvent(event{Name: t.name, Cat: catStage, Phase: phaseComplete, Time: toMicroseconds(r.start - from.zero), Dur: &dur, TID: tid, Args: args})
		for _, f := range r.frames {
			steps[f.frame] = append(steps[f.frame], flow{f.start, tid})
			if f.wait > 0 {
				e := event{Name: "wait for " + t.name, Cat: catQueue, Phase: phaseBegin, Time: toMicroseconds(f.start - f.wait - from.zero), TID: tid, ID: t.name + "/" + strconv.FormatUint(f.frame, 10)}
				c.writeEvent(e)
				e.Phase, e.Time = phaseEnd, toMicroseconds(f.start-from.zero)
				c.writeEvent(e)
			}
		}
	}
	used := 0
	for i, lane := range t.lanes(runs) {
		s, at := t.scopes[i], tid
		if lane > 0 {
			at = spare + lane - 1
			for ; used < lane; used++ {
				c.nameTrack(spare+used, t.title()+" (overlapping)")
			}
		}
		dur := toMicroseconds(s.end - s.start)
		c.writeEvent(event{Name: s.name, Cat: catScope, Phase: phaseComplete, Time: toMicroseconds(s.start - from.zero), Dur: &dur, TID: at, Args: map[string]any{"frame": s.frame, "stage": t.name}})
	}
	return spare + used
}

func (c *chromeWriter) nameTrack(tid int, name string) {
	c.writeMetadata("thread_name", tid, map[string]any{"name": name})
	c.writeMetadata("thread_sort_index", tid, map[string]any{"sort_index": tid})
}

func (c *chromeWriter) writeFrames(from *content) {
	for _, f := range from.frames {
		name, id := "frame "+strconv.FormatUint(f.frame, 10), strconv.FormatUint(f.frame, 10)
		args := map[string]any{"frame": f.frame, "fate": f.fate.String()}
		if reason := from.reason(f); reason != "" {
			args["reason"] = reason
		}
		c.writeEvent(event{Name: name, Cat: catFrame, Phase: phaseBegin, Time: toMicroseconds(f.start - from.zero), ID: id, Args: args})
		c.writeEvent(event{Name: name, Cat: catFrame, Phase: phaseEnd, Time: toMicroseconds(f.end - from.zero), ID: id})
	}
}

// reason returns why a frame was not done, "" if it was.
func (c *content) reason(f span) string {
	if f.fate == Done || int(f.reason) >= len(c.reasons) {
		return ""
	}
	return c.reasons[f.reason]
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
		lead = chromeHead[:strings.Index(chromeHead, "\n")+1]
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
