package source

import (
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// rawSource reads frames without headers.
type rawSource struct{ stream }

func openRaw(in Input, f frame.Format) (Source, error) {
	if err := f.CheckSize(); err != nil {
		return nil, fmt.Errorf("%w: %w; the plan must describe the frames of raw video", registry.ErrPlan, err)
	}
	return &rawSource{stream{f: in, r: in, at: f}}, nil
}

func (s *rawSource) ReadFrame(pixels []byte) error { return s.fill(pixels) }
