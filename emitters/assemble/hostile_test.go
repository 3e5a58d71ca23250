package assemble_test

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/assemble"
	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/schema/plan"
)

// A hostile value in any field stops the layer, and the refusal names the part
// of the configuration, so that its line can be shown.
func TestHostileValueStopsTheLayerAndIsNamed(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(l *plan.Layer, t *plan.Target)
		target string
		id     string
	}{
		{"layer name", func(l *plan.Layer, _ *plan.Target) { l.Name = "a', d)}" }, "", "layer.name"},
		{"layer name that climbs", func(l *plan.Layer, _ *plan.Target) { l.Name = "../../etc" }, "", "layer.name"},
		{"layer of the name of another", func(l *plan.Layer, _ *plan.Target) { l.Name = "tegra" }, "", "layer.name"},
		{"layer of the name of a repository", func(l *plan.Layer, _ *plan.Target) { l.Name = "bitbake" }, "", "layer.name"},
		{"maintainer", func(l *plan.Layer, _ *plan.Target) { l.Maintainer = "a\nb" }, "", "layer.maintainer"},
		{"description", func(l *plan.Layer, _ *plan.Target) { l.Description = "a\u202eb" }, "", "layer.description"},
		{"release", func(l *plan.Layer, _ *plan.Target) { l.Release = "dunfell" }, "", "release"},
		{"machine", func(_ *plan.Layer, t *plan.Target) { t.Machine = "../x" }, "line-camera", "machine"},
		{"kernel argument", func(_ *plan.Layer, t *plan.Target) { t.Kernel.Args[0].Value = "1 init=/bin/sh" }, "line-camera", "kernel.args.isolcpus"},
		{"kernel argument's name", func(_ *plan.Layer, t *plan.Target) { t.Kernel.Args[0].Name = "x\"" }, "line-camera", "kernel.args.x\""},
		{"kernel option", func(_ *plan.Layer, t *plan.Target) { t.Kernel.Config[1].Value = "1000\nCONFIG_X=y" }, "line-camera", "kernel.config.HZ"},
		{"kernel provider", func(_ *plan.Layer, t *plan.Target) { t.Kernel.Provider, t.Kernel.By = "x\"", "kernel.preempt" }, "line-camera", "kernel.preempt"},
		{"kernel version", func(_ *plan.Layer, t *plan.Target) {
			t.Kernel.Provider, t.Kernel.By, t.Kernel.Version = "linux-yocto", "kernel.recipe", "6.6\"\nX"
		}, "line-camera", "kernel.recipe"},
		{"kernel recipe", func(_ *plan.Layer, t *plan.Target) { t.Kernel.Recipes[0] = "../x" }, "line-camera", "kernel"},
		{"mode name", func(_ *plan.Layer, t *plan.Target) { t.Plan.Power.Modes[0].Name = "A >" }, "line-camera", "power.modes.A >"},
		{"mode parameter", func(_ *plan.Layer, t *plan.Target) { t.Plan.Power.Modes[0].Params[0].Value = "1\n<" }, "line-camera", "power.modes.INFER_20W"},
		{"default mode", func(_ *plan.Layer, t *plan.Target) { t.Plan.Power.Default = "A\"B" }, "line-camera", "power.default"},
		{"sysctl value", func(_ *plan.Layer, t *plan.Target) { t.Plan.Settings[3].Want = "1\nkernel.core_pattern = |/x" }, "line-camera", "sysctl.vm.swappiness"},
		{"sysctl node", func(_ *plan.Layer, t *plan.Target) { t.Plan.Settings[3].Select.Path = "/proc/sys/vm/../../x" }, "line-camera", "sysctl.vm.swappiness"},
		{"node outside /proc/sys", func(_ *plan.Layer, t *plan.Target) { t.Plan.Settings[3].Select.Path = "/etc/passwd" }, "line-camera", "sysctl.vm.swappiness"},
		{"device pattern", func(_ *plan.Layer, t *plan.Target) {
			setting(t, "storage.nvme*.scheduler").Select.Name = `x", RUN+="/bin/sh`
		}, "line-camera", "storage.nvme*.scheduler"},
		{"udev value", func(_ *plan.Layer, t *plan.Target) { setting(t, "network.eth*.mtu").Want = "1\nRUN+=\"/bin/sh\"" }, "line-camera", "network.eth*.mtu"},
		{"word of ethtool", func(_ *plan.Layer, t *plan.Target) { setting(t, "network.eth*.coalesce.rxUsecs").Want = "1 -K" }, "line-camera", "network.eth*.coalesce.rxUsecs"},
		{"tmpfiles value", func(_ *plan.Layer, t *plan.Target) { setting(t, "memory.thp").Want = "never\nd /x" }, "line-camera", "memory.thp"},
		{"tmpfiles node", func(_ *plan.Layer, t *plan.Target) { setting(t, "cpu.governor").Select.Name = "policy0 x\n" }, "line-camera", "cpu.governor"},
		{"module to load", func(_ *plan.Layer, t *plan.Target) { t.Modules[0].Name = "x y" }, "line-camera", "modules.x y"},
		{"module action", func(_ *plan.Layer, t *plan.Target) { t.Modules[0].Action = "install" }, "line-camera", "modules.tcp_bbr"},
		{"package", func(_ *plan.Layer, t *plan.Target) { t.Packages[0].Name = "a;b" }, "line-camera", "packages.a;b"},
		{"zram algorithm", func(_ *plan.Layer, t *plan.Target) { t.ZRAM.Algorithm = "lz4 x" }, "line-camera", "memory.zram"},
		{"unit name", func(_ *plan.Layer, t *plan.Target) { t.Services[1].Name = "../x.service" }, "line-camera", "services.../x.service"},
		{"unit of the system", func(_ *plan.Layer, t *plan.Target) { t.Services[1].Name = "nvpmodel.service" }, "line-camera", "services.nvpmodel.service"},
		{"program", func(_ *plan.Layer, t *plan.Target) { t.Services[1].Exec[0] = "+/bin/sh" }, "line-camera", "services.vision.service"},
		{"user", func(_ *plan.Layer, t *plan.Target) { t.Services[1].User = "a b" }, "line-camera", "services.vision.service"},
		{"dependency", func(_ *plan.Layer, t *plan.Target) { t.Services[1].After[0] = "a\nb" }, "line-camera", "services.vision.service"},
		{"cores of a service", func(_ *plan.Layer, t *plan.Target) { t.Services[0].CPUs = "0-x" }, "line-camera", "services.nvargus-daemon.service"},
		{"slice", func(_ *plan.Layer, t *plan.Target) { t.Slices[0].Name = "x.service" }, "line-camera", "cpu.isolate"},
		{"pipeline name", func(_ *plan.Layer, t *plan.Target) {
			t.Plan.Pipelines = map[string]plan.Pipeline{"a/b": {CPUs: "1"}}
		}, "line-camera", "pipelines.a/b"},
		{"mirror", func(l *plan.Layer, _ *plan.Target) { l.Build.SStateMirrors[0].URL = "https://u:p@h/" }, "", "build.sstate.mirrors.office"},
		{"mirror pattern", func(l *plan.Layer, _ *plan.Target) { l.Build.Premirrors[0].Pattern = "a b" }, "", "build.downloads.mirrors.first"},
		{"hash server", func(l *plan.Layer, _ *plan.Target) { l.Build.HashServe = "a\"" }, "", "build.hashserve.address"},
		{"state folder", func(l *plan.Layer, _ *plan.Target) { l.Build.SStateDir = "${@1}" }, "", "build.sstate.dir"},
		{"mirror of one's own", func(l *plan.Layer, _ *plan.Target) { l.Build.OwnMirror = "https://h/;x=y" }, "", "build.downloads.own"},
		{"host of sources", func(l *plan.Layer, _ *plan.Target) { l.Build.Hosts = []string{"*.example.com", "a b"} }, "", "build.downloads.hosts"},
		{"recipe with jobs of its own", func(l *plan.Layer, _ *plan.Target) {
			l.Build.RecipeJobs = []plan.RecipeJobs{{Recipe: "a:append", Jobs: 1}}
		}, "", "build.parallel.recipes.a:append"},
		{"recipe that keeps its work", func(l *plan.Layer, _ *plan.Target) { l.Build.RmWorkExclude = []string{"a b"} }, "", "build.rmWorkExclude"},
		{"image feature", func(l *plan.Layer, _ *plan.Target) { l.Build.ImageFeatures = []string{`a"`} }, "", "build.image.features"},
		{"recommended package that is left out", func(l *plan.Layer, _ *plan.Target) { l.Build.NotRecommended = []string{`a" b`} }, "", "build.image.badRecommendations"},
		{"package format", func(l *plan.Layer, _ *plan.Target) { l.Build.PackageFormat = `i"` }, "", "build.format"},
		{"variable's name", func(l *plan.Layer, _ *plan.Target) {
			l.Build.Variables = []plan.Variable{{Name: "A[noexec]", Set: true, Value: "1"}}
		}, "", "build.variables.A[noexec]"},
		{"variable's value", func(l *plan.Layer, _ *plan.Target) {
			l.Build.Variables = []plan.Variable{{Name: "A", Set: true, Value: "a\nB = 1"}}
		}, "", "build.variables.A"},
		{"collection", func(l *plan.Layer, _ *plan.Target) { l.Build.Optional[0].Collection = "../x" }, "", "build.optional.../x"},
		{"collection that ends its word", func(l *plan.Layer, _ *plan.Target) { l.Build.Optional[0].Collection = "a:b" }, "", "build.optional.a:b"},
		{"optional package", func(l *plan.Layer, _ *plan.Target) { l.Build.Optional[0].Packages[0] = `x"` }, "", "build.optional.openembedded-layer"},
		{"image for kas", func(l *plan.Layer, _ *plan.Target) { l.Build.Kas.Image = "a\nb: c" }, "", "build.kas.image"},
		{"hash server's checkout", func(l *plan.Layer, _ *plan.Target) { l.Build.HashServer.BitBake = "/a/../b c" }, "", "build.hashserve.server"},
		{"hash server's address", func(l *plan.Layer, _ *plan.Target) { l.Build.HashServer.Listen = ":1\x1b" }, "", "build.hashserve.server"},
		{"model", func(_ *plan.Layer, t *plan.Target) { t.Models[1].URI += ";name=x" }, "line-camera", "pipelines.door.stages.read"},
		{"model of the build machine", func(_ *plan.Layer, t *plan.Target) { t.Models[0].URI = "file:///a/../b" }, "line-camera", "pipelines.door.stages.count"},
		{"model without a digest", func(_ *plan.Layer, t *plan.Target) { t.Models[1].SHA256 = "" }, "line-camera", "pipelines.door.stages.read"},
		{"labels that leave their folder", func(_ *plan.Layer, t *plan.Target) { t.Models[2].Name = ".." }, "line-camera", "pipelines.door.stages.text"},
		{"labels of the name of a model", func(_ *plan.Layer, t *plan.Target) { t.Models[2].Name = t.Models[1].SHA256 }, "line-camera", "pipelines.door.stages.text"},
		{"model's digest", func(_ *plan.Layer, t *plan.Target) { t.Models[1].SHA256 = "../x" }, "line-camera", "pipelines.door.stages.read"},
		{"name of a key", func(l *plan.Layer, _ *plan.Target) { l.Runtime.Keys[0].Name = "../x" }, "", "runtime.keys.../x"},
		{"key", func(l *plan.Layer, _ *plan.Target) { l.Runtime.Keys[0].Key += "\n}\nX = \"1\"" }, "", "runtime.keys.release"},
		{"recommended package", func(l *plan.Layer, _ *plan.Target) { l.Build.Optional[1].Recommended[0].Package = "a\"b" }, "line-camera", "pipelines.door"},
		{"artefact", func(l *plan.Layer, _ *plan.Target) { l.Runtime.Files[0].URI += ";protocol=ssh" }, "", "runtime.manifest"},
		{"artefact's digest", func(l *plan.Layer, _ *plan.Target) { l.Runtime.Files[0].SHA256 = "x" }, "", "runtime.manifest"},
		{"missing artefact", func(l *plan.Layer, _ *plan.Target) { l.Runtime.Files = nil }, "", "runtime.manifest"},
		{"digest of the licences", func(l *plan.Layer, _ *plan.Target) { licences(l).MD5 = `x" \` }, "", "runtime.manifest"},
		{"licence", func(l *plan.Layer, _ *plan.Target) { licences(l).Licences[1] = `MIT"${@x()}` }, "", "runtime.manifest"},
		{"licences that are missing", func(l *plan.Layer, _ *plan.Target) { licences(l).Licences = nil }, "", "runtime.manifest"},
		{"address of the licences", func(l *plan.Layer, _ *plan.Target) { licences(l).URI = "file:///a/../b" }, "", "runtime.manifest"},
		{"version", func(l *plan.Layer, _ *plan.Target) { l.Runtime.Version = "1_0" }, "", "runtime.manifest"},
		{"source form on a series with an old Go", func(l *plan.Layer, _ *plan.Target) { l.Runtime.Form = "source" }, "", "runtime.form"},
		{"complete table", func(_ *plan.Layer, t *plan.Target) { t.Plan.Power.Table = "complete" }, "line-camera", "power.table"},
		{"reason", func(l *plan.Layer, _ *plan.Target) { l.Suppressed[0].Reason = "a\nb" }, "", "suppress.tcp-cc-bbr"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := emittest.Vision(t)
			tc.change(l, l.Targets[0])
			files, err := assemble.Emit(l)
			var at *emitters.Error
			if !errors.As(err, &at) {
				t.Fatalf("%d files, %v; want a refusal", len(files), err)
			}
			if files != nil || at.Ref != (emitters.Ref{Target: tc.target, ID: tc.id}) {
				t.Errorf("%d files; refused %+v: %v", len(files), at.Ref, err)
			}
		})
	}
}

// licences is the file of the manifest with the terms of yoctuned.
func licences(l *plan.Layer) *plan.RuntimeFile {
	return &l.Runtime.Files[slices.IndexFunc(l.Runtime.Files, func(f plan.RuntimeFile) bool { return f.Name == "yoctuned-licenses" })]
}

func TestCaseFoldingNamesAreRefused(t *testing.T) {
	l := emittest.Vision(t)
	twin := l.Targets[0].Services[1]
	twin.Name = "Vision.service"
	l.Targets[0].Services = append(l.Targets[0].Services, twin)
	if _, err := assemble.Emit(l); err == nil || !strings.Contains(err.Error(), "would be one file") {
		t.Errorf("got %v", err)
	}
}

func TestTargetsWithTheSameMachineAreRefused(t *testing.T) {
	l := emittest.Control(t)
	l.Targets[1].Machine = l.Targets[0].Machine
	if _, err := assemble.Emit(l); err == nil || !strings.Contains(err.Error(), "one at a time") {
		t.Errorf("got %v", err)
	}
}

func TestArchiveIsReproducible(t *testing.T) {
	for range 5 {
		if !reflect.DeepEqual(emit(t, emittest.Vision(t)), emit(t, emittest.Vision(t))) {
			t.Fatal("two runs differ")
		}
	}
}

func TestEveryFileHasAnOrigin(t *testing.T) {
	l := emittest.Vision(t)
	for _, f := range emit(t, l) {
		for _, ref := range f.Origins {
			if ref.Target != "" && ref.Target != "line-camera" {
				t.Errorf("%s: unknown target in %+v", f.Path, ref)
			}
		}
		for _, part := range []string{"power-modes.conf", ".cfg", "99-yoctune.rules", "vision.service", "95-yoctune.conf"} {
			if strings.HasSuffix(f.Path, part) && len(f.Origins) == 0 {
				t.Errorf("%s has no origin", f.Path)
			}
		}
	}
}

// An id from a table that differs from the BSP's would choose another mode.
func TestDefaultModeIsLookedUpByName(t *testing.T) {
	l := emittest.Vision(t)
	l.Targets[0].Plan.Power = &plan.Power{Table: "stock", Default: "MAXN_SUPER"}
	found := false
	for _, f := range emit(t, l) {
		found = found || strings.Contains(string(f.Data), `YOCTUNE_POWER_DEFAULT:yoctune-on-jetson-orin-nano-devkit = "MAXN_SUPER"`)
		if strings.Contains(string(f.Data), "NVPMODEL_CONFIG_DEFAULT:") {
			t.Errorf("%s sets an id:\n%s", f.Path, f.Data)
		}
	}
	if !found {
		t.Error("no file chooses the default")
	}
}

// The recipes of source archives name the digest of this repository's licence.
func TestRecipesNameTheDigestOfTheLicence(t *testing.T) {
	raw, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	sum := md5.Sum(raw)
	want := "LICENSE;md5=" + hex.EncodeToString(sum[:])
	found := 0
	for _, f := range emit(t, emittest.Control(t)) {
		if strings.Contains(string(f.Data), want) {
			found++
		}
	}
	if found != 3 { // yoctuned, yoctuned-serve, yoctune-cuda
		t.Errorf("%d recipes have %q, want 3", found, want)
	}
}

// The layer's README passes yocto-check-layer's test_readme. It must not contain the word
// "README", which would skip the check.
func TestDocumentNamesMaintainerAndPatches(t *testing.T) {
	for _, f := range emit(t, emittest.Vision(t)) {
		if f.Path != "README.md" {
			continue
		}
		text := strings.ToLower(string(f.Data))
		if strings.Contains(text, "readme") || !strings.Contains(text, "maintainer") || !strings.Contains(text, "patch") || !strings.Contains(text, "@") {
			t.Errorf("%s", f.Data)
		}
	}
}

// A TX2 isolates its Denver cores by itself; the kernel would take both lists.
func TestTX2IsolatingOtherCoresDropsItsOwn(t *testing.T) {
	l := emittest.Vision(t)
	l.Release = "kirkstone-l4t-r32.7.x"
	l.Runtime, l.Build = plan.Runtime{}, plan.Build{}
	target := l.Targets[0]
	target.Board, target.Machine, target.Plan.Power, target.Fan = "tx2", "jetson-tx2-devkit", nil, nil
	target.Kernel = plan.Kernel{Args: []plan.Arg{{Name: "isolcpus", Value: "4-5"}}}
	conf := func() string {
		for _, f := range emit(t, l) {
			if f.Path == "conf/yoctune/vision.conf" {
				return string(f.Data)
			}
		}
		return ""
	}
	const remove = `KERNEL_ARGS:remove:yoctune-on-jetson-tx2-devkit = "isolcpus=1-2"`
	if text := conf(); !strings.Contains(text, remove) {
		t.Errorf("%s", text)
	}
	target.Kernel.Args[0].Value = "1-2"
	if text := conf(); strings.Contains(text, remove) {
		t.Errorf(":remove would take the target's own argument:\n%s", text)
	}
}

func TestUnsupportedSettingsAreRefused(t *testing.T) {
	old := func(change func(l *plan.Layer)) error {
		l := emittest.Vision(t)
		l.Release, l.Build, l.Targets[0].Plan.Power = "kirkstone-l4t-r32.7.x", plan.Build{}, nil
		l.Targets[0].Fan.Profiles = nil
		change(l)
		_, err := assemble.Emit(l)
		return err
	}
	if err := old(func(l *plan.Layer) { l.Runtime.CUDA = false }); err != nil {
		t.Error(err)
	}
	if err := old(func(*plan.Layer) {}); err == nil || !strings.Contains(err.Error(), "CUDA 10.2") {
		t.Errorf("a library of C++17: %v", err)
	}
	if err := old(func(l *plan.Layer) { l.Runtime.CUDA, l.Build.HashUpstream = false, "wss://h/ws" }); err == nil || !strings.Contains(err.Error(), "host:port") {
		t.Errorf("a web socket: %v", err)
	}
	curve := func(l *plan.Layer) {
		l.Runtime.CUDA, l.Targets[0].Fan.Profiles = false, []plan.FanProfile{{Name: "lab"}}
	}
	if err := old(curve); err == nil || !strings.Contains(err.Error(), "no nvfancontrol") {
		t.Errorf("a fan curve: %v", err)
	}
}

// setting finds a setting of a target's plan. It is nil, which fails the test, if there is none.
func setting(t *plan.Target, id string) *plan.Setting {
	for i := range t.Plan.Settings {
		if t.Plan.Settings[i].ID == id {
			return &t.Plan.Settings[i]
		}
	}
	return nil
}
