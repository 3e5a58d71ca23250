package series

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
)

// open compiles a small configuration with the lines of a test case.
func open(release, more string) *compiler.Project {
	return compiler.OpenFiles(map[string][]byte{"config.cue": []byte(fmt.Sprintf(`package x

import "github.com/yoctune/yoctune/schema"

schema.#Config & {
	layer: {name: "x", maintainer: "A <a@example.com>"}
	targets: one: {board: "agx-orin-64gb", release: %q}
%s
}
`, release, more))})
}

// Jobs and tasks are derived from the build machine unless they are given.
func TestParallelismFollowsCoresAndMemory(t *testing.T) {
	for _, tc := range []struct {
		parallel    string
		tasks, make int
	}{
		{`machine: {cores: 16, memory: "32GiB"}`, 8, 16},
		{`machine: {cores: 64, memory: "64GiB"}`, 16, 32},
		{`machine: {cores: 8, memory: "16GiB"}`, 4, 8},
		{`machine: {cores: 4, memory: "3GiB"}`, 1, 1},
		{`machine: {cores: 2, memory: "256GiB"}`, 2, 2},
		{`machine: {cores: 16, memory: "32GiB"}, make: 4`, 8, 4},
		{`machine: {cores: 16, memory: "32GiB"}, tasks: 2`, 2, 16},
		{`tasks: 3`, 3, 0},
	} {
		layers := open("scarthgap", "	build: parallel: {"+tc.parallel+"}").Layers(compiler.Selection{})
		if len(layers) != 1 {
			t.Fatalf("%s does not build", tc.parallel)
		}
		if b := layers[0].Build; b.Threads != tc.tasks || b.MakeJobs != tc.make {
			t.Errorf("%s: %d tasks and %d jobs, want %d and %d", tc.parallel, b.Threads, b.MakeJobs, tc.tasks, tc.make)
		}
	}
}

// A setting that the release does not support is an error at its line, with a replacement.
func TestUnsupportedBuildSettingIsAnErrorAtItsLine(t *testing.T) {
	for _, tc := range []struct {
		release, more string
		line          int
		want          string // of the message or its help
	}{
		{"scarthgap", "\tbuild: variables: SSTATE_DUPWHITELIST: \"x\"", 8, "SSTATE_ALLOW_OVERLAP_FILES"},
		{"scarthgap", "\tbuild: variables: {\n\t\tBB_DEFAULT_TASK_MAXMEM: \"4G\"\n\t}", 9, "pressure.memory"},
		{"master", "\tbuild: variables: BB_NUMBER_DOWNLOAD_THREADS: \"4\"", 8, "parallel.downloads"},
		{"kirkstone", "\tbuild: parallel: load: 1.5", 8, "scarthgap"},
		{"walnascar", "\tbuild: image: features: [\"debug-tweaks\"]", 8, "allow-empty-password"},
		{"whinlatter", "\tbuild: hashserve: database: \"/srv/h\"", 8, "wrynose"},
		{"kirkstone", "\tbuild: hashserve: server: {bitbake: \"/srv/bitbake\", listen: \"ws://:8686\"}", 8, "host:port"},
		{"scarthgap", "\ttargets: one: pipelines: p: {\n\t\tsource: {kind: \"synthetic\", format: \"nv12\", width: 64, height: 64}\n" +
			"\t\tstages: {f: {kind: \"preprocess\", input: \"source\", width: 64, height: 64}\n" +
			"\t\t\tm: {kind: \"model\", input: \"f\", path: \"m.onnx\", uri: \"https://m.example.com/m.onnx\"}, r: {kind: \"postprocess\", input: \"m\", decode: \"raw\"}}\n\t}", 11, "sha256"},
	} {
		p := open(tc.release, tc.more)
		p.Verify()
		found := false
		for _, d := range p.Report.All() {
			found = found || d.Severity == diag.Error && d.Pos.Line == tc.line && strings.Contains(d.Message+" "+d.Help, tc.want)
		}
		if !found {
			var b strings.Builder
			if err := diag.WriteText(&b, p.Report, p.Config.Sources, false); err != nil {
				t.Fatal(err)
			}
			t.Errorf("%s, %s: no error at line %d with %q:\n%s", tc.release, strings.TrimSpace(tc.more), tc.line, tc.want, b.String())
		}
	}
}

// The address of a model affects the build only: the device's plan does not change.
func TestModelURIIsNotInThePlan(t *testing.T) {
	for _, l := range layers(t) {
		for _, target := range l.Targets {
			b, err := target.Plan.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(b), "models.example.com") {
				t.Errorf("%s: the plan names the address of a model", target.Name)
			}
			if !strings.Contains(contentOf(l.Files, "yoctune-series-models_1.0.bb"), "https://models.example.com/gate.onnx;") {
				t.Errorf("%s: no recipe fetches the model", target.Name)
			}
			if !strings.Contains(contentOf(l.Files, "yoctune-series-models_1.0.bb"), "${D}${datadir}/yoctune/models/gate.txt") {
				t.Errorf("%s: no recipe installs the labels", target.Name)
			}
		}
	}
}

// Tools become packages of the package group; "packages" overrides them.
func TestToolsBecomePackages(t *testing.T) {
	layers := open("kirkstone", `	targets: one: {
		tools: {perf: true, memory: true, benchmark: true}
		packages: {"stress-ng": "exclude", jq: "install"}
		runtime: form: "none"
	}`).Layers(compiler.Selection{})
	if len(layers) != 1 {
		t.Fatal("it does not build")
	}
	group := contentOf(layers[0].Files, "packagegroups/packagegroup-yoctune-x.bb")
	for _, name := range []string{"jq", "perf", "rt-tests", "valgrind"} {
		if !strings.Contains(group, "\n    "+name+" \\\n") {
			t.Errorf("the package group lacks %s:\n%s", name, group)
		}
	}
	if strings.Contains(group, "stress-ng") {
		t.Errorf("the package group has what is excluded:\n%s", group)
	}
	if settings := contentOf(layers[0].Files, "conf/yoctune/x.conf"); !strings.Contains(settings, "stress-ng") {
		t.Errorf("nothing excludes stress-ng:\n%s", settings)
	}
	if strings.Contains(group, "yoctuned-bench") {
		t.Error("a layer without yoctuned installs yoctuned-bench")
	}
	if text := contentOf(layers[0].Files, "dynamic-layers/openembedded-layer/recipes-yoctune/packagegroups/packagegroup-yoctune-x.bbappend"); !strings.Contains(text, `= " heaptrack"`) {
		t.Errorf("heaptrack is not recommended where meta-oe is present:\n%s", text)
	}
}

func TestMonitoringInstallsItsPrograms(t *testing.T) {
	for _, l := range layers(t) {
		group := contentOf(l.Files, "packagegroups/packagegroup-yoctune-series.bb")
		if !strings.Contains(group, "\n    yoctuned-bench \\\n") {
			t.Errorf("%s: the package group lacks yoctuned-bench:\n%s", l.Release, group)
		}
		if recipe := contentOf(l.Files, "yoctuned/yoctuned_0.2.0.bb"); !strings.Contains(recipe, `PACKAGE_BEFORE_PN = "${PN}-bench"`) {
			t.Errorf("%s: no recipe has it", l.Release)
		}
	}
}
