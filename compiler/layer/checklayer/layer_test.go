package checklayer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeCheckouts creates the files of the three checkouts that are read before bitbake
// starts.
func writeCheckouts(t *testing.T, root string) Options {
	t.Helper()
	for name, text := range map[string]string{
		"bitbake/bin/bitbake":                           "",
		"bitbake/lib/bb/__init__.py":                    "__version__ = \"2.8.1\"\n",
		"oe-core/meta/conf/bitbake.conf":                "HOSTTOOLS_DIR = \"x\"\n",
		"oe-core/meta/conf/layer.conf":                  "LAYERSERIES_CORENAMES = \"scarthgap\"\n",
		"oe-core/meta/conf/sanity.conf":                 "BB_MIN_VERSION = \"2.8.0\"\nLOCALCONF_VERSION  ?= \"2\"\n",
		"oe-core/meta/recipes-a/util-linux_2.39.bb":     "",
		"oe-core/meta/recipes-a/kmod.inc":               "RPROVIDES:${PN} += \"module-init-tools\"\n",
		"oe-core/meta/conf/machine/qemuarm64.conf":      "",
		"meta-tegra/conf/layer.conf":                    "",
		"meta-tegra/conf/machine/jetson-a.conf":         "",
		"meta-tegra/recipes-bsp/tegra-nvpmodel_36.5.bb": "",
	} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return Options{
		Layer: filepath.Join(root, "layer"), Release: "scarthgap", Machine: "jetson-a",
		BitBake: filepath.Join(root, "bitbake"), OECore: filepath.Join(root, "oe-core"), MetaTegra: filepath.Join(root, "meta-tegra"),
	}
}

func TestWrongCheckoutsAreNamed(t *testing.T) {
	good := writeCheckouts(t, t.TempDir())
	if _, err := findSources(good); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"oe-core/meta itself is understood", func(o *Options) { o.OECore += "/meta" }, ""},
		{"no bitbake", func(o *Options) { o.BitBake = "" }, "--bitbake"},
		{"not a bitbake", func(o *Options) { o.BitBake = o.MetaTegra }, "has no bin/bitbake"},
		{"not there", func(o *Options) { o.MetaTegra = "/nonexistent" }, "no such file"},
		{"other series", func(o *Options) { o.Release = "wrynose" }, "is the series scarthgap"},
		{"release with code", func(o *Options) { o.Release = "${@x}" }, "--release scarthgap"},
		{"L4T branch of the series", func(o *Options) { o.Release = "scarthgap-l4t-r35.x" }, ""},
		{"unknown machine", func(o *Options) { o.Machine = "jetson-b" }, "it has: jetson-a"},
		{"openembedded-core alone", func(o *Options) { o.MetaTegra, o.Machine = "", "qemuarm64" }, ""},
		{"openembedded-core alone has no Jetson", func(o *Options) { o.MetaTegra = "" }, "it has: qemuarm64"},
		{"machine with a path", func(o *Options) { o.Machine = "../jetson-a" }, "--machine"},
		{"extra layer that is none", func(o *Options) { o.Extra = []string{t.TempDir()} }, "--extra-layer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := good
			tc.change(&o)
			_, err := findSources(o)
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	bad := writeCheckouts(t, filepath.Join(t.TempDir(), "a b"))
	if _, err := findSources(bad); err == nil || !strings.Contains(err.Error(), `" "`) {
		t.Errorf("a path with a space: %v", err)
	}
}

func TestTooOldBitBakeIsRefused(t *testing.T) {
	root := t.TempDir()
	o := writeCheckouts(t, root)
	if err := os.WriteFile(filepath.Join(root, "bitbake/lib/bb/__init__.py"), []byte("__version__ = \"2.10.0\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := findSources(o); err != nil {
		t.Errorf("2.10 is newer than 2.8: %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "bitbake/lib/bb/__init__.py"), []byte("__version__ = \"2.0.0\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := findSources(o); err == nil || !strings.Contains(err.Error(), "needs 2.8.0") {
		t.Errorf("got %v", err)
	}
}

func TestNamesAreFoundInTheCheckouts(t *testing.T) {
	s, err := findSources(writeCheckouts(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"tegra-nvpmodel":        byRecipe,
		"util-linux-native":     byRecipe,
		"module-init-tools":     byRecipe,
		"util-linux-swapon":     byPattern,
		"kernel-module-tcp-bbr": byPattern,
		"htop":                  untraced,
		"tegra-nvpmodl":         untraced,
	} {
		if got, err := s.trace(name); err != nil || got != want {
			t.Errorf("%s: got %d (%v), want %d", name, got, err, want)
		}
	}
}

func TestForeignWorkFolderIsKept(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "build")
	if err := os.Mkdir(mine, 0o755); err != nil {
		t.Fatal(err)
	}
	g := rig{opt: Options{WorkDir: dir}}
	if err := g.makeWorkDir(); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("the user's folder is gone: %v", err)
	}
	empty := rig{opt: Options{WorkDir: filepath.Join(dir, "new")}}
	if err := empty.makeWorkDir(); err != nil {
		t.Fatal(err)
	}
	second := rig{opt: empty.opt}
	if err := second.makeWorkDir(); err == nil || !strings.Contains(err.Error(), "in use by another run") {
		t.Errorf("a second run at the same time: %v", err)
	}
	empty.close()
	if err := second.makeWorkDir(); err != nil {
		t.Errorf("after the first run: %v", err)
	}
	second.close()
}

func TestLayerIsReadFromASnapshot(t *testing.T) {
	from := filepath.Join(t.TempDir(), `a "layer" $HOME`)
	for name, text := range map[string]string{
		"conf/layer.conf":        "BBFILE_COLLECTIONS += \"edge\"\nLAYERDEPENDS_edge = \"core tegra\"\n",
		"conf/yoctune/edge.conf": "",
		"recipes-kernel/linux/linux-jammy-nvidia-tegra_%.bbappend":       "require ${@bb.utils.contains('DISTRO_FEATURES', 'yoctune-edge', 'linux-yoctune-edge.inc', '', d)}\n",
		"recipes-kernel/linux/linux-yoctune-edge.inc":                    "SRC_URI:append:jetson-a = \" file://edge.cfg\"\n",
		"recipes-kernel/linux/other.inc":                                 "SRC_URI = \"x\"\n",
		"recipes-yoctune/yoctune-edge-config/yoctune-edge-config_1.0.bb": "SUMMARY = \"x\"\n",
		"recipes-yoctune/packagegroups/packagegroup-yoctune-edge.bb":     "RDEPENDS:${PN} = \" \\\n    htop \\\n\"\n",
		".git/config": "",
	} {
		path := filepath.Join(from, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(t.TempDir(), "layer")
	if err := snapshot(from, to); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(to, ".git")); err == nil {
		t.Error(".git was copied")
	}
	l, err := readLayer(to, from, "jetson-a")
	if err != nil {
		t.Fatal(err)
	}
	if l.Collection != "edge" || !l.NeedsTegra || len(l.Recipes) != 2 || len(l.Appends) != 1 || l.Appends[0].Name != "linux-jammy-nvidia-tegra" {
		t.Errorf("read as %+v", l)
	}
	if got := collectPromises(l.Appends[0].Lines, []string{"jetson-a"}); len(got) != 1 || got[0].Words[0] != "file://edge.cfg" {
		t.Errorf("promises of the append: %+v", got)
	}
	if !l.owns("yoctune-edge-config-dev") || l.owns("yoctune-edge-conf") || !l.requests("htop") || l.requests("top") {
		t.Error("own and named packages are mixed up")
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	if err := snapshot(from, filepath.Join(t.TempDir(), "again")); err == nil {
		t.Error("a link was followed")
	}
}
