package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/plan"
)

// The rules of this file are about build: what bitbake makes of it on the
// releases of the project.
func buildRules() []Rule {
	return []Rule{
		{
			ID: "rm-work-image", Severity: diag.Warning,
			Title: "an image that goes into another loses its work directory",
			Cause: "rm_work removes a recipe's work directory once it is built. A task of another recipe that takes an image from there, and runs again, finds nothing: the build ends well and the device starts an empty initramfs. The exclusion counts where all recipes read it, which is where the layer puts it.",
			Fix:   "name the image under build.rmWorkExclude",
			Wrong: `build: {rmWork: true, variables: INITRAMFS_IMAGE: "product-initramfs"}`,
			Right: `build: {rmWork: true, rmWorkExclude: ["product-initramfs"], variables: INITRAMFS_IMAGE: "product-initramfs"}`,
			See:   "oe-core meta/classes/rm_work.bbclass",
			build: rmWorkImage,
		},
		{
			ID: "rm-work-exclude", Severity: diag.Info,
			Title: "recipes are kept from rm_work, which nobody switches on here",
			Cause: "RM_WORK_EXCLUDE is read by rm_work.bbclass only. Without it every work directory stays, and the list says nothing, unless local.conf or the distribution inherits rm_work.",
			Fix:   "set build.rmWork, or leave the list to the file that inherits rm_work",
			Wrong: `build: rmWorkExclude: ["core-image-base"]`,
			Right: `build: {rmWork: true, rmWorkExclude: ["core-image-base"]}`,
			See:   "oe-core meta/classes/rm_work.bbclass",
			build: rmWorkExclude,
		},
		{
			ID: "sstate-equivalence", Severity: diag.Warning,
			Title: "a shared state mirror without the equivalence that goes with it",
			Cause: "With OEEquivHash, which newer releases use by themselves, the names of shared state objects follow from what a hash equivalence server knows. A private server knows nothing of the builds that filled the mirror, and next to nothing is found there.",
			Fix:   "set hashserve.upstream to the server of the builds that fill the mirror",
			Wrong: `build: {sstate: mirrors: team: url: "https://cache.example.com/sstate", hashserve: address: "auto"}`,
			Right: `build: {sstate: mirrors: team: url: "https://cache.example.com/sstate", hashserve: {address: "auto", upstream: "hash.example.com:8686"}}`,
			See:   "oe-core meta/classes-global/sanity.bbclass",
			build: sstateEquivalence,
		},
		{
			ID: "hashserve-database", Severity: diag.Error,
			Title: "the equivalence database would be on a shared file system",
			Cause: "bitbake refuses a database on NFS, where SQLite's locks do not hold: the build stops before it starts. A shared state folder may be shared, the database of the local server may not.",
			Fix:   "put the database on a local disk, or let one server serve all builders: hashserve.upstream",
			Wrong: `build: {sstate: dir: "/mnt/nfs/sstate", hashserve: {address: "auto", database: "/mnt/nfs/sstate"}}`,
			Right: `build: {sstate: dir: "/mnt/nfs/sstate", hashserve: {address: "auto", database: "/var/cache/hashserv"}}`,
			See:   "bitbake lib/bb/cooker.py",
			build: hashserveDatabase,
		},
		{
			ID: "sstate-database", Severity: diag.Warning,
			Title: "a shared state folder of its own leaves the equivalence database behind",
			Cause: "The local server keeps its database in the build folder unless it is told otherwise; a new build folder then finds the objects and not what says which of them are equal, so that it builds again.",
			Fix:   "set hashserve.database to a local folder that lasts as long as the shared state",
			Wrong: "targets: cam: release: \"wrynose\"\nbuild: {sstate: dir: \"/srv/sstate\", hashserve: address: \"auto\"}",
			Right: "targets: cam: release: \"wrynose\"\nbuild: {sstate: dir: \"/srv/sstate\", hashserve: {address: \"auto\", database: \"/srv/hashserv\"}}",
			See:   "oe-core meta/classes-global/sanity.bbclass",
			build: sstateDatabase,
		},
		{
			ID: "mirror-own", Severity: diag.Warning,
			Title: "sources may come from mirrors only, and there is none",
			Cause: "With downloads.network at \"mirrors\" bitbake does not go to the source's own address; without a mirror every fetch fails.",
			Fix:   "name a mirror under downloads.mirrors or downloads.own",
			Wrong: `build: downloads: network: "mirrors"`, Right: `build: downloads: {network: "mirrors", own: "https://mirror.example.com/src"}`,
			See:   "bitbake: BB_FETCH_PREMIRRORONLY",
			build: mirrorOnly,
		},
		{
			ID: "build-variable-renamed", Severity: diag.Error, Firm: true,
			Title: "the release refuses the variable",
			Cause: "bitbake and oe-core keep a list of names that they stop at, wherever they are set, because the variable was renamed or its feature removed.",
			Fix:   "use the new name, or remove it",
			Wrong: "targets: cam: release: \"master\"\nbuild: variables: BB_DANGLINGAPPENDS_WARNONLY: \"1\"",
			Right: "targets: cam: release: \"master\"\nbuild: rmWork: true",
			See:   "oe-core meta/conf/bitbake.conf: BB_RENAMED_VARIABLES",
			build: variableRenamed,
		},
		{
			ID: "build-variable-cuda", Severity: diag.Error,
			Title: "a variable takes nvcc's set-up away",
			Cause: "meta-tegra's classes compute the compiler, its host compiler and the architectures from the machine; set by hand, CMake's own test of the compiler fails, or code for the wrong chip is built.",
			Fix:   "remove it; inherit cuda in the recipe",
			Wrong: `build: variables: CUDAHOSTCXX: "/usr/bin/g++"`, Right: `build: rmWork: true`,
			See:   "meta-tegra classes-recipe/cuda.bbclass",
			build: variableCUDA,
		},
		{
			ID: "build-variable-mirror", Severity: diag.Error,
			Title: "a mirror is no URL",
			Cause: "A path without a scheme is no address for the fetcher: it fails with a malformed URL that names a path which plainly exists.",
			Fix:   "write file:// before the path",
			Wrong: `build: variables: NVIDIA_DEVNET_MIRROR: "/home/user/sdkm_downloads"`,
			Right: `build: variables: NVIDIA_DEVNET_MIRROR: "file:///home/user/sdkm_downloads"`,
			See:   "bitbake lib/bb/fetch2",
			build: variableMirror,
		},
	}
}

// builder is the build's settings under a rule.
type builder struct {
	project *resolve.Project
	n       *load.Node
	rule    Rule
	report  *diag.Report
}

func buildSettings(p *resolve.Project, rules []Rule, off map[string]bool, report *diag.Report) {
	n := p.Root.Get("build")
	if n == nil || n.Kind != load.Struct {
		return
	}
	for _, r := range rules {
		if r.build != nil && !off[r.ID] {
			r.build(&builder{p, n, r, report})
		}
	}
}

func (b *builder) finding(n *load.Node, pos plan.Position, path, help, format string, args ...any) {
	d := diag.Diagnostic{ID: b.rule.ID, Severity: b.rule.Severity, Pos: pos, Path: "build." + path,
		Message: fmt.Sprintf(format, args...), Help: b.rule.Fix, See: b.rule.See}
	if help != "" {
		d.Help = help
	}
	if n != nil {
		d.Pos, d.Got = n.Pos, n.Show()
	}
	b.report.Add(d)
}

// releases lists the releases of the project's targets.
func (b *builder) releases() []release.Release {
	var all []release.Release
	for _, t := range b.project.Targets {
		if !slices.ContainsFunc(all, func(r release.Release) bool { return r.Name == t.Release.Name }) {
			all = append(all, t.Release)
		}
	}
	return all
}

// local tells whether the builds start a hash equivalence server of their own.
func (b *builder) local(r release.Release) bool {
	if off := b.n.At("hashserve", "off"); off != nil && off.True {
		return false
	}
	if off := b.n.At("hashserve", "off"); off != nil && off.True {
		return false
	}
	if a := b.n.At("hashserve", "address"); a != nil {
		return a.Text == "auto"
	}
	return r.HashServe == "auto"
}

// rmWorkImage knows the images that variables put into others.
func rmWorkImage(b *builder) {
	if on := b.n.Get("rmWork"); on == nil || !on.True {
		return
	}
	kept := map[string]bool{}
	if list := b.n.Get("rmWorkExclude"); list != nil {
		for _, it := range list.Items {
			kept[it.Text] = true
		}
	}
	for _, name := range []string{"INITRAMFS_IMAGE", "INITRD_IMAGE", "INITRD_IMAGE_LIVE"} {
		for _, image := range strings.Fields(b.n.At("variables", name).Word()) {
			if !kept[image] {
				b.finding(b.n.At("variables", name), plan.Position{}, "variables."+name, "", "%s goes into another image, and rm_work removes what it is made of", image)
			}
		}
	}
}

func rmWorkExclude(b *builder) {
	on, list := b.n.Get("rmWork"), b.n.Get("rmWorkExclude")
	if list == nil || len(list.Items) == 0 || on != nil && on.True {
		return
	}
	b.finding(list, plan.Position{}, "rmWorkExclude", "", "rm_work is not switched on, so nothing needs to be kept from it")
}

func sstateEquivalence(b *builder) {
	mirrors := b.n.At("sstate", "mirrors")
	if len(mirrors.Members()) == 0 || b.n.At("hashserve", "upstream") != nil {
		return
	}
	for _, r := range b.releases() {
		if b.local(r) {
			m := mirrors.Fields[0]
			b.finding(nil, m.Pos, "sstate.mirrors."+m.Name, "", "the hash equivalence server is private: little of the mirror will match on %s", r.Name)
			return
		}
	}
}

// shared guesses from a path that others see it too.
func sharedPath(path string) bool {
	for part := range strings.SplitSeq(strings.ToLower(path), "/") {
		if part == "net" || part == "efs" || strings.Contains(part, "nfs") {
			return true
		}
	}
	return false
}

func hashserveDatabase(b *builder) {
	db := b.n.At("hashserve", "database")
	if db == nil {
		return
	}
	dir := b.n.At("sstate", "dir")
	if sharedPath(db.Text) || dir != nil && sharedPath(dir.Text) && strings.HasPrefix(db.Text+"/", dir.Text+"/") {
		b.finding(db, db.Pos, "hashserve.database", "", "the equivalence database is on a network file system")
	}
}

func sstateDatabase(b *builder) {
	dir := b.n.At("sstate", "dir")
	if dir == nil || b.n.At("hashserve", "database") != nil || b.n.At("hashserve", "upstream") != nil {
		return
	}
	for _, r := range b.releases() {
		if r.HashServeDBDir && b.local(r) {
			b.finding(dir, dir.Pos, "sstate.dir", "", "the equivalence database of %s stays in the build folder", r.Name)
			return
		}
	}
}

func mirrorOnly(b *builder) {
	n := b.n.At("downloads", "network")
	if n != nil && n.Text == "mirrors" && b.n.At("downloads", "own") == nil && len(b.n.At("downloads", "mirrors").Members()) == 0 {
		b.finding(n, n.Pos, "downloads.network", "", "sources may come from mirrors only, and no mirror is named")
	}
}

func (b *builder) variables(f func(name string, v load.Field)) {
	for _, v := range b.n.Get("variables").Members() {
		f(v.Name, v)
	}
}

func variableRenamed(b *builder) {
	b.variables(func(name string, v load.Field) {
		if name == "BB_DANGLINGAPPENDS_WARNONLY" {
			b.finding(nil, v.Pos, load.PathOf("variables", name), "name the layers that may be absent in BBFILES_DYNAMIC of the layer with the appends",
				"%s hides appends without a recipe in every layer of the build, and newer releases refuse it", name)
			return
		}
		for _, r := range b.releases() {
			was, refused := r.Renamed(name)
			if !refused {
				continue
			}
			help := ""
			switch {
			case was.New != "":
				help = "the name is now " + was.New
			case was.Message != "":
				help = was.Message
			}
			b.finding(nil, v.Pos, load.PathOf("variables", name), help, "%s refuses %s", r.Name, name)
			return
		}
	})
}

func variableCUDA(b *builder) {
	b.variables(func(name string, v load.Field) {
		switch name {
		case "CUDAHOSTCXX", "CUDACXX", "CUDAFLAGS", "CUDA_NVCC_FLAGS", "CUDAARCHS", "CMAKE_CUDA_ARCHITECTURES", "CUDA_ARCHITECTURES", "TEGRA_CUDA_ARCHITECTURE":
			b.finding(nil, v.Pos, load.PathOf("variables", name), "", "%s is computed from the machine", name)
		default:
			if strings.Contains(v.Value.Text, "CMAKE_CUDA_ARCHITECTURES=native") || strings.Contains(v.Value.Text, "CMAKE_CUDA_ARCHITECTURES=all") {
				b.finding(v.Value, v.Value.Pos, load.PathOf("variables", name), "", "the build machine's GPU says nothing about the device")
			}
		}
	})
}

func variableMirror(b *builder) {
	b.variables(func(name string, v load.Field) {
		if strings.HasSuffix(name, "_MIRROR") || name == "SOURCE_MIRROR_URL" {
			if strings.HasPrefix(v.Value.Text, "/") {
				b.finding(v.Value, v.Value.Pos, load.PathOf("variables", name), fmt.Sprintf("did you mean %q?", "file://"+v.Value.Text), "%s is a path, not a URL", name)
			}
		}
	})
}
