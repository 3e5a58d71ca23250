package pipeline

import (
	"fmt"

	"github.com/yoctune/yoctune/schema/plan"
)

// Preprocess makes a tensor of a frame in one pass.
var Preprocess = Stage{
	Kind: "preprocess", Takes: []Data{Frames}, Device: true, Direct: true, Ladder: LadderSizes,
	configured: func(s *plan.PipelineStage) bool { return s.Preprocess != nil },
	gives: func(s *plan.PipelineStage) Output {
		return Output{Data: Tensors, Shape: []int64{1, 3, int64(s.Preprocess.Height), int64(s.Preprocess.Width)}}
	},
	describe: func(s *plan.PipelineStage) Description {
		p := s.Preprocess
		return Description{Text: fmt.Sprintf("%s %d×%d %s", p.Fit, p.Width, p.Height, p.Color)}
	},
}
