package pipeline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/yoctune/yoctune/schema/plan"
)

// Inlet is one input of a stage's model.
type Inlet struct {
	Name     string // of the model's input; "": the one that no other inlet names
	From     string // id of the stage that gives the tensor, or [SourceID]; "": the stage before, unless Constant
	Tensor   string // of the source: the name of one of its inputs; "": the first
	Part     *int   // index in the first axis of that tensor; nil: all of it
	Previous bool   // the tensor of the last run
	Constant *plan.ModelInput
}

// own reports whether the inlet takes the tensor of the stage before, in a stage with an input.
func (i Inlet) own(input string) bool {
	return i.Constant == nil && (i.From == "" || i.From == input)
}

// Inlets lists the inputs of a stage's model. The first one takes the stage's input, unless others
// take all inputs of the model.
func Inlets(s *plan.PipelineStage) []Inlet {
	var all []Inlet
	first := true
	for i := range s.Model.Inputs {
		in := &s.Model.Inputs[i]
		inlet := Inlet{Name: in.Name, From: in.From, Tensor: in.Tensor, Part: in.Part, Previous: in.Previous}
		if len(in.Values) > 0 {
			inlet.Constant = in
		}
		if inlet.own(s.Input) && !in.Previous {
			first = false
		}
		all = append(all, inlet)
	}
	if first {
		all = append([]Inlet{{Name: s.Model.Input}}, all...)
	}
	return all
}

// ReadsTensorOf reports whether a stage that is not the next one reads the tensor of a stage.
func ReadsTensorOf(s *plan.PipelineStage, id string) bool {
	return s.Model != nil && slices.ContainsFunc(s.Model.Inputs, func(in plan.ModelInput) bool { return in.From == id })
}

// ReadsPrevious reports whether the model of a stage reads a tensor of the frame before.
func ReadsPrevious(s *plan.PipelineStage) bool {
	return s.Model != nil && slices.ContainsFunc(s.Model.Inputs, func(in plan.ModelInput) bool { return in.Previous })
}

// ConstantTensor describes the tensor of an input with values.
func ConstantTensor(in *plan.ModelInput) Tensor {
	t, _ := ParseDType(in.DType)
	shape := in.Shape
	if shape == nil {
		shape = []int64{int64(len(in.Values))}
	}
	return Tensor{Name: in.Name, DType: t, Shape: shape}
}

// PartOf describes an element of the first axis of a tensor.
func (t Tensor) PartOf() Tensor {
	t.Shape = t.Shape[1:]
	return t
}

// maxValues limits the values of an input.
const maxValues = 4096

// checkInlets checks the inputs of models against the outputs of the source and of earlier stages.
func checkInlets(p *plan.Pipeline) []Fault {
	var all []Fault
	outputs := map[string]Output{SourceID: SourceOutput(&p.Source)}
	before := SourceID
	var sent []Tensor
	if IsTensor(&p.Source) {
		sent = SourceTensors(&p.Source)
	}
	for i := range p.Stages {
		s := &p.Stages[i]
		if s.Model != nil {
			for n := range s.Model.Inputs {
				in := &s.Model.Inputs[n]
				from := cmp.Or(in.From, cmp.Or(s.Input, before))
				if f := checkSentInlet(s, in, from, sent); f != nil {
					all = append(all, *f)
				} else if f := checkInlet(s, in, from, outputs); f != nil {
					all = append(all, *f)
				}
			}
			all = append(all, checkManyInlets(s)...)
		}
		outputs[s.ID], before = StageOutput(s), s.ID
	}
	return all
}

// checkSentInlet checks the name of an input of the source; from is the id of the stage that gives the tensor.
func checkSentInlet(s *plan.PipelineStage, in *plan.ModelInput, from string, sent []Tensor) *Fault {
	names := make([]string, len(sent))
	for n := range sent {
		names[n] = sent[n].Name
	}
	switch {
	case in.Tensor == "" || from == SourceID && len(in.Values) == 0 && in.Part == nil && slices.Contains(names, in.Tensor):
		return nil
	case from != SourceID || len(in.Values) > 0:
		return &Fault{Topic: Settings, Path: stagePath(s, "inputs", in.Name, "tensor"), Value: in.Tensor, Advice: "remove tensor, or set from: \"source\"",
			Reason: "stage " + s.ID + ": input " + in.Name + " names an input of requests, and takes its tensor elsewhere"}
	case in.Part != nil:
		return &Fault{Topic: Settings, Path: stagePath(s, "inputs", in.Name, "part"), Value: in.Tensor, Advice: "remove part",
			Reason: "stage " + s.ID + ": input " + in.Name + " is all of an input of requests"}
	}
	return &Fault{Topic: Line, Path: stagePath(s, "inputs", in.Name, "tensor"), Value: in.Tensor, Advice: "name one of the source's inputs",
		Reason: fmt.Sprintf("stage %s: input %s takes %q, and the inputs of the source are %v", s.ID, in.Name, in.Tensor, names)}
}

// checkManyInlets checks what a model with several inputs cannot do.
func checkManyInlets(s *plan.PipelineStage) []Fault {
	fault := func(field, advice, format string, args ...any) []Fault {
		return []Fault{{Topic: Settings, Path: stagePath(s, field), Advice: advice, Reason: "stage " + s.ID + ": " + fmt.Sprintf(format, args...)}}
	}
	switch {
	case len(s.Model.Inputs) == 0:
		return nil
	case len(Inlets(s)) > MaxTensors:
		return fault("inputs", "", "a model has at most %d inputs", MaxTensors)
	case s.Model.Batch != nil && len(s.Model.Batch.Buckets) > 1 && RunsOnGPU(s):
		return fault("batch", "remove batch or device", "with device gpu frames are batched for models with one input, and this one has several")
	case s.Model.Batch != nil && len(s.Model.Batch.Buckets) > 1 && ReadsPrevious(s):
		return fault("batch", "remove batch", "it takes the tensor of the previous frame, so that its frames are run one by one")
	case s.Model.Ensemble != nil:
		return fault("ensemble", "remove ensemble or inputs", "the models of an ensemble take one tensor")
	case ReadsPrevious(s) && RunsOnGPU(s):
		return fault("device", "remove device", "it keeps the tensor of the previous frame, which the CPU does")
	case ReadsPrevious(s) && s.Instances > 1:
		return fault("instances", "leave instances out", "it has one instance, which sees every frame")
	}
	return nil
}

// checkInlet checks one input; from is the id of the stage that gives its tensor.
func checkInlet(s *plan.PipelineStage, in *plan.ModelInput, from string, outputs map[string]Output) *Fault {
	fault := func(topic Topic, field, value, advice, format string, args ...any) *Fault {
		path := stagePath(s, "inputs", in.Name)
		if field != "" {
			path = append(path, field)
		}
		return &Fault{Topic: topic, Path: path, Value: value, Advice: advice, Reason: "stage " + s.ID + ": input " + in.Name + " " + fmt.Sprintf(format, args...)}
	}
	if len(in.Values) > 0 {
		return checkValues(in, fault)
	}
	out, known := outputs[from]
	switch {
	case in.DType != "" || in.Shape != nil:
		return fault(Settings, "", "", "remove dtype and shape, or give values", "has the type of the tensor that it takes")
	case !known:
		return fault(Line, "from", in.From, "name source or an earlier stage with a tensor", "takes a tensor from %s, which is not before it", from)
	case out.Data != Tensors:
		return fault(Line, "from", in.From, "name source or an earlier stage with a tensor", "takes a tensor from %s, which gives %s", from, out.Data)
	case in.Part == nil || out.Shape == nil:
		return nil
	case *in.Part < 0 || len(out.Shape) < 2 || int64(*in.Part) >= out.Shape[0]:
		return fault(Range, "part", fmt.Sprint(*in.Part), "choose an index of the first axis", "takes part %d of a tensor %v", *in.Part, out.Shape)
	case RunsOnGPU(s) && int64(*in.Part)*out.Tensor().PartOf().Bytes()%TensorAlign != 0:
		return fault(Range, "part", fmt.Sprint(*in.Part), "pad the last axis, or remove device", "takes a part that begins at byte %d, and on the GPU parts begin at multiples of %d",
			int64(*in.Part)*out.Tensor().PartOf().Bytes(), TensorAlign)
	}
	return nil
}

func checkValues(in *plan.ModelInput, fault func(topic Topic, field, value, advice, format string, args ...any) *Fault) *Fault {
	t, known := ParseDType(in.DType)
	switch {
	case in.From != "" || in.Part != nil || in.Previous:
		return fault(Settings, "", "", "give values, or from, part and previous", "has values and the tensor of a stage")
	case !known:
		return fault(Range, "dtype", in.DType, "", "has the unknown type %q", in.DType)
	case len(in.Values) > maxValues:
		return fault(Range, "values", "", "", "has %d values, and at most %d are possible", len(in.Values), maxValues)
	case volume(ConstantTensor(in).Shape) != int64(len(in.Values)):
		return fault(Range, "shape", fmt.Sprint(in.Shape), "", "has %d values for a tensor %v", len(in.Values), in.Shape)
	}
	for _, v := range in.Values {
		if _, err := AppendElement(nil, t, v); err != nil {
			return fault(Range, "values", v, "", "has a value that is not of type %s: %v", t, err)
		}
	}
	return nil
}
