package source

import (
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// synthetic draws a moving pattern without end.
type synthetic struct {
	at frame.Format
	n  int
}

func openSynthetic(f frame.Format) (Source, error) {
	if err := frame.CheckSize(f.Width, f.Height); err != nil {
		return nil, fmt.Errorf("%w: %w", registry.ErrPlan, err)
	}
	return &synthetic{at: f}, nil
}

func (s *synthetic) Format() frame.Format { return s.at }
func (s *synthetic) Interrupt()           {}
func (s *synthetic) Close() error         { return nil }

// ReadFrame draws a diagonal luma ramp that moves by 3 per frame, and slowly cycling chroma.
func (s *synthetic) ReadFrame(pixels []byte) error {
	luma := s.at.Width * s.at.Height
	for y := range s.at.Height {
		row := pixels[y*s.at.Width:][:s.at.Width]
		for x := range row {
			row[x] = uint8(16 + (x+y+3*s.n)%220)
		}
	}
	chroma := pixels[luma:]
	for i := range chroma {
		chroma[i] = uint8(96 + (i+s.n)%64)
	}
	s.n++
	return nil
}
