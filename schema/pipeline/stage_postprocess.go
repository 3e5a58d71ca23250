package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/plan"
)

// Postprocess turns a tensor into results, in one of several ways: see [Decode].
var Postprocess = Stage{
	Kind: "postprocess", Takes: []Data{Tensors, Crops}, Device: true,
	configured: func(s *plan.PipelineStage) bool { return s.Post != nil },
	gives: func(s *plan.PipelineStage) Output {
		d, _ := DecodeOf(s.Post.Kind)
		return Output{Data: Results, Boxes: FindsBoxes(s.Post), Classes: d.Boxes}
	},
	check: checkPostprocess,
	onCPU: func(s *plan.PipelineStage) string {
		d, ok := DecodeOf(s.Post.Kind)
		switch {
		case ok && !d.Core:
			return "decodes " + s.Post.Kind + ", which the CPU does"
		case d.Boxes && !HeadOf(s.Post).Core:
			return "reads boxes of the head " + s.Post.Head + ", which the CPU does"
		}
		return ""
	},
	describe: func(s *plan.PipelineStage) Description {
		text := s.Post.Kind
		if s.Post.Threshold != "" {
			text += " ≥ " + s.Post.Threshold
		}
		return Description{Text: text}
	},
}

// Ways to decode a tensor.
const (
	CTC       = "ctc"
	Argmax    = "argmax"
	Detect    = "detect"
	Segment   = "segment"
	Keypoints = "keypoints"
	Regions   = "regions"
	Raw       = "raw"
)

// MaxRaw is how many values the decode raw writes for each frame at most.
const MaxRaw = 4096

// MaxTop is how many classes the decode argmax finds for each frame at most.
const MaxTop = 32

// MaxCandidates is how many boxes above the threshold, the best ones, enter non-maximum suppression.
const MaxCandidates = 4096

// The forms of boxes, grids and ranks in the core: core.BoxesBytes, core.GridBytes, and a value with its index.
const (
	boxesHead = 32
	boxBytes  = 32
	gridBytes = 32
	rankBytes = 8
)

// MaskBytes is how many bytes of masks come back from the device at once: at least one of the largest.
const MaskBytes = 1 << 20

// DefaultTop is how many boxes a detector finds for each frame at most, unless the stage has another
// number.
const DefaultTop = 100

// DecoderSizes is the memory of a decoder in bytes whose first part the core does: what comes back
// from the device, and what the device needs beside the tensor, which has the given shape.
func DecoderSizes(p *plan.Post, shape []int64) (back, work int64) {
	axis := func(fromLast int) int64 {
		if fromLast >= len(shape) {
			return 0
		}
		return shape[len(shape)-1-fromLast]
	}
	last := axis(0)
	switch p.Kind {
	case CTC:
		return rankBytes * axis(1), 0
	case Argmax:
		return 8 + 2*rankBytes*min(int64(max(p.Top, 1)), last), 4 * last
	}
	top := int64(cmp.Or(p.Top, DefaultTop))
	values := 4 * top * min(axis(1), last) // at most: all values of a box
	candidates := int64(boxesHead + boxBytes*MaxCandidates)
	if p.Kind == Segment {
		return candidates + gridBytes*top + MaskBytes, 2*candidates + values + gridBytes*top
	}
	return max(candidates, boxesHead+boxBytes*top+values), 2 * candidates
}

// DecoderBytes is the memory that the decoders of a postprocess stage take beside the tensors of
// frames: one for each instance, and one to warm the GPU up. shape is that of the tensor.
func DecoderBytes(p *plan.Pipeline, s *plan.PipelineStage, shape []int64) int64 {
	back, work := DecoderSizes(s.Post, shape)
	return int64(Instances(p, s)+1) * (back + work)
}

// Decode is one way to turn a tensor into results.
type Decode struct {
	Name   string
	Boxes  bool // a detector: it reads the output of a model, in the core's memory
	Labels bool // it cannot do without labels
	Pixels bool // it can read the tensor of a preprocess stage
	Second bool // it reads a second output of the model
	Core   bool // the core reads the tensor, and the GPU can do that

	reads func(p *plan.Post, is func(axis int, size int64) bool, shape []int64) string
}

var decodes = []Decode{
	{Name: CTC, Labels: true, Core: true, reads: readsSteps},
	{Name: Argmax, Core: true, reads: readsClasses},
	{Name: Detect, Boxes: true, Core: true, reads: readsBoxes},
	{Name: Segment, Boxes: true, Core: true, Second: true, reads: readsBoxes},
	{Name: Keypoints, Boxes: true, Core: true, reads: readsBoxes},
	{Name: Regions, reads: readsMap},
	{Name: Raw, Pixels: true, reads: readsFew},
}

// TakesLabels reports whether the results of a decode have classes or characters that labels name.
func TakesLabels(decode string) bool {
	_, known := DecodeOf(decode)
	return known && decode != Regions && decode != Raw
}

// DecodeOf finds a way to decode by its name.
func DecodeOf(name string) (Decode, bool) {
	i := slices.IndexFunc(decodes, func(d Decode) bool { return d.Name == name })
	if i < 0 {
		return Decode{}, false
	}
	return decodes[i], true
}

// DecodeNames lists the names.
func DecodeNames() []string {
	names := make([]string, len(decodes))
	for i, d := range decodes {
		names[i] = d.Name
	}
	return names
}

// FindsBoxes reports whether the results of a postprocess stage have boxes.
func FindsBoxes(p *plan.Post) bool {
	d, _ := DecodeOf(p.Kind)
	return d.Boxes || d.Name == Regions
}

// ExpectedTensor describes the tensor that a postprocess stage reads when shape is another one;
// "" when it reads it, or may. Sizes that are not known are 0.
func ExpectedTensor(p *plan.Post, shape []int64) string {
	d, ok := DecodeOf(p.Kind)
	if !ok || shape == nil {
		return ""
	}
	is := func(axis int, size int64) bool { return axis < len(shape) && (shape[axis] == 0 || shape[axis] == size) }
	return d.reads(p, is, shape)
}

func readsClasses(_ *plan.Post, is func(int, int64) bool, shape []int64) string {
	for i := range max(len(shape)-1, 0) {
		if !is(i, 1) {
			return "one row of classes"
		}
	}
	return ""
}

func readsSteps(_ *plan.Post, is func(int, int64) bool, shape []int64) string {
	if len(shape) != 3 || !is(0, 1) {
		return "a tensor [1 steps classes]"
	}
	return ""
}

func readsMap(_ *plan.Post, is func(int, int64) bool, shape []int64) string {
	if len(shape) != 4 || !is(0, 1) || !is(1, 1) {
		return "a tensor [1 1 height width]"
	}
	return ""
}

func readsBoxes(p *plan.Post, is func(int, int64) bool, shape []int64) string {
	switch {
	case len(shape) != 3 || !is(0, 1):
		return "boxes, a tensor [1 values anchors] or [1 anchors values]"
	case p.Head == "v10" && !is(2, 6):
		return "with a v10 head a tensor [1 boxes 6]"
	case HeadOf(p).outputs != nil && !is(2, 4):
		return "with a " + p.Head + " head boxes, a tensor [1 boxes 4]"
	}
	return ""
}

func readsFew(_ *plan.Post, _ func(int, int64) bool, shape []int64) string {
	if slices.Contains(shape, 0) {
		return ""
	}
	if n := volume(shape); n == 0 || n > MaxRaw {
		return fmt.Sprintf("at most %d values", MaxRaw)
	}
	return ""
}

func checkPostprocess(s *plan.PipelineStage, in Output) []Fault {
	d, ok := DecodeOf(s.Post.Kind)
	path := stagePath(s, "decode")
	model := in.Kind == Model.Kind
	switch {
	case !ok:
		return []Fault{{Topic: Line, Path: path, Value: s.Post.Kind,
			Reason: fmt.Sprintf("stage %s: unknown decode %q", s.ID, s.Post.Kind), Advice: "choose one of " + strings.Join(DecodeNames(), ", ")}}
	case in.Crops > 0 && FindsBoxes(s.Post):
		return []Fault{{Topic: Line, Path: path, Value: d.Name,
			Reason: fmt.Sprintf("stage %s decodes %s from crops, and boxes in a crop have no place in the results", s.ID, d.Name),
			Advice: "decode " + CTC + ", " + Argmax + " or " + Raw + ", or detect in a pipeline of its own"}}
	case d.Boxes && !model, in.Crops > 0 && !model, in.Kind == Preprocess.Kind && !d.Pixels:
		return []Fault{{Topic: Line, Path: stagePath(s, "input"), Value: s.Input,
			Reason: fmt.Sprintf("stage %s decodes %s from the output of a model, and its input is a %s stage", s.ID, d.Name, in.Kind),
			Advice: "connect it to a model stage, or use decode: \"raw\""}}
	}
	if in.Mapped && d.Second {
		return []Fault{{Topic: Line, Path: stagePath(s, "input"), Value: s.Input,
			Reason: fmt.Sprintf("stage %s: decode %s reads two outputs of a model, and a map stage gives one", s.ID, d.Name),
			Advice: "connect it to the model stage"}}
	}
	if want := ExpectedTensor(s.Post, in.Shape); want != "" {
		return []Fault{{Topic: Line, Path: path, Value: d.Name,
			Reason: fmt.Sprintf("stage %s: decode %s reads %s, and its input is a tensor of shape %v", s.ID, d.Name, want, in.Shape),
			Advice: "choose the decode that fits the tensor, or change the shape"}}
	}
	if d.Name == Argmax && s.Post.Top > MaxTop {
		return []Fault{{Topic: Range, Path: stagePath(s, "top"), Value: fmt.Sprint(s.Post.Top),
			Reason: fmt.Sprintf("stage %s: argmax finds at most %d classes", s.ID, MaxTop), Advice: "lower top, or write all scores with decode: \"raw\""}}
	}
	if faults := checkHead(s, d); faults != nil {
		return faults
	}
	if d.Labels && s.Post.Labels == "" {
		return []Fault{{Topic: Range, Path: path, Value: d.Name,
			Reason: fmt.Sprintf("stage %s: decode %s needs a file of labels", s.ID, d.Name), Advice: "name the file with the model's characters, one a line: labels"}}
	}
	return nil
}
