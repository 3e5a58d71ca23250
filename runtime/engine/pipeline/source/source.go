// Package source reads frames from files, cameras, programs, rings in shared memory and a test
// pattern. Each kind in the registry has a file here.
package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
)

// Source delivers frames. ReadFrame fills one. It returns io.EOF after the last frame, an error
// that wraps [frame.ErrLost] if the next frame may be good, and one that wraps
// [frame.ErrTruncated] if the input ends inside a frame. Interrupt makes a blocked read return.
type Source interface {
	Format() frame.Format
	ReadFrame(pixels []byte) error
	Interrupt()
	Close() error
}

// filler is a source that can exchange a frame's memory instead of copying pixels.
type filler interface {
	// fill fills f like ReadFrame, and may exchange its memory.
	fill(f *frame.Frame) error
}

// ReadInto fills f from a source that the engine paces.
func ReadInto(s Source, f *frame.Frame) error {
	f.Copies = 1
	if s, ok := s.(filler); ok {
		return s.fill(f)
	}
	return s.ReadFrame(f.Pixels)
}

// SelfPaced is a source that delivers frames at its own rate.
type SelfPaced interface {
	Source
	// Capture fills f and its capture time, and returns how many frames were lost before it.
	// Its errors are those of ReadFrame.
	Capture(f *frame.Frame) (lost int, err error)
	// Lend prepares the memory of frames. It reports whether the source lends it to them, so that
	// none is allocated for their pixels.
	Lend(Lending) (bool, error)
}

// Lending describes the memory that a source lends to frames.
type Lending struct {
	Frames int
	Share  bool // as DMA buffers
	// Memory returns areas for frames, each page-aligned, where another process reads them, too. If it is
	// nil, the memory is the driver's.
	Memory func(areas, bytes int) ([][]byte, error)
}

// Input is the byte stream that a source reads.
type Input interface {
	io.ReadCloser
	SetReadDeadline(time.Time) error
}

// stream is shared by sources that read a file, a pipe or a child.
type stream struct {
	f  Input
	r  io.Reader
	at frame.Format
}

func (s *stream) Format() frame.Format { return s.at }
func (s *stream) Close() error         { return s.f.Close() }

// Interrupt ends the wait on a pipe. A regular file has no deadline and needs none.
func (s *stream) Interrupt() { interruptRead(s.f) }

func interruptRead(f Input) { _ = f.SetReadDeadline(time.Unix(1, 0)) }

// fill reads one frame's pixels.
func (s *stream) fill(pixels []byte) error {
	n, err := io.ReadFull(s.r, pixels)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %d of %d bytes", frame.ErrTruncated, n, len(pixels))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return context.Canceled
	}
	return err
}
