package recipe_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/recipe"
	"github.com/yoctune/yoctune/schema/facts/variable"
)

func TestEachReleaseHasNames(t *testing.T) {
	for _, r := range variable.Releases() {
		if got := recipe.Sources(r); len(got) != 5 {
			t.Errorf("%s was read from %v", r, got)
		}
		for kind, fewest := range map[recipe.Kind]int{recipe.Package: 5000, recipe.Recipe: 3000, recipe.Image: 40} {
			names := slices.Collect(recipe.Names(r, kind))
			for _, name := range names {
				if !recipe.Has(r, name, kind) {
					t.Fatalf("%s: %s is listed and not found", r, name)
				}
			}
			if len(names) < fewest || !slices.IsSorted(names) {
				t.Errorf("%s has %d names of kind %c", r, len(names), kind)
			}
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name string
		kind recipe.Kind
		has  bool
		near string
	}{
		{"vim", recipe.Package, true, ""},
		{"vimm", recipe.Package, false, "vim"},
		{"util-linux-dbg", recipe.Package, true, ""},                // of every recipe
		{"iproute2-ss", recipe.Package, true, ""},                   // through a variable
		{"coreutils-stdbuf", recipe.Package, true, ""},              // in inline Python
		{"python3-asyncio", recipe.Package, true, ""},               // from Python's manifest
		{"boost-filesystem", recipe.Package, true, ""},              // a variable that Python sets
		{"gstreamer1.0-plugins-bad-srtp", recipe.Package, true, ""}, // PACKAGES_DYNAMIC
		{"kernel-devicetree", recipe.Package, true, ""},             // appended by Python
		{"docker-moby", recipe.Package, true, ""},
		{"gcc-cross-aarch64", recipe.Package, false, ""},
		{"cmake-native", recipe.Package, false, ""},
		{"core-image-minimall", recipe.Image, false, "core-image-minimal"},
		{"linux-jammy-nvidia-tegra", recipe.Recipe, true, ""},
		{"acme-detector", recipe.Package, false, ""},
		{"wayland", recipe.DistroFeature, true, ""},
		{"waylnd", recipe.DistroFeature, false, "wayland"},
		{"usbgadget", recipe.MachineFeature, true, ""},
		{"splash", recipe.ImageFeature, true, ""},       // FEATURE_PACKAGES_splash
		{"dbg-pkgs", recipe.ImageFeature, true, ""},     // COMPLEMENTARY_GLOB
		{"debug-tweaks", recipe.ImageFeature, true, ""}, // validitems
		{"vim", recipe.ImageFeature, false, ""},
		{"tegra-community", recipe.Collection, true, ""},
		{"repo.download.nvidia.com", recipe.Host, true, ""},
		{"python3-pycuda", recipe.CUDA, true, ""},
		{"vim", recipe.CUDA, false, ""},
	} {
		if got := recipe.Has("scarthgap", c.name, c.kind); got != c.has {
			t.Errorf("%s: known is %t", c.name, got)
		}
		if !c.has {
			if near := recipe.Nearest("scarthgap", c.name, c.kind); near != c.near {
				t.Errorf("%s is near %q, not %q", c.name, near, c.near)
			}
		}
	}
	if !recipe.Has("nanbield", "anything", recipe.Package) {
		t.Error("a release that was not read lacks a name")
	}
}

// Most slips lead back to the name.
func TestMistypedPackagesAreUnknown(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	names := slices.Collect(recipe.Names("scarthgap", recipe.Package))
	const tries = 1000
	known, near := 0, 0
	for range tries {
		name := names[random.IntN(len(names))]
		i := 1 + random.IntN(len(name)-1)
		wrong := name[:i] + string(rune('a'+random.IntN(26))) + name[i:]
		if recipe.Has("scarthgap", wrong, recipe.Package) {
			known++ // the name of another package, or one that a pattern accepts
		} else if recipe.Nearest("scarthgap", wrong, recipe.Package) != "" {
			near++
		}
	}
	t.Logf("of %d mistyped packages %d are known, and %d are near one", tries, known, near)
	if known > tries/10 || near < tries*95/100 {
		t.Errorf("of %d mistyped packages %d are known, and %d are near one", tries, known, near)
	}
}

// The names with which bitbake resolves what an image installs, from tests/names/packages.py.
func TestEveryPackageOfBitbakeIsKnown(t *testing.T) {
	list := os.Getenv("YOCTUNE_BITBAKE_PACKAGES")
	if list == "" {
		t.Skip("set YOCTUNE_BITBAKE_PACKAGES to RELEASE=FILE, with the output of tests/names/packages.py")
	}
	for pair := range strings.FieldsSeq(list) {
		r, file, _ := strings.Cut(pair, "=")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		count, lacks := 0, []string{}
		for name := range strings.Lines(string(text)) {
			name = strings.TrimSpace(name)
			if count++; !recipe.Has(r, name, recipe.Package) {
				lacks = append(lacks, name)
			}
		}
		t.Logf("%s: of %d names of bitbake the table lacks %d: %v", r, count, len(lacks), lacks)
		if count < 10_000 || len(lacks)*1000 > count {
			t.Errorf("%s: %d names, %d of them unknown", file, count, len(lacks))
		}
	}
}

func TestEachReleaseHasOptions(t *testing.T) {
	for _, r := range variable.Releases() {
		options := recipe.Options(r, "opencv")
		if !slices.IsSorted(options) || !slices.Contains(options, "gstreamer") || slices.Contains(options, "gstremer") {
			t.Errorf("%s: opencv has the options %v", r, options)
		}
		if got := recipe.Options(r, "acme"); len(got) != 0 {
			t.Errorf("%s: a recipe that does not exist has the options %v", r, got)
		}
	}
}
