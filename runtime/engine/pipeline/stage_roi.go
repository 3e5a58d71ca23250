package pipeline

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/live"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	"github.com/yoctune/yoctune/runtime/engine/worker"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// cropCounts counts while the pipeline runs.
type cropCounts struct {
	boxes, crops, cut, beyond, other, outside, empty, invalid atomic.Uint64
}

func (c *cropCounts) read() live.Crops {
	return live.Crops{
		Boxes: c.boxes.Load(), Crops: c.crops.Load(), Cut: c.cut.Load(), Beyond: c.beyond.Load(), Other: c.other.Load(),
		Outside: c.outside.Load(), Empty: c.empty.Load(), Invalid: c.invalid.Load(),
	}
}

// cropCounts returns the counts of each roi stage; nil without one.
func (e *engine) cropCounts() map[string]live.Crops {
	if e.crops == nil {
		return nil
	}
	all := map[string]live.Crops{}
	for id, c := range e.crops {
		all[id] = c.read()
	}
	return all
}

// cropper selects the boxes of a frame that are cropped.
type cropper struct {
	counts        *cropCounts
	width, height int // of the frame
	count         int
	margin        float64
	only          []int
}

// choose fills the crops of a frame: the best boxes, best first.
func (c *cropper) choose(f *frame.Frame) {
	n := c.counts
	f.Crops = f.Crops[:0]
	valid := 0
	for i := range f.Results {
		r := &f.Results[i]
		area, lost := c.area(r)
		if lost != nil {
			lost.Add(1)
			continue
		}
		valid++
		at := len(f.Crops)
		for at > 0 && f.Results[f.Crops[at-1].Result].Score < r.Score {
			at--
		}
		if at == c.count {
			continue
		}
		if len(f.Crops) == c.count {
			f.Crops = f.Crops[:c.count-1]
		}
		f.Crops = slices.Insert(f.Crops, at, frame.Crop{Result: i, Area: area})
	}
	for i := range f.Crops {
		if c.reachesOut(&f.Results[f.Crops[i].Result]) {
			n.cut.Add(1)
		}
	}
	n.boxes.Add(uint64(len(f.Results)))
	n.crops.Add(uint64(len(f.Crops)))
	n.beyond.Add(uint64(valid - len(f.Crops)))
}

// grown returns the edges of a box with its margin.
func (c *cropper) grown(r *result.Result) (x0, y0, x1, y1 float64) {
	x0, y0, x1, y1 = float64(r.Box[0]), float64(r.Box[1]), float64(r.Box[2]), float64(r.Box[3])
	w, h := c.margin*(x1-x0), c.margin*(y1-y0)
	return x0 - w, y0 - h, x1 + w, y1 + h
}

func (c *cropper) reachesOut(r *result.Result) bool {
	x0, y0, x1, y1 := c.grown(r)
	return x0 < 0 || y0 < 0 || x1 > float64(c.width) || y1 > float64(c.height)
}

// area returns the whole pixels that a box touches, within the frame, as the core's ROI operation
// takes them, or the count of boxes that are lost for the same reason.
func (c *cropper) area(r *result.Result) (core.Rect, *atomic.Uint64) {
	for _, v := range [...]float32{r.Box[0], r.Box[1], r.Box[2], r.Box[3], r.Score} {
		if v64 := float64(v); math.IsNaN(v64) || math.IsInf(v64, 0) {
			return core.Rect{}, &c.counts.invalid
		}
	}
	if len(c.only) > 0 && !slices.Contains(c.only, r.Class) {
		return core.Rect{}, &c.counts.other
	}
	if !(r.Box[2] > r.Box[0] && r.Box[3] > r.Box[1]) {
		return core.Rect{}, &c.counts.empty
	}
	if !(r.Box[2] > 0 && r.Box[3] > 0 && r.Box[0] < float32(c.width) && r.Box[1] < float32(c.height)) {
		return core.Rect{}, &c.counts.outside
	}
	x0, y0, x1, y1 := c.grown(r)
	inside := func(v float64, limit int) float64 { return min(max(v, 0), float64(limit)) }
	a := core.Rect{X: int(inside(x0, c.width)), Y: int(inside(y0, c.height))}
	a.Width = int(math.Ceil(inside(x1, c.width))) - a.X
	a.Height = int(math.Ceil(inside(y1, c.height))) - a.Y
	return a, nil
}

// buildROI builds a stage that makes a tensor of each of the best boxes of a frame. Its tensor of
// a frame has a row for each crop.
func buildROI(b stageBuilder) (work, error) {
	f := b.p.source.Format()
	r := b.s.ROI
	args, err := preprocessArgs(r.Preprocess(), f)
	if err != nil {
		return nil, err
	}
	if _, err := args.Geometry(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	dev, err := b.core()
	if err != nil {
		return nil, err
	}
	if b.here != nil && onGPU(b.s) {
		dev = b.here
	}
	b.st.backend = dev.Backend()
	if b.p.crops == nil {
		b.p.crops = map[string]*cropCounts{}
	}
	if b.p.crops[b.s.ID] == nil { // all levels share it
		b.p.crops[b.s.ID] = &cropCounts{}
	}
	c := &cropper{counts: b.p.crops[b.s.ID], width: args.Width, height: args.Height, count: r.Count, only: r.Only}
	if r.Margin != "" {
		margin, err := registry.Fraction("margin", r.Margin)
		if err != nil {
			return nil, err
		}
		c.margin = float64(margin)
	}
	rows := registry.CropRows(b.levels[b.now].stages, b.k)
	one := registry.StageOutput(b.s).Tensor()
	if err := b.tensors(b.k, batchOf(one, rows)); err != nil {
		return nil, err
	}
	b.made = []registry.Tensor{one}
	for i := range b.p.frames {
		b.p.frames[i].Crops = make([]frame.Crop, 0, r.Count)
	}
	k, each := b.k, args.OutLen()
	do := func(ctx context.Context, _ int, batch []*frame.Frame) error {
		for _, fr := range batch {
			out := &fr.Tensors[fr.Level][k]
			out.On = 0
			a := args
			var err error
			if a.Planes, err = core.SplitPlanes(f.Pixels, f.Width, f.Height, fr.Pixels); err != nil {
				return err
			}
			for n := range fr.Crops {
				a.Crop, a.Out = fr.Crops[n].Area, out.Data[n*each:][:each]
				if err := dev.Preprocess(ctx, a); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if b.gpu != nil && onGPU(b.s) {
		by, err := b.gpu.newBalance(b.st.workers())
		if err != nil {
			return nil, err
		}
		gpu, err := b.cropOnGPU(args, f, by)
		if err != nil {
			return nil, err
		}
		do = b.gpuStage(b.k, b.s, do, gpu, by)
	}
	first := b.builder
	return func(ctx context.Context, instance int, batch []*frame.Frame) error {
		for _, fr := range batch {
			if first.warming || first.o.measuring {
				first.cropForWarmUp(fr)
			} else {
				c.choose(fr)
			}
		}
		return do(ctx, instance, batch)
	}, nil
}

// cropForWarmUp gives a frame as many crops as it can have, so that the stages on crops run every
// size of batch before the first frame, and the ladder knows their longest time.
func (b *builder) cropForWarmUp(f *frame.Frame) {
	format := b.p.source.Format()
	for k := range b.o.Plan.Stages {
		r := b.o.Plan.Stages[k].ROI
		if r == nil {
			continue
		}
		f.Crops = f.Crops[:0]
		for n := range r.Count {
			if n >= len(f.Results) {
				f.Results = append(f.Results, result.Result{})
			}
			f.Crops = append(f.Crops, frame.Crop{Result: n, Area: core.Rect{Width: format.Width, Height: format.Height}})
		}
	}
}

// croppingLane is what an instance needs to crop in the worker.
type croppingLane struct {
	list  *core.List
	boxes []core.Box
	room  []byte // for boxes, in the shared memory
}

// cropOnGPU builds the work of a roi stage in the worker. Boxes cross, and the frame only if the
// device does not have it already.
func (b *stageBuilder) cropOnGPU(args core.Preprocess, f frame.Format, by *gpuBalance) (work, error) {
	g, k, level, limit, lane := b.gpu, b.k, b.now, b.st.limit, b.gpu.lanes[b.k]
	keeps, each, count := b.keepsOutput(k), 4*args.OutLen(), b.s.ROI.Count
	open := func() (croppingLane, error) {
		l := croppingLane{list: g.clients[0].Draft().List(), boxes: make([]core.Box, count)}
		var err error
		if err = b.account(1, int64(core.BoxesBytes(count))); err == nil {
			l.room, err = g.alloc(core.BoxesBytes(count))
		}
		return l, err
	}
	add := func(l *croppingLane, crops []frame.Crop, pixels []byte, on bool, to []byte) error {
		planes, err := core.SplitPlanes(f.Pixels, f.Width, f.Height, pixels)
		if err != nil {
			return err
		}
		var at [3]core.Region
		for n, p := range planes {
			switch {
			case len(p) == 0:
			case on:
				at[n] = g.resident(p)
			default:
				at[n] = g.region(p)
			}
		}
		for n := range crops {
			a := crops[n].Area
			l.boxes[n] = core.Box{X0: float32(a.X), Y0: float32(a.Y), X1: float32(a.X + a.Width), Y1: float32(a.Y + a.Height), Anchor: int32(n)}
		}
		if err := core.PutBoxes(l.room, l.boxes[:len(crops)]); err != nil {
			return err
		}
		out := g.region(to[:len(crops)*each])
		if keeps {
			out = g.resident(to[:len(crops)*each])
		}
		l.list.Reset().ROI(out, at, g.region(l.room[:core.BoxesBytes(len(crops))]), len(crops), &args)
		return nil
	}
	lanes := make([]croppingLane, b.st.workers())
	for n := range lanes {
		var err error
		if lanes[n], err = open(); err != nil {
			return nil, err
		}
	}
	// Workers start while frames are in work, so warming up has memory of its own.
	first, err := open()
	if err != nil {
		return nil, err
	}
	warm, err := b.warmTensor(b.p.frames[0].Tensors[level][k].Type())
	if err != nil {
		return nil, err
	}
	fr := frame.Frame{}
	b.cropForWarmUp(&fr)
	if err := add(&first, fr.Crops, b.p.frames[0].Pixels, false, warm.Bytes()); err != nil {
		return nil, err
	}
	for _, c := range g.clients {
		c.Warm(first.list)
	}
	return func(_ context.Context, instance int, batch []*frame.Frame) error {
		for _, fr := range batch {
			t := &fr.Tensors[level][k]
			if t.On = 0; len(fr.Crops) == 0 {
				continue
			}
			if err := add(&lanes[instance], fr.Crops, fr.Pixels, fr.PixelsOn != 0, t.Bytes()); err != nil {
				return err
			}
			var on uint64
			if err := by.runOnGPU(instance, 1, func(c *worker.Client) (err error) {
				on, err = c.RunOn(fr.PixelsOn, lane+instance, lanes[instance].list, limit)
				return err
			}); err != nil {
				return err
			}
			if keeps {
				t.On = on
			}
		}
		return nil
	}, nil
}
