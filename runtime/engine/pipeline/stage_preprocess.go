package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/decode"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// buildPreprocess builds a stage that converts a frame to a tensor in one pass.
func buildPreprocess(b stageBuilder) (work, error) {
	f := b.p.source.Format()
	args, err := preprocessArgs(b.s.Preprocess, f)
	if err != nil {
		return nil, err
	}
	g, err := args.Geometry()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	b.at = decode.Picture{Geometry: g, Width: args.OutW, Height: args.OutH}
	args = f.ScaleArea(args)
	dev, err := b.core()
	if err != nil {
		return nil, err
	}
	if b.here != nil && onGPU(b.s) {
		dev = b.here
	}
	b.p.info.Backend = dev.Backend()
	b.st.backend = dev.Backend()
	if err := b.tensors(b.k, registry.StageOutput(b.s).Tensor()); err != nil {
		return nil, err
	}
	k := b.k
	cpu := func(ctx context.Context, _ int, batch []*frame.Frame) error {
		for _, fr := range batch {
			a := args
			out := &fr.Tensors[fr.Level][k]
			a.Out, a.OutBytes, out.On, fr.PixelsOn = out.Data, out.Mem, 0, 0
			var err error
			if a.Planes, err = core.SplitPlanes(f.Pixels, f.Width, f.Height, fr.Pixels); err != nil {
				return err
			}
			if err := dev.Preprocess(ctx, a); err != nil {
				return err
			}
		}
		return nil
	}
	if b.gpu == nil || !onGPU(b.s) {
		return cpu, nil
	}
	b.p.info.Backend = gpuBackend(b.o.GPU)
	by, err := b.gpu.newBalance(b.st.workers())
	if err != nil {
		return nil, err
	}
	do, err := b.preprocessOnGPU(args, f, by)
	if err != nil {
		return nil, err
	}
	return b.gpuStage(b.k, b.s, cpu, do, by), nil
}

// kernelConfigs returns the plan's launch configurations of core kernels. A device validates them
// when it is opened. The CPU validates them too, so that it refuses what the GPU would refuse.
func kernelConfigs(p *plan.Pipeline) []core.KernelConfig {
	var out []core.KernelConfig
	for _, k := range p.Kernels {
		out = append(out, core.KernelConfig{Kernel: k.Kernel, Block: k.Block})
	}
	return out
}

var (
	fits   = map[string]core.Fit{"": core.Stretch, "stretch": core.Stretch, "letterbox": core.Letterbox}
	colors = map[string]core.Color{"": core.RGB, "rgb": core.RGB, "bgr": core.BGR}
)

// preprocessArgs returns the arguments of the core's operation for frames of format f.
func preprocessArgs(p *plan.Preprocess, f frame.Format) (core.Preprocess, error) {
	width, height := f.FullSize()
	a := core.Preprocess{
		Format: f.Pixels, Width: width, Height: height, Matrix: f.Matrix,
		OutW: p.Width, OutH: p.Height, Pad: uint8(p.Pad),
	}
	bad := func(field string, value any, want string) error {
		return fmt.Errorf("%w: %s %v; it is %s", ErrPlan, field, value, want)
	}
	var ok bool
	if a.Fit, ok = fits[p.Fit]; !ok {
		return a, bad("fit", p.Fit, "stretch or letterbox")
	}
	if a.Color, ok = colors[p.Color]; !ok {
		return a, bad("color", p.Color, "rgb or bgr")
	}
	if p.Layout == registry.NHWC {
		a.Layout = core.NHWC
	}
	dtype, ok := registry.ParseDType(p.DType)
	if a.Type = coreTypes[dtype]; !ok {
		return a, bad("dtype", p.DType, "f32, f16, i8 or u8")
	}
	if p.Pad < 0 || p.Pad > 255 {
		return a, bad("pad", p.Pad, "0 to 255")
	}
	var err error
	if a.Crop, err = cropArea(p.Crop, width, height); err != nil {
		return a, err
	}
	if a.Mean, err = parseChannels("mean", p.Mean, 0); err != nil {
		return a, err
	}
	if a.Std, err = parseChannels("std", p.Std, 1); err != nil {
		return a, err
	}
	if slices.Contains(a.Std[:], 0) {
		return a, bad("std", p.Std, "not zero")
	}
	return a, quantise(&a, dtype, p)
}

// coreTypes maps element types to those of the core, which has no others.
var coreTypes = map[registry.DType]core.Type{
	registry.F32: core.F32, registry.F16: core.F16, registry.BF16: core.BF16,
	registry.I8: core.I8, registry.U8: core.U8, registry.I32: core.I32,
}

// quantise makes mean and std give the integers of the plan: the pixels themselves, or steps of a
// scale from a zero point.
func quantise(a *core.Preprocess, dtype registry.DType, p *plan.Preprocess) error {
	switch {
	case !dtype.IsInteger():
		return nil
	case !registry.IsScaled(p):
		a.Std = [3]float32{1. / 255, 1. / 255, 1. / 255}
		return nil
	}
	scale, err := registry.Decimal(p.Scale)
	if err != nil {
		return fmt.Errorf("%w: scale: %w", ErrPlan, err)
	}
	for c := range a.Std {
		a.Std[c] *= scale
		a.Mean[c] -= float32(p.Zero) * a.Std[c]
	}
	return nil
}

// cropArea returns the part of a frame to read; the zero value is the whole frame.
func cropArea(c *plan.Crop, width, height int) (core.Rect, error) {
	if c == nil {
		return core.Rect{}, nil
	}
	if c.Width < 1 || c.Height < 1 || c.X < 0 || c.Y < 0 || c.X > width-c.Width || c.Y > height-c.Height {
		return core.Rect{}, fmt.Errorf("%w: crop %dx%d at %d,%d is outside the frame of %dx%d",
			ErrPlan, c.Width, c.Height, c.X, c.Y, width, height)
	}
	return core.Rect{X: c.X, Y: c.Y, Width: c.Width, Height: c.Height}, nil
}

// parseChannels parses the three values of mean or std, or one value for all three.
func parseChannels(field string, text []string, unset float32) ([3]float32, error) {
	v := [3]float32{unset, unset, unset}
	if len(text) != 0 && len(text) != 1 && len(text) != 3 {
		return v, fmt.Errorf("%w: %s has %d values; use 3, or 1 for all channels", ErrPlan, field, len(text))
	}
	for i := range v {
		if len(text) == 0 {
			break
		}
		x, err := registry.Decimal(text[min(i, len(text)-1)])
		if err != nil {
			return v, fmt.Errorf("%w: %s: %w", ErrPlan, field, err)
		}
		v[i] = x
	}
	return v, nil
}

// preprocessOnGPU builds the work of a preprocess stage in the worker.
func (b *stageBuilder) preprocessOnGPU(args core.Preprocess, f frame.Format, by *gpuBalance) (work, error) {
	g, k, level, limit, lane := b.gpu, b.k, b.now, b.st.limit, b.gpu.lanes[b.k]
	configured := slices.ContainsFunc(b.o.Plan.Kernels, func(l plan.KernelLaunch) bool { return l.Kernel == registry.Preprocess.Kind })
	if level == 0 && !configured {
		for _, c := range g.clients {
			c.Tune(args)
		}
	}
	lists := make([]*core.List, b.st.workers())
	for n := range lists {
		lists[n] = g.clients[0].Draft().List()
	}
	keeps, shares := b.keepsOutput(k), registry.SharesFrame(&b.o.Plan, b.s)
	// With held, the device has the first plane already.
	add := func(list *core.List, pixels, to []byte, held bool) error {
		planes, err := core.SplitPlanes(f.Pixels, f.Width, f.Height, pixels)
		if err != nil {
			return err
		}
		var at [3]core.Region
		for n, p := range planes {
			if len(p) > 0 {
				at[n] = g.region(p)
			}
		}
		if held {
			at[0] = g.resident(planes[0])
		}
		a, out := args, g.region(to)
		if keeps {
			out = g.resident(to)
		}
		list.Preprocess(out, at, &a)
		return nil
	}
	warm, err := b.warmTensor(b.made[0])
	if err != nil {
		return nil, err
	}
	first := g.clients[0].Draft().List()
	if err := add(first, b.p.frames[0].Pixels, warm.Bytes(), false); err != nil {
		return nil, err
	}
	for _, c := range g.clients {
		c.Warm(first)
	}
	return func(_ context.Context, instance int, batch []*frame.Frame) error {
		for _, fr := range batch {
			t := &fr.Tensors[level][k]
			list, on := lists[instance].Reset(), fr.LumaOn
			if err := add(list, fr.Pixels, t.Bytes(), on != 0); err != nil {
				return err
			}
			if err := by.runOnGPU(instance, 1, func(c *worker.Client) (err error) {
				if on, err = c.RunOn(on, lane+instance, list, limit); !errors.Is(err, worker.ErrReplaced) {
					return err
				}
				if err := add(list.Reset(), fr.Pixels, t.Bytes(), false); err != nil {
					return err
				}
				on, err = c.RunOn(0, lane+instance, list, limit)
				return err
			}); err != nil {
				return err
			}
			if t.On = 0; keeps {
				t.On = on
			}
			if fr.PixelsOn = 0; shares {
				fr.PixelsOn = on
			}
		}
		return nil
	}, nil
}
