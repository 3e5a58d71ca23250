package pipeline

import (
	"context"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
)

// Info describes what the pipeline will run on.
func (p *Pipeline) Info() RuntimeInfo { return p.info }

// RunDirectly runs every stage on the first frame of the pool, without the engine.
func (p *Pipeline) RunDirectly() error {
	frames := []*frame.Frame{&p.frames[0]}
	for k := range p.steps {
		if err := p.steps[k].batch(context.Background(), 0, frames); err != nil {
			return err
		}
	}
	return nil
}
