package resolve

import (
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/formats/evidence"
	"github.com/yoctune/yoctune/schema/pipeline"
)

// modelFields are the fields that name a model's file where a model is used, and the fields
// under models that they come from. A source that is a URL becomes uri.
var modelFields = []struct{ use, model string }{
	{"path", "source"}, {"sha256", "sha256"}, {"member", "member"}, {"archiveSha256", "archiveSha256"},
}

// labelFields have the same names in a model and in a postprocess stage.
var labelFields = []string{"labels", "labelsUri", "labelsSha256"}

// IsURL reports whether the source of a model is fetched by the build.
func IsURL(source string) bool { return strings.Contains(source, "://") }

// expandModels writes the file of a model wherever the model is named, so that what follows
// knows files, addresses and digests only. A candidate that was chosen takes the place of the
// source. A use that names an unknown model, or a file of its
// own too, stays as it is: a rule reports it.
func expandModels(target *load.Node, chosen func(model string) *evidence.File) *load.Node {
	models, pipelines := target.Get("models"), target.Get("pipelines")
	if models == nil || pipelines == nil {
		return target
	}
	x := modelExpander{models, chosen}
	return replaceField(target, "pipelines", func(all *load.Node) *load.Node { return mapMembers(all, x.expandPipeline) })
}

type modelExpander struct {
	models *load.Node
	chosen func(model string) *evidence.File
}

func (x modelExpander) expandPipeline(p *load.Node) *load.Node {
	labels := x.findLabels(p.Get("stages"))
	p = replaceField(p, "stages", func(stages *load.Node) *load.Node {
		out := &load.Node{Kind: stages.Kind, Pos: stages.Pos}
		for _, f := range stages.Fields {
			f.Value = x.expandUse(f.Value)
			f.Value = replaceField(f.Value, "ensemble", func(e *load.Node) *load.Node {
				return replaceField(e, "models", func(all *load.Node) *load.Node { return mapMembers(all, x.expandUse) })
			})
			if added := labels[f.Name]; added != nil {
				f.Value = &load.Node{Kind: load.Struct, Pos: f.Value.Pos, Fields: append(slices.Clone(f.Value.Fields), added...)}
			}
			out.Fields = append(out.Fields, f)
		}
		return out
	})
	return replaceField(p, "degrade", func(d *load.Node) *load.Node {
		return replaceField(d, "ladder", func(ladder *load.Node) *load.Node {
			out := &load.Node{Kind: ladder.Kind, Pos: ladder.Pos}
			for _, step := range ladder.Items {
				out.Items = append(out.Items, replaceField(step, "models", func(all *load.Node) *load.Node { return mapMembers(all, x.expandUse) }))
			}
			return out
		})
	})
}

// find returns the model that a use names; nil if it names none, or a file of its own too.
func (x modelExpander) find(use *load.Node) *load.Node {
	name := use.Get("model")
	if name == nil || use.Get("uri") != nil || slices.ContainsFunc(modelFields, func(f struct{ use, model string }) bool { return use.Get(f.use) != nil }) {
		return nil
	}
	return x.models.Get(name.Text)
}

func (x modelExpander) expandUse(use *load.Node) *load.Node {
	m := x.find(use)
	if m == nil {
		return use
	}
	out := &load.Node{Kind: load.Struct, Pos: use.Pos, Fields: slices.Clone(use.Fields)}
	if file := x.chosen(use.Get("model").Text); file != nil {
		source := m.Field("source")
		add := func(name, text string) {
			value := &load.Node{Kind: load.String, Pos: source.Value.Pos, Text: text}
			out.Fields = append(out.Fields, load.Field{Name: name, Pos: source.Pos, Value: value})
		}
		add("path", path.Join(path.Dir(source.Value.Text), file.File))
		add("sha256", file.SHA256)
		return out
	}
	for _, f := range modelFields {
		field := m.Field(f.model)
		if field == nil {
			continue
		}
		added := load.Field{Name: f.use, Pos: field.Pos, Value: field.Value}
		if f.use == "path" && IsURL(field.Value.Text) {
			added.Name = "uri"
		}
		out.Fields = append(out.Fields, added)
	}
	return out
}

// findLabels returns the labels that postprocess stages without any take from the model that
// they read, by stage.
func (x modelExpander) findLabels(stages *load.Node) map[string][]load.Field {
	if stages == nil {
		return nil
	}
	out := map[string][]load.Field{}
	for _, f := range stages.Fields {
		if f.Value.Get("kind").Word() != pipeline.Postprocess.Kind || slices.ContainsFunc(labelFields, func(name string) bool { return f.Value.Get(name) != nil }) ||
			!pipeline.TakesLabels(f.Value.Get("decode").Word()) {
			continue
		}
		before := f.Value
		for range stages.Fields { // the inputs of broken stages may form a cycle
			before = stages.Get(before.Get("input").Word())
			if kind := before.Get("kind").Word(); kind != pipeline.Map.Kind {
				break
			}
		}
		if before.Get("kind").Word() != pipeline.Model.Kind {
			continue
		}
		m := x.models.Get(before.Get("model").Word())
		for _, name := range labelFields {
			if field := m.Field(name); field != nil {
				out[f.Name] = append(out[f.Name], *field)
			}
		}
	}
	return out
}

// replaceField returns a struct with another value of one field, which may be absent.
func replaceField(n *load.Node, name string, change func(*load.Node) *load.Node) *load.Node {
	if n == nil || n.Kind != load.Struct || n.Get(name) == nil {
		return n
	}
	out := &load.Node{Kind: n.Kind, Pos: n.Pos, Fields: slices.Clone(n.Fields)}
	f := out.Field(name)
	f.Value = change(f.Value)
	return out
}

// mapMembers returns a struct with every value changed.
func mapMembers(n *load.Node, change func(*load.Node) *load.Node) *load.Node {
	out := &load.Node{Kind: n.Kind, Pos: n.Pos, Fields: slices.Clone(n.Fields)}
	for i := range out.Fields {
		out.Fields[i].Value = change(out.Fields[i].Value)
	}
	return out
}

// ModelUse is a place where a model is named, with the fields that would name a file in its
// place.
type ModelUse struct {
	Model config.String
	Stage *config.Stage   // of which it is the model; nil for a member of an ensemble or a step of a ladder
	Own   []config.String // files that the same place may name: path, uri, sha256, member, archiveSha256
}

// ModelUses lists the places of a pipeline that can name a model.
func ModelUses(c *config.Pipeline) []ModelUse {
	var all []ModelUse
	for _, st := range c.Stages.Sorted() {
		all = append(all, ModelUse{st.Model, st, []config.String{st.Path, st.URI, st.SHA256, st.Member, st.ArchiveSHA256}})
		for _, m := range st.Ensemble.Models.Sorted() {
			all = append(all, ModelUse{m.Model, nil, []config.String{m.Path, m.URI, m.SHA256, m.Member, m.ArchiveSHA256}})
		}
	}
	for _, step := range c.Degrade.Ladder.Items {
		for _, m := range step.Models.Sorted() {
			all = append(all, ModelUse{m.Model, nil, []config.String{m.Path, m.URI, m.SHA256, m.Member, m.ArchiveSHA256}})
		}
	}
	return slices.DeleteFunc(all, func(u ModelUse) bool { return !u.Model.IsSet() })
}
