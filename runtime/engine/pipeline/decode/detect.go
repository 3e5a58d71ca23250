package decode

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Defaults and limits of detectors.
const (
	detectThreshold = 0.25
	detectIoU       = 0.45
	maxCandidates   = registry.MaxCandidates
)

// Picture maps the tensor of a stage to the frame.
type Picture struct {
	core.Geometry
	Width, Height int // of the tensor
}

// phase is what a detector waits for.
type phase int

const (
	best   phase = iota // the best boxes, and their values
	all                 // the boxes among all candidates
	chosen              // the values of the boxes that were chosen of them, or the first masks
	masked              // masks
)

// detector decodes boxes from the output of a YOLO. The core decodes, suppresses boxes, and reads
// the values of the boxes that are left.
type detector struct {
	p       *plan.Post
	at      Picture
	labels  []string
	head    string
	anchors int
	classes int
	rows    bool // the values of an anchor are contiguous
	first   int  // channel of the first class
	extra   int  // channels after the classes: mask coefficients or keypoints
	top     int
	score   float32

	args   core.DecodeArgs
	nms    core.NMSArgs // of the best boxes
	all    core.NMSArgs // of all candidates
	more   core.GatherArgs
	phase  phase
	boxes  []core.Box
	extras []byte // the values of boxes beside their scores, by their place in boxes

	mask *masks // nil but for segment
}

// newDetector checks the tensors against the head. Those after the first are the mask prototypes, or
// what the head reads.
func newDetector(p *plan.Post, in Input, labels []string, score float32) (*detector, error) {
	at := in.At
	d := &detector{p: p, at: at, labels: labels, head: cmp.Or(p.Head, registry.DefaultHead), top: cmp.Or(p.Top, registry.DefaultTop), score: score}
	if p.Threshold == "" {
		d.score = detectThreshold
	}
	iou := float32(detectIoU)
	if p.IoU != "" {
		var err error
		if iou, err = registry.Fraction("iou", p.IoU); err != nil {
			return nil, err
		}
	}
	var more []int64
	if !registry.ReadsNamedOutputs(p) && len(in.Tensors) > 1 {
		more = in.Tensors[1].Shape
	}
	if err := d.setLayout(in, more); err != nil {
		return nil, err
	}
	if err := registry.CheckLabels(p, len(labels), d.classes); err != nil {
		return nil, err
	}
	most := min(d.anchors, maxCandidates)
	d.args = core.DecodeArgs{
		Anchors: uint32(d.anchors), Classes: uint32(d.classes), Max: uint32(most), Batch: 1, Threshold: d.score,
		ScaleX: float32(at.ScaleX), ScaleY: float32(at.ScaleY),
		ShiftX: float32(float64(at.Crop.X) - float64(at.Inner.X)*at.ScaleX), ShiftY: float32(float64(at.Crop.Y) - float64(at.Inner.Y)*at.ScaleY),
		Head: d.coreHead(), After: uint32(d.extra),
	}
	d.nms = core.NMSArgs{InMax: uint32(most), Max: uint32(min(d.top, most)), Batch: 1, IoU: iou}
	if p.Agnostic {
		d.nms.Flags = core.NMSAgnostic
	}
	d.all = d.nms
	d.all.Max = uint32(most)
	d.boxes = make([]core.Box, 0, d.anchors)
	d.more = core.GatherArgs{
		Head: d.args.Head, Anchors: d.args.Anchors, Values: uint32(d.first + d.classes + d.extra),
		First: uint32(d.first + d.classes), Count: uint32(d.extra), Max: d.nms.Max,
	}
	if more != nil {
		d.mask = newMasks(more, at, d.nms.Max)
	}
	return d, nil
}

// coreHead is the head as the core decodes it.
func (d *detector) coreHead() uint32 {
	switch {
	case d.head == "v5":
		return core.HeadObjectness
	case d.rows:
		return core.HeadRows
	}
	return core.HeadPlanes
}

// setLayout derives the layout of the tensor.
func (d *detector) setLayout(in Input, more []int64) error {
	shape := in.shape()
	if registry.ReadsNamedOutputs(d.p) {
		return d.setOutputs(in)
	}
	bad := func(want string) error {
		return fmt.Errorf("%w: %s with a %s head expects a tensor %s, but the model outputs %v", registry.ErrPlan, d.p.Kind, d.head, want, shape)
	}
	if !holdsBoxes(shape) {
		return bad("of three dimensions for one frame")
	}
	a, b := int(shape[1]), int(shape[2])
	if more != nil && (len(more) != 4 || more[0] != 1) {
		return fmt.Errorf("%w: mask prototypes must be a tensor [1 masks height width], but the model outputs %v", registry.ErrPlan, more)
	}
	d.first = 4
	channels := 0
	switch d.head {
	case "v10":
		if b != 6 || d.p.Kind != registry.Detect {
			return bad("[1 boxes 6], for detect only")
		}
		d.anchors, d.rows = a, true
		return nil
	case "v5":
		d.first, d.rows, d.anchors, channels = 5, true, a, b
	case "v8", "v11":
		// Exporters write channels first; some graphs are transposed.
		if d.rows, d.anchors, channels = a > b, b, a; d.rows {
			d.anchors, channels = a, b
		}
	default:
		return fmt.Errorf("%w: head %q; use one of %s", registry.ErrPlan, d.head, strings.Join(registry.HeadNames(), ", "))
	}
	if err := d.splitChannels(channels, more); err != nil {
		return err
	}
	if d.classes < 1 || d.anchors < 1 {
		return bad("with at least one class")
	}
	return nil
}

// holdsBoxes reports whether a tensor can hold the boxes of one frame.
func holdsBoxes(shape []int64) bool {
	return len(shape) == 3 && shape[0] == 1 && max(shape[1], shape[2]) >= 5 && max(shape[1], shape[2]) <= math.MaxInt32
}

// splitChannels divides the values of a box, after its coordinates, into those of the
// classes and those of masks or points.
func (d *detector) splitChannels(channels int, more []int64) error {
	switch d.classes = channels - d.first; d.p.Kind {
	case registry.Segment:
		d.extra = int(more[1])
		d.classes -= d.extra
	case registry.Keypoints:
		known := max(d.p.Classes, 1)
		d.extra = d.classes - known
		if d.classes = known; d.extra < 3 || d.extra%3 != 0 {
			return fmt.Errorf("%w: %[3]d of the %[2]d values of a box are left for keypoints, which need three each: set classes", registry.ErrPlan, channels, d.extra)
		}
	}
	return nil
}

// reader returns the decoder of a model that has selected the boxes itself; nil for others.
func (d *detector) reader() Decoder {
	switch d.head {
	case "v10":
		return d.readSorted
	case registry.HeadEfficientNMS:
		return d.readSelected
	case registry.HeadDETR, registry.HeadRTDETR:
		return d.readQueries
	}
	return nil
}

// Bytes of the core's lists of boxes, and of the values of the best boxes.
func (d *detector) candidateBytes() int { return core.BoxesBytes(int(d.args.Max)) }
func (d *detector) bestBytes() int      { return core.BoxesBytes(int(d.nms.Max)) }
func (d *detector) extraBytes() int     { return 4 * d.extra * int(d.nms.Max) }

// Places of what is behind the boxes: in the memory that comes back, the values of points, or grids
// and then masks; in the device's, candidates, boxes, weights of masks and grids.
func (d *detector) foundBytes() int { return max(d.candidateBytes(), d.bestBytes()) }
func (d *detector) masksAt() int    { return d.foundBytes() + core.GridBytes*int(d.nms.Max) }
func (d *detector) weightsAt() int  { return d.candidateBytes() + d.foundBytes() }

// Add finds the best boxes and their values.
func (d *detector) Add(l *core.List, m Memory, in Source) {
	d.phase = best
	l.Decode(d.candidates(m), in.Tensor, d.args)
	d.suppress(l, m)
	d.gather(l, m, in)
}

// suppress finds the best boxes among the candidates.
func (d *detector) suppress(l *core.List, m Memory) {
	l.NMS(d.found(m, d.bestBytes()), d.candidates(m), d.nms)
	l.Copy(part(m.Back, 0, d.bestBytes()), d.found(m, d.bestBytes()))
}

// AddMore finds boxes among all candidates, the values of those that were chosen, or masks.
func (d *detector) AddMore(l *core.List, m Memory, in Source) {
	switch d.phase {
	case all:
		l.NMS(d.found(m, d.candidateBytes()), d.candidates(m), d.all)
		l.Copy(part(m.Back, 0, d.candidateBytes()), d.found(m, d.candidateBytes()))
		return
	case chosen:
		l.Copy(d.found(m, d.bestBytes()), part(m.Back, 0, d.bestBytes()))
		d.gather(l, m, in)
	}
	if d.mask != nil {
		n := core.GridBytes * len(d.mask.grids)
		grids := part(m.Work, d.weightsAt()+d.extraBytes(), n)
		l.Copy(grids, part(m.Back, d.foundBytes(), n))
		d.mask.args.Count = uint32(len(d.mask.grids))
		l.Masks(part(m.Back, d.masksAt(), d.mask.bytes), in.More, part(m.Work, d.weightsAt(), d.extraBytes()), grids, d.mask.args)
	}
}

func (d *detector) candidates(m Memory) core.Region { return part(m.Work, 0, d.candidateBytes()) }

func (d *detector) found(m Memory, bytes int) core.Region {
	return part(m.Work, d.candidateBytes(), bytes)
}

// gather reads the values of the best boxes: points come back, weights of masks stay.
func (d *detector) gather(l *core.List, m Memory, in Source) {
	if d.extra == 0 {
		return
	}
	to := part(m.Back, d.bestBytes(), d.extraBytes())
	if d.mask != nil {
		to = part(m.Work, d.weightsAt(), d.extraBytes())
	}
	l.Gather(to, in.Tensor, d.found(m, d.bestBytes()), d.more)
}

func (d *detector) Read(back []byte) (more bool, err error) {
	switch d.phase {
	case best, all:
		if d.boxes, err = core.AppendBoxes(d.boxes[:0], back); err != nil {
			return false, err
		}
		switch {
		case d.phase == all:
			d.boxes = slices.DeleteFunc(d.boxes, d.isOutside)
			d.boxes = d.boxes[:min(len(d.boxes), int(d.nms.Max))]
			if d.extra == 0 {
				return false, nil
			}
			d.phase = chosen
			if err := core.PutBoxes(back[:d.bestBytes()], d.boxes); err != nil {
				return false, err
			}
		case d.wantsMore():
			d.phase = all
			return true, nil
		default:
			d.phase = masked
		}
		if d.mask == nil {
			d.extras = back[d.bestBytes():][:d.extraBytes()]
			return d.phase == chosen, nil
		}
		d.mask.begin()
	case chosen, masked:
		if d.mask == nil {
			return false, nil
		}
		d.mask.read(back[d.masksAt():])
		d.phase = masked
	}
	if d.mask.next(d) {
		return true, core.PutGrids(back[d.foundBytes():d.masksAt()], d.mask.grids)
	}
	return false, nil
}

// wantsMore reports whether boxes outside the picture took the places of others.
func (d *detector) wantsMore() bool {
	return len(d.boxes) == int(d.nms.Max) && d.nms.Max < d.all.Max && slices.ContainsFunc(d.boxes, d.isOutside)
}

// far is where the core puts edges beyond it, also infinite ones.
const far = 1 << 24

// isOutside reports whether no part of a box is in the picture, an edge is not finite or as far, or its
// score is not a number that JSON has. The border of a letterbox is not part of the picture.
func (d *detector) isOutside(b core.Box) bool {
	// A NaN of the core has both edges of its axis at 0, or one of them far away.
	if min(b.X0, b.Y0, b.X1, b.Y1) <= -far || max(b.X0, b.Y0, b.X1, b.Y1) >= far {
		return true
	}
	b = d.clip(b)
	return !(b.X1 > b.X0 && b.Y1 > b.Y0) || math.IsInf(float64(b.Score), 0)
}

// clip cuts a box at the edges of the picture.
func (d *detector) clip(b core.Box) core.Box {
	c := d.at.Crop
	b.X0, b.Y0 = max(b.X0, float32(c.X)), max(b.Y0, float32(c.Y))
	b.X1, b.Y1 = min(b.X1, float32(c.X+c.Width)), min(b.Y1, float32(c.Y+c.Height))
	return b
}

// readSorted makes results of boxes that the model has selected itself: edges, score and class.
func (d *detector) readSorted(t frame.Tensor, into []result.Result) ([]result.Result, error) {
	d.boxes = d.boxes[:0]
	for a := range d.anchors {
		v := t.Data[6*a:][:6]
		if !(v[4] >= d.score && v[5] >= 0 && v[5] <= math.MaxInt32/2) { // false for NaN
			continue
		}
		d.find(a, int(v[5]), v[4], v[0], v[1], v[2], v[3])
	}
	slices.SortFunc(d.boxes, compareBoxes)
	return d.Results(into)
}

func compareBoxes(a, b core.Box) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Anchor, b.Anchor))
}

// scale maps a point of the tensor to the pixels of the frame, where it may lie outside, as the core does.
func (d *detector) scale(x, y float32) (fx, fy float32) {
	a, b := d.at.Scale(float64(x), float64(y))
	edge := func(v float64) float32 {
		return float32(min(max(v, -far), far))
	}
	return edge(a), edge(b)
}

// frame maps a point of the tensor to the frame.
func (d *detector) frame(x, y float32) (fx, fy float32) {
	a, b := d.at.ToFrame(float64(x), float64(y))
	return float32(a), float32(b)
}

// Results makes results of the best boxes that are in the picture.
func (d *detector) Results(into []result.Result) ([]result.Result, error) {
	into = into[:0]
	for i, b := range d.boxes {
		if len(into) == d.top {
			break
		}
		if d.isOutside(b) {
			continue
		}
		b = d.clip(b)
		var r *result.Result
		into, r = appendEmpty(into, d.p.Kind)
		r.Class, r.Score, r.Box = int(b.Class), b.Score, [4]float32{b.X0, b.Y0, b.X1, b.Y1}
		if r.Class < len(d.labels) {
			r.Label = d.labels[r.Class]
		}
		value := func(k int) float32 { return readFloat(d.extras[4*(i*d.extra+k):]) }
		switch d.p.Kind {
		case registry.Keypoints:
			for k := 0; k < d.extra; k += 3 {
				x, y := d.frame(value(k), value(k+1))
				r.Points = append(r.Points, result.Point{X: x, Y: y, Score: value(k + 2)})
			}
		case registry.Segment:
			drawn := &d.mask.drawn[i]
			counts := append(r.Mask.Counts[:0], drawn.Counts...)
			r.Mask = *drawn
			r.Mask.Counts = counts
		}
	}
	return into, nil
}

// appendEmpty appends an empty result that reuses the memory of the result there in an earlier
// frame.
func appendEmpty(into []result.Result, kind string) ([]result.Result, *result.Result) {
	n := len(into)
	if n == cap(into) {
		into = append(into, result.Result{})
	} else {
		into = into[:n+1]
	}
	r := &into[n]
	*r = result.Result{Kind: kind, Values: r.Values[:0], Points: r.Points[:0], Mask: result.Mask{Counts: r.Mask.Counts[:0]}, Then: r.Then[:0]}
	return into, r
}
