package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// gpuStage is one stage on the GPU, for one level of the ladder.
type gpuStage struct {
	id     string
	drop   bool // drop frames instead of falling back
	gpu    work
	cpu    work
	input  work                             // makes the input of the stage on the CPU; nil: it may not
	at     func(*frame.Frame) *frame.Tensor // the input; nil: the frame's pixels
	share  *gpuBalance
	spare  []*frame.Frame // for each instance and GPU of a stage that writes to frames, see quarantine
	each   int            // frames at once
	k      int
	others *atomic.Uint64
	locks  []sync.Mutex // of the step
}

// gpuStage builds stage k from its work on the GPU, do, and its fallback, cpu.
func (b *builder) gpuStage(k int, s *plan.PipelineStage, cpu, do work, by *gpuBalance) work {
	st := &b.p.steps[k]
	if st.locks == nil {
		st.locks = make([]sync.Mutex, st.workers())
	}
	g := &gpuStage{
		id: s.ID, drop: s.Fallback == fallbackDrop, gpu: do, cpu: cpu, share: by, others: &b.p.others[k], locks: st.locks,
	}
	g.k, g.each = k, registry.LargestBatch(b.o.Plan.Stages, k)
	first := len(b.p.frames) - b.p.spares
	for i := range k {
		first += registry.SparesOf(&b.o.Plan, i)
	}
	for i := range registry.SparesOf(&b.o.Plan, k) {
		g.spare = append(g.spare, &b.p.frames[first+i])
	}
	if level := b.now; k > 0 {
		g.input = b.levels[level].fallbacks[k-1]
		g.at = func(f *frame.Frame) *frame.Tensor { return &f.Tensors[level][k-1] }
	}
	b.gpu.stages = append(b.gpu.stages, g)
	if !g.drop {
		b.levels[b.now].fallbacks[k] = g.runOnCPU
	}
	b.p.steps[k].backend, b.p.steps[k].aside = gpuBackend(b.o.GPU)+" in a separate process", true
	return g.run
}

// run processes a batch on the GPU; on failure in smaller batches, then on the CPU, then not at
// all.
func (g *gpuStage) run(ctx context.Context, instance int, f []*frame.Frame) error {
	err := g.gpu(ctx, instance, f)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, worker.ErrUnavailable):
	case worker.IsWorkerFault(err):
		g.quarantine(instance, f)
	case !errors.Is(err, core.ErrOOM):
		return err
	case len(f) > 1:
		return fmt.Errorf("%w: %w", errNoMemory, err)
	}
	switch {
	case !g.drop:
		return g.runOnCPU(ctx, instance, f)
	case errors.Is(err, worker.ErrTimeout):
		return errLate
	case errors.Is(err, core.ErrOOM):
		return fmt.Errorf("%w: %w", errNoMemory, err)
	}
	return errNoDevice
}

// runOnCPU processes a batch on the CPU. Where only the GPU had the input, the CPU makes that
// first.
func (g *gpuStage) runOnCPU(ctx context.Context, instance int, f []*frame.Frame) error {
	for n, fr := range f {
		if g.at == nil || g.at(fr).On == 0 {
			continue
		}
		if g.input == nil {
			return errNoDevice
		}
		if err := g.input(ctx, instance, f[n:n+1]); err != nil {
			return err
		}
	}
	instance %= len(g.locks) // of another stage, if that needs the output
	g.locks[instance].Lock()
	defer g.locks[instance].Unlock()
	err := g.cpu(ctx, instance, f)
	if err == nil {
		g.others.Add(uint64(len(f)))
	}
	return err
}

// quarantine gives frames the tensors of spare ones, because an abandoned worker may still
// write to the old ones: a preprocess stage does, and where CPU and GPU share memory so does every stage
// whose output stays there. The next worker starts only after the last one has ended, so one spare for each
// instance, GPU and frame of a batch is enough. Other outputs are copied from memory of the instance.
func (g *gpuStage) quarantine(instance int, f []*frame.Frame) {
	if len(g.spare) == 0 {
		return
	}
	at := (instance*len(g.share.clients) + g.share.last[instance]) * g.each
	for n, a := range f {
		b := g.spare[at+n]
		a.Tensors, b.Tensors = b.Tensors, a.Tensors
		a.Slot, b.Slot = b.Slot, a.Slot
		for k := range g.k { // what earlier stages made
			a.Tensors[a.Level][k].CopyFrom(&b.Tensors[a.Level][k])
		}
	}
}

// warmFallback runs the CPU fallback once, so that the first frame that needs it finds it
// initialised.
func (b *builder) warmFallback(n int, f *frame.Frame) error {
	for k := range b.p.steps {
		cpu := b.levels[n].fallbacks[k]
		for i := range b.p.steps[k].workers() {
			if cpu == nil {
				continue
			}
			b.cropForWarmUp(f) // a detector before has other boxes
			if err := cpu(context.Background(), i, []*frame.Frame{f}); err != nil {
				return fmt.Errorf("stage %s, warming up on the CPU: %w", b.p.steps[k].id, err)
			}
		}
	}
	return nil
}
