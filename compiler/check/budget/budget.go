// Package budget adds up what a pipeline takes before it runs: memory, copies, what it
// reads and writes, and how late a result can be. What is not known - the output of a
// model that is not there to read, the time of a stage that nobody measured - is left
// out and said to be.
package budget

import (
	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/plan"
)

// Budget is what a pipeline takes. Bytes are at least so many while Known is false.
type Budget struct {
	Frames    int   // in the pool
	Pool      int64 // bytes of their pixels and tensors, on all levels
	Weights   int64 // bytes of all models and instances
	Workspace int64 // bytes that TensorRT may take while it builds the largest engine
	GPU       int64 // bytes of Pool and Weights that the process of the GPU has as well, or alone
	Known     bool  // of every tensor and model
	Copies    int   // of a frame or tensor, from memory to memory, for each frame

	slots int // frames that have tensors
	away  int64
}

// Total is the bytes a pipeline takes while it runs.
func (b Budget) Total() int64 { return b.Pool + b.Weights }

// Models finds what a model says of itself, nil where it cannot be read.
type Models func(path, sha256 string) *onnx.Model

// Of adds up a pipeline.
func Of(p plan.Pipeline, models Models) Budget {
	b := Budget{Frames: frames(p), Known: true, Copies: 1} // from the kernel or the file into the frame
	if each := frameBytes(p.Source); each > 0 {
		b.Pool = int64(b.Frames) * each
	} else {
		b.Known = false
	}
	b.slots = b.Frames + spares(p)
	seen := map[string]bool{}
	for n, level := range Levels(p) {
		for k, s := range level {
			if n > 0 && same(s, Levels(p)[n-1][k]) {
				continue
			}
			b.stage(level, k, isolated(p, s), models, seen)
		}
	}
	if b.away > 0 { // frames and tensors are the memory that both processes see
		b.GPU = b.Pool + b.away
	}
	gpu, results := false, false
	for _, s := range p.Stages {
		if largest(s) > 1 {
			b.Copies += 2 // into the batch, and out of it
		}
		if c := s.Custom; c != nil {
			if !c.Inside && !results {
				b.Copies++ // to its process; none where that takes a camera's memory
			}
			if len(c.Shape) > 0 {
				b.Copies++ // the tensor it gives
			}
		}
		results = s.Post != nil || s.Track != nil || s.Custom != nil && len(s.Custom.Shape) == 0
		if here := s.Device == "gpu"; here != gpu {
			b.Copies++ // from one memory to the other
			gpu = here
		}
	}
	return b
}

// isolated reports whether a process of its own does a stage's work.
func isolated(p plan.Pipeline, s plan.PipelineStage) bool {
	return s.Device == "gpu" && p.Isolation == ""
}

// spares is how many frames more have tensors, because a process that was given up may
// still write to those of a frame: one for each instance of a preprocess stage.
func spares(p plan.Pipeline) int {
	n := 0
	for _, s := range p.Stages {
		if s.Preprocess != nil && isolated(p, s) {
			n += max(s.Instances, 1)
		}
	}
	return n
}

func (b *Budget) stage(level []plan.PipelineStage, k int, away bool, models Models, seen map[string]bool) {
	s := level[k]
	switch {
	case s.Preprocess != nil:
		slots := int64(b.slots)
		if away { // one to warm up with
			slots++
		}
		b.Pool += slots * 4 * 3 * int64(s.Preprocess.Width) * int64(s.Preprocess.Height)
	case s.Model != nil:
		b.weights(s, away, models, seen)
		b.Workspace = max(b.Workspace, s.Model.Workspace)
		in := shapeBefore(level, k, models)
		first := lookup(models, Members(s.Model)[0])
		main, known := volume(After(s, in, first))
		if !known {
			b.Known = false
			return
		}
		outs := main
		if second, ok := besides(level, k, first); ok {
			if more, known := volume(second); known {
				outs += more
			} else {
				b.Known = false
			}
		}
		// Each model that votes writes beside the first, once for each instance.
		made := outs + main*int64(len(Members(s.Model))-1)
		times := int64(max(s.Instances, 1))
		// For each frame, and once for each larger batch and instance.
		b.Pool += 4 * (outs*int64(b.slots) + (made-outs)*times)
		if away { // which has its own of an instance, and something to warm up with
			b.Pool += 4 * (made*times + outs*int64(largest(s)))
			times *= 2
		}
		if s.Model.Batch == nil {
			return
		}
		for _, size := range s.Model.Batch.Buckets {
			if before, ok := volume(in); size > 1 && ok {
				b.Pool += 4 * (made + before) * int64(size) * times
			}
		}
	}
}

// weights adds the models of a stage, one for each instance.
func (b *Budget) weights(s plan.PipelineStage, away bool, models Models, seen map[string]bool) {
	for _, m := range Members(s.Model) {
		found := lookup(models, m)
		if found == nil || found.External {
			b.Known = false
		}
		key := s.ID + "\x00" + m.Path + "\x00" + m.SHA256
		if found == nil || seen[key] {
			continue
		}
		seen[key] = true
		all := found.Weights * int64(max(s.Instances, 1))
		b.Weights += all
		if away { // there, and here for when it is gone
			b.Weights += all
			b.away += all
		}
	}
}

// besides is the second output of the model of stage k, which the stage after it reads.
func besides(level []plan.PipelineStage, k int, m *onnx.Model) ([]onnx.Dim, bool) {
	if m == nil || k+1 >= len(level) || level[k+1].Post == nil || level[k+1].Post.Kind != "segment" {
		return nil, false
	}
	name := level[k+1].Post.Prototypes
	if name == "" && len(m.Outputs) > 1 {
		name = m.Outputs[1].Name
	}
	out, ok := Pick(m.Outputs, name)
	if !ok || !out.Ranked {
		return nil, true
	}
	shape := append([]onnx.Dim{}, out.Shape...)
	if len(shape) > 0 && shape[0].Free() {
		shape[0] = onnx.Dim{Size: 1} // of one frame
	}
	return shape, true
}

// frames is how many the runtime's pool has: every queue full, every worker at work,
// one for the source, and what waits for its turn behind several instances.
func frames(p plan.Pipeline) int {
	sink := p.Sink.Capacity
	if sink == 0 {
		sink = p.Queue.Capacity
	}
	n := len(p.Stages)*p.Queue.Capacity + sink + 3
	for _, s := range p.Stages {
		busy := max(s.Instances, 1) * largest(s)
		n += busy
		if s.Instances > 1 {
			n += 2 * busy
		}
	}
	return n
}

func largest(s plan.PipelineStage) int {
	if s.Model == nil || s.Model.Batch == nil || len(s.Model.Batch.Buckets) == 0 {
		return 1
	}
	return s.Model.Batch.Buckets[len(s.Model.Batch.Buckets)-1]
}

// Levels are the stages on each level of the ladder, the whole first.
func Levels(p plan.Pipeline) [][]plan.PipelineStage {
	levels := [][]plan.PipelineStage{p.Stages}
	if p.Degrade == nil {
		return levels
	}
	for _, step := range p.Degrade.Ladder {
		stages := append([]plan.PipelineStage{}, levels[len(levels)-1]...)
		for i := range stages {
			for _, m := range step.Models {
				if old := stages[i].Model; old != nil && m.Stage == stages[i].ID {
					model := *old
					model.Path, model.SHA256 = m.Path, m.SHA256
					stages[i].Model = &model
				}
			}
			for _, z := range step.Sizes {
				if old := stages[i].Preprocess; old != nil && z.Stage == stages[i].ID {
					pre := *old
					pre.Width, pre.Height = z.Width, z.Height
					stages[i].Preprocess = &pre
				}
			}
		}
		levels = append(levels, stages)
	}
	return levels
}

func same(a, b plan.PipelineStage) bool { return a.Model == b.Model && a.Preprocess == b.Preprocess }

// Members are the models of a stage, its own first.
func Members(m *plan.Model) []plan.StageModel {
	all := []plan.StageModel{{Path: m.Path, SHA256: m.SHA256}}
	if m.Ensemble != nil {
		all = append(all, m.Ensemble.Models...)
	}
	return all
}

func lookup(models Models, m plan.StageModel) *onnx.Model {
	if models == nil {
		return nil
	}
	return models(m.Path, m.SHA256)
}

// shapeBefore is the tensor that stage k of a line is given, nil where it is not
// known.
func shapeBefore(stages []plan.PipelineStage, k int, models Models) []onnx.Dim {
	var shape []onnx.Dim
	for _, s := range stages[:k] {
		var m *onnx.Model
		if s.Model != nil {
			m = lookup(models, Members(s.Model)[0])
		}
		shape = After(s, shape, m)
	}
	return shape
}

// After is the tensor that a stage makes of another for one frame, nil where it is
// not known.
func After(s plan.PipelineStage, in []onnx.Dim, m *onnx.Model) []onnx.Dim {
	switch {
	case s.Preprocess != nil:
		return []onnx.Dim{{Size: 1}, {Size: 3}, {Size: int64(s.Preprocess.Height)}, {Size: int64(s.Preprocess.Width)}}
	case s.Model == nil || m == nil:
		return nil
	}
	out, ok := Pick(m.Outputs, s.Model.Output)
	if !ok || !out.Ranked {
		return nil
	}
	// Axes of the input that have a name are the same where the output has it.
	axes := map[string]int64{}
	if from, ok := Pick(m.Inputs, s.Model.Input); ok && len(from.Shape) == len(in) {
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

// Pick is the value of a name, the first without one.
func Pick(all []onnx.Value, name string) (onnx.Value, bool) {
	for _, v := range all {
		if name == "" || v.Name == name {
			return v, true
		}
	}
	return onnx.Value{}, false
}

// volume is the number of elements, where all dimensions are known.
func volume(shape []onnx.Dim) (int64, bool) {
	n := int64(1)
	for _, d := range shape {
		if d.Free() || n > (1<<40)/d.Size {
			return 0, false
		}
		n *= d.Size
	}
	return n, len(shape) > 0
}
