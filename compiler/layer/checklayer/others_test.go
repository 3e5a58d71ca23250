package checklayer

import (
	"path/filepath"
	"strings"
	"testing"
)

const lockedSigs = `SIGGEN_LOCKEDSIGS_t-armv8a-tegra234 = "\
    linux-tegra:do_fetch:aaaa \
    linux-tegra:do_patch:bbbb \
    yoctune-x-config:do_install:cccc \
    "
SIGGEN_LOCKEDSIGS_TYPES:jetson-a = "t-armv8a-tegra234"
SIGGEN_UNIHASHMAP += "\
    linux-tegra:do_fetch:aaaa:dddd \
    "
`

func TestSignaturesOfOtherMachinesAreCompared(t *testing.T) {
	own := func(pn string) bool { return pn == "yoctune-x-config" }
	without := lockedSignatures(strings.ReplaceAll(lockedSigs, "    yoctune-x-config:do_install:cccc \\\n", ""))
	if len(without) != 2 {
		t.Fatalf("read %v", without)
	}
	for _, tc := range []struct {
		name, with string
		want       []string
	}{
		{"only the layer's own recipes are new", lockedSigs, nil},
		{"a task changed", strings.ReplaceAll(lockedSigs, "do_patch:bbbb", "do_patch:eeee"), []string{"linux-tegra:do_patch changes its signature"}},
		{"a task is new", strings.ReplaceAll(lockedSigs, "do_install:cccc", "do_install:cccc \\\n    base-files:do_fetch:ffff"), []string{"base-files:do_fetch appears when the layer is enabled"}},
		{"what the layer's own recipes need is new", strings.ReplaceAll(lockedSigs, "do_install:cccc", "do_install:cccc \\\n    glibc:do_package:ffff"), nil},
		{"a task disappears", strings.ReplaceAll(lockedSigs, "    linux-tegra:do_fetch:aaaa \\\n", ""), []string{"linux-tegra:do_fetch disappears"}},
		{"nothing was compared", "", []string{"do_fetch disappears", "do_patch disappears"}},
	} {
		o := compareSignatures(lockedSignatures(tc.with), without, own, func(pn string) bool { return pn == "glibc" })
		if len(o.errors) != len(tc.want) {
			t.Errorf("%s: %q", tc.name, o.errors)
			continue
		}
		for i, want := range tc.want {
			if !strings.Contains(o.errors[i], want) {
				t.Errorf("%s: %q, want %q", tc.name, o.errors[i], want)
			}
		}
	}
}

// bitbake writes its first warning behind "Parsing recipes...".
func TestWarningAfterProgressLineIsFound(t *testing.T) {
	g := rig{layer: &layer{Dir: "/w/layer/x"}}
	out := "Parsing recipes...WARNING: /w/layer/x/a.bb: LICENSE is old\nWARNING: /w/layer/x/b.bb: so is this\nWARNING: /src/c.bb: theirs\ndone.\n"
	got := g.ownWarnings(out)
	if len(got) != 2 || got[0] != "WARNING: /w/layer/x/a.bb: LICENSE is old" {
		t.Errorf("got %q", got)
	}
}

func TestMostSimilarMachineIsTheReference(t *testing.T) {
	root := t.TempDir()
	machines := filepath.Join(root, "conf", "machine")
	for name, text := range map[string]string{
		"target":       "require conf/machine/include/orin-nano.inc\nrequire conf/machine/include/wifi.inc\n",
		"target-nvme":  "MACHINEOVERRIDES =. \"target:\"\nrequire conf/machine/include/orin-nano.inc\nrequire conf/machine/include/wifi.inc\n",
		"module-only":  "require conf/machine/include/orin-nano.inc\n",
		"other-module": "require conf/machine/include/agx-orin.inc\n",
	} {
		writeFile(t, filepath.Join(machines, name+".conf"), text, 0o644)
	}
	g := rig{opt: Options{Machine: "target"}, src: sources{MetaTegra: root}, layer: &layer{Machines: []string{"target"}}}
	if got := g.similarMachine(); got != "module-only" {
		t.Errorf("got %q", got)
	}
	g.layer.Machines = append(g.layer.Machines, "module-only")
	if got := g.similarMachine(); got != "" {
		t.Errorf("with every machine of the module a target, got %q", got)
	}
}

// A custom machine is defined in a custom layer.
func TestMachineMayComeFromExtraLayer(t *testing.T) {
	tegra, own := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(tegra, "conf", "machine", "devkit.conf"), "require conf/machine/include/orin-nano.inc\n", 0o644)
	writeFile(t, filepath.Join(tegra, "conf", "machine", "sibling.conf"), "require conf/machine/include/orin-nano.inc\n", 0o644)
	writeFile(t, filepath.Join(own, "conf", "machine", "carrier.conf"), "require conf/machine/devkit.conf\n", 0o644)
	s := sources{MetaTegra: tegra, Series: []string{"scarthgap"}}
	if err := s.checkTarget("scarthgap", "carrier"); err == nil || !strings.Contains(err.Error(), "--extra-layer") {
		t.Errorf("without its layer: %v", err)
	}
	s.Extra = []string{own}
	if err := s.checkTarget("scarthgap", "carrier"); err != nil {
		t.Errorf("with its layer: %v", err)
	}
	g := rig{opt: Options{Machine: "carrier"}, src: s, layer: &layer{Machines: []string{"carrier", "devkit"}}}
	if got := g.similarMachine(); got != "sibling" {
		t.Errorf("the most similar machine is %q", got)
	}

	// Its SoC comes through a file of its own layer.
	writeFile(t, filepath.Join(own, "conf", "machine", "product.conf"), "require conf/machine/include/product.inc\n", 0o644)
	writeFile(t, filepath.Join(own, "conf", "machine", "include", "product.inc"), "require conf/machine/include/orin-nano.inc\n", 0o644)
	g = rig{opt: Options{Machine: "product"}, src: s, layer: &layer{Machines: []string{"product"}}}
	if got := g.similarMachine(); got != "devkit" {
		t.Errorf("the machine most similar to the product is %q", got)
	}
}

// What stood in for a recipe that the next build folder has would be a second
// provider of it.
func TestStandInsNeverReplaceSamples(t *testing.T) {
	g := rig{work: t.TempDir(), src: sources{MetaTegra: "tegra"}, standIns: map[string]*standIns{quickBuild: {
		Providers: map[string]string{},
		Recipes:   []string{"virtual/kernel", "tegra-nvpower"},
		Packages:  []string{"bash", "tegra-nvpower", "tegra-nvpower-dbg"},
	}}}
	s, err := g.sampleStandIns(unusedCase)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(append(s.Recipes, s.Packages...), " "); got != "virtual/kernel bash" {
		t.Errorf("stand-ins for %s", got)
	}
	if len(g.standIns[quickBuild].Packages) != 3 {
		t.Error("those of the other build folder changed")
	}
}

func TestOnlyARemoteHashServerIsLeftToBitBake(t *testing.T) {
	for value, want := range map[string]bool{"auto": false, "hash.example.com:8686": true, "": false} {
		var l layer
		if value != "" {
			l.SettingLines = map[string][]line{"edge": {{Variable: "BB_HASHSERVE", Value: value}}}
		}
		if got := l.namesHashServer(); got != want {
			t.Errorf("BB_HASHSERVE = %q: %t", value, got)
		}
	}
}
