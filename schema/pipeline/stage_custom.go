package pipeline

import (
	"fmt"
	"strings"

	"github.com/yoctune/yoctune/schema/plan"
)

// Custom is a stage written by the user. It accepts any output of the previous stage. Its
// output is a tensor if a shape is declared, otherwise results.
var Custom = Stage{
	Kind: "custom", Takes: []Data{Frames, Tensors, Results}, Buffers: true,
	configured: func(s *plan.PipelineStage) bool { return s.Custom != nil },
	gives: func(s *plan.PipelineStage) Output {
		if len(s.Custom.Shape) > 0 {
			t, _ := ParseDType(s.Custom.DType)
			return Output{Data: Tensors, DType: t, Shape: s.Custom.Shape}
		}
		return Output{Data: Results}
	},
	check: checkCustom,
	copies: func(s *plan.PipelineStage, in Data) int {
		n := 0
		if !s.Custom.Inside && in != Results {
			n++ // to its process; none where that takes a camera's memory
		}
		if len(s.Custom.Shape) > 0 {
			n++ // the tensor it gives
		}
		return n
	},
	describe: func(s *plan.PipelineStage) Description {
		file := strings.TrimSpace(strings.Join(append([]string{s.Custom.Plugin}, s.Custom.Exec...), " "))
		return Description{Text: base(strings.Fields(file + " custom")[0]), File: file}
	},
}

func checkCustom(s *plan.PipelineStage, in Output) []Fault {
	c := s.Custom
	_, known := ParseDType(c.DType)
	fault := func(topic Topic, field, value, advice, format string, args ...any) []Fault {
		path := stagePath(s)
		if field != "" {
			path = stagePath(s, field)
		}
		return []Fault{{Topic: topic, Path: path, Value: value, Advice: advice, Reason: fmt.Sprintf(format, args...)}}
	}
	switch {
	case !known:
		return fault(Range, "dtype", c.DType, "", "stage %s gives elements of the unknown type %q", s.ID, c.DType)
	case (c.Plugin == "") == (len(c.Exec) == 0):
		return fault(Settings, "", "", "give one of the two", "stage %s has either plugin or exec", s.ID)
	case c.Inside && c.Plugin == "":
		return fault(Settings, "", "", "leave inside out", "stage %s is a program, and only a plug-in can run in the pipeline's process", s.ID)
	case len(c.Shape) > 0 && volume(c.Shape) == 0:
		return fault(Range, "shape", fmt.Sprint(c.Shape), "give a smaller shape", "stage %s gives a tensor of shape %v, which is more than a pipeline holds", s.ID, c.Shape)
	case c.DType != "" && len(c.Shape) == 0:
		return fault(Settings, "dtype", c.DType, "declare the shape of the tensor, too", "stage %s gives results, which have no dtype", s.ID)
	case len(c.Shape) > MaxRank || len(in.Shape) > MaxRank:
		return fault(Range, "shape", fmt.Sprint(c.Shape), "give fewer dimensions", "stage %s takes and gives tensors of at most %d dimensions", s.ID, MaxRank)
	}
	return nil
}
