package check

import (
	"bytes"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/check/budget"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/formats/gallery"
	"github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

func pipelineRules() []Rule {
	return []Rule{
		{
			ID: "pipeline-model", Severity: diag.Error, Firm: true,
			Title: "the model stage names no model",
			Cause: "A model stage needs a model, a file or a digest to find what it runs.",
			Fix:   "add model, path or sha256",
			Wrong: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f"}}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f", path: "model.onnx"}}}`,
			run:   checkPipelineModel,
		},
		{
			ID: "model-format", Severity: diag.Error,
			Title: "the model is an engine for one device",
			Cause: "A TensorRT engine runs only with the version and on the chip it was built for. After an update, or on another module, it does not load.",
			Fix:   "use the ONNX file: the device builds the engine for itself",
			Wrong: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f", path: "det_fp16.plan"}}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f", path: "det.onnx"}}}`,
			See:   "TensorRT Developer Guide, version compatibility",
			run:   checkModelFormat,
		},
		{
			ID: "model-archive", Severity: diag.Error, Firm: true,
			Title: "the member of an archive cannot be fetched",
			Cause: "bitbake fetches an archive by its address and digest, unpacks it by its name, and the recipe takes one member. sha256 is the digest of the member, which the device compares.",
			Fix:   "set uri to a .whl, .zip, .tar, .tar.gz, .tgz, .tar.bz2 or .tar.xz, with member, sha256 and archiveSha256",
			Wrong: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", uri: "https://example.com/models.whl", member: "models/yolo.onnx", sha256: "` + exampleSum + `"}, b: {kind: "postprocess", input: "m", decode: "detect"}}}`,
			Right: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", uri: "https://example.com/models.whl", member: "models/yolo.onnx", sha256: "` + exampleSum + `", archiveSha256: "` + exampleSum + `"}, b: {kind: "postprocess", input: "m", decode: "detect"}}}`,
			run:   checkModelArchive,
		},
		{
			ID: "pipeline-shape", Severity: diag.Error, Firm: true,
			Title: "the stages do not fit each other",
			Cause: "Stages form one line. preprocess makes tensors of frames, a model takes a tensor and gives one, and postprocess takes a model's tensor and gives results for the sink.",
			Fix:   "connect source, preprocess, model and postprocess in that order",
			Wrong: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "source", path: "model.onnx"}}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f", path: "model.onnx"}, b: {kind: "postprocess", input: "m", decode: "detect"}}}`,
			run:   checkPipelineShape,
		},
		{
			ID: "pipeline-frame", Severity: diag.Error, Firm: true,
			Title: "the size of the frames is unknown, or not that of the program's frames",
			Cause: "Only a y4m or mjpeg stream carries its own size. The frames of other formats are packed without padding, which GStreamer adds to rows that are not a multiple of four bytes.",
			Fix:   "add width and height",
			Wrong: `pipelines: p: {source: {kind: "file", path: "clip.nv12", format: "nv12"}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.nv12", format: "nv12", width: 1920, height: 1080}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			run:   checkPipelineFrame,
		},
		{
			ID: "pipeline-path", Severity: diag.Error, Firm: true,
			Title: "a path of a pipeline leaves its folder",
			Cause: `Relative paths start beside the plan, and ".." would lead elsewhere on the device.`,
			Fix:   "use an absolute path, or one without \"..\"",
			Wrong: `pipelines: p: {source: {kind: "file", path: "../clip.y4m", format: "y4m"}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			run:   checkPipelinePath,
		},
		{
			ID: "pipeline-source", Severity: diag.Error, Firm: true,
			Title: "the source does not give this format",
			Cause: "Cameras give nv12, i420, yuyv, uyvy, grey or mjpeg. A ring and a synthetic picture hold raw frames. Decoders are for mjpeg.",
			Fix:   "choose a format that the kind of source has",
			Wrong: `pipelines: p: {source: {kind: "v4l2", path: "/dev/v4l/by-path/platform-3610000.usb-usb-0:2.1:1.0-video-index0", format: "y4m"}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			Right: `pipelines: p: {source: {kind: "v4l2", path: "/dev/v4l/by-path/platform-3610000.usb-usb-0:2.1:1.0-video-index0", format: "yuyv", width: 1280, height: 720}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			run:   checkPipelineSource,
		},
		{
			ID: "camera-node", Severity: diag.Warning,
			Title: "the camera is named by a number that may change",
			Cause: "The kernel numbers video devices in the order in which it finds them. After a boot, or after a camera was plugged in again while a program still held it, the number may belong to another camera.",
			Fix:   "name it by its socket, as listed by ls -l /dev/v4l/by-path on the device",
			Wrong: `pipelines: p: {source: {kind: "v4l2", path: "/dev/video0", format: "yuyv", width: 1280, height: 720}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			Right: `pipelines: p: {source: {kind: "v4l2", path: "/dev/v4l/by-path/platform-3610000.usb-usb-0:2.1:1.0-video-index0", format: "yuyv", width: 1280, height: 720}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			See:   "systemd, 60-persistent-v4l.rules",
			run:   checkCameraNode,
		},
		{
			ID: "source-package", Severity: diag.Warning,
			Title: "no package provides the program of the source",
			Cause: "A source of kind command or rtsp starts a program on the device, and no package of the configuration provides it. Suppress the rule if another layer does.",
			Fix:   "install the program with packages",
			Wrong: `pipelines: p: {source: {kind: "rtsp", url: "rtsp://192.0.2.7/1", via: "ffmpeg", format: "nv12", width: 1280, height: 720}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}`,
			Right: `{packages: ffmpeg: "install", pipelines: p: {source: {kind: "rtsp", url: "rtsp://192.0.2.7/1", via: "ffmpeg", format: "nv12", width: 1280, height: 720}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64}}}`,
			run:   checkSourcePackage,
		},
		{
			ID: "custom-stage", Severity: diag.Error, Firm: true,
			Title: "settings of a stage contradict each other",
			Cause: "A custom stage is a plug-in or a program, and only a plug-in can run inside the pipeline's process. An input of a model has values or the tensor of a stage. Frames are batched for models with one input.",
			Fix:   "remove one of the two settings that are named",
			Wrong: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: own: {kind: "custom", input: "source", exec: ["/usr/bin/own"], inside: true}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: own: {kind: "custom", input: "source", exec: ["/usr/bin/own"]}}`,
			run:   checkCustomStage,
		},
		{
			ID: "map-expression", Severity: diag.Error, Firm: true,
			Title: "an expression of a map stage cannot be computed",
			Cause: "A map stage computes each element by expressions of names, functions, numbers, parentheses and + - * /. Those of all expressions become one kernel. p and q have one value for each channel.",
			Fix:   "correct the expression at the given column, or give p and q their values",
			Wrong: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, e: {kind: "map", input: "f", expressions: ["(x - p) * 2", "relo(x)"], p: [0.1, 0.2, 0.3]}, m: {kind: "model", input: "e", path: "model.onnx"}}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, e: {kind: "map", input: "f", expressions: ["(x - p) * 2", "relu(x)"], p: [0.1, 0.2, 0.3]}, m: {kind: "model", input: "e", path: "model.onnx"}}}`,
			See:   "yoctune schema MapStage",
			run:   func(s *subject) { s.reportFaults(pipeline.Expression) },
		},
		{
			ID: "pipeline-requests", Severity: diag.Error, Firm: true,
			Title: "callers cannot be answered as configured",
			Cause: "A source of requests is reached through a unix socket, and through TCP only with TLS and callers who prove themselves, or on the loopback address. Each request is answered for itself: nothing of one caller may reach another.",
			Fix:   "change the field at the marked line as the message says",
			Wrong: `pipelines: p: {source: {kind: "request", format: "tensor", shape: [1, 4], address: "192.0.2.7:8000"}, stages: m: {kind: "model", input: "source", path: "model.onnx"}}`,
			Right: `pipelines: p: {source: {kind: "request", format: "tensor", shape: [1, 4], address: "192.0.2.7:8443", tls: {certificate: "/etc/station/server.crt", key: "/etc/station/server.key", clientCA: "/etc/station/clients.crt"}}, stages: m: {kind: "model", input: "source", path: "model.onnx"}}`,
			See:   "yoctune schema Source",
			run:   func(s *subject) { s.reportFaults(pipeline.Requests) },
		},
		{
			ID: "match-gallery", Severity: diag.Error,
			Title: "the gallery of a match stage cannot be used",
			Cause: "A gallery is a safetensors file with a tensor of embeddings, a name for each, and the digest of the model that made them. Embeddings of another length or of another model cannot be compared, and a vector without a direction is similar to none.",
			Fix:   "make the gallery with the model of the pipeline",
			Wrong: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx"}, b: {kind: "match", input: "m", gallery: "broken.onnx"}}}`,
			Right: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx"}, b: {kind: "match", input: "m", gallery: "/data/staff.safetensors"}}}`,
			See:   "yoctune schema MatchStage",
			run:   checkGallery,
		},
		{
			ID: "gate-track", Severity: diag.Warning,
			Title: "tracks end while a gate skips frames",
			Cause: "A track ends when it has no box for maxLost. A gate lets no frame pass for up to maxAge while the picture does not change, so that an object which stands still gets a new number each time.",
			Fix:   "set repeat: true of the gate, or maxLost of the track stage to more than maxAge",
			Wrong: examplePipeline + `g: {kind: "gate", input: "source", maxAge: "5s"}, f: {kind: "preprocess", input: "g", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx"}, b: {kind: "postprocess", input: "m", decode: "detect"}, t: {kind: "track", input: "b"}}}`,
			Right: examplePipeline + `g: {kind: "gate", input: "source", maxAge: "5s"}, f: {kind: "preprocess", input: "g", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx"}, b: {kind: "postprocess", input: "m", decode: "detect"}, t: {kind: "track", input: "b", maxLost: "10s"}}}`,
			See:   "yoctune schema GateStage",
			run:   checkGateTrack,
		},
		{
			ID: "pipeline-device", Severity: diag.Error, Firm: true,
			Title: "the stage does not run on the GPU",
			Cause: "Preprocess and model stages have a device. postprocess runs on the CPU. A fallback applies only to a stage that runs on the GPU.",
			Fix:   "remove device from postprocess stages, and fallback where the device is not gpu",
			Wrong: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64, fallback: "drop"}}`,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.y4m", format: "y4m"}, stages: f: {kind: "preprocess", input: "source", width: 64, height: 64, device: "gpu", fallback: "drop"}}`,
			run:   checkPipelineDevice,
		},
	}
}

func checkPipelineModel(s *subject) {
	for c, p := range s.pipelines() {
		for _, st := range p.Stages {
			if st.Model != nil && st.Model.Path == "" && st.Model.SHA256 == "" && !c.Stages.Get(st.ID).Model.IsSet() {
				s.reportAt(c.Stages.Get(st.ID), "", "", "stage %s names no model", st.ID)
			}
		}
	}
}

// archived is a model that may be the member of an archive.
type archived struct {
	uri, member, sum config.String
}

// archivedModels lists the models of a pipeline.
func archivedModels(c *config.Pipeline) []archived {
	var all []archived
	for _, st := range c.Stages.Sorted() {
		all = append(all, archived{st.URI, st.Member, st.ArchiveSHA256})
		for _, m := range st.Ensemble.Models.Sorted() {
			all = append(all, archived{m.URI, m.Member, m.ArchiveSHA256})
		}
	}
	for _, step := range c.Degrade.Ladder.Items {
		for _, m := range step.Models.Sorted() {
			all = append(all, archived{m.URI, m.Member, m.ArchiveSHA256})
		}
	}
	return all
}

func checkModelArchive(s *subject) {
	for c := range s.pipelines() {
		for _, m := range archivedModels(c) {
			member := m.member
			switch {
			case !member.IsSet() && m.sum.IsSet():
				s.reportAt(m.sum, "", "", "pipeline %s: archiveSha256 is the digest of an archive, and no member of it is named", c.Key())
			case !member.IsSet():
			case !m.uri.IsSet():
				s.reportAt(member, member.Show(), "", "pipeline %s: %s is the member of an archive without an address", c.Key(), member.Text)
			case path.IsAbs(member.Text) || path.Clean(member.Text) != member.Text || member.Text == "." || strings.HasPrefix(member.Text, "../"):
				s.reportAt(member, member.Show(), "write its path as the archive lists it", "pipeline %s: %s is not the clean path of a member", c.Key(), member.Text)
			case (plan.ModelFile{URI: m.uri.Text}).ArchiveType() == "":
				s.reportAt(m.uri, m.uri.Show(), "", "pipeline %s: bitbake does not unpack %s", c.Key(), path.Base(m.uri.Text))
			case !m.sum.IsSet():
				s.reportAt(member, member.Show(), "add archiveSha256, the digest of the archive", "pipeline %s: the archive of %s has no digest", c.Key(), member.Text)
			}
		}
	}
}

func checkPipelineSource(s *subject) {
	for c, p := range s.pipelines() {
		kind, ok := pipeline.SourceOf(c.Source.Kind.Text)
		if ok && !kind.OffersFormat(p.Source.Format) {
			s.reportAt(c.Source.Format, p.Source.Format, "choose one of "+strings.Join(kind.Formats, ", "), "pipeline %s: a source of kind %s does not give %s", c.Key(), kind.Kind, p.Source.Format)
		}
		if p.Source.Decoders > 0 && p.Source.Format != pipeline.MJPEG {
			s.reportAt(c.Source.Decoders, "", "", "pipeline %s: decoders are for mjpeg, and frames are %s", c.Key(), p.Source.Format)
		}
	}
}

func checkCameraNode(s *subject) {
	for c, p := range s.pipelines() {
		if number, ok := strings.CutPrefix(p.Source.Path, "/dev/video"); ok && p.Source.Kind == pipeline.CameraSource.Kind && strings.Trim(number, "0123456789") == "" {
			s.reportAt(c.Source, p.Source.Path, "", "pipeline %s: the kernel numbers cameras in any order, so %s may be another camera after a boot", c.Key(), p.Source.Path)
		}
	}
}

// packagesOf lists the packages that provide a program for sources; nil for other programs.
func packagesOf(program string) []string {
	return map[string][]string{
		"ffmpeg":         {"ffmpeg"},
		"gst-launch-1.0": {"gstreamer1.0", "gstreamer1.0-plugins-base", "gstreamer1.0-plugins-good", "gstreamer1.0-plugins-nvvidconv", "gstreamer1.0-plugins-nvvideo4linux2"},
	}[program]
}

// pluginOf returns the package of NVIDIA's plugin with an element of a GStreamer pipeline; ""
// when there is none (meta-tegra recipes-multimedia/gstreamer).
func pluginOf(exec []string) string {
	for _, element := range []string{"nvarguscamerasrc", "nvv4l2camerasrc", "nvcompositor", "nvdrmvideosink", "nvjpegenc", "nvjpegdec", "nvtee"} {
		if slices.ContainsFunc(exec, func(word string) bool { return slices.Contains(strings.Fields(word), element) }) {
			return "gstreamer1.0-plugins-" + strings.TrimSuffix(strings.TrimSuffix(element, "enc"), "dec")
		}
	}
	return ""
}

func checkSourcePackage(s *subject) {
	for c, p := range s.pipelines() {
		if kind, _ := pipeline.SourceOf(p.Source.Kind); !kind.Program || len(p.Source.Exec) == 0 {
			continue
		}
		program := path.Base(p.Source.Exec[0])
		packages := packagesOf(program)
		if plugin := pluginOf(p.Source.Exec); plugin != "" && packages != nil {
			packages = []string{plugin} // brings GStreamer with it
		}
		if len(packages) == 0 || slices.ContainsFunc(packages, s.Config.Packages.Has) {
			continue
		}
		s.reportAt(c.Source, "", "add packages: "+strconv.Quote(packages[len(packages)-1])+": \"install\"",
			"pipeline %s starts %s, which %s provides", c.Key(), program, strings.Join(packages, ", "))
	}
}

// checkCustomStage, checkPipelineDevice and checkPipelineShape report what prevents a pipeline from
// being built. The engine refuses the same pipelines with the same messages.
func checkCustomStage(s *subject)    { s.reportFaults(pipeline.Settings) }
func checkPipelineDevice(s *subject) { s.reportFaults(pipeline.Device) }
func checkCascade(s *subject)        { s.reportFaults(pipeline.Cascade) }

// checkGallery reads the galleries that the layer carries.
func checkGallery(s *subject) {
	for c, p := range s.pipelines() {
		for k, st := range p.Stages {
			if st.Match == nil {
				continue
			}
			i := slices.IndexFunc(s.Files, func(f plan.CarriedFile) bool { return f.Path == path.Clean(st.Match.Gallery) })
			if i < 0 {
				continue // of the device, or of the build
			}
			field := c.Stages.Get(st.ID).Gallery
			g, err := gallery.Read(bytes.NewReader(s.Files[i].Data), int64(len(s.Files[i].Data)))
			if err != nil {
				s.reportAt(field, field.Show(), "", "stage %s: %s: %v", st.ID, st.Match.Gallery, err)
				continue
			}
			dimension, model := s.embedding(&p, p.Stages[:k])
			if dimension > 0 && dimension != int64(g.Dimension) {
				s.reportAt(field, field.Show(), "", "stage %s: an embedding has %d values, and those of %s have %d", st.ID, dimension, st.Match.Gallery, g.Dimension)
			}
			if model != nil && model.SHA256 != "" && model.SHA256 != g.Model {
				s.reportAt(field, field.Show(), "", "stage %s: %s was made with the model %.12s…, and the pipeline runs %.12s…", st.ID, st.Match.Gallery, g.Model, model.SHA256)
			}
		}
	}
}

// embedding returns the length of a row of what the last of some stages gives, 0 if it is unknown, and
// the last model among them. The digest of a model that the layer carries is that of its file.
func (s *subject) embedding(p *plan.Pipeline, stages []plan.PipelineStage) (dimension int64, last *plan.StageModel) {
	value := budget.SourceValue(p)
	for i := range stages {
		var first *onnx.Model
		if members := pipeline.Models(&stages[i]); len(members) > 0 {
			first, last = s.validModel(members[0].Path, members[0].SHA256), &members[0]
		}
		value = budget.Output(&stages[i], value, first)
	}
	if last != nil && last.SHA256 == "" {
		if i := slices.IndexFunc(s.Files, func(f plan.CarriedFile) bool { return f.Path == path.Clean(last.Path) }); i >= 0 {
			last.SHA256 = s.Files[i].SHA256
		}
	}
	if len(value.Shape) < 2 {
		return 0, last
	}
	dimension = 1
	for _, d := range value.Shape[1:] {
		if d.Free() || d.Size > gallery.MaxDimension {
			return 0, last
		}
		dimension = min(dimension*d.Size, 2*gallery.MaxDimension)
	}
	return dimension, last
}

func checkGateTrack(s *subject) {
	for c, p := range s.pipelines() {
		k := pipeline.GateOf(&p)
		if k < 0 || p.Stages[k].Gate.Repeat {
			continue
		}
		age := pipeline.GateAge(p.Stages[k].Gate)
		for _, st := range p.Stages {
			if st.Track == nil || pipeline.TrackPatience(st.Track) > age {
				continue
			}
			stage := c.Stages.Get(st.ID)
			s.reportAt(config.FirstSet(stage.MaxLost, stage), "", "", "stage %s: a track ends after %v, and gate %s lets a frame pass after up to %v",
				st.ID, pipeline.TrackPatience(st.Track), p.Stages[k].ID, age)
		}
	}
}

func checkPipelineShape(s *subject) {
	s.reportFaults(pipeline.Line)
	for c, p := range s.pipelines() {
		for _, st := range p.Stages {
			if st.Preprocess == nil && st.ROI == nil {
				continue
			}
			stage := c.Stages.Get(st.ID)
			for _, list := range []config.List[config.Decimal]{stage.Mean, stage.Std} {
				if list.IsSet() && len(list.Items) != 3 {
					s.reportAt(list, "", "write one value for each of the three channels", "stage %s: mean and std have three values", st.ID)
					break
				}
			}
		}
	}
}

// reportFaults reports the faults of a topic, each at its line.
func (s *subject) reportFaults(topic pipeline.Topic) {
	for c, p := range s.pipelines() {
		if len(c.Stages.Entries) != len(p.Stages) {
			continue // the stages have no order, which is reported
		}
		for _, f := range pipeline.Check(&p) {
			if f.Topic == topic {
				s.reportAt(c.Below(f.Path...), f.Value, f.Advice, "pipeline %s: %s", c.Key(), f.Reason)
			}
		}
	}
}

// isForked reports whether two stages take the same input.
func isForked(p plan.Pipeline) bool {
	seen := map[string]bool{}
	for _, st := range p.Stages {
		if seen[st.Input] {
			return true
		}
		seen[st.Input] = true
	}
	return false
}

func checkPipelineFrame(s *subject) {
	for c, p := range s.pipelines() {
		src := p.Source
		if !pipeline.HasFrameSize(&src) && (src.Width == 0 || src.Height == 0) {
			s.reportAt(c.Source, "", "", "pipeline %s: frames of format %s have no size of their own", c.Key(), src.Format)
		}
		if row := pipeline.PaddedRow(&src); row > 0 {
			s.reportAt(c.Source.Width, c.Source.Width.Show(), "use a width that is a multiple of 8 and an even height",
				"pipeline %s: GStreamer pads the rows of %s frames of %dx%d pixels to a multiple of four bytes, and yoctuned would take the padding for picture", c.Key(), src.Format, src.Width, src.Height)
		}
		if i := slices.IndexFunc(s.Files, func(f plan.CarriedFile) bool { return f.Path == path.Clean(src.Path) }); i >= 0 && src.Kind == pipeline.FileSource.Kind {
			size, frame := int64(len(s.Files[i].Data)), pipeline.FrameBytes(&src)
			if !pipeline.HasFrameSize(&src) && !pipeline.IsTensor(&src) && frame > 0 && size%frame != 0 {
				s.reportAt(c.Source.Format, src.Format, "correct format, width or height",
					"pipeline %s: %s has %d bytes, which is not a whole number of %s frames of %dx%d pixels (%d bytes each)", c.Key(), src.Path, size, src.Format, src.Width, src.Height, frame)
			}
		}
	}
}

func checkPipelinePath(s *subject) {
	for c := range s.pipelines() {
		for _, file := range pathFields(c) {
			if slices.Contains(strings.Split(file.Text, "/"), "..") {
				s.reportAt(file, file.Show(), "", "pipeline %s: path %q leaves its folder", c.Key(), file.Text)
			}
		}
	}
}

// pathFields lists the fields of a pipeline that name files and may lead out of a folder:
// an absolute path of the schema has no "..".
func pathFields(c *config.Pipeline) []config.String {
	all := []config.String{c.Source.Path}
	for _, st := range c.Stages.Sorted() {
		all = append(all, st.Path, st.Labels, st.Gallery)
		for _, m := range st.Ensemble.Models.Sorted() {
			all = append(all, m.Path)
		}
	}
	for _, step := range c.Degrade.Ladder.Items {
		for _, m := range step.Models.Sorted() {
			all = append(all, m.Path)
		}
	}
	return all
}

func checkModelFormat(s *subject) {
	for _, p := range s.Config.Pipelines.Entries {
		for _, st := range p.Stages.Entries {
			if st.Kind.Text != pipeline.Model.Kind {
				continue
			}
			switch file := st.Path; strings.ToLower(path.Ext(file.Text)) {
			case ".plan", ".engine", ".trt", ".tensorrt":
				s.reportAt(file, file.Show(), "", "%s is an engine for one device and one TensorRT; release %s has TensorRT %s", file.Text, s.Release.Name, s.Release.TensorRT)
			}
		}
	}
}
