// Package pipeline is the registry of what a pipeline is made of: the kinds of sources,
// stages and sinks. Each kind is one entry with what it takes and gives, whether it has
// a device, its defaults, limits and costs. The compiler and the engine read it, and
// [Check] is the one judgement of whether stages fit together, which both use.
//
// A new kind is an entry here, a file in the engine and its settings in the language
// (schema/pipelines.cue, schema/plan).
package pipeline

import "github.com/yoctune/yoctune/schema/plan"

// Data is what travels between two stages.
type Data string

// What a stage can take and give.
const (
	Frames  Data = "frames"  // pixels of a source
	Tensors Data = "tensors" // dense arrays, see [Tensor]
	Crops   Data = "crops"   // one such array for each of several parts of the frame
	Results Data = "results" // what a sink writes
)

// Ids of the two ends of a pipeline, which no stage can have.
const (
	SourceID = "source"
	SinkID   = "sink"
)

// Devices of a stage. With DeviceAuto the pipeline measures both when it starts first.
const (
	DeviceGPU  = "gpu"
	DeviceAuto = "auto"
)

// FallbackDrop drops the frames that the GPU cannot do in time.
const FallbackDrop = "drop"

// IsolationNone is the isolation of a pipeline that opens the GPU in its own process.
const IsolationNone = "none"

// Limits of a pipeline.
const (
	maxStages    = 32
	maxInstances = 64      // of a stage
	MaxLanes     = 256     // instances of all stages on the GPU
	MaxGPUs      = 16      // numbers of GPUs are below it
	MaxBatch     = 256     // frames
	MaxLadder    = 16      // steps
	MaxQueue     = 1024    // frames
	MaxPool      = 2 << 30 // bytes of frames and tensors
	MaxRank      = 8       // dimensions of a tensor that a custom stage takes or gives
	maxAuto      = 3       // stages with device auto: eight pipelines are measured
	maxElements  = 1 << 28 // of one dimension of a tensor
)

// RunsOnGPU reports whether a stage runs on the GPU, or may.
func RunsOnGPU(s *plan.PipelineStage) bool { return MayBeGPU(s.Device) }

// MayBeGPU reports whether a device is the GPU, or may be.
func MayBeGPU(device string) bool { return device == DeviceGPU || device == DeviceAuto }

// Isolated reports whether a process of its own does a stage's work on the GPU.
func Isolated(p *plan.Pipeline, s *plan.PipelineStage) bool {
	return RunsOnGPU(s) && p.Isolation != IsolationNone
}

// Instances is how many workers a stage has. A stage on the GPU has one for each GPU of
// the pipeline unless the plan gives a number.
func Instances(p *plan.Pipeline, s *plan.PipelineStage) int {
	if s.Instances == 0 && RunsOnGPU(s) && !StageOf(s.Kind).isSerial() {
		return max(len(p.GPUs), 1)
	}
	return max(s.Instances, 1)
}

// LargestBatch is the most frames that stage k works on at once. A batch of crops is of one frame.
func LargestBatch(stages []plan.PipelineStage, k int) int {
	s := &stages[k]
	if s.Model == nil || s.Model.Batch == nil || len(s.Model.Batch.Buckets) == 0 || CropsFor(stages, k) != nil {
		return 1
	}
	return s.Model.Batch.Buckets[len(s.Model.Batch.Buckets)-1]
}
