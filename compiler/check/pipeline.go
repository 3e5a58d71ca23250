package check

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/check/budget"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/schema/plan"
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
			Cause: "Stages form one line. Frames become tensors in preprocess, a model takes a tensor and gives one, postprocess takes a model's tensor and gives results, which the sink takes.",
			Fix:   "connect source, preprocess, model and postprocess in that order",
			Wrong: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "source", path: "model.onnx"}}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f", path: "model.onnx"}, b: {kind: "postprocess", input: "m", decode: "detect"}}}`,
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
			ID: "pipeline-source", Severity: diag.Error, Firm: true,
			Title: "the source does not give this format",
			Cause: "Cameras give nv12, i420, yuyv, uyvy, grey or mjpeg; a ring and a synthetic picture are frames of pixels; decoders are for mjpeg.",
			Fix:   "choose a format that the kind of source has",
			Wrong: `pipelines: p: {source: {kind: "v4l2", path: "/dev/v4l/by-path/platform-3610000.usb-usb-0:2.1:1.0-video-index0", format: "y4m"}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			Right: `pipelines: p: {source: {kind: "v4l2", path: "/dev/v4l/by-path/platform-3610000.usb-usb-0:2.1:1.0-video-index0", format: "yuyv", width: 1280, height: 720}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			run:   pipelineSource,
		},
		{
			ID: "camera-node", Severity: diag.Warning,
			Title: "the camera is named by a number that may change",
			Cause: "Video devices are numbered as they are found: at the next start, or when a camera is plugged in again while somebody still holds it, it is another number, or another camera has this one.",
			Fix:   "name it by its socket: ls -l /dev/v4l/by-path on the device says how",
			Wrong: `pipelines: p: {source: {kind: "v4l2", path: "/dev/video0", format: "yuyv", width: 1280, height: 720}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			Right: `pipelines: p: {source: {kind: "v4l2", path: "/dev/v4l/by-path/platform-3610000.usb-usb-0:2.1:1.0-video-index0", format: "yuyv", width: 1280, height: 720}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			See:   "systemd, 60-persistent-v4l.rules",
			run:   cameraNode,
		},
		{
			ID: "source-package", Severity: diag.Warning,
			Title: "nothing brings the program that gives the frames",
			Cause: "A source of kind command or rtsp starts a program on the device. No package of the configuration brings it; where another layer does, this may be ignored.",
			Fix:   "install it with packages",
			Wrong: `pipelines: p: {source: {kind: "rtsp", url: "rtsp://192.0.2.7/1", via: "ffmpeg", format: "nv12", width: 1280, height: 720}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			Right: `{packages: ffmpeg: "install", pipelines: p: {source: {kind: "rtsp", url: "rtsp://192.0.2.7/1", via: "ffmpeg", format: "nv12", width: 1280, height: 720}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}}`,
			run:   sourcePackage,
		},
		{
			ID: "custom-stage", Severity: diag.Error, Firm: true,
			Title: "what does the stage's work is not said",
			Cause: "A custom stage is a plug-in or a program, one of the two. Only a plug-in can run inside the pipeline's process.",
			Fix:   "give either plugin or exec",
			Wrong: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: own: {kind: "custom", input: "source", exec: ["/usr/bin/own"], inside: true}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: own: {kind: "custom", input: "source", exec: ["/usr/bin/own"]}}`,
			run:   customStage,
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

// sourceFormats are the formats that a kind of source cannot give.
func sourceFormats(kind string) []string {
	return map[string][]string{
		"v4l2": {"rgb", "bgr", "y4m"}, "shm": {"mjpeg", "y4m"}, "synthetic": {"mjpeg", "y4m"},
	}[kind]
}

func pipelineSource(s *subject) {
	for name, p := range s.Plan.Pipelines {
		src, path := p.Source, at("pipelines", name, "source")
		if slices.Contains(sourceFormats(src.Kind), src.Format) {
			s.finding(nil, append(path, "format"), src.Format, "", "pipeline %s: a source of kind %s does not give %s", name, src.Kind, src.Format)
		}
		if src.Decoders > 0 && src.Format != "mjpeg" {
			s.finding(nil, append(path, "decoders"), "", "", "pipeline %s: decoders are for mjpeg, and frames are %s", name, src.Format)
		}
		if n := s.Node.Get("pipelines").Get(name).At("source", "kind"); n.Word() == "rtsp" && slices.Contains([]string{"rgb", "bgr", "mjpeg", "y4m"}, src.Format) {
			s.finding(nil, append(path, "format"), src.Format, "choose nv12", "pipeline %s: a stream of the network is decoded to nv12, i420, yuyv, uyvy or grey", name)
		}
	}
}

func cameraNode(s *subject) {
	for name, p := range s.Plan.Pipelines {
		if number, ok := strings.CutPrefix(p.Source.Path, "/dev/video"); ok && p.Source.Kind == "v4l2" && strings.Trim(number, "0123456789") == "" {
			s.finding(nil, at("pipelines", name, "source"), p.Source.Path, "", "pipeline %s: %s is whichever camera is found at that place", name, p.Source.Path)
		}
	}
}

// sourcePrograms are programs that give frames, and the packages that bring them.
func sourcePrograms(program string) []string {
	return map[string][]string{
		"ffmpeg":         {"ffmpeg"},
		"gst-launch-1.0": {"gstreamer1.0", "gstreamer1.0-plugins-base", "gstreamer1.0-plugins-good", "gstreamer1.0-plugins-nvvidconv", "gstreamer1.0-plugins-nvvideo4linux2"},
	}[program]
}

func sourcePackage(s *subject) {
	packages := s.Node.Get("packages")
	for name, p := range s.Plan.Pipelines {
		if p.Source.Kind != "command" || len(p.Source.Exec) == 0 {
			continue
		}
		program := path.Base(p.Source.Exec[0])
		brings := sourcePrograms(program)
		if len(brings) == 0 || slices.ContainsFunc(brings, func(b string) bool { return packages.Get(b) != nil }) {
			continue
		}
		s.finding(nil, at("pipelines", name, "source"), "", "add packages: "+strconv.Quote(brings[len(brings)-1])+": \"install\"",
			"pipeline %s starts %s, which %s brings", name, program, strings.Join(brings, ", "))
	}
}

func customStage(s *subject) {
	for name, p := range s.Plan.Pipelines {
		for _, st := range p.Stages {
			c := st.Custom
			switch {
			case c == nil:
			case (c.Plugin == "") == (len(c.Exec) == 0):
				s.finding(nil, at("pipelines", name, "stages", st.ID), "", "", "stage %s has either plugin or exec", st.ID)
			case c.Inside && c.Plugin == "":
				s.finding(nil, at("pipelines", name, "stages", st.ID), "", "leave inside out", "stage %s is a program, which has a process of its own", st.ID)
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
		if !s.line(name, p) {
			continue
		}
		kinds := map[string]string{"source": "source"}
		for _, st := range p.Stages {
			kinds[st.ID] = st.Kind
		}
		for _, st := range p.Stages {
			from := kinds[st.Input]
			fits := map[string]string{"preprocess": "source", "model": "preprocess", "postprocess": "model", "track": "postprocess"}[st.Kind]
			chain := st.Kind == "model" && from == "model"
			raw := st.Post != nil && st.Post.Kind == "raw" && from == "preprocess"
			own := st.Kind == "custom" // takes whatever there is
			after := from == "custom" && (st.Kind == "model" || st.Kind == "postprocess")
			if from != fits && !chain && !raw && !own && !after {
				s.finding(nil, at("pipelines", name, "stages", st.ID, "input"), st.Input, "", "%s stage %s takes its input from a %s", st.Kind, st.ID, from)
			}
			if p := st.Preprocess; p != nil && (len(p.Mean) != 3 || len(p.Std) != 3) {
				field := "mean"
				if len(p.Mean) == 3 {
					field = "std"
				}
				s.finding(nil, at("pipelines", name, "stages", st.ID, field), "", "write one value for each of the three channels", "stage %s: mean and std have three values", st.ID)
			}
		}
	}
}

// line checks that the stages form one line from the source to results. It is false
// where that is so wrong that nothing can be said of single stages.
func (s *subject) line(name string, p plan.Pipeline) bool {
	stages := at("pipelines", name, "stages")
	if declared := s.Node.At(stages...); len(declared.Members()) != len(p.Stages) {
		return false // they have no order, which is said
	}
	if len(p.Stages) == 0 {
		s.finding(nil, stages, "", "add a preprocess, a model and a postprocess stage", "pipeline %s has no stages", name)
		return false
	}
	for _, st := range p.Stages {
		if st.ID == "source" || st.ID == "sink" {
			s.finding(nil, append(stages, st.ID), st.ID, "give the stage another name", "pipeline %s: %s is the name of an end, no stage's", name, st.ID)
			return false
		}
	}
	if one, other := fork(p); one != "" {
		input := at("pipelines", name, "stages", other, "input")
		s.finding(nil, input, s.Node.At(input...).Show(), "let one take its input from the other, or declare two pipelines", "stages %s and %s take the same input: stages form one line", one, other)
		return false
	}
	last := p.Stages[len(p.Stages)-1]
	if results := last.Post != nil || last.Track != nil || last.Custom != nil && len(last.Custom.Shape) == 0; !results {
		s.finding(nil, append(stages, last.ID), last.Kind, "add a postprocess stage that takes its input from "+last.ID, "pipeline %s ends with a %s stage, which gives no results", name, last.Kind)
	}
	return true
}

// fork finds two stages that take the same input, "" when there are none.
func fork(p plan.Pipeline) (one, other string) {
	takers := map[string]string{}
	for _, st := range p.Stages {
		if first := takers[st.Input]; first != "" {
			return first, st.ID
		}
		takers[st.Input] = st.ID
	}
	return "", ""
}

func pipelineFrame(s *subject) {
	for name, p := range s.Plan.Pipelines {
		src := p.Source
		if says := src.Format == "y4m" || src.Format == "mjpeg" && src.Kind != "v4l2"; !says && (src.Width == 0 || src.Height == 0) {
			s.finding(nil, at("pipelines", name, "source"), "", "", "pipeline %s: frames of format %s have no size of their own", name, src.Format)
		}
		for field, size := range map[string]int{"width": src.Width, "height": src.Height} {
			if size%2 != 0 {
				s.finding(nil, at("pipelines", name, "source", field), strconv.Itoa(size), "", "pipeline %s: width and height of %s frames are even", name, src.Format)
				break
			}
		}
	}
}

func pipelinePath(s *subject) {
	for name, p := range s.Plan.Pipelines {
		paths := []string{p.Source.Path, p.Sink.Path}
		for _, st := range p.Stages {
			if st.Custom != nil {
				paths = append(paths, st.Custom.Plugin)
			}
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
