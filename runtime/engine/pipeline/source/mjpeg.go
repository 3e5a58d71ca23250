package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/jpeg"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// mjpegSource decodes Motion JPEG ahead of the pipeline, several frames in parallel if the plan
// sets it. A damaged frame fails alone.
//
//	file ─▶ next ─▶ ┬─ decode ─┬ ─▶ read, in order
//	                └─ decode ─┘
type mjpegSource struct {
	f  Input
	m  *jpeg.Motion
	at frame.Format

	decoders []*jpeg.Decoder
	memory   []byte
	free     chan *coded
	work     chan *coded
	order    chan *coded
	stop     chan struct{}
	once     sync.Once
	all      sync.WaitGroup
	began    bool
	lead     []error // damaged frames before the first one whose size is known
	end      error   // after the last picture
}

// coded is one frame, compressed and decoded.
type coded struct {
	data   []byte
	pixels []byte
	err    error
	ready  chan struct{}
}

// maxDecoders limits the parallel decoders.
const maxDecoders = 16

// shrinking returns the factor by which compressed frames of a size can be decoded smaller, see
// [jpeg.Shrinks].
type shrinking func(width, height int) int

// maxLead limits the damaged frames at the start of a stream, as of a camera that was joined
// inside a frame.
const maxLead = 30

// openMJPEG reads up to the first frame that is not damaged. All frames must have its size.
func openMJPEG(in Input, f frame.Format, decoders int, spare shrinking) (_ Source, err error) {
	if decoders < 0 || decoders > maxDecoders {
		return nil, fmt.Errorf("%w: %d decoders: must be 1 to %d", registry.ErrPlan, decoders, maxDecoders)
	}
	lib, err := jpeg.Open("")
	if err != nil {
		return nil, err
	}
	s := &mjpegSource{f: in, at: f, stop: make(chan struct{})}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	for range max(decoders, 1) {
		d, err := lib.NewDecoder()
		if err != nil {
			return nil, err
		}
		s.decoders = append(s.decoders, d)
	}
	if s.m, err = jpeg.NewMotion(in); err != nil {
		return nil, fmt.Errorf("%w: %w", frame.ErrFormat, err)
	}
	first, err := s.findFirst()
	if err != nil {
		return nil, fmt.Errorf("%w: first frame: %w", frame.ErrFormat, errors.Join(append(s.lead, err)...))
	}
	s.at.Pixels, s.at.Matrix = core.I420, core.BT601Full
	s.at = s.at.Shrink(spare(s.at.Width, s.at.Height))
	if s.m.Num > 0 && s.at.Rate.Num == 0 {
		s.at.Rate = frame.Rate{Num: s.m.Num, Den: s.m.Den}
	}
	// One frame is being read, one waits to be taken.
	n, size := len(s.decoders)+2, s.at.Bytes()
	if s.memory, err = frame.MapMemory(n * size); err != nil {
		return nil, err
	}
	s.free, s.work, s.order = make(chan *coded, n), make(chan *coded, n), make(chan *coded, n)
	for i := range n {
		s.free <- &coded{pixels: s.memory[i*size : (i+1)*size : (i+1)*size], ready: make(chan struct{}, 1)}
	}
	p := <-s.free
	p.data = append(p.data, first...)
	s.work <- p
	s.order <- p
	return s, nil
}

// findFirst returns the first frame whose size is known, and sets the size.
func (s *mjpegSource) findFirst() (first []byte, err error) {
	for {
		if first, err = s.m.Next(); err != nil {
			return nil, err
		}
		if s.at.Width, s.at.Height, err = s.decoders[0].Size(first); err == nil || len(s.lead) == maxLead {
			return first, err
		}
		s.lead = append(s.lead, fmt.Errorf("%w: %w", frame.ErrLost, err))
	}
}

func (s *mjpegSource) Format() frame.Format { return s.at }

// begin starts to read ahead when the first frame is requested.
func (s *mjpegSource) begin() {
	s.began = true
	for _, d := range s.decoders {
		s.all.Go(func() {
			for p := range s.work {
				p.err = d.Decode(p.data, p.pixels, s.at.Width, s.at.Height, s.at.Shrunk)
				if p.err != nil {
					p.err = fmt.Errorf("%w: %w", frame.ErrLost, p.err)
				}
				p.ready <- struct{}{}
			}
		})
	}
	s.all.Go(func() {
		defer close(s.order)
		defer close(s.work)
		for {
			data, err := s.m.Next()
			if err != nil {
				s.end = err
				return
			}
			select {
			case p := <-s.free:
				p.data = append(p.data[:0], data...)
				s.work <- p
				s.order <- p
			case <-s.stop:
				s.end = context.Canceled
				return
			}
		}
	})
}

// fill exchanges f's memory for that of a decoded frame.
func (s *mjpegSource) fill(f *frame.Frame) error {
	if !s.began {
		s.begin()
	}
	if len(s.lead) > 0 {
		err := s.lead[0]
		s.lead = s.lead[1:]
		return err
	}
	p, ok := <-s.order
	if !ok {
		switch {
		case errors.Is(s.end, io.EOF):
			return io.EOF
		case errors.Is(s.end, os.ErrDeadlineExceeded):
			return context.Canceled
		case errors.Is(s.end, jpeg.ErrTruncated):
			return fmt.Errorf("%w: %w", frame.ErrTruncated, s.end)
		case errors.Is(s.end, jpeg.ErrFormat):
			return fmt.Errorf("%w: %w", frame.ErrFormat, s.end)
		}
		return s.end
	}
	<-p.ready
	err := p.err
	switch {
	case err != nil:
	case f.Fixed:
		f.Copies = copy(f.Pixels, p.pixels) / len(p.pixels)
	default:
		p.pixels, f.Pixels = f.Pixels, p.pixels
		f.Copies = 0
	}
	s.free <- p
	return err
}

// ReadFrame copies the frame, for callers without a frame slot.
func (s *mjpegSource) ReadFrame(pixels []byte) error {
	return s.fill(&frame.Frame{Pixels: pixels, Fixed: true})
}

func (s *mjpegSource) Interrupt() {
	s.once.Do(func() { close(s.stop) })
	interruptRead(s.f)
}

func (s *mjpegSource) Close() error {
	s.Interrupt()
	err := s.f.Close()
	s.all.Wait()
	s.release()
	return err
}

func (s *mjpegSource) release() {
	for _, d := range s.decoders {
		d.Close()
	}
	s.decoders = nil
	if s.memory != nil {
		_ = unix.Munmap(s.memory)
		s.memory = nil
	}
}
