package resolve

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/plan"
)

// Defaults of the layer.
const (
	layerPriority = 10
	layerVersion  = 1
)

// Layer assembles the layer of some targets, all of one release.
func (p *Project) Layer(targets []*Target, report *diag.Report) *plan.Layer {
	n := p.Root.Get("layer")
	l := &plan.Layer{
		Name: text(n.Get("name")), Maintainer: text(n.Get("maintainer")), Description: text(n.Get("description")),
		Priority: int(integer(n.Get("priority"), layerPriority)), Version: int(integer(n.Get("version"), layerVersion)),
		Release: targets[0].Release.Name, Origins: plan.Origins{},
	}
	for _, f := range n.Fields {
		l.Origins["layer."+f.Name] = f.Value.Pos
	}
	for _, t := range targets {
		l.Targets = append(l.Targets, t.Target)
	}
	for _, s := range p.Suppress {
		l.Suppressed = append(l.Suppressed, s.Suppression)
	}
	l.Build = p.build(l.Origins, report)
	l.Runtime = p.runtime(targets, l.Origins, report)
	if targets[0].Release.ONNXRuntime != "" && l.Runtime.Form != "" {
		recommend(l, onnxCollection, onnxPackage, targets, func(t *Target) string { return firstModel(t.Plan) })
	}
	recommend(l, heapCollection, heapProfiler, targets, func(t *Target) string {
		if boolean(t.Node.At("tools", "memory"), false) && t.Node.At("packages", heapProfiler) == nil {
			return "tools.memory"
		}
		return ""
	})
	return l
}

// The layer that has a recipe of ONNX Runtime with the GPU's kernels, and the
// package (meta-tegra-community, recipes-devtools/onnxruntime).
const (
	onnxCollection = "tegra-community"
	onnxPackage    = "onnxruntime"
)

// The layer that has a profiler of the heap, and the package: every series since
// kirkstone has it (meta-oe, recipes-devtools/heaptrack).
const (
	heapCollection = "openembedded-layer"
	heapProfiler   = "heaptrack"
)

// recommend asks for a package of a layer that a build may lack, for the targets for
// which why names a part of the configuration. It is a recommendation, so that an
// image can do without it (BAD_RECOMMENDATIONS); bitbake wants a provider all the
// same, hence only on releases whose branch of that layer has the recipe.
func recommend(l *plan.Layer, collection, name string, targets []*Target, why func(*Target) string) {
	var wanted []plan.Recommended
	for _, t := range targets {
		if id := why(t); id != "" {
			wanted = append(wanted, plan.Recommended{Target: t.Name, Machine: t.Machine, ID: id, Package: name})
		}
	}
	if len(wanted) == 0 {
		return
	}
	i, found := slices.BinarySearchFunc(l.Build.Optional, collection, func(o plan.Optional, name string) int { return strings.Compare(o.Collection, name) })
	if !found {
		l.Build.Optional = slices.Insert(l.Build.Optional, i, plan.Optional{Collection: collection})
	}
	l.Build.Optional[i].Recommended = append(l.Build.Optional[i].Recommended, wanted...)
}

// firstModel names the first pipeline that runs a model, "" for none.
func firstModel(p *plan.Plan) string {
	for _, name := range slices.Sorted(maps.Keys(p.Pipelines)) {
		for _, s := range p.Pipelines[name].Stages {
			if s.Model != nil {
				return "pipelines." + name
			}
		}
	}
	return ""
}

func (p *Project) build(origins plan.Origins, report *diag.Report) plan.Build {
	n := p.Root.Get("build")
	b := plan.Build{
		Threads: int(integer(n.At("parallel", "tasks"), 0)), MakeJobs: int(integer(n.At("parallel", "make"), 0)),
		DownloadThreads: int(integer(n.At("parallel", "downloads"), 0)), RmWork: boolean(n.Get("rmWork"), false),
		HashServe: text(n.At("hashserve", "address")), HashUpstream: text(n.At("hashserve", "upstream")),
		SStateDir: text(n.At("sstate", "dir")), DownloadDir: text(n.At("downloads", "dir")),
		PressureCPU: int(integer(n.At("pressure", "cpu"), 0)), PressureIO: int(integer(n.At("pressure", "io"), 0)),
		PressureMemory: int(integer(n.At("pressure", "memory"), 0)),
		OwnMirror:      text(n.At("downloads", "own")), MirrorTarballs: boolean(n.At("downloads", "archive"), false),
		Network: text(n.At("downloads", "network")), Hosts: texts(n.At("downloads", "hosts")),
		HashOff:       boolean(n.At("hashserve", "off"), false),
		HashDatabase:  text(n.At("hashserve", "database")),
		RmWorkExclude: texts(n.Get("rmWorkExclude")), PackageFormat: text(n.Get("format")),
		ImageFeatures: texts(n.At("image", "features")), ReadOnlyRoot: boolean(n.At("image", "readOnly"), false),
	}
	b.NotRecommended = texts(n.At("image", "badRecommendations"))
	b.BitBakeSetup = boolean(n.Get("bitbakeSetup"), false)
	b.SStateMirrors = mirrors(n.At("sstate", "mirrors"), "file://.*")
	b.Premirrors = mirrors(n.At("downloads", "mirrors"), "(?:git|https?|ftp)://.*/.*")
	if load := n.At("parallel", "load"); load != nil {
		b.LoadFactor = decimal(load)
	}
	for _, f := range sortedFields(n.At("parallel", "recipes")) {
		b.RecipeJobs = append(b.RecipeJobs, plan.RecipeJobs{Recipe: f.Name, Jobs: int(integer(f.Value, 0))})
	}
	for _, f := range sortedFields(n.Get("optional")) {
		b.Optional = append(b.Optional, plan.Optional{Collection: f.Name, Packages: texts(f.Value)})
	}
	for _, f := range sortedFields(n.Get("variables")) {
		b.Variables = append(b.Variables, plan.Variable{Name: f.Name, Value: f.Value.Text})
	}
	if s := n.At("hashserve", "server"); s != nil {
		b.HashServer = &plan.HashServer{
			BitBake: text(s.Get("bitbake")), Listen: textOr(s.Get("listen"), ":8686"),
			Upstream: text(s.Get("upstream")), ReadOnly: boolean(s.Get("readOnly"), false),
		}
	}
	if k := n.Get("kas"); k != nil {
		b.Kas = &plan.Kas{Image: textOr(k.Get("image"), "core-image-base"), Distro: textOr(k.Get("distro"), "nodistro"), Folder: textOr(k.Get("folder"), ".")}
	}
	parallel(&b, n.At("parallel", "machine"), report)
	leaves(n, "build", origins)
	return b
}

// Memory that parallel work is given, in bytes. A C++ compiler at its worst
// takes about 2 GiB, so make gets no more jobs than fit; and of the tasks that
// run at the same time about half compile, so each of those is counted double.
const (
	memoryPerJob  = 2 << 30
	memoryPerTask = 4 << 30
)

// parallel fills in what follows from the build machine.
func parallel(b *plan.Build, n *load.Node, report *diag.Report) {
	if n == nil {
		return
	}
	memory, err := Size(n.Get("memory"))
	if err != nil {
		report.Add(diag.Diagnostic{ID: "YT0204", Severity: diag.Error, Pos: n.Get("memory").Pos, Path: "build.parallel.machine.memory",
			Message: err.Error(), Got: n.Get("memory").Show(), Help: "write a size such as \"32GiB\""})
		return
	}
	cores := integer(n.Get("cores"), 1)
	if b.MakeJobs == 0 {
		b.MakeJobs = int(max(1, min(cores, memory/memoryPerJob)))
	}
	if b.Threads == 0 {
		b.Threads = int(max(1, min(cores, memory/memoryPerTask)))
	}
}

// leaves records where each field of the build's settings was written.
func leaves(n *load.Node, id string, origins plan.Origins) {
	if n == nil {
		return
	}
	origins[id] = n.Pos
	for _, f := range n.Fields {
		leaves(f.Value, id+"."+f.Name, origins)
	}
}

func mirrors(n *load.Node, pattern string) []plan.Mirror {
	fields := sortedFields(n)
	slices.SortStableFunc(fields, func(a, b load.Field) int {
		return int(integer(a.Value.Get("order"), 0) - integer(b.Value.Get("order"), 0))
	})
	var out []plan.Mirror
	for _, f := range fields {
		out = append(out, plan.Mirror{ID: f.Name, Pattern: textOr(f.Value.Get("pattern"), pattern), URL: text(f.Value.Get("url"))})
	}
	return out
}

// runtime is the same for the whole layer, so its targets must agree.
func (p *Project) runtime(targets []*Target, origins plan.Origins, report *diag.Report) plan.Runtime {
	var n *load.Node
	for _, t := range targets {
		mine := t.Node.Get("runtime")
		if mine == nil {
			continue
		}
		if n != nil && !n.Equal(mine) {
			report.Add(diag.Diagnostic{ID: "YT0105", Severity: diag.Error, Pos: mine.Pos, Path: t.Path + ".runtime",
				Message: "targets of one layer disagree about the runtime", Got: mine.Show(),
				Related: []diag.Related{{Pos: n.Pos, Message: "another target says " + n.Show()}},
				Help:    "put runtime into a profile that all targets use"})
		}
		n = mine
	}
	if n == nil {
		return plan.Runtime{} // files only: the layer brings no program
	}
	r := plan.Runtime{Form: "prebuilt", CUDA: boolean(n.Get("cuda"), false)}
	if targets[0].Release.GoSource {
		r.Form = "source"
	}
	r.Form = textOr(n.Get("form"), r.Form)
	for _, f := range sortedFields(n.Get("keys")) {
		r.Keys = append(r.Keys, plan.PublicKey{Name: f.Name, Key: text(f.Value)})
	}
	leaves(n, "runtime", origins)
	switch m := n.Get("manifest"); {
	case m != nil:
		p.files(&r, m, report)
	case n.Get("form") == nil && n.Get("cuda") == nil:
		r.Form = "" // keys alone: the program comes from elsewhere
	default:
		report.Add(diag.Diagnostic{ID: "YT0206", Severity: diag.Error, Pos: n.Pos, Path: "runtime.manifest",
			Message: "the layer is to bring yoctuned, and no manifest says where its files are",
			Help:    "add manifest, the path of the manifest.json of a yoctune release; without form and cuda the layer brings no program"})
	}
	return r
}

// Manifest is dist/manifest.json, which `make dist` writes.
type Manifest struct {
	Version string         `json:"version"`
	Files   []ManifestFile `json:"files"`
}

// ManifestFile is one artefact of the runtime.
type ManifestFile struct {
	Name     string   `json:"name"`     // yoctuned-arm64, yoctuned-serve-source, …
	URI      string   `json:"uri"`      // where bitbake fetches it
	SHA256   string   `json:"sha256"`   // lower-case hexadecimal
	Licences []string `json:"licenses"` // of PROGRAM-licenses: SPDX identifiers of what is linked into the program
	MD5      string   `json:"md5"`      // of PROGRAM-licenses
}

func (p *Project) files(r *plan.Runtime, n *load.Node, report *diag.Report) {
	fail := func(format string, args ...any) {
		report.Add(diag.Diagnostic{ID: "YT0206", Severity: diag.Error, Pos: n.Pos, Path: "runtime.manifest",
			Message: "runtime manifest: " + fmt.Sprintf(format, args...),
			Help:    "name a manifest made by `make dist`, by a path relative to the configuration and inside its folder"})
	}
	raw, err := p.manifest(n.Text)
	if err != nil {
		fail("%v", err)
		return
	}
	var m Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		fail("%v", err)
		return
	}
	if m.Version == "" || len(m.Files) == 0 {
		fail("it holds no version or no files")
		return
	}
	r.Version = m.Version
	for _, f := range m.Files {
		if len(f.SHA256) != 64 || strings.Trim(f.SHA256, "0123456789abcdef") != "" {
			fail("file %q has no SHA-256", f.Name)
			return
		}
		r.Files = append(r.Files, plan.RuntimeFile(f))
	}
	slices.SortFunc(r.Files, func(a, b plan.RuntimeFile) int { return strings.Compare(a.Name, b.Name) })
}
