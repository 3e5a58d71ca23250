package pipeline

import (
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/plan"
)

// Stage is one kind of stage.
type Stage struct {
	Kind   string
	Takes  []Data // any one of them
	Device bool   // it can run on the GPU
	Serial bool   // it has one instance: it keeps state from frame to frame
	Ladder string // field of a ladder's step that changes such a stage; "": none does

	RunsModels bool // its input must be in memory that ONNX Runtime can read
	Buffers    bool // it takes a camera's frames as DMA buffers
	// Direct stages let the GPU's process write to the tensors of frames. A process that
	// was given up may still do so, which costs a spare frame for each instance and GPU.
	Direct bool

	configured func(*plan.PipelineStage) bool
	onCPU      func(*plan.PipelineStage) string // why a stage cannot run on the GPU; "": it can
	gives      func(*plan.PipelineStage) Output
	check      func(s *plan.PipelineStage, in Output) []Fault
	copies     func(s *plan.PipelineStage, in Data) int
	describe   func(*plan.PipelineStage) Description
}

// Output is what a source or a stage gives for one frame.
type Output struct {
	Data  Data
	Kind  string  // of the stage; "source"
	Shape []int64 // of a tensor, or of one crop; nil: the plan does not determine it
	DType DType   // of a tensor whose shape is known

	Mapped  bool // a map stage gives the tensor in place of the stage that Kind names
	Boxes   bool // the results have boxes
	Classes bool // and the boxes have classes
	Crops   int  // most crops of a frame that the data, or part of the results, is of; 0: of none
}

// Tensor describes the tensor of the output.
func (o Output) Tensor() Tensor { return Tensor{DType: o.DType, Shape: o.Shape} }

// Description is what a drawing shows of a stage.
type Description struct {
	Text string // what it does, in a few words
	File string // model, plug-in or command that does it; "": none
}

// Fields of a ladder's step that change stages.
const (
	LadderModels = "models"
	LadderSizes  = "sizes"
)

// KindChangedBy returns the kind of the stages that a field of a ladder step changes.
func KindChangedBy(field string) string {
	for _, k := range stages {
		if k.Ladder == field {
			return k.Kind
		}
	}
	return ""
}

// Stages lists the kinds of stages in the order of a usual pipeline.
func Stages() []*Stage { return stages }

var stages = []*Stage{&Gate, &Stats, &Preprocess, &Model, &Map, &Postprocess, &Match, &Track, &ROI, &Custom}

// StageOf returns the entry of a kind; nil if unknown.
func StageOf(kind string) *Stage {
	for _, s := range stages {
		if s.Kind == kind {
			return s
		}
	}
	return nil
}

// StageKinds lists the names of the kinds.
func StageKinds() []string {
	names := make([]string, len(stages))
	for i, s := range stages {
		names[i] = s.Kind
	}
	return names
}

// SourceOutput returns what a source gives for one frame.
func SourceOutput(s *plan.PipelineSource) Output {
	if !IsTensor(s) {
		return Output{Data: Frames, Kind: SourceID}
	}
	first := SourceTensors(s)[0]
	return Output{Data: Tensors, Kind: SourceID, DType: first.DType, Shape: first.Shape}
}

// SourceTensors describes the tensors of one record of a source that gives tensors. checkSource
// reports unknown types.
func SourceTensors(s *plan.PipelineSource) []Tensor {
	if s.Request != nil && len(s.Request.Inputs) > 0 {
		var all []Tensor
		for _, in := range s.Request.Inputs {
			t, _ := ParseDType(in.DType)
			all = append(all, Tensor{Name: in.Name, DType: t, Shape: in.Shape})
		}
		return all
	}
	t, _ := ParseDType(s.DType)
	if s.Format == TextFormat {
		t = U8
	}
	return []Tensor{{DType: t, Shape: s.Shape}}
}

// StageOutput returns the output of a stage for one frame, or the zero value for an unknown kind.
func StageOutput(s *plan.PipelineStage) Output {
	k := StageOf(s.Kind)
	if k == nil || !k.configured(s) {
		return Output{Kind: s.Kind}
	}
	out := k.gives(s)
	out.Kind = k.Kind
	return out
}

// outputAfter returns the output of a stage with what it keeps of its input: crops stay crops, and
// the boxes that they are of stay results.
func outputAfter(s *plan.PipelineStage, in Output) Output {
	out := StageOutput(s)
	if s.Map != nil {
		in.Mapped = true
		return in
	}
	if in.Crops > 0 && out.Data == Tensors {
		out.Data = Crops
	}
	if s.Kind == Track.Kind || s.Kind == ROI.Kind || in.Crops > 0 {
		out.Boxes, out.Classes, out.Crops = in.Boxes, in.Classes, max(in.Crops, out.Crops)
	}
	return out
}

// Describe is what a drawing shows of a stage.
func Describe(s *plan.PipelineStage) Description {
	if k := StageOf(s.Kind); k != nil && k.configured(s) && k.describe != nil {
		return k.describe(s)
	}
	return Description{Text: s.Kind}
}

// Models lists the models of a stage by path and digest, its own first; nil for a stage
// without one.
func Models(s *plan.PipelineStage) []plan.StageModel {
	if s.Model == nil {
		return nil
	}
	all := []plan.StageModel{{Path: s.Model.Path, SHA256: s.Model.SHA256}}
	if s.Model.Ensemble != nil {
		all = append(all, s.Model.Ensemble.Models...)
	}
	return all
}

// CountCopies returns how often a frame, or the tensor made of it, is copied between memories
// on its way through the pipeline, the source included.
func CountCopies(p *plan.Pipeline) int {
	n := 1 // from the kernel or the file into the frame
	gpu, in := false, Frames
	uploaded := false // the GPU has the frame
	for i := range p.Stages {
		s := &p.Stages[i]
		if LargestBatch(p.Stages, i) > 1 {
			n += 2 // into the batch, and out of it
		}
		if k := StageOf(s.Kind); k != nil && k.copies != nil && k.configured(s) {
			n += k.copies(s, in)
		}
		in = StageOutput(s).Data
		switch {
		case s.ROI != nil:
			// It reads the frame, and of the stage before it only boxes.
			if gpu = RunsOnGPU(s); gpu && !uploaded {
				n++
			}
		case RunsOnGPU(s) != gpu:
			n++ // from one memory to the other
			gpu = !gpu
		case gpu && i > 0 && !StaysOnGPU(p, p.Stages, i-1):
			n += 2 // through the memory that the GPUs share
		}
		uploaded = uploaded || s.Preprocess != nil && SharesFrame(p, s)
	}
	return n
}

// StaysOnGPU reports whether the output of stage k stays in the GPU's memory: the next stage runs
// there, too. With several GPUs each of them may run it, so the output is shared.
func StaysOnGPU(p *plan.Pipeline, stages []plan.PipelineStage, k int) bool {
	votes := stages[k].Model != nil && stages[k].Model.Ensemble != nil // which the CPU counts
	// A later stage finds its tensor in memory that all processes see.
	later := k+2 < len(stages) && slices.ContainsFunc(stages[k+2:], func(s plan.PipelineStage) bool { return ReadsTensorOf(&s, stages[k].ID) })
	// A model that reads the records of the source has no other place for them, see SparesOf.
	records := k == 0 && stages[k].Model != nil
	return !records && k+1 < len(stages) && Isolated(p, &stages[k]) && Isolated(p, &stages[k+1]) && len(p.GPUs) < 2 && !votes && !later
}

// DescribeOutput describes the tensor that stage k gives, and the memory in which the next stage finds
// it; "" for a stage that gives none.
func DescribeOutput(p *plan.Pipeline, k int) string {
	out := StageOutput(&p.Stages[k])
	if out.Data != Tensors && out.Data != Crops {
		return ""
	}
	text := "tensor"
	if out.Shape != nil {
		text = out.Tensor().String()
	}
	return text + ", " + MemoryOf(p, k)
}

// MemoryOf names the memory in which the stage after it finds the tensor of stage k.
func MemoryOf(p *plan.Pipeline, k int) string {
	switch {
	case StaysOnGPU(p, p.Stages, k):
		return "GPU memory"
	case Isolated(p, &p.Stages[k]), k+1 < len(p.Stages) && Isolated(p, &p.Stages[k+1]):
		return "shared memory"
	}
	return "host memory"
}

// SharesFrame reports whether the GPU that runs a stage keeps the frame for the stages after it.
// With several GPUs another may run those.
func SharesFrame(p *plan.Pipeline, s *plan.PipelineStage) bool {
	return Isolated(p, s) && len(p.GPUs) < 2
}

// acceptsData reports whether stages of the kind accept such data.
func (k *Stage) acceptsData(d Data) bool { return slices.Contains(k.Takes, d) }

// takesText names what the kind takes. Crops are tensors.
func (k *Stage) takesText() string {
	var words []string
	for _, d := range k.Takes {
		if d != Crops || !k.acceptsData(Tensors) {
			words = append(words, string(d))
		}
	}
	return strings.Join(words, " or ")
}

// base is the last part of a path.
func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// volume is the number of elements of a shape, 0 where it is not known or beyond bounds.
func volume(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		if d < 1 || d > maxElements || n > MaxPool/d {
			return 0
		}
		n *= d
	}
	return n
}
