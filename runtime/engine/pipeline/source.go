package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// format is the geometry of a source's frames, tightly packed.
type format struct {
	pixels        core.Format
	width, height int
	matrix        core.Matrix
	rate          rate
	shrunk        int // the picture was so many times as wide and as high before it was decoded; 0: it was not
}

// whole is the size of the picture, in whose pixels the plan and results are.
func (f format) whole() (width, height int) {
	k := max(f.shrunk, 1)
	return f.width * k, f.height * k
}

// shrink is a frame of which only a part of the width and height is decoded.
func (f format) shrink(k int) format {
	f.shrunk, f.width, f.height = k, f.width/k, f.height/k
	return f
}

func (f format) bytes() int { return core.FrameBytes(f.pixels, f.width, f.height) }

// rows is the shape of each plane of a frame.
func (f format) rows() []struct{ bytes, count int } {
	cw, ch := (f.width+1)/2, (f.height+1)/2
	switch f.pixels {
	case core.NV12:
		return []struct{ bytes, count int }{{f.width, f.height}, {2 * cw, ch}}
	case core.I420:
		return []struct{ bytes, count int }{{f.width, f.height}, {cw, ch}, {cw, ch}}
	}
	return []struct{ bytes, count int }{{f.bytes() / f.height, f.height}}
}

// rate is frames per second as a fraction; num 0 means unknown.
type rate struct{ num, den int }

// period is the time between frames, 0 when the rate is unknown.
func (r rate) period() time.Duration {
	if r.num <= 0 || r.den <= 0 {
		return 0
	}
	return time.Duration(int64(time.Second) * int64(r.den) / int64(r.num))
}

// source gives frames. read fills one and fails with io.EOF after the last, with
// an error that wraps errFrame when the next may be good, and with one that wraps
// ErrTruncated inside one. interrupt makes a read that waits for data return.
type source interface {
	format() format
	read(frame []byte) error
	interrupt()
	close() error
}

// errFrame is wrapped by errors that cost one frame: the source goes on.
var errFrame = errors.New("the frame is lost")

// filler is a source that does better with a frame than with its pixels.
type filler interface {
	// put fills f as read does, and may change its memory for another.
	put(f *frame) error
}

// readInto fills f from a source that does not pace itself.
func readInto(s source, f *frame) error {
	f.copies = 1
	if s, ok := s.(filler); ok {
		return s.put(f)
	}
	return s.read(f.pixels)
}

// selfPaced is a source that gives frames when they come, not when they are asked
// for.
type selfPaced interface {
	source
	// capture fills f, with the time it was taken, and says how many frames were
	// lost before it. It fails as read does.
	capture(f *frame) (lost int, err error)
	// lend is told how many frames there are, and whether a stage takes them as DMA
	// buffers. When the source puts memory of its own into them, it says so, and
	// none is allocated.
	lend(frames int, share bool) (bool, error)
}

// checkSize bounds a geometry that comes from a plan or from a file.
func checkSize(width, height int) error {
	if width < 1 || height < 1 || width > core.MaxSide || height > core.MaxSide {
		return fmt.Errorf("frames of %dx%d pixels; each side must be 1 to %d", width, height, core.MaxSide)
	}
	return nil
}

// input is where the bytes of a source come from.
type input interface {
	io.ReadCloser
	SetReadDeadline(time.Time) error
}

// stream is the part that sources reading a file, a pipe or a child share.
type stream struct {
	f  input
	r  io.Reader
	at format
}

func (s *stream) format() format { return s.at }
func (s *stream) close() error   { return s.f.Close() }

// interrupt ends the wait on a pipe; a regular file has no deadline and needs
// none.
func (s *stream) interrupt() { interruptRead(s.f) }

func interruptRead(f input) { _ = f.SetReadDeadline(time.Unix(1, 0)) }

// fill reads one frame's pixels.
func (s *stream) fill(frame []byte) error {
	n, err := io.ReadFull(s.r, frame)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: it has %d of %d bytes", ErrTruncated, n, len(frame))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return context.Canceled
	}
	return err
}

// rawSource reads frames without any header between them.
type rawSource struct{ stream }

func openRaw(in input, f format) (source, error) {
	if err := checkSize(f.width, f.height); err != nil {
		return nil, fmt.Errorf("%w: %w; raw video says nothing of itself, so the plan must", ErrPlan, err)
	}
	return &rawSource{stream{f: in, r: in, at: f}}, nil
}

func (s *rawSource) read(frame []byte) error { return s.fill(frame) }

// synthetic draws a pattern that moves, for as long as it is asked.
type synthetic struct {
	at format
	n  int
}

func openSynthetic(f format) (source, error) {
	if err := checkSize(f.width, f.height); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	return &synthetic{at: f}, nil
}

func (s *synthetic) format() format { return s.at }
func (s *synthetic) interrupt()     {}
func (s *synthetic) close() error   { return nil }

// read makes luma a diagonal ramp that moves by 3 a frame, chroma a slow cycle.
func (s *synthetic) read(frame []byte) error {
	luma := s.at.width * s.at.height
	for y := range s.at.height {
		row := frame[y*s.at.width:][:s.at.width]
		for x := range row {
			row[x] = uint8(16 + (x+y+3*s.n)%220)
		}
	}
	chroma := frame[luma:]
	for i := range chroma {
		chroma[i] = uint8(96 + (i+s.n)%64)
	}
	s.n++
	return nil
}
