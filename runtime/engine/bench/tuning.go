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

// Tuned is the launch configuration chosen for a kernel and a shape.
type Tuned struct {
	Type  string `json:"type"` // "tuned"
	Name  string `json:"name"`
	Block int    `json:"block"`
	Tile  *int   `json:"tile"` // nil: the kernel has none
	Shape []int  `json:"bucket"`
	tune.Choice
}

// Tune chooses launch configurations for the tunable kernels of the suites. It measures
// those for which the tuner has no cached choice. each receives every choice.
func Tune(ctx context.Context, d *core.Device, t *tune.Tuner, each func(Tuned) error) error {
	r, err := newRig(d)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // the CPU backend is timed by the thread's clock
	defer runtime.UnlockOSThread()
	err = r.tuneAll(ctx, t, each)
	return errors.Join(err, r.release())
}

// tunable is a kernel and a shape. add appends the command to configure to a list.
type tunable struct {
	name, kernel string
	shape        []int
	add          func(*core.List)
}

func (r *rig) tuneAll(ctx context.Context, t *tune.Tuner, each func(Tuned) error) error {
	var list []tunable
	if err := r.prepare(func() { list = r.tunables() }); err != nil {
		return err
	}
	for _, v := range list {
		run := func(ctx context.Context, k core.KernelConfig) (time.Duration, error) {
			return r.time(func(l *core.List) {
				v.add(l)
				l.Configure(k)
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

func (r *rig) tunables() []tunable {
	if r.onCPU() {
		return r.tunableProducts([][3]int{{512, 512, 512}, {256, 256, 256}, {128, 128, 1024}, {64, 64, 64}, {1024, 32, 1024}})
	}
	return r.tunableOnGPU()
}

func (r *rig) tunableProducts(shapes [][3]int) []tunable {
	var list []tunable
	for _, s := range shapes {
		m, n, k := s[0], s[1], s[2]
		var matrix [3]*core.Buffer
		for i, elements := range []int{m * n, m * k, k * n} {
			matrix[i] = r.tensor(bytesOf(ramp(elements)))
		}
		args := core.GemmArgs{M: uint32(m), N: uint32(n), K: uint32(k), Alpha: 1}
		list = append(list, tunable{
			name: fmt.Sprintf("matrix product f32 %dx%dx%d", m, n, k), kernel: "gemm", shape: s[:],
			add: func(l *core.List) { l.Gemm(matrix[0].All(), matrix[1].All(), matrix[2].All(), core.Region{}, args) },
		})
	}
	return list
}

func (r *rig) tunableOnGPU() []tunable {
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
		planes, _ := r.frame(p)
		out := r.alloc(p.OutLen()*p.Type.Bytes(), core.MemAuto)
		list = append(list, tunable{
			name: v.name, kernel: "preprocess", shape: []int{p.Width, p.Height, p.OutW, p.OutH, p.Type.Bytes()},
			add: func(l *core.List) { l.Preprocess(out.All(), regionsOf(planes), p) },
		})
	}
	const n = 16 << 20
	src := r.tensor(bytesOf(ramp(n)))
	dst := r.alloc(4*n, core.MemAuto)
	turn := core.ConvertArgs{N: 1, C: 4, H: 2048, W: 2048, Scale: 1, InLayout: uint8(core.NHWC)}
	return append(list,
		tunable{"copy of 64 MiB", "copy", []int{4 * n}, func(l *core.List) { l.Copy(dst.All(), src.All()) }},
		tunable{"NHWC to NCHW, 2048x2048x4 f32", "convert", []int{n}, func(l *core.List) { l.Convert(dst.All(), src.All(), core.Region{}, turn) }},
	)
}
