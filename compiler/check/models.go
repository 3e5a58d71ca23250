package check

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/formats/measurement"
	"github.com/yoctune/yoctune/schema/pipeline"
)

const (
	exampleNamed  = examplePipeline + `f: {kind: "preprocess", input: "source", width: 640, height: 640}, m: {kind: "model", input: "f", model: "yolo"}, b: {kind: "postprocess", input: "m", decode: "detect"}}}`
	exampleModels = `models: yolo: source: "yolo.onnx", `
)

// namedModelRules are the rules about models.
func namedModelRules() []Rule {
	return []Rule{
		{
			ID: "model-name", Severity: diag.Error, Firm: true,
			Title: "a stage does not name one model",
			Cause: "model of a stage names an entry of models, which has the file, the address and the digest. A place names a model or a file, not both.",
			Fix:   "define it under models, or correct its name",
			Wrong: `{models: yolov8: source: "yolo.onnx", ` + exampleNamed + `}`,
			Right: `{` + exampleModels + exampleNamed + `}`,
			See:   "yoctune schema Model",
			run:   checkModelName,
		},
		{
			ID: "model-source", Severity: diag.Error, Firm: true,
			Title: "a model has no file",
			Cause: "The layer carries or fetches the source of a model. With external, a layer of yours installs the model under its digest, and nothing else names it.",
			Fix:   "add source; or, for a model that a layer of yours installs, external: true and sha256",
			Wrong: `{models: yolo: sha256: "` + exampleSum + `", ` + exampleNamed + `}`,
			Right: `{models: yolo: {external: true, sha256: "` + exampleSum + `"}, ` + exampleNamed + `}`,
			See:   "yoctune schema Model",
			run:   checkModelSource,
		},
		{
			ID: "model-labels", Severity: diag.Warning,
			Title: "no stage reads the labels of a model",
			Cause: "Labels of a model are those of the postprocess stages that read it, decode classes, boxes or text, and name no labels of their own. Without such a stage they have no effect.",
			Fix:   "remove labels, or decode the output of the model",
			Wrong: `{models: yolo: {source: "yolo.onnx", labels: "/data/names.txt"}, ` + strings.Replace(exampleNamed, `"detect"`, `"raw"`, 1) + `}`,
			Right: `{models: yolo: {source: "yolo.onnx", labels: "/data/names.txt"}, ` + exampleNamed + `}`,
			See:   "yoctune schema PostprocessStage",
			run:   checkModelLabels,
		},
		{
			ID: "model-optimise", Severity: diag.Error, Firm: true,
			Title: "candidates of a model cannot be made or judged",
			Cause: "yoctune model optimise reads the model, the calibration set and the labelled set from beside the configuration, and writes candidates and evidence there. A candidate without conditions, conditions without a candidate, and two equal candidates have no effect.",
			Fix:   "give optimise and accept together, and a source beside the configuration",
			Wrong: `{models: yolo: {source: "yolo.onnx", optimise: [{kind: "fp16"}]}, ` + exampleNamed + `}`,
			Right: `{` + exampleModels + exampleNamed + `}`,
			See:   "yoctune schema Model",
			run:   checkModelOptimise,
		},
		{
			ID: "model-evidence", Severity: diag.Error,
			Title: "a model has no evidence of this device, runtime or model",
			Cause: "The image gets the fastest candidate that was accepted on the device that runs it. The evidence is a file beside the model; it counts for the model, the candidates, the conditions, the device and the ONNX Runtime that it names.",
			Fix:   "run yoctune model optimise DIR --target TARGET --model MODEL",
			Wrong: `{models: yolo: {source: "yolo.onnx", optimise: [{kind: "fp16"}], accept: examples: "set.safetensors"}, ` + exampleNamed + `}`,
			Right: `{` + exampleModels + exampleNamed + `}`,
			See:   "yoctune model show",
			run:   checkModelEvidence,
		},
	}
}

func checkModelName(s *subject) {
	for c := range s.pipelines() {
		for _, u := range resolve.ModelUses(c) {
			names := s.Config.Models.Keys()
			slices.Sort(names)
			if !slices.Contains(names, u.Model.Text) {
				f := s.reportAt(u.Model, u.Model.Show(), "", "pipeline %s: no model is called %s", c.Key(), u.Model.Text)
				if near := diag.Nearest(u.Model.Text, names); near != "" {
					f.propose(u.Model, u.Model.Text, near)
					f.Help = diag.DidYouMean(u.Model.Text, names)
				}
				continue
			}
			// What a model brings has the model's lines.
			for _, own := range u.Own {
				if own.IsSet() && !isBelow(own, s.Config.Models.Get(u.Model.Text)) {
					s.reportAt(own, own.Show(), "remove it, or remove model", "pipeline %s: %s stands beside model %s, which has the file", c.Key(), own.Key(), u.Model.Text)
					break
				}
			}
		}
	}
}

// isBelow reports whether the value of a field was written under a model.
func isBelow(field config.String, m *config.Model) bool {
	return slices.ContainsFunc([]config.String{m.Source, m.SHA256, m.Member, m.ArchiveSHA256}, func(f config.String) bool { return f.IsSet() && f.Pos() == field.Pos() })
}

func checkModelSource(s *subject) {
	for _, m := range s.Config.Models.Sorted() {
		switch {
		case !m.External.On && !m.Source.IsSet():
			s.reportKey(m, "", "model %s has no source", m.Key())
		case m.External.On && m.Source.IsSet():
			s.reportAt(m.Source, m.Source.Show(), "remove source, or external", "model %s is external: a layer of yours installs it under its sha256, so that its source has no effect", m.Key())
		case m.External.On && !m.SHA256.IsSet():
			s.reportAt(m.External, "", "add sha256", "model %s is external, and without its sha256 the device cannot find it", m.Key())
		}
	}
}

func checkModelLabels(s *subject) {
	for _, m := range s.Config.Models.Sorted() {
		if !m.Labels.IsSet() {
			if field := config.FirstSet(m.LabelsURI, m.LabelsSHA256); field.IsSet() {
				s.reportAt(field, field.Show(), "add labels, the name under which the file is installed", "model %s: labels have an address or a digest, and no name", m.Key())
			}
			continue
		}
		runs, read := false, false
		for c := range s.pipelines() {
			for _, u := range resolve.ModelUses(c) {
				runs = runs || u.Model.Text == m.Key()
			}
			for _, st := range c.Stages.Entries {
				read = read || st.Kind.Text == pipeline.Postprocess.Kind && st.Labels.Node() == m.Labels.Node()
			}
		}
		if runs && !read {
			s.reportAt(m.Labels, m.Labels.Show(), "", "no postprocess stage takes the labels of model %s", m.Key())
		}
	}
}

func checkModelOptimise(s *subject) {
	for _, m := range s.Config.Models.Sorted() {
		switch {
		case !resolve.Optimised(m) && m.Accept.IsSet():
			s.reportAt(m.Accept, "", "add optimise, or remove accept", "model %s has conditions, and no candidates", m.Key())
			continue
		case !resolve.Optimised(m):
			continue
		case !m.Accept.IsSet():
			s.reportAt(m.Optimise, "", "add accept, with examples", "model %s has candidates, and no conditions", m.Key())
			continue
		case m.Source.IsSet() && (resolve.IsURL(m.Source.Text) || path.IsAbs(m.Source.Text)) || m.External.On:
			s.reportAt(config.FirstSet(m.Source, m), m.Source.Show(), "put the file beside the configuration, and name it by a relative path", "model %s: candidates are made of a file beside the configuration", m.Key())
			continue
		case !strings.HasSuffix(m.Source.Text, ".onnx") && m.Source.IsSet():
			s.reportAt(m.Source, m.Source.Show(), "rename the file", "model %s: the names of candidates need a source that ends in .onnx", m.Key())
		}
		if metric := m.Accept.Metric.Text; m.Accept.Head.IsSet() && metric != measurement.MAP {
			s.reportAt(m.Accept.Head, m.Accept.Head.Show(), "remove head, or set metric: \"map\"", "model %s: only metric map decodes boxes", m.Key())
		}
		seen := map[string]bool{}
		for i := range m.Optimise.Items {
			o := &m.Optimise.Items[i]
			name := resolve.CandidateName(o)
			if seen[name] {
				s.reportAt(o, "", "remove one of them", "model %s: two candidates are called %s", m.Key(), name)
			}
			seen[name] = true
			if o.Amount.IsSet() && o.Pattern.Text == "2:4" {
				s.reportAt(o.Amount, o.Amount.Show(), "remove amount", "model %s: a pattern of 2:4 removes one half", m.Key())
			} else if v, err := strconv.ParseFloat(resolve.FormatAmount(o), 64); o.Amount.IsSet() && (err != nil || v <= 0 || v >= 1) {
				s.reportAt(o.Amount, o.Amount.Show(), "write a fraction between 0 and 1", "model %s: amount is a fraction of the weights", m.Key())
			}
		}
		s.checkSetFiles(m)
	}
}

// checkSetFiles reports sets that are not beside the configuration. They are read by yoctune model
// optimise, and no device needs them.
func (s *subject) checkSetFiles(m *config.Model) {
	for _, f := range append([]config.String{m.Accept.Examples}, calibrations(m)...) {
		if path.IsAbs(f.Text) || slices.Contains(strings.Split(f.Text, "/"), "..") {
			s.reportAt(f, f.Show(), "put it beside the configuration, and name it by a relative path", "model %s: %s is not below the configuration's folder", m.Key(), f.Text)
		}
	}
}

func calibrations(m *config.Model) []config.String {
	var all []config.String
	for i := range m.Optimise.Items {
		if c := m.Optimise.Items[i].Calibration; c.IsSet() {
			all = append(all, c)
		}
	}
	return all
}

func checkModelEvidence(s *subject) {
	for _, m := range s.Config.Models.Sorted() {
		e, ok := s.Evidence[m.Key()]
		if !ok {
			continue
		}
		fault := e.Fault
		for c, p := range s.pipelines() {
			for i := range p.Stages {
				st := &p.Stages[i]
				if fault == "" && c.Stages.Get(st.ID).Model.Text == m.Key() {
					fault = e.CompareProviders(st)
				}
			}
		}
		if fault != "" {
			s.reportAt(m.Optimise, "", "run: yoctune model optimise DIR --target "+s.Name+" --model "+m.Key(), "model %s: %s", m.Key(), fault)
		}
	}
}
