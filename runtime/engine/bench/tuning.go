package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/core/tune"
)

// Tuned is a kernel, a shape, and the launch configuration that was chosen for it.
type Tuned struct {
	Type  string `json:"type"` // "tuned"
	Name  string `json:"name"`
	Block int    `json:"block"`
	Tile  *int   `json:"tile"` // nil: the kernel has none
	Shape []int  `json:"bucket"`
	tune.Choice
}

// Tune chooses, and measures where nothing is kept, for what the suites run of the
// kernels that can be launched in several ways.
func Tune(ctx context.Context, d *core.Device, t *tune.Tuner, each func(Tuned) error) error {
	r, err := newRig(d)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // the CPU's clock is the thread's
	defer runtime.UnlockOSThread()
	err = r.tuneAll(ctx, t, each)
	return errors.Join(err, r.release())
}

// tunable is a kernel at work on a shape, with what is to be configured last in its list.
type tunable struct {
	name, kernel string
	shape        []int
	add          func(*core.List)
}

func (r *rig) tuneAll(ctx context.Context, t *tune.Tuner, each func(Tuned) error) error {
	list, err := r.tunables()
	if err != nil {
		return err
	}
	for _, v := range list {
		run := func(ctx context.Context, k core.KernelConfig) (time.Duration, error) {
			return r.timed(func(l *core.List) {
				v.add(l)
				l.With(k)
			})(ctx)
		}
		c, err := t.Choose(ctx, tune.Task{Kernel: v.kernel, Shape: v.shape, Run: run})
		if err != nil {
			return err
		}
		out := Tuned{Type: "tuned", Name: v.name, Block: c.Config.Block, Shape: tune.Bucket(v.shape), Choice: c}
		if c.Config.Tile != 0 {
			out.Tile = &c.Config.Tile
		}
		if err := each(out); err != nil {
			return err
		}
	}
	return nil
}

func (r *rig) tunables() ([]tunable, error) {
	if r.onCPU() {
		return r.tunableProducts([][3]int{{512, 512, 512}, {256, 256, 256}, {128, 128, 1024}, {64, 64, 64}, {1024, 32, 1024}})
	}
	return r.tunableOnGPU()
}

func (r *rig) tunableProducts(shapes [][3]int) ([]tunable, error) {
	var list []tunable
	for _, s := range shapes {
		m, n, k := s[0], s[1], s[2]
		var of [3]*core.Buffer
		for i, size := range []int{m * n, m * k, k * n} {
			var err error
			if of[i], err = r.tensor(bytesOf(ramp(size))); err != nil {
				return nil, err
			}
		}
		args := core.GemmArgs{M: uint32(m), N: uint32(n), K: uint32(k), Alpha: 1}
		list = append(list, tunable{
			name: fmt.Sprintf("matrix product f32 %dx%dx%d", m, n, k), kernel: "gemm", shape: s[:],
			add: func(l *core.List) { l.Gemm(of[0].All(), of[1].All(), of[2].All(), core.Region{}, args) },
		})
	}
	return list, nil
}

func (r *rig) tunableOnGPU() ([]tunable, error) {
	var list []tunable
	for _, v := range []struct {
		name string
		set  func(*core.Preprocess)
	}{
		{"preprocess NV12 1920x1080 to 640x640 f32", func(*core.Preprocess) {}},
		{"preprocess NV12 1920x1080 to 640x640 f16", func(p *core.Preprocess) { p.Type = core.F16 }},
		{"preprocess NV12 3840x2160 to 640x640 f32", func(p *core.Preprocess) { p.Width, p.Height = 3840, 2160 }},
	} {
		p := preprocess1080(core.ChromaNearest)
		v.set(p)
		planes, _, err := r.frame(p)
		if err != nil {
			return nil, err
		}
		out, err := r.alloc(p.OutLen()*p.Type.Bytes(), core.MemAuto)
		if err != nil {
			return nil, err
		}
		list = append(list, tunable{
			name: v.name, kernel: "preprocess", shape: []int{p.Width, p.Height, p.OutW, p.OutH, p.Type.Bytes()},
			add: func(l *core.List) { l.Preprocess(out.All(), regionsOf(planes), p) },
		})
	}
	const n = 16 << 20
	src, err := r.tensor(bytesOf(ramp(n)))
	if err != nil {
		return nil, err
	}
	dst, err := r.alloc(4*n, core.MemAuto)
	if err != nil {
		return nil, err
	}
	chain := core.MapArgs{Steps: 2, Step: [core.MaxSteps]core.MapStep{{Op: core.MapScale, A: 1.5, B: 0.25}, {Op: core.MapRelu}}}
	turn := core.ConvertArgs{N: 1, C: 4, H: 2048, W: 2048, Scale: 1, InLayout: uint8(core.NHWC)}
	return append(list,
		tunable{"copy of 64 MiB", "copy", []int{4 * n}, func(l *core.List) { l.Copy(dst.All(), src.All()) }},
		tunable{"scale, bias, ReLU, 16 Mi f32", "map", []int{n, 2}, func(l *core.List) { l.Map(dst.All(), src.All(), core.Region{}, core.Region{}, chain) }},
		tunable{"NHWC to NCHW, 2048x2048x4 f32", "convert", []int{n}, func(l *core.List) { l.Convert(dst.All(), src.All(), core.Region{}, turn) }},
	), nil
}
