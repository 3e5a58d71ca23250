package check

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// What the runtime would refuse to start with, said where it is written.

func stageRules() []Rule {
	const frames = `pipelines: p: {source: {kind: "v4l2", path: "/dev/v4l/by-path/a", format: "nv12", width: 1280, height: 720, fps: 30}, stages: {f: {kind: "preprocess", input: "source", width: 640, height: 640}, `
	return []Rule{
		{
			ID: "pipeline-range", Severity: diag.Error, Firm: true,
			Title: "a value of a stage is out of its range",
			Cause: "Confidences, overlaps and utilisation are parts, from 0 to 1; a channel is divided by its std; a region lies inside the frame. The pipeline would not start.",
			Fix:   "choose a value within the range",
			Wrong: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx"}, b: {kind: "postprocess", input: "m", decode: "detect", threshold: 40}}}`,
			Right: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx"}, b: {kind: "postprocess", input: "m", decode: "detect", threshold: 0.4}}}`,
			run:   pipelineRange,
		},
		{
			ID: "model-buckets", Severity: diag.Error, Firm: true,
			Title: "the sizes of batches do not ascend from 1",
			Cause: "Only sizes that are listed are ever run, and what does not fill one is run in smaller ones: without 1 a single frame could not be.",
			Fix:   "list ascending sizes that begin with 1, such as [1, 2, 4]",
			Wrong: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "other.onnx", batch: buckets: [2, 4]}, b: {kind: "postprocess", input: "m", decode: "detect"}}}`,
			Right: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "other.onnx", batch: buckets: [1, 2, 4]}, b: {kind: "postprocess", input: "m", decode: "detect"}}}`,
			See:   "triton-inference-server/server#8141",
			run:   modelBuckets,
		},
		{
			ID: "degrade-ladder", Severity: diag.Error, Firm: true,
			Title: "the ladder cannot be climbed down",
			Cause: "Each step does with less of what a live source gives: another model for a model stage, another size for a preprocess stage, fewer frames. Steps are taken when results are later than slo.latencyP95, when frames are lost, or by heat and power.",
			Fix:   "give each step one thing that is less than before",
			Wrong: frames + exampleModel[:len(exampleModel)-1] + `, slo: latencyP95: "100ms", degrade: ladder: [{fps: 60}]}`,
			Right: frames + exampleModel[:len(exampleModel)-1] + `, slo: latencyP95: "100ms", degrade: ladder: [{fps: 15}]}`,
			See:   "docs/pipelines.md: Under load",
			run:   degradeLadder,
		},
	}
}

// between reports what is no number from low to high, without low itself where open, and
// whether it is one.
func (s *subject) between(n *load.Node, where []string, low, high string, open bool) bool {
	if n == nil {
		return true
	}
	v, ok := new(big.Rat).SetString(n.Text)
	if !ok {
		return false // no decimal, which the language says
	}
	l, _ := new(big.Rat).SetString(low)
	h, _ := new(big.Rat).SetString(high)
	if c := v.Cmp(l); c < 0 || c == 0 && open || v.Cmp(h) > 0 {
		s.finding(n, where, n.Show(), "", "%s is %s, and goes from %s to %s", where[len(where)-1], n.Text, low, high)
		return false
	}
	return true
}

func pipelineRange(s *subject) {
	s.faults(pipeline.Range)
	s.promised(func(name string, n *load.Node, p plan.Pipeline) {
		where := func(fields ...string) []string { return append(at("pipelines", name), fields...) }
		if u := n.Get("utilisation"); s.between(u, where("utilisation"), "0", "1", true) && u != nil && !batches(p) {
			s.finding(u, where("utilisation"), u.Show(), "give a model batch.buckets", "pipeline %s: utilisation is kept by the size of batches, and no stage has any", name)
		}
		if fps := n.At("source", "fps"); fps != nil && (p.Source.FPSNum < 1 || p.Source.FPSDen < 1) {
			s.finding(fps, where("source", "fps"), fps.Show(), `write frames a second, such as 30 or "30000/1001"`, "pipeline %s: %s is no rate", name, fps.Text)
		}
		for _, st := range p.Stages {
			stage := n.At("stages", st.ID)
			where := func(fields ...string) []string { return append(at("pipelines", name, "stages", st.ID), fields...) }
			for _, field := range []string{"threshold", "iou"} {
				s.between(stage.Get(field), where(field), "0", "1", false)
			}
			if std := stage.Get("std"); std != nil && st.Preprocess != nil {
				for _, it := range std.Items {
					if v, ok := new(big.Rat).SetString(it.Text); ok && v.Sign() == 0 {
						s.finding(it, where("std"), it.Show(), "use 1 to leave a channel as it is", "stage %s: a channel cannot be divided by 0", st.ID)
						break
					}
				}
			}
			s.stageRange(stage, where, st, p.Source)
		}
	})
}

// stageRange checks what belongs to one kind of stage.
func (s *subject) stageRange(stage *load.Node, where func(...string) []string, st plan.PipelineStage, src plan.PipelineSource) {
	switch {
	case st.Preprocess != nil && st.Preprocess.Crop != nil && src.Width > 0 && src.Height > 0:
		if c := st.Preprocess.Crop; c.X+c.Width > src.Width || c.Y+c.Height > src.Height {
			s.finding(stage.Get("crop"), where("crop"), fmt.Sprintf("%dx%d at %d,%d", c.Width, c.Height, c.X, c.Y), "", "stage %s: the region is not inside a frame of %dx%d", st.ID, src.Width, src.Height)
		}
	case st.Model != nil:
		list := stage.Get("providers")
		if list == nil {
			return
		}
		if len(list.Items) == 0 {
			s.finding(list, where("providers"), "[]", `leave it out for the CPU, or list "tensorrt", "cuda" or "cpu"`, "stage %s: nothing may run the model", st.ID)
		}
		for i, it := range list.Items {
			if slices.Contains(st.Model.Providers[:i], it.Text) {
				s.finding(it, where("providers"), it.Show(), "", "stage %s: %s is tried once", st.ID, it.Text)
			}
		}
	}
}

// batches reports whether a stage works on several frames at once.
func batches(p plan.Pipeline) bool {
	return slices.ContainsFunc(p.Stages, func(st plan.PipelineStage) bool { return pipeline.LargestBatch(&st) > 1 })
}

func modelBuckets(s *subject) {
	s.promised(func(name string, n *load.Node, p plan.Pipeline) {
		for _, st := range p.Stages {
			if st.Model == nil || st.Model.Batch == nil {
				continue
			}
			sizes := st.Model.Batch.Buckets
			ascend := len(sizes) > 0 && sizes[0] == 1
			for i := 1; i < len(sizes); i++ {
				ascend = ascend && sizes[i] > sizes[i-1]
			}
			if !ascend {
				list := n.At("stages", st.ID, "batch", "buckets")
				s.finding(list, at("pipelines", name, "stages", st.ID, "batch", "buckets"), fmt.Sprint(sizes), "", "stage %s: batches of %v", st.ID, sizes)
			}
		}
	})
}

func degradeLadder(s *subject) {
	s.promised(func(name string, n *load.Node, p plan.Pipeline) {
		d := p.Degrade
		if d == nil {
			return
		}
		list, where := n.At("degrade", "ladder"), at("pipelines", name, "degrade", "ladder")
		switch {
		case !p.Source.Live:
			s.finding(list, where, "", "declare the source live: true, or remove degrade", "pipeline %s: only a live source can do with less; another waits", name)
			return
		case len(d.Ladder) == 0:
			s.finding(list, where, "[]", "add a step, such as {fps: 15}", "pipeline %s: the ladder has no steps", name)
			return
		case len(d.Ladder) > pipeline.MaxLadder:
			s.finding(list, where, "", "", "pipeline %s: the ladder has %d steps, and at most %d are taken", name, len(d.Ladder), pipeline.MaxLadder)
			return
		}
		if (p.SLO == nil || p.SLO.LatencyP95 == 0) && d.Headroom == 0 && d.Power == 0 {
			v := s.diagnostic(list, where, "pipeline %s: without slo.latencyP95 the ladder moves only when frames are lost or the device is too hot", name)
			v.Severity, v.Help = diag.Warning, `say what is late: slo: latencyP95: "100ms"`
			s.report.Add(v)
		}
		rate := 0
		if p.Source.FPSDen > 0 {
			rate = p.Source.FPSNum / p.Source.FPSDen
		}
		for i, step := range d.Ladder {
			s.step(list.Items[i], where, name, i+1, step, p.Stages, rate)
			if step.FPS > 0 {
				rate = step.FPS
			}
		}
	})
}

// step checks one step of a ladder; rate is that of the one before, 0 where not known.
func (s *subject) step(n *load.Node, where []string, name string, number int, step plan.DegradeStep, stages []plan.PipelineStage, rate int) {
	if step.FPS == 0 && len(step.Models) == 0 && len(step.Sizes) == 0 {
		s.finding(n, where, "", "give it fps, models or sizes", "pipeline %s: step %d of the ladder does nothing", name, number)
	}
	if step.FPS > 0 && rate > 0 && step.FPS >= rate {
		s.finding(n.Get("fps"), where, n.Get("fps").Show(), "", "pipeline %s: step %d of the ladder has %d frames a second, and before it there are %d", name, number, step.FPS, rate)
	}
	changes := func(field, id string) {
		// A kind whose stages a field of the step changes.
		fits := func(st plan.PipelineStage) bool {
			k := pipeline.StageOf(st.Kind)
			return k != nil && k.Ladder == field
		}
		i := slices.IndexFunc(stages, func(st plan.PipelineStage) bool { return st.ID == id })
		if i >= 0 && fits(stages[i]) {
			return
		}
		var names []string
		for _, st := range stages {
			if fits(st) {
				names = append(names, st.ID)
			}
		}
		s.finding(n.At(field, id), where, id, diag.DidYouMean(id, names), "pipeline %s: step %d of the ladder changes %s, which is not a %s stage", name, number, id, pipeline.ChangedBy(field))
	}
	for _, m := range step.Models {
		changes(pipeline.LadderModels, m.Stage)
	}
	for _, z := range step.Sizes {
		changes(pipeline.LadderSizes, z.Stage)
	}
}
