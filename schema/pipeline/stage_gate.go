package pipeline

import (
	"cmp"
	"fmt"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
)

// Gate passes frames on while the picture changes, and skips the stages after it otherwise.
var Gate = Stage{
	Kind: "gate", Takes: []Data{Frames}, Device: true, Serial: true,
	configured: func(s *plan.PipelineStage) bool { return s.Gate != nil },
	gives:      func(*plan.PipelineStage) Output { return Output{Data: Frames} },
	check:      checkGate,
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

// MaxGateRow is the most bytes that a row of the first plane may have for a gate to compare it.
const MaxGateRow = 16384

func checkGate(s *plan.PipelineStage, _ Output) []Fault {
	for _, f := range []struct{ field, value string }{{"threshold", s.Gate.Threshold}, {"area", s.Gate.Area}} {
		if f.value == "" {
			continue
		}
		if _, err := Fraction(f.field, f.value); err != nil {
			return []Fault{{Topic: Range, Path: stagePath(s, f.field), Value: f.value, Reason: "stage " + s.ID + ": " + ReasonText(err)}}
		}
	}
	return nil
}

// checkGateRow checks that a gate can compare the rows of the source's frames.
func checkGateRow(p *plan.Pipeline) []Fault {
	k := GateOf(p)
	if k < 0 || p.Source.Height < 1 {
		return nil
	}
	if row := PlaneBytes(&p.Source) / int64(p.Source.Height); row > MaxGateRow {
		return []Fault{{Topic: Settings, Path: stagePath(&p.Stages[k]), Value: p.Stages[k].Kind, Advice: "choose a planar format such as nv12, or a smaller picture",
			Reason: fmt.Sprintf("stage %s compares rows of at most %d bytes, and a row of %s with %d pixels has %d", p.Stages[k].ID, MaxGateRow, p.Source.Format, p.Source.Width, row)}}
	}
	return nil
}
