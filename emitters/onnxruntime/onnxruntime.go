// Package onnxruntime writes the recipe of the ONNX Runtime that pipelines load when the
// image has no other: the library of PyPI's wheel, which runs on the CPU. It is installed
// beside the plan, where it is in nobody's way, and yoctuned looks there last.
package onnxruntime

import (
	_ "embed"
	"path"
	"slices"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/facts/upstream"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed onnxruntime.bb.tmpl
var recipe string

// Name is the name of the recipe and of its package.
const Name = "yoctune-onnxruntime"

// text is a licence text in the archive.
type text struct{ Folder, Name, MD5 string }

// needs lists the targets with a pipeline that runs a model; none when the layer has no
// program that runs pipelines.
func needs(l *plan.Layer) []emitters.Need {
	if !l.Runtime.Installed() {
		return nil
	}
	var all []emitters.Need
	for _, t := range l.Targets {
		if name := t.Plan.FirstModel(); name != "" {
			all = append(all, emitters.Need{Package: Name, Machine: t.Machine, ID: "pipelines." + name})
		}
	}
	return all
}

// Fetched returns the file that the recipe fetches, and whether the layer has the recipe.
func Fetched(l *plan.Layer) (upstream.File, bool) { return upstream.ONNXRuntime(), len(needs(l)) > 0 }

// Emit returns nothing when no pipeline runs a model.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	wanted := needs(l)
	if len(wanted) == 0 {
		return nil, nil
	}
	f := upstream.ONNXRuntime()
	library := f.Member("*/capi/libonnxruntime.so.*")
	file := emitters.File{
		Path:  "recipes-yoctune/" + Name + "/" + Name + "_" + f.Version + ".bb",
		Means: []emitters.Meaning{{Kind: emitters.Program, Name: Name, Value: f.Version, SHA256: f.SHA256, ID: wanted[0].ID}},
		Needs: wanted,
	}
	target := l.Targets[slices.IndexFunc(l.Targets, func(t *plan.Target) bool { return t.Machine == wanted[0].Machine })]
	data := struct {
		File                                upstream.File
		Terms                               []text
		Target, ID, Download, Library, Name string
	}{f, nil, target.Name, wanted[0].ID, "onnxruntime-" + f.Version + "-aarch64.zip", "/" + library.Path, path.Base(library.Path)}
	for _, name := range []string{"LICENSE", "ThirdPartyNotices.txt"} {
		m := f.Member("*/" + name)
		data.Terms = append(data.Terms, text{path.Dir(m.Path), path.Base(m.Path), m.MD5})
	}
	filled, err := emitters.NewTemplate("onnxruntime", recipe).Fill(file, data)
	if err != nil {
		return nil, err
	}
	return []emitters.File{filled}, nil
}
