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

func TestSignaturesOfOtherMachinesAreHeldAgainstThoseWithoutTheLayer(t *testing.T) {
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
		{"a task changed", strings.ReplaceAll(lockedSigs, "do_patch:bbbb", "do_patch:eeee"), []string{"linux-tegra:do_patch has another signature"}},
		{"a task is new", strings.ReplaceAll(lockedSigs, "do_install:cccc", "do_install:cccc \\\n    base-files:do_fetch:ffff"), []string{"base-files:do_fetch comes with the layer"}},
		{"what the layer's own recipes need is new", strings.ReplaceAll(lockedSigs, "do_install:cccc", "do_install:cccc \\\n    glibc:do_package:ffff"), nil},
		{"a task is gone", strings.ReplaceAll(lockedSigs, "    linux-tegra:do_fetch:aaaa \\\n", ""), []string{"linux-tegra:do_fetch is gone"}},
		{"nothing was compared", "", []string{"do_fetch is gone", "do_patch is gone"}},
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
func TestAWarningBehindALineOfProgressIsSeen(t *testing.T) {
	g := rig{layer: &layer{Dir: "/w/layer/x"}}
	out := "Parsing recipes...WARNING: /w/layer/x/a.bb: LICENSE is old\nWARNING: /w/layer/x/b.bb: so is this\nWARNING: /src/c.bb: theirs\ndone.\n"
	got := g.ownWarnings(out)
	if len(got) != 2 || got[0] != "WARNING: /w/layer/x/a.bb: LICENSE is old" {
		t.Errorf("got %q", got)
	}
}

func TestTheMachineMostLikeTheTargetStandsForAllOthers(t *testing.T) {
	root := t.TempDir()
	machines := filepath.Join(root, "conf", "machine")
	for name, text := range map[string]string{
		"target":       "require conf/machine/include/orin-nano.inc\nrequire conf/machine/include/wifi.inc\n",
		"target-nvme":  "MACHINEOVERRIDES =. \"target:\"\nrequire conf/machine/include/orin-nano.inc\nrequire conf/machine/include/wifi.inc\n",
		"module-only":  "require conf/machine/include/orin-nano.inc\n",
		"other-module": "require conf/machine/include/agx-orin.inc\n",
	} {
		put(t, filepath.Join(machines, name+".conf"), text, 0o644)
	}
	g := rig{opt: Options{Machine: "target"}, src: sources{MetaTegra: root}, layer: &layer{Machines: []string{"target"}}}
	if got := g.stranger(); got != "module-only" {
		t.Errorf("got %q", got)
	}
	g.layer.Machines = append(g.layer.Machines, "module-only")
	if got := g.stranger(); got != "" {
		t.Errorf("with every machine of the module a target, got %q", got)
	}
}
