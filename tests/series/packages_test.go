package series

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every package that the layer installs by name, tools included, is a recipe of the release.
func TestPackagesAreRecipesOfTheRelease(t *testing.T) {
	checkouts := os.Getenv("YOCTUNE_CHECKOUTS")
	if checkouts == "" {
		t.Skip("set YOCTUNE_CHECKOUTS to a folder with RELEASE/openembedded-core")
	}
	for _, l := range layers(t) {
		root := filepath.Join(checkouts, l.Release, "openembedded-core", "meta")
		if _, err := os.Stat(root); err != nil {
			t.Logf("%s: %v", l.Release, err)
			continue
		}
		for _, p := range l.Targets[0].Packages {
			if p.Action != "install" || strings.HasPrefix(p.Name, "yoctuned-") {
				continue
			}
			var found []string
			for _, name := range []string{p.Name + ".bb", p.Name + "_*.bb"} {
				some, err := filepath.Glob(filepath.Join(root, "recipes-*", "*", name))
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, some...)
			}
			if len(found) == 0 {
				t.Errorf("%s has no recipe of %s", l.Release, p.Name)
			}
		}
	}
}

func TestRecommendedPackagesAreRecipesOfMetaOE(t *testing.T) {
	repo := os.Getenv("YOCTUNE_META_OE")
	if repo == "" {
		t.Skip("set YOCTUNE_META_OE to a clone of meta-openembedded that has the branches")
	}
	for _, l := range layers(t) {
		branch := facts(t, l).Series
		if l.Release == "master" {
			branch = l.Release
		}
		out, err := exec.CommandContext(t.Context(), "git", "-C", repo, "ls-tree", "-r", "--name-only", branch, "meta-oe").Output()
		if err != nil {
			t.Fatalf("%s: %v", branch, err)
		}
		for _, o := range l.Build.Optional {
			if o.Collection != "openembedded-layer" {
				continue
			}
			if len(o.Recommended) == 0 {
				t.Errorf("%s: nothing is recommended", l.Release)
			}
			for _, r := range o.Recommended {
				if !strings.Contains(string(out), "/"+r.Package+"_") {
					t.Errorf("meta-oe of %s has no recipe of %s", branch, r.Package)
				}
			}
		}
	}
}
