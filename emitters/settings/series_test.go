package settings_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/settings"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/bitbake/bbref"
)

func layer(releaseName string, b plan.Build) *plan.Layer {
	return &plan.Layer{Name: "x", Release: releaseName, Build: b}
}

func conf(t *testing.T, l *plan.Layer) string {
	t.Helper()
	files, err := settings.Emit(l)
	if err != nil {
		t.Fatalf("%s: %v", l.Release, err)
	}
	return string(files[0].Data)
}

// fullBuild returns a build with all settings that the release supports.
func fullBuild(r release.Release) plan.Build {
	b := plan.Build{
		Threads: 8, MakeJobs: 16, DownloadThreads: 4, RmWork: true, RmWorkExclude: []string{"core-image-base", "initramfs-x"},
		SStateMirrors: []plan.Mirror{{ID: "near", URL: "https://near.example.com/s"}, {ID: "far", Pattern: "file://.*", URL: "file:///srv/far/PATH"}},
		Premirrors:    []plan.Mirror{{ID: "a", Pattern: "git://.*/.*", URL: "https://near.example.com/git/"}, {ID: "b", URL: "https://b.example.com/"}},
		HashServe:     "auto", HashUpstream: "hash.example.com:8686", SStateDir: "/srv/sstate", DownloadDir: "/srv/dl",
		PressureCPU: 15000, PressureIO: 14000, PressureMemory: 13000,
		OwnMirror: "https://own.example.com/all", MirrorTarballs: true, Network: "mirrors", Hosts: []string{"*.example.com"},
		RecipeJobs: []plan.RecipeJobs{{Recipe: "onnxruntime", Jobs: 2}}, PackageFormat: "ipk",
		ImageFeatures: []string{"ssh-server-openssh"}, ReadOnlyRoot: true, NotRecommended: []string{"udev-hwdb", "shared-mime-info"}, Variables: []plan.Variable{{Name: "BB_SCHEDULER", Set: true, Value: `a "b"`}, {Name: "LICENSE_FLAGS_ACCEPTED", Append: []string{"a", "b"}, Remove: []string{"c", "d"}}, {Name: "FILESEXTRAPATHS", Append: []string{"/a", "/b"}}},
	}
	if r.LoadFactor {
		b.LoadFactor = "1.5"
	}
	if r.HashServeDBDir {
		b.HashDatabase = "/srv/hash"
	}
	return b
}

// bitbake's parser reads the settings of every release, each under the name the
// series gives it.
func TestBitBakeReadsEveryBuildSettingOfEveryRelease(t *testing.T) {
	var texts, names []string
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		text := conf(t, layer(name, fullBuild(r)))
		// The stand-in of the parser has no classes.
		texts, names = append(texts, strings.ReplaceAll(text, "INHERIT +=", "INHERIT_WANTED +=")), append(names, name)
	}
	for i, got := range bbref.EvalAll(t, texts...) {
		r, _ := release.Lookup(names[i])
		for _, p := range got.Problems {
			t.Errorf("%s: %s", names[i], p)
		}
		want := map[string]string{
			"BAD_RECOMMENDATIONS": "udev-hwdb shared-mime-info",
			"BB_NUMBER_THREADS":   "8", "PARALLEL_MAKE": "-j 16", "PARALLEL_MAKE:pn-onnxruntime": "-j 2",
			"RM_WORK_EXCLUDE": "core-image-base initramfs-x", "INHERIT_WANTED": "rm_work own-mirrors", "PACKAGE_CLASSES": "package_ipk",
			"SSTATE_DIR": "/srv/sstate", "DL_DIR": "/srv/dl", "SOURCE_MIRROR_URL": "https://own.example.com/all",
			"SSTATE_MIRRORS": "file://.* https://near.example.com/s/PATH;downloadfilename=PATH file://.* file:///srv/far/PATH",
			"PREMIRRORS":     "git://.*/.* https://near.example.com/git/ .*://.*/.* https://b.example.com/",
			"BB_HASHSERVE":   "auto", "BB_HASHSERVE_UPSTREAM": "hash.example.com:8686",
			"BB_PRESSURE_MAX_CPU": "15000", "BB_PRESSURE_MAX_IO": "14000", "BB_PRESSURE_MAX_MEMORY": "13000",
			"BB_GENERATE_MIRROR_TARBALLS": "1", "BB_FETCH_PREMIRRORONLY": "1", "BB_ALLOWED_NETWORKS": "*.example.com",
			"EXTRA_IMAGE_FEATURES": "ssh-server-openssh read-only-rootfs", "BB_SCHEDULER": `a "b"`,
			"BB_NO_NETWORK": "", "BB_LOADFACTOR_MAX": "", "BB_HASHSERVE_DB_DIR": "", "BB_SIGNATURE_HANDLER": "",
		}
		if r.LoadFactor {
			want["BB_LOADFACTOR_MAX"] = "1.5"
		}
		if r.HashServeDBDir {
			want["BB_HASHSERVE_DB_DIR"] = "/srv/hash"
		}
		if r.Signatures != "OEEquivHash" {
			want["BB_SIGNATURE_HANDLER"] = "OEEquivHash" // otherwise no task queries the server
		}
		for name, value := range want {
			if g := strings.Join(strings.Fields(got.Values[name]), " "); g != value {
				t.Errorf("%s: %s is %q, want %q", names[i], name, g, value)
			}
		}
		for name := range got.Values {
			if _, refused := r.FindRenamed(name); refused {
				t.Errorf("%s: the layer sets %s, which stops the build there", names[i], name)
			}
			if _, none := r.FindAbsent(name); none {
				t.Errorf("%s: the layer sets %s, which nothing reads there", names[i], name)
			}
		}
	}
}

func TestUnsupportedSettingsAreRefusedWithReason(t *testing.T) {
	set := func(name string) plan.Build {
		return plan.Build{Variables: []plan.Variable{{Name: name, Set: true, Value: "1"}}}
	}
	for _, tc := range []struct {
		release string
		build   plan.Build
		id      string
		why     string // "": accepted
	}{
		{"scarthgap", set("a_b"), "build.variables.a_b", "not allowed"},
		{"scarthgap", set("BB_GIT_SHALLOW"), "", ""},
		{"scarthgap", plan.Build{Variables: []plan.Variable{{Name: "X", Set: true, Value: "${@1}"}}}, "build.variables.X", "Python"},

		{"kirkstone", plan.Build{LoadFactor: "1.5"}, "build.parallel.load", "before scarthgap"},
		{"scarthgap", plan.Build{LoadFactor: "-1"}, "build.parallel.load", "not allowed"},
		{"whinlatter", plan.Build{HashDatabase: "/x"}, "build.hashserve.database", "before wrynose"},
		{"kirkstone", plan.Build{HashUpstream: "wss://h/ws"}, "build.hashserve.upstream", "host:port"},
		{"walnascar", plan.Build{ImageFeatures: []string{"debug-tweaks"}}, "build.image.features", "allow-empty-password"},
		{"scarthgap", plan.Build{ImageFeatures: []string{"debug-tweaks"}}, "", ""},
		{"kirkstone", plan.Build{ImageFeatures: []string{"serial-autologin-root"}}, "build.image.features", "leave it out"},

		{"scarthgap", plan.Build{NotRecommended: []string{"udev-hwdb"}, PackageFormat: "deb"}, "build.image.badRecommendations", "packages"},
		{"scarthgap", plan.Build{NotRecommended: []string{"udev-hwdb"}}, "", ""},

		{"wrynose", plan.Build{HashOff: true, HashServe: "h:1"}, "build.hashserve.off", "one of the two"},

		// A mirror that bitbake may not access.
		{"scarthgap", plan.Build{Hosts: []string{"git.example.com"}, OwnMirror: "https://s.example.com/x"}, "build.downloads.own", "s.example.com"},
		{"scarthgap", plan.Build{Hosts: []string{"*.example.com"}, OwnMirror: "https://s.example.com/x"}, "", ""},
		{"scarthgap", plan.Build{Hosts: []string{"a b"}}, "build.downloads.hosts", "not allowed"},
	} {
		_, err := settings.Emit(layer(tc.release, tc.build))
		if tc.why == "" {
			if err != nil {
				t.Errorf("%s, %+v: %v", tc.release, tc.build, err)
			}
			continue
		}
		var at *emitters.Error
		if !errors.As(err, &at) || at.Ref.ID != tc.id || !strings.Contains(err.Error(), tc.why) {
			t.Errorf("%s, %s: got %v, want a reason with %q", tc.release, tc.id, err, tc.why)
		}
	}
}

// The local server queries the upstream; without a local server the setting has no effect.
func TestUpstreamStartsAHashServer(t *testing.T) {
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		text := conf(t, layer(name, plan.Build{HashUpstream: "hash.example.com:8686"}))
		if got := strings.Contains(text, `BB_HASHSERVE = "auto"`); got != (r.HashServe == "") {
			t.Errorf("%s sets BB_HASHSERVE: %t", name, got)
		}
		// Builders query a shared server directly.
		if text := conf(t, layer(name, plan.Build{HashUpstream: "a.example.com:1", HashServe: "b.example.com:2"})); strings.Contains(text, `"auto"`) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
