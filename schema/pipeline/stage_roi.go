package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
)

// ROI cuts the best boxes of a detector out of the frame and makes a tensor of each, for a model
// that runs on all crops of a frame.
var ROI = Stage{
	Kind: "roi", Takes: []Data{Results}, Device: true, Direct: true,
	configured: func(s *plan.PipelineStage) bool { return s.ROI != nil },
	gives: func(s *plan.PipelineStage) Output {
		return Output{Data: Crops, Shape: []int64{1, 3, int64(s.ROI.Height), int64(s.ROI.Width)}, Crops: s.ROI.Count}
	},
	check: checkROI,
	describe: func(s *plan.PipelineStage) Description {
		r := s.ROI
		return Description{Text: fmt.Sprintf("%d crops, %s %d×%d %s", r.Count, r.Fit, r.Width, r.Height, r.Color)}
	},
}

// DefaultCrops is how many crops a roi stage makes of a frame where the plan gives no number.
const DefaultCrops = 8

// MaxCrops is how many crops a roi stage makes of a frame at most.
const MaxCrops = MaxBatch

// maxCropBuckets is how many sizes a batch of crops has at most: the model is bound to each of them
// at each place in the tensors of every frame.
const maxCropBuckets = 16

// maxCropSide is the largest width or height of a crop's tensor.
const maxCropSide = 8192

// TensorAlign is the multiple of bytes at which a tensor begins that the GPU's process runs a model
// on. Crops of another size are copied there first.
const TensorAlign = 64

func checkROI(s *plan.PipelineStage, in Output) []Fault {
	r := s.ROI
	fault := func(topic Topic, field, value, advice, format string, args ...any) []Fault {
		return []Fault{{Topic: topic, Path: stagePath(s, field), Value: value, Advice: advice, Reason: "stage " + s.ID + ": " + fmt.Sprintf(format, args...)}}
	}
	switch {
	case in.Crops > 0:
		return fault(Line, "input", s.Input, "keep one roi stage, or declare two pipelines", "a pipeline has one roi stage, and the results it takes are of the crops of another")
	case !in.Boxes:
		return fault(Line, "input", s.Input, "connect it to a postprocess stage that detects (detect, segment, keypoints, regions), or to a track stage",
			"it crops boxes, and the %s stage before it gives none", in.Kind)
	case r.Width < 1 || r.Width > maxCropSide:
		return fault(Range, "width", strconv.Itoa(r.Width), "", "width is 1 to %d", maxCropSide)
	case r.Height < 1 || r.Height > maxCropSide:
		return fault(Range, "height", strconv.Itoa(r.Height), "", "height is 1 to %d", maxCropSide)
	case r.Count < 1 || r.Count > MaxCrops:
		return fault(Range, "count", strconv.Itoa(r.Count), "", "count is 1 to %d", MaxCrops)
	case len(r.Only) > 0 && !in.Classes:
		return fault(Cascade, "only", fmt.Sprint(r.Only), "remove only", "it selects boxes by their class, and those of decode regions have none")
	case slices.ContainsFunc(r.Only, func(c int) bool { return c < 0 }):
		return fault(Range, "only", fmt.Sprint(r.Only), "", "classes are numbers from 0")
	}
	if r.Margin != "" {
		if _, err := Fraction("margin", r.Margin); err != nil {
			return fault(Range, "margin", r.Margin, "", "%v", err)
		}
	}
	return nil
}

// CropsFor returns the roi stage whose crops stage k takes; nil for a stage that works on frames.
func CropsFor(stages []plan.PipelineStage, k int) *plan.ROI {
	for i := k - 1; i >= 0 && (stages[i].Model != nil || stages[i].ROI != nil); i-- {
		if stages[i].ROI != nil {
			return stages[i].ROI
		}
	}
	return nil
}

// CropBuckets are the numbers of crops that a model stage after a roi stage runs on at once.
func CropBuckets(s *plan.PipelineStage) []int {
	if s.Model == nil || s.Model.Batch == nil || len(s.Model.Batch.Buckets) == 0 {
		return []int{1}
	}
	return s.Model.Batch.Buckets
}

// CropRun returns the size of the next run of a model stage that has left crops to do: the largest
// bucket that is full, or with pad the smallest that holds them all. No bucket is larger than limit.
func CropRun(s *plan.PipelineStage, limit, left int) int {
	buckets := CropBuckets(s)
	if n := slices.IndexFunc(buckets, func(size int) bool { return size > limit }); n > 0 {
		buckets = buckets[:n]
	}
	pad := s.Model != nil && s.Model.Batch != nil && s.Model.Batch.Pad
	at := 0
	for at+1 < len(buckets) && (buckets[at+1] <= left || pad && buckets[at] < left) {
		at++
	}
	return buckets[at]
}

// CropSpan is a run of a model on the crops of a frame.
type CropSpan struct{ At, Size int }

// CropSpans lists the runs that a model stage may do on up to count crops, with any number of crops
// and with any of its buckets as the largest, each once.
func CropSpans(s *plan.PipelineStage, count int) []CropSpan {
	var all []CropSpan
	seen := map[CropSpan]bool{}
	for _, limit := range CropBuckets(s) {
		for n := 1; n <= count; n++ {
			for at := 0; at < n; {
				size := CropRun(s, limit, n-at)
				if span := (CropSpan{at, size}); !seen[span] {
					seen[span] = true
					all = append(all, span)
				}
				at += size
			}
		}
	}
	return all
}

// CropRows is the number of tensors that stage k has room for in each frame, a roi stage or a
// model stage after one: as many as there can be crops, and those that pad the last run.
func CropRows(stages []plan.PipelineStage, k int) int {
	r, model := stages[k].ROI, k
	if r != nil {
		model = k + 1
	} else if r = CropsFor(stages, k); r == nil {
		return 1
	}
	rows := r.Count
	for ; model < len(stages) && stages[model].Model != nil; model++ {
		for _, span := range CropSpans(&stages[model], r.Count) {
			rows = max(rows, span.At+span.Size)
		}
	}
	return rows
}

// CropMemory is the memory of the lists of boxes that a roi stage on the GPU reads, one for each
// instance and one to warm up.
func CropMemory(p *plan.Pipeline, s *plan.PipelineStage) int64 {
	if s.ROI == nil || !Isolated(p, s) {
		return 0
	}
	return int64(Instances(p, s)+1) * int64(boxesHead+s.ROI.Count*boxBytes)
}

// checkCropModel checks a model stage that takes crops, or that is configured for them.
func checkCropModel(s *plan.PipelineStage, in Output) []Fault {
	fault := func(field []string, value, advice, format string, args ...any) []Fault {
		return []Fault{{Topic: Cascade, Path: stagePath(s, field...), Value: value, Advice: advice, Reason: "stage " + s.ID + ": " + fmt.Sprintf(format, args...)}}
	}
	b := s.Model.Batch
	switch {
	case in.Crops == 0 && b != nil && b.Pad:
		return fault([]string{"batch", "pad"}, "true", "remove pad", "pad fills batches of crops, and the stage takes one tensor of each frame")
	case in.Crops == 0:
		return nil
	case s.Model.Ensemble != nil:
		return fault([]string{"ensemble"}, "", "keep one model", "an ensemble votes about frames, and the stage takes crops")
	case len(s.Model.Inputs) > 0:
		return fault([]string{"inputs"}, "", "remove inputs", "a model that takes crops has one input")
	case b == nil:
		return nil
	case len(b.Buckets) > maxCropBuckets:
		return fault([]string{"batch", "buckets"}, fmt.Sprint(b.Buckets), "list fewer sizes, such as [1, 2, 4, 8]", "a batch of crops has at most %d sizes, and %d are listed", maxCropBuckets, len(b.Buckets))
	case b.Delay > 0:
		return fault([]string{"batch", "delay"}, time.Duration(b.Delay).String(), "remove delay", "delay waits for frames, and a batch of crops is complete with its frame")
	case len(b.Buckets) > 0 && b.Buckets[len(b.Buckets)-1] > in.Crops && !b.Pad:
		return fault([]string{"batch", "buckets"}, fmt.Sprint(b.Buckets), "raise count of the roi stage, lower the bucket, or set pad: true",
			"a batch of %d is never full: a frame has at most %d crops", b.Buckets[len(b.Buckets)-1], in.Crops)
	}
	return nil
}

// ValidBuckets reports whether batch sizes ascend from 1, or from any size where the last run is
// padded.
func ValidBuckets(b *plan.ModelBatch) bool {
	if len(b.Buckets) == 0 || b.Buckets[0] != 1 && !b.Pad || b.Buckets[0] < 1 {
		return false
	}
	for n, size := range b.Buckets {
		if n > 0 && size <= b.Buckets[n-1] || size > MaxBatch {
			return false
		}
	}
	return true
}
