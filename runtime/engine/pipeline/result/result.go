// Package result defines the results of a frame as a sink receives them, and writes
// them as JSON and as readable text.
package result

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Result is one detection, class or text of a frame. Kind determines which fields are set.
type Result struct {
	Kind   string    // ctc, argmax, detect, segment, keypoints, regions, raw, match, custom
	Text   string    // ctc; of several results of raw: the name of the model's output; match: why there is none
	Class  int       // of argmax and boxes: index in the model's output; of match: the entry, -1: none
	Label  string    // of argmax and boxes: "" without a labels file; of match: the entry's name
	Score  float32   // 0–1; not of raw
	Shape  []int64   // raw
	Values []float32 // raw; the tensor itself, valid until the sink returns

	Box    [4]float32 // of boxes and regions: left, upper, right and lower edge in source pixels
	ID     uint64     // of the track; 0: none yet
	Points []Point    // keypoints in the model's order; regions: the four corners, clockwise
	Mask   Mask       // segment

	// Then has what the stages after a roi stage found in the crop of the box. Next is the stage that
	// found it, "" for a box that was not cropped.
	Next      string
	Then      []Result
	Row, Rows int // of match: the embedding, of those of the frame

	JSON []byte // custom: results as its stage wrote them, one or several with commas between
}

// KindCustom is the kind of the results of custom stages.
const KindCustom = "custom"

// Point is a keypoint or corner in source pixels, with the model's score.
type Point struct{ X, Y, Score float32 }

// Mask marks the pixels of a box that belong to the object, in cells of Step by Step source
// pixels, row by row from X, Y. Counts are the lengths of alternating runs of cells, which begin
// outside the object.
type Mask struct {
	X, Y, Width, Height int // of the grid: source pixels, then cells
	Step                int
	Counts              []int32
}

// Store is memory for copies of results. Its zero value is empty.
type Store struct {
	results []Result
	then    []Result
	points  []Point
	counts  []int32
	shapes  []int64
	values  []float32
	json    []byte
}

// Copy copies results and all that they refer to. The copy is valid until the next one. It allocates
// only what the store does not have yet.
func (s *Store) Copy(all []Result) []Result {
	s.results, s.then, s.points, s.counts = append(s.results[:0], all...), s.then[:0], s.points[:0], s.counts[:0]
	s.shapes, s.values, s.json = s.shapes[:0], s.values[:0], s.json[:0]
	for i := range s.results {
		r := &s.results[i]
		s.own(r)
		r.Then = keep(&s.then, r.Then)
		for n := range r.Then {
			s.own(&r.Then[n])
		}
	}
	return s.results
}

// own copies what a result refers to.
func (s *Store) own(r *Result) {
	r.Points = keep(&s.points, r.Points)
	r.Mask.Counts = keep(&s.counts, r.Mask.Counts)
	r.Shape = keep(&s.shapes, r.Shape)
	r.Values = keep(&s.values, r.Values)
	r.JSON = keep(&s.json, r.JSON)
}

// keep appends v to room, and returns the copy. Copies that it made before stay valid if room grows.
func keep[T any](room *[]T, v []T) []T {
	if v == nil {
		return nil
	}
	n := len(*room)
	*room = append(*room, v...)
	return (*room)[n:len(*room):len(*room)]
}

// Latency divides the latency of one frame, in ns, among the stages. Total is their sum.
type Latency struct {
	Total  int64
	Stages []StageLatency // in order; the last is the sink, whose service is not over
}

// StageLatency is the time that a frame waited for a stage, and the time that the stage took.
type StageLatency struct {
	ID             string
	Queue, Service int64 // ns
}

// Record contains the results of one frame. It is valid during the call of the sink.
type Record struct {
	Pipeline string
	Frame    uint64 // counts from 0 at the source; a gap is a frame that was dropped or failed
	Capture  int64  // ns, CLOCK_MONOTONIC
	Repeated bool   // the results are those of an earlier frame
	Age      int64  // ns since that frame, -1: there was none
	Stats    *Stats // of the picture; nil: not measured
	Results  []Result
	Latency  Latency
}

// Stats are statistics of a frame's picture, of a stats stage.
type Stats struct {
	Brightness float32 // mean, 0 (black) to 1 (white)
	Low, High  float32 // fractions of the pixels that are dark and bright
	Focus      float32 // variance of the Laplacian of the samples
}

// AppendJSON appends the record as one line of JSON, without the newline.
func (r *Record) AppendJSON(b []byte) []byte {
	b = append(b, `{"type":"result","pipeline":`...)
	b = appendString(b, r.Pipeline)
	b = append(b, `,"frame":`...)
	b = strconv.AppendUint(b, r.Frame, 10)
	b = append(b, `,"capture_ns":`...)
	b = strconv.AppendInt(b, r.Capture, 10)
	if r.Repeated {
		b = append(b, `,"age_ns":`...)
		if r.Age < 0 {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendInt(b, r.Age, 10)
		}
	}
	if s := r.Stats; s != nil {
		b = appendFloat(append(b, `,"stats":{"brightness":`...), s.Brightness)
		b = appendFloat(append(b, `,"low":`...), s.Low)
		b = appendFloat(append(b, `,"high":`...), s.High)
		b = append(appendFloat(append(b, `,"focus":`...), s.Focus), '}')
	}
	b = append(b, `,"results":[`...)
	b = AppendResults(b, r.Results)
	b = append(b, `],"latency_ns":{"total":`...)
	b = strconv.AppendInt(b, r.Latency.Total, 10)
	b = append(b, `,"stages":{`...)
	for i, s := range r.Latency.Stages {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s.ID)
		b = append(b, `:{"queue":`...)
		b = strconv.AppendInt(b, s.Queue, 10)
		b = append(b, `,"service":`...)
		b = strconv.AppendInt(b, s.Service, 10)
		b = append(b, '}')
	}
	return append(b, "}}}"...)
}

// AppendResults writes the elements of an array.
func AppendResults(b []byte, all []Result) []byte {
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = all[i].AppendJSON(b)
	}
	return b
}

// AppendJSON appends the result as a JSON object, or a custom stage's JSON unchanged.
func (r *Result) AppendJSON(b []byte) []byte {
	switch r.Kind {
	case KindCustom:
		return append(b, r.JSON...)
	case registry.Match.Kind:
		b = r.appendMatch(b)
	case registry.CTC:
		b = append(b, `{"text":`...)
		b = appendString(b, r.Text)
		b = append(b, `,"score":`...)
		b = appendFloat(b, r.Score)
	case registry.Argmax:
		b = r.appendClass(b)
	case registry.Detect, registry.Segment, registry.Keypoints:
		b = r.appendBox(r.appendClass(b))
		if r.Kind == registry.Keypoints {
			b = append(b, `,"points":[`...)
			for i, p := range r.Points {
				b = appendPoint(b, i, p.X, p.Y, p.Score)
			}
			b = append(b, ']')
		}
		if r.Kind == registry.Segment {
			b = r.Mask.appendJSON(b)
		}
	case registry.Regions:
		b = append(b, `{"score":`...)
		b = r.appendBox(appendFloat(b, r.Score))
		b = append(b, `,"corners":[`...)
		for i, p := range r.Points {
			b = appendPoint(b, i, p.X, p.Y)
		}
		b = append(b, ']')
	default:
		b = append(b, '{')
		if r.Text != "" {
			b = append(appendString(append(b, `"output":`...), r.Text), ',')
		}
		b = append(b, `"shape":[`...)
		for i, d := range r.Shape {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, d, 10)
		}
		b = append(b, `],"values":[`...)
		for i, v := range r.Values {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendFloat(b, v)
		}
		b = append(b, ']')
	}
	if r.Next != "" {
		b = append(b, `,"then":{`...)
		b = append(appendString(b, r.Next), ":["...)
		b = append(AppendResults(b, r.Then), "]}"...)
	}
	return append(b, '}')
}

// appendMatch appends an entry of a gallery in Class, or the reason in Text why there is none.
func (r *Result) appendMatch(b []byte) []byte {
	if r.Class < 0 {
		b = appendString(append(b, `{"match":null,"reason":`...), r.Text)
	} else {
		b = appendString(append(b, `{"match":`...), r.Label)
		b = strconv.AppendInt(append(b, `,"entry":`...), int64(r.Class), 10)
		b = appendFloat(append(b, `,"score":`...), r.Score)
	}
	if r.Rows > 1 {
		b = strconv.AppendInt(append(b, `,"row":`...), int64(r.Row), 10)
	}
	return b
}

func (r *Result) appendClass(b []byte) []byte {
	b = append(b, `{"class":`...)
	b = strconv.AppendInt(b, int64(r.Class), 10)
	if r.Label != "" {
		b = append(b, `,"label":`...)
		b = appendString(b, r.Label)
	}
	b = append(b, `,"score":`...)
	return appendFloat(b, r.Score)
}

func (r *Result) appendBox(b []byte) []byte {
	if r.ID != 0 {
		b = append(b, `,"id":`...)
		b = strconv.AppendUint(b, r.ID, 10)
	}
	b = append(b, `,"box":`...)
	return appendPoint(b, 0, r.Box[:]...)
}

// appendPoint appends element i of an array, itself an array of numbers.
func appendPoint(b []byte, i int, v ...float32) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	b = append(b, '[')
	for k, x := range v {
		if k > 0 {
			b = append(b, ',')
		}
		b = appendFloat(b, x)
	}
	return append(b, ']')
}

func (m *Mask) appendJSON(b []byte) []byte {
	for _, f := range [...]struct {
		name  string
		value int
	}{{`,"mask":{"x":`, m.X}, {`,"y":`, m.Y}, {`,"width":`, m.Width}, {`,"height":`, m.Height}, {`,"step":`, m.Step}} {
		b = strconv.AppendInt(append(b, f.name...), int64(f.value), 10)
	}
	b = append(b, `,"counts":[`...)
	for i, c := range m.Counts {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(c), 10)
	}
	return append(b, "]}"...)
}

// appendFloat writes NaN and infinities, which JSON lacks, as null.
func appendFloat(b []byte, f float32) []byte {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'g', 6, 32)
}

// appendString writes a JSON string; bytes that are not UTF-8 become U+FFFD. encoding/json would
// allocate for each value of each frame.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < 0x20 || r == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// AppendText appends the result in a form for people.
func (r *Result) AppendText(b []byte) []byte {
	switch r.Kind {
	case KindCustom:
		return append(b, r.JSON...)
	case registry.Match.Kind:
		if r.Class < 0 {
			return append(append(b, "no match: "...), r.Text...)
		}
		b = strconv.AppendQuote(b, r.Label)
	case registry.CTC:
		b = strconv.AppendQuote(b, r.Text)
	case registry.Argmax, registry.Detect, registry.Segment, registry.Keypoints, registry.Regions:
		switch {
		case r.Kind == registry.Regions:
			b = append(b, "text"...)
		case r.Label == "":
			b = append(b, "class "...)
			b = strconv.AppendInt(b, int64(r.Class), 10)
		default:
			b = strconv.AppendQuote(b, r.Label)
		}
		if r.ID != 0 {
			b = append(b, " #"...)
			b = strconv.AppendUint(b, r.ID, 10)
		}
		if r.Kind != registry.Argmax {
			b = fmt.Appendf(b, " at %.0f,%.0f to %.0f,%.0f", r.Box[0], r.Box[1], r.Box[2], r.Box[3])
		}
	default:
		return fmt.Appendf(b, "%v %v", r.Shape, r.Values)
	}
	b = append(b, ' ')
	b = strconv.AppendFloat(b, float64(r.Score), 'f', 3, 64)
	for i := range r.Then {
		b = append(b, ": "...)
		if i > 0 {
			b = append(b[:len(b)-2], ", "...)
		}
		b = r.Then[i].AppendText(b)
	}
	return b
}
