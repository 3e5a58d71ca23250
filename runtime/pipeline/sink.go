package pipeline

import (
	"fmt"
	"io"
	"os"
	"strconv"
)

// Sink takes results, one record a frame, in the order of frames.
type Sink interface {
	Write(*Record) error
	Close() error
}

// NDJSON writes one JSON object a line.
type NDJSON struct {
	w   io.Writer
	buf []byte
	end func() error
}

// NewNDJSON writes to w, one call of Write for each line.
func NewNDJSON(w io.Writer) *NDJSON {
	return &NDJSON{w: w, end: func() error { return nil }}
}

// OpenNDJSON appends to a file, so that a pipeline which starts again keeps the
// results it has.
func OpenNDJSON(path string) (*NDJSON, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSink, err)
	}
	return &NDJSON{w: f, end: f.Close}, nil
}

// Write writes the record as a line.
func (s *NDJSON) Write(r *Record) error {
	s.buf = append(r.AppendJSON(s.buf[:0]), '\n')
	_, err := s.w.Write(s.buf)
	return err
}

// Close closes the file, when there is one.
func (s *NDJSON) Close() error { return s.end() }

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
	case kindCTC:
		b = strconv.AppendQuote(b, r.Text)
	case kindArgmax:
		if r.Label == "" {
			b = append(b, "class "...)
			b = strconv.AppendInt(b, int64(r.Class), 10)
		} else {
			b = strconv.AppendQuote(b, r.Label)
		}
	default:
		return fmt.Appendf(b, "%v %v", r.Shape, r.Values)
	}
	b = append(b, ' ')
	return strconv.AppendFloat(b, float64(r.Score), 'f', 3, 64)
}
