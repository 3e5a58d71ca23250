package pipeline

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"unsafe"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// statsBytes is the size of yt_stats: the sum of the brightness, the pixels at its ends, and the sums of
// the Laplacian and of its squares.
const statsBytes = 32

// pictureStats measures the brightness of frames.
type pictureStats struct {
	args         core.StatsArgs
	format       frame.Format
	black, white float64 // samples
}

// buildStats builds a stage that measures frames.
func buildStats(b stageBuilder) (work, error) {
	m, err := newStats(b.s.Stats, b.p.source.Format())
	if err != nil {
		return nil, err
	}
	dev, err := b.core()
	if err != nil {
		return nil, err
	}
	if b.here != nil && onGPU(b.s) {
		dev = b.here
	}
	b.st.backend = dev.Backend()
	sums := make([][]byte, b.st.workers())
	for i := range sums {
		words := make([]uint64, statsBytes/8) // aligned
		sums[i] = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), statsBytes)
	}
	cpu := func(ctx context.Context, instance int, batch []*frame.Frame) error {
		for _, f := range batch {
			plane, err := m.plane(f)
			if err != nil {
				return err
			}
			if err := dev.Stats(ctx, sums[instance], plane, m.args); err != nil {
				return err
			}
			m.note(f, sums[instance])
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
	do, err := b.statsOnGPU(m, by)
	if err != nil {
		return nil, err
	}
	return b.gpuStage(b.k, b.s, cpu, do, by), nil
}

// newStats returns what measures frames of format f.
func newStats(p *plan.Stats, f frame.Format) (*pictureStats, error) {
	low, high, err := registry.StatsRange(p)
	if err != nil {
		return nil, err
	}
	m := &pictureStats{format: f, white: 255}
	switch f.Pixels {
	case core.NV12, core.I420, core.YUYV, core.UYVY:
		if f.Matrix != core.BT601Full {
			m.black, m.white = 16, 235
		}
	}
	at := func(part float32) float64 { return m.black + float64(part)*(m.white-m.black) }
	m.args = core.StatsArgs{
		Format: uint32(f.Pixels), Width: uint32(f.Width), Height: uint32(f.Height),
		Low: uint32(math.Floor(at(low))), High: uint32(math.Ceil(at(high))),
	}
	return m, nil
}

// plane returns the first plane of a frame, which has the brightness.
func (m *pictureStats) plane(f *frame.Frame) ([]byte, error) {
	planes, err := core.SplitPlanes(m.format.Pixels, m.format.Width, m.format.Height, f.Pixels)
	return planes[0], err
}

// note gives a frame the statistics of its sums.
func (m *pictureStats) note(f *frame.Frame, sums []byte) {
	n := float64(m.args.Width) * float64(m.args.Height)
	u64 := func(at int) uint64 { return binary.NativeEndian.Uint64(sums[at:]) }
	u32 := func(at int) float64 { return float64(binary.NativeEndian.Uint32(sums[at:])) }
	mean := float64(int64(u64(16))) / n
	f.Stats = result.Stats{
		Brightness: float32((float64(u64(0))/n - m.black) / (m.white - m.black)),
		Low:        float32(u32(8) / n), High: float32(u32(12) / n),
		Focus: float32(float64(u64(24))/n - mean*mean),
	}
	f.Measured = true
}

// statsOnGPU builds the work of a stats stage in the worker.
func (b *stageBuilder) statsOnGPU(m *pictureStats, by *gpuBalance) (work, error) {
	gp, limit, lane := b.gpu, b.st.limit, b.gpu.lanes[b.k]
	single := len(gp.clients) == 1
	if err := b.account(b.st.workers()+1, statsBytes); err != nil {
		return nil, err
	}
	sums, lists := make([][]byte, b.st.workers()+1), make([]*core.List, b.st.workers())
	for i := range sums {
		var err error
		if sums[i], err = gp.alloc(statsBytes); err != nil {
			return nil, err
		}
	}
	for i := range lists {
		lists[i] = gp.clients[0].Draft().List()
	}
	plane, err := m.plane(&b.p.frames[0])
	if err != nil {
		return nil, err
	}
	first := gp.clients[0].Draft().List().Stats(gp.region(sums[len(lists)]), gp.region(plane), m.args)
	for _, c := range gp.clients {
		c.Warm(first)
	}
	return func(_ context.Context, instance int, batch []*frame.Frame) error {
		for _, f := range batch {
			plane, err := m.plane(f)
			if err != nil {
				return err
			}
			to := gp.region(sums[instance])
			if err := by.runOnGPU(instance, 1, func(c *worker.Client) error {
				on, at := f.LumaOn, gp.region(plane)
				if on != 0 { // a gate has uploaded it
					at = gp.resident(plane)
				}
				on, err := c.RunOn(on, lane+instance, lists[instance].Reset().Stats(to, at, m.args), limit)
				if errors.Is(err, worker.ErrReplaced) {
					on, err = c.RunOn(0, lane+instance, lists[instance].Reset().Stats(to, gp.region(plane), m.args), limit)
				}
				if f.LumaOn = 0; err == nil && single {
					f.LumaOn = on
				}
				return err
			}); err != nil {
				return err
			}
			m.note(f, sums[instance])
		}
		return nil
	}, nil
}
