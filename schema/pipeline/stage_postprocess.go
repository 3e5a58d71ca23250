package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/plan"
)

// Postprocess turns a tensor into results, in one of several ways: see [Decode].
var Postprocess = Stage{
	Kind: "postprocess", Takes: []Data{Tensors}, Device: true,
	configured: func(s *plan.PipelineStage) bool { return s.Post != nil },
	gives:      func(*plan.PipelineStage) Output { return Output{Data: Results} },
	check:      checkPostprocess,
	onCPU: func(s *plan.PipelineStage) string {
		d, ok := DecodeOf(s.Post.Kind)
		switch {
		case ok && !d.Remote:
			return "decodes " + s.Post.Kind + ", which the CPU does"
		case s.Post.Head == "v10":
			return "reads boxes that the model has selected, which the CPU does"
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

// MaxCandidates is how many boxes above the threshold, the best ones, enter non-maximum suppression.
const MaxCandidates = 4096

// remoteBytes is the memory of a decoder whose first part the GPU does: candidates, the boxes found
// among them, and the copy that comes back.
const remoteBytes = 3 * (boxesHead + MaxCandidates*boxBytes)

// The form of boxes in the core: [core.BoxesBytes].
const (
	boxesHead = 32
	boxBytes  = 32
)

// DecoderBytes is the memory that the decoders of a postprocess stage take beside the tensors of
// frames: one for each instance, and one to warm the GPU up.
func DecoderBytes(p *plan.Pipeline, s *plan.PipelineStage) int64 {
	if s.Post == nil || !Isolated(p, s) {
		return 0
	}
	return int64(Instances(p, s)+1) * remoteBytes
}

// Decode is one way to turn a tensor into results.
type Decode struct {
	Name   string
	Boxes  bool // a detector: it reads the output of a model, in the core's memory
	Labels bool // it cannot do without labels
	Pixels bool // it can read the tensor of a preprocess stage
	Second bool // it reads a second output of the model
	Remote bool // the GPU can do it

	reads func(p *plan.Post, is func(axis int, size int64) bool, shape []int64) string
}

var decodes = []Decode{
	{Name: CTC, Labels: true, reads: readsSteps},
	{Name: Argmax, reads: readsClasses},
	{Name: Detect, Boxes: true, Remote: true, reads: readsBoxes},
	{Name: Segment, Boxes: true, Second: true, reads: readsBoxes},
	{Name: Keypoints, Boxes: true, reads: readsBoxes},
	{Name: Regions, reads: readsMap},
	{Name: Raw, Pixels: true, reads: readsFew},
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
	case d.Boxes && !model, in.Kind == Preprocess.Kind && !d.Pixels:
		return []Fault{{Topic: Line, Path: stagePath(s, "input"), Value: s.Input,
			Reason: fmt.Sprintf("stage %s decodes %s from the output of a model, and its input is a %s stage", s.ID, d.Name, in.Kind),
			Advice: "connect it to a model stage, or use decode: \"raw\""}}
	}
	if want := ExpectedTensor(s.Post, in.Shape); want != "" {
		return []Fault{{Topic: Line, Path: path, Value: d.Name,
			Reason: fmt.Sprintf("stage %s: decode %s reads %s, and its input is a tensor of shape %v", s.ID, d.Name, want, in.Shape),
			Advice: "choose the decode that fits the tensor, or change the shape"}}
	}
	if d.Labels && s.Post.Labels == "" {
		return []Fault{{Topic: Range, Path: path, Value: d.Name,
			Reason: fmt.Sprintf("stage %s: decode %s needs a file of labels", s.ID, d.Name), Advice: "name the file with the model's characters, one a line: labels"}}
	}
	return nil
}
