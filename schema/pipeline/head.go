package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/plan"
)

// Head is an output format of detectors.
type Head struct {
	Name string
	Core bool // the core reads the tensor, and the GPU can do that

	outputs []headOutput // that it reads, where there are several
}

// headOutput is one of several outputs of a detector.
type headOutput struct {
	field string // of the plan that names it
	usual []string
}

// Heads that read several outputs.
const (
	HeadEfficientNMS = "efficient-nms"
	HeadSSD          = "ssd"
	HeadDETR         = "detr"
	HeadRTDETR       = "rt-detr"
)

var (
	boxesOutput   = headOutput{"boxes", []string{"boxes", "det_boxes", "detection_boxes", "nmsed_boxes", "pred_boxes"}}
	scoresOutput  = headOutput{"scores", []string{"scores", "det_scores", "detection_scores", "nmsed_scores"}}
	logitsOutput  = headOutput{"scores", []string{"logits", "pred_logits", "scores"}}
	classesOutput = headOutput{"classes", []string{"det_classes", "detection_classes", "nmsed_classes", "classes", "labels"}}
	countOutput   = headOutput{"count", []string{"num_dets", "num_detections", "num_boxes", "num", "count"}}

	heads = []Head{
		{Name: "v5", Core: true},
		{Name: "v8", Core: true},
		{Name: "v10"},
		{Name: "v11", Core: true},
		{Name: HeadEfficientNMS, outputs: []headOutput{boxesOutput, scoresOutput, classesOutput, countOutput}},
		{Name: HeadSSD, outputs: []headOutput{boxesOutput, scoresOutput}},
		{Name: HeadDETR, outputs: []headOutput{boxesOutput, logitsOutput}},
		{Name: HeadRTDETR, outputs: []headOutput{boxesOutput, logitsOutput}},
	}
)

// DefaultHead is the head of a detector where the plan names none.
const DefaultHead = "v8"

// HeadNames lists the names.
func HeadNames() []string {
	names := make([]string, len(heads))
	for i, h := range heads {
		names[i] = h.Name
	}
	return names
}

// HeadOf finds the head of a postprocess stage; the zero value if it is unknown.
func HeadOf(p *plan.Post) Head {
	name := cmp.Or(p.Head, DefaultHead)
	i := slices.IndexFunc(heads, func(h Head) bool { return h.Name == name })
	if i < 0 {
		return Head{}
	}
	return heads[i]
}

// ReadsNamedOutputs reports whether a postprocess stage reads several outputs, by their names.
func ReadsNamedOutputs(p *plan.Post) bool {
	d, _ := DecodeOf(p.Kind)
	return d.Boxes && HeadOf(p).outputs != nil
}

// OutputCount returns how many outputs a postprocess stage reads by their names.
func OutputCount(p *plan.Post) int { return len(HeadOf(p).outputs) }

// NamedOutputs finds the outputs that a postprocess stage reads among those of a model, in the
// stage's order: boxes, scores, classes and their count.
func NamedOutputs(p *plan.Post, all []string) ([]string, error) {
	var found []string
	for _, o := range HeadOf(p).outputs {
		name := declared(p.Outputs, o.field)
		switch {
		case name != "" && !slices.Contains(all, name):
			return nil, fmt.Errorf("it has no output %q; it has %s", name, strings.Join(all, ", "))
		case name == "":
			i := slices.IndexFunc(o.usual, func(u string) bool { return slices.Contains(all, u) })
			if i < 0 {
				return nil, fmt.Errorf("which output has the %s of its %s head is not known; it has %s: name it with outputs: %s", o.field, p.Head, strings.Join(all, ", "), o.field)
			}
			name = o.usual[i]
		}
		if slices.Contains(found, name) {
			return nil, fmt.Errorf("output %q is read twice", name)
		}
		found = append(found, name)
	}
	return found, nil
}

// declared returns the name of an output in a plan.
func declared(o *plan.DetectorOutputs, field string) string {
	if o == nil {
		return ""
	}
	return map[string]string{"boxes": o.Boxes, "scores": o.Scores, "classes": o.Classes, "count": o.Count}[field]
}

// HeadShapes checks the shapes of the outputs of [NamedOutputs], where sizes that are not known are
// 0 and an unknown shape is nil. It returns what the head reads instead; "" for fitting shapes.
func HeadShapes(p *plan.Post, shapes [][]int64) string {
	boxes := int64(0)
	for i, o := range HeadOf(p).outputs {
		shape := shapes[i]
		if shape == nil {
			continue
		}
		is := func(axis int, size int64) bool { return size == 0 || shape[axis] == 0 || shape[axis] == size }
		switch {
		case o.field == "boxes":
			if len(shape) != 3 || !is(0, 1) || !is(2, 4) {
				return fmt.Sprintf("boxes [1 boxes 4], not %v", shape)
			}
			boxes = shape[1]
		case o.field == "count":
			for axis := range shape {
				if !is(axis, 1) {
					return fmt.Sprintf("a count of one element, not %v", shape)
				}
			}
		case o.field == "scores" && p.Head != HeadEfficientNMS:
			if len(shape) != 3 || !is(0, 1) || !is(1, boxes) || shape[2] == 1 && p.Head != HeadRTDETR {
				return fmt.Sprintf("scores [1 boxes classes], with a class for no object, not %v", shape)
			}
		default:
			if len(shape) < 2 || len(shape) > 3 || !is(0, 1) || !is(1, boxes) || len(shape) == 3 && !is(2, 1) {
				return fmt.Sprintf("%s [1 boxes], not %v", o.field, shape)
			}
		}
	}
	return ""
}

// checkHead checks the head of a postprocess stage.
func checkHead(s *plan.PipelineStage, d Decode) []Fault {
	fault := func(topic Topic, field, value, advice, format string, args ...any) []Fault {
		return []Fault{{Topic: topic, Path: stagePath(s, field), Value: value, Advice: advice, Reason: "stage " + s.ID + ": " + fmt.Sprintf(format, args...)}}
	}
	p := s.Post
	switch {
	case !d.Boxes && p.Outputs == nil:
	case HeadOf(p).Name == "":
		return fault(Range, "head", p.Head, "choose one of "+strings.Join(HeadNames(), ", "), "unknown head %q", p.Head)
	case ReadsNamedOutputs(p) && d.Name != Detect:
		return fault(Settings, "head", p.Head, "use decode: \"detect\"", "a model with a %s head gives boxes alone", p.Head)
	case p.Outputs != nil && !ReadsNamedOutputs(p):
		return fault(Settings, "outputs", "", "remove outputs, or choose another head", "a %s head reads one output", cmp.Or(p.Head, DefaultHead))
	}
	if v, err := Decimal(p.Scale); p.Scale != "" && (err != nil || v <= 0) {
		return fault(Range, "scale", p.Scale, "write the scale of the model's output", "the scale is a number above 0")
	}
	if p.Scale == "" && p.Zero != 0 {
		return fault(Settings, "zero", fmt.Sprint(p.Zero), "write the scale of the model's output, too", "a zero point needs a scale")
	}
	return nil
}
