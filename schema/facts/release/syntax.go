package release

import "slices"

// Series lists the Yocto series from dunfell on, oldest first.
func Series() []string {
	return []string{
		"dunfell", "gatesgarth", "hardknott", "honister", "kirkstone", "langdale", "mickledore",
		"nanbield", "scarthgap", "styhead", "walnascar", "whinlatter", "wrynose", "blacksail",
	}
}

// Syntax is a rule of recipes and configuration that a series brought.
type Syntax struct {
	ID     string `json:"id"`
	Since  string `json:"since"` // first series it holds for
	Fatal  bool   `json:"fatal"` // the build stops; otherwise a warning, or a spelling that is now possible
	Rule   string `json:"rule"`
	Fix    string `json:"fix"` // what to write, valid before too unless it says otherwise
	Source string `json:"source"`
}

// SyntaxRules lists what changed since dunfell, oldest first. Each was read in
// the branch named and found missing in the one before.
func SyntaxRules() []Syntax {
	return []Syntax{
		{"override-colon", "honister", true,
			"overrides and operations are separated by a colon: FOO:append, FOO:machine; the underscore is part of a name",
			"write FOO:append; dunfell's last point releases read it as well", "bitbake 1.52 lib/bb/data_smart.py"},
		{"git-branch", "kirkstone", false,
			"a git SRC_URI without branch= warns",
			"name the branch: ;branch=main", "bitbake 2.0 lib/bb/fetch2/git.py"},
		{"renamed-variables", "kirkstone", true,
			"setting a variable of BB_RENAMED_VARIABLES stops the build",
			"use the new name, which bitbake's message gives", "oe-core meta/conf/bitbake.conf"},
		{"classes-recipe", "langdale", false,
			"classes live in classes, classes-recipe and classes-global; a class in the wrong one is not found by inherit",
			"put recipe classes below classes-recipe", "oe-core meta/classes-recipe"},
		{"systemd-usrmerge", "nanbield", false,
			"INIT_MANAGER = \"systemd\" brings usrmerge: units are below /usr/lib/systemd",
			"never write /lib or /usr/lib, use ${systemd_system_unitdir} and ${nonarch_base_libdir}",
			"oe-core meta/conf/distro/include/init-manager-systemd.inc"},
		{"srcpv", "nanbield", false,
			"SRCPV is empty and needs not be in PV", "drop +git${SRCPV}, write +git", "oe-core meta/conf/bitbake.conf"},
		{"load-factor", "scarthgap", false,
			"BB_LOADFACTOR_MAX exists", "earlier series ignore it", "bitbake 2.8 lib/bb/runqueue.py"},
		{"hashserve-wss", "scarthgap", false,
			"BB_HASHSERVE_UPSTREAM may be wss://", "earlier series want host:port", "bitbake 2.8 lib/bb/asyncrpc/client.py"},
		{"unpackdir", "styhead", false,
			"sources are unpacked to UNPACKDIR, a folder below WORKDIR",
			"write ${UNPACKDIR}/file, with UNPACKDIR ??= \"${WORKDIR}\" in layer.conf for earlier series", "oe-core meta/conf/bitbake.conf"},
		{"s-is-workdir", "styhead", true,
			"S = \"${WORKDIR}\" stops the build", "S = \"${UNPACKDIR}\"", "oe-core meta/classes-global/insane.bbclass"},
		{"go-destsuffix", "styhead", false,
			"a git source of a Go recipe needs ;destsuffix=${GO_SRCURI_DESTSUFFIX}",
			"earlier series unpack it to the right place by themselves and do not know the variable", "oe-core meta/classes-recipe/go.bbclass"},
		{"gomod-fetcher", "styhead", false,
			"SRC_URI may be gomod://", "earlier series need vendored modules", "bitbake 2.10 lib/bb/fetch2/gomod.py"},
		{"debug-tweaks", "walnascar", true,
			"debug-tweaks is not an image feature: the image recipe is skipped",
			"allow-empty-password empty-root-password allow-root-login post-install-logging", "oe-core meta/classes-recipe/image.bbclass"},
		{"fragments", "walnascar", false,
			"configuration fragments: conf/fragments/NAME.conf, enabled by OE_FRAGMENTS",
			"earlier series need a require line in local.conf", "oe-core meta/conf/bitbake.conf"},
		{"security-file", "walnascar", true,
			"yocto-check-layer wants a SECURITY file in the layer", "add SECURITY.md", "oe-core scripts/lib/checklayer/cases/common.py"},
		{"dangling-appends", "walnascar", true,
			"BB_DANGLINGAPPENDS_WARNONLY is refused: an append without its recipe stops the build",
			"append only recipes the branch has", "oe-core meta/conf/bitbake.conf"},
		{"git-s", "whinlatter", true,
			"S = \"${WORKDIR}/git\" and S = \"${UNPACKDIR}/git\" stop the build",
			"leave S alone for git sources", "oe-core meta/classes-global/insane.bbclass"},
		{"builtin-fragments", "whinlatter", false,
			"OE_FRAGMENTS accepts machine/NAME and distro/NAME, and refuses MACHINE or DISTRO set in local.conf at the same time",
			"use one of the two", "oe-core meta/conf/bitbake.conf"},
		{"cmake-4", "whinlatter", true,
			"cmake_minimum_required below 3.5 is an error", "raise it in the project", "oe-core meta/recipes-devtools/cmake"},
		{"features-opted-out", "wrynose", true,
			"DISTRO_FEATURES_BACKFILL_CONSIDERED and its MACHINE twin are refused",
			"DISTRO_FEATURES_OPTED_OUT, MACHINE_FEATURES_OPTED_OUT", "oe-core meta/conf/bitbake.conf"},
		{"hash-equivalence", "wrynose", false,
			"OEEquivHash with a local hash server is oe-core's default; a shared SSTATE_DIR without BB_HASHSERVE_DB_DIR warns",
			"set BB_HASHSERVE_DB_DIR beside a shared SSTATE_DIR", "oe-core meta/conf/bitbake.conf; bitbake 2.18 lib/bb/cooker.py"},
	}
}

// Syntax lists the rules that hold for the release.
func (r Release) Syntax() []Syntax {
	return slices.DeleteFunc(SyntaxRules(), func(s Syntax) bool { return !atLeast(r.Series, s.Since) })
}

// atLeast reports whether series is since or a later one. An unknown series is
// not.
func atLeast(series, since string) bool {
	all := Series()
	a, b := slices.Index(all, series), slices.Index(all, since)
	return a >= 0 && b >= 0 && a >= b
}
