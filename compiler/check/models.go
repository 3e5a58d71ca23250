package check

import (
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
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
	return slices.ContainsFunc([]config.String{m.Source, m.SHA256, m.Member, m.ArchiveSHA256}, func(f config.String) bool { return f.Node() == field.Node() })
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
