package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/plan"
)

// ErrPlan is wrapped by the errors of a pipeline that cannot run as planned.
var ErrPlan = errors.New("pipeline cannot run as planned")

// ReasonText is the text of an error without that of ErrPlan, which a fault implies.
func ReasonText(err error) string { return strings.TrimPrefix(err.Error(), ErrPlan.Error()+": ") }

// Topic is a group of faults.
type Topic int

// Topics of faults.
const (
	Line       Topic = iota // the stages do not form a chain of matching outputs and inputs
	Settings                // a stage's own settings contradict each other
	Device                  // the GPU
	Range                   // a value is out of its range
	Cascade                 // a stage that works on crops cannot do so as configured
	Expression              // an expression that cannot be computed
	Requests                // callers cannot be answered as configured
	Deliveries              // results cannot be put into a stream as configured
)

// Fault is one reason why a pipeline cannot run.
type Fault struct {
	Topic  Topic
	Path   []string // of the field below the pipeline: stages, m, input
	Value  string   // the current value; "" if it does not help
	Reason string   // the fault and its cause
	Advice string   // what to do; "" if obvious from Reason
}

// Error is the fault in one line.
func (f Fault) Error() string {
	if f.Advice == "" {
		return f.Reason
	}
	return f.Reason + ": " + f.Advice
}

func stagePath(s *plan.PipelineStage, fields ...string) []string {
	return append([]string{"stages", s.ID}, fields...)
}

func inputFault(s *plan.PipelineStage, format string, args ...any) Fault {
	return Fault{Topic: Line, Path: stagePath(s, "input"), Value: s.Input, Reason: fmt.Sprintf(format, args...),
		Advice: "connect source, preprocess, model and postprocess in that order"}
}

// Check lists the reasons why the stages of a pipeline do not fit together, in the order
// of the stages; none for a pipeline that can be built. The compiler reports all of
// them, and the engine refuses a pipeline with any.
func Check(p *plan.Pipeline) []Fault {
	if f := checkOrder(p); f != nil {
		return []Fault{*f}
	}
	var all []Fault
	in := SourceOutput(&p.Source)
	for i := range p.Stages {
		s := &p.Stages[i]
		faults := checkStage(s, in)
		all = append(all, faults...)
		if s.ROI != nil && in.Crops > 0 {
			return all // there is one roi stage
		}
		if in = outputAfter(s, in); in.Data == "" {
			return all // what comes after is not known
		}
	}
	if last := &p.Stages[len(p.Stages)-1]; in.Data != Results && (in.Data != Tensors || p.Sink.Kind != ReplySink.Kind) {
		all = append(all, Fault{Topic: Line, Path: stagePath(last), Value: last.Kind,
			Reason: fmt.Sprintf("it ends with a %s stage, which gives %s, and a sink takes results", last.Kind, in.Data),
			Advice: "add a postprocess stage that takes its input from " + last.ID})
	}
	return slices.Concat(checkSource(&p.Source), all, checkInlets(p), checkPictures(p), checkOnce(p), checkGateRow(p), checkGPUs(p), checkSink(&p.Sink), checkDelivery(&p.Sink), checkRequests(p))
}

// checkPictures checks that results in pixels have a picture.
func checkPictures(p *plan.Pipeline) []Fault {
	if SourceOutput(&p.Source).Data == Frames {
		return nil
	}
	var all []Fault
	for i := range p.Stages {
		s := &p.Stages[i]
		if s.Post != nil && FindsBoxes(s.Post) {
			all = append(all, Fault{Topic: Line, Path: stagePath(s, "decode"), Value: s.Post.Kind,
				Reason: fmt.Sprintf("stage %s: decode %s gives places in a picture, and the source gives tensors", s.ID, s.Post.Kind), Advice: "choose argmax, ctc or raw"})
		}
	}
	return all
}

// checkOrder checks that the stages form one line from the source.
func checkOrder(p *plan.Pipeline) *Fault {
	stages := []string{"stages"}
	switch n := len(p.Stages); {
	case n == 0:
		return &Fault{Topic: Line, Path: stages, Reason: "it has no stages", Advice: "add a preprocess, a model and a postprocess stage"}
	case n > maxStages:
		return &Fault{Topic: Range, Path: stages, Reason: fmt.Sprintf("it has %d stages, and at most %d can run", n, maxStages)}
	}
	before := SourceID
	first := map[string]string{} // that takes an input
	seen := map[string]bool{}
	for i := range p.Stages {
		s := &p.Stages[i]
		input := s.Input
		if input == "" {
			input = before
		}
		switch {
		case s.ID == "":
			return &Fault{Topic: Line, Path: stages, Reason: "a stage has no id"}
		case s.ID == SourceID || s.ID == SinkID:
			return &Fault{Topic: Line, Path: stagePath(s), Value: s.ID, Reason: fmt.Sprintf("a stage cannot have the name %s, which is reserved for an end of the pipeline", s.ID),
				Advice: "give the stage another name"}
		case seen[s.ID]:
			return &Fault{Topic: Line, Path: stagePath(s), Value: s.ID, Reason: fmt.Sprintf("two stages have the id %s", s.ID), Advice: "give one another id"}
		case first[input] != "":
			return &Fault{Topic: Line, Path: stagePath(s, "input"), Value: s.Input, Reason: fmt.Sprintf("stages %s and %s take the same input: stages form one line", first[input], s.ID),
				Advice: "let one take its input from the other, or declare two pipelines"}
		case input != before:
			return &Fault{Topic: Line, Path: stagePath(s, "input"), Value: s.Input, Reason: fmt.Sprintf("stage %s takes its input from %s: stages form one line", s.ID, input),
				Advice: "take it from " + before}
		}
		seen[s.ID], first[input], before = true, s.ID, s.ID
	}
	return nil
}

// checkStage checks one stage against its input.
func checkStage(s *plan.PipelineStage, in Output) []Fault {
	k := StageOf(s.Kind)
	switch {
	case k == nil:
		return []Fault{{Topic: Line, Path: stagePath(s, "kind"), Value: s.Kind, Reason: fmt.Sprintf("stage %s has the unknown kind %q", s.ID, s.Kind),
			Advice: "choose one of " + strings.Join(StageKinds(), ", ")}}
	case !k.configured(s):
		return []Fault{{Topic: Line, Path: stagePath(s), Reason: fmt.Sprintf("stage %s has no settings of its kind, %s", s.ID, s.Kind)}}
	}
	all := append(checkDevice(k, s), checkInstances(k, s)...)
	if !k.acceptsData(in.Data) {
		from := "the source"
		if in.Kind != SourceID {
			from = "the " + in.Kind + " stage before it"
		}
		f := inputFault(s, "%s stage %s takes %s, and %s gives %s", s.Kind, s.ID, k.takesText(), from, in.Data)
		if in.Kind == Custom.Kind && k.acceptsData(Tensors) {
			f.Advice = "declare the shape of the tensor that " + s.Input + " gives: shape"
		}
		return append(all, f)
	}
	if k.check != nil {
		all = append(all, k.check(s, in)...)
	}
	return all
}

// checkDevice checks where a stage runs.
func checkDevice(k *Stage, s *plan.PipelineStage) []Fault {
	fault := func(field, value, advice, format string, args ...any) []Fault {
		return []Fault{{Topic: Device, Path: stagePath(s, field), Value: value, Advice: advice, Reason: "stage " + s.ID + " " + fmt.Sprintf(format, args...)}}
	}
	switch {
	case s.Device != "" && s.Device != "cpu" && !RunsOnGPU(s):
		return fault("device", s.Device, `choose "cpu", "gpu" or "auto"`, "has the unknown device %q", s.Device)
	case s.Fallback != "" && s.Fallback != "cpu" && s.Fallback != FallbackDrop:
		return fault("fallback", s.Fallback, `choose "cpu" or "drop"`, "has the unknown fallback %q", s.Fallback)
	case RunsOnGPU(s) && !k.Device:
		return fault("device", s.Device, "remove device", "is a %s stage and runs on the CPU", k.Kind)
	case RunsOnGPU(s) && k.onCPU != nil && k.onCPU(s) != "":
		return fault("device", s.Device, "remove device", "%s", k.onCPU(s))
	case s.Fallback != "" && !RunsOnGPU(s):
		return fault("fallback", s.Fallback, "remove fallback, or set device: \"gpu\"", "has a fallback and does not run on the GPU")
	}
	return nil
}

// checkAuto checks a stage whose device is measured, the nth of a pipeline.
func checkAuto(p *plan.Pipeline, s *plan.PipelineStage, n int) *Fault {
	fault := Fault{Topic: Device, Path: stagePath(s, "device"), Value: s.Device, Advice: `choose "cpu" or "gpu"`}
	switch {
	case n > maxAuto:
		fault.Reason = fmt.Sprintf("stage %s is number %d with device auto, and at most %d are measured", s.ID, n, maxAuto)
	case IsTensor(&p.Source):
		fault.Reason = "stage " + s.ID + " is measured with synthetic frames, and the source gives tensors"
	case HasFrameSize(&p.Source) && p.Source.Width == 0:
		fault.Reason = "stage " + s.ID + " is measured before the first frame, and the source does not declare its size"
	default:
		return nil
	}
	return &fault
}

// checkGPUs checks which GPUs a pipeline uses.
func checkGPUs(p *plan.Pipeline) []Fault {
	lanes, auto := 0, 0
	for i := range p.Stages {
		s := &p.Stages[i]
		if !RunsOnGPU(s) {
			continue
		}
		if s.Device == DeviceAuto {
			auto++
			if fault := checkAuto(p, s, auto); fault != nil {
				return []Fault{*fault}
			}
		}
		lanes += Instances(p, s)
		if s.Post != nil && p.Isolation == IsolationNone {
			return []Fault{{Topic: Device, Path: stagePath(s, "device"), Value: s.Device, Advice: "remove device, or isolation",
				Reason: "stage " + s.ID + " decodes on the GPU in a process of its own, and isolation: \"none\" starts none"}}
		}
	}
	fault := func(reason, advice string) []Fault {
		return []Fault{{Topic: Device, Path: []string{"gpus"}, Value: fmt.Sprint(p.GPUs), Reason: reason, Advice: advice}}
	}
	for n, i := range p.GPUs {
		if i < 0 || i >= MaxGPUs || slices.Contains(p.GPUs[:n], i) {
			return fault(fmt.Sprintf("gpus %v: each GPU is listed once, by a number from 0 to %d", p.GPUs, MaxGPUs-1), "")
		}
	}
	switch {
	case p.Isolation != "" && p.Isolation != "process" && p.Isolation != IsolationNone:
		return []Fault{{Topic: Device, Path: []string{"isolation"}, Value: p.Isolation,
			Reason: fmt.Sprintf("unknown isolation %q", p.Isolation), Advice: `choose "process" or "none"`}}
	case len(p.GPUs) > 0 && lanes == 0:
		return fault(fmt.Sprintf("gpus %v, and no stage runs on the GPU", p.GPUs), "remove gpus, or set device: \"gpu\" of a stage")
	case len(p.GPUs) > 1 && p.Isolation == IsolationNone:
		return fault(fmt.Sprintf("gpus %v, and with isolation: \"none\" a pipeline uses one", p.GPUs), "list one GPU, or remove isolation")
	case lanes > MaxLanes && p.Isolation != IsolationNone:
		return []Fault{{Topic: Device, Path: []string{"stages"},
			Reason: fmt.Sprintf("%d instances of stages run on the GPU, and at most %d can", lanes, MaxLanes), Advice: "lower instances"}}
	}
	return nil
}
