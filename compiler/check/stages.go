package check

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// The rules of this file report values with which the runtime refuses to start.

// exampleCascade is the part of a pipeline up to the crops.
const exampleCascade = `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx"}, b: {kind: "postprocess", input: "m", decode: "detect"}, c: {kind: "roi", input: "b", width: 640, height: 640, count: 4}, `

func stageRules() []Rule {
	const frames = `pipelines: p: {source: {kind: "v4l2", path: "/dev/v4l/by-path/a", format: "nv12", width: 1280, height: 720, fps: 30}, stages: {f: {kind: "preprocess", input: "source", width: 640, height: 640}, `
	return []Rule{
		{
			ID: "pipeline-range", Severity: diag.Error, Firm: true,
			Title: "a value of a stage is out of its range",
			Cause: "Confidences, overlaps and utilisation range from 0 to 1, a channel is divided by its std, and a region lies inside the frame. The pipeline would not start.",
			Fix:   "choose a value within the range",
			Wrong: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx"}, b: {kind: "postprocess", input: "m", decode: "detect", threshold: 40}}}`,
			Right: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx"}, b: {kind: "postprocess", input: "m", decode: "detect", threshold: 0.4}}}`,
			run:   checkPipelineRange,
		},
		{
			ID: "model-buckets", Severity: diag.Error, Firm: true,
			Title: "the sizes of batches do not ascend from 1",
			Cause: "Only listed sizes are run, and frames that do not fill one are run in smaller batches. Without 1 a single frame could not be run.",
			Fix:   "list ascending sizes that begin with 1, such as [1, 2, 4]",
			Wrong: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "other.onnx", batch: buckets: [2, 4]}, b: {kind: "postprocess", input: "m", decode: "detect"}}}`,
			Right: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "other.onnx", batch: buckets: [1, 2, 4]}, b: {kind: "postprocess", input: "m", decode: "detect"}}}`,
			See:   "triton-inference-server/server#8141",
			run:   checkModelBuckets,
		},
		{
			ID: "cascade", Severity: diag.Error, Firm: true,
			Title: "a stage after a roi stage cannot work on crops as configured",
			Cause: "A model after a roi stage runs on all crops of one frame, in its buckets. It does not wait for other frames, and a bucket larger than the number of crops is never full.",
			Fix:   "choose buckets of at most count crops, without delay and ensemble",
			Wrong: examplePipeline + exampleCascade + `r: {kind: "model", input: "c", path: "other.onnx", batch: buckets: [1, 16]}, t: {kind: "postprocess", input: "r", decode: "raw"}}}`,
			Right: examplePipeline + exampleCascade + `r: {kind: "model", input: "c", path: "other.onnx", batch: buckets: [1, 4]}, t: {kind: "postprocess", input: "r", decode: "raw"}}}`,
			run:   checkCascade,
		},
		{
			ID: "degrade-ladder", Severity: diag.Error, Firm: true,
			Title: "invalid ladder of degrade",
			Cause: "Each step reduces the work for a live source: another model for a model stage, another size for a preprocess stage, or fewer frames. The pipeline takes a step when results are later than slo.latencyP95, when frames are lost, or because of heat and power.",
			Fix:   "let each step reduce one thing below the step before",
			Wrong: frames + exampleModel[:len(exampleModel)-1] + `, slo: latencyP95: "100ms", degrade: ladder: [{fps: 60}]}`,
			Right: frames + exampleModel[:len(exampleModel)-1] + `, slo: latencyP95: "100ms", degrade: ladder: [{fps: 15}]}`,
			See:   "yoctune schema Degrade",
			run:   checkDegradationLadder,
		},
	}
}

// reportOutside reports a number that is outside low to high, without low itself where
// open, and whether it is.
func (s *subject) reportOutside(d config.Decimal, low, high string, open bool) bool {
	v, ok := new(big.Rat).SetString(d.Text)
	if !ok {
		return d.IsSet() // not a decimal: the schema check reports it
	}
	l, _ := new(big.Rat).SetString(low)
	h, _ := new(big.Rat).SetString(high)
	if c := v.Cmp(l); c < 0 || c == 0 && open || v.Cmp(h) > 0 {
		s.reportAt(d, d.Show(), "", "%s is %s, outside the range from %s to %s", d.Key(), d.Text, low, high)
		return true
	}
	return false
}

func checkPipelineRange(s *subject) {
	s.reportFaults(pipeline.Range)
	for c, p := range s.pipelines() {
		if u := c.Utilisation; !s.reportOutside(u, "0", "1", true) && u.IsSet() && !hasBatches(p) && !p.Source.Live {
			s.reportAt(u, u.Show(), "give a model batch.buckets", "pipeline %s: utilisation is kept by the size of batches, and no stage has any; only a live source skips frames for it", c.Key())
		}
		if fps := c.Source.FPS; fps.IsSet() && (p.Source.FPSNum < 1 || p.Source.FPSDen < 1) {
			s.reportAt(fps, fps.Show(), `write frames a second, such as 30 or "30000/1001"`, "pipeline %s: %s is not a rate", c.Key(), fps.Text)
		}
		for _, st := range p.Stages {
			s.checkStageRange(c.Stages.Get(st.ID), st, p.Source)
		}
	}
}

// checkStageRange checks what belongs to one kind of stage.
func (s *subject) checkStageRange(c *config.Stage, st plan.PipelineStage, src plan.PipelineSource) {
	s.reportOutside(c.Threshold, "0", "1", false)
	s.reportOutside(c.IoU, "0", "1", false)
	s.reportOutside(c.Area, "0", "1", false)
	if st.Preprocess != nil || st.ROI != nil {
		for _, std := range c.Std.Items {
			if v, ok := new(big.Rat).SetString(std.Text); ok && v.Sign() == 0 {
				s.reportAt(std, std.Show(), "use 1 to leave a channel as it is", "stage %s: a channel cannot be divided by 0", st.ID)
				break
			}
		}
	}
	if st.Preprocess != nil {
		if crop := st.Preprocess.Crop; crop != nil && src.Width > 0 && src.Height > 0 && (crop.X+crop.Width > src.Width || crop.Y+crop.Height > src.Height) {
			s.reportAt(c.Crop, fmt.Sprintf("%dx%d at %d,%d", crop.Width, crop.Height, crop.X, crop.Y), "", "stage %s: the region is not inside a frame of %dx%d", st.ID, src.Width, src.Height)
		}
	}
	if st.ROI != nil && c.Only.IsSet() {
		if len(c.Only.Items) == 0 {
			s.reportAt(c.Only, "[]", "leave it out for boxes of all classes, or list classes", "stage %s: no box would be cropped", st.ID)
		}
		for i, class := range c.Only.Items {
			if slices.Contains(st.ROI.Only[:i], class.Value) {
				s.reportAt(class, class.Show(), "remove it", "stage %s: class %d is listed twice", st.ID, class.Value)
			}
		}
	}
	if st.Model != nil && c.Providers.IsSet() {
		if len(c.Providers.Items) == 0 {
			s.reportAt(c.Providers, "[]", `leave it out for the CPU, or list "tensorrt", "cuda" or "cpu"`, "stage %s: no provider may run the model", st.ID)
		}
		for i, provider := range c.Providers.Items {
			if slices.Contains(st.Model.Providers[:i], provider.Text) {
				s.reportAt(provider, provider.Show(), "", "stage %s: %s is tried once", st.ID, provider.Text)
			}
		}
	}
}

// hasBatches reports whether a stage works on several frames at once.
func hasBatches(p plan.Pipeline) bool {
	for k := range p.Stages {
		if pipeline.LargestBatch(p.Stages, k) > 1 {
			return true
		}
	}
	return false
}

func checkModelBuckets(s *subject) {
	for c, p := range s.pipelines() {
		for _, st := range p.Stages {
			if st.Model == nil || st.Model.Batch == nil {
				continue
			}
			if sizes := st.Model.Batch.Buckets; !pipeline.ValidBuckets(st.Model.Batch) {
				s.reportAt(c.Stages.Get(st.ID).Batch.Buckets, fmt.Sprint(sizes), "", "stage %s: batches of %v", st.ID, sizes)
			}
		}
	}
}

func checkDegradationLadder(s *subject) {
	for c, p := range s.pipelines() {
		d, ladder := p.Degrade, c.Degrade.Ladder
		switch {
		case d == nil:
			continue
		case !p.Source.Live && !pipeline.IsServed(&p.Source):
			s.reportAt(ladder, "", "declare the source live: true, or remove degrade", "pipeline %s: only a live source can be degraded; another waits", c.Key())
			continue
		case len(d.Ladder) == 0:
			s.reportAt(ladder, "[]", "add a step, such as {fps: 15}", "pipeline %s: the ladder has no steps", c.Key())
			continue
		case len(d.Ladder) > pipeline.MaxLadder:
			s.reportAt(ladder, "", "", "pipeline %s: the ladder has %d steps, and at most %d are taken", c.Key(), len(d.Ladder), pipeline.MaxLadder)
			continue
		}
		if (p.SLO == nil || p.SLO.LatencyP95 == 0) && d.Headroom == 0 && d.Power == 0 {
			v := s.raise(ladder, "pipeline %s: without slo.latencyP95 the ladder moves only when frames are lost or the device is too hot", c.Key())
			v.Severity, v.Help = diag.Warning, `set the objective: slo: latencyP95: "100ms"`
		}
		rate := 0
		if p.Source.FPSDen > 0 {
			rate = p.Source.FPSNum / p.Source.FPSDen
		}
		for i, step := range d.Ladder {
			ladderStep{s, c.Key(), i + 1, ladder.Items[i], step, p.Stages}.check(rate)
			if step.FPS > 0 {
				rate = step.FPS
			}
		}
	}
}

// ladderStep is one step of a ladder under a rule.
type ladderStep struct {
	*subject
	pipeline string
	number   int
	written  config.DegradeStep
	step     plan.DegradeStep
	stages   []plan.PipelineStage
}

// reportStep reports the rule at a part of the step.
func (l ladderStep) reportStep(part config.Part, got, help, format string, args ...any) {
	l.reportAt(part, got, help, "pipeline %s: step %d of the ladder "+format, append([]any{l.pipeline, l.number}, args...)...)
}

// check checks the step; rate is that of the one before, 0 where it is not known.
func (l ladderStep) check(rate int) {
	step := l.step
	if step.FPS == 0 && len(step.Models) == 0 && len(step.Sizes) == 0 {
		l.reportStep(l.written, "", "give it fps, models or sizes", "does nothing")
	}
	if step.FPS > 0 && rate > 0 && step.FPS >= rate {
		l.reportStep(l.written.FPS, l.written.FPS.Show(), "", "has %d frames a second, and before it there are %d", step.FPS, rate)
	}
	for _, m := range step.Models {
		l.checkStage(l.written.Models.Get(m.Stage), pipeline.LadderModels)
	}
	for _, size := range step.Sizes {
		l.checkStage(l.written.Sizes.Get(size.Stage), pipeline.LadderSizes)
	}
}

// checkStage checks that the stage which a field of the step changes exists and is of a
// kind that the field changes.
func (l ladderStep) checkStage(change config.Part, field string) {
	id := change.Where().Key()
	var names []string
	for _, st := range l.stages {
		if k := pipeline.StageOf(st.Kind); k != nil && k.Ladder == field {
			names = append(names, st.ID)
		}
	}
	if !slices.Contains(names, id) {
		l.reportStep(change, id, diag.DidYouMean(id, names), "changes %s, which is not a %s stage", id, pipeline.KindChangedBy(field))
	}
}
