package check

import (
	"regexp"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/release"
)

// The rules of this file check the fields of build against the releases of the project.
func buildRules() []Rule {
	return []Rule{
		{
			ID: "rm-work-image", Severity: diag.Warning,
			Title: "rm_work removes an image that another image contains",
			Cause: "rm_work removes a recipe's work directory once the recipe is built. When a task of another recipe takes an image from there and runs again, it finds nothing. The build succeeds, and the device starts an empty initramfs. The layer writes the exclusion where all recipes read it.",
			Fix:   "name the image under build.rmWorkExclude",
			Wrong: `build: {rmWork: true, variables: INITRAMFS_IMAGE: "product-initramfs"}`,
			Right: `build: {rmWork: true, rmWorkExclude: ["product-initramfs"], variables: INITRAMFS_IMAGE: "product-initramfs"}`,
			See:   "oe-core meta/classes/rm_work.bbclass",
			build: checkRmWorkImage,
		},
		{
			ID: "rm-work-exclude", Severity: diag.Info,
			Title: "rmWorkExclude has no effect without rm_work",
			Cause: "Only rm_work.bbclass reads RM_WORK_EXCLUDE. Without that class every work directory stays, and the list has no effect unless local.conf or the distribution inherits rm_work.",
			Fix:   "set build.rmWork, or leave the list to the file that inherits rm_work",
			Wrong: `build: rmWorkExclude: ["core-image-base"]`,
			Right: `build: {rmWork: true, rmWorkExclude: ["core-image-base"]}`,
			See:   "oe-core meta/classes/rm_work.bbclass",
			build: checkRmWorkExclude,
		},
		{
			ID: "sstate-equivalence", Severity: diag.Warning,
			Title: "a shared state mirror without its hash equivalence server",
			Cause: "With OEEquivHash, the default of newer releases, the names of shared state objects depend on the data of a hash equivalence server. A private server lacks the data of the builds that filled the mirror, so almost nothing in the mirror matches.",
			Fix:   "set hashserve.upstream to the server of the builds that fill the mirror",
			Wrong: `build: {sstate: mirrors: team: url: "https://cache.example.com/sstate", hashserve: address: "auto"}`,
			Right: `build: {sstate: mirrors: team: url: "https://cache.example.com/sstate", hashserve: {address: "auto", upstream: "hash.example.com:8686"}}`,
			See:   "oe-core meta/classes-global/sanity.bbclass",
			build: checkSstateEquivalence,
		},
		{
			ID: "hashserve-database", Severity: diag.Error,
			Title: "the hash equivalence database is on a shared file system",
			Cause: "bitbake refuses a database on NFS, where SQLite's locks do not work: the build stops before it starts. A shared state folder may be shared, but the database of the local server may not.",
			Fix:   "put the database on a local disk, or let one server serve all builders: hashserve.upstream",
			Wrong: `build: {sstate: dir: "/mnt/nfs/sstate", hashserve: {address: "auto", database: "/mnt/nfs/sstate"}}`,
			Right: `build: {sstate: dir: "/mnt/nfs/sstate", hashserve: {address: "auto", database: "/var/cache/hashserv"}}`,
			See:   "bitbake lib/bb/cooker.py",
			build: checkHashserveDatabase,
		},
		{
			ID: "sstate-database", Severity: diag.Warning,
			Title: "a separate shared state folder leaves the hash equivalence database behind",
			Cause: "The local server keeps its database in the build folder by default. A new build folder then finds the shared state objects without the data about which of them are equal, and builds again.",
			Fix:   "set hashserve.database to a local folder that lasts as long as the shared state",
			Wrong: "targets: cam: release: \"wrynose\"\nbuild: {sstate: dir: \"/srv/sstate\", hashserve: address: \"auto\"}",
			Right: "targets: cam: release: \"wrynose\"\nbuild: {sstate: dir: \"/srv/sstate\", hashserve: {address: \"auto\", database: \"/srv/hashserv\"}}",
			See:   "oe-core meta/classes-global/sanity.bbclass",
			build: checkSstateDatabase,
		},
		{
			ID: "hashserve-port", Severity: diag.Warning,
			Title: "the public hash equivalence server has another address",
			Cause: "Yocto's public server was reached at a port of its own until kirkstone. The samples of newer releases name its web socket, to which firewalls and proxies let builders through.",
			Fix:   "write wss://hashserv.yoctoproject.org/ws",
			Wrong: `build: hashserve: {address: "auto", upstream: "hashserv.yoctoproject.org:8686"}`,
			Right: `build: hashserve: {address: "auto", upstream: "wss://hashserv.yoctoproject.org/ws"}`,
			See:   "poky meta-poky/conf/templates/default/local.conf.sample; oe-core meta/conf/fragments/yocto/sstate-mirror-cdn.conf",
			build: checkHashservePort,
		},
		{
			ID: "mirror-own", Severity: diag.Warning,
			Title: "the network and the mirrors of downloads do not fit",
			Cause: `With downloads.network at "mirrors" bitbake does not use the source's own address. Without a mirror every fetch fails. At "none" it asks no mirror either.`,
			Fix:   "name a mirror under downloads.mirrors or downloads.own",
			Wrong: `build: downloads: network: "mirrors"`, Right: `build: downloads: {network: "mirrors", own: "https://mirror.example.com/src"}`,
			See:   "bitbake: BB_FETCH_PREMIRRORONLY",
			build: checkMirrorOnly,
		},
		{
			ID: "mirror-pattern", Severity: diag.Error, Firm: true,
			Title: "a mirror has a pattern or an address that serves nothing",
			Cause: "bitbake splits the pattern as it splits addresses, at ://, and compares scheme, host and path with one regular expression each. A pattern without a scheme, or that is not a regular expression, stops the build; one whose scheme belongs to no fetcher matches nothing.",
			Fix:   "write SCHEME://HOST/PATH, each as a regular expression",
			Wrong: `build: downloads: mirrors: team: {url: "https://mirror.example.com/src", pattern: "github.com/.*"}`,
			Right: `build: downloads: mirrors: team: {url: "https://mirror.example.com/src", pattern: "git://github.com/.*"}`,
			See:   "bitbake lib/bb/fetch2/__init__.py: uri_replace",
			build: checkMirrorPattern,
		},
	}
}

// builder is the build's settings under a rule.
type builder struct {
	*config.Build
	*reporter
	project *resolve.Project
	refers  map[string][]string // see references
}

func checkBuild(p *resolve.Project, rules []Rule, off *suppressed, report *diag.Report) {
	if !p.Config.Build.IsSet() {
		return
	}
	for _, r := range rules {
		if r.build != nil {
			r.apply(report, off, func(rep *reporter) { r.build(&builder{Build: &p.Config.Build, reporter: rep, project: p}) })
		}
	}
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

// isServerLocal reports whether the builds of a release start a hash equivalence server
// of their own.
func (b *builder) isServerLocal(r release.Release) bool {
	return !b.Hashserve.Off.On && b.Hashserve.Address.Or(r.HashServe) == "auto"
}

// checkRmWorkImage examines the variables that put images into others.
func checkRmWorkImage(b *builder) {
	if !b.RmWork.On {
		return
	}
	kept := config.Texts(b.RmWorkExclude)
	for _, name := range []string{"INITRAMFS_IMAGE", "INITRD_IMAGE", "INITRD_IMAGE_LIVE"} {
		v := valueOf(b.Variables.Get(name))
		for _, image := range strings.Fields(v.Text) {
			if !slices.Contains(kept, image) {
				b.reportAt(v, v.Show(), "", "another image contains %s, and rm_work removes its work directory", image)
			}
		}
	}
}

func checkRmWorkExclude(b *builder) {
	if list := b.RmWorkExclude; len(list.Items) > 0 && !b.RmWork.On {
		b.reportAt(list, list.Show(), "", "rm_work is not switched on, so that the list has no effect")
	}
}

func checkSstateEquivalence(b *builder) {
	mirrors := b.SState.Mirrors.Entries
	if len(mirrors) == 0 || b.Hashserve.Upstream.IsSet() {
		return
	}
	for _, r := range b.releases() {
		if b.isServerLocal(r) {
			b.reportKey(mirrors[0], "", "the hash equivalence server is private: little of the mirror will match on %s", r.Name)
			return
		}
	}
}

// isSharedPath guesses from a path that several machines mount it.
func isSharedPath(path string) bool {
	for part := range strings.SplitSeq(strings.ToLower(path), "/") {
		if part == "net" || part == "efs" || strings.Contains(part, "nfs") {
			return true
		}
	}
	return false
}

func checkHashserveDatabase(b *builder) {
	db, dir := b.Hashserve.Database, b.SState.Dir
	if !db.IsSet() {
		return
	}
	if isSharedPath(db.Text) || isSharedPath(dir.Text) && strings.HasPrefix(db.Text+"/", dir.Text+"/") {
		b.reportAt(db, db.Show(), "", "the equivalence database is on a network file system")
	}
}

func checkSstateDatabase(b *builder) {
	dir := b.SState.Dir
	if !dir.IsSet() || b.Hashserve.Database.IsSet() || b.Hashserve.Upstream.IsSet() {
		return
	}
	for _, r := range b.releases() {
		if r.HashServeDBDir && b.isServerLocal(r) {
			b.reportAt(dir, dir.Show(), "", "the equivalence database of %s stays in the build folder", r.Name)
			return
		}
	}
}

func checkHashservePort(b *builder) {
	for _, address := range []config.String{b.Hashserve.Address, b.Hashserve.Upstream} {
		host, port, _ := strings.Cut(address.Text, ":")
		public := host == "hashserv.yoctoproject.org" || host == "hashserv.yocto.io" // the older name
		if public && strings.Trim(port, "0123456789") == "" && slices.ContainsFunc(b.releases(), func(r release.Release) bool { return r.HashServeWSS }) {
			b.reportAt(address, address.Show(), "", "port %s of %s is that of older releases", port, host)
		}
	}
}

func checkMirrorOnly(b *builder) {
	network := b.Downloads.Network
	if network.Text == "mirrors" && !b.Downloads.Own.IsSet() && len(b.Downloads.Mirrors.Entries) == 0 {
		b.reportAt(network, network.Show(), "", "sources may come from mirrors only, and no mirror is named")
	}
	if network.Text == "none" && (b.Downloads.Own.IsSet() && !strings.HasPrefix(b.Downloads.Own.Text, "file:") || slices.ContainsFunc(b.Downloads.Mirrors.Entries, func(m *config.Mirror) bool { return !strings.HasPrefix(m.URL.Text, "file:") })) {
		b.reportAt(network, network.Show(), `set network: "mirrors"`, "sources come from DL_DIR only, and the mirrors are not asked")
	}
}

// fetchers are the schemes of bitbake's fetchers (lib/bb/fetch2).
var fetchers = strings.Fields("file http https ftp ftps git gitsm gitannex ssh sftp s3 gs az svn hg cvs npm npmsw crate gomod gomodgit p4 osc repo ccrc")

func checkMirrorPattern(b *builder) {
	for _, mirrors := range []*config.Map[config.Mirror]{&b.SState.Mirrors, &b.Downloads.Mirrors} {
		for _, m := range mirrors.Entries {
			p := m.Pattern
			if mirrors == &b.SState.Mirrors && strings.Contains(m.URL.Text, ";") {
				b.reportAt(m.URL, m.URL.Show(), "leave out what follows the semicolon", "the path of an object follows the address of mirror %s, so that it takes no parameters", m.Key())
			}
			if !p.IsSet() {
				continue
			}
			scheme, rest, ok := strings.Cut(p.Text, "://")
			if !ok {
				b.reportAt(p, p.Show(), "", "the pattern of mirror %s has no scheme", m.Key())
				continue
			}
			host, path, _ := strings.Cut(rest, "/")
			exprs := make([]*regexp.Regexp, 0, 3)
			for _, part := range []string{scheme, host, path} {
				expr, err := regexp.Compile("^(?:" + part + ")$")
				if err != nil {
					b.reportAt(p, p.Show(), "", "the pattern of mirror %s is not a regular expression: %q", m.Key(), part)
					break
				}
				exprs = append(exprs, expr)
			}
			if len(exprs) == 3 && !slices.ContainsFunc(fetchers, exprs[0].MatchString) {
				b.reportAt(p, p.Show(), "", "no fetcher of bitbake has a scheme that the pattern of mirror %s matches", m.Key())
			}
		}
	}
}
