// Package layerconf writes what makes a folder a layer: conf/layer.conf, the class that its
// recipes share, the licence, and SECURITY.md, which yocto-check-layer requires from walnascar on.
package layerconf

import (
	"cmp"
	_ "embed"
	"maps"
	"slices"
	"strconv"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/emitters/yoctuned"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/plan"
)

var (
	//go:embed layer.conf.tmpl
	layerConf string
	//go:embed class.bbclass.tmpl
	class string
	//go:embed COPYING.MIT.tmpl
	copying string
	//go:embed SECURITY.md.tmpl
	security string
)

// Emit returns the four files.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	r, err := emitters.Release(l)
	if err != nil {
		return nil, err
	}
	data := struct {
		Layer   *plan.Layer
		Release release.Release
		Version string   // of yoctuned, "" if the layer has none
		Dynamic []string // collections that a build may lack, and something depends on

		Pipelines, Serves bool     // some target has them
		Requests          []front  // of pipelines that answer requests
		Root              []string // services with a command that run as root
		Fragments         bool     // some target has kernel options, which the class compares
	}{Layer: l, Release: r}
	if l.Runtime.Installed() {
		if data.Version, err = yoctuned.Version(l); err != nil {
			return nil, err
		}
	}
	for _, t := range l.Targets {
		data.Fragments = data.Fragments || len(t.Kernel.Config) > 0
		data.Pipelines, data.Serves = data.Pipelines || len(t.Plan.Pipelines) > 0, data.Serves || t.Measures()
		data.Requests = append(data.Requests, fronts(t)...)
		for _, s := range t.Services {
			if s.IsWhole() && s.IsRoot() && !slices.Contains(data.Root, s.Name) {
				data.Root = append(data.Root, s.Name)
			}
		}
	}
	for _, o := range l.Build.Optional {
		if len(o.Packages)+len(o.Recommended) > 0 {
			data.Dynamic = append(data.Dynamic, o.Collection)
		}
	}
	className, err := quote.ClassName(l.Name)
	if err != nil {
		return nil, &emitters.Error{Emitter: "layerconf", Ref: emitters.Ref{ID: "layer.name"}, Err: err}
	}
	var files []emitters.File
	for _, f := range []struct{ path, text string }{
		{"conf/layer.conf", layerConf},
		{"classes/" + className + ".bbclass", class},
		{"COPYING.MIT", copying},
		{"SECURITY.md", security},
	} {
		t := emitters.NewTemplate("layerconf", f.text)
		file, err := t.Fill(emitters.File{Path: f.path}, data)
		if err != nil {
			return nil, err
		}
		if f.path == "conf/layer.conf" {
			file.Means = []emitters.Meaning{{Kind: emitters.Layer, Name: l.Name, Value: strconv.Itoa(l.Version), ID: "layer"}}
		}
		files = append(files, file)
	}
	return files, nil
}

// front is where a pipeline takes requests.
type front struct {
	Unit, Socket, Address string
	Everyone, Plain       bool
}

// fronts lists the pipelines of a target that answer requests.
func fronts(t *plan.Target) []front {
	var all []front
	for _, name := range slices.Sorted(maps.Keys(t.Plan.Pipelines)) {
		if q := t.Plan.Pipelines[name].Source.Request; q != nil {
			all = append(all, front{emitters.PipelineUnit(name), cmp.Or(q.Socket, "/run/yoctune-pipeline/"+name+"/requests"), q.Address, q.Everyone, q.Plain})
		}
	}
	return all
}
