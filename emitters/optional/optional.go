// Package optional writes what depends on a layer that a build may lack: an
// append to the package group for each collection, which BBFILES_DYNAMIC of
// layer.conf reads only where that collection is present. A plain dependency on
// such a layer's packages would stop the builds that lack it.
package optional

import (
	_ "embed"
	"path"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/plan"
)

//go:embed packagegroup.bbappend.tmpl
var text string

// Emit returns one append for each collection.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	t := emitters.NewTemplate("optional", text)
	var files []emitters.File
	for _, o := range l.Build.Optional {
		if len(o.Packages)+len(o.Recommended) == 0 {
			continue
		}
		if _, err := quote.Collection(o.Collection); err != nil {
			return nil, &emitters.Error{Emitter: "optional", Ref: emitters.Ref{ID: "build.optional." + o.Collection}, Err: err}
		}
		name := "packagegroup-yoctune-" + l.Name + ".bbappend"
		f, err := t.Fill(emitters.File{Path: path.Join("dynamic-layers", o.Collection, "recipes-yoctune/packagegroups", name)}, o)
		if err != nil {
			return nil, err
		}
		for _, p := range o.Packages {
			f.Means = append(f.Means, emitters.Meaning{Kind: emitters.Package, Name: p, Value: "install", With: o.Collection, ID: "build.optional." + o.Collection})
		}
		for _, r := range o.Recommended {
			f.Means = append(f.Means, emitters.Meaning{Kind: emitters.Package, Name: r.Package, Value: "recommend", Machine: r.Machine, With: o.Collection, ID: r.ID})
		}
		files = append(files, f)
	}
	return files, nil
}
