package tune

import (
	"context"
	"errors"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

// Preprocess chooses the launch configuration for frames and tensors like p's and sets it on
// the device, where it applies to all shapes (List.Configure overrides it). It does nothing
// on a device whose preprocess kernel has only one configuration.
func (t *Tuner) Preprocess(ctx context.Context, p core.Preprocess) (Choice, error) {
	task := Task{Kernel: "preprocess", Shape: []int{p.Width, p.Height, p.OutW, p.OutH, p.Type.Bytes()}}
	if t.limits(task.Kernel).Name == "" {
		return t.Choose(ctx, task)
	}
	b, err := newPreprocess(t.dev, &p)
	if err != nil {
		return Choice{}, errors.Join(err, b.release())
	}
	task.Run = b.run
	c, err := t.Choose(ctx, task)
	if err == nil {
		err = t.dev.Configure(c.Config)
	}
	return c, errors.Join(err, b.release())
}

// preprocess is a frame and its tensor in device memory, for measurements.
type preprocess struct {
	p          *core.Preprocess
	stream     *core.Stream
	start, end *core.Event
	planes     [3]core.Region
	out        core.Region
	held       []interface{ Release() error }
}

func newPreprocess(d *core.Device, p *core.Preprocess) (*preprocess, error) {
	b := &preprocess{p: p}
	var err error
	if b.stream, err = d.NewStream(); err != nil {
		return b, err
	}
	b.held = append(b.held, b.stream)
	for _, e := range []**core.Event{&b.start, &b.end} {
		if *e, err = d.NewEvent(); err != nil {
			return b, err
		}
		b.held = append(b.held, *e)
	}
	sizes, err := core.SplitPlanes(p.Format, p.Width, p.Height, make([]byte, core.FrameBytes(p.Format, p.Width, p.Height)))
	if err != nil {
		return b, err
	}
	regions := []*core.Region{&b.planes[0], &b.planes[1], &b.planes[2], &b.out}
	for i, n := range []int{len(sizes[0]), len(sizes[1]), len(sizes[2]), p.OutLen() * p.Type.Bytes()} {
		if n == 0 {
			continue
		}
		buffer, err := d.Alloc(n, core.MemDevice)
		if err != nil {
			return b, err
		}
		b.held = append(b.held, buffer)
		*regions[i] = buffer.All()
	}
	return b, nil
}

func (b *preprocess) run(ctx context.Context, k core.KernelConfig) (time.Duration, error) {
	l := b.stream.List().Record(b.start).Preprocess(b.out, b.planes, b.p).Configure(k).Record(b.end)
	if err := l.Submit(); err != nil {
		return 0, err
	}
	if err := b.stream.Wait(ctx); err != nil {
		return 0, err
	}
	return b.end.Since(b.start)
}

func (b *preprocess) release() error {
	var errs []error
	for _, h := range b.held {
		errs = append(errs, h.Release())
	}
	return errors.Join(errs...)
}
