package pipeline

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/yoctune/yoctune/schema/plan"
)

// Match compares embeddings with a gallery.
var Match = Stage{
	Kind: "match", Takes: []Data{Tensors, Crops}, Device: true,
	configured: func(s *plan.PipelineStage) bool { return s.Match != nil },
	gives:      func(*plan.PipelineStage) Output { return Output{Data: Results} },
	check:      checkMatch,
	describe: func(s *plan.PipelineStage) Description {
		return Description{Text: "similarity ≥ " + cmp.Or(s.Match.Threshold, MatchThreshold), File: s.Match.Gallery}
	},
}

// Defaults and limits of a match stage.
const (
	MatchThreshold = "0.5"
	MaxMatches     = 32
	Cosine         = "cosine"
)

func checkMatch(s *plan.PipelineStage, in Output) []Fault {
	m := s.Match
	fault := func(topic Topic, field, value, advice, format string, args ...any) []Fault {
		return []Fault{{Topic: topic, Path: stagePath(s, field), Value: value, Advice: advice, Reason: "stage " + s.ID + ": " + fmt.Sprintf(format, args...)}}
	}
	switch {
	case m.Gallery == "":
		return fault(Range, "gallery", "", "name the file with the embeddings", "it has no gallery")
	case m.Top < 0 || m.Top > MaxMatches:
		return fault(Range, "top", strconv.Itoa(m.Top), "", "top is 1 to %d", MaxMatches)
	case m.Metric != "" && m.Metric != Cosine:
		return fault(Range, "metric", m.Metric, "choose "+Cosine, "unknown metric %q", m.Metric)
	case in.Kind == Preprocess.Kind:
		return fault(Line, "input", s.Input, "connect it to a model stage that makes embeddings", "it compares embeddings, and a %s stage gives pixels", in.Kind)
	case in.Shape != nil && in.DType != F32:
		return fault(Line, "input", s.Input, "convert it in the model", "embeddings are float32, and its input is %v", in.Tensor())
	case in.Shape != nil && volume(in.Shape) == 0:
		return fault(Line, "input", s.Input, "", "its input is a tensor of shape %v", in.Shape)
	}
	return nil
}
