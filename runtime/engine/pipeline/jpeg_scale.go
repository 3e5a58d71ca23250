package pipeline

import (
	"slices"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/jpeg"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/schema/plan"
)

// shrinkFor returns the factor by which frames can be decoded smaller, because every tensor
// made from them is smaller still. On no level may a tensor's pixel cover less than one decoded
// pixel, and crops must start and end on whole pixels.
func shrinkFor(p plan.Pipeline, width, height int) int {
	levels, err := planLevels(p)
	if err != nil {
		return 1 // reported when the stages are built
	}
	best := 1
	for _, k := range jpeg.Shrinks {
		if !slices.ContainsFunc(levels, func(l level) bool { return !canShrink(l, width, height, k) }) {
			best = k
		}
	}
	return best
}

// canShrink reports whether frames that are k times smaller do for a level. A stage other
// than preprocess takes the frame as it is, and crops are cut out of the whole frame.
func canShrink(l level, width, height, k int) bool {
	crops := slices.ContainsFunc(l.stages, func(s plan.PipelineStage) bool { return s.ROI != nil })
	if len(l.stages) == 0 || l.stages[0].Preprocess == nil || crops || width%k != 0 || height%k != 0 {
		return false
	}
	a, err := preprocessArgs(l.stages[0].Preprocess, frame.Format{Pixels: core.I420, Width: width, Height: height})
	if err != nil {
		return false
	}
	g, err := a.Geometry()
	return err == nil && g.ScaleX >= float64(k) && g.ScaleY >= float64(k) &&
		g.Crop.X%k == 0 && g.Crop.Y%k == 0 && g.Crop.Width%k == 0 && g.Crop.Height%k == 0
}
