package pipeline

import (
	"context"
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/decode"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
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
	return func(_ context.Context, instance int, batch []*frame.Frame) error {
		for _, f := range batch {
			var err error
			if f.Results, err = decoders[instance](f.Tensors[f.Level][k-1], f.Results); err != nil {
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
