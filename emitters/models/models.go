// Package models writes the recipe that installs the models of pipelines under their
// digests, and their labels under their names. A model without an address in the
// configuration is installed by other means.
package models

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed models.bb.tmpl
var recipe string

type file struct {
	plan.ModelFile
	Target string
	Flag   string // names the checksum of this source
	Local  string // path on the build machine, "" for one that is fetched
}

type machine struct {
	Machine string
	Files   []file
}

// recipeName is the name of the recipe and of its package.
func recipeName(l *plan.Layer) string { return "yoctune-" + l.Name + "-models" }

// Emit returns nothing when no pipeline has a model with an address.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	data := struct {
		Layer       *plan.Layer
		Machines    []machine
		All         []file // each digest once
		LicenseRefs bool
	}{Layer: l}
	if r, ok := release.Lookup(l.Release); ok {
		data.LicenseRefs = r.LicenseRefs
	}
	var means []emitters.Meaning
	var needs []emitters.Need
	seen := map[string]bool{}
	for _, t := range l.Targets {
		if len(t.Models) == 0 {
			continue
		}
		m := machine{Machine: t.Machine}
		needs = append(needs, emitters.Need{Package: recipeName(l), Machine: t.Machine, ID: t.Models[0].ID})
		installed := map[string]string{} // digest by name
		for _, model := range t.Models {
			ref := emitters.Ref{Target: t.Name, ID: model.ID}
			if model.SHA256 == "" {
				return nil, &emitters.Error{Emitter: "models", Ref: ref,
					Err: errors.New("a file that is fetched needs its sha256: only the digest proves that it is the right one")}
			}
			if _, err := quote.SHA256(model.SHA256); err != nil {
				return nil, &emitters.Error{Emitter: "models", Ref: ref, Err: err}
			}
			f := file{ModelFile: model, Target: t.Name, Flag: "model-" + model.SHA256[:12]}
			if local, ok := strings.CutPrefix(model.URI, "file://"); ok {
				f.Local = local
			}
			name := model.Name
			if name == "" {
				name = model.SHA256
			}
			if other, taken := installed[name]; taken && other != model.SHA256 {
				return nil, &emitters.Error{Emitter: "models", Ref: ref,
					Err: fmt.Errorf("another pipeline has a file of the name %q and another content; give one of them another name", name)}
			}
			installed[name] = model.SHA256
			m.Files = append(m.Files, f)
			means = append(means, emitters.Meaning{Kind: emitters.Model, Name: name, Value: model.URI, SHA256: model.SHA256, Machine: t.Machine, ID: model.ID})
			if !seen[model.SHA256] {
				seen[model.SHA256] = true
				data.All = append(data.All, f)
			}
		}
		// What is fetched first, as oelint wants it.
		slices.SortStableFunc(m.Files, func(a, b file) int { return cmp.Compare(min(len(a.Local), 1), min(len(b.Local), 1)) })
		data.Machines = append(data.Machines, m)
	}
	if len(data.Machines) == 0 {
		return nil, nil
	}
	t := emitters.NewTemplate("models", recipe)
	f, err := t.Fill(emitters.File{Path: fmt.Sprintf("recipes-yoctune/%s/%s_%d.0.bb", recipeName(l), recipeName(l), l.Version), Means: means, Needs: needs}, data)
	if err != nil {
		return nil, err
	}
	return []emitters.File{f}, nil
}
