package pipeline

import (
	"fmt"
	"slices"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/runtime/engine/tensorrt"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// EngineJob is an engine that a pipeline can use.
type EngineJob struct {
	Stage string
	Must  bool // the plan allows no other provider
	tensorrt.Job
}

// EngineJobs lists the TensorRT engines that a pipeline's models need on all levels, each once.
// Errors are those of [New].
func EngineJobs(o Options) ([]EngineJob, error) {
	files := modelFiles{dir: o.Dir, models: o.Models}
	levels, err := planLevels(o.Plan)
	if err != nil {
		return nil, err
	}
	var all []EngineJob
	for _, l := range levels {
		for k := range l.stages {
			s := &l.stages[k]
			if s.Model == nil || !slices.Contains(s.ModelProviders(), ort.TensorRT) {
				continue
			}
			for _, m := range registry.Models(s) {
				j, err := newEngineJob(o.Host, &files, l.stages, k, m)
				if err != nil {
					return nil, fmt.Errorf("stage %s: %w", s.ID, err)
				}
				same := func(o EngineJob) bool { return o.Stage == j.Stage && o.Model == j.Model }
				if i := slices.IndexFunc(all, same); i >= 0 {
					widen(all[i].Key.Shapes, j.Key.Shapes)
				} else {
					all = append(all, j)
				}
			}
		}
	}
	return all, nil
}

func newEngineJob(host tensorrt.Host, files *modelFiles, stages []plan.PipelineStage, k int, m plan.StageModel) (EngineJob, error) {
	s := &stages[k]
	path, err := files.find(m.Path, m.SHA256)
	if err != nil {
		return EngineJob{}, err
	}
	sum := m.SHA256
	if sum == "" {
		if sum, err = tensorrt.Digest(path); err != nil {
			return EngineJob{}, err
		}
	}
	about, err := onnx.ReadFile(path)
	if err != nil {
		return EngineJob{}, fmt.Errorf("%w: %s: %w", ErrModelFile, path, err)
	}
	key := tensorrt.Key{
		Model: sum, TensorRT: host.TensorRT, GPU: host.GPU,
		Precision: tensorrt.Precision(s.Model.Precision, about), Workspace: s.Model.Workspace,
	}
	if key.Shapes, err = engineShapes(stages, k, about); err != nil {
		return EngineJob{}, fmt.Errorf("model %s: %w", path, err)
	}
	return EngineJob{
		Stage: s.ID, Must: !slices.ContainsFunc(s.ModelProviders(), func(p string) bool { return p != ort.TensorRT }),
		Job: tensorrt.Job{Key: key, Model: path, Builder: host.Builder},
	}, nil
}

// engineShapes returns the shapes that stage k feeds its model, or nil for a model without open
// dimensions.
func engineShapes(stages []plan.PipelineStage, k int, about *onnx.Model) (map[string]tensorrt.Range, error) {
	open := func(in onnx.Value) bool { return !in.Ranked || slices.ContainsFunc(in.Shape, onnx.Dim.Free) }
	at := slices.IndexFunc(about.Inputs, open)
	switch {
	case at < 0:
		return nil, nil
	case len(about.Inputs) > 1:
		return nil, fmt.Errorf("%w: input %s has open dimensions, and the model has %d inputs: export it with fixed sizes", ErrPlan, about.Inputs[at], len(about.Inputs))
	}
	in := about.Inputs[0]
	var one []int64
	from := k - 1
	for from > 0 && stages[from].Map != nil { // which gives the shape that it takes
		from--
	}
	if from >= 0 {
		one = registry.StageOutput(&stages[from]).Shape
	}
	if one == nil {
		return nil, fmt.Errorf("%w: input %s has open dimensions that the stage before it does not set: export the model with fixed sizes", ErrPlan, in)
	}
	most := slices.Clone(one)
	if b := stages[k].Model.Batch; b != nil && len(b.Buckets) > 0 {
		most[0] = int64(b.Buckets[len(b.Buckets)-1])
	}
	return map[string]tensorrt.Range{in.Name: {Min: one, Opt: most, Max: slices.Clone(most)}}, nil
}

// widen extends the shapes of one level to cover those of another.
func widen(into, other map[string]tensorrt.Range) {
	for name, r := range into {
		for i := range r.Min {
			if o, ok := other[name]; ok {
				r.Min[i], r.Max[i] = min(r.Min[i], o.Min[i]), max(r.Max[i], o.Max[i])
			}
		}
	}
}

// findEngine finds the engine of a stage's model. The error states the reason if there is no
// usable engine.
func findEngine(o Options, s *plan.PipelineStage, path string) (string, error) {
	if why := o.Host.Obstacle(); why != "" {
		return "", fmt.Errorf("%w: %s", tensorrt.ErrNone, why)
	}
	jobs, err := EngineJobs(o)
	if err != nil {
		return "", err
	}
	for _, j := range jobs {
		if j.Stage == s.ID && j.Model == path {
			return o.Engines.Find(j.Key)
		}
	}
	return "", tensorrt.ErrNone
}
