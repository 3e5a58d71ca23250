package resolve

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/programs"
	"github.com/yoctune/yoctune/internal/version"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/plan"
)

// Defaults of the layer.
const (
	layerPriority = 10
	layerVersion  = 1
)

// Layer assembles the layer of some targets, all of one release.
// The finder has the programs that the layer contains; nil if the layer is only judged.
func (p *Project) Layer(targets []*Target, finder *programs.Finder, report *diag.Report) *plan.Layer {
	c := &p.Config.Layer
	l := &plan.Layer{
		Name: c.Name.Text, Maintainer: c.Maintainer.Text, Description: c.Description.Text,
		Priority: c.Priority.Or(layerPriority), Version: c.Version.Or(layerVersion), Depends: config.Texts(c.Depends),
		Release: targets[0].Release.Name, CoreOnly: targets[0].Release.CoreOnly, Origins: plan.Origins{},
	}
	for _, f := range c.Node().Fields {
		l.Origins["layer."+f.Name] = f.Value.Pos
	}
	for _, t := range targets {
		l.Targets = append(l.Targets, t.Target)
	}
	checkCarried(targets, report)
	for _, s := range p.Suppress {
		l.Suppressed = append(l.Suppressed, s.Suppression)
	}
	l.Build = p.build(l.Origins, report)
	l.Runtime = p.runtime(targets, finder, l.Origins, report)
	if targets[0].Release.ONNXRuntime != "" && l.Runtime.Installed() {
		recommend(l, onnxCollection, onnxPackage, targets, func(t *Target) string {
			if name := t.Plan.FirstModel(); name != "" {
				return "pipelines." + name
			}
			return ""
		})
	}
	recommend(l, heapCollection, heapProfiler, targets, func(t *Target) string {
		if tool := t.Config.Tools.Memory; tool.On && !t.Config.Packages.Has(heapProfiler) {
			return tool.ID()
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

// recommend adds a recommended package of an optional layer, for the targets for
// which why names a part of the configuration. An image can exclude a recommendation
// (BAD_RECOMMENDATIONS), but bitbake requires a provider: callers recommend only on
// releases whose branch of that layer has the recipe.
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

func isOff(b config.Bool) bool { return b.IsSet() && !b.On }

func (p *Project) build(origins plan.Origins, report *diag.Report) plan.Build {
	c := &p.Config.Build
	b := plan.Build{
		Threads: c.Parallel.Tasks.Value, MakeJobs: c.Parallel.Make.Value, DownloadThreads: c.Parallel.Downloads.Value,
		Off: plan.Off{
			RmWork: isOff(c.RmWork), HashOff: isOff(c.Hashserve.Off),
			MirrorTarballs: isOff(c.Downloads.Archive), ReadOnlyRoot: isOff(c.Image.ReadOnly),
		},
		RmWork: c.RmWork.On, RmWorkExclude: config.Texts(c.RmWorkExclude),
		HashServe: c.Hashserve.Address.Text, HashUpstream: c.Hashserve.Upstream.Text,
		HashOff: c.Hashserve.Off.On, HashDatabase: c.Hashserve.Database.Text,
		SStateDir: c.SState.Dir.Text, SStateMirrors: mirrors(&c.SState.Mirrors, "file://.*"),
		DownloadDir: c.Downloads.Dir.Text, Premirrors: mirrors(&c.Downloads.Mirrors, "(?:git|https?|ftp)://.*/.*"),
		OwnMirror: c.Downloads.Own.Text, MirrorTarballs: c.Downloads.Archive.On,
		Network: c.Downloads.Network.Text, Hosts: config.Texts(c.Downloads.Hosts),
		PressureCPU: c.Pressure.CPU.Value, PressureIO: c.Pressure.IO.Value, PressureMemory: c.Pressure.Memory.Value,
		PackageFormat: c.Format.Text, BitBakeSetup: c.BitbakeSetup.On,
		ImageFeatures: config.Texts(c.Image.Features), ReadOnlyRoot: c.Image.ReadOnly.On,
		NotRecommended: config.Texts(c.Image.BadRecommendations), NoFeatures: config.Texts(c.Image.RemoveFeatures),
		Distro: words(&c.DistroFeatures), MachineWords: words(&c.MachineFeatures),
	}
	for _, change := range c.PackageConfig.Sorted() {
		b.PackageConfigs = append(b.PackageConfigs, plan.PackageConfig{Recipe: change.Key(), Words: words(change)})
	}
	b.DiskMonitors = diskMonitors(&c.DiskMonitor, report)
	if c.Parallel.Load.IsSet() {
		b.LoadFactor = decimal(c.Parallel.Load.Node())
	}
	for _, jobs := range c.Parallel.Recipes.Sorted() {
		b.RecipeJobs = append(b.RecipeJobs, plan.RecipeJobs{Recipe: jobs.Key(), Jobs: jobs.Value})
	}
	for _, packages := range c.Optional.Sorted() {
		b.Optional = append(b.Optional, plan.Optional{Collection: packages.Key(), Packages: config.Texts(*packages)})
	}
	for _, v := range c.Variables.Sorted() {
		value := config.FirstSet(v.Scalar, v.Struct.Value)
		b.Variables = append(b.Variables, plan.Variable{
			Name: v.Key(), Set: value.IsSet(), Value: value.Node().Word(),
			Append: config.Texts(v.Struct.Append), Remove: config.Texts(v.Struct.Remove),
		})
	}
	if s := &c.Hashserve.Server; s.IsSet() {
		b.HashServer = &plan.HashServer{BitBake: s.Bitbake.Text, Listen: s.Listen.Or(":8686"), Upstream: s.Upstream.Text, ReadOnly: s.ReadOnly.On}
	}
	if k := &c.Kas; k.IsSet() {
		b.Kas = &plan.Kas{Image: k.Image.Or("core-image-base"), Distro: k.Distro.Or("nodistro"), Folder: k.Folder.Or(".")}
	}
	setParallelism(&b, &c.Parallel.Machine, report)
	recordOrigins(c.Node(), "build", origins)
	return b
}

func words(c *config.WordChange) plan.Words {
	return plan.Words{Append: config.Texts(c.Append), Remove: config.Texts(c.Remove)}
}

// diskMonitors returns the limits of folders, each the mildest first.
func diskMonitors(c *config.Map[config.DiskMonitor], report *diag.Report) []plan.DiskMonitor {
	var all []plan.DiskMonitor
	for _, d := range c.Sorted() {
		for _, l := range []struct {
			action string
			*config.DiskLimit
		}{{"WARN", &d.Warn}, {"STOPTASKS", &d.Stop}, {"HALT", &d.Halt}} {
			if !l.IsSet() {
				continue
			}
			m := plan.DiskMonitor{ID: l.ID(), Action: l.action, Path: d.Key(), Inodes: int64(l.Inodes.Value)}
			if l.Space.IsSet() {
				size, err := Size(l.Space.Node())
				if err == nil && (size == 0 || size%1024 != 0) {
					err = errors.New("the space is a multiple of 1 KiB")
				}
				if err != nil {
					report.Add(diag.Diagnostic{ID: "YT0204", Severity: diag.Error, Pos: l.Space.Pos(), Path: l.Space.FullPath(), Message: err.Error(), Got: l.Space.Show(), Help: `write a size such as "1GiB"`})
				}
				m.KiB = size / 1024
			}
			all = append(all, m)
		}
	}
	return all
}

// Memory that parallel work is given, in bytes. A C++ compiler at its worst
// takes about 2 GiB, so make gets no more jobs than fit; and of the tasks that
// run at the same time about half compile, so each of those is counted double.
const (
	memoryPerJob  = 2 << 30
	memoryPerTask = 4 << 30
)

// setParallelism fills in what follows from the build machine.
func setParallelism(b *plan.Build, m *config.BuildMachine, report *diag.Report) {
	if !m.IsSet() {
		return
	}
	memory, err := Size(m.Memory.Node())
	if err != nil {
		report.Add(diag.Diagnostic{ID: "YT0204", Severity: diag.Error, Pos: m.Memory.Pos(), Path: m.Memory.FullPath(),
			Message: err.Error(), Got: m.Memory.Show(), Help: "write a size such as \"32GiB\""})
		return
	}
	jobs, tasks := Parallelism(int64(m.Cores.Value), memory)
	if b.MakeJobs == 0 {
		b.MakeJobs = jobs
	}
	if b.Threads == 0 {
		b.Threads = tasks
	}
}

// Parallelism is the number of jobs of make and of tasks that a machine with cores and bytes of memory has
// room for.
func Parallelism(cores, memory int64) (jobs, tasks int) {
	return int(max(1, min(cores, memory/memoryPerJob))), int(max(1, min(cores, memory/memoryPerTask)))
}

// recordOrigins records where each field below a struct was written.
func recordOrigins(n *load.Node, id string, origins plan.Origins) {
	if n == nil {
		return
	}
	origins[id] = n.Pos
	for _, f := range n.Fields {
		recordOrigins(f.Value, id+"."+f.Name, origins)
	}
}

func mirrors(all *config.Map[config.Mirror], pattern string) []plan.Mirror {
	entries := all.Sorted()
	slices.SortStableFunc(entries, func(a, b *config.Mirror) int { return a.Order.Value - b.Order.Value })
	var out []plan.Mirror
	for _, m := range entries {
		out = append(out, plan.Mirror{ID: m.Key(), Pattern: m.Pattern.Or(pattern), URL: m.URL.Text})
	}
	return out
}

// runtime is the same for the whole layer, so its targets must agree.
func (p *Project) runtime(targets []*Target, finder *programs.Finder, origins plan.Origins, report *diag.Report) plan.Runtime {
	c := runtimeOf(targets, report)
	r := plan.Runtime{Form: formOf(c, targets[0].Release), CUDA: c.CUDA.On}
	if !r.Installed() {
		return plan.Runtime{Form: r.Form} // the compiler reports the fields that are about the program
	}
	for _, k := range c.Keys.Sorted() {
		r.Keys = append(r.Keys, plan.PublicKey{Name: k.Key(), Key: k.Text})
	}
	recordOrigins(c.Node(), "runtime", origins)
	fail := func(message, help string) {
		report.Add(diag.Diagnostic{ID: "YT0206", Severity: diag.Error, Pos: c.Pos(), Path: "runtime.manifest", Message: message, Help: help})
	}
	switch {
	case r.Bundled() && c.Manifest.IsSet():
		fail("the bundled program takes no manifest", "leave out manifest, or use form \"prebuilt\" or \"source\"")
	case r.Bundled():
		p.addPrograms(&r, targets, finder, report)
	case c.Manifest.IsSet():
		p.addFiles(&r, c.Manifest, report)
		sealFor(r.Version, targets, c.Manifest, report)
	case r.Installed():
		fail("runtime needs a manifest to install yoctuned",
			"add manifest, the path of the manifest.json of a yoctune release; or leave out form, and the layer contains the program")
	}
	return r
}

// runtimeOf returns the runtime of a layer: that of its targets, of which some may have
// none.
func runtimeOf(targets []*Target, report *diag.Report) *config.Runtime {
	c := &config.Runtime{}
	for _, t := range targets {
		own := &t.Config.Runtime
		if !own.IsSet() {
			continue
		}
		if c.IsSet() && !c.Equal(own.Place) {
			report.Add(diag.Diagnostic{ID: "YT0105", Severity: diag.Error, Pos: own.Pos(), Path: own.FullPath(),
				Message: "targets of one layer disagree about the runtime", Got: own.Show(),
				Related: []diag.Related{{Pos: c.Pos(), Message: "another target has " + c.Show()}},
				Help:    "put runtime into a profile that all targets use"})
		}
		c = own
	}
	if c.Form.Text != plan.RuntimeNone {
		return c
	}
	for _, t := range targets {
		if t.Config.Runtime.IsSet() {
			continue
		}
		report.Add(diag.Diagnostic{ID: "YT0105", Severity: diag.Error, Pos: c.Form.Pos(), Path: c.Form.FullPath(),
			Message: fmt.Sprintf("the runtime is left out here, and %s of the same layer has it", t.Path), Got: c.Form.Show(),
			Related: []diag.Related{{Pos: t.Node.Pos, Message: "this target has no form: \"none\""}},
			Help:    "put runtime into a profile that all targets use, or give the targets layers of their own"})
	}
	return c
}

// formOf returns the form of the runtime.
func formOf(c *config.Runtime, r release.Release) string {
	switch {
	case c.Form.IsSet():
		return c.Form.Text
	case !c.Manifest.IsSet():
		return plan.RuntimeBundled
	case r.GoSource:
		return plan.RuntimeSource
	}
	return plan.RuntimePrebuilt
}

// addPrograms takes the programs that the targets need from the runtime folder.
func (p *Project) addPrograms(r *plan.Runtime, targets []*Target, finder *programs.Finder, report *diag.Report) {
	roles := []string{"yoctuned-arm64", "yoctuned-spdx", "yoctuned-licenses"}
	if slices.ContainsFunc(targets, func(t *Target) bool { return t.Serves() }) {
		roles = append(roles, "yoctuned-serve-arm64", "yoctuned-serve-spdx", "yoctuned-serve-licenses")
	}
	if r.CUDA {
		roles = append(roles, "yoctune-cuda-source")
	}
	if finder == nil {
		r.Version, r.Files = version.Version, programs.StandIn(roles)
		return
	}
	folder, err := finder.Folder()
	if err == nil {
		r.Version = folder.Version()
		r.Files, err = folder.Read(roles)
	}
	said := func(d diag.Diagnostic) bool { return d.ID == "YT0209" && d.Message == err.Error() }
	if err == nil || slices.ContainsFunc(report.All(), said) { // of another release's layer
		return
	}
	at := runtimeOf(targets, &diag.Report{})
	if !at.IsSet() {
		at = &targets[0].Config.Runtime
	}
	help := "name the folder with --runtime DIR (`make build` writes build/lib/yoctune, the yoctune package has /usr/lib/yoctune), or choose form \"prebuilt\", \"source\" or \"none\""
	if absent := (*programs.AbsentError)(nil); !errors.As(err, &absent) && !errors.Is(err, fs.ErrNotExist) {
		help = "the fault is in that folder, not in the configuration: install yoctune again, or name another folder with --runtime DIR"
	}
	report.Add(diag.Diagnostic{ID: "YT0209", Severity: diag.Error, Pos: at.Pos(), Path: targets[0].Path + ".runtime", Message: err.Error(), Help: help})
}

// sealFor seals the targets' plans in the format that a version of yoctuned reads.
func sealFor(version string, targets []*Target, manifest config.String, report *diag.Report) {
	for _, t := range targets {
		if err := t.Plan.SealAs(plan.Format(version)); err != nil {
			report.Add(diag.Diagnostic{ID: "YT0206", Severity: diag.Error, Pos: manifest.Pos(), Path: t.Path + ".runtime.manifest",
				Message: fmt.Sprintf("the manifest's yoctuned %s cannot read this plan: %v", version, err),
				Help:    "name the manifest of a newer release, leave out what the format lacks, or leave out manifest, and the layer contains the program"})
		}
	}
}

// addFiles reads the runtime's manifest.
func (p *Project) addFiles(r *plan.Runtime, manifest config.String, report *diag.Report) {
	raw, err := p.files.Manifest(manifest.Text)
	var m *programs.Manifest
	if err == nil {
		m, err = programs.Decode(raw)
	}
	if err != nil {
		report.Add(diag.Diagnostic{ID: "YT0206", Severity: diag.Error, Pos: manifest.Pos(), Path: "runtime.manifest",
			Message: fmt.Sprintf("runtime manifest: %v", err),
			Help:    "name a manifest made by `make dist`, by a path relative to the configuration and inside its folder"})
		return
	}
	r.Version = m.Version
	for _, f := range m.Files {
		r.Files = append(r.Files, plan.RuntimeFile{Name: f.Name, URI: f.URI, SHA256: f.SHA256, Licences: f.Licences, MD5: f.MD5})
	}
	slices.SortFunc(r.Files, func(a, b plan.RuntimeFile) int { return strings.Compare(a.Name, b.Name) })
}
