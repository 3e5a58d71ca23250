package pipeline

import "github.com/yoctune/yoctune/schema/plan"

// Model runs an ONNX model. The model's file has the shape of what it gives.
var Model = Stage{
	Kind: "model", Takes: []Data{Tensors, Crops}, Device: true, RunsModels: true, Ladder: LadderModels,
	configured: func(s *plan.PipelineStage) bool { return s.Model != nil },
	gives:      func(*plan.PipelineStage) Output { return Output{Data: Tensors} },
	check:      checkCropModel,
	describe: func(s *plan.PipelineStage) Description {
		d := Description{Text: "model", File: s.Model.Path}
		if d.File != "" {
			d.Text = base(d.File)
		}
		return d
	},
}
