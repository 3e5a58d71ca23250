// Package yoctuned writes the recipe of the device program and its units.
//
// The program needs a newer Go than most series carry, so the recipe has two
// forms: it builds the source archive of the release where the series can, and
// installs the release's program elsewhere. Where a target serves metrics, the
// second build of the program has a separate recipe, so that a layer without it
// neither fetches nor compiles it.
package yoctuned

import (
	_ "embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/quote"
	"github.com/yoctune/yoctune/examples"
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
	//go:embed yoctuned-bench.service
	benchService string
	//go:embed yoctuned-serve.service
	serveService string
)

// Forms of the runtime.
const (
	Source       = "source"
	prebuiltForm = "prebuilt"
)

// The programs: the enforcer, and its second build, which serves.
const (
	Name   = "yoctuned"
	Server = "yoctuned-serve"
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
	switch {
	case l.Runtime.Form == Source && !r.GoSource:
		return nil, refuse("runtime.form", fmt.Errorf("the Go %s of %s is too old to build yoctuned; use form \"prebuilt\"", r.Go, r.Name))
	case l.Runtime.Form != Source && l.Runtime.Form != prebuiltForm:
		return nil, refuse("runtime.form", fmt.Errorf("%q is neither source nor prebuilt", l.Runtime.Form))
	}
	if _, err := quote.Version(l.Runtime.Version); err != nil {
		return nil, refuse("runtime.manifest", err)
	}
	f, err := renderRecipe(l, Name)
	if err != nil {
		return nil, err
	}
	f.Needs = []emitters.Need{{Package: Name, ID: "runtime"}}
	for _, t := range l.Targets {
		if id := readsJPEG(t.Plan); id != "" {
			f.Needs = append(f.Needs, emitters.Need{Package: "libturbojpeg", Machine: t.Machine, ID: id})
		}
	}
	files := []emitters.File{
		f,
		unit("yoctuned.service", service),
		unit("yoctuned-pipeline@.service", pipelineService),
		unit("yoctuned-bench.service", benchService),
	}
	if slices.ContainsFunc(l.Targets, HasServer) {
		if f, err = renderRecipe(l, Server); err != nil {
			return nil, err
		}
		for _, t := range l.Targets {
			if HasServer(t) {
				f.Needs = append(f.Needs, emitters.Need{Package: Server, Machine: t.Machine, ID: "monitor"})
			}
		}
		files = append(files, f, unit("yoctuned-serve.service", serveService))
		for _, d := range dashboards() {
			name := path.Join(d.Folder, d.Name)
			data, err := examples.Monitoring.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("dashboards: %w", err)
			}
			files = append(files, emitters.File{Path: dir + "files/" + name, Mode: 0o644, Data: data})
		}
	}
	return files, nil
}

// readsJPEG names the first pipeline whose source is decoded by libjpeg-turbo, ""
// for none. yoctuned loads that library when it is wanted, and does not depend on it.
func readsJPEG(p *plan.Plan) string {
	for _, name := range slices.Sorted(maps.Keys(p.Pipelines)) {
		if p.Pipelines[name].Source.Format == "mjpeg" {
			return "pipelines." + name
		}
	}
	return ""
}

type dashboard struct{ Folder, Name string }

// dashboards are what the package yoctuned-serve-dashboards holds.
func dashboards() []dashboard {
	return []dashboard{{"grafana", "yoctuned.json"}, {"prometheus", "prometheus.yml"}, {"prometheus", "yoctuned.rules.yml"}}
}

// HasServer reports whether a target's image contains the metrics server.
func HasServer(t *plan.Target) bool { return t.Plan.Monitor != nil && t.Plan.Monitor.Metrics }

// File names the file of the release that the recipe of a program fetches.
func File(form, program string) string {
	if form == Source {
		return program + "-source"
	}
	return program + "-arm64"
}

// LicencesFile returns the name of the release file with the licence texts of a program's
// dependencies.
func LicencesFile(program string) string { return program + "-licenses" }

const dir = "recipes-yoctune/yoctuned/"

func unit(name, text string) emitters.File {
	return emitters.File{Path: dir + "files/" + name, Mode: 0o644, Data: []byte(text),
		Means: []emitters.Meaning{{Kind: emitters.Unit, Name: name, Value: "unit", ID: "runtime"}}}
}

func renderRecipe(l *plan.Layer, program string) (emitters.File, error) {
	r, err := emitters.Release(l)
	if err != nil {
		return emitters.File{}, err
	}
	text := prebuilt
	if l.Runtime.Form == Source {
		text = source
	}
	artefact, err := Artefact(l, File(l.Runtime.Form, program))
	if err != nil {
		return emitters.File{}, err
	}
	terms, err := Artefact(l, LicencesFile(program))
	if err != nil {
		return emitters.File{}, err
	}
	if len(terms.Licences) == 0 {
		return emitters.File{}, refuse("runtime.manifest", fmt.Errorf("%q of the manifest names no licenses; name the manifest.json of a yoctune release", terms.Name))
	}
	t := emitters.NewTemplate("yoctuned", text)
	fetched := terms.SHA256
	if l.Runtime.Form == Source {
		fetched = "" // the texts are in the archive of the sources
	}
	return t.Fill(emitters.File{Path: dir + program + "_" + l.Runtime.Version + ".bb", Means: []emitters.Meaning{
		{Kind: emitters.Program, Name: program, Value: l.Runtime.Version, SHA256: artefact.SHA256, ID: "runtime.manifest"},
		{Kind: emitters.Licences, Name: program, Value: strings.Join(terms.Licences, " AND "), SHA256: fetched, ID: "runtime.manifest"},
	}}, struct {
		Name, Version     string
		Local, LocalTerms string
		Serve, SPDX       bool
		Dashboards        []dashboard
		Artefact, Terms   plan.RuntimeFile
	}{program, l.Runtime.Version, localPath(artefact), localPath(terms), program == Server, r.LicenseRefs, dashboards(), artefact, terms})
}

// localPath returns the path of a file on the build machine, or "" for a fetched file:
// bitbake unpacks it with the folders it lies in.
func localPath(f plan.RuntimeFile) string {
	p, ok := strings.CutPrefix(f.URI, "file://")
	if !ok {
		return ""
	}
	return p
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
