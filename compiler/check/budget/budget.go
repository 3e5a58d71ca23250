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
	Workspace int64 // bytes that TensorRT may take while it builds the largest engine
	GPU       int64 // bytes of Pool and Weights that the GPU's process maps or holds
	Known     bool  // every tensor and model is known
	Copies    int   // of a frame or tensor, from memory to memory, for each frame

	slots int // frames that have tensors
	away  int64
}

// Total is the bytes a pipeline takes while it runs.
func (b Budget) Total() int64 { return b.Pool + b.Weights }

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
	if b.away > 0 { // frames and tensors are the memory that both processes see
		b.GPU = b.Pool + b.away
	}
	return b
}

// addStage adds the tensors and models of stage k of a level.
func (b *Budget) addStage(p *plan.Pipeline, level []plan.PipelineStage, k int, models Models, seen map[string]bool) {
	s := &level[k]
	away := pipeline.Isolated(p, s)
	members := pipeline.Models(s)
	rows := int64(pipeline.CropRows(level, k))
	if len(members) == 0 {
		slots := int64(b.slots)
		if away { // one to warm up with
			slots++
		}
		if n, known := elementCount(OutputShape(s, nil, nil)); known {
			b.Pool += slots * 4 * n * rows
		}
		b.Pool += pipeline.CropMemory(p, s)
		if s.Post != nil && away {
			in := inputShape(level, k, models)
			if n, known := elementCount(in); known {
				b.Pool += pipeline.DecoderBytes(p, s, sizes(in)) + 4*n // to warm up with
			} else {
				b.Known = false
			}
		}
		return
	}
	instances := int64(pipeline.Instances(p, s))
	b.addWeights(s, instances, away, models, seen)
	b.Workspace = max(b.Workspace, s.Model.Workspace)
	in := inputShape(level, k, models)
	first := lookup(models, members[0])
	main, known := elementCount(outputOf(level, k, in, first))
	if !known {
		b.Known = false
		return
	}
	outs := main
	if second, ok := secondOutput(level, k, first); ok {
		if more, known := elementCount(second); known {
			outs += more
		} else {
			b.Known = false
		}
	}
	// Each further model of an ensemble writes a tensor of its own, once for each instance.
	made := outs + main*int64(len(members)-1)
	// For each frame, and once for each larger batch and instance.
	b.Pool += 4 * (outs*rows*int64(b.slots) + (made-outs)*instances)
	if pipeline.CropsFor(level, k) != nil {
		// Runs on crops read and write the tensors of frames; the GPU's process has outputs of its own.
		for _, size := range pipeline.CropBuckets(s) {
			if away {
				b.Pool += 4 * outs * int64(size) * instances
				if row, ok := elementCount(in); ok && 4*row%pipeline.TensorAlign != 0 {
					b.Pool += 4 * row * int64(size) * instances // see pipeline.TensorAlign
				}
			}
		}
		if away { // to warm up with
			b.Pool += 4 * outs * int64(slices.Max(pipeline.CropBuckets(s)))
		}
		return
	}
	if away { // the GPU's process has its own for each instance, and one to warm up with
		b.Pool += 4 * (made*instances + outs*int64(pipeline.LargestBatch(level, k)))
		instances *= 2
	}
	if s.Model.Batch == nil {
		return
	}
	for _, size := range s.Model.Batch.Buckets {
		if before, ok := elementCount(in); size > 1 && ok {
			b.Pool += 4 * (made + before) * int64(size) * instances
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

// secondOutput is the shape of the second output of the model of stage k, when the stage
// after it reads one.
func secondOutput(level []plan.PipelineStage, k int, m *onnx.Model) ([]onnx.Dim, bool) {
	if m == nil || k+1 >= len(level) || level[k+1].Post == nil {
		return nil, false
	}
	if d, _ := pipeline.DecodeOf(level[k+1].Post.Kind); !d.Second {
		return nil, false
	}
	name := level[k+1].Post.Prototypes
	if name == "" && len(m.Outputs) > 1 {
		name = m.Outputs[1].Name
	}
	out, ok := FindValue(m.Outputs, name)
	if !ok || !out.Ranked {
		return nil, true
	}
	shape := append([]onnx.Dim{}, out.Shape...)
	if len(shape) > 0 && shape[0].Free() {
		shape[0] = onnx.Dim{Size: 1} // of one frame
	}
	return shape, true
}

func lookup(models Models, m plan.StageModel) *onnx.Model {
	if models == nil {
		return nil
	}
	return models(m.Path, m.SHA256)
}

// inputShape returns the shape of the input of stage k, or nil if it is unknown.
func inputShape(stages []plan.PipelineStage, k int, models Models) []onnx.Dim {
	var shape []onnx.Dim
	for i := range stages[:k] {
		var m *onnx.Model
		if members := pipeline.Models(&stages[i]); len(members) > 0 {
			m = lookup(models, members[0])
		}
		shape = outputOf(stages, i, shape, m)
	}
	return shape
}

// outputOf returns the shape of the output of stage k for one frame or, of a model on crops, for one
// crop.
func outputOf(stages []plan.PipelineStage, k int, in []onnx.Dim, m *onnx.Model) []onnx.Dim {
	shape := OutputShape(&stages[k], in, m)
	if len(shape) > 0 && stages[k].Model != nil && pipeline.CropsFor(stages, k) != nil {
		shape[0] = onnx.Dim{Size: 1}
	}
	return shape
}

// OutputShape returns the shape of a stage's output for one frame, or nil if it is unknown.
func OutputShape(s *plan.PipelineStage, in []onnx.Dim, m *onnx.Model) []onnx.Dim {
	if fixed := pipeline.StageOutput(s).Shape; fixed != nil {
		shape := make([]onnx.Dim, len(fixed))
		for i, size := range fixed {
			shape[i] = onnx.Dim{Size: size}
		}
		return shape
	}
	if s.Model == nil || m == nil {
		return nil
	}
	out, ok := FindValue(m.Outputs, s.Model.Output)
	if !ok || !out.Ranked {
		return nil
	}
	// Axes of the input that have a name are the same where the output has it.
	axes := map[string]int64{}
	if from, ok := FindValue(m.Inputs, s.Model.Input); ok && len(from.Shape) == len(in) {
		for i, d := range from.Shape {
			if d.Free() && d.Axis != "" && !in[i].Free() {
				axes[d.Axis] = in[i].Size
			}
		}
	}
	shape := append([]onnx.Dim{}, out.Shape...)
	for i, d := range shape {
		switch size, named := axes[d.Axis]; {
		case !d.Free():
		case named:
			shape[i] = onnx.Dim{Size: size}
		case i == 0:
			shape[i] = onnx.Dim{Size: 1} // of one frame
		}
	}
	return shape
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

// elementCount is the number of elements, where all dimensions are known.
func sizes(shape []onnx.Dim) []int64 {
	out := make([]int64, len(shape))
	for i, d := range shape {
		out[i] = d.Size
	}
	return out
}

func elementCount(shape []onnx.Dim) (int64, bool) {
	n := int64(1)
	for _, d := range shape {
		if d.Free() || n > (1<<40)/d.Size {
			return 0, false
		}
		n *= d.Size
	}
	return n, len(shape) > 0
}
