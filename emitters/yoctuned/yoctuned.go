// Package yoctuned writes the recipe of the device program and its units.
//
// The recipe has three forms: it installs the program that the layer contains
// (bundled), fetches the program of a release (prebuilt), or builds the source archive
// of a release on a series whose Go is new enough (source). Where a target serves
// metrics, the second build of the program has a separate recipe, so that a layer
// without it neither contains, fetches nor compiles it.
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
	"github.com/yoctune/yoctune/internal/lazyregexp"
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

// The programs: the enforcer, and its second build, which serves.
const (
	Name   = "yoctuned"
	Server = "yoctuned-serve"
)

// Emit returns nothing when the configuration takes no runtime.
func Emit(l *plan.Layer) ([]emitters.File, error) {
	if !l.Runtime.Installed() {
		return nil, nil
	}
	r, err := emitters.Release(l)
	if err != nil {
		return nil, err
	}
	switch {
	case l.Runtime.Form == plan.RuntimeSource && !r.GoSource:
		return nil, refuse("runtime.form", fmt.Errorf("the Go %s of %s is too old to build yoctuned; use form \"prebuilt\"", r.Go, r.Name))
	case !slices.Contains([]string{plan.RuntimeBundled, plan.RuntimeSource, plan.RuntimePrebuilt}, l.Runtime.Form):
		return nil, refuse("runtime.form", fmt.Errorf("%q is none of bundled, source and prebuilt", l.Runtime.Form))
	}
	f, files, err := recipe(l, Name)
	if err != nil {
		return nil, err
	}
	f.Needs = []emitters.Need{{Package: Name, ID: "runtime"}}
	for _, t := range l.Targets {
		if t.Benchmark {
			f.Needs = append(f.Needs, emitters.Need{Package: Name + "-bench", Machine: t.Machine, ID: "tools.benchmark"})
		}
		if id := readsJPEG(t.Plan); id != "" {
			f.Needs = append(f.Needs, emitters.Need{Package: "libturbojpeg", Machine: t.Machine, ID: id})
		}
	}
	files = append(files,
		f,
		unit("yoctuned.service", service),
		unit("yoctuned-pipeline@.service", pipelineService),
		unit("yoctuned-bench.service", benchService),
	)
	if !slices.ContainsFunc(l.Targets, (*plan.Target).Serves) {
		return files, nil
	}
	more, err := server(l)
	return append(files, more...), err
}

// server returns the files of the second build of the program.
func server(l *plan.Layer) ([]emitters.File, error) {
	f, files, err := recipe(l, Server)
	if err != nil {
		return nil, err
	}
	for _, t := range l.Targets {
		if t.Serves() {
			f.Needs = append(f.Needs, emitters.Need{Package: Server, Machine: t.Machine, ID: servedBy(t)})
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
	return files, nil
}

// servedBy is what needs yoctuned-serve on a target: its measurements, or a pipeline.
func servedBy(t *plan.Target) string {
	for _, name := range slices.Sorted(maps.Keys(t.Plan.Pipelines)) {
		if p := t.Plan.Pipelines[name]; p.Serves() && !t.Measures() {
			return "pipelines." + name
		}
	}
	if t.Plan.Cluster != nil && !t.Measures() {
		return "cluster"
	}
	return "monitor"
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

// Artefacts names the files of the runtime that the recipe of a program takes: the
// program or its sources, then its licences, and the SPDX document of a bundled one.
func Artefacts(form, program string) []string {
	switch form {
	case plan.RuntimeSource:
		return []string{program + "-source", LicencesFile(program)}
	case plan.RuntimeBundled:
		return []string{program + "-arm64", LicencesFile(program), program + "-spdx"}
	}
	return []string{program + "-arm64", LicencesFile(program)}
}

// LicencesFile returns the name of the release file with the licence texts of a program's
// dependencies.
func LicencesFile(program string) string { return program + "-licenses" }

const dir = "recipes-yoctune/yoctuned/"

func unit(name, text string) emitters.File {
	return emitters.File{Path: dir + "files/" + name, Mode: 0o644, Data: []byte(text),
		Means: []emitters.Meaning{{Kind: emitters.Unit, Name: name, Value: "unit", ID: "runtime"}}}
}

// recipe returns the recipe of a program, and the files beside it that the layer contains.
func recipe(l *plan.Layer, program string) (emitters.File, []emitters.File, error) {
	none := emitters.File{}
	r, err := emitters.Release(l)
	if err != nil {
		return none, nil, err
	}
	version, err := Version(l)
	if err != nil {
		return none, nil, err
	}
	var taken []plan.RuntimeFile
	for _, name := range Artefacts(l.Runtime.Form, program) {
		f, err := Artefact(l, name)
		if err != nil {
			return none, nil, err
		}
		taken = append(taken, f)
	}
	artefact, terms := taken[0], taken[1]
	if len(terms.Licences) == 0 {
		return none, nil, refuse("runtime.manifest", fmt.Errorf("%q of the manifest names no licenses; name the manifest.json of a yoctune release", terms.Name))
	}
	means := []emitters.Meaning{
		{Kind: emitters.Program, Name: program, Value: l.Runtime.Version, SHA256: artefact.SHA256, ID: "runtime.manifest"},
		{Kind: emitters.Licences, Name: program, Value: strings.Join(terms.Licences, " AND "), SHA256: terms.SHA256, ID: "runtime.manifest"},
	}
	text, unpacked, beside := prebuilt, program+"-"+version+"-linux-arm64", []emitters.File(nil)
	switch l.Runtime.Form {
	case plan.RuntimeSource:
		text = source
		means[1].SHA256 = "" // the texts are in the archive of the sources
	case plan.RuntimeBundled:
		unpacked = strings.TrimSuffix(artefact.URI, ".gz")
		means[0].ID, means[1].ID = "runtime", "runtime"
		beside, means = Contain(l, dir, taken, means), nil
	}
	f, err := emitters.NewTemplate("yoctuned", text).Fill(emitters.File{Path: dir + program + "_" + version + ".bb", Means: means}, struct {
		Name, Version     string
		Local, LocalTerms string
		Bundled           bool
		Unpacked          string // name of the program's file when bitbake has unpacked it
		Serve, SPDX       bool
		Page              bool // some target serves its measurements: the unit is enabled
		Dashboards        []dashboard
		Artefact, Terms   plan.RuntimeFile
	}{program, version, localPath(artefact), localPath(terms), l.Runtime.Bundled(), unpacked, program == Server, r.LicenseRefs, slices.ContainsFunc(l.Targets, (*plan.Target).Measures), dashboards(), artefact, terms})
	return f, beside, err
}

// Version returns the version of the runtime's recipes. bitbake and the package managers
// sort 0.2.0~dev before 0.2.0, and 0.2.0-dev after it.
func Version(l *plan.Layer) (string, error) {
	v, err := quote.Version(strings.Replace(l.Runtime.Version, "-", "~", 1))
	if err != nil {
		return "", refuse("runtime.manifest", err)
	}
	return v, nil
}

// Contain returns the files of the runtime that a recipe in dir finds in the layer, the
// first of them with their meanings.
func Contain(l *plan.Layer, dir string, taken []plan.RuntimeFile, means []emitters.Meaning) []emitters.File {
	out := make([]emitters.File, len(taken))
	for i, f := range taken {
		out[i] = emitters.File{Path: dir + "files/" + f.URI, Mode: 0o644, Data: f.Data, Origins: []emitters.Ref{{ID: "runtime"}},
			Unreleased: strings.Contains(l.Runtime.Version, "-")}
		if i < len(means) {
			out[i].Means = means[i : i+1 : i+1]
		}
	}
	return out
}

// containedName matches the files of the runtime folder as its writer names them.
var containedName = lazyregexp.New(`^(recipes-yoctune/[a-z-]+/files/)([a-z-]+?)-[0-9].*?(-licenses\.txt|\.spdx\.json|-linux-arm64\.gz|-source\.tar\.gz)$`)

// ContainedFile reports whether a path of a layer is that of a file from the runtime folder,
// and its role: the path without the version.
func ContainedFile(path string) (role string, ok bool) {
	m := containedName.FindStringSubmatch(path)
	if m == nil {
		return "", false
	}
	return m[1] + m[2] + m[3], true
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
