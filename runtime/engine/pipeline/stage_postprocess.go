package pipeline

import (
	"context"
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/decode"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// buildPostprocess builds a stage that decodes the tensor before it into results.
func buildPostprocess(b stageBuilder) (work, error) {
	labels, err := b.files.readLabels(b.s.Post.Labels)
	if err != nil {
		return nil, err
	}
	if err := b.registerTensors(); err != nil {
		return nil, err
	}
	// A decoder may own memory.
	decoders := make([]decode.Decoder, b.st.workers())
	for i := range decoders {
		d, release, err := decode.New(b.dev, b.s.Post, decode.Input{Shape: b.shape, More: b.more, At: b.at}, labels)
		if err != nil {
			return nil, err
		}
		if release != nil {
			b.p.closers = append(b.p.closers, release)
		}
		decoders[i] = d
	}
	k := b.k
	cpu := func(_ context.Context, instance int, batch []*frame.Frame) error {
		for _, f := range batch {
			var err error
			if f.Results, err = decoders[instance](f.Tensors[f.Level][k-1], f.Results); err != nil {
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
	do, err := b.postprocessOnGPU(labels, by)
	if err != nil {
		return nil, err
	}
	return b.gpuStage(b.k, b.s, cpu, do, by), nil
}

// remote is a decoder of an instance, with its memory.
type remote struct {
	*decode.Remote
	list              *core.List
	boxes             []byte      // in the shared memory
	found, candidates core.Region // in the device's memory
}

// postprocessOnGPU builds the work of a postprocess stage in the worker: only the boxes come back.
func (b *stageBuilder) postprocessOnGPU(labels []string, by *gpuBalance) (work, error) {
	dev, err := b.core()
	if err != nil {
		return nil, err
	}
	g, k, level, limit, lane := b.gpu, b.k, b.now, b.st.limit, b.gpu.lanes[b.k]
	open := func() (*remote, error) {
		d, release, err := decode.NewRemote(dev, b.s.Post, decode.Input{Shape: b.shape, More: b.more, At: b.at}, labels)
		if err != nil {
			return nil, err
		}
		b.p.closers = append(b.p.closers, release)
		r := &remote{Remote: d, list: g.clients[0].Draft().List()}
		n := d.BoxesBytes()
		if err := b.account(3, int64(n)); err != nil {
			return nil, err
		}
		if r.boxes, err = g.alloc(n); err != nil {
			return nil, err
		}
		for _, in := range []*core.Region{&r.found, &r.candidates} {
			memory, err := g.alloc(n)
			if err != nil {
				return nil, err
			}
			*in = g.resident(memory)
		}
		return r, nil
	}
	all := make([]*remote, b.st.workers())
	for i := range all {
		if all[i], err = open(); err != nil {
			return nil, err
		}
	}
	// Workers start while frames are in work, so warming up has memory of its own.
	first, err := open()
	if err != nil {
		return nil, err
	}
	tensor, err := b.warmTensor(b.shape)
	if err != nil {
		return nil, err
	}
	first.Add(first.list, g.region(first.boxes), first.found, first.candidates, g.resident(tensor.Bytes()))
	for _, c := range g.clients {
		c.Warm(first.list)
	}
	return func(_ context.Context, instance int, batch []*frame.Frame) error {
		r := all[instance]
		for _, f := range batch {
			t := &f.Tensors[level][k-1]
			if err := by.runOnGPU(instance, 1, func(c *worker.Client) error {
				list := r.list.Reset()
				r.Add(list, g.region(r.boxes), r.found, r.candidates, g.where(t))
				on, err := c.RunOn(t.On, lane+instance, list, limit)
				if err != nil {
					return err
				}
				more, err := r.Read(r.boxes)
				if err != nil || !more {
					return err
				}
				list = r.list.Reset()
				r.AddAll(list, g.region(r.boxes), r.found, r.candidates)
				if _, err = c.RunOn(on, lane+instance, list, limit); err != nil {
					return err
				}
				_, err = r.Read(r.boxes)
				return err
			}); err != nil {
				return err
			}
			var err error
			if f.Results, err = r.Results(f.Results); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// registerTensors lets the core read the tensors before the stage, for the decoders that use it.
func (b *stageBuilder) registerTensors() error {
	kind := b.s.Post.Kind
	if d, _ := registry.DecodeOf(kind); !d.Boxes {
		return nil
	}
	dev, err := b.core()
	if err != nil {
		return err
	}
	for i := range b.p.frames {
		t := &b.p.frames[i].Tensors[b.now][b.k-1]
		if t.ORT == nil {
			return fmt.Errorf("%w: %s needs the output of a model", ErrPlan, kind)
		}
		if t.Buf != nil {
			continue
		}
		if t.Buf, err = dev.Register(t.Bytes()); err != nil {
			return err
		}
		b.p.closers = append(b.p.closers, t.Buf.Release)
	}
	return nil
}
