// Package sink writes results: as JSON lines, to an HTTP server, to a program, or to a
// ring in shared memory. Each kind of the registry has a file here.
package sink

import (
	"fmt"
	"io"
	"strconv"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
)

// Sink accepts results, one record per frame, in frame order.
type Sink interface {
	Write(*result.Record) error
	Close() error
}

// Text writes one human-readable line per frame.
type Text struct {
	w   io.Writer
	buf []byte
}

// NewText writes to w.
func NewText(w io.Writer) *Text { return &Text{w: w} }

// Write writes frame number, latency and results.
func (s *Text) Write(r *result.Record) error {
	b := append(s.buf[:0], "frame "...)
	b = strconv.AppendUint(b, r.Frame, 10)
	b = append(b, "  "...)
	b = strconv.AppendFloat(b, float64(r.Latency.Total)/1e6, 'f', 1, 64)
	b = append(b, " ms "...)
	if s := r.Stats; s != nil {
		b = fmt.Appendf(b, " brightness %.3f, dark %.1f %%, bright %.1f %%, focus %.4g;", s.Brightness, 100*s.Low, 100*s.High, s.Focus)
	}
	for i := range r.Results {
		b = r.Results[i].AppendText(append(b, ' '))
	}
	if len(r.Results) == 0 {
		b = append(b, " nothing"...)
	}
	s.buf = append(b, '\n')
	_, err := s.w.Write(s.buf)
	return err
}

// Close does nothing: the caller owns the writer.
func (*Text) Close() error { return nil }
