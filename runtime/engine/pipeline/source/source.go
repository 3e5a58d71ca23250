// Package source gives frames: of files, cameras, programs, rings in shared memory and a
// pattern that is drawn. Each kind of the registry has a file here.
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

// Source gives frames. ReadFrame fills one and fails with io.EOF after the last, with an
// error that wraps [frame.ErrLost] when the next may be good, and with one that wraps
// [frame.ErrTruncated] inside one. Interrupt makes a read that waits for data return.
type Source interface {
	Format() frame.Format
	ReadFrame(pixels []byte) error
	Interrupt()
	Close() error
}

// filler is a source that can exchange a frame's memory instead of copying pixels.
type filler interface {
	// put fills f as ReadFrame does, and may exchange its memory.
	put(f *frame.Frame) error
}

// ReadInto fills f from a source that does not pace itself.
func ReadInto(s Source, f *frame.Frame) error {
	f.Copies = 1
	if s, ok := s.(filler); ok {
		return s.put(f)
	}
	return s.ReadFrame(f.Pixels)
}

// SelfPaced is a source that gives frames at its own pace.
type SelfPaced interface {
	Source
	// Capture fills f and the time it was taken, and returns how many frames were lost
	// before it. It fails as ReadFrame does.
	Capture(f *frame.Frame) (lost int, err error)
	// Lend prepares as many frames, as DMA buffers with share. It reports whether the
	// source puts memory of its own into them, so that none is allocated.
	Lend(frames int, share bool) (bool, error)
}

// Input is where the bytes of a source come from.
type Input interface {
	io.ReadCloser
	SetReadDeadline(time.Time) error
}

// stream is the part that sources reading a file, a pipe or a child share.
type stream struct {
	f  Input
	r  io.Reader
	at frame.Format
}

func (s *stream) Format() frame.Format { return s.at }
func (s *stream) Close() error         { return s.f.Close() }

// Interrupt ends the wait on a pipe; a regular file has no deadline and needs
// none.
func (s *stream) Interrupt() { interruptRead(s.f) }

func interruptRead(f Input) { _ = f.SetReadDeadline(time.Unix(1, 0)) }

// fill reads one frame's pixels.
func (s *stream) fill(pixels []byte) error {
	n, err := io.ReadFull(s.r, pixels)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: it has %d of %d bytes", frame.ErrTruncated, n, len(pixels))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return context.Canceled
	}
	return err
}
