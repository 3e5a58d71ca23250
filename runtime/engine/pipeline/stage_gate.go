package pipeline

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// gate decides which frames pass. It compares the first plane of a frame, which has the brightness,
// with that of the last frame that passed. It has one instance.
type gate struct {
	args    core.DiffArgs
	format  frame.Format
	most    uint32   // changed samples up to which the picture is the same
	blocks  []uint32 // sums of differences in blocks up to which it is
	maxAge  int64    // ns
	skip    frame.Skip
	live    bool
	lost    atomic.Bool    // a frame that passed did not reach the sink
	count   *atomic.Uint64 // of frames that became the reference
	last    int64          // moment of the reference
	holder  holder
	motion  []byte // result of a comparison
	picture []byte // reference in the memory of this process
}

// holder is where the reference is.
type holder struct {
	known bool
	on    uint64 // the number of a worker; 0: this process
}

// buildGate builds a stage that skips frames whose picture has not changed.
func buildGate(b stageBuilder) (work, error) {
	g, err := newGate(b.s.Gate, b.p.source.Format())
	if err != nil {
		return nil, err
	}
	g.live, g.count = b.p.live, &b.p.references
	b.p.gate = b.s.ID
	if g.skip == frame.Repeated {
		last := registry.Bypassed(&b.o.Plan, b.k)
		for k := b.k + 1; k <= last; k++ {
			b.p.steps[k].bypassed = true
		}
		b.p.repeat = &repeater{at: last + 1}
	}
	b.resets = append(b.resets, func() {
		g.holder = holder{}
		g.lost.Store(false)
		g.count.Store(0)
		b.p.frames[0].Skip, b.p.frames[0].Lost, b.p.frames[0].LumaOn = frame.NotSkipped, nil, 0
	})
	size := g.planeBytes()
	if err := b.account(1, int64(size+len(g.motion))); err != nil {
		return nil, err
	}
	g.picture = make([]byte, size)
	dev, err := b.core()
	if err != nil {
		return nil, err
	}
	if b.here != nil && onGPU(b.s) {
		dev = b.here
	}
	b.st.backend = dev.Backend()
	cpu := func(ctx context.Context, _ int, batch []*frame.Frame) error {
		for _, f := range batch {
			if err := g.compareHere(ctx, dev, f); err != nil {
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
	by.clients = by.clients[:1] // the one that has the reference
	do, err := b.gateOnGPU(g, by)
	if err != nil {
		return nil, err
	}
	return b.gpuStage(b.k, b.s, cpu, do, by), nil
}

// newGate returns a gate for frames of format f.
func newGate(p *plan.Gate, f frame.Format) (*gate, error) {
	threshold, err := registry.Fraction("threshold", cmp.Or(p.Threshold, registry.GateThreshold))
	if err != nil {
		return nil, err
	}
	area, err := registry.Fraction("area", cmp.Or(p.Area, registry.GateArea))
	if err != nil {
		return nil, err
	}
	rows := f.Rows()[0]
	switch {
	case p.MaxAge < 0:
		return nil, fmt.Errorf("%w: max age of %d ns", ErrPlan, p.MaxAge)
	case p.Grid != 0 && (p.Grid < 4 || p.Grid > 256):
		return nil, fmt.Errorf("%w: grid %d; it is 4 to 256", ErrPlan, p.Grid)
	case rows.Bytes > registry.MaxGateRow:
		return nil, fmt.Errorf("%w: rows of %d bytes; a gate compares at most %d: use a planar format, or a smaller picture", ErrPlan, rows.Bytes, registry.MaxGateRow)
	}
	limit := uint32(math.Round(float64(threshold) * 255))
	g := &gate{
		args:   core.DiffArgs{Width: uint32(rows.Bytes), Height: uint32(rows.Count), Threshold: limit, Block: uint32(p.Grid)},
		format: f, most: uint32(float64(area) * float64(rows.Bytes*rows.Count)),
		maxAge: int64(registry.GateAge(p)), skip: frame.Skipped,
	}
	if p.Repeat {
		g.skip = frame.Repeated
	}
	for y := 0; p.Grid > 0 && y < rows.Count; y += p.Grid {
		for x := 0; x < rows.Bytes; x += p.Grid {
			g.blocks = append(g.blocks, limit*uint32(min(p.Grid, rows.Bytes-x)*min(p.Grid, rows.Count-y)))
		}
	}
	words := make([]uint64, (motionBytes+4*len(g.blocks)+7)/8) // aligned
	g.motion = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), motionBytes+4*len(g.blocks))
	return g, nil
}

// motionBytes is the size of yt_motion: the sum, the number of changed samples, and the peak.
const motionBytes = 16

func (g *gate) planeBytes() int { return int(g.args.Width) * int(g.args.Height) }

// plane returns the first plane of a frame.
func (g *gate) plane(f *frame.Frame) ([]byte, error) {
	planes, err := core.SplitPlanes(g.format.Pixels, g.format.Width, g.format.Height, f.Pixels)
	return planes[0], err
}

// changed reports whether the result of a comparison shows another picture.
func (g *gate) changed(motion []byte) bool {
	if binary.NativeEndian.Uint32(motion[8:]) > g.most {
		return true
	}
	for n, limit := range g.blocks {
		if binary.NativeEndian.Uint32(motion[motionBytes+4*n:]) > limit {
			return true
		}
	}
	return false
}

// mustPass reports whether a frame passes whatever its picture is.
func (g *gate) mustPass(f *frame.Frame) bool {
	return !g.holder.known || f.Moment-g.last >= g.maxAge || g.lost.Load()
}

// pass makes a frame, whose picture is the new reference, pass.
func (g *gate) pass(f *frame.Frame, on uint64) {
	g.holder, g.last = holder{true, on}, f.Moment
	g.count.Add(1)
	g.lost.Store(false)
	f.Skip = frame.NotSkipped
	if g.live { // the frames of a recording are not dropped
		f.Lost = &g.lost
	}
}

// compareHere compares a frame with the reference in the memory of this process.
func (g *gate) compareHere(ctx context.Context, dev *core.Device, f *frame.Frame) error {
	plane, err := g.plane(f)
	if err != nil {
		return err
	}
	if g.holder.on != 0 {
		g.holder = holder{} // the GPU has it, and is not available
	}
	if !g.mustPass(f) {
		if err := dev.Diff(ctx, g.motion, plane, g.picture, g.args); err != nil {
			return err
		}
		if !g.changed(g.motion) {
			f.Skip = g.skip
			return nil
		}
	}
	copy(g.picture, plane)
	g.pass(f, 0)
	return nil
}

// gateOnGPU builds the work of a gate in the worker, which keeps the reference in its device's
// memory.
func (b *stageBuilder) gateOnGPU(g *gate, by *gpuBalance) (work, error) {
	gp, limit, lane := b.gpu, b.st.limit, b.gpu.lanes[b.k]
	single := len(gp.clients) == 1
	size := g.planeBytes()
	if err := b.account(2, int64(size+len(g.motion))); err != nil {
		return nil, err
	}
	var room [4][]byte // the reference and the result, and the same to warm up with
	for n := range room {
		var err error
		if room[n], err = gp.alloc([]int{size, len(g.motion)}[n%2]); err != nil {
			return nil, err
		}
	}
	reference, motion := room[0], room[1]
	first := gp.clients[0].Draft().List().Diff(gp.region(room[3]), gp.region(room[2]), gp.resident(room[2]), g.args)
	gp.clients[0].Warm(first)
	list := gp.clients[0].Draft().List()
	return func(_ context.Context, instance int, batch []*frame.Frame) error {
		f := batch[0]
		plane, err := g.plane(f)
		if err != nil {
			return err
		}
		if g.holder.known && g.holder.on == 0 { // the CPU has it
			copy(reference, g.picture)
		}
		return by.runOnGPU(instance, 1, func(c *worker.Client) error {
			on, at := g.holder.on, gp.region(plane)
			if !g.mustPass(f) {
				old := gp.resident(reference)
				if on == 0 {
					old = gp.region(reference)
				}
				on, err = c.RunOn(on, lane, list.Reset().Diff(gp.region(motion), at, old, g.args), limit)
				switch {
				case errors.Is(err, worker.ErrReplaced):
					on, g.holder = 0, holder{}
				case err != nil:
					return err
				default:
					at, g.holder.on = gp.resident(plane), on
				}
				if g.holder.known && !g.changed(motion) {
					f.Skip = g.skip
					return nil
				}
			} else {
				on = 0
			}
			on, err = c.RunOn(on, lane, list.Reset().Copy(gp.resident(reference), at), limit)
			if err != nil {
				return err
			}
			g.pass(f, on)
			if single {
				f.LumaOn = on
			}
			return nil
		})
	}, nil
}

// repeater gives skipped frames the results of the last frame that was not skipped. It sees the
// frames before queue at, in their order.
type repeater struct {
	at      int
	kept    result.Store
	results []result.Result
	moment  int64
	known   bool
}

func (r *repeater) visit(f *frame.Frame) {
	switch {
	case f.Skip != frame.Repeated:
		r.results, r.moment, r.known = r.kept.Copy(f.Results), f.Moment, true
	case !r.known:
		f.Results, f.Age = f.Results[:0], -1
	default:
		f.Results, f.Age = f.Kept.Copy(r.results), f.Moment-r.moment
	}
}
