package pipeline

import (
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/request"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// NewPort returns the port of a pipeline that answers requests; nil for other pipelines.
func NewPort(p *plan.Pipeline) (*request.Port, error) {
	if !registry.IsServed(&p.Source) || p.Source.Request == nil {
		return nil, nil
	}
	return request.NewPort(registry.SentInputs(&p.Source), registry.RequestLimit(&p.Source), registry.RequestRows(p), registry.RequestTimeout(&p.Source))
}

// openAnswers describes the outputs of requests. They are the same on every level of the ladder, so that
// callers need not know of it.
func (b *builder) openAnswers() error {
	port := b.o.Requests
	last := len(b.o.Plan.Stages) - 1
	if port == nil {
		return nil
	}
	if registry.StageOutput(&b.o.Plan.Stages[last]).Data != registry.Tensors {
		port.Answers(nil, nil)
		return nil
	}
	var outputs []registry.Tensor
	for n := range b.levels {
		for k, t := range b.levels[n].made[last] {
			if t.Name == "" {
				t.Name = b.o.Plan.Stages[last].ID
			}
			switch {
			case n == 0:
				outputs = append(outputs, t)
			case k >= len(outputs) || !t.Equal(outputs[k]):
				return fmt.Errorf("%w: degrade, step %d: it gives %s %s, and callers expect %v", ErrPlan, n, t.Name, t, outputs)
			}
		}
	}
	rows := make([]frame.Tensor, 0, len(outputs))
	port.Answers(outputs, func(f *frame.Frame) []frame.Tensor { // in the goroutine of the sink
		t := &f.Tensors[f.Level][last]
		return append(append(rows[:0], *t), t.More...)
	})
	return nil
}

// Buckets lists the batches that the first model stage with several runs; nil: frames run one by one.
func Buckets(p *plan.Pipeline) []int {
	for k := range p.Stages {
		if registry.LargestBatch(p.Stages, k) > 1 {
			return p.Stages[k].Model.Batch.Buckets
		}
	}
	return nil
}
