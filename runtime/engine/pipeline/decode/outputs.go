package decode

import (
	"fmt"
	"math"
	"slices"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/result"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// This file reads detectors with several outputs: boxes, their scores, and where the model has
// selected boxes itself their classes and their count, in the order of [registry.NamedOutputs].

// setOutputs derives the layout of several outputs.
func (d *detector) setOutputs(in Input) error {
	shapes := make([][]int64, len(in.Tensors))
	for i, t := range in.Tensors {
		shapes[i] = t.Shape
	}
	want := "another number of outputs"
	if len(shapes) == registry.OutputCount(d.p) {
		want = registry.HeadShapes(d.p, shapes)
	}
	if want != "" {
		return fmt.Errorf("%w: detect with a %s head reads %s", registry.ErrPlan, d.head, want)
	}
	d.anchors, d.rows = int(shapes[0][1]), true
	switch d.head {
	case registry.HeadEfficientNMS:
	case registry.HeadRTDETR:
		d.classes = int(shapes[1][2])
	default:
		d.classes = int(shapes[1][2]) - 1 // without the class for no object
	}
	return nil
}

// readSelected reads boxes that the model has selected: edges in pixels of the tensor, best first.
func (d *detector) readSelected(t frame.Tensor, into []result.Result) ([]result.Result, error) {
	d.boxes = d.boxes[:0]
	boxes, scores, classes := t.Data, t.More[0].Data, t.More[1].Data
	count := min(max(float64(t.More[2].Data[0]), 0), float64(d.anchors)) // NaN gives NaN
	for a := 0; float64(a) < count; a++ {
		score, class := scores[a], classes[a]
		if !(score >= d.score && class >= 0 && class <= math.MaxInt32/2) { // false for NaN
			continue
		}
		v := boxes[4*a:][:4]
		d.find(a, int(class), score, v[0], v[1], v[2], v[3])
	}
	slices.SortFunc(d.boxes, compareBoxes)
	return d.Results(into)
}

// readQueries reads the boxes of a DETR, by centre and size in parts of the tensor, one of a query.
// Those of a DETR share one distribution with the class for no object, which is the last; those of
// an RT-DETR are independent.
func (d *detector) readQueries(t frame.Tensor, into []result.Result) ([]result.Result, error) {
	d.boxes = d.boxes[:0]
	logits := t.More[0].Data
	columns := len(logits) / d.anchors
	w, h := float32(d.at.Width), float32(d.at.Height)
	for a := range d.anchors {
		row := logits[a*columns:][:columns]
		class, best := maximum(row[:d.classes])
		score := 1 / (1 + math.Exp(-float64(best)))
		if columns > d.classes {
			sum := 0.
			for _, v := range row {
				sum += math.Exp(float64(v - best))
			}
			score = 1 / sum
		}
		if !(float32(score) >= d.score) { // false for NaN
			continue
		}
		v := t.Data[4*a:][:4]
		x, y, halfW, halfH := v[0]*w, v[1]*h, v[2]*w/2, v[3]*h/2
		d.find(a, class, float32(score), x-halfW, y-halfH, x+halfW, y+halfH)
	}
	slices.SortFunc(d.boxes, compareBoxes)
	return d.Results(into)
}

// suppression is the second part of a detector whose candidates this program finds.
type suppression struct{ *detector }

func (s suppression) Add(l *core.List, m Memory, _ Source) {
	s.phase = best
	s.suppress(l, m)
}

// putCandidates finds the candidates of an SSD: edges in parts of the tensor, and a row of
// probabilities that begins with the class for no object. work is the memory of the candidates.
func (s suppression) putCandidates(t frame.Tensor, work []byte) error {
	d := s.detector
	d.boxes = d.boxes[:0]
	scores := t.More[0].Data
	w, h := float32(d.at.Width), float32(d.at.Height)
	for a := range d.anchors {
		class, score := maximum(scores[a*(d.classes+1):][1 : d.classes+1])
		if !(score >= d.score) { // false for NaN
			continue
		}
		v := t.Data[4*a:][:4]
		d.find(a, class, score, v[0]*w, v[1]*h, v[2]*w, v[3]*h)
	}
	most := int(d.args.Max)
	if len(d.boxes) > most {
		slices.SortFunc(d.boxes, compareBoxes)
	}
	return core.PutBoxes(work, d.boxes[:min(len(d.boxes), most)])
}

// find adds a box, by its edges in pixels of the tensor. One with an edge that is not finite is left out.
func (d *detector) find(anchor, class int, score, x0, y0, x1, y1 float32) {
	for _, v := range [...]float32{x0, y0, x1, y1} {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return
		}
	}
	b := core.Box{Score: score, Class: int32(class), Anchor: int32(anchor)}
	b.X0, b.Y0 = d.scale(x0, y0)
	b.X1, b.Y1 = d.scale(x1, y1)
	d.boxes = append(d.boxes, b)
}
