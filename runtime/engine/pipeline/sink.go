package pipeline

import (
	"fmt"
	"io"
	"strconv"
)

// Sink takes results, one record a frame, in the order of frames.
type Sink interface {
	Write(*Record) error
	Close() error
}

// Text writes one line a frame for people to read.
type Text struct {
	w   io.Writer
	buf []byte
}

// NewText writes to w.
func NewText(w io.Writer) *Text { return &Text{w: w} }

// Write writes frame number, latency and results.
func (s *Text) Write(r *Record) error {
	b := append(s.buf[:0], "frame "...)
	b = strconv.AppendUint(b, r.Frame, 10)
	b = append(b, "  "...)
	b = strconv.AppendFloat(b, float64(r.Latency.Total)/1e6, 'f', 1, 64)
	b = append(b, " ms "...)
	for i := range r.Results {
		b = r.Results[i].appendText(append(b, ' '))
	}
	if len(r.Results) == 0 {
		b = append(b, " nothing"...)
	}
	s.buf = append(b, '\n')
	_, err := s.w.Write(s.buf)
	return err
}

// Close does nothing: the writer is the caller's.
func (*Text) Close() error { return nil }

func (r *Result) appendText(b []byte) []byte {
	switch r.Kind {
	case kindCustom:
		return append(b, r.JSON...)
	case kindCTC:
		b = strconv.AppendQuote(b, r.Text)
	case kindArgmax, kindDetect, kindSegment, kindKeypoints, kindRegions:
		switch {
		case r.Kind == kindRegions:
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
		if r.Kind != kindArgmax {
			b = fmt.Appendf(b, " at %.0f,%.0f to %.0f,%.0f", r.Box[0], r.Box[1], r.Box[2], r.Box[3])
		}
	default:
		return fmt.Appendf(b, "%v %v", r.Shape, r.Values)
	}
	b = append(b, ' ')
	return strconv.AppendFloat(b, float64(r.Score), 'f', 3, 64)
}
