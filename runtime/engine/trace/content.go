package trace

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// content is what a trace file is made of.
type content struct {
	tracks   []trackContent
	frames   []span
	reasons  []string
	counters []counterContent
	instants []instant
	lost     uint64 // events that were overwritten
	full     bool   // the session had no room for more
	zero     int64  // time of the first event, ns
}

type trackContent struct {
	*Track
	spans  []span
	scopes []scope // by start, the longer first
}

type counterContent struct {
	*Counter
	samples []sample
}

// title returns the name of a track: that of the stage, numbered if it has several instances.
func (t *Track) title() string {
	if t.instance > 0 {
		return t.name + " " + strconv.Itoa(t.instance+1)
	}
	return t.name
}

// title returns the name of a counter, after that of its stage.
func (c *Counter) title() string {
	if c.stage == "" {
		return c.name
	}
	return c.stage + ": " + c.name
}

// content returns the kept events. What is older than the spans and frames that are kept is left out, so that
// a trace does not begin with a long time without work.
func (r *Recorder) content() *content {
	r.mu.Lock()
	tracks, counters := slices.Clone(r.tracks), slices.Clone(r.counters)
	c := &content{instants: slices.Clone(r.instants), reasons: slices.Clone(r.reasons)}
	scopes, lost := r.scopes.snapshot()
	r.mu.Unlock()
	c.lost = lost
	for _, t := range tracks {
		t.mu.Lock()
		spans, lost := t.ring.snapshot()
		t.mu.Unlock()
		c.lost += lost
		c.tracks = append(c.tracks, trackContent{Track: t, spans: spans})
	}
	r.frames.mu.Lock()
	c.frames, _ = r.frames.ring.snapshot()
	r.frames.mu.Unlock()
	c.addScopes(scopes)
	if begin, found := c.begin(); found {
		c.instants = slices.DeleteFunc(c.instants, func(i instant) bool { return i.at < begin })
	}
	begin, found := c.begin()
	for _, k := range counters {
		k.mu.Lock()
		samples, _ := k.ring.snapshot()
		k.mu.Unlock()
		if found {
			samples = since(samples, begin)
		}
		c.counters = append(c.counters, counterContent{k, samples})
	}
	c.setZero()
	return c
}

// since returns the samples from a time on; the value at that time is the last one before it.
func since(samples []sample, begin int64) []sample {
	n := slices.IndexFunc(samples, func(s sample) bool { return s.at >= begin })
	switch {
	case n < 0 && len(samples) > 0:
		n = len(samples) - 1
	case n <= 0:
		return samples
	case samples[n].at > begin:
		n--
	}
	samples = samples[n:]
	samples[0].at = max(samples[0].at, begin)
	return samples
}

// content returns the events of the session.
func (s *Session) content() *content {
	r := s.recorder
	r.mu.Lock()
	tracks, counters := slices.Clone(r.tracks), slices.Clone(r.counters)
	c := &content{reasons: slices.Clone(r.reasons)}
	r.mu.Unlock()
	s.mu.Lock()
	spans, scopes, samples := s.spans.all(), s.scopes.all(), s.samples.all()
	c.frames, c.instants, c.full = s.frames.all(), s.instants.all(), s.full.Load()
	s.mu.Unlock()
	for _, t := range tracks {
		c.tracks = append(c.tracks, trackContent{Track: t})
	}
	for _, v := range spans {
		if i := slices.Index(tracks, v.track); i >= 0 {
			c.tracks[i].spans = append(c.tracks[i].spans, v.span)
		}
	}
	c.addScopes(scopes)
	for _, k := range counters {
		c.counters = append(c.counters, counterContent{Counter: k})
	}
	for _, v := range samples {
		if i := slices.Index(counters, v.counter); i >= 0 {
			c.counters[i].samples = append(c.counters[i].samples, v.sample)
		}
	}
	c.setZero()
	return c
}

// addScopes adds scopes to their tracks.
func (c *content) addScopes(all []scope) {
	for i := range c.tracks {
		t := &c.tracks[i]
		for _, s := range all {
			if s.track == t.Track {
				t.scopes = append(t.scopes, s)
			}
		}
		slices.SortStableFunc(t.scopes, func(a, b scope) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	}
}

// begin returns the time of the first span, scope or frame.
func (c *content) begin() (at int64, found bool) {
	at = math.MaxInt64
	for _, t := range c.tracks {
		for _, s := range t.spans {
			at = min(at, s.start-s.wait)
		}
		for _, s := range t.scopes {
			at = min(at, s.start)
		}
	}
	for _, f := range c.frames {
		at = min(at, f.start)
	}
	return at, at != math.MaxInt64
}

func (c *content) setZero() {
	at, _ := c.begin()
	for _, k := range c.counters {
		for _, s := range k.samples {
			at = min(at, s.at)
		}
	}
	for _, i := range c.instants {
		at = min(at, i.at)
	}
	if at == math.MaxInt64 {
		at = 0
	}
	c.zero = at
}

// run is one run of a stage: a frame or a batch.
type run struct {
	span
	frames []span
}

// runs groups the spans of a track by batch.
func (t *trackContent) runs() []run {
	var out []run
	for i := 0; i < len(t.spans); {
		n := 1
		for i+n < len(t.spans) && t.spans[i+n].follows {
			n++
		}
		out = append(out, run{t.spans[i], t.spans[i : i+n]})
		i += n
	}
	return out
}

// lanes assigns the scopes of a track to lanes, in which spans are nested or apart, as viewers demand. Lane 0
// also has the runs.
func (t *trackContent) lanes(runs []run) []int {
	out := make([]int, len(t.scopes))
	var open [][]int64 // by lane: the ends of the spans that contain the current time
	for i, s := range t.scopes {
		lane := 0
		for ; ; lane++ {
			if lane == len(open) {
				open = append(open, nil)
			}
			stack := open[lane]
			for len(stack) > 0 && stack[len(stack)-1] <= s.start {
				stack = stack[:len(stack)-1]
			}
			open[lane] = stack
			if (len(stack) == 0 || s.end <= stack[len(stack)-1]) && (lane > 0 || !crosses(runs, s)) {
				break
			}
		}
		open[lane] = append(open[lane], s.end)
		out[i] = lane
	}
	return out
}

// crosses reports whether a scope overlaps a run without being inside it.
func crosses(runs []run, s scope) bool {
	at, _ := slices.BinarySearchFunc(runs, s.start, func(r run, start int64) int {
		if r.end <= start {
			return -1
		}
		return 1
	})
	if at == len(runs) || runs[at].start >= s.end {
		return false
	}
	return s.start < runs[at].start || s.end > runs[at].end
}

// Encoding is the format of a trace file.
type Encoding string

// Encodings.
const (
	Chrome   Encoding = "chrome"   // Chrome trace JSON
	Perfetto Encoding = "perfetto" // protocol buffers of Perfetto, two fifths of the size
)

// EncodingFor returns the encoding of a file by its name: .pftrace and .perfetto-trace are
// [Perfetto].
func EncodingFor(path string) Encoding {
	if strings.HasSuffix(path, ".pftrace") || strings.HasSuffix(path, ".perfetto-trace") {
		return Perfetto
	}
	return Chrome
}

// Source is a [Recorder] or a [Session].
type Source interface{ content() *content }

// Write writes the events of a recorder or session. process names what was recorded.
func Write(w io.Writer, s Source, process string, e Encoding) error {
	switch e {
	case Chrome:
		return s.content().writeChrome(w, process)
	case Perfetto:
		return s.content().writePerfetto(w, process)
	}
	return fmt.Errorf("unknown encoding %q: want %s or %s", e, Chrome, Perfetto)
}

// headSize is how much of a file [IsTrace] needs.
const headSize = 128

// IsTrace reports whether a file was written by this package, by its beginning.
func IsTrace(r io.Reader) bool {
	head := make([]byte, headSize)
	n, _ := io.ReadFull(r, head) // a shorter file is judged as it is
	head = head[:n]
	return bytes.HasPrefix(head, []byte(chromeHead)) || isPerfetto(head)
}
