// Package sticky keeps the first error of a writer, so that a program that
// prints line by line can say once, at its end, that the output is not whole.
package sticky

import (
	"errors"
	"io"
)

// Writer passes on what it is given until a write fails; from then on it only
// repeats that error.
type Writer struct {
	w   io.Writer
	err error
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write implements [io.Writer].
func (s *Writer) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}

// Lost returns the first error of a write unless err already says it: the
// answer of a command whose output did not arrive is worth nothing.
func (s *Writer) Lost(err error) error {
	if s.err == nil || errors.Is(err, s.err) {
		return nil
	}
	return s.err
}
