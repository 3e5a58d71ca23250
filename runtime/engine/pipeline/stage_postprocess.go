package pipeline

import (
	"context"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/decode"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
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
	cpu := b.decodeFrames(func(instance int, t *frame.Tensor, into []result.Result) ([]result.Result, error) {
		return decoders[instance](*t, into)
	})
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

// decodeFrames returns the work of a postprocess stage that decodes with a function. What it finds in
// a crop belongs to the crop's box.
func (b *stageBuilder) decodeFrames(read func(instance int, t *frame.Tensor, into []result.Result) ([]result.Result, error)) work {
	k, level, id, shape, each := b.k, b.now, b.s.ID, b.shape, int(volume(b.shape))
	if registry.CropsFor(b.levels[level].stages, k) == nil {
		return func(_ context.Context, instance int, batch []*frame.Frame) (err error) {
			for _, f := range batch {
				if f.Results, err = read(instance, &f.Tensors[level][k-1], f.Results); err != nil {
					return err
				}
			}
			return nil
		}
	}
	row := make([]frame.Tensor, b.st.workers())
	return func(_ context.Context, instance int, batch []*frame.Frame) (err error) {
		for _, f := range batch {
			all := &f.Tensors[level][k-1]
			for n, c := range f.Crops {
				row[instance] = frame.Tensor{Shape: shape, Data: all.Data[n*each:][:each], Buf: all.Buf, Off: 4 * n * each, On: all.On}
				r := &f.Results[c.Result]
				r.Next = id
				if r.Then, err = read(instance, &row[instance], r.Then); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// remote is a decoder of an instance, with its memory.
type remote struct {
	decode.Parts
	list *core.List
	back []byte // in the shared memory
	m    decode.Memory
}

// postprocessOnGPU builds the work of a postprocess stage in the worker: only what the results need
// comes back.
func (b *stageBuilder) postprocessOnGPU(labels []string, by *gpuBalance) (work, error) {
	g, limit, lane := b.gpu, b.st.limit, b.gpu.lanes[b.k]
	open := func() (*remote, error) {
		d, err := decode.NewParts(b.s.Post, decode.Input{Shape: b.shape, More: b.more, At: b.at}, labels)
		if err != nil {
			return nil, err
		}
		r := &remote{Parts: d, list: g.clients[0].Draft().List()}
		back, work := registry.DecoderSizes(b.s.Post, b.shape)
		if err := b.account(1, back+work); err != nil {
			return nil, err
		}
		if r.back, err = g.alloc(int(back)); err != nil {
			return nil, err
		}
		r.m.Back = g.region(r.back)
		if work == 0 {
			return r, nil
		}
		memory, err := g.alloc(int(work))
		if err != nil {
			return nil, err
		}
		r.m.Work = g.resident(memory)
		return r, nil
	}
	var err error
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
	first.Add(first.list, first.m, decode.Source{Tensor: g.resident(tensor.Bytes())})
	for _, c := range g.clients {
		c.Warm(first.list)
	}
	return b.decodeFrames(func(instance int, t *frame.Tensor, into []result.Result) ([]result.Result, error) {
		r := all[instance]
		if err := by.runOnGPU(instance, 1, func(c *worker.Client) error {
			in := decode.Source{Tensor: g.where(t)}
			r.Add(r.list.Reset(), r.m, in)
			on, err := c.RunOn(t.On, lane+instance, r.list, limit)
			for err == nil {
				var more bool
				if more, err = r.Read(r.back); err != nil || !more {
					break
				}
				r.AddMore(r.list.Reset(), r.m, in)
				_, err = c.RunOn(on, lane+instance, r.list, limit)
			}
			return err
		}); err != nil {
			return into, err
		}
		return r.Results(into)
	}), nil
}

// registerTensors lets the core read the tensors before the stage, for the decoders that use it.
func (b *stageBuilder) registerTensors() error {
	if d, _ := registry.DecodeOf(b.s.Post.Kind); !d.Core {
		return nil
	}
	dev, err := b.core()
	if err != nil {
		return err
	}
	for i := range b.p.frames {
		for t := &b.p.frames[i].Tensors[b.now][b.k-1]; t != nil; t = t.More {
			if t.Buf != nil {
				continue
			}
			if t.Buf, err = dev.Register(t.Bytes()); err != nil {
				return err
			}
			b.p.closers = append(b.p.closers, t.Buf.Release)
		}
	}
	return nil
}
