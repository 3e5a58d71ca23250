package check

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/compiler/check/budget"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Models opens the models of a configuration: path is relative to its folder, or
// absolute. The error wraps fs.ErrNotExist where there is nothing to read, and
// [onnx.ErrFormat] for a file that is not a model.
type Models func(path string) (*onnx.Model, error)

// Parts of the examples of rules about models.
const (
	examplePipeline = `pipelines: p: {source: {kind: "file", path: "clip.nv12", format: "nv12", width: 1280, height: 720}, stages: {`
	exampleModel    = `m: {kind: "model", input: "f", path: "yolo.onnx"}, b: {kind: "postprocess", input: "m", decode: "detect"}}}`
)

func modelRules() []Rule {
	return []Rule{
		{
			ID: "model-file", Severity: diag.Error,
			Title: "a model's file is not a model",
			Cause: "The file exists but is not ONNX: it was truncated, is a Git LFS pointer, or has another format.",
			Fix:   "fetch the file again, or export the model as ONNX",
			Wrong: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "broken.onnx"}, b: {kind: "postprocess", input: "m", decode: "detect"}}}`,
			Right: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, ` + exampleModel,
			See:   "onnx.proto: ModelProto",
			run:   checkModelFile,
		},
		{
			ID: "model-external", Severity: diag.Error,
			Title: "parts of the model are in other files",
			Cause: "An ONNX model may keep its weights in files beside it. The layer installs the model alone, sha256 covers the model alone, and some releases of ONNX Runtime read any path that a model names. The pipeline refuses such a model when it starts.",
			Fix:   "save the model as one file: onnx.save(onnx.load(\"MODEL.onnx\"), \"whole.onnx\") in Python",
			Wrong: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "parts.onnx"}, b: {kind: "postprocess", input: "m", decode: "raw"}}}`,
			Right: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, ` + exampleModel,
			See:   "onnx.proto: TensorProto.external_data",
			run:   checkModelExternal,
		},
		{
			ID: "model-shape", Severity: diag.Error,
			Title: "the model does not accept the tensor of its stage",
			Cause: "A model's file fixes the tensor that the model takes: the type of its elements, and the size of each axis that is not free. The pipeline refuses another tensor when it starts.",
			Fix:   "make the tensor that the model takes, or export the model with a free axis",
			Wrong: examplePipeline + `f: {kind: "preprocess", input: "source", width: 416, height: 416}, ` + exampleModel,
			Right: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, ` + exampleModel,
			See:   "the model's graph inputs",
			run:   checkModelShape,
		},
		{
			ID: "model-batch", Severity: diag.Error,
			Title: "the model cannot be batched",
			Cause: "A batch of frames is one tensor with a longer first axis, and the model's file fixes that axis.",
			Fix:   "remove batch, or export the model with a free first axis",
			Wrong: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx", batch: buckets: [1, 4]}, b: {kind: "postprocess", input: "m", decode: "detect"}}}`,
			Right: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, ` + exampleModel,
			See:   "the model's graph inputs",
			run:   checkModelBatch,
		},
		{
			ID: "model-output", Severity: diag.Error,
			Title: "the decode does not fit the model's output",
			Cause: "Each decode reads one shape of tensor: rows of classes, boxes by anchors, or a map of text.",
			Fix:   "choose the decode, head or outputTensor that fits the model",
			Wrong: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx"}, b: {kind: "postprocess", input: "m", decode: "argmax"}}}`,
			Right: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, ` + exampleModel,
			See:   "the model's graph outputs",
			run:   checkModelOutput,
		},
		{
			ID: "labels-file", Severity: diag.Error,
			Title: "the file of labels cannot be used",
			Cause: "A labels file has one label per line, in UTF-8, in the order of the model's classes. For ctc, class 0 is the blank, and one more class may be the space.",
			Fix:   "use the labels that the model was trained with",
			Wrong: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx"}, b: {kind: "postprocess", input: "m", decode: "detect", labels: "broken.onnx"}}}`,
			Right: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx"}, b: {kind: "postprocess", input: "m", decode: "detect", labels: "/data/coco.txt"}}}`,
			See:   "yoctune schema PostprocessStage",
			run:   checkLabels,
		},
		{
			ID: "model-provider", Severity: diag.Warning,
			Title: "the image's ONNX Runtime runs on the CPU only",
			Cause: "The layer installs an ONNX Runtime for the CPU. This release's branch of meta-tegra-community has no recipe with CUDA and TensorRT, so that a model stage for the GPU falls back to the CPU, or finds no provider at all and ends the pipeline.",
			Fix:   "leave device and providers out, or install an ONNX Runtime with CUDA of another layer with packages",
			Wrong: examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx", device: "gpu"}, b: {kind: "postprocess", input: "m", decode: "detect"}}}`,
			Right: `{packages: "onnxruntime-gpu": "install", ` + examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", path: "yolo.onnx", device: "gpu"}, b: {kind: "postprocess", input: "m", decode: "detect"}}}}`,
			See:   "meta-tegra-community, recipes-devtools/onnxruntime",
			run:   checkModelProvider,
		},
		{
			ID: "ladder-model", Severity: diag.Warning,
			Title: "the layer does not install a model of the ladder",
			Cause: "The layer installs the models that have a uri, and carries those beside the configuration. The stage's own model has a uri, but the model that replaces it has neither: the pipeline would not start.",
			Fix:   "add uri and sha256 to the model of the ladder, or install it in another way",
			Wrong: `pipelines: p: {source: {kind: "v4l2", path: "/dev/video0", format: "nv12", width: 1280, height: 720}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f", uri: "https://example.com/big.onnx", sha256: "` + exampleSum + `"}, c: {kind: "postprocess", input: "m", decode: "raw"}}, degrade: ladder: [{models: m: sha256: "` + otherSum + `"}]}`,
			Right: `pipelines: p: {source: {kind: "v4l2", path: "/dev/video0", format: "nv12", width: 1280, height: 720}, stages: {f: {kind: "preprocess", input: "source", width: 64, height: 64}, m: {kind: "model", input: "f", uri: "https://example.com/big.onnx", sha256: "` + exampleSum + `"}, c: {kind: "postprocess", input: "m", decode: "raw"}}, degrade: ladder: [{models: m: {uri: "https://example.com/small.onnx", sha256: "` + exampleSum + `"}}]}`,
			run:   checkLadderModel,
		},
		{
			ID: "pipeline-memory", Severity: diag.Error,
			Title: "the pipelines exceed the module's memory",
			Cause: "A pipeline allocates frames and tensors when it starts, for every queue and worker, and holds the weights once for each instance. CPU and GPU share one memory.",
			Fix:   "lower the capacity of the queues, the instances, the batches or the size of the frames, or use a smaller model",
			Wrong: `pipelines: p: {source: {kind: "file", path: "clip.nv12", format: "nv12", width: 7680, height: 4320}, queue: capacity: 200, stages: {f: {kind: "preprocess", input: "source", width: 640, height: 640}, ` + exampleModel,
			Right: `pipelines: p: {source: {kind: "file", path: "clip.nv12", format: "nv12", width: 7680, height: 4320}, queue: capacity: 2, stages: {f: {kind: "preprocess", input: "source", width: 640, height: 640}, ` + exampleModel,
			run:   checkPipelineMemory,
		},
		{
			ID: "pipeline-latency", Severity: diag.Warning,
			Title: "the settings contradict the latency objective",
			Cause: "Frames older than maxAge are dropped, and younger ones are processed. With a maxAge above the objective, frames that are already late take time from others. A batch that waits as long as the objective allows leaves no time for the work.",
			Fix:   "set maxAge below slo.latencyP95, and delays well below it",
			Wrong: `pipelines: p: {source: {kind: "v4l2", path: "/dev/video0", format: "nv12", width: 1280, height: 720}, slo: latencyP95: "100ms", queue: maxAge: "300ms", stages: {f: {kind: "preprocess", input: "source", width: 640, height: 640}, ` + exampleModel,
			Right: `pipelines: p: {source: {kind: "v4l2", path: "/dev/video0", format: "nv12", width: 1280, height: 720}, slo: latencyP95: "100ms", queue: maxAge: "90ms", stages: {f: {kind: "preprocess", input: "source", width: 640, height: 640}, ` + exampleModel,
			run:   checkPipelineLatency,
		},
	}
}

const exampleSum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

const otherSum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

// openModel opens a model by its path, or by its digest if the build fetches it from a
// file; nil for a model that cannot be read here.
func (s *subject) openModel(path, sum string) (*onnx.Model, error) {
	if s.models == nil {
		return nil, nil
	}
	if local := s.localModel(path, sum); local != "" {
		m, err := s.models(local)
		if err == nil || errors.Is(err, onnx.ErrFormat) {
			return m, err
		}
	}
	return nil, nil
}

// localModel returns the path of a model on this machine; "" if it exists only on the device.
func (s *subject) localModel(path, sum string) string {
	for _, m := range s.Models {
		if file, ok := strings.CutPrefix(m.URI, "file://"); ok && sum != "" && m.SHA256 == sum && m.Name == "" {
			return file
		}
	}
	if strings.HasPrefix(path, "/") {
		return "" // of the device
	}
	return path
}

// validModel is [subject.openModel] for callers that skip files that are not models.
func (s *subject) validModel(path, sum string) *onnx.Model {
	m, err := s.openModel(path, sum)
	if err != nil {
		return nil
	}
	return m
}

// modelUse is one model of a stage on one level of the ladder.
type modelUse struct {
	pipeline string
	written  *config.Stage
	stage    plan.PipelineStage
	level    int // 0: the whole
	plan.StageModel
	model        *onnx.Model  // nil: unknown
	err          error        // the file is not a model
	in           onnx.Value   // of the stage's input; not ranked: unknown
	outs         []onnx.Value // that are read; nil: unknown
	takes        []onnx.Value // what the inputs of the model receive, in the order of [pipeline.Inlets]
	before, next *plan.PipelineStage
	whole        bool // the stage's own, not one that votes
	crops        bool // it runs on crops
}

// modelUses lists the models of the target's pipelines. A lower level of the ladder is
// listed only where it changes the stage or the stage's input.
func (s *subject) modelUses() []modelUse {
	var all []modelUse
	for c, p := range s.pipelines() {
		if isForked(p) {
			continue // the input of each stage is not known
		}
		levels := pipeline.Levels(&p)
		for n, level := range levels {
			value := budget.SourceValue(&p)
			changed := n == 0
			for k, st := range level {
				changed = changed || pipeline.Changed(&levels[max(n-1, 0)][k], &st)
				var first *onnx.Model
				for i, m := range pipeline.Models(&st) {
					u := modelUse{pipeline: c.Key(), written: c.Stages.Get(st.ID), stage: st, level: n, StageModel: m, in: value, whole: i == 0, crops: pipeline.CropsFor(level, k) != nil}
					u.model, u.err = s.openModel(m.Path, m.SHA256)
					if i == 0 {
						first = u.model
					}
					if k > 0 {
						u.before = &level[k-1]
					}
					if k+1 < len(level) {
						u.next = &level[k+1]
					}
					u.outs = budget.Outputs(level, k, value, u.model)
					for _, in := range pipeline.Inlets(&st) {
						u.takes = append(u.takes, budget.InletValue(&p, level, k, in, s.validModel))
					}
					if changed {
						all = append(all, u)
					}
				}
				value = budget.Output(&st, value, first)
			}
		}
	}
	slices.SortFunc(all, func(a, b modelUse) int {
		return strings.Compare(a.pipeline+"\x00"+strconv.Itoa(a.level)+a.stage.ID+a.Stage, b.pipeline+"\x00"+strconv.Itoa(b.level)+b.stage.ID+b.Stage)
	})
	return all
}

// findPart returns the position at which a fault of a model is reported: the first of the
// given fields that is set. On a lower level of the ladder, it is the step that changes the
// stage.
func (s *subject) findPart(u modelUse, fields ...config.Part) config.Place {
	if u.level > 0 {
		ladder := s.Config.Pipelines.Get(u.pipeline).Degrade.Ladder
		if u.level <= len(ladder.Items) {
			return ladder.Items[u.level-1].Place
		}
		return ladder.Place
	}
	if u.Stage != "" {
		return u.written.Ensemble.Models.Get(u.Stage).Place
	}
	return config.FirstSet(append(fields, u.written)...)
}

func (u modelUse) name() string {
	name := u.Path
	if name == "" {
		name = u.SHA256[:min(len(u.SHA256), 12)]
	}
	if u.level > 0 {
		return fmt.Sprintf("%s (degrade, step %d)", name, u.level)
	}
	return name
}

func checkModelFile(s *subject) {
	reported := map[string]bool{}
	for _, u := range s.modelUses() {
		if u.err != nil && !reported[u.Path+u.SHA256] {
			reported[u.Path+u.SHA256] = true
			s.reportAt(s.findPart(u, u.written.Path, u.written.URI), "", "", "%s: %v", u.name(), u.err)
		}
	}
}

func checkModelExternal(s *subject) {
	reported := map[string]bool{}
	for _, u := range s.modelUses() {
		if u.model == nil || u.model.CheckComplete() == nil || reported[u.Path+u.SHA256] {
			continue
		}
		reported[u.Path+u.SHA256] = true
		files := ""
		if len(u.model.Files) > 0 {
			files = ": " + strings.Join(u.model.Files, ", ")
		}
		s.reportAt(s.findPart(u, u.written.Path, u.written.URI), "", "", "parts of %s are in other files%s", u.name(), files)
	}
}

func checkModelShape(s *subject) {
	for _, u := range s.modelUses() {
		if u.model == nil {
			continue
		}
		inlets, takes := pipeline.Inlets(&u.stage), u.takes
		if !u.whole { // votes on the stage's tensor alone
			inlets, takes = []pipeline.Inlet{{}}, []onnx.Value{u.in}
		}
		if len(u.model.Inputs) != len(inlets) {
			s.reportAt(s.findPart(u, u.written.Inputs, u.written.InputTensor, u.written.Path, u.written.URI), "", "name the tensor or the values of each input: inputs",
				"%s takes %d tensors (%s); the stage gives %d", u.name(), len(u.model.Inputs), formatValues(u.model.Inputs), len(inlets))
			continue
		}
		for i, inlet := range inlets {
			part := s.findPart(u, u.written.Inputs.Get(inlet.Name), u.written.InputTensor, u.written.Path, u.written.URI)
			in, ok := u.findInput(inlet, inlets)
			if !ok {
				s.reportAt(part, inlet.Name, "", "%s has no input %q; it takes %s", u.name(), inlet.Name, formatValues(u.model.Inputs))
				continue
			}
			s.compareInput(u, in, takes[i], inlet, part)
		}
	}
}

// findInput finds the input of a model that an inlet feeds: that of its name, or the one that no
// other inlet names.
func (u modelUse) findInput(inlet pipeline.Inlet, all []pipeline.Inlet) (onnx.Value, bool) {
	i := slices.IndexFunc(u.model.Inputs, func(v onnx.Value) bool {
		if inlet.Name != "" {
			return v.Name == inlet.Name
		}
		return !slices.ContainsFunc(all, func(o pipeline.Inlet) bool { return o.Name == v.Name })
	})
	if i < 0 {
		return onnx.Value{}, false
	}
	return u.model.Inputs[i], true
}

// compareInput compares an input of a model with the tensor that it receives.
func (s *subject) compareInput(u modelUse, in, given onnx.Value, inlet pipeline.Inlet, part config.Place) {
	known, ok := pipeline.DTypeOfONNX(int(in.Type))
	switch {
	case !ok:
		s.reportAt(part, "", "export the model with inputs of another type", "%s takes %s, and no stage gives elements of that type", u.name(), in)
	case given.Ranked && given.Type != in.Type:
		from := u.before
		advice := fmt.Sprintf("give it %s elements", known)
		switch {
		case inlet.Constant != nil:
			advice = fmt.Sprintf("set dtype: %q", known)
		case from == nil || inlet.From != "" && inlet.From != from.ID:
		case from.Preprocess != nil && slices.Contains(pipeline.PreprocessDTypes(), known):
			advice = fmt.Sprintf("set dtype: %q of stage %s", known, from.ID)
			if written := s.Config.Pipelines.Get(u.pipeline).Stages.Get(from.ID).DType; written.IsSet() && u.level == 0 {
				part = written.Place
			}
		}
		dtype, _ := pipeline.DTypeOfONNX(int(given.Type))
		s.reportAt(part, dtype.String(), advice, "%s takes %s and receives %s elements", u.name(), in, given.Type)
	case given.Ranked && in.Ranked:
		s.compareShape(u, in, given, inlet, part)
	}
}

// compareShape compares a model's input with the tensor that its stage receives.
func (s *subject) compareShape(u modelUse, in, given onnx.Value, inlet pipeline.Inlet, part config.Place) {
	axis := -1 // the number of axes is wrong
	if len(in.Shape) == len(given.Shape) {
		for i, d := range in.Shape {
			if i == 0 && u.crops && u.stage.Model.Batch != nil {
				continue // checkModelBatch compares it with the buckets
			}
			if axis < 0 && !d.Free() && !given.Shape[i].Free() && d.Size != given.Shape[i].Size {
				axis = i
			}
		}
		if axis < 0 {
			return
		}
	}
	help := ""
	if pre := u.before; pre != nil && (pre.Preprocess != nil || pre.ROI != nil) && inlet.From == "" && inlet.Constant == nil {
		rows, columns := 2, 3
		own, other, turned := 1, 3, pipeline.NHWC // axes of the channels
		if pre.Preprocess != nil && pre.Preprocess.Layout == pipeline.NHWC {
			rows, columns = 1, 2
			own, other, turned = 3, 1, pipeline.NCHW
		}
		from := s.Config.Pipelines.Get(u.pipeline).Stages.Get(pre.ID)
		size := config.Int{}
		switch axis {
		case rows:
			size = from.Height
		case columns:
			size = from.Width
		}
		if u.level == 0 && size.IsSet() { // the preprocess stage sets the size
			part = size.Place
		}
		if pre.Preprocess != nil && len(in.Shape) == 4 && in.Shape[other].Size == 3 && in.Shape[own].Size != 3 {
			help = fmt.Sprintf("set layout: %q of stage %s", turned, pre.ID)
			part = s.findPart(u, from.Layout, from)
		}
	}
	s.reportAt(part, given.Dims(), help, "%s takes %s and receives %s", u.name(), in, given.Dims())
}

func formatValues(all []onnx.Value) string {
	text := make([]string, len(all))
	for i, v := range all {
		text[i] = v.String()
	}
	return strings.Join(text, ", ")
}

func checkModelBatch(s *subject) {
	for _, u := range s.modelUses() {
		b := u.stage.Model.Batch
		if u.model == nil || b == nil || len(b.Buckets) == 0 || b.Buckets[len(b.Buckets)-1] == 1 {
			continue
		}
		in, ok := budget.FindValue(u.model.Inputs, "")
		if u.crops && ok && len(in.Shape) > 0 && len(b.Buckets) == 1 && in.Shape[0].Size == int64(b.Buckets[0]) {
			continue // every run has the size that the model fixes
		}
		if ok && in.Ranked && len(in.Shape) > 0 && !in.Shape[0].Free() {
			s.reportAt(s.findPart(u, u.written.Batch), fmt.Sprint(b.Buckets), "", "%s takes %s: its first axis is always %d", u.name(), in, in.Shape[0].Size)
		}
	}
}

func checkModelOutput(s *subject) {
	for _, u := range s.modelUses() {
		if u.model == nil || !u.whole {
			continue
		}
		out, ok := budget.FindValue(u.model.Outputs, u.stage.Model.Output)
		if !ok {
			s.reportAt(s.findPart(u, u.written.OutputTensor), u.stage.Model.Output, "", "%s has no output %q; it gives %s", u.name(), u.stage.Model.Output, formatValues(u.model.Outputs))
			continue
		}
		if s.checkOutputNames(u) {
			continue
		}
		if u.next == nil || u.next.Post == nil || !out.Ranked {
			continue
		}
		if what, _ := headFault(u); what != "" {
			continue // model-head reports it
		}
		if u.crops && pipeline.FindsBoxes(u.next.Post) {
			continue // pipeline-shape reports it
		}
		shape := budget.Output(&u.stage, u.in, u.model).Shape
		if u.crops && len(shape) > 0 {
			shape[0] = onnx.Dim{Size: 1} // each crop is decoded by itself
		}
		want := describeExpected(u.next.Post, shape, len(u.model.Outputs))
		if _, known := pipeline.DTypeOfONNX(int(out.Type)); !known {
			want = "numbers"
		} else if want == "" && u.stage.Model.Ensemble != nil && out.Type != onnx.Float32 {
			want = "the votes of an ensemble, which have float32 elements"
		}
		if want == "" {
			s.refuseOnGPU(u, out)
			continue
		}
		part := s.Config.Pipelines.Get(u.pipeline).Stages.Get(u.next.ID).Decode.Place
		if u.level > 0 {
			part = s.findPart(u)
		}
		help := ""
		if head, why := u.findHead(out); head != "" && u.next.Post.Head != "" && head != u.next.Post.Head {
			help = fmt.Sprintf("set head: %q: the output has %s", head, why)
		}
		s.reportAt(part, u.next.Post.Kind, help, "%s reads %s, and %s gives %s", u.next.Post.Kind, want, u.name(), out)
	}
}

// refuseOnGPU refuses a stage that decodes on the GPU what the core does not read.
func (s *subject) refuseOnGPU(u modelUse, out onnx.Value) {
	if !pipeline.RunsOnGPU(u.next) {
		return
	}
	part := s.Config.Pipelines.Get(u.pipeline).Stages.Get(u.next.ID).Device
	if t, known := pipeline.DTypeOfONNX(int(out.Type)); known && !t.InCore() {
		s.reportAt(part, part.Show(), "remove device", "the GPU does not decode %s elements, and %s gives %s", t, u.name(), out)
	}
}

// checkLabels reads the labels files that the layer carries, and counts their lines against the classes of
// the model before.
func checkLabels(s *subject) {
	counts := map[string]int{}
	for c, p := range s.pipelines() {
		for _, st := range p.Stages {
			if st.Post == nil || st.Post.Labels == "" {
				continue
			}
			i := slices.IndexFunc(s.Files, func(f plan.CarriedFile) bool { return f.Path == path.Clean(st.Post.Labels) })
			if i < 0 {
				continue // of the device, or of the build
			}
			labels, err := pipeline.ParseLabels(st.Post.Labels, s.Files[i].Data)
			if err != nil {
				field := c.Stages.Get(st.ID).Labels
				s.reportAt(field, field.Show(), "", "stage %s: %s", st.ID, pipeline.ReasonText(err))
			}
			counts[c.Key()+"\x00"+st.ID] = len(labels)
		}
	}
	for _, u := range s.modelUses() {
		if u.model == nil || !u.whole || u.next == nil || u.next.Post == nil {
			continue
		}
		n := counts[u.pipeline+"\x00"+u.next.ID]
		out := budget.Output(&u.stage, u.in, u.model)
		if n == 0 || !out.Ranked {
			continue
		}
		shape := sizesOf(out.Shape)
		if pipeline.ExpectedTensor(u.next.Post, shape) != "" {
			continue // model-output reports it
		}
		if err := pipeline.CheckLabels(u.next.Post, n, pipeline.ClassesOf(u.next.Post, shape)); err != nil {
			field := s.Config.Pipelines.Get(u.pipeline).Stages.Get(u.next.ID).Labels
			s.reportAt(field, field.Show(), "", "stage %s: %s: %s gives %s", u.next.ID, pipeline.ReasonText(err), u.name(), out)
		}
	}
}

// checkOutputNames checks the outputs that a stage names, and those that the head of the next stage
// reads. It reports whether the next stage reads several outputs, or names are wrong.
func (s *subject) checkOutputNames(u modelUse) bool {
	var names []string
	for _, o := range u.model.Outputs {
		names = append(names, o.Name)
	}
	for i, name := range u.stage.Model.Outputs {
		if !slices.Contains(names, name) {
			s.reportAt(s.findPart(u, u.written.OutputTensors.Items[i+1]), name, "", "%s has no output %q; it gives %s", u.name(), name, formatValues(u.model.Outputs))
			return true
		}
	}
	if u.next == nil || u.next.Post == nil {
		return false
	}
	if u.next.Post.Kind == pipeline.Raw && len(u.outs) > 1 {
		s.checkManyValues(u)
		return true
	}
	if !pipeline.ReadsNamedOutputs(u.next.Post) {
		return false
	}
	post := s.Config.Pipelines.Get(u.pipeline).Stages.Get(u.next.ID)
	part := config.FirstSet(post.Outputs, post.Head)
	if u.level > 0 {
		part = s.findPart(u)
	}
	found, err := pipeline.NamedOutputs(u.next.Post, names)
	if err != nil {
		s.reportAt(part, u.next.Post.Head, "", "%s: %v", u.name(), err)
		return true
	}
	shapes := make([][]int64, len(found))
	for i, v := range u.outs {
		if v.Ranked {
			shapes[i] = sizesOf(v.Shape)
		}
	}
	if want := pipeline.HeadShapes(u.next.Post, shapes); want != "" {
		s.reportAt(part, u.next.Post.Head, "", "head %s reads %s, and %s gives %s", u.next.Post.Head, want, u.name(), formatValues(u.model.Outputs))
	}
	return true
}

// checkManyValues checks how many values raw writes of several outputs together.
func (s *subject) checkManyValues(u modelUse) {
	total := int64(0)
	for _, v := range u.outs {
		n := int64(1)
		for _, d := range sizesOf(v.Shape) {
			n = min(n*d, pipeline.MaxRaw+1) // 0: unknown
		}
		if v.Ranked {
			total += n
		}
	}
	if total > pipeline.MaxRaw {
		part := s.Config.Pipelines.Get(u.pipeline).Stages.Get(u.next.ID).Decode.Place
		s.reportAt(part, u.next.Post.Kind, "name fewer outputTensors", "%s reads at most %d values, together, and %s gives %s", u.next.Post.Kind, pipeline.MaxRaw, u.name(), formatValues(u.outs))
	}
}

// sizesOf returns the sizes of axes; 0 where they are not known.
func sizesOf(shape []onnx.Dim) []int64 {
	sizes := make([]int64, len(shape))
	for i, d := range shape {
		if !d.Free() {
			sizes[i] = d.Size
		}
	}
	return sizes
}

// describeExpected describes the tensor that a postprocess stage reads, when a model gives
// another one; "" when the two fit or may fit.
func describeExpected(p *plan.Post, shape []onnx.Dim, outputs int) string {
	if shape == nil {
		return ""
	}
	if want := pipeline.ExpectedTensor(p, sizesOf(shape)); want != "" {
		return want
	}
	if d, _ := pipeline.DecodeOf(p.Kind); d.Second && p.Prototypes == "" && outputs < 2 {
		return "boxes and the prototypes of masks, two outputs"
	}
	return ""
}

func checkModelProvider(s *subject) {
	own := slices.ContainsFunc(s.Config.Packages.Entries, func(p *config.NamedString) bool {
		return p.Text == "install" && strings.Contains(p.Key(), "onnxruntime")
	})
	if own || s.Release.ONNXRuntime != "" {
		return
	}
	for c, p := range s.pipelines() {
		for _, st := range p.Stages {
			providers := st.ModelProviders()
			if !slices.ContainsFunc(providers, func(name string) bool { return name != "cpu" }) {
				continue
			}
			written := c.Stages.Get(st.ID)
			part := config.FirstSet(written.Providers, written.Device)
			if slices.Contains(providers, "cpu") {
				s.reportAt(part, part.Show(), "", "pipeline %s: stage %s runs on the CPU, because the image's ONNX Runtime has no %s", c.Key(), st.ID, providers[0])
				continue
			}
			d := s.raise(part, "pipeline %s: stage %s cannot run, because the image's ONNX Runtime has none of %s", c.Key(), st.ID, strings.Join(providers, ", ")).withValue(part.Show())
			d.Severity = diag.Error
		}
	}
}

func checkLadderModel(s *subject) {
	for c := range s.pipelines() {
		for _, step := range c.Degrade.Ladder.Items {
			for _, m := range step.Models.Entries {
				fetched := slices.ContainsFunc(s.Models, func(o plan.ModelFile) bool { return m.SHA256.IsSet() && o.SHA256 == m.SHA256.Text })
				external := s.Config.Models.Get(m.Model.Text).External.On
				if !c.Stages.Get(m.Key()).URI.IsSet() || m.URI.IsSet() || fetched || m.Path.IsSet() || external {
					continue
				}
				s.reportAt(m, "", "", "the build fetches the model of stage %s, but not the one that replaces it", m.Key())
			}
		}
	}
}

// budgetOf adds up the memory of a pipeline, with the galleries that the layer carries.
func (s *subject) budgetOf(p plan.Pipeline) budget.Budget {
	b := budget.Compute(p, s.validModel)
	for i := range p.Stages {
		st := &p.Stages[i]
		if st.Match == nil {
			continue
		}
		n := slices.IndexFunc(s.Files, func(f plan.CarriedFile) bool { return f.Path == path.Clean(st.Match.Gallery) })
		if n < 0 { // of the device, or of the build
			b.Known = false
			continue
		}
		b.AddGallery(int64(len(s.Files[n].Data)), pipeline.Isolated(&p, st))
	}
	return b
}

func checkPipelineMemory(s *subject) {
	var total, workspace, free int64
	var parts []string
	var last, freed *config.Pipeline
	for c, p := range s.pipelines() {
		b := s.budgetOf(p)
		if b.Pool > pipeline.MaxPool {
			s.reportAt(c, "", "", "pipeline %s: %d frames with their tensors take %s MiB; a pipeline has at most %d MiB", c.Key(), b.Frames, formatPool(b), pipeline.MaxPool>>20)
			return
		}
		total += b.Total()
		workspace = max(workspace, b.Workspace)
		if p.Budget != nil && p.Budget.FreeMemory > free {
			free, freed = p.Budget.FreeMemory, c
		}
		part := fmt.Sprintf("%s: %d frames and tensors %d MiB, weights %d MiB", c.Key(), b.Frames, b.Pool>>20, b.Weights>>20)
		if b.Requests > 0 {
			part += fmt.Sprintf(", requests %d MiB", b.Requests>>20)
		}
		parts = append(parts, part)
		last = c
	}
	room := s.Board.RAMBytes - systemReserve - s.hugepages() - free
	if last == nil || total+workspace <= room {
		return
	}
	kept, part := "", last.Place
	if free > 0 {
		kept = fmt.Sprintf(" and %d are to be kept free", free>>20)
		if total+workspace <= room+free {
			part = freed.Budget.KeepFree.Memory.Place
		}
	}
	s.refuse(s.memorySize(), part, "", "", "at least %d MiB (%s; TensorRT's workspace %d MiB), and %s has %d MiB of which the system needs %d%s",
		(total+workspace)>>20, strings.Join(parts, "; "), workspace>>20, s.Board.ID, s.Board.RAMBytes>>20, (systemReserve+s.hugepages())>>20, kept)
}

func formatPool(b budget.Budget) string {
	text := strconv.FormatInt(b.Pool>>20, 10)
	if !b.Known {
		return "at least " + text
	}
	return text
}

func checkPipelineLatency(s *subject) {
	for c, p := range s.pipelines() {
		if p.SLO == nil || p.SLO.LatencyP95 == 0 {
			continue
		}
		if _, why := findMissedObjective(p); why != "" {
			continue // latency-objective reports it
		}
		objective := time.Duration(p.SLO.LatencyP95)
		if age := time.Duration(p.Queue.MaxAge); age > objective {
			s.reportAt(c.Queue.MaxAge, age.String(), "", "pipeline %s: maxAge accepts frames of up to %v, more than the objective of %v", c.Key(), age, objective)
		}
		var delays time.Duration
		for _, st := range p.Stages {
			if st.Model != nil && st.Model.Batch != nil {
				delays += time.Duration(st.Model.Batch.Delay)
			}
		}
		if delays >= objective {
			s.reportAt(c.SLO.LatencyP95, objective.String(), "", "pipeline %s: batches may wait %v, which the objective of %v does not allow", c.Key(), delays, objective)
		}
	}
}
