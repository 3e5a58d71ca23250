package pipeline

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// converter makes the float32 tensors that decoders read of tensors with other elements. Floats are
// exact. Integers are exact up to 2^24 and rounded to nearest even beyond; with a scale they
// stand for (q - zero) * scale.
type converter struct {
	stream *core.Stream
	outs   []frame.Tensor // nil: nothing is converted
	made   frame.Tensor
	scale  float32
	zero   int
	list   *core.List
}

// convertedByCore reports whether the core converts a tensor to float32.
func convertedByCore(t registry.Tensor) bool {
	return t.DType.InCore() && t.DType != registry.F32
}

// newConverter makes the converter of an instance of a postprocess stage.
func (b *stageBuilder) newConverter() (*converter, error) {
	c := &converter{}
	dev, err := b.core()
	if err != nil {
		return nil, err
	}
	if c.scale, c.zero, err = b.outputScale(); err != nil {
		return nil, err
	}
	for n, t := range b.made {
		if t.DType == registry.F32 {
			continue
		}
		if c.outs == nil {
			c.outs = make([]frame.Tensor, len(b.made))
			if c.stream, err = dev.NewStream(); err != nil {
				return nil, err
			}
			b.p.closers = append(b.p.closers, c.stream.Release)
			c.list = c.stream.List()
		}
		t.DType = registry.F32
		if err := b.account(1, t.Bytes()); err != nil {
			return nil, err
		}
		buf, err := dev.Alloc(int(t.Bytes()), core.MemHost)
		if err != nil {
			return nil, err
		}
		b.p.closers = append(b.p.closers, buf.Release)
		c.outs[n] = frame.NewTensor(t, buf.Bytes())
		c.outs[n].Buf = buf
	}
	if c.outs != nil {
		c.made.More = make([]frame.Tensor, len(b.made)-1)
	}
	return c, nil
}

// outputScale returns the scale and the zero point of a model's output.
func (b *stageBuilder) outputScale() (float32, int, error) {
	text := b.s.Post.Scale
	switch {
	case text == "":
		return 1, 0, nil
	case !b.made[0].DType.IsInteger():
		return 0, 0, fmt.Errorf("%w: scale: the model gives %s elements, which are not quantised", ErrPlan, b.made[0].DType)
	}
	scale, err := registry.Decimal(text)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: scale: %w", ErrPlan, err)
	}
	return scale, b.s.Post.Zero, nil
}

// convert returns float32 tensors with the content of t and its further tensors. They are valid
// until the next call.
func (c *converter) convert(t *frame.Tensor) (*frame.Tensor, error) {
	if c.outs == nil {
		return t, nil
	}
	more := c.made.More
	first, err := c.convertOne(t, &c.outs[0], c.scale, c.zero)
	if err != nil {
		return nil, err
	}
	c.made = *first
	c.made.More = more
	for n := range t.More {
		out, err := c.convertOne(&t.More[n], &c.outs[n+1], 1, 0)
		if err != nil {
			return nil, err
		}
		more[n] = *out
	}
	return &c.made, nil
}

func (c *converter) convertOne(t, out *frame.Tensor, scale float32, zero int) (*frame.Tensor, error) {
	switch {
	case t.DType == registry.F32:
		return t, nil
	case convertedByCore(t.Type()):
		return out, c.run(t, out, scale, zero)
	}
	in := t.Bytes()
	for i := range out.Data {
		if t.DType == registry.Bool {
			out.Data[i] = float32(in[i])
		} else {
			out.Data[i] = float32(int64(binary.NativeEndian.Uint64(in[8*i:]))-int64(zero)) * scale
		}
	}
	return out, nil
}

// run lets the core convert a tensor.
func (c *converter) run(t, out *frame.Tensor, scale float32, zero int) error {
	c.list.Reset().Convert(out.Buf.All(), t.Buf.At(t.Off, len(t.Bytes())), core.Region{}, convertArgs(t, scale, zero))
	if err := c.list.Submit(); err != nil {
		return err
	}
	return c.stream.Wait(context.Background())
}

// convertArgs are the arguments that make float32 elements of a tensor.
func convertArgs(t *frame.Tensor, scale float32, zero int) core.ConvertArgs {
	return core.ConvertArgs{
		In: uint8(coreTypes[t.DType]), Out: uint8(core.F32), N: 1, C: 1, H: 1, W: uint32(int64(len(t.Bytes())) / t.DType.Bytes()), Scale: scale, Zero: int32(zero),
	}
}
