package pipeline

import (
	"context"
	"fmt"
	"slices"

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
	in := b.decoderInput()
	converters := make([]*converter, b.st.workers())
	// A decoder may own memory.
	decoders := make([]decode.Decoder, b.st.workers())
	for i := range decoders {
		if converters[i], err = b.newConverter(); err != nil {
			return nil, err
		}
		d, release, err := decode.New(b.dev, b.s.Post, in, labels)
		if err != nil {
			return nil, err
		}
		if release != nil {
			b.p.closers = append(b.p.closers, release)
		}
		decoders[i] = d
	}
	cpu := b.decodeFrames(func(instance int, t *frame.Tensor, into []result.Result) ([]result.Result, error) {
		t, err := converters[instance].convert(t)
		if err != nil {
			return into, err
		}
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
	k, level, id, one := b.k, b.now, b.s.ID, b.made[0]
	if registry.CropsFor(b.levels[level].stages, k) == nil {
		return func(_ context.Context, instance int, batch []*frame.Frame) (err error) {
			for _, f := range batch {
				if f.Results, err = read(instance, f.Input(level, k), f.Results); err != nil {
					return err
				}
			}
			return nil
		}
	}
	row, each := make([]frame.Tensor, b.st.workers()), int(one.Bytes())
	return func(_ context.Context, instance int, batch []*frame.Frame) (err error) {
		for _, f := range batch {
			all := f.Input(level, k)
			for n, c := range f.Crops {
				row[instance] = frame.NewTensor(one, all.Bytes()[n*each:][:each])
				row[instance].Buf, row[instance].Off, row[instance].On = all.Buf, n*each, all.On
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
	in   core.Region // the tensor as float32 in the device's memory; zero where it is that already
}

// input adds the conversion of a tensor to a list, and returns what the decoder reads.
func (r *remote) input(tensor core.Region, args core.ConvertArgs) decode.Source {
	if r.in == (core.Region{}) {
		return decode.Source{Tensor: tensor}
	}
	r.list.Convert(r.in, tensor, core.Region{}, args)
	return decode.Source{Tensor: r.in}
}

// postprocessOnGPU builds the work of a postprocess stage in the worker: only what the results need
// comes back.
func (b *stageBuilder) postprocessOnGPU(labels []string, by *gpuBalance) (work, error) {
	g, limit, lane := b.gpu, b.st.limit, b.gpu.lanes[b.k]
	if !b.made[0].DType.InCore() {
		return nil, fmt.Errorf("%w: the GPU does not decode %s elements: remove device", ErrPlan, b.made[0].DType)
	}
	for _, more := range b.made[1:] {
		if more.DType != registry.F32 {
			return nil, fmt.Errorf("%w: the GPU reads output %s as float32, and it has %s elements: remove device", ErrPlan, more.Name, more.DType)
		}
	}
	open := func() (*remote, error) {
		d, err := decode.NewParts(b.s.Post, b.decoderInput(), labels)
		if err != nil {
			return nil, err
		}
		r := &remote{Parts: d, list: g.clients[0].Draft().List()}
		back, work := registry.DecoderSizes(b.s.Post, b.made[0].Shape)
		if err := b.account(1, back+work); err != nil {
			return nil, err
		}
		if r.back, err = g.alloc(int(back)); err != nil {
			return nil, err
		}
		r.m.Back = g.region(r.back)
		if made := b.made[0]; made.DType != registry.F32 {
			float, err := b.warmTensor(registry.Tensor{Shape: made.Shape})
			if err != nil {
				return nil, err
			}
			r.in = g.resident(float.Bytes())
		}
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
	tensor, err := b.warmTensor(b.made[0])
	if err != nil {
		return nil, err
	}
	scale, zero, err := b.outputScale()
	if err != nil {
		return nil, err
	}
	args := convertArgs(&tensor, scale, zero)
	first.Add(first.list, first.m, first.input(g.resident(tensor.Bytes()), args))
	for _, c := range g.clients {
		c.Warm(first.list)
	}
	return b.decodeFrames(func(instance int, t *frame.Tensor, into []result.Result) ([]result.Result, error) {
		r := all[instance]
		if err := by.runOnGPU(instance, 1, func(c *worker.Client) error {
			r.list.Reset()
			in := r.input(g.where(t), args)
			if len(t.More) > 0 {
				in.More = g.where(&t.More[0])
			}
			r.Add(r.list, r.m, in)
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

// decoderInput describes the tensors as the decoders read them: with float32 elements.
func (b *stageBuilder) decoderInput() decode.Input {
	in := decode.Input{At: b.at}
	for _, t := range b.made {
		in.Tensors = append(in.Tensors, registry.Tensor{Name: t.Name, Shape: t.Shape})
		in.Reused = in.Reused || t.DType != registry.F32
	}
	return in
}

// registerTensors lets the core read the tensors before the stage, for the decoders that use it and
// for conversion.
func (b *stageBuilder) registerTensors() error {
	d, _ := registry.DecodeOf(b.s.Post.Kind)
	if !d.Core && !slices.ContainsFunc(b.made, convertedByCore) {
		return nil
	}
	dev, err := b.core()
	if err != nil {
		return err
	}
	for i := range b.p.frames {
		t := b.p.frames[i].Input(b.now, b.k)
		if err := b.registerTensor(dev, t, d.Core); err != nil {
			return err
		}
		for n := range t.More {
			if err := b.registerTensor(dev, &t.More[n], d.Core); err != nil {
				return err
			}
		}
	}
	return nil
}

// registerTensor lets the core read a tensor that it converts, or must.
func (b *stageBuilder) registerTensor(dev *core.Device, t *frame.Tensor, must bool) (err error) {
	if t.Buf != nil || !must && !convertedByCore(t.Type()) {
		return nil
	}
	if t.Buf, err = dev.Register(t.Bytes()); err != nil {
		return err
	}
	b.p.closers = append(b.p.closers, t.Buf.Release)
	return nil
}
