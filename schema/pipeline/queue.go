package pipeline

import (
	"slices"

	"github.com/yoctune/yoctune/schema/plan"
)

// Policies of a full queue.
const (
	Block      = "block"
	DropOldest = "drop-oldest"
	DropNewest = "drop-newest"
)

// Queue is the policy and the capacity of queues where the plan sets none. A live source
// drops old frames: a longer queue only adds latency. A recorded source must lose no frame,
// and a longer queue keeps its stages busy.
func Queue(live bool) (policy string, capacity int) {
	if live {
		return DropOldest, 1
	}
	return Block, 4
}

// QueueOf is [Queue] of a pipeline. Where requests are batched, a queue holds a full batch.
func QueueOf(p *plan.Pipeline) (policy string, capacity int) {
	policy, capacity = Queue(p.Source.Live)
	if IsServed(&p.Source) {
		capacity = 1
		for k := range p.Stages {
			capacity = max(capacity, LargestBatch(p.Stages, k))
		}
	}
	return policy, capacity
}

// DefaultRate is the frame rate of a source where neither the plan nor its frames set
// one.
const DefaultRate = 30

// Workers is how many frames a stage holds.
type Workers struct{ Instances, Batch int }

// UnsettledFrames returns how many frames of a stage may be in work or wait for their turn: the
// order of frames is kept.
func (w Workers) UnsettledFrames() int { return 2 * w.Instances * w.Batch }

// PoolFrames is the number of frames that keeps every queue full and every worker busy,
// with one for the source to fill meanwhile. A sinkCapacity of 0 is capacity.
func PoolFrames(stages []Workers, capacity, sinkCapacity int) int {
	if sinkCapacity == 0 {
		sinkCapacity = capacity
	}
	n := len(stages)*capacity + sinkCapacity + 3
	for _, w := range stages {
		n += w.Instances * w.Batch
		if w.Instances > 1 {
			n += w.UnsettledFrames()
		}
	}
	return n
}

// WorkersOf is [Workers] of each stage of a pipeline.
func WorkersOf(p *plan.Pipeline) []Workers {
	all := make([]Workers, len(p.Stages))
	for i := range p.Stages {
		all[i] = Workers{Instances(p, &p.Stages[i]), LargestBatch(p.Stages, i)}
	}
	return all
}

// SpareFrames is the number of additional frames in the pool: an abandoned GPU process may
// still write to the frames that it had.
func SpareFrames(p *plan.Pipeline) int {
	n := 0
	for i := range p.Stages {
		n += SparesOf(p, i)
	}
	return n
}

// SparesOf is the number of those frames for stage k: for each instance and GPU as many as it works
// on at once.
func SparesOf(p *plan.Pipeline, k int) int {
	s := &p.Stages[k]
	if !Isolated(p, s) || !StageOf(s.Kind).isDirect() && !StaysOnGPU(p, p.Stages, k) {
		return 0
	}
	return Instances(p, s) * max(len(p.GPUs), 1) * LargestBatch(p.Stages, k)
}

func (k *Stage) isSerial() bool { return k != nil && k.Serial }

func (k *Stage) isDirect() bool { return k != nil && k.Direct }

// Levels lists the stages on each level of the ladder, the whole first. A stage that a
// level does not change shares its settings with the level above.
func Levels(p *plan.Pipeline) [][]plan.PipelineStage {
	levels := [][]plan.PipelineStage{p.Stages}
	if p.Degrade == nil {
		return levels
	}
	for _, step := range p.Degrade.Ladder {
		stages := slices.Clone(levels[len(levels)-1])
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

// Changed reports whether a level of the ladder changes a stage.
func Changed(above, s *plan.PipelineStage) bool {
	return s.Model != above.Model || s.Preprocess != above.Preprocess
}
