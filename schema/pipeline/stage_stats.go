package pipeline

import (
	"cmp"
	"fmt"

	"github.com/yoctune/yoctune/schema/plan"
)

// Stats measures brightness, clipping and focus of frames, and passes them on.
var Stats = Stage{
	Kind: "stats", Takes: []Data{Frames}, Device: true,
	configured: func(s *plan.PipelineStage) bool { return s.Stats != nil },
	gives:      func(*plan.PipelineStage) Output { return Output{Data: Frames} },
	check:      checkStats,
	describe: func(s *plan.PipelineStage) Description {
		return Description{Text: "brightness, clipping, focus"}
	},
}

// Defaults of a stats stage: see [plan.Stats].
const (
	StatsLow  = "0.02"
	StatsHigh = "0.98"
)

// StatsRange returns the brightness up to which a pixel counts as low, and that from which it counts as
// high.
func StatsRange(s *plan.Stats) (low, high float32, err error) {
	if low, err = Fraction("low", cmp.Or(s.Low, StatsLow)); err != nil {
		return 0, 0, err
	}
	if high, err = Fraction("high", cmp.Or(s.High, StatsHigh)); err != nil {
		return 0, 0, err
	}
	if low >= high {
		return 0, 0, fmt.Errorf("%w: low %s is not below high %s", ErrPlan, cmp.Or(s.Low, StatsLow), cmp.Or(s.High, StatsHigh))
	}
	return low, high, nil
}

func checkStats(s *plan.PipelineStage, _ Output) []Fault {
	if _, _, err := StatsRange(s.Stats); err != nil {
		field, value := "low", s.Stats.Low
		if s.Stats.High != "" {
			field, value = "high", s.Stats.High
		}
		return []Fault{{Topic: Range, Path: stagePath(s, field), Value: value, Reason: "stage " + s.ID + ": " + ReasonText(err)}}
	}
	return nil
}

// checkOnce checks that a pipeline has at most one stage of each kind whose result is of the frame.
func checkOnce(p *plan.Pipeline) []Fault {
	var all []Fault
	for _, each := range []struct{ kind, many string }{{Gate.Kind, "gates"}, {Stats.Kind, "stats stages"}} {
		first := ""
		for i := range p.Stages {
			s := &p.Stages[i]
			if s.Kind == each.kind && first != "" {
				all = append(all, Fault{Topic: Line, Path: stagePath(s), Value: s.Kind, Advice: "remove one of the two",
					Reason: "stages " + first + " and " + s.ID + " are " + each.many + ", and a pipeline has one"})
			}
			if s.Kind == each.kind {
				first = s.ID
			}
		}
	}
	return all
}
