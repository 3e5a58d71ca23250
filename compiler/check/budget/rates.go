package budget

import (
	"github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Rates are bytes a second of a pipeline at work, 0 where they are not known.
type Rates struct {
	Frames   float64 // a second; 0: as fast as they are read
	Source   int64   // bytes of pixels that come into memory
	DiskRead int64   // from a file of raw frames
	// A result is at least a line without anything seen: what the sink takes then.
	DiskWrite, NetOut int64
}

// emptyResult is the shortest line of a frame's result, and what each stage adds to it:
// the names of the fields, and times of one digit.
const (
	emptyResult = len(`{"type":"result","pipeline":"","frame":0,"capture_ns":0,"results":[],"latency_ns":{"total":0,"stages":{}}}`) + 1
	emptyStage  = len(`"":{"queue":0,"service":0},`)
)

// ComputeRates computes the rates that the plan determines. The sink gets no dropped frames:
// its rates follow from the objective if there is one, and otherwise from a source whose
// frames all arrive.
func ComputeRates(name string, p plan.Pipeline) Rates {
	var r Rates
	s := p.Source
	if s.Live && s.FPSNum > 0 && s.FPSDen > 0 {
		r.Frames = float64(s.FPSNum) / float64(s.FPSDen)
	}
	r.Source = int64(r.Frames * float64(pipeline.FrameBytes(&s)))
	source, _ := pipeline.SourceOf(s.Kind)
	if f, ok := pipeline.FormatOf(s.Format); source.Disk && !source.Program && ok && !f.Coded {
		r.DiskRead = r.Source
	}
	results := 0.0
	switch {
	case p.SLO != nil && p.SLO.MinFPS > 0:
		results = float64(p.SLO.MinFPS)
	case p.Queue.Policy == pipeline.Block && p.Queue.MaxAge == 0:
		results = r.Frames
	}
	line := emptyResult + len(name)
	for _, st := range p.Stages {
		line += emptyStage + len(st.ID)
	}
	out := int64(results * float64(line))
	if pipeline.WritesFile(&p.Sink) {
		r.DiskWrite = out
	}
	if sink, _ := pipeline.SinkOf(p.Sink.Kind); sink.Network {
		r.NetOut = out
	}
	return r
}
