package pipeline

import (
	"cmp"
	"strconv"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
)

// Track gives the boxes of a postprocess stage numbers that they keep from frame to frame.
var Track = Stage{
	Kind: "track", Takes: []Data{Results}, Serial: true,
	configured: func(s *plan.PipelineStage) bool { return s.Track != nil },
	gives:      func(*plan.PipelineStage) Output { return Output{Data: Results} },
	check: func(s *plan.PipelineStage, in Output) []Fault {
		if in.Kind == Postprocess.Kind {
			return nil
		}
		return []Fault{inputFault(s, "stage %s follows the boxes of a postprocess stage, and a %s stage gives it none", s.ID, in.Kind)}
	},
}

// TrackPatience is how long a track waits for a box.
func TrackPatience(t *plan.Track) time.Duration { return cmp.Or(time.Duration(t.MaxLost), time.Second) }

// checkInstances reports a stage with more instances than its kind can have.
func checkInstances(k *Stage, s *plan.PipelineStage) []Fault {
	switch {
	case k.Serial && s.Instances > 1:
		return []Fault{{
			Topic: Range, Path: stagePath(s, "instances"), Value: strconv.Itoa(s.Instances),
			Reason: "stage " + s.ID + " has one instance: a " + k.Kind + " stage sees every frame", Advice: "leave instances out",
		}}
	case s.Instances < 0 || s.Instances > maxInstances:
		return []Fault{{
			Topic: Range, Path: stagePath(s, "instances"), Value: strconv.Itoa(s.Instances),
			Reason: "stage " + s.ID + " has 1 to " + strconv.Itoa(maxInstances) + " instances",
		}}
	}
	return nil
}
