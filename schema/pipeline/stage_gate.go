package pipeline

import (
	"cmp"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
)

// Gate passes frames on while the picture changes, and skips the stages after it otherwise.
var Gate = Stage{
	Kind: "gate", Takes: []Data{Frames}, Device: true, Serial: true,
	configured: func(s *plan.PipelineStage) bool { return s.Gate != nil },
	gives:      func(*plan.PipelineStage) Output { return Output{Data: Frames} },
	copies:     func(*plan.PipelineStage, Data) int { return 1 }, // a frame that passes becomes the reference
	describe: func(s *plan.PipelineStage) Description {
		text := "change > " + cmp.Or(s.Gate.Threshold, GateThreshold)
		if s.Gate.Repeat {
			text += ", repeats"
		}
		return Description{Text: text}
	},
}

// Defaults of a gate: see [plan.Gate].
const (
	GateThreshold = "0.1"
	GateArea      = "0.01"
	GateMaxAge    = time.Second
)

// GateAge is the longest time between two frames that a gate lets pass.
func GateAge(g *plan.Gate) time.Duration { return cmp.Or(time.Duration(g.MaxAge), GateMaxAge) }

// GateOf finds the gate of a pipeline; -1 without one.
func GateOf(p *plan.Pipeline) int {
	for i := range p.Stages {
		if p.Stages[i].Gate != nil {
			return i
		}
	}
	return -1
}

// Bypassed is the last stage that frames which repeat results bypass: what comes after it takes
// results. k is the number of the gate.
func Bypassed(p *plan.Pipeline, k int) int {
	last, in := k, Frames
	for i := k + 1; i < len(p.Stages); i++ {
		if in != Results {
			last = i
		}
		in = StageOutput(&p.Stages[i]).Data
	}
	return last
}

// GateBytes is the memory of a gate: its reference, and with its process on the GPU also that which
// they share, and the same to warm up.
func GateBytes(p *plan.Pipeline, s *plan.PipelineStage) int64 {
	switch {
	case s.Gate == nil:
		return 0
	case Isolated(p, s):
		return 3 * PlaneBytes(&p.Source)
	}
	return PlaneBytes(&p.Source)
}

// checkGate checks that a pipeline has one gate.
func checkGate(p *plan.Pipeline) []Fault {
	first := GateOf(p)
	for i := first + 1; i < len(p.Stages); i++ {
		if s := &p.Stages[i]; s.Gate != nil {
			return []Fault{{Topic: Line, Path: stagePath(s), Value: s.Kind, Advice: "remove one of the two",
				Reason: "stages " + p.Stages[first].ID + " and " + s.ID + " are gates, and a pipeline has one"}}
		}
	}
	return nil
}
