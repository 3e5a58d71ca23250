package checklayer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestBBMASKLeavesOnlyWhatTheLayerNeeds(t *testing.T) {
	got := masks([]string{"/src/oe-core/meta", "/src/meta.tegra"}, []string{"tegra-nvpmodel-base", "linux-tegra", "linux-tegra"})
	want := []string{
		`^/src/oe-core/meta/(.*/)?(?!(linux-tegra|tegra-nvpmodel-base)(_[^/]*)?\.bb$)[^/]*\.bb$`,
		`^/src/oe-core/meta/(.*/)?(?!(linux-tegra|tegra-nvpmodel-base)(_[^/]*)?\.bbappend$)[^/]*\.bbappend$`,
		`^/src/meta\.tegra/(.*/)?(?!(linux-tegra|tegra-nvpmodel-base)(_[^/]*)?\.bb$)[^/]*\.bb$`,
		`^/src/meta\.tegra/(.*/)?(?!(linux-tegra|tegra-nvpmodel-base)(_[^/]*)?\.bbappend$)[^/]*\.bbappend$`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, m := range masks([]string{"/src"}, nil) {
		if strings.Contains(m, "()") {
			t.Errorf("%s matches an empty name", m)
		}
		// BBMASK is a list of words.
		if strings.ContainsAny(m, " \t") {
			t.Errorf("%q is more than one word", m)
		}
	}
}

func TestHostilePathsAreRefusedWithTheCharacter(t *testing.T) {
	for _, bad := range []string{"/a b", `/a"b`, "/a'b", "/a$b", "/a{b", "/a:b", "/a\nb", "/a+b", "/a@b", "/a%b", "/a(b", `/a\b`, "/ä"} {
		if err := usablePath("--oe-core", bad); err == nil || !strings.Contains(err.Error(), "--oe-core") {
			t.Errorf("%q: got %v", bad, err)
		}
		if _, err := (conf{Layers: []string{bad}}).bblayers(); err == nil {
			t.Errorf("bblayers.conf takes %q", bad)
		}
	}
	for _, good := range []string{"/home/me/src/oe-core", "/srv/yocto_5.0/meta-tegra", "/home/me/.cache/~x"} {
		if err := usablePath("--oe-core", good); err != nil {
			t.Error(err)
		}
	}
}

func TestEscapingValuesAreNotWritten(t *testing.T) {
	for _, bad := range []string{`a"b`, "a\nb", "${@os.system('x')}", `a\`} {
		if got, err := set("X", "=", bad); err == nil {
			t.Errorf("%q became %s", bad, got)
		}
	}
	if got, err := set("BBMASK", "+=", `^/a/[^/]*\.bb$`); err != nil || got != `BBMASK += "^/a/[^/]*\.bb$"` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestBuildFolderConfiguration(t *testing.T) {
	dir := t.TempDir()
	c := conf{Layers: []string{"/src/oe-core/meta", "/l/layer"}, Lines: []string{`MACHINE = "m"`}}
	if err := c.write(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"bblayers.conf": "BBPATH = \"${TOPDIR}\"\nBBFILES ?= \"\"\nBBLAYERS ?= \" \\\n /src/oe-core/meta \\\n /l/layer \\\n \"\n",
		"local.conf":    "MACHINE = \"m\"\n",
	} {
		got, err := os.ReadFile(filepath.Join(dir, "conf", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestLayerIsEnabledAsItsSeriesDoes(t *testing.T) {
	l := layer{Collection: "edge", Settings: []string{"edge"}, Fragments: []string{"edge"}}
	if got := l.enableLines(true); !slices.Equal(got, []string{`OE_FRAGMENTS += "edge/edge"`}) {
		t.Errorf("with fragments: %q", got)
	}
	if got := l.enableLines(false); !slices.Equal(got, []string{"require conf/yoctune/edge.conf"}) {
		t.Errorf("without: %q", got)
	}
}

func TestStandInsAreGroupedByPreferredProvider(t *testing.T) {
	s := newStandIns("/w/stand-ins/quick")
	s.Recipes = append(s.Recipes, "zlib", "xz-native", "virtual/libc", "glibc", "virtual/cross-cc")
	s.Providers = map[string]string{"virtual/libc": "glibc", "virtual/cross-cc": "gcc-cross-aarch64"}
	got := s.groups()
	for pn, want := range map[string][]string{
		"yoctune-stand-in":        {"zlib"},
		"yoctune-stand-in-native": {"pseudo-native", "xz-native"},
		"glibc":                   {"virtual/libc"},
		"gcc-cross-aarch64":       {"virtual/cross-cc"},
	} {
		names := slices.DeleteFunc(slices.Sorted(slices.Values(got[pn])), func(n string) bool { return n == "virtual/fakeroot-native" })
		if !slices.Equal(names, want) {
			t.Errorf("%s provides %q, want %q", pn, names, want)
		}
	}
	if text := s.text("gcc-cross-aarch64", got["gcc-cross-aarch64"]); !strings.Contains(text, "\ninherit cross\n") || !strings.Contains(text, `PROVIDES += "virtual/cross-cc"`) {
		t.Errorf("unexpected recipe:\n%s", text)
	}
}

func TestStandInsNeverReplaceTheLayersOwnRecipes(t *testing.T) {
	s, l := newStandIns("/w"), &layer{Dir: "/w/layer", Recipes: []recipe{{Name: "yoctune-edge-config"}}}
	out := "Nothing RPROVIDES 'yoctune-edge-config-dev' (but x RDEPENDS on or otherwise requires it)\nNothing PROVIDES 'yoctune-edge-config'\nNothing PROVIDES 'a\"b'\n"
	grew, err := s.addMissing(out, l, sources{})
	if err != nil || grew {
		t.Errorf("learnt %q %q (%v)", s.Recipes, s.Packages, err)
	}
}
