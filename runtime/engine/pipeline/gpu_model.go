package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/decode"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// workerRun is one run of a stage's models in the worker, on memory of an instance.
type workerRun struct {
	in    frame.Tensor // of a batch
	outs  []frame.Tensor
	votes []frame.Tensor
	data  [][]float32 // of the votes
}

// modelOnGPU is the work of a model stage in the worker.
func (b *builder) modelOnGPU(k int, s *plan.PipelineStage, models []member, o []ort.Options, shapes [][]int64, v decode.Vote, by *gpuBalance) (work, error) {
	g, st, level := b.gpu, &b.p.steps[k], b.now
	lane, limit := g.lanes[k], st.limit
	in := b.p.frames[0].Tensors[level][k-1].Shape
	numbers := make([][]int, st.workers())
	runs := make([]map[int]*workerRun, st.workers())
	for i := range st.workers() {
		for n, m := range models {
			g.models = append(g.models, workerModel{s.ID, m.path})
			var engine, without string
			if path, err := findEngine(b.o, s, m.path); err != nil {
				without = err.Error()
			} else {
				engine = path
			}
			model := worker.Model{
				Path: m.path, SHA256: m.sum, Input: o[n].Input, Output: o[n].Output, More: o[n].More,
				Threads: o[n].Threads, Spinning: o[n].Spinning, NoArena: o[n].NoArena, GPUMemory: sessionMemory(&b.o.Plan), Providers: workerProviders(b.o.GPU, s),
				Engine: engine, NoEngine: without,
			}
			number := 0
			for _, c := range g.clients {
				number = c.AddModel(model) // the same for all
			}
			numbers[i] = append(numbers[i], number)
		}
		runs[i] = map[int]*workerRun{}
		for _, size := range append([]int{1}, st.buckets...) {
			if runs[i][size] != nil {
				continue
			}
			r, err := b.workerRun(in, shapes, size, len(models)-1)
			if err != nil {
				return nil, err
			}
			runs[i][size] = r
		}
	}
	at := func(t *frame.Tensor) worker.Tensor { return worker.Tensor{Off: g.offset(t.Bytes()), Shape: t.Shape} }
	if err := b.warmModels(k, shapes, numbers, runs, at); err != nil {
		return nil, err
	}
	copies := &b.p.copies
	return func(_ context.Context, instance int, f []*frame.Frame) error {
		r := runs[instance][len(f)]
		if r == nil {
			return fmt.Errorf("%w: a batch of %d", ErrPlan, len(f))
		}
		in := &f[0].Tensors[level][k-1]
		if len(f) > 1 {
			in = &r.in
			gather(f, level, k-1, in.Data)
			copies.Add(uint64(len(f)))
		}
		if err := by.runOnGPU(instance, len(f), func(c *worker.Client) error {
			var outs [worker.MaxOutputs]worker.Tensor
			for n, number := range numbers[instance] {
				made := r.outs
				if n > 0 {
					made = r.votes[n-1 : n]
				}
				for m := range made {
					outs[m] = at(&made[m])
				}
				if err := c.Infer(lane+instance, number, at(in), outs[:len(made)], limit); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if len(r.data) > 0 {
			v(r.outs[0].Data, r.data, int(r.outs[0].Shape[len(r.outs[0].Shape)-1]))
		}
		scatter(f, level, k, r.outs)
		copies.Add(uint64(len(r.outs) * len(f)))
		return nil
	}, nil
}

// warmModels lets every worker run each model in each of its batch sizes before it
// counts as ready.
func (b *builder) warmModels(k int, shapes [][]int64, numbers [][]int, runs []map[int]*workerRun, at func(*frame.Tensor) worker.Tensor) error {
	g, st := b.gpu, &b.p.steps[k]
	var room []frame.Tensor // for outputs of the largest batch
	for _, shape := range shapes {
		wide := slices.Clone(shape)
		wide[0] *= int64(st.largest())
		t, err := b.warmTensor(wide)
		if err != nil {
			return err
		}
		room = append(room, t)
	}
	for i, models := range numbers {
		for size, r := range runs[i] {
			in := &b.p.frames[0].Tensors[b.now][k-1]
			if size > 1 {
				in = &r.in
			}
			for n, number := range models {
				var outs []worker.Tensor
				for m := range room {
					if n > 0 && m > 0 { // those that vote have one output
						break
					}
					outs = append(outs, worker.Tensor{Off: at(&room[m]).Off, Shape: r.outs[m].Shape})
				}
				for _, c := range g.clients {
					c.WarmModel(g.lanes[k]+i, number, at(in), outs)
				}
			}
		}
	}
	return nil
}

// sessionMemory is how much of the budget each session on the GPU may take, in bytes; 0:
// there is no bound.
func sessionMemory(p *plan.Pipeline) int64 {
	if p.Budget == nil || p.Budget.GPUMemory == 0 {
		return 0
	}
	sessions := 0
	levels := registry.Levels(p)
	for n, stages := range levels {
		for k := range stages {
			s := &stages[k]
			if s.Model != nil && onGPU(s) && (n == 0 || s.Model != levels[n-1][k].Model) {
				sessions += registry.Instances(p, s) * len(registry.Models(s))
			}
		}
	}
	return max(p.Budget.GPUMemory/int64(max(sessions, 1)), 1)
}

// workerProviders is what runs a model in the worker.
func workerProviders(o core.Options, s *plan.PipelineStage) []string {
	switch {
	case gpuBackend(o) == core.CPU: // stands in for the GPU
		return []string{ort.CPU}
	case len(s.Model.Providers) > 0:
		return s.Model.Providers
	}
	return []string{ort.TensorRT, ort.CUDA}
}

func (b *builder) workerRun(in []int64, shapes [][]int64, size, votes int) (*workerRun, error) {
	r := &workerRun{}
	make := func(shape []int64) (frame.Tensor, error) {
		shape = slices.Clone(shape)
		if size > 1 {
			shape[0] = int64(size)
		}
		t, err := b.sharedTensor(shape, false)
		if err != nil {
			return t, err
		}
		return t, b.account(1, 4*volume(shape))
	}
	var err error
	if size > 1 {
		if r.in, err = make(in); err != nil {
			return nil, err
		}
	}
	for _, shape := range shapes {
		t, err := make(shape)
		if err != nil {
			return nil, err
		}
		r.outs = append(r.outs, t)
	}
	for range votes {
		t, err := make(shapes[0])
		if err != nil {
			return nil, err
		}
		r.votes, r.data = append(r.votes, t), append(r.data, t.Data)
	}
	return r, nil
}
