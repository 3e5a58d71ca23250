package check

import (
	"path"
	"strings"

	"github.com/yoctune/yoctune/compiler/budget"
	"github.com/yoctune/yoctune/compiler/diag"
)

func pipelineRules() []Rule {
	return []Rule{
		{
			ID: "pipeline-model", Severity: diag.Error, Firm: true,
			Title: "the model is not named",
			Cause: "A model stage needs a file or a digest, one of the two at least, to find its model.",
			Fix:   "add path or sha256",
			Wrong: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f"}}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f", path: "model.onnx"}}}`,
			run:   pipelineModel,
		},
		{
			ID: "model-format", Severity: diag.Error,
			Title: "the model was built for one device",
			Cause: "An engine of TensorRT runs only with the version and on the chip it was built for; after an update, or on another module, it does not load.",
			Fix:   "give the ONNX file: it is made ready on the device it runs on",
			Wrong: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f", path: "det_fp16.plan"}}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f", path: "det.onnx"}}}`,
			See:   "TensorRT Developer Guide, version compatibility",
			run:   modelFormat,
		},
		{
			ID: "pipeline-shape", Severity: diag.Error, Firm: true,
			Title: "the stages do not fit each other",
			Cause: "Frames become tensors in preprocess, a model takes a tensor and gives one, postprocess takes a model's tensor.",
			Fix:   "connect source, preprocess, model and postprocess in that order",
			Wrong: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "source", path: "model.onnx"}}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f", path: "model.onnx"}}}`,
			run:   pipelineShape,
		},
		{
			ID: "pipeline-frame", Severity: diag.Error, Firm: true,
			Title: "the size of the frames is not known",
			Cause: "Only a y4m stream says its own size.",
			Fix:   "add width and height, both even",
			Wrong: `pipelines: p: {source: {kind: "file", path: "clip.nv12", format: "nv12"}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.nv12", format: "nv12", width: 1920, height: 1080}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			run:   pipelineFrame,
		},
		{
			ID: "pipeline-path", Severity: diag.Error, Firm: true,
			Title: "a path of a pipeline leaves its folder",
			Cause: "Relative paths are looked up beside the plan; \"..\" would reach elsewhere on the device.",
			Fix:   "use an absolute path, or one without \"..\"",
			Wrong: `pipelines: p: {source: {kind: "file", path: "../clip.y4m", format: "y4m"}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			run:   pipelinePath,
		},
		{
			ID: "pipeline-device", Severity: diag.Error, Firm: true,
			Title: "the stage does not run on the GPU",
			Cause: "Preprocess and model stages have a device; postprocess reads what they give on the CPU. A fallback is what a stage of the GPU does without it.",
			Fix:   "remove device from postprocess stages, and fallback where the device is not gpu",
			Wrong: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64, fallback: "drop"}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64, device: "gpu", fallback: "drop"}}`,
			run:   pipelineDevice,
		},
	}
}

func pipelineModel(s *subject) {
	for name, p := range s.Plan.Pipelines {
		for _, st := range p.Stages {
			if st.Model != nil && st.Model.Path == "" && st.Model.SHA256 == "" {
				s.finding(nil, at("pipelines", name, "stages", st.ID), "", "", "stage %s names no model", st.ID)
			}
		}
	}
}

func pipelineDevice(s *subject) {
	for name, p := range s.Plan.Pipelines {
		for _, st := range p.Stages {
			path := at("pipelines", name, "stages", st.ID)
			switch {
			case st.Device != "" && st.Kind == "postprocess":
				s.finding(nil, path, "", "", "stage %s is a postprocess and runs on the CPU", st.ID)
			case st.Fallback != "" && st.Device == "":
				s.finding(nil, path, "", "", "stage %s has a fallback and does not run on the GPU", st.ID)
			}
		}
	}
}

func pipelineShape(s *subject) {
	for name, p := range s.Plan.Pipelines {
		kinds := map[string]string{"source": "source"}
		for _, st := range p.Stages {
			kinds[st.ID] = st.Kind
		}
		for _, st := range p.Stages {
			from := kinds[st.Input]
			fits := map[string]string{"preprocess": "source", "model": "preprocess", "postprocess": "model", "track": "postprocess"}[st.Kind]
			chain := st.Kind == "model" && from == "model"
			raw := st.Post != nil && st.Post.Kind == "raw" && from == "preprocess"
			if from != fits && !chain && !raw {
				s.finding(nil, at("pipelines", name, "stages", st.ID, "input"), st.Input, "", "%s stage %s takes its input from a %s", st.Kind, st.ID, from)
			}
			if p := st.Preprocess; p != nil && (len(p.Mean) != 3 || len(p.Std) != 3) {
				s.finding(nil, at("pipelines", name, "stages", st.ID), "", "write one value for each of the three channels", "stage %s: mean and std have three values", st.ID)
			}
		}
	}
}

func pipelineFrame(s *subject) {
	for name, p := range s.Plan.Pipelines {
		src := p.Source
		if src.Format != "y4m" && (src.Width == 0 || src.Height == 0) {
			s.finding(nil, at("pipelines", name, "source"), "", "", "pipeline %s: frames of format %s have no size of their own", name, src.Format)
		}
		if src.Width%2 != 0 || src.Height%2 != 0 {
			s.finding(nil, at("pipelines", name, "source"), "", "", "pipeline %s: width and height of %s frames are even", name, src.Format)
		}
	}
}

func pipelinePath(s *subject) {
	for name, p := range s.Plan.Pipelines {
		paths := []string{p.Source.Path, p.Sink.Path}
		for _, st := range p.Stages {
			if st.Model != nil {
				for _, m := range budget.Members(st.Model) {
					paths = append(paths, m.Path)
				}
			}
			if st.Post != nil {
				paths = append(paths, st.Post.Labels)
			}
		}
		if p.Degrade != nil {
			for _, step := range p.Degrade.Ladder {
				for _, m := range step.Models {
					paths = append(paths, m.Path)
				}
			}
		}
		for _, file := range paths {
			for part := range strings.SplitSeq(file, "/") {
				if part == ".." {
					s.finding(nil, at("pipelines", name), file, "", "pipeline %s: path %q leaves its folder", name, file)
					break
				}
			}
		}
	}
}

func modelFormat(s *subject) {
	for _, p := range s.Node.Get("pipelines").Members() {
		for _, st := range p.Value.Get("stages").Members() {
			n := st.Value.Get("path")
			if n == nil || st.Value.Get("kind").Word() != "model" {
				continue
			}
			switch strings.ToLower(path.Ext(n.Text)) {
			case ".plan", ".engine", ".trt", ".tensorrt":
				s.finding(n, at("pipelines", p.Name, "stages", st.Name, "path"), n.Show(), "", "%s is an engine for one device and one TensorRT; release %s has TensorRT %s", n.Text, s.Release.Name, s.Release.TensorRT)
			}
		}
	}
}
