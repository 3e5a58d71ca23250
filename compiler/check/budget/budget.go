// Package budget estimates the cost of a pipeline before it runs: memory, copies, I/O, and
// the latency of a result. Unknown terms, such as the output of an absent model or the
// time of an unmeasured stage, are left out and listed as missing.
package budget

import (
	"slices"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Budget is what a pipeline takes. Bytes are a lower bound while Known is false.
type Budget struct {
	Frames    int   // in the pool
	Pool      int64 // bytes of their pixels and tensors, on all levels
	Weights   int64 // bytes of all models and instances
	Requests  int64 // most bytes of requests that wait or are in work
	Workspace int64 // bytes that TensorRT may take while it builds the largest engine
	GPU       int64 // bytes of Pool and Weights that the GPU's process maps or holds
	Known     bool  // every tensor and model is known
	Copies    int   // of a frame or tensor, from memory to memory, for each frame

	slots int // frames that have tensors
	away  int64
}

// Total is the bytes a pipeline takes while it runs.
func (b Budget) Total() int64 { return b.Pool + b.Weights + b.Requests }

// Models reads the description of a model, nil where it cannot be read.
type Models func(path, sha256 string) *onnx.Model

// Compute adds up the memory of a pipeline.
func Compute(p plan.Pipeline, models Models) Budget {
	sink := p.Sink.Capacity
	b := Budget{Frames: pipeline.PoolFrames(pipeline.WorkersOf(&p), p.Queue.Capacity, sink), Known: true, Copies: pipeline.CountCopies(&p)}
	if each := pipeline.FrameBytes(&p.Source); each > 0 {
		b.Pool = int64(b.Frames) * each
	} else {
		b.Known = false
	}
	b.slots = b.Frames + pipeline.SpareFrames(&p)
	seen := map[string]bool{}
	levels := pipeline.Levels(&p)
	for n, level := range levels {
		for k := range level {
			if n > 0 && !pipeline.Changed(&levels[n-1][k], &level[k]) {
				continue
			}
			b.addStage(&p, level, k, models, seen)
		}
	}
	b.Pool += pipeline.CameraBytes(&p)
	b.Requests = pipeline.RequestMemory(&p)
	if b.away > 0 { // frames and tensors are the memory that both processes see
		b.GPU = b.Pool + b.away
	}
	return b
}

// AddGallery adds a gallery of so many bytes: its stage holds it, and the process of a GPU as well.
func (b *Budget) AddGallery(bytes int64, away bool) {
	b.Pool += bytes
	if away {
		b.Pool += bytes
		b.GPU += bytes
	}
}

// addStage adds the tensors and models of stage k of a level.
func (b *Budget) addStage(p *plan.Pipeline, level []plan.PipelineStage, k int, models Models, seen map[string]bool) {
	s := &level[k]
	away := pipeline.Isolated(p, s)
	members := pipeline.Models(s)
	rows := int64(pipeline.CropRows(level, k))
	in := input(p, level, k, models)
	if len(members) == 0 {
		b.Pool += pipeline.GateBytes(p, s)
		slots := int64(b.slots)
		if away { // one to warm up with
			slots++
		}
		if n, known := valueBytes(Output(s, in, nil)); known {
			b.Pool += slots * n * rows
		} else if s.Map != nil || s.Match != nil { // a gallery has its own
			b.Known = false
		}
		b.Pool += pipeline.CropMemory(p, s)
		if s.Post != nil {
			b.addDecoder(p, level, k, in, models)
		}
		return
	}
	instances := int64(pipeline.Instances(p, s))
	b.addWeights(s, instances, away, models, seen)
	b.addInputs(p, level, k, models)
	b.Workspace = max(b.Workspace, s.Model.Workspace)
	first := lookup(models, members[0])
	main, known := valueBytes(outputOf(level, k, in, first))
	if !known {
		b.Known = false
		return
	}
	outs := int64(0)
	for n, out := range Outputs(level, k, in, first) {
		bytes, known := valueBytes(out)
		if n == 0 {
			bytes, known = main, true
		}
		outs += bytes
		b.Known = b.Known && known
	}
	// Each further model of an ensemble writes a tensor of its own, once for each instance.
	made := outs + main*int64(len(members)-1)
	// For each frame, and once for each larger batch and instance.
	b.Pool += outs*rows*int64(b.slots) + (made-outs)*instances
	if pipeline.CropsFor(level, k) != nil {
		// Runs on crops read and write the tensors of frames; the GPU's process has outputs of its own.
		for _, size := range pipeline.CropBuckets(s) {
			if away {
				b.Pool += outs * int64(size) * instances
				if row, ok := valueBytes(in); ok && row%pipeline.TensorAlign != 0 {
					b.Pool += row * int64(size) * instances // see pipeline.TensorAlign
				}
			}
		}
		if away { // to warm up with
			b.Pool += outs * int64(slices.Max(pipeline.CropBuckets(s)))
		}
		return
	}
	if away { // the GPU's process has its own for each instance, and one to warm up with
		b.Pool += made*instances + outs*int64(pipeline.LargestBatch(level, k))
		instances *= 2
	}
	if s.Model.Batch == nil {
		return
	}
	before, ok := int64(0), true
	for _, in := range pipeline.Inlets(s) {
		if in.Constant == nil {
			n, known := valueBytes(InletValue(p, level, k, in, models))
			before, ok = before+n, ok && known
		}
	}
	for _, size := range s.Model.Batch.Buckets {
		if size > 1 && ok {
			b.Pool += (made + before) * int64(size) * instances
		}
	}
}

// addInputs adds the inputs of a model that belong to no frame: values, once more to upload them
// to a GPU, and the tensor of the frame before.
func (b *Budget) addInputs(p *plan.Pipeline, level []plan.PipelineStage, k int, models Models) {
	for _, in := range pipeline.Inlets(&level[k]) {
		switch {
		case in.Constant != nil:
			n := pipeline.ConstantTensor(in.Constant).Bytes()
			if pipeline.Isolated(p, &level[k]) {
				n *= 2
			}
			b.Pool += n
		case in.Previous:
			n, known := valueBytes(InletValue(p, level, k, in, models))
			b.Pool += n
			b.Known = b.Known && known
		}
	}
}

// addDecoder adds the memory of a postprocess stage: of a decoder on the GPU, and of tensors that
// are converted to float32.
func (b *Budget) addDecoder(p *plan.Pipeline, level []plan.PipelineStage, k int, in onnx.Value, models Models) {
	s := &level[k]
	converters := int64(pipeline.Instances(p, s))
	if pipeline.Isolated(p, s) {
		n, known := valueBytes(in) // to warm up with
		if known {
			b.Pool += pipeline.DecoderBytes(p, s, sizes(in.Shape)) + n
		}
		b.Known = b.Known && known
		converters = 2*converters + 1 // in both processes
	}
	read := []onnx.Value{in}
	if k > 0 && level[k-1].Model != nil {
		read = Outputs(level, k-1, input(p, level, k-1, models), lookup(models, pipeline.Models(&level[k-1])[0]))
	}
	for _, v := range read {
		if n, known := valueBytes(v); known && v.Type != onnx.Float32 {
			b.Pool += converters * n / elementBytes(v.Type) * elementBytes(onnx.Float32)
		}
	}
}

// addWeights adds the models of a stage, one for each instance.
func (b *Budget) addWeights(s *plan.PipelineStage, instances int64, away bool, models Models, seen map[string]bool) {
	for _, m := range pipeline.Models(s) {
		found := lookup(models, m)
		if found == nil || found.External {
			b.Known = false
		}
		key := s.ID + "\x00" + m.Path + "\x00" + m.SHA256
		if found == nil || seen[key] {
			continue
		}
		seen[key] = true
		all := found.Weights * instances
		b.Weights += all
		if away { // there, and here for when it is gone
			b.Weights += all
			b.away += all
		}
	}
}

// Outputs lists the outputs of the model of stage k that the stage after it reads.
func Outputs(level []plan.PipelineStage, k int, in onnx.Value, m *onnx.Model) []onnx.Value {
	s := &level[k]
	names := append([]string{s.Model.Output}, s.Model.Outputs...)
	if m == nil {
		return make([]onnx.Value, len(names))
	}
	if k+1 < len(level) && level[k+1].Post != nil {
		post := level[k+1].Post
		d, _ := pipeline.DecodeOf(post.Kind)
		switch {
		case pipeline.ReadsNamedOutputs(post):
			var all []string
			for _, o := range m.Outputs {
				all = append(all, o.Name)
			}
			found, err := pipeline.NamedOutputs(post, all)
			if err != nil {
				return nil
			}
			names = found
		case d.Second:
			second := post.Prototypes
			if second == "" && len(m.Outputs) > 1 {
				second = m.Outputs[1].Name
			}
			names = []string{s.Model.Output, second}
		}
	}
	outs := make([]onnx.Value, len(names))
	for i, name := range names {
		outs[i] = modelOutput(s, in, m, name)
	}
	return outs
}

func lookup(models Models, m plan.StageModel) *onnx.Model {
	if models == nil {
		return nil
	}
	return models(m.Path, m.SHA256)
}

// input describes the input of stage k.
func input(p *plan.Pipeline, stages []plan.PipelineStage, k int, models Models) onnx.Value {
	value := SourceValue(p)
	for i := range stages[:k] {
		var m *onnx.Model
		if members := pipeline.Models(&stages[i]); len(members) > 0 {
			m = lookup(models, members[0])
		}
		value = outputOf(stages, i, value, m)
	}
	return value
}

// outputOf describes the output of stage k for one frame or, of a model on crops, for one crop.
func outputOf(stages []plan.PipelineStage, k int, in onnx.Value, m *onnx.Model) onnx.Value {
	v := Output(&stages[k], in, m)
	if len(v.Shape) > 0 && stages[k].Model != nil && pipeline.CropsFor(stages, k) != nil {
		v.Shape[0] = onnx.Dim{Size: 1}
	}
	return v
}

// InletValue describes the tensor that an input of the model of stage k takes.
func InletValue(p *plan.Pipeline, stages []plan.PipelineStage, k int, in pipeline.Inlet, models Models) onnx.Value {
	if in.Constant != nil {
		return fixedValue(pipeline.ConstantTensor(in.Constant))
	}
	from := k
	switch {
	case in.From == pipeline.SourceID:
		from = 0
	case in.From != "":
		for i := range stages[:k] {
			if stages[i].ID == in.From {
				from = i + 1
			}
		}
	}
	v := input(p, stages, from, models)
	if in.Tensor != "" && from == 0 {
		for _, t := range pipeline.SourceTensors(&p.Source) {
			if t.Name == in.Tensor {
				v = fixedValue(t)
			}
		}
	}
	if in.Part != nil && len(v.Shape) > 0 {
		v.Shape = v.Shape[1:]
	}
	return v
}

// SourceValue describes the tensor of a source; of frames it is not ranked.
func SourceValue(p *plan.Pipeline) onnx.Value {
	if out := pipeline.SourceOutput(&p.Source); out.Data == pipeline.Tensors {
		return fixedValue(out.Tensor())
	}
	return onnx.Value{}
}

// fixedValue describes a tensor whose shape is known.
func fixedValue(t pipeline.Tensor) onnx.Value {
	v := onnx.Value{Name: t.Name, Type: onnx.Type(t.DType.ONNX()), Ranked: true}
	for _, size := range t.Shape {
		v.Shape = append(v.Shape, onnx.Dim{Size: size})
	}
	return v
}

// Output describes a stage's output for one frame; it is not ranked where it is unknown.
func Output(s *plan.PipelineStage, in onnx.Value, m *onnx.Model) onnx.Value {
	if fixed := pipeline.StageOutput(s); fixed.Shape != nil {
		return fixedValue(fixed.Tensor())
	}
	if s.Map != nil {
		return in
	}
	if s.Model == nil || m == nil {
		return onnx.Value{}
	}
	return modelOutput(s, in, m, s.Model.Output)
}

// modelOutput describes an output of a model for one frame.
func modelOutput(s *plan.PipelineStage, in onnx.Value, m *onnx.Model, name string) onnx.Value {
	out, ok := FindValue(m.Outputs, name)
	if !ok || !out.Ranked {
		return onnx.Value{}
	}
	// Axes of the input that have a name are the same where the output has it.
	axes := map[string]int64{}
	if from, ok := FindValue(m.Inputs, s.Model.Input); ok && len(from.Shape) == len(in.Shape) {
		for i, d := range from.Shape {
			if d.Free() && d.Axis != "" && !in.Shape[i].Free() {
				axes[d.Axis] = in.Shape[i].Size
			}
		}
	}
	out.Shape = append([]onnx.Dim{}, out.Shape...)
	for i, d := range out.Shape {
		switch size, named := axes[d.Axis]; {
		case !d.Free():
		case named:
			out.Shape[i] = onnx.Dim{Size: size}
		case i == 0:
			out.Shape[i] = onnx.Dim{Size: 1} // of one frame
		}
	}
	return out
}

// FindValue returns the value with a name, or the first value if name is empty.
func FindValue(all []onnx.Value, name string) (onnx.Value, bool) {
	for _, v := range all {
		if name == "" || v.Name == name {
			return v, true
		}
	}
	return onnx.Value{}, false
}

func sizes(shape []onnx.Dim) []int64 {
	out := make([]int64, len(shape))
	for i, d := range shape {
		out[i] = d.Size
	}
	return out
}

// elementBytes is the size of an element, 0 for types that pipelines do not hold.
func elementBytes(t onnx.Type) int64 {
	known, ok := pipeline.DTypeOfONNX(int(t))
	if !ok {
		return 0
	}
	return known.Bytes()
}

// valueBytes is the size of a tensor, where its type and all dimensions are known.
func valueBytes(v onnx.Value) (int64, bool) {
	n := elementBytes(v.Type)
	for _, d := range v.Shape {
		if d.Free() || n > (1<<42)/d.Size {
			return 0, false
		}
		n *= d.Size
	}
	return n, v.Ranked && n > 0
}
