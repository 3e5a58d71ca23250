// Package series tests the layers of every supported release: one configuration (config/) gives a
// layer for each, checksum files pin each tree, and bitbake's parser reads each file. The program
// in prove/ runs the real bitbake on checkouts.
package series

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/bitbake/bbref"
	"github.com/yoctune/yoctune/tests/oelint"
)

var update = flag.Bool("update", false, "rewrite the checksums")

// programs is the folder of the programs that the layers contain.
const programs = "../../golden/runtime"

func layers(t *testing.T) []compiler.Layer {
	t.Helper()
	return layersOf(t, "config")
}

// fetching are the layers with a program that is fetched or built: of the same
// configuration with a manifest.
func fetching(t *testing.T) []compiler.Layer {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("config")); err != nil {
		t.Fatal(err)
	}
	text := []byte("package series\n\nprofiles: common: runtime: manifest: \"dist-manifest.json\"\n")
	if err := os.WriteFile(filepath.Join(dir, "runtime.cue"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return layersOf(t, dir)
}

func layersOf(t *testing.T, dir string) []compiler.Layer {
	t.Helper()
	p, err := compiler.Options{Runtime: programs}.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ls := p.Layers(compiler.Selection{All: true})
	if p.Report.Failed() {
		var b bytes.Buffer
		if err := diag.WriteText(&b, p.Report, p.Config.Sources, false); err != nil {
			t.Fatal(err)
		}
		t.Fatalf("the configuration does not build:\n%s", b.String())
	}
	return ls
}

// writeLayer writes the layer to a separate folder and returns it.
func writeLayer(t *testing.T, l compiler.Layer) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range l.Files {
		p := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, f.Data, f.Mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func facts(t *testing.T, l compiler.Layer) release.Release {
	t.Helper()
	r, ok := release.Lookup(l.Release)
	if !ok {
		t.Fatalf("no facts of release %s", l.Release)
	}
	return r
}

func TestEveryReleaseCoversItsSoCs(t *testing.T) {
	want := map[string][]string{
		"kirkstone-l4t-r32.7.x": {"tegra186", "tegra194", "tegra210"},
		"kirkstone":             {"tegra194", "tegra234"},
		"scarthgap-l4t-r35.x":   {"tegra194", "tegra234"},
		"scarthgap":             {"tegra234"},
		"walnascar":             {"tegra234"},
		"whinlatter":            {"tegra234"},
		"wrynose":               {"tegra234", "tegra264"},
		"master":                {"tegra234", "tegra264"},
	}
	got := map[string][]string{}
	for _, l := range layers(t) {
		for _, target := range l.Targets {
			got[l.Release] = append(got[l.Release], soc(t, target))
		}
		slices.Sort(got[l.Release])
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, name := range release.Names() {
		if got[name] == nil {
			t.Errorf("release %s has no target", name)
		}
	}
}

func soc(t *testing.T, target *plan.Target) string {
	t.Helper()
	b, ok := board.Lookup(target.Board)
	if !ok {
		t.Fatalf("no facts of board %s", target.Board)
	}
	return b.SoC
}

// One file per release, one line per file of its layer: the diff of an emitter's change shows what
// changes, and for which releases.
func TestEachReleaseYieldsItsPinnedTree(t *testing.T) {
	for _, l := range layers(t) {
		var b strings.Builder
		for _, f := range l.Files {
			fmt.Fprintf(&b, "%x %04o %s\n", sha256.Sum256(f.Data), f.Mode, f.Path)
		}
		path := filepath.Join("checksums", l.Release+".sha256")
		if *update {
			if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v; go test ./tests/series -update makes it", err)
		}
		for _, line := range changed(string(want), b.String()) {
			t.Errorf("%s: %s (go test ./tests/series -update accepts it)", l.Release, line)
		}
	}
}

// changed returns the names of files that differ between two lists of checksums.
func changed(was, now string) []string {
	entries := func(text string) map[string]string {
		m := map[string]string{}
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); len(f) == 3 {
				m[f[2]] = f[0] + f[1]
			}
		}
		return m
	}
	before, after := entries(was), entries(now)
	var out []string
	for path, sum := range after {
		switch old, ok := before[path]; {
		case !ok:
			out = append(out, path+" is new")
		case old != sum:
			out = append(out, path+" has changed")
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			out = append(out, path+" is gone")
		}
	}
	slices.Sort(out)
	return out
}

// appends returns the foreign recipes that a layer changes. A name with a version would stop
// builds when the BSP changes the version.
func appends(t *testing.T, files []emitters.File) []string {
	t.Helper()
	var names []string
	for _, f := range files {
		name, ok := strings.CutSuffix(filepath.Base(f.Path), ".bbappend")
		if !ok || strings.HasPrefix(f.Path, "dynamic-layers/") {
			continue
		}
		pn, version, _ := strings.Cut(name, "_")
		if version != "%" {
			t.Errorf("%s is for one version of the recipe", f.Path)
		}
		names = append(names, pn)
	}
	slices.Sort(names)
	return names
}

// contentOf returns the content of the one file whose path ends in suffix, or "".
func contentOf(files []emitters.File, suffix string) string {
	for _, f := range files {
		if strings.HasSuffix(f.Path, suffix) {
			return string(f.Data)
		}
	}
	return ""
}

// The differences between series, by release. The layer follows the facts that are given on each
// line.
func TestLayerSyntaxFollowsItsSeries(t *testing.T) {
	for _, l := range layers(t) {
		t.Run(l.Release, func(t *testing.T) {
			r := facts(t, l)
			is := func(what string, got, want bool) {
				t.Helper()
				if got != want {
					t.Errorf("%s: %t, want %t", what, got, want)
				}
			}
			conf := contentOf(l.Files, "conf/layer.conf")
			is("the layer is of the series", strings.Contains(conf, `LAYERSERIES_COMPAT_series = "`+r.Series+`"`), true)
			is("layer.conf defines UNPACKDIR", strings.Contains(conf, `UNPACKDIR ??= "${WORKDIR}"`), !r.UnpackDir)
			is("there is a configuration fragment", contentOf(l.Files, "conf/fragments/series.conf") != "", r.Fragments)
			is("there is a SECURITY file", contentOf(l.Files, "SECURITY.md") != "" || !r.SecurityFile, true)
			is("optional layers are asked for", strings.Contains(conf, "BBFILES_DYNAMIC"), true)
			is("the layer contains yoctuned", strings.Contains(contentOf(l.Files, "yoctuned_0.2.0.bb"), "file://yoctuned-0.2.0-linux-arm64.gz"), true)

			want := slices.Clone(r.KernelPNs)
			if l.Release == "scarthgap" { // its target is the only one with its own power modes
				want = append(want, "tegra-nvpmodel-base")
			}
			slices.Sort(want)
			if d := cmp.Diff(want, appends(t, l.Files)); d != "" {
				t.Errorf("appends: %s", d)
			}
			for _, f := range l.Files {
				text := string(f.Data)
				// /lib is /usr/lib on some series only.
				if strings.HasSuffix(f.Path, ".bb") {
					for _, dir := range []string{"${D}/lib/", "${D}/usr/lib/", "${D}/etc/", `S = "${WORKDIR}`, "debug-tweaks", "${WORKDIR}/git"} {
						is(f.Path+" has "+dir, strings.Contains(text, dir), false)
					}
				}
				if strings.HasSuffix(f.Path, ".service") || strings.HasSuffix(f.Path, ".conf") && strings.Contains(f.Path, ".service.d") {
					// nvpmodel.service is ordered after the service that precedes it in the L4T.
					is(f.Path+" is ordered on nvstartup", strings.Contains(text, "nvstartup"), false)
				}
				is(f.Path+" has a variable of old", strings.Contains(text, "_append ") || strings.Contains(text, "WHITELIST"), false)
			}
			for _, s := range r.SysctlFiles {
				is("95-yoctune.conf is read after "+s, "95-yoctune.conf" > s, true)
			}
		})
	}
}

func TestFetchedProgramIsBuiltWhereGoIsNewEnough(t *testing.T) {
	for _, l := range fetching(t) {
		if got, want := strings.Contains(contentOf(l.Files, "yoctuned_0.1.0.bb"), "inherit go-mod"), facts(t, l).GoSource; got != want {
			t.Errorf("%s: built from source: %t, want %t", l.Release, got, want)
		}
	}
}

func TestTX2DropsItsMachinesIsolation(t *testing.T) {
	for _, l := range layers(t) {
		conf := contentOf(l.Files, "conf/yoctune/series.conf")
		if got, want := strings.Contains(conf, `KERNEL_ARGS:remove:yoctune-on-jetson-tx2-devkit = "isolcpus=1-2"`), l.Release == "kirkstone-l4t-r32.7.x"; got != want {
			t.Errorf("%s: %t, want %t", l.Release, got, want)
		}
	}
}

// Only wrynose and master have a recipe of a real-time kernel.
func TestRealTimeKernelRecipeExists(t *testing.T) {
	for _, l := range layers(t) {
		r := facts(t, l)
		line := `PREFERRED_PROVIDER_virtual/kernel:`
		if got := strings.Contains(contentOf(l.Files, "conf/yoctune/series.conf"), line); got != (r.RTProvider != "") {
			t.Errorf("%s: the layer chooses a kernel: %t", l.Release, got)
		}
	}
}

func TestOelintAcceptsEverySeries(t *testing.T) {
	for _, l := range slices.Concat(layers(t), fetching(t)) {
		oelint.Check(t, facts(t, l).Series, l.Files)
	}
}

// bitbake's parser reads every file for each machine, with the layer switched on and off, and
// finds the plan's values.
func TestBitBakeReadsEachLayerAsPlanned(t *testing.T) {
	for _, l := range slices.Concat(layers(t), fetching(t)) {
		dir := writeLayer(t, l)
		r := facts(t, l)
		for _, target := range l.Targets {
			t.Run(target.Name, func(t *testing.T) {
				request := bbref.Request{
					Dir: dir, Machine: target.Machine, Overrides: "cuda:tegra:aarch64:" + soc(t, target),
					UnpackDir: r.UnpackDir, Fragments: r.Fragments,
				}
				off := bbref.ParseLayer(t, request)
				request.Enable = true
				on := bbref.ParseLayer(t, request)
				for _, p := range append(off.Problems, on.Problems...) {
					t.Errorf("%s", p)
				}
				for _, name := range off.ConfigSet {
					if strings.HasPrefix(name, "KERNEL_ARGS") || strings.HasPrefix(name, "DISTRO_FEATURES") {
						t.Errorf("%s is set before the layer is switched on", name)
					}
				}
				args := strings.Fields(on.Config["KERNEL_ARGS"])
				for _, a := range target.Kernel.Args {
					word := a.Name
					if !a.Flag {
						word += "=" + a.Value
					}
					if !slices.Contains(args, word) {
						t.Errorf("KERNEL_ARGS is %q, without %q", on.Config["KERNEL_ARGS"], word)
					}
				}
				// The command line of the machine's boot configuration ends in the plan's
				// arguments, because the kernel uses the last of two.
				way := r.ArgPath(soc(t, target))
				read := strings.Fields(on.Config[way.Variable])
				if want := args[len(args)-len(target.Kernel.Args):]; len(read) < len(want) || !slices.Equal(read[len(read)-len(want):], want) {
					t.Errorf("%s is %q and does not end in %q", way.Variable, on.Config[way.Variable], want)
				}
				if len(args) > 0 && !strings.HasPrefix(args[0], "stand-in") {
					t.Errorf("KERNEL_ARGS is %q: the machine's own come first", on.Config["KERNEL_ARGS"])
				}
				if got := on.Config["DISTRO_FEATURES"]; !slices.Contains(strings.Fields(got), l.Feature()) {
					t.Errorf("DISTRO_FEATURES is %q", got)
				}
				fragment := "file://yoctune-series.cfg"
				for _, pn := range target.Kernel.Recipes {
					a := on.Appends["recipes-kernel/linux/"+pn+"_%.bbappend"]
					if !slices.Contains(strings.Fields(a.Values["SRC_URI"]), fragment) {
						t.Errorf("%s: SRC_URI is %q, without %s", pn, a.Values["SRC_URI"], fragment)
					}
				}
			})
		}
	}
}

// bitbake stops a build at a recommendation that nothing provides, so the layer recommends the
// package only when the layer's branch has its recipe.
func TestModelsAddONNXRuntimeWhereAvailable(t *testing.T) {
	has := map[string]bool{"whinlatter": true, "wrynose": true, "master": true}
	for _, l := range layers(t) {
		t.Run(l.Release, func(t *testing.T) {
			request := bbref.Request{Dir: writeLayer(t, l), Machine: l.Targets[0].Machine, Enable: true, Fragments: facts(t, l).Fragments}
			recommended := func(collections ...string) bool {
				for _, r := range bbref.FindRecipes(t, request, facts(t, l).Series, collections...) {
					for name, value := range r.Values {
						if strings.HasPrefix(name, "RRECOMMENDS:packagegroup-yoctune-") && slices.Contains(strings.Fields(value), "onnxruntime") {
							return true
						}
					}
				}
				return false
			}
			if recommended() {
				t.Error("recommended in a build without meta-tegra-community")
			}
			if got := recommended("tegra-community"); got != has[l.Release] {
				t.Errorf("recommended in a build with meta-tegra-community: %t, want %t", got, has[l.Release])
			}
		})
	}
}
