package pipeline

import (
	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/jpeg"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/schema/plan"
)

// shrinkFor is how far frames of a size can be decoded smaller, because every tensor
// that is made of them is smaller still: on no level of the ladder is a pixel of it
// less than a pixel of the frame, and crops fall on whole pixels.
func shrinkFor(p plan.Pipeline, width, height int) int {
	levels, err := planLevels(p)
	if err != nil {
		return 1 // it is said when the stages are built
	}
	best := 1
	for _, k := range jpeg.Shrinks {
		fits := width%k == 0 && height%k == 0
		for _, l := range levels {
			if len(l.stages) == 0 || l.stages[0].Preprocess == nil {
				return 1 // it takes the frame as it is
			}
			a, err := preprocessArgs(l.stages[0].Preprocess, frame.Format{Pixels: core.I420, Width: width, Height: height})
			if err != nil {
				return 1
			}
			g, err := a.Geometry()
			fits = fits && err == nil && g.ScaleX >= float64(k) && g.ScaleY >= float64(k) &&
				g.Crop.X%k == 0 && g.Crop.Y%k == 0 && g.Crop.Width%k == 0 && g.Crop.Height%k == 0
		}
		if fits {
			best = k
		}
	}
	return best
}
