package pipeline

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	"github.com/yoctune/yoctune/schema/fuse"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// mapping is a chain of expressions with its numbers by channel.
type mapping struct {
	tensor   registry.Tensor // that it takes and gives
	chain    *fuse.Chain
	values   [][]byte
	channels core.Channels
}

// buildMap builds a stage that computes each element of the tensor before it anew.
func buildMap(b stageBuilder) (work, error) {
	m, err := newMapping(b)
	if err != nil {
		return nil, err
	}
	dev, err := b.core()
	if err != nil {
		return nil, err
	}
	if b.here != nil && onGPU(b.s) {
		dev = b.here
	}
	b.st.backend = dev.Backend()
	kernel, err := dev.Fuse(m.chain, core.OpenCache(b.o.cacheDir()))
	if err != nil {
		return nil, err
	}
	b.p.closers = append(b.p.closers, kernel.Release)
	if err := b.tensors(b.k, m.tensor); err != nil {
		return nil, err
	}
	k, level := b.k, b.now
	cpu := func(ctx context.Context, _ int, batch []*frame.Frame) error {
		for _, f := range batch {
			t := &f.Tensors[level][k]
			t.On = 0
			if err := dev.Map(ctx, kernel, t.Bytes(), f.Input(level, k).Bytes(), m.channels, m.values...); err != nil {
				return err
			}
		}
		return nil
	}
	if b.gpu == nil || !onGPU(b.s) {
		return cpu, nil
	}
	by, err := b.gpu.newBalance(b.st.workers())
	if err != nil {
		return nil, err
	}
	do, err := b.mapOnGPU(m, by)
	if err != nil {
		return nil, err
	}
	return b.gpuStage(b.k, b.s, cpu, do, by), nil
}

func newMapping(b stageBuilder) (*mapping, error) {
	chain, err := registry.Chain(b.s.Map)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	values, err := registry.ChannelValues(b.s.Map, chain)
	if err != nil {
		return nil, err
	}
	in := b.made[0]
	if in.DType != registry.F32 {
		return nil, fmt.Errorf("%w: a map stage computes float32, and its input is %v", ErrPlan, in)
	}
	m := &mapping{chain: chain, tensor: registry.Tensor{Shape: in.Shape}}
	for _, v := range values {
		if len(in.Shape) < 2 || in.Shape[1] != int64(len(v)) {
			return nil, fmt.Errorf("%w: %d values for the channels of a tensor %v, its second axis", ErrPlan, len(v), in.Shape)
		}
		m.channels = core.Channels{Inner: int(in.Bytes() / 4 / in.Shape[0] / in.Shape[1]), Count: len(v)}
		m.values = append(m.values, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v)))
	}
	return m, nil
}

// mapOnGPU builds the work of a map stage in the worker. The numbers by channel stay in the device's
// memory from the warm-up on.
func (b *stageBuilder) mapOnGPU(m *mapping, by *gpuBalance) (work, error) {
	g, k, level, limit, lane := b.gpu, b.k, b.now, b.st.limit, b.gpu.lanes[b.k]
	// A chain has the same number in each worker, and lists are built with the first.
	kernel := g.clients[0].AddChain(m.chain, b.s.Map.Expressions)
	for _, c := range g.clients[1:] {
		c.AddChain(m.chain, b.s.Map.Expressions)
	}
	var first, held []core.Region // of the numbers by channel
	for _, v := range m.values {
		if err := b.account(1, int64(len(v))); err != nil {
			return nil, err
		}
		room, err := g.alloc(len(v))
		if err != nil {
			return nil, err
		}
		copy(room, v)
		first, held = append(first, g.region(room)), append(held, g.resident(room))
	}
	keeps := b.keepsOutput(k)
	// A worker that was given up may still write its output, so that it writes to no frame.
	outs := make([]frame.Tensor, b.st.workers())
	lists := make([]*core.List, b.st.workers())
	for i := range lists {
		lists[i] = g.clients[0].Draft().List()
		var err error
		if outs[i], err = b.warmTensor(m.tensor); err != nil {
			return nil, err
		}
	}
	var warm [2]frame.Tensor
	for i := range warm {
		var err error
		if warm[i], err = b.warmTensor(m.tensor); err != nil {
			return nil, err
		}
	}
	begin := g.clients[0].Draft().List().Fused(kernel, g.resident(warm[0].Bytes()), g.resident(warm[1].Bytes()), m.channels, first...)
	for _, c := range g.clients {
		c.Warm(begin)
	}
	return func(_ context.Context, instance int, batch []*frame.Frame) error {
		for _, f := range batch {
			in, t := f.Input(level, k), &f.Tensors[level][k]
			out := g.region(outs[instance].Bytes())
			if keeps {
				out = g.resident(t.Bytes())
			}
			list := lists[instance].Reset().Fused(kernel, out, g.where(in), m.channels, held...)
			var on uint64
			if err := by.runOnGPU(instance, 1, func(c *worker.Client) (err error) {
				on, err = c.RunOn(in.On, lane+instance, list, limit)
				return err
			}); err != nil {
				return err
			}
			if t.On = 0; keeps {
				t.On = on
			} else {
				copy(t.Bytes(), outs[instance].Bytes())
			}
		}
		return nil
	}, nil
}
