package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// cropModel runs the model of a stage on the crops of a frame, as many at once as a bucket holds.
type cropModel struct {
	p      *Pipeline
	s      *plan.PipelineStage
	k      int
	level  int
	limits []cropLimit // by instance
}

// cropLimit is the largest bucket that fits in memory.
type cropLimit struct {
	size  int
	until time.Time // of the next attempt with a larger one
}

// buildOnCrops builds a stage that runs a model on the crops of a frame. Its tensor of a frame has
// a row for each crop.
func (b *modelBuilder) buildOnCrops(crops *plan.ROI) (work, error) {
	in := b.p.frames[0].Tensors[b.now][b.k-1]
	for _, size := range registry.CropBuckets(b.s) {
		part, err := b.part(&in, registry.CropSpan{Size: size})
		if err != nil {
			return nil, err
		}
		got, err := b.probeAll(b.models, []frame.Tensor{part})
		if err != nil {
			return nil, fmt.Errorf("%d crops: %w", size, err)
		}
		one := got[0]
		if len(one.Shape) == 0 || one.Shape[0] != int64(size) {
			return nil, fmt.Errorf("%w: model %s: its output is %v for %d crops: the first axis must be the batch", ErrPlan, b.models[0].path, got[0].Shape, size)
		}
		one.Shape = slices.Clone(one.Shape)
		if one.Shape[0] = 1; b.outs != nil && !one.Equal(b.outs[0]) {
			return nil, fmt.Errorf("%w: model %s: its output is %v for %d crops, but %v for one", ErrPlan, b.models[0].path, got[0].Shape, size, b.outs[0].Shape)
		}
		b.outs = []registry.Tensor{one}
	}
	rows := batchOf(b.outs[0], registry.CropRows(b.levels[b.now].stages, b.k))
	if err := b.account(len(b.p.frames), rows.Bytes()); err != nil {
		return nil, err
	}
	if err := b.allocateTensors(b.k, rows, true); err != nil {
		return nil, err
	}
	b.in, b.made = b.made[0], b.outs
	m := &cropModel{p: b.p, s: b.s, k: b.k, level: b.now, limits: make([]cropLimit, b.st.workers())}
	for i := range m.limits {
		m.limits[i].size = slices.Max(registry.CropBuckets(b.s))
	}
	cpu, err := b.cropsOnCPU(m, crops.Count)
	if err != nil || b.gpu == nil || !onGPU(b.s) {
		return cpu, err
	}
	by, err := b.gpu.newBalance(b.st.workers())
	if err != nil {
		return nil, err
	}
	do, err := b.cropsOnGPU(m, by)
	if err != nil {
		return nil, err
	}
	return b.gpuStage(b.k, b.s, cpu, do, by), nil
}

// maxCropBindings limits the bindings of one stage, of about a kilobyte each.
const maxCropBindings = 1 << 17

// part returns the rows of a tensor that a run reads or writes.
func (b *modelBuilder) part(t *frame.Tensor, span registry.CropSpan) (frame.Tensor, error) {
	part, err := t.ORT.Part(span.At, span.Size)
	if err != nil {
		return frame.Tensor{}, err
	}
	b.p.closers = append(b.p.closers, func() error { part.Close(); return nil })
	out := frame.NewTensor(registry.Tensor{DType: t.DType, Shape: part.Shape()}, part.Bytes())
	out.ORT = part
	return out, nil
}

// runAll runs an instance on n crops. A run that does not fit in memory is repeated with a smaller
// bucket, and runs stay that small for a while.
func (m *cropModel) runAll(instance, n int, run func(registry.CropSpan) error) error {
	limit := &m.limits[instance]
	buckets := registry.CropBuckets(m.s)
	if largest := buckets[len(buckets)-1]; limit.size < largest && time.Now().After(limit.until) {
		limit.size = largest
	}
	for at := 0; at < n; {
		size := registry.CropRun(m.s, limit.size, n-at)
		err := run(registry.CropSpan{At: at, Size: size})
		smaller := slices.Index(buckets, size) - 1
		switch {
		case err == nil:
			at += size
		case smaller >= 0 && (errors.Is(err, errNoMemory) || errors.Is(err, core.ErrOOM)):
			limit.size, limit.until = buckets[smaller], time.Now().Add(memoryRest)
			m.p.event(Event{Kind: EventBatch, Stage: m.s.ID, From: size, To: limit.size, Why: "memory ran out"})
		default:
			return err
		}
	}
	return nil
}

// cropsOnCPU returns the stage's work in this process. The models are bound to the rows of each
// frame's tensors, so that nothing is copied.
func (b *modelBuilder) cropsOnCPU(m *cropModel, count int) (work, error) {
	index := map[registry.CropSpan]int{}
	spans := registry.CropSpans(b.s, count)
	for n, span := range spans {
		index[span] = n
	}
	if n := len(spans) * len(b.p.frames) * b.st.workers(); n > maxCropBindings {
		return nil, fmt.Errorf("%w: %d runs for %d frames and %d instances, each bound to its memory, are more than %d: lower count of the roi stage, the sizes of batches, instances or the queue capacity",
			ErrPlan, len(spans), len(b.p.frames), b.st.workers(), maxCropBindings)
	}
	runs := make([][][]bound, b.st.workers()) // by instance, frame and span
	for i := range runs {
		runs[i] = make([][]bound, len(b.p.frames))
	}
	for f := range b.p.frames {
		t := b.p.frames[f].Tensors[b.now]
		for _, span := range spans {
			in, err := b.part(&t[b.k-1], span)
			if err != nil {
				return nil, err
			}
			out, err := b.part(&t[b.k], span)
			if err != nil {
				return nil, err
			}
			for i := range runs {
				r := bound{ins: []frame.Tensor{in}, outs: []frame.Tensor{out}}
				if err := b.bind(&r, i, nil); err != nil {
					return nil, err
				}
				runs[i][f] = append(runs[i][f], r)
			}
		}
	}
	return func(_ context.Context, instance int, batch []*frame.Frame) error {
		for _, f := range batch {
			f.Tensors[m.level][m.k].SetOn(0)
			if err := m.runAll(instance, len(f.Crops), func(span registry.CropSpan) error {
				return runs[instance][f.Slot][index[span]].run(b.vote, m.level)
			}); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// cropsOnGPU returns the stage's work in the worker.
func (b *modelBuilder) cropsOnGPU(m *cropModel, by *gpuBalance) (work, error) {
	g, k, level, limit, lane := b.gpu, b.k, b.now, b.st.limit, b.gpu.lanes[b.k]
	keeps, row, made := b.keepsOutput(k), int(b.in.Bytes()), int(b.made[0].Bytes())
	numbers := make([]int, b.st.workers())
	runs := make([]map[int]*workerRun, b.st.workers())
	lists := make([]*core.List, b.st.workers())
	for i := range runs {
		numbers[i] = b.addToWorkers()[0]
		runs[i] = map[int]*workerRun{}
		lists[i] = g.clients[0].Draft().List()
		for _, size := range registry.CropBuckets(b.s) {
			r, err := b.cropRun(size, row%registry.TensorAlign != 0)
			if err != nil {
				return nil, err
			}
			runs[i][size] = r
		}
	}
	if err := b.warmCrops(numbers, runs); err != nil {
		return nil, err
	}
	copies := &b.p.copies
	return func(_ context.Context, instance int, batch []*frame.Frame) error {
		for _, f := range batch {
			in, out := &f.Tensors[level][k-1], &f.Tensors[level][k]
			out.SetOn(0)
			if len(f.Crops) == 0 {
				continue
			}
			if err := by.runOnGPU(instance, 1, func(c *worker.Client) error {
				return m.runAll(instance, len(f.Crops), func(span registry.CropSpan) error {
					r := runs[instance][span.Size]
					from := in.Bytes()[span.At*row:][:span.Size*row]
					at := worker.Tensor{Off: g.offset(from), DType: in.DType, Shape: r.shape, Resident: in.On}
					if r.in.Shape != nil && at.Off%registry.TensorAlign != 0 {
						list, source := lists[instance].Reset(), g.region(from)
						if in.On != 0 {
							source = g.resident(from)
						}
						on, err := c.RunOn(in.On, lane+instance, list.Copy(g.resident(r.in.Bytes()), source), limit)
						if err != nil {
							return err
						}
						at.Off, at.Resident = g.offset(r.in.Bytes()), on
					}
					var ins, outs [1]worker.Tensor
					ins[0] = at
					outs[0] = worker.Tensor{Off: g.offset(r.outs[0].Bytes()), DType: r.outs[0].DType, Shape: r.outs[0].Shape}
					if keeps {
						outs[0].Resident = 1
					}
					on, err := c.Infer(lane+instance, numbers[instance], ins[:], outs[:], limit)
					if err != nil {
						return err
					}
					to := out.Bytes()[span.At*made:][:span.Size*made]
					if keeps {
						list := lists[instance].Reset().Copy(g.resident(to), g.resident(r.outs[0].Bytes()))
						out.On = on
						_, err = c.RunOn(on, lane+instance, list, limit)
						return err
					}
					copy(to, r.outs[0].Bytes())
					copies.Add(uint64(span.Size))
					return nil
				})
			}); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// cropRun allocates the memory of a run on size crops in the worker.
func (b *modelBuilder) cropRun(size int, input bool) (*workerRun, error) {
	r := &workerRun{shape: batchOf(b.in, size).Shape}
	make := func(t registry.Tensor) (frame.Tensor, error) {
		t = batchOf(t, size)
		if err := b.account(1, t.Bytes()); err != nil {
			return frame.Tensor{}, err
		}
		return b.sharedTensor(t, false)
	}
	if input {
		var err error
		if r.in, err = make(b.in); err != nil {
			return nil, err
		}
	}
	out, err := make(b.made[0])
	r.outs = []frame.Tensor{out}
	return r, err
}

// warmCrops makes every worker run the model at each size before it counts as ready.
func (b *modelBuilder) warmCrops(numbers []int, runs []map[int]*workerRun) error {
	room, err := b.warmTensor(batchOf(b.made[0], slices.Max(registry.CropBuckets(b.s))))
	if err != nil {
		return err
	}
	from := &b.p.frames[0].Tensors[b.now][b.k-1]
	for i, number := range numbers {
		for _, r := range runs[i] {
			for _, c := range b.gpu.clients {
				c.WarmModel(b.gpu.lanes[b.k]+i, number,
					[]worker.Tensor{{Off: b.gpu.offset(from.Bytes()), DType: from.DType, Shape: r.shape}}, []worker.Tensor{{Off: b.gpu.offset(room.Bytes()), DType: room.DType, Shape: r.outs[0].Shape}})
			}
		}
	}
	return nil
}
