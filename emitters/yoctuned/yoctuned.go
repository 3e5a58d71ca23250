// Package yoctuned writes the recipe of the device program and its units.
//
// The program needs a newer Go than most series carry, so the recipe has two
// forms: it builds the source archive of the release where the series can, and
// installs the release's program elsewhere.
package yoctuned

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/schema/plan"
)

var (
	//go:embed prebuilt.bb.tmpl
	prebuilt string
	//go:embed source.bb.tmpl
	source string
	//go:embed yoctuned.service
	service string
	//go:embed yoctuned-pipeline@.service
	pipelineService string
)

// Forms of the runtime.
const (
	Source   = "source"
	Prebuilt = "prebuilt"
)

// Emit returns nothing when the configuration takes no runtime.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	if l.Runtime.Form == "" {
		return nil, nil
	}
	r, err := emitters.Release(l)
	if err != nil {
		return nil, err
	}
	text, name := prebuilt, "yoctuned-arm64"
	switch {
	case l.Runtime.Form == Source && !r.GoSource:
		return nil, refuse("runtime.form", fmt.Errorf("the Go %s of %s is too old to build yoctuned; use form \"prebuilt\"", r.Go, r.Name))
	case l.Runtime.Form == Source:
		text, name = source, "yoctuned-source"
	case l.Runtime.Form != Prebuilt:
		return nil, refuse("runtime.form", fmt.Errorf("%q is neither source nor prebuilt", l.Runtime.Form))
	}
	artefact, err := Artefact(l, name)
	if err != nil {
		return nil, err
	}
	if _, err := quote.Version(l.Runtime.Version); err != nil {
		return nil, refuse("runtime.manifest", err)
	}
	t, err := emitters.Parse("yoctuned", text)
	if err != nil {
		return nil, err
	}
	// bitbake unpacks a file of the build machine with the folders it lies in.
	local, _ := strings.CutPrefix(artefact.URI, "file://")
	if local == artefact.URI {
		local = ""
	}
	const dir = "recipes-yoctune/yoctuned/"
	f, err := t.Fill(emitters.File{Path: dir + "yoctuned_" + l.Runtime.Version + ".bb"}, struct {
		Version, Local string
		Artefact       plan.RuntimeFile
	}{l.Runtime.Version, local, artefact})
	if err != nil {
		return nil, err
	}
	return []emitters.File{
		f,
		{Path: dir + "files/yoctuned.service", Mode: 0o644, Data: []byte(service)},
		{Path: dir + "files/yoctuned-pipeline@.service", Mode: 0o644, Data: []byte(pipelineService)},
	}, nil
}

// Artefact finds a file of the release's manifest.
func Artefact(l *plan.Layer, name string) (plan.RuntimeFile, error) {
	for _, f := range l.Runtime.Files {
		if f.Name == name {
			return f, nil
		}
	}
	return plan.RuntimeFile{}, refuse("runtime.manifest", fmt.Errorf("the manifest has no %q; name the manifest.json of a yoctune release", name))
}

func refuse(id string, err error) error {
	return &emitters.Error{Emitter: "yoctuned", Ref: emitters.Ref{ID: id}, Err: err}
}
