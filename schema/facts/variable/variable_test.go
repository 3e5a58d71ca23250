package variable_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/facts/variable"
)

// Each row of each release decodes, and the rows are sorted: Lookup searches them.
func TestEveryRowDecodes(t *testing.T) {
	for _, r := range release.Names() {
		names := variable.Names(r)
		if len(names) < 3000 {
			t.Errorf("%s: %d variables", r, len(names))
		}
		if !slices.IsSorted(names) {
			t.Errorf("%s: the rows are not sorted", r)
		}
		for _, name := range names {
			f, ok := variable.Lookup(r, name)
			if !ok || !strings.ContainsRune("gmr", rune(f.Scope)) || (f.Scope == variable.Recipe) == (f.Where == "") {
				t.Fatalf("%s: %s is read as %+v, %v", r, name, f, ok)
			}
			if (f.Machines != nil) && f.Lost == "" {
				t.Errorf("%s: %s has machines and no file", r, name)
			}
			for _, m := range f.Machines {
				if rel, _ := release.Lookup(r); !hasMachine(rel, m) {
					t.Errorf("%s: %s names machine %s", r, name, m)
				}
			}
		}
	}
}

func hasMachine(r release.Release, name string) bool {
	_, ok := r.Machine(name)
	return ok
}

// The table was read at the commits at which the other facts of the release were read.
func TestSourcesAreTheReleasesOwn(t *testing.T) {
	read := map[[2]string]string{}
	for _, s := range variable.Sources() {
		read[[2]string{s.Release, s.Repository}] = s.Commit
	}
	for _, name := range release.Names() {
		r, _ := release.Lookup(name)
		for part := range strings.SplitSeq(r.Read, ", ") {
			repository, commit, _ := strings.Cut(part, " ")
			if got := read[[2]string{name, repository}]; got == "" || !strings.HasPrefix(commit, got) {
				t.Errorf("%s: %s was read at %q, the other facts at %s", name, repository, got, commit)
			}
		}
	}
}

func TestFacts(t *testing.T) {
	for _, c := range []struct {
		release, name string
		want          string // "" where the release lacks it
	}{
		{"scarthgap", "BB_NUMBER_THREADS", "g"},
		{"scarthgap", "BB_SCHEDULER", "g"},
		{"scarthgap", "LICENSE_FLAGS_ACCEPTED", "g list"},
		{"scarthgap", "DISTRO_FEATURES", "g list"},
		{"kirkstone", "FILESEXTRAPATHS", "g list:"},
		{"scarthgap", "COMPATIBLE_MACHINE", "r"},
		{"scarthgap", "KBUILD_DEFCONFIG", "r"},
		{"scarthgap", "SRC_URI", "r list"},
		{"scarthgap", "S", "r"},
		{"wrynose", "RDEPENDS", "r list"},
		{"wrynose", "BB_GIT_SHALLOW", "g"},
		{"scarthgap", "UNPACKDIR", ""},
		{"walnascar", "UNPACKDIR", "r"},
		{"wrynose", "UNPACKDIR", "r"},
		{"scarthgap", "NVPMODEL", "m"},
		{"scarthgap", "MACHINE_FEATURES", "g list lost in meta-tegra/conf/machine/include/tegra-common.inc"},
		{"scarthgap", "SSTATE_VERSION", "g lost in oe-core/meta/classes-global/sstate.bbclass"},
		{"scarthgap", "XTRA_IMAGE_FEATURES", ""},
		{"scarthgap", "EXTRA_IMAGE_FEATURES", "g list"},
		{"kirkstone", "BB_LOADFACTOR_MAX", ""},
		{"scarthgap", "BB_LOADFACTOR_MAX", "g"},
		{"nowhere", "S", ""},
	} {
		got := ""
		if f, ok := variable.Lookup(c.release, c.name); ok {
			got = string(rune(f.Scope))
			if f.List {
				got += " list" + strings.TrimSpace(f.Separator)
			}
			if f.Lost != "" {
				got += " lost in " + f.Lost
			}
		}
		if got != c.want {
			t.Errorf("%s %s: %q, want %q", c.release, c.name, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{
		"XTRA_IMAGE_FEATURES": "EXTRA_IMAGE_FEATURES",
		"DISTRO_FEATURE":      "DISTRO_FEATURES",
		"BB_NUMBR_THREADS":    "BB_NUMBER_THREADS",
		"IMAGE_FSTYPE":        "IMAGE_FSTYPES",
		"ACME_FLEET_URL":      "",
	} {
		if got := variable.Nearest("scarthgap", word); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

// Names that real bitbake has in its data store after the configuration of a machine:
// YOCTUNE_BITBAKE_ENV is "RELEASE=FILE", FILE the output of bitbake -e.
func TestEveryNameOfBitbakeIsKnown(t *testing.T) {
	env := os.Getenv("YOCTUNE_BITBAKE_ENV")
	if env == "" {
		t.Skip("set YOCTUNE_BITBAKE_ENV to RELEASE=FILE, with the output of bitbake -e")
	}
	for pair := range strings.FieldsSeq(env) {
		r, file, _ := strings.Cut(pair, "=")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for line := range strings.Lines(string(text)) {
			name, ok := strings.CutPrefix(strings.TrimSpace(line), "# $")
			name, _, _ = strings.Cut(name, " ")
			if !ok || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
				continue
			}
			count++
			if _, known := variable.Lookup(r, name); !known {
				t.Errorf("%s: bitbake has %s, the table lacks it", r, name)
			}
		}
		t.Logf("%s: %d names of bitbake -e are in the table", r, count)
		if count < 500 {
			t.Errorf("%s has %d names", file, count)
		}
	}
}

// A mistyped name must not pass for another variable.
func TestMistypedNamesAreUnknown(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, r := range []string{"kirkstone", "scarthgap", "wrynose"} {
		names := variable.Names(r)
		known, suggested := 0, 0
		const tries = 1000
		for range tries {
			name := names[random.IntN(len(names))]
			for len(name) < 4 {
				name = names[random.IntN(len(names))]
			}
			wrong := mistype(random, name)
			if _, ok := variable.Lookup(r, wrong); ok {
				known++
			} else if variable.Nearest(r, wrong) != "" {
				suggested++
			}
		}
		t.Logf("%s: of %d mistyped names %d are other variables, %d get a suggestion", r, tries, known, suggested)
		if known > tries/20 || suggested < tries*9/10 {
			t.Errorf("%s: of %d mistyped names %d are other variables, and %d get a suggestion", r, tries, known, suggested)
		}
	}
}

// mistype leaves a letter out, doubles one, swaps two or replaces one.
func mistype(random *rand.Rand, name string) string {
	i := 1 + random.IntN(len(name)-2)
	switch random.IntN(4) {
	case 0:
		return name[:i] + name[i+1:]
	case 1:
		return name[:i] + name[i:i+1] + name[i:]
	case 2:
		if name[i] != name[i+1] {
			return name[:i] + name[i+1:i+2] + name[i:i+1] + name[i+2:]
		}
		fallthrough
	default:
		letter := byte('A' + random.IntN(26))
		if letter == name[i] {
			letter = 'A' + (letter-'A'+1)%26
		}
		return name[:i] + string(letter) + name[i+1:]
	}
}

func Example() {
	f, _ := variable.Lookup("scarthgap", "KBUILD_DEFCONFIG")
	fmt.Println(f.Scope == variable.Recipe, f.Where)
	// Output: true kernel-yocto.bbclass
}

func BenchmarkLookup(b *testing.B) {
	for b.Loop() {
		variable.Lookup("scarthgap", "EXTRA_IMAGE_FEATURES")
	}
}
